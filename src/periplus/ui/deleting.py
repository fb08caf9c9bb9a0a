"""Deletion in the browser: lists what will be deleted, then deletes it at once or, if it is large, in a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api import deleting
from periplus.api.functions import open_collection
from periplus.api.homes import full_place, name_of
from periplus.api.tables import TableQuery
from periplus.errors import UsageError
from periplus.jobs.presets import whole
from periplus.masking import without_secrets
from periplus.model.collection import Deletion
from periplus.model.job import JobOrder, JobState
from periplus.model.web import SiteKey, Url, UrlId
from periplus.present.text import plan_lines
from periplus.ui import rendering
from periplus.ui.safety import form_of
from periplus.ui.state import AppState, now, place_read, state_of
from periplus.ui.tables import RESERVED_NAMES, SCREENS
from periplus.urls.canonical import url_id
from periplus.values import Place, fields_of

MOST_PAGES = 3_000  # at once: their keys fit into a form; more than a table shows on a page
READ_S = 5.0
CHOICES = ("links_to", "again", "keep_pages")
JOBS = 10_000  # the latest jobs, searched for jobs of the deleted collection
SITES = 1_000  # offered by name; further ones are typed


def delete(request: Request) -> Response:
    """With a choice in the address what it takes; without one the choices there are."""
    name, place = place_read(request)
    asked = dict(request.query_params)
    filtered = asked.get("all") == "pages"  # then the rest of the address filters a table: `site` is a column of it
    deletion = deletion_of(
        {name: text for name, text in asked.items() if name in CHOICES} if filtered else asked,
        _pages(request, place, asked),
    )
    values: dict[str, object] = {"title": "Delete", "name": name, "deleted": asked.get("deleted", "")}
    if not (deletion.pages or deletion.site is not None or deletion.run):
        with open_collection(place, time_limit_s=READ_S) as collection:
            runs = [fields_of(run, "id kind started state fetched") for run in reversed(collection.runs())]
        values |= {"plan": None, "runs": runs, "sites": _sites(request, place)}
        values["folder"] = deleting.folder_plan(place) if isinstance(place, Path) else None
        values["typed"] = name_of(place)
        return rendering.answer(request, "delete.html", values)
    plan = deleting.plan(place, deletion)
    goes, stays = plan_lines(plan, deletion)
    values |= {
        "plan": plan,
        "goes": goes,
        "stays": stays,
        "request": deletion,
        "pages": " ".join(map(key, deletion.pages)),
        "at_once": deleting.BATCH,
    }
    return rendering.answer(request, "delete.html", values)


def key(page: UrlId) -> str:
    """A page's number as an address holds it."""
    return f"{page & (1 << 64) - 1:016x}"


def deletion_of(form: Mapping[str, str], pages: tuple[UrlId, ...]) -> Deletion:
    """Raises UsageError."""
    run = whole(form, "run", 1, 1, 10**9) if form.get("run", "").strip() else 0
    site = SiteKey(form["site"].strip()) if form.get("site", "").strip() else None
    links_to, again, keep_pages = (form.get(field) == "on" for field in CHOICES)
    return Deletion(pages, site, run, links_to, again, not keep_pages)


def _pages(request: Request, place: Place, asked: Mapping[str, str]) -> tuple[UrlId, ...]:
    """Those ticked in a table, or all that its filters leave."""
    chosen = [
        *map(_number, request.query_params.getlist("page")),
        *(url_id(Url(url)) for url in request.query_params.getlist("url")),
    ]
    if asked.get("all") == "pages":
        reserved = {*RESERVED_NAMES, *CHOICES, "all", "page", "deleted"}
        given = tuple((column, text) for column, text in asked.items() if column not in reserved and text)
        query = TableQuery((*SCREENS["pages"].fixed, *given), asked.get("q", "").strip(), (), 0, MOST_PAGES + 1)
        rows = state_of(request).browser.page(place, "pages", query, ("url",)).rows
        chosen += [url_id(Url(str(row[0]))) for row in rows]
    if len(chosen) > MOST_PAGES:
        raise UsageError(
            f"more than {MOST_PAGES:,} pages are selected: narrow the selection, or delete a site or a run"
        )
    return tuple(dict.fromkeys(chosen))


def _number(text: str) -> UrlId:
    try:
        value = int(text, 16)
    except ValueError:
        raise UsageError(f"{text[:50]!r} is not a page number") from None
    if not 0 <= value < 1 << 64:
        raise UsageError(f"{text[:50]!r} is not a page number")
    return UrlId(value - (1 << 64) if value >= 1 << 63 else value)


def _sites(request: Request, place: Place) -> list[str]:
    query = TableQuery((), "", ("-pages_fetched",), 0, SITES)
    page = state_of(request).browser.page(place, "sites", query, ("name", "pages_fetched"))
    return [str(row[0]) for row in page.rows]


def take(request: Request) -> Response:
    """Deletes what the form names: at once, or by a job where it is much."""
    form = form_of(request)
    name, place = place_read(request)
    if form.get("what") == "everything":
        deleting.remove_collection(place, form.get("typed", "").strip())
        _call_off(state_of(request), place)
        return RedirectResponse("/", 303)
    deletion = deletion_of(form, tuple(map(_number, form.get("pages", "").split())))
    if deleting.count_urls(place, deletion) <= deleting.BATCH:
        deleted = deleting.delete(place, deletion)
        return rendering.to_screen(name, f"delete?deleted={deleted.urls}")
    state_of(request).add_job(
        JobOrder(_command(deletion, without_secrets(str(place) if isinstance(place, str) else str(place.resolve()))))
    )
    return RedirectResponse("/jobs", 303)


def _call_off(state: AppState, place: Place) -> None:
    """Cancels jobs and schedules of a deleted collection: a waiting crawl would create it again, and a schedule would
    always fail.
    """
    words = {state.folder_word(place), str(full_place(place))}
    with state.queue() as queue:
        for schedule in queue.schedules():
            if not words.isdisjoint(schedule.order.command):
                queue.forget(schedule.id)
        for job in queue.jobs(most=JOBS):
            if job.state is JobState.QUEUED and not words.isdisjoint(job.order.command):
                queue.cancel(job.id, now())


def _command(deletion: Deletion, folder: str) -> tuple[str, ...]:
    """The same for the command line; pages alone are never so many that they need it."""
    if deletion.pages:
        raise UsageError("selected pages and a large site or run cannot be deleted together: delete one after another")
    words = ["delete", "-c", folder, "--yes"]
    if deletion.site is not None:
        words.append(f"--site={deletion.site}")
    if deletion.run:
        words.append(f"--run={deletion.run}")
    flags = {
        "--links-to": deletion.links_to,
        "--again": deletion.again,
        "--keep-pages": bool(deletion.run) and not deletion.run_pages,
    }
    return (*words, *(flag for flag, is_set in flags.items() if is_set))
