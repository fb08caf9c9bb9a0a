"""Encodings: by label, and by the statistics of a text's letters."""

from __future__ import annotations

import codecs
import math
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote_from_bytes

from periplus.document.letters import (
    SCRIPTS,
    SIGNS_BESIDE_WORDS,
    STEP,
    east_asian_scores,
    least_chances,
    letters_of,
    log_chances,
    sign_class,
    trigrams_of,
)
from periplus.document.trigrams import Trigrams
from periplus.values import frozen

if TYPE_CHECKING:  # imports NumPy
    from periplus.model.arrays import Floats, Ints, Ints32, Unsigned8, Unsigned32


# URL Standard, 1.3: special-query percent-encode set
_QUERY_CHARACTERS = "".join(map(chr, range(0x21, 0x7F))).translate(dict.fromkeys(map(ord, "\"#<>'")))
_ISO_2022_SHIFTS = "\x0e\x0f\x1b"
# Name in the standard, Python's codec if different, `:`, labels (the name is one too). Source: Encoding Living
# Standard, 4.2. Omitted: `replacement` and `x-user-defined`, in which no page is written. After the dashes: Central
# European encodings of the old web that are not in the standard.
_TABLE = """
utf-8 : unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
ibm866 cp866 : 866 cp866 csibm866
iso-8859-2 : csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3 : csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4 : csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5 : csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6 : arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i iso-ir-127
iso-8859-6 : iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 : csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek
iso-8859-8 : csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 visual
iso-8859-8-i iso-8859-8 : csiso88598i logical
iso-8859-10 : csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 : iso8859-13 iso885913
iso-8859-14 : iso8859-14 iso885914
iso-8859-15 : csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 :
koi8-r : cskoi8r koi koi8 koi8_r
koi8-u : koi8-ru
macintosh mac-roman : csmacintosh mac x-mac-roman
windows-874 cp874 : dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250 cp1250 : cp1250 x-cp1250
windows-1251 cp1251 : cp1251 x-cp1251
windows-1252 cp1252 : ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1
windows-1252 cp1252 : iso_8859-1:1987 l1 latin1 us-ascii x-cp1252
windows-1253 cp1253 : cp1253 x-cp1253
windows-1254 cp1254 : cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 x-cp1254
windows-1255 cp1255 : cp1255 x-cp1255
windows-1256 cp1256 : cp1256 x-cp1256
windows-1257 cp1257 : cp1257 x-cp1257
windows-1258 cp1258 : cp1258 x-cp1258
x-mac-cyrillic mac-cyrillic : x-mac-ukrainian
gbk gb18030 : chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
gb18030 :
big5 big5hkscs : big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp : cseucpkdfmtjapanese x-euc-jp
iso-2022-jp : csiso2022jp
shift_jis cp932 : csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr cp949 : cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16be utf-16-be : unicodefffe
utf-16le utf-16-le : csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
--------
x-mac-ce mac-latin2 : macce mac-ce x-mac-centraleurroman
x-mac-croatian mac-croatian :
x-mac-romanian mac-romanian :
x-mac-turkish mac-turkish :
x-mac-greek mac-greek :
ibm437 cp437 : 437 cp437 cspc8codepage437
ibm720 cp720 : 720 cp720
ibm737 cp737 : 737 cp737
ibm775 cp775 : 775 cp775 cspc775baltic
ibm850 cp850 : 850 cp850 cspc850multilingual
ibm852 cp852 : 852 cp852 cspcp852
ibm855 cp855 : 855 cp855 csibm855
ibm857 cp857 : 857 cp857 csibm857
ibm862 cp862 : 862 cp862 cspc862latinhebrew
ibm869 cp869 : 869 cp869 csibm869
cp1125 : 1125 cp866u ibm1125 ruscii
kamenicky - : cp867 cp895 kam kamenicky keybcs2 x-kam-cp895
utf-32le utf-32-le : utf-32 utf32
utf-32be utf-32-be :
"""  # noqa: E501
# Used by DOS programs in Bohemia from 1985 on: its letters, and from 0xB0 on code page 437. Source: the table known as
# KEYBCS2, code page 895
_KAMENICKY = (
    "".join(map(chr, range(128)))
    + "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼§«»"
    + bytes(range(0xB0, 0x100)).decode("cp437")
)
_KAMENICKY_BYTES = codecs.charmap_build(_KAMENICKY)
_WEST = "de nl en da sv nb fi is fr es it pt ca id sq"
_CENTRE = "cs sk pl hu ro hr sl sq de en"
# (encoding, script, languages written in it, rarity compared to the first of its script, in nats)
_CANDIDATES = (
    ("windows-1252", "latin", _WEST, 0.0),
    ("iso-8859-15", "latin", _WEST, 1.0),
    ("macintosh", "latin", _WEST, 1.5),
    ("ibm850", "latin", _WEST, 1.5),
    ("ibm437", "latin", _WEST, 2.5),
    ("windows-1250", "latin", _CENTRE, 0.2),
    ("iso-8859-2", "latin", _CENTRE, 0.5),
    ("x-mac-ce", "latin", "cs sk pl hu", 1.5),
    ("ibm852", "latin", "cs sk pl hu ro hr sl", 1.5),
    ("kamenicky", "latin", "cs sk", 1.5),
    ("iso-8859-16", "latin", "ro", 2.0),
    ("x-mac-croatian", "latin", "hr sl", 3.0),
    ("x-mac-romanian", "latin", "ro", 3.0),
    ("windows-1254", "latin", "tr", 0.2),
    ("x-mac-turkish", "latin", "tr", 3.0),
    ("ibm857", "latin", "tr", 2.0),
    ("windows-1257", "latin", "et lt lv", 0.2),
    ("iso-8859-13", "latin", "et lt lv", 1.0),
    ("iso-8859-4", "latin", "et lt lv", 2.0),
    ("ibm775", "latin", "et lt lv", 2.0),
    ("windows-1251", "cyrillic", "", 0.0),
    ("koi8-r", "cyrillic", "ru", 0.5),
    ("koi8-u", "cyrillic", "uk be", 0.5),
    ("iso-8859-5", "cyrillic", "", 1.5),
    ("ibm866", "cyrillic", "ru bg be", 1.5),
    ("ibm855", "cyrillic", "ru bg sr mk", 3.0),
    ("cp1125", "cyrillic", "uk", 2.0),
    ("x-mac-cyrillic", "cyrillic", "", 2.5),
    ("windows-1253", "greek", "", 0.0),
    ("iso-8859-7", "greek", "", 0.5),
    ("ibm737", "greek", "", 2.0),
    ("ibm869", "greek", "", 3.0),
    ("x-mac-greek", "greek", "", 3.0),
    ("windows-1255", "hebrew", "", 0.0),
    ("iso-8859-8", "hebrew", "", 1.0),
    ("ibm862", "hebrew", "", 2.0),
    ("windows-1256", "arabic", "", 0.0),
    ("iso-8859-6", "arabic", "ar", 1.0),
    ("ibm720", "arabic", "ar", 2.5),
    ("windows-874", "thai", "", 0.0),
)
# (encoding, languages of its frequent characters)
_PAIR_CANDIDATES = (
    ("gb18030", "zh zh-hant"),
    ("big5", "zh-hant"),
    ("shift_jis", "ja"),
    ("euc-jp", "ja"),
    ("euc-kr", "ko"),
)
SINGLE_NAMES = frozenset(name for name, *_ in _CANDIDATES)
PAIRED_NAMES = {"gbk": ("zh", "zh-hant"), **{name: tuple(spoken.split()) for name, spoken in _PAIR_CANDIDATES}}
# language: top-level domains of countries where it is written
_LANGUAGE_DOMAINS = """
cs: cz / sk: sk / pl: pl / hu: hu / ro: ro md / hr: hr ba rs me / sl: si / sq: al / de: de at ch li lu / nl: nl be / da: dk
nb: no / sv: se / fi: fi / is: is / et: ee / lt: lt / lv: lv / fr: fr be ch lu / es: es mx ar cl co pe ve uy ec cu / it: it ch
pt: pt br / tr: tr / id: id / ru: ru su xn--p1ai by ua kz / uk: ua / be: by / bg: bg / sr: rs me ba / mk: mk / el: gr cy
he: il / ar: sa eg ae jo kw qa sy iq ma dz tn / fa: ir / th: th / ja: jp / ko: kr / zh: cn sg / zh-hant: tw hk mo
en: uk us au ie nz edu gov mil
"""  # noqa: E501
_HINT = 8.0  # nats in favour of a hinted language
_BODY_BYTES = 400_000  # taken from the body before markup is removed
_TEXT_BYTES = 60_000  # read of the remaining text, if they are not all ASCII
_FIRST_PLACES = 60  # places that all candidates read
_UNUSUAL = 3.0  # nats: rarity of a language in an encoding that is not made for it
_PLACES = 3_000  # most places that are read
_STRANGE = -3.8  # nats per place: a less likely text may not be in a single-byte encoding
_BEHIND = 25.0  # nats behind the best at which a candidate is dropped
_TOLERATED_DAMAGE = 0.005  # tolerated share of invalid characters
_COMMON = 0.6  # least share of the 2,500 known characters in an East Asian text: real texts have 0.95
_PAIR_RARITY = 4.0  # nats: rarity of East Asian texts compared to the rest
_KANA = re.compile("[\u3041-\u30fa]")
_NO_KANA = 6.0  # nats: rarity of Japanese without kana
_ASCII_PLACES = 400
# Most nats that the ASCII parts count against a language: names, terms and whole parts in another language are common
_ASCII_AGAINST = 8.0
_DRAWING_CHARACTERS = bytes.maketrans(b"|+=_-*~#.", b"         ")  # characters used to draw tables and lines
_MARKUP = re.compile(
    rb"<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)|<[a-zA-Z/!?][^>]*>|&#?\w{1,31};", re.DOTALL | re.IGNORECASE
)
_LANG = re.compile(rb"""<html\b[^>]*?\blang\s*=\s*["']?([a-zA-Z-]{2,20})""", re.IGNORECASE)
# Log-probability, in steps, of (no letter, lower case, capital) followed by (no letter, lower case, capital): capitals
# begin words or fill them
_CASES = (0, -2, -12, 0, 0, -48, 0, -4, -6)
_INSIDE_A_WORD = -4 * STEP  # log-probability, in steps, of a letter after a letter and a quote or a sign like ³


