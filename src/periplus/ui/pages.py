"""Screens of pages: what the collection has of each, and which hold some words."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api.collection import Collection
from periplus.api.functions import open_collection
from periplus.api.homes import cache_folder
from periplus.api.page import Page
from periplus.api.searching import open_search
from periplus.api.tables import TableQuery
from periplus.errors import PeriplusError, UsageError
from periplus.jobs.presets import whole
from periplus.model.page import ALL_PARTS, PART_CHOICES
from periplus.model.search import OPERATORS, SearchResult
from periplus.model.web import Url
from periplus.retrieval.vectors import FOLDER as VECTORS
from periplus.ui import rendering
from periplus.ui.maps import place_of
from periplus.ui.state import now, place_read, state_of
from periplus.urls.canonical import canonical, url_id
from periplus.urls.scope import site_key
from periplus.values import JsonObject, Place, frozen

VIEWS = {
    "": "Metadata",
    "place": "Place in the map",
    "blocks": "Text by blocks",
    "source": "Source",
    "sent": "As sent",
    "screenshot": "Screenshot",
    "xml": "XML",
    "visits": "Visits",
}
_LINE_END = re.compile(r"\r\n|\r|\n")
LINKS = 300  # of each direction that are named
BLOCKS = 3_000
SOURCE_CHARS = 300_000
READ_S = 10.0
RESOURCE_KINDS = ("image", "style", "script", "font", "media", "frame", "embed")
LINK_COLUMNS = ("source", "target", "anchor", "kind", "position", "nofollow", "times", "target_reason", "target_status")
# A page of the web on our own origin: no script, no form, no frame, nothing from elsewhere. It keeps the origin, else
# its own parts would be a stranger's; without scripts nothing can use that.
COPY_POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox allow-same-origin"
)
_INLINE_TYPES = re.compile(
    r"(image|font)/[\w.+-]+|text/(css|html|plain)|application/(xhtml\+xml|octet-stream|(x-)?font-[\w.-]+)", re.ASCII
)
HITS = 10
CATCH_UP_S = 0.4  # for updating an index; the screen shows how many pages are left, and the update continues
SEARCH_READ_S = 15.0
FACETS = {
    "site": "site:",
    "type": "type:",
    "language": "lang:",
    "year": "date:",
}  # with what narrows a query to a value


def page(request: Request) -> Response:
    """One page, seen in one of VIEWS; `raw` gives its source or XML as a file."""
    name, place = place_read(request)
    asked = request.query_params
    view, url = asked.get("view", ""), asked.get("url", "")
    if view not in VIEWS or not url:
        raise UsageError(f"name a page with url=, and perhaps a view: {', '.join(filter(None, VIEWS))}")
    state = state_of(request)
    with open_collection(place, time_limit_s=READ_S) as collection:
        stored_page = collection.page(url, state.browser.indexes)
        if asked.get("raw"):
            return _raw(stored_page, view)
        summary = stored_page.summary()
        values: JsonObject = {
            "title": summary.title or "Page",
            "name": name,
            "page": summary,
            "view": view,
            "has_vectors": (cache_folder(place) / VECTORS).is_dir(),
            "views": {key: word for key, word in VIEWS.items() if _has(stored_page, key)},
        }
        line, parts = whole(asked, "line", 0, 0, 10_000_000), asked.getlist("parts")
        values |= _view_values(collection, stored_page, view, line, parts)
    if view in ("", "place"):
        values |= _place(request, stored_page.url, wait=view == "place")
    if view == "visits":
        values["visits"] = state.browser.page(place, "visits", TableQuery((("url", stored_page.url),), most=100))
    return rendering.answer(request, "page.html", values)


def _view_values(collection: Collection, page: Page, view: str, line: int, parts: Sequence[str]) -> JsonObject:
    """Values that a view adds, or why nothing was stored."""
    try:
        if view == "blocks":
            return _blocks(page, parts)
        if view == "source":
            return _source(page, page.parsed_body(), line)
        if view == "sent":
            return _source(page, page.source(), 0)
        if view == "xml":
            content, media_type = page.xml()
            return {
                "xml": content.decode("utf-8", "replace")[:SOURCE_CHARS],
                "xml_type": media_type,
                "cut": len(content) > SOURCE_CHARS,
            }
    except UsageError as error:
        return {"missing": str(error)}
    if view in ("visits", "place", "screenshot"):
        return {}
    outlinks = collection.links(source=page.url, limit=LINKS, columns=LINK_COLUMNS).to_dicts()
    pulled = Counter(str(link["kind"]) for link in outlinks if link["kind"] in RESOURCE_KINDS)
    return {
        "inlinks": list(page.inlinks(LINKS)),
        "outlinks": outlinks,
        "pulled": dict(pulled.most_common()),
        "most": LINKS,
    }


def _place(request: Request, url: Url, *, wait: bool) -> JsonObject:
    """Position of the page in its site's map; without waiting only if the map is cached."""
    _, place = place_read(request)
    maps, site = state_of(request).maps, str(site_key(url))
    try:
        made = maps.of(place, site) if wait else maps.cached_site(place, site)
    except UsageError as error:
        return {"place": None, "no_place": str(error)}
    step = place_of(made, url) if made else None
    return {"place": step, "no_place": "" if made is None or step else f"It is not a page of the map of {made.key}."}


