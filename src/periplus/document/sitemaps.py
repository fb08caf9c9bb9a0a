"""Which pages does a sitemap name?

Source: sitemaps.org protocol 0.9 (XML, index, text, feeds as sitemaps). Read with patterns, not with an XML parser: sitemaps in the wild
have bare `&` in URLs, wrong or no namespaces and a missing end, of which a parser in recovery makes other URLs; and where no entity is
ever expanded and no address ever opened, none can be abused. Linear in the body. Total: any bytes give a value.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from periplus.errors import InvalidUrl
from periplus.model.web import Url
from periplus.urls.canonical import canonical

MAX_ENTRIES = 50_000  # sitemaps.org: the most that one file may name
MAX_INFLATED_BYTES = 33_554_432  # the protocol permits 50 MB; 50,000 addresses seldom need 10, and a gzip bomb must stay cheap
URL_CHARACTERS = 8_192  # a text longer than that is no address


class SitemapKind(StrEnum):
    URLS = "urls"
    INDEX = "index"
    RSS = "rss"
    ATOM = "atom"
    TEXT = "text"
    NONE = "none"  # no sitemap: a web page, rubbish, nothing


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """A page. Perhaps on another host: the crawl's scope decides."""

    url: Url
    lastmod: float  # seconds since the epoch; 0.0 when not said or not understood


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap understood. Entries in the order of the file, each URL once."""

    kind: SitemapKind
    entries: tuple[SitemapEntry, ...]
    nested: tuple[Url, ...]  # the sitemaps of an index; how deep to go is the caller's business
    bad: int  # addresses that are no http or https URL
    cut: bool  # more than MAX_ENTRIES or MAX_INFLATED_BYTES: the rest was left off


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Where a kind of sitemap says what."""

    kind: SitemapKind
    container: str
    address: str
    dates: tuple[str, ...]
    prefixed: bool  # the root's namespace prefix holds for its children


_DIALECTS = {
    "urlset": _Dialect(SitemapKind.URLS, "url", "loc", ("lastmod",), True),
    "sitemapindex": _Dialect(SitemapKind.INDEX, "sitemap", "loc", ("lastmod",), True),
    "rss": _Dialect(SitemapKind.RSS, "item", "link", ("pubDate", "dc:date"), False),
    "rdf": _Dialect(SitemapKind.RSS, "item", "link", ("dc:date", "pubDate"), False),
    "feed": _Dialect(SitemapKind.ATOM, "entry", "link", ("updated", "published"), True),
}
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]{0,30}:)?(urlset|sitemapindex|rss|rdf|feed)(?=[\s>])", re.IGNORECASE)
_LINE_BREAK = re.compile(rb"[\r\n]+")
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ATOM_LINK = re.compile(rb"<(?:[\w.-]+:)?link(?=[\s/>])([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""\b(href|rel)\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')""", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(.*))?)?", re.DOTALL)


def read_sitemap(body: bytes, url: Url) -> Sitemap:
    """The entries of a sitemap found at url, which relative addresses are resolved against. body: may be gzipped."""
    plain, cut = _inflated(body)
    plain = _without_comments(_as_utf8(plain))
    root = _ROOT.search(plain)
    if root is None:
        found, kind = _text_addresses(plain), SitemapKind.TEXT
    else:
        dialect = _DIALECTS[root.group(2).decode().lower()]
        found, kind = _marked_addresses(plain, root, dialect), dialect.kind
    entries: dict[Url, SitemapEntry] = {}
    bad = 0
    for address, date in found:
        if len(entries) == MAX_ENTRIES:
            cut = True
            break
        try:
            page = canonical(address, url)
        except InvalidUrl:
            bad += 1
            continue
        entries.setdefault(page, SitemapEntry(page, _seconds(date)))
    if kind is SitemapKind.TEXT and not entries:
        return Sitemap(SitemapKind.NONE, (), (), 0, cut)
    if kind is SitemapKind.INDEX:
        return Sitemap(kind, (), tuple(entries), bad, cut)
    return Sitemap(kind, tuple(entries.values()), (), bad, cut)


