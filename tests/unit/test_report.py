"""The HTML and PDF report of a site."""

import base64
import hashlib
import json
import re

import numpy as np
import pypdfium2
from click.testing import CliRunner
from lxml import html

from periplus.analyse.audit import issue_kinds
from periplus.api.collection import Collection
from periplus.cli.main import main
from periplus.model.audit import Fault, Issue
from periplus.model.duplicates import Duplicate, DuplicateGroup, Ground, Likeness
from periplus.model.page import MediaClass
from periplus.model.results import (
    OTHER_PAGES,
    About,
    BrokenLink,
    ClassSize,
    DepthTally,
    ExternalSite,
    Holder,
    IssueGroup,
    MapNode,
    PageColumns,
    PageWeight,
    RedirectChain,
    ReportData,
    StateTally,
    Tally,
)
from periplus.model.visit import STATE_OF, Reason
from periplus.present import markup
from periplus.present.report import BROKEN_IN_FULL, site_report
from stored import page, stored

HOSTILE = '</style></title><script>alert("1")</script><img src=x onerror=alert(2)>\x1b\u202e'
HOME, PAGE = "https://e.org/", 'https://e.org/a"><script>'


def data_of(**changes):
    zeros = np.zeros(2, np.int64)
    reasons = (Reason.OK, Reason.ROBOTS)
    pages = PageColumns(
        (HOME, PAGE),
        ("Home", HOSTILE),
        [STATE_OF[reason] for reason in reasons],
        reasons,
        zeros,
        ("", ""),
        zeros,
        zeros,
        zeros + 0.5,
        zeros + 9,
        zeros,
        zeros,
    )
    tree = MapNode(0, 5, 3, 0, 1.0, (MapNode(1, 1, 1, 0, 0.2), MapNode(OTHER_PAGES, 3, 1, 0, 0.3)))
    counts = tuple(StateTally(STATE_OF[reason], reason, 7) for reason in (Reason.OK, Reason.ROBOTS, Reason.NOT_FOUND))
    dead = (
        BrokenLink(
            "https://e.org/gone", Reason.NOT_FOUND, 404, (Holder(HOME, HOSTILE, HOSTILE), Holder(PAGE, "", "")), 2
        ),
    )
    kind = issue_kinds()["broken-link"]
    issue = Issue("broken-link", kind.severity, HOME, HOSTILE, PAGE, HOSTILE, "main", PAGE)
    values = {
        "about": About("run " + HOSTILE, HOME, 0.0, 0.85, 42, parameters=(("include", HOSTILE),)),
        "finished": 0.0,
        "counts": counts,
        "pages": pages,
        "tree": tree,
        "depths": (DepthTally(0, 1, 0), DepthTally(1, 2, 2)),
        "ranked": (0, 1),
        "groups": (
            IssueGroup(kind, kind.severity, 1, 1, (Fault("broken-link", kind.severity, PAGE, 1, 1, (issue,)),)),
        ),
        "broken": dead,
        "broken_urls": 1,
        "chains": (RedirectChain(PAGE, HOME, HOME, 301, 1, False, 4),),
        "sizes": (ClassSize(MediaClass.PAGES, 100, 2, 0),),
        "heaviest": (PageWeight(HOME, HOSTILE, (100, 0, 0, 0, 0, 0, 0), 0, 5),),
        "hosts": (Tally("e.org", 2, 100),),
        "external": (ExternalSite(HOSTILE, 5, 6, 7),),
        "media": (Tally(HOSTILE, 2, 100),),
        "charsets": (Tally("utf-8", 2),),
        "languages": (Tally("", 2),),
        "duplicates": (
            DuplicateGroup(
                1, HOME, HOSTILE, (Ground.LENGTH,), (Duplicate(2, PAGE, HOSTILE, Likeness.NEAR, 0.9, 1.0, 1),), True
            ),
        ),
        "notes": (HOSTILE,),
    }
    return ReportData(**(values | changes))


def read(**changes):
    return html.document_fromstring(site_report(data_of(**changes)).encode("utf-8"))


def words(element):
    return " ".join(element.text_content().split())


def test_the_report_loads_nothing_and_runs_no_script():
    page = read()
    assert page.xpath("//script | //img | //iframe | //object | //embed | //link | //form | //base") == []
    assert not [
        name
        for element in page.iter()
        if isinstance(element.tag, str)
        for name in element.attrib
        if name.startswith("on")
    ]
    assert "url(" not in page.xpath("string(//style)")
    assert "@import" not in page.xpath("string(//style)")
    assert page.xpath("//@src") == []
    assert page.xpath("//meta[@http-equiv]/@content") == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_crawled_text_is_escaped():
    source = site_report(data_of())
    assert "<script" not in source
    assert "\x1b" not in source
    assert "\u202e" not in source
    assert 'alert("1")' in words(read().xpath("//section[@id='broken']")[0])
    source.encode("utf-8")


def test_only_web_addresses_become_links():
    page = read(
        chains=(RedirectChain("javascript:alert(1)", "data:text/html,x", "data:text/html,x", 302, 1, False, 1),)
    )
    assert all(re.match("https?://|#", target) for target in page.xpath("//@href"))
    assert "javascript:alert(1)" in words(page.xpath("//section[@id='redirects']")[0])


def test_every_link_of_the_table_of_contents_has_a_section():
    page = read()
    assert page.xpath("//nav/a/@href") == [f"#{name}" for name in page.xpath("//section/@id")]
    assert len(page.xpath("//section")) == 12


