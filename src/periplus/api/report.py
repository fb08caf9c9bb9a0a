"""Data of a site report: map, issues by cause, broken links, redirects, sizes and links to other sites."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from periplus.analyse.audit import issue_kinds
from periplus.analyse.audit_input import AuditInput, IssueColumns
from periplus.analyse.grades import field_grades
from periplus.analyse.issues import causes_of, faults, format_issues
from periplus.analyse.linkgraph import LinksOfDomains, external_domains, map_tree, sort_distinct
from periplus.analyse.segments import SegmentRule
from periplus.analyse.sizes import SiteSizes, site_sizes, weights
from periplus.api.audit import SiteAudit, Urls, site_audit, with_anchors
from periplus.api.facts import (
    RankOrder,
    SiteAnalysis,
    SiteRows,
    Start,
    about,
    analyse_site,
    chosen_start,
    read_site,
    site_starts,
)
from periplus.api.grading import trend_points, ungradable_fields
from periplus.api.page_notes import NO_FACTS, SourceFacts
from periplus.api.page_segments import site_sums
from periplus.api.positions import with_positions
from periplus.model.arrays import Ints, Mask
from periplus.model.audit import VERDICTS, Fault, FieldGrade, GradedField, Severity, Verdict
from periplus.model.graph import REASONS, LinkRows
from periplus.model.page import CLICK_KINDS, MediaClass
from periplus.model.ports import CHECK
from periplus.model.results import (
    BrokenLink,
    ClassSize,
    DepthTally,
    ExternalSite,
    Holder,
    IssueGroup,
    PageWeight,
    RedirectChain,
    ReportData,
    SiteMap,
    SitesReport,
    SiteSum,
)
from periplus.model.visit import BROKEN_REASONS, FETCHED_REASONS, Reason
from periplus.model.web import Url
from periplus.present.wording import without_site_name
from periplus.store import site_rows
from periplus.store.crawl_reads import state_tallies
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id

MAP_NODES = 400  # in the map, whose branches can be expanded
MOST_BROKEN_URLS = 2_000  # broken URLs listed with pages: each page costs two look-ups
MOST_LINKING_PAGES = 50  # pages listed per broken URL: a broken link in a menu is on every page
MOST_FAULTS = 1_000  # per kind; `periplus check` lists all
MOST_ISSUES = 10  # per fault: a missing script affects every page
MOST_POSITIONS = 2  # per fault with line and column: the first may be the cause itself
MOST_CHAINS = 100_000
HEAVIEST = 50
SCREENSHOTS = 9  # about 30 KB each
_SEVERITIES = list(Severity)


def report_data(
    reader: CollectionReader,
    site: str,
    now: float,
    near: bool | None = None,
    rules: Sequence[SegmentRule] = (),
    *,
    facts: SourceFacts = NO_FACTS,
) -> ReportData:
    """All data of the report of a site.

    near: compare texts for near duplicates; None: only if the site is small. rules: for segments. facts: of pages
    parsed just before. Raises UsageError for an unknown site.
    """
    with reader.snapshot():
        start = chosen_start(site_starts(reader), site)
        facts.confirm(reader, [start.site])
        rows, analysis, audit = _analyse_site(reader, start, now, near, Urls(reader, facts))
        data = _build_report(reader, rows, analysis, audit, now, sources=facts)
        if not rules:
            return data
        return replace(data, segments=site_sums(reader, rules, start.site, _pages_by_severity(audit)))


def sites_report(reader: CollectionReader, now: float, near: bool | None = None) -> SitesReport:
    """Data of the report of a collection with several sites: a summary of each."""
    sums, notes = [], list[str]()
    with reader.snapshot():
        urls, blank = Urls(reader), ungradable_fields(reader)
        for start in site_starts(reader):
            rows, analysis, audit = _analyse_site(reader, start, now, near, urls)
            groups = [_issue_group(audit, code, columns) for code, columns in audit.findings.items()]
            sums.append(
                SiteSum(
                    start.site,
                    start.url,
                    tuple(state_tallies(reader.statements, start.site)),
                    tuple(sorted(groups, key=_place_of_severity)),
                    len(np.concatenate(_dead_places(audit.site)[1:])),
                    max(analysis.site_map.max_depth, 0) if analysis.site_map else 0,
                    int(_classes(audit).size_bytes.sum()),
                    _grades(audit, groups, blank),
                )
            )
            notes += [f"{start.site}: {note}" for note in audit.notes]
        return SitesReport(about(rows, analysis.ranking, now), _finish_time(rows), tuple(sums), tuple(notes))


def _analyse_site(
    reader: CollectionReader, start: Start, now: float, near: bool | None, urls: Urls
) -> tuple[SiteRows, SiteAnalysis, SiteAudit]:
    """The site's rows (without links, which take 160 MB at ten million), its analysis and its audit."""
    links = [site_rows.site_links(reader, start.site)]
    rows = read_site(reader, start, now, _to_pages(links[0]))
    analysis = analyse_site(rows, RankOrder())
    rows = replace(rows, links=LinkRows(np.zeros(0, np.int64), np.zeros(0, np.int64)))
    judged = any(run.kind == CHECK for run in reader.runs())
    # last reference: popping it lets the audit free the links before it allocates
    return rows, analysis, site_audit(urls, start, near=near, links=links.pop(), judged=judged)


