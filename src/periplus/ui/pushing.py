"""How does the moving part of a screen reach those who watch it? Whole and numbered, each time that it changed; made once for all of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

import anyio
from markupsafe import escape
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from periplus.errors import PeriplusError
from periplus.ui.house import House, house_of

EVERY_S = 1.0  # between two looks for those who watch
SHARED_S = 0.9  # as old a picture may be that is shown to others too
PARTS_REMEMBERED = 50  # of screens that are watched
ALIVE_S = 15  # looks without change after which a word is sent all the same, so that nobody takes silence for death


def pushed(request: Request, key: str, make: Callable[[Request], str]) -> StreamingResponse:
    """The moving part of the screen that `key` names, whole each time that it changed: whoever missed some misses nothing."""
    return StreamingResponse(_stream(request, key, make), media_type="text/event-stream")


async def _stream(request: Request, key: str, make: Callable[[Request], str]) -> AsyncIterator[str]:
    last, sent, quiet = "", _sequence(request.headers.get("last-event-id", "")), 0
    while True:
        part = await run_in_threadpool(_part, request, key, make)
        quiet = 0 if part != last else quiet + 1
        if part != last:
            last, sent = part, sent + 1
            data = "".join(f"data: {line}\n" for line in part.splitlines())
            yield f"id: {sent}\nevent: moment\n{data}\n"
        elif quiet % ALIVE_S == 0:
            yield ": still here\n\n"
        await anyio.sleep(EVERY_S)


def _sequence(said: str) -> int:
    return int(said) if said.isascii() and said.isdigit() and len(said) < 16 else 0


def _part(request: Request, key: str, make: Callable[[Request], str]) -> str:
    """The moving part of the screen: made once a second for all who watch."""
    house = house_of(request)
    with house.part_lock:
        made, part = house.parts.get(key, (0.0, ""))
        if time.monotonic() - made > SHARED_S:
            part = _made(request, make)
            _remember(house, key, part)
        return part


def _made(request: Request, make: Callable[[Request], str]) -> str:
    try:
        return make(request)
    except PeriplusError as error:  # deleted, or too slow at this moment
        return str(escape(str(error)))


def _remember(house: House, key: str, part: str) -> None:
    house.parts[key] = time.monotonic(), part
    if len(house.parts) > PARTS_REMEMBERED:
        del house.parts[next(iter(house.parts))]
