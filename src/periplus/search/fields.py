"""Into which fields of the index does a page go, and with which terms?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote

import tantivy
from xxhash import xxh3_64_intdigest

from periplus.document.words import folded, forms, shown_forms, table
from periplus.model.page import Block, BlockKind, Part, Position
from periplus.model.search import PageToIndex
from periplus.model.web import UrlId
from periplus.urls.hosts import host_name, registered_domain

TITLE, ANCHOR, HEADING, TEXT, NAVIGATION, ADDRESS = "title", "anchor", "heading", "text", "navigation", "url"  # of terms, in order
FORMS, NAMES = "forms", "names"  # of spellings; of whole titles
SITE, HOST, TYPE, MEDIA, LANGUAGE, YEAR, IS = "site", "host", "type", "media", "language", "year", "is"  # of labels
NOINDEX = "noindex"  # the one value of `is`
ID, TWIN, WHEN, SAID = "id", "twin", "when", "said"  # of numbers; said: the digest of the words of links to the page
TERM_FIELDS = (TITLE, ANCHOR, HEADING, TEXT, NAVIGATION, ADDRESS)
WORDS, WHOLE = "words", "raw"  # analysers: parted at blanks; as it is
MOST_ANCHORS = 50  # different ones: a page that a whole site names otherwise is not known better by the fifty-first
NAME_CHARS = 200  # a title that is longer is not typed
_BETWEEN = "qqblockqq"  # stands between two blocks, so that no phrase goes from one into the next; ASCII, since that is read quickest
_BREAK = f"\n{_BETWEEN}\n"
# Every page's words of links and headings are so many longer: many pages have none at all, which makes the average so short that the engine
# holds three words for a long text, in which one hit counts for nothing.
_PADDING = " ".join([_BETWEEN] * 8)
_PARTS_OF_TITLE = re.compile(r"\s+[-–—|·•»:/]+\s+|\s*[|»—]\s*|:\s+")
_MENUS = frozenset({Position.NAV, Position.FOOTER, Position.HEADER, Position.ASIDE})
_TYPE_NAMES = {"application/xhtml+xml": "html", "application/msword": "doc", "text/plain": "txt", "application/rtf": "rtf"}
_TYPE_NAMES |= {"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx", "application/vnd.oasis.opendocument.text": "odt"}


def schema() -> tantivy.Schema:
    """The index's fields. Nothing is stored but numbers: what is shown of a page is read from the collection."""
    made = tantivy.SchemaBuilder()
    made.add_integer_field(ID, indexed=True, fast=True)
    made.add_integer_field(TWIN, fast=True)
    made.add_integer_field(SAID, fast=True)
    made.add_integer_field(WHEN, indexed=True, fast=True)
    for name in TERM_FIELDS:
        made.add_text_field(name, tokenizer_name=WORDS, index_option="position")
    made.add_text_field(FORMS, tokenizer_name=WORDS, index_option="basic")
    for name in (NAMES, HOST, TYPE, IS):
        made.add_text_field(name, tokenizer_name=WHOLE, index_option="basic")
    for name in (SITE, LANGUAGE, YEAR, MEDIA):
        made.add_text_field(name, tokenizer_name=WHOLE, index_option="basic", fast=True)
    return made.build()


class Draft(NamedTuple):
    """What the engine is given of a page, but for the words of links to it, of which the last come when all others were read."""

    url_id: UrlId
    twin: int
    when: int
    language: str
    texts: Sequence[tuple[str, str]]  # (field, terms parted by blanks, or a label), in order
    spellings: str  # parted by blanks, each once


def drafted(page: PageToIndex) -> Draft:
    """The page, cut into terms."""
    texts: list[tuple[str, str]] = []
    spelled: list[str] = []
    for field, language, text in field_texts(page):
        words = forms(text)
        texts.append((field, _terms(words, language)))
        if field != NAVIGATION:
            spelled += words
    texts += [(NAMES, name) for name in names(page)]
    texts += labels(page)
    twin = int.from_bytes(page.folded[:8], "big", signed=True)
    return Draft(page.url_id, twin, int(page.when), page.language, texts, " ".join(shown_forms(spelled) - {_BETWEEN}))


