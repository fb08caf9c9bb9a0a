"""The public names of `import periplus`."""

from __future__ import annotations

import csv
import inspect
import subprocess
import sys

import pytest

import periplus
from periplus.errors import InvalidUrl, NoCollection, UnknownSetting, UsageError
from unit.test_collection import folder  # noqa: F401 - a fixture


def test_every_public_name_exists_and_is_documented():
    for name in periplus.__all__:
        offered = getattr(periplus, name)
        assert name in dir(periplus)
        assert isinstance(offered, str) or inspect.getdoc(offered), name
        if inspect.isfunction(offered):
            signature = inspect.signature(offered)
            assert signature.return_annotation is not inspect.Signature.empty
            assert all(
                parameter.annotation is not inspect.Parameter.empty for parameter in signature.parameters.values()
            )
    assert (
        periplus.__version__
        in subprocess.run(
            [sys.executable, "-m", "periplus", "--version"], capture_output=True, text=True, check=True
        ).stdout
    )


def test_importing_the_package_imports_no_submodule():
    code = "import sys, periplus; print([name for name in sys.modules if name.startswith('periplus.')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


NOT_FOR_A_CRAWL = (
    "numpy", "scipy", "tantivy", "email.utils", "psycopg", "pyarrow", "turbohtml", "periplus.ui", "periplus.jobs",
    "periplus.retrieval", "periplus_topics.model", "periplus.analyse.content",
    "periplus.analyse.duplicates", "periplus.analyse.linkgraph", "periplus.model.results", "periplus_studies.model",
    "periplus.present.report", "periplus.present.map",
)  # fmt: skip
NOT_FOR_INDEXING = (
    "scipy", "pyarrow", "email.utils", "periplus.analyse.duplicates", "periplus.analyse.shorkin",
    "periplus.retrieval.snippets", "periplus.document.decode", "periplus.api.facts", "periplus.api.searching",
)  # fmt: skip


@pytest.mark.parametrize(
    ("modules", "unneeded"),
    [
        ("periplus.cli.main, periplus.cli.crawl, periplus.api.crawling", NOT_FOR_A_CRAWL),
        ("periplus.api.search_index", NOT_FOR_INDEXING),
    ],
)
def test_a_crawl_does_not_import_packages_of_reports_and_search(modules, unneeded):
    code = f"import sys, {modules}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()).isdisjoint(unneeded)


def test_sql_returns_a_table(folder):  # noqa: F811
    rows = periplus.sql(folder, "SELECT reason, count(*) AS many, avg(depth) AS mean FROM urls GROUP BY 1 ORDER BY 1")
    assert rows.columns == ("reason", "many", "mean")
    assert ("ok", 4) in [(row.reason, row.many) for row in rows]
    assert [str(kind) for kind in rows.to_pandas().dtypes] == ["string", "Int64", "Float64"]
    assert periplus.sql(folder, "SELECT 1 AS one WHERE 0").to_dicts() == []
    mixed = periplus.sql(folder, "SELECT 1 AS a, 0.5 AS b, 'c' AS c, NULL AS d UNION SELECT 2, 1, 'e', NULL")
    assert [str(field.type) for field in mixed.to_arrow().schema] == ["int64", "double", "string", "string"]
    with pytest.raises(UsageError):
        periplus.sql(folder, "DELETE FROM url")


def test_a_table_is_exported_by_its_name(folder, tmp_path):  # noqa: F811
    path = periplus.export(folder, "pages", tmp_path / "pages.csv")
    with path.open(newline="") as lines:
        read = list(csv.DictReader(lines))
    with periplus.open(folder) as collection:
        table = collection.table("pages")
        assert [row["url"] for row in read] == [row.url for row in table]
        assert table.columns == tuple(read[0])
        assert {row.code for row in collection.table("issues")} >= {"suspect-link"}
    for wrong in (("pages", "pages.doc"), ("leaves", "leaves.csv")):
        with pytest.raises(UsageError):
            periplus.export(folder, wrong[0], tmp_path / wrong[1])


def test_a_stored_collection_can_be_checked_offline(folder):  # noqa: F811
    result = periplus.check(folder=folder, offline=True)
    assert result.end is None
    assert {issue.code for issue in result.issues} >= {"suspect-link"}
    assert len(result.faults) <= len(result.issues)
    assert repr(result) == f"<CheckResult: {len(result.issues)} issues with {len(result.faults)} causes>"
    with pytest.raises(UsageError, match="nothing to check"):
        periplus.check()


def test_a_deletion_can_be_previewed(folder):  # noqa: F811
    plan = periplus.delete(folder, ["e.org/a"], dry_run=True)
    with periplus.open(folder) as collection:
        assert (plan.pages, "https://e.org/a" in collection) == (1, True)
    assert periplus.delete(folder, ["e.org/a"]).pages == 1
    with periplus.open(folder) as collection:
        assert {row.url for row in collection.pages(state="fetched")}.isdisjoint({"https://e.org/a"})
    with pytest.raises(UsageError):
        periplus.delete(folder, ["e.org/nowhere"])


def test_invalid_arguments_are_refused(tmp_path):
    with pytest.raises(NoCollection):
        periplus.open(tmp_path / "none")
    with pytest.raises(UnknownSetting):
        periplus.crawl("https://e.org/", tmp_path / "c", max_page=3)
    with pytest.raises(InvalidUrl):
        periplus.crawl("http://[::/", tmp_path / "c")
    with pytest.raises(UsageError, match="no start"):
        periplus.crawl([], tmp_path / "c")
    with pytest.raises(UsageError, match="choose among dl, dt, pa"):
        periplus.influence(tmp_path, objective="most")


def test_influence_reads_a_file_of_cascades(tmp_path):
    (tmp_path / "cascades.txt").write_text("a,0 b,1 c,2\na,0 c,5\nb,0 c,1\n")
    chosen = periplus.influence(tmp_path / "cascades.txt", budget=1)
    assert [choice.site for choice in chosen.chosen] == ["c"] or len(chosen.chosen) == 1
