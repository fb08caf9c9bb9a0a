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
from periplus.api.tables import DOWNLOADS, TableFacet, TableQuery
from periplus.errors import NoCollection, UsageError
from periplus.model.table import ColumnKind
from periplus.ui import rendering
from periplus.ui.rendering import folder_of, house_of

ROWS = (50, 100, 250, 500)  # of one page
RESERVED = frozenset({"q", "sort", "at", "per", "columns", "format", "where", "is"})
LONG = frozenset({
    "url", "title", "rule", "description", "h1", "canonical", "source", "target", "anchor", "text", "detail", "message",
    "related_url", "anchor_text",
    "target_url", "note", "cause", "start_urls", "settings", "host", "name", "home_page", "waits_for", "told_by",
    "beginning", "sentence", "keywords",
})  # columns that may wrap  # fmt: skip
_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.REAL})
MEDIA = {
    "csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Screen:
    """A table as it is shown. fixed: conditions that make it what it is; columns: those shown where none are wished."""

    title: str
    table: str
    sentence: str
    columns: tuple[str, ...]
    fixed: tuple[tuple[str, str], ...] = ()


_LINK = ("source", "anchor", "target", "target_status", "kind", "position")
SCREENS = {
    "pages": Screen(
        "Pages", "pages", "Every URL that was ever seen, with what is known of it.",
        ("url", "title", "status", "reason", "type", "size", "depth", "language")
    ),
    "links": Screen("Links", "links",
        "Links as pages write them; those of one page that agree in target, kind and position are one row.", _LINK),
    "external": Screen(
        "External links", "links", "Links to other sites. Those to dead places stand among the dead links.",
        ("source", "anchor", "target", "target_site", "kind", "position", "nofollow"),
        (("internal", "no"), ("target_state", "!invalid")),
    ),
    "dead": Screen(
        "Dead links", "links", "Links to what does not exist or cannot be reached, with the pages that hold them.",
        ("target", "target_reason", "target_status", "source", "anchor", "position"), (("target_state", "invalid"),),
    ),
    "bad": Screen(
        "Bad links", "bad", "What stands where a link belongs and is none: mailto:, javascript:, malformed.",
        ("source", "text", "why", "anchor", "position")
    ),
    "faults": Screen(
        "Issues", "faults",
        "What is wrong, by cause, by all that was seen in crawls and checks; the number of pages leads to them.",
        ("severity", "message", "cause", "detail", "pages", "url", "code"),
    ),
    "issues": Screen(
        "Issues page by page", "issues", "What is wrong with each page, by all that was seen in crawls and checks.",
        ("severity", "message", "url", "cause", "detail", "anchor_text", "position", "category"),
    ),
    "hosts": Screen("Hosts", "hosts", "Every host that was met.",
        ("host", "site", "fetched", "waiting", "delay_s", "strikes", "waits_for")),
    "sites": Screen("Sites", "sites", "Every site that was met.",
        ("name", "hosts", "pages_total", "pages_crawled", "pages_invalid", "size", "visited")),
    "runs": Screen("Runs", "runs", "Every run of the collection.",
        ("id", "kind", "state", "note", "started", "ended", "fetched", "wire_bytes", "start_urls")),
    "redirects": Screen("Redirects", "redirects", "URLs that redirect, one hop a row.",
        ("url", "target_url", "status", "permanent", "fetched_at")),
    "stories": Screen(
        "Stories", "stories", "What several sites tell, the weightiest first.",
        ("story", "title", "sites", "pages", "first", "first_site", "told_by")
    ),
    "story-pages": Screen(
        "Pages of stories", "story-pages", "Each page of each story, in order.",
        ("story", "place", "date", "after", "site", "title", "url", "dated_by")
    ),
    "visits": Screen("Visits", "visits", "Every request, and what came of it.",
        ("id", "url", "purpose", "outcome", "status", "detail", "started", "took_s")),
}  # fmt: skip


OF_ONE = {  # tables of one topic or portal, named with it
    "judged": Screen(
        "Judged pages",
        "judged",
        "How likely each page belongs to the topic, as it was judged last.",
        ("probability", "title", "url", "label", "beginning"),
    ),
    "words": Screen(
        "Words",
        "words",
        "The words that tell the topic’s pages from others most.",
        ("word", "speaks", "weight", "positive_share", "negative_share"),
    ),
    "entries": Screen(
        "Entries",
        "entries",
        "What the portal may show, as it was gathered last, with what was decided since.",
        ("key", "kind", "verdict", "title", "published", "sites", "weight", "keywords"),
    ),
    "sources": Screen(
        "Sources",
        "sources",
        "Sites that tell the portal’s stories.",
        ("site", "chosen", "verdict", "stories", "gain", "relevance"),
    ),
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
    """One page of a table; with an ending of DOWNLOADS the whole of what answers, as a file."""
    name, folder = folder_of(request)
    shown, _, ending = request.path_params["table"].partition(".")
    screen, asked = screen_of(shown), dict(request.query_params)
    if ending:
        return _file(request, folder, screen, ending)
    if (short := shortened(request.query_params)) is not None:
        return RedirectResponse("?" + urlencode(short), 303)
    columns = tuple(part for part in asked.get("columns", "").split(",") if part) or screen.columns
    wish, at = wish_of(asked, screen.fixed)
    found = house_of(request).browser.page(folder, screen.table, wish, columns)
    values: dict[str, object] = {
        "title": screen.title, "name": name, "sentence": screen.sentence, "table": shown, "columns": found.columns,
        "rows": found.rows,
        "count": found.count,
        "facets": [facet for facet in found.facets if facet.name not in dict(screen.fixed) and tells(facet, asked)],
        "conditions": [(column, text) for column, text in wish.conditions if (column, text) not in screen.fixed],
    }  # fmt: skip
    if not rendering.wants_json(request):
        values |= {
            "at": at,
            "first": wish.first,
            "per": wish.most,
            "sizes": ROWS,
            "sort": wish.sort[0] if wish.sort else "",
            "downloads": DOWNLOADS,
        }
        home = HOMES.get(shown.partition(":")[0], "")
        values |= {"home": home.format(quote(shown.partition(":")[2], safe="")), "home_word": home.partition("/")[0]}
        values |= {
            "sampled": found.sampled,
            "unordered": found.unordered,
            "every": house_of(request).browser.columns(screen.table),
        }
        values |= {"numeric": {column.name for column in found.columns if column.kind in _NUMBERS}, "long": LONG}
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


def wish_of(asked: Mapping[str, str], fixed: tuple[tuple[str, str], ...] = ()) -> tuple[TableQuery, int]:
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
    wish, _ = wish_of(dict(request.query_params), screen.fixed)
    name = f"{request.path_params['name']}-{request.path_params['table'].partition('.')[0]}"
    return sent(name, ending, lambda path: house_of(request).browser.write(folder, screen.table, wish, ending, path))


def sent(name: str, ending: str, write: Callable[[Path], None]) -> Response:
    """A table as a file: written beside, and sent as it is whole.

    Raises UsageError for an ending that is none of DOWNLOADS.
    """
    if ending not in DOWNLOADS:
        raise UsageError(f"there is no file format {ending!r}: choose {', '.join(DOWNLOADS)}")
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
        media_type=MEDIA[ending],
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
