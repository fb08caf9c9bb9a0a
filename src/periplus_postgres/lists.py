"""The queues of hosts in PostgreSQL: takes tasks within the run's budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from periplus.model.frontier import PRIORITY_WITHOUT_DEPTH, Lease, Task
from periplus.model.visit import Purpose, Request
from periplus.model.web import Url
from periplus.settings import Budget
from periplus.store.ledger import HostRef
from periplus.store.ledger_tables import forget_entries
from periplus.store.statements import shard_of
from periplus.store.url_state import (
    BARRIER_POLL_S,
    RIVAL_WAIT_S,
    StoredVersion,
    TaskQuery,
    TaskRow,
    choose_tasks,
    held_body,
)
from periplus.urls.canonical import url_id
from periplus_postgres.connection import Connection, columns_of
from periplus_postgres.hosts import CHECKS, NOW
from periplus_postgres.ledger import lock_number
from periplus_postgres.schema import LOCK_BUDGET
from periplus_postgres.statements import PostgresStatements

Stale = Sequence[tuple[int, int]]
_SPARE = 16  # additional entries to read, since some may be stale or not yet due

# For each host: the lowest priority of its site's other hosts, and the first entries of its queue.
_HEADS = f"""
WITH held AS MATERIALIZED (SELECT h.shard, h.id, {NOW} AS now, (
    SELECT min((SELECT min(q.priority) FROM queue q WHERE q.shard = o.shard AND q.host_id = o.id AND q.priority >= 0))
    FROM host o WHERE o.shard = h.shard AND o.site_id = h.site_id AND o.id <> h.id AND o.pending > 0) AS others
    FROM unnest(%(shards)s::smallint[], %(hosts)s::bigint[], %(epochs)s::bigint[]) k(shard, id, epoch)
    JOIN host h ON h.shard = k.shard AND h.id = k.id AND h.epoch = k.epoch AND h.lease_by IS NOT NULL)
SELECT held.id, held.now, held.others, q.priority, q.seq, q.url_id, coalesce(q.text, u.text), q.purpose, q.about, q.hops, q.attempt, q.not_before,
    u.depth, u.reason, coalesce(d.doubt, 0), p.body_digest, p.etag, p.last_modified_field, p.cut
FROM held CROSS JOIN LATERAL (
    SELECT * FROM queue WHERE shard = held.shard AND host_id = held.id{{}} ORDER BY priority, seq LIMIT %(most)s) q
    LEFT JOIN url u ON u.shard = q.shard AND u.id = q.url_id LEFT JOIN doubtful d ON d.shard = q.shard AND d.url_id = q.url_id
    LEFT JOIN page p ON p.shard = q.shard AND p.url_id = CASE WHEN q.purpose = 'recheck' THEN q.url_id END
ORDER BY held.id, q.priority, q.seq
"""  # noqa: E501
_HEADS_IN = {False: _HEADS.format(""), True: _HEADS.format(f" AND {CHECKS}")}  # key: whether the run is a check
_FIND_PAGE = f"""
SELECT q.priority, q.seq, u.text, q.hops, q.attempt, u.depth, coalesce(d.doubt, 0)
FROM queue q JOIN url u ON u.shard = q.shard AND u.id = q.url_id LEFT JOIN doubtful d ON d.shard = q.shard AND d.url_id = q.url_id
WHERE q.shard = %(shard)s AND q.host_id = %(host)s AND q.url_id = %(page)s AND q.purpose = 'page' AND u.reason = 'waiting'
    AND q.not_before <= {NOW} ORDER BY q.priority, q.seq LIMIT 1
"""  # noqa: E501
_LEFT = """
SELECT (SELECT fetched FROM run WHERE id = %(run)s) + coalesce((SELECT sum(value) FROM run_count WHERE run_id = %(run)s AND name = 'fetched'), 0)::bigint,
    coalesce((SELECT sum(in_hand) FROM worker), 0)::bigint
"""  # noqa: E501
_OWN = """
SELECT coalesce(sum(o.fetched), 0)::bigint FROM host h JOIN host o ON o.shard = h.shard AND o.site_id = h.site_id
WHERE h.shard = %s AND h.id = %s
"""
_RIVALS = f"""
SELECT min(fetched)::bigint, min(own)::bigint FROM (
    SELECT sum(o.fetched) FILTER (WHERE s.key <> %(site)s) AS fetched, sum(o.fetched) FILTER (WHERE s.key = %(site)s) AS own
    FROM site s JOIN host o ON o.shard = s.shard AND o.site_id = s.id
    WHERE s.key = %(site)s OR (s.shard, s.id) IN (
        SELECT h.shard, h.site_id FROM host h WHERE h.pending > 0 AND h.strikes = 0 AND h.next_at <= {NOW} + {RIVAL_WAIT_S})
    GROUP BY s.shard, s.id) v
