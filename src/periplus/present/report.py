"""The report for a site's owner: one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from periplus.model.audit import CausedBy, Fault, Grade
from periplus.model.duplicates import DuplicateGroup
from periplus.model.page import MediaClass
from periplus.model.results import (
    OTHERS,
    DeadLink,
    Holder,
    IssueGroup,
    MapNode,
    PageColumns,
    PageOverview,
    ReportData,
    Tally,
)
from periplus.model.visit import Reason, State
from periplus.present.markup import (
    Html,
    HtmlColumn,
    PagedTable,
    at_home,
    bar,
    document,
    left_out,
    link,
    named,
    paged,
    sectioned,
    table,
    text,
)
from periplus.present.text import grounds_of, like_of
from periplus.present.wording import REASON_WORDS, STATE_WORDS, count_of, labels, number, size, utc

FIRST = 5  # kinds of issues named on the first page
EXAMPLES = 3  # causes named with each, and pages with each cause
_GRADES = list(Grade)
GRADE_WORDS = {Grade.ERROR: "errors", Grade.WARNING: "warnings", Grade.NOTICE: "notices"}


def repair_first(groups: Sequence[IssueGroup], origin: str) -> Html:
    """The gravest kinds, of equal ones those on most pages; notices only where there is nothing else.

    origin: scheme://host of the site, which its URLs are shown without.
    """
    grave = [group for group in groups if group.grade is not Grade.NOTICE] or list(groups)
    first = sorted(grave, key=lambda group: (_GRADES.index(group.grade), -group.pages))[:FIRST]
    if not first:
        return '<p class="soft">Nothing was found that wants repair.</p>'
    return f'<ol class="actions">{"".join(_action(group, origin) for group in first)}</ol>'


def _action(group: IssueGroup, origin: str) -> Html:
    kind = group.kind
    faults = "".join(f"<li>{_said(fault, group, origin)}</li>" for fault in group.faults[:EXAMPLES])
    more = group.total - EXAMPLES
    rest = f'<li><a href="#issue-{kind.code}">and {number(more)} more</a></li>' if more > 0 else ""
    return (
        f'<li class="{group.grade}"><h3><a href="#issue-{kind.code}">{text(kind.title)}</a> <span class="chip '
        f'{group.grade}">{_counted(group)}</span></h3>'
        f"<p>{text(kind.why)} <b>{text(kind.remedy)}</b></p><ul>{faults}{rest}</ul></li>\n"
    )


def _said(fault: Fault, group: IssueGroup, origin: str) -> Html:
    """One cause on one line: what is at fault, how, and on which pages."""
    detail = f" <small>{text(_short(fault.detail, origin))}</small>" if fault.detail else ""
    named = _cause(fault, origin) + detail
    if group.kind.caused_by is CausedBy.PAGE:
        return named
    pages = list(dict.fromkeys(issue.url for issue in fault.issues))[:EXAMPLES]
    holders = ", ".join(link(url, at_home(url, origin)) for url in pages)
    return (
        f"{named} <small>on {count_of(fault.pages, 'page')}: "
        f"{holders}{', …' if fault.pages > len(pages) else ''}</small>"
    )


def _cause(fault: Fault, origin: str) -> Html:
    return link(fault.cause, at_home(fault.cause, origin)) if is_url(fault.cause) else text(fault.cause)


def is_url(cause: str) -> bool:
    """Whether a cause can be opened; others are words."""
    return cause.startswith(("http://", "https://"))


def _short(detail: str, origin: str) -> str:
    """A detail whose URLs of the site itself are shown by their path."""
    return detail.replace(origin + "/", "/") if origin else detail


def all_issues(groups: Sequence[IssueGroup], origin: str) -> Html:
    """Every kind in a <details>, the errors open."""
    return "\n".join(_group(group, origin) for group in groups)


def _group(group: IssueGroup, origin: str) -> Html:
    kind, several = group.kind, group.kind.caused_by is not CausedBy.PAGE
    detailed, worded = (
        any(fault.detail for fault in group.faults),
        several and any(fault.issues[0].anchor for fault in group.faults),
    )
    columns = [HtmlColumn("cause" if several else "page", "text" if kind.caused_by is CausedBy.WORDS else "link")] + [
        HtmlColumn("what")
    ] * detailed
    columns += [HtmlColumn("pages", "n"), HtmlColumn("the first of them", "link")] * several + [
        HtmlColumn("words of the link", wide=True)
    ] * worded
    rows = [_cells(fault, kind.caused_by, detailed, worded, origin) for fault in group.faults]
    table = paged(PagedTable(f"rows-{kind.code}", columns, rows, group.total, origin, "`periplus check` lists all."))
    return (
        f'<details class="issue" id="issue-{kind.code}"{" open" if group.grade is Grade.ERROR else ""}><summary><span '
        f'class="name">{text(kind.title)} '
        f'<small>{text(kind.code)}</small></span><span class="chip {group.grade}">{_counted(group)}</span></summary>'
        f'<p class="note">{text(kind.why)} {text(kind.remedy)}</p>{table}</details>'
    )


def _counted(group: IssueGroup) -> Html:
    """How many causes, and on how many pages they are met."""
    return number(group.total) + (f" on {count_of(group.pages, 'page')}" if group.pages != group.total else "")


def _cells(
    fault: Fault, caused_by: CausedBy, detailed: bool, worded: bool, origin: str
) -> list[str | int | tuple[str, str]]:
    cells: list[str | int | tuple[str, str]] = [fault.cause if caused_by is CausedBy.WORDS else (fault.cause, "")]
    cells += [_short(fault.detail, origin)] if detailed else []
    if caused_by is not CausedBy.PAGE:  # of pages that are alike the cause is one: another is named beside it
        first = next((issue.url for issue in fault.issues if issue.url != fault.cause), fault.cause)
        cells += [fault.pages, (first, "")]
    return cells + ([fault.issues[0].anchor] if worded else [])


SHOWN = 200  # entries of a list that has no pages to turn
DEAD_IN_FULL = 50  # dead URLs with every page that links there; beyond, they are rows of a table
HOLDERS_OPEN = 5  # pages with one dead link that are seen at once
DEPTHS_SHOWN = 30
STATES = (State.INDEXED, State.REGISTERED, State.IGNORED, State.INVALID)


def site_report(data: ReportData) -> str:
    """The report as one HTML page: nothing loaded from anywhere, no script but our own for long tables, light and dark,
    fit for paper.

    Lists are shown in data's order; what is cut says so. All text that came from the web is escaped.
    """
    host = text(urlsplit(data.about.start).netloc or data.about.start)
    nav, body = sectioned(_sections(data))
    return document(f"{host}: what the crawl found", f"<h1>{host}</h1>\n{_head(data)}\n{nav}", body, foot=_footer(data))


def _sections(data: ReportData) -> list[tuple[str, str, Html]]:
    """(id, heading, content); what has no content is left out by the caller."""
    return [
        ("repair", "What to repair first", repair_first(data.groups, _origin(data))),
        ("issues", "Everything that was found", all_issues(data.groups, _origin(data))),
        ("urls", "What became of every URL", _counts(data)),
        ("map", "Structure", _map(data.tree, data.pages)),
        ("dead", "Dead links", _dead(data)),
        ("redirects", "Redirects", _redirects(data)),
        ("duplicates", "Duplicates", _duplicates(data)),
        ("sizes", "Sizes", _sizes(data)),
        ("depths", "Depth: clicks from the home page", _depths(data)),
        ("sites", "Other sites linked to", _external(data)),
        ("pages", "Pages that count most", _pages(data)),
        ("kinds", "Kinds of pages", _kinds(data)),
    ]


def _origin(data: ReportData) -> str:
    """scheme://host of the site itself."""
    return data.about.start.partition("://")[0] + "://" + urlsplit(data.about.start).netloc


