"""Screens of surveys: how each is made, run and curated, and what it finds."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import Response

from periplus.api.functions import open_collection
from periplus.api.tables import TableQuery
from periplus.errors import NoCollection, PeriplusError, UsageError
from periplus.jobs.presets import choice, command_line, decimal, folder_name, whole
from periplus.settings import SUFFIX
from periplus.ui import rendering
from periplus.ui.description import Routes, Screen
from periplus.ui.live import push
from periplus.ui.rendering import RefusedForm
from periplus.ui.safety import form_of
from periplus.ui.state import AppState, now, place_read, state_of
from periplus.ui.tables import columns_of, page_values, query_of, send_file
from periplus.ui.users import Role
from periplus.values import JsonObject, Pairs, Place, fields_of, frozen
from periplus_studies import api as api_survey
from periplus_studies.api import LinkChoice, campaign_here, decide, marks_in
from periplus_studies.forms import PAGE_NUMBERS, RULE_WORDS, SURVEY_PAGES, survey_request, survey_run, units_of_text
from periplus_studies.harvest import completeness_text, round_robin_text, write_yield_curves
from periplus_studies.model import (
    GLOBAL_SITES,
    SURVEY_LINKS,
    Campaign,
    CompanionClass,
    CompanionRules,
    CompanionSite,
    DocumentModel,
    SiteMark,
    SiteProgress,
    SiteStatus,
)
from periplus_studies.network import matrix_part, survey_caption
from periplus_studies.report import HEAT_SITES
from periplus_studies.results import FORMATS, SurveyOrder, write_survey
from periplus_studies.schedule import within_of
from periplus_studies.units import UnitChoice
from periplus_studies.watching import (
    LINKS,
    CountedSurvey,
    LazyTable,
    SurveyMoment,
    Surveys,
    SurveyWatchers,
    link_table,
    result_table,
    standing_table,
)

_SURVEYS, _WATCHERS = Surveys(), SurveyWatchers()
READ_S = 3.0  # for one collection of the list
SITES = 50  # shown while they change; the table has all
SITE_FIELD = "site:"  # what a ticked site's field is called, with its prefixes
FORM: JsonObject = {"rules": RULE_WORDS, "usual_pages": SURVEY_PAGES}  # what the form that makes one needs
STATUSES = {
    SiteStatus.IN: "in: read in the survey",
    SiteStatus.OUT: "out: excluded from all lists",
    SiteStatus.UNDECIDED: "undecided: to be reviewed again",
    SiteStatus.DISCOVERED: "discovered: not reviewed",
}
COUNTING = ("model", "met_by", "strong_least", "strong_share", "back_least")  # in the address: how is counted
LINKING = ("kind", "of", "on", "to", "words")  # and which links are looked at
MATRIX_SITES = 25  # of a table of all with all; the picture shows up to HEAT_SITES
MOST_MARKS = 200  # decisions that are listed
NETWORK_SITES = 200
TICK_COLUMNS = {"standing": "prefixes", "companions": "site"}  # what names the sites that are decided on
HEADS = {  # labels of columns with unclear names
    "units": "cited by sites", "recent": "a page lately", "score": "rule’s score", "share": "read",
    "back": "links back to", "in_links": "links in", "in_units": "from sites", "out_links": "links out",
    "out_units": "to sites", "out_companion": "to companions", "external_wif": "external WIF", "wif": "WIF",
    "robots": "robots.txt", "linking_pages": "pages linking", "external_linking_pages": "external pages linking",
}  # fmt: skip
_C = "/c/{name}/survey"


@frozen
class SurveyRow:
    """A survey in the list. fault: why it cannot be read."""

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


def surveys(request: Request, refused: RefusedForm | None = None) -> Response:
    """The list, and the form that makes one; with a form in the address, the commands that it means."""
    state = state_of(request)
    places = state.places.collections()
    rows = [row for name, place in places.items() if (row := _row(name, place)) is not None]
    values = {
        "title": "Surveys",
        "surveys": rows,
        "works": state.works,
        "base": state.places.base.resolve(),
        **FORM,
    }

    def line(asked: Mapping[str, str]) -> str:
        return survey_request(asked, _folder_name(asked)).line if asked.get("sites") else ""

    return rendering.answer_form(request, "periplus_studies/surveys.html", values, line, refused)


def _folder_name(form: Mapping[str, str]) -> str:
    return folder_name(form.get("name", "") or "survey")


def _row(name: str, place: Place) -> SurveyRow | None:
    """None: the collection holds no survey."""
    try:
        campaign = campaign_here(place)
        if campaign is None:
            return None
        with open_collection(place, time_limit_s=READ_S) as collection:
            status = collection.status(0)
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
    """Makes the survey that the form describes, and asks for its first run.

    Within a collection that is there, if the address names one.
    """
    state, form = state_of(request), form_of(request)
    within = "name" in request.path_params
    place: Place = place_read(request)[1] if within else state.places.base
    try:
        if not within:
            place = state.places.base / _folder_name(form)
        job = survey_request(form, state.folder_word(place))
        assert job.prepare is not None
        job.prepare(place)
    except UsageError as error:
        if within and campaign_here(place) is not None:
            raise
        return (survey if within else surveys)(request, (form, str(error)))
    if form.get("run", "1"):
        state.add_job(job.order)
    name = request.path_params["name"] if within else _folder_name(form).removesuffix(SUFFIX)
    return rendering.to_screen(name, "survey")


def survey(request: Request, refused: RefusedForm | None = None) -> Response:
    """Progress of the survey; for a collection without a survey, the form that creates it."""
    name, place = place_read(request)
    word = state_of(request).folder_word(place)
    if campaign_here(place) is None:
        none = {"title": "Survey", "name": name, "surveyed": False, **FORM}
        return rendering.answer_form(
            request, "periplus_studies/survey_none.html", none,
            lambda asked: survey_request(asked, word).line if asked.get("sites") else "", refused,
        )  # fmt: skip
    line = command_line(survey_run(_run_fields(request.query_params), word).command)
    shown = {"title": "Survey", **values(request), "line": line, "rules": RULE_WORDS, "statuses": STATUSES}
    return rendering.answer(request, "periplus_studies/survey.html", shown)


def _run_fields(asked: Mapping[str, str]) -> dict[str, str]:
    names = (*PAGE_NUMBERS, "max_time", "rule", "rule_number", "max_depth", "delay")
    return {name: asked.get(name, "") for name in names}


def values(request: Request) -> JsonObject:
    """Values of the moving part."""
    state = state_of(request)
    name, place = place_read(request)
    survey_moment, moment = _WATCHERS.look(place), state.watchers.look(place)
    standing = survey_moment.standing
    return {
        "name": name, "surveyed": True, "campaign": _campaign(standing.campaign), "seq": survey_moment.seq,
        "behind": survey_moment.behind, "pages": standing.pages,
        **fields_of(moment, "state note rate elapsed_s"),
        "job": state.job_of(name),
        "harvest": harvest_figures(survey_moment), "kinds": _kinds(standing.sites), "sites": _best(standing.sites),
        "most": SITES, "sites_in_all": len(standing.sites),
    }  # fmt: skip


def _campaign(campaign: Campaign) -> JsonObject:
    return {
        "title": campaign.title, "sites": len(campaign.units), "rule": campaign.rule,
        "within": within_of(campaign), **fields_of(campaign, "item pages least_pages read_companions seed"),
    }  # fmt: skip


def harvest_figures(moment: SurveyMoment) -> JsonObject:
    """The harvest's figures; its curves are the picture's."""
    harvest = moment.standing.harvest
    pages = harvest.total.pages[-1]
    return {
        "item": harvest.item, "total": int(harvest.total.found[-1]),
        "a_page": harvest.total.found[-1] / pages if pages else 0.0, "recent": harvest.recent,
        "round_robin": round_robin_text(harvest.baseline), "outside": int(harvest.companions.found[-1]),
        "completeness": completeness_text(harvest), "complete": harvest.richness.share,
    }  # fmt: skip


def _kinds(sites: tuple[SiteProgress, ...]) -> dict[str, int]:
    """Sites by state; the reason of each unavailable site is in its row."""
    return dict(Counter(row.state.partition(":")[0] for row in sites).most_common())


def _best(sites: tuple[SiteProgress, ...]) -> list[JsonObject]:
    shown = sorted(sites, key=lambda row: (-row.links, -row.pages, row.short))[:SITES]
    return [{**row._asdict(), "share": row.share} for row in shown]


def events(request: Request) -> Response:
    """The moving part, each time that it changed."""
    values(request)  # refuses what is not there before the stream begins
    return push(
        request,
        f"survey {request.path_params['name']}",
        lambda asking: rendering.render(asking, "periplus_studies/survey_part.html", values(asking)),
    )


def change(request: Request) -> Response:
    """Runs or stops the survey, adds, includes or excludes sites; then redirects to the form's screen."""
    state, form = state_of(request), form_of(request)
    name, place = place_read(request)
    match form.get("what", ""):
        case "run":
            state.add_job(survey_run(_run_fields(form), state.folder_word(place)))
        case "stop":
            _stop(state, name, place)
        case "add":
            api_survey.add_sites(place, units_of_text(form.get("sites", "")))
        case "decide":
            status = SiteStatus(choice(form, "status", list(SiteStatus), None))
            start = form.get("start", "").strip()
            decide(place, chosen_prefixes(form), status, form.get("tags", "").split(), start=start, now=now())
        case what:
            raise UsageError(f"unknown action {what[:50]!r}")
    return rendering.to_screen(name, _back(form))


