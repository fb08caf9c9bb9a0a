"""The portals of a collection, their editor's queue, and their preview."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from periplus.errors import NoCollection, UsageError
from periplus.jobs.presets import (
    PERIODS,
    choice,
    command_line,
    period,
    starts_of,
    whole,
)
from periplus.jobs.setting_fields import Form
from periplus.model.job import JobOrder
from periplus.ui import rendering
from periplus.ui.live import jobs_about
from periplus.ui.rendering import MEDIA, SANDBOX
from periplus.ui.safety import files_of, form_of
from periplus.ui.state import AppState, now, place_read, state_of
from periplus.values import JsonObject, Place, fields_of
from periplus_topics.api import portal as work
from periplus_topics.api.portal import KINDS, PortalReview, ReviewEntry, published_files, review_of
from periplus_topics.api.topics import topic_names
from periplus_topics.model import EntryKey, Portal
from periplus_topics.present.portal import picture_type

PER_PAGE = 20  # entries a page
SITES = 60  # named on the screen; the table has all
PICK_PREFIX = "pick-"  # fields of a form that name chosen entries
# A portal holds words of the web: no script, no form, nothing from elsewhere. It keeps our origin, else its own style
# sheet would be a stranger's.
PREVIEW = (
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action "
    "'none'; sandbox allow-same-origin"
)
LINE_CHARS = 300  # of a title or lead
# (default, minimum, maximum), as in `periplus portal create`
_PORTAL_NUMBERS = {"stories": (12, 1, 200), "sites": (20, 0, 1_000)}


def portals(request: Request, refused: rendering.RefusedForm | None = None) -> Response:
    """The portals of a collection, and the form that begins one; with a form in the address, its command."""
    state = state_of(request)
    name, place = place_read(request)
    values: JsonObject = {
        "title": "Portals", "name": name,
        "portals": [{"portal": portal, "built": built} for portal, built in work.portals(place)],
        "topics": topic_names(place), "periods": list(PERIODS),
        "period_of": {seconds: word for word, seconds in PERIODS.items()},
    }  # fmt: skip

    def line(asked: Mapping[str, str]) -> str:
        if not asked.get("name"):
            return ""
        return command_line(portal_command(portal_of(asked, 0.0), state.folder_word(place)))

    return rendering.answer_form(request, "periplus_topics/portals.html", values, line, refused)


def create(request: Request) -> Response:
    """Begins a portal, and asks for its first build."""
    state, form = state_of(request), form_of(request)
    name, place = place_read(request)
    try:
        made = portal_of(form, float(int(now())))
        _check_topic(place, made)
        work.create(place, made)
    except UsageError as error:
        return portals(request, (form, str(error)))
    state.add_job(JobOrder(build_command(made.name, state.folder_word(place))))
    _schedule(state, place, made)
    return rendering.to_screen(name, f"portal/{made.name}")


def _check_topic(place: Place, made: Portal) -> None:
    if made.topic and made.topic not in topic_names(place):
        raise UsageError(f"the collection has no topic {made.topic[:80]!r}")


def review(request: Request) -> Response:
    """The entries with what was decided of them, the sites, and what can be done with the portal."""
    name, place = place_read(request)
    state, chosen = state_of(request), request.path_params["portal"]
    review = review_of(place, chosen)
    kind = _kind(review, request.query_params)
    entries = _entries(review, kind, request.query_params.get("q", ""))
    at = _at(request.query_params.get("at", ""), len(entries))
    counts = {kind: sum(entry.kind == kind for entry in review.entries) for kind in KINDS}
    values: JsonObject = {
        "title": review.portal.title, "name": name,
        **fields_of(review, "portal gathered built run covered lacks decided"),
        "kind": kind, "counts": counts,
        "total": len(entries), "at": at,
        "entries": entries[(at - 1) * PER_PAGE : at * PER_PAGE],
        "sites": review.sites[:SITES], "sites_in_all": len(review.sites),
        "jobs": jobs_about(state, name, lambda order: _is_about(order, chosen)),
        "schedules": _schedules(state, place, chosen),
    }  # fmt: skip
    if rendering.wants_json(request):
        return rendering.answer(request, "", values)
    more = {
        "pages": (len(entries) + PER_PAGE - 1) // PER_PAGE, "periods": list(PERIODS), "kinds": KINDS,
        "published": frozenset(published_files(work.portal_folder(place, chosen))), "topics": topic_names(place),
        "every": next((word for word, seconds in PERIODS.items() if seconds == review.portal.period_s), ""),
    }  # fmt: skip
    return rendering.answer(request, "periplus_topics/portal.html", values | more)


def _kind(review: PortalReview, asked: Mapping[str, str]) -> str:
    """The list of entries shown: as requested, else the waiting entries, if any."""
    kind = choice(asked, "show", KINDS)
    return kind or next(
        (entry_kind for entry_kind in KINDS if any(entry.kind == entry_kind for entry in review.entries)), KINDS[0]
    )


def _entries(review: PortalReview, kind: str, text: str) -> list[ReviewEntry]:
    low = text.strip().lower()
    return [entry for entry in review.entries if entry.kind == kind and low in _text(entry)]


def _text(entry: ReviewEntry) -> str:
    return " ".join((entry.key, entry.title, entry.sentence, *entry.keywords, *entry.sites)).lower()


def _at(text: str, entries: int) -> int:
    """The page from 1; one beyond the last is the last, for entries go when they are decided on."""
    return max(
        1,
        min(
            int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 1,
            (entries + PER_PAGE - 1) // PER_PAGE,
        ),
    )


def _is_about(order: JobOrder, portal: str) -> bool:
    return any(command[0] == "portal" and command[2:3] == (portal,) for command in (order.command, *order.then))


def _schedules(state: AppState, place: Place, portal: str) -> list[JsonObject]:
    word = state.folder_word(place)
    with state.queue() as queue:
        schedules = [
            schedule
            for schedule in queue.schedules()
            if _is_about(schedule.order, portal) and word in schedule.order.command
        ]
    return [fields_of(schedule, "id period_s next_at paused") for schedule in schedules]


def decide(request: Request) -> Response:
    """Stores the editor's decision on one entry or site (its own button), or on all selected ones."""
    name, place = place_read(request)
    chosen, form = request.path_params["portal"], form_of(request)
    verb = next((word for word in work.VERBS if form.get(word)), form.get("what", ""))
    if verb not in work.VERBS:
        raise UsageError(f"unknown action {verb[:50]!r}: choose {', '.join(work.VERBS)}")
    picked = (
        [form[verb]]
        if form.get(verb)
        else [field.removeprefix(PICK_PREFIX) for field in form if field.startswith(PICK_PREFIX)]
    )
    if not picked:
        raise UsageError("no entry is selected")
    review = review_of(place, chosen)
    view = {field: form[field] for field in ("show", "q", "at") if form.get(field)}
    listed = [str(entry.key) for entry in _entries(review, _kind(review, view), view.get("q", ""))]
    work.decide(place, review.portal, verb, picked, now())
    after = rendering.query(view, at=view.get("at")) + _next(listed, picked)
    return rendering.to_screen(name, f"portal/{chosen}{after}")