def _urls(data: ReportData, *states: State) -> int:
    return sum(count.urls for count in data.counts if count.state in states)


def _found(data: ReportData, grade: Grade) -> int:
    return sum(group.total for group in data.groups if group.grade is grade)


def _head(data: ReportData) -> Html:
    fetched = _urls(data, State.INDEXED)
    ended = (
        f"Finished {utc(data.finished)}."
        if data.finished
        else ("The run is not finished: these are the figures so far.")
    )
    lines = [f'<p class="soft">Crawled from {link(data.about.start)}. {text(ended)} Run {text(data.about.run)}.</p>']
    if not fetched:
        lines.append(
            '<p class="notice">No page was fetched. The reasons stand below; nothing here '
            "says that the site is in order.</p>"
        )
    figures = [
        ("pages fetched", number(fetched), ""),
        ("not fetched", number(_urls(data, State.REGISTERED)), ""),
        *(
            (
                GRADE_WORDS[grade],
                number(_found(data, grade)),
                "bad" if grade is Grade.ERROR and _found(data, grade) else "",
            )
            for grade in Grade
        ),
        ("clicks deep", number(max(len(data.depths) - 1, 0)), ""),
    ]
    cells = "".join(f'<div class="{kind}"><dt>{name}</dt><dd>{value}</dd></div>' for name, value, kind in figures)
    return "\n".join(lines) + f'\n<dl class="figures">{cells}</dl>'


