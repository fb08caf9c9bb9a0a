"""Webometric analyses of a collection of many sites: indicators, companions, completeness, drawings, a report."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from periplus.analyse.linkgraph import places_in_sorted
from periplus.api.facts import run_name
from periplus.api.homes import home_of, open_reader
from periplus.errors import UsageError
from periplus.model.arrays import Floats, Ints
from periplus.model.graph import REASONS, UrlRows
from periplus.model.ports import RunRecord
from periplus.model.tables import Table
from periplus.model.visit import REASONS_OF, Reason, State
from periplus.model.web import Url, UrlId
from periplus.present.graphs import GRAPH_FORMATS
from periplus.present.markup import text_lines
from periplus.present.tables import write_table
from periplus.present.wording import REASON_WORDS, utc
from periplus.settings import VERSION, Settings, as_values
from periplus.store import runs
from periplus.store.reader import CollectionReader
from periplus.store.site_arrays import redirects as all_redirects
from periplus.store.statements import Statements
from periplus.urls.canonical import url_id
from periplus.urls.hosts import registered_domain
from periplus.values import Pairs, Place, Row, frozen, nearest
from periplus_studies import store
from periplus_studies.analyse import (
    between,
    centralities,
    co_inlinks,
    companion_set,
    connectivity,
    connectivity_with,
    couplings,
    fragment_model,
    suffix_tallies,
    unit_figures,
    unit_links,
    web_fragment,
)
from periplus_studies.compare import CHANGES, LINK_CHANGES
from periplus_studies.fragment import write_fragment_svg, write_fragment_xml
from periplus_studies.harvest import PRIOR_PAGES, completeness_text, harvest_of, harvest_rows, write_yield_curves
from periplus_studies.model import (
    CompanionClass,
    CompanionRules,
    CompanionSite,
    Connectivity,
    DocumentModel,
    HarvestRows,
    MethodSheet,
    SiteMark,
    SurveyResults,
    Unit,
    UnitLinks,
    UnitRecord,
    WebFragment,
)
from periplus_studies.network import (
    matrix_of,
    network_of,
    survey_caption,
    write_heat_map,
    write_matrix_csv,
    write_network_gexf,
    write_network_svg,
)
from periplus_studies.report import TABLES, survey_report, survey_table
from periplus_studies.schedule import ITEMS, PLAN, campaign_from
from periplus_studies.statistics import density_estimate, wif_estimates
from periplus_studies.units import UnitChoice, UnitsOfUrls, unit_of, units_of

FORMATS = {
    "report": ("html",),
    "network": ("svg", *GRAPH_FORMATS),
    "targets": ("svg", *GRAPH_FORMATS),
    "colinks": ("svg", *GRAPH_FORMATS),
    "matrix": ("csv", "svg"),
    "yield": ("svg",),
    "fragment": ("xml", "svg"),
}
"""Drawings and documents of `write_survey`; tables are in `report`."""
MOST_CO_LINKS = 1_000
CHECKSUMS = "SHA256SUMS"
_RULES, _CHOICE = CompanionRules(), UnitChoice()
_ROBOTS = (Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE)
_WAITING = (Reason.WAITING, Reason.DEPTH, Reason.HOST_DOWN, Reason.NOFOLLOW, Reason.TRAP, Reason.ALIVE)


@frozen
class SurveyOrder:
    """How a survey counts. item: unit of the harvest: an external page, host or (registered) domain."""

    title: str = ""
    model: DocumentModel = DocumentModel.PAGE
    item: str = "page"
    rules: CompanionRules = _RULES
    choice: UnitChoice = _CHOICE


@frozen
class SurveyRows:
    """Data of a collection from one snapshot, with the unit of every URL."""

    urls: UrlRows
    assigned: UnitsOfUrls
    fragment: WebFragment
    order: Ints  # page ids in order of fetching
    marks: Mapping[str, SiteMark]
    runs: tuple[RunRecord, ...]


def survey_of(place: Place, units: Sequence[Unit] = (), order: SurveyOrder | None = None) -> SurveyResults:
    """All results for these units and their surroundings, dated by the end of the last run, so that equal collections
    give equal results. units: empty: one per start of the collection's runs.

    Raises UsageError, NoCollection, StoreError.
    """
    order = order or SurveyOrder()
    with open_reader(place) as reader:
        return results(survey_rows_of(reader, units, order), order)


def survey_rows_of(reader: CollectionReader, units: Sequence[Unit], order: SurveyOrder) -> SurveyRows:
    """The input of all analyses, independent of rules and document model."""
    if order.item not in ITEMS:
        raise UsageError(f"unknown item {order.item!r}: choose among {', '.join(ITEMS)}")
    with reader.snapshot():
        records = tuple(reader.runs())
        chosen = tuple(units) or _units_of_starts(records)
        urls, marks = store.every_url(reader), store.marks(reader)
        links, contents = store.hyperlinks(reader), store.contents(reader)
        reader.plan(scans=True)
        redirects, asked = all_redirects(reader), store.fetch_order(reader)
    assigned = units_of(urls.texts, chosen, order.choice)
    return SurveyRows(
        urls, assigned, web_fragment(urls, links, redirects, contents, assigned, len(chosen)), asked, marks, records
    )


def _units_of_starts(records: Iterable[RunRecord]) -> tuple[Unit, ...]:
    units: dict[str, Unit] = {}
    for record in records:
        for start in record.starts:
            unit = unit_of(start)
            units.setdefault(unit.prefixes[0], unit)
    if not units:
        raise UsageError(
            "the collection has no run yet, so there is nothing to survey: start one with `periplus crawl URL URL ...`"
        )
    return tuple(units.values())


def results(rows: SurveyRows, order: SurveyOrder, now: float = 0.0) -> SurveyResults:
    """All results that follow from the rows."""
    fragment = rows.fragment
    by_model = {model: unit_links(fragment, model) for model in DocumentModel}
    pages, counted = by_model[DocumentModel.PAGE], by_model[order.model]
    companions = companion_set(fragment, pages, order.rules, rows.marks)
    left_out = np.zeros(len(fragment.units), np.bool_)
    left_out[[site.unit for site in companions if site.kind is CompanionClass.GLOBAL]] = True
    inside, documents = np.arange(len(fragment.units)) < fragment.chosen, live_documents(rows)
    return SurveyResults(
        units=fragment.units,
        chosen=fragment.chosen,
        method=_method(rows, order, now),
        figures=unit_figures(fragment, counted),
        totals=tuple((model, int(between(links, inside).counts.sum())) for model, links in by_model.items()),
        matrix=counted,
        connectivity=_connectivity(pages, fragment, companions),
        companions=companions,
        co_inlinks=co_inlinks(pages, fragment.chosen, left_out, MOST_CO_LINKS),
        couplings=couplings(pages, fragment.chosen, left_out, MOST_CO_LINKS),
        suffixes_out=suffix_tallies(counted, fragment.units, fragment.chosen, inward=False),
        suffixes_in=suffix_tallies(counted, fragment.units, fragment.chosen, inward=True),
        harvest=harvest_of(*harvests(rows, order.item), order.item),
        model=fragment_model(fragment, counted, companions),
        centralities=centralities(counted, fragment.chosen),
        wif=wif_estimates(fragment, documents, own=True),
        external_wif=wif_estimates(fragment, documents, own=False),
        density=density_estimate(fragment, documents),
    )


def _connectivity(
    links: UnitLinks, fragment: WebFragment, companions: Sequence[CompanionSite]
) -> tuple[Connectivity, ...]:
    rows = connectivity(links, fragment.units, fragment.chosen)
    ties = [site.unit for site in companions if site.kind is CompanionClass.COMMUNICATOR]
    return (*rows, connectivity_with(links, fragment.chosen, ties, len(fragment.units))) if ties else rows


def harvests(rows: SurveyRows, item: str) -> tuple[HarvestRows, HarvestRows]:
    """Yield of the target set's pages in order of fetching: (all, only links to sites outside the target set)."""
    fragment = rows.fragment
    document = places_in_sorted(fragment.ids, rows.order)
    document = document[document >= 0]
    document = document[fragment.fetched[document] & fragment.is_target[document]]
    turn = np.full(len(fragment.ids), -1, np.int64)
    turn[document] = np.arange(len(document))
    external = (turn[fragment.sources] >= 0) & (fragment.unit[fragment.sources] != fragment.unit[fragment.ends])
    page, end = turn[fragment.sources[external]], fragment.ends[external]
    names = tuple(unit.short for unit in fragment.units[: fragment.chosen])
    documents = np.ceil(live_documents(rows)[: fragment.chosen]).astype(np.int64)
    site = fragment.unit[document]
    outside = fragment.unit[end] >= fragment.chosen
    external_rows = harvest_rows(names, documents, site, (page, _items(rows, end, item)))
    return external_rows, harvest_rows(
        names, documents, site, (page[outside], fragment.unit[end[outside]].astype(np.int64))
    )


