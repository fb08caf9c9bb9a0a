"""Worlds for crawl stores: each opens stores of one kind on the same data, with simulated processes."""

from __future__ import annotations

import contextlib
import json
import time

from contracts.plain_store import PlainStore
from periplus.settings import Budget, Settings, Storage
from periplus.store import checks
from periplus.store import runs as collection_runs
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.store.sqlite.schema import SqliteStatements
from periplus.urls.canonical import url_id
from periplus_postgres.connection import connect
from periplus_postgres.frontier import PostgresCrawlStore, Surroundings
from periplus_postgres.statements import PostgresStatements

KEEPING = Storage(lease_s=60.0)
NO_LIMIT = Budget()


class SqliteWorld:
    """A collection in a folder; each `open` is another connection to it."""

    def __init__(self, folder, living, budget=NO_LIMIT, storage=KEEPING):
        self.folder, self.living, self.budget, self.storage = folder, living, budget, storage
        schema.create(folder)
        self.run_id = FolderHome(folder).begin_run("crawl", (), Settings(), 0.0)
        self.stores = []

    def open(self):
        self.stores.append(
            SqliteCrawlStore(self.folder, self.run_id, self.budget, self.storage, self.living.__contains__)
        )
        return self.stores[-1]

    def begin_run(self, kind="crawl"):
        self.run_id = FolderHome(self.folder).begin_run(kind, (), Settings(), 1.0)

    def end_run(self):
        FolderHome(self.folder).end_run(self.run_id, "done", "", 1.0)

    def put_verdicts(self, dead):
        """dead: (URL, reason, rule, status)."""
        with schema.writing(self.folder) as connection:
            checks.store_verdicts(SqliteStatements(connection), [(url_id(url), *verdict) for url, *verdict in dead])

    def ask(self, query):
        with contextlib.closing(schema.connect(self.folder, read_only=True)) as connection:
            return connection.execute(query).fetchall()

    def pause(self, on):
        with schema.writing(self.folder) as connection:
            statements = SqliteStatements(connection)
            collection_runs.pause(statements, 0.0) if on else collection_runs.resume(statements)

    def close(self):
        for store in self.stores:
            store.close()

    def recount(self):
        """(hosts whose pending is not their number of entries, the tally's counts and the true ones)."""
        connection = schema.connect(self.folder)
        try:
            wrong = connection.execute(
                "SELECT key FROM host h WHERE pending <> (SELECT count(*) FROM queue WHERE host_id = h.id)"
            ).fetchall()
            tally = {name: value for name, value in connection.execute("SELECT name, value FROM tally") if value}
            true = {
                "reason:" + reason: count
                for reason, count in connection.execute("SELECT reason, count(*) FROM url GROUP BY reason")
            }
            known = connection.execute("SELECT count(*) FROM url").fetchone()[0]
            orphans = (
                "SELECT text FROM url u WHERE reason = 'waiting' AND NOT EXISTS (SELECT 1"
                " FROM queue WHERE url_id = u.id)"
            )
            return wrong, tally, true | ({"known": known} if known else {}), connection.execute(orphans).fetchall()
        finally:
            connection.close()


class PostgresWorld:
    """A collection in a database; each `open` is another connection to it. The caller's clock is the database's."""

    def __init__(self, address, living, budget=NO_LIMIT, storage=KEEPING):
        self.address, self.living, self.budget, self.storage = address, living, budget, storage
        self.connection = connect(address)
        insert = (
            "INSERT INTO run (kind, starts, settings, seed, started, state)"
            " VALUES ('crawl', '[]', %s, 0, 0, 'running') RETURNING id"
        )
        self.run_id = self.connection.execute(insert, (json.dumps({}),)).fetchone()[0]
        self.stores = []

    @staticmethod
    def empty(address):
        """Deletes the data of an earlier world."""
        tables = (
            "run_count, tally, worker, site, host, robots, family, url, start, alias, queue, inbox, page, body, "
            "visit, page_links, bad_link, url_history, outbox"
        )
        with connect(address) as connection:
            for table in tables.split(", "):
                connection.execute(f"DELETE FROM {table}")
            connection.execute(
                "SELECT setval(pg_get_serial_sequence(name, 'id'), 1, false) FROM unnest(ARRAY['host', 'site']) name"
            )

    def open(self):
        world = Surroundings(self.living.__contains__, own_clock=False, merge_s=0.0)
        self.stores.append(PostgresCrawlStore(self.address, self.run_id, self.budget, self.storage, world))
        return self.stores[-1]

    def begin_run(self, kind="crawl"):
        with self.connection.transaction():
            self.run_id = collection_runs.begin(PostgresStatements(self.connection), kind, (), Settings(), time.time())

    def end_run(self):
        with self.connection.transaction():
            collection_runs.end(PostgresStatements(self.connection), self.run_id, "done", "", time.time())

    def put_verdicts(self, dead):
        """dead: (URL, reason, rule, status), as in a collection that was moved into the database."""
        insert = "INSERT INTO verdict SELECT shard, id, %s, %s, %s, reason, rule, status FROM url WHERE id = %s"
        self.connection.cursor().executemany(insert, [(*verdict, url_id(url)) for url, *verdict in dead])

    def ask(self, query):
        return self.connection.execute(query).fetchall()

    def pause(self, on):
        statements = PostgresStatements(self.connection)
        collection_runs.pause(statements, time.time()) if on else collection_runs.resume(statements)

    def close(self):
        self.pause(False)  # the next world is in the same database
        for store in self.stores:
            store.close()
        self.connection.close()

    def recount(self):
        """As in `SqliteWorld`; entries of the inbox are not counted elsewhere yet."""
        ask = self.connection.execute
        wrong = ask(
            "SELECT key FROM host h WHERE pending <> (SELECT count(*) FROM queue WHERE host_id = h.id)"
        ).fetchall()
        tally = {name: int(value) for name, value in ask("SELECT name, sum(value) FROM tally GROUP BY name") if value}
        true = {"reason:" + reason: count for reason, count in ask("SELECT reason, count(*) FROM url GROUP BY reason")}
        known = ask("SELECT count(*) FROM url").fetchone()[0]
        orphans = ask(
            "SELECT text FROM url u WHERE reason = 'waiting' AND NOT EXISTS (SELECT 1 FROM queue WHERE url_id = u.id)"
        ).fetchall()
        return wrong, tally, true | ({"known": known} if known else {}), orphans


class PlainWorld:
    """The reference implementation: its data is the store itself."""

    def __init__(self, folder, living, budget=NO_LIMIT, storage=KEEPING):
        self.living = living
        self.store = PlainStore(budget, storage, living.__contains__)

    def open(self):
        return self.store

    def begin_run(self, kind="crawl"):
        self.store.is_check = kind == "check"

    def pause(self, on):
        self.store.paused = on

    def close(self):
        pass

    def recount(self):
        waiting = {url_id for url_id, known in self.store.urls.items() if known.reason == "waiting"}
        return [], {}, {}, waiting - {entry.url_id for entry in self.store.queue}
