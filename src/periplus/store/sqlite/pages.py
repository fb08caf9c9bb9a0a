"""How are a page's rows entered? Bytes are packed before the write lock is taken; within it there are only inserts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain

from periplus.model.frontier import Completion
from periplus.model.page import Document
from periplus.model.visit import Fetched, Unchanged
from periplus.settings import Keeping
from periplus.store.bodies import PAGES_FOR_DICTIONARY, train
from periplus.store.rows import PackedBody, bad_link_rows, link_rows, packed, page_row
from periplus.store.sqlite.contents import Contents
from periplus.store.sqlite.history import History

PAGE_COLUMNS = 30
LINK_COLUMNS = 10
LINKS_AT_ONCE = 20  # rows of one statement: 82 us for 60 links instead of 108 one by one; 30 gain nothing more
_LINK_VALUES = "(" + "?," * (LINK_COLUMNS - 1) + "?)"
_KNOWN_LINK = (
    " ON CONFLICT (source, target, kind, position, nofollow) DO UPDATE"
    " SET anchor = excluded.anchor, fragments = excluded.fragments, times = excluded.times, last_seen = excluded.last_seen"
)
_UPSERT_LINK = f"INSERT INTO link VALUES {_LINK_VALUES}{_KNOWN_LINK}"
_UPSERT_LINKS = f"INSERT INTO link VALUES {', '.join([_LINK_VALUES] * LINKS_AT_ONCE)}{_KNOWN_LINK}"


class PageWriter:
    """Packs and inserts pages. Keeps in memory which dictionary each site has."""

    def __init__(self, connection: sqlite3.Connection, keeping: Keeping, history: History) -> None:
        self._connection = connection
        self.history = history
        self._keeping = keeping
        self._contents = Contents(connection)
        self._dictionaries: dict[str, int] = {}
        self._try_at: dict[str, int] = {}  # pages at which to try again to learn a dictionary, for sites that gave none

    def pack(self, completion: Completion) -> PackedBody | None:
        """The completion's body and text, compressed; None when there is nothing to keep."""
        return packed(completion, self._keeping, self._contents.codec, self._dictionaries.get(completion.lease.site))

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
            if text != packed.text or bool(data) != bool(packed.data) or (data and self._contents.restore(data, dictionary_id) != body):
                continue
            if blocks is None and packed.blocks is not None:  # stored before blocks were
                self._connection.execute("UPDATE body SET blocks = ? WHERE id = ?", (packed.blocks, body_id))
            elif blocks != packed.blocks:
                continue
            return int(body_id)
        insert = "INSERT INTO body (md5, dictionary_id, size, data, text, blocks) VALUES (?, ?, ?, ?, ?, ?)"
        row = self._connection.execute(insert, (packed.md5, packed.dictionary_id, packed.size, packed.data, packed.text, packed.blocks))
        return int(row.lastrowid or 0)

    def store_page(self, completion: Completion, document: Document, packed: PackedBody | None, now: float) -> bool:
        """The page, its links and bad links, in place of what an earlier visit left; of a link that stays, first_seen stays too.

        What is replaced goes to history. True: the page has other words, fields or links than before, or there was none.
        """
        run = self._connection.execute
        source = completion.task.url_id
        outcome = completion.visit.outcome
        body_id = self.store_body(packed, outcome.body) if packed and isinstance(outcome, Fetched) else None
        before = self.history.page(source)
        linked = run("SELECT 1 FROM link WHERE source = ? LIMIT 1", (source,)).fetchone() is not None  # a redirect's link too
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
        """By what the page can be asked for next time: RFC 9110, 15.4.5 has a 304 say what is new of it, and a 200 says all."""
        said = {"etag": unchanged.headers.get("etag"), "last_modified_field": unchanged.headers.get("last-modified")}
        for column, value in said.items():
            if value or unchanged.status == 200:
                self._connection.execute(f"UPDATE page SET {column} = ? WHERE url_id = ? AND {column} <> ?", (value, url_id, value))

    def store_links(self, rows: Sequence[tuple[object, ...]]) -> None:
        whole = len(rows) - len(rows) % LINKS_AT_ONCE
        for start in range(0, whole, LINKS_AT_ONCE):
            self._connection.execute(_UPSERT_LINKS, tuple(chain.from_iterable(rows[start : start + LINKS_AT_ONCE])))
        self._connection.executemany(_UPSERT_LINK, rows[whole:])

    def learn_dictionary(self, site: str) -> bytes:
        """A dictionary for a site that has enough pages and none yet, trained outside of any transaction; else empty."""
        if site in self._dictionaries:
            return b""
        found = self._connection.execute("SELECT id, fetched, dictionary_id FROM site WHERE key = ?", (site,)).fetchone()
        if found and found[2] is not None:  # another worker was first
            self._use(site, found[2])
            return b""
        if not found or found[1] < self._try_at.get(site, PAGES_FOR_DICTIONARY):
            return b""
        self._try_at[site] = found[1] * 2  # in case this fails: of a site of errors or tiny pages there is nothing to learn
        kept = "SELECT b.data, b.dictionary_id FROM page p JOIN url u ON u.id = p.url_id JOIN host h ON h.id = u.host_id JOIN body b ON b.id = p.body_id"
        rows = self._connection.execute(kept + " WHERE h.site_id = ? AND length(b.data) > 0 LIMIT ?", (found[0], PAGES_FOR_DICTIONARY)).fetchall()
        return train([self._contents.restore(data, dictionary_id) for data, dictionary_id in rows])

    def store_dictionary(self, site: str, data: bytes) -> None:
        found = self._connection.execute("SELECT id, dictionary_id FROM site WHERE key = ?", (site,)).fetchone()
        if found[1] is None:
            row = self._connection.execute("INSERT INTO dictionary (data) VALUES (?)", (data,))
            self._connection.execute("UPDATE site SET dictionary_id = ? WHERE id = ?", (row.lastrowid, found[0]))

    def _use(self, site: str, dictionary_id: int) -> None:
        self._contents.learn(dictionary_id)
        self._dictionaries[site] = dictionary_id
