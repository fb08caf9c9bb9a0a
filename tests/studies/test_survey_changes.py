"""Two surveys compared, and rank correlations with columns of other sources: by hand and against SciPy."""

import hashlib
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.settings import VERSION
from periplus_studies import api as survey
from periplus_studies.compare import compare_surveys
from periplus_studies.model import Campaign
from periplus_studies.report import TABLES, survey_table
from periplus_studies.results import FORMATS, survey_of
from periplus_studies.statistics import outside_columns, ranks, spearman
from periplus_studies.units import unit_of
from stored import page, stored

A, B, C, D, E = (f"https://{name}.example/" for name in "abcde")
BEFORE = {
    A: page("A", B, C, "https://hub.org/"),
    B: page("B", C, "https://lone.net/"),
    C: page("C", B, "https://hub.org/"),
    D: page("D", A, C),
}
AFTER = {
    A: page("A", "/a2", B, "https://hub.org/"),
    A + "a2": page("A2", B, D),
    "http://www.b.example/": page("B", "https://hub.org/", "https://new.net/"),
    C: page("C", A, E),
    E: page("E", A),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """D is in the earlier survey, E in the later one; B has another address in the later one."""
    folder = tmp_path_factory.mktemp("surveys")
    early = stored(folder / "2020.periplus", BEFORE, [A, B, C, D])
    late = stored(folder / "2026.periplus", AFTER, [A, "http://www.b.example/", C, E])
    survey.create(early, Campaign("Before", tuple(map(unit_of, (A, B, C, D)))))
    survey.create(late, Campaign("After", tuple(map(unit_of, (A, "http://www.b.example/", C, E)))))
    return early, late


@pytest.fixture(scope="module")
def change(folders):
    early, late = (survey_of(folder, survey.campaign_of(folder).units) for folder in folders)
    return compare_surveys(early, late)


def test_sites_that_came_went_and_rose_equal_a_comparison_by_hand(change):
    rows = {row.site: row for row in change.rows}
    sets = {name: (row.change, row.set_before, row.set_after) for name, row in rows.items()}
    assert sets == {
        "a.example": ("stayed", "target", "target"),
        "b.example": ("stayed", "target", "target"),
        "c.example": ("stayed", "target", "target"),
        "d.example": ("moved", "target", "private"),
        "e.example": ("came", "", "target"),
        "hub.org": ("stayed", "weak", "weak"),
        "lone.net": ("went", "private", ""),
        "new.net": ("came", "", "private"),
    }
    # links in, before: a 1 (d), b 2 (a, c), c 3 (a, b, d); now: a 2 (c, e), b 2 (a, a2), c 0
    assert [(rows[name].links_before, rows[name].links_after) for name in ("a.example", "b.example", "c.example")] == [
        (1, 2),
        (2, 2),
        (3, 0),
    ]
    ranked = [(row.site, row.rank_before, row.rank_after, row.rise) for row in change.rows[:3]]
    assert ranked == [("a.example", 3, 1.5, 1.5), ("b.example", 2, 1.5, 0.5), ("c.example", 1, 3, -2)]
    assert (rows["a.example"].read_before, rows["e.example"].read_before, rows["e.example"].read_after) == (1, None, 1)
    assert change.ranks.rho == pytest.approx(stats.spearmanr([1, 2, 3], [2, 2, 0]).statistic)


def test_links_that_came_and_went_are_those_of_sites_that_both_surveys_read(change):
    rows = {(row.source[0], row.target[0]): (row.change, row.links_before, row.links_after) for row in change.links}
    assert rows == {
        ("a", "b"): ("more", 1, 2),
        ("a", "c"): ("went", 1, 0),
        ("b", "c"): ("went", 1, 0),
        ("c", "b"): ("went", 1, 0),
        ("c", "a"): ("came", 0, 1),
        ("d", "a"): ("", 1, 0),
        ("d", "c"): ("", 1, 0),
        ("c", "e"): ("", 0, 1),
        ("e", "a"): ("", 0, 1),
    }
    assert (change.sites, change.arcs("came"), change.arcs("went"), change.arcs_share) == (3, 1, 3, pytest.approx(0.2))


def test_a_survey_compared_with_itself_has_no_change(folders):
    results = survey_of(folders[0], survey.campaign_of(folders[0]).units)
    same = compare_surveys(results, results)
    assert {row.change for row in same.rows} == {"stayed"} and {row.change for row in same.links} == {"same"}
    assert {row.rise for row in same.rows if row.rise is not None} == {0}
    assert (same.arcs_share, same.ranks.rho) == (1.0, pytest.approx(1))


def run(*line, code=0):
    result = CliRunner().invoke(main, ["survey", *map(str, line)])
    assert result.exit_code == code, result.output
    return result.output


def test_the_commands_compare_and_correlate(folders, tmp_path):
    early, late = folders
    ranking = tmp_path / "ranking.csv"
    ranking.write_text("rank;site\n1;a.example\n=2;https://www.b.example/x\n2-3;c.example\n9;other.example\n", "utf-8")
    moved = run("export", "changes", "--before", early, "-c", late)
    assert moved.startswith("site,prefixes,change,") and "c.example,c.example,stayed,target,target,3,1" not in moved
    assert "d.example,d.example,moved,target,private" in moved
    assert "a.example,b.example,more,1,2" in run("export", "linkchanges", "--before", early, "-c", late)
    assert "--before" in run("export", "changes", "-c", late, code=2)
    rows = run("export", "correlations", "--with", ranking, "-c", late)
    assert "ranking.csv: 1 of its sites are not in the survey: other.example" in rows
    assert "in_links,rank,3,-0.866" in rows and "in_links,documents,4,0.5" in rows
    report = tmp_path / "report.html"
    run("report", "--before", early, "--with", ranking, "-c", late, "-o", report)
    text = report.read_text("utf-8")
    assert "Compared with the earlier survey" in text and "Rank correlations" in text
    assert "1 pair linked in both, 1 came and 3 went" in text
    run("report", "-c", late, "-o", report)
    assert "Compared with the earlier survey" not in report.read_text("utf-8")


def test_correlations_leave_out_sites_that_were_not_read(folders):
    results = survey_of(folders[1], [*survey.campaign_of(folders[1]).units, unit_of("https://new.net/")])
    table, rows = survey_table(results, "correlations")
    pairs = {row[0]: row[table.names.index("pairs")] for row in rows}
    assert pairs["in_links"] == 4 and "community" not in pairs


@pytest.mark.parametrize("seed", range(8))
def test_rank_correlations_agree_with_scipy_with_ties_and_missing_values(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 6 + 10 * seed, (2, 5 + 10 * seed)).astype(float)
    second += first * (seed % 3)
    first[seed % 4], second[3] = math.nan, math.nan
    both = ~(np.isnan(first) | np.isnan(second))
    assert ranks(first[both]).tolist() == stats.rankdata(first[both]).tolist()
    row = spearman(first, second)
    assert row.pairs == both.sum()
    assert row.rho == pytest.approx(stats.spearmanr(first[both], second[both]).statistic)
    if row.pairs > 3 and abs(row.rho) < 1:
        assert -1 <= row.low < row.rho < row.high <= 1


def test_a_constant_column_and_few_pairs_have_no_correlation():
    ones, two = np.ones(9), np.array([1.0, 2.0])
    assert spearman(ones, np.arange(9.0)).rho is None
    assert spearman(two[:1], two[:1]) == spearman(two[:1], two[:1] + 1)
    assert (spearman(two, two).rho, spearman(two, two).low) == (pytest.approx(1), None)


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_the_interval_of_a_rank_correlation_holds_the_truth(rho):
    """400 samples of 25 pairs of a bivariate normal distribution, whose rank correlation is known (Pearson 1907)."""
    rng, truth = np.random.default_rng(7), 6 / math.pi * math.asin(rho / 2)
    held = 0
    for _ in range(400):
        first, noise = rng.normal(size=(2, 25))
        row = spearman(first, rho * first + math.sqrt(1 - rho**2) * noise)
        held += row.low <= truth <= row.high
    assert 370 <= held <= 395


def test_an_outside_file_is_matched_by_any_name_of_a_site():
    units = [unit_of("https://www.uni.example/"), unit_of("https://x.example/~ann/", name="Ann", short="ann")]
    text = "\ufeffSite\tsize\tband\tcountry\nhttp://uni.example/about\t1200\t201–300\tDE\nANN\t3.5\t1001+\tFR\n"
    columns, sentences = outside_columns(text, units)
    assert [(column.name, column.values) for column in columns] == [("size", (1200, 3.5)), ("band", (250.5, 1001))]
    assert sentences == ("column country is not used: 'DE' on line 2 is no number",)
    (gap,), _ = outside_columns("site,size\nx.example/~ann,\nuni.example,=12", units)
    assert gap.values[0] == 12 and math.isnan(gap.values[1])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line of names"),
        ("name,size\nuni.example,1", "`site`"),
        ("site,size\nuni.example,1\nwww.uni.example,2", "line 3: www.uni.example is on line 2 too"),
        ("site,size\nother.example,1", "none of the survey's sites"),
        ("site,size\nuni.example,big", "no number"),
    ],
)
def test_an_outside_file_that_cannot_be_used_is_refused(text, why):
    with pytest.raises(UsageError, match=why):
        outside_columns(text, [unit_of("https://uni.example/")])


