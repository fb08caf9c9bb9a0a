"""Converts Markdown to HTML: CommonMark with tables and embedded HTML."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote

from periplus.document.conversion import Conversion, block, escape, page
from periplus.extras import absence, is_installed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

TEXT_CHARS = 1_000_000  # 0.3 s
# Markup characters take 7 to 30 us each, other text 0.1: a text of only such characters took 7 s per MB, while the
# worst HTML known takes 0.4. Limit: this many, plus one per this many characters. Of 302 real documents none has more
# than one in 17. The text beyond is kept as plain text, with a fault
SIGNS_MOST, CHARS_A_SIGN = 2_000, 12
LINE_CHARS = 1_000  # longer lines are cut in the middle
_SIGN = re.compile(r"[\[!*_~<&\\`|]|^[ \t]*(?:[-+>#]|\d+[.)])", re.M)
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.S)
# id of a heading: attribute lists of MkDocs, Pandoc
_OWN_NAME = re.compile(r"[ \t]*\{:?[ \t]*#([\w.:-]+)[^{}]*\}[ \t]*$")
# `[[page#heading|label]]` as in Obsidian; `[[_TOC_]]` is GitLab's table of contents, and `#^` names a paragraph
_WIKI_LINK = re.compile(
    r"\[\[(?!_TOC_\]\]|\]\])([^\[\]|#\n]*)(?:#(?:[^\[\]|\n]*#)?(?:\^[^\[\]|\n]*|([^\[\]|\n]*)))?(?:\|([^\[\]\n]*))?\]\]"
)
_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.M)


def html_of(text: str, wiki_links: bool = False) -> Conversion:
    """Converts a text.

    The title is from the front matter; without it, the first heading is used when the page is shown.

    wiki_links: `[[page]]` is a link to the relative URL `page`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    if matter := _FRONT_MATTER.match(text):
        title_match = _TITLE.search(matter[1] or "")
        title, text = title_match[1] if title_match else "", text[matter.end() :]
    end = _markdown_end(text)
    fault = f"long: the text after {end:,} characters was read as plain text" if end < len(text) else ""
    if not is_installed("markdown_it"):
        return Conversion(page((block("pre", text),), title), absence("markdown_it"))
    return Conversion(page((_render(text[:end], wiki_links), block("pre", text[end:])), title), fault)


def _render(text: str, wiki_links: bool) -> str:
    """HTML with ids for headings: see `_heading_names`."""
    renderer, met = _renderer(wiki_links), Counter[str]()
    tokens = renderer.parse(text)
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            own = _OWN_NAME.search(content.content)
            words = "".join(part.content for part in content.children or () if part.type in ("text", "code_inline"))
            names = _heading_names(_OWN_NAME.sub("", words), met)
            opening.attrSet("id", names[0])
            further = {own[1] if own else names[0], *names} - {names[0], ""}
            content.children = [*map(_anchor_token, sorted(further)), *(content.children or ())]
    return str(renderer.renderer.render(tokens, renderer.options, {}))


def _anchor_token(name: str) -> Token:
    from markdown_it.token import Token

    return Token("html_inline", "", 0, content=f'<a name="{escape(name)}"></a>')


def _heading_names(words: str, met: Counter[str]) -> list[str]:
    """Ids of a heading: as in GitHub and GitLab, then as in Python-Markdown and MkDocs.

    Repeated names get a number. met: counts of names, updated here. Sources: the table of contents filter of GitHub's
    html-pipeline; `slugify` and `unique` of Python-Markdown's toc extension.
    """
    hyphened = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    joined = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
    names = []
    for name, sign in ((hyphened, "-"), (joined, "_")):
        key = sign + name
        names.append(f"{name}{sign}{met[key]}" if met[key] else name)
        met[key] += 1
    return names


def _markdown_end(text: str) -> int:
    """The end of the part that is read as Markdown: the whole text, or up to a line end, or within a long line."""
    one_more = next(islice(_SIGN.finditer(text), SIGNS_MOST + len(text) // CHARS_A_SIGN, None), None)
    end = min(one_more.start() if one_more else len(text), TEXT_CHARS)
    return end if end >= len(text) else text.rfind("\n", max(0, end - LINE_CHARS), end) + 1 or end


@lru_cache(maxsize=2)
def _renderer(wiki_links: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    if wiki_links:
        renderer.inline.ruler.before("link", "wiki_link", _wiki_link)
    return renderer


def _wiki_link(state: StateInline, silent: bool) -> bool:
    """A rule of markdown-it: whether a wiki link begins here; unless silent, adds its tokens."""
    match = _WIKI_LINK.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        place = _heading_names(match[2] or "", Counter())[0]
        state.push("link_open", "a", 1).attrSet("href", f"{quote(match[1].strip())}#{place}")
        state.push("text", "", 0).content = match[3] or match[0][2:-2]
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True
