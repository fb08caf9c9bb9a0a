"""Into which pieces a page's text falls."""

from __future__ import annotations

import pytest

from periplus.document import html
from periplus.document.blocks import blocks_of, text_of


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>one<br>two <b>bold</b></p><p>three", "one\ntwo bold\nthree"),
        ("<title>no</title><script>no</script><style>no</style><template>no</template><!-- no -->yes", "yes"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul><ol><li>one<li>two</ol>", "a\nb\nc\none\ntwo"),
        ("<table><caption>cap</caption><tr><th>long heading<td>b<tr><td>c<td><p>d<p>e</table>", "cap\nlong heading\nb\nc\nd\ne"),
        ("<pre>  x   = 1\n\n\ty</pre>", "  x   = 1\n\n\ty"),
        ("a&nbsp;&nbsp;b", "a b"),
        ("<dl><dt>t<dd>d</dl><blockquote>q</blockquote>", "t\nd\nq"),
        ("", ""),
    ],
)
def test_the_text_of_all_blocks(markup, text):
    assert text_of(blocks_of(html.parse(markup))) == text
