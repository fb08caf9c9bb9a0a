"""Who is told what changed, how did that fare, and where are the feeds?"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api import notices as told
from periplus.errors import UsageError
from periplus.model.job import NoticeKind
from periplus.present.text import as_values
from periplus.ui import rendering
from periplus.ui.rendering import house_of
from periplus.ui.safety import form_of

SHOWN = 50
KIND_WORDS = {
    NoticeKind.DEAD: "new dead links", NoticeKind.VANISHED: "vanished pages", NoticeKind.SITES: "new sites",
    NoticeKind.PORTAL: "new entries of portals",
    NoticeKind.FAILED: "failed jobs", NoticeKind.SUSPICIOUS: "crawls that end suspicious",
}  # fmt: skip


def notices(request: Request) -> Response:
    return _screen(request)


def _screen(request: Request, fault: str = "", secret: str = "", said: str = "") -> Response:
    """secret: of a webhook that was just added, which is shown this once."""
    house = house_of(request)
    with told.book(house.places.base) as kept:
        subscriptions, standing, found = kept.subscriptions(), kept.standing(), kept.notices(most=SHOWN)
    rows = [
        {
            "id": one.id,
            "channel": one.channel,
            "target": one.target,
            "kinds": one.kinds,
            "collection": one.collection,
            "standing": standing.get(one.id),
        }
        for one in subscriptions
    ]
    values = {
        "title": "Notices", "subscriptions": rows, "notices": [as_values(one) for one in found],
        "kinds": {kind.value: KIND_WORDS[kind] for kind in NoticeKind},
        "collections": [folder.resolve().name for folder in house.places.collections().values()], "fault": fault,
        "said": said,
    }  # fmt: skip
    if not rendering.wants_json(request):  # what opens feeds is for the reader's eyes, not for files
        values |= {"feed_key": house.locks.feed_key, "secret": secret}
    return rendering.answer(request, "notices.html", values, 400 if fault else 200)


def change(request: Request) -> Response:
    """Adds, removes, tries a subscription, as a form says."""
    house, form = house_of(request), form_of(request)
    what, base = form.get("what", ""), house.places.base
    if what == "add":
        kinds = [kind.value for kind in NoticeKind if form.get(kind.value) == "on"]
        try:
            made, secret = told.subscribe(base, form.get("target", ""), kinds, form.get("collection", ""))
        except UsageError as error:
            return _screen(request, fault=str(error))
        return _screen(
            request, secret=secret if made.channel.value == "webhook" else "", said=f"{made.target} will be told."
        )
    if what == "remove":
        with told.book(base) as kept:
            kept.unsubscribe(_number(form))
    elif what == "test":
        fault = told.test(base, _number(form))
        return _screen(request, said=f"It did not arrive: {fault}" if fault else "The test arrived.")
    else:
        raise UsageError(f"nothing is known of {what[:50]!r}")
    return RedirectResponse("/notices", 303)


def _number(form: dict[str, str]) -> int:
    text = form.get("subscription", "")
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise UsageError("no subscription is named")
    return int(text)


def feed(request: Request) -> Response:
    """The newest notices as Atom: of one collection, by its name, or of all."""
    house, name = house_of(request), request.path_params["name"]
    collection = "" if name == "all" else house.places.folder(name).resolve().name
    text = told.feed(house.places.base, collection)
    return Response(text.encode("utf-8", "replace"), media_type="application/atom+xml")
