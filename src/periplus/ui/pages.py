"""Screens of pages: what is known and kept of each, and which hold some words."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from periplus.api.collection import Collection, open_collection
from periplus.api.page import Page
from periplus.api.site import place_in
from periplus.api.tables import TableQuery
from periplus.errors import PeriplusError, UsageError
from periplus.model.page import Block, Part
from periplus.model.search import SearchResult
from periplus.model.web import Url
from periplus.ui import rendering
from periplus.ui.rendering import folder_of, house_of
from periplus.urls.scope import site_key

VIEWS = {
    "": "What is known",
    "place": "Place in the map",
    "blocks": "Text by blocks",
    "source": "Source",
    "xml": "XML",
    "visits": "Visits",
}
LINKS = 300  # of each direction that are named
BLOCKS = 3_000
SOURCE_CHARS = 300_000
READ_S = 10.0
PULLED = ("image", "style", "script", "font", "media", "frame", "embed")
LINK_COLUMNS = ("source", "target", "anchor", "kind", "position", "nofollow", "times", "target_reason", "target_status")
SANDBOX = "default-src 'none'; sandbox"


def page(request: Request) -> Response:
    """One page, seen in one of VIEWS; `raw` gives its source or XML as a file."""
    name, folder = folder_of(request)
    asked = request.query_params
    view, url = asked.get("view", ""), asked.get("url", "")
    if view not in VIEWS or not url:
        raise UsageError(f"name a page with url=, and perhaps a view: {', '.join(filter(None, VIEWS))}")
    with open_collection(folder, time_limit_s=READ_S) as kept:
        found = kept.page(url, house_of(request).browser.books)
        if asked.get("raw"):
            return _raw(found, view)
        summary = found.summary()
        values: dict[str, object] = {
            "title": (summary.page.title if summary.page else "") or "Page",
            "name": name,
            "page": summary,
            "view": view,
            "views": VIEWS,
        }
        values |= _of_view(kept, found, view)
    if view in ("", "place"):
        values |= _place(request, found.url, wait=view == "place")
    if view == "visits":
        values["visits"] = house_of(request).browser.page(folder, "visits", TableQuery((("url", found.url),), most=100))
    return rendering.answer(request, "page.html", values)


def _of_view(kept: Collection, found: Page, view: str) -> dict[str, object]:
    """What a view adds; where nothing was kept, why."""
    try:
        if view == "blocks":
            return {"blocks": marked(found.blocks()[:BLOCKS], found.parts())}
        if view == "source":
            return _source(found)
        if view == "xml":
            content, media_type = found.xml()
            return {
                "xml": content.decode("utf-8", "replace")[:SOURCE_CHARS],
                "xml_type": media_type,
                "cut": len(content) > SOURCE_CHARS,
            }
    except UsageError as error:
        return {"missing": str(error)}
    if view in ("visits", "place"):
        return {}
    outlinks = kept.links(source=found.url, limit=LINKS, columns=LINK_COLUMNS).to_dicts()
    pulled = Counter(str(link["kind"]) for link in outlinks if link["kind"] in PULLED)
    return {
        "inlinks": list(found.inlinks(LINKS)),
        "outlinks": outlinks,
        "pulled": dict(pulled.most_common()),
        "most": LINKS,
    }


def _place(request: Request, url: Url, *, wait: bool) -> dict[str, object]:
    """The page's place in its site's map; without waiting only where the map is at hand."""
    _, folder = folder_of(request)
    maps, site = house_of(request).maps, str(site_key(url))
    try:
        made = maps.of(folder, site) if wait else maps.at_hand(folder, site)
    except UsageError as error:
        return {"place": None, "no_place": str(error)}
    place = place_in(made, url) if made else None
    return {"place": place, "no_place": "" if made is None or place else f"It is no page of the map of {made.key}."}


def marked(blocks: Sequence[Block], parts: Sequence[Part] | None) -> list[dict[str, object]]:
    """Blocks with what they are for; "" where they are not marked."""
    named = [part.value for part in parts[: len(blocks)]] if parts is not None else [""] * len(blocks)
    return [
        {"kind": block.kind.value, "text": block.text, "part": part, "level": block.level, "path": block.path}
        for block, part in zip(blocks, named, strict=True)
    ]


def _source(found: Page) -> dict[str, object]:
    content = found.source()
    facts = found.summary().page
    text = decoded(content, facts.charset if facts else "")
    return {
        "source": text[:SOURCE_CHARS],
        "cut": len(text) > SOURCE_CHARS,
        "headers": found.headers()[1].fields,
        "size": len(content),
    }


def decoded(content: bytes, charset: str) -> str:
    """For eyes: in its encoding, or in UTF-8 where Python has no such encoding."""
    try:
        return content.decode(charset or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _raw(found: Page, view: str) -> Response:
    """As a file that no browser opens by itself."""
    content = found.xml()[0] if view == "xml" else found.source()
    ending = "xml" if view == "xml" else "txt"
    headers = {"content-disposition": f'attachment; filename="page.{ending}"', "content-security-policy": SANDBOX}
    return Response(content, media_type="application/octet-stream", headers=headers)


HITS = 10  # of one collection
HITS_EACH = 4  # of each, where all are searched
CATCH_UP_S = 3.0  # for bringing one index up to date; what is left is said
SEARCH_READ_S = 15.0
OPERATORS = {"site": "site:", "type": "type:", "language": "lang:"}  # facets that the query language can name


@dataclass(frozen=True, slots=True)
class PageSearch:
    """What one collection answers. fault: why it does not."""

    name: str
    result: SearchResult | None
    fault: str = ""


def in_one(request: Request) -> Response:
    name, folder = folder_of(request)
    query, at = _asked(request.query_params)
    found = [_searched(name, folder, query, (HITS, at))] if query else []
    return _answer(request, found, {"name": name, "at": at, "per": HITS})


def in_all(request: Request) -> Response:
    """The best of each; scores of two collections do not compare, so each stands for itself."""
    query, _ = _asked(request.query_params)
    found = (
        [
            _searched(name, folder, query, (HITS_EACH, 1))
            for name, folder in house_of(request).places.collections().items()
        ]
        if query
        else []
    )
    with_hits = sorted(found, key=lambda one: -(one.result.total if one.result else -1))
    return _answer(request, with_hits, {"at": 1, "per": HITS_EACH})


def _answer(request: Request, found: list[PageSearch], values: Mapping[str, object]) -> Response:
    told = {"title": "Search", "query": request.query_params.get("q", ""), "found": found, **values}
    return rendering.answer(
        request,
        "search.html",
        told if rendering.wants_json(request) else told | {"operators": OPERATORS, "pieces": pieces},
    )


def _asked(asked: Mapping[str, str]) -> tuple[str, int]:
    text = asked.get("at", "1")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 1000):
        raise UsageError("at is a page of hits, from 1 to 1000")
    return asked.get("q", "").strip()[:2000], int(text)


def _searched(name: str, folder: Path, query: str, place: tuple[int, int]) -> PageSearch:
    try:
        with open_collection(folder, time_limit_s=SEARCH_READ_S) as kept:
            return PageSearch(
                name, kept.search(query, limit=place[0], page=place[1], facets=True, watch=_until(CATCH_UP_S))
            )
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
