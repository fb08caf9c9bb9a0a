"""Moving a collection between a folder and a database: completely or not at all."""

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace

import pytest
from click.testing import CliRunner

from periplus.api.homes import home_of
from periplus.cli.main import main
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.model.visit import Headers
from periplus.settings import Settings
from periplus.store.aliases import reapply
from periplus.store.bodies import BodyCodec, pack_headers, train
from periplus.store.sqlite import page_links, schema
from periplus.store.sqlite.frontier import FolderHome
from periplus.store.statements import shard_of
from periplus.urls.canonical import canonical, url_id
from periplus.urls.parameters import rules_key, rules_of
from periplus_postgres import moving
from periplus_postgres.connection import connect
from periplus_postgres.moved_tables import Sum
from periplus_postgres.moving import move
from periplus_postgres.segments import object_storage
from stored import page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/b", "https://x.org/", "mailto:a@b.c"),
    "https://e.org/a": 404,
    "https://e.org/b": "/c",
    "https://e.org/c": page("Deep \0 ž", "/", "/b", "https://x.org/", "/open"),
}
LEFT_BEHIND = ("worker", "reason", "change", "follower", "evidence", "sqlite_sequence")


@pytest.fixture
def folder(tmp_path):
    return stored(tmp_path / "c", SITE, ["https://e.org/"], state="running")


def rows_by_table(folder):
    """The rows of every table that moves, sorted, with decompressed bodies."""
    with closing(sqlite3.connect(folder / schema.DATABASE)) as connection:
        run = connection.execute
        names = [
            name
            for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table' OR name = 'link'")
            if name not in LEFT_BEHIND
        ]
        tables = {name: sorted(map(repr, run(f"SELECT * FROM {name}"))) for name in names}
        codec = BodyCodec()
        for number, data in run("SELECT id, data FROM dictionary"):
            codec.add(number, data)
        bodies = [
            (*row, codec.unpack(data, which) if data else b"")
            for *row, which, data in run("SELECT id, digest, size, text, blocks, dictionary_id, data FROM body")
        ]
        tables["body"] = sorted(map(repr, bodies))
        tables["file"] = sorted(repr((path.name, path.read_bytes())) for path in (folder / "topics").glob("*"))
        tables["meta"] = [row for row in tables["meta"] if "moved" not in row and "rules_text" not in row]
    return tables


def rich(folder, seed):
    """A collection with rows in every table, including history, dictionaries, shared bodies and aliases."""
    rng = random.Random(seed)
    schema.create(folder)
    assert FolderHome(folder).begin_run("crawl", [canonical("https://s0.org/")], Settings(), 5.0) == 1
    with closing(sqlite3.connect(folder / schema.DATABASE)) as connection, connection:
        urls = add_urls(connection, rng)
        add_bodies(connection, rng)
        read(connection, urls)
        add_links(connection, rng, urls)
        add_queue(connection, urls)
        add_decisions(connection)
    (folder / "topics").mkdir()
    for name in ("sea.json", "sea.examples.gz", "sea.labels.jsonl"):
        (folder / "topics" / name).write_bytes(rng.randbytes(3_000))
    return folder


def name_of(host):
    return f"{'www.' * (host % 2)}s{(host + 1) // 2}.org"


