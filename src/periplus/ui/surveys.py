"""Screens of surveys: how each is made, run and curated, and what it finds."""

from __future__ import annotations

import io
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from periplus.analyse.units import UnitChoice
from periplus.api import survey as api_survey
from periplus.api.collection import open_collection
from periplus.api.remembered import LINKS, Counted, LazyTable, link_table, result_table, standing_table
from periplus.api.survey import KINDS, LinkChoice
from periplus.api.survey_curation import decide, marks_in
from periplus.api.watching import SurveyMoment, campaign_here
from periplus.api.webometrics import FORMATS, SurveyOrder, write_survey
from periplus.errors import NoCollection, PeriplusError, UsageError
from periplus.jobs.presets import (
    RULE_WORDS,
    SUFFIX,
    SURVEY_PAGES,
    SurveyRequest,
    folder_name,
    run_wished,
    survey_wished,
    units_of_text,
)
from periplus.model.survey import GLOBAL_SITES, CompanionClass, CompanionRules, DocumentModel, SiteMark, SiteStatus
from periplus.model.tables import ColumnKind
from periplus.model.webometrics import Campaign, CompanionSite, SiteProgress, SurveyResults
from periplus.present.curves import write_yield_curves
from periplus.present.harvest import completeness_told, round_robin_told
from periplus.present.network import matrix_part, survey_caption
from periplus.present.survey_report import HEAT_SITES
from periplus.present.writers import writers
from periplus.ui import rendering
from periplus.ui.live import job_of, pushed, stop_jobs
from periplus.ui.maps import SANDBOX
from periplus.ui.rendering import AppState, folder_of, house_of, line_or_fault, now
from periplus.ui.safety import form_of
from periplus.ui.tables import ROWS, query_of, sent, tells

READ_S = 3.0  # for one collection of the list
SITES = 50  # that are shown while they change; all of them stand in the table
CHOSEN = "site:"  # what a ticked site's field is called, with its prefixes
FORM = ("name", "title", "sites", "rule", "rule_number", "pages", "item", "within", "seed", "max_depth", "delay")


@dataclass(frozen=True, slots=True)
class SurveyRow:
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
    return _listed(
        request,
        *(line_or_fault(lambda: survey_wished(asked, folder_name(name)).lines) if asked.get("sites") else ("", "")),
    )


def _listed(request: Request, line: str, fault: str, form: Mapping[str, str] | None = None) -> Response:
    house = house_of(request)
    rows = [row for name, folder in house.places.collections().items() if (row := _row(name, folder)) is not None]
    values = {
        "title": "Surveys",
        "surveys": rows,
        "works": house.works,
        "base": house.places.base.resolve(),
        **_form(line, fault),
    }
    return rendering.answer(
        request,
        "surveys.html",
        values if form is None else values | {"asked": dict(form)},
        400 if form is not None else 200,
    )


def _form(line: str = "", fault: str = "") -> dict[str, object]:
    return {"line": line, "fault": fault, "rules": RULE_WORDS, "usual_pages": SURVEY_PAGES}


def _row(name: str, folder: Path) -> SurveyRow | None:
    """None: the collection holds no survey."""
    try:
        campaign = campaign_here(folder)
        if campaign is None:
            return None
        with open_collection(folder, time_limit_s=READ_S) as kept:
            status = kept.status(0)
    except PeriplusError as error:
        return SurveyRow(name, fault=str(error))
    runs = [run for run in status.runs if run.kind == "survey"]
    run = runs[-1] if runs else None
    state = status.state_of(run) if run else ""
    pages = sum(run.fetched for run in runs)
    note, last = (
        (run.note, run.ended or run.started) if run and not status.running else ("", run.started if run else 0.0)
    )
    return SurveyRow(name, campaign.title, len(campaign.units), pages, campaign.pages, campaign.rule, state, note, last)


def create(request: Request) -> Response:
    """Makes the survey that the form describes, and asks for its first run; within a collection that is there, if the address names one."""  # noqa: E501
    house, form = house_of(request), form_of(request)
    within = "name" in request.path_params
    folder = folder_of(request)[1] if within else house.places.base
    try:
        folder = folder if within else folder / folder_name(form.get("name", "") or "survey")
        wish = survey_wished(form, command_folder(house, folder))
        api_survey.create(folder, wish.campaign)
    except UsageError as error:
        if within and campaign_here(folder) is not None:
            raise
        return _screen(request, fault=str(error), form=form) if within else _listed(request, "", str(error), form)
    if form.get("run", "1"):
        _give(house, wish)
    return RedirectResponse(
        rendering.address(request.path_params["name"] if within else folder.name.removesuffix(SUFFIX), "survey"), 303
    )


