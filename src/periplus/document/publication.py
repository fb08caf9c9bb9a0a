"""Author, publication date and modification date of a page, each with its source.

Order of precedence: machine-readable data (JSON-LD, meta elements, Microdata and RDFa, `time`), then elements with a
class for dates or authors, the URL, and the text near the main heading. The server's Last-Modified is ignored: it is
the time of a deployment as often as of an edit. Pure and total.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from periplus.document import marks
from periplus.document.authors import (
    ARTICLES,
    AUTHOR_METAS,
    NAME_CHARS,
    PARTS,
    names_near,
    names_of_byline,
    names_of_metas,
    names_of_things,
)
from periplus.document.dates import EARLIEST, TOMORROW_S, WrittenDate, machine_date, url_dates, written_dates
from periplus.document.digest import without_marks
from periplus.document.page_rules import MARKS
from periplus.document.tree import PageTree, parse
from periplus.model.page import NO_PUBLICATION, Publication
from periplus.model.web import Url
from periplus.values import JsonObject, frozen

if TYPE_CHECKING:
    from periplus.model.page import PageDate

JSON_LD, META, TIME, ITEM, REL, AUTHOR, DATE, MODIFIED, ELSEWHERE = MARKS[:9]
JSON_CHARS, JSON_NODES = 1_000_000, 20_000  # limits for JSON-LD
ELEMENT_CHARS = 160  # longer elements are neither dates nor names
TIMES_MOST = 3  # distinct days of elements of one kind: a page with more is a list
# blocks after and before the main heading; of a text without heading
BLOCKS_AFTER, BLOCKS_BEFORE, BLOCKS_HEEDED = 15, 5, 60
BYLINE_CHARS, DATELINE_CHARS = 120, 40  # a longer block is not a byline, but may begin with a dateline
TEXT_CHARS = 40_000  # of a text, searched for its heading
NEAR_CHARS, BEFORE_CHARS, ENDS_CHARS = 3_000, 1_000, 1_500  # after the heading, before it; at both ends of the text
LABEL_CHARS = 30  # longest line that may be the label of the next one
SHORT_CHARS = 40  # longest text that may contain a date such as 8.5.12
SIGNS_MOST, TYPES_MOST = 60, 20  # elements of one kind, types of the described things
HEADING_CHARS = 12  # a shorter heading could be part of any title

_PUBLICATION_METAS = (
    "article:published_time og:article:published_time og:published_time datepublished dcterms.issued "
    "dc.date.issued dcterms.created dc.date.created dc.date.publication citation_publication_date "
    "citation_online_date parsely-pub-date sailthru.date cxenseparse:recs:publishtime article.published "
    "published_time publish-date publish_date publishdate publication_date pubdate date_published "
    "originalpublicationdate article_date_original published_time_telegram article:published datecreated "
    "og:pubdate og:publish_date pub_date published created creation_date last-published-date ptime "
    "shareaholic:article_published_time rnews:datepublished dc.created created-at timestamp dcterms.date dc.date "
    "dc:date dcterms:date dcterms:created dc:created dc:issued dcterms:available citation_date date og:date "
    "release_date video:release_date music:release_date book:release_date displaydate article:date "
    "article.created vr:published_time"
)
_MODIFICATION_METAS = (
    "article:modified_time og:article:modified_time og:updated_time datemodified dcterms.modified "
    "dc.date.modified article.updated modified_time last-modified lastmod modificationdate revised "
    "article:modified article:updated updated_time dcterms:modified dc:modified utime dc.modified last_modified "
    "modified"
)
_METAS = frozenset(
    (
        *_PUBLICATION_METAS.split(),
        *_MODIFICATION_METAS.split(),
        *AUTHOR_METAS,
        "og:site_name",
        "application-name",
        "publisher",
    )
)
# Patterns are compiled on first use: saves 3 ms at start-up
_MODIFICATION_WORDS = (
    r"updat|modif|revis|(?:letzte|zuletzt) \w*ander|aktualis|geandert|bearbeit|"
    r"\bstand\b|mise? a jour|actualiz|aggiornat|atualiz|bijgewerkt|"
    r"uppdater|oppdater|opdater|paivitetty|zmenen|aktualiz|izmen|обновл|изменен|оновлен|guncelle|frissit|edited|changed"
)
_PUBLICATION_WORDS = (
    r"publi|posted|veroffentlicht|erschienen|vydan|zverejn|pubblicat|gepubliceerd|опубликован|дата|kozzete|megjelen|"
    r"opublik|datum|date:|written|\bam\b|\bvom\b|geschrieben|erstellt|ecrit|escrito|skrevet|pridano|dodano|вiд|postato"
)
# Words near dates that are not the page's: copyright years, future events, dates of other things
_WORDS_OTHER = r"copyright|\(c\)|©|all rights|since \d|\bseit\b|register|geboren|born|deadline|until|expires"


_PUBLICATION_ITEMS = (
    "datepublished schema:datepublished pubdate dcterms:issued dc:date dcterms:created dc:issued dc:created "
    "dcterms:date datecreated uploaddate published rnews:datepublished"
)
_AUTHOR_ITEMS = frozenset(
    ("author", "schema:author", "dc:creator", "dcterms:creator", "creator", "foaf:name", "rnews:author")
)
_TITLE_PARTS = r"\s[|–—·:»-]+\s"
_YEAR = re.compile(r"20[012]\d|19\d\d")


class HeadWords(NamedTuple):
    """Machine-readable data in a page's head."""

    things: Sequence[JsonObject] = ()  # objects of JSON-LD, outer ones first
    metas: Sequence[tuple[str, str]] = ()  # (name in lower case, content)


