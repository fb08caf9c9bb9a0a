"""Pages with coloured parts: crawled text is always escaped."""

from html.parser import HTMLParser

from periplus.model.duplicates import (
    PUBLISHED_RULES,
    MarkedBlock,
    MarkedPage,
    SiteTemplates,
    Template,
    TemplatePage,
    TextRun,
)
from periplus.model.page import BlockKind, Part
from periplus.model.web import SiteKey, Url
from periplus.present.template import Shown, file_name, marked_page, template_index, template_lines

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' \u202e"
PAGE = TemplatePage(Url("https://e.org/a"), EVIL, 1000, 400)


class Tags(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.found = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def block(kind, *runs, level=0):
    return MarkedBlock(kind, level, tuple(TextRun(text, part) for text, part in runs))


def site(template=None, others=()):
    return SiteTemplates(SiteKey("e.org"), "shorkin", PUBLISHED_RULES, (template,) if template else (), tuple(others))


def test_text_of_pages_is_escaped_everywhere():
    kinds = [block(kind, (EVIL, Part.NAVIGATION), (EVIL, Part.CONTENT), level=2) for kind in BlockKind]
    made = [
        marked_page(MarkedPage(PAGE, template, (*kinds, block(BlockKind.ITEM, (EVIL, Part.NAVIGATION)))), "", "")
        for template in (0, -1)
    ]
    made.append(
        template_index(
            site(Template((PAGE,), 7, 0.4), (PAGE,)), [Shown(PAGE, 0, "0001-a.html"), Shown(PAGE, -1, "0002-a.html")]
        )
    )
    for source in made:
        tags = Tags(source).found
        assert not {tag for tag, _ in tags} & {"script", "img", "iframe", "object", "form", "base", "link"}
        assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
        assert "default-src 'none'" in source
        assert "\u202e" not in source


def test_links_lead_only_to_the_page_itself_and_neighbours():
    odd = TemplatePage(Url("javascript:alert(1)"), "t", 10, 1)
    found = Tags(marked_page(MarkedPage(odd, 0, ()), "0001-a.html", "0003-c.html")).found
    assert [attributes["href"] for tag, attributes in found if tag == "a"] == [
        "index.html",
        "0001-a.html",
        "0003-c.html",
    ]


def test_consecutive_navigation_is_one_box_and_inside_a_block_it_is_marked():
    blocks = (
        block(BlockKind.ITEM, ("Home", Part.NAVIGATION)),
        block(BlockKind.ITEM, ("News", Part.NAVIGATION)),
        block(BlockKind.PARAGRAPH, ("By ", Part.NAVIGATION), ("Anna", Part.CONTENT)),
    )
    source = marked_page(MarkedPage(PAGE, 0, blocks), "", "")
    assert '<div class="box"><span>Home</span> <span>News</span></div>' in source
    assert '<p class="paragraph"><mark>By </mark>Anna</p>' in source


def test_lines_of_code_are_kept():
    source = marked_page(MarkedPage(PAGE, 0, (block(BlockKind.CODE, ("a\n  b", Part.CONTENT)),)), "", "")
    assert "<pre>a\n  b</pre>" in source


def test_file_names_are_safe_and_name_the_page():
    assert file_name(7, "https://e.org/About%20us/../x?id=1&A=Ž", ".html") == "0007-about-20us-x-id-1-a.html"
    assert file_name(1, "https://e.org/", ".txt") == "0001-home.txt"


def test_a_site_without_pages_is_listed():
    assert list(template_lines(site())) == ["e.org: 0 templates for 0 of 0 pages, by Shorkin's rules"]
    assert "0 templates" in template_index(site(), [])


def test_the_list_of_pages_without_a_template_is_cut():
    others = [TemplatePage(Url(f"https://e.org/{at}"), "", 10, 0) for at in range(5)]
    lines = list(template_lines(site(others=others), most=2))
    assert "    and 3 more; --most -1 names all" in lines
    assert len([line for line in template_lines(site(others=others), most=-1) if "https" in line]) == 5
