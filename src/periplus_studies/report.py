"""The report of a survey: method sheet, tables, drawings and indicators on one page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from operator import itemgetter
from typing import Any

import numpy as np

from periplus.errors import UsageError
from periplus.model.tables import ColumnKind, Table, columns_of
from periplus.present.markup import Cell, PagedTable, document, html_columns, macros, make_sections, text
from periplus.present.wording import count_of, number, utc
from periplus.values import Row, fields_of
from periplus_studies.compare import CHANGES, LINK_CHANGES, SurveyChange, compare_surveys
from periplus_studies.fragment import write_fragment_svg
from periplus_studies.harvest import completeness_text, round_robin_text, write_yield_curves
from periplus_studies.model import CampaignProgress, CompanionClass, Estimate, SiteMark, SurveyResults, Unit
from periplus_studies.network import matrix_of, network_of, survey_caption, write_heat_map, write_network_svg
from periplus_studies.statistics import spearman

Values = dict[str, Any]  # of a row, by column
_RUN = columns_of("""
    run text: the run that the figures come from
    model text: what counts as one document: page, directory, host or site; a link is a distinct pair of them
""")
UNITS = Table(
    "sites",
    "Links between the survey’s sites, each pair of documents once.",
    (
        *columns_of("""
        site text searched: the unit's name
        prefixes text searched: prefixes of the unit's URLs
        bundle text searched facet: the organisation that it belongs to
        official boolean facet: whether it is the organisation's official site
        fetched integer: documents that were fetched
        waiting integer: documents that are known and were not fetched
        share real: fetched / (fetched + waiting)
        in_links integer: links from other sites of the target set
        in_units integer: how many sites these come from
        in_companion integer: links from pages that were fetched outside the target set
        out_links integer: links to other sites of the target set
        out_units integer: how many sites these lead to
        out_companion integer: links to sites outside the target set
        out_sites integer: how many sites outside these lead to
        self_links integer: links within the site
        linking_pages integer: pages that link into the site, its own among them: the numerator of wif
        external_linking_pages integer: pages of other sites that link into it: the numerator of external_wif
        wif real: linking_pages / fetched; empty if fetched is 1 or 0: use linking_pages
        external_wif real: external_linking_pages / fetched; empty as wif is
        wif_estimate real: the same on all known documents, as if the fetched ones were a random sample; empty as wif is
        wif_low real: lower end of its 95 % interval
        wif_high real: upper end
        external_wif_estimate real: external_wif on all known documents, likewise
        external_wif_low real: lower end of its 95 % interval
        external_wif_high real: upper end
        community integer facet: Louvain community of links between the sites, the largest first; needs networkx
        betweenness real: share of the shortest paths between two other sites that lead through it; needs networkx
        hub real: HITS: links to sites with authority; all sites' values sum to 1
        authority real: HITS: linked from hubs
        core integer: k-core: the largest k of a part in which each site is linked with k others; needs networkx
        state text facet wide: empty, or why no page of the site was fetched
    """),
        *_RUN,
    ),
)
COMPANIONS = Table(
    "companions",
    "Sites outside the survey, by how many of its sites link to them.",
    columns_of("""
        site text searched: the site outside the target set
        class text facet: private, weak, strong, communicator or global
        units integer facet: different sites of the target set that link to it
        pages integer: pages of these that do
        links integer: distinct pairs of pages
        back integer: sites of the target set that it links to; none where no page of it was fetched
        documents integer: pages of it that are known
        fetched integer: pages of it that were fetched
        strong_gain integer: of communicators: sites that the largest strong component gains by it
        pairs_gain integer: of communicators: ordered pairs of sites that come into reach of each other by it
        status text facet: what the user decided: in, out, undecided, discovered
        tags text searched: the user's tags, separated by blanks
        run text: the run that the figures come from
    """),
)
CO_LINKS = Table(
    "colinks",
    "Pairs of sites with common inlinks or common outlinks.",
    columns_of("""
        kind text facet: co-inlink: sites that link to both; coupling: sites that both link to
        first text searched: a site of the target set
        second text searched: another one
        sites integer: how many sites, without global sites
    """),
)
SUFFIXES = Table(
    "suffixes",
    "Public suffixes of the outside sites.",
    (
        *columns_of("""
        direction text facet: out: linked to from the target set; in: linking to it
        suffix text searched: what the sites' names are registered under; empty for addresses
        domain text: the top level domain
        country boolean facet: whether that is a country's
        sites integer: sites outside the target set
        links integer: links from or to these
    """),
        *_RUN,
    ),
)
CONNECTIVITY = Table(
    "connectivity",
    "Connectivity of the sites by direct links.",
    columns_of("""
        vertices text searched: all sites of the target set, official sites, bundles, or all with the communicators
        sites integer: vertices
        arcs integer: linked ordered pairs
        density real: arcs of all that could be
        density_low real: of all sites: 95 % interval of the density on all known documents; empty: too few were read
        density_high real: upper end
        reciprocity real: share of arcs that are returned
        largest_strong integer: vertices in the largest strong component
        strong_components integer: strong components
        largest_weak integer: vertices in the largest weak component
        weak_components integer: weak components
    """),
)
INTERLINKING = Table(
    "interlinking",
    "Links between sites.",
    (
        *columns_of("""
        source text searched: the site of the target set that links
        target text searched: the site that is linked to
        links integer: distinct pairs of documents; of a site with itself: its self-links
    """),
        *_RUN,
    ),
)
RECORDS = Table(
    "records",
    "States of each site’s URLs.",
    columns_of("""
        site text searched: the unit's name
        prefixes text searched: prefixes of the unit's URLs
        fetched integer: URLs that were fetched
        waiting integer: URLs that are known and were not requested
        robots integer: URLs that robots.txt forbids
        refused integer: URLs that the server refused
        failed integer: URLs that do not exist or cannot be reached
        redirects integer: URLs that redirect
        state text searched facet: empty, or why no page of the site was fetched
    """),
)
CORRELATIONS = Table(
    "correlations",
    "Rank correlations of the sites' figures with their sizes and with columns of other sources.",
    columns_of("""
        figure text searched facet: a column of `sites`
        other text searched facet: documents: known documents of the site; else the column of the file
        pairs integer: sites with a fetched page and both values
        rho real: Spearman's rank correlation; empty if a column is constant
        low real: lower end of its 95 % interval
        high real: upper end
    """),
)
STANDING = Table(
    "standing",
    "Progress and yield of each site.",
    columns_of("""
        site text searched: the site's name
        prefixes text searched: the first prefix of each of its units
        pages integer: pages that were requested
        links integer: external items found first on this site's pages
        recent real: of them a page, over the site's last pages
        score real: the rule's score; empty: too early
        share real: share of the known pages that was requested
        waiting integer: pages that are known and were not asked for
        state text facet wide: reading, read, waiting, or why it is not available
        tags text searched: the user's tags, separated by blanks
    """),
)
_NO_FIGURES = frozenset(
    {"waiting", "share", "community", *(f"{name}_{end}" for name in ("wif", "external_wif") for end in ("low", "high"))}
)  # columns of `sites` that a rank correlation makes no use of
HEAT_SITES = 400  # of more, the matrix is no picture: 1,000 sites have a million cells
_STYLE = """
.scroll td:not(.n, .w) { min-width: 8rem; } .scroll td:first-child:not(.n, .w) { min-width: 13rem; }
.drawing { margin: .6rem 0 1rem; } .drawing img { width: 100%; max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 8px; }
@media screen and (max-width: 70rem) { .drawing { overflow-x: auto; } .drawing img { width: auto; max-width: none; } }
figure { margin: 0; } figcaption { color: var(--soft); font-size: .9rem; }
"""  # noqa: E501
_NETWORK = "Companion sites are drawn if at least two sites of the target set link to them, without global sites."
_TARGETS = "The sites of the target set and the links between them, without companion sites."
_FRAGMENT = "The target set, the classes of its companion set, and the links between them."


def standing_rows(results: CampaignProgress, marks: Mapping[str, SiteMark]) -> Iterator[Row]:
    """Rows of STANDING: most new links first."""
    for row in sorted(results.sites, key=lambda row: (-row.links, -row.pages, row.short)):
        tags = " ".join(tag for prefix in row.prefixes if prefix in marks for tag in marks[prefix].tags)
        values = {"site": row.name, "prefixes": " ".join(row.prefixes), "share": row.share, "tags": tags}
        yield _row(STANDING, row._asdict() | values)


def _row(table: Table, values: Mapping[str, object]) -> Row:
    """The values in the order of the table's columns."""
    return tuple(values[name] for name in table.names)