def paper(folders, folder, *more):
    run("paper", folder, "-c", folders[1], *more)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_paper_has_tables_figures_method_and_checksums_and_repeats_byte_by_byte(folders, tmp_path):
    files = paper(folders, tmp_path / "a", "--before", folders[0])
    assert files == paper(folders, tmp_path / "b", "--before", folders[0])
    line = [sys.executable, "-m", "periplus", "survey", "paper", tmp_path / "c", "-c", folders[1]]
    another_order_of_sets = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([*line, "--before", folders[0]], check=True, capture_output=True, env=another_order_of_sets)
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()}
    wanted = {*(f"{name}.csv" for name in TABLES), *(f"{what}.{end}" for what, ends in FORMATS.items() for end in ends)}
    assert files.keys() == {*wanted, "method.md", "SHA256SUMS"}
    sums = dict(line.split("  ")[::-1] for line in files.pop("SHA256SUMS").decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def test_the_method_of_a_paper_says_rule_dates_version_and_definitions(folders, tmp_path):
    text = paper(folders, tmp_path / "a", "--before", folders[0])["method.md"].decode()
    earlier = survey_of(folders[0], survey.campaign_of(folders[0]).units).method.data
    for words in (f"Periplus {VERSION}", f"numpy {np.__version__}", "12 January 1970", "document model: page", earlier):
        assert words in text
    assert "### sites.csv" in text and "- `external_wif`: external_linking_pages / fetched" in text


def test_a_paper_does_not_write_among_other_files(folders, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "holds other files" in run("paper", tmp_path, "-c", folders[1], code=2)


def test_a_changed_collection_has_another_checksum(folders, tmp_path):
    other = stored(tmp_path / "c", AFTER | {C: page("C", A)}, [A, C])
    units = survey.campaign_of(folders[1]).units
    sums = [survey_of(folder, units).method.data for folder in (folders[1], folders[1], other)]
    assert sums[0] == sums[1] != sums[2]
