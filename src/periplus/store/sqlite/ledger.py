"""What one transaction changes: to-do lists, URLs' states, visits, sums and pages."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, replace
from itertools import chain

from periplus.model.frontier import (
    PRIORITY_NONE,
    READ,
    Batch,
    Candidate,
    Completion,
    Finding,
    GivenUp,
    HostState,
    SideRequest,
    TrapChanges,
    finding_of,
)
from periplus.model.page import Document, LinkKind
from periplus.model.visit import CHECKS, Fetched, Purpose, Reason, Redirected, Request, Skipped, Unchanged, Visit
from periplus.model.web import HostKey, SiteKey, Url
from periplus.settings import Storage
from periplus.store.bodies import PAGES_FOR_DICTIONARY, train
from periplus.store.rows import PackedBody, bad_link_rows, link_rows, packed, page_row, redirect_row, visit_row
from periplus.store.sqlite import checks
from periplus.store.sqlite.page_rows import Contents
from periplus.store.sqlite.schema import History
from periplus.store.standing import RECHECK, UrlState, met_again

# Bytes are packed before the write lock is taken; within it there are only inserts.

PAGE_COLUMNS = 30
LINK_COLUMNS = 10
LINKS_AT_ONCE = 20  # rows of one statement: 82 us for 60 links instead of 108 one by one; 30 gain nothing more
_LINK_VALUES = "(" + "?," * (LINK_COLUMNS - 1) + "?)"
_KNOWN_LINK = (
    " ON CONFLICT (source, target, kind, position, nofollow) DO UPDATE"
    " SET anchor = excluded.anchor, fragments = excluded.fragments, times = excluded.times, "
    "last_seen = excluded.last_seen"
)
_UPSERT_LINK = f"INSERT INTO link VALUES {_LINK_VALUES}{_KNOWN_LINK}"
_UPSERT_LINKS = f"INSERT INTO link VALUES {', '.join([_LINK_VALUES] * LINKS_AT_ONCE)}{_KNOWN_LINK}"


class PageWriter:
    """Packs and inserts pages. Keeps in memory which dictionary each site has."""

    def __init__(self, connection: sqlite3.Connection, storage: Storage, history: History) -> None:
        self._connection = connection
        self.history = history
        self._storage = storage
        self._contents = Contents(connection)
        self._dictionaries: dict[str, int] = {}
        self._try_at: dict[str, int] = {}  # pages at which to try again to learn a dictionary, for sites that gave none

    def pack(self, completion: Completion) -> PackedBody | None:
        """The completion's body and text, compressed; None when there is nothing to keep."""
        return packed(completion, self._storage, self._contents.codec, self._dictionaries.get(completion.lease.site))

    def store_body(self, packed: PackedBody, body: bytes) -> int:
        """The row that holds these bytes and this text, with the XML that was made of them."""
        body_id = self._body_row(packed, body)
        if packed.xml:
            data, media_type = packed.xml
            self._connection.execute("INSERT OR REPLACE INTO xml VALUES (?, ?, ?)", (body_id, media_type, data))
        return body_id

    def _body_row(self, packed: PackedBody, body: bytes) -> int:
        """An earlier row when it holds exactly the same (equal digest, then compared).

        The text too, for the same bytes read differently under another charset.
        """
        find = "SELECT id, dictionary_id, data, text, blocks FROM body WHERE md5 = ? AND size = ?"
        for body_id, dictionary_id, data, text, blocks in self._connection.execute(find, (packed.md5, packed.size)):
            if (
                text != packed.text
                or bool(data) != bool(packed.data)
                or (data and self._contents.restore(data, dictionary_id) != body)
            ):
                continue
            if blocks is None and packed.blocks is not None:  # stored before blocks were
                self._connection.execute("UPDATE body SET blocks = ? WHERE id = ?", (packed.blocks, body_id))
            elif blocks != packed.blocks:
                continue
            return int(body_id)
        insert = "INSERT INTO body (md5, dictionary_id, size, data, text, blocks) VALUES (?, ?, ?, ?, ?, ?)"
        row = self._connection.execute(
            insert, (packed.md5, packed.dictionary_id, packed.size, packed.data, packed.text, packed.blocks)
        )
        return int(row.lastrowid or 0)

    def store_page(self, completion: Completion, document: Document, packed: PackedBody | None, now: float) -> bool:
        """The page, its links and bad links, in place of what an earlier visit left; of a link that stays,
        first_seen stays too.

        What is replaced goes to history. True: the page has other words, fields or links than
        before, or there was none.
        """
        run = self._connection.execute
        source = completion.task.url_id
        outcome = completion.visit.outcome
        body_id = self.store_body(packed, outcome.body) if packed and isinstance(outcome, Fetched) else None
        before = self.history.page(source)
        # a redirect's link too
        linked = run("SELECT 1 FROM link WHERE source = ? LIMIT 1", (source,)).fetchone() is not None
        row = page_row(completion, document, body_id, now)
        run("INSERT OR REPLACE INTO page VALUES (" + "?," * (PAGE_COLUMNS - 1) + "?)", row)
        self.store_links(link_rows(source, document, now))
        changed = before is None or self.history.replaced(source, before)
        if linked:
            changed |= bool(self.history.close_links(source, now) or self.history.opened_links(source, now))
        if before is not None:
            run("DELETE FROM bad_link WHERE source = ?", (source,))
        self._connection.executemany("INSERT INTO bad_link VALUES (?, ?, ?, ?, ?, ?)", bad_link_rows(source, document))
        return changed

    def renew_validators(self, url_id: int, unchanged: Unchanged) -> None:
        """By what the page can be asked for next time: RFC 9110, 15.4.5 has a 304 say what is new of it,
        and a 200 says all.
        """
        said = {"etag": unchanged.headers.get("etag"), "last_modified_field": unchanged.headers.get("last-modified")}
        for column, value in said.items():
            if value or unchanged.status == 200:
                self._connection.execute(
                    f"UPDATE page SET {column} = ? WHERE url_id = ? AND {column} <> ?", (value, url_id, value)
                )

    def store_links(self, rows: Sequence[tuple[object, ...]]) -> None:
        whole = len(rows) - len(rows) % LINKS_AT_ONCE
        for start in range(0, whole, LINKS_AT_ONCE):
            self._connection.execute(_UPSERT_LINKS, tuple(chain.from_iterable(rows[start : start + LINKS_AT_ONCE])))
        self._connection.executemany(_UPSERT_LINK, rows[whole:])

    def learn_dictionary(self, site: str) -> bytes:
        """A dictionary for a site that has enough pages and none yet,
        trained outside of any transaction; else empty.
        """
        if site in self._dictionaries:
            return b""
        found = self._connection.execute(
            "SELECT id, fetched, dictionary_id FROM site WHERE key = ?", (site,)
        ).fetchone()
        if found and found[2] is not None:  # another worker was first
            self._use(site, found[2])
            return b""
        if not found or found[1] < self._try_at.get(site, PAGES_FOR_DICTIONARY):
            return b""
        # in case this fails: of a site of errors or tiny pages there is nothing to learn
        self._try_at[site] = found[1] * 2
        kept = (
            "SELECT b.data, b.dictionary_id FROM page p JOIN url u ON u.id = p.url_id JOIN host h ON h.id = u.host_id"
            " JOIN body b ON b.id = p.body_id"
        )
        rows = self._connection.execute(
            kept + " WHERE h.site_id = ? AND length(b.data) > 0 LIMIT ?", (found[0], PAGES_FOR_DICTIONARY)
        ).fetchall()
        return train([self._contents.restore(data, dictionary_id) for data, dictionary_id in rows])

    def store_dictionary(self, site: str, data: bytes) -> None:
        found = self._connection.execute("SELECT id, dictionary_id FROM site WHERE key = ?", (site,)).fetchone()
        if found[1] is None:
            row = self._connection.execute("INSERT INTO dictionary (data) VALUES (?)", (data,))
            self._connection.execute("UPDATE site SET dictionary_id = ? WHERE id = ?", (row.lastrowid, found[0]))

    def _use(self, site: str, dictionary_id: int) -> None:
        self._contents.learn(dictionary_id)
        self._dictionaries[site] = dictionary_id


