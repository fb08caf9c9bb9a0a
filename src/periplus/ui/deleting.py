"""What goes when somebody deletes? Said before anything does; done at once, or by a job where it is much."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api import deleting
from periplus.api.collection import open_collection
from periplus.api.tables import TableQuery
from periplus.errors import UsageError
from periplus.model.collection import Deletion
from periplus.model.job import JobOrder, JobState
from periplus.model.web import SiteKey, Url, UrlId
from periplus.present.text import told
from periplus.ui import rendering
from periplus.ui.rendering import AppState, folder_of, house_of, job_word, now
from periplus.ui.safety import form_of
from periplus.ui.tables import RESERVED, SCREENS
from periplus.urls.canonical import url_id

MOST_PAGES = 3_000  # at once: their keys fit into a form; more than a table shows on a page
READ_S = 5.0
CHOICES = ("links_to", "again", "keep_pages")
JOBS = 10_000  # the last so many are looked through for those of a collection that goes
SITES = 1_000  # offered by name; others are typed


def delete(request: Request) -> Response:
    """With a choice in the address what it takes; without one the choices there are."""
    name, folder = folder_of(request)
    asked = dict(request.query_params)
    if request.method == "POST":
        return _done(request, name, folder)
    filtered = asked.get("all") == "pages"  # then the rest of the address filters a table: `site` is a column of it
    wish = wish_of(
        {name: text for name, text in asked.items() if name in CHOICES} if filtered else asked,
        _pages(request, folder, asked),
    )
    values: dict[str, object] = {"title": "Delete", "name": name, "deleted": asked.get("deleted", "")}
    if not (wish.pages or wish.site is not None or wish.run):
        with open_collection(folder, time_limit_s=READ_S) as kept:
            runs = [
                {"id": run.id, "kind": run.kind, "started": run.started, "state": run.state, "fetched": run.fetched}
                for run in reversed(kept.runs())
            ]
        values |= {"plan": None, "runs": runs, "sites": _sites(request, folder), "folder": deleting.folder_plan(folder)}
        return rendering.answer(request, "delete.html", values)
    plan = deleting.plan(folder, wish)
    said = told(plan, wish)
    values |= {
        "plan": plan,
        "goes": said.goes,
        "stays": said.stays,
        "wish": wish,
        "pages": " ".join(map(key, wish.pages)),
        "at_once": deleting.BATCH,
    }
    return rendering.answer(request, "delete.html", values)


def key(page: UrlId) -> str:
    """A page's number as an address holds it."""
    return f"{page & (1 << 64) - 1:016x}"


def wish_of(form: Mapping[str, str], pages: tuple[UrlId, ...]) -> Deletion:
    """Raises UsageError."""
    run = form.get("run", "").strip()
    if run and not (run.isascii() and run.isdigit() and len(run) < 10):
        raise UsageError(f"a run is called by its number, not {run[:50]!r}")
    site = SiteKey(form["site"].strip()) if form.get("site", "").strip() else None
    links_to, again, keep_pages = (form.get(choice) == "on" for choice in CHOICES)
    return Deletion(pages, site, int(run or 0), links_to, again, not keep_pages)


def _pages(request: Request, folder: Path, asked: Mapping[str, str]) -> tuple[UrlId, ...]:
    """Those ticked in a table, or all that its filters leave."""
    chosen = [
        *map(_number, request.query_params.getlist("page")),
        *(url_id(Url(url)) for url in request.query_params.getlist("url")),
    ]
    if asked.get("all") == "pages":
        reserved = {*RESERVED, *CHOICES, "all", "page", "deleted"}
        given = tuple((column, text) for column, text in asked.items() if column not in reserved and text)
        wish = TableQuery((*SCREENS["pages"].fixed, *given), asked.get("q", "").strip(), (), 0, MOST_PAGES + 1)
        rows = house_of(request).browser.page(folder, "pages", wish, ("url",)).rows
        chosen += [url_id(Url(str(row[0]))) for row in rows]
    if len(chosen) > MOST_PAGES:
        raise UsageError(f"more than {MOST_PAGES:,} pages are chosen: narrow them down, or delete a site or a run")
    return tuple(dict.fromkeys(chosen))


def _number(text: str) -> UrlId:
    try:
        value = int(text, 16)
    except ValueError:
        raise UsageError(f"{text[:50]!r} is no page’s number") from None
    if not 0 <= value < 1 << 64:
        raise UsageError(f"{text[:50]!r} is no page’s number")
    return UrlId(value - (1 << 64) if value >= 1 << 63 else value)


def _sites(request: Request, folder: Path) -> list[str]:
    found = house_of(request).browser.page(
        folder, "sites", TableQuery((), "", ("-pages_crawled",), 0, SITES), ("name", "pages_crawled")
    )
    return [str(row[0]) for row in found.rows]


def _done(request: Request, name: str, folder: Path) -> Response:
    form = form_of(request)
    if form.get("what") == "everything":
        deleting.remove_collection(folder, form.get("typed", "").strip())
        _call_off(house_of(request), folder)
        return RedirectResponse("/", 303)
    wish = wish_of(form, tuple(map(_number, form.get("pages", "").split())))
    if deleting.chosen(folder, wish) <= deleting.BATCH:
        deleted = deleting.delete(folder, wish)
        return RedirectResponse(rendering.address(name, f"delete?deleted={deleted.urls}"), 303)
    house = house_of(request)
    with house.queue() as queue:
        queue.add(JobOrder(_command(wish, str(folder.resolve()))), now())
    return RedirectResponse("/jobs", 303)


def _call_off(house: AppState, folder: Path) -> None:
    """What is asked for of a collection that is gone: a crawl that waits would make it anew,
    and what is scheduled would fail for ever.
    """
    words = {job_word(house, folder), str(folder.resolve())}
    with house.queue() as queue:
        for schedule in queue.schedules():
            if not words.isdisjoint(schedule.order.command):
                queue.forget(schedule.id)
        for job in queue.jobs(most=JOBS):
            if job.state is JobState.QUEUED and not words.isdisjoint(job.order.command):
                queue.cancel(job.id, now())


def _command(wish: Deletion, folder: str) -> tuple[str, ...]:
    """The same for the command line; pages alone are never so many that they need it."""
    if wish.pages:
        raise UsageError(
            "with pages chosen one by one choose no site and no run that is as large: delete one after another"
        )
    words = ["delete", "-c", folder, "--yes"]
    if wish.site is not None:
        words.append(f"--site={wish.site}")
    if wish.run:
        words.append(f"--run={wish.run}")
    flags = {"--links-to": wish.links_to, "--again": wish.again, "--keep-pages": bool(wish.run) and not wish.run_pages}
    return (*words, *(flag for flag, said in flags.items() if said))