def document(draft: Draft, anchors: Sequence[str]) -> tantivy.Document:
    """The page, as the engine takes it. anchors: the words of links to it, each once."""
    made = tantivy.Document()
    made.add_integer(ID, draft.url_id)
    made.add_integer(TWIN, draft.twin)
    made.add_integer(SAID, said_digest(anchors))
    made.add_integer(WHEN, draft.when)
    spellings = draft.spellings
    if anchors:
        words = forms(_BREAK.join(anchors[:MOST_ANCHORS]))
        made.add_text(ANCHOR, _terms(words, draft.language))
        spellings = " ".join({*spellings.split(), *shown_forms(words)} - {_BETWEEN})
    for field, text in draft.texts:
        made.add_text(field, text)
    made.add_text(FORMS, spellings)
    return made


def _terms(words: Sequence[str], language: str) -> str:
    return " ".join(map(table(language).__getitem__, words))


def said_digest(anchors: Sequence[str]) -> int:
    """By which it is told whether the words of links to a page are still those that were indexed. 0: there are none."""
    return xxh3_64_intdigest("\n".join(anchors[:MOST_ANCHORS]).encode("utf-8", "replace")) - (1 << 63) if anchors else 0


def field_texts(page: PageToIndex) -> Iterator[tuple[str, str, str]]:
    """(field, language, text) of what is indexed word by word, links to the page left out; several blocks are one text, parted."""
    texts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    if page.title:
        texts[TITLE, page.language].append(page.title)
    for block, part in zip(page.blocks, parts_or_guess(page.blocks, page.parts), strict=False):
        if block.kind is BlockKind.TITLE:
            continue
        field = NAVIGATION if part is Part.NAVIGATION else HEADING if block.kind is BlockKind.HEADING else TEXT
        texts[field, block.language or page.language].append(block.text)
    for (field, language), several in texts.items():
        yield field, language, _BREAK.join(several)
    yield from ((field, page.language, _PADDING) for field in (ANCHOR, HEADING))
    yield ADDRESS, "", _BREAK.join(address_words(page.url))


def parts_or_guess(blocks: Sequence[Block], parts: Sequence[Part]) -> Sequence[Part]:
    """The blocks' parts; of a page not marked yet, what stands in menus, headers and footers is navigation."""
    if len(parts) == len(blocks):
        return parts
    return [Part.NAVIGATION if block.position in _MENUS and block.kind is not BlockKind.HEADING else Part.CONTENT for block in blocks]


def address_words(url: str) -> tuple[str, str]:
    """Host and path of a URL, to be read as text."""
    host, slash, path = url.partition("://")[2].partition("/")
    return host.partition(":")[0], unquote(slash + path)


def names(page: PageToIndex) -> set[str]:
    """By which words as a whole the page may be asked for: its title, main heading, and the parts of a title like `Page - Site`."""
    whole = [page.title, *[block.text for block in page.blocks if block.kind is BlockKind.HEADING and block.level == 1][:1]]
    parts = [part for title in whole for part in (title, *_PARTS_OF_TITLE.split(title)[:1])]
    return {name for name in map(whole_name, parts) if name}


def whole_name(text: str) -> str:
    """What is compared where whole titles are: the words, without case and diacritics."""
    return folded(" ".join(forms(text)))[:NAME_CHARS] if len(text) <= 4 * NAME_CHARS else ""


def labels(page: PageToIndex) -> Iterator[tuple[str, str]]:
    """(field, value) of what a search is narrowed by."""
    yield SITE, page.site
    yield LANGUAGE, primary(page.language)
    yield YEAR, str(datetime.fromtimestamp(page.when, UTC).year)
    yield MEDIA, page.media_type
    yield from [(IS, NOINDEX)] * page.noindex
    yield from ((HOST, host) for host in dict.fromkeys((str(page.site), *hosts(host_name(page.url)))))
    yield from ((TYPE, name) for name in dict.fromkeys(type_names(page.media_type)))


def primary(language: str) -> str:
    return language.lower().replace("_", "-").partition("-")[0]


def hosts(name: str) -> list[str]:
    """A host and what it lies within, up to the registered domain."""
    top = registered_domain(name)
    found = [name]
    while name != top and "." in name:
        name = name.partition(".")[2]
        found.append(name)
    return found


def type_names(media_type: str) -> tuple[str, ...]:
    """By what a media type may be asked for: `application/pdf`, `application`, `pdf`."""
    major, _, minor = media_type.partition("/")
    return media_type, major, minor, _TYPE_NAMES.get(media_type, minor)
