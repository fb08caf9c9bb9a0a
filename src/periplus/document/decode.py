"""Decodes bytes to text. A declared encoding is used unless the text contradicts it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from periplus.document import guess
from periplus.document.guess import UTF_8, UTF_16_BE, UTF_16_LE, WINDOWS_1252, Encoding, encoding_of
from periplus.document.letters import east_asian_scores
from periplus.document.utf8 import is_utf_8
from periplus.model.page import Charset

# Log-likelihood ratio (nats) from which another encoding overrules the declared one. Measured by quality/charset:
# correct declarations reach 12 at most; wrong ones that matter (other letters result) exceed it in 99.4 of 100 texts
# with twenty letters outside ASCII.
_DOUBT = 18.0
_WORDS = -5.0  # nats per place: a text less likely than this even in the best encoding cannot be judged
_PLACES = 12  # about four letters outside ASCII: fewer are not enough evidence
# Share of the characters outside ASCII that may be undecodable, or control characters, in a declared encoding
_TOLERATED_ERROR_SHARE = 0.02
_HIRAGANA = re.compile("[\u3041-\u3096]")
_SYLLABLES = 8  # of hiragana: text in a single-byte encoding does not decode to so many by chance, without any error
_COMMON = 0.3  # least share of the most common characters in a text declared as East Asian
_HEAD_BYTES = 4096  # the standard requires at least 1,024; old pages put long comments before their meta
_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xff\xfe", UTF_16_LE), (b"\xfe\xff", UTF_16_BE))
# Tags as in the prescan: a quote counts only after an equals sign. Source: HTML Living Standard, 13.2.3.2
_NAME = rb"=?[^\s/>=]++|="
_VALUE = rb"""\s*+=\s*+("[^"]*+"|'[^']*+'|(?!["'])[^\s>]*+)"""
_ATTRIBUTE = re.compile(b"(%b)(?:%b)?+" % (_NAME, _VALUE))
_TAG = re.compile(
    rb"<!--.*?(?<=--)>|</?([a-z][^\s/>]*+)((?:[\s/]++|(?:%b)(?:%b)?+)*+)>|<[!/?][^>]*+>"
    % (_NAME, _VALUE.replace(b"=\\s*+(", b"=\\s*+(?:")),
    re.DOTALL,
)
# The usual beginning of a page, up to its declaration; at a value with an equals sign the full search is needed
_USUAL_META = re.compile(
    rb"""[^<]*+(?:<(?:!--[^>-]*+--|(?:!doctype|html|head)(?:[^>"'=]|="[^">=]*+")*+)>[^<]*+)*+"""
    rb"""<meta\s+charset="([a-z0-9_-]++)"[\s/]*+>"""
)
_TAG_BEGINS = re.compile(rb"<[a-z!/?]")
_CHARSET = re.compile(rb"""charset\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"';][^\s;]*+))""")
_CHARSET_AT_FIRST = re.compile(rb"""[Cc][Hh][Aa][Rr][Ss][Ee][Tt]\s*=\s*["']?\s*([^\s"';>]+)""")
_XML_DECLARATION = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']\s*([^"'>]*)""")


def is_contradicted(declared: Encoding, body: bytes, utf_8: bool, markup: bool, hint: str) -> bool:
    """Whether the bytes cannot be in the declared encoding, or form words only in another. Not for UTF-8.

    utf_8: whether the bytes are valid UTF-8. hint: the top-level domain.
    """
    found_at_once = guess.by_structure(body)
    if is_wide(declared):  # markup has ASCII characters, which have zero bytes in these encodings
        return not is_wide(found_at_once) and markup and b"\0" not in body[:1000]
    if found_at_once and found_at_once.name != declared.name:
        return True
    if body.isascii():
        return False
    if declared.name in guess.PAIRED_NAMES:
        return not _is_readable_pair(declared, body) and guess.guess_encoding(body, hint, markup=markup) is not None
    if utf_8:
        return True  # text in a single-byte encoding is never valid UTF-8 by chance
    guessed = guess.guess_encoding(body, hint, declared, markup=markup)
    if guessed is None or guessed.encoding.name == declared.name:
        return False
    if declared.name in guess.SINGLE_NAMES:
        return guessed.against >= _DOUBT and guessed.likely >= _WORDS and guessed.places >= _PLACES
    return guessed.against > 0.0 and _error_share(declared.text(body)) > _TOLERATED_ERROR_SHARE


def is_wide(encoding: Encoding | None) -> bool:
    """Whether ASCII characters take two or four bytes."""
    return encoding is not None and encoding.name.startswith(("utf-16", "utf-32"))


def _is_readable_pair(declared: Encoding, body: bytes) -> bool:
    text = declared.text(body[:60_000])[:-1]
    broken, languages = _error_share(text), guess.PAIRED_NAMES[declared.name]
    if broken == 0.0 and languages == ("ja",) and len(_HIRAGANA.findall(text)) >= _SYLLABLES:
        return True
    return (
        broken <= _TOLERATED_ERROR_SHARE
        and max(east_asian_scores(text, language)[1] for language in languages) >= _COMMON
    )


def _error_share(text: str) -> float:
    """Share of invalid characters among those outside ASCII, 0 to 1."""
    others = len(text) - len(text.encode("ascii", "ignore"))
    broken = text.count("\ufffd") + sum(map(text.count, map(chr, range(0x80, 0xA0))))
    return broken / max(1, others)


# Evidence in order of precedence: byte order mark, HTTP header, declaration in the document, validity as UTF-8,
# statistics. Source: HTML Living Standard, 13.2.3 (encoding sniffing), with two deviations: the declaration is searched
# in the first 4,096 bytes, and a declaration that the text contradicts is ignored: UTF-8 if the bytes are invalid,
# another encoding if they are valid UTF-8, and an encoding in which the letters form no words while they do in another.


def decode(body: bytes, header_charset: str, media_type: str, hint: str = "") -> tuple[str, Charset]:
    """The decoded text and its encoding, as in `utf_8_of`."""
    page, charset = utf_8_of(body, header_charset, media_type, hint)
    return text_of(page), charset


def text_of(page: bytes) -> str:
    """Decodes the result of `utf_8_of`."""
    return page.decode("utf-8", "surrogatepass")


def utf_8_of(body: bytes, header_charset: str, media_type: str, hint: str = "") -> tuple[bytes, Charset]:
    """The text in UTF-8, and the encoding it was read in. Total.

    Undecodable bytes become U+FFFD; lone surrogates are kept. Valid UTF-8 is returned as is. header_charset: from
    Content-Type, '' if missing. media_type: essence; only HTML and XML declare an encoding themselves. hint: the
    top-level domain, for the statistics.
    """
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return _to_utf_8(encoding, body[len(mark) :]), Charset(encoding.name, "bom")
    utf_8 = is_utf_8(body)
    markup = _is_markup(media_type)
    refuted = ""
    for encoding, source in _claims(body, header_charset, media_type):
        page = _decode_declaration(encoding, body, utf_8, markup, hint)
        if page is not None:
            return page, Charset(encoding.name, source, refuted or _disagreement(encoding, source, body, media_type))
        refuted = refuted or encoding.name
    if utf_8 and not guess.by_structure(body):
        return body, Charset(UTF_8.name, "statistics" if refuted else "default", refuted)
    guessed = guess.guess_encoding(body, hint, markup=markup)
    encoding = guessed.encoding if guessed else WINDOWS_1252
    return _in_utf_8(encoding.text(body)), Charset(
        encoding.name, "statistics", refuted if refuted != encoding.name else ""
    )


def _decode_declaration(encoding: Encoding, body: bytes, utf_8: bool, markup: bool, hint: str) -> bytes | None:
    """The text in the declared encoding; None if it contradicts the declaration."""
    if encoding is UTF_8:
        return None if guess.by_structure(body) else body if utf_8 else _damaged_utf_8(body)
    return None if is_contradicted(encoding, body, utf_8, markup, hint) else _in_utf_8(encoding.text(body))


def _to_utf_8(encoding: Encoding, body: bytes) -> bytes:
    if encoding is UTF_8 and is_utf_8(body):
        return body
    return _in_utf_8(body.decode(encoding.codec, "replace"))


def _in_utf_8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _disagreement(taken: Encoding, source: str, body: bytes, media_type: str) -> str:
    """The encoding that the document declares, if it differs from the header's."""
    if source != "header" or (
        (match := _CHARSET_AT_FIRST.search(body, 0, _HEAD_BYTES)) and encoding_of(match[1].decode("latin-1")) is taken
    ):
        return ""  # the usual case; reading every meta element would take six times as long
    other = next((encoding for encoding, _ in _claims(body, "", media_type)), taken)
    return "" if other is taken else other.name