NO_HEAD_WORDS = HeadWords()


NumberedTexts: TypeAlias = list[tuple[int, str]]


class Signs(NamedTuple):
    """Candidate texts for author and dates in a page's body, by kind of markup; as written, in page order."""

    items: list[tuple[str, str]]  # (property of Microdata or RDFa in lower case, value)
    times: NumberedTexts  # (marks, date) of `time` elements
    dates: NumberedTexts  # (marks, text) of elements with a class for dates
    authors: NumberedTexts  # (node, value) of the properties for authors
    links: NumberedTexts  # (node, text) of links with rel=author
    names: NumberedTexts  # (node, text) of elements with a class for authors


def _no_signs() -> Signs:
    return Signs([], [], [], [], [], [])


def publication_of(
    tree: PageTree, url: str, heading: str, text: str, language: str = "", latest: float = float("inf")
) -> Publication:
    """Author and dates of an HTML page.

    heading: the main one. text: the page's blocks, one per line. language: BCP 47; 3/4/2024 has the month first in US
    English, else the day. latest: later dates are ignored, seconds since the epoch.
    """
    head = head_of(tree)
    types = types_of(head.things, marks.item_types(tree))
    names = names_of_things(head.things) if head.things else []
    is_whole = bool(names) and any(True for _ in _in_head(head))
    signs = _no_signs() if is_whole else signs_of(tree)  # takes most of the time
    if head is NO_HEAD_WORDS and not any(signs) and not _has_year(url):
        # 97 of 100 pages of manuals: their texts have many years, but no date
        return Publication(types=types) if types else NO_PUBLICATION
    near = () if is_whole else lines_near(heading, text)
    dated = () if is_whole else dated_lines(text)
    author = _author(head, url, _authors(names, head, signs, near))
    published = _first(_dates(_PUBLICATION, head, signs, near, language), latest)
    if _has_year(url):
        day = next((moment.iso() for moment in url_dates(url) if EARLIEST <= moment.when <= latest), "")
        # pages published at midnight often have the UTC day in machine-readable data
        if day and published[0][:10] != day:
            published = day, "url"
    modified = _first(_dates(_MODIFICATION, head, signs, dated, language), latest)
    return Publication(*author, *published, *modified, types)


@frozen
class DateEvidence:
    """The input for one page. 0.0 and '': unknown."""

    url: Url
    source: str = ""  # HTML
    title: str = ""
    texts: Sequence[str] = ()  # its blocks, in order
    language: str = ""  # BCP 47, as for `publication_of`
    feed: float = 0.0
    last_modified: float = 0.0
    first_seen: float = 0.0


