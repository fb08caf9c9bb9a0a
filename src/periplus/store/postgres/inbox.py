"""Who brings what was found to the hosts that it concerns? Whoever holds the lock of the shard, a batch at a time.

Only here hosts are made, and only here is anything entered for a host that somebody else may hold: under the shard's advisory lock, then
the hosts' own, in order. Completing transactions take no advisory lock, so nobody waits in a circle.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from psycopg.rows import TupleRow

from periplus.model.frontier import Candidate, Errand
from periplus.model.web import HostKey, SiteKey
from periplus.store.postgres import hosts
from periplus.store.postgres.bulk import columns_of
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.hosts import Change
from periplus.store.postgres.ledger import HostRef, Ledger
from periplus.store.postgres.letters import INBOX, RETRACT, candidate_of, errand_of
from periplus.store.postgres.schema import LOCK_MERGE, SHARDS, shard_of

AT_ONCE = 2_000  # rows merged in one transaction: some 50 ms, in which their hosts' holders wait
MakeLedger = Callable[[float], Ledger]


class Mail(NamedTuple):
    """What is to be brought to its hosts. findings: learned ones that fell, each with its site."""

    candidates: Sequence[Candidate]
    errands: Sequence[Errand] = ()
    findings: Sequence[tuple[SiteKey, str]] = ()


def lock_number(collection: str, shard: int = 0) -> int:
    """The number of a collection's advisory lock: 31 bits, for two collections of one database not to wait for each other."""
    return (zlib.crc32(collection.encode()) % (2**31 // SHARDS)) * SHARDS + shard


def is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM inbox LIMIT 1").fetchone() is None


def merge(connection: Connection, collection: str, make: MakeLedger, now: float | None) -> int:
    """Brings up to AT_ONCE rows to their hosts, of shards that nobody else is merging; returns how many. Within a transaction."""
    shards = _lock_free_shards(connection, collection)
    if not shards:
        return 0
    wanted = "SELECT shard, id FROM inbox WHERE shard = ANY(%s) ORDER BY shard, id LIMIT %s"
    take = f"DELETE FROM inbox i USING ({wanted}) w WHERE i.shard = w.shard AND i.id = w.id RETURNING i.id, {_columns()}"
    taken = connection.execute(take, (shards, AT_ONCE)).fetchall()
    rows = [row[1:] for row in sorted(taken, key=itemgetter(0))]  # as they came, whatever their shard
    if rows:
        ledger = make(hosts.time_now(connection, now))
        findings = [(SiteKey(row[2]), str(row[4])) for row in rows if row[12] == RETRACT]
        candidates, errands = [candidate_of(row) for row in rows if row[5]], [errand_of(row) for row in rows if row[12] not in ("", RETRACT)]
        _enter(connection, ledger, Mail(candidates, errands, findings))
    return len(rows)


def _columns() -> str:
    return ", ".join(f"i.{name}" for name in INBOX.split(", "))


def _lock_free_shards(connection: Connection, collection: str) -> list[int]:
    """Shards with something in the inbox, now locked by us. The rows are read by a later statement, which sees what others did before."""
    found = [row[0] for row in connection.execute("SELECT DISTINCT shard FROM inbox").fetchall()]
    numbers = [lock_number(collection, shard) for shard in found]
    got = connection.execute("SELECT n FROM unnest(%s::int[]) n WHERE pg_try_advisory_xact_lock(%s, n)", (numbers, LOCK_MERGE)).fetchall()
    locked = {row[0] for row in got}
    return [shard for shard, number in zip(found, numbers, strict=True) if number in locked]


def enter_from_outside(connection: Connection, collection: str, ledger: Ledger, mail: Mail, *, reopen: bool) -> int:
    """Starts and lists, which nobody found on a page; returns how many wait newly. Waits for others who are merging."""
    for shard in sorted({shard_of(site) for site in _sites(mail)}):
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_MERGE, lock_number(collection, shard)))
    return _enter(connection, ledger, mail, reopen=reopen)


