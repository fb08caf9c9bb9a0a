"""What would whoever made a survey want to read and to print? One page: drawings, indicators, companion set, and the method sheet."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable
from importlib.resources import files
from typing import TextIO

from periplus.model.survey import CompanionClass
from periplus.model.webometrics import Connectivity, ImpactFactor, SurveyResults
from periplus.present import paged as tables
from periplus.present.campaign_text import completeness_told, round_robin_told
from periplus.present.fragment_svg import write_fragment_svg
from periplus.present.heat_map import write_heat_map
from periplus.present.markup import Html, table, text
from periplus.present.network import network_of
from periplus.present.network_files import matrix_of, said_of
from periplus.present.network_svg import write_network_svg
from periplus.present.paged import Column, PagedTable, paged
from periplus.present.survey_method import method_sheet
from periplus.present.wording import count_of, number, utc
from periplus.present.yield_svg import write_yield_curves

HEAT_SITES = 400  # of more, the matrix is no picture: 1,000 sites have a million cells
_AS_HTML, _AS_XML = ("//<![CDATA[\n", "\n//]]>"), ("//\n", "\n//")  # around a script: comments to HTML, a section to XML
_STYLE = """
.drawing { margin: .6rem 0 1rem; } .drawing img { width: 100%; max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 8px; }
figure { margin: 0; } figcaption { color: var(--soft); font-size: .9rem; }
"""


def survey_report(found: SurveyResults) -> str:
    """The report as one page of XHTML that every browser takes as HTML too: nothing loaded from anywhere, light and dark, fit for paper.

    Every figure stands under the run, the document model and the share of pages that was read; texts from the web are escaped.
    """
    sections = [section for section in _sections(found) if section[2]]
    title = text(found.method.title)
    nav = "".join(f'<a href="#{name}">{head}</a>' for name, head, _ in sections)
    body = "\n".join(f'<section id="{name}"><h2>{head}</h2>\n{content}\n</section>' for name, head, content in sections)
    style = files("periplus.present").joinpath("report.css").read_text("utf-8") + _STYLE
    script = f"<script>{_AS_HTML[0]}{tables.script()}{_AS_HTML[1]}</script>" if "data-table=" in body else ""
    may_run = f"; script-src {_digest(_AS_HTML)} {_digest(_AS_XML)}" if script else ""
    return f"""<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:{may_run}"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/><meta name="referrer" content="no-referrer"/>
