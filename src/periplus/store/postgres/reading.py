"""What does a crawl read of its collection, beside its to-do lists?"""

from __future__ import annotations

import json
from collections.abc import Sequence

from periplus.model.archive import RunNote
from periplus.model.frontier import FamilyRecord, Lease, RunCounts, ShownLines, StoredRobots, TrapMemory
from periplus.model.visit import Reason
from periplus.model.web import Origin, SiteKey, Url, UrlId
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.hosts import NOW
from periplus.store.postgres.ledger import Run
from periplus.store.postgres.pausing import IS_PAUSED
from periplus.store.postgres.schema import shard_of
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_key


def run_of(connection: Connection, run_id: int) -> Run:
    row = connection.execute("SELECT id, started, kind = 'refresh' FROM run WHERE id = %s", (run_id,)).fetchone()
    assert row is not None
    return Run(*row)


def segments_of(connection: Connection, run_id: int) -> tuple[str, RunNote]:
    """(the place of the collection's segments, empty where it has none; what they say of the run at their head)."""
    place = connection.execute("SELECT value FROM meta WHERE name = 'segments'").fetchone()
    row = connection.execute("SELECT id, started, starts, settings FROM run WHERE id = %s", (run_id,)).fetchone()
    assert row is not None
    settings = json.loads(row[3])
    note = RunNote(row[0], row[1], str(settings.get("user_agent", "")), tuple(json.loads(row[2])), row[3], not settings.get("ignore_robots", False))
    return str(place[0]) if place else "", note


def shards(connection: Connection, host_ids: Sequence[int]) -> list[tuple[int, int]]:
    """(shard, id) of hosts of which only the number is known."""
    return [(row[0], row[1]) for row in connection.execute("SELECT shard, id FROM host WHERE id = ANY(%s)", (list(host_ids),)).fetchall()]


def fair_share(connection: Connection, now: float | None) -> int:
    find = f"SELECT (SELECT count(*) FROM host WHERE pending > 0), (SELECT count(*) FROM worker WHERE lease_until >= {NOW}), {IS_PAUSED}"
    row = connection.execute(find, {"now": now}).fetchone()
    assert row is not None
    return 0 if row[2] else max(1, -(-int(row[0]) // max(1, int(row[1]))))


def is_idle(connection: Connection) -> bool:
    """One statement: what moves from a list to the inbox is seen in one of them."""
    row = connection.execute("SELECT EXISTS (SELECT 1 FROM host WHERE pending > 0) OR EXISTS (SELECT 1 FROM inbox)").fetchone()
    return row is not None and not row[0]


def is_held(connection: Connection, lease: Lease) -> bool:
    find = "SELECT 1 FROM host WHERE shard = %s AND id = %s AND epoch = %s AND lease_by IS NOT NULL"
    return connection.execute(find, (shard_of(lease.site), lease.host_id, lease.epoch)).fetchone() is not None


def shard_of_origin(origin: Origin) -> int:
    return shard_of(site_key(Url(f"{origin}/")))


def trap_memory(connection: Connection, lease: Lease) -> TrapMemory:
    run, place = connection.execute, (shard_of(lease.site), lease.host_id)
    families = run("SELECT record FROM family WHERE shard = %s AND host_id = %s ORDER BY key", place).fetchall()
    shown = run("SELECT first, keys FROM shown WHERE shard = %s AND host_id = %s ORDER BY first", place).fetchall()
    doubts = run("SELECT url_id, doubt FROM doubtful WHERE shard = %s AND host_id = %s ORDER BY url_id", place).fetchall()
    lines = ShownLines(shown[0][0], b"".join(bytes(keys) for _, keys in shown)) if shown else ShownLines()
    return TrapMemory(tuple(FamilyRecord(*json.loads(record)) for (record,) in families), lines, tuple((UrlId(url), doubt) for url, doubt in doubts))


def known(connection: Connection, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
    find = "SELECT id FROM url WHERE shard = %s AND id = ANY(%s)"
    return frozenset(UrlId(url) for (url,) in connection.execute(find, (shard_of(lease.site), list(urls))))


def robots(connection: Connection, origin: Origin) -> StoredRobots | None:
    find = "SELECT origin, status, cause, body, fetched, expires FROM robots WHERE shard = %s AND origin = %s"
    row = connection.execute(find, (shard_of_origin(origin), origin)).fetchone()
    return StoredRobots(*row) if row else None


def texts(connection: Connection, site: SiteKey, most: int) -> list[tuple[Url, bytes]]:
    find = (
        "SELECT u.text, p.text_md5 FROM site s JOIN host h ON h.shard = s.shard AND h.site_id = s.id JOIN url u ON u.shard = h.shard AND u.host_id = h.id"
        " JOIN page p ON p.shard = u.shard AND p.url_id = u.id WHERE s.shard = %s AND s.key = %s AND u.reason IN ('ok', 'noindex')"
        " ORDER BY p.fetched DESC, u.id LIMIT %s"
    )
    rows = connection.execute(find, (shard_of(site), site, most)).fetchall()
    return [(Url(text), digest) for text, digest in reversed(rows)]


def counts(connection: Connection, run: Run) -> RunCounts:
    tallies = {name: int(value) for name, value in connection.execute("SELECT name, sum(value) FROM tally GROUP BY name")}
    by_reason = {name.removeprefix("reason:"): value for name, value in tallies.items() if name.startswith("reason:") and value}
    find = (
        "SELECT r.fetched + coalesce(sum(c.value) FILTER (WHERE c.name = 'fetched'), 0)::bigint,"
        " r.wire_bytes + coalesce(sum(c.value) FILTER (WHERE c.name = 'wire_bytes'), 0)::bigint"
        " FROM run r LEFT JOIN run_count c ON c.run_id = r.id WHERE r.id = %s GROUP BY r.id"
    )
    row = connection.execute(find, (run.id,)).fetchone()
    assert row is not None
    waiting = by_reason.get("waiting", 0)
    if run.is_refresh:  # what is asked again is not waiting, but it is work
        pending = connection.execute("SELECT coalesce(sum(pending), 0)::bigint FROM host WHERE pending > 0").fetchone()
        waiting = int(pending[0]) if pending else 0
    return RunCounts(tallies.get("known", 0), waiting, int(row[0]), int(row[1]), by_reason)


def standing(connection: Connection, url: Url) -> tuple[Reason, str]:
    row = connection.execute("SELECT reason, rule FROM url WHERE shard = %s AND id = %s", (shard_of(site_key(url)), url_id(url))).fetchone()
    assert row is not None
    return Reason(row[0]), row[1]
