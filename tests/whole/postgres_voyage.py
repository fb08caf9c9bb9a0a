"""Runs and reads crawls in PostgreSQL, as `voyage` does for folders."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from voyage import PATIENCE_S, Collection, settings_for

from periplus.api.crawling import CrawlEnd, CrawlOrder, crawl
from periplus.urls.canonical import canonical
from periplus_postgres.address import address_of
from periplus_postgres.connection import connect
from testweb import Server


class StoredCollection(Collection):
    """Result of a crawl in a database, read directly from the tables."""

    def __init__(self, address: str) -> None:
        super().__init__(Path())
        self.address = address

    def ask(self, query: str, *values: object) -> list[tuple]:
        with contextlib.closing(connect(address_of(self.address))) as connection:
            return connection.execute(
                query.replace("%", "%%").replace("?", "%s") if values else query, values or None
            ).fetchall()

    def sane(self) -> list[str]:
        queued = (
            "SELECT count(*) FROM host h WHERE pending <> (SELECT count(*) FROM queue q"
            " WHERE q.shard = h.shard AND q.host_id = h.id)"
        )
        tallies = (
            "SELECT name FROM tally WHERE name LIKE 'reason:%' GROUP BY name HAVING sum(value) <> (SELECT count(*)"
            " FROM url WHERE 'reason:' || reason = name)"
        )
        waiting = (
            "SELECT count(*) FROM url u WHERE reason = 'waiting' AND NOT EXISTS (SELECT 1 FROM queue q"
            " WHERE q.shard = u.shard AND q.url_id = u.id)"
        )
        misplaced = (
            "SELECT count(*) FROM url u WHERE NOT EXISTS (SELECT 1 FROM host h"
            " WHERE h.shard = u.shard AND h.id = u.host_id)"
        )
        checks = {
            "leases left": self.ask("SELECT count(*) FROM host WHERE lease_by IS NOT NULL") != [(0,)],
            "workers left": self.ask("SELECT count(*) FROM worker") != [(0,)],
            "pending miscounted": self.ask(queued) != [(0,)],
            "tallies wrong": bool(self.ask(tallies)),
            "waiting without an entry": self.ask(waiting) != [(0,)],
            "in another shard than its host": self.ask(misplaced) != [(0,)],
            "something left in the inbox": self.ask("SELECT count(*) FROM inbox") != [(0,)],
            "a run that never ended": self.ask("SELECT count(*) FROM run WHERE state = 'running'") != [(0,)],
        }
        return [name for name, wrong in checks.items() if wrong]


def crawling_order(address: str, server: Server, *starts: str, **values: object) -> CrawlOrder:
    """starts: hosts; values: settings."""
    return CrawlOrder(address, tuple(canonical(server.url(start)) for start in starts), settings_for(server, **values))


def crawled_into(
    address: str,
    server: Server,
    *starts: str,
    stop: Callable[[object], bool] = lambda progress: False,
    **values: object,
) -> tuple[StoredCollection, CrawlEnd]:
    """Crawls in this process, as `voyage.crawled`."""
    deadline = time.monotonic() + PATIENCE_S

    def watch(progress: object) -> bool:
        assert time.monotonic() < deadline, f"the crawl does not end: {progress}"
        return stop(progress)

    return StoredCollection(address), crawl(crawling_order(address, server, *starts, **values), watch)
