"""The conceptual model of a fragment of the web: as XML, JSON and a drawing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import TextIO

from periplus.model.webometrics import (
    CompanionSite,
    FragmentModel,
    MethodSheet,
    SetRelation,
    SiteSet,
    SurveyResults,
    UnitFigures,
)
from periplus.present.drawing import FONT, PALETTE
from periplus.present.markup import attributes, characters, escaped
from periplus.present.wording import count_of, iso, number, visible

NAMESPACE = "urn:periplus:fragment:1"
Value = str | int | float | bool


def schema() -> bytes:
    """The XML Schema that every written model is valid against."""
    return files("periplus.present").joinpath("fragment.xsd").read_bytes()


def json_schema() -> bytes:
    """The JSON Schema (2020-12) that every written model is valid against."""
    return files("periplus.present").joinpath("fragment.schema.json").read_bytes()


def write_fragment_xml(found: SurveyResults, out: TextIO) -> None:
    """<fragment><method/><set><site/>...</set>...<relations><relation/>...<link/>...</relations></fragment>, streamed.

    out: UTF-8.
    """
    method = found.method
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<fragment '
        f'xmlns="{NAMESPACE}"{attributes(_written(_head(method)))}>\n<method>\n'
    )
    for name, value in (*method.runs, *method.parameters):
        kind = "run" if (name, value) in method.runs else "parameter"
        out.write(f"<{kind}{attributes([('name', name), ('value', value)])}/>\n")
    out.write("</method>\n")
    sites = _sites(found)
    for part in found.model.sets:
        counts: dict[str, Value] = {
            "name": part.name,
            "sites": len(part.sites),
            "probed": part.probed,
            "documents": part.documents,
            "fetched": part.fetched,
        }
        out.write(f"<set{attributes(_written(counts))}>\n")
        for unit in part.sites:
            out.write(f"<site{attributes(_written(sites[unit]))}>")
            out.write("".join(f"<prefix>{escaped(prefix)}</prefix>" for prefix in found.units[unit].prefixes))
            out.write("".join(f"<tag>{escaped(tag)}</tag>" for tag in _tags(found).get(unit, ())) + "</site>\n")
        out.write("</set>\n")
    out.write("<relations>\n")
    for relation in found.model.relations:
        out.write(f"<relation{attributes(_written(relation._asdict()))}/>\n")
    for source, end, links in _links(found):
        out.write(f"<link{attributes([('source', source), ('end', end), ('links', links)])}/>\n")
    out.write("</relations>\n</fragment>\n")


def write_fragment_json(found: SurveyResults, out: TextIO) -> None:
    """The same as one JSON object. out: UTF-8."""
    method, sites, tags = found.method, _sites(found), _tags(found)
    sets = [
        {
            "name": part.name,
            "probed": part.probed,
            "documents": part.documents,
            "fetched": part.fetched,
            "sites": [
                sites[unit] | {"prefixes": list(found.units[unit].prefixes), "tags": list(tags.get(unit, ()))}
                for unit in part.sites
            ],
        }
        for part in found.model.sets
    ]
    value = _head(method) | {
        "runs": dict(method.runs),
        "parameters": dict(method.parameters),
        "sets": sets,
        "relations": [relation._asdict() for relation in found.model.relations],
        "links": [{"source": source, "end": end, "links": links} for source, end, links in _links(found)],
    }
    json.dump(_sound(value), out, ensure_ascii=False, indent=1)
    out.write("\n")


def _head(method: MethodSheet) -> dict[str, Value]:
    return {
        "title": method.title,
        "run": method.run,
        "created": iso(method.created),
        "model": method.model.value,
        "documents": method.documents,
        "distinct_links": method.links,
        "merged": method.merged,
    }


def _sites(found: SurveyResults) -> dict[int, dict[str, Value]]:
    """What is said of each site, by its unit; what is not known is left out."""
    figures = {row.unit: _target(found, row) for row in found.figures}
    return figures | {site.unit: _companion(site) for site in found.companions}


def _target(found: SurveyResults, row: UnitFigures) -> dict[str, Value]:
    unit = found.units[row.unit]
    said: dict[str, Value] = {
        "id": row.unit,
        "name": unit.name,
        "short": unit.short,
        "start": unit.start,
        "official": unit.official,
    }
    if unit.bundle:
        said["bundle"] = unit.bundle
    said |= {
        "fetched": row.fetched,
        "waiting": row.waiting,
        "share": round(row.share, 4),
        "in_links": row.in_links,
        "in_units": row.in_units,
    }
    said |= {
        "out_links": row.out_links,
        "out_units": row.out_units,
        "self_links": row.self_links,
        "out_companion": row.out_companion,
    }
    return said | {"inlinking_pages": row.wif.linking, "external_inlinking_pages": row.external_wif.linking}


def _companion(site: CompanionSite) -> dict[str, Value]:
    said: dict[str, Value] = {
        "id": site.unit,
        "name": site.name,
        "status": site.status.value,
        "cited_by": site.units,
        "citing_pages": site.pages,
    }
    said |= {"links": site.links, "documents": site.documents, "fetched": site.fetched}
    if site.back is not None:
        said["links_back_to"] = site.back
    if site.gain is not None:
        said |= {"strong_before": site.gain.strong_before, "strong_with": site.gain.largest_strong}
        said |= {"pairs_before": site.gain.pairs_before, "pairs_with": site.gain.pairs}
    return said


def _tags(found: SurveyResults) -> dict[int, tuple[str, ...]]:
    return {site.unit: site.tags for site in found.companions if site.tags}


def _links(found: SurveyResults) -> list[tuple[int, int, int]]:
    """Links between sites of the sets, self-links left out."""
    known = {unit for part in found.model.sets for unit in part.sites}
    links = found.matrix
    rows = zip(links.sources.tolist(), links.ends.tolist(), links.counts.tolist(), strict=True)
    return [(source, end, count) for source, end, count in rows if source != end and source in known and end in known]


def _written(values: Mapping[str, Value]) -> list[tuple[str, str | int | float]]:
    return [(name, str(value).lower() if isinstance(value, bool) else value) for name, value in values.items()]


def _sound(value: object) -> object:
    """Without halves of characters, which UTF-8 cannot hold."""
    if isinstance(value, str):
        return characters(value)
    if isinstance(value, dict):
        return {_sound(key): _sound(part) for key, part in value.items()}
    return [_sound(part) for part in value] if isinstance(value, list) else value


WIDTH, HEIGHT = 1000, 680
MIDDLE = (500.0, 350.0)
TARGET_RADIUS = 92.0
AROUND = (365.0, 210.0)  # half axes of the ellipse on which the companion sets lie
# Where each lies, in degrees from the right, clockwise: the strongest above, nearest to the eye
PLACES = {"communicator": -38.0, "strong": -142.0, "weak": 156.0, "private": 90.0, "global": 24.0}
LARGEST, LEAST = 78.0, 54.0  # radii of companion sets: the area goes by sites, but a set of one must hold its name

_STYLE = (
    PALETTE
    + FONT
    + """
