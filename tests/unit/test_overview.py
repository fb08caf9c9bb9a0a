"""Overview of a collection: counts per run, most important repairs, grades, and background computation."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from audited import table_of
from interface import client
from periplus.analyse.issues import first_to_repair
from periplus.api.cache import Background
from periplus.api.grading import trends
from periplus.api.homes import home_of
from periplus.api.overview import changes_of, count_by_folder, fault_sums, last_changes
from periplus.api.positions import issues_of
from periplus.api.tables import Browser
from periplus.errors import UsageError
from periplus.model.audit import FaultDecision, FaultNote, Issue, Severity
from periplus.model.comparison import Comparison, IssueChanges, Side
from periplus.settings import Settings
from periplus.store.past_states import RunEnd, reasons_at_ends, url_past
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.ui import live
from periplus.ui.live import drawings
from periplus.ui.watching import Folder, Growth, Watchers
from stored import NOW, page, stored

HOME = "https://e.org/"
FIRST = {HOME: page("Home", "/a", "/b", "/c"), f"{HOME}a": page("A"), f"{HOME}b": 404, f"{HOME}c": page("C")}
SECOND = {HOME: page("Home", "/a", "/b", "/d"), f"{HOME}a": 404, f"{HOME}b": page("B"), f"{HOME}d": page("D")}


@pytest.fixture
def patient_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen waits a minute for its overview."""
    monkeypatch.setattr(live, "WAIT_S", 60.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored(tmp_path / "e.periplus", FIRST, [HOME])
    stored(tmp_path / "e.periplus", SECOND, [HOME])
    return tmp_path


def test_counts_at_the_end_of_a_run_equal_those_of_comparisons(folder: Path) -> None:
    """The slow twin reads the state of each run separately: the current state without later changes."""
    with contextlib.closing(reading.connect(folder / "e.periplus")) as connection:
        ends = reasons_at_ends(SqliteReader(connection))
        for run_id, counts in ends.items():
            moment = RunEnd.after(SqliteReader(connection), run_id)
            past = url_past(SqliteReader(connection), moment)
            rows = connection.execute("SELECT id, reason, first_seen FROM url").fetchall()
            twin = Counter(past.get(one, (now,))[0] for one, now, seen in rows if seen < moment.until)
            assert +counts == twin
    assert len(ends) == 2


def test_history_has_a_point_per_run_and_errors_only_of_checks(folder: Path) -> None:
    first, second = trends(folder / "e.periplus")
    assert (first.run_id, second.run_id, first.started) == (1, 2, NOW)
    assert [point.pages_with_errors for point in (first, second)] == [None, None]
    assert second.pages + second.failed <= second.urls


def test_changes_need_two_runs(folder: Path, tmp_path: Path) -> None:
    changes = last_changes(folder / "e.periplus")
    assert changes is not None
    assert (changes.before, changes.after) == ("crawl 1", "crawl 2")
    assert last_changes(stored(tmp_path / "one", FIRST, [HOME])) is None


def issue(code: str, severity: Severity, url: str, cause: str = "") -> Issue:
    return Issue(code, severity, url, cause=cause)


def test_the_first_repairs_are_severe_and_of_several_kinds() -> None:
    table = table_of(
        [
            *(issue("broken-resource", Severity.ERROR, f"{HOME}{n}", f"{HOME}x.js") for n in range(9)),
            *(issue("broken-resource", Severity.ERROR, f"{HOME}{n}", f"{HOME}y.js") for n in range(8)),
            issue("malformed-link", Severity.ERROR, HOME, "https://"),
            *(issue("title-duplicate", Severity.WARNING, f"{HOME}{n}", HOME) for n in range(99)),
            issue("title-long", Severity.NOTICE, HOME),
        ]
    )
    assert [fault.cause for fault in first_to_repair(table.faults(9), 3)] == [f"{HOME}x.js", "https://", f"{HOME}y.js"]
    assert {(one.kind.code, one.causes, one.pages) for one in table.sums()} >= {
        ("malformed-link", 1, 1),
        ("broken-resource", 2, 9),
    }
    assert fault_sums(table.sums(), table.faults(1)).causes == {
        Severity.ERROR: 3,
        Severity.WARNING: 1,
        Severity.NOTICE: 1,
    }
    notices = table_of([issue("title-long", Severity.NOTICE, HOME)])
    assert len(first_to_repair(notices.faults(1), 3)) == 1, "notices count if there is nothing else"


def test_the_overview_has_faults_folders_and_unread_urls(folder: Path, patient_screen: None) -> None:
    asking = client(folder)
    text = asking.get("/c/e/live").text
    overview = asking.get("/c/e/live?format=json").json()["overview"]
    assert sum(overview["faults"]["causes"].values()) == asking.get("/c/e/t/faults?format=json").json()["count"]["rows"]
    assert overview["faults"]["repair"][0]["title"] in text
    assert "Why URLs were not fetched" in text and "Since the last run" in text
    assert 'href="/c/e/settings"' in text and 'href="/c/e/delete"' not in text.partition("</header>")[0]


def test_the_overview_has_grades_with_the_issues_that_subtract_points(folder: Path, patient_screen: None) -> None:
    asking = client(folder)
    grades = asking.get("/c/e/live?format=json").json()["overview"]["grades"]
    text = asking.get("/c/e/live").text.partition('id="grades"')[2].partition("</section>")[0]
    assert {one["field"] for one in grades} == {
        "discoverability",
        "accessibility",
        "security",
        "performance",
        "maintenance",
    }
    for one in grades:
        assert f"<dt>{one['field']}</dt><dd>{one['letter']} <small>{one['score']}</small></dd>" in text
        for part in one["parts"]:
            assert f'<a href="/c/e/t/faults?code={part["code"]}">' in text and part["points"] > 0
    assert any(one["parts"] for one in grades) and "<svg" not in text, "lines need two checks"


def test_the_overview_draws_grades_over_time(folder: Path) -> None:
    moment = Watchers().look(folder / "e.periplus")
    overview = Browser().overview(folder / "e.periplus", 60)
    assert overview is not None
    point = replace(overview.history[0], grades=overview.grades)
    checked = replace(overview, history=(point, replace(point, run_id=3, started=NOW + 86_400 * 9)))
    made = drawings("e", moment, checked)
    assert all(f">{one.field.value}<" in made["grades"] for one in overview.grades) and "Pages read" in made["runs"]


def test_a_folder_has_the_colour_of_its_share_of_pages_with_errors(folder: Path) -> None:
    urls = [*(f"{HOME}a/{n}" for n in range(3)), f"{HOME}b/c/1?x=/d/", HOME]
    counts = count_by_folder(urls)
    assert counts == {"e.org/": 5, "e.org/a/": 3, "e.org/b/": 1}
    folders = (Folder("/a/", "e.org/a/", 9), Folder("/b/", "e.org/b/", 10), Folder("/c/", "e.org/c/", 1))
    moment = Watchers().look(folder / "e.periplus")
    moment = replace(moment, tree=moment.tree._replace(folders=(*folders, Folder("no folder", "", 2))))
    stored(folder / "t.periplus", {HOME: page("Home", "/a/"), f"{HOME}a/": "<!DOCTYPE html><p>no title"}, [HOME])
    overview = Browser().overview(folder / "t.periplus", 60)
    assert overview is not None and overview.with_errors == {"e.org/": 1, "e.org/a/": 1}
    states = live.health(moment, replace(overview, with_errors=counts))
    assert [(bad, hue) for _, bad, hue in states] == [(3, "red"), (1, "amber"), (0, "teal"), (0, "grey")]
    assert {hue for *_, hue in live.health(moment, None)} == {"grey"}


def test_a_killed_crawl_has_an_overview(tmp_path: Path, patient_screen: None) -> None:
    stored(tmp_path / "k.periplus", FIRST, [HOME], state="running")
    assert client(tmp_path).get("/c/k/live?format=json").json()["overview"] is not None


def test_settings_show_the_source_of_a_value_and_no_password(folder: Path) -> None:
    path = folder / "e.periplus" / "periplus.toml"
    path.write_text('[settings]\ndelay_s = 3.0\nauth = "user:rhubarb"\n', "utf-8")
    answer = client(folder).get("/c/e/settings?format=json").json()
    values = {one["row"]["name"]: one for group in answer["groups"] for one in group["fields"]}
    assert (values["delay_s"]["value"], values["delay_s"]["source"]) == ("3", str(path))
    assert values["auth"]["value"] == "***"
    assert values["max_pages"]["source"] == ""
    assert "rhubarb" not in client(folder).get("/c/e/settings").text


def test_every_page_is_in_one_folder() -> None:
    growth = Growth()
    growth.add([(f"https://e.org/{part}/{n}", 1) for part, pages in (("a", 9), ("b", 5)) for n in range(pages)])
    growth.add([("https://e.org/", 0), ("https://e.org/x", 1)])
    folders = growth.folders()
    assert [(one.name, one.pages) for one in folders] == [("/a/", 9), ("/b/", 5), ("no folder", 2)]
    growth.add([("https://f.org/a/1", 1)])
    assert [(folder.name, folder.pages) for folder in growth.folders()] == [("e.org", 16), ("f.org", 1)]


def test_a_background_computation_runs_once() -> None:
    background, go, made = Background[str, int](2), threading.Event(), []

    def make() -> int:
        go.wait(300)
        made.append(1)
        return 7

    assert background.of("a", make, 0.0) is None
    go.set()
    assert background.of("a", make, 300) == 7
    assert background.of("a", make, 0.0) == 7
    assert made == [1]


def test_a_failed_background_computation_raises_and_is_repeated() -> None:
    background, fails = Background[str, int](2), [True]

    def make() -> int:
        if fails.pop():
            raise UsageError("no map")
        return 1

    with pytest.raises(UsageError, match="no map"):
        background.of("a", make, 300)
    fails.append(False)
    assert background.of("a", make, 300) == 1


def test_accepting_a_template_fault_raises_the_grade(tmp_path: Path) -> None:
    """The kind of issue subtracts no points any more, since all its pages had the same cause."""
    place = stored(
        tmp_path / "t.periplus", {HOME: page("Home", "/a", "/b"), f"{HOME}a": page("A"), f"{HOME}b": page("B")}, [HOME]
    )

    def parts() -> dict[str, float]:
        overview = Browser().overview(place, 60.0)
        assert overview is not None
        return {part.code: grade.score for grade in overview.grades for part in grade.parts}

    before = parts()
    home_of(place).note_fault(FaultNote("description-missing", f"pages below {HOME}", FaultDecision.ACCEPTED))
    after = parts()
    assert "description-missing" in before and "description-missing" not in after
    assert max(after.values()) >= before["description-missing"]


def test_newly_broken_and_repaired_links_are_counted_once_per_url() -> None:
    def links(*targets: str) -> tuple[Issue, ...]:
        return tuple(Issue("broken-link", Severity.ERROR, HOME, related=target) for target in targets)

    side = Side("crawl 1", NOW, "done", 3, 4, 1)
    issues = IssueChanges((*links("x", "x", "y"), issue("title-long", Severity.NOTICE, HOME)), links("z"), links("old"))
    changes = changes_of(Comparison(side, side, (), (), (), 3, (), (), (), (), issues))
    assert (changes.broken, changes.repaired) == (2, 1)


def test_accepting_a_pages_own_cause_removes_its_issue(tmp_path: Path) -> None:
    place = stored(tmp_path / "t.periplus", {HOME: page("Home", "/a"), f"{HOME}a": page("A")}, [HOME])

    def pages_without_description() -> set[str]:
        return {issue.url for issue in issues_of(place, Settings()) if issue.code == "description-missing"}

    assert pages_without_description() == {HOME, f"{HOME}a"}
    home_of(place).note_fault(FaultNote("description-missing", HOME, FaultDecision.ACCEPTED))
    assert pages_without_description() == {f"{HOME}a"}
