"""Drawings and files of a survey: well formed, reproducible, safe with hostile text."""

import csv
import io
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from lxml import etree

from periplus.errors import UsageError
from periplus.present.draw import HUES, Axes, apart, folder_hues, nice, place_circles, short_names
from periplus_studies.network import STEPS, matrix_of, network_of, shade, write_network_svg
from periplus_studies.report import TABLES, survey_table
from periplus_studies.results import FORMATS, survey_of, write_survey
from periplus_studies.units import unit_of
from stored import page, stored

HOSTILE = 'Ann & <Bob> "]]>\u202e\ud800'
SITES = [f"https://s{place}.example/" for place in range(5)]
WEB = {
    site: page(f"S{place}", SITES[(place + 1) % 5], "https://hub.org/", f"https://p{place}.net/")
    for place, site in enumerate(SITES)
}
WEB["https://s0.example/"] = page("S0", "/a", *SITES[1:], "https://hub.org/x?a=1&b=2")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = stored(tmp_path_factory.mktemp("survey") / "c", WEB, SITES)
    return survey_of(folder, [unit_of(SITES[0], HOSTILE, "=ann", bundle=HOSTILE), *map(unit_of, SITES[1:])])


def written(found, what, format):
    out = io.StringIO(newline="")
    write_survey(found, what, format, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("what", "format"),
    [
        (what, format)
        for what, formats in FORMATS.items()
        for format in formats
        if format in ("svg", "xml", "gexf", "html")
    ],
)
def test_all_markup_is_well_formed_and_reproducible(found, what, format):
    text = written(found, what, format)
    root = etree.fromstring(text.encode("utf-8", "surrogatepass"))
    assert text == written(found, what, format)
    assert not root.xpath("//*[local-name()='Bob']")
    if format == "svg":
        assert root.tag == SVG + "svg"
        assert root.find(f"{SVG}title") is not None
        # nothing is loaded
        assert not root.xpath("//@href | //@*[starts-with(., 'http://') and not(local-name() = 'xmlns')]")
    if (what, format) == ("fragment", "svg"):
        assert " within</text>" in text
    if format == "html":
        assert "http://" not in re.sub(r"http://www\.w3\.org/1999/xhtml", "", text).split("<section")[0]


def test_an_unknown_output_is_refused(found):
    with pytest.raises(UsageError, match="network as svg, gexf"):
        written(found, "network", "pdf")
    with pytest.raises(UsageError, match="sites, companions"):
        survey_table(found, "nothing")


def test_graph_programs_read_the_whole_network(found):
    graph = nx.read_gexf(io.BytesIO(written(found, "network", "gexf").encode()), node_type=int)
    inner = {(source, end): data["weight"] for source, end, data in graph.edges(data=True) if source < 5 and end < 5}
    table = matrix_of(found)
    assert inner == {(a, b): table[a][b] for a in range(5) for b in range(5) if a != b and table[a][b]}
    assert {data["set"] for _, data in graph.nodes(data=True)} == {"target", "strong", "private"}


def test_files_of_data_have_all_sites_in_every_format(found):
    for what, sites in (("network", 5 + len(found.companions)), ("targets", 5), ("colinks", 5)):
        small = io.StringIO(newline="")
        write_survey(found, what, "gexf", small, max_sites=2)
        graphs = [nx.read_gexf(io.BytesIO(small.getvalue().encode()), node_type=int)]
        graphs.append(nx.read_graphml(io.BytesIO(written(found, what, "graphml").encode())))
        graphs.append(nx.read_pajek(io.BytesIO(written(found, what, "net").encode())))
        assert [graph.number_of_nodes() for graph in graphs] == [sites] * 3
        assert len({graph.number_of_edges() for graph in graphs}) == 1
        assert "s1.example" in graphs[2]
    assert len(network_of(found, what="targets").sites) == 5


def test_the_co_link_map_joins_the_pairs_of_the_table_without_direction(found):
    pairs = {(pair.first, pair.second): pair.sites for pair in found.co_inlinks}
    assert pairs
    for format, read in (("gexf", nx.read_gexf), ("graphml", nx.read_graphml), ("net", nx.read_pajek)):
        graph = read(io.BytesIO(written(found, "colinks", format).encode()))
        assert not graph.is_directed()
        assert graph.number_of_nodes() == 5
        weights = sorted(int(data["weight"]) for *_, data in graph.edges(data=True))
        assert weights == sorted(pairs.values())
    drawn = written(found, "colinks", "svg")
    assert "sites that link to both" in drawn
    assert f" and s4.example: {pairs[3, 4]} site" in drawn


