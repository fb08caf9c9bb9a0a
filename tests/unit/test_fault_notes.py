"""Decisions on faults: check, report, exports and totals omit accepted and ignored causes; a note closes no fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from audited import faults
from interface import client, token_of
from periplus.api.exporting import export_rows
from periplus.api.homes import home_of
from periplus.api.positions import issues_of
from periplus.cli.main import main
from periplus.model.audit import FaultDecision, FaultNote
from periplus.settings import Settings
from stored import page, stored

HOME = "https://e.org/"
GONE = f"{HOME}gone"
SITE = {
    HOME: page("Home of lanterns", "/a", "/b", "/gone", "https://"),
    f"{HOME}a": page("One title", "/gone"),
    f"{HOME}b": page("One title", "/"),
    GONE: 404,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored(tmp_path / "e.periplus", SITE, [HOME])
    return tmp_path


def cause(folder: Path, code: str) -> str:
    every = faults(issues_of(folder / "e.periplus", Settings()))
    return next(fault.cause for fault in every if fault.code == code)


@pytest.mark.parametrize("code", ["suspect-link", "title-duplicate", "description-missing", "malformed-link"])
@pytest.mark.parametrize("decision", [FaultDecision.ACCEPTED, FaultDecision.IGNORED])
def test_a_closed_cause_is_left_out_everywhere(folder: Path, code: str, decision: FaultDecision) -> None:
    place, known_cause = folder / "e.periplus", cause(folder, code)
    before = faults(issues_of(place, Settings()))
    home_of(place).note_fault(FaultNote(code, known_cause, decision))
    notes: list[str] = []
    after = faults(issues_of(place, Settings(), note=notes.append))
    assert [fault for fault in before if (fault.code, fault.cause) != (code, known_cause)] == after
    assert [fault for fault in before if fault not in after], "it existed before"
    assert any("1 cause accepted or ignored" in note for note in notes)
    with export_rows(place, "issues") as (table, table_rows):
        rows = [dict(zip(table.names, row, strict=True)) for row in table_rows]
    assert not [row for row in rows if (row["code"], row["cause"]) == (code, known_cause)]
    assert len(rows) == sum(one.total for one in after)


def test_a_note_without_decision_leaves_a_fault_open(folder: Path) -> None:
    place = folder / "e.periplus"
    before = list(issues_of(place, Settings()))
    home_of(place).note_fault(FaultNote("suspect-link", GONE, assignee="Ann", words="asked the printer"))
    assert list(issues_of(place, Settings())) == before


def test_screen_report_and_command_have_the_same_counts(folder: Path) -> None:
    place, asking = folder / "e.periplus", client(folder)
    home_of(place).note_fault(FaultNote("title-duplicate", cause(folder, "title-duplicate"), FaultDecision.ACCEPTED))
    rows = asking.get("/c/e/t/faults?columns=severity,code,cause&format=json&per=500").json()["rows"]
    every = faults(issues_of(place, Settings()))
    assert sorted(map(tuple, rows)) == sorted((fault.severity.value, fault.code, fault.cause) for fault in every)
    sums = asking.get("/c/e/live?format=json").json()["overview"]["faults"]["causes"]
    assert sum(sums.values()) == len(every)
    said = CliRunner().invoke(main, ["check", "--offline", "-c", str(place)], catch_exceptions=False).output
    assert f"{sums['error']:,} error" in said and "accepted or ignored" in said
    report = CliRunner().invoke(main, ["report", "-c", str(place)], catch_exceptions=False)
    assert report.exit_code == 0


def test_a_decision_in_the_browser_is_stored_shown_and_can_be_undone(folder: Path) -> None:
    asking = client(folder)
    path = f"/c/e/fault?code=suspect-link&cause={GONE}"
    screen = asking.get(path).text
    assert "What to do" in screen and "not recorded by a check yet" in screen
    form = {"csrf_token": token_of(asking, path), "code": "suspect-link", "cause": GONE}
    answer = asking.post("/c/e/fault", data={**form, "decision": "accepted", "assignee": "Ann <b>", "words": "later"})
    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/c/e/fault")
    [note] = home_of(folder / "e.periplus").fault_notes()
    assert (note.decision, note.assignee, note.words) == (FaultDecision.ACCEPTED, "Ann <b>", "later")
    assert "Ann &lt;b&gt;" in asking.get(path).text
    closed = asking.get("/c/e/t/faults?decision=accepted&columns=cause,assignee&format=json").json()["rows"]
    assert closed == [[GONE, "Ann <b>"]]
    asking.post("/c/e/fault", data={**form, "decision": ""})
    assert home_of(folder / "e.periplus").fault_notes() == ()
    assert asking.post("/c/e/fault", data={**form, "decision": "gone"}).status_code == 400
    assert asking.post("/c/e/fault", data={**form, "cause": "https://e.org/none"}).status_code == 404


def test_a_fault_exists_since_the_first_check_that_found_it(folder: Path) -> None:
    from periplus.api.grading import store_issues
    from stored import NOW

    store_issues(folder / "e.periplus", 1, issues_of(folder / "e.periplus", Settings()))
    found = client(folder).get(f"/c/e/fault?code=suspect-link&cause={GONE}&format=json").json()
    assert found["since"] == NOW


def test_settings_of_the_collection_apply_to_screens_and_exports(folder: Path) -> None:
    place = folder / "e.periplus"
    (place / "periplus.toml").write_text(
        '[settings]\nignore = ["title-*"]\nseverity = ["suspect-link=error"]\n', "utf-8"
    )
    rows = client(folder).get("/c/e/t/faults?columns=severity,code&format=json").json()["rows"]
    assert ["error", "suspect-link"] in rows
    assert not [row for row in rows if row[1].startswith("title-")]


def run_faults(folder: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["faults", *words, "-c", str(folder / "e.periplus")])
    return done.exit_code, done.output


def listed(folder: Path, *words: str) -> list[dict[str, object]]:
    return json.loads(run_faults(folder, "list", "-f", "json", *words)[1])


def test_the_command_takes_a_key_or_a_cause(folder: Path) -> None:
    rows = listed(folder)
    first = next(row for row in rows if row["code"] == "title-duplicate")
    code, text = run_faults(folder, "accept", str(first["key"])[:5], "--note", "Twins <b>", "--to", "ann")
    assert code == 0, text
    assert "is accepted, ann mends it" in text
    assert [row["key"] for row in listed(folder)] == [row["key"] for row in rows if row != first]
    [closed] = listed(folder, "--decision", "accepted")
    assert (closed["decision"], closed["assignee"], closed["note"]) == ("accepted", "ann", "Twins <b>")
    assert run_faults(folder, "ignore", GONE)[0] == 0
    assert {row["cause"] for row in listed(folder, "--decision", "ignored")} == {GONE}
    assert run_faults(folder, "assign", str(first["key"]), "--to", "bob")[0] == 0
    assert listed(folder, "--decision", "all", "--assignee", "bob")[0]["decision"] == "accepted"
    assert run_faults(folder, "reopen", str(first["key"]), "--note", "", "--to", "")[0] == 0
    assert len(listed(folder)) == len(rows) - len(listed(folder, "--decision", "ignored"))
    assert [note.code for note in home_of(folder / "e.periplus").fault_notes() if note.cause != GONE] == []


@pytest.mark.parametrize("subject", ["nothing", "", "https://e.org/other", "a"])
def test_an_unknown_cause_is_refused_and_nothing_is_stored(folder: Path, subject: str) -> None:
    key = str(listed(folder)[0]["key"])
    assert run_faults(folder, "accept", key, subject)[0] == 2
    assert home_of(folder / "e.periplus").fault_notes() == ()
    assert run_faults(folder, "assign", key)[0] == 2


def test_notes_can_be_copied_to_another_collection(folder: Path) -> None:
    key = str(listed(folder)[0]["key"])
    run_faults(folder, "ignore", key, "--note", "žluť \u202e\n next")
    text = run_faults(folder, "export")[1]
    stored(folder / "other" / "e.periplus", SITE, [HOME])
    file = folder / "notes.jsonl"
    file.write_text(text, "utf-8")
    assert "1 note taken" in run_faults(folder / "other", "import", str(file))[1]
    assert run_faults(folder / "other", "export")[1] == text
    assert listed(folder / "other") == listed(folder)
    stored(folder / "third" / "e.periplus", SITE, [HOME])
    nothing, burn = '{"code": "nothing", "cause": "x"}', '{"code": "soft-404", "cause": "", "decision": "burn"}'
    for bad in ("{", "[]", nothing, '{"code": "suspect-link"}', burn):
        file.write_text(text + bad, "utf-8")
        code, said = run_faults(folder / "third", "import", str(file))
        assert code == 2 and "line 2" in said, bad
    assert home_of(folder / "third" / "e.periplus").fault_notes() == ()
