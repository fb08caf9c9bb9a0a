"""A shared search index of a database: built by one reader, used by all others, always consistent."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import fsspec
import numpy as np
import pytest
from click.testing import CliRunner
from fsspec.implementations.local import LocalFileSystem
from postgres_voyage import crawled_into

import periplus
from periplus.api import homes, search_index
from periplus.api.crawling import finish_indexing, start_indexing
from periplus.api.deleting import delete
from periplus.api.searching import standing
from periplus.cli.main import main
from periplus.errors import StoreError
from periplus.model.collection import Deletion
from periplus.retrieval.index import IndexBusy
from periplus.store.notes import count_change
from periplus.store.sqlite.index_feed import FILE
from periplus.urls.canonical import url_id
from periplus_postgres import index_place, segments, shared_index
from periplus_postgres import published as publications
from periplus_postgres.collection import clear
from periplus_postgres.connection import connect
from periplus_postgres.moving import move
from periplus_postgres.statements import PostgresStatements
from testweb import GraphRecipe, graph_site, serve

RECIPE = GraphRecipe(seed=3, pages=40, links_per_page=6, shape="random", page_bytes=2000, host="a.test")
WORDS = ("lights", "harbour", "ports OR charts", "site:a.test")


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Switches to another machine by its name; returns the address."""
    monkeypatch.chdir(tmp_path)

    def on(machine, text):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))
        return text

    return on


@pytest.fixture
def shared(address, tmp_path):
    """The address of an empty collection with its index in a folder."""
    return replace(address, index=str(tmp_path / "index"))


@pytest.fixture
def indexed(monkeypatch):
    """The pages given to the engine, in order."""
    pages, real = [], search_index.IndexWorker._to_index

    def to_index(self, marked):
        pages.append(marked[0].url)
        return real(self, marked)

    monkeypatch.setattr(search_index.IndexWorker, "_to_index", to_index)
    return pages


def crawled(address, server, **values):
    crawled_into(address.text, server, "a.test", delay_s=0.0, index=False, **values)


def answers(text):
    """The same as `asked`, after the index was updated unless another process does so."""
    with contextlib.suppress(IndexBusy):
        search_index.catch_up(text)
    return asked(text)


def pages_of(results):
    """Matching pages, unordered: the ranking also depends on the history of an index."""
    return [(result.query, result.total, sorted(hit.url for hit in result.hits), result.notes) for result in results]


def own_answers(address, reader, name):
    """The same with a new local index."""
    with contextlib.closing(connect(address)) as database:
        database.execute("UPDATE meta SET name = 'elsewhere' WHERE name = 'index'")
    text = reader(name, replace(address, index="").text)
    assert homes.shared_index(text) is None
    own = pages_of(asked(text))
    with contextlib.closing(connect(address)) as database:
        database.execute("UPDATE meta SET name = 'index' WHERE name = 'elsewhere'")
    return own


def pointer_of(address):
    """The pointer file to the published set."""
    return Path(address.index) / f"{address.collection}-{shared_index.INDEX}.json"


def set_of(address):
    return json.loads(pointer_of(address).read_text())


