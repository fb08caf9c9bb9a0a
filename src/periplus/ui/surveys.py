"""Which surveys are there, how does each stand while it runs, and how is one made, run, stopped and changed?"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.api import survey_plan
from periplus.api.collection import open_collection
from periplus.api.survey_curation import decide
from periplus.api.survey_watching import SurveyMoment, campaign_here
from periplus.errors import PeriplusError, UsageError
from periplus.jobs.presets import SUFFIX, SURVEY_PAGES, folder_name
from periplus.jobs.survey_wishes import RULE_WORDS, SurveyWish, run_wished, survey_wished, units_of_text
from periplus.model.campaign import Campaign, SiteStanding
from periplus.model.survey import SiteStatus
from periplus.present.campaign_text import completeness_told, round_robin_told
from periplus.ui import rendering
from periplus.ui.house import House, folder_of, house_of, line_or_fault, now
from periplus.ui.live import job_of, stop_jobs
from periplus.ui.pushing import pushed
from periplus.ui.safety import form_of

READ_S = 3.0  # for one collection of the list
SITES = 50  # that are shown while they change; all of them stand in the table
CHOSEN = "site:"  # what a ticked site's field is called, with its prefixes
FORM = ("name", "title", "sites", "rule", "rule_number", "pages", "item", "within", "seed", "max_depth", "delay")


@dataclass(frozen=True, slots=True)
class Row:
    """A survey in the list. fault: why nothing else is known."""

    name: str
    title: str = ""
    sites: int = 0
    pages: int = 0
    budget: int = 0
    rule: str = ""
    state: str = ""
    note: str = ""
    last: float = 0.0
    fault: str = ""


def surveys(request: Request) -> Response:
    """The list, and the form that makes one; with a form in the address, the commands that it means."""
    asked = dict(request.query_params)
    name = asked.get("name", "") or "survey"
    return _listed(request, *(line_or_fault(lambda: survey_wished(asked, folder_name(name)).lines) if asked.get("sites") else ("", "")))


def _listed(request: Request, line: str, fault: str, form: Mapping[str, str] | None = None) -> Response:
    house = house_of(request)
    rows = [row for name, folder in house.places.collections().items() if (row := _row(name, folder)) is not None]
    values = {"title": "Surveys", "surveys": rows, "works": house.works, "base": house.places.base.resolve(), **_form(line, fault)}
    return rendering.answer(request, "surveys.html", values if form is None else values | {"asked": dict(form)}, 400 if form is not None else 200)


def _form(line: str = "", fault: str = "") -> dict[str, object]:
    return {"line": line, "fault": fault, "rules": RULE_WORDS, "usual_pages": SURVEY_PAGES}


def _row(name: str, folder: Path) -> Row | None:
    """None: the collection holds no survey."""
    try:
        campaign = campaign_here(folder)
        if campaign is None:
            return None
        with open_collection(folder, time_limit_s=READ_S) as kept:
            status = kept.status(0)
    except PeriplusError as error:
        return Row(name, fault=str(error))
    runs = [run for run in status.runs if run.kind == "survey"]
    run = runs[-1] if runs else None
    state = status.state_of(run) if run else ""
    pages = sum(run.fetched for run in runs)
    note, last = (run.note, run.ended or run.started) if run and not status.running else ("", run.started if run else 0.0)
    return Row(name, campaign.title, len(campaign.units), pages, campaign.pages, campaign.rule, state, note, last)


def create(request: Request) -> Response:
    """Makes the survey that the form describes, and asks for its first run; within a collection that is there, if the address names one."""
    house, form = house_of(request), form_of(request)
    within = "name" in request.path_params
    folder = folder_of(request)[1] if within else house.places.base
    try:
        folder = folder if within else folder / folder_name(form.get("name", "") or "survey")
        wish = survey_wished(form, command_folder(house, folder))
        survey_plan.create(folder, wish.campaign)
    except UsageError as error:
        if within and campaign_here(folder) is not None:
            raise
        return _screen(request, fault=str(error), form=form) if within else _listed(request, "", str(error), form)
    if form.get("run", "1"):
        _give(house, wish)
    return RedirectResponse(rendering.address(request.path_params["name"] if within else folder.name.removesuffix(SUFFIX), "survey"), 303)


def _give(house: House, wish: SurveyWish) -> None:
    with house.queue() as queue:
        queue.add(wish.run, now())


def command_folder(house: House, folder: Path) -> str:
    """A collection as a job's command names it: jobs run in the folder of collections."""
    whole, base = folder.resolve(), house.places.base.resolve()
    return whole.name if whole.parent == base else str(whole)


def survey(request: Request) -> Response:
    """How the survey stands; of a collection without one, the form that makes one."""
    return _screen(request)


def _screen(request: Request, fault: str = "", form: Mapping[str, str] | None = None) -> Response:
    name, folder = folder_of(request)
    asked = dict(request.query_params) if form is None else dict(form)
    campaign = campaign_here(folder)
    if campaign is not None:
        line = shlex.join(("periplus", *run_wished(_running(asked), command_folder(house_of(request), folder)).command))
        return rendering.answer(request, "survey.html", {"title": "Survey", **values(request), "line": line, "rules": RULE_WORDS, "statuses": STATUSES})
    line = ""
    if asked.get("sites") and not fault:
        line, fault = line_or_fault(lambda: survey_wished(asked, command_folder(house_of(request), folder)).lines)
    shown = {"title": "Survey", "name": name, "surveyed": False, **_form(line, fault)}
    return rendering.answer(request, "survey_none.html", shown if form is None else shown | {"asked": asked}, 400 if form is not None else 200)


