"""How does a map become a form for people, by a stylesheet of ours over its XML?"""

from __future__ import annotations

import io
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from lxml import etree

from periplus.errors import UsageError
from periplus.model.results import About, PageColumns, SiteMap
from periplus.present.map_values import VALUES
from periplus.present.map_xml import NAMESPACE, write_map_xml
from periplus.present.wording import REASON_WORDS, labels, number
from periplus.present.xml_text import characters

WORDS = "urn:periplus:words:1"  # names and words for people, put into the map before it is transformed
SHOWN = tuple(value for value in VALUES if value not in ("layer", "rank"))  # the place in the tree says the layer, the score the rank
_PAGE = f"{{{NAMESPACE}}}page"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a map a form can carry."""

    form: str  # its name in messages
    pages: int
    layers: int  # below the home page; deeper branches are cut, and say so


def transformed(
    stylesheet: str, site_map: SiteMap, facts: PageColumns, about: About, limits: Limits, chosen: tuple[tuple[str, ...], int]
) -> etree._XSLTResultTree:
    """The map's XML under one of the stylesheets in `xsl/`. chosen: values and max_depth as in `write_map_xml`.

    Raises UsageError for an unknown value, and for more than limits.pages, with the depth that would do.
    """
    values, max_depth = chosen
    depth = min(max_depth, limits.layers) if max_depth >= 0 else limits.layers
    _refuse_too_many(site_map, depth, limits)
    sheet = etree.parse(io.BytesIO(files("periplus.present").joinpath("xsl", stylesheet).read_bytes()), _parser())
    return etree.XSLT(sheet)(_document(site_map, facts, about, values, depth))


def _refuse_too_many(site_map: SiteMap, depth: int, limits: Limits) -> None:
    layers = site_map.layer[site_map.order]
    upto = np.cumsum(np.bincount(layers))  # pages down to each layer
    shown = int(upto[min(depth, len(upto) - 1)])
    if shown > limits.pages:
        fits = int(np.searchsorted(upto, limits.pages, "right")) - 1
        way = f"cut it at max_depth {fits} ({number(int(upto[fits]))} pages), or " if fits >= 0 else ""
        raise UsageError(f"the map has {number(shown)} pages, and {limits.form} carries {number(limits.pages)}: {way}take the map as XML, JSON or a chart")


def _parser() -> etree.XMLParser:
    """Reads what we wrote ourselves: no entities, no network, any size."""
    return etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_blank_text=True)


def _document(site_map: SiteMap, facts: PageColumns, about: About, values: tuple[str, ...], depth: int) -> etree._ElementTree:
    """The map's XML, with the words for reasons and, where titles are wanted, names that tell siblings apart."""
    written = io.BytesIO()
    text = io.TextIOWrapper(written, "utf-8", newline="")
    write_map_xml(site_map, facts, about, text, values=values, max_depth=depth)
    text.flush()
    written.seek(0)
    tree = etree.parse(written, _parser())
    root = tree.getroot()
    _name(root, "title" in values)
    for parent in root.iter(_PAGE):
        _name(parent, "title" in values)
    for reason, words in REASON_WORDS.items():
        etree.SubElement(root, f"{{{WORDS}}}word", of=reason).text = words
    return tree


def _name(parent: etree._Element, titled: bool) -> None:
    """w:name of the pages right under an element."""
    pages = parent.findall(_PAGE)
    titles = [page.get("title", "") if titled else "" for page in pages]
    for page, name in zip(pages, labels([page.get("url", "") for page in pages], titles, parent.get("title", "")), strict=True):
        page.set(f"{{{WORDS}}}name", characters(name))
