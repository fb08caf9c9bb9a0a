"""The column reader equals the reference reader, which uses the tree of another parser."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

import slow_reader
from periplus.document.columns import Names
from periplus.document.conversion import Source
from periplus.document.markup import read_html
from periplus.model.visit import Headers
from periplus.model.web import Url

TAGS = (
    "div p ul li span table tr td th h1 h2 h6 pre br hr b i code em noscript nav header main section article footer"
    " svg dl dt dd select option u sup body blockquote center figure figcaption x-y"
)
TOKEN = st.one_of(
    st.sampled_from([f"<{tag}>" for tag in TAGS.split()] + [f"</{tag}>" for tag in TAGS.split()]),
    st.sampled_from([
        "<a href=x>", "<a href='y#z'>", "<a href=' /a b#  ' rel='x NoFollow'>", "<a href=mailto:x>",
        "<a title=t href=#q>",
        "</a>", "<a name=n>", "<div class='a  b/c' id=c>", "<p lang=cs>", "<section id='u v'>", "<div role=navigation>",
        "<img alt='x<y'>", "<img src=i.png srcset='j.png 1x, k.png 2x' alt='an  image'>", "<td background=b.png>",
        "<p style='background:url(c.png)'>", "<link rel='icon stylesheet' href=l title=t>", "<title>T  t</title>",
        "<link rel=alternate hreflang=de href=m>", "<meta name=description content='d  e'>", "<base href='/base/'>",
        "<script src=s.js>var x</script>", "<style>@import 'st.css';</style>",
        "<iframe src=f srcdoc='<a href=g>h</a>'>",
        "</iframe>", "<input formaction=fo src=ip>", "<form action=''>", "<video src=v poster=w>", "<html lang=en>",
        "<div id=root></div>", "<svg><use href=u.svg /><a xlink:href=xl>t</a></svg>",
        "<template><a href=tp>t</a></template>",
        "<!-- <p> -->", "&lt;", "&amp;lt;", "&nbsp;", "\u2003",
    ]),
    st.text("ab <>&\n\t\xa0é", max_size=6),
)  # fmt: skip
MARKUP = st.lists(TOKEN, max_size=40).map("".join)


@settings(max_examples=100, deadline=None)
@given(MARKUP)
@example("<svg><a href=x>A<a href=x>B</a>C</a>")  # the outer link's text is the first
def test_the_reader_equals_the_reference(markup):
    source = Source(Url("http://a.example/b/c.html"), Headers(), markup.encode(), kind="text/html")
    assert read_html(source) == slow_reader.read_html(source)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=3), min_size=1, max_size=400))
def test_names_have_one_number_each_however_many_collide(names):
    plain = {name: number for number, name in enumerate(dict.fromkeys(names), 1)}
    ours = Names(2)
    assert [abs(ours.number(0, name, 0, len(name))) for name in names] == [plain[name] for name in names]
