"""Reads a collection's state for a worker, and stores batches for valid leases."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence

from periplus.model.collection import RunNote
from periplus.model.frontier import (
    Batch,
    Completion,
    HostState,
    Lease,
)
from periplus.settings import Storage
from periplus.store import notes, part_messages
from periplus.store.ledger import HostRef
from periplus.store.runs import IS_PAUSED
from periplus.store.statements import shard_of
from periplus.urls.scope import site_key
from periplus_postgres import hosts, schema
from periplus_postgres.connection import Connection
from periplus_postgres.hosts import NOW, Change, Holding, Member
from periplus_postgres.ledger import DatabaseLedger, LedgerRun
from periplus_postgres.pages import Parcels, store_dictionary, stored_bodies
from periplus_postgres.statements import PostgresStatements

log = logging.getLogger(__name__)


def run_of(connection: Connection, run_id: int) -> LedgerRun:
    row = connection.execute("SELECT id, started, kind FROM run WHERE id = %s", (run_id,)).fetchone()
    assert row is not None
    # a check requests link targets of all parts
    part = None if row[2] == "check" else part_messages.part_in(PostgresStatements(connection))
    return LedgerRun(row[0], row[1], part)


def segments_of(connection: Connection, run_id: int) -> tuple[str, RunNote]:
    """(place of the collection's segments, or empty; the run, for the header of segments)."""
    row = connection.execute("SELECT id, started, starts, settings FROM run WHERE id = %s", (run_id,)).fetchone()
    assert row is not None
    settings = json.loads(row[3])
    run = RunNote(
        row[0],
        row[1],
        str(settings.get("user_agent", "")),
        tuple(json.loads(row[2])),
        row[3],
        not settings.get("ignore_robots", False),
    )
    return notes.note(PostgresStatements(connection), "segments"), run


def shards(connection: Connection, host_ids: Sequence[int]) -> list[tuple[int, int]]:
    """(shard, id) of hosts given by id only."""
    return [
        (row[0], row[1])
        for row in connection.execute("SELECT shard, id FROM host WHERE id = ANY(%s)", (list(host_ids),)).fetchall()
    ]


def is_check(connection: Connection, run_id: int) -> bool:
    return connection.execute("SELECT 1 FROM run WHERE id = %s AND kind = 'check'", (run_id,)).fetchone() is not None


def fair_share(connection: Connection, now: float | None, *, checks: bool = False) -> int:
    find = (
        f"SELECT (SELECT count(*) FROM host h WHERE {hosts.has_work(checks=checks)}), (SELECT count(*) FROM worker"
        f" WHERE lease_until >= {NOW}), {IS_PAUSED}"
    )
    row = connection.execute(find, {"now": now}).fetchone()
    assert row is not None
    return 0 if row[2] else max(1, -(-int(row[0]) // max(1, int(row[1]))))


def is_idle(connection: Connection, *, checks: bool = False) -> bool:
    """Whether nothing is queued. A single statement, so that moves between queue and inbox are not missed."""
    work = hosts.has_work(checks=checks)
    row = connection.execute(
        f"SELECT EXISTS (SELECT 1 FROM host h WHERE {work}) OR EXISTS (SELECT 1 FROM inbox)".encode()
    ).fetchone()
    return row is not None and not row[0]


def is_held(connection: Connection, lease: Lease) -> bool:
    find = "SELECT 1 FROM host WHERE shard = %s AND id = %s AND epoch = %s AND lease_by IS NOT NULL"
    return connection.execute(find, (shard_of(lease.site), lease.host_id, lease.epoch)).fetchone() is not None


_SLACK_S = 0.001  # tolerance for times computed in two ways


class Commit:
    """Stores batches of one process. Caches the written pace of each host, which seldom changes."""

    def __init__(self, run: LedgerRun, storage: Storage) -> None:
        self._run, self._storage = run, storage
        # by (host, epoch): its pace and the time of its next request
        self._written: dict[tuple[int, int], tuple[float, float, int, bool, float]] = {}
        self._now = 0.0

    def store(
        self, connection: Connection, member: Member, parcels: Parcels, batches: int, now: float | None
    ) -> tuple[frozenset[Lease], bool]:
        """Returns (lost leases, whether the inbox has messages).

        batches: number of batches stored before for this worker.
        """
        batch = parcels.batch
        moment, is_done = self._renew(connection, member, batch, batches, now)
        held = hosts.holdings(connection, member.name)
        leases = {completion.lease for completion in batch.completions} | {state.lease for state in batch.hosts}
        lost = frozenset(
            lease for lease in leases if lease.host_id not in held or held[lease.host_id].epoch != lease.epoch
        )
        if is_done:  # the response of the earlier COMMIT was lost
            return lost - {state.lease for state in batch.hosts if state.release}, True
        entries = DatabaseLedger(connection, self._run, member.part, moment)
        stored = [at for at, completion in enumerate(batch.completions) if completion.lease not in lost]
        completions = [batch.completions[at] for at in stored]
        states = {state.lease.host_id: state for state in batch.hosts if state.lease not in lost}
        self._lock(connection, entries, held, completions, batch, states)
        self._enter(connection, entries, parcels, completions, stored)
        self._write_host_states(connection, entries, states)
        notes.put_chosen_pages(PostgresStatements(connection), batch)
        for site, data in parcels.learned.items():
            store_dictionary(connection, site, data)
        return lost, entries.has_sent_out

    def _renew(
        self, connection: Connection, member: Member, batch: Batch, batches: int, now: float | None
    ) -> tuple[float, bool]:
        """Renews the worker's lease; returns (current time, whether this batch is stored already).

        A worker that expired holds no hosts until it leases again.
        """
        update = (
            "UPDATE worker SET lease_until = t.now + %(lease)s, in_hand = %(in_hand)s, batches = %(batches)s + 1,"
            " commits = w.commits + (%(commit_s)s > 0 AND w.batches <= %(batches)s)::int,"
            " pages = w.pages + CASE WHEN w.batches <= %(batches)s THEN %(pages)s ELSE 0 END,"
            " commit_s = w.commit_s + CASE WHEN w.batches <= %(batches)s THEN %(commit_s)s ELSE 0 END"
            f" FROM (SELECT {NOW} AS now) t,"
            " worker w WHERE worker.name = %(name)s AND w.name = worker.name RETURNING t.now, w.batches"
        )
        values = {
            "lease": self._storage.lease_s,
            "in_hand": batch.in_hand,
            "pages": batch.pages,
            "commit_s": batch.commit_s,
            "batches": batches,
            "name": member.name,
            "now": now,
        }
        row = connection.execute(update, values).fetchone()
        if row is None:
            schema.refuse_other_version(connection)
            return hosts.time_now(connection, now), False
        return float(row[0]), row[1] > batches

    def _lock(
        self,
        connection: Connection,
        entries: DatabaseLedger,
        held: dict[int, Holding],
        completions: Sequence[Completion],
        batch: Batch,
        states: dict[int, HostState],
    ) -> None:
        """Locks the hosts that the batch changes."""
        met = {candidate.host for completion in completions for candidate in completion.candidates}
        met |= {side_request.host for side_request in batch.side_requests}
        asked = {completion.lease.host_id for completion in completions}
        news = {host_id for host_id, state in states.items() if host_id in asked or self._is_news(state, entries.now)}
        touched = [host for host in held.values() if host.key in met or host.id in asked or host.id in news]
        hosts.lock(connection, [(host.shard, host.id) for host in touched])
        entries.ledger.hosts = {host.key: HostRef(host.shard, host.id) for host in touched}

    def _enter(
        self,
        connection: Connection,
        entries: DatabaseLedger,
        parcels: Parcels,
        completions: Sequence[Completion],
        stored: Sequence[int],
    ) -> None:
        """Stores everything except host states. stored: indices of the completions in the batch."""
        batch, ledger = parcels.batch, entries.ledger
        entries.tables.take(completions)
        candidates = [candidate for completion in completions for candidate in completion.candidates]
        entries.load(candidates, batch.side_requests, completions)
        body_ids = stored_bodies(connection, parcels, stored)
        for completion, body_id in zip(completions, body_ids, strict=True):
            ledger.complete(completion, shard_of(completion.lease.site), body_id)
        ledger.record(batch, [shard_of(site_key(visit.request.url)) for visit in batch.visits])
        entries.write()

    def _is_news(self, state: HostState, now: float) -> bool:
        """Whether a host's pace must be written.

        The time of the next request matters only after the lease. If the holder dies, the host waits at least its delay
        from then on, so that a time within the delay need not be written.
        """
        if state.release or state.given_up or state.traps:
            return True
        written = self._written.get((state.lease.host_id, state.lease.epoch))
        if written is None or written[:4] != (state.delay_s, state.rate, state.strikes, state.answered):
            return True
        soonest = now + state.delay_s / state.rate
        return abs(max(now + state.wait_s, soonest) - max(written[4], soonest)) > _SLACK_S

    def _write_host_states(self, connection: Connection, entries: DatabaseLedger, states: dict[int, HostState]) -> None:
        """Writes counters and paces of the locked hosts."""
        changes, touched = [], entries.ledger.hosts.values()
        entries.tables.store_traps([(host, states[host.id].traps) for host in touched if host.id in states])
        for host in touched:
            state = states.get(host.id)
            changes.append(Change(*host, entries.sums.pending[host], entries.sums.fetched[host], state))
        hosts.change(connection, changes, entries.now)
        for state in states.values():
            for given_up in state.given_up:
                entries.tables.drop(HostRef(shard_of(state.lease.site), state.lease.host_id), given_up)
        entries.write_sums()
        self._now = entries.now

    def update_cache(self, batch: Batch, lost: Collection[Lease]) -> None:
        """Updates the cache after the transaction is committed."""
        if lost:
            log.warning("leases lost=%d: other workers may hold these hosts; results for them are dropped", len(lost))
        for state in batch.hosts:
            key = (state.lease.host_id, state.lease.epoch)
            if state.release or state.lease in lost:
                self._written.pop(key, None)
            elif self._is_news(state, self._now) or any(
                completion.lease == state.lease for completion in batch.completions
            ):
                self._written[key] = (
                    state.delay_s,
                    state.rate,
                    state.strikes,
                    state.answered,
                    self._now + state.wait_s,
                )