def survey_table(results: SurveyResults, name: str) -> tuple[Table, Iterator[Row]]:
    """One of TABLES, and its rows. Raises UsageError for another name."""
    if name not in TABLES:
        raise UsageError(f"a survey has no table {name!r}: choose among {', '.join(TABLES)}")
    if results.earlier is None and name in (CHANGES.name, LINK_CHANGES.name):
        raise UsageError(f"the table {name} compares with an earlier survey: name its collection (--before)")
    table, rows = TABLES[name]
    return table, (_row(table, values) for values in rows(results))


def _units(results: SurveyResults) -> Iterator[Values]:
    states = {record.unit: record.state for record in results.method.units}
    for row in results.figures:
        yield (
            row._asdict()
            | _unit_values(results.units[row.unit])
            | results.centralities[row.unit]._asdict()
            | _run(results)
            | {
                "share": row.share,
                "linking_pages": row.wif.linking,
                "external_linking_pages": row.external_wif.linking,
                "wif": row.wif.value,
                "external_wif": row.external_wif.value,
                **_estimate("wif", results.wif[row.unit] if row.wif.value is not None else None),
                **_estimate("external_wif", results.external_wif[row.unit] if row.wif.value is not None else None),
                "state": states.get(row.unit, ""),
            }
        )


def _estimate(name: str, estimate: Estimate | None) -> Values:
    value, low, high = (estimate.value, estimate.low, estimate.high) if estimate else (None, None, None)
    return {f"{name}_estimate": value, f"{name}_low": low, f"{name}_high": high}


