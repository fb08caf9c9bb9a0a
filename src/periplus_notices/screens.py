"""Subscriptions to changes, their deliveries, and feeds."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.errors import UsageError
from periplus.ui import rendering
from periplus.ui.description import Routes, Screen
from periplus.ui.safety import form_of
from periplus.ui.start import number
from periplus.ui.state import state_of
from periplus.ui.users import Role
from periplus.values import JsonObject, fields_of
from periplus_notices import api as api_notices
from periplus_notices.model import NoticeKind
from periplus_notices.present import as_values

NOTICES_MOST = 50
KIND_WORDS = {
    NoticeKind.BROKEN: "new broken links", NoticeKind.VANISHED: "vanished pages", NoticeKind.SITES: "new sites",
    NoticeKind.PORTAL: "new entries of portals",
    NoticeKind.FAILED: "failed jobs", NoticeKind.SUSPICIOUS: "crawls that end suspicious",
    NoticeKind.REPORT: "a report after each run (only where ticked)",
}  # fmt: skip
_ROWS = list[JsonObject]


def notices(request: Request) -> Response:
    return _screen(request)


def _screen(request: Request, fault: str = "", secret: str = "", message: str = "") -> Response:
    """secret: of a webhook that was just added, which is shown this once."""
    state = state_of(request)
    with api_notices.book(state.places.base) as book:
        subscriptions, standing, latest = book.subscriptions(), book.standing(), book.notices(most=NOTICES_MOST)
    rows = [
        {
            **fields_of(subscription, "id channel target kinds collection"),
            "standing": standing.get(subscription.id),
        }
        for subscription in subscriptions
    ]
    values = {
        "title": "Notices", "subscriptions": rows, "notices": [as_values(notice) for notice in latest],
        "kinds": {kind.value: KIND_WORDS[kind] for kind in NoticeKind},
        "collections": [
            api_notices.noticed_name(place) for place in state.places.collections().values()
        ],
        "fault": fault, "message": message,
    }  # fmt: skip
    if not rendering.wants_json(request):  # what opens feeds is for the reader's eyes, not for files
        values |= {
            "feed_key": state.locks.feed_key,
            "feeds": list(state.places.collections()),
            "secret": secret,
        }
    return rendering.answer(request, "periplus_notices/notices.html", values, 400 if fault else 200)


def change(request: Request) -> Response:
    """Adds, removes or tests a subscription."""
    form, base = form_of(request), state_of(request).places.base
    what = form.get("what", "")
    if what == "add":
        kinds = [kind.value for kind in NoticeKind if form.get(kind.value) == "on"]
        try:
            made, secret = api_notices.subscribe(base, form.get("target", ""), kinds, form.get("collection", ""))
        except UsageError as error:
            return _screen(request, fault=str(error))
        return _screen(
            request,
            secret=secret if made.channel.value == "webhook" else "",
            message=f"{made.target} will get notices.",
        )
    if what == "remove":
        with api_notices.book(base) as book:
            book.unsubscribe(number(form, "subscription"))
    elif what == "test":
        fault = api_notices.test(base, number(form, "subscription"))
        return _screen(request, message=f"The test did not arrive: {fault}" if fault else "The test arrived.")
    else:
        raise UsageError(f"unknown action {what[:50]!r}")
    return RedirectResponse("/notices", 303)


def feed(request: Request) -> Response:
    """The newest notices as Atom, of the named collection or of all."""
    places, name = state_of(request).places, request.path_params["name"]
    collection = "" if name == "all" else api_notices.noticed_name(places.place(name))
    text = api_notices.feed(places.base, collection)
    return Response(text.encode("utf-8", "replace"), media_type="application/atom+xml")


ROUTES = Routes(
    (Screen("/notices", notices, {"subscriptions": _ROWS, "notices": _ROWS, "kinds": dict[str, str],
        "collections": list[str]}, role=Role.ADMINISTER),),
    {"/notices/change": (Role.ADMINISTER, change)},
    {"/feeds/{name}.atom": feed},
)  # fmt: skip
