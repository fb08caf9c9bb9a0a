"""The issues of an audit, and the report, are kept beside the collection until something changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from periplus.api import audit as auditing
from periplus.api import positions
from periplus.api.collection import REPORT_TEXT, Collection
from periplus.api.homes import home_of
from periplus.api.positions import issues_of
from periplus.model.audit import FaultDecision, FaultNote, Issue
from periplus.settings import Settings
from periplus.store import site_rows
from periplus.store.column_files import ISSUES
from periplus.store.sqlite.listing import SqliteReader
from stored import page, stored

HOME = "https://e.org/"
SITE = {
    HOME: page("Home of lanterns", "/a", "/b", "/gone", "https://", "mailto:ann"),
    f"{HOME}a": page("One title", "/gone", "/b#none"),
    f"{HOME}b": page("One title", "/"),
    f"{HOME}gone": 404,
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return stored(tmp_path / "e.periplus", SITE, [HOME])


def issues(place: Path, settings: Settings | None = None, **named: bool) -> list[Issue]:
    return list(issues_of(place, settings or Settings(), **named))


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were audited."""
    done: list[Path] = []
    audit = auditing.issue_table

    def counted(urls: auditing.Urls, *given: object, **named: object) -> object:
        done.append(Path(urls.reader.connection.execute("PRAGMA database_list").fetchone()[2]).parent)
        return audit(urls, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(auditing, "issue_table", counted)
    return done


def test_an_unchanged_collection_is_audited_once(place: Path, audits: list[Path]) -> None:
    first, notes, again = issues(place), list[str](), list[str]()
    assert len(first) > 5 and any(issue.line for issue in first)
    table = issues_of(place, Settings(), note=notes.append)
    assert list(table) == first and audits == [place]
    assert [fault.total for fault in table.faults(3)] and len(table) == len(first) and table.pages() >= 3
    assert list(issues_of(place, Settings(), note=again.append)) == first and notes == again


def test_other_questions_and_changes_are_audited_again(place: Path, audits: list[Path]) -> None:
    before = issues(place)
    strict = Settings(auditing=replace(Settings().auditing, severity=("title-duplicate=error",)))
    assert [issue.severity for issue in issues(place, strict)] != [issue.severity for issue in before]
    assert not any(issue.code == "broken-fragment" for issue in issues(place, fragments=False))
    assert len(audits) == 3 and issues(place) == before
    cause = next(issue.cause for issue in before if issue.code == "title-duplicate")
    home_of(place).note_fault(FaultNote("title-duplicate", cause, FaultDecision.ACCEPTED))
    notes = list[str]()
    left = list(issues_of(place, Settings(), note=notes.append))
    assert left == [issue for issue in before if issue.code != "title-duplicate"]
    again = list[str]()
    assert list(issues_of(place, Settings(), note=again.append)) == left and again == notes != []


@pytest.mark.parametrize("keep", [0, 40, -20])
def test_a_damaged_file_is_made_anew(place: Path, keep: int, audits: list[Path]) -> None:
    before, file = issues(place), place / ISSUES
    file.write_bytes(file.read_bytes()[:keep])
    assert issues(place) == before and len(audits) == 2


def test_a_collection_without_issues_is_kept_too(tmp_path: Path, audits: list[Path]) -> None:
    place = stored(tmp_path / "e.periplus", {HOME: page("Home of lanterns")}, [HOME])
    quiet = Settings(auditing=replace(Settings().auditing, ignore=("*",)))
    assert issues(place, quiet) == issues(place, quiet) == [] and len(audits) == 1


def test_another_version_audits_again(place: Path, audits: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    before = issues(place)
    monkeypatch.setattr(positions, "VERSION", "another")
    assert issues(place) == before and len(audits) == 2


def report(place: Path, near: bool | None = None) -> str:
    with Collection(place) as collection:
        return collection.report(near=near).read_text("utf-8")


def mark(place: Path) -> None:
    """Changes a word of the kept report, so that a report that was read is told from one that was made."""
    file = place / REPORT_TEXT
    file.write_text(file.read_text("utf-8").replace("One title", "Two title"), "utf-8")


def test_the_report_of_an_unchanged_collection_is_read(place: Path) -> None:
    assert "One title" in report(place)
    mark(place)
    assert "Two title" in report(place)
    assert "One title" in report(place, near=True)  # another question
    mark(place)
    home_of(place).note_fault(FaultNote("title-duplicate", "x", FaultDecision.ACCEPTED))
    assert "One title" in report(place)  # something changed
    mark(place)
    (place / REPORT_TEXT).write_bytes((place / REPORT_TEXT).read_bytes()[:-40])
    assert "One title" in report(place)  # a damaged file


def test_an_audit_finds_the_same_whether_pages_were_parsed_just_before(place: Path) -> None:
    first = issues(place)
    (place / ISSUES).unlink()
    assert issues(place) == first and any(issue.code == "broken-fragment" for issue in first)


def test_the_links_of_a_page_are_read_once_for_the_words_of_its_issues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = {
        HOME: page("Home of lanterns", "/a#no", "/b#no"),
        f"{HOME}a": page("Oil", "/b#no"),
        f"{HOME}b": page("Wick", "/a#no"),
    }
    place = stored(tmp_path / "e.periplus", web, [HOME])
    asked: list[list[int]] = []
    read = site_rows.anchors_of

    def recorded(reader: SqliteReader, pairs: Iterable[tuple[int, int]]) -> Iterator[str]:
        listed = list(pairs)
        asked.append([source for source, _ in listed])
        return read(reader, listed)

    monkeypatch.setattr(site_rows, "anchors_of", recorded)
    broken = [issue for issue in issues(place) if issue.code == "broken-fragment"]
    assert len(broken) == 4 and all(issue.anchor for issue in broken)
    sources = next(pages for pages in asked if len(pages) == 4)
    assert len([source for source, _ in groupby(sources)]) == len(set(sources)) == 3
