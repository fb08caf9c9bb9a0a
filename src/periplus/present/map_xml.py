"""Maps as XML, valid against `map.xsd`, and by our stylesheets a page for a browser or a PDF."""

from __future__ import annotations

import io
from importlib.resources import files
from typing import BinaryIO, TextIO

import numpy as np
from lxml import etree

from periplus.errors import UsageError
from periplus.extras import extra_needed
from periplus.model.results import About, PageColumns, SiteMap
from periplus.present.map_files import (
    VALUES,
    about_values,
    further_values,
    linked_values,
    page_values,
    parameters,
    sort_values,
)
from periplus.present.markup import attributes, characters
from periplus.present.wording import REASON_WORDS, labels, number, without_site_name
from periplus.values import frozen

NAMESPACE = "urn:periplus:map:1"
RESULTS = "urn:periplus:result:1"  # of the attributes that facts.further adds to a page
WORDS = "urn:periplus:words:1"  # names and words for people, put into the map before it is transformed
# the position in the tree is the depth, the score is the rank
USUAL_VALUES = tuple(value for value in VALUES if value not in ("depth", "rank"))
_PAGE = f"{{{NAMESPACE}}}page"


def schema() -> bytes:
    """The XML Schema that every map is valid against."""
    return files("periplus.present").joinpath("map.xsd").read_bytes()


def write_map_xml(
    site_map: SiteMap,
    facts: PageColumns,
    about: About,
    out: TextIO,
    *,
    values: tuple[str, ...] = VALUES,
    max_depth: int = -1,
) -> None:
    """<map run start created ...><parameter/>...<page url ...><linked/><page/>...</page></map>; streamed,
    a page a line, no recursion.

    values: keys of VALUES beside the URL; empty values are left out. max_depth: the last depth written, -1: all;
    omitted is the number of pages cut off below a page. out: UTF-8. facts.further become attributes in the namespace
    RESULTS. Raises UsageError for an unknown value. libxml2 reads up to 256 depths, 2,048 with huge_tree: beyond, set
    max_depth.
    """
    values = sort_values(values)
    further = [(f"r:{name}", column) for name, column in further_values(facts)]
    enriched = f' xmlns:r="{RESULTS}"' if further else ""
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<map xmlns="{NAMESPACE}"{enriched}{attributes(about_values(about, site_map).items())}>\n'
    )
    for name, value in parameters(about):
        out.write(f"<parameter{attributes([('name', name), ('value', value)])}/>\n")
    previous = 0
    for page, depth, below in site_map.walk(max_depth):
        out.write("</page>\n" * (previous - depth))
        previous = depth
        shown = facts.page(page)
        tag = f"<page{attributes(page_values(shown, values))}"
        if further:
            tag += attributes((name, column[page]) for name, column in further if column[page] != "")
        behind = attributes(linked_values(shown, values))
        within = f"<linked{behind}/>" if behind else ""
        if below and depth != max_depth:
            out.write(f"{tag}>{within}\n")
        else:
            tag += f' omitted="{below}"' if below else ""
            out.write(f"{tag}>{within}</page>\n" if within else f"{tag}/>\n")
    out.write("</page>\n" * previous + "</map>\n")


@frozen
class Limits:
    """How much of a map a form can carry."""

    form: str  # its name in messages
    pages: int
    depths: int  # below the home page; deeper branches are cut, with a note


def transform(
    stylesheet: str,
    site_map: SiteMap,
    facts: PageColumns,
    about: About,
    limits: Limits,
    chosen: tuple[tuple[str, ...], int],
) -> etree._XSLTResultTree:
    """The map's XML under one of the stylesheets in `xsl/`. chosen: values and max_depth as in `write_map_xml`.

    Raises UsageError for an unknown value, and for more than limits.pages, with the depth that would do.
    """
    values, max_depth = chosen
    depth = min(max_depth, limits.depths) if max_depth >= 0 else limits.depths
    _refuse_too_many(site_map, depth, limits)
    sheet = etree.parse(io.BytesIO(files("periplus.present").joinpath("xsl", stylesheet).read_bytes()), _parser())
    return etree.XSLT(sheet)(_document(site_map, facts, about, values, depth))


