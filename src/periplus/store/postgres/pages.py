"""Stores a batch's pages: their bytes in a segment or packed into rows, then bodies, pages and links."""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from periplus.errors import StoreError
from periplus.model.collection import Exchange, RunNote
from periplus.model.frontier import Batch, Completion
from periplus.model.page import Document, LinkKind
from periplus.model.visit import Fetched, Redirected, Unchanged
from periplus.model.web import SiteKey, Url
from periplus.settings import Storage
from periplus.store.bodies import PAGES_FOR_DICTIONARY, BodyCodec, train
from periplus.store.postgres.connection import Connection, Session, columns_of, copy_rows, pauses
from periplus.store.postgres.schema import shard_of
from periplus.store.rows import PackedBody, bad_link_rows, link_rows, packed, page_row, redirect_row
from periplus.store.segments import RecordPlace, SegmentWriter, shelf_of
from periplus.store.standing import FIELDS, MERGED, is_another
from periplus.urls.twins import AliasPage, merged

log = logging.getLogger(__name__)
LOOK_AFTER = PAGES_FOR_DICTIONARY // 8  # pages of a site after which it is asked for its dictionary
# for object storage that refuses now and then; after it the batch is given up, and fetched again
SHELF_PATIENCE_S = 60.0


class Parcels(NamedTuple):
    """A batch whose bytes are taken care of.

    bodies and places: one for each completion; learned: dictionaries of sites.
    """

    batch: Batch
    bodies: Sequence[PackedBody | None]
    places: Sequence[RecordPlace | None]
    learned: dict[SiteKey, bytes]


class Packer:
    """Packs bodies for one process. With segments, their bytes are there for good when `pack` returns."""

    def __init__(self, session: Session, storage: Storage, segments: str, note: RunNote) -> None:
        """segments: the place where they are kept; empty: in the database."""
        self._session, self._storage = session, storage
        self._codec = BodyCodec()
        self._dictionaries: dict[SiteKey, int] = {}
        # pages at which to try again to learn a dictionary, for sites that gave none
        self._try_at: dict[SiteKey, int] = {}
        # pages of each site: now and then it is asked whether it has a dictionary by now
        self._packed: Counter[SiteKey] = Counter()
        self._shelf, self._note = segments if storage.keep_bodies else "", note
        self._writer = (
            SegmentWriter(shelf_of(segments), f"run{note.run_id}-{uuid.uuid4().hex}", note) if self._shelf else None
        )

    def pack(self, batch: Batch) -> Parcels:
        """Raises StoreError when segments cannot be written: then nothing of the batch may be stored."""
        if self._writer is not None:
            return self._shelve(batch, self._writer)
        learned = {site: self._learn(site) for site in self._sites_to_learn(batch)}
        bodies = [
            packed(completion, self._storage, self._codec, self._dictionaries.get(completion.lease.site))
            for completion in batch.completions
        ]
        return Parcels(batch, bodies, [None] * len(bodies), {site: data for site, data in learned.items() if data})

    def _shelve(self, batch: Batch, writer: SegmentWriter) -> Parcels:
        rest = replace(self._storage, keep_bodies=False)
        for pause_s in pauses(SHELF_PATIENCE_S):
            try:
                places = [
                    writer.append(_exchange(one, self._note.run_id)) if _has_body(one) else None
                    for one in batch.completions
                ]
                writer.flush()
                break
            except StoreError as error:
                if pause_s is None:
                    raise
                log.warning("segments trouble=%s pause_s=%.1f", error, pause_s)
                time.sleep(pause_s)
        bodies = [
            packed(one, rest, self._codec, None) or _empty(one, place)
            for one, place in zip(batch.completions, places, strict=True)
        ]
        return Parcels(batch, bodies, places, {})

    def _sites_to_learn(self, batch: Batch) -> list[SiteKey]:
        """Those that have had so many pages since they were last looked at that there may be a dictionary,
        somebody else's or ours.
        """
        if not self._storage.keep_bodies:
            return []
        for completion in batch.completions:
            if completion.document is not None and completion.lease.site not in self._dictionaries:
                self._packed[completion.lease.site] += 1
        due = [site for site, pages in self._packed.items() if pages >= LOOK_AFTER]
        for site in due:
            del self._packed[site]
        return due

    def _learn(self, site: SiteKey) -> bytes:
        """A dictionary for a site that has enough pages and none yet,
        trained outside of any transaction; else empty.
        """
        found = self._session.read(lambda connection: _site(connection, site))
        if found is None or found[0] is not None or found[1] < self._try_at.get(site, PAGES_FOR_DICTIONARY):
            if found is not None and found[0] is not None:  # somebody was first
                self._use(site, found[0])
            return b""
        # in case this fails: of a site of errors or tiny pages there is nothing to learn
        self._try_at[site] = found[1] * 2
        rows = self._session.read(lambda connection: _samples(connection, site))
        return train([self._codec.unpack(data, None) for (data,) in rows])

    def _use(self, site: SiteKey, dictionary_id: int) -> None:
        if not self._codec.knows(dictionary_id):
            find = "SELECT data FROM dictionary WHERE shard = %s AND id = %s"
            row = self._session.read(
                lambda connection: connection.execute(find, (shard_of(site), dictionary_id)).fetchone()
            )
            assert row is not None
            self._codec.add(dictionary_id, row[0])
        self._dictionaries[site] = dictionary_id

    def close(self) -> None:
        if self._writer is not None:
            self._writer.__exit__(None, None, None)