def test_a_second_reader_uses_the_index_of_the_first(shared, reader, indexed, tmp_path, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server)
    plain = replace(shared, index="").text  # the place is stored
    first = reader("one", plain)
    made = answers(first)
    assert min(result.total for result in made) > 3 and len(indexed) >= 40
    assert not any(result.notes for result in made)
    indexed.clear()
    assert standing(first) == (0, True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    assert asked(plain) == made
    assert indexed == [], "nothing was indexed again"
    assert pages_of(made) == own_answers(shared, reader, "three")


def asked(text, **more):
    """Results of searches without their times."""
    with periplus.open(text) as collection:
        results = [collection.search(word, limit=50, facets=True, **more) for word in WORDS]
    return [replace(result, took_s=0.0) for result in results]


def local_files(tmp_path, machine):
    """Databases in the cache of a machine, and local files of indexes."""
    return list((tmp_path / machine).rglob("*.db")), [
        path for path in (tmp_path / machine).rglob("*.pos") if not path.is_symlink()
    ]


def of_storage(shared, tmp_path, **state):
    """The same collection with an index outside of a folder, and the class of its storage."""
    storage = type("Storage", (FailingStorage,), state)
    fsspec.register_implementation("failing", storage, clobber=True)
    return replace(shared, index=f"failing://{tmp_path / 'bucket'}"), storage


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_search_with_a_shared_index_indexes_nothing(shared, reader, tmp_path, monkeypatch, is_folder):
    shared = shared if is_folder else of_storage(shared, tmp_path, fails=False)[0]
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=20)
        made = answers(reader("one", shared.text))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
        assert asked(shared.text) == made and not any(result.notes for result in made)
        databases, own = local_files(tmp_path, "two")
        assert databases == [] and bool(own) is not is_folder
        files = {path.stat().st_ino for path in own}
        crawled(shared, server)
        behind = asked(shared.text)
        assert [result.hits for result in behind] == [result.hits for result in made]
        assert all("20 pages are searchable, as of " in result.notes[-1] for result in behind)
        assert all("up to 20 new or changed pages are not yet: run `periplus index`" in one.notes[-1] for one in behind)
    whole = answers(reader("one", shared.text))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    assert asked(shared.text) == whole and not whole[0].notes and whole[3].total == 40
    databases, own = local_files(tmp_path, "two")
    assert databases == [] and (is_folder or files <= {path.stat().st_ino for path in own}), (
        "what was there is not fetched"
    )
    ran = CliRunner().invoke(main, ["search", "-f", "json", "-c", shared.text, "lights"])
    assert [hit["url"] for hit in json.loads(ran.stdout)["hits"]] == [hit.url for hit in whole[0].hits[:10]]
    assert local_files(tmp_path, "two")[0] == []


def test_changed_and_deleted_pages_are_shown_in_their_current_state(shared, reader, tmp_path, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server)
    made = answers(reader("one", shared.text))
    gone, changed = made[3].hits[0].url, made[3].hits[1].url
    with contextlib.closing(connect(shared)) as database:
        database.execute("DELETE FROM page WHERE url_id = %s", (url_id(gone),))
        database.execute("UPDATE page SET title = 'Anew', fetched = fetched + 1 WHERE url_id = %s", (url_id(changed),))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    (of_site,) = [result for result in asked(shared.text) if result.query == "site:a.test"]
    assert gone not in {hit.url for hit in of_site.hits} and len(of_site.hits) == 39
    assert next(hit.title for hit in of_site.hits if hit.url == changed) == "Anew"


def test_without_a_published_index_a_search_builds_one(shared, address, reader, tmp_path, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=10)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
        made = asked(shared.text)
        assert made[3].total == 10 and local_files(tmp_path, "one")[0] != [] and pointer_of(shared).exists()
        clear(shared.text)
        crawled(replace(shared, index=""), server, max_pages=5)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    assert asked(shared.text)[3].total == 5, "an index of what was there before is none of this"


def test_an_index_with_an_unavailable_place_is_searched_unchanged(shared, reader, tmp_path, monkeypatch):
    monkeypatch.setattr(publications, "AGAIN_S", ())
    shared, storage = of_storage(shared, tmp_path, fails=False)
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=10)
    made = answers(reader("one", shared.text))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    assert asked(shared.text) == made
    storage.is_away = True
    assert asked(shared.text) == made and local_files(tmp_path, "two")[0] == []


