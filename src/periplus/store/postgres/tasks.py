"""What does a leased host's to-do list give out? One statement reads the host, its site's layer, and the entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from periplus.model.frontier import LAYER_NONE, Lease, Task
from periplus.settings import Budget
from periplus.store.postgres.bulk import columns_of
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.hosts import NOW
from periplus.store.postgres.inbox import lock_number
from periplus.store.postgres.schema import LOCK_BUDGET, shard_of
from periplus.store.standing import BARRIER_POLL_S, RIVAL_WAIT_S, Entry, Held, Wish, chosen, held_body

Stale = Sequence[tuple[int, int]]
_SPARE = 16  # entries read beyond those asked for, and as many again: some may be stale, or not yet due

_FIND = f"""
WITH t AS (SELECT {NOW} AS now),
host_ AS (SELECT site_id FROM host WHERE shard = %(shard)s AND id = %(host)s AND epoch = %(epoch)s AND lease_by IS NOT NULL),
own AS (SELECT (SELECT min(layer) FROM queue WHERE shard = %(shard)s AND host_id = %(host)s) AS layer FROM host_),
site_ AS (
    SELECT min((SELECT min(q.layer) FROM queue q WHERE q.shard = h.shard AND q.host_id = h.id AND q.layer >= 0)) AS layer
    FROM host_ JOIN host h ON h.shard = %(shard)s AND h.site_id = host_.site_id AND h.pending > 0)
SELECT t.now, own.layer, coalesce(site_.layer, 0), e.*
FROM t, own, site_ LEFT JOIN LATERAL (
    SELECT q.layer, q.seq, q.url_id, coalesce(q.text, u.text), q.purpose, q.about, q.hops, q.attempt, q.not_before, u.layer, u.reason,
        coalesce(d.doubt, 0), p.body_md5, p.etag, p.last_modified_field, p.cut
    FROM queue q LEFT JOIN url u ON u.shard = q.shard AND u.id = q.url_id
        LEFT JOIN doubtful d ON d.shard = q.shard AND d.url_id = q.url_id
        LEFT JOIN page p ON q.purpose = 'recheck' AND p.shard = q.shard AND p.url_id = q.url_id
    WHERE q.shard = %(shard)s AND q.host_id = %(host)s AND q.layer = (SELECT layer FROM own) ORDER BY q.seq LIMIT %(most)s) e ON true
"""


class Taken(NamedTuple):
    """What `take` answers, and what it found done by another entry."""

    tasks: Sequence[Task]
    later_s: float | None
    stale: Stale = ()


def take(connection: Connection, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float | None) -> Taken:
    """See `model.crawl_store.CrawlStore.take`."""
    shard = shard_of(lease.site)
    values = {"shard": shard, "host": lease.host_id, "epoch": lease.epoch, "most": 2 * most + len(in_hand) + _SPARE, "now": now}
    rows = connection.execute(_FIND, values).fetchall()
    if not rows or rows[0][1] is None:  # the lease is lost, or its list is empty
        return Taken((), None)
    moment, own, of_site = rows[0][:3]
    if own >= 0 and of_site < own:
        return Taken((), BARRIER_POLL_S)
    pages = {row[5]: row[15:] for row in rows if row[15] is not None}

    def held(url_id: int, reason: str) -> Held:
        return held_body(reason, pages.get(url_id))

    wish = Wish(lease.host_id, most, in_hand, _twins(connection, shard, lease.host_id, in_hand), moment)
    choice = chosen(wish, (Entry(*row[3:15]) for row in rows if row[3] is not None), held)
    return Taken(*choice.answer(bool(in_hand), moment), choice.stale)


def _twins(connection: Connection, shard: int, host_id: int, in_hand: frozenset[tuple[int, int]]) -> set[int]:
    """URLs in hand by their sitemap's entry, or put off: a link found meanwhile gave each a second one, which must not be fetched
    beside it."""
    entries = [entry for entry in in_hand if entry[0] >= LAYER_NONE]
    if not entries:
        return set()
    find = (
        "SELECT q.url_id FROM unnest(%s::bigint[], %s::bigint[]) k(layer, seq)"
        " JOIN queue q ON q.shard = %s AND q.host_id = %s AND q.layer = k.layer AND q.seq = k.seq WHERE q.url_id <> 0"
    )
    return {row[0] for row in connection.execute(find, (*columns_of(entries, 2), shard, host_id))}


def forget(connection: Connection, lease: Lease, stale: Stale) -> None:
    """Drops entries whose URL was done by way of another entry (a sitemap's, then a link's)."""
    shard = shard_of(lease.site)
    held = "SELECT 1 FROM host WHERE shard = %s AND id = %s AND epoch = %s AND lease_by IS NOT NULL FOR NO KEY UPDATE"
    if connection.execute(held, (shard, lease.host_id, lease.epoch)).fetchone() is None:
        return
    drop = (
        "DELETE FROM queue q USING unnest(%s::bigint[], %s::bigint[]) k(layer, seq)"
        " WHERE q.shard = %s AND q.host_id = %s AND q.layer = k.layer AND q.seq = k.seq"
    )
    dropped = connection.execute(drop, (*columns_of(stale, 2), shard, lease.host_id)).rowcount
    connection.execute("UPDATE host SET pending = pending - %s WHERE shard = %s AND id = %s", (dropped, shard, lease.host_id))


class Limit(NamedTuple):
    """A run's budget of pages."""

    collection: str
    run_id: int
    budget: Budget


class Allowance(NamedTuple):
    """How many pages a host may get now. is_spent: the budget's pages are fetched."""

    pages: int
    is_spent: bool


_LEFT = """
SELECT (SELECT fetched FROM run WHERE id = %(run)s) + coalesce((SELECT sum(value) FROM run_count WHERE run_id = %(run)s AND name = 'fetched'), 0)::bigint,
    coalesce((SELECT sum(in_hand) FROM worker), 0)::bigint
"""
_RIVALS = f"""
SELECT min(fetched)::bigint, min(own)::bigint FROM (
    SELECT sum(o.fetched) FILTER (WHERE s.key <> %(site)s) AS fetched, sum(o.fetched) FILTER (WHERE s.key = %(site)s) AS own
    FROM site s JOIN host o ON o.shard = s.shard AND o.site_id = s.id
    WHERE s.key = %(site)s OR (s.shard, s.id) IN (
        SELECT h.shard, h.site_id FROM host h WHERE h.pending > 0 AND h.strikes = 0 AND h.next_at <= {NOW} + {RIVAL_WAIT_S})
    GROUP BY s.shard, s.id) v
"""


def allowance(connection: Connection, limit: Limit, lease: Lease, in_hand: int, now: float | None) -> Allowance:
    """What the budget leaves, and no more than a quantum ahead of the other sites. One worker at a time, until its transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_BUDGET, lock_number(limit.collection)))
    row = connection.execute(_LEFT, {"run": limit.run_id}).fetchone()
    assert row is not None
    fetched, held = row
    left = limit.budget.max_pages - fetched - held
    if left <= 0:
        return Allowance(0, limit.budget.max_pages <= fetched)
    rivals = connection.execute(_RIVALS, {"site": lease.site, "now": now}).fetchone()
    if rivals is not None and rivals[0] is not None:
        left = min(left, rivals[0] + limit.budget.quantum - (rivals[1] or 0) - in_hand)
    return Allowance(left, False)