def _finish_time(rows: SiteRows) -> float:
    return rows.run.ended or 0.0 if not rows.running else 0.0


def _grades(audit: SiteAudit, groups: Sequence[IssueGroup], blank: Collection[GradedField]) -> tuple[FieldGrade, ...]:
    pages_with = {(group.kind.code, group.severity): group.pages for group in groups}
    return field_grades(pages_with, len(audit.site.pages.place), blank)


def _pages_by_severity(audit: SiteAudit) -> dict[str, Ints]:
    """Page ids of the issues, by severity."""
    kinds = issue_kinds()
    return {
        severity.value: np.concatenate(
            [np.zeros(0, np.int64)]
            + [
                audit.ids[columns.subjects]
                for code, columns in audit.findings.items()
                if kinds[code].severity is severity
            ]
        )
        for severity in Severity
    }


def _to_pages(links: site_rows.LinkBlock) -> LinkRows:
    """Clickable links without repetitions, as `Reader.clicks_of` reads them."""
    pages = np.isin(links.kinds, [site_rows.KINDS.index(kind) for kind in CLICK_KINDS])
    sources, targets = links.sources[pages], links.targets[pages]
    first = site_rows.first_of_pairs(sources, targets)
    return LinkRows(sources[first], targets[first])


def _build_report(
    reader: CollectionReader,
    rows: SiteRows,
    analysis: SiteAnalysis,
    audit: SiteAudit,
    now: float,
    *,
    sources: SourceFacts,
) -> ReportData:
    facts, graph, site_map, site = analysis.facts, analysis.graph, analysis.site_map, rows.start.site
    facts = replace(facts, title=without_site_name(facts.title))
    fetched = np.flatnonzero(graph.fetched)
    ranked = fetched[np.argsort(-facts.rank[fetched], kind="stable")].tolist()
    alone = len(site_starts(reader)) == 1
    sizes, heaviest = _weights(reader, audit)
    broken, broken_urls = broken_links(reader, audit)
    groups = issue_groups(reader, audit, sources)
    return ReportData(
        about=about(rows, analysis.ranking, now),
        finished=_finish_time(rows),
        # of all URLs including other sites; only of this site if the collection has several
        counts=tuple(state_tallies(reader.statements, None if alone else site)),
        pages=facts,
        ranked=tuple(ranked),
        tree=map_tree(site_map, facts.rank, facts.size_bytes, graph.fetched, max_nodes=MAP_NODES) if site_map else None,
        depths=depth_tallies(site_map, graph.fetched) if site_map else (),
        groups=groups,
        broken=broken,
        broken_urls=broken_urls,
        chains=redirect_chains(audit.site),
        sizes=sizes,
        heaviest=heaviest,
        hosts=site_rows.tallies(reader, site, "host"),
        external=external_sites(reader, audit),
        media=site_rows.tallies(reader, site, "media_type"),
        charsets=site_rows.tallies(reader, site, "charset"),
        languages=site_rows.tallies(reader, site, "language"),
        duplicates=audit.duplicates,
        notes=audit.notes,
        grades=_grades(audit, groups, ungradable_fields(reader)),
        trends=trend_points(reader) if alone else (),
        screenshots=tuple(_screenshots(reader, rows.start, [facts.url[page] for page in ranked])),
    )


def _screenshots(reader: CollectionReader, start: Start, ranked: Sequence[Url]) -> Iterator[tuple[str, bytes]]:
    """Screenshots of the first SCREENSHOTS pages that have one; the home page first."""
    pictured, contents = site_rows.pages_with_screenshot(reader, start.site), reader
    pages = [url for url in dict.fromkeys((start.url, *ranked)) if url in pictured]
    for url in pages[:SCREENSHOTS]:
        picture = contents.screenshot(url_id(url)) or b""
        if picture[8:12] == b"WEBP":
            yield url, picture