def live_documents(rows: SurveyRows) -> Floats:
    """Expected documents of each unit: the fetched ones, and of the waiting URLs the share that will give one.

    The share is that of the unit's requests so far, with PRIOR_PAGES requests at the mean share: the others failed, or
    led to a document that was there before.
    """
    fragment, size = rows.fragment, len(rows.fragment.units)
    fetched, waiting = (
        np.bincount(fragment.unit[mask], minlength=size) for mask in (fragment.fetched, fragment.waiting)
    )
    place = places_in_sorted(rows.urls.ids, rows.order)
    asked = np.bincount(rows.assigned.numbers[place[place >= 0]], minlength=size)
    mean = fetched.sum() / max(asked.sum(), 1)
    live: Floats = np.minimum((fetched + PRIOR_PAGES * mean) / (asked + PRIOR_PAGES), 1.0)
    return np.asarray(fetched + waiting * live, np.float64)


def _items(rows: SurveyRows, end: Ints, item: str) -> Ints:
    if item == "page":
        return end
    hosts = rows.fragment.host.astype(np.int64)
    if item == "host":
        return hosts[end]
    number, first = np.unique(hosts, return_index=True)  # one domain look-up per host
    texts = [rows.urls.texts[place] for place in places_in_sorted(rows.urls.ids, rows.fragment.ids[first]).tolist()]
    domains: dict[str, int] = {}
    of_host = np.zeros(int(number.max()) + 1 if len(number) else 0, np.int64)
    of_host[number] = [
        domains.setdefault(registered_domain(text.split("/")[2].partition(":")[0]), len(domains)) for text in texts
    ]
    return of_host[hosts[end]]


