"""Settings in forms, and named presets: complete, validated like flags, with consent where needed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from interface import client, token_of
from periplus.cli.crawl import crawl
from periplus.cli.main import main
from periplus.cli.options import settings_of
from periplus.errors import UnknownSetting, UsageError
from periplus.jobs.presets import job_request, resume_order
from periplus.jobs.setting_fields import (
    PREFIX,
    WITHHELD,
    setting_flags,
    setting_groups,
    setting_values,
    with_preset,
)
from periplus.settings import PRESETS, SettingPreset, Settings, read_presets, read_settings, rows, settings_from
from stored import page, stored

FILE = """
# ours
[settings]
retries = 1

[presets.intranet]
about = "Our own wiki."
delay_s = 1
exclude = ["/cal/"]

[segments]
docs = "/docs"
"""


def flags_of(form, **more):
    return setting_flags(setting_values({PREFIX + name: text for name, text in form.items()}, **more))


def test_every_setting_is_a_field_or_withheld_with_a_reason():
    fields = {field.row.name: field for group in setting_groups((), local=True) for field in group.fields}
    assert set(fields) == {row.name for row in rows()}
    held = {name for name, field in fields.items() if field.withheld}
    assert held == {*WITHHELD, *(row.name for row in rows() if row.group == "searching")}
    far = {field.row.name for group in setting_groups((), local=False) for field in group.fields if field.withheld}
    assert far - held == {"proxy", "insecure"}


@pytest.mark.parametrize("row", [row for row in rows() if row.group != "searching"], ids=lambda row: row.name)
def test_a_field_has_the_same_effect_as_the_flag(row, tmp_path, monkeypatch):
    text = {bool: "no" if row.default is True else "yes", int: "7", float: "7.5", str: "x"}[row.kind]
    text = row.choices[-1] if row.choices else text
    text = str(row.low) if row.low is not None and row.low > 7 else text
    if row.name in WITHHELD:
        with pytest.raises(UsageError, match=rf"{row.name} cannot be set in a form"):
            flags_of({row.name: text})
        return
    value = setting_values({PREFIX + row.name: text})
    words = setting_flags(value)
    monkeypatch.chdir(tmp_path)
    context = crawl.make_context("crawl", ["https://e.org", *words])
    read = settings_of(context.params, Path("none"))
    assert read == settings_from(value) != Settings()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"retries": "21"}, "retries must be between 0 and 20 attempts, not 21"),
        ({"retries": "many"}, "retries must be a whole number, not 'many'"),
        ({"lease_s": "nan"}, "lease_s must be between"),
        ({"keep_xml": "perhaps"}, "keep_xml must be yes or no, not 'perhaps'"),
        ({"scope": "world"}, "scope must be one of site, domain, prefix, any, not 'world'"),
        ({"no_such": "1"}, "there is no setting 'no_such'"),
        ({"weight_title": "3"}, "weight_title cannot be set in a form"),
    ],
)
def test_an_invalid_value_is_refused_as_for_a_flag(form, message):
    with pytest.raises(UsageError, match=message):
        flags_of(form)


def test_a_text_never_becomes_another_flag():
    assert flags_of({"contact": "--allow-private", "ignore": "links *\n--mine=x"}) == (
        "--contact=--allow-private", "--ignore=links *", "--ignore=--mine=x",
    )  # fmt: skip
    with pytest.raises(UsageError, match="Only where this server listens on this machine alone"):
        flags_of({"proxy": "http://10.0.0.1:3128"}, local=False)


def test_a_form_can_select_a_preset_and_override_it():
    presets = read_presets(())
    form = {
        "url": "e.org",
        "settings_preset": "gentle",
        "set_retries": "3",
        "set_keep_bodies": "no",
        "set_contact": " ",
    }
    assert job_request(form, presets).order.command == (
        "crawl", "https://e.org/", "-o", "e.org.periplus", "--preset=gentle", "--retries=3", "--no-keep-bodies",
    )  # fmt: skip
    with pytest.raises(UnknownSetting, match=r"no preset 'gentel' \(is it gentle\?\): choose among gentle, own-site"):
        job_request(form | {"settings_preset": "gentel"}, presets)


def test_settings_for_own_sites_need_consent():
    presets = read_presets(())
    with pytest.raises(UsageError, match="the preset own-site is for sites of your own: tick"):
        job_request({"url": "e.org", "settings_preset": "own-site"}, presets)
    with pytest.raises(UsageError, match="per_host above 1 is for sites of your own"):
        job_request({"url": "e.org", "set_per_host": "2"}, presets)
    of_a_file = {
        name: SettingPreset(name, "", {name: True}, "periplus.toml") for name in ("allow_private", "ignore_robots")
    }
    for name, message in (("allow_private", "allows private addresses: tick"), ("ignore_robots", "ignores robots")):
        with pytest.raises(UsageError, match=message):
            job_request({"url": "e.org", "settings_preset": name, "consent_mine": "yes"}, of_a_file)
    command = job_request({"url": "e.org", "settings_preset": "own-site", "consent_mine": "yes"}, presets).order.command
    assert command[-2:] == ("--preset=own-site", "--mine=e.org")


def test_resuming_can_replace_settings():
    before = ("crawl", "https://e.org/", "-o", "e.periplus", "--retries=3", "--keep-xml", "--max-pages", "5")
    after = resume_order(before, {"set_retries": "4", "set_keep_xml": "no", "max_pages": "-"}).command
    assert after[:4] == before[:4] and set(after[4:]) == {"--retries=4", "--no-keep-xml"}
    assert resume_order(before, {"set_retries": "-"}).command == (*before[:4], *before[5:])


def test_presets_override_files_and_flags_override_presets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "periplus.toml").write_text(FILE.partition("[segments]")[0], "utf-8")
    assert settings_of({"preset": ""}, tmp_path).politeness.retries == 1
    assert settings_of({"preset": "archive"}, tmp_path).politeness.retries == 5
    made = settings_of({"preset": "archive", "retries": 7}, tmp_path)
    assert (made.politeness.retries, made.storage.keep_xml) == (7, True)
    assert settings_of({"preset": "intranet"}, tmp_path).scope.exclude == ("/cal/",)
    shown = CliRunner().invoke(main, ["settings", "--presets", "-f", "csv"]).stdout
    assert "intranet,delay_s,1,periplus.toml,Our own wiki." in shown and "gentle,delay_s,3.0,built in" in shown
    refused = CliRunner().invoke(main, ["crawl", "https://e.org", "--preset", "intranett"])
    assert refused.exit_code == 2 and "(is it intranet?)" in refused.output


def test_built_in_presets_are_valid():
    for preset in PRESETS:
        assert settings_from(preset.values) != Settings() and preset.sentence


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[presets.mine]\nretrys = 3\n",
            r"toml, preset 'mine': there is no setting 'retrys' \(is it retries\?\)",
        ),
        ("[presets.mine]\nretries = 99\n", "preset 'mine': retries must be between"),
        ("[presets]\nmine = 3\n", r"preset 'mine': it must be a table"),
    ],
)
def test_an_invalid_preset_is_refused_by_name(text, message, tmp_path):
    (tmp_path / "periplus.toml").write_text(text, "utf-8")
    with pytest.raises(UnknownSetting, match=message):
        read_presets([tmp_path / "periplus.toml"])


def test_saving_a_preset_keeps_the_rest_of_the_file(tmp_path):
    made = with_preset(FILE, "intranet", {"retries": 4, "contact": 'a"b\\c\n', "exclude": ["x"], "keep_xml": True})
    assert made.startswith("\n# ours\n[settings]\nretries = 1\n") and 'docs = "/docs"\n' in made
    assert tomllib.loads(made)["presets"] == {
        "intranet": {"retries": 4, "contact": 'a"b\\c\n', "exclude": ["x"], "keep_xml": True}
    }
    assert with_preset(made, "intranet", {"retries": 4}).count("[presets.intranet]") == 1
    assert tomllib.loads(with_preset("", "a", {"delay_s": 1.5})) == {"presets": {"a": {"delay_s": 1.5}}}
    for text, name, values in (("", "a b", {"retries": 1}), ("", "a", {}), ("[x", "a", {"retries": 1})):
        with pytest.raises(UsageError):
            with_preset(text, name, values)
    assert tomllib.loads(with_preset("presets = { a = { retries = 2 } }\n", "a", {"retries": 1})) == {
        "presets": {"a": {"retries": 1}}
    }


def test_the_screens_show_every_setting_and_save_a_preset(tmp_path):
    stored(tmp_path / "e.periplus", {"https://e.org/": page("Home")}, ["https://e.org/"])
    (tmp_path / "periplus.toml").write_text(FILE, "utf-8")
    asking = client(tmp_path)
    for address in ("/new?settings_preset=gentle", "/c/e/settings"):
        shown = asking.get(address).text
        for row in rows():
            assert (
                row.name in ("max_pages", "max_depth", "delay_s", "include", "exclude") or f'"set_{row.name}"' in shown
            )
    assert f"From {tmp_path}/periplus.toml." in asking.get("/new").text
    assert "From the preset gentle." in asking.get("/new?settings_preset=gentle").text
    assert "periplus crawl https://e.org/ -o e.org.periplus --retries=4" in asking.get("/?url=e.org&set_retries=4").text
    refused = asking.get("/?url=e.org&set_retries=99").text
    assert "retries must be between 0 and 20 attempts, not 99" in refused and 'value="99"' in refused
    form = {"csrf_token": token_of(asking), "preset_name": "slow", "set_retries": "0", "delay": "5"}
    answer = asking.post("/presets/save", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/new?settings_preset=slow")
    assert read_presets([tmp_path / "periplus.toml"])["slow"].values == {"delay_s": 5.0, "retries": 0}
    assert read_settings(tmp_path / "periplus.toml").politeness.retries == 1
    answer = asking.post("/presets/save", data=form | {"preset_name": "a b"})
    assert answer.status_code == 400 and "a preset cannot be called" in answer.text