def _give(house: AppState, wish: SurveyRequest) -> None:
    with house.queue() as queue:
        queue.add(wish.run, now())


def command_folder(house: AppState, folder: Path) -> str:
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
        return rendering.answer(
            request,
            "survey.html",
            {"title": "Survey", **values(request), "line": line, "rules": RULE_WORDS, "statuses": STATUSES},
        )
    line = ""
    if asked.get("sites") and not fault:
        line, fault = line_or_fault(lambda: survey_wished(asked, command_folder(house_of(request), folder)).lines)
    shown = {"title": "Survey", "name": name, "surveyed": False, **_form(line, fault)}
    return rendering.answer(
        request,
        "survey_none.html",
        shown if form is None else shown | {"asked": asked},
        400 if form is not None else 200,
    )


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
        "name": name, "surveyed": True, "campaign": _told(standing.campaign), "seq": found.seq, "behind": found.behind,
        "pages": standing.pages,
        "state": moment.state, "note": moment.note, "rate": moment.rate, "elapsed_s": moment.elapsed_s,
        "job": job_of(house, name),
        "harvest": harvest_told(found), "kinds": _kinds(standing.sites), "sites": _best(standing.sites), "most": SITES,
        "sites_in_all": len(standing.sites),
    }  # fmt: skip


def _told(campaign: Campaign) -> dict[str, object]:
    return {
        "title": campaign.title, "sites": len(campaign.units), "rule": campaign.rule,
        "within": api_survey.within_of(campaign), "item": campaign.item,
        "pages": campaign.pages, "seed": campaign.seed,
    }  # fmt: skip


def harvest_told(found: SurveyMoment) -> dict[str, object]:
    """The harvest's figures; its curves are the picture's."""
    harvest = found.standing.harvest
    pages = harvest.total.pages[-1]
    return {
        "item": harvest.item, "found": int(harvest.total.found[-1]),
        "a_page": harvest.total.found[-1] / pages if pages else 0.0, "recent": harvest.recent,
        "round_robin": round_robin_told(harvest.baseline), "outside": int(harvest.companions.found[-1]),
        "completeness": completeness_told(harvest), "complete": harvest.richness.share,
    }  # fmt: skip


def _kinds(sites: tuple[SiteProgress, ...]) -> dict[str, int]:
    """Sites by state; the reasons of those that are not available stand beside each."""
    return dict(Counter(row.state.partition(":")[0] for row in sites).most_common())


def _best(sites: tuple[SiteProgress, ...]) -> list[dict[str, object]]:
    shown = sorted(sites, key=lambda row: (-row.links, -row.pages, row.short))[:SITES]
    return [{**row._asdict(), "share": row.share} for row in shown]


def events(request: Request) -> Response:
    """The moving part, each time that it changed."""
    values(request)  # refuses what is not there before the stream begins
    return pushed(
        request,
        f"survey {request.path_params['name']}",
        lambda asking: rendering.rendered(asking, "survey_part.html", values(asking)),
    )


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
            api_survey.add_sites(folder, units_of_text(form.get("sites", "")))
        case "decide":
            decide(
                folder,
                chosen(form),
                _status(form),
                form.get("tags", "").split(),
                start=form.get("start", "").strip(),
                now=now(),
            )
        case what:
            raise UsageError(f"nothing is known of {what[:50]!r}")
    return RedirectResponse(rendering.address(name, _back(form)), 303)


def _stop(house: AppState, name: str, folder: Path) -> None:
    """A job of this queue is cancelled; a run that a terminal began is asked by the collection itself."""
    if not stop_jobs(house, name):
        if house.watchers.look(folder).state != "running":
            raise UsageError("the survey does not run")
        api_survey.stop(folder)


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
    return ("survey/" + view if view in known else "survey") + (
        "?" + urlencode(_pairs(query)) if query and view in known else ""
    )


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, max_num_fields=50)


