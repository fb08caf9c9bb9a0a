"""`report`, `diff` and `template` of a collection with several sites."""

import contextlib
import json

import pytest
from click.testing import CliRunner

import periplus
from periplus.api.comparison import compare_sites
from periplus.api.facts import MOST_SITES
from periplus.api.report import report_data, sites_report
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.audit import Severity
from periplus.present.report import causes_of, sites_page, worst_first
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from stored import page, stored

A, B, C = (f"https://{name}.org/" for name in "abc")
WEB = {
    A: page("Home of A", "/1", "/gone", "/lost", B),
    f"{A}1": page("", "/gone", "/2"),
    f"{A}2": page("Deep", "/"),
    f"{A}gone": 404,
    f"{A}lost": 410,
    B: page("Home of B", "/x"),
    f"{B}x": page("X", "/", "/gone"),
    f"{B}gone": 404,
    C: page("<b>Home</b> of C"),
}


@pytest.fixture
def folder(tmp_path):
    return stored(tmp_path / "three.periplus", WEB, [A, B, C])


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def test_trends_are_of_the_whole_collection_and_shown_for_one_site_only(folder, tmp_path):
    alone = stored(tmp_path / "one.periplus", {A: page("Home of A")}, [A])
    for place, runs in ((folder, 0), (alone, 1)):
        with contextlib.closing(reading.connect(place)) as connection:
            assert len(report_data(SqliteReader(connection), "a.org", 0.0).trends) == runs


def test_the_report_of_all_sites_has_the_figures_of_each_sites_report(folder):
    with contextlib.closing(reading.connect(folder)) as connection:
        report = sites_report(SqliteReader(connection), 0.0)
        assert [site.site for site in report.sites] == ["a.org", "b.org", "c.org"]
        for site in report.sites:
            own = report_data(SqliteReader(connection), site.site, 0.0)
            assert site.counts == own.counts
            assert site.broken_urls == own.broken_urls
            assert site.size_bytes == sum(one.size_bytes for one in own.sizes)
            assert site.depth == max(len(own.depths) - 1, 0)
            assert site.grades == own.grades
            assert [(one.kind.code, one.severity, one.pages, one.total) for one in site.groups] == [
                (one.kind.code, one.severity, one.pages, one.total) for one in own.groups
            ]
    assert [site.broken_urls for site in report.sites] == [2, 1, 0]
    assert [site.depth for site in report.sites] == [2, 1, 0]


def test_the_worst_site_comes_first_with_the_command_for_its_report(folder):
    with contextlib.closing(reading.connect(folder)) as connection:
        report = sites_report(SqliteReader(connection), 0.0)
    with periplus.open(folder) as collection:
        source = collection.report(folder / "all.html").read_text("utf-8")
        alone = collection.report(folder / "one.html", "b.org").read_text("utf-8")
    assert worst_first(report)[0].site == "a.org"
    assert causes_of(report.sites[0], Severity.ERROR) > causes_of(report.sites[1], Severity.ERROR)
    assert "<h1>3 sites: crawl report</h1>" in source
    assert "periplus report --site a.org -o a.org.html" in source
    places = [source.index(f'<a href="{start}" rel="noopener noreferrer nofollow">{start}</a>') for start in (A, B, C)]
    assert places == sorted(places), "a row a site, worst first"
    assert "<b>Home" not in source
    assert "<h1>b.org</h1>" in alone


def test_the_report_of_all_sites_can_be_a_pdf(folder):
    pytest.importorskip("typst")
    with periplus.open(folder) as collection:
        assert collection.report(folder / "all.pdf").read_bytes().startswith(b"%PDF")


def test_a_missing_site_is_requested_with_ten_names(tmp_path):
    starts = [f"https://s{number:02}.org/" for number in range(MOST_SITES + 2)]
    folder = stored(tmp_path / "many.periplus", {start: page("Home") for start in starts}, starts)
    lines = run("map", "-c", folder).output.splitlines()
    assert lines[0] == "periplus: choose one site with --site. The collection has 12 sites:"
    assert [line.strip() for line in lines[1:11]] == [f"s{number:02}.org" for number in range(MOST_SITES)]
    assert lines[11] == "  and 2 more: `periplus export sites` lists all"
    assert len(lines) == 12
    assert (
        "no start on the site 'x.org'. The collection has 12 sites"
        in run("map", "-c", folder, "--site", "x.org").output
    )


def test_differences_are_listed_site_by_site(folder, tmp_path):
    later = stored(tmp_path / "later.periplus", WEB | {f"{B}x": page("Other", "/", "/gone", "/new")}, [A, B, C])
    pair = ("-c", folder, "--other", later)
    shown = run("diff", *pair)
    assert "Sites: 1 of 3 differ" in shown.output
    assert "\nb.org\n" in shown.output
    assert f"~ {B}x" in shown.output
    assert "a.org" not in shown.output
    assert run("diff", *pair, "--exit-code").exit_code == 5
    assert run("diff", *pair, "--exit-code", "--site", "a.org").exit_code == 0
    sites = json.loads(run("diff", *pair, "-f", "json").output)["sites"]
    assert [(site["site"], len(site["changed"])) for site in sites] == [("a.org", 0), ("b.org", 1), ("c.org", 0)]
    assert json.loads(run("diff", *pair, "-f", "json", "--site", "b.org").output)["changed"] == sites[1]["changed"]


def test_collections_without_a_common_site_cannot_be_compared(tmp_path):
    first = stored(tmp_path / "one.periplus", {A: page("A"), B: page("B")}, [A, B])
    other = stored(tmp_path / "other.periplus", {C: page("C")}, [C])
    with pytest.raises(UsageError, match="no site in common"):
        list(compare_sites(first, "last", "last", other=other))


def test_templates_are_searched_site_by_site(folder, tmp_path):
    shown = run("template", "-c", folder)
    assert [line.split(":")[0] for line in shown.output.splitlines() if ".org:" in line and "template" in line] == [
        "a.org", "b.org", "c.org",
    ]  # fmt: skip
    assert [site["site"] for site in json.loads(run("template", "-c", folder, "--json").output)["sites"]] == [
        "a.org", "b.org", "c.org",
    ]  # fmt: skip
    assert json.loads(run("template", "-c", folder, "--json", "--site", "b.org").output)["site"] == "b.org"
    assert json.loads(run("template", "b.org", "-c", folder, "--json").output)["site"] == "b.org"
    assert run("template", "-c", folder, "--text", tmp_path / "plain").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "plain").iterdir()) == ["a.org", "b.org", "c.org"]
    assert len((tmp_path / "plain" / "a.org" / "pages.tsv").read_text().splitlines()) == 4


def test_a_report_of_sites_without_pages_says_so(tmp_path):
    folder = stored(tmp_path / "c.periplus", {B: 404, C: 404}, [B, C])
    with contextlib.closing(reading.connect(folder)) as connection:
        source = sites_page(sites_report(SqliteReader(connection), 0.0))
    assert "No page was fetched" in source