def _blocks(page: Page, parts: Sequence[str]) -> JsonObject:
    """The blocks of those parts, of all where none is named, and how many there are of each part."""
    blocks, marks = page.blocks()[:BLOCKS], page.parts()[:BLOCKS]
    count = Counter(name for mark in marks for name, among in PART_CHOICES.items() if mark in among)
    chosen = {part for name in parts for part in PART_CHOICES.get(name, ())} or ALL_PARTS
    rows = [
        {"kind": block.kind.value, "text": block.text, "part": mark.value, "level": block.level, "path": block.path}
        for block, mark in zip(blocks, marks, strict=True)
        if mark in chosen
    ]
    counts = [(name, count[name], not PART_CHOICES[name].isdisjoint(chosen)) for name in PART_CHOICES if count[name]]
    return {"blocks": rows, "parts": counts}


def _has(page: Page, view: str) -> bool:
    """Whether there is anything to be seen: two views are of rendered pages alone."""
    return bool({"sent": page.row.rendered, "screenshot": page.row.has_screenshot}.get(view, True))


def _source(page: Page, content: bytes, line: int) -> JsonObject:
    """line: that is marked, from 1; 0: none."""
    text = decode(content, page.row.charset or "")
    ends = [0, *(end.end() for end in islice(_LINE_END.finditer(text[:SOURCE_CHARS]), line))]
    start, end = (ends[line - 1], [*ends, SOURCE_CHARS][line]) if 0 < line <= len(ends) else (SOURCE_CHARS,) * 2
    return {
        "source": text[:start],
        "marked": text[start:end],
        "rest": text[end:SOURCE_CHARS],
        "cut": len(text) > SOURCE_CHARS,
        "headers": page.headers()[1].fields,
        "size": len(content),
    }