def _unit_values(unit: Unit) -> Values:
    return {"site": unit.name, "prefixes": " ".join(unit.prefixes)} | fields_of(unit, "bundle official")


def _run(results: SurveyResults) -> Values:
    return {"run": results.method.run, "model": results.method.model.value}


def _companions(results: SurveyResults) -> Iterator[Values]:
    for site in results.companions:
        gain = site.gain
        yield {field.name: getattr(site, field.name) for field in fields(site)} | {
            "site": site.name,
            "class": site.kind.value,
            "strong_gain": gain.largest_strong - gain.strong_before if gain else None,
            "pairs_gain": gain.pairs - gain.pairs_before if gain else None,
            "status": site.status.value,
            "tags": " ".join(site.tags),
            "run": results.method.run,
        }


def _co_links(results: SurveyResults) -> Iterator[Values]:
    for kind, pairs in (("co-inlink", results.co_inlinks), ("coupling", results.couplings)):
        for pair in pairs:
            first, second = results.units[pair.first].name, results.units[pair.second].name
            yield {"kind": kind, "first": first, "second": second, "sites": pair.sites}


def _suffixes(results: SurveyResults) -> Iterator[Values]:
    for direction, tallies in (("out", results.suffixes_out), ("in", results.suffixes_in)):
        for tally in tallies:
            yield {"direction": direction} | tally._asdict() | _run(results)


