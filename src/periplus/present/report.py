"""The report for a site's owner: one page of HTML that needs nothing else."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from markupsafe import Markup

from periplus.model.audit import Fault, GradedField, Issue, Severity, SharedCause
from periplus.model.page import MediaClass
from periplus.model.results import (
    BrokenLink,
    IssueGroup,
    MapNode,
    PageColumns,
    ReportData,
    SegmentSum,
    SitesReport,
    SiteSum,
)
from periplus.model.visit import State, urls_by_state
from periplus.present.diff import write_trends
from periplus.present.map_files import child_names
from periplus.present.markup import (
    HtmlColumn,
    PagedTable,
    document,
    html_columns,
    macros,
    make_sections,
    page_cell,
    text,
)
from periplus.present.text import grounds_of, like_of
from periplus.present.wording import REASON_WORDS, count_of, labels

FIRST = 5  # kinds of issues named on the first page
SEVERITY_WORDS = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.NOTICE: "notices"}
MOST_BROKEN_URLS = 50  # broken URLs listed with every page that links there; further ones are rows of a table


def site_report(data: ReportData) -> str:
    """The report as one HTML page: nothing loaded from anywhere, no script but our own for long tables, light and dark,
    fit for paper.

    Lists keep data's order; cut lists have a note. All text from the web is escaped.
    """
    html: Any = macros("report.html")
    start = urlsplit(data.about.start)
    origin = f"{start.scheme}://{start.netloc}"
    shares = [(state, urls_in(data, state)) for state in State]
    counts = [count for state in State for count in data.counts if count.state is state]
    places = _places(data.tree, data.pages) if data.tree else None
    broken_rows = _dead_rows(data, origin) if data.broken_urls > MOST_BROKEN_URLS else None
    widest = max((depth.fetched + depth.discovered for depth in data.depths), default=0)
    kinds = [
        ("Hosts", "host", data.hosts),
        ("Media types", "media type", data.media),
        ("Charsets", "charset", data.charsets),
        ("Languages", "language", data.languages),
    ]
    pictures = [(url, b64encode(picture).decode()) for url, picture in data.screenshots]
    sections = [
        ("grades", "Grades", html.grades(data.grades, _trends(data))),
        ("repair", "What to repair first", html.repair(gravest(data.groups), origin)),
        ("issues", "All findings", html.issues([(group, _fault_rows(group, origin)) for group in data.groups])),
        ("urls", "State of every URL", html.urls(counts, shares, sum(count.urls for count in data.counts))),
        ("segments", "Segments", html.rows(_segment_rows(data))),
        ("map", "Structure", html.map(places, data.pages)),
        ("broken", "Broken links", html.broken(data.broken[:MOST_BROKEN_URLS], failure, broken_rows)),
        ("redirects", "Redirects", html.rows(_redirect_rows(data, origin))),
        ("duplicates", "Duplicates", html.duplicates(data.duplicates, data.notes, grounds_of, like_of)),
        ("sizes", "Sizes", html.sizes(data.sizes, _heaviest_rows(data, origin))),
        ("depths", "Depth: clicks from the home page", html.depths(data.depths, widest)),
        ("sites", "Other sites linked to", html.rows(_site_rows(data))),
        ("pages", "Most important pages", html.ranked(_page_rows(data, origin))),
        ("kinds", "Kinds of pages", html.kinds(kinds)),
        ("screenshots", "Screenshots", html.screenshots(pictures, origin)),
    ]
    fetched = urls_in(data, State.FETCHED)
    figures = [
        ("pages fetched", fetched, ""),
        ("not fetched", urls_in(data, State.DISCOVERED), ""),
        *(
            (SEVERITY_WORDS[severity], causes_of(data, severity), "bad" if severity is Severity.ERROR else "")
            for severity in Severity
        ),
        ("clicks deep", max(len(data.depths) - 1, 0), ""),
    ]
    host = text(start.netloc or data.about.start)
    nav, body = make_sections(sections)
    head = f"<h1>{host}</h1>\n{html.head(data, fetched, figures)}\n{nav}"
    return document(f"{host}: crawl report", head, body, foot=html.foot(data.about))


GRADES_NOTE = "Grades: " + ", ".join(GradedField) + "."


def sites_page(data: SitesReport) -> str:
    """The report over all sites of a collection as one HTML page, in the form of `site_report`."""
    html: Any = macros("report.html")
    sites, shared = worst_first(data), shared_kinds(data)
    sections = [
        ("repair", "What to repair first", html.shared(shared[:FIRST])),
        ("worst", "Worst sites", html.worst([(site, gravest(site.groups)) for site in sites[:FIRST] if site.groups])),
        ("sites", "All sites", html.sites(_sum_rows(sites), GRADES_NOTE)),
        ("issues", "All findings", html.rows(_shared_rows(shared))),
        ("notes", "Not checked", html.notes(data.notes)),
    ]
    nav, body = make_sections(sections)
    title = f"{count_of(len(data.sites), 'site')}: crawl report"
    fetched = sum(urls_in(site, State.FETCHED) for site in data.sites)
    head = f"<h1>{title}</h1>\n{html.head(data, fetched, figures_of(data))}\n{nav}"
    return document(title, head, body, foot=html.foot(data.about))


def figures_of(data: SitesReport) -> list[tuple[str, int, str]]:
    """(name, sum over all sites, kind) of what a report over all sites begins with."""
    return [
        ("pages fetched", sum(urls_in(site, State.FETCHED) for site in data.sites), ""),
        ("not fetched", sum(urls_in(site, State.DISCOVERED) for site in data.sites), ""),
        *(
            (name, sum(causes_of(site, severity) for site in data.sites), "bad" if severity is Severity.ERROR else "")
            for severity, name in SEVERITY_WORDS.items()
        ),
        ("broken links", sum(site.broken_urls for site in data.sites), "bad"),
    ]


def worst_first(data: SitesReport) -> list[SiteSum]:
    """Sites by how many errors they have, then warnings, then notices."""
    return sorted(data.sites, key=lambda site: (*(-causes_of(site, severity) for severity in Severity), site.site))


class SharedKind(NamedTuple):
    """A kind of finding over all sites. sites: (causes, site), most causes first."""

    group: IssueGroup
    sites: list[tuple[int, str]]


def shared_kinds(data: SitesReport) -> list[SharedKind]:
    """The kinds of all sites: by severity, then by number of sites."""
    kinds: dict[str, SharedKind] = {}
    for site in data.sites:
        for group in site.groups:
            old = kinds.get(group.kind.code) or SharedKind(replace(group, pages=0, total=0), [])
            old.sites.append((group.total, site.site))
            summed = replace(group, pages=old.group.pages + group.pages, total=old.group.total + group.total)
            kinds[group.kind.code] = SharedKind(summed, old.sites)
    for kind in kinds.values():
        kind.sites.sort(key=lambda row: (-row[0], row[1]))
    severities = list(Severity)
    return sorted(kinds.values(), key=lambda kind: (severities.index(kind.group.severity), -len(kind.sites)))


def _sum_rows(sites: Sequence[SiteSum]) -> PagedTable:
    columns = html_columns(
        """
        site: start link
        pages: fetched n
        not fetched: waiting n wide
        broken links: broken_urls n
    """,
        {"fetched": partial(urls_in, state=State.FETCHED), "waiting": partial(urls_in, state=State.DISCOVERED)},
    )
    columns += [
        HtmlColumn(name, partial(causes_of, severity=severity), "n", wide=severity is not Severity.ERROR)
        for severity, name in SEVERITY_WORDS.items()
    ]
    columns += html_columns(
        "clicks: depth n wide\nsize: size_bytes bytes wide\ngrades: grades n wide",
        {"grades": lambda site: " ".join(grade.letter for grade in site.grades)},
    )
    return PagedTable("all-sites", columns, sites, len(sites))


def _shared_rows(kinds: Sequence[SharedKind]) -> PagedTable:
    columns = html_columns(
        """
        finding: finding
        severity: group.severity.value wide
        sites: sites n
        pages: group.pages n
        most on: first wide
    """,
        {
            "finding": lambda kind: f"{kind.group.kind.title} ({kind.group.kind.code})",
            "sites": lambda kind: len(kind.sites),
            "first": lambda kind: kind.sites[0][1],
        },
    )
    return PagedTable("all-kinds", columns, kinds, len(kinds))


def _trends(data: ReportData) -> Markup:
    """Lines over the runs; nothing where there is one run."""
    out = io.StringIO()
    if len(data.trends) > 1:
        write_trends(data.trends, "The site", out)
    return Markup(out.getvalue())  # numbers and words of ours


def urls_in(data: ReportData | SiteSum, state: State) -> int:
    return urls_by_state(data.counts)[state]


def causes_of(data: ReportData | SiteSum, severity: Severity) -> int:
    return sum(group.total for group in data.groups if group.severity is severity)


def gravest(groups: Sequence[IssueGroup]) -> list[IssueGroup]:
    """The most severe kinds, then by number of pages; notices only if there is nothing else."""
    severities = list(Severity)
    grave = [group for group in groups if group.severity is not Severity.NOTICE] or groups
    return sorted(grave, key=lambda group: (severities.index(group.severity), -group.pages))[:FIRST]


def _fault_rows(group: IssueGroup, origin: str) -> PagedTable:
    caused_by, code = group.kind.caused_by, group.kind.code
    columns = [HtmlColumn("page", lambda fault: (fault.cause, ""), "link")]
    if caused_by in (SharedCause.WORDS, SharedCause.FOLDER):
        columns = [HtmlColumn("cause", lambda fault: fault.cause)]
    elif caused_by is not SharedCause.PAGE:
        columns = [HtmlColumn("cause", lambda fault: (fault.cause, ""), "link")]
    if any(fault.detail for fault in group.faults):
        columns.append(HtmlColumn("detail", lambda fault: fault.detail.replace(origin + "/", "/")))
    if caused_by is not SharedCause.PAGE:
        columns.append(HtmlColumn("pages", lambda fault: fault.pages, "n"))
        columns.append(HtmlColumn("first page", lambda fault: (first_address(fault), ""), "link"))
        if any(fault.issues[0].anchor for fault in group.faults):
            columns.append(HtmlColumn("link text", lambda fault: fault.issues[0].anchor, wide=True))
    if any(first_issue(fault).line for fault in group.faults):
        columns.append(HtmlColumn("line:column", _line, "n", wide=True))
    return PagedTable(f"rows-{code}", columns, group.faults, group.total, origin, "`periplus check` lists all.")


def _line(fault: Fault) -> str:
    issue = first_issue(fault)
    return f"{issue.line}:{issue.column}" if issue.line else ""


def first_issue(fault: Fault) -> Issue:
    """Similar pages have one cause: another page is named beside it."""
    return next((issue for issue in fault.issues if issue.url != fault.cause), fault.issues[0])


def first_address(fault: Fault) -> str:
    """The page of the first issue; of a page with copies at other addresses the first of these."""
    issue = first_issue(fault)
    return issue.related if issue.related and issue.url == fault.cause else issue.url


def _dead_rows(data: ReportData, origin: str) -> PagedTable:
    columns = html_columns(
        """
        broken URL: target link
        what: failure
        pages: pages n
        example page: holder link wide
        link text: anchor wide
    """,
        {
            "failure": failure,
            "holder": lambda dead: (dead.holders[0].url, "") if dead.holders else "",
            "anchor": lambda dead: dead.holders[0].anchor if dead.holders else "",
        },
    )
    return PagedTable(
        "broken-rows", columns, data.broken, data.broken_urls, origin, "`periplus links --broken` lists all."
    )


def failure(dead: BrokenLink) -> str:
    return REASON_WORDS[dead.reason] + (f", status {dead.status}" if dead.status else "")


def _places(tree: MapNode, pages: PageColumns) -> Iterator[tuple[MapNode | None, str]]:
    """(node, its name) in the order of the map, and (None, "") where a branch ends; without recursion, since a branch
    may be deep."""
    stack: list[tuple[MapNode | None, str]] = [(tree, labels([pages.url[tree.page]], [pages.title[tree.page]])[0])]
    while stack:
        node, name = stack.pop()
        yield node, name
        if node is None or not node.children:
            continue
        stack.append((None, ""))
        stack.extend(reversed(list(zip(node.children, [*child_names(node, pages), ""], strict=False))))


def _redirect_rows(data: ReportData, origin: str) -> PagedTable:
    columns = html_columns(
        """
        from: source link
        redirects: hops
        to: end link
        status: status n wide
        pages linking: links n
    """,
        {
            "hops": lambda chain: "loop" if chain.loop else count_of(chain.hops, "hop"),
            "status": lambda chain: str(chain.status or ""),
        },
    )
    elsewhere = "`periplus pages --reason redirect` lists all."
    return PagedTable("redirect-rows", columns, data.chains, len(data.chains), origin, elsewhere)


def _heaviest_rows(data: ReportData, origin: str) -> PagedTable:
    images = list(MediaClass).index(MediaClass.IMAGES)
    columns = html_columns(
        """
        page: page link
        with embedded files: bytes bytes
        images: images bytes wide
        files of unknown size: unsized n wide
        behind its links: linked_bytes bytes wide
    """,
        {
            "page": lambda page: page_cell(page.url, page.title),
            "bytes": lambda page: sum(page.pulled),
            "images": lambda page: page.pulled[images],
        },
    )
    heavy = (page for page in data.heaviest if sum(page.pulled))
    return PagedTable("weight-rows", columns, heavy, len(data.heaviest), origin)


def _segment_rows(data: ReportData) -> PagedTable:
    columns = html_columns(
        """
        segment: name
        pages: pages n
        failed: failed n
        clicks, mean: depth n wide
        characters per page: characters n wide
        size: size_bytes bytes wide
    """,
        {
            "depth": lambda row: f"{row.depth:.1f}" if row.pages else "–",
            "characters": lambda row: round(row.text_chars / max(row.pages, 1)),
        },
    )
    columns += [HtmlColumn(SEVERITY_WORDS[severity], partial(_issues_of, severity), "n") for severity in Severity]
    elsewhere = "`periplus rules segments` names pages of each."
    return PagedTable("segment-rows", columns, data.segments, len(data.segments), elsewhere=elsewhere)


def _issues_of(severity: Severity, row: SegmentSum) -> int:
    return row.issues.get(severity.value, 0)


def _site_rows(data: ReportData) -> PagedTable:
    columns = html_columns("site: name\npages with a link: pages n\nlinks: links n wide\nURLs there: targets n")
    elsewhere = "`periplus links --external` lists every link."
    return PagedTable("site-rows", columns, data.external, len(data.external), elsewhere=elsewhere)


def _page_rows(data: ReportData, origin: str) -> PagedTable:
    pages = data.pages
    columns = html_columns(
        """
        page: page link
        clicks: depth n wide
        links in: inlinks n
        links out: outlinks n wide
        size: size bytes wide
        score: score n
    """,
        {
            "page": lambda page: page_cell(pages.url[page], pages.title[page]),
            "depth": lambda page: int(pages.depth[page]) if pages.depth[page] >= 0 else "–",
            "inlinks": lambda page: int(pages.inlinks[page]),
            "outlinks": lambda page: int(pages.outlinks[page]),
            "size": lambda page: int(pages.size_bytes[page]),
            "score": lambda page: int(pages.score[page]),
        },
    )
    return PagedTable("page-rows", columns, data.ranked, len(data.ranked), origin, "`periplus pages` lists all.")