def add_urls(connection, rng):
    """Adds sites, hosts and URLs. Returns the ids of the URLs."""
    many = connection.executemany
    many("INSERT INTO site VALUES (?, ?, 0, ?)", [(n, f"s{n}.org", 1 if n == 1 else None) for n in range(1, 6)])
    hosts = [(n, f"{name_of(n)}:443", (n + 1) // 2, n, "dead" if n == 3 else None, n / 7, n) for n in range(1, 11)]
    many("INSERT INTO host (id, key, site_id, epoch, lease_by, next_at, fetched) VALUES (?, ?, ?, ?, ?, ?, ?)", hosts)
    connection.execute("UPDATE site SET fetched = (SELECT sum(fetched) FROM host WHERE site_id = site.id)")
    found = [(canonical(f"https://{name_of(host)}/{n}"), host) for n in range(60) for host in [rng.randrange(1, 11)]]
    reasons, depths = ("ok", "waiting", "not-found"), (None, 0, 3)
    rows = [
        (url_id(url), url, host, rng.choice(reasons), rng.choice(depths), "", 200, n % 2, n / 3, None)
        for n, (url, host) in enumerate(found)
    ]
    many("INSERT INTO url VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    return [row[0] for row in rows]


def add_bodies(connection, rng):
    """Adds bodies with and without a dictionary, content and text, and two XML documents."""
    contents = [b"<p>page %d of a site</p>" % number * 60 for number in range(240)]
    codec, dictionary = BodyCodec(), train(contents)
    codec.add(1, dictionary)
    connection.execute("INSERT INTO dictionary VALUES (1, ?)", (dictionary,))
    for n in range(1, 12):
        which, texts = n % 2 or None, (None, None) if n % 3 == 0 else (b"text\0", b"\xff")
        data = codec.pack(contents[n], which) if n != 7 else b""
        connection.execute(
            "INSERT INTO body VALUES (?, ?, ?, ?, ?, ?, ?)",
            (n, rng.randbytes(16), which, len(contents[n]), data, *texts),
        )
    connection.executemany("INSERT INTO xml VALUES (?, 'text/xml', ?)", [(n, rng.randbytes(200)) for n in (2, 5)])


def insert_row(connection, table, values):
    """Inserts a row into a wide table. Other columns are empty texts."""
    row = dict.fromkeys((column[1] for column in connection.execute(f"PRAGMA table_info({table})")), "") | values
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row.values()))


def read(connection, urls):
    """Adds pages, their history, and their visits."""
    numbers = dict.fromkeys(("took_s", "fetched"), 0.5) | dict.fromkeys(
        ("last_modified", "expires", "size", "wire_bytes", "text_chars", "h1s", "images_without_alt"), 1
    )
    digests = {"body_digest": b"a" * 16, "text_digest": b"b" * 16, "folded_digest": b"c" * 16, "parts": b"\0\1"}
    for n, number in enumerate(urls[:40]):
        title = "a\0b" if n == 3 else f"title {n} ž"
        insert_row(connection, "page", numbers | digests | {"url_id": number, "body_id": 1 + n % 9, "title": title})
    before = {
        "run_id": 1,
        "size": 3,
        "text_chars": 4,
        "body_digest": b"m" * 16,
        "text_digest": b"n" * 16,
        "body_id": 10,
    }
    for number in urls[:10]:
        insert_row(connection, "page_history", before | {"url_id": number})
    head = pack_headers(Headers((("content-type", "text/html"),), "HTTP/1.1 200 OK"))
    visits = [(number, None, head) for number in urls[:40]] + [(0, "https://s1.org/robots.txt", None)]
    insert = (
        "INSERT INTO visit (run_id, url_id, text, purpose, started, took_s, outcome, status, "
        "detail, wire_bytes, address, head)"
    )
    connection.executemany(
        f"{insert} VALUES (1, ?, ?, 'page', 3.5, 0.1, 'fetched', 200, '', 9, '127.0.0.1', ?)", visits
    )
    checked = f"https://s1.org/{random.Random(2).randbytes(3_000).hex()}"
    connection.execute(
        f"{insert} VALUES (1, 0, ?, 'check', 3.5, 0.1, 'fetched', 200, '', 9, '127.0.0.1', NULL)", (checked,)
    )
    connection.execute("INSERT INTO look VALUES (3, 'text/html', 't', 'h', 'x', '')")


def add_links(connection, rng, urls):
    many, pairs = connection.executemany, list({(rng.choice(urls), rng.choice(urls)) for _ in range(200)})
    links = [(*pair, "a", "nav", n % 2, "words", "", 2, 1.5, 2.25) for n, pair in enumerate(pairs)]
    page_links.fill(connection, sorted(links))
    many("INSERT INTO link_history VALUES (?, ?, 'a', 'nav', 0, 1, 'words', 2, 1.5, 2.25)", pairs[:30])
    many("INSERT INTO bad_link VALUES (?, 'tel:1', 'a', 'nav', 'call', 'tel')", [(number,) for number in urls[:5] * 2])
    many(
        "INSERT INTO alias VALUES (?, ?, 'rule', 1, 'waiting', '', '', 2)",
        list(zip(urls[50:55], urls[:5], strict=True)),
    )
    connection.execute("INSERT INTO issue VALUES (1, 'code', ?, ?)", urls[:2])


def add_queue(connection, urls):
    """Adds queues, robots.txt and other facts of hosts, and totals."""
    many = connection.executemany
    entries = [(1 + n % 10, n, number, f"t{n}") for n, number in enumerate(urls[40:50])]
    many("INSERT INTO queue (host_id, priority, seq, url_id, text) VALUES (?, 1, ?, ?, ?)", entries)
    connection.execute("UPDATE meta SET value = '77' WHERE name = 'seq'")
    connection.execute("INSERT INTO meta VALUES ('check_since', '3.5')")
    many("INSERT INTO url_history VALUES (?, 1, 'ok', '', 200, NULL)", [(number,) for number in urls[:5]])
    many("INSERT INTO freshness VALUES (?, 1.5, 86400, NULL)", [(number,) for number in urls[:9]])
    many("INSERT INTO start VALUES (?, 2)", [(number,) for number in urls[:3]])
    many(
        "INSERT INTO robots VALUES (?, 200, '', ?, 1, 2)",
        [(f"https://s{n}.org:443", b"User-agent: *\xff") for n in range(1, 5)],
    )
    long = random.Random(1).randbytes(3_000).hex()  # longer than the 2,700 bytes of a PostgreSQL index entry
    many("INSERT INTO family VALUES (?, ?, '[1]')", [(n, key) for n in range(1, 5) for key in ("key", long)])
    connection.execute("INSERT INTO run_count VALUES (1, 'new', 40)")
    many("INSERT INTO tally VALUES (?, ?)", [("known", 60), ("reason:ok", 20)])


def add_decisions(connection):
    """Adds survey marks and a portal, also with URLs that are too long for a PostgreSQL index."""
    many, long = connection.executemany, "https://e.org/" + random.Random(3).randbytes(3_000).hex()
    many("INSERT INTO survey_mark VALUES (?, 'out', 'a\nb', 2.5)", [("e.org",), (long,)])
    connection.execute("INSERT INTO portal VALUES ('coast', '{}', 1.5)")
    many("INSERT INTO portal_verdict VALUES ('coast', ?, 'k3vq', 'approved', 1.5)", [(0,), (1,)])
    many("INSERT INTO portal_page VALUES ('coast', ?, 'k3vq')", [("https://e.org/",), (long,)])
    connection.execute("INSERT INTO portal_words VALUES ('coast', 'k3vq', 'words', ?, 'alt', 1.5)", (b"\0\xff",))


@pytest.mark.parametrize("has_segments", [False, True], ids=["rows", "segments"])
def test_a_collection_moves_to_a_database_and_back_without_loss(address, tmp_path, has_segments):
    where = address.text + (f"&segments={tmp_path}/segments" if has_segments else "")
    before = rows_by_table(rich(tmp_path / "c", 1))
    done = move(str(tmp_path / "c"), where)
    assert rows_by_table(tmp_path / "c") == before, "the source is unchanged"
    assert move(address.text, str(tmp_path / "d")).rows == done.rows
    after = rows_by_table(tmp_path / "d")
    cleaned = {
        name: [row.replace("a\\x00b", "a\N{REPLACEMENT CHARACTER}b") for row in rows] for name, rows in before.items()
    }
    assert {name: after[name] for name in before if name != "host"} == {
        name: sorted(rows) for name, rows in cleaned.items() if name != "host"
    }
    assert {row for row in before["host"] if "dead" not in row} < set(after["host"]) and len(after["host"]) == len(
        before["host"]
    )
    if has_segments:
        assert sum(1 for _ in object_storage(f"{tmp_path}/segments").sizes()) == 1
        with closing(connect(address)) as connection:
            assert connection.execute("SELECT count(*) FROM body WHERE length(data) > 0").fetchone() == (0,)
        result = CliRunner().invoke(main, ["segments", address.text])
        assert result.exit_code == 0 and "0 orphans" in result.output and "0 pages without bytes" in result.output, (
            result.output
        )


@pytest.mark.parametrize("seed", [2, 4])
def test_random_collections_move_without_loss(address, tmp_path, seed):
    before = rows_by_table(rich(tmp_path / "c", seed))
    moved = move(str(tmp_path / "c"), address.text)
    assert {name: rows for name, rows in moved.rows.items() if name != "meta"} == {
        name: len(before[name]) for name in moved.rows if name != "meta"
    }


def test_new_rows_after_a_move_get_new_numbers(address, folder):
    move(str(folder), address.text)
    with closing(connect(address)) as connection:
        for table in ("run", "site", "host", "body", "visit"):
            (known,) = connection.execute(f"SELECT max(id) FROM {table}").fetchone()
            assert connection.execute(f"SELECT nextval(pg_get_serial_sequence('{table}', 'id'))").fetchone() == (
                known + 1,
            )
        assert connection.execute("SELECT nextval('queue_seq') > max(seq) FROM queue").fetchone() == (True,)


def test_each_row_is_in_the_shard_of_its_key(address, tmp_path):
    move(str(rich(tmp_path / "c", 3)), address.text)
    with closing(connect(address)) as connection:
        run = connection.execute
        assert {key: shard for shard, key in run("SELECT shard, key FROM site")} == {
            f"s{n}.org": shard_of(f"s{n}.org") for n in range(1, 6)
        }
        assert run(
            "SELECT count(*) FROM host h LEFT JOIN site s ON s.shard = h.shard AND s.id = h.site_id WHERE s.id IS NULL"
        ).fetchone() == (0,)
        for table, key in (
            ("page", "url_id"),
            ("link", "source"),
            ("start", "url_id"),
            ("page_history", "url_id"),
            ("alias", "url_id"),
        ):
            lost = (
                f"SELECT count(*) FROM {table} t LEFT JOIN url u ON u.shard = t.shard"
                f" AND u.id = t.{key} WHERE u.id IS NULL"
            )
            assert run(lost).fetchone() == (0,), table
        assert run(
            "SELECT count(*) FROM url u LEFT JOIN host h ON h.shard = u.shard AND h.id = u.host_id WHERE h.id IS NULL"
        ).fetchone() == (0,)
        assert run(
            "SELECT count(*) FROM page p LEFT JOIN body b ON b.shard = p.shard AND b.id = p.body_id WHERE b.id IS NULL"
        ).fetchone() == (0,)
        missing = (
            "SELECT count(*) FROM body b LEFT JOIN dictionary d USING (shard)"
            " WHERE b.dictionary_id IS NOT NULL AND d.id IS NULL"
        )
        assert run(missing).fetchone() == (0,)


def test_a_host_of_a_killed_worker_is_free_after_its_delay(address, tmp_path):
    began = time.time()
    move(str(rich(tmp_path / "c", 3)), address.text)
    with closing(connect(address)) as connection:
        *freed, next_at = connection.execute("SELECT lease_by, epoch, next_at FROM host WHERE id = 3").fetchone()
        assert freed == [None, 3] and next_at > began + 0.5
        connection.execute("UPDATE host SET lease_by = 'dead' WHERE id = 4")
    began = time.time()
    move(address.text, str(tmp_path / "d"))
    with closing(sqlite3.connect(tmp_path / "d" / schema.DATABASE)) as connection:
        *freed, next_at = connection.execute("SELECT lease_by, epoch, next_at FROM host WHERE id = 4").fetchone()
        assert freed == [None, 4] and next_at > began + 0.5


def test_a_moved_collection_refuses_crawls_and_names_the_new_place(address, folder, tmp_path):
    move(str(folder), address.text)
    with pytest.raises(StoreError, match=r"this collection moved to postgresql://.*: crawl there"):
        FolderHome(folder).begin_run("crawl", [canonical("https://e.org/")], Settings(), 9.0)
    with pytest.raises(StoreError, match="this collection moved to"):
        move(str(folder), address.text)
    move(address.text, str(tmp_path / "d"))
    with pytest.raises(StoreError, match=r"this collection moved to .*/d: crawl there"):
        move(address.text, str(tmp_path / "e"))
    FolderHome(tmp_path / "d").begin_run("crawl", [canonical("https://e.org/")], Settings(), 9.0)


def test_an_existing_collection_is_not_overwritten(address, folder, tmp_path):
    other = stored(tmp_path / "other", {"https://o.org/": page("Other")}, ["https://o.org/"])
    move(str(folder), address.text)
    with pytest.raises(StoreError, match=r"already has a collection\. Choose another name"):
        move(str(other), address.text)
    with pytest.raises(StoreError, match="holds a collection already"):
        move(address.text, str(other))
    move(address.text, str(tmp_path / "d"))  # the failed moves left no mark


def test_an_incomplete_copy_is_discarded(address, folder, tmp_path, monkeypatch):
    whole = moving.report_rows
    # loses a row of each table
    monkeypatch.setattr(moving, "report_rows", lambda rows, what, watch, *every: list(whole(rows, what, watch))[1:])
    with pytest.raises(StoreError, match=r"arrived incomplete: .* sent, .* stored\. Nothing was moved"):
        move(str(folder), address.text)
    monkeypatch.undo()
    assert move(str(folder), address.text).rows["url"] == 6


def test_an_interrupted_move_leaves_no_partial_copy(address, folder, tmp_path, monkeypatch):
    move(str(folder), address.text)
    monkeypatch.setattr(
        "periplus_postgres.moving.verify_rows", lambda *given: (_ for _ in ()).throw(StoreError("the power failed"))
    )
    with pytest.raises(StoreError, match="the power failed"):
        move(address.text, str(tmp_path / "d"))
    assert list((tmp_path / "d").iterdir()) == []
    monkeypatch.undo()
    move(address.text, str(tmp_path / "d"))


KILLED = """
import sys
from periplus_postgres import moving
def here(*given):
    print("now", flush=True)
    sys.stdin.read()
moving.verify_rows = here
moving.move(*sys.argv[1:])
"""


def killed_in_the_middle(source, target):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, source, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"now\n"
        process.kill()


def test_a_killed_move_can_be_repeated(address, folder, tmp_path):
    killed_in_the_middle(str(folder), address.text)
    assert move(str(folder), address.text).rows["url"] == 6
    killed_in_the_middle(address.text, str(tmp_path / "d"))
    assert not schema.exists(tmp_path / "d")
    assert move(address.text, str(tmp_path / "d")).rows["url"] == 6
    assert {path.name for path in (tmp_path / "d").iterdir()} == {schema.DATABASE, "write.lock"}


def test_a_move_continues_after_a_lost_connection(address, folder):
    def cut(what, rows):
        if what == "Comparing url":
            with closing(connect(address)) as other:
                others = "pid <> pg_backend_pid() AND datname = current_database() AND xact_start IS NOT NULL"
                other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")

    with pytest.raises(StoreError, match=r"the database failed: .*a move continues"):
        move(str(folder), address.text, cut)
    assert move(str(folder), address.text).rows["url"] == 6


def test_an_impossible_move_is_refused(address, folder, tmp_path):
    for source, target in ((str(folder), str(tmp_path / "d")), (address.text, address.text)):
        with pytest.raises(UsageError, match="between a folder and a database"):
            move(source, target)
    with pytest.raises(NoCollection):
        move(str(tmp_path / "nothing"), address.text)
    with pytest.raises(NoCollection):
        move(replace(address, collection="nothing_here").text, str(tmp_path / "d"))
    (folder / "periplus.toml").write_text('[[site]]\nsite = "e.org"\nignored = ["sid"]\n')
    with pytest.raises(UsageError, match="are not applied yet: run `periplus rules apply"):
        move(str(folder), address.text)


def test_url_rules_are_moved(address, folder, tmp_path):
    rules = '[[site]]\nsite = "e.org"\nignored = ["sid"]\n'
    (folder / "periplus.toml").write_text(rules)
    with FolderHome(folder).alias_ledger() as ledger:
        reapply(ledger, rules_of(rules), rules_key(rules), 1.0)
    move(str(folder), address.text)
    assert home_of(address.text).rules_text() == rules
    assert home_of(address.text).prepare(rules, 1.0), "the same rules are no others"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "periplus.toml").touch()
    with pytest.raises(StoreError, match="already exists, and the collection has its own rules"):
        move(address.text, str(tmp_path / "other"))
    move(address.text, str(tmp_path / "d"))
    assert (tmp_path / "d" / "periplus.toml").read_text() == rules


