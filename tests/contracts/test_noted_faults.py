"""Notes of users on faults are stored with the collection, in a folder or a database, and move with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from periplus.api.homes import home_of
from periplus.model.audit import FaultDecision, FaultNote
from periplus_postgres.moving import move
from stored import page, stored

LONG = "https://e.org/" + "x" * 9_000  # longer than an index allows
NOTES = (
    FaultNote("broken-link", LONG, FaultDecision.IGNORED, "Čapek", "moved\nlater", 5.0),
    FaultNote("title-long", "https://e.org/", FaultDecision.ACCEPTED, made=6.0),
    FaultNote("title-long", "https://e.org/a", assignee="Ann", made=7.0),
)


@pytest.fixture(params=["folder", "database"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    folder = stored(tmp_path / "c", {"https://e.org/": page("Home")}, ["https://e.org/"])
    if request.param == "folder":
        return folder
    address = request.getfixturevalue("address")
    move(str(folder), address.text)
    return str(address.text)


def test_notes_are_stored_replaced_and_removed(place: Path | str) -> None:
    home = home_of(place)
    assert home.fault_notes() == ()
    for note in reversed(NOTES):
        home.note_fault(note)
    assert home.fault_notes() == NOTES
    home.note_fault(FaultNote("title-long", "https://e.org/", words="again", made=8.0))
    assert [note.words for note in home.fault_notes()] == ["moved\nlater", "again", ""]
    home.note_fault(FaultNote("title-long", "https://e.org/", made=9.0))
    assert len(home.fault_notes()) == 2, "an empty note takes it away"


def test_notes_move_with_the_collection(tmp_path: Path, address) -> None:
    folder = stored(tmp_path / "c", {"https://e.org/": page("Home")}, ["https://e.org/"])
    home_of(folder).note_fault(NOTES[0])
    move(str(folder), address.text)
    assert home_of(address.text).fault_notes() == NOTES[:1]
    move(address.text, str(tmp_path / "back"))
    assert home_of(tmp_path / "back").fault_notes() == NOTES[:1]
