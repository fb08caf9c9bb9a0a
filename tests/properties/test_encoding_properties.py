"""Properties of decoding any bytes and any text."""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.document.decode import decode
from periplus.document.guess import guess_encoding
from periplus.document.language import ALPHABETS, LONGEST, language_of, ngrams_of, page_language, symbols_of
from periplus.document.ngrams import BIAS, FACTOR, SPACE
from periplus.document.utf8 import hash_words, is_utf_8
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
def test_decoding_is_total_and_stable(body, label, media_type, hint):
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
def test_texts_are_decoded_from_all_encodings_of_their_language(data, language):
    encoding = data.draw(st.sampled_from(ENCODINGS[language]))
    parts = data.draw(st.permutations(TEXTS[language]))
    body = written("\n".join(parts), encoding)
    found = guess_encoding(body)
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
def test_bytes_that_decode_strictly_are_utf_8(body):
    try:
        body.decode()
    except UnicodeDecodeError:
        assert not is_utf_8(body)
    else:
        assert is_utf_8(body)


@given(st.sampled_from(sorted(ALPHABETS)), st.lists(st.integers(0, 0x6FF) | st.integers(0, 0xFFFF), max_size=80))
def test_weights_of_the_longest_ngrams_add_up(script, units):
    table, symbols = ngrams_of(script), memoryview(symbols_of(script)).cast("H")
    each = []
    for unit in units:
        if symbols[unit] != SPACE or (each and each[-1] != SPACE):
            each.append(symbols[unit])
    rows = {key: table.rows[slot] for slot, key in enumerate(table.keys) if key}
    expected = [0] * table.classes
    for end in range(len(each)):
        key = longest = 0
        for start in range(end, max(end - LONGEST, -1), -1):
            key = (key ^ each[start]) * FACTOR & 0xFFFFFFFF
            key ^= key >> 15
            if key not in rows:
                break
            longest = rows[key]
        if longest:
            start = longest * table.columns
            weights = table.weights[start : start + table.classes]
            expected = [total + weight - BIAS for total, weight in zip(expected, weights, strict=True)]
    totals = array("i", bytes(4 * table.classes))
    assert table.add(array("H", units), symbols, totals) == len(each)
    assert totals.tolist() == expected


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters=" "), min_size=1)))
def test_words_are_hashed_by_fnv_1a(words):
    joined = " ".join(words).encode()
    hashes = array("Q", bytes(8 * max(len(words), 1)))
    assert hash_words(joined, memoryview(hashes)) == max(len(words), 1)
    assert [*hashes] == [fnv_1a(word.encode()) for word in words or [""]]


def fnv_1a(word: bytes) -> int:
    digest = 0xCBF29CE484222325
    for byte in word:
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest
