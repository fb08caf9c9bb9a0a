"""An updated copy of a collection in a database equals a new copy."""

import contextlib
import os
import time

import pytest
from click.testing import CliRunner
from postgres_voyage import crawled_into

from periplus.api.collection import Collection
from periplus.api.crawling import refresh, refresh_order
from periplus.api.homes import editing
from periplus.cli.main import main
from periplus.errors import StoreError
from periplus.model.frontier import RefreshFinding
from periplus.store.notes import count_change
from periplus.store.sqlite import reading
from periplus.store.sqlite.schema import writing
from periplus_postgres import copies, folder_rows
from periplus_postgres.connection import connect
from periplus_postgres.copies import local_copy
from periplus_postgres.copying import versions
from periplus_postgres.folder_rows import FolderRows
from periplus_postgres.moved_tables import TABLES, WRITTEN_BACK
from periplus_postgres.statements import PostgresStatements
from postgres_server import empty_collection
from testweb import GraphRecipe, graph_site, serve
from testweb.site import NOT_FOUND

RECIPE = GraphRecipe(seed=3, pages=60, links_per_page=6, shape="random", page_bytes=2000, host="a.test")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Switches to another folder for copies."""

    def use(name):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    monkeypatch.chdir(tmp_path)
    use("cache")
    return use


def rows(folder):
    """All copied rows by table, except the index state of pages."""
    with contextlib.closing(reading.connect(folder)) as connection:
        folder_rows.load_files(connection, folder)
        columns = [name for name in folder_rows.columns_of(connection, "page") if name != "parts"]
        asked = {name: f"SELECT * FROM {name}" for name in (*TABLES, "xml")}
        asked["page"] = f"SELECT {', '.join(columns)} FROM page"
        asked["meta"] = "SELECT * FROM meta WHERE name NOT IN ('copied', 'as_of')"
        tables = {name: sorted(map(repr, connection.execute(ask).fetchall())) for name, ask in asked.items()}
        return tables | {"body": sorted(repr(body.row) for body in FolderRows(connection).bodies())}


def anew(address, cache):
    cache(f"other-{time.monotonic()}")
    folder = local_copy(address)
    cache("cache")
    return folder


def brought_up(address, cache):
    """Updates the copy, which must equal a new one; returns its folder."""
    folder = local_copy(address)
    assert rows(folder) == rows(anew(address, cache))
    return folder


def test_an_updated_copy_equals_a_new_copy(address, cache):
    """During a crawl, after it, after a refresh of a changed web, and after deletions."""
    text, site = address.text, graph_site(RECIPE)
    with serve(site) as server:
        crawled_into(text, server, "a.test", delay_s=0.0, max_pages=20)
        first = brought_up(text, cache)
        file = (first / "collection.db").stat().st_ino
        with Collection(first) as collection:
            before = collection.search("the").total
        crawled_into(text, server, "a.test", delay_s=0.0)
        assert brought_up(text, cache) == first
        with Collection(first) as collection:
            assert collection.search("the").total > before, "the index follows the copy"
        *paths, gone = sorted(site.pages)
        for path in paths[::2]:
            site.pages[path].title = "Another title"
            site.pages[path].links = site.pages[path].links[1:]
            server.bump("a.test", path)
        site.routes.exact[gone] = lambda asked: NOT_FOUND
        end = refresh(refresh_order(text, {}), lambda progress: False)
        assert end.findings[RefreshFinding.CHANGED] == len(paths[::2]) and end.findings[RefreshFinding.GONE] == 1
    brought_up(text, cache)
    with contextlib.closing(connect(address)) as database, database.transaction():
        database.execute("DELETE FROM page WHERE url_id IN (SELECT url_id FROM page ORDER BY 1 LIMIT 5)")
        database.execute("DELETE FROM page_links WHERE source IN (SELECT source FROM page_links ORDER BY 1 LIMIT 3)")
        database.execute("DELETE FROM visit WHERE id IN (SELECT id FROM visit ORDER BY 1 LIMIT 3)")
        database.execute(
            "UPDATE page_links SET words = regexp_replace(words, '\\w+', 'other')"
            " WHERE source = (SELECT max(source) FROM page_links)"
        )
        count_change(PostgresStatements(database))
    brought_up(text, cache)
    assert (first / "collection.db").stat().st_ino == file, "it was updated, not replaced"


def test_a_copy_is_not_scanned_without_changes(address, cache, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled_into(address.text, server, "a.test", delay_s=0.0, max_pages=5)
    tables, enter = [], FolderRows.enter
    monkeypatch.setattr(FolderRows, "enter", lambda self, table, rows: enter(self, table, tables.append(table) or rows))

    def copied_tables():
        tables.clear()
        local_copy(address.text)
        return {table.name for table in tables}

    assert "url" in copied_tables() and not copied_tables()
    with contextlib.closing(connect(address)) as database:
        database.execute("CREATE TABLE public.other AS SELECT 1 AS n")
        assert not copied_tables(), "writing another table is no change"
        database.execute("DROP TABLE public.other")
        database.execute("INSERT INTO meta VALUES ('decided', '1')")
    assert copied_tables() == {"meta", *WRITTEN_BACK}, "users' decisions alone"


def test_a_recreated_collection_is_copied_again(address, cache):
    with serve(graph_site(RECIPE)) as server:
        crawled_into(address.text, server, "a.test", delay_s=0.0, max_pages=9)
        local_copy(address.text)
        with contextlib.closing(connect(address)) as database:
            database.execute(f"DROP SCHEMA {address.collection} CASCADE".encode())
        crawled_into(address.text, server, "a.test", delay_s=0.0, max_pages=4)
    brought_up(address.text, cache)


def test_unused_copies_are_deleted_and_a_full_disk_is_reported(address, cache, monkeypatch):
    with serve(graph_site(RECIPE)) as server:
        crawled_into(address.text, server, "a.test", delay_s=0.0, max_pages=3)
    homes = {name: copies.copies_folder() / name for name in ("forgotten", "lately")}
    ages_s = {"forgotten": copies.UNUSED_S + 60, "lately": 60}
    for name, home in homes.items():
        home.mkdir(parents=True)
        (home / "x").write_bytes(b"x" * 2000)
        os.utime(home, (time.time() - ages_s[name],) * 2)
    local_copy(address.text)
    assert {name for name, home in homes.items() if home.exists()} == {"lately"}
    cache("full")
    monkeypatch.setattr(copies.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10}))
    with pytest.raises(StoreError, match="XDG_CACHE_HOME"):
        local_copy(address.text)


def test_a_copy_is_read_with_the_rules_of_the_calling_folder(address, cache, tmp_path):
    with serve(graph_site(RECIPE)) as server:
        crawled_into(address.text, server, "a.test", delay_s=0.0, max_pages=3)
    (tmp_path / "periplus.toml").write_text('[segments]\nfirst = "/"\n')
    ran = CliRunner().invoke(main, ["pages", "--columns", "url,segment", "--segment", "first", "-c", address.text])
    assert ran.exit_code == 0 and "first" in ran.output, ran.output
    (tmp_path / "periplus.toml").unlink()
    ran = CliRunner().invoke(main, ["pages", "--segment", "first", "-c", address.text])
    assert ran.exit_code == 2


def test_an_unwritable_cache_is_reported(address, cache, tmp_path):
    (tmp_path / "file").write_text("")
    cache("file")
    with pytest.raises(StoreError, match=r"cannot be stored in .*Name another folder in XDG_CACHE_HOME"):
        local_copy(address.text)


def test_an_interrupted_copy_is_unchanged_and_can_continue(address, cache, monkeypatch):
    """During its creation, and during an update."""
    with serve(graph_site(RECIPE)) as server:
        crawled_into(address.text, server, "a.test", delay_s=0.0, max_pages=5)
        for pages in (5, 20):
            crawled_into(address.text, server, "a.test", delay_s=0.0, max_pages=pages)
            with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
                broken.setattr(FolderRows, "enter_bodies", lambda *args: 1 // 0)
                local_copy(address.text)
            brought_up(address.text, cache)


def test_the_change_numbers_change_with_this_collection_alone(address, cache):
    """A crawl, a refresh and a deletion change the first, a decision the second; other collections and readers none."""

    def change_numbers():
        with contextlib.closing(connect(address)) as database:
            return versions(database)

    text, site = address.text, graph_site(RECIPE)
    with serve(site) as server, empty_collection() as other:
        known = [change_numbers()]
        for change in (
            lambda: crawled_into(text, server, "a.test", delay_s=0.0, max_pages=1),
            lambda: crawled_into(text, server, "a.test", delay_s=0.0, max_pages=2),
            lambda: refresh(refresh_order(text, {}), lambda progress: False),
        ):
            change()
            known.append(change_numbers())
            crawled_into(other, server, "a.test", delay_s=0.0, max_pages=len(known))
            assert change_numbers() == known[-1], "another collection changed"
        assert len({crawled for crawled, _ in known}) == 4
        before = known[-1]
        for words in (["status"], ["pages"], ["search", "the"], ["report"]):
            assert CliRunner().invoke(main, [words[0], "-c", text, *words[1:]]).exit_code == 0
        assert change_numbers() == before
        with editing(text) as folder, writing(folder) as connection:
            connection.execute("INSERT INTO survey_mark VALUES ('e.org', 'out', '', 2.5)")
        crawled, decided = change_numbers()
        assert crawled == before[0] and decided != before[1]
        page = server.url("a.test")
        assert CliRunner().invoke(main, ["delete", "-c", text, "--yes", page]).exit_code == 0
        assert change_numbers()[0] != crawled