def _method(rows: SurveyRows, order: SurveyOrder, now: float) -> MethodSheet:
    fragment, last = rows.fragment, rows.runs[-1] if rows.runs else None
    runs = tuple(
        (
            run_name(run),
            f"{utc(run.started)} to {utc(run.ended) if run.ended else 'now'}, {run.state}, {run.fetched:,} fetched",
        )
        for run in rows.runs
    )
    ended = (last.ended or last.started) if last else 0.0
    return MethodSheet(
        title=order.title or f"Survey of {fragment.chosen} sites",
        runs=runs,
        run=run_name(last) if last else "",
        created=now or ended,
        model=order.model,
        parameters=_parameters(order, last),
        units=_records(rows),
        merged=fragment.merged,
        documents=len(fragment.ids),
        links=len(fragment.sources),
        data=_checksum(rows.urls.ids, rows.urls.reasons, rows.order, fragment.unit, fragment.sources, fragment.ends),
    )


def _checksum(*columns: np.ndarray[Any, Any]) -> str:
    """SHA-256 of numbers, the same on every machine."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column, "<i8").tobytes())
    return digest.hexdigest()


def _parameters(order: SurveyOrder, last: RunRecord | None) -> Pairs:
    """Counting rules, followed by all settings of the last run that differ from the defaults."""
    rules, defaults = order.rules, as_values(Settings())
    counted = [
        ("document model", order.model.value),
        (
            "links counted",
            ", ".join(kind.value for kind in store.HYPERLINKS)
            + "; each pair of documents once; none from a document to itself",
        ),
        ("merged", "redirects and aliases, http with https, fetched pages of equal bytes within a unit"),
        (
            "sites outside the survey",
            (
                f"separated by {order.choice.met_by}; folders count as sites on "
                f"{', '.join(host for host, _ in order.choice.platforms)}"
            ),
        ),
        ("item of the harvest", f"external {order.item}"),
        (
            "strong from",
            f"{rules.strong_least} target units, or {100 * rules.strong_share:g} % of them if that is more",
        ),
        ("communicator from", f"links back to {rules.back_least} target units"),
        ("global list", ", ".join(rules.global_sites)),
    ]
    changed = [
        (name, ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
        for name, value in (last.settings if last else {}).items()
        if value != defaults.get(name)
    ]
    return (*counted, *changed)


def _records(rows: SurveyRows) -> tuple[UnitRecord, ...]:
    """Number of URLs by state for each target unit."""
    chosen, codes = rows.fragment.chosen, len(REASONS)
    mine = rows.assigned.numbers < chosen
    table = np.bincount(
        rows.assigned.numbers[mine].astype(np.int64) * codes + rows.urls.reasons[mine], minlength=chosen * codes
    ).reshape(chosen, codes)
    place = {reason: column for column, reason in enumerate(REASONS)}
    fetched = np.bincount(rows.fragment.unit[rows.fragment.fetched], minlength=len(rows.fragment.units))

    def of(unit: int, reasons: Iterable[Reason]) -> int:
        return int(sum(table[unit, place[reason]] for reason in reasons))

    dead = REASONS_OF[State.FAILED]
    records = []
    for unit in range(chosen):
        why = "" if fetched[unit] else _why_not(rows.urls, rows.fragment.units[unit], table[unit])
        counts = (
            of(unit, _WAITING),
            of(unit, _ROBOTS),
            of(unit, (Reason.REFUSED, Reason.BOT_WALL)),
            of(unit, dead),
            of(unit, (Reason.REDIRECT,)),
        )
        records.append(UnitRecord(unit, int(fetched[unit]), *counts, why))
    return tuple(records)


def _why_not(urls: UrlRows, unit: Unit, counts: Ints) -> str:
    """Why no page of a unit was fetched: reason of its start, or the most frequent reason of its URLs.

    counts: by index in REASONS.
    """
    start = places_in_sorted(urls.ids, np.array([url_id(Url(unit.start))], np.int64))[0] if unit.start else -1
    if start < 0 and not counts.any():
        return "no link to it known"
    reason = REASONS[int(urls.reasons[start]) if start >= 0 else int(counts.argmax())]
    return f"not available: {REASON_WORDS[reason]}"


def mark_sites(place: Place, noted: Iterable[SiteMark], now: float) -> None:
    """Stores the user's status and tags of sites. Raises NoCollection, StoreError."""

    def store_all(statements: Statements) -> None:
        runs.refuse(statements)
        store.store_marks(statements, noted, now)

    home_of(place).change(store_all)


