"""One cause of faults: its effect on readers, its remedy, its pages, and the user's decision."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.analyse.audit import issue_kinds
from periplus.api import homes
from periplus.api.positions import issues_with_positions
from periplus.errors import NoCollection
from periplus.jobs.presets import choice
from periplus.model.audit import FaultDecision, FaultNote
from periplus.ui import rendering
from periplus.ui.safety import form_of
from periplus.ui.state import folder_of, now, place_of, state_of
from periplus.ui.tables import WAIT_S, waiting

MOST_PAGES = 200  # pages of a cause; the table of issues has all
COLUMNS = ("url", "detail", "related", "anchor", "position", "line", "column")  # of an issue
WORDS_CHARS = 2_000
NAME_CHARS = 100


def fault(request: Request) -> Response:
    """A cause with its pages, and the form of what is decided on it."""
    name, folder = folder_of(request)
    browser, asked = state_of(request).browser, request.query_params
    code, cause = asked.get("code", ""), asked.get("cause", "")
    if not rendering.wants_json(request) and not browser.prepare_audit(folder, WAIT_S):
        return waiting(request, name, "A fault")
    noted = browser.fault(folder, code, cause, MOST_PAGES)
    if noted is None:
        raise NoCollection(f"there is no fault {code} of {cause[:200]} (any longer): it may be repaired")
    kind, fault = issue_kinds()[code], noted.fault
    values = {
        "title": kind.title, "name": name, "code": code, "cause": cause, "severity": fault.severity, "why": kind.why,
        "remedy": kind.remedy, "detail": fault.detail, "pages": fault.pages, "since": noted.since, "note": noted.note,
        "rows": [[getattr(issue, field) for field in COLUMNS] for issue in issues_with_positions(folder, fault.issues)],
        "total": fault.total,
    }  # fmt: skip
    return rendering.answer(request, "fault.html", values)


def decide(request: Request) -> Response:
    """Keeps what a person notes on a cause."""
    name, folder, place = place_of(request)
    form = form_of(request)
    note = FaultNote(
        form.get("code", "")[:100],
        form.get("cause", "")[:10_000],
        FaultDecision(choice(form, "decision", list(FaultDecision), "")),
        form.get("assignee", "").strip()[:NAME_CHARS],
        form.get("words", "").strip()[:WORDS_CHARS],
        now(),
    )
    if state_of(request).browser.fault(folder, note.code, note.cause) is None:
        raise NoCollection("there is no such fault (any longer): it may be repaired")
    homes.home_of(place).note_fault(note)
    homes.folder_of(place)  # the local copy of a database gets the note too
    query = rendering.query({}, code=note.code, cause=note.cause)
    return RedirectResponse(rendering.address(name, "fault") + query, 303)