def _is_markup(media_type: str) -> bool:
    return "html" in media_type or media_type.endswith("xml")


def _damaged_utf_8(body: bytes) -> bytes | None:
    """The text if more of its characters outside ASCII are valid than invalid, as in a truncated page; else None."""
    text = body.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = len(text) - broken - len(text.encode("ascii", "ignore"))
    return _in_utf_8(text) if whole >= broken or broken == 1 else None


def _claims(body: bytes, header_charset: str, media_type: str) -> Iterator[tuple[Encoding, str]]:
    """The declared encodings, in order of precedence."""
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
    """The encoding in `meta charset` or `meta http-equiv=content-type`, outside other tags, scripts and comments.

    head: in lower case.
    """
    if b"charset" not in head:
        return None
    if (usual := _USUAL_META.match(head)) and (encoding := encoding_of(usual[1].decode())):
        return _readable_as_ascii(encoding)
    at = 0
    while begin := _TAG_BEGINS.search(head, at):
        tag = _TAG.match(head, begin.start())
        if tag is None:
            return None  # unclosed tag
        at = tag.end()
        if tag[1] == b"meta" and (encoding := encoding_of(_label(tag[2]))):
            return _readable_as_ascii(encoding)
        if tag[1] == b"script" and head[begin.start() + 1] != ord("/"):
            at = head.find(b"</script", at)
            if at < 0:
                return None
    return None


