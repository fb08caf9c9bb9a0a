"""The statements by which a folder's ledger is loaded and written; what they change is decided in `store.ledger`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from itertools import chain
from operator import attrgetter

from periplus.model.frontier import Batch, Candidate, Completion, Finding, GivenUp, HostState, SideRequest, TrapChanges
from periplus.model.visit import CHECKS, Fetched, Purpose, Reason, Request, Skipped, Unchanged, Visit
from periplus.model.web import HostKey, SiteKey, Url
from periplus.settings import Storage
from periplus.store import rows
from periplus.store.bodies import PAGES_FOR_DICTIONARY, train
from periplus.store.ledger import AliasRow, HostRef, Ledger, QueueEntry, Sums, UrlRow, brings_content
from periplus.store.rows import PackedBody, packed, visit_row
from periplus.store.sqlite import checks
from periplus.store.sqlite.page_rows import Contents
from periplus.store.standing import FIELDS, RECHECK

LINKS_AT_ONCE = 20  # rows of one statement: 82 us for 60 links instead of 108 one by one; 30 gain nothing more
_AMONG = "IN (SELECT value FROM json_each(?))"
_URL = "id, text, host_id, reason, depth, rule, status, in_sitemap, first_seen, visited"
_NEW_URL = attrgetter(*_URL.split(", "))
_CHANGED_URL = attrgetter("reason", "depth", "rule", "status", "in_sitemap", "visited", "id")
_LINK_KEY = "source, target, kind, position, nofollow"


def _insert(table: str, columns: str, verb: str = "INSERT", *, times: int = 1) -> str:
    values = f"({', '.join('?' * (columns.count(',') + 1))})"
    return f"{verb} INTO {table} ({columns}) VALUES {', '.join([values] * times)}"


_KNOWN_LINK = (
    f" ON CONFLICT ({_LINK_KEY}) DO UPDATE SET anchor = excluded.anchor, fragments = excluded.fragments,"
    " times = excluded.times, last_seen = excluded.last_seen"
)
_INSERT_LINK = _insert("link", rows.LINK_COLUMNS) + _KNOWN_LINK
_INSERT_LINKS = _insert("link", rows.LINK_COLUMNS, times=LINKS_AT_ONCE) + _KNOWN_LINK
_INSERT_VISIT = _insert("visit", rows.VISIT_COLUMNS)
_ENTRY = "host_id, priority, url_id, text, purpose, about, hops, attempt, not_before"
assert f"shard, {_ENTRY}" == ", ".join(QueueEntry._fields)


class BodyWriter:
    """Packs bodies outside of any transaction, and stores them within. Keeps in memory which dictionary a site has."""

    def __init__(self, connection: sqlite3.Connection, storage: Storage) -> None:
        self._connection, self._storage = connection, storage
        self._contents = Contents(connection)
        self._dictionaries: dict[str, int] = {}
        self._try_at: dict[str, int] = {}  # pages at which to try again to learn a dictionary, for sites that gave none

    def pack(self, completion: Completion) -> PackedBody | None:
        """The completion's body and text, compressed; None when there is nothing to keep."""
        return packed(completion, self._storage, self._contents.codec, self._dictionaries.get(completion.lease.site))

    def store(self, body: PackedBody, content: bytes) -> int:
        """The row that holds these bytes and this text, with the XML that was made of them."""
        body_id = self._same(body, content)
        if body_id is None:
            insert = _insert("body", "md5, dictionary_id, size, data, text, blocks")
            values = (body.md5, body.dictionary_id, body.size, body.data, body.text, body.blocks)
            body_id = int(self._connection.execute(insert, values).lastrowid or 0)
        if body.xml:
            data, media_type = body.xml
            insert = _insert("xml", "body_id, media_type, data", "INSERT OR REPLACE")
            self._connection.execute(insert, (body_id, media_type, data))
        return body_id

    def _same(self, body: PackedBody, content: bytes) -> int | None:
        """An earlier row when it holds exactly the same (equal digest, then compared).

        The text too, for the same bytes read differently under another charset.
        """
        find = "SELECT id, dictionary_id, data, text, blocks FROM body WHERE md5 = ? AND size = ?"
        for body_id, dictionary_id, data, text, blocks in self._connection.execute(find, (body.md5, body.size)):
            if (
                text != body.text
                or bool(data) != bool(body.data)
                or (data and self._contents.restore(data, dictionary_id) != content)
            ):
                continue
            if blocks is None and body.blocks is not None:  # stored before blocks were
                self._connection.execute("UPDATE body SET blocks = ? WHERE id = ?", (body.blocks, body_id))
            elif blocks != body.blocks:
                continue
            return int(body_id)
        return None

    def learn_dictionary(self, site: str) -> bytes:
        """A dictionary for a site that has enough pages and none yet, trained outside of transactions; else empty."""
        if site in self._dictionaries:
            return b""
        row = self._connection.execute("SELECT id, fetched, dictionary_id FROM site WHERE key = ?", (site,)).fetchone()
        if row is None:
            return b""
        site_id, pages, dictionary_id = row
        if dictionary_id is not None:  # another worker was first
            self._contents.learn(dictionary_id)
            self._dictionaries[site] = dictionary_id
            return b""
        if pages < self._try_at.get(site, PAGES_FOR_DICTIONARY):
            return b""
        # in case this fails: of a site of errors or tiny pages there is nothing to learn
        self._try_at[site] = pages * 2
        samples = self._connection.execute(
            "SELECT b.data, b.dictionary_id FROM page p JOIN url u ON u.id = p.url_id JOIN host h ON h.id = u.host_id"
            " JOIN body b ON b.id = p.body_id WHERE h.site_id = ? AND length(b.data) > 0 LIMIT ?",
            (site_id, PAGES_FOR_DICTIONARY),
        ).fetchall()
        return train([self._contents.restore(data, dictionary_id) for data, dictionary_id in samples])

    def store_dictionary(self, site: str, data: bytes) -> None:
        site_id, dictionary_id = self._connection.execute(
            "SELECT id, dictionary_id FROM site WHERE key = ?", (site,)
        ).fetchone()
        if dictionary_id is None:
            row = self._connection.execute("INSERT INTO dictionary (data) VALUES (?)", (data,))
            self._connection.execute("UPDATE site SET dictionary_id = ? WHERE id = ?", (row.lastrowid, site_id))