def page_date(evidence: DateEvidence) -> PageDate:
    """The date with the most reliable source: machine-readable, feed, URL, text, server, and finally first_seen.

    Dates before the web, or after the page was first seen, are ignored.
    """
    from periplus.model.page import DateOrigin, PageDate

    latest = evidence.first_seen + TOMORROW_S if evidence.first_seen else float("inf")
    tree = parse(evidence.source.encode("utf-8", "surrogatepass")) if evidence.source else None
    head, signs = (head_of(tree), signs_of(tree)) if tree else (NO_HEAD_WORDS, _no_signs())
    near = lines_near(evidence.title, "\n".join(evidence.texts))
    ways = dict(_dates(_PUBLICATION, head, signs, near, evidence.language))
    marked = (moment for name in ("microdata", "time", "class") for moment in ways[name])
    asked: tuple[tuple[DateOrigin, Iterable[WrittenDate]], ...] = (
        (DateOrigin.JSON_LD, ways["json-ld"]),
        (DateOrigin.META, ways["meta"]),
        (DateOrigin.TIME, marked),
        (DateOrigin.FEED, (WrittenDate(evidence.feed, whole_day=False),)),
        (DateOrigin.URL, url_dates(evidence.url)),
        (DateOrigin.TEXT, ways["text"]),
        (DateOrigin.LAST_MODIFIED, (WrittenDate(evidence.last_modified, whole_day=False),)),
    )
    for source, moments in asked:
        for moment in moments:
            if EARLIEST <= moment.when <= latest:
                # midnight to the second is the hour of a program that knows the day alone
                begin = moment.when + (moment.shift_s or 0)
                is_day = moment.whole_day or begin % 86_400.0 == 0
                return PageDate(begin if is_day else moment.when, source, is_day)
    return PageDate(evidence.first_seen, DateOrigin.FIRST_SEEN)


def types_of(things: Iterable[JsonObject], written: Iterable[str]) -> str:
    """The distinct types of JSON-LD and Microdata things, without their vocabulary."""
    names = dict[str, None]()
    for thing in things:
        kinds = thing.get("@type")
        listed = kinds if isinstance(kinds, list) else [kinds]
        names |= dict.fromkeys(kind for kind in listed if isinstance(kind, str))
    names |= dict.fromkeys(kind for text in written for kind in text.split())
    short = (re.split(r"[/#:]", name.rstrip("/#"))[-1][:NAME_CHARS] for name in names)
    return "; ".join(list(dict.fromkeys(filter(None, short)))[:TYPES_MOST])


def _first(ways: Iterable[tuple[str, Iterable[WrittenDate]]], latest: float) -> tuple[str, str]:
    dated = ((moment, source) for source, moments in ways for moment in moments)
    return next(((moment.iso(), source) for moment, source in dated if EARLIEST <= moment.when <= latest), ("", ""))


class _DateNames(NamedTuple):
    """Where a page says one of its dates, most reliable first."""

    keys: Sequence[str]  # of JSON-LD
    metas: Sequence[str]
    items: Sequence[str]  # of Microdata and RDFa
    mark: int  # of `time` elements and those with a class
    of_texts: Callable[[Sequence[str], str], Iterable[WrittenDate]]  # of lines, given the language


def _in_head(head: HeadWords) -> Iterator[WrittenDate]:
    yield from _of_things(head.things, _PUBLICATION.keys)
    yield from _machine(head.metas, _PUBLICATION.metas)


def _dates(
    names: _DateNames, head: HeadWords, signs: Signs, lines: Sequence[str], language: str
) -> Iterator[tuple[str, Iterable[WrittenDate]]]:
    """(source, its dates) from the most reliable source on."""
    yield "json-ld", _of_things(head.things, names.keys)
    yield "meta", _machine(head.metas, names.metas)
    yield "microdata", _machine(signs.items, names.items)

    def dates_in(texts: NumberedTexts) -> list[tuple[int, WrittenDate | None]]:
        return [(mark, _parse_date(text, language)) for mark, text in texts if mark & MODIFIED == names.mark]

    times = dates_in(signs.times)
    # a `time` element with a class for dates counts first, if it is not that of a modification
    named = [date for mark, date in times if date and mark & DATE and not names.mark]
    yield "time", named or _unless_list(date for _, date in times)
    yield "class", _unless_list(date for _, date in dates_in(signs.dates))
    yield "text", names.of_texts(lines, language)


def _machine(rows: Sequence[tuple[str, str]], names: Sequence[str]) -> Iterator[WrittenDate]:
    """The dates in the contents with these names, in the order of the names."""
    if not rows:
        return
    by_name: dict[str, list[str]] = {}
    for name, content in rows:
        by_name.setdefault(name, []).append(content)
    for name in names:
        yield from (moment for text in by_name.get(name, ()) if (moment := machine_date(text)))


def _parse_date(text: str, language: str) -> WrittenDate | None:
    folded = without_marks(text)
    return machine_date(text) if text[:4].isdigit() else next(written_dates(folded, language, short=True), None)


def _unless_list(moments: Iterable[WrittenDate | None]) -> list[WrittenDate]:
    """The dates, or [] if they seem to be those of a list."""
    dates = [moment for moment in moments if moment]
    return dates if len({moment.iso()[:10] for moment in dates}) <= TIMES_MOST else []