def _counts(data: ReportData) -> Html:
    total = sum(count.urls for count in data.counts)
    rows = [
        (
            f'<span class="key {count.state}"></span>{STATE_WORDS[count.state]}',
            REASON_WORDS[count.reason],
            number(count.urls),
        )
        for state in STATES
        for count in data.counts
        if count.state is state
    ]
    whole = bar([(state, _urls(data, state)) for state in STATES], total, "whole")
    note = (
        f'<p class="note">{count_of(total, "URL")} in all. A page that is refused to us or disallowed by '
        "robots.txt is not counted as dead.</p>"
    )
    return note + whole + table(["state", "why", "URLs"], rows, ["w", "", "n"]) if rows else ""


def _dead(data: ReportData) -> Html:
    if not data.dead:
        return '<p class="soft">None was found.</p>'
    note = '<p class="note">URLs that lead nowhere, each with the pages that link to it and the words of the link.</p>'
    blocks = "\n".join(map(_dead_link, data.dead[:DEAD_IN_FULL]))
    if data.dead_urls <= DEAD_IN_FULL:
        return note + blocks
    columns = [
        HtmlColumn("dead URL", "link"),
        HtmlColumn("what"),
        HtmlColumn("pages", "n"),
        HtmlColumn("one of them", "link", wide=True),
        HtmlColumn("words", wide=True),
    ]
    rows = (
        (
            (dead.target, ""),
            _what(dead),
            dead.pages,
            (dead.holders[0].url, "") if dead.holders else "",
            dead.holders[0].anchor if dead.holders else "",
        )
        for dead in data.dead
    )
    rest = paged(
        PagedTable("dead-rows", columns, rows, data.dead_urls, _origin(data), "`periplus links --broken` lists all.")
    )
    return f"{note}{blocks}<h3>All dead URLs, those of most pages first</h3>{rest}"


def _what(dead: DeadLink) -> str:
    return REASON_WORDS[dead.reason] + (f", status {dead.status}" if dead.status else "")


def _dead_link(dead: DeadLink) -> Html:
    rows = list(map(_holder, dead.holders))
    holders = f'<ul class="holders">{"".join(rows[:HOLDERS_OPEN])}</ul>'
    if rows[HOLDERS_OPEN:]:
        summary = f"<summary>{count_of(dead.pages - HOLDERS_OPEN, 'more page')} with this link</summary>"
        rest = left_out(dead.pages, len(dead.holders), "page")
        holders += (
            f'<details class="holders">{summary}<ul class="holders">{"".join(rows[HOLDERS_OPEN:])}</ul>{rest}</details>'
        )
    return (
        f'<div class="deadlink"><p>{link(dead.target)} <span class="chip dead">{_what(dead)}</span></p>{holders}</div>'
    )


def _holder(holder: Holder) -> Html:
    path = urlsplit(holder.url).path
    page = f"{link(holder.url, holder.title)} <small>{text(path)}</small>" if holder.title else link(holder.url, path)
    anchor = f"<q>{text(holder.anchor)}</q>" if holder.anchor else "<small>no words</small>"
    return f"<li>{page} {anchor}</li>\n"