def test_a_kill_while_fetching_an_index_keeps_the_previous_one(shared, reader, tmp_path, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        for number, (where, name) in enumerate(
            [(shared_index, "take_over"), (os, "link"), (Path, "symlink_to"), (Path, "rename"), (Path, "replace")]
        ):
            crawled(shared, server, max_pages=5)
            made = answers(reader("one", shared.text))
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
            real = getattr(where, name)

            def dying(*given, real=real, **more):
                if "two" in str(given):
                    raise Killed
                return real(*given, **more)

            with monkeypatch.context() as broken, contextlib.suppress(Killed):
                broken.setattr(where, name, dying)
                asked(shared.text)
            assert asked(shared.text) == made, (number, name)
    sets = [path for path in (tmp_path / "two").rglob("index-*") if path.is_dir()]
    assert len(sets) == 2, "the current and the previous set"


def test_a_database_and_a_folder_are_searched_as_one(shared, reader, tmp_path, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server)
        crawled_into(tmp_path / "here", server, "a.test", delay_s=0.0)
    answers(reader("one", shared.text))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    both = periplus.search({"here": tmp_path / "here", "there": shared.text}, "site:a.test", limit=50)
    assert both.total == len(both.hits) == 40 and local_files(tmp_path, "two")[0] == []
    alone = periplus.search({"there": shared.text}, "depth:..1 lights", limit=50)
    assert [hit.url for hit in alone.hits] and local_files(tmp_path, "two")[0] == []


def test_without_a_shared_index_a_search_finds_what_the_folder_finds_and_copies_nothing(
    address, reader, indexed, tmp_path
):
    with serve(graph_site(RECIPE)) as server:
        crawled_into(tmp_path / "here", server, "a.test", delay_s=0.0)
    made = asked(tmp_path / "here")
    move(str(tmp_path / "here"), address.text)
    indexed.clear()
    found = asked(reader("one", address.text))
    assert [set_apart(result) for result in found] == [set_apart(result) for result in made] and len(indexed) >= 40
    databases, _ = local_files(tmp_path, "one")
    assert [path.name for path in databases] == [FILE]
    indexed.clear()
    assert asked(address.text) == found and indexed == []
    words = made[3].hits[5].url, "Anew"
    change(address, b"UPDATE page SET title = %s, fetched = fetched + 1 WHERE url_id = %s", words[1], url_id(words[0]))
    assert [hit.url for hit in asked(address.text)[3].hits if hit.title == "Anew"] == [words[0]]
    assert set(indexed) == {words[0]}, "other pages are not read again"
    with periplus.open(address.text) as collection:
        assert (
            collection.search("depth:..1 lights").total == periplus.search(tmp_path / "here", "depth:..1 lights").total
        )


def set_apart(result):
    """What a search found, with texts, without the rank."""
    hits = [(hit.url, hit.title, hit.snippet, hit.twins) for hit in result.hits]
    return result.query, result.total, sorted(hits), result.facets, result.notes


def change(address, statement, *values):
    """Changes rows as a command does, which notes it."""
    with contextlib.closing(connect(address)) as database, database.transaction():
        database.execute(statement, values)
        count_change(PostgresStatements(database))


def test_changes_are_indexed_incrementally_and_published(shared, reader, indexed):
    site = graph_site(RECIPE)
    with serve(site) as server:
        crawled(shared, server, max_pages=20)
        answers(reader("one", shared.text))
        assert len(indexed) < 40
        indexed.clear()
        crawled(shared, server)
        made = answers(reader("one", shared.text))
    assert pages_of(made) == own_answers(shared, reader, "own")
    indexed.clear()
    gone = "SELECT url_id FROM page ORDER BY 1 LIMIT 3"
    change(shared, f"DELETE FROM page WHERE url_id IN ({gone})".encode())
    without = answers(reader("one", shared.text))
    assert without[0].total < made[0].total and without == asked(shared.text)
    assert len(indexed) < 20, "other pages stay in the index"
    assert pages_of(without) == own_answers(shared, reader, "own too")


def test_an_open_search_uses_a_newly_fetched_index(shared, reader):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=10)
        answers(reader("one", shared.text))
        with periplus.open(reader("two", shared.text)) as collection:
            assert collection.search("site:a.test").total == 10
            crawled(shared, server)
            made = answers(reader("one", shared.text))
            reader("two", shared.text)
            again = [replace(collection.search(word, limit=50, facets=True), took_s=0.0) for word in WORDS]
    assert pages_of(again) == pages_of(made)


def test_one_process_publishes_at_a_time_and_others_search_the_current_index(shared, reader):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=20)
        before = answers(reader("one", shared.text))
        crawled(shared, server)
    with index_place.publishing(shared, shared_index.INDEX) as still_alone:
        assert still_alone is not None and still_alone()
        text = reader("one", shared.text)
        during = answers(text)
        assert during[0].total == before[0].total and any("not yet" in note for note in during[0].notes)
        with pytest.raises(IndexBusy):
            search_index.catch_up(text)
        ran = CliRunner().invoke(main, ["index", "-c", shared.text])
        assert ran.exit_code == 1 and "another process is indexing" in ran.output
    assert answers(text)[0].total > before[0].total


