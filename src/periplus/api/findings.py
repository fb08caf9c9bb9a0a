"""What a site's owner wants to know: issues of audits and checks, dead links, redirects, weights, and the sitemap."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit import (
    NOT_FOLLOWED,
    AuditRules,
    Lookups,
    audit,
    audit_rules,
    causes,
    issues,
    redirect_ends,
    rows_of,
)
from periplus.analyse.audit_input import AuditInput, IssueColumns, Places, dead
from periplus.analyse.issues import KINDS_OF_ISSUES
from periplus.analyse.linkgraph import LinksOfDomains, distinct_sorted, external_domains, map_tree, places_in_sorted
from periplus.analyse.sizes import PageWeights, SizeInput, media_places, site_sizes, weights
from periplus.analyse.verdicts import Judgement, chain_ends
from periplus.api.audit import SETTLED, Audited, AuditOrder, UrlEvidence
from periplus.api.audit import audited as stored_audit
from periplus.api.error_pages import missing_pages
from periplus.api.facts import (
    RankOrder,
    SiteAnalysis,
    SiteRows,
    Start,
    about,
    analysed,
    chosen_start,
    known_sizes,
    read_site,
    starts_of,
)
from periplus.errors import UsageError
from periplus.model.audit import VERDICTS, Fault, FragmentVerdict, Grade, Issue, Verdict
from periplus.model.duplicates import DuplicateGroup
from periplus.model.graph import REASONS, LinkRows
from periplus.model.page import FOLLOWED_KINDS, LinkKind, MediaClass, Position
from periplus.model.results import (
    ClassSize,
    DeadLink,
    DepthTally,
    ExternalSite,
    Holder,
    IssueGroup,
    PageWeight,
    RedirectChain,
    ReportData,
    SiteMap,
    StateTally,
)
from periplus.model.visit import FETCHED, Reason, State
from periplus.model.web import Url, UrlId
from periplus.present.issues import ordered
from periplus.present.map_files import sitemap_files
from periplus.present.wording import REASON_WORDS, without_site_name
from periplus.settings import FetchLimits, Politeness, Settings
from periplus.store.sqlite import checks, reading, runs, schema, site_rows
from periplus.store.sqlite.listing import reasons_of
from periplus.store.sqlite.site_rows import findable_pages
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_key

# `api.audit` reads what the crawl left; here the verdicts on links come to it, with the places that checks looked
# for on other sites' pages.

CHECK = "check"  # the kind of run that checks links
_SETTLED = np.array([reason in SETTLED for reason in REASONS])
_KINDS = {kind.value: place for place, kind in enumerate(LinkKind)}
_POSITIONS = {position.value: place for place, position in enumerate(Position)}


@dataclass(frozen=True, slots=True)
class SiteAudit:
    """A site with all that was found."""

    known: AuditInput
    findings: Sequence[IssueColumns]
    judgements: Mapping[int, Judgement]  # by place; of those only that are not simply there
    ids: Places  # of the URLs, by place
    duplicates: tuple[DuplicateGroup, ...]  # pages of one text or nearly one
    notes: tuple[str, ...]  # what was not looked at, and why

    def issues(self, connection: reading.Connection, rules: AuditRules | None = None) -> Iterator[Issue]:
        """The findings one by one, in words. Bounded memory."""

        def anchors(links: Places) -> Iterable[str]:
            pairs = zip(
                self.ids[self.known.links.source[links]].tolist(),
                self.ids[self.known.links.target[links]].tolist(),
                strict=True,
            )
            return site_rows.anchors_of(connection, pairs)

        def whys(places: Places) -> Iterable[str]:
            return (self.judgements[place].why if place in self.judgements else "" for place in places.tolist())

        better = {
            self.known.urls.url[place]: judgement.better
            for place, judgement in self.judgements.items()
            if judgement.better
        }
        for issue in issues(self.findings, self.known, rules, Lookups(anchors, whys)):
            if issue.code == "link-to-redirect" and Url(issue.related) in better:
                # the end may be a URL that only checks met
                issue = dataclasses.replace(issue, detail=f"leads to {better[Url(issue.related)]}")  # noqa: PLW2901
            yield issue


def audited(
    connection: reading.Connection, start: Start, *, spacing_s: float | None = None, near: bool | None = None
) -> SiteAudit:
    """Everything that is wrong with a site, by what is stored of it; within a snapshot.

    spacing_s: between two failures that make a link broken; None: as the last check had it. near: compare texts; None:
    where the site is not too large for it.
    """
    links = site_rows.site_links(connection, start.site)
    begun = [url_id(Url(text)) for run in runs.run_records(connection) for text in run.starts]
    order = AuditOrder(start.site, (UrlId(start.home_id), *dict.fromkeys(begun)), near)
    base = stored_audit(connection, order, links, site_rows.redirects(connection))
    seen = UrlEvidence(connection, site_rows.all_urls(connection), *_check_settings(connection, spacing_s))
    missing = missing_pages(connection, seen, list(site_rows.page_texts(connection, start.site)))
    verdict, judgements = _verdicts(base, seen, missing)
    said, looked_for = base.known.remarks, list(_looked_for(connection, seen, links))
    fragments = [
        *said.fragments,
        *((row, fragment) for row, fragment, verdict in looked_for if verdict is FragmentVerdict.MISSING),
    ]
    texts = [
        *said.texts,
        *((row, fragment) for row, fragment, verdict in looked_for if verdict is FragmentVerdict.TEXT_MISSING),
    ]
    known = dataclasses.replace(
        base.known,
        urls=dataclasses.replace(base.known.urls, verdict=verdict),
        remarks=dataclasses.replace(said, fragments=fragments, texts=texts),
    )
    return SiteAudit(known, audit(known), judgements, base.ids, base.duplicates, base.notes)


def _check_settings(connection: reading.Connection, spacing_s: float | None) -> tuple[float, int]:
    """(seconds between two failures, redirects that are followed) of the last check."""
    stored = next((run.settings for run in reversed(runs.run_records(connection)) if run.kind == CHECK), {})
    wait, hops = stored.get("recheck_wait_s"), stored.get("redirect_hops")
    usual = wait if isinstance(wait, float) else Politeness().recheck_wait_s
    return usual if spacing_s is None else spacing_s, hops if isinstance(hops, int) else FetchLimits().redirect_hops


def _verdicts(
    base: Audited, seen: UrlEvidence, missing: Mapping[int, str]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], dict[int, Judgement]]:
    """What is thought of each URL, and the judgements that are worth words."""
    urls = base.known.urls
    verdict = np.where(_SETTLED[urls.reason], VERDICTS.index(Verdict.OK), VERDICTS.index(Verdict.UNCHECKED)).astype(
        np.uint8
    )
    asked = urls.own.copy()
    asked[base.known.links.target] = True
    asked[base.known.redirects.targets] = True
    asked &= ~_SETTLED[urls.reason] & (urls.reason != REASONS.index(Reason.WAITING))
    asked |= np.isin(base.ids, np.array(list(missing), np.int64))
    judgements = {place: seen.judgement(int(base.ids[place]), missing) for place in np.flatnonzero(asked).tolist()}
    for place, judgement in judgements.items():
        verdict[place] = VERDICTS.index(judgement.verdict)
    return verdict, judgements


def _looked_for(
    connection: reading.Connection, seen: UrlEvidence, links: site_rows.SiteLinks
) -> Iterator[tuple[int, str, FragmentVerdict]]:
    """(index of a link, fragment, verdict) of the links to pages that were not kept, or that redirects lead to."""
    looks: dict[int, dict[str, FragmentVerdict]] = {
        url_id(url): dict(look.fragments) for url, look in checks.looks(connection).items() if look.fragments
    }
    for source, target, kind, position, fragments in checks.fragments(connection):
        verdicts = looks.get(seen.way(target).end, {})
        for fragment in fragments.split():
            if (verdict := verdicts.get(fragment)) is not None:
                yield from (
                    (row, fragment, verdict)
                    for row in _rows(links, source, target, (_KINDS[kind], _POSITIONS[position]))
                )


def _rows(links: site_rows.SiteLinks, source: int, target: int, what: tuple[int, int]) -> Iterator[int]:
    """Where the first link from one to the other stands, of this kind and position; nowhere if it is another site's."""
    row = int(np.searchsorted(links.sources, source))
    while row < len(links.sources) and links.sources[row] == source:
        if (int(links.targets[row]), int(links.kinds[row]), int(links.positions[row])) == (target, *what):
            yield row
            return
        row += 1


