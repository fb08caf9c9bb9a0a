"""When a page was published, and who says so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from periplus.document import headers, html
from periplus.document.digest import without_marks
from periplus.document.sitemaps import SitemapKind, read_sitemap
from periplus.model.story import DateOrigin, PageDate
from periplus.model.web import Url

# Forms as dates have them (genitives where a language counts days so), in lower case and without diacritics: "brezna"
# is března. Beside a day and a year, short forms mean nothing else.

_FORMS = (
    "january jan januar janner janvier janv enero gennaio janeiro januari ledna leden januara stycznia styczen января "
    "январь янв січня januar tammikuuta"
    " ocak ianuarie ιανουαριου sijecnja januarja ene gen",
    "february feb februar feber fevrier fevr febrero febbraio fevereiro februari unora unor februara lutego "
    "luty февраля февраль фев лютого"
    " helmikuuta subat februarie φεβρουαριου veljace februarja fev",
    (
        "march mar marz maerz mars marzo marco maart brezna brezen marca marzec марта март березня marcius "
        "maaliskuuta mart martie μαρτιου marts ozujka"
    ),
    (
        "april apr avril avr abril aprile dubna duben aprila kwietnia kwiecien апреля апрель апр квітня aprilis "
        "huhtikuuta nisan aprilie απριλιου travnja abr"
    ),
    "may mai mayo maggio maio mei kvetna kveten maja maj мая май травня majus toukokuuta mayis μαιου svibnja mag",
    (
        "june jun juni juin junio giugno junho cervna cerven juna czerwca czerwiec июня июнь июн червня junius "
        "kesakuuta haziran iunie ιουνιου lipnja junija giu"
    ),
    "july jul juli juillet juil julio luglio julho cervence cervenec jula lipca lipiec июля июль июл липня "
    "julius heinakuuta temmuz iulie"
    " ιουλιου srpnja julija lug",
    "august aug aout agosto augustus srpna srpen augusta sierpnia sierpien августа август авг серпня "
    "augusztus elokuuta agustos αυγουστου"
    " kolovoza avgusta augusti ago",
    "september sep sept septembre septiembre settembre setembro zari septembra wrzesnia wrzesien сентября сентябрь "
    "сен вересня szeptember syyskuuta"
    " eylul septembrie σεπτεμβριου rujna set",
    "october oct oktober okt octobre octubre ottobre outubro rijna rijen oktobra pazdziernika "
    "pazdziernik октября октябрь окт жовтня"
    " lokakuuta ekim octombrie οκτωβριου ott out",
    (
        "november nov novembre noviembre novembro listopadu listopad novembra listopada ноября ноябрь ноя marraskuuta "
        "kasim noiembrie νοεμβριου studenoga"
    ),
    "december dec dezember dez decembre diciembre dicembre dezembro prosince prosinec decembra grudnia "
    "grudzien декабря декабрь дек грудня"
    " joulukuuta aralik decembrie δεκεμβριου prosinca desember dic",
)
_SHORT_FORMS = (
    "sty led γεναρη", "lut uno φλεβαρη", "bre marc μαρτη", "kwi dub απριλη", "kve μαη", "cze cvn ιουνη",
    "lip cvc ιουλη", "sie srp",
    "wrz zar szept σεπτεμβρη", "paz rij οκτωβρη", "lis νοεμβρη", "gru pro δεκεμβρη",
)  # fmt: skip
MONTHS = {
    form: month
    for rows in (_SHORT_FORMS, _FORMS)
    for month, forms in enumerate(rows, 1)
    for form in without_marks(forms).split()
}


# The page's own words for machines come first (JSON-LD, meta elements, `time` and microdata), then the feed that
# announces it, its URL, and the words that a reader sees; then the server's Last-Modified; at last, when we first saw
# it. Pure, and total: any page has a date.

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC).timestamp()  # before the web: a page that says so speaks of something else
TOMORROW_S = 86_400.0  # clocks differ by zones: a page may be dated so much after it was first seen
ELEMENTS_MOST = 2_000  # of a kind that are looked at
JSON_CHARS, JSON_NODES = 1_000_000, 20_000  # of JSON-LD that is read
BLOCKS_AFTER, BLOCKS_BEFORE = 15, 5  # of the main heading: bylines stand near it
BLOCKS_HEEDED = 60  # of a text without a main heading
HEADING_CHARS = 12  # a shorter heading may be in any title
BYLINE_CHARS = 120  # a block that is no longer holds a byline; of a longer one its beginning may be a dateline
DATELINE_CHARS = 40
TIMES_MOST = 3  # different dates of plain `time` elements: a page with more of them is a list

_ARTICLES = ("article", "posting", "report", "newsarticle", "webpage", "creativework")
_NOT_THE_PAGE = ("comment", "review", "answer", "imageobject", "person", "organization")
_JSON_KEYS = ("datepublished", "datecreated", "uploaddate")
_METAS = (
    "article:published_time", "og:article:published_time", "og:published_time", "datepublished", "dcterms.issued",
    "dc.date.issued", "dcterms.created",
    "dc.date.created", "dcterms.date", "dc.date", "citation_publication_date", "citation_online_date", "citation_date",
    "parsely-pub-date",
    "sailthru.date", "cxenseparse:recs:publishtime", "article.published", "published_time", "publish-date",
    "publish_date", "publishdate",
    "publication_date", "pubdate", "date_published", "originalpublicationdate", "article_date_original", "date",
)  # fmt: skip
_OURS = re.compile(r"publish|posted|pubdate|entry-date|post-date|article-date|dateline|byline", re.IGNORECASE)
_ELSEWHERE = "aside, nav, footer, [class*=comment], [id*=comment], [class*=related], [class*=sidebar]"
_LABEL = re.compile(
    r"publi|posted|veroffentlicht|erschienen|vydan|zverejn|pubblicat|gepubliceerd|опубликован|дата|kozzete|megjelen|"
    r"opublik|datum|updated|written|stand:"
)
_ISO = re.compile(
    r"(?<!\d)((?:19|20)\d\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)"
    r"(?:[T ]\s*([01]\d|2[0-3]):?([0-5]\d)(?::?([0-5]\d)(?:[.,]\d{1,9})?)?\s*(Z|z|UTC|GMT|[+-]\d\d:?\d\d)?)?"
)
_IN_URL = re.compile(r"(?<!\d)((?:19|20)\d\d)([-/_.]?)(0?[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01]|[1-9](?=[-/_.]|$))(?!\d)")
_IN_URL_NAMED = re.compile(r"/((?:19|20)\d\d)/([a-z]{3,9})/(\d\d?)(?=/|$)")
_YEAR = r"((?:19|20)\d\d)(?!\d)"
_WORD = r"([^\W\d_]{3,14})"
_CLOCK = re.compile(r"\D{0,12}?(?<!\d)([01]?\d|2[0-3])[:.h]([0-5]\d)(?!\d)(?::[0-5]\d)?(?:\s?([ap])\.?m\b)?")


@dataclass(frozen=True, slots=True)
class DateEvidence:
    """What is known of one page. 0.0 and empty: nothing."""

    url: Url
    source: str = ""  # HTML
    title: str = ""
    texts: Sequence[str] = ()  # its blocks, in order
    language: str = ""  # BCP 47: of 3/4/2024, English of the United States has the month first, others the day
    feed: float = 0.0
    last_modified: float = 0.0
    first_seen: float = 0.0


def page_date(evidence: DateEvidence) -> PageDate:
    """The date on the best word there is. A date before the web, or after the page was seen, is no date of the page."""
    latest = evidence.first_seen + TOMORROW_S if evidence.first_seen else float("inf")
    tree = html.parse(evidence.source) if evidence.source else None
    asked: tuple[tuple[DateOrigin, Callable[[], Iterator[_When]]], ...] = (
        (DateOrigin.JSON_LD, lambda: _of_json(tree) if tree else iter(())),
        (DateOrigin.META, lambda: _of_metas(tree) if tree else iter(())),
        (DateOrigin.TIME, lambda: _of_times(tree) if tree else iter(())),
        (DateOrigin.FEED, lambda: iter(((evidence.feed, False),))),
        (DateOrigin.URL, lambda: _of_url(evidence.url)),
        (DateOrigin.TEXT, lambda: _of_texts(_bylines(evidence.title, evidence.texts), evidence.language)),
        (DateOrigin.LAST_MODIFIED, lambda: iter(((evidence.last_modified, False),))),
    )
    for source, dates in asked:
        for when, whole_day in dates():
            if EARLIEST <= when <= latest:
                return PageDate(when, source, whole_day)
    return PageDate(evidence.first_seen, DateOrigin.FIRST_SEEN)


def feed_dates(body: bytes, url: Url) -> dict[Url, float]:
    """When the feed at url says that each of its entries was published; of what is no feed nothing."""
    if b"<published" in body:
        # Atom's `updated`, which sitemaps prefer, is of the last edit
        body = re.sub(rb"<updated(?=[\s>])", b"<changed", body)
    feed = read_sitemap(body, url)
    feeds = (SitemapKind.RSS, SitemapKind.ATOM)
    return {entry.url: entry.lastmod for entry in feed.entries if entry.lastmod} if feed.kind in feeds else {}


_When = tuple[float, bool]  # (seconds since the epoch, no more than the day is known)


def _of_json(tree: html.Tree) -> Iterator[_When]:
    """Articles' dates first, then those of whatever is not a part of the page."""
    others: list[_When] = []
    for script in html.elements(tree, "script")[:ELEMENTS_MOST]:
        if "ld+json" not in html.attribute(script, "type").lower():
            continue
        for node in _objects(script.text[:JSON_CHARS]):
            texts = {key.lower(): value for key, value in node.items() if isinstance(value, str)}
            kinds = str(node.get("@type", "")).lower()
            when = next((date for key in _JSON_KEYS if key in texts and (date := _machine(texts[key]))), None)
            if when is None or any(kind in kinds for kind in _NOT_THE_PAGE):
                continue
            if any(kind in kinds for kind in _ARTICLES):
                yield when
            else:
                others.append(when)
    yield from others