def test_a_process_that_lost_the_lock_publishes_nothing(shared, reader):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=10)
    text = reader("one", shared.text)
    with index_place.publishing(shared, shared_index.INDEX) as still_alone:
        with contextlib.closing(connect(shared)) as database:
            database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s",
                (index_place.schema.LOCK_INDEX,),
            )
        with search_index.IndexWorker(text) as worker:
            search_index.finish(worker, lambda done, left: False)
        with pytest.raises(StoreError, match="nothing was published"):
            shared_index.publish_index(homes.shared_index(text), still_alone)
    assert not pointer_of(shared).exists()


class Killed(BaseException):
    """Simulates SIGKILL at a given place."""


PLACES = [
    (segments.FolderStorage, "upload"),
    (publications, "_unreferenced_objects"),
    (publications, "text_of"),
    (shared_index.changes, "indexed_pages"),
    (shared_index, "_write_record"),
]


def test_a_kill_between_any_two_steps_loses_nothing(shared, reader, monkeypatch):
    """Before and after each step of publishing, each time with changed pages."""
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server)
    answers(reader("one", shared.text))
    reader("two", shared.text)
    for number, ((where, name), after) in enumerate(product(PLACES, (False, True))):
        change(shared, b"DELETE FROM page WHERE url_id = (SELECT min(url_id) FROM page)")
        answers(reader("one", shared.text))
        change(shared, b"UPDATE page SET fetched = fetched + 1 WHERE url_id = (SELECT max(url_id) FROM page)")
        real = getattr(where, name)

        def dying(*given, real=real, after=after, **more):
            if after:
                real(*given, **more)
            raise Killed

        with monkeypatch.context() as broken, pytest.raises(Killed):
            broken.setattr(where, name, dying)
            answers(reader("two", shared.text))
        if number % 5 == 4:
            assert pages_of(answers(reader("two", shared.text))) == pages_of(answers(reader("one", shared.text)))
    two = answers(reader("two", shared.text))
    assert pages_of(asked(shared.text)) == pages_of(two) == own_answers(shared, reader, "own")


def test_files_are_deleted_when_no_reader_can_use_them(shared, reader, monkeypatch):
    now = [1_000_000.0]
    monkeypatch.setattr(shared_index.time, "time", lambda: now[0])
    folder = Path(shared.index)

    def objects():
        return {path.name for path in folder.iterdir()} - {pointer_of(shared).name}

    def named():
        return {file["stored_as"] for file in set_of(shared)["files"]}

    with serve(graph_site(RECIPE)) as server:
        for pages in (10, 10, 5):
            crawled(shared, server, max_pages=pages)
            answers(reader("one", shared.text))
            now[0] += 60
        (folder / f"{shared.collection}-{shared_index.INDEX}-dead-x.idx").write_bytes(b"of one who was killed")
        (folder / "other-index.json").write_text("of another collection")
        assert named() < objects() and len(set_of(shared)["retired"]) > 3
        now[0] += publications.RETIRED_S
        crawled(shared, server)
        answers(reader("one", shared.text))
        now[0] += publications.RETIRED_S + 1
        assert folder.joinpath("other-index.json").exists()
        with periplus.open(reader("one", shared.text)) as collection:
            assert "indexed" in collection.index(anew=True)
    assert not any("dead" in name for name in objects())
    left = set(set_of(shared)["retired"])
    assert objects() == named() | left | {"other-index.json"}


class FailingStorage(LocalFileSystem):
    """Object storage that fails at every third call, alternately before and after the operation."""

    protocol = "failing"
    calls, fails, is_away = 0, True, False

    def _tried(self, action, *given, **more):
        type(self).calls += 1
        if self.is_away or (self.fails and self.calls % 6 == 3):
            raise PermissionError("503 Slow Down")
        done = action(*given, **more)
        if self.fails and self.calls % 6 == 0:
            raise TimeoutError("no answer")
        return done

    def put_file(self, *given, **more):
        return self._tried(super().put_file, *given, **more)

    def pipe_file(self, *given, **more):
        return self._tried(super().pipe_file, *given, **more)

    def get_file(self, *given, **more):
        return self._tried(super().get_file, *given, **more)

    def cat_file(self, *given, **more):
        return self._tried(super().cat_file, *given, **more)