def store_dictionary(connection: Connection, site: SiteKey, data: bytes) -> None:
    """The site's dictionary, unless it has one. Of two who learned at once one keeps a row that nobody uses."""
    row = connection.execute(
        "INSERT INTO dictionary (shard, data) VALUES (%s, %s) RETURNING id", (shard_of(site), data)
    ).fetchone()
    assert row is not None
    connection.execute(
        "UPDATE site SET dictionary_id = %s WHERE shard = %s AND key = %s AND dictionary_id IS NULL",
        (row[0], shard_of(site), site),
    )


def _site(connection: Connection, site: SiteKey) -> tuple[int | None, int] | None:
    """(dictionary, pages fetched) of a site."""
    find = (
        "SELECT s.dictionary_id, (SELECT sum(h.fetched) FROM host h WHERE h.shard = s.shard"
        " AND h.site_id = s.id)::bigint"
        " FROM site s WHERE s.shard = %s AND s.key = %s"
    )
    row = connection.execute(find, (shard_of(site), site)).fetchone()
    return (row[0], int(row[1] or 0)) if row else None


def _samples(connection: Connection, site: SiteKey) -> list[tuple[bytes]]:
    find = (
        "SELECT b.data FROM site s JOIN host h ON h.shard = s.shard AND h.site_id = s.id"
        " JOIN url u ON u.shard = h.shard AND u.host_id = h.id"
        " JOIN page p ON p.shard = u.shard AND p.url_id = u.id JOIN body b ON b.shard = p.shard AND b.id = p.body_id"
        " WHERE s.shard = %s AND s.key = %s AND length(b.data) > 0 AND b.dictionary_id IS NULL LIMIT %s"
    )
    return [(row[0],) for row in connection.execute(find, (shard_of(site), site, PAGES_FOR_DICTIONARY)).fetchall()]


def _has_body(completion: Completion) -> bool:
    return (
        completion.document is not None
        and isinstance(completion.visit.outcome, Fetched)
        and bool(completion.visit.outcome.body)
    )


def _exchange(completion: Completion, run_id: int) -> Exchange:
    visit, outcome = completion.visit, completion.visit.outcome
    assert isinstance(outcome, Fetched)
    asked = (visit.request.url, visit.request.purpose.value, visit.started, visit.took_s)
    return Exchange(
        0,
        run_id,
        *asked,
        "fetched",
        outcome.status,
        "",
        visit.address,
        outcome.headers,
        outcome.body,
        outcome.cut.value,
        0,
    )


