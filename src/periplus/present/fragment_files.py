"""How is the conceptual model of a web fragment handed on? One document, as XML (`fragment.xsd`) or JSON (`fragment.schema.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import TextIO

from periplus.model.webometrics import CompanionSite, Method, SurveyResults, UnitFigures
from periplus.present.wording import iso
from periplus.present.xml_text import attributes, characters, escaped

NAMESPACE = "urn:periplus:fragment:1"
Value = str | int | float | bool


def schema() -> bytes:
    """The XML Schema that every written model is valid against."""
    return files("periplus.present").joinpath("fragment.xsd").read_bytes()


def json_schema() -> bytes:
    """The JSON Schema (2020-12) that every written model is valid against."""
    return files("periplus.present").joinpath("fragment.schema.json").read_bytes()


def write_fragment_xml(found: SurveyResults, out: TextIO) -> None:
    """<fragment><method/><set><site/>...</set>...<relations><relation/>...<link/>...</relations></fragment>, streamed. out: UTF-8."""
    method = found.method
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<fragment xmlns="{NAMESPACE}"{attributes(_written(_head(method)))}>\n<method>\n')
    for name, value in (*method.runs, *method.parameters):
        kind = "run" if (name, value) in method.runs else "parameter"
        out.write(f"<{kind}{attributes([('name', name), ('value', value)])}/>\n")
    out.write("</method>\n")
    sites = _sites(found)
    for part in found.model.sets:
        counts: dict[str, Value] = {"name": part.name, "sites": len(part.sites), "probed": part.probed, "documents": part.documents, "fetched": part.fetched}
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
            "sites": [sites[unit] | {"prefixes": list(found.units[unit].prefixes), "tags": list(tags.get(unit, ()))} for unit in part.sites],
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


def _head(method: Method) -> dict[str, Value]:
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
    said: dict[str, Value] = {"id": row.unit, "name": unit.name, "short": unit.short, "start": unit.start, "official": unit.official}
    if unit.bundle:
        said["bundle"] = unit.bundle
    said |= {"fetched": row.fetched, "waiting": row.waiting, "share": round(row.share, 4), "in_links": row.in_links, "in_units": row.in_units}
    said |= {"out_links": row.out_links, "out_units": row.out_units, "self_links": row.self_links, "out_companion": row.out_companion}
    return said | {"inlinking_pages": row.wif.linking, "external_inlinking_pages": row.external_wif.linking}


def _companion(site: CompanionSite) -> dict[str, Value]:
    said: dict[str, Value] = {"id": site.unit, "name": site.name, "status": site.status.value, "cited_by": site.units, "citing_pages": site.pages}
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