def _stop(state: AppState, name: str, place: Place) -> None:
    """A job of this queue is cancelled; a run that a terminal began is asked by the collection itself."""
    if not state.stop_jobs(name):
        if state.watchers.look(place).state != "running":
            raise UsageError("the survey does not run")
        api_survey.stop(place)


def chosen_prefixes(form: Mapping[str, str]) -> list[str]:
    """Prefixes of the ticked sites and of the typed ones."""
    ticked = [
        prefix for field in form if field.startswith(SITE_FIELD) for prefix in field.removeprefix(SITE_FIELD).split()
    ]
    return [*ticked, *form.get("others", "").split()]


def _back(form: Mapping[str, str]) -> str:
    """The form's screen, always one of ours."""
    view, _, query = form.get("back", "").partition("?")
    if view not in ("standing", "companions", "sites"):
        return "survey"
    return f"survey/{view}" + ("?" + urlencode(parse_qsl(query, max_num_fields=50)) if query else "")


@frozen
class SurveyView:
    """One look at a survey.

    columns: of its table, those shown where none are named; pictures: by name in the address, with what they show.
    """

    title: str
    sentence: str
    table: str
    columns: tuple[str, ...]
    pictures: Pairs = ()


VIEWS = {
    "standing": SurveyView(
        "Sites", "Progress and yield of each site; select sites to decide on them.", "standing",
        ("site", "pages", "links", "recent", "score", "share", "waiting", "state", "tags"),
    ),
    "companions": SurveyView(
        "Companion set",
        "Sites outside the survey, by the number of its sites that link to them. These are lower bounds "
        "until every site is fully crawled.",
        "companions",
        ("site", "class", "units", "pages", "links", "back", "status", "tags"),
    ),
    "indicators": SurveyView(
        "Indicators", "Links between the survey’s sites, each pair of documents once.", "sites",
        ("site", "fetched", "share", "in_links", "in_units", "out_links", "out_units", "out_companion", "self_links",
            "external_linking_pages", "external_wif", "linking_pages", "wif", "state"),
    ),
    "matrix": SurveyView(
        "Links between sites", "Rows link to columns; on the diagonal self-links.", "interlinking",
        ("source", "target", "links"),
        (("matrix", "Interlinking matrix: rows link to columns, shades by the logarithm of the links"),),
    ),
    "network": SurveyView(
        "Network", "Connectivity of the sites by direct links.", "connectivity",
        ("vertices", "sites", "arcs", "density", "reciprocity", "largest_strong", "strong_components", "largest_weak",
            "weak_components"),
        (
            ("network",
                "Network: circles are sites, their area the pages; arrows are links; dashed circles were not fetched"),
            ("fragment",
                "Model of the web fragment: the survey’s sites, classes of companion sites, and links between them"),
        ),
    ),
    "colinks": SurveyView(
        "Co-links",
        "Pairs of sites with common inlinks or common outlinks, without global sites.", "colinks",
        ("kind", "first", "second", "sites"),
        (("colinks", "Co-links: lines join sites, wider the more sites link to both"),),
    ),
    "suffixes": SurveyView(
        "Countries and domains", "Public suffixes of the outside sites.", "suffixes",
        ("direction", "suffix", "domain", "country", "sites", "links"),
    ),
    "harvest": SurveyView(
        "Harvest",
        "External items found over pages, compared with a round robin, and an estimate of the total.",
        "standing",
        ("site", "pages", "links", "recent", "share", "waiting"),
        (("yield", "Found over pages, with round robin and estimate; and each site separately"),),
    ),
    "links": SurveyView("Links",
        "The collected links: within the sites, out of them, and invalid ones.", "", ()),
    "method": SurveyView(
        "Method", "How the figures were computed, for comparison with others.", "records",
        ("site", "prefixes", "fetched", "waiting", "robots", "refused", "failed", "redirects", "state"),
    ),
}  # fmt: skip


