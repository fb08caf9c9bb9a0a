"""How does a map become XML, page inside page, valid against `map.xsd`?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import TextIO

from periplus.model.results import About, PageColumns, SiteMap
from periplus.present.map_values import VALUES, about_values, chosen, page_values, parameters

NAMESPACE = "urn:periplus:map:1"
_SPECIAL = re.compile('[&<>"\t\r\n]')
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\r": "&#13;", "\n": "&#10;"}


def schema() -> bytes:
    """The XML Schema that every map is valid against."""
    return files("periplus.present").joinpath("map.xsd").read_bytes()


def write_map_xml(site_map: SiteMap, facts: PageColumns, about: About, out: TextIO, *, values: tuple[str, ...] = VALUES, max_depth: int = -1) -> None:
    """<map run start created ...><parameter/>...<page url ...><page/>...</page></map>; streamed, a tag a line, no recursion.

    values: which of VALUES stand beside the URL; what is empty is left out. max_depth: the last layer written, -1: all;
    a page whose branch is cut there says how many pages are missing (omitted). out: UTF-8.
    Raises UsageError for an unknown value. libxml2 reads up to 256 layers, 2,048 with huge_tree: beyond, set max_depth.
    """
    wanted = chosen(values)
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<map xmlns="{NAMESPACE}"{_attributes(about_values(about, site_map).items())}>\n')
    for name, value in parameters(about):
        out.write(f"<parameter{_attributes([('name', name), ('value', value)])}/>\n")
    previous = 0
    for page, layer, below in site_map.walk(max_depth):
        out.write("</page>\n" * (previous - layer))
        previous = layer
        attributes = _attributes(page_values(facts.page(page), wanted))
        if below == 0:
            out.write(f"<page{attributes}/>\n")
        elif layer == max_depth:
            out.write(f'<page{attributes} omitted="{below}"/>\n')
        else:
            out.write(f"<page{attributes}>\n")
    out.write("</page>\n" * previous + "</map>\n")


def _attributes(values: Iterable[tuple[str, str | int | float]]) -> str:
    return "".join([f' {name}="{_escaped(value) if isinstance(value, str) else value}"' for name, value in values])


def _escaped(text: str) -> str:
    """Safe between double quotes; white space as references, else a reader folds it (XML 1.0, 3.3.3)."""
    return _SPECIAL.sub(lambda found: _ENTITIES[found[0]], text)
