"""Loads and writes a ledger, in SQL for both databases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from itertools import chain
from operator import attrgetter

from periplus.model.frontier import Completion, GivenUp, RefreshFinding, TrapMemory
from periplus.model.visit import CHECKS, Purpose, Reason, Request, Skipped, Unchanged, Visit
from periplus.model.web import Origin, SiteKey, Url
from periplus.store import rows
from periplus.store.ledger import AliasRow, FreshnessRow, HostRef, Ledger, QueueEntry, UrlRow, brings_content
from periplus.store.rows import visit_row
from periplus.store.statements import PageKey, Statements
from periplus.store.url_state import FIELDS, RECHECK
from periplus.urls.scope import site_key
from periplus.values import Row

_URL = "id, text, host_id, reason, depth, rule, status, in_sitemap, first_seen, visited"
_CHANGED_COLUMNS = "id, reason, depth, rule, status, in_sitemap, visited"
_NEW_COLUMNS = "id, text, host_id, reason, depth, rule, in_sitemap, first_seen"  # binding two NULLs takes 1 us a URL
_NEW_URL = attrgetter("shard", *_NEW_COLUMNS.split(", "))
_CHANGED_URL = attrgetter("shard", *_CHANGED_COLUMNS.split(", "))
_PAST_URL = attrgetter("reason", "rule", "status", "depth")
_TEXT = FIELDS.index("text_digest")


def _columns(row: type[Row]) -> str:
    """Columns of a named tuple's table, without the shard."""
    return ", ".join(row._fields[1:])  # type: ignore[attr-defined]  # of a NamedTuple


