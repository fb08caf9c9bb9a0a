"""How does a map become JSON, page inside page, for programs?"""

from __future__ import annotations

import json
from typing import TextIO

from periplus.model.results import About, PageColumns, SiteMap
from periplus.present.map_values import LINKED, VALUES, about_values, chosen, further_values, linked_values, page_values, parameters
from periplus.present.xml_text import characters


def write_map_json(site_map: SiteMap, facts: PageColumns, about: About, out: TextIO, *, values: tuple[str, ...] = VALUES, max_depth: int = -1) -> None:
    """{"map": {run, start, ...}, "home": {url, ..., "children": [...]}}; streamed, a page a line, without recursion.

    values: which of VALUES stand beside the URL; what is empty is left out. max_depth: the last layer written, -1: all;
    a page whose branch is cut there says how many pages are missing ("omitted"). out: UTF-8.
    Raises UsageError for an unknown value. Many readers refuse JSON nested deeper than some 1,000 layers: set max_depth.
    """
    wanted = chosen(values)
    further = further_values(facts)
    head = {**about_values(about, site_map), "parameters": dict(parameters(about))}
    out.write(f'{{"map": {json.dumps(head, ensure_ascii=False)},\n"home":\n')
    previous = -1
    for page, layer, below in site_map.walk(max_depth):
        if layer <= previous:  # the page before had no children written: close lists up to its and our common parent
            out.write("]}" * (previous - layer) + ",\n")
        previous = layer
        values_of = facts.page(page)
        shown: dict[str, object] = dict(page_values(values_of, wanted))
        if behind := linked_values(values_of, wanted):
            shown[LINKED] = dict(behind)
        if results := {name: _plain(column[page]) for name, column in further if column[page] != ""}:
            shown["results"] = results
        if below and layer == max_depth:
            shown["omitted"] = below
        text = json.dumps(shown, ensure_ascii=False)
        out.write(text[:-1] + ', "children": [\n' if below and layer != max_depth else text)
    out.write("]}" * previous + "}\n")


def _plain(value: str | int | float) -> str | int | float:
    return characters(value) if isinstance(value, str) else value