def _empty(completion: Completion, place: RecordPlace | None) -> PackedBody | None:
    """A row for bytes that lie elsewhere, where nothing else is kept of them."""
    outcome = completion.visit.outcome
    if place is None or completion.document is None or not isinstance(outcome, Fetched):
        return None
    return PackedBody(completion.document.digests.body, None, len(outcome.body), b"", None)


PAGE = (
    "url_id, fetched, media_type, size, wire_bytes, took_s, charset, charset_source, language, title, "
    "description, h1, canonical, robots, cut,"
    " last_modified, expires, etag, last_modified_field, text_chars, body_md5, text_md5, folded_md5, "
    "body_id, h1s, images_without_alt,"
    " other_charset, translations, language_found, parts"
)
_BODY = "shard, id, md5, dictionary_id, size, data, text, blocks, segment, start, length"
_LINK = "source, target, kind, position, nofollow, anchor, fragments, times, first_seen, last_seen"
_LINK_KEY = "shard, source, target, kind, position, nofollow"
_NOFOLLOW = 4  # its place in a row of a link, the last of the key


class Arrival(NamedTuple):
    """One visit's content, in its shard. document None: a redirect, of which only the link is kept."""

    shard: int
    completion: Completion
    document: Document | None
    packed: PackedBody | None
    place: RecordPlace | None


