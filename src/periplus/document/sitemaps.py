"""Reads sitemaps.

Source: sitemaps.org protocol 0.9 (XML, index, text, feeds as sitemaps). Uses patterns, not an XML parser: real sitemaps
have bare `&` in URLs, wrong or no namespaces, or are truncated, from which a recovering parser makes other URLs; and as
no entity is expanded and nothing is fetched, none can be abused. Linear in the body. Total.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum

from periplus.errors import InvalidUrl
from periplus.model.web import Url
from periplus.urls.canonical import canonical
from periplus.values import frozen

MAX_ENTRIES = 50_000  # sitemaps.org: the most per file
# The protocol permits 50 MB; 50,000 URLs seldom need 10, and a gzip bomb must stay cheap
MAX_INFLATED_BYTES = 33_554_432
URL_CHARACTERS = 8_192  # a longer text is not a URL
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]{0,30}:)?(urlset|sitemapindex|rss|rdf|feed)(?=[\s>])", re.IGNORECASE)
_LINE_BREAK = re.compile(rb"[\r\n]+")
# An unclosed construct extends to the end; searching again from each start would take quadratic time
_COMMENT_OR_CDATA = re.compile(rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
_NO_ADDRESS = "\ud800"  # for an entity that is not expanded: never in a URL
_ENTITY = re.compile(r"&(?:([A-Za-z_:][\w:.-]{0,99})|#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6}));")
_NAMED_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ATOM_LINK = re.compile(rb"<(?:[\w.-]+:)?link(?=[\s/>])([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""\b(href|rel)\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')""", re.IGNORECASE)
_XML_BASE = re.compile(
    rb"""<(?:[\w.-]+:)?(?:rss|rdf|feed|channel|item|entry)\s(?:[^<>]*\s)?xml:base\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')""",
    re.IGNORECASE,
)
_GUID = re.compile(rb"<guid(\s[^<>]*)?>([^<]*)", re.IGNORECASE)
_NO_PERMALINK = re.compile(rb"""\sisPermaLink\s*=\s*["']?\s*false""", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(.*))?)?", re.DOTALL)


class SitemapKind(StrEnum):
    URLS = "urls"
    INDEX = "index"
    RSS = "rss"
    ATOM = "atom"
    TEXT = "text"
    NONE = "none"  # not a sitemap: a web page, garbage, nothing


@frozen
class SitemapEntry:
    """A page; possibly on another host, which the crawl's scope decides."""

    url: Url
    lastmod: float  # seconds since the epoch; 0.0 if missing or invalid


@frozen
class Sitemap:
    """A parsed sitemap. Entries in file order, each URL once."""

    kind: SitemapKind
    entries: tuple[SitemapEntry, ...]
    nested: tuple[Url, ...]  # sitemaps of an index; the caller decides how deep to follow them
    bad: int  # entries that are not http or https URLs
    cut: bool  # more than MAX_ENTRIES or MAX_INFLATED_BYTES: the rest was dropped


@frozen
class _Dialect:
    """The element names of a kind of sitemap."""

    kind: SitemapKind
    container: str
    address: str
    dates: tuple[str, ...]
    prefixed: bool  # whether the root's namespace prefix applies to its children

    @property
    def is_feed(self) -> bool:
        return self.kind in (SitemapKind.RSS, SitemapKind.ATOM)


_DIALECTS = {
    "urlset": _Dialect(SitemapKind.URLS, "url", "loc", ("lastmod",), True),
    "sitemapindex": _Dialect(SitemapKind.INDEX, "sitemap", "loc", ("lastmod",), True),
    "rss": _Dialect(SitemapKind.RSS, "item", "link", ("pubDate", "dc:date"), False),
    "rdf": _Dialect(SitemapKind.RSS, "item", "link", ("dc:date", "pubDate"), False),
    "feed": _Dialect(SitemapKind.ATOM, "entry", "link", ("updated", "published"), True),
}
# Markup characters in a CDATA section, which are literal there
_MASKED, _UNMASKED = bytes.maketrans(b"&<>", b"\0\1\2"), str.maketrans("\0\1\2", "&<>")


