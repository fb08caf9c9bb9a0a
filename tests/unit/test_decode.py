"""Character encoding of a document: order of the sources, labels, prescan."""

from __future__ import annotations

import pytest

from periplus.document.decode import decode
from periplus.document.guess import encoding_of
from periplus.model.page import Charset

CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. Ještě jednou, prosím: čtyři šneci žerou hlávkový salát."


def html(declaration: str, encoding: str) -> bytes:
    return f"<html><head>{declaration}<title>{CZECH}</title>".encode(encoding)


@pytest.mark.parametrize(
    ("body", "header", "name", "source"),
    [
        (b"\xef\xbb\xbf" + CZECH.encode(), "windows-1250", "utf-8", "bom"),
        (CZECH.encode("utf-16"), "utf-8", "utf-16le", "bom"),
        (b"\xfe\xff" + CZECH.encode("utf-16-be"), "", "utf-16be", "bom"),
        (html("", "cp1250"), "Windows-1250", "windows-1250", "header"),
        (html("<meta charset=utf-8>", "iso-8859-2"), "latin2", "iso-8859-2", "header"),
        (html("", "utf-16-le"), "utf-16", "utf-16le", "header"),
        (html("<meta charset='windows-1250'>", "cp1250"), "", "windows-1250", "meta"),
        (html("<META CHARSET = iso-8859-2 />", "iso-8859-2"), "no-such", "iso-8859-2", "meta"),
        (
            html('<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-2">', "iso-8859-2"),
            "",
            "iso-8859-2",
            "meta",
        ),
        (
            html('<meta content="text/html; charset=cp1250" http-equiv=content-type>', "cp1250"),
            "",
            "windows-1250",
            "meta",
        ),
        (html("<!-- <meta charset=koi8-r> --><meta charset=cp1250>", "cp1250"), "", "windows-1250", "meta"),
        (
            html("<meta name=description content='charset=koi8-r'><meta charset=cp1250>", "cp1250"),
            "",
            "windows-1250",
            "meta",
        ),
        (html("<meta charset=utf-16>", "utf-8"), "", "utf-8", "meta"),
        (b'<?xml version="1.0" encoding="iso-8859-2"?>' + html("", "iso-8859-2"), "", "iso-8859-2", "xml"),
        (
            b'<?xml version="1.0" encoding="koi8-r"?>' + html("<meta charset=iso-8859-2>", "iso-8859-2"),
            "",
            "iso-8859-2",
            "meta",
        ),
        ('<?xml version="1.0"?><a/>'.encode("utf-16-le"), "", "utf-16le", "xml"),
        (html("", "utf-8"), "", "utf-8", "default"),
        (b"plain", "", "utf-8", "default"),
        (b"", "", "utf-8", "default"),
    ],
)
def test_the_sources_of_an_encoding_have_an_order(body, header, name, source):
    text, charset = decode(body, header, "text/html")
    assert (charset.name, charset.source) == (name, source)
    assert "Příliš žluťoučký" in text or len(body) < 60


def test_an_undeclared_encoding_is_detected():
    text, charset = decode((CZECH * 5).encode("cp1250"), "", "text/plain", "cz")
    assert charset.source == "statistics"
    assert CZECH in text


def test_ours_a_false_declaration_of_utf_8_is_ignored():
    text, charset = decode(html("<meta charset=windows-1250>", "cp1250"), "utf-8", "text/html")
    assert (charset, CZECH in text) == (Charset("windows-1250", "meta", "utf-8"), True)


def test_chinese_whose_bytes_are_also_valid_utf_8_stays_as_declared():
    body = "泰山石头透水".encode("gbk")
    assert body.decode("utf-8") and decode(body, "gbk", "text/html") == ("泰山石头透水", Charset("gbk", "header"))


def test_utf_8_with_a_few_invalid_bytes_stays_utf_8():
    cut = CZECH.encode()[:2]  # ends inside a character
    assert decode(b"abc" + CZECH.encode() + cut, "utf-8", "text/html") == (
        "abc" + CZECH + "P\ufffd",
        Charset("utf-8", "header"),
    )


def test_plain_text_cannot_declare_its_encoding():
    assert decode(html("<meta charset=windows-1250>", "utf-8"), "", "text/plain")[1] == Charset("utf-8", "default")


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("ISO-8859-1", "windows-1252"),
        ("ascii", "windows-1252"),
        (" UTF8\n", "utf-8"),
        ("iso-8859-9", "windows-1254"),
        ("gb2312", "gbk"),
        ("sjis", "shift_jis"),
        ("tis-620", "windows-874"),
        ("ks_c_5601-1987", "euc-kr"),
        ("x-mac-ce", "x-mac-ce"),
        ("cp852", "ibm852"),
        ("unicode", "utf-16le"),
    ],
)
def test_labels_of_the_encoding_standard_are_known(label, name):
    encoding = encoding_of(label)
    assert encoding is not None
    assert encoding.name == name
    b"a".decode(encoding.codec, "replace")


@pytest.mark.parametrize("label", ["", "utf-7", "idna", "rot13", "none", "\u0130", "a" * 9999])
def test_other_labels_are_unknown(label):
    assert encoding_of(label) is None


@pytest.mark.parametrize(
    ("header", "body", "other"),
    [
        ("utf-8", b"<meta charset=utf-8>", ""),
        ("utf-8", b"<p>nothing is said", ""),
        ("iso-8859-2", b"<meta charset='utf-8'>", "utf-8"),
        ("utf-8", b'<meta http-equiv=content-type content="text/html; charset=windows-1250">', "windows-1250"),
        ("", b"<meta charset=windows-1250>", ""),
    ],
)
def test_a_declaration_that_contradicts_the_header_is_reported(header, body, other):
    assert decode(body, header, "text/html")[1].other == other


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ('<p title="x>\n<meta charset=iso-8859-2>\n<p>">', ""),
        ("<script>'<meta charset=iso-8859-2>'</script><meta charset=koi8-r>", "koi8-r"),
        ("<!--><meta charset=koi8-r>", "koi8-r"),
        ("<meta charset=euc-jp", ""),
        ('<meta http-equiv=content-type content="text/html; charset=\'koi8-r">', ""),
        ("<meta http-equiv=content-type content=\"text/html; charset='koi8-r'\">", "koi8-r"),
        ("<meta charset=koi8-r charset=big5>", "koi8-r"),
        ("<meta foo='\"' charset=koi8-r>", "koi8-r"),
        ("<meta/charset='koi8-r'/>", "koi8-r"),
        ("<meta charset='' http-equiv=content-type content='charset=koi8-r'><meta charset=big5>", "big5"),
    ],
)
def test_a_declaration_counts_only_if_the_standards_prescan_finds_it(head: str, name: str):
    charset = decode(head.encode() + b"<p>plain", "", "text/html")[1]
    assert (charset.source, charset.name) == (("meta", name) if name else ("default", "utf-8"))