class PostgresPageWriter:
    """Enters pages within a transaction of its owner, for one run."""

    def __init__(self, connection: Connection, run_id: int, now: float) -> None:
        self._connection, self._run_id, self._now = connection, run_id, now

    def enter(self, arrivals: Sequence[Arrival]) -> dict[int, bool]:
        """In place of what earlier visits left, which goes to history; of a link that stays, first_seen stays too.

        By URL: whether the page has other words, fields or links than before, or there was none.
        """
        keys = [(one.shard, int(one.completion.task.url_id)) for one in arrivals]
        before, linked = self._before(keys)
        bodies = self._bodies([one for one in arrivals if one.packed is not None])
        self._pages([one for one in arrivals if one.document is not None], bodies, before)
        links = {(one.shard, int(one.completion.task.url_id)): self._links_of(one) for one in arrivals}
        self._links(links, linked)
        bad = [
            (one.shard, *row)
            for one in arrivals
            if one.document is not None
            for row in bad_link_rows(one.completion.task.url_id, one.document)
        ]
        copy_rows(self._connection, "bad_link", "shard, source, text, kind, position, anchor, why", bad)
        return {one.completion.task.url_id: self._is_changed(one, before, linked) for one in arrivals}

    def _before(self, keys: Sequence[tuple[int, int]]) -> tuple[dict[int, tuple[object, ...]], set[int]]:
        """The pages as they stand, by id, and which URLs have links: nearly always none."""
        if not keys:
            return {}, set()
        of_page = ", ".join(f"p.{name}" for name in FIELDS)
        find = (
            "SELECT k.id, p.url_id IS NOT NULL, EXISTS (SELECT 1 FROM link l WHERE l.shard = k.shard"
            f" AND l.source = k.id), {of_page}"
            " FROM unnest(%s::smallint[], %s::bigint[]) k(shard, id) LEFT"
            " JOIN page p ON p.shard = k.shard AND p.url_id = k.id"
        )
        rows = self._connection.execute(find, columns_of(keys, 2)).fetchall()
        return {row[0]: row[3:] for row in rows if row[1]}, {row[0] for row in rows if row[2]}

    def _bodies(self, arrivals: Sequence[Arrival]) -> dict[int, int]:
        """The row that holds each URL's bytes and text: an earlier one where it holds exactly the same."""
        found = self._same_bodies([one for one in arrivals if one.place is None])
        if len(found) == len(arrivals):
            return found
        fresh = [one for one in arrivals if one.completion.task.url_id not in found]
        ids = self._connection.execute(
            "SELECT nextval(pg_get_serial_sequence('body', 'id')) FROM generate_series(1, %s)", (len(fresh),)
        ).fetchall()
        rows, xml = [], []
        for one, (body_id,) in zip(fresh, ids, strict=True):
            packed = one.packed
            assert packed is not None
            found[one.completion.task.url_id] = body_id
            data = b"" if one.place else packed.data
            place = one.place or (None, None, None)
            rows.append(
                (
                    one.shard,
                    body_id,
                    packed.md5,
                    packed.dictionary_id,
                    packed.size,
                    data,
                    packed.text,
                    packed.blocks,
                    *place,
                )
            )
            if packed.xml:
                xml.append((one.shard, body_id, packed.xml[1], packed.xml[0]))
        copy_rows(self._connection, "body", _BODY, rows)
        copy_rows(self._connection, "xml", "shard, body_id, media_type, data", xml)
        return found

    def _same_bodies(self, arrivals: Sequence[Arrival]) -> dict[int, int]:
        """Equal digest, then compared: as packed, which finds all but those that were packed
        with another dictionary.
        """
        wanted = [(one.shard, one.packed.md5, one.packed.size) for one in arrivals if one.packed is not None]
        if not wanted:
            return {}
        find = (
            "SELECT b.shard, b.md5, b.id, b.data, b.text, b.blocks"
            " FROM unnest(%s::smallint[], %s::bytea[], %s::bigint[]) k(shard, md5, size)"
            " JOIN body b ON b.shard = k.shard AND b.md5 = k.md5 AND b.size = k.size AND b.segment IS NULL"
        )
        known: dict[tuple[object, ...], int] = {}
        for shard, md5, body_id, data, text, blocks in self._connection.execute(find, columns_of(wanted, 3)):
            known[shard, md5, data, text, blocks] = body_id
        found = {}
        for one in arrivals:
            packed = one.packed
            if (
                packed is not None
                and (same := known.get((one.shard, packed.md5, packed.data, packed.text, packed.blocks))) is not None
            ):
                found[int(one.completion.task.url_id)] = same
        return found

    def _pages(
        self, arrivals: Sequence[Arrival], bodies: dict[int, int], before: dict[int, tuple[object, ...]]
    ) -> None:
        again = [one for one in arrivals if one.completion.task.url_id in before]
        for one in again:
            source = one.completion.task.url_id
            self._connection.execute("DELETE FROM page WHERE shard = %s AND url_id = %s", (one.shard, source))
            self._connection.execute("DELETE FROM bad_link WHERE shard = %s AND source = %s", (one.shard, source))
        rows = []
        for one in arrivals:
            assert one.document is not None
            rows.append(
                (one.shard, *page_row(one.completion, one.document, bodies.get(one.completion.task.url_id), self._now))
            )
        copy_rows(self._connection, "page", "shard, " + PAGE, rows)

    def _links_of(self, one: Arrival) -> list[tuple[object, ...]]:
        source, outcome = one.completion.task.url_id, one.completion.visit.outcome
        rows = link_rows(source, one.document, self._now) if one.document is not None else []
        if isinstance(outcome, Redirected):
            rows.append(redirect_row(source, outcome, self._now))
        distinct = {row[: _NOFOLLOW + 1]: (one.shard, *row) for row in rows}
        return list(distinct.values())

    def _links(self, links: dict[tuple[int, int], list[tuple[object, ...]]], linked: set[int]) -> None:
        fresh = [row for (_, source), rows in links.items() if source not in linked for row in rows]
        copy_rows(self._connection, "link", "shard, " + _LINK, fresh)
        again = [row for (_, source), rows in links.items() if source in linked for row in rows]
        if again:
            kinds = (
                "smallint",
                "bigint",
                "bigint",
                "text",
                "text",
                "smallint",
                "text",
                "text",
                "bigint",
                "float8",
                "float8",
            )
            upsert = (
                f"INSERT INTO link (shard, {_LINK}) SELECT *"
                f" FROM unnest({', '.join(f'%s::{kind}[]' for kind in kinds)}) ON CONFLICT ({_LINK_KEY}) DO UPDATE"
                " SET anchor = excluded.anchor, fragments = excluded.fragments, times = excluded.times, "
                "last_seen = excluded.last_seen"
            )
            self._connection.execute(upsert, columns_of(again, len(kinds)))

    def _is_changed(self, one: Arrival, before: dict[int, tuple[object, ...]], linked: set[int]) -> bool:
        source = int(one.completion.task.url_id)
        changed = False
        if one.document is not None:
            changed = source not in before or self._replaced(one.shard, source, before[source])
            if source in linked:
                closed = self._close_links(one.shard, source)
                opened = self._connection.execute(
                    "SELECT 1 FROM link WHERE shard = %s AND source = %s AND first_seen = %s LIMIT 1",
                    (one.shard, source, self._now),
                ).fetchone()
                changed = changed or bool(closed) or opened is not None
        elif one.completion.task.recheck:
            self._close_links(one.shard, source, only=LinkKind.REDIRECT)
        return changed

    def _replaced(self, shard: int, url_id: int, before: tuple[object, ...]) -> bool:
        """Whether the page is another one now; then what it was is kept."""
        after = self._connection.execute(
            f"SELECT {', '.join(FIELDS)} FROM page WHERE shard = %s AND url_id = %s", (shard, url_id)
        ).fetchone()
        changed = is_another(before, after)
        if changed:
            marks = ", ".join(["%s"] * (len(FIELDS) + 3))
            keep = (
                f"INSERT INTO page_history (shard, url_id, run_id, {', '.join(FIELDS)})"
                f" VALUES ({marks}) ON CONFLICT DO NOTHING"
            )
            self._connection.execute(keep, (shard, url_id, self._run_id, *before))
        return changed

    def _close_links(self, shard: int, source: int, *, only: str = "") -> int:
        """Ends the page's links that were not seen now; returns how many. only: of this kind."""
        values = {"shard": shard, "source": source, "now": self._now, "run": self._run_id, "only": only}
        where = "shard = %(shard)s AND source = %(source)s AND last_seen < %(now)s" + (
            " AND kind = %(only)s" if only else ""
        )
        seen = (
            "greatest(last_seen, coalesce((SELECT checked FROM freshness f WHERE f.shard = link.shard"
            " AND f.url_id = source), 0))"
        )
        keep = (
            f"INSERT INTO link_history SELECT {_LINK_KEY}, %(run)s, anchor, times, first_seen, {seen} FROM link"
            f" WHERE {where} ON CONFLICT DO NOTHING"
        )
        self._connection.execute(keep, values)
        return self._connection.execute(f"DELETE FROM link WHERE {where}", values).rowcount

    def renew_validators(self, shard: int, url_id: int, unchanged: Unchanged) -> None:
        """By what the page can be asked for next time: RFC 9110, 15.4.5 has a 304 say what is new of it,
        and a 200 says all.
        """
        said = {"etag": unchanged.headers.get("etag"), "last_modified_field": unchanged.headers.get("last-modified")}
        for column, value in said.items():
            if value or unchanged.status == 200:
                update = f"UPDATE page SET {column} = %s WHERE shard = %s AND url_id = %s AND {column} <> %s"
                self._connection.execute(update, (value, shard, url_id, value))


