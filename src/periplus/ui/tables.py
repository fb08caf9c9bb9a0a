"""Screens of tables: leafed through, filtered, sorted, downloaded; and what differs between two runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlencode

from starlette.background import BackgroundTask
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from periplus.api.collection import open_collection
from periplus.api.tables import TableFacet, TableQuery, table_of
from periplus.errors import NoCollection, UsageError
from periplus.model.tables import ColumnKind
from periplus.present.writers import writer_named, writers
from periplus.ui import rendering
from periplus.ui.rendering import folder_of, house_of

ROWS = (50, 100, 250, 500)  # of one page
RESERVED = frozenset({"q", "sort", "at", "per", "columns", "format", "where", "is"})
_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.REAL})


@dataclass(frozen=True, slots=True)
class Screen:
    """A table as it is shown. columns: those shown where none are asked for; fixed: conditions that make it what it is;
    sentence: what it shows, where the table's own does not say it.
    """

    title: str
    table: str
    columns: tuple[str, ...]
    fixed: tuple[tuple[str, str], ...] = ()
    sentence: str = ""


_LINK = ("source", "anchor", "target", "target_status", "kind", "position")
SCREENS = {
    "pages": Screen("Pages", "pages", ("url", "title", "status", "reason", "media_type", "size", "depth", "language")),
    "links": Screen("Links", "links", _LINK),
    "external": Screen(
        "External links",
        "links",
        ("source", "anchor", "target", "target_site", "kind", "position", "nofollow"),
        (("internal", "no"), ("target_state", "!invalid")),
        "Links to other sites. Those to dead places stand among the dead links.",
    ),
    "dead": Screen(
        "Dead links",
        "links",
        ("target", "target_reason", "target_status", "source", "anchor", "position"),
        (("target_state", "invalid"),),
        "Links to what does not exist or cannot be reached, with the pages that hold them.",
    ),
    "bad": Screen("Bad links", "bad", ("source", "text", "why", "anchor", "position")),
    "faults": Screen("Issues", "faults", ("severity", "message", "cause", "detail", "pages", "url", "code")),
    "issues": Screen(
        "Issues page by page",
        "issues",
        ("severity", "message", "url", "cause", "detail", "anchor", "position", "category"),
    ),
    "hosts": Screen("Hosts", "hosts", ("host", "site", "fetched", "waiting", "delay_s", "strikes", "waits_for")),
    "sites": Screen(
        "Sites", "sites", ("name", "hosts", "pages_total", "pages_crawled", "pages_invalid", "size", "visited")
    ),
    "runs": Screen(
        "Runs", "runs", ("id", "kind", "state", "note", "started", "ended", "fetched", "wire_bytes", "start_urls")
    ),
    "redirects": Screen("Redirects", "redirects", ("url", "target", "status", "permanent", "visited")),
    "stories": Screen("Stories", "stories", ("story", "title", "sites", "pages", "first", "first_site", "told_by")),
    "story-pages": Screen(
        "Pages of stories", "story-pages", ("story", "place", "date", "after", "site", "title", "url", "dated_by")
    ),
    "visits": Screen(
        "Visits", "visits", ("id", "url", "purpose", "outcome", "status", "detail", "started", "response_s")
    ),
}


OF_ONE = {  # tables of one topic or portal, named with it
    "judged": Screen("Judged pages", "judged", ("probability", "title", "url", "label", "beginning")),
    "words": Screen("Words", "words", ("word", "speaks", "weight", "positive_share", "negative_share")),
    "entries": Screen(
        "Entries", "entries", ("key", "kind", "verdict", "title", "published", "sites", "weight", "keywords")
    ),
    "sources": Screen("Sources", "sources", ("site", "chosen", "verdict", "stories", "gain", "relevance")),
}
HOMES = {
    "judged": "topic/{}",
    "words": "topic/{}",
    "entries": "portal/{}",
    "sources": "portal/{}",
    "stories": "stories",
    "story-pages": "stories",
}  # of results


def table(request: Request) -> Response:
    """One page of a table; with the ending of a writer the whole of what answers, as a file."""
    name, folder = folder_of(request)
    shown, _, ending = request.path_params["table"].partition(".")
    screen, asked = screen_of(shown), dict(request.query_params)
    if ending:
        return _file(request, folder, screen, ending)
    if (short := shortened(request.query_params)) is not None:
        return RedirectResponse("?" + urlencode(short), 303)
    columns = tuple(part for part in asked.get("columns", "").split(",") if part) or screen.columns
    query, at = query_of(asked, screen.fixed)
    table, page = table_of(screen.table), house_of(request).browser.page(folder, screen.table, query, columns)
    values: dict[str, object] = {
        "title": screen.title,
        "name": name,
        "sentence": screen.sentence or table.sentence,
        "table": shown,
        "columns": page.columns,
        "rows": page.rows,
        "count": page.count,
        "facets": [facet for facet in page.facets if facet.name not in dict(screen.fixed) and tells(facet, asked)],
        "conditions": [(column, text) for column, text in query.conditions if (column, text) not in screen.fixed],
    }
    if not rendering.wants_json(request):
        home = HOMES.get(shown.partition(":")[0], "")
        values |= {
            "at": at,
            "first": query.first,
            "per": query.most,
            "sizes": ROWS,
            "sort": query.sort[0] if query.sort else "",
            "downloads": tuple(writers()),
            "home": home.format(quote(shown.partition(":")[2], safe="")),
            "home_word": home.partition("/")[0],
            "sampled": page.sampled,
            "unordered": page.unordered,
            "every": table.columns,
            "numeric": {column.name for column in page.columns if column.kind in _NUMBERS},
        }
    return rendering.answer(request, "table.html", values)


def shortened(asked: QueryParams) -> dict[str, str] | None:
    """The address that forms mean, as one writes it: `where=title&is=~a` is `title=~a`, columns stand in one word;
    None: it is so already.
    """
    if "where" not in asked and len(asked.getlist("columns")) < 2:
        return None
    chosen = {asked["where"]: asked.get("is", "").strip()} if asked.get("where", "") not in (*RESERVED, "") else {}
    kept = {name: text for name, text in asked.items() if name not in ("where", "is", "at")}
    return kept | chosen | ({"columns": ",".join(asked.getlist("columns"))} if "columns" in asked else {})


def screen_of(shown: str) -> Screen:
    """A table by its name in the address; `judged:films` is that of one topic. Raises NoCollection."""
    kind, _, which = shown.partition(":")
    if kind in OF_ONE:
        return replace(OF_ONE[kind], title=f"{OF_ONE[kind].title}: {which}", table=shown)
    if shown not in SCREENS:
        raise NoCollection(f"there is no table {shown!r}: choose among {', '.join(SCREENS)}")
    return SCREENS[shown]


def tells(facet: TableFacet, asked: Mapping[str, str]) -> bool:
    """A facet of one value tells nothing, unless it is that which was chosen."""
    return len(facet.values) > 1 or facet.name in asked


def query_of(asked: Mapping[str, str], fixed: tuple[tuple[str, str], ...] = ()) -> tuple[TableQuery, int]:
    """(what is wanted, the page's number from 1). Raises UsageError."""
    given = tuple((column, text) for column, text in asked.items() if column not in RESERVED and text)
    per, at = _whole(asked, "per", ROWS[0], ROWS[-1]), _whole(asked, "at", 1, 10_000_000)
    sort = tuple(part for part in asked.get("sort", "").split(",") if part)
    return TableQuery((*fixed, *given), asked.get("q", "").strip(), sort, (at - 1) * per, per), at


def _whole(asked: Mapping[str, str], name: str, usual: int, most: int) -> int:
    text = asked.get(name, "") or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= most):
        raise UsageError(f"{name} is a number from 1 to {most:,}, not {text[:50]!r}")
    return int(text)


