"""Tables in Python: named rows, Arrow, pandas, notebooks."""

from __future__ import annotations

import pytest

import periplus
from periplus.api.rows import Rows
from periplus.errors import InvalidUrl, UsageError
from periplus.model.tables import Column, ColumnKind, Table
from unit.test_collection import HOME, folder  # noqa: F401 - a fixture

TABLE = Table(
    "lines",
    "Lines of a test.",
    (
        Column("name", ColumnKind.TEXT, "a name"),
        Column("pages", ColumnKind.INTEGER, "how many"),
        Column("share", ColumnKind.REAL, "of all"),
        Column("own", ColumnKind.BOOLEAN, "whether it is ours"),
    ),
)
VALUES = [("a<b", 1, 0.5, 1), ("b", None, None, 0)]


def lines(*names, values=VALUES):
    columns = TABLE.select(names)
    places = [TABLE.columns.index(column) for column in columns]
    return Rows("lines", columns, lambda _: (tuple(row[place] for place in places) for row in values))


def test_rows_can_be_iterated_several_times():
    rows = lines()
    assert list(rows) == list(rows) == VALUES
    assert rows.to_dicts()[1] == {"name": "b", "pages": None, "share": None, "own": 0}


def test_columns_can_be_selected_in_any_order():
    rows = lines("own", "name")
    assert (rows.columns, [(row.own, row.name) for row in rows]) == (("own", "name"), [(1, "a<b"), (0, "b")])
    with pytest.raises(UsageError, match="no column colour: choose among name, pages"):
        lines("colour")


def test_columns_for_arrow_and_pandas_have_types_and_missing_values():
    table = lines().to_arrow()
    assert [str(kind) for kind in table.schema.types] == ["string", "int64", "double", "bool"]
    assert table.to_pylist() == lines().to_dicts() and table["own"].to_pylist() == [True, False]
    frame = lines().to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["string", "Int64", "Float64", "boolean"]
    assert (frame.shape, int(frame["pages"].isna().sum())) == ((2, 4), 1)


def test_times_are_timestamps_for_arrow_and_pandas(folder):  # noqa: F811
    with periplus.open(folder) as collection:
        runs = collection.table("runs")
        assert str(runs.to_arrow().schema.field("started").type) == "timestamp[ms, tz=UTC]"
        assert str(runs.to_pandas()["started"].dtype) == "datetime64[s, UTC]"
        assert runs.to_pandas()["started"].dt.year.min() >= 1970


def test_a_site_converts_to_networkx_and_a_collection_has_html_for_notebooks(folder):  # noqa: F811
    with periplus.open(folder) as collection:
        site = collection.map()
        graph = site.to_networkx()
        assert (graph.number_of_nodes(), graph.number_of_edges()) == (len(site.graph.pages), len(site.graph.targets))
        assert graph.nodes[HOME]["title"]
        assert (
            collection._repr_html_().count("<td>fetched</td>") == collection._repr_html_().count("<td>failed</td>") == 1
        )


def test_a_table_without_rows_has_its_columns():
    rows = lines(values=[])
    assert (rows.to_arrow().num_rows, rows.to_arrow().column_names) == (0, list(TABLE.names))
    assert (rows.to_pandas().shape, rows.to_dicts()) == ((0, 4), [])


def test_a_table_has_a_repr_and_html_for_notebooks():
    assert repr(lines()) == "<lines: name, pages, share, own>"
    assert "<th>pages</th>" in lines()._repr_html_() and "<td>a&lt;b</td><td>1</td>" in lines()._repr_html_()
    many = lines(values=VALUES * 20)
    assert many._repr_html_().count("<tr>") == 21 and "The first 20 rows." in many._repr_html_()


@pytest.mark.parametrize("spelling", [HOME, HOME.upper(), HOME.rstrip("/"), "e.org", "https://e.org:443/#top"])
def test_every_spelling_of_a_url_is_accepted(folder, spelling):  # noqa: F811
    with periplus.open(folder) as collection:
        assert spelling in collection
        assert collection.resolve(spelling) == HOME
        assert len(list(collection.links(source=spelling))) == len(list(collection.links(source=HOME))) > 0


def test_invalid_arguments_are_refused_at_the_call(folder):  # noqa: F811
    with periplus.open(folder) as collection:
        assert len(list(collection.pages(status=404))) == len(list(collection.pages(status="404"))) == 1
        for wrong in ({"state": "indexd"}, {"status": 40}, {"columns": ("colour",)}):
            with pytest.raises(UsageError):
                collection.pages(**wrong)
        with pytest.raises(UsageError, match="does not know"):
            collection.links(source="https://e.org/nowhere")
        with pytest.raises(InvalidUrl):
            collection.links(target="http://[::/")
        assert "https://e.org/nowhere" not in collection
        assert repr(collection) == f"<Collection {folder}>"


def test_a_map_has_a_repr_and_a_picture(folder):  # noqa: F811
    with periplus.open(folder) as collection:
        site = collection.map()
    assert repr(site).startswith("<Site e.org: ") and "<svg" in site._repr_html_()
