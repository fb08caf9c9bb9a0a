"""Icicle, treemap and sunburst charts of a folded map."""

import io
import itertools
import math
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
    DISC,
    GAP,
    HEAD,
    RIM,
    TOP,
    WHOLE,
    Box,
    Sector,
    name_spot,
    outline,
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


def drawn(tree=TREE, facts=None, room=(1200, 820), by="rank", form="icicle", colour="folder"):
    out = io.StringIO(newline="")
    write_chart(tree, facts or facts_of(), out, (by, form, colour), room)
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


@pytest.mark.parametrize("form", ["icicle", "treemap", "sunburst"])
def test_crawled_text_is_escaped_and_no_resource_is_loaded(form):
    root = drawn(form=form)
    assert not list(root.iter(f"{SVG}script"))
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
    assert not re.search(r"url\((?!#)|@import|xlink|src=", etree.tostring(root).decode())


def boxes(root):
    """(class, x, y, width, height) of each rectangle."""
    return [
        (rect.get("class"), *(float(rect.get(name)) for name in ("x", "y", "width", "height")))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("class") and rect.getparent() is not root
    ]


def test_areas_of_a_treemap_are_shares_and_branches_are_inside_their_box():
    home, *branches = boxes(drawn(by="size", form="treemap", room=(1222, 1095)))
    room = (home[3] - 2 * RIM) * (home[4] + GAP - HEAD - RIM)
    shares = {kind: width * (height + GAP) / room for kind, _, _, width, height in branches}
    assert [shares[kind] for kind in ("failed", "rest")] == pytest.approx([0.25, 0.125], abs=0.002)
    assert max(
        width * (height + GAP) / room for kind, _, _, width, height in branches if kind == "fetched"
    ) == pytest.approx(0.5, abs=0.002)
    for _, x, y, width, height in branches:
        assert home[1] <= x and home[2] <= y and x + width <= home[1] + home[3] and y + height <= home[2] + home[4]


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


def sectors(root):
    """(class, inner radius, outer radius, share of a turn) of each sector that is not a full ring."""
    found = []
    for path in root.iter(f"{SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?[0-9.]+", path.get("d"))]
        if (
            path.get("class") in ("fetched", "discovered", "failed", "rest")
            and path.get("d").count("A") < 4
            and len(numbers) == 18
        ):
            turn = (math.atan2(numbers[8], numbers[7]) - math.atan2(numbers[1], numbers[0])) % WHOLE
            found.append((path.get("class"), numbers[11], numbers[2], turn / WHOLE))
    return found


def test_angles_of_a_sunburst_are_shares_and_its_rings_are_depths():
    root = drawn(by="size", form="sunburst", room=(1200, TOP + 1016))  # a radius of 500 px
    ring = 500 / (2 + DISC)
    inner = {"rest": DISC * ring, "failed": DISC * ring, "discovered": (1 + DISC) * ring}
    for kind, start, end, share in sectors(root):
        assert start == pytest.approx(inner.get(kind, DISC * ring), abs=0.01) and end - start == pytest.approx(
            ring, abs=0.01
        )
        assert share == pytest.approx(
            {"rest": 0.125, "failed": 0.25, "discovered": 0.125, "fetched": 0.5}[kind], abs=1e-4
        )
    assert sorted(kind for kind, *_ in sectors(root)) == ["discovered", "failed", "fetched", "rest"]
    home = next(root.iter(f"{SVG}a"))
    assert home.get("href") == URLS[0] and home.find(f"{SVG}path").get("d").count("A") == 2


def test_a_sunburst_has_the_titles_links_and_hatches_of_the_icicle():
    titles = [[text.text for text in drawn(form=form).iter(f"{SVG}title")] for form in ("icicle", "sunburst")]
    assert titles[0] == titles[1]
    linked = [[link.get("href") for link in drawn(form=form).iter(f"{SVG}a")] for form in ("icicle", "sunburst")]
    assert linked[0] == linked[1]
    assert len([path for path in drawn(form="sunburst").iter(f"{SVG}path") if path.get("fill")]) == 2


def test_a_sunburst_names_the_depths_that_do_not_fit():
    node = MapNode(29, 1, 1, 1, 1.0)
    for page in range(28, -1, -1):
        node = MapNode(page, 1, 1, 1, 1.0, (node,))
    root = drawn(node, facts_of([f"https://e.org/{page}" for page in range(30)], [""] * 30), form="sunburst")
    links = len(list(root.iter(f"{SVG}a")))
    assert 5 < links < 10
    assert f"the first {links} of 30 rings" in " ".join(root.itertext())


angles = st.floats(0, WHOLE)


@given(st.floats(0, 300), st.floats(1, 200), angles, angles)
def test_a_label_stays_inside_its_sector(inner, wide, start, span):
    sector = Sector(inner, inner + wide, start, start + span)
    assert "nan" not in outline(sector)
    spot = name_spot(sector)
    assert -90 <= spot.turned <= 90
    turned = math.radians(spot.turned)
    for along, across in itertools.product((-0.5, 0, 0.5), (-6.5, 6.5)) if spot.length > 0 else ():
        x = spot.x + along * spot.length * math.cos(turned) - across * math.sin(turned)
        y = spot.y + along * spot.length * math.sin(turned) + across * math.cos(turned)
        assert inner - 1e-6 <= math.hypot(x, y) <= inner + wide + 1e-6 or (inner < 6.5 and span > 3)
        if span < WHOLE - 1e-6:
            assert (math.atan2(y, x) + math.pi / 2 - start + 1e-6) % WHOLE <= span + 2e-6


def test_an_unknown_measure_or_form_is_refused():
    with pytest.raises(UsageError, match="pages, size, rank"):
        drawn(by="colour")
    with pytest.raises(UsageError, match="icicle, treemap, sunburst"):
        drawn(form="pie")


def test_a_map_without_weight_is_drawn():
    assert len(rects(drawn(MapNode(0, 1, 1, 0, 0.0), by="size"))) == 1
    assert len(list(drawn(MapNode(0, 1, 1, 0, 0.0), by="size", form="sunburst").iter(f"{SVG}a"))) == 1


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