"""  # noqa: E501


class ListHead(NamedTuple):
    """The first `most` entries of a host's queue; no rows if the lease is lost or the queue is empty.

    rows: the columns of _HEADS after the host's id.
    """

    most: int
    rows: Sequence[Sequence[Any]]

    def reaches(self, most: int) -> bool:
        return self.most >= most or len(self.rows) < self.most


def heads(
    connection: Connection, leases: Sequence[Lease], most: int, *, now: float | None, is_check: bool
) -> list[ListHead]:
    """Reads the queue heads of all leases in one statement."""
    columns = columns_of([(shard_of(lease.site), lease.host_id, lease.epoch) for lease in leases], 3)
    values = dict(zip(("shards", "hosts", "epochs"), columns, strict=True)) | {"now": now, "most": most}
    rows = connection.execute(_HEADS_IN[is_check], values)
    of_hosts = {host_id: [row[1:] for row in of_host] for host_id, of_host in groupby(rows, itemgetter(0))}
    return [ListHead(most, of_hosts.get(lease.host_id, ())) for lease in leases]


class TakenTasks(NamedTuple):
    """Result of `take`, with entries whose URL is completed."""

    tasks: Sequence[Task]
    later_s: float | None
    stale: Stale = ()


class HostQuery(NamedTuple):
    """A worker's request for tasks of a host. is_check: the run is a check, which takes no pages."""

    most: int
    in_hand: frozenset[tuple[int, int]]
    now: float | None
    pages: Iterable[Url]
    is_check: bool

    @property
    def entries(self) -> int:
        return 2 * self.most + len(self.in_hand) + _SPARE


def take(connection: Connection, lease: Lease, query: HostQuery, head: ListHead | None = None) -> TakenTasks:
    """See `model.ports.CrawlStore.take`. head: of the queue, if read before."""
    most, in_hand, now, pages, is_check = query
    shard = shard_of(lease.site)
    if head is None or not head.reaches(query.entries):
        (head,) = heads(connection, [lease], query.entries, now=now, is_check=is_check)
    rows = head.rows
    if not rows:
        return TakenTasks((), None)
    values = {"shard": shard, "host": lease.host_id, "now": now}
    moment, of_others, own = rows[0][:3]
    for page in map(url_id, pages if own >= 0 else ()):
        row = connection.execute(_FIND_PAGE, values | {"page": page}).fetchone()
        if row is not None and row[:2] not in in_hand:
            request = Request(Url(row[2]), Purpose.PAGE, row[5], row[3], row[4])
            return TakenTasks((Task(lease.host_id, row[0], row[1], page, request, doubt=row[6]),), None)
    if own >= 0 and not is_check and of_others is not None and of_others < own:
        return TakenTasks((), BARRIER_POLL_S)
    bodies = {row[4]: (row[14], row[15], row[16], row[17]) for row in rows if row[14] is not None}

    def stored_version(url_id: int, reason: str) -> StoredVersion:
        return held_body(reason, bodies.get(url_id))

    tasks = TaskQuery(lease.host_id, most, in_hand, _twins(connection, shard, lease.host_id, in_hand), moment)
    choice = choose_tasks(tasks, (TaskRow(*row[2:14]) for row in rows if row[2] == own), stored_version)
    return TakenTasks(*choice.answer(bool(in_hand), moment), choice.stale)


def _twins(connection: Connection, shard: int, host_id: int, in_hand: frozenset[tuple[int, int]]) -> set[int]:
    """URLs in progress or postponed through a sitemap entry. A link found later adds a second entry, which must not be
    fetched at the same time.
    """
    entries = [entry for entry in in_hand if entry[0] >= PRIORITY_WITHOUT_DEPTH]
    if not entries:
        return set()
    find = (
        "SELECT q.url_id FROM unnest(%s::bigint[], %s::bigint[]) k(priority, seq)"
        " JOIN queue q ON q.shard = %s AND q.host_id = %s AND q.priority = k.priority AND q.seq = k.seq"
        " WHERE q.url_id <> 0"
    )
    return {row[0] for row in connection.execute(find, (*columns_of(entries, 2), shard, host_id))}


def forget(connection: Connection, lease: Lease, stale: Stale) -> None:
    """Drops entries whose URL was completed through another entry (sitemap and link)."""
    shard = shard_of(lease.site)
    held = "SELECT 1 FROM host WHERE shard = %s AND id = %s AND epoch = %s AND lease_by IS NOT NULL FOR NO KEY UPDATE"
    if connection.execute(held, (shard, lease.host_id, lease.epoch)).fetchone() is None:
        return
    forget_entries(PostgresStatements(connection), HostRef(shard, lease.host_id), stale)


class Limit(NamedTuple):
    """The page budget of a run."""

    collection: str
    run_id: int
    budget: Budget


class Allowance(NamedTuple):
    """Number of pages that a host may take now. is_spent: the page budget is used up."""

    pages: int
    is_spent: bool


def allowance(connection: Connection, limit: Limit, lease: Lease, in_hand: int, now: float | None) -> Allowance:
    """Remaining pages of the budget, but at most a quantum ahead of the other sites.

    The lock admits one worker at a time, until its transaction ends.
    """
    connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_BUDGET, lock_number(limit.collection)))
    row = connection.execute(_LEFT, {"run": limit.run_id}).fetchone()
    assert row is not None
    fetched, held = row
    left = limit.budget.max_pages - fetched - held
    if left <= 0:
        return Allowance(0, limit.budget.max_pages <= fetched)
    own = connection.execute(_OWN, (shard_of(lease.site), lease.host_id)).fetchone()
    if own is not None and own[0] + in_hand + left <= limit.budget.quantum:
        return Allowance(left, False)  # within the quantum even if the other sites have nothing
    rivals = connection.execute(_RIVALS, {"site": lease.site, "now": now}).fetchone()
    if rivals is not None and rivals[0] is not None:
        left = min(left, rivals[0] + limit.budget.quantum - (rivals[1] or 0) - in_hand)
    return Allowance(left, False)