STATUSES = {
    SiteStatus.IN: "in: read in the survey",
    SiteStatus.OUT: "out: left out of all lists",
    SiteStatus.UNDECIDED: "undecided: to be looked at again",
    SiteStatus.DISCOVERED: "discovered: not looked at",
}


def _running(asked: Mapping[str, str]) -> dict[str, str]:
    return {name: asked.get(name, "") for name in ("pages", "max_time", "rule", "rule_number", "max_depth", "delay")}


def values(request: Request) -> dict[str, object]:
    """What the moving part shows."""
    house = house_of(request)
    name, folder = folder_of(request)
    found = house.survey_watchers.look(folder)
    moment = house.watchers.look(folder)
    standing = found.standing
    return {
        "name": name, "surveyed": True, "campaign": _told(standing.campaign), "seq": found.seq, "behind": found.behind, "pages": standing.pages,
        "state": moment.state, "note": moment.note, "rate": moment.rate, "elapsed_s": moment.elapsed_s, "job": job_of(house, name),
        "harvest": harvest_told(found), "kinds": _kinds(standing.sites), "sites": _best(standing.sites), "most": SITES, "sites_in_all": len(standing.sites),
    }  # fmt: skip


def _told(campaign: Campaign) -> dict[str, object]:
    return {
        "title": campaign.title, "sites": len(campaign.units), "rule": campaign.rule, "within": survey_plan.within_of(campaign), "item": campaign.item,
        "pages": campaign.pages, "seed": campaign.seed,
    }  # fmt: skip


def harvest_told(found: SurveyMoment) -> dict[str, object]:
    """The harvest's figures; its curves are the picture's."""
    harvest = found.standing.harvest
    pages = harvest.total.pages[-1]
    return {
        "item": harvest.item, "found": int(harvest.total.found[-1]), "a_page": harvest.total.found[-1] / pages if pages else 0.0, "recent": harvest.recent,
        "round_robin": round_robin_told(harvest.baseline), "outside": int(harvest.companions.found[-1]),
        "completeness": completeness_told(harvest), "complete": harvest.richness.share,
    }  # fmt: skip


def _kinds(sites: tuple[SiteStanding, ...]) -> dict[str, int]:
    """Sites by state; the reasons of those that are not available stand beside each."""
    return dict(Counter(row.state.partition(":")[0] for row in sites).most_common())


def _best(sites: tuple[SiteStanding, ...]) -> list[dict[str, object]]:
    shown = sorted(sites, key=lambda row: (-row.links, -row.pages, row.short))[:SITES]
    return [{**row._asdict(), "share": row.share} for row in shown]


def events(request: Request) -> Response:
    """The moving part, each time that it changed."""
    values(request)  # refuses what is not there before the stream begins
    return pushed(request, f"survey {request.path_params['name']}", lambda asking: rendering.rendered(asking, "survey_part.html", values(asking)))


def change(request: Request) -> Response:
    """Runs, stops, adds sites, takes some in or out, as a form says; then back to where the form was."""
    house, form = house_of(request), form_of(request)
    name, folder = folder_of(request)
    match form.get("what", ""):
        case "run":
            order = run_wished(_running(form), command_folder(house, folder))
            with house.queue() as queue:
                queue.add(order, now())
        case "stop":
            _stop(house, name, folder)
        case "add":
            survey_plan.add_sites(folder, units_of_text(form.get("sites", "")))
        case "decide":
            decide(folder, chosen(form), _status(form), form.get("tags", "").split(), start=form.get("start", "").strip(), now=now())
        case what:
            raise UsageError(f"nothing is known of {what[:50]!r}")
    return RedirectResponse(rendering.address(name, _back(form)), 303)


def _stop(house: House, name: str, folder: Path) -> None:
    """A job of this queue is cancelled; a run that a terminal began is asked by the collection itself."""
    if not stop_jobs(house, name):
        if house.watchers.look(folder).state != "running":
            raise UsageError("the survey does not run")
        survey_plan.stop(folder)


def chosen(form: Mapping[str, str]) -> list[str]:
    """Prefixes of the sites that are ticked, and of those that are written."""
    ticked = [prefix for field in form if field.startswith(CHOSEN) for prefix in field.removeprefix(CHOSEN).split()]
    return [*ticked, *form.get("others", "").split()]


def _status(form: Mapping[str, str]) -> SiteStatus:
    try:
        return SiteStatus(form.get("status", ""))
    except ValueError:
        raise UsageError(f"a site is {', '.join(SiteStatus)}: choose one of these") from None


def _back(form: Mapping[str, str]) -> str:
    """The screen that the form stood on: of ours, whatever the form says."""
    view, _, query = form.get("back", "").partition("?")
    known = ("standing", "companions", "sites")
    return ("survey/" + view if view in known else "survey") + ("?" + urlencode(_pairs(query)) if query and view in known else "")


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, max_num_fields=50)