# The sums (entries per host, pages per site, URLs per reason) are gathered in memory and entered once,
# when the transaction ends.

_INSERT_VISIT = (
    "INSERT INTO visit (run_id, url_id, text, purpose, started, took_s, outcome, status, "
    "detail, wire_bytes, address, head)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Ledger:
    """Writes within a transaction that its owner opened. `open` before the first entry, `close` after the last."""

    def __init__(self, connection: sqlite3.Connection, run_id: int, pages: PageWriter) -> None:
        self._connection = connection
        self._run_id = run_id
        self._pages, self.history = pages, pages.history
        self._host_ids: dict[HostKey, int] = {}
        self._pending: Counter[int] = Counter()
        self._fetched: Counter[int] = Counter()
        self._tallies: Counter[str] = Counter()
        self._seq = 0

    def open(self) -> None:
        self._pending.clear()
        self._fetched.clear()
        self._tallies.clear()
        self._host_ids.clear()  # a rolled-back transaction may have taken hosts with it
        self.history.open()
        self._seq = self._first_seq = int(
            self._connection.execute("SELECT value FROM meta WHERE name = 'seq'").fetchone()[0]
        )

    def close(self) -> None:
        many, one = self._connection.executemany, self._connection.execute
        many(
            "UPDATE host SET pending = pending + ? WHERE id = ?",
            [(change, host_id) for host_id, change in self._pending.items() if change],
        )
        fetched = [(count, host_id) for host_id, count in self._fetched.items()]
        many("UPDATE host SET fetched = fetched + ? WHERE id = ?", fetched)
        many("UPDATE site SET fetched = fetched + ? WHERE id = (SELECT site_id FROM host WHERE id = ?)", fetched)
        change = (self._tallies.pop("fetched", 0), self._tallies.pop("wire_bytes", 0), self._run_id)
        one("UPDATE run SET fetched = fetched + ?, wire_bytes = wire_bytes + ? WHERE id = ?", change)
        upsert = "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
        many(upsert, [(name, count) for name, count in self._tallies.items() if count])
        self.history.close()
        if self._seq != self._first_seq:
            one("UPDATE meta SET value = ? WHERE name = 'seq'", (str(self._seq),))

    def record(self, batch: Batch, now: float) -> None:
        visits = [visit_row(self._run_id, 0, visit) for visit in batch.visits]
        self._connection.executemany(_INSERT_VISIT, visits)
        robots = [(r.origin, r.status, r.cause, r.body, r.fetched, r.expires) for r in batch.robots]
        self._connection.executemany("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?, ?, ?)", robots)
        for side_request in batch.side_requests:
            self.send(side_request, now)
        for site, finding in batch.fallen:
            self._retract(site, finding)

    def complete(self, completion: Completion, body: PackedBody | None, now: float) -> None:
        """One task's end: its entry leaves the to-do list, and everything that was learned enters,
        in one transaction.
        """
        run, task, visit = self._connection.execute, completion.task, completion.visit
        listed = run(
            "DELETE FROM queue WHERE host_id = ? AND priority = ? AND seq = ?", (task.host_id, task.priority, task.seq)
        ).rowcount
        self._pending[task.host_id] -= listed  # 0: its host was given up while it was under way
        asked = not isinstance(visit.outcome, Skipped)
        if asked and (task.url_id or task.request.purpose in CHECKS):
            self._tallies["fetched"] += 1
            self._tallies["wire_bytes"] += visit.wire_bytes
            self._fetched[task.host_id] += 1
        news = True
        if completion.reason is not None and task.url_id:
            news = self._found(completion, completion.reason, body, now)
        elif completion.reason is None and listed:
            respelled = task.request.url != visit.request.url  # it redirects to another spelling of itself
            if task.url_id and respelled:
                run("UPDATE url SET text = ? WHERE id = ?", (task.request.url, task.url_id))
            again = replace(
                task.request, attempt=task.request.attempt + (asked and not respelled), etag="", last_modified=""
            )
            priority = task.priority if completion.retry_priority is None else completion.retry_priority
            self._enqueue(task.host_id, priority, task.url_id, again, now + completion.retry_in_s, recheck=task.recheck)
        if news and (asked or completion.reason is not None):  # else it was only put off
            visit_id = run(_INSERT_VISIT, visit_row(self._run_id, task.url_id, visit)).lastrowid
            if completion.look is not None and visit_id:
                checks.store_look(self._connection, visit_id, completion.look)
        for candidate in completion.candidates:
            self.offer(candidate, now)

    def _found(self, completion: Completion, reason: Reason, body: PackedBody | None, now: float) -> bool:
        """Enters what a task brought. False: a refresh found everything as it was, of which no visit is kept."""
        task, outcome = completion.task, completion.visit.outcome
        if isinstance(outcome, Unchanged):
            self._pages.renew_validators(task.url_id, outcome)
            self.history.note(task.url_id, Finding.UNCHANGED, now)
            return False
        before, rule = self._connection.execute("SELECT reason, rule FROM url WHERE id = ?", (task.url_id,)).fetchone()
        self._conclude(completion, reason)
        changed = False
        if completion.document is not None:
            changed = self._pages.store_page(completion, completion.document, body, now)
        if isinstance(outcome, Redirected):
            self._pages.store_links([redirect_row(task.url_id, outcome, now)])
            if task.recheck:
                self.history.close_links(task.url_id, now, only=LinkKind.REDIRECT)
        if not task.recheck:
            if reason in READ:
                self.history.note(task.url_id, Finding.NEW, now)
            return True
        finding = finding_of(Reason(before), reason, changed or rule != completion.rule)
        self.history.note(task.url_id, finding, now)
        return finding is not Finding.UNCHANGED

    def _conclude(self, completion: Completion, reason: Reason) -> None:
        """The URL gets its reason: it was waiting, save when a refresh asked,
        or its host was given up while it was under way.
        """
        run, outcome, url_id = self._connection.execute, completion.visit.outcome, completion.task.url_id
        visited = None if isinstance(outcome, Skipped) else completion.visit.started
        update = "UPDATE url SET reason = ?, rule = ?, status = ?, visited = coalesce(?, visited) WHERE id = ?"
        row = (reason.value, completion.rule, getattr(outcome, "status", None), visited, url_id)
        before = Reason.WAITING.value
        if not run(update + " AND reason = 'waiting'", row).rowcount:
            before = run("SELECT reason FROM url WHERE id = ?", (url_id,)).fetchone()[0]
            run(update, row)
        self._tallies["reason:" + before] -= 1
        self._tallies["reason:" + reason.value] += 1

    def offer(self, candidate: Candidate, now: float, *, reopen: bool = False) -> bool:
        """Registers a URL if it is new, raises it if this link is a better one. True: it is newly waiting."""
        host_id = self._host_id(candidate.host, candidate.site)
        reason = candidate.reason
        if reason in (Reason.ALIAS, Reason.RULE):
            return self._note_alias(host_id, candidate, now)
        insert = (
            "INSERT OR IGNORE INTO url (id, text, host_id, reason, depth, rule, in_sitemap, first_seen)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        row = (
            candidate.url_id,
            candidate.url,
            host_id,
            reason.value,
            candidate.depth,
            candidate.rule,
            candidate.in_sitemap,
            now,
        )
        if not self._connection.execute(insert, row).rowcount:
            return self._raise(host_id, candidate, reopen)
        self._tallies["known"] += 1
        self._tallies["reason:" + reason.value] += 1
        return reason is Reason.WAITING and self._await(host_id, candidate, candidate.depth)

    def _note_alias(self, host_id: int, candidate: Candidate, now: float) -> bool:
        """A URL that is not to be fetched: it has another address's page, or none.

        Known ones keep what they are; always False.
        """
        run, reason = self._connection.execute, candidate.reason.value
        insert = (
            "INSERT OR IGNORE INTO url (id, text, host_id, reason, depth, rule, in_sitemap, first_seen)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        row = (
            candidate.url_id,
            candidate.url,
            host_id,
            reason,
            candidate.depth,
            candidate.rule,
            candidate.in_sitemap,
            now,
        )
        if run(insert, row).rowcount:
            self._tallies["known"] += 1
            self._tallies["reason:" + reason] += 1
        known = (
            "INSERT OR IGNORE INTO alias (url_id, page_id, rule, learned, was) SELECT id, ?, ?, ?, 'waiting' FROM url"
            " WHERE id = ? AND reason = ?"
        )
        run(known, (candidate.page, candidate.rule, candidate.learned, candidate.url_id, reason))
        return False

    def _retract(self, site: SiteKey, finding: str) -> None:
        """What was skipped because of a learned finding waits again."""
        of_site = (
            "url_id IN (SELECT id FROM url WHERE host_id IN (SELECT h.id FROM host h"
            " JOIN site s ON s.id = h.site_id WHERE s.key = ?))"
        )
        find = (
            "SELECT url_id FROM alias WHERE learned = 1"
            f" AND instr('; ' || rule || '; ', '; ' || ? || '; ') > 0 AND {of_site}"
        )
        for (url_id,) in self._connection.execute(find, (finding, site)).fetchall():
            self._connection.execute("DELETE FROM alias WHERE url_id = ?", (url_id,))
            self.restate(url_id, Reason.WAITING, "")
            self.await_again(url_id)

    def restate(self, url_id: int, reason: Reason, rule: str) -> None:
        """Gives a URL another reason, and nothing else: its entry in a to-do list is the caller's business."""
        before = self._connection.execute("SELECT reason FROM url WHERE id = ?", (url_id,)).fetchone()[0]
        self._connection.execute("UPDATE url SET reason = ?, rule = ? WHERE id = ?", (reason.value, rule, url_id))
        self._tallies["reason:" + before] -= 1
        self._tallies["reason:" + reason.value] += 1

    def await_again(self, url_id: int) -> None:
        """Enters a waiting URL that stands in no to-do list."""
        host_id, text, depth = self._connection.execute(
            "SELECT host_id, text, depth FROM url WHERE id = ?", (url_id,)
        ).fetchone()
        self._enqueue(host_id, PRIORITY_NONE if depth is None else depth, url_id, Request(Url(text)), 0.0)

    def clear_lists(self) -> None:
        """Takes from the to-do lists the pages that wait no longer."""
        stale = (
            "FROM queue WHERE purpose = 'page' AND url_id <> 0 AND url_id NOT IN (SELECT id"
            " FROM url WHERE reason = 'waiting')"
        )
        for host_id, entries in self._connection.execute(
            f"SELECT host_id, count(*) {stale} GROUP BY host_id"
        ).fetchall():
            self._pending[host_id] -= entries
        self._connection.execute(f"DELETE {stale}")

    def forget_url(self, url_id: int) -> None:
        """Drops a URL that was never seen. Its entry in a to-do list, if any, goes with `clear_lists`."""
        reason = self._connection.execute("SELECT reason FROM url WHERE id = ?", (url_id,)).fetchone()[0]
        self._connection.execute("DELETE FROM url WHERE id = ?", (url_id,))
        self._tallies["known"] -= 1
        self._tallies["reason:" + reason] -= 1

    def _await(self, host_id: int, candidate: Candidate, depth: int | None) -> bool:
        """Enters a waiting URL into the to-do list; always True."""
        self._enqueue(
            host_id,
            PRIORITY_NONE if depth is None else depth,
            candidate.url_id,
            Request(candidate.url, hops=candidate.hops),
            0.0,
        )
        return True

    def _raise(self, host_id: int, candidate: Candidate, reopen: bool) -> bool:
        """A known URL seen again: notes the shorter way or the sitemap. True: it was entered into the to-do list."""
        run, url_id = self._connection.execute, candidate.url_id
        if candidate.vouched and not reopen:
            run("DELETE FROM doubtful WHERE url_id = ?", (url_id,))
        known = UrlState(*run("SELECT reason, depth, in_sitemap FROM url WHERE id = ?", (url_id,)).fetchone())
        now, enters = met_again(known, candidate, reopen=reopen)
        if now.reason != known.reason:
            run("UPDATE url SET reason = ?, rule = '', depth = ?, in_sitemap = ? WHERE id = ?", (*now, url_id))
            self._tallies["reason:" + known.reason] -= 1
            self._tallies["reason:" + now.reason] += 1
        elif now != known:
            run("UPDATE url SET depth = ?, in_sitemap = ? WHERE id = ?", (now.depth, now.in_sitemap, url_id))
        return enters and self._await(host_id, candidate, now.depth)

    def send(self, side_request: SideRequest, now: float) -> None:
        """Enters a side request into its host's list, unless it stands there already,
        or redirects lead to what was checked before.
        """
        host_id = self._host_id(side_request.host, side_request.site)
        request = side_request.request
        if (
            request.hops
            and request.purpose in CHECKS
            and checks.was_asked(self._connection, request.url, request.purpose.value)
        ):
            return
        # +: by queue_text, not all of a host
        twin = "SELECT 1 FROM queue WHERE +host_id = ? AND +priority = ? AND text = ? AND about = ? AND purpose = ?"
        if (
            self._connection.execute(
                twin, (host_id, side_request.priority, request.url, request.about, request.purpose.value)
            ).fetchone()
            is None
        ):
            self._enqueue(
                host_id, side_request.priority, 0, request, now + side_request.in_s if side_request.in_s else 0.0
            )

    def _enqueue(
        self, host_id: int, priority: int, url_id: int, request: Request, not_before: float, *, recheck: bool = False
    ) -> None:
        text = None if url_id else request.url
        row = (
            host_id,
            priority,
            self._seq,
            url_id,
            text,
            RECHECK if recheck else request.purpose.value,
            request.about,
            request.hops,
            request.attempt,
            not_before,
        )
        self._connection.execute("INSERT INTO queue VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._seq += 1
        self._pending[host_id] += 1

    def _host_id(self, host: HostKey, site: SiteKey) -> int:
        known = self._host_ids.get(host)
        if known is None:
            self._connection.execute("INSERT OR IGNORE INTO site (key) VALUES (?)", (site,))
            self._connection.execute(
                "INSERT OR IGNORE INTO host (key, site_id) SELECT ?, id FROM site WHERE key = ?", (host, site)
            )
            known = int(self._connection.execute("SELECT id FROM host WHERE key = ?", (host,)).fetchone()[0])
            self._host_ids[host] = known
        return known

    def settle(self, state: HostState, now: float) -> None:
        """A host's pace, and its lease's end if that is wished."""
        run, host_id = self._connection.execute, state.lease.host_id
        update = (
            "UPDATE host SET next_at = ?, delay_s = ?, rate = ?, strikes = ?, answered = ?, waits_for = ? WHERE id = ?"
        )
        run(
            update,
            (now + state.wait_s, state.delay_s, state.rate, state.strikes, state.answered, state.waits_for, host_id),
        )
        if state.traps:
            self._keep_traps(host_id, state.traps)
        for given_up in state.given_up:
            self._drop(host_id, given_up, now)
        if state.release:
            run("UPDATE host SET lease_by = NULL WHERE id = ?", (host_id,))

    def _keep_traps(self, host_id: int, changes: TrapChanges) -> None:
        """What a host's trap detector learned."""
        run, many, lines = self._connection.execute, self._connection.executemany, changes.lines
        many(
            "INSERT OR REPLACE INTO family VALUES (?, ?, ?)",
            [(host_id, record.key, json.dumps(astuple(record))) for record in changes.families],
        )
        # one that was an alias is not there
        doubtful = "INSERT OR REPLACE INTO doubtful SELECT id, host_id, ? FROM url WHERE id = ?"
        many(doubtful, [(doubt, url_id) for url_id, doubt in changes.doubts if doubt])
        many("DELETE FROM doubtful WHERE url_id = ?", [(url_id,) for url_id, doubt in changes.doubts if not doubt])
        if lines.keys:
            run("INSERT OR REPLACE INTO shown VALUES (?, ?, ?)", (host_id, lines.first, lines.keys))
            run("DELETE FROM shown WHERE host_id = ? AND first + length(keys) / 4 <= ?", (host_id, lines.needed_from))

    def _drop(self, host_id: int, given_up: GivenUp, now: float) -> None:
        """What still waits for an origin that is given up is dropped, until a new run.

        Origins of one host differ in their scheme.
        """
        run, outcome = self._connection.execute, Skipped(given_up.reason, given_up.rule)
        text = "coalesce(text, (SELECT u.text FROM url u WHERE u.id = url_id))"
        listed, values = f"FROM queue WHERE host_id = ? AND substr({text}, 1, 5) = ?", (host_id, given_up.origin[:5])
        update = (
            "UPDATE url SET reason = ?, rule = ? WHERE reason = 'waiting'"
            f" AND id IN (SELECT url_id {listed} AND purpose = 'page')"
        )
        dropped = run(update, (outcome.reason.value, outcome.rule, *values)).rowcount
        self._tallies["reason:waiting"] -= dropped
        self._tallies["reason:" + outcome.reason.value] += dropped
        # links' targets have no reason of their own: that they were not asked for is told by a visit
        checks_waiting = run(
            f"SELECT text, purpose {listed} AND purpose IN ('head', 'check') AND text IS NOT NULL", values
        ).fetchall()
        visits = [Visit(Request(Url(text), Purpose(purpose)), now, 0.0, outcome) for text, purpose in checks_waiting]
        self._connection.executemany(_INSERT_VISIT, [visit_row(self._run_id, 0, visit) for visit in visits])
        self.history.unreached(run(f"SELECT count(*) {listed} AND purpose = ?", (*values, RECHECK)).fetchone()[0])
        self._pending[host_id] -= run(f"DELETE {listed}", values).rowcount