@frozen
class Encoding:
    """An encoding of the web."""

    name: str  # of the Encoding Living Standard, lower case
    codec: str  # Python's codec that decodes as the standard specifies; "-": Python has none

    def text(self, body: bytes) -> str:
        """Decodes bytes; undecodable ones become U+FFFD."""
        if self.codec == "-":
            return codecs.charmap_decode(body, "replace", _KAMENICKY)[0]
        return body.decode(self.codec, "replace")

    def url_query(self, query: str) -> str:
        """The query of a link as a browser sends it from a page in this encoding: encoded, then percent-encoded.

        A character missing in the encoding becomes a percent-encoded numeric reference. For Unicode encodings the query
        is returned unchanged, because URL parsers use UTF-8 by default.

        Source: URL Living Standard, 1.3 (percent-encode after encoding) and 4.4 (query state); Encoding Living
        Standard, 4.3 (output encodings), 8 to 12.
        """
        if self.codec.startswith("utf-") or (query.isascii() and query.isprintable()):
            return query
        return quote_from_bytes(
            self._bytes("".join(char if " " <= char <= "~" else self._in_query(char) for char in query)),
            _QUERY_CHARACTERS,
        )

    def _in_query(self, char: str) -> str:
        """The character if the codec encodes it as the standard specifies; else its percent-encoded replacement."""
        if self.name == "iso-2022-jp" and char in _ISO_2022_SHIFTS:
            return "%26%2365533%3B"
        if self.name == "gbk" and char == "€":
            return "%80"
        try:
            written = self._bytes(char)
        except UnicodeEncodeError:
            written = b""
        # Python's codecs encode more than the standard: four bytes in gbk, JIS X 0212 in euc-jp, the Hong Kong part of
        # big5
        lacking = (
            not written
            or char == "\ue5e5"
            or (self.name in ("gbk", "euc-jp") and len(written) > 2)
            or (self.name == "big5" and b"\x7f" < written < b"\xa1")
        )
        return f"%26%23{ord(char)}%3B" if lacking else char

    def _bytes(self, text: str) -> bytes:
        return (
            codecs.charmap_encode(text, "strict", _KAMENICKY_BYTES)[0] if self.codec == "-" else text.encode(self.codec)
        )