.title { font-size: 18px; font-weight: 600; } .soft { fill: var(--soft); } text.m { text-anchor: middle; } .name { font-weight: 600; font-size: 13px; }
.halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round; font-size: 11px; }
circle { stroke-width: 1.6; } .line { fill: none; stroke: var(--edge); stroke-opacity: .75; } .head { fill: var(--edge); }
.empty { stroke-dasharray: 4 3; fill: var(--paper); }
.target { fill: var(--teal); stroke: var(--teal-line); } .strong { fill: var(--amber); stroke: var(--amber-line); }
.communicator { fill: var(--red); stroke: var(--red-line); } .weak, .private { fill: var(--grey); stroke: var(--grey-line); }
.global { fill: var(--blue); stroke: var(--blue-line); } circle.empty { fill: var(--paper); }
"""  # noqa: E501
)
_Point = tuple[float, float]


def write_fragment_svg(model: FragmentModel, title: str, about: str, out: TextIO) -> None:
    """The model as SVG that needs nothing else: of a set its sites, how many were probed, its documents;
    of a relation links, pairs, density.
    """
    most = max((len(part.sites) for part in model.sets[1:]), default=1) or 1
    spots = {part.name: _spot(part, most) for part in model.sets}
    widest = max((relation.links for relation in model.relations), default=1)
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img">\n'
    )
    out.write(f"<title>{escaped(visible(title))}: model of the web fragment</title>\n<style>{_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>\n')
    out.write(
        f'<text class="title" x="14" y="28">{escaped(visible(title))}</text>\n<text class="soft" x="14" '
        f'y="48">{escaped(visible(about))}</text>\n'
    )
    drawn = [
        relation
        for relation in model.relations
        if relation.source != relation.end and "target" in (relation.source, relation.end)
    ]
    for relation in drawn:
        out.write(_arrow(relation, spots, widest))
    for part in model.sets:
        out.writelines(
            _set(part, *spots[part.name], next((r for r in model.relations if r.source == r.end == part.name), None))
        )
    for relation in drawn:
        out.write(_said(relation, spots))
    further = len([relation for relation in model.relations if relation.source != relation.end]) - len(drawn)
    note = (
        f"width: links; {count_of(further, 'relation')} between companion sets not drawn" if further else "width: links"
    )
    out.write(f'<text class="soft" x="14" y="{HEIGHT - 14}">{note}</text>\n</svg>\n')


def _spot(part: SiteSet, most: int) -> tuple[_Point, float]:
    if part.name == "target":
        return MIDDLE, TARGET_RADIUS
    angle = math.radians(PLACES[part.name])
    radius = max(LARGEST * math.sqrt(len(part.sites) / most), LEAST)
    return (MIDDLE[0] + AROUND[0] * math.cos(angle), MIDDLE[1] + AROUND[1] * math.sin(angle)), radius


def _set(part: SiteSet, middle: _Point, radius: float, own: SetRelation | None) -> Iterator[str]:
    x, y = middle
    name, lift = ("target set", 27.0) if part.name == "target" else (part.name, 3.0)
    yield (
        f'<circle class="{part.name}{"" if part.sites else " empty"}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>\n'
    )
    yield (
        f'<text class="m name" x="{x:.1f}" y="{y - lift:.1f}">{name}</text><text class="m" '
        f'x="{x:.1f}" y="{y - lift + 16:.1f}">'
    )
    yield f"{count_of(len(part.sites), 'site')}</text>\n"
    lines = [count_of(part.documents, "document"), f"{number(part.fetched)} fetched"] if part.name == "target" else []
    if part.name != "target" and part.sites:
        lines = [f"{number(part.probed)} probed, {count_of(part.documents, 'document')}"]
    if own:
        lines.append(f"{count_of(own.links, 'link')} within")
    first = y + 5 if part.name == "target" else y + radius + 15
    for place, line in enumerate(lines):
        yield (
            f'<text class="m{"" if part.name == "target" else " halo soft"}" style="font-size: 11px" x="{x:.1f}" '
            f'y="{first + 14 * place:.1f}">{line}</text>\n'
        )


def _way(relation: SetRelation, spots: dict[str, tuple[_Point, float]]) -> tuple[_Point, _Point, _Point]:
    """(from, bend, to), bent to its left."""
    (a, first), (b, second) = spots[relation.source], spots[relation.end]
    length = math.dist(a, b)
    along = ((b[0] - a[0]) / length, (b[1] - a[1]) / length)
    bend = ((a[0] + b[0]) / 2 + along[1] * 44, (a[1] + b[1]) / 2 - along[0] * 44)
    return _toward(a, bend, first + 2), bend, _toward(b, bend, second + 3)


def _toward(point: _Point, aim: _Point, far: float) -> _Point:
    length = math.dist(point, aim)
    return point[0] + (aim[0] - point[0]) / length * far, point[1] + (aim[1] - point[1]) / length * far


def _arrow(relation: SetRelation, spots: dict[str, tuple[_Point, float]], widest: int) -> str:
    a, bend, b = _way(relation, spots)
    wide = 1.0 + 9.0 * math.sqrt(relation.links / widest)
    head = 9 + 1.2 * wide
    foot = _toward(b, bend, head)
    side = ((foot[1] - b[1]) / head * head * 0.45, -(foot[0] - b[0]) / head * head * 0.45)
    points = (
        f"{b[0]:.1f},{b[1]:.1f} {foot[0] + side[0]:.1f},{foot[1] + side[1]:.1f} "
        f"{foot[0] - side[0]:.1f},{foot[1] - side[1]:.1f}"
    )
    line = f"M{a[0]:.1f} {a[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {foot[0]:.1f} {foot[1]:.1f}"
    return f'<path class="line" stroke-width="{wide:.2f}" d="{line}"/><polygon class="head" points="{points}"/>\n'


def _said(relation: SetRelation, spots: dict[str, tuple[_Point, float]]) -> str:
    a, bend, b = _way(relation, spots)
    x, y = (a[0] + 2 * bend[0] + b[0]) / 4, (a[1] + 2 * bend[1] + b[1]) / 4
    words = f"{count_of(relation.links, 'link')}"
    more = f"{count_of(relation.pairs, 'pair')}, density {relation.density:.2g}"
    return (
        f'<text class="m halo" x="{x:.1f}" y="{y:.1f}">{words}</text><text class="m halo soft" x="{x:.1f}" '
        f'y="{y + 13:.1f}">{more}</text>\n'
    )
