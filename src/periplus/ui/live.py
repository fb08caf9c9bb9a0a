"""Screens of a crawl that goes on, pushed second by second to those who watch."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import anyio
from markupsafe import escape
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from periplus.api.homes import home_of
from periplus.api.watching import Moment
from periplus.errors import NoCollection, PeriplusError, UsageError
from periplus.jobs.presets import SUFFIX, folder_name, gone_on
from periplus.model.job import Job, JobOrder, JobState
from periplus.model.visit import State
from periplus.present.wording import why_waits
from periplus.ui import rendering
from periplus.ui.rendering import AppState, folder_of, house_of, now
from periplus.ui.safety import form_of

EVERY_S = 1.0  # between two looks for those who watch
SHARED_S = 0.9  # as old a picture may be that is shown to others too
PARTS_REMEMBERED = 50  # of screens that are watched
ALIVE_S = 15  # looks without change after which a word is sent all the same, so that nobody takes silence for death


def pushed(request: Request, key: str, make: Callable[[Request], str]) -> StreamingResponse:
    """The moving part of the screen that `key` names, whole each time that it changed: whoever missed some misses nothing."""  # noqa: E501
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


def _remember(house: AppState, key: str, part: str) -> None:
    house.parts[key] = time.monotonic(), part
    if len(house.parts) > PARTS_REMEMBERED:
        del house.parts[next(iter(house.parts))]


OPEN = (JobState.QUEUED, JobState.RUNNING)
JOBS_LOOKED_AT = 200


def live(request: Request) -> Response:
    return rendering.answer(request, "live.html", {"title": "Overview", **_values(request)})


def _values(request: Request) -> dict[str, object]:
    """What the screen shows; of a collection that waits for its first job no more than that."""
    house, name = house_of(request), request.path_params["name"]
    job = job_of(house, name)
    try:
        folder = house.places.folder(name)
    except NoCollection:
        if job is None:
            raise
        missing = (
            "It waits for a worker."
            if job.state is JobState.QUEUED
            else "Its first job " + ("begins." if job.state in OPEN else "ended without it.")
        )
        return {"name": name, "moment": None, "job": job, "missing": missing, "figures": (), "hosts": ()}
    moment = house.watchers.look(folder)
    hosts = [(host, why_waits(host, moment.state)) for host in moment.status.busiest]
    return {"name": name, "moment": moment, "job": job, "missing": "", "figures": figures(moment), "hosts": hosts}


def figures(moment: Moment) -> list[tuple[str, int, str]]:
    """(word, URLs, the filter of the table of pages that shows just these)."""
    counts = {state: sum(tally.urls for tally in moment.status.counts if tally.state is state) for state in State}
    waiting = sum(tally.urls for tally in moment.status.counts if tally.reason.value == "waiting")
    return [
        ("known", sum(counts.values()), ""), ("fetched", counts[State.INDEXED], "?state=indexed"),
        ("waiting", waiting, "?reason=waiting"),
        ("known, not fetched", counts[State.REGISTERED], "?state=registered"),
        ("left aside", counts[State.IGNORED], "?state=ignored"),
        ("dead", counts[State.INVALID], "?state=invalid"),
    ]  # fmt: skip


def events(request: Request) -> Response:
    """The moving part of the screen, whole and numbered, each time that it changed: whoever missed some misses nothing."""  # noqa: E501
    _values(request)  # refuses what is not there before the stream begins
    return pushed(request, f"live {request.path_params['name']}", _moving)


def _moving(request: Request) -> str:
    return rendering.rendered(request, "live_part.html", _values(request))


def job_of(house: AppState, name: str) -> Job | None:
    """The latest job that works on the collection: one that is open, else the last that ended."""
    with house.queue() as queue:
        found = queue.jobs(most=JOBS_LOOKED_AT)
    return next((job for job in found if works_on(job, name, house.places.collections())), None)


def jobs_about(house: AppState, name: str, is_about: Callable[[JobOrder], bool]) -> list[Job]:
    """The collection's open jobs of a kind; else the last that ended, where it failed."""
    known = house.places.collections()
    with house.queue() as queue:
        ours = [job for job in queue.jobs(most=JOBS_LOOKED_AT) if is_about(job.order) and works_on(job, name, known)]
    return [job for job in ours if job.state in OPEN] or [job for job in ours[:1] if job.state is JobState.FAILED]


def works_on(job: Job, name: str, known: Mapping[str, Path]) -> bool:
    folder = known.get(name)
    return any(
        word == name + SUFFIX or (folder is not None and word == str(folder.resolve())) for word in job.order.command
    )


def pause(request: Request) -> Response:
    """Has the crawl that goes on ask for nothing more, whoever began it."""
    name, folder = folder_of(request)
    if not home_of(folder).pause(now()):
        raise UsageError("no crawl goes on in it: there is nothing to pause")
    return RedirectResponse(rendering.address(name, "live"), 303)


def stop(request: Request) -> Response:
    """Has the collection's job store what it has in hand and end."""
    house, name = house_of(request), request.path_params["name"]
    if not stop_jobs(house, name):
        raise UsageError(
            "no job of this queue works on it. A crawl that a terminal began is stopped there, with Ctrl-C."
        )
    return RedirectResponse(rendering.address(name, "live"), 303)


def stop_jobs(house: AppState, name: str) -> bool:
    known = house.places.collections()
    with house.queue() as queue:
        mine = [job for job in queue.jobs(most=JOBS_LOOKED_AT) if job.state in OPEN and works_on(job, name, known)]
        for job in mine:
            queue.cancel(job.id, now())
    return bool(mine)


def resume(request: Request) -> Response:
    """Goes on with a paused crawl; else with the collection's last one, with other limits where the form says some."""
    house, form = house_of(request), form_of(request)
    name, folder = folder_of(request)
    changed = any(form.get(field) for field in ("max_pages", "max_depth", "delay", "exclude"))
    if changed or _is_stopping(house, name) or not home_of(folder).resume(now()):
        order = gone_on(_last_crawl(house, name, folder), form)
        if changed:
            stop_jobs(house, name)
        with house.queue() as queue:
            queue.add(order, now())
    return RedirectResponse(rendering.address(name, "live"), 303)


def _is_stopping(house: AppState, name: str) -> bool:
    job = job_of(house, name)
    return job is not None and job.state in OPEN and job.cancel_asked


def _fetches(command: tuple[str, ...]) -> bool:
    return command[0] in ("crawl", "check", "survey") or command[:2] == ("topic", "crawl")


def _last_crawl(house: AppState, name: str, folder: Path) -> tuple[str, ...]:
    """The command of the last crawl or check: as it was asked for here; else from the collection's starts,
    with its folder's settings.
    """
    known = house.places.collections()
    with house.queue() as queue:
        ours = [
            job.order.command
            for job in queue.jobs(most=JOBS_LOOKED_AT)
            if _fetches(job.order.command) and works_on(job, name, known)
        ]
    if ours:
        return ours[0]
    runs = house.watchers.look(folder).status.runs
    starts = next((run.starts for run in reversed(runs) if run.kind == "crawl"), ())
    if not starts:
        raise UsageError("no crawl is known to go on with")
    return (
        "crawl",
        *starts,
        "-o",
        folder_name(name) if folder.resolve().parent == house.places.base.resolve() else str(folder.resolve()),
    )
