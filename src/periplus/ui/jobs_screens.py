"""What was asked for, how far is it, and what comes again?"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.errors import UsageError
from periplus.jobs.presets import PERIODS
from periplus.model.job import Job, JobOrder, JobState
from periplus.ui import rendering
from periplus.ui.house import House, house_of, now
from periplus.ui.safety import form_of

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
        "title": "Jobs", "jobs": [_row(job, names) for job in found], "schedules": told, "works": house.works, "base": house.places.base.resolve(),
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


def _order(house: House, form: dict[str, str]) -> JobOrder:
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


def _row(job: Job, names: list[str]) -> JobRow:
    command = job.order.command
    own = next((name for word in command if (name := word.removesuffix(".periplus")) != word and name in names), "")
    then = tuple(map(shlex.join, job.order.then))
    return JobRow(job.id, job.state, shlex.join(command), own, job.done, job.total, job.note, job.made, job.started, job.ended, job.cancel_asked, then)
