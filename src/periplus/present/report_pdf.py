"""The report for a site's owner on paper, and as a mail's attachment that every reader opens: PDF."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from urllib.parse import urlsplit

from periplus.extras import extra_needed
from periplus.model.audit import Fault, Severity, SharedCause
from periplus.model.results import BrokenLink, IssueGroup, ReportData, SitesReport
from periplus.model.visit import State
from periplus.present.issues import place_of
from periplus.present.report import (
    FIRST,
    GRADES_NOTE,
    SEVERITY_WORDS,
    causes_of,
    failure,
    figures_of,
    first_address,
    first_issue,
    gravest,
    shared_kinds,
    urls_in,
    worst_first,
)
from periplus.present.wording import count_of, number, size, utc, visible
from periplus.values import JsonObject

CAUSES = 15  # of one kind that are named: a PDF does not turn pages or filter; `periplus check` lists all
DEAD = 100
ADDRESS_CHARS = 300


def write_report_pdf(data: ReportData | SitesReport, shown: Callable[[str], str] = str) -> bytes:
    """A4 pages: figures, grades, what to repair first, each kind of fault with its first causes, broken links.

    shown: what a URL is shown as. The same data gives the same bytes on the same fonts. Raises MissingExtra without
    typst.
    """
    with extra_needed():
        import typst

    source = files("periplus.present").joinpath("report.typ").read_bytes()
    texts = _sums(data) if isinstance(data, SitesReport) else _values(data, shown)
    values = json.dumps(texts, ensure_ascii=False)
    made = typst.compile(source, format="pdf", sys_inputs={"data": values})
    assert isinstance(made, bytes)
    return made


def _values(data: ReportData, shown: Callable[[str], str]) -> JsonObject:
    """Content of the sheet as plain texts, without markup."""

    def address(url: str) -> str:
        return visible(shown(url))[:ADDRESS_CHARS]

    start = urlsplit(data.about.start)
    figures = [
        ("pages fetched", urls_in(data, State.FETCHED)),
        ("not fetched", urls_in(data, State.DISCOVERED)),
        *((SEVERITY_WORDS[severity], causes_of(data, severity)) for severity in Severity),
        ("broken URLs", data.broken_urls),
    ]
    return {
        "host": visible(start.netloc or data.about.start),
        "about": f"Crawled from {address(data.about.start)}: {visible(data.about.run)}, {_when(data)}.",
        "figures": [(name, number(value)) for name, value in figures],
        "grades": [(grade.field.value, grade.letter, f"{grade.score} of 100") for grade in data.grades],
        "repair": [_kind(group) for group in gravest(data.groups)],
        "kinds": [_kind(group) | _causes(group, address) for group in data.groups],
        "broken": [_broken_link(dead, address) for dead in data.broken[:DEAD]],
        "left": _left(data.broken_urls - min(DEAD, len(data.broken)), "periplus links --broken"),
        "notes": [visible(note) for note in data.notes],
        "sites": [],
    }


def _when(data: ReportData | SitesReport) -> str:
    return f"finished {utc(data.finished)}" if data.finished else "not finished: these are the figures so far"


def _sums(data: SitesReport) -> JsonObject:
    """The same of several sites: sums, what to repair first, a row a site."""
    rows = [
        (visible(site.site), *(number(value) for value in (urls_in(site, State.FETCHED), site.broken_urls)),
         *(number(causes_of(site, severity)) for severity in Severity), number(site.depth), size(site.size_bytes),
         " ".join(grade.letter for grade in site.grades))
        for site in worst_first(data)
    ]  # fmt: skip
    repair = [
        _kind(group) | {"count": f"{count_of(len(sites), 'site')}, {count_of(group.pages, 'page')}"}
        for group, sites in shared_kinds(data)[:FIRST]
    ]
    return {
        "host": count_of(len(data.sites), "site"),
        "about": f"{visible(data.about.run)}, {_when(data)}. `periplus report --site NAME -o NAME.pdf` writes one "
        f"site's report. {GRADES_NOTE}",
        "figures": [(name, number(value)) for name, value, _ in figures_of(data)],
        "grades": [], "repair": repair, "kinds": [], "broken": [], "left": "",
        "notes": [visible(note) for note in data.notes],
        "sites": [("site", "pages", "broken links", *SEVERITY_WORDS.values(), "clicks", "size", "grades"), *rows],
    }  # fmt: skip


def _kind(group: IssueGroup) -> JsonObject:
    count = count_of(group.total, "cause") + f", on {count_of(group.pages, 'page')}"
    return {
        "title": group.kind.title, "why": group.kind.why, "remedy": group.kind.remedy, "severity": group.severity.value,
        "count": count_of(group.pages, "page") if group.kind.caused_by is SharedCause.PAGE else count,
    }  # fmt: skip


def _causes(group: IssueGroup, address: Callable[[str], str]) -> JsonObject:
    named: Sequence[Fault] = group.faults[:CAUSES]
    causes = [
        {
            "cause": address(fault.cause), "detail": address(fault.detail), "first": _first(fault, address),
            "pages": "" if group.kind.caused_by is SharedCause.PAGE else count_of(fault.pages, "page"),
        }
        for fault in named
    ]  # fmt: skip
    return {"causes": causes, "left": _left(group.total - len(named), "periplus check")}


def _first(fault: Fault, address: Callable[[str], str]) -> str:
    """The first page of a cause, with line and column; if the cause is a page, the place on it."""
    issue = first_issue(fault)
    if issue.url != fault.cause or issue.line:
        return address(place_of(issue))
    return address(first_address(fault)) if first_address(fault) != fault.cause else ""


def _broken_link(dead: BrokenLink, address: Callable[[str], str]) -> JsonObject:
    return {
        "url": address(dead.target), "what": failure(dead), "pages": count_of(dead.pages, "page"),
        "first": address(dead.holders[0].url) if dead.holders else "",
    }  # fmt: skip


def _left(count: int, command: str) -> str:
    return f"and {count:,} more: `{command}` lists all" if count > 0 else ""