def _by_label() -> dict[str, Encoding]:
    labels: dict[str, Encoding] = {}
    for line in _TABLE.split("\n"):
        head, colon, others = line.partition(":")
        if colon:
            name, *codec = head.split()
            encoding = Encoding(name, codec[0] if codec else name)
            labels.update((label, encoding) for label in (name, *others.split()))
    return labels


_LABELS = _by_label()
UTF_8 = _LABELS["utf-8"]
UTF_16_LE = _LABELS["utf-16le"]
UTF_16_BE = _LABELS["utf-16be"]
WINDOWS_1252 = _LABELS["windows-1252"]


def encoding_of(label: str) -> Encoding | None:
    """The encoding with a label as in pages and headers; None if unknown."""
    return _LABELS.get(label.strip("\t\n\f\r ").lower())


# First structure (zero bytes, escape sequences, byte pairs of East Asian encodings), then likelihood: each candidate
# decodes the bytes, and trigrams of each of its languages give the likelihood of the result. Only bytes outside ASCII
# count, since all candidates decode ASCII alike.

_MUCH_KANA, _COMMON_WITH_KANA = 40, 0.4  # lists of rare characters occur between sentences
_FEW_SIGNS, _ALONE = 6, 20  # with so few characters, each among so many others, it is not an East Asian text