def _of_things(things: Iterable[JsonObject], keys: Sequence[str]) -> Iterator[WrittenDate]:
    """Dates of articles first, then those of other things that are not parts of the page."""
    later: list[WrittenDate] = []
    for thing in things:
        kinds = str(thing.get("@type", "")).lower()
        if any(kind in kinds for kind in PARTS):
            continue
        values = {key.lower(): value for key, value in thing.items() if isinstance(value, str)}
        moment = next((date for key in keys if key in values and (date := machine_date(values[key]))), None)
        if moment and any(kind in kinds for kind in ARTICLES):
            yield moment
        elif moment:
            later.append(moment)
    yield from later


# Text near the main heading


def lines_near(heading: str, text: str) -> list[str]:
    """Lines that may be a byline: after the heading, then before it; without heading, the first lines of the text.

    Longer lines are cut to their beginning, where a dateline may be.
    """
    at = text.find(heading, 0, TEXT_CHARS) if len(heading) >= HEADING_CHARS else -1
    if at < 0:  # the longest part of a title: the others name the site
        part = max(re.split(_TITLE_PARTS, heading), key=len)
        at = text.find(part, 0, TEXT_CHARS) if len(part) >= HEADING_CHARS else -1
    if at < 0:
        lines = text[:NEAR_CHARS].split("\n", BLOCKS_HEEDED)[:BLOCKS_HEEDED]
    else:
        lines = text[at : at + NEAR_CHARS].split("\n", 1 + BLOCKS_AFTER)[1 : 1 + BLOCKS_AFTER]
        lines += reversed(text[max(at - BEFORE_CHARS, 0) : at].split("\n")[-1 - BLOCKS_BEFORE :])
    return [line if len(line) <= BYLINE_CHARS else line[:DATELINE_CHARS] for line in lines]


def dated_lines(text: str) -> list[str]:
    """Short lines with a year near the ends of the text, each with the line before it if that may be its label."""
    if len(text) > 2 * ENDS_CHARS:
        text = f"{text[:ENDS_CHARS]}\n{text[-ENDS_CHARS:]}"
    lines = dict[str, None]()
    for century in ("20", "19"):
        at = text.find(century)
        while at >= 0:
            if text[at + 2 : at + 4].isdecimal() and not text[at + 4 : at + 5].isdecimal():
                start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
                end = len(text) if end < 0 else end
                if end - start <= BYLINE_CHARS:
                    label = text.rfind("\n", 0, max(start - 1, 0)) + 1
                    lines[text[label if start - label <= LABEL_CHARS else start : end].replace("\n", " ")] = None
                at = end
            at = text.find(century, at + 2)
    return list(lines)


def _of_texts(lines: Sequence[str], language: str) -> Iterator[WrittenDate]:
    plain: list[WrittenDate] = []
    before = ""
    for line in lines:
        label, before = before, line if len(line) <= LABEL_CHARS else ""
        # inlined: most lines have none of these, and a call costs as much as all tests
        if "20" not in line and "19" not in line and (len(line) > SHORT_CHARS or line.count(".") != 2):
            continue
        if re.search(_MODIFICATION_WORDS, without_marks(label)):
            continue
        folded = without_marks(line)
        if re.search(_WORDS_OTHER, folded) or re.search(_MODIFICATION_WORDS, folded):
            continue
        moments = list(written_dates(folded, language, short=True))
        if moments and re.search(_PUBLICATION_WORDS, f"{without_marks(label)} {folded}"):
            yield from moments
        plain += moments
    yield from plain


def _change_dates_in(lines: Sequence[str], language: str) -> Iterator[WrittenDate]:
    for line in lines:
        folded = without_marks(line)
        if (at := re.search(_MODIFICATION_WORDS, folded)) and not re.search(_WORDS_OTHER, folded):
            yield from written_dates(folded[at.start() :], language)


_PUBLICATION = _DateNames(
    ("datepublished", "datecreated", "uploaddate", "dateposted"),
    _PUBLICATION_METAS.split(),
    _PUBLICATION_ITEMS.split(),
    0,
    _of_texts,
)
_MODIFICATION = _DateNames(
    ("datemodified",),
    _MODIFICATION_METAS.split(),
    ("datemodified", "dcterms:modified", "dc:modified"),
    MODIFIED,
    _change_dates_in,
)


def _has_year(text: str) -> bool:
    return ("20" in text or "19" in text) and _YEAR.search(text) is not None


def _may_be_dated(text: str) -> bool:
    if len(text) <= SHORT_CHARS and (text.count(".") == 2 or text.count("/") == 2):
        return True
    return _has_year(text)