def merge_twins(connection: Connection) -> int:
    """See `model.ports.RunStore.merge_twins`.

    Within a transaction; the hosts concerned are locked in their order, as by who stores pages.
    """
    alike = connection.execute(
        "SELECT u.shard, u.id, u.text, u.depth, p.body_md5, p.text_md5, p.canonical FROM page p"
        " JOIN url u ON u.shard = p.shard AND u.id = p.url_id"
        " WHERE u.reason = ANY(%s) AND u.status = 200"
        " AND (p.shard, p.text_md5) IN (SELECT shard, text_md5 FROM page"
        " GROUP BY shard, text_md5 HAVING count(*) > 1)",
        (_MERGED,),
    ).fetchall()
    starts = connection.execute(
        "SELECT u.text FROM start s JOIN url u ON u.shard = s.shard AND u.id = s.url_id"
    ).fetchall()
    mergers = merged(map(AliasPage._make, (row[1:] for row in alike)), frozenset(Url(text) for (text,) in starts))
    if mergers:
        shards = {row[1]: row[0] for row in alike}
        rows = [(shards[one.twin.url_id], one.twin.url_id, one.page.url_id, one.why) for one in mergers]
        connection.execute("CREATE TEMP TABLE merger (shard smallint, id bigint, page bigint, why text) ON COMMIT DROP")
        copy_rows(connection, "merger", "shard, id, page, why", rows)
        for statement in _MERGE:
            connection.execute(statement.encode(), (_MERGED,) if "%s" in statement else None)
    return len(mergers)