def _file(request: Request, folder: Path, screen: Screen, ending: str) -> Response:
    """Exactly what is filtered, in the order shown."""
    query, _ = query_of(dict(request.query_params), screen.fixed)
    name = f"{request.path_params['name']}-{request.path_params['table'].partition('.')[0]}"
    return sent(name, ending, lambda path: house_of(request).browser.write(folder, screen.table, query, ending, path))


def sent(name: str, ending: str, write: Callable[[Path], None]) -> Response:
    """A table as a file: written beside, and sent as it is whole.

    Raises UsageError for an ending that no writer has.
    """
    media_type = writer_named(ending).media_type
    with tempfile.NamedTemporaryFile(prefix="periplus-", suffix=f".{ending}", delete=False) as file:
        path = Path(file.name)
    whole = False
    try:
        write(path)
        whole = True
    finally:
        if not whole:
            path.unlink()
    return FileResponse(
        path,
        media_type=media_type,
        filename=f"{name}.{ending}",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )


SHOWN = 100  # entries of a list; all of them stand in the JSON
READ_S = 60.0


def compare(request: Request) -> Response:
    """Two runs side by side; by default the last two. Of one run alone, that there is nothing to compare."""
    name, folder = folder_of(request)
    asked = request.query_params
    with open_collection(folder, time_limit_s=READ_S) as kept:
        runs = kept.runs()
        before, after = asked.get("before", "last-1"), asked.get("after", "last")
        found = kept.diff(before, after, site=asked.get("site", "")) if len(runs) > 1 or "before" in asked else None
    values: dict[str, object] = {
        "title": "Compare",
        "name": name,
        "before": before,
        "after": after,
        "comparison": found,
    }
    if rendering.wants_json(request):
        return rendering.answer(request, "", values)
    return rendering.answer(request, "compare.html", values | {"runs": list(reversed(runs)), "shown": SHOWN})