def read_sitemap(body: bytes, url: Url) -> Sitemap:
    """Parses a sitemap. url: the base for relative URLs. body: may be gzipped."""
    plain, cut = _decompress(body)
    plain = _COMMENT_OR_CDATA.sub(_mask_section, _as_utf8(plain))
    root = _ROOT.search(plain)
    if root is None:
        addresses, kind = _text_addresses(plain, url), SitemapKind.TEXT
    else:
        dialect = _DIALECTS[root.group(2).decode().lower()]
        addresses, kind = _marked_addresses(plain, root, dialect, url), dialect.kind
    entries: dict[Url, SitemapEntry] = {}
    bad = 0
    for address, date, base in addresses:
        if len(entries) == MAX_ENTRIES:
            cut = True
            break
        try:
            page = canonical(address, base)
        except InvalidUrl:
            bad += 1
            continue
        entries.setdefault(page, SitemapEntry(page, _seconds(date)))
    if kind is SitemapKind.TEXT and not entries:
        return Sitemap(SitemapKind.NONE, (), (), 0, cut)
    if kind is SitemapKind.INDEX:
        return Sitemap(kind, (), tuple(entries), bad, cut)
    return Sitemap(kind, tuple(entries.values()), (), bad, cut)


def _decompress(body: bytes) -> tuple[bytes, bool]:
    """(decompressed body, whether it was too long). A damaged end is dropped."""
    if not body.startswith(b"\x1f\x8b"):
        return body[:MAX_INFLATED_BYTES], len(body) > MAX_INFLATED_BYTES
    inflater = zlib.decompressobj(wbits=31)
    plain = bytearray()
    try:
        for start in range(0, len(body), 65_536):  # in pieces, so that data before a damaged part is kept
            plain += inflater.decompress(body[start : start + 65_536], MAX_INFLATED_BYTES - len(plain))
            if len(plain) == MAX_INFLATED_BYTES:
                return bytes(plain), not inflater.eof
    except zlib.error:
        pass  # keep what was decompressed so far
    return bytes(plain), False


def _as_utf8(body: bytes) -> bytes:
    """The body without byte order mark, UTF-16 as UTF-8.

    All other encodings agree with UTF-8 on markup and ASCII URLs.
    """
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace").encode("utf-8", "replace")
    return body.removeprefix(codecs.BOM_UTF8)


def _mask_section(place: re.Match[bytes]) -> bytes:
    """Replaces a comment with nothing, and a CDATA section with its text, markup characters masked."""
    return (place[1] or b"").translate(_MASKED)


def _text_addresses(body: bytes, url: Url) -> Iterator[tuple[str, str, Url]]:
    """One absolute URL per line; other lines are ignored."""
    for line in _LINE_BREAK.split(body):
        text = line.strip()
        if (
            text[:8].lower().startswith((b"http://", b"https://"))
            and len(text) <= URL_CHARACTERS
            and not re.search(rb"[\s<>]", text)
        ):
            yield text.decode("utf-8", "replace"), "", url


def _marked_addresses(
    body: bytes, root: re.Match[bytes], dialect: _Dialect, url: Url
) -> Iterator[tuple[str, str, Url]]:
    """(URL, date, base) of each container.

    Elements of extensions (`image:loc`) have another prefix or come later.
    """
    prefix = re.escape(root.group(1) or b"") if dialect.prefixed else b""
    container = re.compile(rb"<%b%b(?=[\s>])[^<>]*>?" % (prefix, dialect.container.encode()), re.IGNORECASE)
    address = _element(prefix, dialect.address)
    dates = [_element(b"" if ":" in name else prefix, name) for name in dialect.dates]
    starts = container.finditer(body, root.end())
    begin = next(starts, None)
    home = _feed_base(body[root.start() : begin.start()], address, dialect, url) if begin and dialect.is_feed else url
    while begin is not None:
        following = next(starts, None)
        end = following.start() if following else len(body)
        date = next(filter(None, (_content(element, body, begin.end(), end) for element in dates)), "")
        if dialect.is_feed:
            text = _feed_address(body, begin.end(), end, address, dialect)
            if text:
                yield text, date, _xml_base(begin[0], home)
        else:
            yield from ((text, date, home) for text in _contents(address, body, begin.end(), end))
        begin = following


