"""The first screen: what is there, what shall be fetched next, and the jobs that were asked for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api.collection import Status, open_collection
from periplus.errors import PeriplusError, UsageError
from periplus.jobs.presets import PERIODS, PRESETS, SUFFIX, JobRequest, prepared, wished
from periplus.model.job import Job, JobOrder, JobState
from periplus.model.visit import State
from periplus.ui import rendering
from periplus.ui.rendering import AppState, house_of, now
from periplus.ui.safety import form_of

READ_S = 3.0  # for one collection of the list


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """A collection in the list. fault: why nothing else is known."""

    name: str
    state: str = ""
    note: str = ""
    fetched: int = 0
    known: int = 0
    dead: int = 0
    hosts: int = 0
    size_bytes: int = 0
    last: float = 0.0
    fault: str = ""


def start(request: Request) -> Response:
    """The list of collections and the form; with a form in the address, the command that it means."""
    house = house_of(request)
    line, fault = _previewed(request.query_params)
    return _screen(request, house, line, fault)


def begin(request: Request) -> Response:
    """Asks for the job, and shows its collection as it comes."""
    house, form = house_of(request), form_of(request)
    try:
        wish = wished(form)
        prepared(wish, house.places.base)
    except UsageError as error:
        return _screen(request, house, "", str(error), form)
    give(house, wish)
    return RedirectResponse(
        rendering.address(wish.folder.removesuffix(SUFFIX), "survey" if wish.order.kind == "survey" else "live"), 303
    )


def give(house: AppState, wish: JobRequest) -> None:
    """To the queue, now, and each period where there is one."""
    with house.queue() as queue:
        if wish.period_s:
            queue.repeat(wish.order, wish.period_s, now() + wish.period_s)
        queue.add(wish.order, now())


def _previewed(asked: Mapping[str, str]) -> tuple[str, str]:
    """(command line, what is wrong) of a form in the address."""
    if not asked.get("url"):
        return "", ""
    try:
        return wished(asked).line, ""
    except UsageError as error:
        return "", str(error)


def _screen(
    request: Request, house: AppState, line: str, fault: str, form: Mapping[str, str] | None = None
) -> Response:
    """form: that was refused, to be mended."""
    presets = [preset for preset in PRESETS if preset.command in house.commands]
    with house.queue() as queue:
        open_jobs = queue.open_jobs()
    rows = [_row(name, folder) for name, folder in house.places.collections().items()]
    values = {
        "title": "Collections", "collections": rows, "presets": presets, "periods": list(PERIODS), "line": line,
        "fault": fault,
        "every": request.query_params.get("every", ""), "works": house.works, "base": house.places.base.resolve(),
        "open_jobs": open_jobs,
    }  # fmt: skip
    return rendering.answer(
        request, "start.html", values if form is None else values | {"asked": dict(form)}, 200 if form is None else 400
    )


def _row(name: str, folder: Path) -> CollectionRow:
    try:
        with open_collection(folder, time_limit_s=READ_S) as kept:
            return _of_status(name, kept.status(0))
    except PeriplusError as error:
        return CollectionRow(name, fault=str(error))


def _of_status(name: str, status: Status) -> CollectionRow:
    run = status.runs[-1] if status.runs else None
    counts = {state: sum(tally.urls for tally in status.counts if tally.state is state) for state in State}
    last = (run.ended or run.started) if run else 0.0
    note = run.note if run and not status.running else ""
    return CollectionRow(
        name,
        status.state,
        note,
        counts[State.INDEXED],
        sum(counts.values()),
        counts[State.INVALID],
        status.hosts,
        status.size_bytes,
        last,
    )


SHOWN = 100


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it is shown. line: its command; collection: its name, if it is here; then: the commands after it."""

    id: int
    state: JobState
    line: str
    collection: str
    done: int
    total: int
    note: str
    made: float
    started: float | None
    ended: float | None
    cancel_asked: bool
    then: tuple[str, ...]


def jobs(request: Request) -> Response:
    house = house_of(request)
    with house.queue() as queue:
        found, schedules = queue.jobs(most=SHOWN), queue.schedules()
    names = list(house.places.collections())
    told = [
        {
            "id": one.id,
            "line": " && ".join(map(shlex.join, (one.order.command, *one.order.then))),
            "period_s": one.period_s,
            "next_at": one.next_at,
            "paused": one.paused,
        }
        for one in schedules
    ]
    values = {
        "title": "Jobs", "jobs": [_job_row(job, names) for job in found], "schedules": told, "works": house.works,
        "base": house.places.base.resolve(),
        "collections": names, "periods": list(PERIODS),
    }  # fmt: skip
    return rendering.answer(request, "jobs.html", values)


def change(request: Request) -> Response:
    """Cancels, repeats, schedules, as a form says."""
    house, form = house_of(request), form_of(request)
    what = form.get("what", "")
    with house.queue() as queue:
        if what == "cancel":
            queue.cancel(_number(form, "job"), now())
        elif what == "again":
            queue.add(queue.job(_number(form, "job")).order, now())
        elif what in ("pause", "go"):
            queue.pause(_number(form, "schedule"), paused=what == "pause")
        elif what == "forget":
            queue.forget(_number(form, "schedule"))
        elif what == "schedule":
            period_s = PERIODS.get(form.get("every", ""), 0.0)
            if not period_s:
                raise UsageError("choose how often: each hour, day, week or month")
            queue.repeat(_order(house, form), period_s, now() + period_s)
        else:
            raise UsageError(f"nothing is known of {what!r}")
    return RedirectResponse("/jobs", 303)


def _order(house: AppState, form: dict[str, str]) -> JobOrder:
    kind = form.get("kind", "")
    if kind not in ("refresh", "check"):
        raise UsageError("what comes again is to bring a collection up to date, or to check its links")
    folder = house.places.folder(form.get("collection", "")).resolve()
    base = house.places.base.resolve()
    return JobOrder((kind, "-c", folder.name if folder.parent == base else str(folder)))


def _number(form: dict[str, str], name: str) -> int:
    try:
        return int(form.get(name, ""))
    except ValueError:
        raise UsageError(f"no {name} is named") from None


def _job_row(job: Job, names: list[str]) -> JobRow:
    command = job.order.command
    own = next((name for word in command if (name := word.removesuffix(".periplus")) != word and name in names), "")
    then = tuple(map(shlex.join, job.order.then))
    return JobRow(
        job.id,
        job.state,
        shlex.join(command),
        own,
        job.done,
        job.total,
        job.note,
        job.made,
        job.started,
        job.ended,
        job.cancel_asked,
        then,
    )