class Guess(NamedTuple):
    """An encoding, and by how many nats it is likelier than the next one with a different result, and than the declared
    one.
    """

    encoding: Encoding
    ahead: float
    places: int  # number of places read
    likely: float  # log-likelihood per place outside ASCII, in nats: words have -1 to -4
    # 0.0: nothing declared, or the same result; infinite: the declared encoding is impossible
    against: float = 0.0


def guess_encoding(
    body: bytes, hint: str = "", declared: Encoding | None = None, *, markup: bool = True
) -> Guess | None:
    """The most likely encoding of the text; None if it is all ASCII.

    hint: the top-level domain. markup: whether it may contain some.
    """
    if encoding := by_structure(body):
        return Guess(encoding, math.inf, 0, 0.0, 0.0 if encoding is declared else math.inf)
    languages = hinted_languages(body, hint)
    for part in (body[:_BODY_BYTES], body[-_BODY_BYTES:]):
        for text in (_MARKUP.sub(b" ", part), part) if markup else (part,):
            if not text.isascii():
                return _by_letters(
                    text[:_TEXT_BYTES] if not text[:_TEXT_BYTES].isascii() else text, languages, declared
                )
    return None


@cache
def _languages_at() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for entry in _LANGUAGE_DOMAINS.replace("\n", "/").split("/"):
        language, _, tops = entry.strip().partition(":")
        for top in tops.split():
            languages.setdefault(top, []).append(language)
    return languages


def hinted_languages(body: bytes, hint: str) -> tuple[str, ...]:
    """The languages suggested by the top-level domain and the lang attribute."""
    match = _LANG.search(body, 0, 4096)
    language = match[1].decode("ascii").lower() if match else ""
    if language.startswith(("zh-tw", "zh-hant", "zh-hk")):
        language = "zh-hant"
    language = language if language == "zh-hant" else language.partition("-")[0]
    return (*_languages_at().get(hint, ()), {"no": "nb", "nn": "nb"}.get(language, language))


def by_structure(body: bytes) -> Encoding | None:
    """The encoding recognised by zero bytes or escape sequences."""
    head = body[:4096]
    if b"\0" in head:
        return _by_zeros(head)
    if b"\x1b" in head and (b"\x1b$" in head or b"\x1b(J" in head):  # searching one byte is ten times as fast
        encoding = encoding_of("iso-2022-jp")
        return encoding if encoding and _reads(head[: head.rfind(b"\x1b") + 3], encoding) else None
    return None


def _by_zeros(head: bytes) -> Encoding | None:
    """The UTF-16 or UTF-32 encoding that matches the positions of zero bytes."""
    places = [head[start::4].count(0) for start in range(4)]
    quarter = len(head) // 4
    if quarter and places[2] == places[3] == quarter:
        return encoding_of("utf-32le")
    if quarter and places[0] == places[1] == quarter:
        return encoding_of("utf-32be")
    even, odd = places[0] + places[2], places[1] + places[3]
    encoding = UTF_16_BE if even > odd else UTF_16_LE
    return encoding if min(even, odd) * 20 <= max(even, odd) >= 0.02 * len(head) and _reads(head, encoding) else None


def _reads(data: bytes, encoding: Encoding) -> bool:
    try:
        data[: len(data) & ~3].decode(encoding.codec) if encoding.name.startswith("utf") else data.decode(
            encoding.codec
        )
    except UnicodeDecodeError:
        return False
    return True


# ---- the East Asian encodings


