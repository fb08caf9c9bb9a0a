"""Which encoding does a label name, and which Python codec reads it?"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from urllib.parse import quote_from_bytes

_KEPT_IN_QUERY = "".join(map(chr, range(0x21, 0x7F))).translate(dict.fromkeys(map(ord, "\"#<>'")))  # URL Standard, 1.3: special-query percent-encode set
_ISO_2022_SHIFTS = "\x0e\x0f\x1b"


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding of the web."""

    name: str  # of the Encoding Living Standard, lower case
    codec: str  # Python's codec that reads it as the standard says; "-": Python has none

    def text(self, body: bytes) -> str:
        """What the bytes spell; U+FFFD for those that spell nothing."""
        if self.codec == "-":
            return codecs.charmap_decode(body, "replace", _KAMENICKY)[0]
        return body.decode(self.codec, "replace")

    def url_query(self, query: str) -> str:
        """The query of a link on a page in this encoding, as a browser sends it: its bytes in the encoding, percent-encoded.

        A character that the encoding lacks is a numeric reference, percent-encoded. In an encoding of Unicode the query stays as it is:
        there a parser of URLs writes UTF-8, as it does by itself.
        Source: URL Living Standard, 1.3 (percent-encode after encoding) and 4.4 (query state); Encoding Living Standard, 4.3 (output encodings), 8 to 12.
        """
        if self.codec.startswith("utf-") or (query.isascii() and query.isprintable()):
            return query
        return quote_from_bytes(self._bytes("".join(char if " " <= char <= "~" else self._in_query(char) for char in query)), _KEPT_IN_QUERY)

    def _in_query(self, char: str) -> str:
        """The character when the codec writes it as the standard says, else what stands for it there, percent-encoded."""
        if self.name == "iso-2022-jp" and char in _ISO_2022_SHIFTS:
            return "%26%2365533%3B"
        if self.name == "gbk" and char == "€":
            return "%80"
        try:
            written = self._bytes(char)
        except UnicodeEncodeError:
            written = b""
        # Python's codecs write more than those of the standard: four bytes in gbk, JIS X 0212 in euc-jp, the Hong Kong part of big5
        lacking = (
            not written or char == "\ue5e5" or (self.name in ("gbk", "euc-jp") and len(written) > 2) or (self.name == "big5" and b"\x7f" < written < b"\xa1")
        )
        return f"%26%23{ord(char)}%3B" if lacking else char

    def _bytes(self, text: str) -> bytes:
        return codecs.charmap_encode(text, "strict", _KAMENICKY_BYTES)[0] if self.codec == "-" else text.encode(self.codec)


# name of the standard, Python's codec when it is not the same, `:`, labels (the name itself is one).
# Source: Encoding Living Standard, 4.2. Left out: `replacement` and `x-user-defined`, which no page is written in.
# Ours, after the line of dashes: Central European encodings of the old web that the standard forgot.
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
"""

# What DOS programs of Bohemia wrote from 1985 on: the letters and, from 0xB0, the rest of code page 437.
# Source: the table that RFC-less literature calls KEYBCS2, code page 895.
_KAMENICKY = "".join(map(chr, range(128))) + "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼§«»" + bytes(range(0xB0, 0x100)).decode("cp437")
_KAMENICKY_BYTES = codecs.charmap_build(_KAMENICKY)


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
    """The encoding of a label as pages and headers write it; None when it names none."""
    return _LABELS.get(label.strip("\t\n\f\r ").lower())
