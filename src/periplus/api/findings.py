"""What does a site's owner want to know: what to repair first, dead links, redirects, weights, other sites? Gathered for the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit import audit
from periplus.analyse.audit_input import AuditInput, Finding, Places, dead
from periplus.analyse.audit_issues import causes, rows_of
from periplus.analyse.audit_links import NOT_FOLLOWED, redirect_ends
from periplus.analyse.audit_table import KINDS_OF_ISSUES
from periplus.analyse.external import LinksOfDomains, external_domains
from periplus.analyse.hierarchy import map_tree
from periplus.analyse.linkgraph import distinct_sorted, places_in_sorted
from periplus.analyse.redirects import chain_ends
from periplus.analyse.sizes import SizeInput, Weights, media_places, site_sizes, weights
from periplus.analyse.verdicts import Judgement
from periplus.api.auditing import AuditOrder
from periplus.api.auditing import audited as stored_audit
from periplus.api.facts import RankOrder, SiteAnalysis, SiteRows, Start, about, analysed, chosen_start, read_site, starts_of
from periplus.api.parts import known_sizes
from periplus.api.site_audit import SiteAudit, audited
from periplus.model.audit import VERDICTS, Fault, Grade, Verdict
from periplus.model.graph import REASONS, LinkRows
from periplus.model.media import MediaClass
from periplus.model.page import FOLLOWED_KINDS
from periplus.model.report import ClassSize, ExternalSite, IssueGroup, PageWeight, RedirectChain, ReportData
from periplus.model.results import DeadLink, Holder, LayerTally, SiteMap, StateTally
from periplus.model.visit import FETCHED, Reason, State
from periplus.model.web import UrlId
from periplus.present.wording import REASON_WORDS, without_site_name
from periplus.store.sqlite import graph_rows, reading, runs, site_rows
from periplus.store.sqlite.listing import reasons_of
from periplus.urls.canonical import url_id

MAP_NODES = 400  # of the report's map: it opens branch by branch
DEAD_NAMED = 2_000  # dead URLs with their pages: each page costs two look-ups
HOLDERS_NAMED = 50  # pages named with one dead URL: a dead link in a menu stands on every page
FAULTS_NAMED = 1_000  # of one kind; all of them are the audit's own business
ISSUES_NAMED = 10  # of one fault: a missing script stands on every page
CHAINS_NAMED = 100_000
HEAVIEST = 50
CHECK = "check"  # the kind of a run that asked for what links lead to
DEAD = [reason for reason in reasons_of(State.INVALID) if reason not in (Reason.BUG, Reason.PRIVATE)]  # those are our doing
_GRADES = list(Grade)
_FOLLOWED = [place for place, kind in enumerate(site_rows.KINDS) if kind not in NOT_FOLLOWED]


@dataclass(frozen=True, slots=True)
class _Looked:
    """A site's audit, and which of its links are to be followed or part of a page."""

    audit: SiteAudit
    followed: NDArray[np.bool_]  # by link
    sizes: SizeInput
    weights: Weights

    @property
    def known(self) -> AuditInput:
        return self.audit.known

    @property
    def ids(self) -> Places:
        return self.audit.ids


def report_data(connection: reading.Connection, site: str, order: RankOrder, now: float, near: bool | None = None) -> ReportData:
    """Everything that the report of a site shows. near: compare texts for near duplicates; None: where the site is small.
    Raises UsageError for a site that is not there."""
    with reading.snapshot(connection):
        records = runs.run_records(connection)
        chosen = chosen_start(starts_of(records, connection, graph_rows.redirects(connection)), site)
        links = site_rows.site_links(connection, chosen.site)
        rows = read_site(connection, site, now, _to_pages(links))
        found = _with_short_titles(analysed(rows, order))
        rows = replace(rows, links=LinkRows(np.zeros(0, np.int64), np.zeros(0, np.int64)))  # 160 MB less for ten million links
        checked = any(record.kind == CHECK for record in records)
        looked = _checked(connection, chosen, near) if checked else _unchecked(connection, chosen, links, near)
        del links  # as much again
        return _gathered(connection, rows, found, looked, now)


def _to_pages(links: site_rows.SiteLinks) -> LinkRows:
    """The links of the kinds that lead to pages, each pair once; as `graph_rows.page_links` reads them."""
    kept = np.isin(links.kinds, [site_rows.KINDS.index(kind) for kind in FOLLOWED_KINDS])
    sources, targets = links.sources[kept], links.targets[kept]
    first = np.ones(len(sources), np.bool_)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    return LinkRows(sources[first], targets[first])


