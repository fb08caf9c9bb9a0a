"""The ledger of a folder: bodies, hosts and counters."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from periplus.model.frontier import Batch, Candidate, Completion, HostState, SideRequest
from periplus.model.visit import CHECKS, Fetched
from periplus.model.web import HostKey, SiteKey
from periplus.settings import Storage
from periplus.store import checks
from periplus.store.bodies import LOOK_AFTER, PAGES_FOR_DICTIONARY, RETRY_GROWTH, SAMPLE_PAGES, dictionary_for
from periplus.store.corruption import GZIP
from periplus.store.ledger import HostRef, Ledger, Sums, brings_content
from periplus.store.ledger_tables import LedgerTables
from periplus.store.rows import PackedBody, pack_completion
from periplus.store.sqlite import schema
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.schema import SqliteStatements
from periplus.store.statements import PageKey
from periplus.urls.hosts import WebPart


class BodyWriter:
    """Packs bodies outside of transactions and stores them within. Caches the dictionary id of each site."""

    def __init__(self, connection: sqlite3.Connection, storage: Storage) -> None:
        self._connection, self._storage = connection, storage
        self._contents = SqliteReader(connection)
        self._dictionaries: dict[str, int] = {}
        self._try_at: dict[str, int] = {}  # number of pages at which training is tried again
        self._compressed: Counter[str] = Counter()  # bodies of each site that were not kept as sent

    def pack(self, completion: Completion) -> PackedBody | None:
        """Compresses the body and text of a completion; None if there is nothing to store."""
        site = completion.lease.site
        dictionary = self._dictionaries.get(site)
        body = pack_completion(completion, self._storage, self._contents.codec, dictionary, as_sent=True)
        if body is not None and body.data and not body.data.startswith(GZIP):
            self._compressed[site] += 1
        return body

    def store(self, body: PackedBody, content: bytes) -> int:
        """Stores a body, its text and its XML; returns the row id."""
        body_id = self._same(body, content)
        if body_id is None:
            insert = "INSERT INTO body (digest, dictionary_id, size, data, text, blocks) VALUES (?, ?, ?, ?, ?, ?)"
            values = (body.digest, body.dictionary_id, body.size, body.data, body.text, body.blocks)
            body_id = int(self._connection.execute(insert, values).lastrowid or 0)
        if body.xml:
            data, media_type = body.xml
            self._connection.execute("INSERT OR REPLACE INTO xml VALUES (?, ?, ?)", (body_id, media_type, data))
        return body_id

    def _same(self, body: PackedBody, content: bytes) -> int | None:
        """Id of an earlier row with exactly the same content, found by digest and then compared.

        The text is compared too, since the same bytes may be decoded with another charset.
        """
        find = "SELECT id, dictionary_id, data, text, blocks FROM body WHERE digest = ? AND size = ?"
        for body_id, dictionary_id, data, text, blocks in self._connection.execute(find, (body.digest, body.size)):
            if (
                not self._is_same_text(text, body.text)
                or bool(data) != bool(body.data)
                or (data and self._contents.restore(data, dictionary_id, text) != content)
            ):
                continue
            if blocks is None and body.blocks is not None:  # stored without blocks
                self._connection.execute("UPDATE body SET blocks = ? WHERE id = ?", (body.blocks, body_id))
            elif blocks != body.blocks:
                continue
            return int(body_id)
        return None

    def _is_same_text(self, text: bytes | None, other: bytes | None) -> bool:
        """Compares packed texts, which may be packed differently."""
        if text == other or text is None or other is None:
            return text == other
        return self._contents.codec.unpack(text, None) == self._contents.codec.unpack(other, None)

    def learn_dictionary(self, site: str) -> bytes:
        """Trains a dictionary for a site with enough pages and none yet, outside of transactions; else empty.

        Only bodies that are compressed here need one.
        """
        if site in self._dictionaries or not self._compressed[site]:
            return b""
        row = self._connection.execute("SELECT id, fetched, dictionary_id FROM site WHERE key = ?", (site,)).fetchone()
        if row is None:
            return b""
        site_id, pages, dictionary_id = row
        if dictionary_id is not None:  # another worker stored one first
            self._contents.learn(dictionary_id)
            self._dictionaries[site] = dictionary_id
            return b""
        if self._compressed[site] < LOOK_AFTER or pages < self._try_at.get(site, PAGES_FOR_DICTIONARY):
            return b""
        # if training fails, as for sites with tiny pages, retry later
        self._try_at[site] = pages * RETRY_GROWTH
        samples = self._connection.execute(
            "SELECT b.data, b.dictionary_id, b.text FROM page p JOIN url u ON u.id = p.url_id"
            " JOIN host h ON h.id = u.host_id JOIN body b ON b.id = p.body_id"
            " WHERE h.site_id = ? AND length(b.data) > 0 AND substr(b.data, 1, 2) <> ? LIMIT ?",
            (site_id, GZIP, SAMPLE_PAGES),
        ).fetchall()
        return dictionary_for(
            [
                (
                    self._contents.restore(data, dictionary_id, text),
                    self._contents.codec.unpack(text, None) if text else b"",
                )
                for data, dictionary_id, text in samples
            ]
        )

    def store_dictionary(self, site: str, data: bytes) -> None:
        site_id, dictionary_id = self._connection.execute(
            "SELECT id, dictionary_id FROM site WHERE key = ?", (site,)
        ).fetchone()
        if dictionary_id is None:
            row = self._connection.execute("INSERT INTO dictionary (data) VALUES (?)", (data,))
            self._connection.execute("UPDATE site SET dictionary_id = ? WHERE id = ?", (row.lastrowid, site_id))


class FolderLedger:
    """Applies changes within a transaction of the caller.

    Call `open` before the first change and `close` after the last: counters (entries per host, pages per site, URLs per
    reason) are collected in memory and written once at the end.
    """

    def __init__(self, connection: sqlite3.Connection, run_id: int, part: WebPart | None = None) -> None:
        self._connection, self._run_id, self._part = connection, run_id, part
        self.statements = SqliteStatements(connection)
        self._hosts: dict[HostKey, HostRef] = {}
        self.sums = Sums()
        self._first_seq = self._seq = 0  # of queue entries

    def open(self) -> None:
        self.sums = Sums()
        self._hosts = {}  # new hosts may be lost in a rolled-back transaction
        row = self._connection.execute("SELECT value FROM meta WHERE name = 'seq'").fetchone()
        self._seq = self._first_seq = int(row[0])

    def close(self) -> None:
        connection, sums = self._connection, self.sums
        pending = [(change, host.id) for host, change in sums.pending.items() if change]
        connection.executemany("UPDATE host SET pending = pending + ? WHERE id = ?", pending)
        fetched = [(count, host.id) for host, count in sums.fetched.items()]
        connection.executemany("UPDATE host SET fetched = fetched + ? WHERE id = ?", fetched)
        of_site = "UPDATE site SET fetched = fetched + ? WHERE id = (SELECT site_id FROM host WHERE id = ?)"
        connection.executemany(of_site, fetched)
        of_run = "UPDATE run SET fetched = fetched + ?, wire_bytes = wire_bytes + ? WHERE id = ?"
        connection.execute(of_run, (sums.counts.pop("fetched", 0), sums.counts.pop("wire_bytes", 0), self._run_id))
        add = "ON CONFLICT DO UPDATE SET value = value + excluded.value"
        tallies = [(name, count) for name, count in sums.tallies.items() if count]
        connection.executemany(f"INSERT INTO tally VALUES (?, ?) {add}", tallies)
        counts = [(self._run_id, name, count) for name, count in sums.counts.items() if count]
        connection.executemany(f"INSERT INTO run_count VALUES (?, ?, ?) {add}", counts)
        if self._seq != self._first_seq:
            connection.execute("UPDATE meta SET value = ? WHERE name = 'seq'", (str(self._seq),))

    def enter(
        self, batch: Batch, completions: Sequence[Completion], body_ids: Sequence[int | None], now: float
    ) -> None:
        """Applies a batch.

        completions and batch.hosts: only those with valid leases; body_ids: of the stored body of each completion.
        """
        tables = self._tables(now)
        ledger = tables.ledger
        tables.take(completions)
        candidates = list(chain.from_iterable(completion.candidates for completion in completions))
        self._load(tables, candidates, batch.side_requests, completions)
        for completion, body_id in zip(completions, body_ids, strict=True):
            ledger.complete(completion, 0, body_id)
        ledger.record(batch, [0] * len(batch.visits))
        self._write(tables)
        for site, finding in ledger.refuted:
            tables = self._tables(now)
            tables.retract(site, finding)
            self._write(tables)
        self._write_host_states(tables, batch.hosts)

    def offer(
        self,
        candidates: Sequence[Candidate],
        side_requests: Sequence[SideRequest],
        now: float,
        *,
        reopen: bool = False,
    ) -> int:
        """Stores URLs and side requests that are not from pages; returns how many URLs are newly waiting."""
        tables = self._tables(now)
        self._load(tables, candidates, side_requests)
        fresh = sum([tables.ledger.offer(candidate, reopen=reopen) for candidate in candidates])
        for side_request in side_requests:
            tables.ledger.send(side_request)
        self._write(tables)
        return fresh

    def await_again(self, pages: Sequence[PageKey]) -> None:
        tables = self._tables(0.0)
        tables.await_again(pages)
        self._write(tables)

    def _tables(self, now: float) -> LedgerTables:
        return LedgerTables(self.statements, Ledger(self._run_id, now, self.sums, self._part))

    def _write(self, tables: LedgerTables) -> None:
        self._seq = tables.write(first_seq=self._seq)

    # hosts -----------------------------------------------------------------------------------------------------------

    def _load(
        self,
        tables: LedgerTables,
        candidates: Sequence[Candidate],
        side_requests: Sequence[SideRequest],
        completions: Sequence[Completion] = (),
    ) -> None:
        places = {item.host: item.site for item in candidates} | {item.host: item.site for item in side_requests}
        self._load_hosts({host: site for host, site in places.items() if host not in self._hosts})
        ledger = tables.ledger
        ledger.hosts = self._hosts
        tables.load([(0, url.url_id) for url in candidates], completions)
        if not side_requests:
            return
        texts = json.dumps([item.request.url for item in side_requests])
        listed = (
            "SELECT host_id, priority, text, about, purpose FROM queue WHERE text IS NOT NULL"
            " AND text IN (SELECT value FROM json_each(?))"
        )
        ledger.listed = set(self._connection.execute(listed, (texts,)).fetchall())
        redirected = [
            item.request.url for item in side_requests if item.request.hops and item.request.purpose in CHECKS
        ]
        if redirected:
            ledger.checked = checks.requested_among(SqliteStatements(self._connection), redirected)

    def _load_hosts(self, places: dict[HostKey, SiteKey]) -> None:
        """Loads hosts, after creating new ones."""
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
        for key, host_id in self.statements.at("key, id", "host", "key", [(0, key) for key in keys]):
            self._hosts[HostKey(key)] = HostRef(0, host_id)

    def _write_host_states(self, tables: LedgerTables, states: Sequence[HostState]) -> None:
        """Stores the hosts' paces and trap detectors, drops given-up origins, and releases leases."""
        tables.store_traps([(HostRef(0, state.lease.host_id), state.traps) for state in states if state.traps])
        for state in states:
            for given_up in state.given_up:
                tables.drop(HostRef(0, state.lease.host_id), given_up)
        update = (
            "UPDATE host SET next_at = ?, delay_s = ?, rate = ?, strikes = ?, answered = ?, waits_for = ?,"
            " lease_by = CASE WHEN ? THEN NULL ELSE lease_by END WHERE id = ?"
        )
        paces = [
            (
                tables.ledger.now + state.wait_s, state.delay_s, state.rate, state.strikes, int(state.answered),
                state.waits_for, int(state.release), state.lease.host_id,
            )
            for state in states
        ]  # fmt: skip
        self._connection.executemany(update, paces)


@contextlib.contextmanager
def alias_ledger(folder: Path) -> Iterator[FolderLedger]:
    """See `model.ports.CrawlHome.alias_ledger`."""
    with schema.writing(folder) as connection:
        ledger = FolderLedger(connection, 0)
        ledger.open()
        yield ledger
        ledger.close()


def stored_bodies(
    writer: BodyWriter, completions: Sequence[Completion], bodies: Sequence[PackedBody | None]
) -> list[int | None]:
    """Stores the completions' bodies, or finds identical ones; returns row ids. Call it within a transaction."""
    return [
        writer.store(body, completion.visit.outcome.body)
        if body is not None and brings_content(completion) and isinstance(completion.visit.outcome, Fetched)
        else None
        for completion, body in zip(completions, bodies, strict=True)
    ]