def _objects(text: str) -> Iterator[dict[str, object]]:
    """The objects of a JSON text, outer ones first; of what is none, none."""
    try:
        waiting = [json.loads(text.strip().removeprefix("<!--").removesuffix("-->"), strict=False)]
    except (ValueError, RecursionError):
        return
    for node in waiting:  # grows while it is walked
        if len(waiting) > JSON_NODES:
            return
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _of_metas(tree: html.Tree) -> Iterator[_When]:
    contents: dict[str, str] = {}
    for meta in html.elements(tree, "meta")[:ELEMENTS_MOST]:
        for attribute in ("property", "name", "itemprop"):
            if name := html.attribute(meta, attribute).strip().lower():
                contents.setdefault(name, html.attribute(meta, "content"))
    yield from (date for name in _METAS if name in contents and (date := _machine(contents[name])))


def _of_times(tree: html.Tree) -> Iterator[_When]:
    """Elements that say of themselves that they are the date of publication; then plain `time` elements,
    unless the page is a list of them.
    """
    for marked in html.select(tree, "[itemprop~=datePublished], time[pubdate], abbr.published")[:ELEMENTS_MOST]:
        for attribute in ("datetime", "content", "title"):
            if date := _machine(html.attribute(marked, attribute)):
                yield date
    plain = []
    for element in html.elements(tree, "time")[:ELEMENTS_MOST]:
        if html.closest_above(element, _ELSEWHERE) is None and (
            date := _machine(html.attribute(element, "datetime") or html.text_of(element)[:100])
        ):
            if _OURS.search(html.attribute(element, "class")):
                yield date
            plain.append(date)
    if len({when // TOMORROW_S for when, _ in plain}) <= TIMES_MOST:
        yield from plain


def _of_url(url: str) -> Iterator[_When]:
    path = url.partition("://")[2].partition("/")[2].partition("?")[0].lower()
    for year, _, month, day in _IN_URL.findall("/" + path):
        yield from _day(year, month, day)
    for year, name, day in _IN_URL_NAMED.findall("/" + path):
        if name in MONTHS:
            yield from _day(year, MONTHS[name], day)


def _bylines(title: str, texts: Sequence[str]) -> Sequence[str]:
    """Where a byline may stand: after the heading that is the title's, before it, further below; without one,
    the beginning.
    """
    name = title.strip()
    for place, text in enumerate(texts):
        if (
            len(text) >= HEADING_CHARS
            and len(name) >= HEADING_CHARS
            and (text in name or name in text[: 2 * len(name)])
        ):
            end, start = place + 1 + BLOCKS_AFTER, max(place - BLOCKS_BEFORE, 0)
            return (*texts[place + 1 : end], *reversed(texts[start:place]), text, *texts[end : end + BLOCKS_HEEDED])
    return texts[:BLOCKS_HEEDED]


def _of_texts(texts: Sequence[str], language: str) -> Iterator[_When]:
    """Blocks that say that they are about publication first, then short blocks and beginnings of long ones."""
    plain: list[_When] = []
    for text in texts:
        folded = without_marks(text[: 4 * BYLINE_CHARS])
        start = folded if len(text) <= BYLINE_CHARS else folded[:DATELINE_CHARS]
        dates = list(written_dates(start, language))
        if dates and len(text) <= BYLINE_CHARS and _LABEL.search(folded):
            yield from dates
        plain += dates
    yield from plain


_DAY_FIRST = re.compile(
    r"(?<!\d)(\d\d?)(?:st|nd|rd|th|er|\.|º|o|-?го)?[\s-]*(?:de |of |d'|di "
    rf")?{_WORD}\.?,?[\s-]*(?:de |of |del )?{_YEAR}"
)
_MONTH_FIRST = re.compile(rf"\b{_WORD}\.?\s+(\d\d?)(?:st|nd|rd|th)?,?\s+{_YEAR}")
_YEAR_FIRST = re.compile(rf"(?<!\d){_YEAR}[.,]?\s+{_WORD}\s+(\d\d?)(?!\d)")
_SIGNS = re.compile(r"(?<!\d)((?:19|20)\d\d)\s*[年년]\s*(\d\d?)\s*[月월]\s*(\d\d?)")
_YEAR_DOTS = re.compile(r"(?<![\d.])((?:19|20)\d\d)([./])\s?(\d\d?)\2\s?(\d\d?)(?!\d)")
_DAY_DOTS = re.compile(rf"(?<![\d.])(\d\d?)\.\s?(\d\d?)\.\s?{_YEAR}(?!\.\d)")
_SLASHES = re.compile(rf"(?<![\d/])(\d\d?)([/-])(\d\d?)\2{_YEAR}")

# (form, its groups of the year, of the month and of the day)
_NAMED_FORMS = ((_DAY_FIRST, 3, 2, 1), (_MONTH_FIRST, 3, 1, 2), (_YEAR_FIRST, 1, 2, 3))
_NUMBERED_FORMS = ((_SIGNS, 1, 2, 3), (_YEAR_DOTS, 1, 3, 4), (_DAY_DOTS, 3, 2, 1))


def written_dates(text: str, language: str = "") -> Iterator[_When]:
    """The dates that a text names, by kind of writing. text: lower case, without diacritics."""
    for match in _ISO.finditer(text):
        if match[0][4] == "-" and (date := _of_iso(match)):
            yield date
    rows: list[tuple[re.Match[str], str, int | str, str]] = []
    for pattern, year, month, day in _NAMED_FORMS:
        rows += [(at, at[year], MONTHS[at[month]], at[day]) for at in pattern.finditer(text) if at[month] in MONTHS]
    for pattern, year, month, day in _NUMBERED_FORMS:
        rows += [(at, at[year], at[month], at[day]) for at in pattern.finditer(text)]
    for at in _SLASHES.finditer(text):
        if (order := _day_and_month(int(at[1]), int(at[3]), language)) is not None:
            rows.append((at, at[4], order[1], str(order[0])))
    for match, its_year, its_month, its_day in sorted(rows, key=lambda row: row[0].start()):
        clock = _CLOCK.match(text, match.end())
        yield from _day(its_year, its_month, its_day, _minutes(*clock.groups()) if clock else None)


def _day_and_month(one: int, other: int, language: str) -> tuple[int, int] | None:
    """Of 3/4: what cannot be a month is the day; else as the language has it, and in plain English nobody knows."""
    language = language.lower()
    if one > 12:
        return one, other
    if other > 12 or language == "en-us":
        return other, one
    if one == other or (language and language != "en"):
        return one, other
    return None


def _minutes(hour: str, minute: str, half: str | None) -> int:
    """Since midnight. half: `a` or `p` of a clock with twelve hours."""
    hours = int(hour) % 12 + (12 if half == "p" else 0) if half and int(hour) <= 12 else int(hour)
    return 60 * hours + int(minute)


def _day(year: str, month: int | str, day: str, minutes: int | None = None) -> Iterator[_When]:
    hour, minute = divmod(minutes or 0, 60)
    try:
        yield datetime(int(year), int(month), int(day), hour, minute, tzinfo=UTC).timestamp(), minutes is None
    except (ValueError, OverflowError):  # the 31st of February
        return


def _machine(text: str) -> _When | None:
    """A date written for programs: ISO 8601 in its usual forms, as in mail, else as people write it."""
    text = text.strip()[:100]
    if not text:
        return None
    if match := _ISO.match(text):
        return _of_iso(match)
    if ":" in text and (when := headers.date_s(text)):
        return when, False
    return next(written_dates(without_marks(text)), None)


def _of_iso(match: re.Match[str]) -> _When | None:
    year, month, day, hour, minute, second, zone = match.groups()
    try:
        when = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            tzinfo=_zone(zone or ""),
        )
        return when.timestamp(), hour is None
    except (ValueError, OverflowError):
        return None


def _zone(text: str) -> timezone:
    """UTC where none is said."""
    if text[:1] not in ("+", "-"):
        return UTC
    shift = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-shift if text[0] == "-" else shift)