def _checked(connection: reading.Connection, start: Start, near: bool | None) -> _Looked:
    """The audit by crawl and checks together."""
    found = audited(connection, start, near=near)
    sizes = _size_input(connection, found)
    return _Looked(found, np.isin(found.known.links.kind, _FOLLOWED), sizes, weights(sizes))


def _unchecked(connection: reading.Connection, start: Start, links: site_rows.SiteLinks, near: bool | None) -> _Looked:
    """The audit where no check was made: what the crawl saw once is taken as it was."""
    order = AuditOrder(start.site, (UrlId(start.home_id), url_id(start.url)), near)
    base = stored_audit(connection, order, links, graph_rows.redirects(connection))
    urls, missing = base.known.urls, VERDICTS.index(Verdict.MISSING)
    judgements = {}
    for place in np.flatnonzero(dead(base.known)).tolist():
        gone = urls.verdict[place] != missing
        words = REASON_WORDS[REASONS[urls.reason[place]]] if gone else "calls itself an error page"
        status = f", status {base.statuses[place]}" if base.statuses[place] else ""
        judgements[place] = Judgement(Verdict.BROKEN if gone else Verdict.MISSING, words + status)
    found = SiteAudit(base.known, audit(base.known), judgements, base.ids, base.duplicates, base.notes)
    return _Looked(found, base.followed, base.sizes, base.weights)


def _gathered(connection: reading.Connection, rows: SiteRows, found: SiteAnalysis, looked: _Looked, now: float) -> ReportData:
    ended = rows.run.ended if not rows.running else None
    facts, site = found.facts, rows.start.site
    sizes, heaviest = _weights(connection, looked)
    dead_named, dead_urls = dead_links(connection, looked)
    return ReportData(
        about=about(rows, found.ranking, now),
        finished=ended or 0.0,
        counts=_counts(connection, rows),
        pages=facts,
        ranked=_ranked(found),
        tree=map_tree(found.site_map, facts.rank, facts.size_bytes, found.graph.indexed, max_nodes=MAP_NODES) if found.site_map else None,
        layers=layer_tallies(found.site_map, found.graph.indexed) if found.site_map else (),
        groups=issue_groups(connection, looked.audit),
        dead=dead_named,
        dead_urls=dead_urls,
        chains=redirect_chains(looked),
        sizes=sizes,
        heaviest=heaviest,
        hosts=graph_rows.tallies(connection, site, "host"),
        external=external_sites(connection, looked),
        media=graph_rows.tallies(connection, site, "media_type"),
        charsets=graph_rows.tallies(connection, site, "charset"),
        languages=graph_rows.tallies(connection, site, "language"),
        duplicates=looked.audit.duplicates,
        notes=looked.audit.notes,
    )


def _with_short_titles(found: SiteAnalysis) -> SiteAnalysis:
    return replace(found, facts=replace(found.facts, title=without_site_name(found.facts.title)))


def _counts(connection: reading.Connection, rows: SiteRows) -> tuple[StateTally, ...]:
    """Of all URLs, those outside included; only of the site's own where the collection has several sites."""
    alone = len(starts_of(runs.run_records(connection), connection, rows.redirects)) == 1
    return tuple(reading.counts(connection, None if alone else rows.start.site))


def layer_tallies(site_map: SiteMap, indexed: NDArray[np.bool_]) -> tuple[LayerTally, ...]:
    """How many pages each layer holds."""
    reached = site_map.layer >= 0
    total = np.bincount(site_map.layer[reached])
    fetched = np.bincount(site_map.layer[reached & indexed], minlength=len(total))
    return tuple(LayerTally(layer, own, pages - own) for layer, (pages, own) in enumerate(zip(total.tolist(), fetched.tolist(), strict=True)))


def _ranked(found: SiteAnalysis) -> tuple[int, ...]:
    """Fetched pages, greatest rank first."""
    fetched = np.flatnonzero(found.graph.indexed)
    return tuple(fetched[np.argsort(-found.facts.rank[fetched], kind="stable")].tolist())


def issue_groups(connection: reading.Connection, looked: SiteAudit) -> tuple[IssueGroup, ...]:
    """The audit's findings by kind, gravest first; of each kind the first FAULTS_NAMED causes in words, those on most pages before others."""
    groups = [_issue_group(connection, looked, finding) for finding in looked.findings]
    return tuple(sorted(groups, key=lambda group: _GRADES.index(group.grade)))  # within a grade: the table's order