def order_of(asked: Mapping[str, str]) -> SurveyOrder:
    """How an address counts. Raises UsageError."""
    rules = CompanionRules(
        whole(asked, "strong_least", 3, 1, 100_000),
        decimal(asked, "strong_share", 0.05, 0, 1),
        whole(asked, "back_least", 2, 1, 100_000),
    )
    model = DocumentModel(choice(asked, "model", list(DocumentModel), DocumentModel.PAGE))
    return SurveyOrder(model=model, rules=rules, choice=UnitChoice(choice(asked, "met_by", ("host", "domain"), "host")))


def view(request: Request) -> Response:
    """One of VIEWS: its figures, drawings, and a page of its table."""
    name, place = place_read(request)
    shown, asked = request.path_params["view"], dict(request.query_params)
    if shown not in VIEWS:
        raise NoCollection(f"there is no view of a survey called {shown!r}: choose among {', '.join(VIEWS)}")
    one, counted = VIEWS[shown], _SURVEYS.of(place, order_of(asked))
    table = _table(request, one.table or asked.get("kind") or "external", counted)
    values: JsonObject = {
        "title": one.title, "name": name, "view": shown,
        "caption": survey_caption(counted.results), "made": counted.made,
        **_figures(shown, counted), **_rows(request, table, one.columns),
    }  # fmt: skip
    if not rendering.wants_json(request):
        small = counted.results.chosen <= HEAT_SITES
        values |= {
            "sentence": one.sentence, "views": VIEWS, "counting": COUNTING, "statuses": STATUSES, "heads": HEADS,
            "pictures": [(what, text) for what, text in one.pictures if what != "matrix" or small],
            "own": {key: asked[key] for key in (*COUNTING, *LINKING) if asked.get(key)}, "formats": FORMATS,
            "kinds": list(SURVEY_LINKS), "links": LINKS,
        }  # fmt: skip
    return rendering.answer(request, "periplus_studies/survey_view.html", values)