def pages_of_set(reader: CollectionReader, name: str) -> list[UrlId]:
    """URLs of the target set (`target`), or of one class of companions. Raises UsageError for an unknown set."""
    plan = reader.note(PLAN)
    units, name = campaign_from(plan, "").units if plan else (), name.lower()
    names = ("target", *(kind.value for kind in CompanionClass))
    if name not in names:
        raise UsageError(f"unknown set {name!r}{nearest(name, names)}: choose among {', '.join(names)}")
    rows = survey_rows_of(reader, units, SurveyOrder())
    inside = np.arange(len(rows.fragment.units)) < rows.fragment.chosen
    if name != "target":
        companions = companion_set(rows.fragment, unit_links(rows.fragment, DocumentModel.PAGE), _RULES, rows.marks)
        inside[:] = False
        inside[[site.unit for site in companions if site.kind == name]] = True
    return list(map(UrlId, rows.urls.ids[inside[rows.assigned.numbers]].tolist()))


def table_of(place: Place, name: str) -> tuple[Table, Iterable[Row]]:
    """A table of `report` of the survey of a collection. Raises UsageError, NoCollection, StoreError."""
    home = home_of(place)
    campaign = campaign_from(home.note(PLAN), home)
    order = SurveyOrder(campaign.title, item=campaign.item)
    return survey_table(survey_of(place, campaign.units, order), name)