def decode(content: bytes, charset: str) -> str:
    """For eyes: in its encoding, or in UTF-8 where Python has no such encoding."""
    try:
        return content.decode(charset or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _raw(page: Page, view: str) -> Response:
    """As a download; a picture as a part of our own page."""
    if view == "screenshot":
        return Response(page.screenshot(), media_type="image/webp")
    content = page.xml()[0] if view == "xml" else page.source() if view == "sent" else page.parsed_body()
    ending = "xml" if view == "xml" else "txt"
    policy = "default-src 'none'; sandbox"
    headers = {"content-disposition": f'attachment; filename="page.{ending}"', "content-security-policy": policy}
    return Response(content, media_type="application/octet-stream", headers=headers)


def page_copy(request: Request) -> Response:
    """A stored page, or a part of a page, for the browser; 404 for anything else."""
    _, place = place_read(request)
    if not (url := request.query_params.get("url", "")):
        raise UsageError("name a page with url=")
    path = request.url.path

    def place_of(target: Url, fragment: str) -> str:
        return f"{path}?url={quote(target, safe='')}{'#' + fragment if fragment else ''}"

    with open_collection(place, time_limit_s=READ_S) as collection:
        stored_page = collection.page(url, state_of(request).browser.indexes)
        if (target := stored_page.leads_to()) is not None:
            return RedirectResponse(place_of(target, ""), 303)
        content, media_type = stored_page.as_it_was(place_of)
    if not _INLINE_TYPES.fullmatch(media_type):
        raise UsageError(f"{media_type} is not shown: download it from the view Source of the page")
    headers = {"content-security-policy": COPY_POLICY}
    charset = "; charset=utf-8" if media_type.startswith("text/") and media_type != "text/plain" else ""
    return Response(content, headers=headers | {"content-type": media_type + charset})


@frozen
class PageSearch:
    """Results of one collection, or of all. fault: why there are none."""

    name: str  # empty: all
    result: SearchResult | None
    fault: str = ""
    indexing: bool = False  # goes on beside this answer, which lacks what is not searchable yet


def search_collection(request: Request) -> Response:
    name, place = place_read(request)
    query, at = _query(request), whole(request.query_params, "at", 1, 1, 1000)
    like = request.query_params.get("like", "").strip()[:2000]
    answers = [_search(request, name, {"": place}, at, like)] if query or like else []
    return _answer(request, answers, {"name": name, "at": at, "per": HITS, "like": like})


def search_all(request: Request) -> Response:
    """The pages of all collections in one order; what cannot be read is named."""
    at = whole(request.query_params, "at", 1, 1, 1000)
    return _answer(request, _search_all(request, at) if _query(request) else [], {"at": at, "per": HITS})


def _search_all(request: Request, at: int) -> list[PageSearch]:
    places, faults = state_of(request).places.collections(), list[PageSearch]()
    for name, place in list(places.items()):
        try:
            with open_search({name: place}, SEARCH_READ_S):
                pass
        except PeriplusError as error:
            faults.append(PageSearch(name, None, str(error)))
            del places[name]
    return [_search(request, "", places, at), *faults] if places else faults


def _answer(request: Request, answers: list[PageSearch], values: Mapping[str, object]) -> Response:
    values = {"title": "Search", "query": request.query_params.get("q", ""), "like": "", "results": answers, **values}
    if not rendering.wants_json(request):
        values = {**values, "facets": FACETS, "operators": OPERATORS, "pieces": pieces}
    return rendering.answer(request, "search.html", values)


def _query(request: Request) -> str:
    return request.query_params.get("q", "").strip()[:2000]


def _search(request: Request, name: str, places: Mapping[str, Place], at: int, like: str = "") -> PageSearch:
    """Results of several collections, by their names, merged. like: a page for similarity by the collection's vectors;
    empty: words only.
    """
    try:
        done = state_of(request).indexing.is_done(list(places.values()), CATCH_UP_S)
        near = url_id(canonical(like)) if like else None
        with open_search(places, SEARCH_READ_S) as search:
            behind = search.catch_up(now(), _until(CATCH_UP_S))
            result = search.find(_query(request), HITS, at, facets=True, behind=behind, like=near)
        return PageSearch(name, result, indexing=not done)
    except PeriplusError as error:
        return PageSearch(name, None, str(error))


def _until(limit_s: float) -> Callable[[int, int], bool]:
    deadline = time.monotonic() + limit_s
    return lambda done, waiting: time.monotonic() > deadline


def pieces(text: str, marks: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, bool]]:
    """The text cut where marks begin and end: (piece, whether it is marked)."""
    place = 0
    for start, end in marks:
        yield text[place:start], False
        yield text[start:end], True
        place = end
    yield text[place:], False