# Authors


def _author(head: HeadWords, url: str, ways: Iterable[tuple[str, list[str]]]) -> tuple[str, str]:
    """The names from the first source with any name other than the site's; else the site's."""
    of_site = ("", "")
    for source, names in ways:
        site = _site_names(head, url) if names else frozenset()
        if own := [name for name in names if _fold_name(name) not in site]:
            return "; ".join(own), source
        if names and not of_site[0]:
            of_site = "; ".join(names), source
    return of_site


def _fold_name(name: str) -> str:
    return re.sub(r"\W", "", without_marks(name))


def _site_names(head: HeadWords, url: str) -> Collection[str]:
    """The site's own names, folded."""
    host = url.partition("://")[2].partition("/")[0].partition(":")[0].removeprefix("www.")
    names = {host, host.rpartition(".")[0], host.rpartition(".")[0].rpartition(".")[2]}
    names |= {content for name, content in head.metas if name in ("og:site_name", "application-name", "publisher")}
    for thing in head.things:
        kinds = str(thing.get("@type", "")).lower()
        if ("organization" in kinds or kinds == "website") and isinstance(name := thing.get("name"), str):
            names.add(name)
    return frozenset(map(_fold_name, names))


def _authors(
    of_things: list[str], head: HeadWords, signs: Signs, near: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    yield "json-ld", of_things
    yield "microdata", names_of_byline(signs.authors)
    yield "meta", names_of_metas(head.metas)
    yield "rel", names_of_byline(signs.links)
    yield "class", names_of_byline(signs.names)
    yield "text", names_near(near)


# Reading the elements


def head_of(tree: PageTree) -> HeadWords:
    """Reads JSON-LD and meta elements."""
    things, metas = list[JsonObject](), list[tuple[str, str]]()
    for node, mark, written in marks.heads(tree):
        name = written.strip().lower()
        if mark == JSON_LD:
            things += _objects(marks.source_of(tree, node, JSON_CHARS))
        elif name in _METAS and (content := marks.values(tree, node).get("content", "").strip()):
            metas.append((name, content))
    return HeadWords(things, metas) if things or metas else NO_HEAD_WORDS


def signs_of(tree: PageTree) -> Signs:
    """Reads the elements marked by class, rel, property or name."""
    signs = _no_signs()
    items, times, dates, authors, links, names = signs
    outer = author = 0
    for node, mark in marks.marked_nodes(tree):
        if mark & ELSEWHERE:
            continue
        values = marks.values(tree, node)
        text = marks.text_of(tree, node, ELEMENT_CHARS + 1)
        if mark & ITEM:
            value = (values.get("datetime") or values.get("content") or text)[:ELEMENT_CHARS]
            properties = f"{values.get('itemprop', '')} {values.get('property', '')}".lower().split()
            items += [(name, value) for name in properties]
            if not _AUTHOR_ITEMS.isdisjoint(properties):
                authors.append((node, value))
                author = node
            elif "name" in properties and author and marks.is_within(tree, node, author):
                authors[-1], author = (author, value), 0  # the rest of the element is the author's role or employer
        if mark & TIME:
            times.append((mark, values.get("datetime") or text[:ELEMENT_CHARS]))
        elif mark & (DATE | MODIFIED) and len(dates) < SIGNS_MOST and len(text) <= ELEMENT_CHARS:
            title = values.get("title", "")
            if _may_be_dated(title) or _may_be_dated(text):
                dates.append((mark, title if _may_be_dated(title) else text))
        if mark & REL and text and "author" in values.get("rel", "").lower():
            links.append((node, text))
        if mark & AUTHOR and 0 < len(text) <= ELEMENT_CHARS:
            # innermost first: it has no surrounding words
            names.insert(len(names) - (outer > 0 and marks.is_within(tree, node, outer)), (node, text))
            outer = node
    return signs


def _objects(text: str) -> list[JsonObject]:
    """The objects of a JSON text, outer ones first; [] if it is invalid."""
    text = text.strip().removeprefix("<!--").removesuffix("-->").strip().rstrip(";")
    try:
        waiting = [json.loads(text, strict=False)]
    except (ValueError, RecursionError):
        return []
    objects: list[JsonObject] = []
    for node in waiting:  # grows during the iteration
        if len(waiting) > JSON_NODES:
            break
        if isinstance(node, dict):
            objects.append(node)
            waiting += [value for value in node.values() if isinstance(value, (dict, list))]
        elif isinstance(node, list):
            waiting += node
    return objects