def written_sitemaps(connection: reading.Connection, site: str, folder: Path) -> list[Path]:
    """Fetched pages that neither ask not to be indexed nor name another as canonical;
    of pages of one content the first.

    Raises UsageError where there is none, or the folder cannot be written.
    """
    with reading.snapshot(connection):
        start = chosen_start(starts_of(runs.run_records(connection), connection, site_rows.redirects(connection)), site)
        rows = list(_first_of_each(findable_pages(connection, start.site)))
    if not rows:
        raise UsageError(f"no page of {start.site} belongs into a sitemap: none was fetched that may be indexed")
    several = len({host_key(url) for url, _ in rows}) > 1
    written = []
    for file in sitemap_files(rows):
        place = folder / host_key(Url(file.origin + "/")).replace(":", "_") if several else folder
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / file.name).write_bytes(file.body)
        except OSError as error:
            raise UsageError(
                f"{place / file.name} cannot be written: {error.strerror}. Name another folder with -o."
            ) from None
        written.append(place / file.name)
    return written


def _first_of_each(rows: Iterator[tuple[Url, float, bytes]]) -> Iterator[tuple[Url, float]]:
    """Of URLs with one content the first."""
    met: set[bytes] = set()
    for url, changed, content in rows:
        if content not in met:
            met.add(content)
            yield url, changed