class LedgerTables:
    """Loads and writes the ledger of one transaction."""

    def __init__(self, statements: Statements, ledger: Ledger, run_started: float = 0.0) -> None:
        """run_started: older URLs get history rows; used only without triggers."""
        self._statements, self.ledger, self._run_started = statements, ledger, run_started
        self._past: dict[int, Row] = {}  # stored values of URLs

    # loading ---------------------------------------------------------------------------------------------------------

    def take(self, completions: Sequence[Completion]) -> None:
        """Removes the entries from the queue. An entry is missing if its host was given up during the request."""
        keys = [
            (self._shard(completion), completion.task.host_id, completion.task.priority, completion.task.seq)
            for completion in completions
        ]
        for shard, host_id, priority, seq in self._statements.delete("queue", "host_id, priority, seq", keys):
            self.ledger.take(HostRef(shard, host_id), priority, seq)  # type: ignore[arg-type]  # integers

    def load(self, urls: Iterable[tuple[int, int]], completions: Sequence[Completion] = ()) -> None:
        """Loads URLs, given as (shard, id), and the rows that completions change; in a first crawl there are few."""
        ledger, at = self.ledger, self._statements.at
        concluded = [
            completion
            for completion in completions
            if completion.reason is not None
            and completion.task.url_id
            and not isinstance(completion.visit.outcome, Unchanged)
        ]
        self._load_urls(chain(urls, ((self._shard(completion), completion.task.url_id) for completion in concluded)))
        earlier = [  # unvisited URLs have neither page nor links
            completion
            for completion in concluded
            if brings_content(completion) and ledger.urls[completion.task.url_id].visited is not None
        ]
        keys = [(self._shard(completion), completion.task.url_id) for completion in earlier]
        ledger.linked = {url_id for _, url_id in keys}
        ledger.pages = {row[0]: row[1:] for row in at(f"url_id, {', '.join(FIELDS)}", "page", "url_id", keys)}
        # reading 60 links takes 50 us, and a page with another text counts as changed anyway
        alike = [key for key, completion in zip(keys, earlier, strict=True) if self._has_same_text(completion)]
        for source, *key, last_seen in self._statements.links_of(alike):
            ledger.links.setdefault(source, {})[tuple(key)] = last_seen
        again = [
            (self._shard(completion), completion.task.url_id)
            for completion in completions
            if completion.task.recheck or isinstance(completion.visit.outcome, Unchanged)
        ]
        for url_id, interval_s, gone_since in at("url_id, interval_s, gone_since", "freshness", "url_id", again):
            ledger.freshness[url_id] = (interval_s, gone_since)

    def _has_same_text(self, completion: Completion) -> bool:
        before = self.ledger.pages.get(completion.task.url_id)
        return (
            completion.document is not None and before is not None and before[_TEXT] == completion.document.digests.text
        )

    def _load_urls(self, keys: Iterable[tuple[int, int]]) -> None:
        urls, has_triggers = self.ledger.urls, self._statements.dialect.has_triggers
        shards = {url_id: shard for shard, url_id in keys if url_id not in urls}
        for row in self._statements.at(_URL, "url", "id", [(shard, url_id) for url_id, shard in shards.items()]):
            url = urls[row[0]] = UrlRow(shards[row[0]], *row)
            if not has_triggers:
                self._past[url.id] = _PAST_URL(url)

    def retract(self, site: SiteKey, finding: str) -> None:
        """Queues the URLs again that were skipped because of a learned alias rule."""
        dialect = self._statements.dialect
        shard = dialect.shard_of(site)
        of_site = (
            f"SELECT u.id FROM site s JOIN host h ON {dialect.beside('h', 's')}h.site_id = s.id"
            f" JOIN url u ON {dialect.beside('u', 'h')}u.host_id = h.id WHERE s.key = ?"
        )
        drop = (
            f"DELETE FROM alias WHERE {dialect.here}learned = 1 AND url_id IN ({of_site})"
            f" AND {dialect.position}('; ' || rule || '; ', '; ' || ? || '; ') > 0 RETURNING url_id"
        )
        url_ids = sorted(row[0] for row in self._statements.rows(drop, dialect.shard_values(shard, site, finding)))
        self.load((shard, url_id) for url_id in url_ids)
        for url in (self.ledger.urls[url_id] for url_id in url_ids):
            self.ledger.restate(url, Reason.WAITING, "")
            self.ledger.await_again(url)

    def await_again(self, pages: Sequence[PageKey]) -> None:
        """Queues waiting URLs that have no queue entry."""
        self.load(pages)
        for _, url_id in pages:
            self.ledger.await_again(self.ledger.urls[url_id])

    def _shard(self, completion: Completion) -> int:
        return self._statements.dialect.shard_of(completion.lease.site)

    # writing ---------------------------------------------------------------------------------------------------------

    def write(self, *, first_seq: int = 0) -> int:
        """Writes all changes except the counters, which the caller may still change.

        first_seq: number of the first new queue entry, if the database does not number them. Returns the next number.
        """
        ledger, statements, dialect = self.ledger, self._statements, self._statements.dialect
        statements.insert("url", _NEW_COLUMNS, [_NEW_URL(url) for url in ledger.urls.values() if url.is_new])
        changed = [url for url in ledger.urls.values() if url.is_touched and not url.is_new]
        past = [
            (url.shard, url.id, ledger.run_id, *self._past[url.id])
            for url in changed
            if url.first_seen < self._run_started and self._past[url.id][:3] != _PAST_URL(url)[:3]
        ]
        statements.upsert("url_history", "url_id, run_id, reason, rule, status, depth", past)
        statements.update("url", _CHANGED_COLUMNS, [_CHANGED_URL(url) for url in changed])
        respelled = f"UPDATE url SET text = ? WHERE {dialect.here}id = ?"
        statements.change_rows(respelled, [(text, *dialect.shard_values(*page)) for page, text in ledger.respelled])
        statements.upsert("alias", _columns(AliasRow), ledger.aliases)
        statements.delete("doubtful", "url_id", sorted(set(ledger.vouched)))
        self._write_pages()
        links = rows.LinkChanges(ledger.run_id, ledger.now, ledger.new_links, ledger.seen_links, ledger.ended_links)
        statements.enter_links(links)
        statements.upsert(
            "freshness", _columns(FreshnessRow), ledger.fresh, key="url_id", update="checked, interval_s, gone_since"
        )
        columns, entries = _columns(QueueEntry), ledger.entries
        if dialect.has_sequences:
            statements.insert("queue", columns, entries)
        else:
            numbered = [(*entry, seq) for seq, entry in enumerate(entries, first_seq)]
            statements.insert("queue", f"{columns}, seq", numbered)
        self._write_visits()
        answers = sorted((shard_of_origin(statements, answer.origin), *astuple(answer)) for answer in ledger.robots)
        statements.upsert(
            "robots", "origin, status, cause, body, fetched, expires", answers,
            key="origin", update="status, cause, body, fetched, expires",
        )  # fmt: skip
        if ledger.handed_over:
            statements.insert("outbox", "part, message", [(0, *message) for message in ledger.handed_over])
        return first_seq + len(entries)

    def _write_pages(self) -> None:
        ledger, statements, dialect = self.ledger, self._statements, self._statements.dialect
        if ledger.new_pages:
            columns = ", ".join(ledger.new_pages[0][1])
            pages = [(shard, *page.values()) for shard, page in ledger.new_pages]
            statements.replace("page", columns, pages, ledger.replaced)
        past = [(*page, ledger.run_id, *fields) for page, fields in ledger.past_pages]
        statements.upsert("page_history", f"url_id, run_id, {', '.join(FIELDS)}", past)
        statements.delete("bad_link", "source", ledger.replaced)
        statements.insert("bad_link", rows.BAD_LINK_COLUMNS, ledger.bad_links)
        statements.delete("rendering", "url_id", ledger.replaced)
        statements.insert("rendering", rows.RENDERING_COLUMNS, ledger.renderings)
        for page in ledger.validators:
            update = f"UPDATE page SET {page.column} = ? WHERE {dialect.here}url_id = ? AND {page.column} <> ?"
            statements.change(update, (page.value, *dialect.shard_values(page.shard, page.url_id), page.value))

    def _write_visits(self) -> None:
        """Inserts visits in order, since the order identifies the latest."""
        statements, dialect = self._statements, self._statements.dialect
        visits = self.ledger.visits
        if not any(visit.look for visit in visits):
            statements.insert("visit", rows.VISIT_COLUMNS, [(visit.shard, *visit.row) for visit in visits])
            return
        for visit in visits:
            values = dialect.shard_values(visit.shard, *visit.row)
            marks = ", ".join("?" * len(values))
            insert = f"INSERT INTO visit ({dialect.shard}{rows.VISIT_COLUMNS}) VALUES ({marks}) RETURNING id"
            visit_id = statements.rows(insert, values)[0][0]
            if visit.look is not None:
                look = visit.look
                fragments = json.dumps(dict(look.fragments))
                row = (visit.shard, visit_id, look.media_type, look.title, look.h1, look.text, fragments)
                statements.upsert("look", "visit_id, media_type, title, h1, text, fragments", [row])

    # hosts -----------------------------------------------------------------------------------------------------------

    def store_traps(self, learned: Sequence[tuple[HostRef, TrapMemory]]) -> None:
        """Stores the changes of the hosts' trap detectors."""
        statements, dialect = self._statements, self._statements.dialect
        records = [
            (*host, record.key, json.dumps(record.__getstate__()))  # astuple copies deeply, in six times the time
            for host, changes in learned
            for record in changes.patterns
        ]
        key = f"host_id, {dialect.of_long_text.format('key')}"
        statements.upsert("family", "host_id, key, record", records, key=key, update="record")
        doubtful = {url_id: (host, doubt) for host, changes in learned for url_id, doubt in changes.doubts if doubt}
        keys = [(doubtful[url_id][0].shard, url_id) for url_id in sorted(doubtful)]
        doubts = []
        for (url_id,) in statements.at("id", "url", "id", keys):  # an alias may not be stored
            host, doubt = doubtful[url_id]
            doubts.append((host.shard, url_id, host.id, doubt))
        statements.upsert("doubtful", "url_id, host_id, doubt", doubts, key="url_id", update="doubt")
        certain = [(host.shard, url_id) for host, changes in learned for url_id, doubt in changes.doubts if not doubt]
        statements.delete("doubtful", "url_id", certain)
        shown = [(host, changes.lines) for host, changes in learned if changes.lines.keys]
        rows_shown = [(*host, lines.first, lines.keys) for host, lines in shown]
        statements.upsert("shown", "host_id, first, keys", rows_shown, key="host_id, first", update="keys")
        passed = f"DELETE FROM shown WHERE {dialect.here}host_id = ? AND first + length(keys) / 4 <= ?"
        past = [(*dialect.shard_values(*host), lines.needed_from) for host, lines in shown if lines.needed_from]
        statements.change_rows(passed, past)

    def drop(self, host: HostRef, given_up: GivenUp) -> None:
        """Drops the queued entries of an origin that is given up, until a new run.

        The host is locked, and everything except the counters is written. Origins of one host differ only in the
        scheme.
        """
        statements, dialect, sums = self._statements, self._statements.dialect, self.ledger.sums
        text = f"coalesce(text, (SELECT u.text FROM url u WHERE {dialect.beside('u', 'queue')}u.id = queue.url_id))"
        listed = f"FROM queue WHERE {dialect.here}host_id = ? AND substr({text}, 1, 5) = ?"
        values = (*dialect.shard_values(*host), given_up.origin[:5])
        waiting = f"reason = 'waiting' AND {dialect.here}id IN (SELECT url_id {listed} AND purpose = 'page')"
        places = (*dialect.shard_values(host.shard), *values)
        if not dialect.has_triggers:
            statements.change(
                f"INSERT INTO url_history ({dialect.shard}url_id, run_id, reason, rule, status, depth)"
                f" SELECT {dialect.shard}id, ?, reason, rule, status, depth FROM url WHERE {waiting}"
                " AND first_seen < ? ON CONFLICT DO NOTHING",
                (self.ledger.run_id, *places, self._run_started),
            )
        update = f"UPDATE url SET reason = ?, rule = ? WHERE {waiting}"
        dropped = statements.change(update, (given_up.reason.value, given_up.rule, *places))
        sums.tallies["reason:waiting"] -= dropped
        sums.tallies["reason:" + given_up.reason.value] += dropped
        entries = statements.rows(f"DELETE {listed} RETURNING purpose, text", values)
        sums.counts[RefreshFinding.UNREACHED.value] += sum(purpose == RECHECK for purpose, _ in entries)
        # checked link targets have no reason, so that a visit records that they were skipped
        outcome = Skipped(given_up.reason, given_up.rule)
        visits = [
            Visit(Request(Url(target), Purpose(purpose)), self.ledger.now, 0.0, outcome)
            for purpose, target in entries
            if purpose in CHECKS
        ]
        visit_rows = [(host.shard, *visit_row(self.ledger.run_id, 0, visit)) for visit in visits]
        statements.insert("visit", rows.VISIT_COLUMNS, visit_rows)
        less = f"UPDATE host SET pending = pending - ? WHERE {dialect.here}id = ?"
        statements.change(less, (len(entries), *dialect.shard_values(*host)))


def forget_entries(statements: Statements, host: HostRef, stale: Sequence[tuple[int, int]]) -> None:
    """Drops entries (priority, seq) whose URL was completed through another entry (sitemap and link)."""
    dialect = statements.dialect
    dropped = statements.delete("queue", "host_id, priority, seq", [(*host, *entry) for entry in stale])
    less = f"UPDATE host SET pending = pending - ? WHERE {dialect.here}id = ?"
    statements.change(less, (len(dropped), *dialect.shard_values(*host)))


def shard_of_origin(statements: Statements, origin: Origin) -> int:
    return statements.dialect.shard_of(site_key(Url(f"{origin}/")))
