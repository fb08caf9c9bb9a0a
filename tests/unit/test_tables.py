"""Tables as text, CSV, JSON Lines and JSON."""

import csv
import io
import json
import random

import numpy as np
import pytest

from periplus.errors import UsageError
from periplus.model.tables import without_surrogates
from periplus.model.visit import State
from periplus.present.tables import harmless, write_table


def written(columns, rows, form):
    out = io.StringIO(newline="")
    write_table(columns, rows, form, out)
    return out.getvalue()


def test_a_table_is_aligned_with_numbers_to_the_right():
    text = written(["url", "size"], [["https://a.example/", 5], ["/b", 1200]], "table")
    assert text.splitlines() == [
        "url                 size",
        "------------------  ----",
        "https://a.example/     5",
        "/b                  1200",
    ]


def test_a_table_counts_the_width_of_wide_characters():
    text = written(["title", "n"], [["地図", 1], ["abcd", 2]], "table")
    assert [
        line.index(digit) + extra for line, digit, extra in zip(text.splitlines()[2:], "12", (2, 0), strict=True)
    ] == [7, 7]


def test_a_table_cannot_be_broken_by_control_characters():
    assert written(["t"], [["a\x1b[2Jb\nc\u202ed"]], "table").splitlines()[2] == "a[2Jb cd"


def test_a_later_long_value_is_written_in_full():
    rows = [["ab"]] * 200 + [["abcdefgh"]]
    assert written(["x"], rows, "table").splitlines()[-1] == "abcdefgh"


def test_missing_values_and_booleans_in_a_table():
    assert written(["a", "b"], [[None, True], [None, False]], "table").splitlines()[2:] == ["   yes", "   no"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@A1", "\t=1", "\r=1", "＝1+1", "＋1", "－1", "＠A1"])
def test_csv_texts_that_a_spreadsheet_would_evaluate_are_quoted(text):
    [_, [cell]] = list(csv.reader(io.StringIO(written(["x"], [[text]], "csv"), newline="")))
    assert cell == "'" + text


def test_csv_numbers_stay_numbers():
    assert written(["a", "b"], [[-1, np.float64(-0.5)]], "csv") == "a,b\r\n-1,-0.5\r\n"


def test_csv_keeps_commas_quotes_and_line_breaks():
    cells = ['a,"b"', "c\nd"]
    assert list(csv.reader(io.StringIO(written(["x", "y"], [cells], "csv"), newline="")))[1] == cells


def test_csv_equals_that_of_the_standard_library():
    """Our writer caches cells, so the rows repeat few values."""
    rng = random.Random(1)
    texts = ["", "a", 'a,"b"', "c\nd", "\r", "=1", "a=1", "-", "＝1", "\ud800", "x" * 300, "\r\n=1"]
    kinds = [texts, [None, 1, -5], [0, *texts], [True, None], [1, 1.0], [["a", "b"]]]
    for _ in range(20):
        columns = rng.choices(kinds, k=rng.randint(1, 5))
        rows = [[rng.choice(values) for values in columns] for _ in range(rng.randint(1, 1200))]
        plain = io.StringIO(newline="")
        names = [f"c{place}" for place in range(len(columns))]
        csv.writer(plain, lineterminator="\r\n").writerows(
            [names, *([harmless(without_surrogates(v) if isinstance(v, str) else v) for v in row] for row in rows)]
        )
        assert written(names, rows, "csv") == plain.getvalue()


def test_jsonl_has_an_object_per_row_with_plain_values():
    [line] = written(
        ["url", "n", "none", "state", "many"], [["/é", np.int32(3), None, State.FETCHED, ("a", 1)]], "jsonl"
    ).splitlines()
    assert json.loads(line) == {"url": "/é", "n": 3, "none": None, "state": "fetched", "many": ["a", 1]}


@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl"])
def test_half_a_surrogate_pair_does_not_break_utf8(form):
    written(["x"], [["a\ud800"]], form).encode("utf-8")


@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl"])
def test_rows_are_streamed(form):
    out = io.StringIO(newline="")
    lengths = []

    def rows():
        for number in range(100_000):
            if number % 10_000 == 0:
                lengths.append(len(out.getvalue()))
            yield ("x", number)

    write_table(["a", "b"], rows(), form, out)
    assert lengths[5] > lengths[2] > 0


def test_json_has_null_for_infinity_and_nan():
    assert json.loads(written(["a", "b"], [[float("inf"), np.float64("nan")]], "json")) == [{"a": None, "b": None}]


@pytest.mark.parametrize("rows", [[], [["/é", 1]], [["/é", 1], ["/b", None]]])
def test_json_is_one_array_of_the_objects_of_jsonl(rows):
    lines = written(["url", "n"], rows, "jsonl").splitlines()
    assert json.loads(written(["url", "n"], rows, "json")) == [json.loads(line) for line in lines]


def test_an_unknown_format_is_refused_by_name():
    with pytest.raises(UsageError, match="parquet"):
        written(["x"], [], "parquet")
