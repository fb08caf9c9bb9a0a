"""Converts SGML to HTML.

DocBook, LinuxDoc and similar: omitted tags and entities are expanded.

No document type is read, so elements are interpreted by name; for unknown names only the contents count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from periplus.document.conversion import Conversion, escape, page

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<\?[^>]*(?:>|\Z)|<!\[\s*(?P<marked>[^\[<>]*)\[|\]\]>|<![^>]*(?:>|\Z)"
    r"|<(?P<close>/)?(?P<name>[A-Za-z][\w.:-]*)(?P<attributes>(?:[^<>\"'/]|\"[^\"]*\"|'[^']*')*)(?P<net>/?>"
    r"|/)|(?P<same></?>)|(?P<text>[^<\]]+|.)",
    re.S,
)
_ATTRIBUTE = re.compile(r"([\w.:-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))")
# Sections by rank: a section ends open ones of the same or lower rank whose end tags were omitted; `section` always has
# an end tag
_RANKS = {"part": 0, "sect": 2, "refsect1": 3, "refsect2": 4, "refsect3": 5, "section": 99}
_RANKS |= dict.fromkeys(("chapter", "chapt", "appendix", "preface", "refentry", "glossary", "bibliography"), 1)
_RANKS |= {f"sect{number}": number + 2 for number in range(1, 6)}
_SECTIONS_MOST = 50  # nesting depth; books have six
_TITLES = frozenset({"title", "refname", "subtitle", "heading", "bridgehead"})
_AFTER_TITLE = frozenset(
    {"author", "authorgroup", "date", "version", "titlepag", "toc", "lot", "copyright", "revhistory", "sect"}
)
_TAGS = {
    **dict.fromkeys(("para", "simpara", "p", "formalpara", "abstract", "note", "warning", "tip", "important", "caution",
            "address"), "p"),
    **dict.fromkeys(("itemizedlist", "orderedlist", "variablelist", "simplelist", "segmentedlist", "itemize", "enum",
            "descrip", "ul", "ol", "dl"), "ul"),
    **dict.fromkeys(("listitem", "item", "member", "li", "dd", "step"), "li"),
    **dict.fromkeys(("programlisting", "screen", "literallayout", "synopsis", "verb", "code", "tscreen", "funcsynopsis",
            "cmdsynopsis", "pre"), "pre"),
    **dict.fromkeys(("term", "tag", "dt"), "dt"), **dict.fromkeys(("table", "informaltable", "tabular"), "table"),
    **dict.fromkeys(("row", "tr"), "tr"),
    **dict.fromkeys(("entry", "td", "th"), "td"), **dict.fromkeys(("caption", "figcaption"), "caption"),
    "blockquote": "blockquote", "footnote": "p",
    **{name: name for name in ("h1", "h2", "h3", "h4", "h5", "h6", "div")},
}  # fmt: skip
_EMPTY = frozenset({
    "toc", "xref", "ref", "label", "index", "newline", "anchor", "graphic", "imagedata", "colspec", "spanspec",
    "beginpage", "lot", "idx", "cdx", "url", "htmlurl",
})  # fmt: skip
_UNREAD = frozenset({"indexterm", "comment", "remark", "script", "style"})


class _Reader:
    """Reads tokens one by one; the level of a heading is the number of open sections."""

    def __init__(self) -> None:
        self.title = ""
        self._open: list[tuple[str, str]] = []  # (name, HTML that closes it)
        # number of open elements by name, to recognise unmatched end tags at once
        self._counts: Counter[str] = Counter()
        self._sections: list[str] = []
        self._heading = 0  # level of the open heading without end tag, as after <sect>
        self._words: list[str] = []  # of a title
        self._unread = self._net = 0

    def pieces(self, text: str) -> Iterator[str]:
        for token in _TOKEN.finditer(text):
            name = (token["name"] or "").lower()
            if token["text"]:
                yield from self._text(token["text"])
            elif token["same"] == "</>":
                yield from self._close(self._open[-1][0] if self._open else "")
            elif name and token["close"]:
                yield from self._close(name)
            elif name:
                yield from self._start(name, _values(token["attributes"]))
                if token["net"] == "/":
                    self._net += 1
                elif token["net"] == "/>":
                    yield from self._close(name)
        yield from self._end_heading()
        while self._open:
            yield self._open.pop()[1]

    def _text(self, text: str) -> Iterator[str]:
        if self._net and "/" in text:  # <tag/text/: the slash ends the element
            before, _, text = text.partition("/")
            self._net -= 1
            yield from self._text(before)
            yield from self._close(self._open[-1][0] if self._open else "")
        if not self._unread:
            if self._heading and "\n\n" in text.lstrip("\n"):  # an empty line ends the title of a section
                first, _, text = text.partition("\n\n")
                yield self._escape(first)
                yield from self._end_heading()
            yield self._escape(text)

    def _escape(self, text: str) -> str:
        if not self.title and not self._sections and self._open and self._open[-1][0] == "title":
            self._words.append(text)
        return text.replace("<", "&lt;").replace(">", "&gt;")

    def _start(self, name: str, attributes: dict[str, str]) -> Iterator[str]:
        if name in _UNREAD:
            self._unread += 1
        if name in _RANKS or name in _TAGS or name in _AFTER_TITLE:
            yield from self._end_heading()
            if self._open and self._open[-1][0] in _TITLES:
                yield from self._close(self._open[-1][0])
        if name in _RANKS:
            yield from self._section(name)
        elif name in _TITLES:
            level = min(len(self._sections) + 1, 6)
            self._push(name, "" if self._heading else f"</h{level}>\n")
            yield "" if self._heading else f"<h{level}>"
        elif name in ("ulink", "url", "htmlurl", "a"):
            yield from self._link(name, attributes)
        elif tag := _TAGS.get(name):
            self._push(name, f"</{tag}>\n")
            yield f"<{tag}>"
        elif name not in _EMPTY:
            self._push(name, "")

    def _section(self, name: str) -> Iterator[str]:
        if name != "section":
            for open_name in [
                section for section in self._sections if section != "section" and _RANKS[section] >= _RANKS[name]
            ]:
                yield from self._close(open_name)
        if len(self._sections) >= _SECTIONS_MOST:
            self._push("", "")
            return
        self._sections.append(name)
        self._push(name, "")
        if name.startswith("sect") and name != "section":  # LinuxDoc: the title follows without a tag
            self._heading = min(len(self._sections) + 1, 6)
            yield f"<h{self._heading}>"

    def _link(self, name: str, attributes: dict[str, str]) -> Iterator[str]:
        target = attributes.get("url") or attributes.get("href") or ""
        if name in ("url", "htmlurl"):
            yield f'<a href="{escape(target)}">{escape(attributes.get("name") or target)}</a>'
        else:
            self._push(name, "</a>" if target else "")
            yield f'<a href="{escape(target)}">' if target else ""

    def _push(self, name: str, close: str) -> None:
        self._open.append((name, close))
        self._counts[name] += 1

    def _close(self, name: str) -> Iterator[str]:
        """Closes an element and those inside whose end tags were omitted; ignores unmatched end tags."""
        if name in _UNREAD and self._unread:
            self._unread -= 1
        if not self._counts[name]:
            return
        while self._open:
            ended, close = self._open.pop()
            self._counts[ended] -= 1
            if ended in _RANKS:
                yield from self._end_heading()
                self._sections.pop()
            if ended == "title" and self._words and not self.title:
                self.title = " ".join("".join(self._words).split())
            yield close
            if ended == name:
                return

    def _end_heading(self) -> Iterator[str]:
        if self._heading:
            yield f"</h{self._heading}>\n"
            self._heading = 0


def _values(attributes: str) -> dict[str, str]:
    return {name.lower(): first or second or third for name, first, second, third in _ATTRIBUTE.findall(attributes)}


def html_of(text: str, wiki_links: bool = False) -> Conversion:
    """Total. HTML entities become their characters; others stay as text."""
    from periplus.document.canonical_xml import without_doctype  # 5 ms, only for such documents

    reader = _Reader()
    parts = list(reader.pieces(without_doctype(text)))
    return Conversion(page(parts, reader.title))
