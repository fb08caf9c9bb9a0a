"""Pages as Markdown, checked by rendering it with CommonMark and GFM tables."""

from __future__ import annotations

import re

import pytest
from lxml import html
from markdown_it import MarkdownIt

from periplus.api.collection import Collection
from periplus.document.understand import canonical_xml
from periplus.model.page import Block, BlockKind
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from periplus_agents.markdown import DEEPEST, markdown_of_blocks, pieces_of_xml
from stored import stored

URL = Url("https://e.org/docs/page.html")
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def written(source: str, title: str = "", blocks=(), is_shown=None) -> str:
    xml = canonical_xml(URL, Fetched(200, Headers((("content-type", "text/html; charset=utf-8"),)), source.encode()))
    assert xml is not None
    pieces = pieces_of_xml(xml[0], URL, title, blocks, is_shown)
    assert pieces is not None
    return "\n\n".join(pieces)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<h1>One</h1><h3>Three #</h3><p>A\n  b<br>c", "# One\n\n### Three \\#\n\nA b\\\nc"),
        ("<p><a href=a.html#x>A</a> and <a href='//o.org/(b)'>B</a>", "[A](https://e.org/docs/a.html#x) and [B](<https://o.org/(b)>)"),
        ("<base href=/up/><p><a href=a>A</a> <a href='javascript:x()'>no</a>", "[A](https://e.org/up/a) no"),
        ("<h2>Head<a class=headerlink href=#head>¶</a></h2>", "## Head"),
        ("<p>as <a href=#two>below</a>", "as [below](https://e.org/docs/page.html#two)"),
        ("<p><a href=/b><img src=i.png alt='a [b]'></a>", r"[![a \[b\]](https://e.org/docs/i.png)](https://e.org/b)"),
        ("<p>some<b> bold </b>and <em>slanted</em> <code>a`b</code>", "some **bold** and *slanted* ``a`b``"),
        ("<ul><li>one<ol><li>in</ol><li>two<ul><li>x</ul></ul>", "- one\n  1. in\n- two\n  - x"),
        ("<ul><li>in<ol start=3><li>x<li>y</ol></ul>", "- in\n\n  3. x\n  4. y"),
        ("<ol><li><p>a<p>b<li>c</ol>", "1. a\n\n   b\n\n2. c"),
        ("<pre class='language-python'>def f():\n    return 1\n</pre>", "```python\ndef f():\n    return 1\n```"),
        ("<div class='highlight-c++ notranslate'><div><pre>int `x`;</pre></div></div>", "```c++\nint `x`;\n```"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<table><tr><th>A<th>B|C<tr><td>1<td><p>2<p>3</table>", "| A | B\\|C |\n| --- | --- |\n| 1 | 2<br>3 |"),
        ("<table><tr><td rowspan=2>A<td>B<tr><td>C</table>", "|  |  |\n| --- | --- |\n| A | B |\n|  | C |"),
        ("<table><tr><td>menu<td><h2>Head</h2><p>text</table>", "menu\n\n## Head\n\ntext"),
        ("<blockquote><p>a<p>b</blockquote><hr><p>c", "> a\n>\n> b\n\n---\n\nc"),
        ("<dl><dt>term<dd>what it is</dl>", "**term**\n\nwhat it is"),
        ("<p>1. no list<p>- no item<p># no head<p>snake_case *x* _y_ &amp;amp; &lt;b>", None),
    ],
)  # fmt: skip
def test_each_element_is_written_as_markdown(source, expected):
    text = written(source)
    if expected is not None:
        assert text == expected
    assert words(html.fromstring(f"<div>{READER.render(text)}</div>")) == words(html.fromstring(f"<div>{source}</div>"))


