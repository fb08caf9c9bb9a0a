"""The first screen: what is there, what shall be fetched next, and the jobs that were asked for."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api.collection import Status
from periplus.api.functions import open_collection
from periplus.errors import PeriplusError, UsageError
from periplus.files import replace_file
from periplus.jobs.presets import CONSENTS, PERIODS, everyday_values, job_presets, job_request, period, whole
from periplus.jobs.setting_fields import EVERYDAY, in_words, setting_groups, setting_values, with_preset
from periplus.model.job import Job, JobOrder
from periplus.model.visit import State, urls_by_state
from periplus.settings import SETTINGS_FILE, SUFFIX, read_presets
from periplus.ui import rendering
from periplus.ui.safety import form_of
from periplus.ui.state import AppState, now, state_of
from periplus.values import Place, fields_of, frozen

NO_RUN = "none"  # in place of the state of a collection without a run
READ_S = 3.0  # for one collection of the list
# states that need attention first
STATES = ("killed", "failed", "suspicious", "running", "paused", "stopped", "done", "")
MANY = 8  # collections: from so many on the list can be narrowed
_SUMS = ("fetched", "urls", "failed", "hosts", "size_bytes")
_ORDERS: Mapping[str, Callable[[CollectionRow], Any]] = {
    "name": lambda row: row.name.casefold(),
    "state": lambda row: (not row.fault, STATES.index(row.state) if row.state in STATES else -1),
    **{name: attrgetter(name) for name in (*_SUMS, "last")},
}
"""By what the list may be ordered."""
COLUMNS = (  # of the list: what it is ordered by, the word for it, and its classes
    ("name", "Name", ""), ("state", "State", ""), ("fetched", "Fetched", "n"), ("urls", "URLs", "n"),
    ("failed", "Failed", "n"), ("hosts", "Hosts", "n wide"), ("size_bytes", "On disk", "n wide"),
    ("last", "Last run", "wide"),
)  # fmt: skip
MOST_JOBS = 100


@frozen
class CollectionRow:
    """A collection in the list. fault: why it cannot be read."""

    name: str
    state: str = ""
    note: str = ""
    fetched: int = 0
    urls: int = 0
    failed: int = 0
    hosts: int = 0
    size_bytes: int = 0
    last: float = 0.0
    fault: str = ""


def sort_rows(rows: Iterable[CollectionRow], sort: str) -> list[CollectionRow]:
    """The rows by one of `_ORDERS`, - before it turns it round; by name where it is no such word."""
    by_name = sorted(rows, key=_ORDERS["name"])
    order = _ORDERS.get(sort.removeprefix("-"), _ORDERS["name"])
    return sorted(by_name, key=order, reverse=sort.startswith("-"))


def sum_rows(rows: Sequence[CollectionRow]) -> CollectionRow:
    """All rows as one; last: of the latest run."""
    sums = {name: sum(getattr(row, name) for row in rows) for name in _SUMS}
    return CollectionRow("", **sums, last=max((row.last for row in rows), default=0.0))


def start(request: Request, refused: rendering.RefusedForm | None = None) -> Response:
    """The list of collections and the form; with a form in the address, the command that it means."""
    state = state_of(request)
    with state.queue() as queue:
        open_jobs = queue.open_jobs()
    files = state.settings_files()
    presets = read_presets(files)
    local = not state.locks.is_shared
    rows = [_row(name, place) for name, place in state.places.collections().items()]
    chosen = {name: text for name in ("named", "state", "sort") if (text := request.query_params.get(name, ""))}
    shown = [
        row
        for row in rows
        if chosen.get("named", "").casefold() in row.name.casefold()
        and chosen.get("state", row.state or NO_RUN) == (row.state or NO_RUN)
    ]
    values = {
        "title": "Collections",
        "collections": sort_rows(shown, chosen.get("sort", "")),
        "total": sum_rows(shown), "in_all": len(rows), "chosen": chosen,
        "states": Counter(row.state or NO_RUN for row in sort_rows(rows, "state") if not row.fault),
        "presets": [preset for preset in job_presets().values() if preset.command in state.commands],
        "periods": list(PERIODS),
        "every": request.query_params.get("every", ""), "works": state.works,
        "base": state.places.base.resolve(), "open_jobs": open_jobs, "consents": offered_consents(state),
        "settings_presets": list(presets.values()),
    }  # fmt: skip
    if not rendering.wants_json(request):
        asked = refused[0] if refused else request.query_params
        groups = setting_groups(files, presets.get(asked.get("settings_preset", "")), local=local)
        usual = {field.row.name: field for group in groups for field in group.fields if field.row.name in EVERYDAY}
        values |= {"groups": groups, "everyday": EVERYDAY, "usual": usual, "in_words": in_words}
        values |= {"many": MANY, "no_run": NO_RUN, "columns": COLUMNS}
    return rendering.answer_form(
        request,
        "start.html",
        values,
        lambda asked: job_request(asked, presets, local=local).line if asked.get("url") else "",
        refused,
    )


def offered_consents(state: AppState) -> dict[str, str]:
    """Consents of this server: for private addresses only if no other machine can connect."""
    return {name: words for name, words in CONSENTS.items() if name != "consent_private" or not state.locks.is_shared}


def allows_private(state: AppState, form: Mapping[str, str]) -> bool:
    """Whether a form consents to private addresses. Raises UsageError where others can ask this server."""
    if form.get("consent_private") and state.locks.is_shared:
        raise UsageError(
            "private addresses are allowed only if the server listens on this machine alone: else write "
            "allow_private = true into the periplus.toml beside the collections, or into the collection's own"
        )
    return form.get("consent_private") == "yes"


def begin(request: Request) -> Response:
    """Asks for the job, and shows its collection as it comes."""
    state, form = state_of(request), form_of(request)
    try:
        allows_private(state, form)
        job = job_request(form, read_presets(state.settings_files()), local=not state.locks.is_shared)
        if job.prepare is not None:
            job.prepare(state.places.base / job.folder)
    except UsageError as error:
        return start(request, (form, str(error)))
    with state.queue() as queue:
        if job.period_s:
            queue.repeat(job.order, job.period_s, now() + job.period_s)
        queue.add(job.order, now())
    return rendering.to_screen(job.folder.removesuffix(SUFFIX), job.screen)


def save_preset(request: Request) -> Response:
    """Writes what a form sets into the periplus.toml beside the collections, as a preset of the name that it gives."""
    state, form = state_of(request), form_of(request)
    path = state.places.base / SETTINGS_FILE
    try:
        name = form.get("preset_name", "").strip()
        values = everyday_values(form) | setting_values(form, local=not state.locks.is_shared)
        text = with_preset(path.read_text("utf-8") if path.is_file() else "", name, values)
        replace_file(path, text.encode())
    except UsageError as error:
        return start(request, (form, str(error)))
    except OSError as error:
        return start(request, (form, f"{path} cannot be written: {error.strerror}"))
    return RedirectResponse(f"/new?settings_preset={quote(name)}", 303)


def _row(name: str, place: Place) -> CollectionRow:
    try:
        with open_collection(place, time_limit_s=READ_S) as collection:
            return _status_row(name, collection.status(0))
    except PeriplusError as error:
        return CollectionRow(name, fault=str(error))


def _status_row(name: str, status: Status) -> CollectionRow:
    run = status.runs[-1] if status.runs else None
    counts = urls_by_state(status.counts)
    last = (run.ended or run.started) if run else 0.0
    note = run.note if run and not status.running else ""
    return CollectionRow(
        name,
        status.state,
        note,
        counts[State.FETCHED],
        sum(counts.values()),
        counts[State.FAILED],
        status.hosts,
        status.size_bytes,
        last,
    )


@frozen
class JobRow:
    """A job as it is shown. line: its command; collection: its name, if it is here; then: the commands after it."""

    job: Job
    line: str
    collection: str
    then: tuple[str, ...]


def jobs(request: Request) -> Response:
    state = state_of(request)
    with state.queue() as queue:
        latest, schedules = queue.jobs(most=MOST_JOBS), queue.schedules()
    names = list(state.places.collections())
    rows = [
        {
            "id": schedule.id,
            "line": " && ".join(map(shlex.join, (schedule.order.command, *schedule.order.then))),
            **fields_of(schedule, "period_s next_at paused"),
        }
        for schedule in schedules
    ]
    values = {
        "title": "Jobs", "jobs": [_job_row(job, names) for job in latest], "schedules": rows, "works": state.works,
        "base": state.places.base.resolve(), "collections": names, "periods": list(PERIODS),
    }  # fmt: skip
    return rendering.answer(request, "jobs.html", values)


def change(request: Request) -> Response:
    """Cancels, repeats or schedules a job."""
    state, form = state_of(request), form_of(request)
    what = form.get("what", "")
    with state.queue() as queue:
        if what == "cancel":
            queue.cancel(number(form, "job"), now())
        elif what == "again":
            queue.add(queue.job(number(form, "job")).order, now())
        elif what in ("pause", "go"):
            queue.pause(number(form, "schedule"), paused=what == "pause")
        elif what == "forget":
            queue.forget(number(form, "schedule"))
        elif what == "schedule":
            period_s = period(form)
            if not period_s:
                raise UsageError("choose how often: each hour, day, week or month")
            queue.repeat(renewal(state, form), period_s, now() + period_s)
        else:
            raise UsageError(f"unknown action {what!r}")
    return RedirectResponse("/jobs", 303)


def renewal(state: AppState, form: Mapping[str, str]) -> JobOrder:
    """The job that refreshes the collection of a form, or checks its links. Raises UsageError, NoCollection."""
    kind = form.get("kind", "")
    if kind not in ("refresh", "check"):
        raise UsageError("choose refresh, or check")
    return JobOrder((kind, "-c", state.folder_word(state.places.place(form.get("collection", "")))))


def number(form: Mapping[str, str], name: str) -> int:
    """The row named by a form. Raises UsageError."""
    return whole(form, name, 0, 1, 10**17)


def _job_row(job: Job, names: list[str]) -> JobRow:
    command = job.order.command
    own = next((name for word in command if (name := word.removesuffix(".periplus")) != word and name in names), "")
    return JobRow(job, shlex.join(command), own, tuple(map(shlex.join, job.order.then)))
