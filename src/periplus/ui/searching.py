"""Which pages hold these words, in one collection or in all?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from periplus.api.collection import open_collection
from periplus.errors import PeriplusError, UsageError
from periplus.model.search import SearchResult
from periplus.ui import rendering
from periplus.ui.house import folder_of, house_of

HITS = 10  # of one collection
HITS_EACH = 4  # of each, where all are searched
CATCH_UP_S = 3.0  # for bringing one index up to date; what is left is said
READ_S = 15.0
OPERATORS = {"site": "site:", "type": "type:", "language": "lang:"}  # facets that the query language can name


@dataclass(frozen=True, slots=True)
class Found:
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
    found = [_searched(name, folder, query, (HITS_EACH, 1)) for name, folder in house_of(request).places.collections().items()] if query else []
    with_hits = sorted(found, key=lambda one: -(one.result.total if one.result else -1))
    return _answer(request, with_hits, {"at": 1, "per": HITS_EACH})


def _answer(request: Request, found: list[Found], values: Mapping[str, object]) -> Response:
    told = {"title": "Search", "query": request.query_params.get("q", ""), "found": found, **values}
    return rendering.answer(request, "search.html", told if rendering.wants_json(request) else told | {"operators": OPERATORS, "pieces": pieces})


def _asked(asked: Mapping[str, str]) -> tuple[str, int]:
    text = asked.get("at", "1")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 1000):
        raise UsageError("at is a page of hits, from 1 to 1000")
    return asked.get("q", "").strip()[:2000], int(text)


def _searched(name: str, folder: Path, query: str, place: tuple[int, int]) -> Found:
    try:
        with open_collection(folder, time_limit_s=READ_S) as kept:
            return Found(name, kept.search(query, limit=place[0], page=place[1], facets=True, watch=_until(CATCH_UP_S)))
    except PeriplusError as error:
        return Found(name, None, str(error))


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