def test_sites_without_figures_are_left_out_of_the_report_with_a_word(found):
    unread = replace(found, figures=(found.figures[0]._replace(fetched=0), *found.figures[1:]))
    for results, rows in ((found, 5), (unread, 4)):
        report = written(results, "report", "html")
        assert report.split('id="unit-rows"')[1].split("</table>")[0].count("<tr>") - 1 == rows
        assert ("Without 1 site that has no fetched page or no link" in report) == (rows == 4)
        assert "The surveyed sites alone" in report and 'class="scroll" tabindex="0"' in report


def test_omitted_sites_are_counted(found):
    network = network_of(found, max_sites=2)
    assert (len(network.sites), network.targets_left_out, network.left_out) == (2, 3, len(found.companions))
    out = io.StringIO()
    write_network_svg(network, "T", "", out)
    assert f"not drawn: 3 sites of the target set, {len(found.companions)} companion sites" in out.getvalue()


def test_the_matrix_is_the_same_as_csv(found):
    head, *rows = csv.reader(io.StringIO(written(found, "matrix", "csv")))
    assert [[int(cell) for cell in row[1:]] for row in rows] == matrix_of(found)
    assert head[1:] == [row[0] for row in rows]


def test_tables_have_a_value_per_column(found):
    for name in TABLES:
        table, rows = survey_table(replace(found, earlier=found), name)
        lengths = {len(row) for row in rows}
        assert lengths <= {len(table.columns)}, name


def test_a_site_with_one_page_has_no_impact_factor(found):
    """Only s0 links to the only page of s1."""
    table, rows = survey_table(found, "sites")
    names = table.names
    row = next(dict(zip(names, row, strict=True)) for row in rows if "s1.example" in row)
    assert (row["fetched"], row["linking_pages"], row["wif"], row["external_wif"]) == (1, 1, None, None)
    assert "1 to the only page" in written(found, "report", "html")


def test_circles_do_not_overlap_and_the_layout_is_deterministic():
    rng = np.random.default_rng(3)
    boxes = np.stack((rng.uniform(5, 40, 70), rng.uniform(5, 25, 70)), axis=1)
    source, end = rng.integers(0, 70, 200), rng.integers(0, 70, 200)
    where = place_circles(boxes, source, end, np.ones(200))
    assert np.array_equal(where, place_circles(boxes, source, end, np.ones(200)))
    over = boxes[:, None] + boxes[None] - np.abs(where[:, None] - where[None])
    covers = (over > 0).all(axis=2)
    np.fill_diagonal(covers, False)
    assert not covers.any()


def test_circles_at_the_same_position_are_separated():
    where = apart(np.zeros((6, 2)), np.full((6, 2), 10.0))
    assert len({tuple(point) for point in where.round(3).tolist()}) == 6


def test_a_single_site_and_no_site_can_be_drawn(tmp_path):
    folder = stored(tmp_path / "c", {"https://a.example/": page("A")}, ["https://a.example/"])
    for what, formats in FORMATS.items():
        for format in formats:
            assert written(survey_of(folder), what, format)


@pytest.mark.parametrize("most", [1, 2, 7, 8, 100, 12_345])
def test_shades_increase_with_counts_and_are_all_used(most):
    steps = [shade(count, most) for count in range(1, most + 1)]
    assert steps == sorted(steps)
    assert all(1 <= step <= STEPS for step in steps)
    assert most == 1 or (steps[0], steps[-1]) == (1, STEPS)


@pytest.mark.parametrize(
    ("value", "top"), [(0, 4), (3, 4), (9, 12), (13, 16), (100, 100), (1351, 1600), (10**6, 10**6)]
)
def test_axes_end_at_multiples_of_four(value, top):
    assert nice(value) == top
    assert nice(value) % 4 == 0


def test_long_names_are_cut_and_stay_distinct():
    names = ["site-number-1.example.org", "site-number-12.example.org", "short", "short", "another-long-name.example"]
    assert short_names(names, 14) == ["site…-1.examp…", "site…-12.exam…", "short", "short", "another-long-…"]


def test_a_folder_keeps_its_colour_unless_a_more_common_folder_has_it():
    alone = {name: folder_hues(Counter([name]))[name] for name in ("/news/", "/people/", "/a/", "/b/", "/c/", "/d/")}
    together = folder_hues(Counter({name: 9 - place for place, name in enumerate(alone)}))
    assert len(together) == len(set(together.values())) == len(HUES)
    assert together["/news/"] == alone["/news/"]


def test_names_at_the_ends_of_curves_do_not_overlap():
    names = Axes(0, 50, 100, 200, 1, 1).names([(0.5, "teal", "a"), (0.5, "red", "b"), (0.49, "blue", "c")])
    lines = sorted(float(y) for y in re.findall(r'<text [^>]*y="([0-9.]+)"', names))
    assert len(lines) == 3
    assert min(later - earlier for earlier, later in pairwise(lines)) >= 12
