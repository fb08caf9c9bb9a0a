"""What does one transaction change? It reads what it needs at once, decides in memory, and writes at once.

The rule that keeps workers from standing in each other's way: only hosts that the caller has locked are touched; what concerns any
other host goes to `inbox`, in the same transaction, and is merged by whoever comes to it (`inbox.merge`). Sums are kept by `part`, one
of each writer, so that nobody waits for another over a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from periplus.model.freshness import Finding
from periplus.model.frontier import LAYER_NONE, Candidate, Completion, Errand
from periplus.model.visit import CHECKS, Reason, Request, Skipped
from periplus.model.web import HostKey, SiteKey, Url
from periplus.store.postgres.bulk import columns_of, copy_rows
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.letters import INBOX, errand_row, inbox_row, retract_row
from periplus.store.rows import visit_row
from periplus.store.standing import RECHECK, Known, met_again

_QUEUE = "shard, host_id, layer, url_id, text, purpose, about, hops, attempt, not_before"
_VISIT = "shard, run_id, url_id, text, purpose, started, took_s, outcome, status, detail, wire_bytes, address, head"
_URL = "shard, id, text, host_id, reason, layer, rule, status, in_sitemap, first_seen, visited"


class Run(NamedTuple):
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
    """A row of `url` as this transaction sees it. was: (reason, rule, status, layer) as stored; None: it is new."""

    shard: int
    id: int
    text: str
    host_id: int
    reason: str
    layer: int | None
    rule: str
    status: int | None
    in_sitemap: int
    first_seen: float
    visited: float | None
    was: tuple[str, str, int | None, int | None] | None = None
    touched: bool = False

    @property
    def row(self) -> tuple[object, ...]:
        return (self.shard, self.id, self.text, self.host_id, self.reason, self.layer, self.rule, self.status, self.in_sitemap, self.first_seen, self.visited)

    @property
    def is_history(self) -> bool:
        return self.was is not None and self.was[:3] != (self.reason, self.rule, self.status)


class Ledger:
    """One transaction's changes. `load` first, then the entries, `write` at last."""

    def __init__(self, connection: Connection, run: Run, part: int, now: float) -> None:
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
        self._listed: set[tuple[object, ...]] = set()  # errands that stand in a list
        self._visits: list[tuple[object, ...]] = []
        self._inbox: list[tuple[object, ...]] = []

    # reading ---------------------------------------------------------------------------------------------------------

    def load(self, candidates: Iterable[Candidate], errands: Sequence[Errand], tasks: Iterable[tuple[int, int]] = ()) -> None:
        """Reads the rows that these may concern, as far as their hosts are ours. tasks: (shard, id) of URLs that are settled."""
        keys = {(self.hosts[one.host].shard, int(one.url_id)) for one in candidates if one.host in self.hosts} | set(tasks)
        self.load_urls(sorted(keys))
        self._load_errands(errands)

    def load_urls(self, keys: Sequence[tuple[int, int]]) -> None:
        if not keys:
            return
        names = ", ".join(f"u.{name}" for name in _URL.split(", "))
        find = f"SELECT {names} FROM unnest(%s::smallint[], %s::bigint[]) k(shard, id) JOIN url u ON u.shard = k.shard AND u.id = k.id"
        for row in self._connection.execute(find, columns_of(keys, 2)):
            url = UrlRow(*row)
            url.was = (url.reason, url.rule, url.status, url.layer)
            self.urls.setdefault(url.id, url)

    def _load_errands(self, errands: Sequence[Errand]) -> None:
        ours = [(self.hosts[one.host].shard, self.hosts[one.host].id, one.layer, one.request.url) for one in errands if one.host in self.hosts]
        if not ours:
            return
        find = (
            "SELECT q.host_id, q.layer, q.text, q.about, q.purpose"
            " FROM unnest(%s::smallint[], %s::bigint[], %s::bigint[], %s::text[]) k(shard, host, layer, text)"
            " JOIN queue q ON q.shard = k.shard AND q.host_id = k.host AND q.layer = k.layer AND q.text = k.text"
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
            row = (candidate.url_id, candidate.url, host.id, reason.value, candidate.layer, candidate.rule, None, int(candidate.in_sitemap), self.now, None)
            known = self.urls[candidate.url_id] = UrlRow(host.shard, *row)
            self.tallies["known"] += 1
            self.tallies["reason:" + reason.value] += 1
            enters = reason is Reason.WAITING
        elif is_alias:
            enters = False
        else:
            now, enters = met_again(Known(known.reason, known.layer, bool(known.in_sitemap)), candidate, reopen=reopen)
            if now.reason != known.reason:
                self.restate(known, now.reason, "")
            if candidate.vouched and not reopen:
                self._vouched.append((known.shard, known.id))
            known.touched |= now != (known.reason, known.layer, bool(known.in_sitemap))
            known.layer, known.in_sitemap = now.layer, int(now.in_sitemap)
        if is_alias and known.reason == reason.value:
            self._aliases.append((host.shard, candidate.url_id, candidate.page, candidate.rule, int(candidate.learned), Reason.WAITING.value))
        if enters:
            layer = LAYER_NONE if known.layer is None else known.layer
            self._enqueue(host, layer, candidate.url_id, Request(candidate.url, hops=candidate.hops), 0.0)
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
        self._enqueue(host, LAYER_NONE if url.layer is None else url.layer, url.id, Request(Url(url.text)), 0.0)

    def send(self, errand: Errand) -> None:
        """Enters an errand into its host's list, unless it stands there already."""
        host, request = self.hosts.get(errand.host), errand.request
        if host is None:
            self._inbox.append(errand_row(errand, self.now))
            return
        twin = (host.id, errand.layer, request.url, request.about, request.purpose.value)
        if twin not in self._listed:
            self._listed.add(twin)
            self._enqueue(host, errand.layer, 0, request, self.now + errand.in_s if errand.in_s else 0.0)

    def retract(self, site: SiteKey, finding: str) -> None:
        """A learned finding fell: all hosts of the site are concerned, so it is done by a merge."""
        self._inbox.append(retract_row(site, finding, self.now))

    def _enqueue(self, host: HostRef, layer: int, url_id: int, request: Request, not_before: float, *, recheck: bool = False) -> None:
        purpose = RECHECK if recheck else request.purpose.value
        text = None if url_id else request.url
        self._entries.append((host.shard, host.id, layer, url_id, text, purpose, request.about, request.hops, request.attempt, not_before))
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
        asked, respelled = not isinstance(completion.visit.outcome, Skipped), task.request.url != completion.visit.request.url
        if task.url_id and respelled:  # it redirects to another spelling of itself
            self._connection.execute("UPDATE url SET text = %s WHERE shard = %s AND id = %s", (task.request.url, shard, task.url_id))
        again = replace(task.request, attempt=task.request.attempt + (asked and not respelled), etag="", last_modified="")
        layer = task.layer if completion.retry_layer is None else completion.retry_layer
        self._enqueue(HostRef(task.host_id, shard, 0), layer, task.url_id, again, self.now + completion.retry_in_s, recheck=task.recheck)

    def conclude(self, completion: Completion, reason: Reason) -> None:
        """The URL gets its reason: it was waiting, save when a refresh asked, or its host was given up while it was under way."""
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
            upsert = "INSERT INTO alias (shard, url_id, page_id, rule, learned, was) VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
            connection.cursor().executemany(upsert, self._aliases)
        if self._vouched:
            clear = "DELETE FROM doubtful d USING unnest(%s::smallint[], %s::bigint[]) k(shard, id) WHERE d.shard = k.shard AND d.url_id = k.id"
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
            self._connection.execute(f"INSERT INTO tally SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) {add}", columns_of(tallies, 3))
        if counts:
            add = "ON CONFLICT (run_id, part, name) DO UPDATE SET value = run_count.value + excluded.value"
            rows = "unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bigint[])"
            self._connection.execute(f"INSERT INTO run_count (run_id, part, name, value) SELECT * FROM {rows} {add}", columns_of(counts, 4))

    def _update_urls(self, changed: list[UrlRow]) -> None:
        past = [url for url in changed if url.is_history and url.first_seen < self._run.started]
        for url in past:
            assert url.was is not None
            reason, rule, status, layer = url.was
            keep = "INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, layer) VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
            self._connection.execute(keep, (url.shard, url.id, self._run.id, reason, rule, status, layer))
        if not changed:
            return
        rows = [(url.shard, url.id, url.reason, url.layer, url.rule, url.status, url.in_sitemap, url.visited) for url in changed]
        update = (
            "UPDATE url u SET reason = v.reason, layer = v.layer, rule = v.rule, status = v.status, in_sitemap = v.in_sitemap, visited = v.visited"
            " FROM unnest(%s::smallint[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::bigint[], %s::smallint[], %s::float8[])"
            " v(shard, id, reason, layer, rule, status, in_sitemap, visited) WHERE u.shard = v.shard AND u.id = v.id"
        )
        self._connection.execute(update, columns_of(rows, 8))

    @property
    def sent_out(self) -> bool:
        """Whether something went to the inbox."""
        return bool(self._inbox)

    def count_finding(self, finding: Finding, times: int = 1) -> None:
        self.counts[finding.value] += times