def _label(attributes: bytes) -> str:
    """The encoding in the attributes of a `meta` element; '' if there is none.

    Of duplicate attributes the first counts.
    """
    values: dict[bytes, bytes] = {}
    for name, value in _ATTRIBUTE.findall(attributes):
        values.setdefault(name, value[1:-1] if value[:1] in (b'"', b"'") else value)
    if b"charset" in values:
        return values[b"charset"].decode("latin-1")
    charset = _CHARSET.search(values.get(b"content", b"")) if values.get(b"http-equiv") == b"content-type" else None
    return (charset[1] or charset[2] or charset[3] or b"").decode("latin-1") if charset else ""


def _xml_encoding(head: bytes) -> Encoding | None:
    """The encoding in the XML declaration, or UTF-16 without byte order mark as recognised from its bytes."""
    for start, encoding in ((b"<\0?\0x\0", UTF_16_LE), (b"\0<\0?\0x", UTF_16_BE)):
        if head.startswith(start):
            return encoding
    match = _XML_DECLARATION.match(head)
    declared = encoding_of(match[1].decode("latin-1")) if match else None
    return _readable_as_ascii(declared) if declared else None


def _readable_as_ascii(encoding: Encoding) -> Encoding:
    """A declaration readable as ASCII cannot be in UTF-16: the standard replaces it with UTF-8."""
    return UTF_8 if encoding in (UTF_16_LE, UTF_16_BE) else encoding