def _refuse_too_many(site_map: SiteMap, depth: int, limits: Limits) -> None:
    depths = site_map.depth[site_map.order]
    upto = np.cumsum(np.bincount(depths))  # pages down to each depth
    shown = int(upto[min(depth, len(upto) - 1)])
    if shown > limits.pages:
        fits = int(np.searchsorted(upto, limits.pages, "right")) - 1
        way = f"cut it at max_depth {fits} ({number(int(upto[fits]))} pages), or " if fits >= 0 else ""
        raise UsageError(
            f"the map has {number(shown)} pages, and {limits.form} carries {number(limits.pages)}: {way}take "
            "the map as XML, JSON or a chart"
        )


def _parser() -> etree.XMLParser:
    """Reads what we wrote ourselves: no entities, no network, any size."""
    return etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_blank_text=True)


def _document(
    site_map: SiteMap, facts: PageColumns, about: About, values: tuple[str, ...], depth: int
) -> etree._ElementTree:
    """The map's XML, with the words for reasons and, with titles, names that distinguish siblings."""
    written = io.BytesIO()
    text = io.TextIOWrapper(written, "utf-8", newline="")
    write_map_xml(site_map, facts, about, text, values=values, max_depth=depth)
    text.flush()
    written.seek(0)
    tree = etree.parse(written, _parser())
    root = tree.getroot()
    pages = [page for page in root.iter(_PAGE) if page.get("title")]
    for page, title in zip(pages, without_site_name([page.get("title", "") for page in pages]), strict=True):
        page.set("title", title)  # as in the other pictures: every line would end with the site's name
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
    for page, name in zip(
        pages, labels([page.get("url", "") for page in pages], titles, parent.get("title", "")), strict=True
    ):
        page.set(f"{{{WORDS}}}name", characters(name))


# 50,000 pages: 3.2 s, 560 MB and a file of 28 MB, which a browser opens in 5 s; twice as many take 7 to 18
# s and 1.1 GB. 80 depths: three elements a depth keep the page under the 256 nested elements of libxml2 and
# the 512 of browsers' HTML.
LIMITS = Limits("a page for a browser", pages=50_000, depths=80)


def write_map_xhtml(
    site_map: SiteMap,
    facts: PageColumns,
    about: About,
    out: BinaryIO,
    *,
    values: tuple[str, ...] = USUAL_VALUES,
    max_depth: int = -1,
) -> None:
    """One self-contained XHTML page in UTF-8, valid as XML (.xhtml) and as HTML (.html).

    values: keys of VALUES beside each page; a value that no page has takes no space. max_depth: the last depth shown,
    -1: down to LIMITS.depths; pages cut off are counted in their place. Bytes behind links are drawn as a small bar.
    Not streamed. Raises UsageError for an unknown value or more than LIMITS.pages.
    """
    # lxml-stubs lacks it
    transform("map-xhtml.xsl", site_map, facts, about, LIMITS, (values, max_depth)).write_output(out)  # type: ignore[attr-defined]


# 10,000 pages, 160 sheets of paper: 6 s, 900 MB, a file of 20 MB; twice as many take 20 s and 1.7 GB. 80 depths: as on
# the page for a browser, and each costs the stylesheet a nested template, of which libxslt allows 3,000.
PDF_LIMITS = Limits("a PDF", pages=10_000, depths=80)


def typst_source(
    site_map: SiteMap, facts: PageColumns, about: About, *, values: tuple[str, ...] = USUAL_VALUES, max_depth: int = -1
) -> str:
    """The map as a typst document, from which `write_map_pdf` sets the pages."""
    return str(transform("map-typst.xsl", site_map, facts, about, PDF_LIMITS, (values, max_depth)))


def write_map_pdf(
    site_map: SiteMap,
    facts: PageColumns,
    about: About,
    out: BinaryIO,
    *,
    values: tuple[str, ...] = USUAL_VALUES,
    max_depth: int = -1,
) -> None:
    """A4 pages with a head, a legend, bookmarks of the branches in depth 1, and a row a page that links to it.

    values, max_depth: as in `write_map_xhtml`. The same map gives the same bytes on the same fonts. Typst's own fonts
    have Latin, Greek and Cyrillic; other scripts (Chinese, Japanese, Arabic, ...) need fonts of the system, or are
    shown as boxes. Nothing is loaded from a network. Raises UsageError for an unknown value or more than LIMITS.pages.
    """
    with extra_needed():
        import typst

    source = typst_source(site_map, facts, about, values=values, max_depth=max_depth)
    out.write(typst.compile(source.encode("utf-8"), format="pdf"))