@dataclass(frozen=True, slots=True)
class ResultOrder:
    """Which issues are wanted. site: its key; empty: of all sites that were crawled."""

    site: str = ""
    fragments: bool = True
    near: bool | None = None  # pages of nearly one text; None: where the site is not too large for it


def found_issues(
    folder: Path, settings: Settings, order: ResultOrder, note: Callable[[str], object] = lambda sentence: None
) -> list[Issue]:
    """All issues by what is stored, gravest first, under the user's grades and without what the user ignores.

    Raises UsageError.

    note: is told what was not looked at, a sentence each.
    """
    rules = _rules(settings, order)
    with contextlib.closing(reading.connect(folder)) as connection, reading.snapshot(connection):
        starts = starts_of(runs.run_records(connection), connection, site_rows.redirects(connection))
        chosen = [chosen_start(starts, order.site)] if order.site or not starts else starts
        found: list[Issue] = []
        for start in chosen:
            audit = audited(connection, start, near=order.near)
            found += audit.issues(connection, rules)
            for sentence in audit.notes:
                note(sentence)
    return ordered(found, KINDS_OF_ISSUES)


def _rules(settings: Settings, order: ResultOrder) -> AuditRules:
    rules = audit_rules(settings.auditing.grade, settings.auditing.ignore)
    return rules if order.fragments else dataclasses.replace(rules, off=rules.off | {"broken-fragment", "missing-text"})


def check_rules(settings: Settings) -> None:
    """Raises UsageError for grades and ignored issues that cannot be: better before a check than after it."""
    audit_rules(settings.auditing.grade, settings.auditing.ignore)


def keep_issues(folder: Path, run_id: int, issues: Iterable[Issue]) -> None:
    """Remembers what a run found, so that a later one can tell what is new."""
    keys = [_key(issue) for issue in issues]
    with schema.writing(folder) as connection:
        checks.store_issues(connection, run_id, keys)


def _key(issue: Issue) -> tuple[str, int, int]:
    return issue.code, url_id(Url(issue.url)), url_id(Url(issue.related)) if issue.related else 0


def baseline_run(folder: Path, named: str) -> int:
    """The run that `--baseline` names: its number, or `last` for the latest check that ended. Raises UsageError."""
    with contextlib.closing(reading.connect(folder)) as connection:
        ended = [
            record.id for record in runs.run_records(connection) if record.kind == CHECK and record.state == "done"
        ]
    if named == "last" and ended:
        return ended[-1]
    if named.isascii() and named.isdigit() and int(named) in ended:
        return int(named)
    known = f"the checks that ended are the runs {', '.join(map(str, ended))}" if ended else "no check has ended yet"
    raise UsageError(f"there is no check {named!r} to compare with: {known}")