def _table(request: Request, name: str, counted: CountedSurvey | None = None) -> LazyTable:
    """A table by its name. Raises UsageError."""
    _, place = place_read(request)
    asked = request.query_params
    if name == "standing":
        return standing_table(place, _WATCHERS.look(place), marks_in(place))
    if name in SURVEY_LINKS:
        of, on, to, words = (asked.get(field, "") for field in ("of", "on", "to", "words"))
        return link_table(place, LinkChoice(name, of, on, to, words))
    return result_table(counted or _SURVEYS.of(place, order_of(asked)), name)


def _rows(request: Request, table: LazyTable, columns: tuple[str, ...]) -> JsonObject:
    """A page of a table, as table screens have it."""
    query, at = _query(request)
    names, ticked = columns_of(request.query_params) or columns, TICK_COLUMNS.get(table.table.name)
    page = _SURVEYS.page(table, query, (*names, ticked) if ticked else names)
    ticks = [row[-1] for row in page.rows] if ticked else []
    if ticked:
        page = replace(page, columns=page.columns[:-1], rows=tuple(row[:-1] for row in page.rows))
    values = page_values(request, page, query, at)
    if not rendering.wants_json(request):
        values["ticks"] = ticks
    return values


def _query(request: Request) -> tuple[TableQuery, int]:
    """Query parameters without the options of counting. Raises UsageError."""
    return query_of({name: text for name, text in request.query_params.items() if name not in (*COUNTING, *LINKING)})


