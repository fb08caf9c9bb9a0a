"""The map as XML and as JSON."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from lxml import etree

from periplus.errors import UsageError
from periplus.model.results import About, LinkedBytes, PageColumns, SiteMap
from periplus.model.visit import STATE_OF, Reason
from periplus.present.map_files import write_map_json
from periplus.present.map_xml import NAMESPACE, RESULTS, schema, write_map_xml

ABOUT = About("run 1", "https://e.org/", 0.0, 0.85, 42, parameters=(("include", 'a"<b\n'),))
HOSTILE = 'a\x00\x1b<b attr="x">&amp;\ud800\ufffe\u202e"\'\t\nend'


def site_of(parents, title=str):
    """parents: parent of each page, with pages numbered depth first; -1: home page, -2: not reachable."""
    count = len(parents)
    depth, below = [0] * count, [0] * count
    for page in range(1, count):
        depth[page] = depth[parents[page]] + 1 if parents[page] >= 0 else -1
    for page in range(count - 1, 0, -1):
        if parents[page] >= 0:
            below[parents[page]] += below[page] + 1
    order = [page for page in range(count) if depth[page] >= 0]
    site_map = SiteMap(0, *(np.array(values, np.int32) for values in (depth, np.maximum(parents, -1), order, below)))
    reasons = [Reason.OK if page % 3 else Reason.WAITING for page in range(count)]
    numbers = np.arange(count)
    media = ["text/html" if page % 3 else "" for page in range(count)]
    status = np.where(numbers % 3, 200, 0)
    urls = [f"https://e.org/{page}?a&b" for page in range(count)]
    states = [STATE_OF[reason] for reason in reasons]
    facts = PageColumns(
        urls,
        [title(page) for page in range(count)],
        states,
        reasons,
        status,
        media,
        numbers,
        np.array(depth),
        numbers / 7,
        numbers % 100,
        numbers,
        numbers,
    )
    return site_map, facts


PARENTS = [-1, 0, 1, 1, 3, 0, 0, 6, -2]


def written(write, *site, **options):
    out = io.StringIO(newline="")
    write(*site, ABOUT, out, **options)
    return out.getvalue()


def parsed(text):
    return etree.fromstring(text.encode("utf-8"), etree.XMLParser(resolve_entities=False, huge_tree=True))


def is_valid(root):
    etree.XMLSchema(etree.fromstring(schema())).assertValid(root)
    return True


def number_of(page):
    return int(page.get("url").removeprefix("https://e.org/").removesuffix("?a&b"))


def xml_pairs(root):
    """(page, parent) in the order of the file; -1 for the home page."""
    name = f"{{{NAMESPACE}}}page"
    return [
        (number_of(page), number_of(page.getparent()) if page.getparent().tag == name else -1)
        for page in root.iter(name)
    ]


def test_the_xml_is_valid_and_has_the_tree_in_order():
    root = parsed(written(write_map_xml, *site_of(PARENTS)))
    assert is_valid(root)
    assert xml_pairs(root) == [(page, parent) for page, parent in enumerate(PARENTS) if parent > -2]
    assert dict(root.attrib) | {"program": ""} == {
        **{
            "program": "",
            "run": "run 1",
            "start": "https://e.org/",
            "created": "1970-01-01T00:00:00Z",
            "damping": "0.85",
            "rounds": "42",
        },
        **{"ties": "greater rank, then smaller URL", "pages": "8", "deepest": "3", "unreached": "1"},
    }
    assert dict(root[0].attrib) == {"name": "include", "value": 'a"<b\n'}
    assert dict(root[1][0].attrib) == {
        **{
            "url": "https://e.org/1?a&b",
            "title": "1",
            "state": "fetched",
            "reason": "ok",
            "status": "200",
            "media_type": "text/html",
            "size": "1",
        },
        **{"depth": "1", "rank": "0.142857", "score": "1", "inlinks": "1", "outlinks": "1"},
    }


def test_empty_values_are_omitted():
    home = parsed(written(write_map_xml, *site_of([-1], lambda _: "")))[1]
    assert {"title", "status", "media_type"}.isdisjoint(home.attrib)
    assert is_valid(home.getroottree().getroot())


def test_linked_bytes_are_written_by_class():
    site_map, facts = site_of([-1, 0, 0])
    sizes = np.array([[5, 0, 7, 0, 0, 0, 0], [0] * 7, [0] * 6 + [9]])
    facts = replace(facts, linked=LinkedBytes(sizes, np.array([2, 0, 0])))
    root = parsed(written(write_map_xml, site_map, facts))
    assert is_valid(root)
    assert [dict(linked.attrib) for linked in root.iter(f"{{{NAMESPACE}}}linked")] == [
        {"pages": "5", "images": "7", "unsized": "2"},
        {"other": "9"},
    ]
    assert json.loads(written(write_map_json, site_map, facts))["home"]["linked"] == {
        "pages": 5,
        "images": 7,
        "unsized": 2,
    }
    assert b"linked" not in written(write_map_xml, site_map, facts, values=("title",)).encode()


def test_further_results_are_written():
    site_map, facts = site_of([-1, 0])
    facts = replace(facts, further=(("word-count", [7, 0]), ("topic", [HOSTILE, ""])))
    root = parsed(written(write_map_xml, site_map, facts))
    assert is_valid(root)
    results = [
        {name: value for name, value in page.attrib.items() if name.startswith(f"{{{RESULTS}}}")}
        for page in root.iter(f"{{{NAMESPACE}}}page")
    ]
    assert results == [
        {f"{{{RESULTS}}}word-count": "7", f"{{{RESULTS}}}topic": root[1].get(f"{{{RESULTS}}}topic")},
        {f"{{{RESULTS}}}word-count": "0"},
    ]
    home = json.loads(written(write_map_json, site_map, facts).encode("utf-8"))["home"]
    assert home["results"] == {"word-count": 7, "topic": root[1].get(f"{{{RESULTS}}}topic")}
    assert home["children"][0]["results"] == {"word-count": 0}
    with pytest.raises(UsageError, match="cannot be called"):
        written(write_map_xml, site_map, replace(facts, further=(('a="" b', [1, 1]),)))


def test_only_the_selected_values_are_written():
    root = parsed(written(write_map_xml, *site_of(PARENTS), values=("title", "score")))
    assert is_valid(root)
    assert list(root[1].attrib) == ["url", "title", "score"]
    with pytest.raises(UsageError, match="colour"):
        written(write_map_xml, *site_of([-1]), values=("colour",))


@pytest.mark.parametrize("max_depth", [0, 1, 2, 3, 9])
def test_a_map_cut_at_a_depth_counts_the_omitted_pages(max_depth):
    site = site_of(PARENTS)
    root = parsed(written(write_map_xml, *site, max_depth=max_depth))
    assert is_valid(root)
    pages = list(root.iter(f"{{{NAMESPACE}}}page"))
    assert len(pages) + sum(int(page.get("omitted", 0)) for page in pages) == 8
    value = json.loads(written(write_map_json, *site, max_depth=max_depth))["home"]
    assert as_pairs(value) == xml_pairs(root)


def test_hostile_text_is_escaped_and_the_file_stays_valid():
    root = parsed(written(write_map_xml, *site_of([-1, 0], lambda _: HOSTILE)))
    assert is_valid(root)
    assert root[1].get("title") == 'a<b attr="x">&amp;\u202e"\'\t\nend'
    value = json.loads(written(write_map_json, *site_of([-1, 0], lambda _: HOSTILE)).encode("utf-8"))
    assert value["home"]["title"] == root[1].get("title")


def as_pairs(home):
    pairs, stack = [], [(home, -1)]
    while stack:
        page, parent = stack.pop()
        number = number_of(page)
        pairs.append((number, parent))
        stack.extend((child, number) for child in reversed(page.get("children", [])))
    return pairs


def test_the_json_has_the_same_tree():
    value = json.loads(written(write_map_json, *site_of(PARENTS)))
    assert as_pairs(value["home"]) == [(page, parent) for page, parent in enumerate(PARENTS) if parent > -2]
    assert value["map"]["parameters"] == {"include": 'a"<b\n'}
    assert value["map"]["unreached"] == 1
    assert value["home"]["children"][0]["status"] == 200


def test_a_very_deep_map_is_written_without_recursion():
    site = site_of([-1, *range(20_000)])
    text = written(write_map_xml, *site)
    assert text.count("<page ") == 20_001
    assert text.count("</page>") == 20_000
    assert written(write_map_json, *site).count("children") == 20_000


def test_a_map_is_streamed():
    class Out(io.StringIO):
        longest = 0

        def write(self, text):
            self.longest = max(self.longest, len(text))
            return len(text)

    for write in (write_map_xml, write_map_json):
        out = Out()
        write(*site_of([-1, *[0] * 5000]), ABOUT, out)
        assert 0 < out.longest < 1000
