"""The map as an XHTML page."""

import base64
import hashlib
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from lxml import etree
from selectolax.lexbor import LexborHTMLParser
from test_map_xml import ABOUT, HOSTILE, PARENTS, number_of, site_of

from periplus.errors import UsageError
from periplus.model.results import LinkedBytes
from periplus.model.visit import Reason, State
from periplus.present import map_xml
from periplus.present.map_xml import LIMITS, write_map_xhtml

HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


def written(site, **options):
    out = io.BytesIO()
    write_map_xhtml(*site, ABOUT, out, **options)
    return out.getvalue()


def read(body):
    return etree.fromstring(body, etree.XMLParser(resolve_entities=False))


def page_of(item):
    return number_of({"url": item.find(f".//{HTML}a").get("href")})


def pairs(root):
    """(page, parent) of the list items, in the order of the file."""
    found = []
    for item in root.iter(f"{HTML}li"):
        above = next(item.iterancestors(f"{HTML}li"), None)
        found.append((page_of(item), -1 if above is None else page_of(above)))
    return found


def row(root, page):
    return next(item for item in root.iter(f"{HTML}li") if page_of(item) == page).find(f".//{HTML}*[@class]")


def text_of(element):
    return " ".join("".join(element.itertext()).split())


def test_nested_lists_have_the_tree_and_only_the_home_page_is_open():
    root = read(written(site_of(PARENTS)))
    assert pairs(root) == [(page, parent) for page, parent in enumerate(PARENTS) if parent > -2]
    assert [details.get("open") for details in root.iter(f"{HTML}details")] == ["open", None, None, None]


def test_the_page_is_the_same_when_parsed_as_html():
    body = written(site_of(PARENTS, lambda page: HOSTILE if page % 2 else str(page)))
    as_xml, as_html = read(body), LexborHTMLParser(body.decode())
    for name in ("li", "details", "summary", "span", "a", "svg", "rect", "dd", "p", "script", "style", "bdi", "b"):
        assert len(as_html.css(name)) == len(
            [element for element in as_xml.iter() if etree.QName(element).localname == name]
        ), name
    for item in as_html.css("li"):
        assert item.parent.tag == "ul" and item.parent.parent.tag in ("details", "main")
    assert body.startswith(b'<!DOCTYPE html SYSTEM "about:legacy-compat">')


def test_script_and_style_are_the_same_in_xml_and_html_and_the_policy_allows_only_them():
    root = read(written(site_of([-1])))
    (script,), (style,) = list(root.iter(f"{HTML}script")), list(root.iter(f"{HTML}style"))
    assert not re.search("[<>&]", script.text + style.text)
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    policy = root.find(f".//{HTML}meta[@http-equiv]").get("content")
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert root.find(f".//{HTML}p[@id='tools']").get("hidden")  # the script shows the parts that need it


def heads(root):
    return [text_of(span) for span in root.find(f".//{HTML}div[@class='row heads']")]


def test_only_the_selected_values_are_shown():
    site = site_of(PARENTS)
    assert heads(read(written(site))) == ["page", "size", "links in", "links out", "score"]
    assert heads(read(written(site, values=("title", "rank", "depth")))) == ["page", "depth", "rank"]
    assert text_of(row(read(written(site, values=("score",))), 2)) == "/2?a&b2"
    with pytest.raises(UsageError, match="colour"):
        written(site, values=("colour",))


def test_the_site_name_is_removed_from_titles():
    site_map, facts = site_of([-1, 0, 0, 0, 0])
    facts = replace(facts, title=[f"Part {page} — The Site" for page in range(5)])
    root = read(written((site_map, facts)))
    assert [text_of(row(root, page)).startswith(f"Part {page}") for page in range(5)] == [True] * 5
    assert "The Site" not in "".join(root.find(f"{HTML}body").itertext())


def test_a_page_that_was_not_read_has_its_reason():
    site_map, facts = site_of([-1, 0])
    facts = replace(
        facts, state=[State.FETCHED, State.FAILED], reason=[Reason.OK, Reason.NOT_FOUND], status=np.array([200, 404])
    )
    root = read(written((site_map, facts), values=("title", "state", "reason", "status")))
    assert text_of(row(root, 1)) == "1not found 404"
    assert text_of(row(root, 0)) == "02"


def test_linked_bytes_are_a_bar_by_class():
    site_map, facts = site_of([-1, 0, 0])
    sizes = np.array([[500, 0, 1500, 0, 0, 0, 0], [0] * 7, [1, 1, 1, 1, 1, 1, 1]])
    root = read(written((site_map, replace(facts, linked=LinkedBytes(sizes, np.array([3, 2, 0]))))))
    home, nothing, all_kinds = (row(root, page).find(f"{HTML}span[@class='linked']/{SVG}svg") for page in range(3))
    parts = [(rect.get("class"), float(rect.get("x")), float(rect.get("width"))) for rect in home.iter(f"{SVG}rect")]
    assert parts == [("pages", 0, 25), ("images", 25, 75)]
    assert home.get("aria-label") == "pages 500 B, images 1.5 KB, 3 of unknown size"
    assert (nothing.get("aria-label"), nothing.find(f"{SVG}rect")) == ("2 of unknown size", None)
    left = [float(rect.get("x")) for rect in all_kinds.iter(f"{SVG}rect")]
    assert left == pytest.approx([100 * part / 7 for part in range(7)], abs=0.06)


def test_hostile_text_is_escaped():
    root = read(written(site_of([-1, 0], lambda _: HOSTILE)))
    assert len(list(root.iter(f"{HTML}script"))) == 1
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
    assert text_of(row(root, 0).find(f".//{HTML}a")) == 'a<b attr="x">&amp;"\' end'


def test_only_web_addresses_become_links():
    site_map, facts = site_of([-1, 0])
    facts = replace(facts, url=["https://e.org/", "javascript:alert(1)"])
    hrefs = {link.get("href") for link in read(written((site_map, facts))).iter(f"{HTML}a")}
    assert hrefs == {"https://e.org/"}


def test_a_very_deep_map_is_cut_with_a_count():
    root = read(written(site_of([-1, *range(20_000)])))  # this parser refuses more than 256 nested elements
    items = list(root.iter(f"{HTML}li"))
    assert len(items) == LIMITS.depths + 1
    assert "19,920 not shown" in text_of(items[-1])
    assert text_of(items[0].find(f".//{HTML}span[@class='count']")) == "20,001"


def test_pages_below_the_chosen_depth_are_counted():
    root = read(written(site_of(PARENTS), max_depth=1))
    assert "3 not shown" in text_of(row(root, 1))
    assert len(list(root.iter(f"{HTML}li"))) == 4


def test_too_many_pages_are_refused_with_a_possible_depth():
    limits = replace(LIMITS, pages=4)
    with pytest.raises(
        UsageError, match=r"8 pages, and a page for a browser carries 4: cut it at max_depth 1 \(4 pages\)"
    ):
        map_xml.transform("map-xhtml.xsl", *site_of(PARENTS), ABOUT, limits, (("title",), -1))
    assert map_xml.transform("map-xhtml.xsl", *site_of(PARENTS), ABOUT, limits, (("title",), 1)) is not None