def entry(request: Request, refused: rendering.RefusedForm | None = None) -> Response:
    """An entry's own words and picture, which its editor gives it."""
    name, place = place_read(request)
    review = review_of(place, request.path_params["portal"])
    key = request.query_params.get("key", "")
    chosen = next((entry for entry in review.entries if entry.key == key), None)
    if chosen is None:
        raise NoCollection(f"there is no entry {key[:50]!r} (any longer): gather the entries again")
    form, fault = refused or ({"words": chosen.words, "alt": chosen.alt}, "")
    values = {"title": chosen.title, "name": name, "portal": review.portal, "entry": chosen, "fault": fault}
    answer = rendering.answer(request, "periplus_topics/entry.html", values | {"form": form})
    answer.status_code = 400 if refused else 200
    return answer


def edit(request: Request) -> Response:
    """Stores the words and the picture that an editor gives an entry."""
    name, place = place_read(request)
    form, key = form_of(request), request.query_params.get("key", "")
    changes = work.Edit(form.get("words", ""), files_of(request).get("picture"), form.get("alt", ""))
    if form.get("without"):
        changes = changes._replace(picture=b"", alt=None)
    portal = work.find_portal(place, request.path_params["portal"])
    try:
        work.edit(place, portal, key, changes, now())
    except UsageError as error:
        return entry(request, (form, str(error)))
    return rendering.to_screen(name, f"portal/{portal.name}{rendering.query({}, show=form.get('show'))}#e-{key}")


def entry_picture(request: Request) -> Response:
    """The editor's picture of an entry."""
    _, place = place_read(request)
    portal = work.find_portal(place, request.path_params["portal"])
    picture = work.picture_of(place, portal, EntryKey(request.query_params.get("key", "")))
    if not picture:
        raise NoCollection("the entry has no picture")
    return Response(picture, media_type=MEDIA[picture_type(picture)], headers=SANDBOX)


def _next(listed: list[str], picked: list[str]) -> str:
    """The entry after the decided entry."""
    places = [listed.index(key) for key in picked if key in listed]
    if not places:
        return "#sites"
    after = listed[max(places) + 1 : max(places) + 2] or listed[: min(places)][-1:]
    return f"#e-{after[0]}" if after else ""