def new_since(folder: Path, issues: Iterable[Issue], run_id: int) -> list[Issue]:
    """Those that the run's own lack. Wording and grade make no issue new."""
    with contextlib.closing(reading.connect(folder)) as connection:
        before = checks.issues_of(connection, run_id)
    return [issue for issue in issues if _key(issue) not in before]


MAP_NODES = 400  # of the report's map: it opens branch by branch
DEAD_NAMED = 2_000  # dead URLs with their pages: each page costs two look-ups
HOLDERS_NAMED = 50  # pages named with one dead URL: a dead link in a menu stands on every page
FAULTS_NAMED = 1_000  # of one kind; all of them are the audit's own business
ISSUES_NAMED = 10  # of one fault: a missing script stands on every page
CHAINS_NAMED = 100_000
HEAVIEST = 50
# those are our doing
DEAD = [reason for reason in reasons_of(State.INVALID) if reason not in (Reason.BUG, Reason.PRIVATE)]
_GRADES = list(Grade)
_FOLLOWED = [place for place, kind in enumerate(site_rows.KINDS) if kind not in NOT_FOLLOWED]


@dataclass(frozen=True, slots=True)
class _Looked:
    """A site's audit, and which of its links are to be followed or part of a page."""

    audit: SiteAudit
    followed: NDArray[np.bool_]  # by link
    sizes: SizeInput
    weights: PageWeights

    @property
    def known(self) -> AuditInput:
        return self.audit.known

    @property
    def ids(self) -> Places:
        return self.audit.ids


def report_data(
    connection: reading.Connection, site: str, order: RankOrder, now: float, near: bool | None = None
) -> ReportData:
    """Everything that the report of a site shows.

    near: compare texts for near duplicates; None: where the site is small. Raises UsageError
    for a site that is not there.
    """
    with reading.snapshot(connection):
        records = runs.run_records(connection)
        chosen = chosen_start(starts_of(records, connection, site_rows.redirects(connection)), site)
        links = site_rows.site_links(connection, chosen.site)
        rows = read_site(connection, site, now, _to_pages(links))
        found = _with_short_titles(analysed(rows, order))
        # 160 MB less for ten million links
        rows = replace(rows, links=LinkRows(np.zeros(0, np.int64), np.zeros(0, np.int64)))
        checked = any(record.kind == CHECK for record in records)
        looked = _checked(connection, chosen, near) if checked else _unchecked(connection, chosen, links, near)
        del links  # as much again
        return _gathered(connection, rows, found, looked, now)


def _to_pages(links: site_rows.SiteLinks) -> LinkRows:
    """The links of the kinds that lead to pages, each pair once; as `site_rows.page_links` reads them."""
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
    base = stored_audit(connection, order, links, site_rows.redirects(connection))
    urls, missing = base.known.urls, VERDICTS.index(Verdict.MISSING)
    judgements = {}
    for place in np.flatnonzero(dead(base.known)).tolist():
        gone = urls.verdict[place] != missing
        words = REASON_WORDS[REASONS[urls.reason[place]]] if gone else "calls itself an error page"
        status = f", status {base.statuses[place]}" if base.statuses[place] else ""
        judgements[place] = Judgement(Verdict.BROKEN if gone else Verdict.MISSING, words + status)
    found = SiteAudit(base.known, audit(base.known), judgements, base.ids, base.duplicates, base.notes)
    return _Looked(found, base.followed, base.sizes, base.weights)


def _gathered(
    connection: reading.Connection, rows: SiteRows, found: SiteAnalysis, looked: _Looked, now: float
) -> ReportData:
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
        tree=map_tree(found.site_map, facts.rank, facts.size_bytes, found.graph.indexed, max_nodes=MAP_NODES)
        if found.site_map
        else None,
        depths=depth_tallies(found.site_map, found.graph.indexed) if found.site_map else (),
        groups=issue_groups(connection, looked.audit),
        dead=dead_named,
        dead_urls=dead_urls,
        chains=redirect_chains(looked),
        sizes=sizes,
        heaviest=heaviest,
        hosts=site_rows.tallies(connection, site, "host"),
        external=external_sites(connection, looked),
        media=site_rows.tallies(connection, site, "media_type"),
        charsets=site_rows.tallies(connection, site, "charset"),
        languages=site_rows.tallies(connection, site, "language"),
        duplicates=looked.audit.duplicates,
        notes=looked.audit.notes,
    )