COUNTING = ("model", "met_by", "strong_least", "strong_share", "back_least")  # in the address: how is counted
LINKING = ("kind", "of", "on", "to", "words")  # and which links are looked at
MATRIX_SITES = 25  # of a table of all with all; the picture shows up to HEAT_SITES
MARKED = 200  # decisions that are listed
NETWORK_SITES = 200
TICKED = {"standing": "prefixes", "companions": "site"}  # what names the sites that are decided on
MEDIA = {
    "html": "text/html; charset=utf-8", "svg": "image/svg+xml", "gexf": "application/xml", "xml": "application/xml",
    "json": "application/json", "csv": "text/csv; charset=utf-8",
}  # fmt: skip
HEADS = {
    "units": "cited by sites", "recent": "a page lately", "score": "rule’s score", "share": "read",
    "back": "links back to", "in_links": "links in",
    "in_units": "from sites", "out_links": "links out", "out_units": "to sites", "out_companion": "to companions",
    "external_wif": "external WIF",
    "wif": "WIF", "robots": "robots.txt", "linking_pages": "pages linking",
    "external_linking_pages": "external pages linking",
}  # fmt: skip  # of columns whose name says too little
_NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.REAL})


@dataclass(frozen=True, slots=True)
class SurveyView:
    """One look at a survey.

    columns: of its table, those shown where none are wished; pictures: by name in the address, with what they show.
    """

    title: str
    sentence: str
    table: str
    columns: tuple[str, ...]
    pictures: tuple[tuple[str, str], ...] = ()


VIEWS = {
    "standing": SurveyView(
        "Sites", "How far each site was read and what it brought; tick some to decide on them.", "standing",
        ("site", "pages", "links", "recent", "score", "share", "waiting", "state", "tags"),
    ),
    "companions": SurveyView(
        "Companion set",
        (
"Sites outside the survey, by how many of its sites link to them: least values while "
"sites are not read to the end."
), "companions",
        ("site", "class", "units", "pages", "links", "back", "status", "tags"),
    ),
    "indicators": SurveyView(
        "Indicators", "Links between the survey’s sites, each pair of documents once.", "sites",
        ("site", "fetched", "share", "in_links", "in_units", "out_links", "out_units", "out_companion", "self_links",
            "external_linking_pages",
         "external_wif", "linking_pages", "wif", "state"),
    ),
    "matrix": SurveyView(
        "Who links to whom", "Rows link to columns; on the diagonal self-links.", "interlinking",
        ("source", "target", "links"),
        (("matrix", "Interlinking matrix: rows link to columns, shades by the logarithm of the links"),),
    ),
    "network": SurveyView(
        "Network", "How the sites hang together by direct links.", "connectivity",
        ("vertices", "sites", "arcs", "density", "reciprocity", "largest_strong", "strong_components", "largest_weak",
            "weak_components"),
        (
            ("network",
                "Network: circles are sites, their area the pages; arrows are links; dashed circles were not fetched"),
            ("fragment",
                (
"Model of the web fragment: the survey’s sites, classes of companion "
"sites, and the links between them"
)),
        ),
    ),
    "colinks": SurveyView(
        "Linked together",
        "Pairs of sites that the same sites link to, or that link to the same ones; global sites left out.", "colinks",
        ("kind", "first", "second", "sites"),
    ),
    "suffixes": SurveyView(
        "Countries and domains", "What the names of the sites outside are registered under.", "suffixes",
        ("direction", "suffix", "domain", "country", "sites", "links"),
    ),
    "harvest": SurveyView(
        "Harvest",
        "How many external items were found over pages, beside a round robin, and how many there may be in all.",
        "standing",
        ("site", "pages", "links", "recent", "share", "waiting"),
        (("yield", "Found over pages, with round robin and estimate; and each site by itself"),),
    ),
    "links": SurveyView("Links found",
        "The links as the survey collected them: within its sites, out of them, and what is none.", "", ()),
    "method": SurveyView(
        "Method", "How the figures came about, so that they can be set beside others.", "records",
        ("site", "prefixes", "fetched", "waiting", "robots", "refused", "dead", "redirects", "state"),
    ),
}  # fmt: skip