def _pair_scores(text: bytes, languages: tuple[str, ...]) -> list[tuple[float, str]]:
    """The East Asian encodings that can decode the text, with its log-likelihood outside ASCII."""
    scores = []
    for name, spoken in _PAIR_CANDIDATES:
        encoding = _encoding(name)
        if encoding.text(text[:2000])[:-1].count("\ufffd") <= _TOLERATED_DAMAGE * len(text[:2000]):
            read = encoding.text(text[:20_000])
            signs = len(read) - len(read.encode("ascii", "ignore"))
            if signs < _FEW_SIGNS and len(read) > _ALONE * signs:
                continue
            for language in spoken.split():
                score, common = east_asian_scores(read, language)
                kana = len(_KANA.findall(read)) if language == "ja" else 0
                if common >= (_COMMON_WITH_KANA if kana >= _MUCH_KANA else _COMMON):
                    seldom = _PAIR_RARITY + (0.0 if kana or language != "ja" else _NO_KANA)
                    scores.append((score - seldom + (_HINT if language in languages else 0.0), name))
    return scores


# ---- one byte a letter


def _encoding(name: str) -> Encoding:
    return encoding_of(name) or WINDOWS_1252  # every name in the tables above is known


class _Readings(NamedTuple):
    """The decoded bytes in all encodings of a script. [encodings, 256] each."""

    trigrams: Trigrams
    languages: tuple[str, ...]
    names: tuple[str, ...]
    symbols: Ints32
    shares: Ints32  # log-probability of the character among those with its symbol, in steps
    cases: Ints32  # 0: not a letter, 1: lower case, 2: capital
    chars: Unsigned32
    classes: Ints  # see `letters.sign_class`
    priors: Floats  # [encodings, languages], nats; -inf: not written in it


@cache
def _readings(script: str) -> _Readings:
    import numpy as np

    letters = letters_of(script)
    rows = [row for row in _CANDIDATES if row[1] == script]
    shape = (len(rows), 256)
    symbols, shares, cases = (np.zeros(shape, np.int32) for _ in range(3))
    chars = np.zeros(shape, np.uint32)
    classes = np.zeros(shape, np.int64)
    priors = np.full((len(rows), len(letters.languages)), -np.inf)
    for number, (name, _, languages, seldom) in enumerate(rows):
        encoding = _encoding(name)
        for byte, char in enumerate(encoding.text(bytes(range(256)))):
            symbol, share = letters.symbol_of(char)
            symbols[number, byte], shares[number, byte] = symbol, round(share * STEP)
            cases[number, byte] = 2 if char.isupper() else 1 if char.isalpha() else 0
            chars[number, byte] = ord(char)
            classes[number, byte] = sign_class(char)
        for language in languages.split() or letters.languages:
            priors[number, letters.languages.index(language)] = -seldom
    if script in ("hebrew", "arabic", "thai"):
        cases[:] = 0
    names = tuple(name for name, *_ in rows)
    return _Readings(trigrams_of(script), letters.languages, names, symbols, shares, cases, chars, classes, priors)


def _scores(readings: _Readings, chosen: Ints, data: Unsigned8, places: Ints) -> Floats:
    """Log-likelihood, in nats, of the text at the places in each chosen encoding and language. [chosen, languages]"""
    import numpy as np

    table = readings.symbols[chosen]
    first, second, third = (data[places - back] for back in (2, 1, 0))
    classes = readings.classes[chosen]
    triples = classes[:, first], classes[:, second], classes[:, third]
    total = log_chances(readings.trigrams, table[:, first], table[:, second], table[:, third], least_chances()[triples])
    case = readings.cases[chosen]
    shared = readings.shares[chosen][:, third] + np.array(_CASES)[case[:, second] * 3 + case[:, third]]
    inside = np.isin(triples[1], SIGNS_BESIDE_WORDS) & (triples[0] == 0) & (triples[2] == 0)
    shared += _INSIDE_A_WORD * inside
    return np.asarray(total + shared.sum(1)[:, None] / STEP)