def test_a_collection_with_running_workers_is_not_moved(address, folder, tmp_path):
    move(str(folder), address.text)
    with closing(connect(address)) as connection:
        connection.execute(
            "INSERT INTO worker (name, pid, joined, lease_until) VALUES ('w', 1, 0, extract(epoch"
            " FROM clock_timestamp()) + 60)"
        )
    with pytest.raises(UsageError, match="1 workers are running"):
        move(address.text, str(tmp_path / "d"))


def test_checksums_are_equal_only_for_equal_rows_in_any_order():
    rows = [(1, "a", None, b"x" * 100, 0.5), (2, "b", 3, b"", 1e300)]
    sums = []
    for part in (rows, rows[::-1], rows[:1], [*rows, rows[0]], [(1, "a", None, b"y" * 100, 0.5), rows[1]]):
        sums.append(Sum())
        for row in part:
            sums[-1].add(row)
    assert sums[0] == sums[1] and all(sums[0] != other for other in sums[2:])
    assert "2 rows (" in str(sums[0])


def test_the_command_prints_the_moved_tables(address, folder):
    result = CliRunner().invoke(main, ["move", str(folder), address.text])
    assert result.exit_code == 0 and "url 6" in result.output and "Every table was compared" in result.output, (
        result.output
    )
    assert moving.silent("x", 1) is None
