"""Parses dates in pages: machine-readable, in URLs, and in the words of many languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import NamedTuple

from periplus.document import headers
from periplus.document.digest import without_marks
from periplus.model.web import Url

# Month names as used in dates (genitives where a language uses them), in lower case and without diacritics: "brezna" is
# března. Next to a day and a year, short forms are unambiguous.

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
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC).timestamp()  # before the web: an earlier date is not the page's
TOMORROW_S = 86_400.0  # time zones differ: a page may be dated this much after it was first seen
# Compiled on first use: names and patterns take 14 ms at start-up, and most pages of manuals need none
_ISO = (
    r"(?<!\d)((?:19|20)\d\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)"
    r"(?:[T ]\s*([01]\d|2[0-3]):?([0-5]\d)(?::?([0-5]\d)(?:[.,]\d{1,9})?)?\s*(Z|z|UTC|GMT|[+-]\d\d:?\d\d)?)?"
)
_IN_URL = r"(?<!\d)((?:19|20)\d\d)([-/_.]?)(0?[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01]|[1-9](?=[-/_.]|$))(?!\d)"
_MONTH_NAME_IN_URL = r"/((?:19|20)\d\d)/([a-z]{3,9})/(\d\d?)(?=/|$)"
_YEAR = r"((?:19|20)\d\d)(?!\d)"
_WORD = r"([^\W\d_]{3,14})"
_CLOCK = r"\D{0,12}?(?<!\d)([01]?\d|2[0-3])[:.h]([0-5]\d)(?!\d)(?::[0-5]\d)?(?:\s?([ap])\.?m\b)?"
_DAY_FIRST = (
    r"(?<!\d)(\d\d?)(?:st|nd|rd|th|er|\.|º|o|-?го)?[\s-]*(?:de |of |d'|di "
    rf")?{_WORD}\.?,?[\s-]*(?:de |of |del )?{_YEAR}"
)
_MONTH_FIRST = rf"\b{_WORD}\.?\s+(\d\d?)(?:st|nd|rd|th)?,?\s+{_YEAR}"
_YEAR_FIRST = rf"(?<!\d){_YEAR}[.,]?\s+{_WORD}\s+(\d\d?)(?!\d)"
_SIGNS = r"(?<!\d)((?:19|20)\d\d)\s*[年년]\s*(\d\d?)\s*[月월]\s*(\d\d?)"
_YEAR_DOTS = r"(?<![\d.])((?:19|20)\d\d)([./])\s?(\d\d?)\2\s?(\d\d?)(?!\d)"
_DAY_DOTS = rf"(?<![\d.])(\d\d?)\.\s?(\d\d?)\.\s?{_YEAR}(?!\.\d)"
_SLASHES = rf"(?<![\d/])(\d\d?)([/-])(\d\d?)\2{_YEAR}"
_SHORT = r"(?<![\d./:])(\d\d?)([./])\s?(\d\d?)\2\s?([012]\d)(?![\d./:]\d|\d|%)"
# Arabic, Persian, Devanagari, Bengali and Thai digits
_DIGITS = {first + value: str(value) for first in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50) for value in range(10)}
# (pattern, groups of year, month and day)
_NAMED_FORMS = ((_DAY_FIRST, 3, 2, 1), (_MONTH_FIRST, 3, 1, 2), (_YEAR_FIRST, 1, 2, 3))
_NUMBERED_FORMS = ((_SIGNS, 1, 2, 3), (_YEAR_DOTS, 1, 3, 4), (_DAY_DOTS, 3, 2, 1))


@cache
def months() -> dict[str, int]:
    """Month number by name."""
    return {
        form: month
        for rows in (_SHORT_FORMS, _FORMS)
        for month, forms in enumerate(rows, 1)
        for form in without_marks(forms).split()
    }


class WrittenDate(NamedTuple):
    """A date found in a page."""

    when: float  # seconds since the epoch
    whole_day: bool  # only the day is known; `when` is its beginning in UTC
    shift_s: int | None = None  # of its time zone, from UTC; None: not given, UTC is assumed

    def iso(self) -> str:
        """As ISO 8601, in its own zone: 2024-03-01, 2024-03-01T10:00:00+01:00."""
        zone = UTC if not self.shift_s else timezone(timedelta(seconds=self.shift_s))
        text = datetime.fromtimestamp(self.when, zone).replace(microsecond=0).isoformat()
        if self.whole_day:
            return text[:10]
        return text[:19] if self.shift_s is None else text.replace("+00:00", "Z")


def feed_dates(body: bytes, url: Url) -> dict[Url, float]:
    """Publication times of the entries of the feed at url; {} if it is not a feed."""
    from periplus.document.sitemaps import SitemapKind, read_sitemap  # imported late: a page's dates need no XML

    if b"<published" in body:
        # Atom's `updated`, which sitemaps prefer, is the last edit
        body = re.sub(rb"<updated(?=[\s>])", b"<changed", body)
    feed = read_sitemap(body, url)
    feeds = (SitemapKind.RSS, SitemapKind.ATOM)
    return {entry.url: entry.lastmod for entry in feed.entries if entry.lastmod} if feed.kind in feeds else {}


def url_dates(url: str) -> Iterator[WrittenDate]:
    """The days in the path of a URL."""
    path = url.partition("://")[2].partition("/")[2].partition("?")[0].lower()
    for year, _, month, day in re.findall(_IN_URL, "/" + path):
        yield from _day(year, month, day)
    for year, name, day in re.findall(_MONTH_NAME_IN_URL, "/" + path):
        if month := months().get(name):
            yield from _day(year, month, day)


def written_dates(text: str, language: str = "", *, short: bool = False) -> Iterator[WrittenDate]:
    """The dates in a text. text: lower case, without diacritics. short: also forms such as 8.5.12."""
    if not text.isascii():
        text = text.translate(_DIGITS)
    for match in re.finditer(_ISO, text):
        if match[0][4] == "-" and (date := _of_iso(match)):
            yield date
    named, rows = months(), list[tuple[re.Match[str], str, int | str, str]]()
    for pattern, year, month, day in _NAMED_FORMS:
        rows += [(at, at[year], named[at[month]], at[day]) for at in re.finditer(pattern, text) if at[month] in named]
    for pattern, year, month, day in _NUMBERED_FORMS:
        rows += [(at, at[year], at[month], at[day]) for at in re.finditer(pattern, text)]
    for at in re.finditer(_SHORT, text) if short else ():
        first, second = int(at[1]), int(at[3])
        order = (first, second) if at[2] == "." else _day_and_month(first, second, language)
        if order is not None:
            rows.append((at, f"20{at[4]}", order[1], str(order[0])))
    for at in re.finditer(_SLASHES, text):
        if (order := _day_and_month(int(at[1]), int(at[3]), language)) is not None:
            rows.append((at, at[4], order[1], str(order[0])))
    for match, its_year, its_month, its_day in sorted(rows, key=lambda row: row[0].start()):
        clock = re.compile(_CLOCK).match(text, match.end())
        yield from _day(its_year, its_month, its_day, _minutes(*clock.groups()) if clock else None)


def _day_and_month(first: int, other: int, language: str) -> tuple[int, int] | None:
    """Interprets 3/4: a number above 12 is the day; else by language; ambiguous in plain English."""
    language = language.lower()
    if first > 12:
        return first, other
    if other > 12 or language == "en-us":
        return other, first
    if first == other or (language and language != "en"):
        return first, other
    return None


def _minutes(hour: str, minute: str, half: str | None) -> int:
    """Minutes since midnight. half: `a` or `p` of a 12-hour clock."""
    hours = int(hour) % 12 + (12 if half == "p" else 0) if half and int(hour) <= 12 else int(hour)
    return 60 * hours + int(minute)


def _day(year: str, month: int | str, day: str, minutes: int | None = None) -> Iterator[WrittenDate]:
    hour, minute = divmod(minutes or 0, 60)
    try:
        yield WrittenDate(
            datetime(int(year), int(month), int(day), hour, minute, tzinfo=UTC).timestamp(), minutes is None
        )
    except (ValueError, OverflowError):  # such as 31 February
        return


def machine_date(text: str) -> WrittenDate | None:
    """Parses a machine-readable date: ISO 8601 in its usual forms, or the mail format; else as `written_dates`."""
    text = text.strip()[:100]
    if not text:
        return None
    if match := re.match(_ISO, text):
        return _of_iso(match)
    if ":" in text and (when := headers.date_s(text)):
        return WrittenDate(when, False, 0)
    return next(written_dates(without_marks(text)), None)


def _of_iso(match: re.Match[str]) -> WrittenDate | None:
    year, month, day, hour, minute, second, zone = match.groups()
    try:
        y, m, d, hours, minutes, seconds = map(int, (year, month, day, hour or 0, minute or 0, second or 0))
        when = datetime(y, m, d, hours, minutes, seconds, tzinfo=_zone(zone or ""))
        offset = when.utcoffset() if zone else None
        shift_s = None if offset is None else int(offset.total_seconds())
        return WrittenDate(when.timestamp(), hour is None, shift_s)
    except (ValueError, OverflowError):
        return None


def _zone(text: str) -> timezone:
    """UTC if none is given."""
    if text[:1] not in ("+", "-"):
        return UTC
    shift = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-shift if text[0] == "-" else shift)
