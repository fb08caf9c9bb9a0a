"""Screens of a crawl that goes on, pushed second by second to those who watch."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
from markupsafe import escape
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from periplus.api.homes import home_of
from periplus.errors import NoCollection, PeriplusError, UsageError
from periplus.jobs.presets import gone_on
from periplus.model.job import Job, JobOrder, JobState
from periplus.model.visit import State
from periplus.present.wording import why_waits
from periplus.ui import rendering
from periplus.ui.safety import form_of
from periplus.ui.state import OPEN, AppState, MovingPart, folder_of, now, state_of
from periplus.ui.watching import Moment

EVERY_S = 1.0  # between two looks for those who watch
SHARED_S = 0.9  # as old a picture may be that is shown to others too
ALIVE_S = 15  # looks without change after which a word is sent all the same, so that nobody takes silence for death


def pushed(request: Request, key: str, make: Callable[[Request], str]) -> StreamingResponse:
    """The moving part of the screen that `key` names, whole each time that it changed."""
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


def _sequence(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _part(request: Request, key: str, make: Callable[[Request], str]) -> str:
    """The moving part of the screen: made once a second for all who watch."""
    parts = state_of(request).parts
    with parts.lock:
        part = parts.of(key, MovingPart)
        if time.monotonic() - part.made > SHARED_S:
            try:
                part.html = make(request)
            except PeriplusError as error:  # deleted, or too slow at this moment
                part.html = str(escape(str(error)))
            part.made = time.monotonic()
        return part.html


def live(request: Request) -> Response:
    return rendering.answer(request, "live.html", {"title": "Overview", **_values(request)})


def _values(request: Request) -> dict[str, object]:
    """What the screen shows; of a collection that waits for its first job no more than that."""
    state, name = state_of(request), request.path_params["name"]
    job = state.job_of(name)
    try:
        folder = state.places.folder(name)
    except NoCollection:
        if job is None:
            raise
        missing = (
            "It waits for a worker."
            if job.state is JobState.QUEUED
            else "Its first job " + ("begins." if job.state in OPEN else "ended without it.")
        )
        return {"name": name, "moment": None, "job": job, "missing": missing, "figures": (), "hosts": ()}
    moment = state.watchers.look(folder)
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
    """The moving part of the screen, whole and numbered, each time that it changed."""
    _values(request)  # refuses what is not there before the stream begins
    return pushed(request, f"live {request.path_params['name']}", _moving)


def _moving(request: Request) -> str:
    return rendering.rendered(request, "live_part.html", _values(request))


def jobs_about(state: AppState, name: str, is_about: Callable[[JobOrder], bool]) -> list[Job]:
    """The collection's open jobs of a kind; else the last that ended, where it failed."""
    jobs = [job for job in state.jobs_of(name) if is_about(job.order)]
    return [job for job in jobs if job.state in OPEN] or [job for job in jobs[:1] if job.state is JobState.FAILED]


def pause(request: Request) -> Response:
    """Has the crawl that goes on ask for nothing more, whoever began it."""
    name, folder = folder_of(request)
    if not home_of(folder).pause(now()):
        raise UsageError("no crawl goes on in it: there is nothing to pause")
    return rendering.to_screen(name, "live")


def stop(request: Request) -> Response:
    """Has the collection's job store what it has in hand and end."""
    name = request.path_params["name"]
    if not state_of(request).stop_jobs(name):
        raise UsageError(
            "no job of this queue works on it. A crawl that a terminal began is stopped there, with Ctrl-C."
        )
    return rendering.to_screen(name, "live")


def resume(request: Request) -> Response:
    """Goes on with a paused crawl; else with the collection's last one, with other limits where the form says some."""
    state, form = state_of(request), form_of(request)
    name, folder = folder_of(request)
    job = state.job_of(name)
    is_stopping = job is not None and job.state in OPEN and job.cancel_asked
    is_changed = any(form.get(field) for field in ("max_pages", "max_depth", "delay", "exclude"))
    if is_changed or is_stopping or not home_of(folder).resume(now()):
        order = gone_on(_last_crawl(state, name, folder), form)
        if is_changed:
            state.stop_jobs(name)
        state.add_job(order)
    return rendering.to_screen(name, "live")


def _fetches(command: tuple[str, ...]) -> bool:
    return command[0] in ("crawl", "check", "survey") or command[:2] == ("topic", "crawl")


def _last_crawl(state: AppState, name: str, folder: Path) -> tuple[str, ...]:
    """The command of the last crawl or check: as it was asked for here; else from the collection's starts,
    with its folder's settings.
    """
    commands = [job.order.command for job in state.jobs_of(name) if _fetches(job.order.command)]
    if commands:
        return commands[0]
    runs = state.watchers.look(folder).status.runs
    starts = next((run.starts for run in reversed(runs) if run.kind == "crawl"), ())
    if not starts:
        raise UsageError("no crawl is known to go on with")
    return ("crawl", *starts, "-o", state.folder_word(folder))