def _spread(places: Ints, most: int) -> Ints:
    """At most `most` of the places, evenly spaced."""
    return places if len(places) <= most else places[:: -(-len(places) // most)]


def _distinct(data: Unsigned8, places: Ints) -> Ints:
    """One place for each distinct three bytes: repetitions in menus, titles or table rows are not
    additional evidence.
    """
    import numpy as np

    wide = data.astype(np.int64)
    return places[np.unique(wide[places - 2] << 16 | wide[places - 1] << 8 | wide[places], return_index=True)[1]]


def _by_letters(text: bytes, languages: tuple[str, ...], declared: Encoding | None) -> Guess:
    """A race: all candidates read a few places, those far behind are dropped, the rest read four times as many, and so
    on.
    """
    import numpy as np

    data = np.frombuffer(b"  " + b" ".join(text.translate(_DRAWING_CHARACTERS).split()) + b"  ", np.uint8)
    high = data >= 0x80
    touching = high[2:] | high[1:-1] | high[:-2]
    places = _distinct(data, _spread(np.flatnonzero(touching) + 2, _PLACES))
    order = np.random.default_rng(0).permutation(len(places))  # in random order, so that any prefix is a sample
    standing = _start(
        data, _spread(np.flatnonzero(~touching & (data[2:] > 0x40)) + 2, _ASCII_PLACES), languages, declared
    )
    done, size = 0, _FIRST_PLACES
    while True:
        part = places[order[done : done + size]]
        standing = {
            script: (chosen, scores + _scores(_readings(script), chosen, data, part))
            for script, (chosen, scores) in standing.items()
        }
        done, size = done + len(part), size * 4
        race = _rank_candidates(standing)
        if done == len(places) or _lead(race, data) > _BEHIND:
            break
        standing = _drop_trailing(standing, race[0].score - _BEHIND)
    best = race[0].score
    if best < _STRANGE * done or done < _FIRST_PLACES:
        paired = max(_pair_scores(text, languages), default=(-math.inf, ""))
        likely = paired[0] * done / float(touching.sum())  # scaled to the number of places read by the other candidates
        if likely > best:
            encoding = _encoding(paired[1])
            of_declared = next(
                (runner.score for runner in race if declared and runner.name == declared.name), best - _BEHIND
            )
            return Guess(encoding, likely - best, done, likely / done, likely - of_declared)
    encoding = _encoding(race[0].name)
    return Guess(encoding, _lead(race, data), done, best / done, _against(race, data, declared) if declared else 0.0)


def _against(race: list[_Runner], data: Unsigned8, declared: Encoding) -> float:
    """By how many nats the best is ahead of the declared encoding; 0.0 if both decode the text alike."""
    import numpy as np

    present = np.flatnonzero(np.bincount(data, minlength=256)).astype(np.uint8).tobytes()
    if declared.text(present) == _encoding(race[0].name).text(present):
        return 0.0
    return next((race[0].score - runner.score for runner in race if runner.name == declared.name), math.inf)


class _Runner(NamedTuple):
    score: float
    script: str
    number: int

    @property
    def name(self) -> str:
        return _readings(self.script).names[self.number]


def _rank_candidates(standing: _Standing) -> list[_Runner]:
    """The remaining candidates, best first."""
    runners = []
    for script, (chosen, scores) in standing.items():
        runners += [
            _Runner(float(best), script, int(number)) for number, best in zip(chosen, scores.max(1), strict=True)
        ]
    return sorted(runners, reverse=True)


# By script: the remaining encodings, and their scores [encodings, languages]
_Standing = dict[str, tuple["Ints", "Floats"]]


def _drop_trailing(standing: _Standing, least: float) -> _Standing:
    left = {}
    for script, (chosen, scores) in standing.items():
        stays = scores.max(1) >= least
        if stays.any():
            left[script] = chosen[stays], scores[stays]
    return left


def _start(data: Unsigned8, places: Ints, languages: tuple[str, ...], declared: Encoding | None) -> _Standing:
    """Scores before any byte outside ASCII is read: frequency of the encodings, hints, and language of the
    ASCII text.
    """
    import numpy as np

    latin = _scores(_readings("latin"), np.array([0]), data, places)[0]
    latin = np.maximum(latin - latin.max(), -_ASCII_AGAINST)
    started = {}
    for script in SCRIPTS:
        readings = _readings(script)
        hints = np.array([_HINT if language in languages else 0.0 for language in readings.languages])
        priors = readings.priors
        if declared and declared.name in readings.names:  # a declared encoding may contain any language
            priors = priors.copy()
            row = priors[readings.names.index(declared.name)]
            row[:] = np.maximum(row, -_UNUSUAL)
        scores = priors + hints + (latin if script == "latin" else -min(_ASCII_AGAINST, float(len(places))))
        started[script] = np.arange(len(readings.names)), scores
    return started


def _lead(race: list[_Runner], data: Unsigned8) -> float:
    """By how many nats the best is ahead of the next one with a different result."""
    import numpy as np

    present = np.flatnonzero(np.bincount(data, minlength=256))
    mine = _readings(race[0].script).chars[race[0].number, present]
    for runner in race[1:]:
        if not np.array_equal(_readings(runner.script).chars[runner.number, present], mine):
            return race[0].score - runner.score
    return math.inf