def _connectivity(results: SurveyResults) -> Iterator[Values]:
    for row in results.connectivity:
        yield {
            **fields_of(row, "vertices sites arcs density reciprocity"),
            **_estimate("density", results.density if row.vertices == "all" else None),
            "largest_strong": row.strong[0] if row.strong else 0,
            "strong_components": len(row.strong),
            "largest_weak": row.weak[0] if row.weak else 0,
            "weak_components": len(row.weak),
        }


def _interlinking(results: SurveyResults) -> Iterator[Values]:
    """Most links first; self-links among them."""
    matrix, units = results.matrix, results.units
    inside = (matrix.sources < results.chosen) & (matrix.ends < results.chosen)
    rows = zip(
        matrix.counts[inside].tolist(), matrix.sources[inside].tolist(), matrix.ends[inside].tolist(), strict=True
    )
    for links, source, end in sorted(rows, key=lambda row: (-row[0], row[1], row[2])):
        yield {"source": units[source].name, "target": units[end].name, "links": links} | _run(results)


def _records(results: SurveyResults) -> Iterator[Values]:
    for record in results.method.units:
        yield _unit_values(results.units[record.unit]) | record._asdict()


def correlations(results: SurveyResults) -> Iterator[Values]:
    """Of every figure of the read sites with their known documents, and with each column of `results.outside`."""
    read = np.array([bool(row.fetched) for row in results.figures], np.bool_)
    rows = list(_units(results))
    sizes = tuple(float(row.fetched + row.waiting) for row in results.figures)
    others = [("documents", sizes), *((column.name, column.values) for column in results.outside)]
    for name, values in others:
        other = np.array(values, np.float64)[read]
        for column in UNITS.columns:
            if column.kind in (ColumnKind.INTEGER, ColumnKind.REAL) and column.name not in _NO_FIGURES:
                figure = np.array([row[column.name] for row in rows], np.float64)[read]
                yield {"figure": column.name, "other": name, **asdict(spearman(figure, other))}


def _site_changes(results: SurveyResults) -> Iterator[Values]:
    return (row._asdict() for row in _change(results).rows)


def _link_changes(results: SurveyResults) -> Iterator[Values]:
    return (row._asdict() for row in _change(results).links)


def _change(results: SurveyResults) -> SurveyChange:
    assert results.earlier is not None
    return compare_surveys(results.earlier, results)


TABLES: dict[str, tuple[Table, Callable[[SurveyResults], Iterator[Values]]]] = {
    table.name: (table, rows)
    for table, rows in (
        (UNITS, _units),
        (COMPANIONS, _companions),
        (CO_LINKS, _co_links),
        (SUFFIXES, _suffixes),
        (CONNECTIVITY, _connectivity),
        (INTERLINKING, _interlinking),
        (RECORDS, _records),
        (CORRELATIONS, correlations),
        (CHANGES, _site_changes),
        (LINK_CHANGES, _link_changes),
    )
}


