"""All formats of the map are complete, and the report lists exactly the planted faults: a small crawl, written and read
back.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import networkx
import pytest
from lxml import etree, html
from voyage import crawled

import periplus
from periplus.api.collection import Collection
from periplus.document.sitemaps import read_sitemap
from periplus.errors import UsageError
from periplus.present.map_xml import NAMESPACE, USUAL_VALUES, schema
from testweb import GraphRecipe, Page, Site, content, faults, graph_site, serve

PAGES = 40


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    folder = tmp_path_factory.mktemp("formats")
    with serve(graph_site(GraphRecipe(seed=9, pages=PAGES, page_bytes=900))) as server:
        crawled(folder, server, "a.test", delay_s=0.005)
    (collection,) = [path.parent for path in folder.rglob("collection.db")]
    return periplus.open(collection)


def test_xml_is_valid_and_has_the_bytes_behind_links(site: Collection) -> None:
    out = io.StringIO()
    site.map().write_xml(out)
    tree = etree.fromstring(out.getvalue().encode())
    etree.XMLSchema(etree.fromstring(schema())).assertValid(tree)
    assert len(tree.findall(f".//{{{NAMESPACE}}}page")) == PAGES
    assert tree.findall(f".//{{{NAMESPACE}}}linked[@pages]")


def test_json_has_every_page_once(site: Collection) -> None:
    out = io.StringIO()
    site.map().write_json(out, values=("title",))
    stack, met = [json.loads(out.getvalue())["home"]], []
    while stack:
        node = stack.pop()
        met.append(node["url"])
        stack += node.get("children", [])
    assert len(met) == len(set(met)) == PAGES


def test_xhtml_pdf_and_svg_are_valid(site: Collection) -> None:
    mapped, page, paper, chart = site.map(), io.BytesIO(), io.BytesIO(), io.StringIO()
    mapped.write_xhtml(page)
    mapped.write_xhtml(usual := io.BytesIO(), values=USUAL_VALUES)
    assert page.getvalue() == usual.getvalue()
    mapped.write_pdf(paper)
    mapped.write_svg(chart, by="size")
    assert etree.fromstring(page.getvalue()).tag == "{http://www.w3.org/1999/xhtml}html"
    assert paper.getvalue().startswith(b"%PDF-")
    assert etree.fromstring(chart.getvalue().encode()).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_graph_is_the_same_in_every_format(site: Collection, tmp_path: Path) -> None:
    mapped = site.map()
    edges = len(mapped.graph.targets)
    for format, read in (
        ("gexf", networkx.read_gexf),
        ("graphml", networkx.read_graphml),
        ("net", networkx.read_pajek),
    ):
        path = tmp_path / f"graph.{format}"
        with path.open("w", encoding="utf-8") as out:
            mapped.write_graph(out, format=format)
        graph = read(path)
        assert (graph.number_of_nodes(), graph.number_of_edges()) == (PAGES, edges), format
    with pytest.raises(UsageError, match="choose gexf, graphml, net"):
        mapped.write_graph(io.StringIO(), format="dot")


def test_the_sitemap_is_read_back_by_our_own_reader(site: Collection, tmp_path: Path) -> None:
    [path] = site.sitemaps(tmp_path / "out")
    urls = [entry.url for entry in read_sitemap(path.read_bytes(), "http://a.test/sitemap.xml").entries]
    assert sorted(urls) == sorted(site.map().graph.pages)


def test_a_correct_site_has_no_broken_links_in_its_report(site: Collection, tmp_path: Path) -> None:
    page = html.document_fromstring(site.report(tmp_path / "r.html").read_bytes())
    assert "No broken URLs were found." in page.xpath("string(//section[@id='broken'])")
    assert not page.xpath("//details[@id='issue-broken-link'] | //section[@id='redirects']")


def rows_of(page: html.HtmlElement, code: str) -> set[tuple[str, ...]]:
    """The links of each row of one kind of finding, by path."""
    rows = page.xpath(f"//details[@id='issue-{code}']//tbody/tr")
    return {tuple("/" + link.split("/", 3)[3] for link in row.xpath("td/a/@href")) for row in rows}


def test_the_report_lists_the_planted_faults_and_no_others_of_their_kinds(tmp_path: Path) -> None:
    site = Site("ill.test")
    site.add(Page("/", "An ill site", ("Much is wrong here.",)))
    for number in range(3):
        site.add(Page(f"/sound-{number}.html", f"Sound {number}", (f"Nothing is wrong with page {number}.",)), "/")
    faults.status(site, "/gone.html", 404)
    site.link("/sound-1.html", "/gone.html", "gone too")
    faults.redirect_chain(site, "/old", 3, "/sound-2.html", code=301)
    content.same_bytes(site, "/twin-1.html", "/twin-2.html")
    site.add(Page("/lost.html", "Page not found", ("Sorry.",)), "/sound-0.html")
    content.sitemaps(site)
    with serve(site) as server:
        crawled(tmp_path / "c", server, "ill.test", delay_s=0.005)
    with periplus.open(tmp_path / "c") as collection:
        page = html.document_fromstring(collection.report(tmp_path / "r.html").read_bytes())
    assert rows_of(page, "broken-link") == {("/gone.html", "/")}, "one cause, with the first of its pages"
    assert rows_of(page, "redirect-chain") == {("/old",), ("/old/1",)}
    assert rows_of(page, "duplicate") == {("/twin-1.html", "/twin-2.html")}
    assert not rows_of(page, "title-duplicate"), "the twins are one page"
    assert rows_of(page, "soft-404") == {("/lost.html", "/sound-0.html")}
    assert rows_of(page, "orphan") == {("/orphan.html",)}
    assert (
        not rows_of(page, "redirect-loop")
        | rows_of(page, "title-missing")
        | rows_of(page, "broken-fragment")
        | rows_of(page, "near-duplicate")
    )
    assert [words.text_content() for words in page.xpath("//section[@id='repair']/ol/li[1]/h3/a")] == ["Broken links"]