def _issue_group(connection: reading.Connection, looked: SiteAudit, finding: Finding) -> IssueGroup:
    numbers, first, cause, totals = np.unique(causes(finding), return_index=True, return_inverse=True, return_counts=True)
    width = len(looked.ids)
    pages = np.bincount(distinct_sorted(cause * width + finding.subjects) // width, minlength=len(numbers))
    by_cause, starts = np.argsort(cause, kind="stable"), np.cumsum(totals) - totals
    order = np.lexsort((finding.subjects[first], -pages))[:FAULTS_NAMED]
    spans = [by_cause[start : start + min(total, ISSUES_NAMED)] for start, total in zip(starts[order].tolist(), totals[order].tolist(), strict=True)]
    worded = replace(looked, findings=[rows_of(finding, np.concatenate(spans))]).issues(connection)
    kind, faults = KINDS_OF_ISSUES[finding.code], []
    for place, span in zip(order.tolist(), spans, strict=True):
        some = tuple(islice(worded, len(span)))
        faults.append(Fault(kind.code, kind.grade, some[0].cause, int(pages[place]), int(totals[place]), some))
    return IssueGroup(kind, kind.grade, len(np.unique(finding.subjects)), len(numbers), tuple(faults))


def dead_links(connection: reading.Connection, looked: _Looked) -> tuple[tuple[DeadLink, ...], int]:
    """(URLs that lead nowhere, at once or by redirects, with the pages that link to them, most pages first; how many there are).

    Named as the pages write them: where a redirect leads nowhere, the URL that redirects. Dead URLs of the site without any
    link (from a sitemap, or a start) stand last.
    """
    known = looked.known
    gone, ends = _gone(known), redirect_ends(known)
    rows = np.flatnonzero(looked.followed & gone[known.links.target])
    pairs = distinct_sorted(known.links.target[rows] * len(gone) + known.links.source[rows])
    targets, starts, counts = np.unique(pairs // max(len(gone), 1), return_index=True, return_counts=True)
    direct = np.zeros(len(gone), np.bool_)
    direct[targets] = True
    behind = np.zeros(len(gone), np.bool_)
    behind[ends[targets][ends[targets] != targets]] = True
    behind[known.redirects.sources] = True  # told by their ends, or by what leads into their circle
    unlinked = np.flatnonzero(gone & known.urls.own & ~direct & ~behind)
    order = np.lexsort((targets, -counts))[:DEAD_NAMED]
    found = []
    for target, start, pages in zip(targets[order].tolist(), starts[order].tolist(), counts[order].tolist(), strict=True):
        sources = (pairs[start : start + min(pages, HOLDERS_NAMED)] % len(gone)).tolist()
        found.append(_dead_link(connection, looked, (target, int(ends[target])), sources, pages))
    found += [_dead_link(connection, looked, (target, target), [], 0) for target in unlinked[: DEAD_NAMED - len(found)].tolist()]
    return tuple(found), len(targets) + len(unlinked)


def _gone(known: AuditInput) -> NDArray[np.bool_]:
    """bool[u]: whoever follows finds nothing. Pages that only look missing are not among them; what a check has in doubt
    counts as the crawl saw it."""
    ends = chain_ends(known.redirects)
    seen = np.isin(known.urls.reason, [REASONS.index(reason) for reason in DEAD]) & (known.urls.verdict == VERDICTS.index(Verdict.SUSPECT))
    lost: NDArray[np.bool_] = seen | (dead(known) & (known.urls.verdict != VERDICTS.index(Verdict.MISSING)))
    lost[known.redirects.sources] = lost[ends.ends] | ends.loops
    return lost


def _dead_link(connection: reading.Connection, looked: _Looked, way: tuple[int, int], sources: list[int], pages: int) -> DeadLink:
    """way: places of the URL as written, and of its end."""
    urls, (target, end) = looked.known.urls, way
    anchors = site_rows.anchors_of(connection, ((int(looked.ids[source]), int(looked.ids[target])) for source in sources))
    held = [Holder(urls.url[source], graph_rows.title_of(connection, int(looked.ids[source])), anchor) for source, anchor in zip(sources, anchors, strict=True)]
    reason = REASONS[urls.reason[end]]
    circle = reason is Reason.REDIRECT
    seen = graph_rows.url_facts(connection, int(looked.ids[end]))
    return DeadLink(urls.url[target], Reason.BAD_ANSWER if circle else reason, seen.status if seen else 0, tuple(held), pages)


def redirect_chains(looked: _Looked) -> tuple[RedirectChain, ...]:
    """The site's URLs that redirect: loops, then long chains, then those with most pages still linking there."""
    known = looked.known
    redirects, ends, links = known.redirects, chain_ends(known.redirects), known.links
    own = np.flatnonzero(known.urls.own[redirects.sources])
    moved = np.zeros(len(looked.ids), np.bool_)
    moved[redirects.sources] = True
    there = np.flatnonzero(looked.followed & moved[links.target])
    linking = distinct_sorted(links.target[there] * len(moved) + links.source[there]) // max(len(moved), 1)
    count = np.bincount(linking, minlength=len(moved))[redirects.sources]
    order = own[np.lexsort((redirects.sources[own], -count[own], -ends.hops[own], ~ends.loops[own]))][:CHAINS_NAMED]
    url = known.urls.url
    return tuple(
        RedirectChain(url[source], url[target], url[end], status, hops, loop, pages)
        for source, target, end, status, hops, loop, pages in zip(
            redirects.sources[order].tolist(), redirects.targets[order].tolist(), ends.ends[order].tolist(), redirects.statuses[order].tolist(),
            ends.hops[order].tolist(), ends.loops[order].tolist(), count[order].tolist(), strict=True,
        )
    )  # fmt: skip


def external_sites(connection: reading.Connection, looked: _Looked) -> tuple[ExternalSite, ...]:
    """Other sites that pages link to, most pages first. What is dead is an error of the site, not a link out (SPEC A7)."""
    known, names = looked.known, graph_rows.site_names(connection)
    fetched = np.isin(known.urls.reason, [REASONS.index(reason) for reason in FETCHED])
    links = known.links
    ends = redirect_ends(known)[links.target[looked.followed]]
    ids, numbers = graph_rows.sites_of_urls(connection)
    order = np.argsort(ids)
    row = places_in_sorted(ids[order], looked.ids)
    site = np.where(row >= 0, numbers[order][row], 0)  # met by checks only: of no site
    found = external_domains(LinksOfDomains(site, fetched, _gone(known), links.source[looked.followed], ends))
    columns = (found.domain.tolist(), found.pages.tolist(), found.links.tolist(), found.targets.tolist())
    sites = [ExternalSite(names[number], pages, lines, targets) for number, pages, lines, targets in zip(*columns, strict=True) if number]
    return tuple(sorted(sites, key=lambda site: (-site.pages, site.name)))


def _weights(connection: reading.Connection, looked: _Looked) -> tuple[tuple[ClassSize, ...], tuple[PageWeight, ...]]:
    """(the whole site by class, the pages with most bytes of their own and of what they pull in)."""
    known, sizes, found = looked.known, looked.sizes, looked.weights
    own = np.zeros(len(looked.ids), np.bool_)
    own[known.pages.place] = True
    whole = site_sizes(sizes, own)
    columns = (whole.size_bytes.tolist(), whole.urls.tolist(), whole.unsized.tolist())
    classes = tuple(ClassSize(kind, *row) for kind, row in zip(MediaClass, zip(*columns, strict=True), strict=True) if any(row))
    order = known.pages.place[np.lexsort((known.pages.place, -found.pulled[known.pages.place].sum(axis=1)))[:HEAVIEST]]
    heaviest = tuple(
        PageWeight(
            known.urls.url[place],
            graph_rows.title_of(connection, int(looked.ids[place])),
            tuple(found.pulled[place].tolist()),
            int(found.pulled_unsized[place].sum()),
            int(found.linked[place].sum()),
        )
        for place in order.tolist()
    )
    return classes, heaviest


def _size_input(connection: reading.Connection, looked: SiteAudit) -> SizeInput:
    links, pages = looked.known.links, known_sizes(connection)
    size, media = np.zeros(len(looked.ids), np.int64), np.full(len(looked.ids), media_places([""])[0], np.uint8)
    order = np.argsort(looked.ids)
    row = places_in_sorted(looked.ids[order], pages.ids)
    place, known = order[row], row >= 0
    size[place[known]], media[place[known]] = pages.sizes[known], media_places(pages.media_types)[known]
    return SizeInput(size, media, links.source, links.target, links.kind)