class FolderLedger:
    """Loads and writes ledgers within a transaction that its owner opened.

    `open` before the first entry, `close` after the last: sums (entries per host, pages per site, URLs per reason) are
    gathered in memory and entered once, when the transaction ends.
    """

    def __init__(self, connection: sqlite3.Connection, run_id: int) -> None:
        self._connection, self._run_id = connection, run_id
        self._hosts: dict[HostKey, HostRef] = {}
        self._sums = Sums()
        self._first_seq = self._seq = 0  # of entries of lists

    def open(self) -> None:
        self._sums = Sums()
        self._hosts = {}  # a rolled-back transaction may have taken hosts with it
        row = self._connection.execute("SELECT value FROM meta WHERE name = 'seq'").fetchone()
        self._seq = self._first_seq = int(row[0])

    def close(self) -> None:
        connection, sums = self._connection, self._sums
        pending = [(change, host.id) for host, change in sums.pending.items() if change]
        connection.executemany("UPDATE host SET pending = pending + ? WHERE id = ?", pending)
        fetched = [(count, host.id) for host, count in sums.fetched.items()]
        connection.executemany("UPDATE host SET fetched = fetched + ? WHERE id = ?", fetched)
        of_site = "UPDATE site SET fetched = fetched + ? WHERE id = (SELECT site_id FROM host WHERE id = ?)"
        connection.executemany(of_site, fetched)
        of_run = "UPDATE run SET fetched = fetched + ?, wire_bytes = wire_bytes + ? WHERE id = ?"
        connection.execute(of_run, (sums.counts.pop("fetched", 0), sums.counts.pop("wire_bytes", 0), self._run_id))
        add = " ON CONFLICT DO UPDATE SET value = value + excluded.value"
        tallies = [(name, count) for name, count in sums.tallies.items() if count]
        connection.executemany(_insert("tally", "name, value") + add, tallies)
        counts = [(self._run_id, name, count) for name, count in sums.counts.items() if count]
        connection.executemany(_insert("run_count", "run_id, name, value") + add, counts)
        if self._seq != self._first_seq:
            connection.execute("UPDATE meta SET value = ? WHERE name = 'seq'", (str(self._seq),))

    # entries ---------------------------------------------------------------------------------------------------------

    def enter(
        self, batch: Batch, completions: Sequence[Completion], body_ids: Sequence[int | None], now: float
    ) -> None:
        """All that a batch brings, but for the states of its hosts.

        completions: those of the batch whose lease holds; body_ids: of what is stored of each one's page.
        """
        ledger = Ledger(self._run_id, now, self._sums)
        self._take(ledger, completions)
        self._load(ledger, list(chain.from_iterable(one.candidates for one in completions)), batch.side_requests)
        self._load_urls(ledger, [one.task.url_id for one in completions if one.task.url_id])
        self._load_pages(ledger, completions)
        for completion, body_id in zip(completions, body_ids, strict=True):
            ledger.complete(completion, 0, body_id)
        ledger.record(batch, [0] * len(batch.visits))
        self._write(ledger)
        for site, finding in ledger.fallen:
            self._retract(site, finding)

    def offer(
        self,
        candidates: Sequence[Candidate],
        side_requests: Sequence[SideRequest],
        now: float,
        *,
        reopen: bool = False,
    ) -> int:
        """URLs and side requests that no page brought; returns how many URLs wait newly."""
        ledger = Ledger(self._run_id, now, self._sums)
        self._load(ledger, candidates, side_requests)
        fresh = sum([ledger.offer(candidate, reopen=reopen) for candidate in candidates])
        for side_request in side_requests:
            ledger.send(side_request)
        self._write(ledger)
        return fresh

    def restate(self, url_id: int, reason: Reason, rule: str) -> None:
        """Gives a URL another reason, and nothing else: its entry in a list is the caller's business."""
        before = self._connection.execute("SELECT reason FROM url WHERE id = ?", (url_id,)).fetchone()[0]
        self._connection.execute("UPDATE url SET reason = ?, rule = ? WHERE id = ?", (reason.value, rule, url_id))
        self._sums.tallies["reason:" + before] -= 1
        self._sums.tallies["reason:" + reason.value] += 1

    def await_again(self, url_ids: Sequence[int]) -> None:
        """Enters waiting URLs that stand in no list."""
        ledger = Ledger(self._run_id, 0.0, self._sums)
        self._load_urls(ledger, url_ids)
        for url_id in url_ids:
            ledger.await_again(ledger.urls[url_id])
        self._write(ledger)

    def clear_lists(self) -> None:
        """Takes from the lists the pages that wait no longer."""
        stale = (
            "FROM queue WHERE purpose = 'page' AND url_id <> 0 AND url_id NOT IN (SELECT id"
            " FROM url WHERE reason = 'waiting')"
        )
        hosts = self._connection.execute(f"SELECT host_id, count(*) {stale} GROUP BY host_id").fetchall()
        for host_id, entries in hosts:
            self._sums.pending[HostRef(0, host_id)] -= entries
        self._connection.execute(f"DELETE {stale}")

    def forget_url(self, url_id: int) -> None:
        """Drops a URL that was never seen. Its entry in a list, if any, goes with `clear_lists`."""
        reason = self._connection.execute("SELECT reason FROM url WHERE id = ?", (url_id,)).fetchone()[0]
        self._connection.execute("DELETE FROM url WHERE id = ?", (url_id,))
        self._sums.tallies["known"] -= 1
        self._sums.tallies["reason:" + reason] -= 1

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
        url_ids = [url_id for (url_id,) in self._connection.execute(find, (finding, site)).fetchall()]
        for url_id in url_ids:
            self._connection.execute("DELETE FROM alias WHERE url_id = ?", (url_id,))
            self.restate(url_id, Reason.WAITING, "")
        self.await_again(url_ids)

    # loading ---------------------------------------------------------------------------------------------------------

    def _take(self, ledger: Ledger, completions: Sequence[Completion]) -> None:
        """Takes the entries from their lists. One is not there if its host was given up while it was under way."""
        drop = "DELETE FROM queue WHERE host_id = ? AND priority = ? AND seq = ?"
        for task in (completion.task for completion in completions):
            if self._connection.execute(drop, (task.host_id, task.priority, task.seq)).rowcount:
                ledger.take(HostRef(0, task.host_id), task.priority, task.seq)

    def _load(self, ledger: Ledger, candidates: Sequence[Candidate], side_requests: Sequence[SideRequest]) -> None:
        places = {one.host: one.site for one in candidates} | {one.host: one.site for one in side_requests}
        self._load_hosts({host: site for host, site in places.items() if host not in self._hosts})
        ledger.hosts = self._hosts
        self._load_urls(ledger, [one.url_id for one in candidates])
        if not side_requests:
            return
        of_list = "SELECT host_id, priority, text, about, purpose FROM queue WHERE text IS NOT NULL AND text "
        texts = json.dumps([one.request.url for one in side_requests])
        ledger.listed = set(self._connection.execute(of_list + _AMONG, (texts,)).fetchall())
        redirected = [one.request.url for one in side_requests if one.request.hops and one.request.purpose in CHECKS]
        if redirected:
            ledger.checked = checks.asked_among(self._connection, redirected)

    def _load_hosts(self, places: dict[HostKey, SiteKey]) -> None:
        """Takes up hosts, those first that nobody has met before."""
        if not places:
            return
        self._find_hosts(places)
        fresh = [(host, site) for host, site in places.items() if host not in self._hosts]
        if fresh:
            sites = [(site,) for _, site in fresh]
            self._connection.executemany("INSERT OR IGNORE INTO site (key) VALUES (?)", sites)
            insert = "INSERT INTO host (key, site_id) SELECT ?, id FROM site WHERE key = ?"
            self._connection.executemany(insert, fresh)
            self._find_hosts(dict(fresh))

    def _find_hosts(self, keys: Iterable[HostKey]) -> None:
        find = f"SELECT key, id FROM host WHERE key {_AMONG}"
        for key, host_id in self._connection.execute(find, (json.dumps(list(keys)),)):
            self._hosts[HostKey(key)] = HostRef(0, host_id)

    def _load_urls(self, ledger: Ledger, ids: Sequence[int]) -> None:
        find = f"SELECT {_URL} FROM url WHERE id {_AMONG}"
        for row in self._connection.execute(find, (json.dumps(ids),)) if ids else ():
            ledger.urls[row[0]] = UrlRow(0, *row)

    def _load_pages(self, ledger: Ledger, completions: Sequence[Completion]) -> None:
        """What is stored of the pages: of nearly all of a first crawl, nothing."""
        connection = self._connection
        ids = json.dumps([one.task.url_id for one in completions if brings_content(one)])
        for url_id, *fields in connection.execute(
            f"SELECT url_id, {', '.join(FIELDS)} FROM page WHERE url_id {_AMONG}", (ids,)
        ):
            ledger.pages[url_id] = tuple(fields)
        for source, *key, last_seen in connection.execute(
            f"SELECT {_LINK_KEY}, last_seen FROM link WHERE source {_AMONG}", (ids,)
        ):
            ledger.links.setdefault(source, {})[tuple(key)] = last_seen
        again = [one.task.url_id for one in completions if one.task.recheck or isinstance(one.visit.outcome, Unchanged)]
        find = f"SELECT url_id, interval_s, gone_since FROM freshness WHERE url_id {_AMONG}"
        for url_id, interval_s, gone_since in connection.execute(find, (json.dumps(again),)) if again else ():
            ledger.freshness[url_id] = (interval_s, gone_since)

    # writing ---------------------------------------------------------------------------------------------------------

    def _write(self, ledger: Ledger) -> None:
        many = self._connection.executemany
        many(_insert("url", _URL), map(_NEW_URL, ledger.new_urls))
        update = "UPDATE url SET reason = ?, depth = ?, rule = ?, status = ?, in_sitemap = ?, visited = ? WHERE id = ?"
        many(update, map(_CHANGED_URL, ledger.changed_urls))
        many("UPDATE url SET text = ? WHERE id = ?", [(text, page.url_id) for page, text in ledger.respelled])
        alias = _insert("alias", ", ".join(AliasRow._fields[1:]), "INSERT OR IGNORE")
        many(alias, [row[1:] for row in ledger.aliases])
        many("DELETE FROM doubtful WHERE url_id = ?", [(page.url_id,) for page in ledger.vouched])
        self._write_pages(ledger)
        entries = [(seq, *entry[1:]) for seq, entry in enumerate(ledger.entries, self._seq)]
        many(_insert("queue", f"seq, {_ENTRY}"), entries)
        self._seq += len(entries)
        self._write_visits(ledger)
        robots = _insert("robots", "origin, status, cause, body, fetched, expires", "INSERT OR REPLACE")
        many(robots, [astuple(answer) for answer in ledger.robots])

    def _write_pages(self, ledger: Ledger) -> None:
        many, run_id = self._connection.executemany, self._run_id
        many(_insert("page", rows.PAGE_COLUMNS, "INSERT OR REPLACE"), [page for _, page in ledger.new_pages])
        past = _insert("page_history", f"url_id, run_id, {', '.join(FIELDS)}", "INSERT OR IGNORE")
        many(past, [(page.url_id, run_id, *fields) for page, fields in ledger.past_pages])
        many("DELETE FROM bad_link WHERE source = ?", [(page.url_id,) for page in ledger.replaced])
        many(_insert("bad_link", rows.BAD_LINK_COLUMNS), chain.from_iterable(one.rows for one in ledger.bad_links))
        links = list(chain.from_iterable(one.rows for one in chain(ledger.new_links, ledger.seen_links)))
        whole = len(links) - len(links) % LINKS_AT_ONCE
        for start in range(0, whole, LINKS_AT_ONCE):
            self._connection.execute(_INSERT_LINKS, list(chain.from_iterable(links[start : start + LINKS_AT_ONCE])))
        many(_INSERT_LINK, links[whole:])
        self._end_links(ledger)
        for page in ledger.validators:
            update = f"UPDATE page SET {page.column} = ? WHERE url_id = ? AND {page.column} <> ?"
            self._connection.execute(update, (page.value, page.url_id, page.value))
        fresh = _insert("freshness", "url_id, checked, interval_s, gone_since", "INSERT OR REPLACE")
        many(fresh, [row[1:] for row in ledger.fresh])

    def _end_links(self, ledger: Ledger) -> None:
        """Moves links that their pages have no longer to history."""
        seen = "max(last_seen, coalesce((SELECT checked FROM freshness WHERE url_id = source), 0))"
        history = f"{_LINK_KEY}, run_id, anchor, times, first_seen, last_seen"
        where = "source = :source AND last_seen < :now AND (:kind = '' OR kind = :kind)"
        for ended in ledger.ended_links:
            values = {"source": ended.source, "kind": ended.kind, "now": ledger.now, "run": self._run_id}
            self._connection.execute(
                f"INSERT OR IGNORE INTO link_history ({history}) SELECT {_LINK_KEY}, :run, anchor, times, first_seen,"
                f" {seen} FROM link WHERE {where}",
                values,
            )
            self._connection.execute(f"DELETE FROM link WHERE {where}", values)

    def _write_visits(self, ledger: Ledger) -> None:
        """In their order, by which the latest is known."""
        if not any(visit.look for visit in ledger.visits):
            self._connection.executemany(_INSERT_VISIT, [visit.row for visit in ledger.visits])
            return
        for visit in ledger.visits:
            visit_id = self._connection.execute(_INSERT_VISIT, visit.row).lastrowid
            if visit.look is not None and visit_id:
                checks.store_look(self._connection, visit_id, visit.look)

    # hosts -----------------------------------------------------------------------------------------------------------

    def settle(self, state: HostState, now: float) -> None:
        """A host's pace, what its trap detector learned, and its lease's end if it is released."""
        host_id = state.lease.host_id
        pace = (now + state.wait_s, state.delay_s, state.rate, state.strikes, state.answered, state.waits_for)
        update = (
            "UPDATE host SET next_at = ?, delay_s = ?, rate = ?, strikes = ?, answered = ?, waits_for = ?,"
            " lease_by = CASE WHEN ? THEN NULL ELSE lease_by END WHERE id = ?"
        )
        if state.traps:
            self._store_traps(host_id, state.traps)
        for given_up in state.given_up:
            self._drop(host_id, given_up, now)
        self._connection.execute(update, (*pace, state.release, host_id))

    def _store_traps(self, host_id: int, changes: TrapChanges) -> None:
        connection, lines = self._connection, changes.lines
        connection.executemany(
            "INSERT OR REPLACE INTO family VALUES (?, ?, ?)",
            [(host_id, record.key, json.dumps(astuple(record))) for record in changes.patterns],
        )
        # one that was an alias is not there
        doubtful = "INSERT OR REPLACE INTO doubtful SELECT id, host_id, ? FROM url WHERE id = ?"
        connection.executemany(doubtful, [(doubt, url_id) for url_id, doubt in changes.doubts if doubt])
        certain = [(url_id,) for url_id, doubt in changes.doubts if not doubt]
        connection.executemany("DELETE FROM doubtful WHERE url_id = ?", certain)
        if lines.keys:
            connection.execute("INSERT OR REPLACE INTO shown VALUES (?, ?, ?)", (host_id, lines.first, lines.keys))
            passed = "DELETE FROM shown WHERE host_id = ? AND first + length(keys) / 4 <= ?"
            connection.execute(passed, (host_id, lines.needed_from))

    def _drop(self, host_id: int, given_up: GivenUp, now: float) -> None:
        """What still waits for an origin that is given up is dropped, until a new run.

        Origins of one host differ in their scheme.
        """
        connection, sums = self._connection, self._sums
        outcome = Skipped(given_up.reason, given_up.rule)
        text = "coalesce(text, (SELECT u.text FROM url u WHERE u.id = url_id))"
        listed, values = f"FROM queue WHERE host_id = ? AND substr({text}, 1, 5) = ?", (host_id, given_up.origin[:5])
        update = (
            "UPDATE url SET reason = ?, rule = ? WHERE reason = 'waiting'"
            f" AND id IN (SELECT url_id {listed} AND purpose = 'page')"
        )
        dropped = connection.execute(update, (outcome.reason.value, outcome.rule, *values)).rowcount
        sums.tallies["reason:waiting"] -= dropped
        sums.tallies["reason:" + outcome.reason.value] += dropped
        # links' targets have no reason of their own: a visit says that they were not asked for
        of_checks = f"SELECT text, purpose {listed} AND purpose IN ('head', 'check') AND text IS NOT NULL"
        targets = connection.execute(of_checks, values).fetchall()
        visits = [Visit(Request(Url(target), Purpose(purpose)), now, 0.0, outcome) for target, purpose in targets]
        connection.executemany(_INSERT_VISIT, [visit_row(self._run_id, 0, visit) for visit in visits])
        rechecks = connection.execute(f"SELECT count(*) {listed} AND purpose = ?", (*values, RECHECK)).fetchone()[0]
        sums.counts[Finding.UNREACHED.value] += rechecks
        sums.pending[HostRef(0, host_id)] -= connection.execute(f"DELETE {listed}", values).rowcount


def stored_bodies(
    writer: BodyWriter, completions: Sequence[Completion], bodies: Sequence[PackedBody | None]
) -> list[int | None]:
    """The rows of the completions' bodies, each entered unless an earlier one is the same. Within a transaction."""
    return [
        writer.store(body, completion.visit.outcome.body)
        if body is not None and brings_content(completion) and isinstance(completion.visit.outcome, Fetched)
        else None
        for completion, body in zip(completions, bodies, strict=True)
    ]