def order_of(asked: Mapping[str, str]) -> SurveyOrder:
    """How an address counts. Raises UsageError."""
    model, met_by = asked.get("model") or DocumentModel.PAGE, asked.get("met_by") or "host"
    if model not in list(DocumentModel) or met_by not in ("host", "domain"):
        raise UsageError(
            "a document is a page, directory, host or site; sites outside are told apart by host or domain"
        )
    rules = CompanionRules(
        int(_number(asked, "strong_least", 3, 1, 100_000)),
        _number(asked, "strong_share", 0.05, 0, 1),
        int(_number(asked, "back_least", 2, 1, 100_000)),
    )
    return SurveyOrder(model=DocumentModel(model), rules=rules, choice=UnitChoice(met_by))


def _number(asked: Mapping[str, str], name: str, usual: float, low: float, high: float) -> float:
    text = asked.get(name, "").strip()
    try:
        value = float(text or usual)
    except ValueError:
        value = low - 1
    if not low <= value <= high or (name != "strong_share" and value != int(value)):
        raise UsageError(f"{name.replace('_', ' ')} lies between {low:g} and {high:,g}, and is not {text[:50]!r}")
    return value


def view(request: Request) -> Response:
    """One of VIEWS: its figures, drawings, and a page of its table."""
    name, folder = folder_of(request)
    shown, asked = request.path_params["view"], dict(request.query_params)
    if shown not in VIEWS:
        raise NoCollection(f"there is no look at a survey called {shown!r}: choose among {', '.join(VIEWS)}")
    one, counted = VIEWS[shown], house_of(request).surveys.of(folder, order_of(asked))
    table = _table(request, one.table or asked.get("kind") or "external", counted)
    values: dict[str, object] = {
        "title": one.title, "name": name, "view": shown, "said": survey_caption(counted.found), "made": counted.made,
        **_figures(shown, counted), **_rows(request, table, one.columns),
    }  # fmt: skip
    if not rendering.wants_json(request):
        values |= {
            "sentence": one.sentence,
            "views": VIEWS,
            "pictures": _pictures(one, counted.found),
            "counting": COUNTING,
            "statuses": STATUSES,
            "heads": HEADS,
        }
        values |= {
            "own": {key: asked[key] for key in (*COUNTING, *LINKING) if asked.get(key)},
            "formats": FORMATS,
            "kinds": list(KINDS),
            "links": LINKS,
        }
    return rendering.answer(request, "survey_view.html", values)


def _pictures(one: SurveyView, found: SurveyResults) -> list[tuple[str, str]]:
    return [(what, said) for what, said in one.pictures if what != "matrix" or found.chosen <= HEAT_SITES]


def _table(request: Request, name: str, counted: Counted | None = None) -> LazyTable:
    """A table by its name. Raises UsageError."""
    _, folder = folder_of(request)
    asked = dict(request.query_params)
    if name == "standing":
        return standing_table(folder, house_of(request).survey_watchers.look(folder), marks_in(folder))
    if name in KINDS:
        return link_table(
            folder,
            LinkChoice(name, asked.get("of", ""), asked.get("on", ""), asked.get("to", ""), asked.get("words", "")),
        )
    return result_table(counted or house_of(request).surveys.of(folder, order_of(asked)), name)


def _rows(request: Request, lazy: LazyTable, columns: tuple[str, ...]) -> dict[str, object]:
    """A page of a table, as table screens have it."""
    asked = {name: text for name, text in request.query_params.items() if name not in (*COUNTING, *LINKING)}
    query, at = query_of(asked)
    names = tuple(part for part in asked.get("columns", "").split(",") if part) or columns
    ticked = TICKED.get(lazy.table.name)
    page = house_of(request).surveys.page(lazy, query, (*names, ticked) if ticked else names)
    shown, rows = (page.columns[:-1], [row[:-1] for row in page.rows]) if ticked else (page.columns, list(page.rows))
    values: dict[str, object] = {
        "table": lazy.table.name,
        "columns": shown,
        "rows": rows,
        "count": page.count,
        "facets": [facet for facet in page.facets if tells(facet, asked)],
        "conditions": list(query.conditions),
    }
    if not rendering.wants_json(request):
        values |= {
            "at": at,
            "first": query.first,
            "per": query.most,
            "sizes": ROWS,
            "sort": query.sort[0] if query.sort else "",
            "downloads": tuple(writers()),
            "sampled": page.sampled,
            "numeric": {column.name for column in shown if column.kind in _NUMBERS},
            "ticks": [row[-1] for row in page.rows] if ticked else [],
        }
    return values


