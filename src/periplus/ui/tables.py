"""Screens of tables: leafed through, filtered, sorted, downloaded; of causes of faults; of changes between runs."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlencode

from starlette.background import BackgroundTask
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from periplus.analyse.audit import issue_kinds
from periplus.api import homes
from periplus.api.functions import open_collection
from periplus.api.positions import issues_with_positions
from periplus.api.tables import TableFacet, TablePage, TableQuery
from periplus.errors import NoCollection
from periplus.jobs.presets import choice, whole
from periplus.model.audit import FaultDecision, FaultNote
from periplus.model.tables import ColumnKind
from periplus.present.writers import find_writer, writers
from periplus.ui import rendering
from periplus.ui.description import TableScreen
from periplus.ui.safety import form_of
from periplus.ui.state import now, place_read, state_of
from periplus.values import JsonObject, Pairs, fields_of

ROWS = (50, 100, 250, 500)  # of one page
RESERVED_NAMES = frozenset({"q", "sort", "at", "per", "columns", "format", "where", "is"})
LEADS = ("code", "cause")  # of a fault: its own screen is named by them
AUDIT_TABLES = ("faults", "issues")  # tables that take an audit
WAIT_S = 0.6  # for one; the screen is then shown as it comes
MOST_PAGES = 200  # of a cause of faults; the table of issues has all
COLUMNS = ("url", "detail", "related", "anchor", "position", "line", "column")  # of an issue
WORDS_CHARS = 2_000
NAME_CHARS = 100
_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.REAL})


_LINK = ("source", "anchor", "target", "target_status", "kind", "position")
SCREENS = {
    "pages": TableScreen(
        "Pages", "pages", ("url", "title", "status", "reason", "media_type", "size", "depth", "language")
    ),
    "links": TableScreen("Links", "links", _LINK),
    "external": TableScreen(
        "External links",
        "links",
        ("source", "anchor", "target", "target_site", "kind", "position", "nofollow"),
        (("internal", "no"), ("target_state", "!failed")),
        "Links to other sites, without broken links.",
    ),
    "faults": TableScreen(
        "Faults by cause",
        "faults",
        ("severity", "message", "cause", "detail", "pages", "since", "assignee"),
        sentence="The most severe faults first. Each row opens its pages, and can be accepted or ignored.",
        usual=(("decision", "-"),),
    ),
    "issues": TableScreen(
        "Issues page by page",
        "issues",
        ("severity", "message", "url", "line", "column", "cause", "detail", "anchor", "position", "category"),
    ),
    "sites": TableScreen(
        "Sites", "sites", ("name", "hosts", "pages_total", "pages_fetched", "pages_failed", "size", "visited")
    ),
}
SUBJECT_SCREENS: dict[str, TableScreen] = {}  # tables of which each subject has one
MOST_ENTRIES = 100  # entries of a list; the JSON has all
READ_S = 60.0


def table(request: Request) -> Response:
    """One page of a table; with the ending of a writer the whole of what answers, as a file."""
    name, place = place_read(request)
    shown, _, ending = request.path_params["table"].partition(".")
    screen, asked, browser = screen_of(shown), dict(request.query_params), state_of(request).browser
    if not ending and (short := short_query(request.query_params)) is not None:
        return RedirectResponse("?" + urlencode(short), 303)
    usual = tuple(condition for condition in screen.usual if condition[0] not in asked)
    query, at = query_of(asked, (*screen.fixed, *usual))
    is_shown = not ending and not rendering.wants_json(request)
    if screen.table in AUDIT_TABLES and is_shown and not browser.prepare_audit(place, WAIT_S):
        return waiting(request, name, screen.title)
    if ending:
        file = f"{name}-{shown}"
        return send_file(file, ending, lambda path: browser.write(place, screen.table, query, ending, path))
    columns = columns_of(asked) or screen.columns
    unseen = tuple(column for column in LEADS if column not in columns) if screen.table == "faults" else ()
    page, leads = of_screen(name, browser.page(place, screen.table, query, (*columns, *unseen)), len(columns))
    table = browser.table(place, screen.table)
    values = page_values(request, page, query, at) | {
        "title": screen.title,
        "name": name,
        "sentence": screen.sentence or table.sentence,
        "table": shown,
        "facets": [facet for facet in page.facets if facet.name not in dict(screen.fixed) and tells(facet, asked)],
        "conditions": [row_filter for row_filter in query.conditions if row_filter not in (*screen.fixed, *usual)],
    }
    if not rendering.wants_json(request):
        values |= {"home": screen.home.format(quote(shown.partition(":")[2], safe=""))}
        values |= {"home_word": screen.home.partition("/")[0]}
        values |= {"leads": leads, "unordered": page.unordered, "every": table.columns}
    return rendering.answer(request, "table.html", values)


def of_screen(name: str, page: TablePage, columns: int) -> tuple[TablePage, list[str]]:
    """(the page with so many of its columns, where each row of faults leads)."""
    leads = []
    if page.table == "faults":
        names = [column.name for column in page.columns]
        places = [(field, names.index(field)) for field in LEADS]
        query = ({field: row[place] for field, place in places} for row in page.rows)
        leads = [rendering.address(name, "fault") + rendering.query({}, **filters) for filters in query]
    if columns < len(page.columns):
        page = replace(page, columns=page.columns[:columns], rows=tuple(row[:columns] for row in page.rows))
    return page, leads


def waiting(request: Request, name: str, title: str) -> Response:
    """A screen that is being made beside this answer, which is asked for again until it is there."""
    detail = "Faults are being computed from all stored pages and links: some seconds for every ten thousand URLs."
    return rendering.answer(request, "waiting.html", {"title": title, "name": name, "detail": detail})


def page_values(request: Request, page: TablePage, query: TableQuery, at: int) -> JsonObject:
    """Values of every screen of a table."""
    values: JsonObject = {
        **fields_of(page, "table columns rows count"),
        "facets": [facet for facet in page.facets if tells(facet, request.query_params)],
        "conditions": list(query.conditions),
    }  # fmt: skip
    if not rendering.wants_json(request):
        values |= {
            "at": at, "first": query.first, "per": query.most, "sizes": ROWS, "sampled": page.sampled,
            "sort": query.sort[0] if query.sort else "", "downloads": tuple(writers()),
            "numeric": {column.name for column in page.columns if column.kind in _NUMBERS},
        }  # fmt: skip
    return values


def columns_of(asked: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(part for part in asked.get("columns", "").split(",") if part)


def short_query(asked: QueryParams) -> dict[str, str] | None:
    """The short address of a form's query: `where=title&is=~a` becomes `title=~a`, columns one parameter; None: it is
    short already.
    """
    if "where" not in asked and len(asked.getlist("columns")) < 2:
        return None
    chosen = (
        {asked["where"]: asked.get("is", "").strip()} if asked.get("where", "") not in (*RESERVED_NAMES, "") else {}
    )
    others = {name: text for name, text in asked.items() if name not in ("where", "is", "at")}
    return others | chosen | ({"columns": ",".join(asked.getlist("columns"))} if "columns" in asked else {})


def screen_of(shown: str) -> TableScreen:
    """A table by its name in the address; `judged:films` is the table of a subject. Raises NoCollection."""
    kind, _, which = shown.partition(":")
    if which and kind in SUBJECT_SCREENS:
        return replace(SUBJECT_SCREENS[kind], title=f"{SUBJECT_SCREENS[kind].title}: {which}", table=shown)
    if shown not in SCREENS:
        raise NoCollection(f"there is no table {shown!r}: choose among {', '.join(SCREENS)}")
    return SCREENS[shown]


def tells(facet: TableFacet, asked: Mapping[str, str]) -> bool:
    """A facet with a single value is useless, unless it was chosen."""
    return len(facet.values) > 1 or facet.name in asked


def query_of(asked: Mapping[str, str], fixed: Pairs = ()) -> tuple[TableQuery, int]:
    """(what is asked of a table, the page's number from 1). Raises UsageError."""
    given = tuple((column, text) for column, text in asked.items() if column not in RESERVED_NAMES and text)
    per, at = whole(asked, "per", ROWS[0], 1, ROWS[-1]), whole(asked, "at", 1, 1, 10_000_000)
    sort = tuple(part for part in asked.get("sort", "").split(",") if part)
    return TableQuery((*fixed, *given), asked.get("q", "").strip(), sort, (at - 1) * per, per), at


def send_file(name: str, ending: str, write: Callable[[Path], None]) -> Response:
    """A table as a file: written beside, and sent as it is whole.

    Raises UsageError for an ending that no writer has.
    """
    media_type = find_writer(ending).media_type
    with tempfile.NamedTemporaryFile(prefix="periplus-", suffix=f".{ending}", delete=False) as file:
        path = Path(file.name)
    with contextlib.ExitStack() as unfinished:
        unfinished.callback(path.unlink)
        write(path)
        unfinished.pop_all()
    return FileResponse(
        path,
        media_type=media_type,
        filename=f"{name}.{ending}",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )


def compare(request: Request) -> Response:
    """Two runs compared, by default the last two; after a single run there is nothing to compare."""
    name, place = place_read(request)
    asked = request.query_params
    before, after = asked.get("before", "last-1"), asked.get("after", "last")
    values: JsonObject = {"title": "Compare", "name": name, "before": before, "after": after, "comparison": None}
    with open_collection(place, time_limit_s=READ_S) as collection:
        runs = collection.runs()
        if len(runs) > 1 or "before" in asked:
            values["comparison"] = collection.diff(before, after, site=asked.get("site", ""))
    if rendering.wants_json(request):
        return rendering.answer(request, "", values)
    return rendering.answer(request, "compare.html", values | {"runs": list(reversed(runs)), "shown": MOST_ENTRIES})


def fault(request: Request) -> Response:
    """A cause with its pages, and the form of what is decided on it."""
    name, place = place_read(request)
    browser, asked = state_of(request).browser, request.query_params
    code, cause = asked.get("code", ""), asked.get("cause", "")
    if not rendering.wants_json(request) and not browser.prepare_audit(place, WAIT_S):
        return waiting(request, name, "A fault")
    noted = browser.fault(place, code, cause, MOST_PAGES)
    if noted is None:
        raise NoCollection(f"there is no fault {code} of {cause[:200]} (any longer): it may be repaired")
    kind, fault = issue_kinds()[code], noted.fault
    values = {
        "title": kind.title, "name": name, "code": code, "cause": cause, "severity": fault.severity, "why": kind.why,
        "remedy": kind.remedy, "detail": fault.detail, "pages": fault.pages, "since": noted.since, "note": noted.note,
        "rows": [[getattr(issue, field) for field in COLUMNS] for issue in issues_with_positions(place, fault.issues)],
        "total": fault.total,
    }  # fmt: skip
    return rendering.answer(request, "fault.html", values)


def decide(request: Request) -> Response:
    """Keeps what a person notes on a cause."""
    name, place = place_read(request)
    form = form_of(request)
    note = FaultNote(
        form.get("code", "")[:100],
        form.get("cause", "")[:10_000],
        FaultDecision(choice(form, "decision", list(FaultDecision), "")),
        form.get("assignee", "").strip()[:NAME_CHARS],
        form.get("words", "").strip()[:WORDS_CHARS],
        now(),
    )
    if state_of(request).browser.fault(place, note.code, note.cause) is None:
        raise NoCollection("there is no such fault (any longer): it may be repaired")
    homes.home_of(place).note_fault(note)
    query = rendering.query({}, code=note.code, cause=note.cause)
    return RedirectResponse(rendering.address(name, "fault") + query, 303)
