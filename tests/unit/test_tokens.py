"""Tokens of HTML, in the form of the tokenizer tests of html5lib."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawn_trees import FOLDER
from periplus.document.tags import ATTRIBUTES, TAG_NUMBERS, TAGS
from periplus.document.tokens import Tokens

TEXT, START, END, COMMENT, DOCTYPE, NUL, EOF = range(1, 8)
STATES = {
    "Data state": 0, "CDATA section state": 2, "RCDATA state": 3, "RAWTEXT state": 4, "Script data state": 5,
    "PLAINTEXT state": 6,
}  # fmt: skip


def read(page: str, state: str = "Data state", last_tag: str = "") -> list[list[object]]:
    """The tokens as lists: ["Character", text], ["StartTag", name, attributes] and so on. Adjacent texts are joined."""
    if state.startswith("CDATA"):
        page = f"<![CDATA[{page}"
    tokens = Tokens(page.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "surrogatepass"))
    mode, rows = STATES[state], []
    while not rows or rows[-1] != ["EOF"]:
        count = tokens.run(mode, TAG_NUMBERS.get(last_tag, 0))
        rows += list(_rows(tokens, count))
        mode = 2 if state.startswith("CDATA") else 0
    merged: list[list[object]] = []
    for row in rows[:-1]:
        if merged and row[0] == merged[-1][0] == "Character":
            merged[-1] = ["Character", f"{merged[-1][1]}{row[1]}"]
        else:
            merged.append(row)
    return merged


def _rows(tokens: Tokens, count: int) -> Iterator[list[object]]:
    chars = bytes(tokens.chars)

    def text(start: int, end: int) -> str:
        return chars[start:end].decode("utf-8", "surrogatepass")

    own_tags, own_names = (
        [name.decode().replace("\0", "\ufffd") for name in own] for own in (tokens.own_tags, tokens.own_names)
    )
    for at in range(count):
        kind, tag, start, end = tokens.kinds[at], tokens.tags[at], tokens.starts[at], tokens.ends[at]
        if kind in (TEXT, NUL):
            yield ["Character", text(start, end)]
        elif kind == COMMENT:
            yield ["Comment", text(start, end)]
        elif kind == EOF:
            yield ["EOF"]
        elif kind == END:
            yield ["EndTag", [*TAGS, *own_tags][tag]]
        else:
            first = tokens.firsts[at]
            names = [*ATTRIBUTES, *own_names]
            attributes = {
                names[tokens.names[row]]: text(tokens.value_starts[row], tokens.value_ends[row])
                for row in range(first, first + tokens.counts[at])
            }
            if kind == START:
                yield ["StartTag", [*TAGS, *own_tags][tag], attributes, *([True] if end else [])]
            else:
                yield ["DOCTYPE", text(start, end) or None, attributes.get("public"), attributes.get("system"), not tag]


@pytest.mark.parametrize(
    ("page", "tokens"),
    [
        ("<a b=c d='e' f=\"g\" h/>", [["StartTag", "a", {"b": "c", "d": "e", "f": "g", "h": ""}, True]]),
        ("<A B=C b=d>x</A y=z>", [["StartTag", "a", {"b": "C"}], ["Character", "x"], ["EndTag", "a"]]),
        ("<own-name own=1>", [["StartTag", "own-name", {"own": "1"}]]),
        ("<a\0 b\0=\0>\0", [["StartTag", "a\ufffd", {"b\ufffd": "\ufffd"}], ["Character", "\0"]]),
        ("<!doctype HTML>", [["DOCTYPE", "html", None, None, True]]),
        ("<!doctype>", [["DOCTYPE", None, None, None, False]]),
        ("<!doctype a system 'b' c>", [["DOCTYPE", "a", None, "b", True]]),
        ("<!--a--><?b?></ c>", [["Comment", "a"], ["Comment", "?b?"], ["Comment", " c"]]),
        ("a&lt;b&#65;", [["Character", "a<bA"]]),
        (
            "<accept-charset accept-charset=1 accept-char=2>",
            [["StartTag", "accept-charset", {"accept-charset": "1", "accept-char": "2"}]],
        ),
    ],
)
def test_a_page_has_these_tokens(page, tokens):
    assert read(page) == tokens


def test_text_of_an_element_ends_with_its_own_end_tag():
    assert read("&amp;<b></i></title >x", "RCDATA state", "title") == [
        ["Character", "&<b></i>"], ["EndTag", "title"], ["Character", "x"],
    ]  # fmt: skip
    assert read("&amp;</style", "RAWTEXT state", "style") == [["Character", "&amp;</style"]]


def test_no_token_is_lost_between_batches():
    page = "<b>x</b>" * 5_000
    assert read(page) == [["StartTag", "b", {}], ["Character", "x"], ["EndTag", "b"]] * 5_000


def _unescaped(value: list[object]) -> list[object]:
    """A doubly escaped case without escapes. JSON cannot express lone surrogates for every reader."""
    return json.loads(json.dumps(value).replace("\\\\u", "\\u"))


@pytest.mark.skipif(not FOLDER, reason="PERIPLUS_HTML5LIB_TESTS names no folder")
def test_html5lib_tokenizer_tests_pass():
    tried = 0
    for path in sorted((Path(FOLDER) / "tokenizer").glob("*.test")):
        for case in json.loads(path.read_text("utf-8")).get("tests", ()):
            page, tokens = map(
                _unescaped if case.get("doubleEscaped") else lambda same: same, (case["input"], case["output"])
            )
            if case["description"] != "NUL in CDATA section":  # our tokenizer already replaces NUL, since SVG shows it
                for state in case.get("initialStates", ["Data state"]):
                    assert read(page, state, case.get("lastStartTag", "")) == tokens, (path.name, state, case)
                    tried += 1
    assert tried > 6_000