def test_flaky_or_unavailable_storage_gives_no_wrong_results(shared, reader, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(publications, "AGAIN_S", (0.0, 0.0, 0.0))
    shared, storage = of_storage(shared, tmp_path)
    with serve(graph_site(RECIPE)) as server:
        for pages in (10, 10, 100):
            crawled(shared, server, max_pages=pages)
            for machine in ("one", "two"):
                made = answers(reader(machine, shared.text))
            assert pages_of(made) == own_answers(shared, reader, f"own {pages} {storage.calls}")
    assert storage.calls > 60
    assert not caplog.records, "it is asked again"
    storage.is_away = True
    assert pages_of(asked(reader("four", shared.text))) == pages_of(made), "by an index of its own"
    ran = CliRunner().invoke(main, ["index", "-c", shared.text])
    assert ran.exit_code == 1 and "503 Slow Down" in ran.output


def test_a_damaged_file_is_never_opened(shared, reader, tmp_path, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=10)
    made = answers(reader("one", shared.text))
    for path in Path(shared.index).glob("*.pos"):
        path.write_bytes(path.read_bytes()[:-9])
    for machine in ("two", "three"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))
        assert pages_of(asked(shared.text)) == pages_of(made)
    assert local_files(tmp_path, "two")[0] != [] and local_files(tmp_path, "three")[0] == [], (
        "the second published its own"
    )


def test_a_recreated_collection_has_another_index(shared, reader):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=20)
        answers(reader("one", shared.text))
        clear(shared.text)
        assert not list(Path(shared.index).iterdir()), "its words went with it"
        crawled(replace(shared, index=""), server, max_pages=5)
    assert answers(reader("two", replace(shared, index="").text))[3].total == 5
    assert set_of(shared)["note"]["settled"] == "1"


def test_words_of_deleted_pages_are_removed_at_once(shared, reader, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=10)
    with periplus.open(reader("one", shared.text)) as collection:
        gone = collection.search("site:a.test").hits[-1].url
    delete(shared.text, Deletion(pages=(url_id(gone),)))
    assert not list(Path(shared.index).iterdir())
    for machine in ("one", "two"):
        made = answers(reader(machine, shared.text))
        assert made[3].total == 9 and gone not in {hit.url for hit in made[3].hits}


def test_vectors_are_published_for_all(shared, reader, tmp_path):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=12)
    plain = replace(shared, index="").text
    with periplus.open(plain) as collection:
        urls = [url for (url,) in collection.pages(state="fetched", columns=["url"])]
    rng = np.random.default_rng(1)
    for seed in (1, 2):
        matrix = rng.standard_normal((len(urls), 8)).astype(np.float32) * seed
        np.save(tmp_path / "v.npy", matrix)
        (tmp_path / "v.txt").write_text("\n".join(urls))
        ran = CliRunner().invoke(main, ["index", "-c", plain, "--vectors", str(tmp_path / "v.npy")])
        assert ran.exit_code == 0, ran.output
        for machine in ("two", "three"):
            with periplus.open(reader(machine, plain)) as collection:
                assert urls[3] not in [hit.url for hit in collection.search("", like=urls[3]).hits]
                nearest = collection.search("", like=[float(number) for number in matrix[3]]).hits
                assert nearest[0].url == urls[3]


def test_vectors_without_a_place_are_refused_with_a_remedy(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with serve(graph_site(RECIPE)) as server:
        crawled(address, server, max_pages=3)
    (tmp_path / "v.npy").touch()
    ran = CliRunner().invoke(main, ["index", "-c", address.text, "--vectors", "v.npy"])
    assert ran.exit_code == 2 and "index=PLACE" in ran.output, ran.output


def test_the_indexing_process_publishes_during_a_crawl_and_at_its_end(shared, reader, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled(shared, server, max_pages=20)
        two = [start_indexing(shared.text) for _ in range(2)]  # on two machines; one of them publishes
        for _ in range(600):
            with contextlib.suppress(subprocess.TimeoutExpired):
                two[0].wait(0.1)
            if pointer_of(shared).exists():
                break
        assert set_of(shared)["note"]["settled"] == "0"
        crawled(shared, server)
    for child in two:
        finish_indexing(child, lambda indexing: False)
    assert set_of(shared)["note"]["settled"] == "1"
    indexed = []
    monkeypatch.setattr(search_index.IndexWorker, "_to_index", lambda *given: indexed.append(given))
    assert asked(shared.text)[3].total == 40 and indexed == []