def test_the_map_is_a_tree_with_totals():
    [home] = read().xpath("//ul[@class='map']/li")
    assert words(home.xpath("details/summary")[0]) == "Home5 pages9"
    assert "3 more pages, 2 not fetched" in words(home.xpath("details/ul/li")[1])
    assert "disallowed by robots.txt" in words(home.xpath("details/ul/li")[0])


def test_a_broken_link_has_its_pages_and_anchor_texts():
    [section] = read().xpath("//section[@id='broken']")
    assert words(section.xpath(".//span")[0]) == "not found, status 404"
    assert len(section.xpath(".//li")) == 2
    assert section.xpath(".//li//q")[0].text.startswith("</style>")


def test_a_cut_list_counts_the_missing_entries():
    assert "And 3 more groups" in words(
        read(duplicates=data_of().duplicates * (markup.SHOWN + 3)).xpath("//section[@id='duplicates']")[0]
    )


def test_a_broken_link_on_every_page_is_folded_and_counted():
    holders = (Holder(HOME, "Home", "words"),) * 50
    [section] = read(broken=(BrokenLink("https://e.org/gone", Reason.UNREACHABLE, 0, holders, 60),)).xpath(
        "//section[@id='broken']"
    )
    assert len(section.xpath(".//li")) == 50
    assert "55 more pages with this link" in words(section)
    assert "And 10 more pages." in words(section)


def test_many_broken_urls_are_a_table():
    dead = tuple(
        BrokenLink(f"https://e.org/{n}", Reason.NOT_FOUND, 404, (Holder(HOME, "", "here"),), 1)
        for n in range(BROKEN_IN_FULL + 1)
    )
    [section] = read(broken=dead, broken_urls=5_000).xpath("//section[@id='broken']")
    assert len(section.xpath(".//tbody/tr")) == BROKEN_IN_FULL + 1
    assert "of 5,000" in words(section)


def test_the_first_repairs_have_problem_reason_and_remedy():
    [action] = read().xpath("//section[@id='repair']//li[@class='error']")
    assert words(action).startswith("Broken links 1")
    assert "Correct or remove the link." in words(action)
    assert action.xpath(".//h3/a/@href") == ["#issue-broken-link"]
    assert read().xpath("//details[@id='issue-broken-link']")


def test_further_rows_of_a_long_table_are_escaped_data():
    """They may contain `</script>`. The policy allows only our script."""
    chains = tuple(
        RedirectChain(f"https://e.org/{n}</script><b>", HOME, HOME, 301, 1, False, n) for n in range(markup.SHOWN + 50)
    )
    source = site_report(data_of(chains=chains))
    page = html.document_fromstring(source.encode())
    [data] = page.xpath("//script[@data-table='redirect-rows']")
    rows = json.loads(data.text)
    assert len(page.xpath("//table[@id='redirect-rows']/tbody/tr")) == markup.SHOWN
    assert len(rows) == int(data.get("data-rows")) == markup.SHOWN + 50
    assert rows[-1][0][0] == f"https://e.org/{markup.SHOWN + 49}</script><b>"
    assert page.xpath("//script/@src") == []
    [ours] = page.xpath("//script[not(@type)]")
    digest = base64.b64encode(hashlib.sha256(ours.text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.xpath("//meta[@http-equiv]/@content")[0]
    assert "The first 200 of 250." in words(page.xpath("//section[@id='redirects']")[0])


def test_a_crawl_without_pages_is_reported_first():
    page = read(
        counts=(StateTally(STATE_OF[Reason.UNREACHABLE], Reason.UNREACHABLE, 1),), tree=None, ranked=(), depths=()
    )
    assert "No page was fetched" in words(page.xpath("//header")[0])
    assert "there is no map" in words(page.xpath("//section[@id='map']")[0])


def test_an_unfinished_run_is_marked():
    assert "not finished" in words(read().xpath("//header")[0])
    assert "Finished 2 January 1970, 00:00 UTC" in words(read(finished=86400.0).xpath("//header")[0])


def test_sections_without_content_are_omitted():
    nothing = (
        "counts",
        "broken",
        "depths",
        "ranked",
        "groups",
        "chains",
        "sizes",
        "heaviest",
        "hosts",
        "external",
        "media",
        "charsets",
        "languages",
    )
    page = read(**dict.fromkeys((*nothing, "duplicates", "notes"), ()), broken_urls=0, tree=None)
    assert page.xpath("//section/@id") == ["repair", "map", "broken"]


def test_a_very_deep_map_is_written_without_recursion():
    tree = MapNode(0, 1, 1, 0, 0.1)
    for _ in range(3000):
        tree = MapNode(0, tree.pages + 1, 1, 0, 0.1, (tree,))
    assert site_report(data_of(tree=tree, groups=())).count("<details") == 3000


def test_the_pdf_report_prints_crawled_text_as_text(tmp_path):
    """Typst markup in titles and URLs is escaped. Causes have line and column."""
    site = {
        "https://e.org/": page("Home #panic() *x* $y$", "/gone", "/a"),
        "https://e.org/a": page('A "quoted" \\ <b>', "/gone"),
        "https://e.org/gone": 404,
    }
    folder = stored(tmp_path / "c", site, ["https://e.org/"])
    with Collection(folder) as collection:
        first, second = (collection.report(tmp_path / f"{name}.pdf").read_bytes() for name in "ab")
    assert first == second
    pages = pypdfium2.PdfDocument(first)
    text = " ".join(" ".join(sheet.get_textpage().get_text_range() for sheet in pages).split())
    assert "e.org" in text and "https://e.org/gone" in text
    assert re.search(r"on https://e\.org/ \(line \d+, column \d+\)", text)
    assert CliRunner().invoke(main, ["report", "-c", str(folder), "-o", str(tmp_path / "c.pdf")]).exit_code == 0
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF")
