"""What holds for the reading of any bytes and any text."""

from __future__ import annotations

from array import array

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.document.decode import decode
from periplus.document.guess import guessed
from periplus.document.language import (
    KINDS,
    SCRIPTS,
    STEP,
    _symbols,
    language_of,
    log_chances,
    page_language,
    trigrams_of,
)
from periplus.document.utf8 import is_utf_8
from testweb.tongues import ENCODINGS, TEXTS, written

bodies = st.binary(max_size=400) | st.sampled_from(
    [written(TEXTS[language][0], name) for language in TEXTS for name in ENCODINGS[language]]
)
labels = st.sampled_from(
    [
        "",
        "utf-8",
        "windows-1250",
        "gbk",
        "shift_jis",
        "utf-16",
        "iso-2022-jp",
        "kamenicky",
        "iso-8859-3",
        "x-mac-ce",
        "nonsense",
    ]
)
media_types = st.sampled_from(["text/html", "text/plain", "application/xml", ""])


@settings(max_examples=80, deadline=None)
@given(body=bodies, label=labels, media_type=media_types, hint=st.sampled_from(["", "cz", "ru", "jp", "\0"]))
def test_decoding_is_total_and_what_was_read_reads_the_same_again(body, label, media_type, hint):
    text, charset = decode(body, label, media_type, hint)
    again, then = decode(text.encode("utf-8", "surrogatepass"), "utf-8", media_type, hint)
    if (
        "\0" not in text
        and "\x1b" not in text
        and text[:1] != "\ufeff"
        and not text.startswith(("\xff\xfe", "\xfe\xff"))
    ):
        assert (again, then.name) == (text, "utf-8")
    assert charset.source in {"bom", "header", "meta", "xml", "statistics", "default"}
    assert charset.other != charset.name


@settings(max_examples=40, deadline=None)
@given(data=st.data(), language=st.sampled_from(sorted(TEXTS)))
def test_what_a_language_writes_in_its_encodings_is_read_back(data, language):
    encoding = data.draw(st.sampled_from(ENCODINGS[language]))
    parts = data.draw(st.permutations(TEXTS[language]))
    body = written("\n".join(parts), encoding)
    found = guessed(body)
    assert found is not None
    assert found.encoding.text(body) == "\n".join(parts)


@settings(max_examples=80, deadline=None)
@given(text=st.text(max_size=200), declared=st.text(max_size=12))
def test_every_text_has_a_language_or_none(text, declared):
    for told in (language_of(text), page_language(declared, text)):
        assert told == "" or (told.isascii() and told.islower() and len(told) in (2, 3))


@given(
    st.lists(
        st.sampled_from([b"a", b"words ", "ř".encode(), "漢".encode(), "😀".encode(), b"\xed\xa0\x80", b"\xe0\x80"])
        | st.binary(max_size=3)
    ).map(b"".join)
)
def test_what_the_strict_decoder_takes_is_utf_8(body):
    try:
        body.decode()
    except UnicodeDecodeError:
        assert not is_utf_8(body)
    else:
        assert is_utf_8(body)


@given(st.sampled_from(sorted(SCRIPTS)), st.lists(st.integers(0, 0x6FF) | st.integers(0, 0xFFFF), max_size=80))
def test_trigrams_add_up_to_what_arrays_say(script, units):
    tables, symbols = trigrams_of(script), _symbols(script)
    totals = array("i", bytes(4 * tables.languages))
    first, second, third = (np.array([symbols[unit] for unit in units[back:]], np.int64) for back in range(3))
    ends = third >= KINDS
    count = tables.add(array("H", units), symbols, KINDS, totals)
    chances = log_chances(tables, first[: len(third)][ends], second[: len(third)][ends], third[ends])
    assert (count, [total / STEP for total in totals]) == (ends.sum(), list(chances))
