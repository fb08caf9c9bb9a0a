"""How does a map become XML, page inside page, valid against `map.xsd`?"""

from __future__ import annotations

from importlib.resources import files
from typing import TextIO

from periplus.model.results import About, PageColumns, SiteMap
from periplus.present.map_values import VALUES, about_values, chosen, further_values, linked_values, page_values, parameters
from periplus.present.xml_text import attributes

NAMESPACE = "urn:periplus:map:1"
RESULTS = "urn:periplus:result:1"  # of the attributes that facts.further adds to a page


def schema() -> bytes:
    """The XML Schema that every map is valid against."""
    return files("periplus.present").joinpath("map.xsd").read_bytes()


def write_map_xml(site_map: SiteMap, facts: PageColumns, about: About, out: TextIO, *, values: tuple[str, ...] = VALUES, max_depth: int = -1) -> None:
    """<map run start created ...><parameter/>...<page url ...><linked/><page/>...</page></map>; streamed, a page a line, no recursion.

    values: which of VALUES stand beside the URL; what is empty is left out. max_depth: the last layer written, -1: all;
    a page whose branch is cut there says how many pages are missing (omitted). out: UTF-8.
    facts.further become attributes in the namespace RESULTS.
    Raises UsageError for an unknown value. libxml2 reads up to 256 layers, 2,048 with huge_tree: beyond, set max_depth.
    """
    wanted = chosen(values)
    further = [(f"r:{name}", column) for name, column in further_values(facts)]
    enriched = f' xmlns:r="{RESULTS}"' if further else ""
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<map xmlns="{NAMESPACE}"{enriched}{attributes(about_values(about, site_map).items())}>\n')
    for name, value in parameters(about):
        out.write(f"<parameter{attributes([('name', name), ('value', value)])}/>\n")
    previous = 0
    for page, layer, below in site_map.walk(max_depth):
        out.write("</page>\n" * (previous - layer))
        previous = layer
        shown = facts.page(page)
        tag = f"<page{attributes(page_values(shown, wanted))}"
        if further:
            tag += attributes((name, column[page]) for name, column in further if column[page] != "")
        behind = attributes(linked_values(shown, wanted))
        within = f"<linked{behind}/>" if behind else ""
        if below and layer != max_depth:
            out.write(f"{tag}>{within}\n")
        else:
            tag += f' omitted="{below}"' if below else ""
            out.write(f"{tag}>{within}</page>\n" if within else f"{tag}/>\n")
    out.write("</page>\n" * previous + "</map>\n")
