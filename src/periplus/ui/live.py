"""Screens of a running crawl, pushed every second to the browsers that show it."""

from __future__ import annotations

import io
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from periplus.api import homes
from periplus.api.overview import Overview
from periplus.api.page_segments import replace_text, rules_file, write_rules
from periplus.errors import NoCollection, PeriplusError, UsageError
from periplus.features import service
from periplus.jobs.presets import resume_order
from periplus.jobs.setting_fields import (
    EVERYDAY,
    PREFIX,
    login_table,
    setting_groups,
    with_login,
)
from periplus.model.job import Job, JobOrder, JobState
from periplus.model.visit import FETCHED_REASONS, Reason, State, urls_by_state
from periplus.present.charts import Area, write_areas
from periplus.present.diff import GRADE_LINES, trend_lines, write_run_lines
from periplus.present.wording import why_waits
from periplus.settings import read_tables, segments_written
from periplus.ui import rendering
from periplus.ui.safety import form_of
from periplus.ui.start import allows_private, offered_consents, renewal
from periplus.ui.state import OPEN, AppState, MovingPart, now, place_read, state_of
from periplus.ui.watching import Folder, Moment
from periplus.values import Place

EVERY_S = 1.0  # seconds between updates
SHARED_S = 0.9  # as old a picture may be that is shown to others too
WAIT_S = 0.5  # for what takes long; it goes on, and comes by the stream
MANY_ERRORS = 0.1  # share of a folder's pages
ALIVE_S = 15  # updates without change after which a comment keeps the connection alive


def push(request: Request, key: str, make: Callable[[Request], str]) -> StreamingResponse:
    """The moving part of the screen that `key` names, as the user's role sees it, whole each time that it changed."""
    key = f"{key} for {request.scope['periplus']['role']}"
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
    """The moving part of the screen: made once a second for all browsers."""
    parts = state_of(request).parts
    with parts.lock:
        part = parts.get_or_make(key, MovingPart)
        if time.monotonic() - part.made > SHARED_S:
            try:
                part.html = make(request)
            except PeriplusError as error:  # deleted, or too slow at this moment
                part.html = str(escape(str(error)))
            part.made = time.monotonic()
        return part.html


def live(request: Request) -> Response:
    """Overview of the collection, live during a crawl."""
    return rendering.answer(request, "live.html", {"title": "Overview", **_values(request, WAIT_S)})


def _values(request: Request, wait_s: float = 0.0) -> dict[str, object]:
    """Values of the screen; for a collection that waits for its first job only that job.

    wait_s: for the faults, which are computed when no crawl is running.
    """
    state, name = state_of(request), request.path_params["name"]
    job = state.job_of(name)
    try:
        moment = state.watchers.look(place := state.places.place(name))
    except NoCollection:  # a first run that fails creates the collection and deletes it
        if job is None:
            raise
        missing = (
            "Waiting for a worker."
            if job.state is JobState.QUEUED
            else "Its first job " + ("begins." if job.state in OPEN else "ended without it.")
        )
        return {"name": name, "moment": None, "job": job, "missing": missing, "figures": (),
            "failure": job.note if job.state is JobState.FAILED else "", "consents": offered_consents(state), "read": 0,
            "overview": None}  # fmt: skip
    hosts = [(host, why_waits(host, moment.state)) for host in moment.status.busiest]
    overview = None
    read = sum(tally.urls for tally in moment.status.counts if tally.reason in FETCHED_REASONS)
    if read and moment.state not in ("", "running", "paused"):
        overview = state.browser.overview(place, WAIT_S if rendering.wants_json(request) and not wait_s else wait_s)
    values: dict[str, object] = {
        "name": name, "moment": moment, "job": job, "missing": "", "figures": figures(moment), "hosts": hosts,
        "failure": moment.note if moment.state == "failed" else "", "consents": offered_consents(state), "read": read,
        "overview": overview, "left_out": left_out(moment), "waiting": waiting(moment),
    }  # fmt: skip
    if not rendering.wants_json(request):
        values |= {"drawings": drawings(name, moment, overview), "folders": health(moment, overview)}
    return values


def left_out(moment: Moment) -> list[tuple[Reason, int]]:
    """Why addresses were not read, and how many for each reason, most first."""
    counts = [(tally.reason, tally.urls) for tally in moment.status.counts if tally.state is not State.FETCHED]
    return sorted(counts, key=lambda row: -row[1])


def waiting(moment: Moment) -> int:
    return sum(tally.urls for tally in moment.status.counts if tally.reason is Reason.WAITING)


def health(moment: Moment, overview: Overview | None) -> list[tuple[Folder, int, str]]:
    """Each folder with its number of pages with errors, and its colour: teal for none, red above MANY_ERRORS, grey
    where it is not known.
    """
    counts = overview.with_errors if overview else {}
    named = [(folder, counts.get(folder.prefix, 0)) for folder in moment.tree.folders]
    return [
        (folder, bad, _hue(bad / max(folder.pages, 1)) if overview and folder.prefix else "grey")
        for folder, bad in named
    ]


