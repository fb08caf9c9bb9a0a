"""Properties of the HTML and XML parsers that we rely on."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from periplus.document import html
from periplus.document.conversion import Source
from periplus.document.markup import read_html
from periplus.errors import InvalidUrl
from periplus.model.page import LinkKind
from periplus.model.visit import Headers
from periplus.urls.canonical import canonical

MANUALS = Path("/usr/share/doc/python3.11/html/library")


def test_xml_must_be_well_formed_and_cannot_define_entities():
    assert html.parse_xml("<a><b></a>") is None
    assert html.parse_xml("<!DOCTYPE a [<!ENTITY x 'yy'>]><a>&x;</a>") is None
    assert html.parse_xml("") is None
    assert html.parse_xml("<a>&amp;</a>") is not None


HOSTILE = {
    "nested": "<div>" * 100_000 + "x",
    "attributes": "<p " + " ".join(f"a{i}=1" for i in range(100_000)) + ">x",
    "long attribute": '<p title="' + "x" * 10_000_000 + '">x',
    "angles": "<" * 1_000_000,
    "misnested": "<a href=x><b><i>" * 20_000,
    "anchors in cells": "<a href=x><table><tr><td>" * 20_000,
    "tables": "<table><tr><td>" + "A" * 100_000 + "<td>x" + "<tr><td>b<td>c" * 1_000,
    "landmarks": "<nav>" * 20_000 + "<a href=x>x",
    "srcset": '<img srcset="' + "a 1x, " * 200_000 + '">',
    "lists": "<ol><li>" * 20_000 + "x",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markup_is_parsed_in_linear_time(name):
    """The limit is in CPU seconds and generous: quadratic code takes minutes."""

    started = time.process_time()
    found = read_html(Source(canonical("http://a.example/"), Headers(), HOSTILE[name].encode()))
    assert time.process_time() - started < 3.0
    assert sum(len(block.text) for block in found.blocks) < 3_000_000


@pytest.mark.skipif(not MANUALS.is_dir(), reason="the Python manual is not installed here")
def test_another_parser_finds_the_same_links():
    lexbor, page = pytest.importorskip("selectolax.lexbor"), canonical("http://a.example/")
    for path in sorted(MANUALS.glob("*.html"))[::16]:
        text = path.read_text("utf-8")
        theirs, ours = Counter[str](), Counter[str]()
        for node in lexbor.LexborHTMLParser(text).css("a[href]"):
            with suppress(InvalidUrl):
                theirs[canonical(node.attributes["href"] or "", page)] += 1
        for link in read_html(Source(page, Headers(), text.encode())).links:
            if link.kind is LinkKind.ANCHOR:
                ours[link.target] += link.times
        assert ours == theirs
