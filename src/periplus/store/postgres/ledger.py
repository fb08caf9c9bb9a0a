"""What one transaction changes, on its own hosts at once, and by the inbox on those of other workers."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

from psycopg.rows import TupleRow

from periplus.model.frontier import PRIORITY_NONE, Candidate, Completion, Finding, GivenUp, SideRequest
from periplus.model.visit import CHECKS, Purpose, Reason, Request, Skipped, Visit
from periplus.model.web import HostKey, SiteKey, Url, UrlId
from periplus.store.postgres import hosts
from periplus.store.postgres.connection import Connection, columns_of, copy_rows
from periplus.store.postgres.hosts import Change, Holding
from periplus.store.postgres.schema import LOCK_MERGE, SHARDS, shard_of
from periplus.store.rows import visit_row
from periplus.store.standing import RECHECK, UrlState, met_again

# The inbox has one kind of row for URLs, side requests and findings that fell.

INBOX = (
    "shard, host, site, url_id, text, reason, priority, rule, hops, in_sitemap, page_id, learned, "
    "purpose, about, attempt, in_s, added"
)
RETRACT = "retract"  # in place of a purpose: a learned finding fell, and what was skipped by it waits again


def inbox_row(candidate: Candidate, now: float) -> tuple[object, ...]:
    return (
        shard_of(candidate.site), candidate.host, candidate.site, candidate.url_id, candidate.url,
        candidate.reason.value, candidate.depth, candidate.rule,
        candidate.hops, int(candidate.in_sitemap), candidate.page, int(candidate.learned), "", "", 0, 0.0, now,
    )  # fmt: skip


def side_request_row(side_request: SideRequest, now: float) -> tuple[object, ...]:
    request = side_request.request
    return (
        shard_of(side_request.site), side_request.host, side_request.site, 0, request.url, "", side_request.priority,
        "", request.hops, 0, None, 0, request.purpose.value, request.about, request.attempt, side_request.in_s, now,
    )  # fmt: skip


def candidate_of(row: TupleRow) -> Candidate:
    """What `inbox_row` was given."""
    _, host, site, url_id, text, reason, depth, rule, hops, in_sitemap, page_id, learned, *_ = row
    known = (Reason(reason), depth, rule, hops, bool(in_sitemap), page_id, bool(learned))
    return Candidate(Url(text), UrlId(url_id), HostKey(host), SiteKey(site), *known)


def side_request_of(row: TupleRow) -> SideRequest:
    """What `errand_row` was given."""
    _, host, site, _, text, _, priority, _, hops, _, _, _, purpose, about, attempt, in_s, _ = row
    return SideRequest(
        HostKey(host), SiteKey(site), Request(Url(text), Purpose(purpose), None, hops, attempt, about), priority, in_s
    )


def retract_row(site: SiteKey, finding: str, now: float) -> tuple[object, ...]:
    return (shard_of(site), "", site, 0, finding, "", None, "", 0, 0, None, 0, RETRACT, "", 0, 0.0, now)


# The rule that keeps workers from standing in each other's way: only hosts that the caller has locked are touched; what
# concerns any other host goes to `inbox`, in the same transaction, and is merged by whoever comes to it
# (`ledger.merge`). Sums are kept by `part`, one of each writer, so that nobody waits for another over a number.

_QUEUE = "shard, host_id, priority, url_id, text, purpose, about, hops, attempt, not_before"
_VISIT = "shard, run_id, url_id, text, purpose, started, took_s, outcome, status, detail, wire_bytes, address, head"
_URL = "shard, id, text, host_id, reason, depth, rule, status, in_sitemap, first_seen, visited"


class LedgerRun(NamedTuple):
    """Of the run: what its writers must know."""

    id: int
    started: float
    is_refresh: bool


class HostRef(NamedTuple):
    """A host that this transaction has locked."""

    id: int
    shard: int
    site_id: int


@dataclass(slots=True)
class UrlRow:
    """A row of `url` as this transaction sees it. was: (reason, rule, status, depth) as stored; None: it is new."""

    shard: int
    id: int
    text: str
    host_id: int
    reason: str
    depth: int | None
    rule: str
    status: int | None
    in_sitemap: int
    first_seen: float
    visited: float | None
    was: tuple[str, str, int | None, int | None] | None = None
    touched: bool = False

    @property
    def row(self) -> tuple[object, ...]:
        return (
            self.shard,
            self.id,
            self.text,
            self.host_id,
            self.reason,
            self.depth,
            self.rule,
            self.status,
            self.in_sitemap,
            self.first_seen,
            self.visited,
        )

    @property
    def is_history(self) -> bool:
        return self.was is not None and self.was[:3] != (self.reason, self.rule, self.status)


class PostgresLedger:
    """One transaction's changes. `load` first, then the entries, `write` at last."""

    def __init__(self, connection: Connection, run: LedgerRun, part: int, now: float) -> None:
        """part: whose sums these are; now: by the database's clock."""
        self._connection, self._run, self._part, self.now = connection, run, part, now
        self.hosts: dict[HostKey, HostRef] = {}
        self.urls: dict[int, UrlRow] = {}
        self.pending: Counter[tuple[int, int]] = Counter()  # by (shard, host)
        self.fetched: Counter[tuple[int, int]] = Counter()
        self.tallies: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()  # of the run
        self._aliases: list[tuple[object, ...]] = []
        self._vouched: list[tuple[int, int]] = []  # known URLs, (shard, id), that are doubtful no longer
        self._entries: list[tuple[object, ...]] = []
        self._listed: set[tuple[object, ...]] = set()  # side requests that stand in a list
        self._visits: list[tuple[object, ...]] = []
        self._inbox: list[tuple[object, ...]] = []

    # reading ---------------------------------------------------------------------------------------------------------

    def load(
        self,
        candidates: Iterable[Candidate],
        side_requests: Sequence[SideRequest],
        tasks: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Reads the rows that these may concern, as far as their hosts are ours.

        tasks: (shard, id) of URLs that are settled.
        """
        keys = {(self.hosts[one.host].shard, int(one.url_id)) for one in candidates if one.host in self.hosts} | set(
            tasks
        )
        self.load_urls(sorted(keys))
        self._load_side_requests(side_requests)

    def load_urls(self, keys: Sequence[tuple[int, int]]) -> None:
        if not keys:
            return
        names = ", ".join(f"u.{name}" for name in _URL.split(", "))
        find = (
            f"SELECT {names} FROM unnest(%s::smallint[], %s::bigint[]) k(shard, id)"
            " JOIN url u ON u.shard = k.shard AND u.id = k.id"
        )
        for row in self._connection.execute(find, columns_of(keys, 2)):
            url = UrlRow(*row)
            url.was = (url.reason, url.rule, url.status, url.depth)
            self.urls.setdefault(url.id, url)

    def _load_side_requests(self, side_requests: Sequence[SideRequest]) -> None:
        ours = [
            (self.hosts[one.host].shard, self.hosts[one.host].id, one.priority, one.request.url)
            for one in side_requests
            if one.host in self.hosts
        ]
        if not ours:
            return
        find = (
            "SELECT q.host_id, q.priority, q.text, q.about, q.purpose"
            " FROM unnest(%s::smallint[], %s::bigint[], %s::bigint[], %s::text[]) k(shard, host, priority, text)"
            " JOIN queue q ON q.shard = k.shard AND q.host_id = k.host AND q.priority = k.priority AND q.text = k.text"
        )
        self._listed |= set(self._connection.execute(find, columns_of(ours, 4)).fetchall())

    # entries ---------------------------------------------------------------------------------------------------------

    def offer(self, candidate: Candidate, *, reopen: bool = False) -> bool:
        """Registers a URL if it is new, raises it if this link is a better one. True: it is newly waiting."""
        host = self.hosts.get(candidate.host)
        if host is None:
            self._inbox.append(inbox_row(candidate, self.now))
            return False
        known = self.urls.get(candidate.url_id)
        reason, is_alias = candidate.reason, candidate.reason in (Reason.ALIAS, Reason.RULE)
        if known is None:
            row = (
                candidate.url_id,
                candidate.url,
                host.id,
                reason.value,
                candidate.depth,
                candidate.rule,
                None,
                int(candidate.in_sitemap),
                self.now,
                None,
            )
            known = self.urls[candidate.url_id] = UrlRow(host.shard, *row)
            self.tallies["known"] += 1
            self.tallies["reason:" + reason.value] += 1
            enters = reason is Reason.WAITING
        elif is_alias:
            enters = False
        else:
            now, enters = met_again(
                UrlState(known.reason, known.depth, bool(known.in_sitemap)), candidate, reopen=reopen
            )
            if now.reason != known.reason:
                self.restate(known, now.reason, "")
            if candidate.vouched and not reopen:
                self._vouched.append((known.shard, known.id))
            known.touched |= now != (known.reason, known.depth, bool(known.in_sitemap))
            known.depth, known.in_sitemap = now.depth, int(now.in_sitemap)
        if is_alias and known.reason == reason.value:
            self._aliases.append(
                (
                    host.shard,
                    candidate.url_id,
                    candidate.page,
                    candidate.rule,
                    int(candidate.learned),
                    Reason.WAITING.value,
                )
            )
        if enters:
            priority = PRIORITY_NONE if known.depth is None else known.depth
            self._enqueue(host, priority, candidate.url_id, Request(candidate.url, hops=candidate.hops), 0.0)
        return enters

    def restate(self, url: UrlRow, reason: str, rule: str) -> None:
        """Gives a URL another reason, and nothing else: its entry in a to-do list is the caller's business."""
        self.tallies["reason:" + url.reason] -= 1
        self.tallies["reason:" + reason] += 1
        url.reason, url.rule, url.touched = reason, rule, True

    def await_again(self, url: UrlRow) -> None:
        """A URL that was skipped waits again."""
        self.restate(url, Reason.WAITING.value, "")
        host = HostRef(url.host_id, url.shard, 0)
        self._enqueue(host, PRIORITY_NONE if url.depth is None else url.depth, url.id, Request(Url(url.text)), 0.0)

    def send(self, side_request: SideRequest) -> None:
        """Enters a side request into its host's list, unless it stands there already."""
        host, request = self.hosts.get(side_request.host), side_request.request
        if host is None:
            self._inbox.append(side_request_row(side_request, self.now))
            return
        twin = (host.id, side_request.priority, request.url, request.about, request.purpose.value)
        if twin not in self._listed:
            self._listed.add(twin)
            self._enqueue(
                host, side_request.priority, 0, request, self.now + side_request.in_s if side_request.in_s else 0.0
            )

    def retract(self, site: SiteKey, finding: str) -> None:
        """A learned finding fell: all hosts of the site are concerned, so it is done by a merge."""
        self._inbox.append(retract_row(site, finding, self.now))

    def _enqueue(
        self, host: HostRef, priority: int, url_id: int, request: Request, not_before: float, *, recheck: bool = False
    ) -> None:
        purpose = RECHECK if recheck else request.purpose.value
        text = None if url_id else request.url
        self._entries.append(
            (
                host.shard,
                host.id,
                priority,
                url_id,
                text,
                purpose,
                request.about,
                request.hops,
                request.attempt,
                not_before,
            )
        )
        self.pending[host.shard, host.id] += 1

    def count_request(self, shard: int, completion: Completion) -> None:
        """A page that was asked for counts, whatever came of it."""
        task, visit = completion.task, completion.visit
        if not isinstance(visit.outcome, Skipped) and (task.url_id or task.request.purpose in CHECKS):
            self.counts["fetched"] += 1
            self.counts["wire_bytes"] += visit.wire_bytes
            self.fetched[shard, task.host_id] += 1

    def put_back(self, shard: int, completion: Completion) -> None:
        """To be tried again, later."""
        task = completion.task
        asked, respelled = (
            not isinstance(completion.visit.outcome, Skipped),
            task.request.url != completion.visit.request.url,
        )
        if task.url_id and respelled:  # it redirects to another spelling of itself
            self._connection.execute(
                "UPDATE url SET text = %s WHERE shard = %s AND id = %s", (task.request.url, shard, task.url_id)
            )
        again = replace(
            task.request, attempt=task.request.attempt + (asked and not respelled), etag="", last_modified=""
        )
        priority = task.priority if completion.retry_priority is None else completion.retry_priority
        self._enqueue(
            HostRef(task.host_id, shard, 0),
            priority,
            task.url_id,
            again,
            self.now + completion.retry_in_s,
            recheck=task.recheck,
        )

    def conclude(self, completion: Completion, reason: Reason) -> None:
        """The URL gets its reason: it was waiting, save when a refresh asked,
        or its host was given up while it was under way.
        """
        url, outcome = self.urls[completion.task.url_id], completion.visit.outcome
        self.restate(url, reason.value, completion.rule)
        url.status = getattr(outcome, "status", None)
        if not isinstance(outcome, Skipped):
            url.visited = completion.visit.started

    def visit(self, shard: int, url_id: int, completion: Completion) -> None:
        self._visits.append((shard, *visit_row(self._run.id, url_id, completion.visit)))

    def visit_row(self, shard: int, row: tuple[object, ...]) -> None:
        self._visits.append((shard, *row))

    # writing ---------------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Enters all; the sums of hosts are the caller's, who may have more to say of them."""
        connection = self._connection
        copy_rows(connection, "url", _URL, [url.row for url in self.urls.values() if url.was is None])
        self._update_urls([url for url in self.urls.values() if url.was is not None and url.touched])
        if self._aliases:
            upsert = (
                "INSERT INTO alias (shard, url_id, page_id, rule, learned, was)"
                " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
            )
            connection.cursor().executemany(upsert, self._aliases)
        if self._vouched:
            clear = (
                "DELETE FROM doubtful d USING unnest(%s::smallint[], %s::bigint[]) k(shard, id)"
                " WHERE d.shard = k.shard AND d.url_id = k.id"
            )
            connection.execute(clear, columns_of(sorted(set(self._vouched)), 2))
        copy_rows(connection, "queue", _QUEUE, self._entries)
        copy_rows(connection, "inbox", INBOX, self._inbox)
        self.write_visits_and_sums()

    def write_visits_and_sums(self) -> None:
        copy_rows(self._connection, "visit", _VISIT, self._visits)
        self._visits.clear()
        tallies = sorted((self._part, name, count) for name, count in self.tallies.items() if count)
        counts = sorted((self._run.id, self._part, name, count) for name, count in self.counts.items() if count)
        self.tallies.clear()
        self.counts.clear()
        if tallies:
            add = "ON CONFLICT (part, name) DO UPDATE SET value = tally.value + excluded.value"
            self._connection.execute(
                f"INSERT INTO tally SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) {add}",
                columns_of(tallies, 3),
            )
        if counts:
            add = "ON CONFLICT (run_id, part, name) DO UPDATE SET value = run_count.value + excluded.value"
            rows = "unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bigint[])"
            self._connection.execute(
                f"INSERT INTO run_count (run_id, part, name, value) SELECT * FROM {rows} {add}", columns_of(counts, 4)
            )

    def _update_urls(self, changed: list[UrlRow]) -> None:
        past = [url for url in changed if url.is_history and url.first_seen < self._run.started]
        for url in past:
            assert url.was is not None
            reason, rule, status, depth = url.was
            keep = (
                "INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, depth)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
            )
            self._connection.execute(keep, (url.shard, url.id, self._run.id, reason, rule, status, depth))
        if not changed:
            return
        rows = [
            (url.shard, url.id, url.reason, url.depth, url.rule, url.status, url.in_sitemap, url.visited)
            for url in changed
        ]
        update = (
            "UPDATE url u SET reason = v.reason, depth = v.depth, rule = v.rule, status = v.status, in_sitemap = "
            "v.in_sitemap, visited = v.visited"
            " FROM unnest(%s::smallint[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::bigint[], "
            "%s::smallint[], %s::float8[])"
            " v(shard, id, reason, depth, rule, status, in_sitemap, visited) WHERE u.shard = v.shard AND u.id = v.id"
        )
        self._connection.execute(update, columns_of(rows, 8))

    @property
    def sent_out(self) -> bool:
        """Whether something went to the inbox."""
        return bool(self._inbox)

    def count_finding(self, finding: Finding, times: int = 1) -> None:
        self.counts[finding.value] += times


# The part of a to-do list whose origin is given up is dropped, until a new run.


def drop(connection: Connection, ledger: PostgresLedger, run: LedgerRun, host: Holding, given_up: GivenUp) -> None:
    """The host is locked, and all else of the transaction is written but visits and sums.

    Origins of one host differ in their scheme.
    """
    values = {
        "shard": host.shard,
        "host": host.id,
        "run": run.id,
        "started": run.started,
        "reason": given_up.reason.value,
        "rule": given_up.rule,
    }
    values["scheme"] = given_up.origin[:5]
    text = "coalesce(text, (SELECT u.text FROM url u WHERE u.shard = queue.shard AND u.id = queue.url_id))"
    listed = f"FROM queue WHERE shard = %(shard)s AND host_id = %(host)s AND left({text}, 5) = %(scheme)s"
    pages = f"SELECT url_id {listed} AND purpose = 'page'"
    waiting = f"reason = 'waiting' AND shard = %(shard)s AND id IN ({pages})"
    keep = (
        f"SELECT shard, id, %(run)s, reason, rule, status, depth FROM url WHERE {waiting} AND first_seen < %(started)s"
    )
    connection.execute(
        f"INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, depth) {keep} ON CONFLICT DO NOTHING",
        values,
    )
    dropped = connection.execute(
        f"UPDATE url SET reason = %(reason)s, rule = %(rule)s WHERE {waiting}", values
    ).rowcount
    ledger.tallies["reason:waiting"] -= dropped
    ledger.tallies["reason:" + given_up.reason.value] += dropped
    gone = connection.execute(f"DELETE {listed} RETURNING purpose, text", values).fetchall()
    ledger.count_finding(Finding.UNREACHED, sum(purpose == RECHECK for purpose, _ in gone))
    # links' targets have no reason of their own: that they were not asked for is told by a visit
    outcome = Skipped(given_up.reason, given_up.rule)
    for purpose, target in gone:
        if purpose in CHECKS:
            ledger.visit_row(
                host.shard,
                visit_row(run.id, 0, Visit(Request(Url(target), Purpose(purpose)), ledger.now, 0.0, outcome)),
            )
    update = "UPDATE host SET pending = pending - %(gone)s WHERE shard = %(shard)s AND id = %(host)s"
    connection.execute(update, values | {"gone": len(gone)})


# Only here hosts are made, and only here is anything entered for a host that somebody else may hold: under
# the shard's advisory lock, then the hosts' own, in order. Completing transactions take no advisory lock,
# so nobody waits in a circle.

AT_ONCE = 2_000  # rows merged in one transaction: some 50 ms, in which their hosts' holders wait
MakeLedger = Callable[[float], PostgresLedger]


class Mail(NamedTuple):
    """What is to be brought to its hosts. findings: learned ones that fell, each with its site."""

    candidates: Sequence[Candidate]
    side_requests: Sequence[SideRequest] = ()
    findings: Sequence[tuple[SiteKey, str]] = ()


def lock_number(collection: str, shard: int = 0) -> int:
    """The number of a collection's advisory lock: 31 bits,
    for two collections of one database not to wait for each other.
    """
    return (zlib.crc32(collection.encode()) % (2**31 // SHARDS)) * SHARDS + shard


def is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM inbox LIMIT 1").fetchone() is None


def merge(connection: Connection, collection: str, make: MakeLedger, now: float | None) -> int:
    """Brings up to AT_ONCE rows to their hosts, of shards that nobody else is merging; returns how many.

    Within a transaction.
    """
    shards = _lock_free_shards(connection, collection)
    if not shards:
        return 0
    wanted = "SELECT shard, id FROM inbox WHERE shard = ANY(%s) ORDER BY shard, id LIMIT %s"
    take = (
        f"DELETE FROM inbox i USING ({wanted}) w WHERE i.shard = w.shard AND i.id = w.id RETURNING i.id, {_columns()}"
    )
    taken = connection.execute(take, (shards, AT_ONCE)).fetchall()
    rows = [row[1:] for row in sorted(taken, key=itemgetter(0))]  # as they came, whatever their shard
    if rows:
        ledger = make(hosts.time_now(connection, now))
        findings = [(SiteKey(row[2]), str(row[4])) for row in rows if row[12] == RETRACT]
        candidates, side_requests = (
            [candidate_of(row) for row in rows if row[5]],
            [side_request_of(row) for row in rows if row[12] not in ("", RETRACT)],
        )
        _enter(connection, ledger, Mail(candidates, side_requests, findings))
    return len(rows)


def _columns() -> str:
    return ", ".join(f"i.{name}" for name in INBOX.split(", "))


def _lock_free_shards(connection: Connection, collection: str) -> list[int]:
    """Shards with something in the inbox, now locked by us.

    The rows are read by a later statement, which sees what others did before.
    """
    found = [row[0] for row in connection.execute("SELECT DISTINCT shard FROM inbox").fetchall()]
    numbers = [lock_number(collection, shard) for shard in found]
    got = connection.execute(
        "SELECT n FROM unnest(%s::int[]) n WHERE pg_try_advisory_xact_lock(%s, n)", (numbers, LOCK_MERGE)
    ).fetchall()
    locked = {row[0] for row in got}
    return [shard for shard, number in zip(found, numbers, strict=True) if number in locked]


def enter_from_outside(
    connection: Connection, collection: str, ledger: PostgresLedger, mail: Mail, *, reopen: bool
) -> int:
    """Starts and lists, which nobody found on a page; returns how many wait newly. Waits for others who are merging."""
    for shard in sorted({shard_of(site) for site in _sites(mail)}):
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_MERGE, lock_number(collection, shard)))
    return _enter(connection, ledger, mail, reopen=reopen)


def _enter(connection: Connection, ledger: PostgresLedger, mail: Mail, *, reopen: bool = False) -> int:
    """All of it, under the shards' locks. Returns how many URLs wait newly."""
    places = [(one.host, one.site) for one in mail.candidates] + [(one.host, one.site) for one in mail.side_requests]
    _make_hosts(connection, dict(places))
    ledger.hosts |= _lock_hosts(connection, places, [site for site, _ in mail.findings])
    ledger.load(mail.candidates, mail.side_requests)
    fresh = sum([ledger.offer(candidate, reopen=reopen) for candidate in mail.candidates])
    for side_request in mail.side_requests:
        ledger.send(side_request)
    for site, finding in mail.findings:
        _retract(connection, ledger, site, finding)
    ledger.write()
    hosts.change(
        connection,
        [Change(shard, host, change, 0, None) for (shard, host), change in ledger.pending.items()],
        ledger.now,
    )
    return fresh


def _sites(mail: Mail) -> set[SiteKey]:
    return {one.site for one in mail.candidates} | {one.site for one in mail.side_requests}


def _make_hosts(connection: Connection, keys: dict[HostKey, SiteKey]) -> None:
    """Hosts and sites that nobody has met before. The numbers of what is there already are not used up."""
    wanted = columns_of([(shard_of(site), host) for host, site in keys.items()], 2)
    pairs = "unnest(%s::smallint[], %s::text[]) k(shard, key)"
    known = {
        row[0]
        for row in connection.execute(
            f"SELECT h.key FROM {pairs} JOIN host h ON h.shard = k.shard AND h.key = k.key", wanted
        )
    }
    fresh = {host: site for host, site in keys.items() if host not in known}
    if not fresh:
        return
    sites = columns_of([(shard_of(site), site) for site in dict.fromkeys(fresh.values())], 2)
    absent = "NOT EXISTS (SELECT 1 FROM site s WHERE s.shard = k.shard AND s.key = k.key)"
    connection.execute(f"INSERT INTO site (shard, key) SELECT k.shard, k.key FROM {pairs} WHERE {absent}", sites)
    rows = columns_of([(shard_of(site), host, site) for host, site in fresh.items()], 3)
    triples = (
        "unnest(%s::smallint[], %s::text[], %s::text[]) WITH ORDINALITY k(shard, key, site, place)"
        " JOIN site s ON s.shard = k.shard AND s.key = k.site"
    )
    connection.execute(
        f"INSERT INTO host (shard, key, site_id) SELECT k.shard, k.key, s.id FROM {triples} ORDER BY k.place", rows
    )


def _lock_hosts(
    connection: Connection, places: Iterable[tuple[HostKey, SiteKey]], sites: Sequence[SiteKey]
) -> dict[HostKey, HostRef]:
    """The hosts that are concerned, locked in the one order."""
    keys = columns_of(sorted({(shard_of(site), host) for host, site in places}), 2)
    concerned = (
        "(h.shard, h.key) IN (SELECT * FROM unnest(%s::smallint[], %s::text[]))"
        " OR (h.shard, h.site_id) IN (SELECT s.shard, s.id FROM site s WHERE (s.shard, s.key) IN (SELECT *"
        " FROM unnest(%s::smallint[], %s::text[])))"
    )
    if not sites:
        concerned = "(h.shard, h.key) IN (SELECT * FROM unnest(%s::smallint[], %s::text[]))"
    values = [*keys, *(columns_of([(shard_of(site), site) for site in sites], 2) if sites else ())]
    find = (
        f"SELECT h.key, h.id, h.shard, h.site_id FROM host h WHERE {concerned} ORDER BY h.shard, h.id FOR NO KEY UPDATE"
    )
    return {HostKey(row[0]): HostRef(row[1], row[2], row[3]) for row in connection.execute(find, values).fetchall()}


def _retract(connection: Connection, ledger: PostgresLedger, site: SiteKey, finding: str) -> None:
    """What was skipped because of a learned finding waits again."""
    find = (
        "DELETE FROM alias a USING url u, host h, site s WHERE a.shard = %(shard)s AND a.learned = 1"
        " AND u.shard = a.shard AND u.id = a.url_id"
        " AND h.shard = u.shard AND h.id = u.host_id AND s.shard = h.shard AND s.id = h.site_id AND s.key = %(site)s"
        " AND position('; ' || %(finding)s || '; ' IN '; ' || a.rule || '; ') > 0 RETURNING a.shard, a.url_id"
    )
    keys: list[TupleRow] = connection.execute(
        find, {"shard": shard_of(site), "site": site, "finding": finding}
    ).fetchall()
    ledger.load_urls([(row[0], row[1]) for row in keys])
    for _, url_id in sorted(keys):
        ledger.await_again(ledger.urls[url_id])