def survey_report(results: SurveyResults) -> str:
    """The report as one self-contained page of XHTML that is valid HTML too, light and dark, fit for paper.

    Every figure has the run, the document model and the share of pages that was read; texts from the web are escaped.
    """
    html: Any = macros("report.html", "periplus_studies")
    method, harvest, caption = results.method, results.harvest, survey_caption(results)
    names = [unit.short for unit in results.units[: results.chosen]]
    network = _picture(results, write_network_svg, network_of(results))
    targets = _picture(results, write_network_svg, network_of(results, what="targets"))
    fragment = _picture(results, write_fragment_svg, results.model)
    matrix = "" if results.chosen > HEAT_SITES else _picture(results, write_heat_map, names, matrix_of(results))
    curves = _picture(results, write_yield_curves, harvest)
    kinds = [(kind, sum(site.kind is kind for site in results.companions)) for kind in CompanionClass]
    measured = [site for site in results.companions if site.gain is not None]
    co_links = [
        ("Linked from the same sites", _pair_rows("co-rows", results, "co-inlink")),
        ("Linking to the same sites", _pair_rows("coupling-rows", results, "coupling")),
    ]
    progress = (completeness_text(harvest), round_robin_text(harvest.baseline))
    idle = results.chosen - sum(map(_has_figures, _units(results)))
    sections = [
        ("targets", "The surveyed sites alone", html.drawing(targets, _TARGETS)),
        ("network", "Connectivity of the sites", html.drawing(network, _NETWORK)),
        (
            "indicators",
            "Sites of the target set",
            html.indicators(_figure_rows(results), method.model, results.totals, idle),
        ),
        ("matrix", "Links between sites", html.matrix(matrix, results.chosen)),
        ("connectivity", "Connectivity", html.connectivity(results.connectivity, results.density)),
        ("fragment", "Model of the web fragment", html.drawing(fragment, _FRAGMENT)),
        ("companions", "Companion set", html.companions(_companion_rows(results), kinds)),
        ("communicators", "Communicators", html.communicators(measured)),
        ("colinks", "Co-links and coupling", html.colinks(co_links)),
        ("correlations", "Rank correlations", html.correlations(_correlation_rows(results))),
        ("changes", "Compared with the earlier survey", _changes(html, results)),
        ("domains", "Countries and domains", html.suffixes(results.suffixes_out, results.suffixes_in)),
        ("harvest", "The harvest, and how complete it is", html.harvest(harvest, *progress, curves)),
        ("method", "Method sheet", html.method(_facts(results), _record_rows(results))),
    ]
    figures = [
        ("sites in the target set", results.chosen),
        ("pages fetched", sum(row.fetched for row in results.figures)),
        ("links between them", sum(row.in_links for row in results.figures)),
        ("companion sites", len(results.companions)),
        (f"external {harvest.item}s found", harvest.richness.observed),
    ]
    empty = [results.units[record.unit].name for record in method.units if record.state]
    nav, body = make_sections(sections)
    title, foot = text(method.title), html.foot(caption, method.created)
    head = f"<h1>{title}</h1>\n{html.head(caption, figures, empty)}\n{nav}"
    return document(title, head, body, foot=foot, rules=_STYLE)


def _picture(results: SurveyResults, write: Callable[..., None], *values: object) -> str:
    """The SVG that `write` makes of the values, in Base64."""
    out = io.StringIO()
    write(*values, results.method.title, survey_caption(results), out)
    return base64.b64encode(out.getvalue().encode("utf-8", "replace")).decode("ascii")


def _facts(results: SurveyResults) -> list[tuple[str, str]]:
    """Runs, counts and parameters."""
    method = results.method
    counts = [
        ("sites in the target set", number(results.chosen)),
        ("documents", number(method.documents)),
        ("distinct links", number(method.links)),
        ("pages merged for equal content", number(method.merged)),
        ("URLs forbidden by robots.txt", number(sum(record.robots for record in method.units))),
        ("sites without a page", number(sum(1 for record in method.units if record.state))),
        ("made", utc(method.created)),
    ]
    return [*method.runs, *counts, *method.parameters]


def _value_table(element: str, rows: Iterable[Values], lines: str, **values: Callable[[Values], Cell]) -> PagedTable:
    """Rows of one of TABLES as a table of the report. lines, values: as in `html_columns`."""
    items = list(rows)
    return PagedTable(element, html_columns(lines, values, itemgetter), items, len(items))


def _record_rows(results: SurveyResults) -> PagedTable:
    return _value_table(
        "record-rows",
        _records(results),
        """
        site: site
        prefixes: prefixes wide
        fetched: fetched n
        waiting: waiting n
        robots.txt: robots n
        refused: refused n
        failed: failed n
        redirects: redirects n wide
        bundle: bundle wide
        state: state
    """,
        bundle=lambda row: f"{row['bundle']}{'' if row['official'] else ' (not official)'}",
        state=lambda row: str(row["state"] or "read"),
    )


