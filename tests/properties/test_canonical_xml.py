"""Canonical XML: well-formed for any input, and equal to the tree of the parser."""

from __future__ import annotations

import re

import pytest
import turbohtml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from periplus.document.canonical_xml import XHTML, legal_name, legal_text, without_doctype, xml_of_html, xml_of_xml

SPACES = {"HTML": XHTML, "SVG": "http://www.w3.org/2000/svg", "MATHML": "http://www.w3.org/1998/Math/MathML"}
NAMED = {"xml:": "{http://www.w3.org/XML/1998/namespace}", "xlink:": "{http://www.w3.org/1999/xlink}"}
HOSTILE = [
    "<g:plusone @click='x' a\"b=1 <c>", "<svg viewbox=1 xlink:href=a xlink:foo=2 xmlns:xlink=t xmlns=q>",
    "<foreignobject>", "<math>", "<mi>", "<mglyph>",
    "<annotation-xml>", "<annotation-xml encoding=Text/HTML>", "<title>", "<desc>",
    "<html xmlns='u' xmlns:og='v' og:x=1>", "<body xml:lang=cs lang=cs>",
    "<!-- a -- b --- ->", "<!--->-->", "<!-->", "<?php echo '?>' ?>", "<?xml version='1.0'?>",
    "<!DOCTYPE html SYSTEM 'x'>", "<![CDATA[ ]]> ]]>", "<1>",
    "<a =x>", "\u0000", "\f", "\u001f", "\ufffe", "\ud800", "&#13;", "&#0;", "&#x1;", "&lt;&nbsp;&nosuch;", "\r\n",
    "<p/>", "</p>", "<table><td><p>",
    "</table>", "<script>", "</script>", "<plaintext>", "<template>", "</template>", "<select><option>", "<b><i></b>",
    "<x-\u00e9 a-\U0001f600=1 \ud83d=2 -x=2 .y=3>", "<a href='a&b\"\n\t\r'>", "<image>", "<\ud800a>", "<svg>", "</svg>",
    "words", "<a x\u0000=1 x\ufffd=2>",
]  # fmt: skip
soup = st.lists(st.sampled_from(HOSTILE), max_size=12).map("".join)


def parsed(data: bytes) -> etree._Element:
    return etree.fromstring(data, etree.XMLParser(huge_tree=True))


def attribute_name(name: str, space: str) -> str:
    for start, written in NAMED.items():
        known = name in ("xml:lang", "xml:space") or (space != XHTML and name == "xlink:href")
        if name.startswith(start) and known:
            return written + name.removeprefix(start)
    return legal_name(name)


def plain_tree(text: str) -> list[object]:
    """Reference implementation: walks the parser's own tree."""
    found: list[object] = []
    for node in turbohtml.parse(
        re.sub("[\ud800-\udfff]", "\ufffd", text), allow_declarative_shadow_roots=False
    ).descendants:
        if isinstance(node, turbohtml.Element):
            space = SPACES[node.namespace.name]
            names = [name for name in node.attrs if name != "xmlns" and (space == XHTML or name != "xmlns:xlink")]
            found.append(
                (
                    f"{{{space}}}{legal_name(node.tag)}",
                    {attribute_name(name, space): legal_text(node.attr(name) or "") for name in names},
                )
            )
        elif isinstance(node, turbohtml.Text):
            if found and isinstance(found[-1], str):
                found[-1] += legal_text(node.data)
            elif node.data:
                found.append(legal_text(node.data))
    return found


def written_tree(data: bytes) -> list[object]:
    found: list[object] = []

    def add(text: str | None) -> None:
        if text and found and isinstance(found[-1], str):
            found[-1] += text
        elif text:
            found.append(text)

    for event, element in etree.iterwalk(parsed(data), events=("start", "end", "comment", "pi")):
        if event == "start":
            found.append((element.tag, dict(element.attrib)))
            add(element.text)
        elif element.getparent() is not None:
            add(element.tail)
    return found


@settings(max_examples=50)
@given(soup | st.text(max_size=60) | st.lists(soup | st.text(max_size=5), max_size=4).map("".join))
@example("<svg><foreignobject><p><svg><a xlink:href=x>")
@example("<math><annotation-xml><svg><title><b>")
@example("<a x\u0000=1 x\ufffd=2>")
def test_any_text_becomes_the_tree_of_the_parser(text: str) -> None:
    assert written_tree(xml_of_html(text)) == plain_tree(text)


@settings(max_examples=60)
@given(st.binary(max_size=80))
def test_any_bytes_become_well_formed_xml(data: bytes) -> None:
    parsed(xml_of_html(data.decode("latin-1")))


@settings(max_examples=100)
@given(
    st.lists(
        st.sampled_from(
            [
                *HOSTILE,
                "<a xmlns:b='u' b:c='1'>",
                "<b:d/>",
                "</a>",
                "<!DOCTYPE a [<!ENTITY x 'y'>]>",
                "&x;",
                "<!--",
                "<![CDATA[",
            ]
        ),
        max_size=8,
    ).map("".join)
)
def test_xml_is_written_well_formed_or_not_at_all(text: str) -> None:
    written = xml_of_xml(text)
    if written is not None:
        parsed(written)


def test_deep_nesting_needs_no_deep_stack() -> None:
    written = xml_of_html("<div>" * 100_000 + "x")
    assert written.count(b"<div>") == written.count(b"</div>") == 100_000


def test_names_of_html_stay_different() -> None:
    assert legal_name("g:plusone") == "gU00003Aplusone"
    assert legal_name("1a") == "U000031a"
    assert legal_name("@click") == "U000040click"


def test_xml_keeps_its_namespaces_comments_and_instructions() -> None:
    written = xml_of_xml(
        '<?xml version="1.0" encoding="iso-8859-2"?><!-- c --><?go on?><b:a xmlns:b="urn:b" '
        'b:x="1"><![CDATA[<]]>é</b:a>'
    )
    assert (
        written
        == (
            '<?xml version="1.0" encoding="UTF-8"?>\n<!-- c --><?go on?><b:a xmlns:b="urn:b" b:x="1">&lt;é</b:a>\n'
        ).encode()
    )


def test_no_entity_is_expanded_and_nothing_is_fetched(tmp_path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("opened")
    laughs = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
    text = (
        f"<!DOCTYPE a SYSTEM 'file://{secret}' [<!ENTITY l0 'ha]>'>{laughs}<!ENTITY e SYSTEM 'file://{secret}'>]><a "
        "b='&l9;'>&e;&l9;&nbsp;&amp;</a>"
    )
    written = xml_of_xml(text)
    assert written is not None
    element = parsed(written)
    assert (element.text, element.get("b")) == ("&e;&l9;\xa0&", "&l9;")


@pytest.mark.parametrize("piece", ["<!--", "<?", "<![CDATA[", "&", "<!DOCTYPE", "<!DOCTYPE a [", '"', "<!---->", "&a"])
def test_a_repeated_beginning_takes_linear_time(piece: str) -> None:
    assert without_doctype("<!DOCTYPE " + piece * 200_000) is not None


def test_contents_of_shadow_roots_are_kept():
    written = xml_of_html("<div><template id=a shadowrootmode=open><p>in</p></template>out</div>")
    assert b'<template id="a" shadowrootmode="open"><p>in</p></template>out' in written