def _feed_base(head: bytes, address: re.Pattern[bytes], dialect: _Dialect, url: Url) -> Url:
    """The base for URLs in a feed: its `xml:base`, else its own page, else its URL."""
    if b"xml:base" in head and _XML_BASE.search(head):
        return _xml_base(head, url)
    try:
        return canonical(_feed_address(head, 0, len(head), address, dialect), url)
    except InvalidUrl:
        return url


def _xml_base(tags: bytes, base: Url) -> Url:
    """Applies the `xml:base` of these tags, outer before inner, to a base (XML Base, 3 and 4)."""
    for first, second in _XML_BASE.findall(tags):
        with contextlib.suppress(InvalidUrl):
            base = canonical(_resolve_entities(first or second), base)
    return base


def _feed_address(body: bytes, start: int, end: int, address: re.Pattern[bytes], dialect: _Dialect) -> str:
    """The page of an entry, or of the feed; in RSS also a guid that is a permalink."""
    if dialect.kind is SitemapKind.ATOM:
        return _atom_address(body, start, end)
    if text := _content(address, body, start, end):
        return text
    match = _GUID.search(body, start, end)
    text = _resolve_entities(match[2]) if match and not _NO_PERMALINK.search(match[1] or b"") else ""
    return text if text[:8].lower().startswith(("http://", "https://")) else ""


def _element(prefix: bytes, name: str) -> re.Pattern[bytes]:
    """A pattern for an element's text, and its end tag with trailing white space."""
    return re.compile(rb"<%b%b(?:\s[^<>]*)?>([^<]*)(?:</[^<>]*>\s*)?" % (prefix, name.encode()), re.IGNORECASE)


def _content(element: re.Pattern[bytes], body: bytes, start: int, end: int) -> str:
    match = element.search(body, start, end)
    return _resolve_entities(match[1]) if match else ""


def _contents(element: re.Pattern[bytes], body: bytes, start: int, end: int) -> Iterator[str]:
    """The first element's text, and those of adjacent ones. Empty ones are left out."""
    match = element.search(body, start, end)
    while match:
        if text := _resolve_entities(match[1]):
            yield text
        match = element.match(body, match.end(), end)


def _atom_address(body: bytes, start: int, end: int) -> str:
    """The href of the first link to the page itself."""
    for link in _ATOM_LINK.finditer(body, start, end):
        attributes = {name.lower(): double or single for name, double, single in _ATTRIBUTE.findall(link.group(1))}
        if attributes.get(b"rel", b"alternate").lower() == b"alternate" and b"href" in attributes:
            return _resolve_entities(attributes[b"href"])
    return ""


def _resolve_entities(text: bytes) -> str:
    """Resolves XML's five entities and character references; any other entity makes the URL invalid.

    A bare `&` is kept.
    """
    return _ENTITY.sub(_character, text[:URL_CHARACTERS].decode("utf-8", "replace")).translate(_UNMASKED).strip()


def _character(match: re.Match[str]) -> str:
    name, decimal, hexadecimal = match.groups()
    if name:
        return _NAMED_ENTITIES.get(name, _NO_ADDRESS)
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _seconds(date: str) -> float:
    """Parses a W3C date (a year is enough) or a mail date, UTC by default; 0.0 if invalid or before 1970."""
    try:
        match = _DATE.fullmatch(date)
        if match:
            year, month, day, rest = match.groups(default="")
            when = datetime.fromisoformat(f"{year}-{month or '01'}-{day or '01'}{rest}")
        else:
            from email.utils import parsedate_to_datetime

            when = parsedate_to_datetime(date)
        return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0
