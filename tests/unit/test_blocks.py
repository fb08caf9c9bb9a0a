"""The blocks of a page's text: kinds, paths, positions, languages, limits."""

from __future__ import annotations

import re

import pytest

import slow_html as html
from periplus.document.blocks import blocks_of, first_blocks, lines_of, plain_blocks, words_of
from periplus.document.conversion import Source
from periplus.document.digest import fold_whitespace
from periplus.document.markup import read_html
from periplus.document.page_rules import BLOCKS_MOST, PATH_CHARS, PATHS_MOST
from periplus.document.reader import read_page
from periplus.model.page import Block, BlockKind, Position
from periplus.model.visit import Headers
from periplus.model.web import Url

TITLE, HEADING, PARAGRAPH, ITEM, CELL, CAPTION, CODE, LINK, ALT = BlockKind


def blocks(markup, language=""):
    return blocks_of(read_page(markup), language)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>one<br>two <b>bold</b></p><p>three", "one\ntwo bold\nthree"),
        ("<title>no</title><script>no</script><style>no</style><template>no</template><!-- no -->yes", "yes"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul><ol><li>one<li>two</ol>", "a\nb\nc\none\ntwo"),
        (
            "<table><caption>cap</caption><tr><th>long heading<td>b<tr><td>c<td><p>d<p>e</table>",
            "cap\nlong heading\nb\nc\nd\ne",
        ),
        ("<pre>  x   = 1\n\n\ty</pre>", "  x   = 1\n\n\ty"),
        ("a&nbsp;&nbsp;b", "a b"),
        ("<dl><dt>t<dd>d</dl><blockquote>q</blockquote>", "t\nd\nq"),
        ("", ""),
        ("<p>un<b>believ</b><wbr>able <u>x</u>", "unbelievable x"),
        ("<h1>One<br>heading</h1>", "One heading"),
        ("<p>a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<p>before<hr>after", "before\nafter"),
        ("<select><option>1<option>2</select><button>go</button>", "1\n2\ngo"),
        ("<iframe><p>no</iframe><noframes><p>no</noframes>yes<plaintext><p>raw", "yes\n<p>raw"),
        ("<svg><title>drawing</title><style>no</style><text>words</text></svg>", "drawing\nwords"),
        ("<x-card><p>one</p><x-note>two</x-note> three</x-card>", "one\ntwo three"),
        ("<p>a<!-- > --><!--<p>-->b", "ab"),
        ('<p title="<p>x</p>">a', "a"),
    ],
)
def test_the_text_of_a_page_is_that_of_its_blocks(markup, text):
    assert blocks(markup).text == text


@pytest.mark.parametrize(
    ("markup", "kinds"),
    [
        ("<title>T</title><h2>H</h2>bare<p>p", [(TITLE, "T"), (HEADING, "H"), (PARAGRAPH, "bare"), (PARAGRAPH, "p")]),
        ("<ul><li>a<li><p>b<p>c<li><div>d<p>e", [(ITEM, "a"), (ITEM, "b"), (ITEM, "c"), (ITEM, "d"), (PARAGRAPH, "e")]),
        ("<dl><dt>t<dd>d<dd><p>p", [(ITEM, "t"), (ITEM, "d"), (PARAGRAPH, "p")]),
        (
            "<table><caption>c<tr><th>h<td>d<td><div>x<td><article>y",
            [(CAPTION, "c"), (CELL, "h"), (CELL, "d"), (CELL, "x"), (PARAGRAPH, "y")],
        ),
        ("<pre><a href=x>  all\nof it</a></pre>", [(LINK, "all of it")]),
        ("<figure><img alt=' an  image '><figcaption>f</figure>", [(ALT, "an image"), (CAPTION, "f")]),
        ("<pre>a <b>b</b><br>c  \n\n</pre>", [(CODE, "a b\nc")]),
        ("<p><a href=x>one</a> <a href=y>two</a><p>x <a href=y>z</a>", [(LINK, "one two"), (PARAGRAPH, "x z")]),
        ("<li><a href=x>menu</a>", [(LINK, "menu")]),
        ("<h1><a href=x>head</a></h1>", [(HEADING, "head")]),
        ("<p><a name=x>no link</a>", [(PARAGRAPH, "no link")]),
        ("<p>see <img alt=one> it<img alt=two><img>", [(PARAGRAPH, "see it"), (ALT, "one"), (ALT, "two")]),
        ("<a href=x><div>one</div><div>two</div></a><p>three", [(LINK, "one"), (LINK, "two"), (PARAGRAPH, "three")]),
        ("<a href=x>one<p>two</a>three", [(LINK, "one"), (PARAGRAPH, "twothree")]),
        ("<blockquote>q</blockquote><td>", [(PARAGRAPH, "q")]),
        ('<p><img alt="a &lt; b">', [(ALT, "a < b")]),
    ],
)
def test_elements_give_blocks_their_kinds(markup, kinds):
    assert [(block.kind, block.text) for block in blocks(markup)] == kinds


