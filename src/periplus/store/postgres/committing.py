"""What a worker reads of a collection beside its to-do lists, and how a batch is stored as far as its leases hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple

from periplus.model.collection import RunNote
from periplus.model.frontier import (
    FIRST_INTERVAL_S,
    READ,
    Batch,
    Completion,
    Finding,
    HostState,
    Lease,
    PatternRecord,
    RunCounts,
    ShownLines,
    StoredRobots,
    TrapChanges,
    TrapMemory,
    finding_of,
    next_interval_s,
)
from periplus.model.visit import Reason, Redirected, Skipped, Unchanged
from periplus.model.web import Origin, SiteKey, Url, UrlId
from periplus.settings import Storage
from periplus.store.postgres import hosts
from periplus.store.postgres.connection import Connection, columns_of
from periplus.store.postgres.hosts import NOW, Change, Holding, Member
from periplus.store.postgres.ledger import HostRef, LedgerRun, PostgresLedger, drop
from periplus.store.postgres.pages import Arrival, Parcels, PostgresPageWriter, store_dictionary
from periplus.store.postgres.runs import IS_PAUSED
from periplus.store.postgres.schema import shard_of
from periplus.store.rows import visit_row
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_key


def run_of(connection: Connection, run_id: int) -> LedgerRun:
    row = connection.execute("SELECT id, started, kind = 'refresh' FROM run WHERE id = %s", (run_id,)).fetchone()
    assert row is not None
    return LedgerRun(*row)


def segments_of(connection: Connection, run_id: int) -> tuple[str, RunNote]:
    """(the place of the collection's segments, empty where it has none; what they say of the run at their head)."""
    place = connection.execute("SELECT value FROM meta WHERE name = 'segments'").fetchone()
    row = connection.execute("SELECT id, started, starts, settings FROM run WHERE id = %s", (run_id,)).fetchone()
    assert row is not None
    settings = json.loads(row[3])
    note = RunNote(
        row[0],
        row[1],
        str(settings.get("user_agent", "")),
        tuple(json.loads(row[2])),
        row[3],
        not settings.get("ignore_robots", False),
    )
    return str(place[0]) if place else "", note


def shards(connection: Connection, host_ids: Sequence[int]) -> list[tuple[int, int]]:
    """(shard, id) of hosts of which only the number is known."""
    return [
        (row[0], row[1])
        for row in connection.execute("SELECT shard, id FROM host WHERE id = ANY(%s)", (list(host_ids),)).fetchall()
    ]


def fair_share(connection: Connection, now: float | None) -> int:
    find = (
        "SELECT (SELECT count(*) FROM host WHERE pending > 0), (SELECT count(*) FROM worker"
        f" WHERE lease_until >= {NOW}), {IS_PAUSED}"
    )
    row = connection.execute(find, {"now": now}).fetchone()
    assert row is not None
    return 0 if row[2] else max(1, -(-int(row[0]) // max(1, int(row[1]))))


def is_idle(connection: Connection) -> bool:
    """One statement: what moves from a list to the inbox is seen in one of them."""
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM host WHERE pending > 0) OR EXISTS (SELECT 1 FROM inbox)"
    ).fetchone()
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
    doubts = run(
        "SELECT url_id, doubt FROM doubtful WHERE shard = %s AND host_id = %s ORDER BY url_id", place
    ).fetchall()
    lines = ShownLines(shown[0][0], b"".join(bytes(keys) for _, keys in shown)) if shown else ShownLines()
    return TrapMemory(
        tuple(PatternRecord(*json.loads(record)) for (record,) in families),
        lines,
        tuple((UrlId(url), doubt) for url, doubt in doubts),
    )


def known(connection: Connection, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
    find = "SELECT id FROM url WHERE shard = %s AND id = ANY(%s)"
    return frozenset(UrlId(url) for (url,) in connection.execute(find, (shard_of(lease.site), list(urls))))


def robots(connection: Connection, origin: Origin) -> StoredRobots | None:
    find = "SELECT origin, status, cause, body, fetched, expires FROM robots WHERE shard = %s AND origin = %s"
    row = connection.execute(find, (shard_of_origin(origin), origin)).fetchone()
    return StoredRobots(*row) if row else None


def texts(connection: Connection, site: SiteKey, most: int) -> list[tuple[Url, bytes]]:
    find = (
        "SELECT u.text, p.text_md5 FROM site s JOIN host h ON h.shard = s.shard AND h.site_id = s.id"
        " JOIN url u ON u.shard = h.shard AND u.host_id = h.id"
        " JOIN page p ON p.shard = u.shard AND p.url_id = u.id WHERE s.shard = %s AND s.key = %s"
        " AND u.reason IN ('ok', 'noindex')"
        " ORDER BY p.fetched DESC, u.id LIMIT %s"
    )
    rows = connection.execute(find, (shard_of(site), site, most)).fetchall()
    return [(Url(text), digest) for text, digest in reversed(rows)]


def counts(connection: Connection, run: LedgerRun) -> RunCounts:
    tallies = {
        name: int(value) for name, value in connection.execute("SELECT name, sum(value) FROM tally GROUP BY name")
    }
    by_reason = {
        name.removeprefix("reason:"): value for name, value in tallies.items() if name.startswith("reason:") and value
    }
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
    row = connection.execute(
        "SELECT reason, rule FROM url WHERE shard = %s AND id = %s", (shard_of(site_key(url)), url_id(url))
    ).fetchone()
    assert row is not None
    return Reason(row[0]), row[1]


_SLACK_S = 0.001  # of times that are reckoned in two ways


class Commit:
    """Stores batches of one process. Remembers what it wrote of each host's pace, which is seldom news."""

    def __init__(self, run: LedgerRun, storage: Storage) -> None:
        self._run, self._storage = run, storage
        # by (host, epoch): its pace, and when it may be asked
        self._written: dict[tuple[int, int], tuple[float, float, int, bool, float]] = {}
        self._now = 0.0

    def store(
        self, connection: Connection, member: Member, parcels: Parcels, batches: int, now: float | None
    ) -> tuple[frozenset[Lease], bool]:
        """Returns (the leases that were lost meanwhile, whether something stands in the inbox).

        batches: stored before for this worker.
        """
        batch = parcels.batch
        moment, is_done = self._renew(connection, member, batch.in_hand, batches, now)
        held = hosts.holdings(connection, member.name)
        leases = {one.lease for one in batch.completions} | {state.lease for state in batch.hosts}
        lost = frozenset(
            lease for lease in leases if lease.host_id not in held or held[lease.host_id].epoch != lease.epoch
        )
        if is_done:  # its answer was lost on the way
            return lost - {state.lease for state in batch.hosts if state.release}, True
        ledger = PostgresLedger(connection, self._run, member.part, moment)
        stored = [at for at, completion in enumerate(batch.completions) if completion.lease not in lost]
        states = {state.lease.host_id: state for state in batch.hosts if state.lease not in lost}
        self._lock(connection, ledger, held, [batch.completions[at] for at in stored], batch, states)
        self._complete(connection, ledger, parcels, stored)
        self._record(connection, ledger, batch)
        ledger.write()
        self._settle(connection, ledger, held, states)
        for site, data in parcels.learned.items():
            store_dictionary(connection, site, data)
        return lost, ledger.sent_out

    def _renew(
        self, connection: Connection, member: Member, in_hand: int, batches: int, now: float | None
    ) -> tuple[float, bool]:
        """(the moment, whether this batch is stored already).

        A worker that was buried holds nothing, and stays buried until it leases.
        """
        update = (
            "UPDATE worker SET lease_until = t.now + %(lease)s, in_hand = %(in_hand)s, batches = %(batches)s + 1"
            f" FROM (SELECT {NOW} AS now) t,"
            " worker w WHERE worker.name = %(name)s AND w.name = worker.name RETURNING t.now, w.batches"
        )
        values = {
            "lease": self._storage.lease_s,
            "in_hand": in_hand,
            "batches": batches,
            "name": member.name,
            "now": now,
        }
        row = connection.execute(update, values).fetchone()
        if row is None:
            return hosts.time_now(connection, now), False
        return float(row[0]), row[1] > batches

    def _lock(
        self,
        connection: Connection,
        ledger: PostgresLedger,
        held: dict[int, Holding],
        completions: Sequence[Completion],
        batch: Batch,
        states: dict[int, HostState],
    ) -> None:
        """Locks the hosts that this batch changes, and reads what stands of their URLs."""
        candidates = [candidate for completion in completions for candidate in completion.candidates]
        met = {candidate.host for candidate in candidates} | {side_request.host for side_request in batch.side_requests}
        asked = {completion.lease.host_id for completion in completions}
        news = {host_id for host_id, state in states.items() if host_id in asked or self._is_news(state, ledger.now)}
        touched = [host for host in held.values() if host.key in met or host.id in asked or host.id in news]
        hosts.lock(connection, [(host.shard, host.id) for host in touched])
        ledger.hosts = {host.key: HostRef(host.id, host.shard, host.site_id) for host in touched}
        ledger.load(
            candidates,
            batch.side_requests,
            [(shard_of(one.lease.site), int(one.task.url_id)) for one in completions if one.task.url_id],
        )

    def _is_news(self, state: HostState, now: float) -> bool:
        """Whether a host's pace must be written.

        While it is held nobody reads when it may be asked next; should its holder die, it is asked a delay later at the
        soonest: so a time within the delay is no news.
        """
        if state.release or state.given_up or state.traps:
            return True
        written = self._written.get((state.lease.host_id, state.lease.epoch))
        if written is None or written[:4] != (state.delay_s, state.rate, state.strikes, state.answered):
            return True
        soonest = now + state.delay_s / state.rate
        return abs(max(now + state.wait_s, soonest) - max(written[4], soonest)) > _SLACK_S

    def _complete(
        self, connection: Connection, ledger: PostgresLedger, parcels: Parcels, stored: Sequence[int]
    ) -> None:
        """Entries leave their lists, and everything that was learned enters."""
        completions = [parcels.batch.completions[at] for at in stored]
        listed = self._unlist(connection, ledger, completions)
        writer = PostgresPageWriter(connection, self._run.id, ledger.now)
        changed = writer.enter(
            [_arrival(parcels, at) for at in stored if _brings_content(parcels.batch.completions[at])]
        )
        notes: list[tuple[int, int, Finding]] = []
        for one in completions:
            shard, task, asked = shard_of(one.lease.site), one.task, not isinstance(one.visit.outcome, Skipped)
            ledger.count_request(shard, one)
            news = True
            if one.reason is not None and task.url_id:
                if isinstance(one.visit.outcome, Unchanged):
                    writer.renew_validators(shard, task.url_id, one.visit.outcome)
                found = _finding(ledger, one, one.reason, changed.get(task.url_id, False))
                notes += [(shard, task.url_id, found)] if found is not None else []
                news = found is not Finding.UNCHANGED
            elif one.reason is None and (task.host_id, task.priority, task.seq) in listed:
                ledger.put_back(shard, one)
            if news and (asked or one.reason is not None):  # else it was only put off
                ledger.visit(shard, task.url_id, one)
            for candidate in one.candidates:
                ledger.offer(candidate)
        _note(connection, ledger, notes)

    def _unlist(
        self, connection: Connection, ledger: PostgresLedger, completions: Sequence[Completion]
    ) -> set[tuple[int, int, int]]:
        """Takes the entries from their lists; returns those that were still there:
        a host may have been given up meanwhile.
        """
        if not completions:
            return set()
        keys = [(shard_of(one.lease.site), one.task.host_id, one.task.priority, one.task.seq) for one in completions]
        drop = (
            "DELETE FROM queue q USING unnest(%s::smallint[], %s::bigint[], %s::bigint[], "
            "%s::bigint[]) k(shard, host, priority, seq)"
            " WHERE q.shard = k.shard AND q.host_id = k.host AND q.priority = k.priority AND q.seq = k.seq"
            " RETURNING q.shard, q.host_id, q.priority, q.seq"
        )
        rows = connection.execute(drop, columns_of(keys, 4)).fetchall()
        ledger.pending.subtract(Counter((row[0], row[1]) for row in rows))
        return {(row[1], row[2], row[3]) for row in rows}

    def _record(self, connection: Connection, ledger: PostgresLedger, batch: Batch) -> None:
        """What was learned on the way: robots.txt, side requests for any host, findings that fell."""
        for visit in batch.visits:
            ledger.visit_row(shard_of(site_key(visit.request.url)), visit_row(self._run.id, 0, visit))
        upsert = (
            "INSERT INTO robots VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (shard, origin) DO UPDATE"
            " SET status = excluded.status,"
            " cause = excluded.cause, body = excluded.body, fetched = excluded.fetched, expires = excluded.expires"
        )
        for robots in sorted(batch.robots, key=lambda one: one.origin):
            connection.execute(upsert, (shard_of_origin(robots.origin), *astuple(robots)))
        for side_request in batch.side_requests:
            ledger.send(side_request)
        for site, finding in batch.fallen:
            ledger.retract(site, finding)

    def _settle(
        self, connection: Connection, ledger: PostgresLedger, held: dict[int, Holding], states: dict[int, HostState]
    ) -> None:
        """The sums and paces of the hosts that are locked."""
        changes = []
        for ref in ledger.hosts.values():
            key, state = (ref.shard, ref.id), states.get(ref.id)
            if state is not None:
                _keep_traps(connection, ref, state.traps)
            changes.append(Change(ref.shard, ref.id, ledger.pending[key], ledger.fetched[key], state))
        hosts.change(connection, changes, ledger.now)
        for state in states.values():
            for given_up in state.given_up:
                drop(connection, ledger, self._run, held[state.lease.host_id], given_up)
        ledger.write_visits_and_sums()
        self._now = ledger.now

    def settled(self, batch: Batch, lost: Iterable[Lease]) -> None:
        """The transaction is through: what it wrote of paces is known from now on."""
        for state in batch.hosts:
            key = (state.lease.host_id, state.lease.epoch)
            if state.release or state.lease in lost:
                self._written.pop(key, None)
            elif self._is_news(state, self._now) or any(one.lease == state.lease for one in batch.completions):
                self._written[key] = (
                    state.delay_s,
                    state.rate,
                    state.strikes,
                    state.answered,
                    self._now + state.wait_s,
                )


def _brings_content(one: Completion) -> bool:
    """A page, or a redirect, whose link is kept. Not what a refresh found as it was."""
    if one.reason is None or not one.task.url_id or isinstance(one.visit.outcome, Unchanged):
        return False
    return one.document is not None or isinstance(one.visit.outcome, Redirected)


def _arrival(parcels: Parcels, at: int) -> Arrival:
    one = parcels.batch.completions[at]
    return Arrival(shard_of(one.lease.site), one, one.document, parcels.bodies[at], parcels.places[at])


def _finding(ledger: PostgresLedger, one: Completion, reason: Reason, changed: bool) -> Finding | None:
    """Enters what became of a URL, and says what was found about it; None: it is no page, and was none."""
    if isinstance(one.visit.outcome, Unchanged):
        return Finding.UNCHANGED
    url = ledger.urls[one.task.url_id]
    before, rule = url.reason, url.rule
    ledger.conclude(one, reason)
    if not one.task.recheck:
        return Finding.NEW if reason in READ else None
    return finding_of(Reason(before), reason, changed or rule != one.rule)


def _note(connection: Connection, ledger: PostgresLedger, notes: Sequence[tuple[int, int, Finding]]) -> None:
    """Counts what was found, and books when the URLs should be asked for again."""
    for shard, url, finding in notes:
        ledger.count_finding(finding)
        if finding is Finding.NEW:
            continue
        row = connection.execute(
            "SELECT interval_s, gone_since FROM freshness WHERE shard = %s AND url_id = %s", (shard, url)
        ).fetchone()
        interval_s, gone = row or (FIRST_INTERVAL_S, None)
        gone = ledger.now if finding is Finding.GONE else None if finding is Finding.BACK else gone
        upsert = (
            "INSERT INTO freshness VALUES (%s, %s, %s, %s, %s) ON CONFLICT (shard, url_id) DO UPDATE"
            " SET checked = excluded.checked, interval_s = excluded.interval_s, gone_since = excluded.gone_since"
        )
        connection.execute(upsert, (shard, url, ledger.now, next_interval_s(interval_s, finding), gone))


def _keep_traps(connection: Connection, host: HostRef, changes: TrapChanges) -> None:
    """What a host's trap detector learned."""
    run, lines, place = connection.execute, changes.lines, (host.shard, host.id)
    if changes.families:
        upsert = (
            "INSERT INTO family VALUES (%s, %s, %s, %s) ON CONFLICT (shard, host_id, md5(key)) DO UPDATE"
            " SET record = excluded.record"
        )
        connection.cursor().executemany(
            upsert, [(*place, record.key, json.dumps(astuple(record))) for record in changes.families]
        )
    if changes.doubts:
        rows = columns_of(sorted(changes.doubts), 2)
        doubtful = (
            "INSERT INTO doubtful SELECT u.shard, u.id, u.host_id, k.doubt"
            " FROM unnest(%s::bigint[], %s::smallint[]) k(id, doubt)"
            " JOIN url u ON u.shard = %s AND u.id = k.id WHERE k.doubt > 0"
            " ON CONFLICT (shard, url_id) DO UPDATE SET doubt = excluded.doubt"
        )
        run(doubtful, (*rows, host.shard))
        run(
            "DELETE FROM doubtful WHERE shard = %s AND url_id = ANY(%s)",
            (host.shard, [url_id for url_id, doubt in changes.doubts if not doubt]),
        )
    if lines.keys:
        run(
            (
                "INSERT INTO shown VALUES (%s, %s, %s, %s) ON CONFLICT (shard, host_id, first) DO "
                "UPDATE SET keys = excluded.keys"
            ),
            (*place, lines.first, lines.keys),
        )
        run(
            "DELETE FROM shown WHERE shard = %s AND host_id = %s AND first + length(keys) / 4 <= %s",
            (*place, lines.needed_from),
        )