def _hue(share: float) -> str:
    return "teal" if not share else "red" if share > MANY_ERRORS else "amber"


def drawings(name: str, moment: Moment, overview: Overview | None) -> dict[str, Markup]:
    """`areas`: folders by their pages; `grades`, `runs`: lines over the runs, where there are two."""
    made, out = dict.fromkeys(("areas", "grades", "runs"), Markup()), io.StringIO()
    folders = health(moment, overview)
    if len(folders) > 1:
        root = rendering.address(name, "t/pages")
        areas = [
            Area(folder.name, folder.pages, hue, f"{root}?url={quote(f'~://{folder.prefix}')}" if folder.prefix else "")
            for folder, _, hue in folders
        ]
        write_areas(areas, f"Fetched pages of {name} by folder", out)
        made["areas"] = Markup(out.getvalue())  # what it shows of the web was escaped as it was written
    for title, lines in trend_lines(overview.history if overview else ()):
        out = io.StringIO()
        write_run_lines(lines, title, out)
        made["grades" if title == GRADE_LINES else "runs"] += Markup(out.getvalue())
    return made


def figures(moment: Moment) -> list[tuple[str, int, str]]:
    """(word, URLs, the filter of the table of pages that shows just these)."""
    counts = urls_by_state(moment.status.counts)
    return [
        ("URLs", sum(counts.values()), ""), ("fetched", counts[State.FETCHED], "?state=fetched"),
        ("waiting", waiting(moment), "?reason=waiting"),
        ("discovered", counts[State.DISCOVERED], "?state=discovered"),
        ("excluded", counts[State.EXCLUDED], "?state=excluded"),
        ("failed", counts[State.FAILED], "?state=failed"),
    ]  # fmt: skip


def settings(request: Request, refused: rendering.RefusedForm | None = None) -> Response:
    """Settings of the collection with their sources, limits, and deletion."""
    name, place = place_read(request)
    state, is_stored = state_of(request), isinstance(place, str)
    file = rules_file(place).absolute() if is_stored else rules_file(place)
    files = state.settings_files(place if isinstance(place, Path) else None)
    groups = setting_groups(files, local=not state.locks.is_shared)
    shown: dict[str, object] = {"title": "Settings", "name": name, "groups": groups, "file": str(file)}
    if not rendering.wants_json(request):
        of_login = refused is not None and "login_name" in refused[0]
        shown |= {"everyday": EVERYDAY, **_segments(state, place, None if of_login else refused)}
        shown |= {"is_stored": is_stored, **_logins(state, place, refused if of_login else None)}
    return rendering.answer(request, "settings.html", shown, 400 if refused else 200)


def _segments(state: AppState, place: Place, refused: rendering.RefusedForm | None) -> dict[str, object]:
    """The rules of segments as they are written, and how many URLs each has; or why what was written cannot be."""
    rules = segments_written(_read_text(rules_file(place))) or segments_written(homes.home_of(place).rules_text())
    made: dict[str, object] = {"rules": rules, "segments": {}, "fault": ""}
    if refused:
        return made | {"rules": refused[0].get("rules", ""), "fault": refused[1]}
    try:
        segments = state.browser.segments(place)
        return made | {"segments": segments.counts() if segments else {}}
    except UsageError as error:
        return made | {"fault": str(error)}


def name_segments(request: Request) -> Response:
    """Writes the rules of segments that a form gives into the collection's periplus.toml, or its database."""
    (name, place), form = place_read(request), form_of(request)
    try:
        write_rules(place, form.get("rules", ""))
    except UsageError as error:
        return settings(request, (form, str(error)))
    return rendering.to_screen(name, "settings#segments")