@pytest.mark.parametrize(
    ("markup", "paths"),
    [
        ('<div id=content class="main  wide"><ul class=a><li id=x>t', ["div#content.main.wide/ul.a/li"]),
        ("<body id=b class=c>t<div>u<span class=x>v</span></div>w", ["", "div", ""]),
        ('<div id="a/b c">t', ["div#a_b_c"]),
        ("<title>T</title><section id=s><h1 id=h>t<img alt=a>", ["head/title", "section#s/h1", "section#s/h1/img"]),
        ("<table><tr><td>t", ["table/tbody/tr/td"]),
        (f"<div class={'x' * 90}>t", [f"div.{'x' * 40}"]),
    ],
)
def test_a_path_has_tags_ids_and_classes(markup, paths):
    assert [block.path for block in blocks(markup)] == paths


@pytest.mark.parametrize(
    ("markup", "position"),
    [
        ("<nav><ul><li>x", Position.NAV),
        ("<header><nav>x", Position.NAV),
        ("<header>x", Position.HEADER),
        ("<article><header>x", Position.BODY),
        ("<main><article><footer>x", Position.MAIN),
        ("<div role=navigation><header>x", Position.HEADER),
        ("<div role=complementary><p>x", Position.ASIDE),
        ("<div><p>x", Position.BODY),
    ],
)
def test_blocks_and_links_have_the_position_of_their_landmark(markup, position):
    page = read_html(Source(Url("http://a.example/"), Headers(), (markup + "<a href=y>z</a>").encode()))
    assert [link.position for link in page.links] == [position]
    assert [block.position for block in page.blocks] == [position]


def test_blocks_have_heading_level_and_characters_in_links():
    first, second, third = blocks(
        "<h3>a <i>b</i></h3><p>x <a href=1> four </a>, <a href=2>&lt;five&gt;</a> y<p><a href=3>all of it</a>"
    )
    assert (first.level, first.link_chars) == (3, 0)
    assert (second.text, second.link_chars) == ("x four , <five> y", 10)
    assert (third.kind, third.link_chars) == (LINK, 9)


def test_a_block_has_a_language_if_it_differs_from_the_page():
    found = blocks("<html lang=cs-CZ><p>a<p lang=en_GB>b<div lang=de>c<p lang=cs>d<p>e</div><p lang=''>f", "cs-cz")
    assert [(block.text, block.language) for block in found] == [
        ("a", ""),
        ("b", "en-gb"),
        ("c", "de"),
        ("d", ""),
        ("e", "de"),
        ("f", ""),
    ]


def test_digests_use_folded_white_space():
    found = blocks("<title>T</title><p>one  two<pre>  x\n\n   y</pre><img alt=a>")
    assert found.text == "one two\n  x\n\n   y"
    assert words_of(found, found.text.encode(), lines_of(found)) == b"one two\nx\ny"


def test_the_block_at_the_text_limit_is_cut():
    found = blocks("<p>12345<p><a href=x>67890</a><p>x")
    assert [block.text for block in first_blocks(found, 8)[0]] == ["12345", "678"]
    assert first_blocks(found, 8)[0][1].link_chars == 3
    assert first_blocks(found, 8)[1] == ("more than 8 characters of text",)
    assert first_blocks(found, 11) == (found, ())