def depth_tallies(site_map: SiteMap, is_fetched: Mask) -> tuple[DepthTally, ...]:
    """Number of pages at each depth."""
    reached = site_map.depth >= 0
    total = np.bincount(site_map.depth[reached])
    fetched = np.bincount(site_map.depth[reached & is_fetched], minlength=len(total))
    return tuple(
        DepthTally(depth, own, pages - own)
        for depth, (pages, own) in enumerate(zip(total.tolist(), fetched.tolist(), strict=True))
    )


def issue_groups(reader: CollectionReader, audit: SiteAudit, facts: SourceFacts) -> tuple[IssueGroup, ...]:
    """Findings by kind, most severe first; each with its first FAULTS_NAMED causes, those on most pages first."""
    groups = [_issue_group(audit, code, columns, reader) for code, columns in audit.findings.items()]
    return tuple(sorted(_with_positions(reader, groups, facts), key=_place_of_severity))


def _place_of_severity(group: IssueGroup) -> int:
    """Sort key that keeps the table's order within a severity."""
    return _SEVERITIES.index(group.severity)


def _with_positions(reader: CollectionReader, groups: Sequence[IssueGroup], facts: SourceFacts) -> list[IssueGroup]:
    """Adds line and column to the first ISSUES_PLACED issues of each fault."""
    faults = [fault for group in groups for fault in group.faults]
    placed = with_positions(reader, [issue for fault in faults for issue in fault.issues[:MOST_POSITIONS]], facts)

    def with_lines(fault: Fault) -> Fault:
        first = islice(placed, min(MOST_POSITIONS, len(fault.issues)))
        return replace(fault, issues=(*first, *fault.issues[MOST_POSITIONS:]))

    return [replace(group, faults=tuple(map(with_lines, group.faults))) for group in groups]


def _issue_group(
    audit: SiteAudit, code: str, columns: IssueColumns, reader: CollectionReader | None = None
) -> IssueGroup:
    """Summary of a kind of issue; with a reader, including its first faults."""
    kind = issue_kinds()[code]
    (made,) = audit.kinds(findings={code: columns})
    url, named = audit.site.urls.url, tuple[Fault, ...]()
    causes = causes_of(made, url)
    if reader is not None:
        words = faults(causes, MOST_ISSUES, lambda shown: format_issues(with_anchors(reader, shown, audit.ids), url))
        named = tuple(islice(words, MOST_FAULTS))
    return IssueGroup(kind, kind.severity, len(sort_distinct(columns.subjects)), len(causes), named)


def broken_links(reader: CollectionReader, audit: SiteAudit) -> tuple[tuple[BrokenLink, ...], int]:
    """(broken URLs with the pages that link to them, those with most pages first; number of broken URLs).

    A URL is named as pages link to it: the redirecting URL if a redirect leads to a dead one. Dead URLs of the site
    without links (from a sitemap or a start) come last.
    """
    pairs, targets, unlinked = _dead_places(audit.site)
    count = len(audit.site.urls.url)
    starts = np.searchsorted(pairs, targets * count)
    counts = np.diff(np.append(starts, len(pairs)))
    order = np.lexsort((targets, -counts))[:MOST_BROKEN_URLS]
    broken = []
    for target, start, pages in zip(
        targets[order].tolist(), starts[order].tolist(), counts[order].tolist(), strict=True
    ):
        sources = (pairs[start : start + min(pages, MOST_LINKING_PAGES)] % count).tolist()
        broken.append(_broken_link(reader, audit, target, sources, pages))
    broken += [
        _broken_link(reader, audit, target, [], 0) for target in unlinked[: MOST_BROKEN_URLS - len(broken)].tolist()
    ]
    return tuple(broken), len(targets) + len(unlinked)


def _dead_places(site: AuditInput) -> tuple[Ints, Ints, Ints]:
    """(links to dead URLs as target * URLs + source, ascending; their targets; other dead URLs of the site)."""
    gone, ends, links = _unreachable(site), site.ends, site.links
    rows = np.flatnonzero(site.is_followed & gone[links.target])
    pairs = sort_distinct(links.target[rows] * len(gone) + links.source[rows])
    targets = sort_distinct(links.target[rows])
    listed = np.zeros(len(gone), np.bool_)
    listed[targets] = True
    listed[ends[targets][ends[targets] != targets]] = True  # target of a listed redirect
    listed[site.redirects.sources] = True  # listed through their ends, or through links into their loop
    return pairs, targets, np.flatnonzero(gone & site.urls.own & ~listed)


def _unreachable(site: AuditInput) -> Mask:
    """bool[urls]: whether a visitor reaches nothing.

    Excludes suspected soft 404s. URLs in doubt after a check count as the crawl saw them.
    """
    seen = np.isin(site.urls.reason, [REASONS.index(reason) for reason in BROKEN_REASONS]) & (
        site.urls.verdict == VERDICTS.index(Verdict.SUSPECT)
    )
    gone: Mask = seen | (site.dead & (site.urls.verdict != VERDICTS.index(Verdict.MISSING)))
    gone[site.redirects.sources] = gone[site.chains.ends] | site.chains.loops
    return gone