def _enter(connection: Connection, ledger: Ledger, mail: Mail, *, reopen: bool = False) -> int:
    """All of it, under the shards' locks. Returns how many URLs wait newly."""
    places = [(one.host, one.site) for one in mail.candidates] + [(one.host, one.site) for one in mail.errands]
    _make_hosts(connection, dict(places))
    ledger.hosts |= _lock_hosts(connection, places, [site for site, _ in mail.findings])
    ledger.load(mail.candidates, mail.errands)
    fresh = sum([ledger.offer(candidate, reopen=reopen) for candidate in mail.candidates])
    for errand in mail.errands:
        ledger.send(errand)
    for site, finding in mail.findings:
        _retract(connection, ledger, site, finding)
    ledger.write()
    hosts.change(connection, [Change(shard, host, change, 0, None) for (shard, host), change in ledger.pending.items()], ledger.now)
    return fresh


def _sites(mail: Mail) -> set[SiteKey]:
    return {one.site for one in mail.candidates} | {one.site for one in mail.errands}


def _make_hosts(connection: Connection, keys: dict[HostKey, SiteKey]) -> None:
    """Hosts and sites that nobody has met before. The numbers of what is there already are not used up."""
    wanted = columns_of([(shard_of(site), host) for host, site in keys.items()], 2)
    pairs = "unnest(%s::smallint[], %s::text[]) k(shard, key)"
    known = {row[0] for row in connection.execute(f"SELECT h.key FROM {pairs} JOIN host h ON h.shard = k.shard AND h.key = k.key", wanted)}
    fresh = {host: site for host, site in keys.items() if host not in known}
    if not fresh:
        return
    sites = columns_of([(shard_of(site), site) for site in dict.fromkeys(fresh.values())], 2)
    absent = "NOT EXISTS (SELECT 1 FROM site s WHERE s.shard = k.shard AND s.key = k.key)"
    connection.execute(f"INSERT INTO site (shard, key) SELECT k.shard, k.key FROM {pairs} WHERE {absent}", sites)
    rows = columns_of([(shard_of(site), host, site) for host, site in fresh.items()], 3)
    triples = "unnest(%s::smallint[], %s::text[], %s::text[]) WITH ORDINALITY k(shard, key, site, place) JOIN site s ON s.shard = k.shard AND s.key = k.site"
    connection.execute(f"INSERT INTO host (shard, key, site_id) SELECT k.shard, k.key, s.id FROM {triples} ORDER BY k.place", rows)


def _lock_hosts(connection: Connection, places: Iterable[tuple[HostKey, SiteKey]], sites: Sequence[SiteKey]) -> dict[HostKey, HostRef]:
    """The hosts that are concerned, locked in the one order."""
    keys = columns_of(sorted({(shard_of(site), host) for host, site in places}), 2)
    concerned = (
        "(h.shard, h.key) IN (SELECT * FROM unnest(%s::smallint[], %s::text[]))"
        " OR (h.shard, h.site_id) IN (SELECT s.shard, s.id FROM site s WHERE (s.shard, s.key) IN (SELECT * FROM unnest(%s::smallint[], %s::text[])))"
    )
    if not sites:
        concerned = "(h.shard, h.key) IN (SELECT * FROM unnest(%s::smallint[], %s::text[]))"
    values = [*keys, *(columns_of([(shard_of(site), site) for site in sites], 2) if sites else ())]
    find = f"SELECT h.key, h.id, h.shard, h.site_id FROM host h WHERE {concerned} ORDER BY h.shard, h.id FOR NO KEY UPDATE"
    return {HostKey(row[0]): HostRef(row[1], row[2], row[3]) for row in connection.execute(find, values).fetchall()}


def _retract(connection: Connection, ledger: Ledger, site: SiteKey, finding: str) -> None:
    """What was skipped because of a learned finding waits again."""
    find = (
        "DELETE FROM alias a USING url u, host h, site s WHERE a.shard = %(shard)s AND a.learned = 1 AND u.shard = a.shard AND u.id = a.url_id"
        " AND h.shard = u.shard AND h.id = u.host_id AND s.shard = h.shard AND s.id = h.site_id AND s.key = %(site)s"
        " AND position('; ' || %(finding)s || '; ' IN '; ' || a.rule || '; ') > 0 RETURNING a.shard, a.url_id"
    )
    keys: list[TupleRow] = connection.execute(find, {"shard": shard_of(site), "site": site, "finding": finding}).fetchall()
    ledger.load_urls([(row[0], row[1]) for row in keys])
    for _, url_id in sorted(keys):
        ledger.await_again(ledger.urls[url_id])