def _with_short_titles(found: SiteAnalysis) -> SiteAnalysis:
    return replace(found, facts=replace(found.facts, title=without_site_name(found.facts.title)))


def _counts(connection: reading.Connection, rows: SiteRows) -> tuple[StateTally, ...]:
    """Of all URLs, those outside included; only of the site's own where the collection has several sites."""
    alone = len(starts_of(runs.run_records(connection), connection, rows.redirects)) == 1
    return tuple(reading.counts(connection, None if alone else rows.start.site))


def depth_tallies(site_map: SiteMap, indexed: NDArray[np.bool_]) -> tuple[DepthTally, ...]:
    """How many pages each depth holds."""
    reached = site_map.depth >= 0
    total = np.bincount(site_map.depth[reached])
    fetched = np.bincount(site_map.depth[reached & indexed], minlength=len(total))
    return tuple(
        DepthTally(depth, own, pages - own)
        for depth, (pages, own) in enumerate(zip(total.tolist(), fetched.tolist(), strict=True))
    )


def _ranked(found: SiteAnalysis) -> tuple[int, ...]:
    """Fetched pages, greatest rank first."""
    fetched = np.flatnonzero(found.graph.indexed)
    return tuple(fetched[np.argsort(-found.facts.rank[fetched], kind="stable")].tolist())


def issue_groups(connection: reading.Connection, looked: SiteAudit) -> tuple[IssueGroup, ...]:
    """The audit's findings by kind, gravest first; of each kind the first FAULTS_NAMED causes in words,
    those on most pages before others.
    """
    groups = [_issue_group(connection, looked, finding) for finding in looked.findings]
    return tuple(sorted(groups, key=lambda group: _GRADES.index(group.grade)))  # within a grade: the table's order