def _map(tree: MapNode | None, pages: PageColumns) -> Html:
    """Nested lists in <details>, which open without script; written without recursion, since a branch may be deep."""
    if tree is None:
        return '<p class="soft">The home page was not fetched, so there is no map.</p>'
    out: list[Html] = []
    stack: list[Html | tuple[MapNode, str]] = [(tree, labels([pages.url[tree.page]], [pages.title[tree.page]])[0])]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        node, name = item
        row = _map_row(node, name, pages)
        if not node.children:
            out.append(f'<li><div class="leaf">{row}</div></li>\n')
            continue
        out.append(f"<li><details{' open' if node is tree else ''}><summary>{row}</summary><ul>\n")
        stack.append("</ul></details></li>\n")
        named = [child.page for child in node.children if child.page != OTHERS]
        names = labels(
            [pages.url[page] for page in named], [pages.title[page] for page in named], pages.title[node.page]
        )
        stack.extend(reversed(list(zip(node.children, [*names, ""], strict=False))))
    note = "Each page hangs from a page one click nearer to the home page; of several, from the one that counts most. "
    note += "Figures: pages in the branch, and the page's link score from 0 to 100."
    return f'<p class="note">{note}</p><ul class="map">{"".join(out)}</ul>'


def _map_row(node: MapNode, name: str, pages: PageColumns) -> Html:
    if node.page == OTHERS:
        missing = node.pages - node.indexed
        return (
            '<span class="name '
            f'soft">{count_of(node.pages, "more page")}{f", {number(missing)} not fetched" if missing else ""}</span>'
        )
    page = pages.page(node.page)
    count = f'<span class="count">{count_of(node.pages, "page")}</span>' if node.pages > 1 else ""
    score = f'<span class="score">{bar([("rank", page.score)], 100)}<b>{page.score}</b></span>'
    return f'<span class="name">{link(page.url, name)}{_chip(page)}</span>{count}{score}'


def _chip(page: PageOverview) -> Html:
    if page.reason is Reason.OK:
        return ""
    return f'<span class="chip{" dead" if page.state is State.INVALID else ""}">{REASON_WORDS[page.reason]}</span>'


def _depths(data: ReportData) -> Html:
    if not data.depths:
        return ""
    widest = max(depth.indexed + depth.registered for depth in data.depths)
    rows = [
        (
            number(depth.depth),
            bar([(State.INDEXED, depth.indexed), (State.REGISTERED, depth.registered)], widest),
            number(depth.indexed),
            number(depth.registered),
        )
        for depth in data.depths[:DEPTHS_SHOWN]
    ]
    rest = left_out(len(data.depths), DEPTHS_SHOWN, "depth")
    return table(["clicks", "", "fetched", "not fetched"], rows, ["n", "chart", "n", "n"]) + rest


def _pages(data: ReportData) -> Html:
    pages = data.pages
    rows = (
        (
            named(pages.url[page], pages.title[page]),
            int(pages.depth[page]) if pages.depth[page] >= 0 else "–",
            int(pages.inlinks[page]),
            int(pages.outlinks[page]),
            int(pages.size_bytes[page]),
            int(pages.score[page]),
        )
        for page in data.ranked
    )
    note = '<p class="note">By PageRank within the site. The score is its logarithm, from 0 (least) to 100 (most).</p>'
    columns = [
        HtmlColumn("page", "link"),
        HtmlColumn("clicks", "n", wide=True),
        HtmlColumn("links in", "n"),
        HtmlColumn("links out", "n", wide=True),
    ]
    columns += [HtmlColumn("size", "bytes", wide=True), HtmlColumn("score", "n")]
    listed = paged(
        PagedTable("page-rows", columns, rows, len(data.ranked), _origin(data), "`periplus pages` lists all.")
    )
    return note + listed if listed else ""


def _redirects(data: ReportData) -> Html:
    rows = (
        (
            (chain.source, ""),
            "a circle" if chain.loop else count_of(chain.hops, "hop"),
            (chain.end, ""),
            str(chain.status or ""),
            chain.links,
        )
        for chain in data.chains
    )
    columns = [
        HtmlColumn("from", "link"),
        HtmlColumn("way"),
        HtmlColumn("to", "link"),
        HtmlColumn("status", "n", wide=True),
        HtmlColumn("pages linking", "n"),
    ]
    return paged(
        PagedTable(
            "redirect-rows",
            columns,
            rows,
            len(data.chains),
            _origin(data),
            "`periplus pages --reason redirect` lists all.",
        )
    )


def _duplicates(data: ReportData) -> Html:
    groups = [
        (link(group.url), text(grounds_of(group)), _pages_like(group), number(len(group.pages)))
        for group in data.duplicates[:SHOWN]
    ]
    out = ""
    if groups:
        heads = ["stands for the others", "because", "pages that say the same", "others"]
        out += table(heads, groups, ["", "", "", "n"]) + left_out(len(data.duplicates), SHOWN, "group")
    return out + "".join(f'<p class="note">{text(note)}</p>' for note in data.notes)