def act(request: Request) -> Response:
    """Actions of a portal's screen: build, gather, schedule, change, remove."""
    state, form = state_of(request), form_of(request)
    name, place = place_read(request)
    chosen, what = work.find_portal(place, request.path_params["portal"]), form.get("what", "")
    word = state.folder_word(place)
    match what:
        case "build":
            state.add_job(JobOrder(build_command(chosen.name, word)))
        case "gather":
            state.add_job(JobOrder(("portal", "show", chosen.name, "-c", word)))
        case "change":
            made = portal_of({**form, "name": chosen.name}, chosen.created)
            _check_topic(place, made)
            work.change(place, made)
            _schedule(state, place, made)
        case "remove":
            if form.get("sure") != chosen.name:
                raise UsageError(f"to delete a portal with all decisions, enter its name, {chosen.name}")
            _schedule(state, place, replace(chosen, period_s=0.0))
            work.remove(place, chosen.name)
            return rendering.to_screen(name, "portals")
        case _:
            raise UsageError(f"unknown action {what[:50]!r}: choose build, gather, change or remove")
    return rendering.to_screen(name, f"portal/{chosen.name}")


def _schedule(state: AppState, place: Place, made: Portal) -> None:
    """The portal's period as a schedule of the queue: refresh the collection, then build its portals.

    Without a period, it builds the others.
    """
    order = renewal(made.name, state.folder_word(place))
    with state.queue() as queue:
        schedule = next(
            (scheduled_job for scheduled_job in queue.schedules() if scheduled_job.order.command == order.command), None
        )
        others = tuple(command for command in schedule.order.then if command != order.then[0]) if schedule else ()
        if made.period_s:
            queue.repeat(replace(order, then=others + order.then), made.period_s, now() + made.period_s)
        elif schedule and others != schedule.order.then:
            queue.forget(schedule.id)
            if others:
                queue.repeat(replace(order, then=others), schedule.period_s, schedule.next_at)


def preview(request: Request) -> Response:
    """A file of the portal as it was built last; nothing else of its folder."""
    _, place = place_read(request)
    chosen, path = work.find_portal(place, request.path_params["portal"]), request.path_params["path"]
    if not path:
        return RedirectResponse(request.url.path.rstrip("/") + "/index.html", 303)
    out = work.portal_folder(place, chosen.name)
    if path not in published_files(out):
        raise NoCollection(
            "the portal has no such page: build it first"
            if path == "index.html"
            else f"the portal has no page {path[:200]}"
        )
    media_type = MEDIA.get(path.rpartition(".")[2], "application/octet-stream")
    policy = SANDBOX if path.endswith(".svg") else {"content-security-policy": PREVIEW}
    return FileResponse(out / path, media_type=media_type, headers={**policy, "cache-control": "no-store"})


def download(request: Request) -> Response:
    """All files of the portal as it was built last, to be put on any web server."""
    name, place = place_read(request)
    chosen = work.find_portal(place, request.path_params["portal"])
    out = work.portal_folder(place, chosen.name)
    paths = published_files(out)
    if not paths:
        raise NoCollection("the portal was not built yet: build it first")
    with tempfile.NamedTemporaryFile(prefix="periplus-", suffix=".zip", delete=False) as file:
        target = Path(file.name)
        try:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for path in paths:
                    archive.write(out / path, f"{chosen.name}/{path}")
        except OSError:
            target.unlink()
            raise
    return FileResponse(
        target,
        media_type="application/zip",
        filename=f"{name}-{chosen.name}.zip",
        background=BackgroundTask(target.unlink, missing_ok=True),
    )


# Commands for the forms. Input is not trusted: see `periplus.jobs.presets`.


def renewal(portal: str, collection: str) -> JobOrder:
    """The jobs of a schedule that refreshes the collection and then rebuilds its portal."""
    return JobOrder(("refresh", "-c", collection), then=(build_command(portal, collection),))


def build_command(portal: str, collection: str) -> tuple[str, ...]:
    return ("portal", "build", portal, "-c", collection)


def portal_of(form: Form, created: float) -> Portal:
    """The definition of a portal in a form. Raises UsageError."""
    name, title, lead = (" ".join(form.get(field, "").split())[:LINE_CHARS] for field in ("name", "title", "lead"))
    address = str(starts_of(form["address"])[0]) if form.get("address", "").strip() else ""
    numbers = {field: whole(form, field, *limits) for field, limits in _PORTAL_NUMBERS.items()}
    return Portal(
        name=name, title=title or name, created=created, lead=lead, topic=form.get("topic", "").strip(),
        period_s=period(form), approve=bool(form.get("approve")), address=address, **numbers,
    )  # fmt: skip


def portal_command(portal: Portal, collection: str) -> tuple[str, ...]:
    """The command that creates the portal."""
    usual = {"--title": portal.name} | {f"--{field}": str(limits[0]) for field, limits in _PORTAL_NUMBERS.items()}
    values = {
        "--title": portal.title, "--lead": portal.lead, "--topic": portal.topic,
        "--period": f"{portal.period_s / 3600:g}h" if portal.period_s else "",
        "--address": portal.address, "--stories": str(portal.stories), "--sites": str(portal.sites),
    }  # fmt: skip
    words = ["portal", "create", portal.name, "-c", collection]
    for flag, text in values.items():
        words += [flag, text] if text not in ("", usual.get(flag)) else []
    return (*words, *["--approve"] * portal.approve)
