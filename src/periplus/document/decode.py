"""Which text do these bytes spell, and on whose word?

Asked in turn: the byte order mark, the HTTP header, what the document says of itself, then whether the bytes are UTF-8, then
their statistics. Source: HTML Living Standard, 13.2.3 (encoding sniffing), with two choices of ours: a document's own word is sought
in its first 4,096 bytes, and a claim that the text contradicts does not count: one of UTF-8 that the bytes refute, another where they
are UTF-8, and one whose letters make no words where another encoding's do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from periplus.document import guess
from periplus.document.charsets import UTF_8, UTF_16_BE, UTF_16_LE, WINDOWS_1252, Encoding, encoding_of
from periplus.document.doubt import is_contradicted
from periplus.model.page import Charset

_HEAD_BYTES = 4096  # the standard asks for 1,024 at least; old pages put long comments before their meta
_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xff\xfe", UTF_16_LE), (b"\xfe\xff", UTF_16_BE))
_META = re.compile(rb"""<!--.*?-->|<meta[\s/]((?:[^>"']|"[^"]*"|'[^']*')*)""", re.DOTALL)
_ATTRIBUTE = re.compile(rb"""(?<![^\s/"'])([^\s=/"'>]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*))""")
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([^\s"';>]+)""")
_CHARSET_AT_FIRST = re.compile(rb"""[Cc][Hh][Aa][Rr][Ss][Ee][Tt]\s*=\s*["']?\s*([^\s"';>]+)""")
_XML_DECLARATION = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']\s*([^"'>]*)""")


def decode(body: bytes, header_charset: str, media_type: str, hint: str = "") -> tuple[str, Charset]:
    """The text, and which encoding it was read in. Bytes that spell nothing become U+FFFD. Total: raises for no bytes.

    header_charset: as the Content-Type has it, empty when it has none. media_type: essence; only HTML and XML say something
    of themselves. hint: the top-level domain, for the statistics.
    """
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding.codec, "replace"), Charset(encoding.name, "bom")
    utf_8 = _strict_utf_8(body)
    markup = _is_markup(media_type)
    refuted = ""
    for encoding, source in _claims(body, header_charset, media_type):
        text = _as_declared(encoding, body, utf_8, markup, hint)
        if text is not None:
            return text, Charset(encoding.name, source, refuted or _disagreement(encoding, source, body, media_type))
        refuted = refuted or encoding.name
    if utf_8 is not None and not guess.by_structure(body):
        return utf_8, Charset(UTF_8.name, "statistics" if refuted else "default", refuted)
    found = guess.guessed(body, hint, markup=markup)
    encoding = found.encoding if found else WINDOWS_1252
    return encoding.text(body), Charset(encoding.name, "statistics", refuted if refuted != encoding.name else "")


def _as_declared(encoding: Encoding, body: bytes, utf_8: str | None, markup: bool, hint: str) -> str | None:
    """The text read as it is declared; None when it contradicts that."""
    if encoding is UTF_8:
        text = utf_8 if utf_8 is not None else _damaged_utf_8(body)
        return None if guess.by_structure(body) else text
    return None if is_contradicted(encoding, body, utf_8, markup, hint) else encoding.text(body)


def _disagreement(taken: Encoding, source: str, body: bytes, media_type: str) -> str:
    """What the document says of itself, where the header said otherwise."""
    if source != "header" or ((said := _CHARSET_AT_FIRST.search(body, 0, _HEAD_BYTES)) and encoding_of(said[1].decode("latin-1")) is taken):
        return ""  # nearly always; reading every meta element would cost six times as much
    other = next((encoding for encoding, _ in _claims(body, "", media_type)), taken)
    return "" if other is taken else other.name


def _is_markup(media_type: str) -> bool:
    return "html" in media_type or media_type.endswith("xml")


def _strict_utf_8(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _damaged_utf_8(body: bytes) -> str | None:
    """The text when more characters outside ASCII are whole than broken, as in a page cut off; else it is not UTF-8."""
    text = body.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = len(text) - broken - len(text.encode("ascii", "ignore"))
    return text if whole >= broken or broken == 1 else None


def _claims(body: bytes, header_charset: str, media_type: str) -> Iterator[tuple[Encoding, str]]:
    """The encodings that somebody declares, in the order in which they are believed."""
    if header_charset and (encoding := encoding_of(header_charset)):
        yield encoding, "header"
    if not _is_markup(media_type):
        return
    head = body[:_HEAD_BYTES]
    if "html" in media_type and (encoding := _meta_encoding(head.lower())):
        yield encoding, "meta"
    if encoding := _xml_encoding(head):
        yield encoding, "xml"


def _meta_encoding(head: bytes) -> Encoding | None:
    """What a `meta charset` or `meta http-equiv=content-type` says. head: in lower case."""
    if b"charset" not in head:
        return None
    for match in _META.finditer(head):
        values = {name: first or second or third for name, first, second, third in _ATTRIBUTE.findall(match[1] or b"")}
        label = values.get(b"charset", b"")
        if not label and values.get(b"http-equiv", b"").strip() == b"content-type":
            said = _CHARSET.search(values.get(b"content", b""))
            label = said[1] if said else b""
        if encoding := encoding_of(label.decode("latin-1")):
            return _readable_as_ascii(encoding)
    return None


def _xml_encoding(head: bytes) -> Encoding | None:
    """What the XML declaration says, or its very bytes when they are UTF-16 without a mark."""
    for start, encoding in ((b"<\0?\0x\0", UTF_16_LE), (b"\0<\0?\0x", UTF_16_BE)):
        if head.startswith(start):
            return encoding
    said = _XML_DECLARATION.match(head)
    found = encoding_of(said[1].decode("latin-1")) if said else None
    return _readable_as_ascii(found) if found else None


def _readable_as_ascii(encoding: Encoding) -> Encoding:
    """A declaration that could be read byte by byte does not stand in UTF-16: the standard takes it for UTF-8."""
    return UTF_8 if encoding in (UTF_16_LE, UTF_16_BE) else encoding