def _figures(shown: str, counted: CountedSurvey) -> JsonObject:
    """Values of a view beside its table."""
    results = counted.results
    match shown:
        case "companions":
            kinds = Counter(site.kind for site in results.companions)
            return {
                "classes": {kind.value: kinds[kind] for kind in CompanionClass},
                "decided": _decisions(counted.marks),
                "gains": _gains(results.companions),
            }
        case "indicators":
            return {"totals": {model.value: links for model, links in results.totals}}
        case "matrix":
            names, counts = matrix_part(results, MATRIX_SITES)
            return {"names": names, "matrix": counts, "sites_in_all": results.chosen, "heat_sites": HEAT_SITES}
        case "network":
            return {"network_sites": NETWORK_SITES, "sets": results.model.sets, "relations": results.model.relations}
        case "harvest":
            harvest = results.harvest
            return {**fields_of(harvest, "richness item recent"),
                "round_robin": round_robin_text(harvest.baseline),
                    "completeness": completeness_text(harvest)}  # fmt: skip
        case "method":
            method = results.method
            tally = {
                "documents": method.documents,
                "distinct links": method.links,
                "pages merged for equal content": method.merged,
            }
            return {"runs": method.runs[-20:], "runs_in_all": len(method.runs), "parameters": method.parameters,
                "counts": tally,
                    "global_sites": len(GLOBAL_SITES)}  # fmt: skip
    return {}


def _decisions(marks: Mapping[str, SiteMark]) -> list[SiteMark]:
    """The user's notes on sites, with excluded sites, which are in no list."""
    return sorted(
        (mark for mark in marks.values() if mark.status is not SiteStatus.DISCOVERED),
        key=lambda mark: (mark.status.value, mark.prefix),
    )[:MOST_MARKS]


def _gains(companions: tuple[CompanionSite, ...]) -> list[JsonObject]:
    """Contribution of each communicator alone to the connectivity of the survey's sites."""
    return [
        {
            "site": site.name,
            "units": site.units,
            "back": site.back,
            **asdict(site.gain),
        }
        for site in companions
        if site.gain is not None
    ][:MOST_MARKS]


def table_file(request: Request) -> Response:
    """A table as CSV, XLSX, Parquet or JSON lines: exactly what is filtered, in the order shown."""
    name, ending = request.path_params["table"], request.path_params["ending"]
    table, (query, _) = _table(request, name), _query(request)
    return send_file(
        f"{request.path_params['name']}-{name}", ending, lambda path: _SURVEYS.write(table, query, ending, path)
    )


def picture(request: Request) -> Response:
    """A drawing, to be shown on a screen. `live`: the yield curves of this moment."""
    what = request.path_params["what"]
    if what != "live":
        return rendering.drawing(_document(request, what, "svg"))
    standing = _WATCHERS.look(place_read(request)[1]).standing
    text = (
        f"{len(standing.campaign.units):,} sites, {standing.pages:,} pages, rule "
        f"{standing.campaign.rule}, seed {standing.campaign.seed}"
    )
    out = io.StringIO(newline="")
    write_yield_curves(standing.harvest, standing.campaign.title, text, out)
    return rendering.drawing(out.getvalue())


def file(request: Request) -> Response:
    """The report, a drawing or a document as a file."""
    what, ending = request.path_params["what"], request.path_params["ending"]
    name = f"{request.path_params['name']}-{what}.{ending}"
    return rendering.drawing(_document(request, what, ending), name)


def _document(request: Request, what: str, ending: str) -> str:
    if ending not in FORMATS.get(what, ()):
        raise UsageError(
            "a survey writes " + "; ".join(f"{name} as {', '.join(endings)}" for name, endings in FORMATS.items())
        )
    _, place = place_read(request)
    counted, out = _SURVEYS.of(place, order_of(request.query_params)), io.StringIO(newline="")
    write_survey(counted.results, what, ending, out, max_sites=NETWORK_SITES)
    return out.getvalue()


ROUTES = Routes(
    screens=(Screen("/surveys", surveys), Screen(_C, survey), Screen(_C + "/{view}", view)),
    forms={
        "/surveys/new": (Role.WORK, create),
        _C + "/create": (Role.WORK, create),
        _C + "/change": (Role.WORK, change),
    },
    files={
        _C + "/events": events,
        _C + "/t/{table}.{ending}": table_file,
        _C + "/picture/{what}.svg": picture,
        _C + "/file/{what}.{ending}": file,
    },
)
