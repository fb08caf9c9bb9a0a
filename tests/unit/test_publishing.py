"""A folder comes to hold exactly the files of a portal: whole, only what changed, nothing of anybody else's touched."""

import contextlib
from pathlib import Path

import pytest

from periplus.api.portal import MANIFEST, publish
from periplus.errors import UsageError

FILES = {"style.css": b"a", "story/x.html": b"x", "story/y.html": b"y", "index.html": b"i"}


def held(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }


def test_it_holds_these_files(tmp_path):
    done = publish(tmp_path / "out", FILES)
    assert held(tmp_path / "out") == FILES
    assert (done.written, done.unchanged, done.removed) == (4, 0, 0)


def test_only_what_changed_is_written(tmp_path):
    publish(tmp_path, FILES)
    before = {path: (tmp_path / path).stat().st_ino for path in FILES}
    done = publish(tmp_path, FILES | {"index.html": b"new"})
    after = {path: (tmp_path / path).stat().st_ino for path in FILES}
    assert (done.written, done.unchanged) == (1, 3)
    assert [path for path in FILES if before[path] != after[path]] == ["index.html"]


def test_what_is_no_longer_published_goes_and_its_folder_with_it(tmp_path):
    publish(tmp_path, FILES)
    assert publish(tmp_path, {"index.html": b"i"}).removed == 3
    assert held(tmp_path) == {"index.html": b"i"}
    assert not (tmp_path / "story").exists()


def test_files_of_others_stay(tmp_path):
    (tmp_path / "story").mkdir()
    (tmp_path / "story" / "mine.txt").write_text("mine")
    (tmp_path / "CNAME").write_text("example.org")
    publish(tmp_path, FILES)
    publish(tmp_path, {"index.html": b"i"})
    assert held(tmp_path) == {"CNAME": b"example.org", "story/mine.txt": b"mine", "index.html": b"i"}


def test_a_file_that_is_not_ours_is_never_replaced(tmp_path):
    (tmp_path / "index.html").write_text("somebody's home page")
    with pytest.raises(UsageError, match="not written by a portal"):
        publish(tmp_path, FILES)
    assert held(tmp_path) == {"index.html": b"somebody's home page"}


def test_killed_half_way_the_next_one_goes_on(tmp_path, monkeypatch):
    publish(tmp_path, FILES)
    replaced = []

    def killed(self, target, replace=Path.replace):
        if len(replaced) == 2:
            raise KeyboardInterrupt
        replaced.append(target)
        return replace(self, target)

    new = {"style.css": b"b", "story/z.html": b"z", "story/w.html": b"w", "index.html": b"j"}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", killed)
        publish(tmp_path, new)
    assert held(tmp_path)["index.html"] == b"i"  # what leads to others is the last to change, and nothing is half there
    publish(tmp_path, new)
    assert held(tmp_path) == new


@pytest.mark.parametrize("steps", range(9))
def test_killed_at_any_step_every_link_leads_to_a_file(tmp_path, monkeypatch, steps):
    """The story of before goes last, the page that led to it is by then another."""
    before = {"story/x.html": b"x", "index.html": b"story/x.html"}
    after = {"story/z.html": b"z", "index.html": b"story/z.html"}
    publish(tmp_path, before)
    left = [steps]

    def last(act):
        def step(self, *given, **more):
            if self.name.startswith(".") and act is Path.unlink:  # what is left of a draft, if anything
                return act(self, *given, **more)
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return act(self, *given, **more)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", last(Path.replace))
        patch.setattr(Path, "unlink", last(Path.unlink))
        with contextlib.suppress(KeyboardInterrupt):
            publish(tmp_path, after)
    assert (tmp_path / (tmp_path / "index.html").read_text()).exists()
    publish(tmp_path, after)
    assert held(tmp_path) == after


@pytest.mark.parametrize("listed", ['["../victim"]', '["/etc/hostname"]', "{}", "no json", "[7]"])
def test_a_list_that_was_tampered_with_deletes_nothing_outside(tmp_path, listed):
    (tmp_path / "victim").write_text("stays")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text(listed)
    publish(tmp_path / "out", FILES)
    assert (tmp_path / "victim").read_text() == "stays"


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UsageError, match="cannot be written"):
        publish(tmp_path / "out", FILES)
