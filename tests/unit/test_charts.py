"""Icicles of a folded map, and boxes by size."""

import io
import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from periplus.errors import UsageError
from periplus.model.results import OTHER_PAGES, MapNode, PageColumns
from periplus.model.visit import STATE_OF, Reason
from periplus.present.charts import (
    COLUMN,
    TOP,
    Box,
    squarify,
    write_chart,
)

HUES = ("teal", "amber", "blue", "red", "violet")
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</title><script>alert(1)</script>" onload="x\x00\x1b\ud800\u202e'
URLS = ["https://e.org/", 'https://e.org/"><script>', "javascript:alert(1)", "https://e.org/dead"]


def facts_of(urls=URLS, titles=("Home", HOSTILE, "", "")):
    reasons = (Reason.OK, Reason.OK, Reason.ROBOTS, Reason.NOT_FOUND) * (len(urls) // 4 + 1)
    reasons = reasons[: len(urls)]
    zeros = np.zeros(len(urls), np.int64)
    states = [STATE_OF[reason] for reason in reasons]
    return PageColumns(
        urls, titles, states, reasons, zeros, [""] * len(urls), zeros, zeros, zeros + 0.5, zeros + 9, zeros, zeros
    )


TREE = MapNode(
    0,
    10,
    6,
    1000,
    1.0,
    (
        MapNode(1, 4, 4, 500, 0.5, (MapNode(2, 1, 0, 125, 0.2),)),
        MapNode(3, 1, 0, 250, 0.1),
        MapNode(OTHER_PAGES, 4, 1, 125, 0.2),
    ),
)


def drawn(tree=TREE, facts=None, room=(1200, 820), by="rank", colour="folder"):
    out = io.StringIO(newline="")
    write_chart(tree, facts or facts_of(), out, (by, colour), room)
    return etree.fromstring(out.getvalue().encode("utf-8"))


def rects(root):
    """(class, x, y, height) of each rectangle, without hatches, legend and background."""
    found = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") and rect.getparent() is not root]
    return [(rect.get("class"), *(float(rect.get(name)) for name in ("x", "y", "height"))) for rect in found]


def test_heights_are_shares_of_the_total_and_children_are_inside_their_parent():
    places = rects(drawn(by="size", room=(1200, 1072)))  # 1,000 px for the columns
    assert [(kind, round(height + 1)) for kind, _, _, height in places] == [
        *[("fetched", 1000), ("fetched", 500), ("discovered", 125), ("failed", 250), ("rest", 125)],
    ]
    home, branch, cited, dead, rest = places  # this is also the keyboard order
    assert (home[2], branch[2], dead[2], rest[2], cited[2]) == (TOP, TOP, TOP + 500, TOP + 750, TOP)
    assert home[1] < branch[1] == dead[1] == rest[1] < cited[1]


def test_the_share_that_was_not_fetched_is_hatched():
    hatches = [rect for rect in drawn().iter(f"{SVG}rect") if rect.get("fill") and rect.getparent().tag != SVG + "svg"]
    whole = float(next(drawn().iter(f"{SVG}a")).find(f"{SVG}rect").get("width"))
    assert sorted(round(float(rect.get("width")) / whole, 2) for rect in hatches) == [0.75, 1.0]


def test_rectangles_have_figures_and_link_to_their_pages():
    root = drawn(by="pages")
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles[1] == "Home\nhttps://e.org/\nfetched and read, score 9\nbranch: 10 pages, 6 fetched, 1.0 KB"
    assert any(text == "4 more pages\nbranch: 4 pages, 1 fetched, 125 B" for text in titles)
    assert {link.get("href") for link in root.iter(f"{SVG}a")} == {URLS[0], URLS[1], URLS[3]}


def test_crawled_text_is_escaped_and_no_resource_is_loaded():
    root = drawn()
    assert not list(root.iter(f"{SVG}script"))
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
    assert not re.search(r"url\((?!#)|@import|xlink|src=", etree.tostring(root).decode())


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30), st.floats(1, 2000), st.floats(1, 2000))
def test_boxes_fill_the_area_without_overlap(shares, width, height):
    found = squarify(shares, Box(0.0, 0.0, width, height))
    whole = sum(shares)
    for share, box in zip(shares, found, strict=True):
        assert box.width * box.height == pytest.approx(
            share / whole * width * height if whole else 0.0, abs=1e-6 * width * height
        )
        assert box.x + box.width <= width * (1 + 1e-9) and box.y + box.height <= height * (1 + 1e-9)
    big = [box for box in found if box.width * box.height > 1e-6 * width * height]
    for one, other in itertools.combinations(big, 2):
        wide = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
        high = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
        assert min(wide, high) <= 1e-6 * max(width, height)


def test_boxes_of_equal_shares_are_nearly_square():
    assert (
        max(max(box.width / box.height, box.height / box.width) for box in squarify([1.0] * 20, Box(0, 0, 1200, 700)))
        < 3
    )


def test_an_unknown_measure_is_refused():
    with pytest.raises(UsageError, match="pages, size, rank"):
        drawn(by="colour")


def test_a_map_without_weight_is_drawn():
    assert len(rects(drawn(MapNode(0, 1, 1, 0, 0.0), by="size"))) == 1


def test_deep_maps_are_drawn_without_recursion_in_readable_columns():
    depth = 2000
    node = MapNode(depth - 1, 1, 1, 1, 1.0)
    for page in range(depth - 2, -1, -1):
        node = MapNode(page, 1, 1, 1, 1.0, (node,))
    urls = [f"https://e.org/{page}" for page in range(depth)]
    root = drawn(node, facts_of(urls, [""] * depth))
    assert len(rects(root)) == 1200 // COLUMN
    assert float(root.get("width")) == 1200


def test_colours_can_show_segments():
    names = ["manual", "other", *["manual"] * (len(facts_of().url) - 2)]
    facts = replace(facts_of(), further=(("segment", names),))
    root = drawn(facts=facts, colour="segment")
    (hue,) = {kind for kind, *_ in rects(root) if kind in HUES}
    legend = [text.text for text in root.iter(f"{SVG}text")]
    assert "manual" in legend and "fetched in other segments" in legend and "other" not in legend
    assert rects(root)[0][0] == hue, "the home page"
    with pytest.raises(UsageError, match=r"pages have no segments: name some in periplus\.toml"):
        drawn(colour="segment")
    with pytest.raises(UsageError, match="coloured by folder or segment, not by 'taste'"):
        drawn(colour="taste")
