"""Deletions and rule changes in a database have the same result as in a folder, also after kills."""

import contextlib
import gzip
import re
from uuid import uuid4

import pytest
from click.testing import CliRunner

from deleted import content, sound
from periplus.api import deleting, homes
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.collection import Deletion
from periplus.model.web import SiteKey
from periplus.store import deletion
from periplus.store.runs import NEW_PLACE_KEY
from periplus.urls.canonical import canonical, url_id
from periplus_postgres.address import address_of
from periplus_postgres.collection import check_segments
from periplus_postgres.connection import connect
from periplus_postgres.moving import into_database, into_folder, silent
from periplus_postgres.segments import FolderStorage
from stored import page, stored

HOME = "https://e.org/"
WORDS = "Harbours on this coast have lights, pilots and a depth that is printed in the almanac of the year"
ANSWERS = {
    HOME: page("Home", "/a", "/b", "/c?x=1", "/c?x=2", "/gone", "/old", "https://else.example/x") + f"<p>{WORDS}</p>",
    "https://e.org/a": page("Pilots", "/", "/b", "/lost") + f"<p>{WORDS}, with tides</p>",
    "https://e.org/b": page("Lights", "/a") + f"<p>{WORDS}, with tides</p>",
    "https://e.org/c?x=1": page("Charts", "/a") + f"<p>{WORDS}, with rocks</p>",
    "https://e.org/c?x=2": page("Charts", "/a") + f"<p>{WORDS}, with rocks</p>",
    "https://e.org/old": "/a",
    "https://e.org/gone": 404,
    "https://else.example/x": page("Else", HOME),
}
DELETIONS = (
    "https://e.org/a",
    "https://e.org/a https://e.org/b --links-to",
    "https://e.org/a https://e.org/c?x=1 --again",
    "--site else.example --links-to",
    "--site e.org",
    "--run 2",
    "--run 2 --keep-pages",
    "--site e.org --run 1 --shrink",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = stored(tmp_path / "c.periplus", {**ANSWERS, "https://e.org/b": 404}, [HOME])
    return stored(folder, ANSWERS, [HOME])


def ran(line, place, code=0):
    ended = CliRunner().invoke(main, [*line.split(), "-c", str(place)])
    assert ended.exit_code == code, (line, ended.output, ended.exception)
    return ended.output


def shown(address, tmp_path):
    """A new folder with the collection in the database."""
    folder = tmp_path / f"{uuid4().hex}.periplus"
    into_folder(address.text, folder, silent)
    homes.home_of(address.text).change_note(NEW_PLACE_KEY, lambda place: "")
    return folder


def same(folder, address, tmp_path):
    moved = shown(address, tmp_path)
    assert content(moved) == content(folder)
    assert sound(moved) == sound(folder)


@pytest.mark.parametrize("line", DELETIONS)
def test_a_deletion_is_the_same_in_a_database_and_a_folder(line, folder, address, tmp_path):
    into_database(folder, address.text, silent)
    said = [re.sub(r", [0-9.]+ [kM]?B", "", ran(f"delete {line} --yes", place)) for place in (folder, address.text)]
    assert said[0] == said[1] != ""
    same(folder, address, tmp_path)


RULES = ('[[site]]\nignored = ["x"]\n', '[[site]]\nsite = "e.org"\nwww = "add"\nindex = ["b"]\n', "")


def test_rules_are_applied_and_undone_in_a_database_as_in_a_folder(folder, address, tmp_path):
    into_database(folder, address.text, silent)
    for rules in RULES:
        for place in (folder, tmp_path):
            (place / "periplus.toml").write_text(rules)
        ended = [ran("rules apply", place) for place in (folder, address.text)]
        assert ended[0] == ended[1]
        assert "already follows" in ran("rules apply", address.text)
        same(folder, address, tmp_path)


def test_a_crawl_obeys_rules_applied_before(folder, address, tmp_path):
    into_database(folder, address.text, silent)
    (tmp_path / "periplus.toml").write_text(RULES[0])
    home = homes.home_of(address.text)
    with pytest.raises(UsageError, match="rules apply"):
        home.prepare(RULES[0], 0.0)
    ran("rules apply", address.text)
    assert home.prepare(RULES[0], 0.0)
    assert home.rules_text() == RULES[0]


class Killed(Exception):
    """Simulates a kill."""


@pytest.mark.parametrize("kind", ["folder", "database"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_deletion_leaves_whole_batches_and_can_be_repeated(
    kind, moment, folder, address, tmp_path, monkeypatch
):
    """Before the commit of the second batch, and after it."""
    into_database(folder, address.text, silent)
    place = folder if kind == "folder" else address.text
    seen = (lambda: folder) if kind == "folder" else (lambda: shown(address, tmp_path))
    monkeypatch.setattr(deletion, "BATCH", 2)
    began = []

    def killed(now):
        if (now, len(began)) == (moment, 3):  # the first transaction selects the rows
            raise Killed

    @contextlib.contextmanager
    def transaction():
        with writer.transaction():
            began.append(1)
            yield
            killed("before")
        killed("after")

    with homes.writer_of(place) as writer, pytest.raises(Killed):
        order = Deletion(site=SiteKey("e.org"))
        deletion.delete(writer._replace(transaction=transaction), order, lambda done, total: False)
    half = seen()
    assert sound(half) == []
    assert 0 < len(content(half)["page"]) < len(content(stored(tmp_path / "whole", ANSWERS, [HOME]))["page"])
    for each in (folder, address.text):
        ran("delete --site e.org --yes", each)
    same(folder, address, tmp_path)


def test_bytes_of_deleted_pages_are_removed_from_the_segments(folder, address, tmp_path):
    place = tmp_path / "segments"
    text = address_of(f"{address.text}&segments={place}").text
    into_database(folder, text, silent)

    def held():
        return b"".join(gzip.decompress(path.read_bytes()) for path in place.iterdir())

    assert b"rocks" in held() and b"tides" in held()
    ran("delete https://e.org/c?x=1 https://e.org/c?x=2 --yes", text)
    assert b"rocks" not in held() and b"tides" in held()
    assert "<title>Pilots" in ran("page https://e.org/a --as source", text)
    (state,) = check_segments(text)
    assert (state.orphans, state.lost) == (0, 0)
    ran("delete --site e.org --links-to --yes", text)
    assert b"tides" not in held()


def test_segments_left_by_a_kill_are_rewritten_by_the_next_operation(folder, address, tmp_path, monkeypatch):
    place = tmp_path / "segments"
    text = address_of(f"{address.text}&segments={place}").text
    into_database(folder, text, silent)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(FolderStorage, "delete", lambda self, name: (_ for _ in ()).throw(Killed))
        deleting.delete(text, Deletion(tuple(url_id(canonical(f"https://e.org/c?x={n}")) for n in (1, 2))))
    assert len(list(place.iterdir())) == 2
    ran("delete https://e.org/b --yes", text)
    left = [gzip.decompress(path.read_bytes()) for path in place.iterdir()]
    assert len(left) == 1 and b"rocks" not in left[0]


def test_nothing_is_deleted_while_workers_run(folder, address, tmp_path):
    into_database(folder, address.text, silent)
    with homes.home_of(address.text).only_crawl():
        assert "a crawl is running" in ran("delete https://e.org/a --yes", address.text, code=1)
    with contextlib.closing(connect(address)) as database:
        database.execute(
            "INSERT INTO worker (name, pid, joined, lease_until, machine)"
            " VALUES ('w', 1, 0, extract(epoch FROM now()) + 60, 'elsewhere')"
        )
    assert "workers are running" in ran("delete https://e.org/a --yes", address.text, code=1)
    assert "workers are running" in ran("rules apply", address.text, code=1)
    with contextlib.closing(connect(address)) as database:
        database.execute("DELETE FROM worker")
    same(folder, address, tmp_path)


def test_a_collection_is_deleted_with_its_computed_files(folder, address):
    into_database(folder, address.text, silent)
    cache = homes.cache_folder(address.text)
    assert "type the collection's name" in ran("delete --everything other --yes", address.text, code=2)
    ran(f"delete --everything {address.collection} --yes", address.text)
    assert not cache.exists()
    assert "has no collection" in ran("status", address.text, code=2)
    with contextlib.closing(connect(address)) as database:
        names = [name for (name,) in database.execute("SELECT schema_name FROM information_schema.schemata").fetchall()]
    assert address.collection not in names
