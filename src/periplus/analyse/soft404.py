"""Is a page that answers 200 an error page?

A false alarm costs more than a missed page, so there are three proofs and no weighing of hints: the page has the text of what
the same host sends for a URL that cannot exist; it calls itself an error page, and is short; a deep URL is sent to the home
page, where the host sends what cannot exist as well. A host that sends one text for everything proves nothing by it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from periplus.analyse.nearness import Hashes, jaccard
from periplus.analyse.soft404_words import OPENINGS, PHRASES
from periplus.document.digest import without_marks

TEXT_CHARS = 3_000  # with menus and footer: 6,873 pages of manuals have a median of 4,130, an error page has rarely 3,000
SAME = 0.9  # Jaccard of shingles: an error page may repeat the URL it was asked for
SAME_SHORT = 20  # distinct shingles; shorter pages are the same only if title and text are, the URL aside
PROBE_WORDS = "periplus-no-such-page"

_PARTS = re.compile(r"\s+[|\-–—·:»«•/~]+\s+|\s*[|»«•·]\s*|:\s+|\s+[–—]\s+")
_EDGES = " \t\n.!?,;:…'\"()[]-–—/|#"
_PHRASES = frozenset(without_marks(phrase.strip()) for phrase in PHRASES if phrase.strip())
_OPENING = re.compile(rf"(?:{'|'.join(map(re.escape, map(without_marks, OPENINGS)))})\b[\s.!?,;:…-]*")
_HOME_FILES = re.compile(r"/(?:(?:index|default|home)(?:\.[a-z]{2,5})?/?)?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageLook:
    """What a page looks like."""

    url: str  # that was asked for
    final_url: str  # that answered: another one after redirects
    title: str
    h1: str
    text: str
    shingles: Hashes  # of `without_address`, from `nearness.shingles`


@dataclass(frozen=True, slots=True)
class HostHabits:
    """How one host treats what does not exist, as far as that was tried. Each answered 200, perhaps after redirects."""

    probes: Sequence[PageLook] = ()  # of URLs that cannot exist, from `probe_url`; those that answered otherwise left out
    home: PageLook | None = None  # its home page, to know hosts that send one text for everything


def probe_url(url: str, token: str) -> str:
    """A URL beside this one that cannot exist: same folder, same ending. token: chance, so that nobody can have prepared for it."""
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    _, dot, ending = name.rpartition(".")
    return f"{parts.scheme}://{parts.netloc}{folder}/{PROBE_WORDS}-{token}{dot + ending if dot and len(ending) <= 5 else ''}"


def looks_missing(page: PageLook, habits: HostHabits) -> str:
    """Why a page that answered 200 seems an error page, as half a sentence; empty: it does not."""
    if PROBE_WORDS in page.url:
        return ""
    if sent_home(page, habits):
        return "it leads to the home page, as URLs do that cannot exist"
    for probe in habits.probes:
        if _leads_home(probe) or (habits.home is not None and _same(habits.home, probe)):
            continue  # one text for everything, as applications in the browser have: it proves nothing
        if _same(page, probe):
            return "it has the text of the page that the host sends for URLs that cannot exist"
    if len(page.text) <= TEXT_CHARS and not _is_home(page.final_url):
        for where, words in (("title", page.title), ("heading", page.h1)):
            if says_missing(words) and not (where == "heading" and len(page.title) > 0 and _is_of(page.title, page.url)):
                return f"its {where} says: {words.strip()[:100]}"
    return ""


def says_missing(words: str) -> bool:
    """Whether a title or heading, or a part of it between dashes and bars, is that of an error page."""
    plain = without_marks(words)
    return any(_is_phrase(part) for part in (plain, *_PARTS.split(plain)))


def _is_phrase(part: str) -> bool:
    part = " ".join(part.split()).strip(_EDGES)
    if part in _PHRASES:
        return True
    shorter = _OPENING.sub("", part, count=1).strip(_EDGES)
    return shorter in _PHRASES or _OPENING.sub("", shorter, count=1).strip(_EDGES) in _PHRASES


def _is_of(title: str, url: str) -> bool:
    """Whether the title has a word of the URL's last part: then the page is about what was asked for."""
    words = set(re.findall(r"\w{4,}", without_marks(unquote(urlsplit(url).path.rpartition("/")[2]))))
    return not words.isdisjoint(re.findall(r"\w{4,}", without_marks(title)))


def sent_home(page: PageLook, habits: HostHabits) -> bool:
    """Whether a deep URL was redirected to the home page of its host or domain, where a probe was redirected as well."""
    return _leads_home(page) and any(_leads_home(probe) and _address(probe.final_url) == _address(page.final_url) for probe in habits.probes)


def _leads_home(page: PageLook) -> bool:
    return page.url != page.final_url and _is_home(page.final_url) and not _is_home(page.url)


def _is_home(url: str) -> bool:
    return bool(_HOME_FILES.fullmatch(urlsplit(url).path or "/"))


def _address(url: str) -> str:
    return urlsplit(url)._replace(query="", fragment="", scheme="").geturl()


def _same(one: PageLook, other: PageLook) -> bool:
    """Whether two pages have one text, the URL that was asked for aside."""
    if min(len(one.shingles), len(other.shingles)) >= SAME_SHORT:
        return jaccard(one.shingles, other.shingles) >= SAME
    titles = without_address(one.title, one.url), without_address(other.title, other.url)
    return bool(one.text) and titles[0] == titles[1] and without_address(one.text, one.url) == without_address(other.text, other.url)


def without_address(text: str, url: str) -> str:
    """The text without the address that was asked for, whole or in part, encoded or not: error pages repeat it."""
    path = urlsplit(url).path
    for address in (url, path, path.rpartition("/")[2]):
        for written in (address, unquote(address)):
            if len(written) > 1:
                text = text.replace(written, "")
    return " ".join(text.split())