def _read_text(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""


def _logins(state: AppState, place: Place, refused: rendering.RefusedForm | None) -> dict[str, object]:
    """The logins that crawls of the collection use, without their secrets; what a refused form had, and why."""
    tables = read_tables(rules_file(place))
    used = tables.get("settings", {}).get("login", [])
    logins = {name: table.get("form") or " ".join(table.get("hosts", [])) for name, table in _login_tables(tables)}
    return {
        "logins": {name: {"at": at, "used": name in used} for name, at in logins.items()},
        "login_here": not state.locks.is_shared,
        "login_given": refused[0] if refused else {},
        "login_fault": refused[1] if refused else "",
    }


def _login_tables(tables: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    logins = tables.get("login", {})
    return [(name, table) for name, table in logins.items() if isinstance(table, dict)] if logins else []


def sign_in(request: Request) -> Response:
    """Stores the form's login in the collection's periplus.toml, for all of its crawls, or removes it.

    Only if no other machine can connect: it decides which host receives a variable of the environment.
    """
    (name, place), form = place_read(request), form_of(request)
    path, login = rules_file(place), form.get("login_name", "").strip() or "site"
    try:
        if isinstance(place, str):
            raise UsageError(
                f"logins are not stored in databases, where other users could read them: write "
                f"[login.{login}] into the "
                "periplus.toml where crawls are started"
            )
        if state_of(request).locks.is_shared:
            raise UsageError(f"other machines can connect to this server: write [login.{login}] into {path} by hand")
        table = {} if form.get("remove") else login_table(form)
        if not form.get("remove"):
            service("login")(table, login, "this login", place, is_public=True)
        replace_text(path, with_login(_read_text(path), login, table))
    except UsageError as error:
        return settings(request, (form, str(error)))
    return rendering.to_screen(name, "settings#login")


def events(request: Request) -> Response:
    """The moving part of the screen, whole and numbered, each time that it changed."""
    _values(request)  # refuses what is not there before the stream begins
    return push(request, f"live {request.path_params['name']}", _moving)


def _moving(request: Request) -> str:
    return rendering.render(request, "live_part.html", _values(request))


def jobs_about(state: AppState, name: str, is_about: Callable[[JobOrder], bool]) -> list[Job]:
    """The collection's open jobs of a kind; else the last that ended, where it failed."""
    jobs = [job for job in state.jobs_of(name) if is_about(job.order)]
    return [job for job in jobs if job.state in OPEN] or [job for job in jobs[:1] if job.state is JobState.FAILED]


def pause(request: Request) -> Response:
    """Pauses the running crawl, also one started elsewhere."""
    name, place = place_read(request)
    if not homes.home_of(place).pause(now()):
        raise UsageError("no crawl is running in this collection: there is nothing to pause")
    return rendering.to_screen(name, "live")


def stop(request: Request) -> Response:
    """Stops the collection's job; it stores its answers first."""
    name = request.path_params["name"]
    if not state_of(request).stop_jobs(name):
        raise UsageError("no job of this queue runs it. Stop a crawl of a terminal there, with Ctrl-C.")
    return rendering.to_screen(name, "live")


def resume(request: Request) -> Response:
    """Resumes a paused crawl, or continues the collection's last crawl, with the form's limits if it has any.

    A failed first run left no collection: its job is repeated.
    """
    state, form = state_of(request), form_of(request)
    name = request.path_params["name"]
    job, consents = state.job_of(name), allows_private(state, form)
    if job is not None and job.state not in OPEN and name not in state.places.collections():
        state.add_job(_allowing(job.order) if consents else job.order)
        return rendering.to_screen(name, "live")
    _, place = place_read(request)
    is_stopping = job is not None and job.state in OPEN and job.cancel_asked
    limits = ("max_pages", "max_depth", "delay", "exclude")
    is_changed = consents or any(text for field, text in form.items() if field in limits or field.startswith(PREFIX))
    if is_changed or is_stopping or not homes.home_of(place).resume(now()):
        order = resume_order(_last_crawl(state, name, place), form, local=not state.locks.is_shared)
        if is_changed:
            state.stop_jobs(name)
        state.add_job(_allowing(order) if consents else order)
    return rendering.to_screen(name, "live")


def again(request: Request) -> Response:
    """Refreshes the collection or checks its links, under the consents of its last crawl."""
    state, form, name = state_of(request), form_of(request), request.path_params["name"]
    _, place = place_read(request)
    order = renewal(state, {**form, "collection": name})
    consents = [word for word in _last_crawl(state, name, place) if word.startswith(("--mine=", "--allow-private"))]
    state.add_job(replace(order, command=(*order.command, *consents)))
    return rendering.to_screen(name, "live")


def _allowing(order: JobOrder) -> JobOrder:
    """The order, with consent to private addresses in each of its commands that asks any."""
    first, *then = (
        (*command, "--allow-private") if _fetches(command) else command for command in (order.command, *order.then)
    )
    return replace(order, command=first, then=tuple(then))


def _fetches(command: tuple[str, ...]) -> bool:
    return command[0] in ("crawl", "check", "survey") or command[:2] == ("topic", "crawl")


def _last_crawl(state: AppState, name: str, place: Place) -> tuple[str, ...]:
    """The command of the last crawl or check: as it was asked for here; else from the collection's starts,
    with its folder's settings.
    """
    commands = [job.order.command for job in state.jobs_of(name) if _fetches(job.order.command)]
    if commands:
        return commands[0]
    runs = state.watchers.look(place).status.runs
    starts = next((run.starts for run in reversed(runs) if run.kind == "crawl"), ())
    if not starts:
        raise UsageError("this collection has no crawl to continue")
    return ("crawl", *starts, "-o", state.folder_word(state.places.place(name)))