def _inflated(body: bytes) -> tuple[bytes, bool]:
    """The body without gzip, and whether it was longer than allowed. A damaged end is left off."""
    if not body.startswith(b"\x1f\x8b"):
        return body[:MAX_INFLATED_BYTES], len(body) > MAX_INFLATED_BYTES
    inflater = zlib.decompressobj(wbits=31)
    plain = bytearray()
    try:
        for start in range(0, len(body), 65_536):  # in pieces, so that what came before damage is kept
            plain += inflater.decompress(body[start : start + 65_536], MAX_INFLATED_BYTES - len(plain))
            if len(plain) == MAX_INFLATED_BYTES:
                return bytes(plain), not inflater.eof
    except zlib.error:
        pass  # what was inflated so far is all there is
    return bytes(plain), False


def _as_utf8(body: bytes) -> bytes:
    """Without byte order mark. Other encodings than UTF-16 agree with UTF-8 in all that matters here: marks and ASCII URLs."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace").encode("utf-8", "replace")
    return body.removeprefix(codecs.BOM_UTF8)


def _without_comments(body: bytes) -> bytes:
    if b"<!--" not in body:
        return body
    first, *others = body.split(b"<!--")
    return first + b"".join(part.partition(b"-->")[2] for part in others)


def _text_addresses(body: bytes) -> Iterator[tuple[str, str]]:
    """One address a line, absolute; other lines are none."""
    for line in _LINE_BREAK.split(body):
        text = line.strip()
        if text[:8].lower().startswith((b"http://", b"https://")) and len(text) <= URL_CHARACTERS and not re.search(rb"[\s<>]", text):
            yield text.decode("utf-8", "replace"), ""


def _marked_addresses(body: bytes, root: re.Match[bytes], dialect: _Dialect) -> Iterator[tuple[str, str]]:
    """Address and date of each container. Elements of extensions (`image:loc`) have another prefix or come later."""
    prefix = re.escape(root.group(1) or b"") if dialect.prefixed else b""
    container = re.compile(rb"<%b%b(?=[\s>])" % (prefix, dialect.container.encode()), re.IGNORECASE)
    address = _element(prefix, dialect.address)
    dates = [_element(b"" if ":" in name else prefix, name) for name in dialect.dates]
    starts = container.finditer(body, root.end())
    begin = next(starts, None)
    while begin is not None:
        following = next(starts, None)
        end = following.start() if following else len(body)
        text = _atom_address(body, begin.end(), end) if dialect.kind is SitemapKind.ATOM else _content(address, body, begin.end(), end)
        date = next(filter(None, (_content(element, body, begin.end(), end) for element in dates)), "")
        if text:
            yield text, date
        begin = following


def _element(prefix: bytes, name: str) -> re.Pattern[bytes]:
    """An element's content: a CDATA section or text."""
    return re.compile(rb"<%b%b(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[([^\]]*)\]\]>|([^<]*))" % (prefix, name.encode()), re.IGNORECASE)


def _content(element: re.Pattern[bytes], body: bytes, start: int, end: int) -> str:
    found = element.search(body, start, end)
    if found is None:
        return ""
    section, text = found.groups()
    return section[:URL_CHARACTERS].decode("utf-8", "replace").strip() if section is not None else _unescaped(text)


def _atom_address(body: bytes, start: int, end: int) -> str:
    """href of the first link that leads to the page itself."""
    for link in _ATOM_LINK.finditer(body, start, end):
        said = {name.lower(): double or single for name, double, single in _ATTRIBUTE.findall(link.group(1))}
        if said.get(b"rel", b"alternate").lower() == b"alternate" and b"href" in said:
            return _unescaped(said[b"href"])
    return ""


def _unescaped(text: bytes) -> str:
    """With XML's own five entities and numbers resolved, and no others; a bare `&` stays."""
    return _ENTITY.sub(_character, text[:URL_CHARACTERS].decode("utf-8", "replace")).strip()


def _character(match: re.Match[str]) -> str:
    name, decimal, hexadecimal = match.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _seconds(date: str) -> float:
    """A W3C date (a year is enough) or one as in mail, UTC where no zone is said; 0.0 when it is none or before 1970."""
    try:
        found = _DATE.fullmatch(date)
        if found:
            year, month, day, rest = found.groups(default="")
            when = datetime.fromisoformat(f"{year}-{month or '01'}-{day or '01'}{rest}")
        else:
            when = parsedate_to_datetime(date)
        return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0
