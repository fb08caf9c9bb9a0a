"""Shared by the generated sites: the base class, invented words and names, and helpers for HTML.

A world answers requests and classifies every address: *real* (should be fetched), *neutral* (another order of the same
list, a record in another notation: may be fetched or skipped) or *trap* (all others).
"""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import ClassVar, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

Link = tuple[str, str]  # address, text
Query = dict[str, str]


class Redirect(NamedTuple):
    """Answer 302."""

    to: str


Answer = str | Redirect | None  # a page of HTML; None: 404


class Request(NamedTuple):
    """A parsed request."""

    target: str  # path and query as sent
    path: str
    query: Query  # last value of each name
    chance: random.Random  # differs from request to request: session ids, random entries


class World:
    """A generated site. A subclass fills `routes`, `real` and `neutral`; `self.traps` says whether it has its traps."""

    name: ClassVar[str] = ""
    pages_per_size: ClassVar[float] = 1.0  # real pages for each record, roughly

    def __init__(self, size: int, traps: bool) -> None:
        self.size, self.traps = size, traps
        self.host = f"{self.name}{'-traps' if traps else ''}.world.example"
        self.real: set[str] = {"/"}
        self.neutral: set[str] = set()
        self.routes: list[tuple[re.Pattern[str], Callable[..., Answer]]] = []

    def route(self, pattern: str, answer: Callable[..., Answer]) -> None:
        """`answer(request, *groups)` for paths that match as a whole; with `?` in it, for paths and queries."""
        self.routes.append((re.compile(pattern), answer))

    def key(self, target: str) -> str:
        """The address without session parameters. Addresses with the same key are the same page."""
        return target

    def kind(self, target: str) -> str:
        """real, neutral or trap."""
        key = self.key(target)
        return "real" if key in self.real else "neutral" if key in self.neutral else "trap"

    def answer(self, target: str, chance: random.Random) -> Answer:
        """The page at an address."""
        path, _, query = target.partition("?")
        request = Request(target, path, dict(parse_qsl(query, keep_blank_values=True)), chance)
        for pattern, answer in self.routes:
            if match := pattern.fullmatch(target if "\\?" in pattern.pattern else path):
                return answer(request, *match.groups())
        return None


# words and names

_ONSETS = [
    "b",
    "bl",
    "br",
    "c",
    "ch",
    "cl",
    "cr",
    "d",
    "dr",
    "f",
    "fl",
    "fr",
    "g",
    "gl",
    "gr",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "pr",
    "qu",
    "r",
    "s",
    "sh",
    "sl",
    "sp",
    "st",
    "str",
    "t",
    "th",
    "tr",
    "v",
    "w",
    "wh",
]
_VOWELS = ["a", "a", "e", "e", "i", "o", "o", "u", "ai", "ea", "ee", "oo", "ou"]
_CODAS = [
    "b",
    "ck",
    "d",
    "ft",
    "g",
    "l",
    "ll",
    "m",
    "mp",
    "n",
    "nd",
    "nk",
    "nt",
    "p",
    "r",
    "rd",
    "rk",
    "rt",
    "s",
    "sk",
    "ss",
    "st",
    "t",
    "tch",
    "x",
]
_ENDINGS = ["", "", "", "ed", "ing", "er", "le", "y", "ow", "en", "ish", "ment", "ness", "age", "al", "ic", "ure", "or"]
_SMALL = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "at",
    "from",
    "or",
    "an",
    "are",
    "this",
    "which",
    "but",
    "have",
    "had",
]
_FIRST = [
    "Ada",
    "Albert",
    "Alice",
    "Anna",
    "Arthur",
    "Bertha",
    "Carl",
    "Clara",
    "David",
    "Dora",
    "Edith",
    "Emil",
    "Emma",
    "Ernst",
    "Eva",
    "Felix",
    "Frida",
    "Georg",
    "Greta",
    "Hanna",
    "Hans",
    "Helen",
    "Henry",
    "Ida",
    "Jakob",
    "Jane",
    "John",
    "Josef",
    "Julia",
    "Karl",
    "Klara",
    "Laura",
    "Lena",
    "Ludwig",
    "Maria",
    "Martha",
    "Martin",
    "Mary",
    "Max",
    "Nora",
    "Oscar",
    "Otto",
    "Paul",
    "Peter",
    "Rosa",
    "Ruth",
    "Samuel",
    "Sarah",
    "Sophie",
    "Theodor",
    "Thomas",
    "Viktor",
    "Walter",
    "Wilhelm",
    "William",
]


def seeded(*parts: object) -> random.Random:
    """A random generator seeded with the parts."""
    return random.Random("/".join(map(str, parts)))


def new_word(chance: random.Random, syllables: int = 0) -> str:
    """An invented word that looks English."""
    count = syllables or chance.choice((1, 1, 2, 2, 3))
    stem = "".join(chance.choice(_ONSETS) + chance.choice(_VOWELS) for _ in range(count)) + chance.choice(_CODAS)
    return stem + chance.choice(_ENDINGS)