<meta name="robots" content="noindex"/><title>{title}</title>
<style>
{style}</style></head><body>
<header><h1>{title}</h1>
{_head(found)}
<nav>{nav}</nav></header>
<main>
{body}
</main>
<footer><p>{text(said_of(found))}. Made {text(utc(found.method.created))}.</p></footer>
{script}</body></html>
"""


def _digest(around: tuple[str, str]) -> str:
    """What a content security policy lets run: our script as one of the two parsers sees it."""
    script = (around[0] + tables.script() + around[1]).encode("utf-8")
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode('ascii')}'"


def _sections(found: SurveyResults) -> list[tuple[str, str, Html]]:
    return [
        ("network", "How the sites hang together", _network(found)),
        ("indicators", "Sites of the target set", _indicators(found)),
        ("matrix", "Who links to whom", _matrix(found)),
        ("connectivity", "Connectivity", _connectivity(found)),
        ("fragment", "Model of the web fragment", _fragment(found)),
        ("companions", "Companion set", _companions(found)),
        ("communicators", "Communicators", _communicators(found)),
        ("colinks", "Linked together, linking alike", _co_links(found)),
        ("domains", "Countries and domains", _suffixes(found)),
        ("harvest", "The harvest, and how complete it is", _harvest(found)),
        ("method", "Method sheet", method_sheet(found)),
    ]


def _head(found: SurveyResults) -> Html:
    harvest = found.harvest
    figures = [
        ("sites in the target set", number(found.chosen)),
        ("pages fetched", number(sum(row.fetched for row in found.figures))),
        ("links between them", number(sum(row.in_links for row in found.figures))),
        ("companion sites", number(len(found.companions))),
        (f"external {harvest.item}s found", number(harvest.richness.observed)),
    ]
    cells = "".join(f"<div><dt>{text(name)}</dt><dd>{value}</dd></div>" for name, value in figures)
    empty = [found.units[record.unit].name for record in found.method.units if record.state]
    lines = f'<p class="soft">{text(said_of(found))}.</p>'
    if empty:
        lines += f'<p class="notice">{count_of(len(empty), "site")} without a page: {text(", ".join(empty[:10]))}. The method sheet says why.</p>'
    return f'{lines}\n<dl class="figures">{cells}</dl>'


def _drawing(write: Callable[[TextIO], None], caption: str) -> Html:
    """An SVG as an image of its own, so that its style stays with it."""
    out = io.StringIO()
    write(out)
    data = base64.b64encode(out.getvalue().encode("utf-8", "replace")).decode("ascii")
    return f'<figure class="drawing"><img alt="{text(caption)}" src="data:image/svg+xml;base64,{data}"/><figcaption>{text(caption)}</figcaption></figure>'


def _network(found: SurveyResults) -> Html:
    network = network_of(found)
    said = "Companion sites are drawn if at least two sites of the target set link to them, global ones not."
    return _drawing(lambda out: write_network_svg(network, found.method.title, said_of(found), out), said)


def _indicators(found: SurveyResults) -> Html:
    columns = [Column("site"), Column("pages", "n"), Column("read, %", "n"), Column("links in", "n"), Column("from sites", "n")]
    columns += [Column("links out", "n"), Column("to sites", "n"), Column("to companions", "n", wide=True), Column("self-links", "n", wide=True)]
    columns += [Column("external WIF", "n"), Column("WIF", "n", wide=True)]
    rows = (
        (
            found.units[row.unit].name,
            row.fetched,
            round(100 * row.share),
            row.in_links,
            row.in_units,
            row.out_links,
            row.out_units,
            row.out_companion,
            row.self_links,
            _factor(row.external_wif),
            _factor(row.wif),
        )
        for row in found.figures
    )
    note = f"Links are distinct pairs of documents (model: {found.method.model.value}), in and out within the target set. "
    note += "WIF: linking pages / pages of the site. It compares sites of one kind and country that were read to the same share; many pages push it down, "
    note += "and pages outside this survey that link there are not in it. Of a site of which one page was fetched it would be a count: that is what is shown."
    totals = ", ".join(f"{number(count)} by {model.value}" for model, count in found.totals)
    shown = paged(PagedTable("unit-rows", columns, rows, len(found.figures)))
    return f'<p class="note">{text(note)}</p>{shown}<p class="note">All links between sites: {totals}.</p>'


def _factor(factor: ImpactFactor) -> str:
    if factor.value is None:
        return f"{number(factor.linking)} to the only page" if factor.documents else "–"
    return f"{factor.value:.2f} = {number(factor.linking)}/{number(factor.documents)}"


def _matrix(found: SurveyResults) -> Html:
    if found.chosen > HEAT_SITES:
        return f'<p class="note">{number(found.chosen)} sites are too many for a picture: the matrix is written as CSV or for Pajek.</p>'
    names = [unit.short for unit in found.units[: found.chosen]]
    return _drawing(
        lambda out: write_heat_map(names, matrix_of(found), found.method.title, said_of(found), out),
        "Each row links to the columns; shades go by the logarithm.",
    )


def _connectivity(found: SurveyResults) -> Html:
    rows = [_connected(row) for row in found.connectivity]
    heads = ["vertices", "sites", "arcs", "density", "returned", "largest strong", "strong parts", "largest weak", "weak parts"]
    note = (
        "Direct links between sites. Bundles: all sites of one organisation as one vertex. Strong: each reaches each along the arrows; weak: in any direction."
    )
    return f'<p class="note">{text(note)}</p>' + table(heads, rows, ["w", *["n"] * 8])


def _connected(row: Connectivity) -> list[Html]:
    sizes = [number(row.strong[0]) if row.strong else "–", number(len(row.strong)), number(row.weak[0]) if row.weak else "–", number(len(row.weak))]
    return [text(row.vertices), number(row.sites), number(row.arcs), f"{row.density:.3f}", f"{100 * row.reciprocity:.0f} %", *sizes]


def _fragment(found: SurveyResults) -> Html:
    return _drawing(
        lambda out: write_fragment_svg(found.model, found.method.title, said_of(found), out),
        "The target set, the classes of its companion set, and the links between them.",
    )


def _companions(found: SurveyResults) -> Html:
    columns = [Column("site"), Column("class"), Column("sites linking", "n"), Column("pages linking", "n"), Column("links", "n", wide=True)]
    columns += [Column("links back to"), Column("status", wide=True), Column("tags", wide=True)]
    rows = (
        (
            site.name,
            site.kind.value,
            site.units,
            site.pages,
            site.links,
            "not read" if site.back is None else count_of(site.back, "site"),
            site.status.value,
            ", ".join(site.tags),
        )
        for site in found.companions
    )
    kinds = ", ".join(f"{number(sum(site.kind is kind for site in found.companions))} {kind.value}" for kind in CompanionClass)
    note = f"Sites outside the target set, ranked by how many different sites of it link to them: {kinds}. "
    note += "Sites that were not read to the end hide some of their links, so the counts are least values."
    return f'<p class="note">{text(note)}</p>' + paged(PagedTable("companion-rows", columns, rows, len(found.companions)))


def _communicators(found: SurveyResults) -> Html:
    measured = [site for site in found.companions if site.gain is not None]
    rows = [
        [
            text(site.name),
            number(site.units),
            number(site.back or 0),
            f"{number(site.gain.strong_before)} → {number(site.gain.largest_strong)}",
            f"{number(site.gain.weak_before)} → {number(site.gain.largest_weak)}",
            f"{number(site.gain.pairs_before)} → {number(site.gain.pairs)}",
        ]
        for site in measured
        if site.gain is not None
    ]
    if not rows:
        return ""
    note = "What each adds by itself to the target set, in its sites and ordered pairs of sites that reach each other."
    heads = ["site", "sites linking", "links back to", "largest strong part", "largest weak part", "pairs in reach"]
    return f'<p class="note">{note}</p>' + table(heads, rows, ["", "n", "n", "n", "n", "n"])


def _co_links(found: SurveyResults) -> Html:
    parts = []
    for name, head, pairs in (
        ("co-rows", "Linked from the same sites", found.co_inlinks),
        ("coupling-rows", "Linking to the same sites", found.couplings),
    ):
        columns = [Column("site"), Column("and"), Column("sites", "n")]
        rows = ((found.units[pair.first].name, found.units[pair.second].name, pair.sites) for pair in pairs)
        shown = paged(PagedTable(name, columns, rows, len(pairs)))
        parts.append(f"<h3>{head}</h3>{shown}" if shown else "")
    return "".join(parts)


def _suffixes(found: SurveyResults) -> Html:
    parts = []
    for head, tallies in (("Linked to", found.suffixes_out), ("Linking here", found.suffixes_in)):
        rows = [
            [text(f".{tally.suffix}" if tally.suffix else "no name"), "country" if tally.country else "generic", number(tally.sites), number(tally.links)]
            for tally in tallies[:50]
        ]
        if rows:
            parts.append(f"<div><h3>{head}</h3>{table(['suffix', 'kind', 'sites', 'links'], rows, ['', 'w', 'n', 'n'])}</div>")
    return f'<div class="columns">{"".join(parts)}</div>' if parts else ""


def _harvest(found: SurveyResults) -> Html:
    harvest, rich = found.harvest, found.harvest.richness
    said = f"{number(rich.observed)} different external {harvest.item}s on {count_of(rich.pages, 'page')}: "
    said += f"{number(rich.once)} on one page only, {number(rich.twice)} on two. "
    said += f"Complete: {completeness_told(harvest)}; reckoned by site, and pages that nobody met are not in it. "
    said += f"The last pages brought {harvest.recent:.2g} new ones each. A round robin: {round_robin_told(harvest.baseline)}."
    drawing = _drawing(lambda out: write_yield_curves(harvest, found.method.title, said_of(found), out), "What was found over the pages fetched.")
    return f'<p class="note">{text(said)}</p>{drawing}'