def _issue_group(connection: reading.Connection, looked: SiteAudit, finding: IssueColumns) -> IssueGroup:
    numbers, first, cause, totals = np.unique(
        causes(finding), return_index=True, return_inverse=True, return_counts=True
    )
    width = len(looked.ids)
    pages = np.bincount(distinct_sorted(cause * width + finding.subjects) // width, minlength=len(numbers))
    by_cause, starts = np.argsort(cause, kind="stable"), np.cumsum(totals) - totals
    order = np.lexsort((finding.subjects[first], -pages))[:FAULTS_NAMED]
    spans = [
        by_cause[start : start + min(total, ISSUES_NAMED)]
        for start, total in zip(starts[order].tolist(), totals[order].tolist(), strict=True)
    ]
    worded = replace(looked, findings=[rows_of(finding, np.concatenate(spans))]).issues(connection)
    kind, faults = KINDS_OF_ISSUES[finding.code], []
    for place, span in zip(order.tolist(), spans, strict=True):
        some = tuple(islice(worded, len(span)))
        faults.append(Fault(kind.code, kind.grade, some[0].cause, int(pages[place]), int(totals[place]), some))
    return IssueGroup(kind, kind.grade, len(np.unique(finding.subjects)), len(numbers), tuple(faults))


def dead_links(connection: reading.Connection, looked: _Looked) -> tuple[tuple[DeadLink, ...], int]:
    """(URLs that lead nowhere, at once or by redirects, with the pages that link to them, most pages first;
    how many there are).

    Named as the pages write them: where a redirect leads nowhere, the URL that redirects. Dead URLs of the site without
    any link (from a sitemap, or a start) stand last.
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
    for target, start, pages in zip(
        targets[order].tolist(), starts[order].tolist(), counts[order].tolist(), strict=True
    ):
        sources = (pairs[start : start + min(pages, HOLDERS_NAMED)] % len(gone)).tolist()
        found.append(_dead_link(connection, looked, (target, int(ends[target])), sources, pages))
    found += [
        _dead_link(connection, looked, (target, target), [], 0)
        for target in unlinked[: DEAD_NAMED - len(found)].tolist()
    ]
    return tuple(found), len(targets) + len(unlinked)


def _gone(known: AuditInput) -> NDArray[np.bool_]:
    """bool[u]: whoever follows finds nothing.

    Pages that only look missing are not among them; what a check has in doubt counts as the crawl saw it.
    """
    ends = chain_ends(known.redirects)
    seen = np.isin(known.urls.reason, [REASONS.index(reason) for reason in DEAD]) & (
        known.urls.verdict == VERDICTS.index(Verdict.SUSPECT)
    )
    lost: NDArray[np.bool_] = seen | (dead(known) & (known.urls.verdict != VERDICTS.index(Verdict.MISSING)))
    lost[known.redirects.sources] = lost[ends.ends] | ends.loops
    return lost


def _dead_link(
    connection: reading.Connection, looked: _Looked, way: tuple[int, int], sources: list[int], pages: int
) -> DeadLink:
    """way: places of the URL as written, and of its end."""
    urls, (target, end) = looked.known.urls, way
    anchors = site_rows.anchors_of(
        connection, ((int(looked.ids[source]), int(looked.ids[target])) for source in sources)
    )
    held = [
        Holder(urls.url[source], site_rows.title_of(connection, int(looked.ids[source])), anchor)
        for source, anchor in zip(sources, anchors, strict=True)
    ]
    reason = REASONS[urls.reason[end]]
    circle = reason is Reason.REDIRECT
    seen = site_rows.url_facts(connection, int(looked.ids[end]))
    return DeadLink(
        urls.url[target], Reason.BAD_ANSWER if circle else reason, seen.status if seen else 0, tuple(held), pages
    )


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
            redirects.sources[order].tolist(), redirects.targets[order].tolist(), ends.ends[order].tolist(),
            redirects.statuses[order].tolist(),
            ends.hops[order].tolist(), ends.loops[order].tolist(), count[order].tolist(), strict=True,
        )
    )  # fmt: skip


def external_sites(connection: reading.Connection, looked: _Looked) -> tuple[ExternalSite, ...]:
    """Other sites that pages link to, most pages first.

    What is dead is an error of the site, not a link out (SPEC A7).
    """
    known, names = looked.known, site_rows.site_names(connection)
    fetched = np.isin(known.urls.reason, [REASONS.index(reason) for reason in FETCHED])
    links = known.links
    ends = redirect_ends(known)[links.target[looked.followed]]
    ids, numbers = site_rows.sites_of_urls(connection)
    order = np.argsort(ids)
    row = places_in_sorted(ids[order], looked.ids)
    site = np.where(row >= 0, numbers[order][row], 0)  # met by checks only: of no site
    found = external_domains(LinksOfDomains(site, fetched, _gone(known), links.source[looked.followed], ends))
    columns = (found.domain.tolist(), found.pages.tolist(), found.links.tolist(), found.targets.tolist())
    sites = [
        ExternalSite(names[number], pages, lines, targets)
        for number, pages, lines, targets in zip(*columns, strict=True)
        if number
    ]
    return tuple(sorted(sites, key=lambda site: (-site.pages, site.name)))


def _weights(connection: reading.Connection, looked: _Looked) -> tuple[tuple[ClassSize, ...], tuple[PageWeight, ...]]:
    """(the whole site by class, the pages with most bytes of their own and of what they pull in)."""
    known, sizes, found = looked.known, looked.sizes, looked.weights
    own = np.zeros(len(looked.ids), np.bool_)
    own[known.pages.place] = True
    whole = site_sizes(sizes, own)
    columns = (whole.size_bytes.tolist(), whole.urls.tolist(), whole.unsized.tolist())
    classes = tuple(
        ClassSize(kind, *row) for kind, row in zip(MediaClass, zip(*columns, strict=True), strict=True) if any(row)
    )
    order = known.pages.place[np.lexsort((known.pages.place, -found.pulled[known.pages.place].sum(axis=1)))[:HEAVIEST]]
    heaviest = tuple(
        PageWeight(
            known.urls.url[place],
            site_rows.title_of(connection, int(looked.ids[place])),
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