def write_survey(results: SurveyResults, what: str, format: str, out: TextIO, *, max_sites: int = 200) -> None:
    """Writes a drawing or document from FORMATS. max_sites: of a drawing; files of data have all sites.

    out: UTF-8, newline="". Raises UsageError for an unknown combination.
    """
    if format not in FORMATS.get(what, ()):
        choices = "; ".join(f"{name} as {', '.join(formats)}" for name, formats in FORMATS.items())
        raise UsageError(f"a survey has no {what} as {format}: choose among {choices}")
    title, caption = results.method.title, survey_caption(results)
    match what, format:
        case "network" | "targets" | "colinks", "svg":
            write_network_svg(network_of(results, max_sites, what), title, caption, out)
        case "network" | "targets" | "colinks", _:  # data are never cut
            write_network_gexf(results, network_of(results, None, what), out, format)
        case "matrix", "csv":
            write_matrix_csv(results, out)
        case "matrix", _:
            write_heat_map(
                [unit.short for unit in results.units[: results.chosen]], matrix_of(results), title, caption, out
            )
        case "yield", _:
            write_yield_curves(results.harvest, title, caption, out)
        case "fragment", "xml":
            write_fragment_xml(results, out)
        case "fragment", _:
            write_fragment_svg(results.model, title, caption, out)
        case _:
            out.write(survey_report(results))


def write_paper(results: SurveyResults, folder: Path) -> str:
    """Writes every table, figure and file of data, the method as text, and their checksums (`sha256sum -c`).

    Equal collections give equal bytes. Returns the checksum of the checksums. Raises UsageError for a folder with
    other files.
    """
    if folder.exists() and not (folder.is_dir() and ((folder / CHECKSUMS).exists() or not any(folder.iterdir()))):
        raise UsageError(f"{folder} holds other files: name a new folder")
    names = [name for name in TABLES if results.earlier or name not in (CHANGES.name, LINK_CHANGES.name)]
    texts = {f"{name}.csv": _table_text(results, name) for name in names}
    for what, formats in FORMATS.items():
        for format in formats:
            out = io.StringIO(newline="")
            write_survey(results, what, format, out)
            texts[f"{what}.{format}"] = out.getvalue()
    texts["method.md"] = "\n".join(_method_lines(results, names, sorted(texts))) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, text in sorted(texts.items()):
        data = text.encode("utf-8", "replace")
        (folder / name).write_bytes(data)
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
    sums = "".join(lines).encode()
    (folder / CHECKSUMS).write_bytes(sums)
    return hashlib.sha256(sums).hexdigest()


def _table_text(results: SurveyResults, name: str) -> str:
    out = io.StringIO(newline="")
    table, rows = survey_table(results, name)
    write_table(table.names, rows, "csv", out)
    return out.getvalue()


def _method_lines(results: SurveyResults, tables: Sequence[str], files: Sequence[str]) -> list[str]:
    return text_lines(
        "method.md", "periplus_studies", method=results.method, results=results, files=files, version=VERSION,
        caption=survey_caption(results), completeness=completeness_text(results.harvest), libraries=_libraries(),
        earlier=survey_caption(results.earlier) if results.earlier else "", tables=[TABLES[name][0] for name in tables],
    )  # fmt: skip


def _libraries() -> Pairs:
    """Versions of the libraries that compute the figures."""
    names = ("numpy", "scipy", "networkx")
    return tuple((name, metadata.version(name)) for name in names if find_spec(name))
