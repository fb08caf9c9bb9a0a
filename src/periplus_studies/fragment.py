"""The conceptual model of a fragment of the web: as XML and as a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from markupsafe import Markup

from periplus.present.draw import Bow, arrow, bow, caption, element, heading, write_sheet
from periplus.present.markup import attributes, environment, escape_xml
from periplus.present.wording import count_of, iso, number
from periplus.values import JsonObject, fields_of
from periplus_studies.model import (
    CompanionSite,
    FragmentModel,
    MethodSheet,
    SetRelation,
    SiteSet,
    SurveyResults,
    Unit,
    UnitFigures,
)

SIZE = (1000, 680)
MIDDLE = 500 + 350j
TARGET_RADIUS = 92.0
AROUND = (365.0, 210.0)  # half axes of the ellipse of the companion sets
# Position of each, in degrees from the right, clockwise: the strongest at the top
PLACES = {"communicator": -38.0, "strong": -142.0, "weak": 156.0, "private": 90.0, "global": 24.0}
HUES = {"target": "teal", "communicator": "red", "strong": "amber", "weak": "grey", "private": "grey", "global": "blue"}


def write_fragment_xml(results: SurveyResults, out: TextIO) -> None:
    """<fragment><method/><set><site/>...</set>...<relations><relation/>...<link/>...</relations></fragment>, streamed.

    out: UTF-8.
    """
    made = environment("periplus_studies", attrs=_attributes, xml=lambda value: Markup(escape_xml(value)))
    values = {
        "head": _head(results.method), "method": results.method, "units": results.units, "sites": _sites(results),
        "sets": [(part, {"name": part.name, "sites": len(part.sites), **_counts(part)}) for part in results.model.sets],
        "tags": _tags(results), "relations": results.model.relations, "links": _links(results),
    }  # fmt: skip
    out.writelines(made.get_template("fragment.xml").generate(values))
    out.write("\n")


def _head(method: MethodSheet) -> JsonObject:
    return {
        **fields_of(method, "title run"),
        "created": iso(method.created),
        "model": method.model.value,
        "documents": method.documents,
        "distinct_links": method.links,
        "merged": method.merged,
    }


def _counts(part: SiteSet) -> JsonObject:
    return fields_of(part, "probed documents fetched")


def _sites(results: SurveyResults) -> dict[int, JsonObject]:
    """The values of each site, by its unit; what is not known is left out."""
    figures = {row.unit: _target(results.units[row.unit], row) for row in results.figures}
    return figures | {site.unit: _companion(site) for site in results.companions}


def _target(unit: Unit, row: UnitFigures) -> JsonObject:
    return {
        "id": row.unit,
        **fields_of(unit, "name short start official" + " bundle" * bool(unit.bundle)),
        **fields_of(row, "fetched waiting"),
        "share": round(row.share, 4),
        **fields_of(row, "in_links in_units out_links out_units self_links out_companion"),
        "inlinking_pages": row.wif.linking,
        "external_inlinking_pages": row.external_wif.linking,
    }


def _companion(site: CompanionSite) -> JsonObject:
    gain = site.gain
    return {
        "id": site.unit,
        "name": site.name,
        "status": site.status.value,
        "cited_by": site.units,
        "citing_pages": site.pages,
        **fields_of(site, "links documents fetched"),
        **({"links_back_to": site.back} if site.back is not None else {}),
        **({"strong_before": gain.strong_before, "strong_with": gain.largest_strong} if gain is not None else {}),
        **({"pairs_before": gain.pairs_before, "pairs_with": gain.pairs} if gain is not None else {}),
    }


def _tags(results: SurveyResults) -> dict[int, tuple[str, ...]]:
    return {site.unit: site.tags for site in results.companions if site.tags}


def _links(results: SurveyResults) -> list[tuple[int, int, int]]:
    """Links between sites of the sets, self-links left out."""
    units = {unit for part in results.model.sets for unit in part.sites}
    links = results.matrix
    rows = zip(links.sources.tolist(), links.ends.tolist(), links.counts.tolist(), strict=True)
    return [(source, end, count) for source, end, count in rows if source != end and source in units and end in units]


def _attributes(values: Mapping[str, Any]) -> Markup:
    pairs = ((name, str(value).lower() if isinstance(value, bool) else value) for name, value in values.items())
    return Markup(attributes(pairs))


LARGEST, LEAST = 78.0, 54.0  # radii of companion sets: the area goes by sites, but a set of one must hold its name


def write_fragment_svg(model: FragmentModel, title: str, about: str, out: TextIO) -> None:
    """The model as SVG that needs nothing else: of a set its sites, how many were probed, its documents;
    of a relation links, pairs, density.
    """
    most = max((len(part.sites) for part in model.sets[1:]), default=1) or 1
    spots = {part.name: _spot(part, most) for part in model.sets}
    widest = max((relation.links for relation in model.relations), default=1)
    within = {relation.source: relation for relation in model.relations if relation.source == relation.end}
    between = [relation for relation in model.relations if relation.source != relation.end]
    drawn = [relation for relation in between if "target" in (relation.source, relation.end)]
    ways = [_way(relation, spots) for relation in drawn]
    marks = [heading(title, about)]
    for relation, way in zip(drawn, ways, strict=True):
        width = 1.0 + 9.0 * math.sqrt(relation.links / widest)
        marks.append(arrow(way, width, 9 + 1.2 * width))
    for part in model.sets:
        marks += _set(part, *spots[part.name], within.get(part.name))
    for relation, way in zip(drawn, ways, strict=True):
        x, y = way.middle.real, way.middle.imag
        marks.append(caption(x, y, count_of(relation.links, "link"), "mid halo small"))
        pairs = f"{count_of(relation.pairs, 'pair')}, density {relation.density:.2g}"
        marks.append(caption(x, y + 13, pairs, "mid halo small soft"))
    further = len(between) - len(drawn)
    note = f"; {count_of(further, 'relation')} between companion sets not drawn" if further else ""
    marks.append(caption(14, SIZE[1] - 14, f"width: links{note}", "soft"))
    write_sheet(out, SIZE, f"{title}: model of the web fragment", marks)


def _spot(part: SiteSet, most: int) -> tuple[complex, float]:
    """(middle as x + y i, radius) of a set's circle, px."""
    if part.name == "target":
        return MIDDLE, TARGET_RADIUS
    angle = math.radians(PLACES[part.name])
    radius = max(LARGEST * math.sqrt(len(part.sites) / most), LEAST)
    return MIDDLE + complex(AROUND[0] * math.cos(angle), AROUND[1] * math.sin(angle)), radius


def _way(relation: SetRelation, spots: Mapping[str, tuple[complex, float]]) -> Bow:
    (start, first), (end, second) = spots[relation.source], spots[relation.end]
    return bow(start, end, (first + 2, second + 3), 44)


def _set(part: SiteSet, middle: complex, radius: float, own: SetRelation | None) -> Iterator[str]:
    """The circle of a set, its words within that of the target set, and below the others."""
    x, y, target = middle.real, middle.imag, part.name == "target"
    yield element("circle", HUES[part.name] + ("" if part.sites else " cited"), cx=x, cy=y, r=radius)
    lift = 27.0 if target else 3.0
    yield caption(x, y - lift, "target set" if target else part.name, "mid strong")
    yield caption(x, y - lift + 16, count_of(len(part.sites), "site"), "mid")
    lines = [count_of(part.documents, "document"), f"{number(part.fetched)} fetched"] if target else []
    if not target and part.sites:
        lines = [f"{number(part.probed)} probed, {count_of(part.documents, 'document')}"]
    if own:
        lines.append(f"{count_of(own.links, 'link')} within")
    first = y + 5 if target else y + radius + 15
    for place, line in enumerate(lines):
        yield caption(x, first + 14 * place, line, "mid small" + ("" if target else " halo soft"))