def part_twins(connection: Connection) -> None:
    """Undoes what `merge_twins` did. Within a transaction that holds the hosts concerned."""
    for statement in _PART:
        connection.execute(statement.encode())


_MERGED = sorted(reason.value for reason in MERGED)
_TALLY = (
    "INSERT INTO tally SELECT 0, 'reason:' || {reason}, {sign}count(*) FROM merger m"
    " JOIN url u ON u.shard = m.shard AND u.id = m.id GROUP BY 2"
)
_PARTED = "a.learned = 1 AND a.was <> 'waiting' AND u.shard = a.shard AND u.id = a.url_id AND u.reason = 'alias'"
_ADD = " ON CONFLICT (part, name) DO UPDATE SET value = tally.value + excluded.value"
_MERGE = (  # the twin keeps its row and its content; the page is as near to the start as the nearest of them
    "SELECT 1 FROM host h WHERE (h.shard, h.id) IN (SELECT u.shard, u.host_id FROM merger m"
    " JOIN url u ON u.shard = m.shard AND u.id IN (m.id, m.page))"
    " ORDER BY h.shard, h.id FOR NO KEY UPDATE",
    "DELETE FROM merger m USING url u WHERE u.shard = m.shard AND u.id = m.id AND u.reason <> ALL(%s)",
    "INSERT INTO alias (shard, url_id, page_id, rule, learned, was, was_rule, page_depth)"
    " SELECT m.shard, m.id, m.page, m.why, 1, u.reason, u.rule, CASE WHEN u.depth < coalesce(p.depth, 2000000000) "
    "THEN coalesce(p.depth, 2000000000) END"
    " FROM merger m JOIN url u ON u.shard = m.shard AND u.id = m.id JOIN url p ON p.shard = m.shard AND p.id = m.page"
    " ON CONFLICT (shard, url_id) DO UPDATE SET page_id = excluded.page_id, rule = excluded.rule, "
    "learned = 1, was = excluded.was,"
    " was_rule = excluded.was_rule, moved = '', page_depth = excluded.page_depth",
    _TALLY.format(reason="u.reason", sign="-") + _ADD,
    _TALLY.format(reason="'alias'", sign="") + _ADD,
    "UPDATE url p SET depth = n.depth FROM (SELECT m.shard, m.page, min(u.depth) AS depth FROM merger m"
    " JOIN url u ON u.shard = m.shard AND u.id = m.id"
    " GROUP BY 1, 2) n WHERE p.shard = n.shard AND p.id = n.page AND n.depth < coalesce(p.depth, 2000000000)",
    "UPDATE url u SET reason = 'alias', rule = m.why FROM merger m WHERE u.shard = m.shard AND u.id = m.id",
)
_PART = (
    "UPDATE url p SET depth = nullif(greatest(p.depth, n.depth), 2000000000)"
    " FROM (SELECT shard, page_id, max(page_depth) AS depth FROM alias"
    " WHERE learned = 1 AND was <> 'waiting' AND page_depth IS NOT NULL GROUP BY 1, 2) n"
    " WHERE p.shard = n.shard AND p.id = n.page_id",
    f"INSERT INTO tally SELECT 0, 'reason:' || a.was, count(*) FROM alias a JOIN url u ON {_PARTED} GROUP BY 2" + _ADD,
    f"INSERT INTO tally SELECT 0, 'reason:alias', -count(*) FROM alias a JOIN url u ON {_PARTED} GROUP BY 2" + _ADD,
    f"UPDATE url u SET reason = a.was, rule = a.was_rule FROM alias a WHERE {_PARTED}",
    "DELETE FROM alias WHERE learned = 1 AND was <> 'waiting'",
)
