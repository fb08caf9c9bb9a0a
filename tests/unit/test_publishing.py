"""Publishing of a portal into a folder: atomic, incremental, without touching other files."""

import contextlib
from pathlib import Path

import pytest

from periplus.errors import UsageError
from periplus_topics.api.portal import MANIFEST, publish

FILES = {"style.css": b"a", "story/x.html": b"x", "story/y.html": b"y", "index.html": b"i"}


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }


def test_the_files_are_published(tmp_path):
    done = publish(tmp_path / "out", FILES)
    assert files_in(tmp_path / "out") == FILES
    assert (done.written, done.unchanged, done.removed) == (4, 0, 0)


def test_only_changed_files_are_written(tmp_path):
    publish(tmp_path, FILES)
    before = {path: (tmp_path / path).stat().st_ino for path in FILES}
    done = publish(tmp_path, FILES | {"index.html": b"new"})
    after = {path: (tmp_path / path).stat().st_ino for path in FILES}
    assert (done.written, done.unchanged) == (1, 3)
    assert [path for path in FILES if before[path] != after[path]] == ["index.html"]


def test_obsolete_files_and_folders_are_deleted(tmp_path):
    publish(tmp_path, FILES)
    assert publish(tmp_path, {"index.html": b"i"}).removed == 3
    assert files_in(tmp_path) == {"index.html": b"i"}
    assert not (tmp_path / "story").exists()


def test_other_files_are_kept(tmp_path):
    (tmp_path / "story").mkdir()
    (tmp_path / "story" / "mine.txt").write_text("mine")
    (tmp_path / "CNAME").write_text("example.org")
    publish(tmp_path, FILES)
    publish(tmp_path, {"index.html": b"i"})
    assert files_in(tmp_path) == {"CNAME": b"example.org", "story/mine.txt": b"mine", "index.html": b"i"}


def test_a_file_that_the_portal_did_not_write_is_never_replaced(tmp_path):
    (tmp_path / "index.html").write_text("somebody's home page")
    with pytest.raises(UsageError, match="not written by a portal"):
        publish(tmp_path, FILES)
    assert files_in(tmp_path) == {"index.html": b"somebody's home page"}


def test_an_interrupted_publication_can_be_repeated(tmp_path, monkeypatch):
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
    assert files_in(tmp_path)["index.html"] == b"i"  # pages with links change last, and no file is partly written
    publish(tmp_path, new)
    assert files_in(tmp_path) == new


@pytest.mark.parametrize("steps", range(9))
def test_after_an_interruption_at_any_step_every_link_has_a_file(tmp_path, monkeypatch, steps):
    """An obsolete story is deleted after the page that linked to it was replaced."""
    before = {"story/x.html": b"x", "index.html": b"story/x.html"}
    after = {"story/z.html": b"z", "index.html": b"story/z.html"}
    publish(tmp_path, before)
    left = [steps]

    def last(act):
        def step(self, *given, **more):
            if self.name.startswith(".") and act is Path.unlink:  # a remaining temporary file
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
    assert files_in(tmp_path) == after


@pytest.mark.parametrize("listed", ['["../victim"]', '["/etc/hostname"]', "{}", "no json", "[7]"])
def test_a_manipulated_manifest_deletes_nothing_outside_the_folder(tmp_path, listed):
    (tmp_path / "victim").write_text("stays")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text(listed)
    publish(tmp_path / "out", FILES)
    assert (tmp_path / "victim").read_text() == "stays"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UsageError, match="cannot be written"):
        publish(tmp_path / "out", FILES)
