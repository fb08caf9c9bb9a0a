"""The map as a PDF: the typst source, and its compilation."""

import io
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_map_xml import ABOUT, HOSTILE, PARENTS, site_of

from periplus.errors import UsageError
from periplus.model.results import LinkedBytes
from periplus.present.map_xml import PDF_LIMITS, typst_source, write_map_pdf
from periplus.present.markup import characters
from periplus.present.wording import visible

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
ROW = re.compile(
    r'#row\((\d+), "((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)", "[\d,]*", \(((?:"(?:[^"\\]|\\.)*", )*)\), (true|false), '
    r"\(([^()]*)\), \(([^()]*)\), \d+\)"
)


def rows(source):
    """(depth, name, URL) of each row."""
    lines = source.rstrip("\n").split("\n")
    found = [ROW.fullmatch(line) for line in lines if line.startswith("#row(")]
    assert all(found)
    return [(int(match[1]), unescaped(match[2]), unescaped(match[3])) for match in found]


def unescaped(literal):
    return re.sub(r"\\(.)", r"\1", literal)


def pdf(site, **options):
    out = io.BytesIO()
    write_map_pdf(*site, ABOUT, out, **options)
    return out.getvalue()


def plain(body):
    """The PDF with its streams decompressed."""
    parts = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", body, re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            parts.append(stream)
    return body + b"\n".join(parts)


def test_each_page_has_a_row_at_its_depth():
    depths = {0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 5: 1, 6: 1, 7: 2}
    assert rows(typst_source(*site_of(PARENTS), ABOUT)) == [
        (depths[page], str(page), f"https://e.org/{page}?a&b") for page in range(8)
    ]


def test_pages_are_linked_and_branches_are_bookmarks():
    body = plain(pdf(site_of(PARENTS, lambda page: f"Title {page}")))
    assert body.startswith(b"%PDF-")
    assert {f"https://e.org/{page}?a&b".encode() for page in range(8)} <= set(re.findall(rb"/URI\s*\(([^)]*)\)", body))
    assert set(re.findall(rb"/Title\s*\((Title \d)\)", body)) == {b"Title 1", b"Title 6"}


def test_the_pdf_is_reproducible():
    assert pdf(site_of([-1, 0])) == pdf(site_of([-1, 0]))


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.text(st.characters(codec=None)), st.text('\\"#$*_`<@/[]{}()=- \n')), min_size=2, max_size=5)
)
def test_any_title_is_escaped(titles):
    site = site_of([-1] + [0] * (len(titles) - 1), lambda page: f"{page}{titles[page]}")
    names = [name for _, name, _ in rows(typst_source(*site, ABOUT))]
    assert names == [visible(characters(f"{page}{title}")) for page, title in enumerate(titles)]


def test_hostile_text_is_printed_as_text():
    """typst would fail at an unknown function, label, file or package if it interpreted one of these."""
    markup = [
        '#import "@preview/x:1.0.0"',
        '#read("/etc/passwd")',
        "$x",
        "*_`",
        "<label> @reference",
        '"); #panic("',
        "\\",
        '\\"',
        "// /* [",
        HOSTILE,
        "x" * 5000,
    ]
    site = site_of([-1] + [0] * (len(markup) - 1), lambda page: markup[page])
    assert pdf(site).startswith(b"%PDF-")
    assert max(len(name) for _, name, _ in rows(typst_source(*site, ABOUT))) == 160


def test_several_scripts_can_be_printed():
    body = pdf(site_of([-1, 0, 0, 0], lambda page: ("Příliš žluťoučký kůň", "Ελληνικός", "Русский", "中文")[page]))
    assert b"LibertinusSerif" in body


def test_values_bars_and_omitted_pages_are_printed():
    site_map, facts = site_of(PARENTS)
    facts = replace(facts, linked=LinkedBytes(np.arange(63).reshape(9, 7), np.zeros(9, np.int64)))
    source = typst_source(site_map, facts, ABOUT, values=("title", "linked", "rank"), max_depth=1)
    assert '(7, 8, 9, 10, 11, 12, 13, "70 B"), ("0.142857", )' in source
    assert '"3 not shown"' in source
    assert pdf((site_map, facts), values=("title", "linked", "rank", "depth"), max_depth=1).startswith(b"%PDF-")
    assert pdf((site_map, facts), values=()).startswith(b"%PDF-")


def test_deep_maps_are_cut_and_large_ones_refused():
    assert len(rows(typst_source(*site_of([-1, *range(3000)]), ABOUT))) == PDF_LIMITS.depths + 1
    with pytest.raises(UsageError, match=r"a PDF carries 10,000: cut it at max_depth 0 \(1 pages\)"):
        typst_source(*site_of([-1] + [0] * PDF_LIMITS.pages), ABOUT)