def _figures(shown: str, counted: Counted) -> dict[str, object]:
    """What a view says beside its table."""
    found = counted.found
    match shown:
        case "companions":
            kinds = Counter(site.kind for site in found.companions)
            return {
                "classes": {kind.value: kinds[kind] for kind in CompanionClass},
                "decided": _decided(counted.marks),
                "gains": _gains(found.companions),
            }
        case "indicators":
            return {"totals": {model.value: links for model, links in found.totals}}
        case "matrix":
            names, counts = matrix_part(found, MATRIX_SITES)
            return {"names": names, "matrix": counts, "sites_in_all": found.chosen, "heat_sites": HEAT_SITES}
        case "network":
            return {"network_sites": NETWORK_SITES, "sets": found.model.sets, "relations": found.model.relations}
        case "harvest":
            harvest = found.harvest
            return {"richness": harvest.richness, "item": harvest.item, "recent": harvest.recent,
                "round_robin": round_robin_told(harvest.baseline),
                    "completeness": completeness_told(harvest)}  # fmt: skip
        case "method":
            method = found.method
            tally = {
                "documents": method.documents,
                "distinct links": method.links,
                "pages merged for equal content": method.merged,
            }
            return {"runs": method.runs[-20:], "runs_in_all": len(method.runs), "parameters": method.parameters,
                "counts": tally,
                    "global_sites": len(GLOBAL_SITES)}  # fmt: skip
    return {}


def _decided(marks: Mapping[str, SiteMark]) -> list[SiteMark]:
    """What the user noted, left out ones too: they stand in no list."""
    return sorted(
        (mark for mark in marks.values() if mark.status is not SiteStatus.DISCOVERED),
        key=lambda mark: (mark.status.value, mark.prefix),
    )[:MARKED]


def _gains(companions: tuple[CompanionSite, ...]) -> list[dict[str, object]]:
    """What each communicator adds by itself to the connectivity of the survey's sites."""
    return [
        {
            "site": site.name,
            "units": site.units,
            "back": site.back,
            **{field: getattr(site.gain, field) for field in site.gain.__slots__},
        }
        for site in companions
        if site.gain is not None
    ][:MARKED]


def table_file(request: Request) -> Response:
    """A table as CSV, XLSX, Parquet or JSON lines: exactly what is filtered, in the order shown."""
    name, ending = request.path_params["table"], request.path_params["ending"]
    asked = {key: text for key, text in request.query_params.items() if key not in (*COUNTING, *LINKING)}
    lazy, (query, _) = _table(request, name), query_of(asked)
    return sent(
        f"{request.path_params['name']}-{name}",
        ending,
        lambda path: house_of(request).surveys.write(lazy, query, ending, path),
    )


def picture(request: Request) -> Response:
    """A drawing, to be shown on a screen. `live`: the yield curves of this moment."""
    what = request.path_params["what"]
    if what != "live":
        return _document(request, what, "svg", {"content-security-policy": SANDBOX})
    _, folder = folder_of(request)
    standing = house_of(request).survey_watchers.look(folder).standing
    said = (
        f"{len(standing.campaign.units):,} sites, {standing.pages:,} pages, rule "
        f"{standing.campaign.rule}, seed {standing.campaign.seed}"
    )
    content = _text(lambda out: write_yield_curves(standing.harvest, standing.campaign.title, said, out))
    return Response(content, media_type=MEDIA["svg"], headers={"content-security-policy": SANDBOX})


def file(request: Request) -> Response:
    """The report, a drawing or a document as a file."""
    what, ending = request.path_params["what"], request.path_params["ending"]
    name = f"{request.path_params['name']}-{what}.{ending}"
    return _document(request, what, ending, rendering.file_named(name, {"content-security-policy": SANDBOX}))


def _document(request: Request, what: str, ending: str, headers: dict[str, str]) -> Response:
    if ending not in FORMATS.get(what, ()):
        raise UsageError(
            "a survey writes " + "; ".join(f"{name} as {', '.join(endings)}" for name, endings in FORMATS.items())
        )
    _, folder = folder_of(request)
    found = house_of(request).surveys.of(folder, order_of(dict(request.query_params))).found
    return Response(
        _text(lambda out: write_survey(found, what, ending, out, max_sites=NETWORK_SITES)),
        media_type=MEDIA[ending],
        headers=headers,
    )


def _text(write: Callable[[io.StringIO], None]) -> bytes:
    out = io.StringIO(newline="")
    write(out)
    return out.getvalue().encode("utf-8", "replace")