def test_lines_of_plain_text_are_paragraphs():
    assert plain_blocks(["a", "b"]) == (Block(PARAGRAPH, "a", ""), Block(PARAGRAPH, "b", ""))


@pytest.mark.parametrize(
    ("markup", "text", "chars"),
    [
        ("<p><u>one</u> <u>two</u>", "one two", 0),
        ("<pre><u>a</u>\n  <u>b</u></pre>", "a\n  b", 0),
        ("<p>x <a href=y>  four  </a>", "x four", 4),
        ("<p><a href=y>all</a>&nbsp;", "all", 3),
        ("<p>x <a href=y>one <table><tr><td><a href=z>two</a></table> one</a>", "x one\ntwo\none", 3),
    ],
)
def test_white_space_between_tags_is_kept(markup, text, chars):
    """Five rules that the reader before this one got wrong: decision 0049."""
    read = blocks(markup)
    assert (read.text, read[0].link_chars) == (text, chars)


HOSTILE = {
    "nested": lambda n: "<div>" * n + "x" + "</div>y" * 10,
    "nested, each with its id": lambda n: "".join(f"<div id=i{at} class=c{at}>x" for at in range(n)),
    "empty elements": lambda n: "<p></p>" * n + "x",
    "blocks": lambda n: "<p>x" * n,
    "blocks, each with its class": lambda n: "".join(f"<p class=c{at}>x" for at in range(n)),
    "custom elements": lambda n: "<p>" + "<x-a>x</x-a>" * n,
    "breaks": lambda n: "<h1>" + "<br>" * n + "x",
    "links that never end": lambda n: "<a href=x><table><tr><td>" * n,
    "links in one block": lambda n: "<p>" + "<a href=x>y</a> z" * n,
    "images": lambda n: "<p>" + "<img alt=x>" * n,
    "bold": lambda n: "<b>" * n + "x",
    "languages": lambda n: "".join(f"<div lang=l{at}>x" for at in range(n)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_output_grows_at_most_linearly_with_hostile_markup(name):
    """Paths and texts are stored once, so both grow no faster than the page."""
    small, large = (blocks(HOSTILE[name](n)) for n in (1_000, 10_000))
    sizes = [
        sum(len(block.text) for block in found) + sum(len(path) for path in {block.path for block in found})
        for found in (small, large)
    ]
    assert sizes[1] <= 11 * sizes[0] + 2_000 * PATH_CHARS // 100
    assert len(large) <= 10 * len(small) + 10


def test_blocks_beyond_the_limit_are_dropped():
    kept, bounds = first_blocks(blocks("<p>x" * (BLOCKS_MOST + 10)), 10**9)
    assert (len(kept), bounds) == (BLOCKS_MOST, ("more than 200,000 blocks of text",))
    assert first_blocks(blocks("<p>x" * BLOCKS_MOST), 10**9)[1] == ()


def test_a_hundred_thousand_nested_elements_need_no_recursion():
    found = blocks("<div>" * 100_000 + "x<p>" + "</div>" * 99_000 + "y")
    assert "".join(block.text for block in found) == "xy"
    assert all(len(block.path) <= PATH_CHARS + 100 for block in found)


def test_paths_beyond_the_limit_are_empty():
    page = blocks("".join(f"<section id=s{place}><p>x</section>" for place in range(PATHS_MOST)))
    assert (page[0].path, page[-1].path) == ("section#s0/p", "")
    assert len(page.path_names) <= PATHS_MOST + 2


def plain_words(markup):
    """The slow twin: the text of all visible text nodes, in order, without white space."""
    tree = html.parse(markup)
    unseen = {"head", "script", "style", "template", "iframe", "noembed", "noframes"}
    words = []
    for string in tree.descendants:
        if type(string).__name__ in ("Text", "CData") and not any(
            getattr(above, "tag", "") in unseen or (getattr(above, "tag", "") == "title" and html.is_html(above))
            for above in string.ancestors
        ):
            words.append(string.data)
    return re.sub(r"\s", "", fold_whitespace("".join(words)))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_word_of_a_hostile_page_is_lost(name):
    markup = HOSTILE[name](300)
    assert re.sub(r"\s", "", blocks(markup).text) == plain_words(markup)