@cache
def vocabulary() -> tuple[str, ...]:
    """Four thousand content words; the first are the most frequent in sentences."""
    chance = seeded("vocabulary")
    return tuple(dict.fromkeys(new_word(chance) for _ in range(5000)))[:4000]


def sentence(chance: random.Random, least: int = 6, most: int = 18) -> str:
    """Function words and content words in turn."""
    words = [
        chance.choice(_SMALL) if chance.random() < 0.4 else vocabulary()[int(4000 * chance.random() ** 2)]
        for _ in range(chance.randint(least, most))
    ]
    return " ".join(words).capitalize() + "."


def prose(sentences: int, *parts: object) -> str:
    """A paragraph of text, determined by the parts."""
    chance = seeded(*parts)
    return " ".join(sentence(chance) for _ in range(sentences))


def phrase(words: int, *parts: object) -> str:
    """A title of content words."""
    chance = seeded(*parts)
    return " ".join(chance.choice(vocabulary()) for _ in range(words)).capitalize()


@cache
def surnames(count: int = 400) -> tuple[str, ...]:
    """Family names."""
    chance = seeded("surnames")
    return tuple(new_word(chance, 1).capitalize() for _ in range(count))


def person(*parts: object) -> str:
    """First and family name."""
    chance = seeded("person", *parts)
    return f"{chance.choice(_FIRST)} {chance.choice(surnames())}"


def place(*parts: object) -> str:
    """Name of a town."""
    chance = seeded("place", *parts)
    return new_word(chance, chance.choice((1, 2))).capitalize() + chance.choice(
        (" ", "", "", "", "-on-Sea", "ham", "ton", "by", " St. Mary", "field", " Junction", "bury")
    )


def slug(text: str) -> str:
    """Words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def distinct(make: Callable[[int], str], count: int) -> list[str]:
    """`count` different texts; calls `make(k)` again after a repetition."""
    texts: dict[str, None] = {}
    tried = 0
    while len(texts) < count:
        texts.setdefault(make(tried))
        tried += 1
    return list(texts)


# HTML


def esc(text: object) -> str:
    """Text as HTML."""
    return html.escape(str(text))


def a(address: str, text: object) -> str:
    """A link."""
    return f'<a href="{html.escape(address)}">{esc(text)}</a>'


def ul(links: Iterable[Link], kind: str = "") -> str:
    """A list of links."""
    return f'<ul class="{kind}">' + "".join(f"<li>{a(*link)}</li>\n" for link in links) + "</ul>"


def inline(links: Iterable[Link], between: str = " | ") -> str:
    """Links on one line."""
    return between.join(a(*link) for link in links)


def rows(cells: Iterable[Iterable[str]], heads: Iterable[str] = ()) -> str:
    """A table; cells are HTML."""
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in cells)
    return f"<table>{'<tr>' + head + '</tr>' if head else ''}\n{body}</table>"


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """A list of terms and values."""
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{esc(value)}</dd>\n" for name, value in pairs) + "</dl>"


def query(path: str, **values: object) -> str:
    """An address; empty values are left out."""
    kept = {name: str(value) for name, value in values.items() if value not in ("", None)}
    return path + ("?" + urlencode(kept, quote_via=quote) if kept else "")


def pieces(count: int, each: int) -> int:
    """Number of pages of a list of `count` entries."""
    return max(1, -(-count // each))


class Frame(NamedTuple):
    """The template around the content of each page."""

    site: str
    menu: tuple[Link, ...]
    footer: tuple[Link, ...]
    note: str = ""  # the last line: copyright, software
    style: int = 0  # 0: HTML 5 with a sidebar at the right; 1: table layout of the 1990s; 2: nested <div>

    def page(self, title: str, body: str, crumbs: Iterable[Link] = (), side: str = "") -> str:
        """The whole page."""
        name, menu, footer = esc(self.site), inline(self.menu), inline(self.footer)
        path = inline([("/", "Home"), *crumbs], " &raquo; ")
        head = f"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>{esc(title)} - {name}</title></head>"
        if self.style == 1:
            return (
                f'{head}<body bgcolor=white><table width="100%"><tr><td colspan=2><b>{name}</b><br>{menu}</td></tr>'
                f"<tr><td valign=top width=160>{side}</td>"
                f"<td><small>{path}</small><h2>{esc(title)}</h2>{body}</td></tr>"
                f"</table><hr><small>{footer}<br>{self.note}</small></body></html>"
            )
        if self.style == 2:
            return (
                f"{head}<body><div id=wrap><div id=top><p class=logo>{name}</p><div class=nav>{menu}</div></div>"
                "<div id=path>"
                f"{path}</div><div id=left>{side}</div><div id=main><h1>{esc(title)}</h1>{body}</div>"
                f"<div id=foot><p>{footer}</p><p>{self.note}</p></div></div></body></html>"
            )
        return (
            f"{head}<body><header><p>{name}</p><nav>{menu}</nav></header><nav aria-label=breadcrumb>{path}</nav><main>"
            f"<h1>{esc(title)}</h1>{body}</main><aside>{side}</aside><footer><p>{footer}</p><p>{self.note}</p></footer></body></html>"
        )
