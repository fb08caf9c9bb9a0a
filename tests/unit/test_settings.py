"""The table of settings: validation, files, precedence, JSON."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from periplus.cli.main import main
from periplus.cli.options import settings_of
from periplus.errors import UnknownSetting
from periplus.settings import (
    CONTROL,
    DELAY_FLOOR_S,
    Politeness,
    SettingRow,
    Settings,
    as_values,
    read_settings,
    read_values,
    rows,
    settings_from,
)

TABLE = list(rows())


def ids(row: SettingRow) -> str:
    return row.name


@pytest.mark.parametrize("row", TABLE, ids=ids)
def test_each_setting_has_a_description_and_a_valid_default(row):
    assert row.sentence.endswith(".")
    assert row.kind in (str, int, float, bool)
    assert settings_from({row.name: list(row.default) if row.many else row.default}) == Settings()


@pytest.mark.parametrize("row", [row for row in TABLE if row.kind in (int, float)], ids=ids)
def test_each_number_has_a_range_and_a_unit(row):
    assert row.low is not None
    assert row.high is not None
    assert row.unit
    for value in (row.low, row.high):
        assert as_values(settings_from({row.name: row.kind(value)}))[row.name] == value
    for value in (row.low - 1, row.high + 1):
        with pytest.raises(UnknownSetting, match=row.name):
            settings_from({row.name: row.kind(value)})


def test_each_field_has_a_row_and_each_row_a_field():
    for group in dataclasses.fields(Settings):
        fields = [item.name for item in dataclasses.fields(getattr(Settings(), group.name))]
        assert fields == [row.name for row in TABLE if row.group == group.name]


def test_names_are_unique_over_all_groups():
    assert len({row.name for row in TABLE}) == len(TABLE)


def test_units_are_in_the_names_of_times_and_sizes():
    assert [row.name for row in TABLE if row.unit == "s" and not row.name.endswith("_s")] == []
    assert [row.name for row in TABLE if row.unit == "bytes" and not row.name.endswith("_bytes")] == []


def test_the_default_delay_is_at_least_the_floor():
    assert Politeness().delay_s >= DELAY_FLOOR_S


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"delay": 1.0}, "no setting 'delay'"),
        ({"delay_s": "1"}, "type float"),
        ({"delay_s": True}, "type float"),
        ({"per_host": True}, "type int"),
        ({"per_host": 1.5}, "type int"),
        ({"per_host": 65}, "between 1 and 64 requests"),
        ({"scope": "everything"}, "one of site, domain, prefix, any"),
        ({"include": "a,b"}, "list of texts"),
        ({"include": [1]}, "list of texts"),
        ({"delay_s": float("nan")}, "between"),
    ],
)
def test_an_invalid_value_is_refused(values, message):
    with pytest.raises(UnknownSetting, match=message):
        settings_from(values)


@pytest.mark.parametrize("value", [None, 3, 2.5, object()])
def test_a_list_setting_accepts_only_texts(value):
    with pytest.raises(UnknownSetting, match="list of texts"):
        settings_from({"include": value})


@pytest.mark.parametrize("row", [row for row in TABLE if row.kind is str and not row.choices], ids=lambda row: row.name)
@pytest.mark.parametrize("sign", ["\r\n", "\n", "\r", "\0", "\t", "\x1b", "\x7f"])
def test_control_characters_in_a_text_are_refused(row, sign, tmp_path):
    text = f"a{sign}X-Evil: 1"
    with pytest.raises(UnknownSetting, match=f"{row.name} must not contain the control character"):
        settings_from({row.name: ["a", text] if row.many else text})
    written = json.dumps(["a", text] if row.many else text).replace("\x7f", "\\u007f")
    (path := tmp_path / "periplus.toml").write_text(f"[settings]\n{row.name} = {written}\n")
    with pytest.raises(UnknownSetting, match="control character"):
        read_settings(path)


def test_an_integer_is_accepted_for_a_time():
    delay = settings_from({"delay_s": 2}).politeness.delay_s
    assert (delay, type(delay)) == (2.0, float)


def test_values_override_only_themselves():
    base = settings_from({"max_pages": 10, "delay_s": 2.0})
    changed = settings_from({"max_pages": 20}, base)
    assert changed == dataclasses.replace(base, budget=dataclasses.replace(base.budget, max_pages=20))


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().budget = None


def lines(most: int) -> st.SearchStrategy[str]:
    return st.text(max_size=most).filter(lambda text: not CONTROL.search(text))


def values() -> st.SearchStrategy[dict[str, object]]:
    """Valid values of random settings."""

    def of(row: SettingRow) -> st.SearchStrategy[object]:
        if row.many:
            return st.lists(lines(5), max_size=3)
        if row.choices:
            return st.sampled_from(row.choices)
        if row.kind is bool:
            return st.booleans()
        if row.kind is str:
            return lines(10)
        return st.floats(row.low, row.high) if row.kind is float else st.integers(int(row.low), int(row.high))

    return st.fixed_dictionaries({}, optional={row.name: of(row) for row in TABLE})


@given(values())
def test_settings_are_the_same_after_json(chosen):
    settings = settings_from(chosen)
    assert settings_from(json.loads(json.dumps(as_values(settings)))) == settings


def test_a_file_changes_the_settings_that_it_names(tmp_path):
    (tmp_path / "periplus.toml").write_text('[settings]\nmax_depth = 3\ninclude = ["/a/"]\n')
    read = read_settings(tmp_path / "periplus.toml")
    assert read == settings_from({"max_depth": 3, "include": ["/a/"]})


def test_a_missing_file_changes_nothing(tmp_path):
    base = settings_from({"max_depth": 3})
    assert read_settings(tmp_path / "none.toml") == Settings()
    assert read_settings(tmp_path / "none.toml", base) is base


@pytest.mark.parametrize("content", [b"[settings", b"\xff\xfe", b"settings = 3\n", b"[settings]\nno_such = 1\n"])
def test_an_invalid_file_is_refused(tmp_path, content):
    (tmp_path / "periplus.toml").write_bytes(content)
    with pytest.raises(UnknownSetting):
        read_settings(tmp_path / "periplus.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delay_s = 2.0\n", r"periplus\.toml: delay_s is outside of a table: write it below the line \[settings\]"),
        ("[setting]\n", r"unknown table 'setting' \(is it settings\?\)"),
        ("speed = 3\n", "unknown table 'speed'"),
        ("[settings]\nmax_page = 3\n", r"periplus\.toml: .*'max_page' \(is it max_pages\?\)"),
        ("[settings]\nmax-pages = 3\n", r"is it max_pages\?"),
        ("[settings.limits]\nbody_bytes = 3\n", "no setting 'limits'"),
        ("settings = 3\n", "settings must be a table"),
        ("[settings", "not valid TOML"),
    ],
)
def test_an_invalid_value_in_a_file_is_refused(text, message, tmp_path):
    path = tmp_path / "periplus.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(UnknownSetting, match=message):
        read_settings(path)


def test_tables_of_url_rules_are_not_settings(tmp_path):
    path = tmp_path / "periplus.toml"
    path.write_text('[settings]\nmax_pages = 3\n[[site]]\nwww = "with"\n', "utf-8")
    assert read_values(path) == {"max_pages": 3}


def test_the_collections_file_overrides_the_current_folders_and_flags_override_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "e.org.periplus"
    folder.mkdir()
    (tmp_path / "periplus.toml").write_text("[settings]\nmax_pages = 1\nmax_depth = 1\ndelay_s = 1.0\n", "utf-8")
    (folder / "periplus.toml").write_text("[settings]\nmax_pages = 2\nmax_depth = 2\n", "utf-8")
    chosen = settings_of({"max_depth": 3}, folder)
    assert (chosen.budget.max_pages, chosen.scope.max_depth, chosen.politeness.delay_s) == (2, 3, 1.0)
    shown = (
        CliRunner().invoke(main, ["settings", "--effective", "-f", "csv", "-c", "e.org.periplus"]).output.splitlines()
    )
    assert {"max_pages,2,e.org.periplus/periplus.toml", "delay_s,1.0,periplus.toml", "retries,2,default"} <= set(shown)


def test_a_check_reads_the_file_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "periplus.toml").write_text('[settings]\nseverity = ["nonsense=error"]\n', "utf-8")
    ran = CliRunner().invoke(main, ["check", "https://e.org/", "--offline"])
    assert ran.exit_code == 2
    assert "nonsense" in ran.output


def test_url_rules_outside_a_collection_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "periplus.toml").write_text('[[site]]\nslash = "add"\n', "utf-8")
    with pytest.raises(UnknownSetting, match=r"write them into e\.org\.periplus/periplus\.toml"):
        settings_of({}, Path("e.org.periplus"))