def _broken_link(reader: CollectionReader, audit: SiteAudit, target: int, sources: list[int], pages: int) -> BrokenLink:
    """target: index of the URL as written; sources: indices of the first pages that link to it."""
    urls, ids, end = audit.site.urls, audit.ids, int(audit.site.ends[target])
    anchors = site_rows.anchors_of(reader, ((int(ids[source]), int(ids[target])) for source in sources))
    holders = [
        Holder(urls.url[source], reader.title_of(int(ids[source])), anchor)
        for source, anchor in zip(sources, anchors, strict=True)
    ]
    reason = REASONS[urls.reason[end]]
    circle = reason is Reason.REDIRECT
    facts = reader.url_facts(int(ids[end]))
    return BrokenLink(
        urls.url[target], Reason.BAD_ANSWER if circle else reason, facts.status if facts else 0, tuple(holders), pages
    )


def redirect_chains(site: AuditInput) -> tuple[RedirectChain, ...]:
    """Redirecting URLs of the site: loops, then long chains, then those with most linking pages."""
    redirects, chains, links, url = site.redirects, site.chains, site.links, site.urls.url
    rows = np.flatnonzero(site.urls.own[redirects.sources])
    moved = np.zeros(len(url), np.bool_)
    moved[redirects.sources] = True
    there = np.flatnonzero(site.is_followed & moved[links.target])
    linking = sort_distinct(links.target[there] * len(moved) + links.source[there]) // max(len(moved), 1)
    count = np.bincount(linking, minlength=len(moved))[redirects.sources]
    rows = rows[np.lexsort((redirects.sources[rows], -count[rows], -chains.hops[rows], ~chains.loops[rows]))]
    return tuple(
        RedirectChain(
            url[redirects.sources[row]],
            url[redirects.targets[row]],
            url[chains.ends[row]],
            int(redirects.statuses[row]),
            int(chains.hops[row]),
            bool(chains.loops[row]),
            int(count[row]),
        )
        for row in rows[:MOST_CHAINS].tolist()
    )


def external_sites(reader: CollectionReader, audit: SiteAudit) -> tuple[ExternalSite, ...]:
    """Other sites that pages link to, those with most linking pages first.

    Broken URLs are excluded: they are errors, not links to sites (SPEC A7).
    """
    site, names = audit.site, reader.site_names()
    fetched = np.isin(site.urls.reason, [REASONS.index(reason) for reason in FETCHED_REASONS])
    ends = site.ends[site.links.target[site.is_followed]]
    links = LinksOfDomains(
        audit.sites.astype(np.int64), fetched, _unreachable(site), site.links.source[site.is_followed], ends
    )
    domains = external_domains(links)
    columns = (domains.domain.tolist(), domains.pages.tolist(), domains.links.tolist(), domains.targets.tolist())
    sites = [
        ExternalSite(names[number], pages, lines, targets)
        for number, pages, lines, targets in zip(*columns, strict=True)
        if number
    ]
    return tuple(sorted(sites, key=lambda site: (-site.pages, site.name)))


def _classes(audit: SiteAudit) -> SiteSizes:
    """Sizes of the whole site by media class."""
    own = np.zeros(len(audit.ids), np.bool_)
    own[audit.site.pages.place] = True
    return site_sizes(audit.sizes, own)


def _weights(reader: CollectionReader, audit: SiteAudit) -> tuple[tuple[ClassSize, ...], tuple[PageWeight, ...]]:
    """(sizes of the whole site by media class, pages with the most bytes including their resources)."""
    pages, whole = audit.site.pages.place, _classes(audit)
    columns = (whole.size_bytes.tolist(), whole.urls.tolist(), whole.unsized.tolist())
    classes = tuple(
        ClassSize(kind, *row) for kind, row in zip(MediaClass, zip(*columns, strict=True), strict=True) if any(row)
    )
    heavy = pages[np.lexsort((pages, -audit.site.pages.weight_bytes))[:HEAVIEST]]
    heavies = weights(audit.sizes, heavy)
    heaviest = tuple(
        PageWeight(
            audit.site.urls.url[place],
            reader.title_of(int(audit.ids[place])),
            tuple(heavies.pulled[row].tolist()),
            int(heavies.pulled_unsized[row].sum()),
            int(heavies.linked[row].sum()),
        )
        for row, place in enumerate(heavy.tolist())
    )
    return classes, heaviest