def words(element) -> list[str]:
    for permalink in element.xpath(".//a[@class='headerlink']"):
        permalink.drop_tree()
    return re.findall(r"[^\s|]+", " ".join(element.itertext()).replace("|", ""))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>H<sub>2</sub>O, 10<sup>6</sup>", "H<sub>2</sub>O, 10<sup>6</sup>"),
        (r"<p>\(a_1^2\) and \[b*c\] *x*", r"$a_1^2$ and $$b*c$$ \*x\*"),
        (
            "<p>is <math><mi>x</mi><annotation encoding='application/x-tex'>x=\\frac12</annotation></math>.",
            r"is $x=\frac12$.",
        ),
        ("<p><math alttext='y_1' display=block><mi>y</mi></math>", "$$y_1$$"),
        (
            "<p><span class=katex><math><mi>y</mi><annotation encoding='application/x-tex'>y_1</annotation></math>"
            "<span class=katex-html aria-hidden=true>y1</span></span>",
            "$y_1$",
        ),
        ("<p>so <script type='math/tex'>z^2</script>.<script>no()</script>", "so $z^2$."),
        ("<p hidden>no<p>yes<div hidden><ul><li>no</ul></div><p>a<span hidden>no</span>b", "yes\n\nab"),
        (
            "<table><tr><th>A<th>B<tr><td>1<td><ul><li>x<li>y</ul><tr><td>2<td><pre>a()\nb()</pre></table>",
            "| A | B |\n| --- | --- |\n| 1 | - x<br>- y |\n| 2 | `a()`<br>`b()` |",
        ),
        (
            "<table><tr><td>a<td><pre>b|c</pre><tr><td>d<td>e</table>",
            "|  |  |\n| --- | --- |\n| a | `b\\|c` |\n| d | e |",
        ),
        (
            "<figure class='highlight python'><table><tr><td class=gutter><pre>1\n2</pre><td class=code>"
            "<pre><span class=line>a = 1</span><br><span class=line>b = 2</span></pre></table></figure>",
            "```python\na = 1\nb = 2\n```",
        ),
        ("<pre><span class=linenos>1</span>a\n<span class=linenos>2</span>b</pre>", "```\na\nb\n```"),
    ],
)
def test_formulas_lists_in_cells_and_code_stay_and_hidden_elements_and_line_numbers_go(source, expected):
    assert written(source) == expected


def test_text_that_looks_like_markup_is_escaped():
    for text in ("1. a", "- a", "+ a", "# a", "> a", "=== ", "---", "a_b_c", "__x__", "*a*", "[a](b)", "![a](b)", "<i>",
                 "&copy;", "`a`", "~~a~~", "a\\*b", "12) x", "| a | b |"):  # fmt: skip
        source = html.Element("p")
        source.text = text
        read = html.fromstring(READER.render(written(html.tostring(source, encoding="unicode"))))
        assert (read.tag, read.text_content().strip()) == ("p", text.strip())


def test_the_title_is_a_heading_unless_the_page_has_an_h1():
    assert written("<h2>Two</h2>", "A *title*") == "# A \\*title\\*\n\n## Two"
    assert written("<h1>One</h1>", "Title") == "# One"


def test_hidden_blocks_are_omitted():
    source = (
        "<nav><ul><li><a href=/>Home</a><li>More</ul></nav><h1>Head</h1><p>Text <b>here</b><p>Home<footer>© us</footer>"
    )
    texts = ("Home", "More", "Head", "Text here", "Home", "© us")
    blocks = [Block(BlockKind.PARAGRAPH, text, "") for text in texts]
    assert written(source, "", blocks, [False, False, True, True, True, False]) == "# Head\n\nText **here**\n\nHome"


def test_deeply_nested_elements_keep_their_text():
    deep = "<div><ul><li>" * DEEPEST + "word" + "<b>x</b>" + "<span>" * 500 + "end"
    assert written(deep).split("- ")[-1].replace("*", "").replace(" ", "") == "wordxend"


def test_a_page_without_a_stored_body_is_written_from_its_blocks():
    blocks = [Block(BlockKind.TITLE, "T", ""), Block(BlockKind.HEADING, "H", "", 2), Block(BlockKind.ITEM, "a", ""),
              Block(BlockKind.ITEM, "b", ""), Block(BlockKind.CODE, "x\n y", "")]  # fmt: skip
    assert markdown_of_blocks(blocks, None, "T") == "# T\n\n## H\n\n- a\n- b\n\n```\nx\n y\n```\n"


def test_links_of_a_stored_page_are_absolute(tmp_path):
    page = "<title>T</title><p>see <a href='/a'>A</a><script>no()</script>"
    folder = stored(tmp_path / "e.periplus", {"https://e.org/": page, "https://e.org/a": "x"}, ["https://e.org/"])
    with Collection(folder) as collection:
        assert collection.page("https://e.org/").markdown() == "# T\n\nsee [A](https://e.org/a)\n"
