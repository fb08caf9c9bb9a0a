"""Properties of parsing, on generated input."""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_128_digest

from periplus.document.digest import digests, without_marks
from periplus.document.folding import fold_lines, line_blocks, unlikely_blocks
from periplus.document.link_rows import GatheredLinks, place_of
from periplus.document.media_types import MARKUP, file_readers, text_readers
from periplus.document.understand import understand
from periplus.errors import InvalidUrl
from periplus.model.page import LinkKind, Position
from periplus.model.visit import Fetched, Headers
from periplus.urls.canonical import canonical, resolve

PAGE = canonical("http://a.example/dir/page.html?q")
PIECES = [
    *(
        "<",
        ">",
        "</",
        "/>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?xml ",
        "?>",
        '"',
        "'",
        "=",
        " ",
        "\n",
        "&",
        "&#x110000;",
        "\0",
        "\ud800",
        "é",
        "x",
    ),
    *(
        "<a href=",
        "<base href=",
        "<img srcset=",
        "<meta charset=",
        "<meta http-equiv=refresh content=",
        "<style>",
        "</style>",
        "<script>",
        "<svg>",
    ),
    *(
        "<table>",
        "<td>",
        "<title>",
        "<template>",
        "<nav>",
        "<header>",
        "<p role=main style='",
        "url(",
        "@import",
        "xlink:href=",
        "<link rel=",
    ),
    *("javascript:", "http://", "//", "#", "?", "utf-16", "windows-1250", "canonical", "0;url="),
]
markup = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map(
    lambda parts: "".join(parts).encode("utf-8", "surrogatepass")
)
media_types = st.sampled_from(
    [
        *MARKUP,
        *text_readers(),
        *file_readers(),
        "",
        "image/png",
        "text/html; charset=windows-1250",
        "text/html;charset=utf-16",
        "a/b;charset=\0",
    ]
)
headers = st.lists(
    st.tuples(
        st.sampled_from(["link", "refresh", "x-robots-tag", "last-modified", "expires", "content-language"]),
        st.text(st.characters(max_codepoint=255)),
    ),
    max_size=3,
)
words = st.text(alphabet="aábčdďeéěfghiíjklmnňoópqrřsštťuúůvwxyýzž ABČ", min_size=1, max_size=60)
hrefs = st.text(alphabet="abc./:?#%&=\\ \t\n@-~é[1", max_size=12) | st.sampled_from(
    ["http:x", "1 #", "1 ", "1\x01#a", "http:?x", "HTTP://B/", "//b", "/\\b", "..", "./?", "%2e%2e/x"]
)


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=300) | markup, media_type=media_types, fields=headers)
def test_understanding_is_total(body, media_type, fields):
    page = understand(PAGE, Fetched(200, Headers((("content-type", media_type), *fields)), body))
    assert page.text.split("\n") == [" ".join(line.split()) for line in page.text.split("\n")]
    for link in page.links:
        assert canonical(link.target) == link.target
        assert link.times >= 1
    assert len({(link.target, link.kind, link.position, link.nofollow) for link in page.links}) == len(page.links)


@settings(max_examples=60, deadline=None)
@given(text=words, href=words)
def test_one_document_in_three_encodings_has_one_text_and_one_set_of_links(text, href):
    pages = []
    for label in ("utf-8", "windows-1250", "iso-8859-2"):
        body = f'<meta charset="{label}"><title>{text}</title><p>{text}<a href="/{href}">{text}</a>'.encode(label)
        pages.append(understand(PAGE, Fetched(200, Headers(), body)))
    assert len({(page.title, page.text, page.links, page.digests.text, page.digests.folded) for page in pages}) == 1


@settings(max_examples=100, deadline=None)
@given(href=hrefs)
def test_a_link_target_is_its_resolved_url(href):
    """Caches and shortcuts of GatheredLinks do not change the result."""
    rows = GatheredLinks(PAGE, nofollow=False)
    rows.add(href, place_of(LinkKind.ANCHOR, Position.BODY))
    try:
        target, fragment = resolve(href, PAGE)
    except InvalidUrl:
        assert (rows.links(), len(rows.bad_links())) == ((), 1)
        return
    assert [(link.target, "".join(link.fragments)) for link in rows.links()] == [(target, fragment)]


PIECES = st.text(alphabet="ab \t\r\xa0\u2003\u3000\u1680\u205f\u200e\x85\x1c\xe9\u2080\ue000\ud800\U00012000")


@given(blocks=st.lists(st.tuples(st.booleans(), st.lists(PIECES, min_size=1, max_size=4)), max_size=4))
def test_lines_of_code_are_folded_in_place(blocks):
    rows = [(is_code, "\n".join(lines), len(lines) - 1) for is_code, lines in blocks]
    text = "\n".join(text for _, text, _ in rows)
    kinds, counts = bytes(is_code for is_code, *_ in rows), array("i", (count for *_, count in rows))
    owners = line_blocks(kinds, bytes([1, 1]) + bytes(254), b"", counts)
    assert list(owners) == list(line_blocks(kinds, bytes([1, 1]) + bytes(254), bytes(counts.tolist()), array("i")))
    assert list(owners) == [number for number, (*_, count) in enumerate(rows) for _ in range(count + 1)]
    lines = [" ".join(line.split()) if is_code else line for is_code, text, _ in rows for line in text.split("\n")]
    flags = [is_code for is_code, text, _ in rows for _ in text.split("\n")]
    expected = "\n".join(line for line, is_code in zip(lines, flags, strict=True) if line or not is_code)
    written = fold_lines(text.encode("utf-8", "surrogatepass"), owners, kinds, 1)
    assert written.decode("utf-8", "surrogatepass") == expected


@given(
    texts=st.lists(st.text(alphabet="ab\xe9\u20ac\n", min_size=1), min_size=1),
    share=st.integers(0, 5),
    foreign=st.integers(0, 2),
)
def test_blocks_with_unlikely_letters_are_detected_by_their_bytes(texts, share, foreign):
    kinds, counts = bytes(len(texts)), array("i", (text.count("\n") for text in texts))
    written = "\n".join(texts).encode()
    rows = unlikely_blocks(written, line_blocks(kinds, b"\1" * 256, b"", counts), 3, share, foreign)
    more = [len(text.encode()) - len(text) for text in texts]
    assert [(place, written[start:end].decode()) for place, start, end in rows] == [
        (place, text)
        for place, text in enumerate(texts)
        if (len(text) >= 3 and (more[place] * share > len(text) if share else text.isascii()))
        or (foreign and len(text) >= foreign and more[place] * 2 > len(text))
    ]


@given(text=st.text())
def test_removing_diacritics_works_per_character_and_is_idempotent(text):
    plain = without_marks(text)
    assert without_marks(plain) == plain


@given(
    text=st.text(alphabet="aB \n’ÉßİΣςΐЙᏸ\ud800中\u200e", min_size=1)
    | st.text(min_size=1)
    | st.lists(st.sampled_from(["More than forty letters, all of ASCII, in a row. ", "’", "a B"]), min_size=1).map(
        "".join
    )
)
def test_the_folded_digest_is_that_of_the_text_without_marks(text):
    """With few and with many characters outside ASCII: they use different code."""
    assert (
        digests(b"", text.encode("utf-8", "surrogatepass")).folded
        == xxh3_128_digest(without_marks(text).encode("utf-8", "surrogatepass"))
    )
