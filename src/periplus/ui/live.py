"""How does a crawl stand, second by second? Pushed while somebody watches; and how is it paused, stopped and gone on with?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api.homes import home_of
from periplus.api.watching import Moment
from periplus.errors import NoCollection, UsageError
from periplus.jobs.presets import SUFFIX, folder_name, gone_on
from periplus.model.job import Job, JobOrder, JobState
from periplus.model.visit import State
from periplus.present.wording import why_waits
from periplus.ui import rendering
from periplus.ui.house import House, folder_of, house_of, now
from periplus.ui.pushing import pushed
from periplus.ui.safety import form_of

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
        missing = "It waits for a worker." if job.state is JobState.QUEUED else "Its first job " + ("begins." if job.state in OPEN else "ended without it.")
        return {"name": name, "moment": None, "job": job, "missing": missing, "figures": (), "hosts": ()}
    moment = house.watchers.look(folder)
    hosts = [(host, why_waits(host, moment.state)) for host in moment.status.busiest]
    return {"name": name, "moment": moment, "job": job, "missing": "", "figures": figures(moment), "hosts": hosts}


def figures(moment: Moment) -> list[tuple[str, int, str]]:
    """(word, URLs, the filter of the table of pages that shows just these)."""
    counts = {state: sum(tally.urls for tally in moment.status.counts if tally.state is state) for state in State}
    waiting = sum(tally.urls for tally in moment.status.counts if tally.reason.value == "waiting")
    return [
        ("known", sum(counts.values()), ""), ("fetched", counts[State.INDEXED], "?state=indexed"), ("waiting", waiting, "?reason=waiting"),
        ("known, not fetched", counts[State.REGISTERED], "?state=registered"), ("left aside", counts[State.IGNORED], "?state=ignored"),
        ("dead", counts[State.INVALID], "?state=invalid"),
    ]  # fmt: skip


def events(request: Request) -> Response:
    """The moving part of the screen, whole and numbered, each time that it changed: whoever missed some misses nothing."""
    _values(request)  # refuses what is not there before the stream begins
    return pushed(request, f"live {request.path_params['name']}", _moving)


def _moving(request: Request) -> str:
    return rendering.rendered(request, "live_part.html", _values(request))


def job_of(house: House, name: str) -> Job | None:
    """The latest job that works on the collection: one that is open, else the last that ended."""
    with house.queue() as queue:
        found = queue.jobs(most=JOBS_LOOKED_AT)
    return next((job for job in found if works_on(job, name, house.places.collections())), None)


def jobs_about(house: House, name: str, is_about: Callable[[JobOrder], bool]) -> list[Job]:
    """The collection's open jobs of a kind; else the last that ended, where it failed."""
    known = house.places.collections()
    with house.queue() as queue:
        ours = [job for job in queue.jobs(most=JOBS_LOOKED_AT) if is_about(job.order) and works_on(job, name, known)]
    return [job for job in ours if job.state in OPEN] or [job for job in ours[:1] if job.state is JobState.FAILED]


def works_on(job: Job, name: str, known: Mapping[str, Path]) -> bool:
    folder = known.get(name)
    return any(word == name + SUFFIX or (folder is not None and word == str(folder.resolve())) for word in job.order.command)


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
        raise UsageError("no job of this queue works on it. A crawl that a terminal began is stopped there, with Ctrl-C.")
    return RedirectResponse(rendering.address(name, "live"), 303)


def stop_jobs(house: House, name: str) -> bool:
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


def _is_stopping(house: House, name: str) -> bool:
    job = job_of(house, name)
    return job is not None and job.state in OPEN and job.cancel_asked


def _fetches(command: tuple[str, ...]) -> bool:
    return command[0] in ("crawl", "check", "survey") or command[:2] == ("topic", "crawl")


def _last_crawl(house: House, name: str, folder: Path) -> tuple[str, ...]:
    """The command of the last crawl or check: as it was asked for here; else from the collection's starts, with its folder's settings."""
    known = house.places.collections()
    with house.queue() as queue:
        ours = [job.order.command for job in queue.jobs(most=JOBS_LOOKED_AT) if _fetches(job.order.command) and works_on(job, name, known)]
    if ours:
        return ours[0]
    runs = house.watchers.look(folder).status.runs
    starts = next((run.starts for run in reversed(runs) if run.kind == "crawl"), ())
    if not starts:
        raise UsageError("no crawl is known to go on with")
    return ("crawl", *starts, "-o", folder_name(name) if folder.resolve().parent == house.places.base.resolve() else str(folder.resolve()))
