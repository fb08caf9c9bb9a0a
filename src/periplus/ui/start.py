"""What is there, and what shall be fetched next? The first screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api.collection import Status, open_collection
from periplus.errors import PeriplusError, UsageError
from periplus.jobs.presets import PERIODS, PRESETS, SUFFIX, Wished, prepared, wished
from periplus.model.visit import State
from periplus.ui import rendering
from periplus.ui.house import House, house_of, now
from periplus.ui.safety import form_of

READ_S = 3.0  # for one collection of the list


@dataclass(frozen=True, slots=True)
class Row:
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
    return RedirectResponse(rendering.address(wish.folder.removesuffix(SUFFIX), "survey" if wish.order.kind == "survey" else "live"), 303)


def give(house: House, wish: Wished) -> None:
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


def _screen(request: Request, house: House, line: str, fault: str, form: Mapping[str, str] | None = None) -> Response:
    """form: that was refused, to be mended."""
    presets = [preset for preset in PRESETS if preset.command in house.commands]
    with house.queue() as queue:
        open_jobs = queue.open_jobs()
    rows = [_row(name, folder) for name, folder in house.places.collections().items()]
    values = {
        "title": "Collections", "collections": rows, "presets": presets, "periods": list(PERIODS), "line": line, "fault": fault,
        "every": request.query_params.get("every", ""), "works": house.works, "base": house.places.base.resolve(), "open_jobs": open_jobs,
    }  # fmt: skip
    return rendering.answer(request, "start.html", values if form is None else values | {"asked": dict(form)}, 200 if form is None else 400)


def _row(name: str, folder: Path) -> Row:
    try:
        with open_collection(folder, time_limit_s=READ_S) as kept:
            return _of_status(name, kept.status(0))
    except PeriplusError as error:
        return Row(name, fault=str(error))


def _of_status(name: str, status: Status) -> Row:
    run = status.runs[-1] if status.runs else None
    counts = {state: sum(tally.urls for tally in status.counts if tally.state is state) for state in State}
    last = (run.ended or run.started) if run else 0.0
    note = run.note if run and not status.running else ""
    return Row(name, status.state, note, counts[State.INDEXED], sum(counts.values()), counts[State.INVALID], status.hosts, status.size_bytes, last)