def _pages_like(group: DuplicateGroup) -> Html:
    most = 10  # of one group: a text that a hundred URLs share is told by some of them
    lines = [
        f"{link(page.url)} <small>{text(', '.join(filter(None, (like_of(page), page.charset))))}</small>"
        for page in group.pages[:most]
    ]
    return "<br>".join(lines) + left_out(len(group.pages), most, "page")


def _sizes(data: ReportData) -> Html:
    """The whole site by class, then the heaviest pages."""
    whole = sum(part.size_bytes for part in data.sizes)
    if not whole:
        return ""
    rows = [
        (
            part.kind.value,
            bar([(f"class-{part.kind.value}", part.size_bytes)], whole),
            number(part.urls),
            number(part.unsized),
            size(part.size_bytes) if part.urls else "–",
        )
        for part in data.sizes
    ]
    note = (
        f'<p class="note">{size(whole)} in all: the pages and what they show or link to, each URL once. Images, '
        "styles and scripts that were "
    )
    note += (
        "not fetched have the size that their server told a check (<code>--part-sizes "
        "head</code>), or none that is known.</p>"
    )
    columns = [
        HtmlColumn("page", "link"),
        HtmlColumn("with its parts", "bytes"),
        HtmlColumn("of it images", "bytes", wide=True),
    ]
    columns += [HtmlColumn("parts of unknown size", "n", wide=True), HtmlColumn("behind its links", "bytes", wide=True)]
    images = list(MediaClass).index(MediaClass.IMAGES)
    heavy = (
        (named(page.url, page.title), sum(page.pulled), page.pulled[images], page.unsized, page.linked_bytes)
        for page in data.heaviest
        if sum(page.pulled)
    )
    heading = (
        f"<h3>Heaviest pages</h3>{paged(PagedTable('weight-rows', columns, heavy, len(data.heaviest), _origin(data)))}"
    )
    return (
        note
        + table(["kind", "", "URLs", "of unknown size", "size"], rows, ["w", "chart", "n", "n wide", "n"])
        + heading
    )


def _external(data: ReportData) -> Html:
    rows: Iterator[tuple[str | int, ...]] = (
        (site.name, site.pages, site.links, site.targets) for site in data.external
    )
    columns = [
        HtmlColumn("site"),
        HtmlColumn("pages with a link", "n"),
        HtmlColumn("links", "n", wide=True),
        HtmlColumn("URLs there", "n"),
    ]
    return paged(
        PagedTable(
            "site-rows", columns, rows, len(data.external), elsewhere="`periplus links --external` lists every link."
        )
    )


def _kinds(data: ReportData) -> Html:
    groups = [("Hosts", "host", data.hosts), ("Media types", "media type", data.media)]
    groups += [("Charsets", "charset", data.charsets), ("Languages", "language", data.languages)]
    return _tallies(groups, "pages")


def _tallies(groups: Sequence[tuple[str, str, Sequence[Tally]]], counted: str) -> Html:
    """Small tables side by side: (heading, what is counted by, counts)."""
    parts = []
    for title, by, tallies in groups:
        if tallies:
            sized = any(tally.size_bytes for tally in tallies)
            rows = [
                (text(tally.name) or "<small>not said</small>", number(tally.pages), size(tally.size_bytes))
                for tally in tallies[:SHOWN]
            ]
            cut = slice(None if sized else 2)
            heads, classes = [by, counted, "size"][cut], ["", "n", "n"][cut]
            heading = f"<h3>{title}</h3>" if title else ""
            parts.append(
                "<div>"
                f"{heading}{table(heads, [row[cut] for row in rows], classes)}"
                f"{left_out(len(tallies), SHOWN, by)}</div>"
            )
    return f'<div class="columns">{"".join(parts)}</div>' if parts else ""


def _footer(data: ReportData) -> Html:
    about = data.about
    facts = [
        ("Report made", utc(about.created)),
        ("PageRank", f"damping {about.damping:g}, {count_of(about.rounds, 'round')}"),
        ("Parent in the map", about.ties),
        *about.parameters,
    ]
    return (
        f"<footer><dl>{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in facts)}</dl></footer>"
    )
