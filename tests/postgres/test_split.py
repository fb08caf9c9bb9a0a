"""A collection is split into parts that contain each row once, and continue like one crawl."""

from __future__ import annotations

import contextlib

import pytest
from click.testing import CliRunner
from postgres_voyage import crawled_into
from test_web_in_parts import PARTS, asked, begin, collection_at, ended, together, web
from voyage import crawled

from periplus.cli.main import main
from periplus.errors import StoreError
from periplus.model.visit import Reason
from periplus.store.sqlite import reading, schema
from periplus.urls.hosts import WebPart, host_key, part_of
from periplus_postgres.folder_rows import FolderRows
from periplus_postgres.splitting import PartFiller
from postgres_server import empty_collection
from stored import page, stored
from testweb import serve

HOSTS = [f"{chr(97 + at)}.test" for at in range(12)]
TABLES = ("url", "page", "visit", "link", "bad_link", "queue", "start", "alias", "host", "site", "robots", "freshness")


@pytest.fixture(params=["folders", "databases"])
def places(request, tmp_path):
    """Places of a collection and of its four parts."""
    if request.param == "folders":
        yield [str(tmp_path / name) for name in ("whole", *"1234")]
        return
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(empty_collection()) for _ in range(PARTS + 1)]


def split(*words):
    return CliRunner().invoke(main, ["split", *map(str, words)])


def rows_of(place):
    """Rows of each table, with URLs as texts."""
    ask = collection_at(place).ask
    rows = {name: ask(f"SELECT count(*) FROM {name}")[0][0] for name in TABLES}
    foreign = {
        "url": "SELECT count(*) FROM url u JOIN host h ON h.id = u.host_id WHERE h.key IN ({})",
        "host": "SELECT count(*) FROM host h WHERE h.key IN ({})",
        "site": "SELECT count(DISTINCT h.site_id) FROM host h WHERE h.key IN ({})",
    }
    keys = [key for (key,) in ask("SELECT key FROM host")]
    part = ask("SELECT value FROM meta WHERE name = 'part'")
    if part:
        number = int(part[0][0].partition("/")[0])
        others = ", ".join(f"'{key}'" for key in keys if part_of(key, PARTS) != number) or "''"
        for name, query in foreign.items():
            rows[name] -= ask(query.format(others))[0][0]
    return rows


def test_the_parts_contain_each_row_once_and_complete_the_crawl(tmp_path, places):
    source, *parts = places
    with serve(web()) as server:
        whole, _ = crawled(tmp_path / "one", server, *HOSTS)
        crawl_into = (
            crawled_into if "://" in source else lambda place, *rest, **more: crawled(tmp_path / "whole", *rest, **more)
        )
        crawl_into(source, server, *HOSTS, max_pages=30)
        before = rows_of(source)
        assert before["queue"] > 0 and before["page"] == 30
        done = split(source, *parts, "--exchange", tmp_path / "exchange")
        assert done.exit_code == 0, done.output
        sums = {name: sum(rows_of(part)[name] for part in parts) for name in TABLES}
        assert sums == before
        for number, part in enumerate(parts, 1):
            assert collection_at(part).sane() == []
            others = {url for url, row in collection_at(part).urls.items() if part_of(host_key(url), PARTS) != number}
            known = {collection_at(part).urls[url].reason for url in others}
            assert known <= {Reason.OTHER_PART, Reason.SCOPE, Reason.RESOURCE}
        asked_before = {part: asked(part) for part in parts}
        assert set().union(*asked_before.values()) == asked(source)
        starts = [server.url(host) for host in HOSTS]
        again = split(source, *parts)
        assert again.exit_code == 0 and "compared" not in again.output
        ended([begin(server, part, number, tmp_path / "exchange", starts) for number, part in enumerate(parts, 1)])
        assert together(parts) == whole.tables


def test_a_stopped_split_continues_and_its_source_is_not_crawled(tmp_path):
    source, one, two = (tmp_path / name for name in ("whole", "one", "two"))
    with serve(web()) as server:
        crawled(source, server, *HOSTS, max_pages=10)
        (tmp_path / "two").mkdir()
        crawled(two, server, HOSTS[0], max_pages=1)
        occupied = split(source, one, two)
        assert occupied.exit_code == 1 and "has another collection" in occupied.output
        assert not one.exists()
        (two / "collection.db").unlink()
        assert split(source, one, two).exit_code == 0
        (two / "collection.db").unlink()
        assert split(source, one, two).output.count("compared") == 1
        assert split(source, one, tmp_path / "three").exit_code == 1
        with pytest.raises(Exception, match="moved to"):
            crawled(source, server, *HOSTS)
    assert split(one, tmp_path / "a", tmp_path / "b").exit_code == 2
    assert split(source, one).exit_code == 2


@pytest.mark.parametrize("table", ["url", "page", "host", "visit"])
@pytest.mark.parametrize(
    "fault", ["DELETE FROM {0} WHERE rowid = new.rowid", "UPDATE {0} SET {1} = -1 WHERE rowid = new.rowid"]
)
def test_a_part_with_a_missing_or_different_row_is_refused(tmp_path, table, fault):
    """A trigger simulates a disk that loses or changes data."""
    source = stored(
        tmp_path / "whole", {"https://e.org/": page("Home", "/a"), "https://e.org/a": page("A")}, ["https://e.org/"]
    )
    column = {"url": "first_seen", "page": "text_chars", "host": "next_at", "visit": "started"}[table]
    with (
        pytest.raises(StoreError, match=f"the table {table} was not copied completely"),
        reading.moment(source) as connection,
        schema.draft_collection(tmp_path / "part") as draft,
    ):
        draft.execute(f"CREATE TRIGGER fault AFTER INSERT ON {table} BEGIN {fault.format(table, column)}; END")
        PartFiller(FolderRows(connection, has_shards=True), WebPart(1, 1), {}, 0)(draft)
    assert not (tmp_path / "part" / "collection.db").exists()