def _figure_rows(results: SurveyResults) -> PagedTable:
    return _value_table(
        "unit-rows",
        filter(_has_figures, _units(results)),
        """
        site: site
        pages: fetched n
        read, %: share n
        links in: in_links n
        from sites: in_units n
        links out: out_links n
        to sites: out_units n
        to companions: out_companion n wide
        self-links: self_links n wide
        community: community n
        between: betweenness n wide
        core: core n wide
        external WIF: external_wif n
        95 %: external_wif_low
        WIF: wif n wide
        95 %: wif_low wide
    """,
        community=lambda row: row["community"] or "–",
        betweenness=lambda row: "–" if row["betweenness"] is None else f"{row['betweenness']:.3f}",
        core=lambda row: "–" if row["core"] is None else row["core"],
        share=lambda row: round(100 * row["share"]),
        external_wif=lambda row: _factor(row["external_wif"], row["external_linking_pages"], row["fetched"]),
        external_wif_low=lambda row: _between(row, "external_wif"),
        wif=lambda row: _factor(row["wif"], row["linking_pages"], row["fetched"]),
        wif_low=lambda row: _between(row, "wif"),
    )


def _between(row: Values, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "–" if low is None else f"{low:.2f} to {high:.2f}"


def _has_figures(row: Values) -> bool:
    """Whether a site has a fetched page, and a link in or out."""
    return bool(row["fetched"] and row["in_links"] + row["in_companion"] + row["out_links"] + row["out_companion"])


def _factor(value: float | None, linking: int, documents: int) -> str:
    if value is None:
        return f"{number(linking)} to the only page" if linking and documents else "–"
    return f"{value:.2f} = {number(linking)}/{number(documents)}"


def _companion_rows(results: SurveyResults) -> PagedTable:
    return _value_table(
        "companion-rows",
        _companions(results),
        """
        site: site
        class: class
        sites linking: units n
        pages linking: pages n
        links: links n wide
        links back to: back
        status: status wide
        tags: tags wide
    """,
        back=lambda row: "not read" if row["back"] is None else count_of(row["back"], "site"),
        tags=lambda row: row["tags"].replace(" ", ", "),
    )


def _correlation_rows(results: SurveyResults) -> PagedTable:
    return _value_table(
        "correlation-rows",
        correlations(results),
        """
        figure: figure
        with: other
        sites: pairs n
        Spearman’s rho: rho n
        95 % interval: between
    """,
        rho=lambda row: "–" if row["rho"] is None else f"{row['rho']:.3f}",
        between=lambda row: "–" if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}",
    )


def _changes(html: Any, results: SurveyResults) -> str:
    """Empty without an earlier survey."""
    if results.earlier is None:
        return ""
    change = _change(results)
    sites = """
        site: site
        change: change
        before: set_before
        now: set_after
        linking sites before: units_before n
        now: units_after n
        rank before: rank_before n
        now: rank_after n
        ranks gained: rise n
        read before, %: read_before n wide
        now, %: read_after n wide
    """
    links = "from: source\nto: target\nchange: change\nlinks before: links_before n\nnow: links_after n"
    names = ("units_before", "units_after", "rank_before", "rank_after", "rise", "read_before", "read_after")
    tables = [
        _value_table(
            "change-rows", (row._asdict() for row in change.rows), sites, **{name: _short(name) for name in names}
        ),
        _value_table("link-change-rows", (row._asdict() for row in change.links), links),
    ]
    return str(html.changes(change, survey_caption(results.earlier), *tables))


def _short(name: str) -> Callable[[Values], Cell]:
    """A value that may be missing; shares in percent."""
    factor = 100 if name.startswith("read") else 1
    return lambda row: "–" if row[name] is None else f"{factor * row[name]:.4g}"


def _pair_rows(name: str, results: SurveyResults, kind: str) -> PagedTable:
    pairs = (row for row in _co_links(results) if row["kind"] == kind)
    return _value_table(name, pairs, "site: first\nand: second\nsites: sites n")
