"""The map as text for a terminal."""

import numpy as np
import pytest

from periplus.model.results import OTHER_PAGES, MapNode, PageColumns
from periplus.model.visit import STATE_OF, Reason
from periplus.present.map_files import map_text
from periplus.present.wording import REASON_WORDS, cells, count_of, fit, labels, short, size, utc, visible


def facts_of(*pages):
    """Facts of pages given as (url, title, reason, media type, score)."""
    count = len(pages)
    urls, titles, reasons, media, scores = zip(*pages, strict=True)
    zeros = np.zeros(count, np.int64)
    states = [STATE_OF[reason] for reason in reasons]
    return PageColumns(
        urls, titles, states, reasons, zeros, media, zeros, zeros, zeros + 0.5, np.array(scores), zeros, zeros
    )


def node(page, *children, pages=1, indexed=1):
    return MapNode(page, pages + sum(child.pages for child in children), indexed, 0, 0.1, children)


FACTS = facts_of(
    ("https://e.org/", "Home", Reason.OK, "text/html", 100),
    ("https://e.org/a", "Products", Reason.OK, "text/html", 50),
    ("https://e.org/b/c%20d?x=1", "", Reason.ROBOTS, "", 0),
    ("https://e.org/f.pdf", "Price list", Reason.OTHER_MEDIA, "application/pdf", 7),
)
TREE = node(0, node(1, node(OTHER_PAGES, pages=1204, indexed=1200)), node(2, indexed=0), node(3))


def test_a_small_map_is_drawn():
    assert list(map_text(TREE, FACTS, width=70)) == [
        "e.org                                                     score  pages",
        "Home                                                ██████  100  1,208",
        "├─ Products                                         ███      50  1,205",
        "│  └─ … 1,204 more pages, 4 not fetched",
        "├─ /c d?x=1  [disallowed by robots.txt]                       0",
        "└─ Price list  [file type not parsed]               ▍         7",
    ]


def test_every_line_fits_and_has_no_control_character():
    hostile = facts_of(("https://e.org/", "\x1b[31mred\u202e " + "地" * 90, Reason.NOT_FOUND, "", 3))
    for width in (30, 60, 79, 200):
        lines = list(map_text(node(0), hostile, width=width))
        assert all(cells(line) <= max(width, 46) for line in lines)
        assert "\x1b" not in "".join(lines)
        assert "\u202e" not in "".join(lines)


def test_an_ascii_map_has_only_ascii():
    assert all(line.isascii() for line in map_text(TREE, FACTS, ascii_only=True))


def test_a_narrow_map_has_names_but_no_bars():
    text = "\n".join(map_text(TREE, FACTS, width=50))
    assert "█" not in text
    assert "Products" in text


def test_a_remark_is_kept_beside_a_long_name():
    facts = facts_of(("https://e.org/", "word " * 40, Reason.NOINDEX, "", 3))
    assert "[noindex]" in list(map_text(node(0), facts, width=80))[1]


def test_a_very_deep_branch_keeps_room_for_names():
    tree = node(0)
    for _ in range(3000):
        tree = MapNode(0, tree.pages + 1, 1, 0, 0.1, (tree,))
    lines = list(map_text(tree, FACTS, width=80))
    assert len(lines) == 3002
    assert all("Home" in line and cells(line) <= 80 for line in lines[1:])


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://e.org/", "e.org"),
        ("https://e.org/a/b/", "/b"),
        ("https://e.org/a/%C4%8Das.html", "/čas.html"),
        ("https://e.org/?q=1", "e.org?q=1"),
    ],
)
def test_pages_without_title_have_a_short_name(url, name):
    assert short(url) == name


def test_labels_distinguish_siblings_with_the_same_title():
    assert labels(["/a", "/b", "/c", "/d"], ["News", "News", "Home", ""], "Home") == [
        "News · /a",
        "News · /b",
        "Home · /c",
        "/d",
    ]


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (99_960, "100 KB"), (999_600, "1.0 MB"), (5 * 10**15, "5000 TB")],
)
def test_sizes_have_units(size_bytes, words):
    assert size(size_bytes) == words


def test_counts_and_dates_are_written_in_words():
    assert (count_of(1, "page"), count_of(1204, "page"), count_of(2, "copy", "copies")) == (
        "1 page",
        "1,204 pages",
        "2 copies",
    )
    assert utc(0) == "1 January 1970, 00:00 UTC"


def test_every_reason_has_a_text():
    assert set(REASON_WORDS) == set(Reason)


@pytest.mark.parametrize("text", ["", "abc", "abcdef", "地図帳", "e\u0301e\u0301e\u0301e\u0301e\u0301"])
@pytest.mark.parametrize("width", [1, 2, 4, 5, 8])
def test_fit_gives_exactly_the_width(text, width):
    assert cells(fit(text, width)) == width


def test_visible_folds_white_space():
    assert visible(" a\t\nb  c\u00a0d ") == "a b c d"
