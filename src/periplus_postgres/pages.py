"""Stores the pages of a batch: their bytes in a segment or compressed in rows, then bodies, pages and links."""

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
from periplus.model.visit import Fetched
from periplus.model.web import SiteKey
from periplus.settings import Storage
from periplus.store.aliases import alias_mergers
from periplus.store.bodies import (
    LOOK_AFTER,
    PAGES_FOR_DICTIONARY,
    RETRY_GROWTH,
    SAMPLE_PAGES,
    BodyCodec,
    dictionary_for,
)
from periplus.store.ledger import brings_content
from periplus.store.rows import PackedBody, pack_completion
from periplus.store.statements import shard_of
from periplus.store.url_state import MERGEABLE_REASONS
from periplus_postgres.connection import Connection, Session, columns_of, pauses
from periplus_postgres.segments import RecordPlace, SegmentWriter, object_storage
from periplus_postgres.statements import PostgresStatements, copy_rows

log = logging.getLogger(__name__)
# time for retries if object storage fails; after that the batch is dropped and fetched again
STORAGE_PATIENCE_S = 60.0
_BODY = "shard, id, digest, dictionary_id, size, data, text, blocks, segment, start, length"
_MERGEABLE = sorted(reason.value for reason in MERGEABLE_REASONS)
_TALLY = (
    "INSERT INTO tally SELECT 0, 'reason:' || {reason}, {sign}count(*) FROM merger m"
    " JOIN url u ON u.shard = m.shard AND u.id = m.id GROUP BY 2"
)
_IS_FORMER_ALIAS = (
    "a.learned = 1 AND a.was <> 'waiting' AND u.shard = a.shard AND u.id = a.url_id AND u.reason = 'alias'"
)
_ADD = " ON CONFLICT (part, name) DO UPDATE SET value = tally.value + excluded.value"
_MERGE = (  # aliases keep their rows and content; the page gets the smallest depth of all
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
    f"INSERT INTO tally SELECT 0, 'reason:' || a.was, count(*) FROM alias a JOIN url u ON {_IS_FORMER_ALIAS} GROUP BY 2"
    + _ADD,
    f"INSERT INTO tally SELECT 0, 'reason:alias', -count(*) FROM alias a JOIN url u ON {_IS_FORMER_ALIAS} GROUP BY 2"
    + _ADD,
    f"UPDATE url u SET reason = a.was, rule = a.was_rule FROM alias a WHERE {_IS_FORMER_ALIAS}",
    "DELETE FROM alias WHERE learned = 1 AND was <> 'waiting'",
)


class Parcels(NamedTuple):
    """A batch with its packed bodies.

    bodies, places: one per completion; learned: new dictionaries of sites.
    """

    batch: Batch
    bodies: Sequence[PackedBody | None]
    places: Sequence[RecordPlace | None]
    learned: dict[SiteKey, bytes]


class Packer:
    """Packs bodies for one process. If segments are used, the bytes are durable when `pack` returns."""

    def __init__(self, session: Session, storage: Storage, segments: str, note: RunNote) -> None:
        """segments: place of the segments; empty: bytes are stored in the database."""
        self._session, self._storage = session, storage
        self._codec = BodyCodec()
        self._dictionaries: dict[SiteKey, int] = {}
        # number of pages at which training is tried again, for sites without a dictionary
        self._try_at: dict[SiteKey, int] = {}
        # new pages of each site since its dictionary was last looked up
        self._packed: Counter[SiteKey] = Counter()
        self._segments, self._note = segments if storage.keep_bodies else "", note
        self._writer = (
            SegmentWriter(object_storage(segments), f"run{note.run_id}-{uuid.uuid4().hex}", note)
            if self._segments
            else None
        )

    def pack(self, batch: Batch) -> Parcels:
        """Packs a batch. Raises StoreError if segments cannot be written; then the batch must not be stored."""
        if self._writer is not None:
            return self._write_segment(batch, self._writer)
        learned = {site: self._learn(site) for site in self._sites_to_learn(batch)}
        bodies = [
            pack_completion(completion, self._storage, self._codec, self._dictionaries.get(completion.lease.site))
            for completion in batch.completions
        ]
        return Parcels(batch, bodies, [None] * len(bodies), {site: data for site, data in learned.items() if data})

    def _write_segment(self, batch: Batch, writer: SegmentWriter) -> Parcels:
        rest = replace(self._storage, keep_bodies=False)
        for pause_s in pauses(STORAGE_PATIENCE_S):
            try:
                places = [
                    _append_record(writer, completion, self._note.run_id) if _has_body(completion) else None
                    for completion in batch.completions
                ]
                writer.flush()
                break
            except StoreError as error:
                if pause_s is None:
                    raise
                log.warning("segments trouble=%s pause_s=%.1f", error, pause_s)
                time.sleep(pause_s)
        bodies = [
            pack_completion(completion, self._storage if completion.rendering else rest, self._codec, None)
            or _empty(completion, place)
            for completion, place in zip(batch.completions, places, strict=True)
        ]
        return Parcels(batch, bodies, places, {})

    def _sites_to_learn(self, batch: Batch) -> list[SiteKey]:
        """Sites with so many new pages that a dictionary may exist, or can be trained."""
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
        """Trains a dictionary for a site that has enough pages and none yet, outside of any transaction; else returns
        an empty one.
        """
        row = self._session.read(lambda connection: _site(connection, site))
        if row is None or row[0] is not None or row[1] < self._try_at.get(site, PAGES_FOR_DICTIONARY):
            if row is not None and row[0] is not None:  # another process was first
                self._use(site, row[0])
            return b""
        # if training fails, as for sites with tiny pages, retry later
        self._try_at[site] = row[1] * RETRY_GROWTH
        rows = self._session.read(lambda connection: _samples(connection, site))
        return dictionary_for(
            [
                (self._codec.unpack_body(data, None, text), self._codec.unpack(text, None) if text else b"")
                for data, text in rows
            ]
        )

    def _use(self, site: SiteKey, dictionary_id: int) -> None:
        if not self._codec.knows(dictionary_id):
            find = "SELECT data FROM dictionary WHERE shard = %s AND id = %s"
            row = self._session.read(
                lambda connection: connection.execute(find, (shard_of(site), dictionary_id)).fetchone()
            )
            assert row is not None
            self._codec.add(dictionary_id, row[0])
        self._dictionaries[site] = dictionary_id

    def forget(self) -> None:
        """Resets the dictionaries after a failover, since ids may be missing or have another meaning."""
        self._codec = BodyCodec()
        self._dictionaries.clear()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.__exit__(None, None, None)


def store_dictionary(connection: Connection, site: SiteKey, data: bytes) -> None:
    """Stores a site's dictionary, unless it has one. Concurrent training may leave an unused row."""
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


def _samples(connection: Connection, site: SiteKey) -> list[tuple[bytes, bytes | None]]:
    find = (
        "SELECT b.data, b.text FROM site s JOIN host h ON h.shard = s.shard AND h.site_id = s.id"
        " JOIN url u ON u.shard = h.shard AND u.host_id = h.id"
        " JOIN page p ON p.shard = u.shard AND p.url_id = u.id JOIN body b ON b.shard = p.shard AND b.id = p.body_id"
        " WHERE s.shard = %s AND s.key = %s AND length(b.data) > 0 AND b.dictionary_id IS NULL LIMIT %s"
    )
    return [(row[0], row[1]) for row in connection.execute(find, (shard_of(site), site, SAMPLE_PAGES))]


def _has_body(completion: Completion) -> bool:
    return (
        completion.document is not None
        and isinstance(completion.visit.outcome, Fetched)
        and bool(completion.visit.outcome.body)
    )


def _append_record(writer: SegmentWriter, completion: Completion, run_id: int) -> RecordPlace | None:
    """Writes the original response; returns its position, or None for a rendered page, which is stored in its row."""
    place = writer.append(_exchange(completion, run_id))
    return None if completion.rendering else place


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
        completion.rendering.sent if completion.rendering else outcome.body,
        outcome.cut.value,
        0,
    )


def _empty(completion: Completion, place: RecordPlace | None) -> PackedBody | None:
    """A body row for bytes in a segment, if no text is stored."""
    outcome = completion.visit.outcome
    if place is None or completion.document is None or not isinstance(outcome, Fetched):
        return None
    return PackedBody(completion.document.digests.body, None, len(outcome.body), b"", None)


class _Arrival(NamedTuple):
    """A body with its shard. place: of its bytes in a segment."""

    shard: int
    body: PackedBody
    place: RecordPlace | None


def stored_bodies(connection: Connection, parcels: Parcels, stored: Sequence[int]) -> list[int | None]:
    """Inserts the completions' bodies, or finds identical ones; returns their ids. Call it within a transaction.

    stored: indices of the completions with a valid lease.
    """
    arrivals: dict[int, _Arrival] = {}
    for at in stored:
        completion, body = parcels.batch.completions[at], parcels.bodies[at]
        if body is not None and completion.document is not None and brings_content(completion):
            arrivals[at] = _Arrival(shard_of(completion.lease.site), body, parcels.places[at])
    body_ids = _same_bodies(connection, {at: arrival for at, arrival in arrivals.items() if arrival.place is None})
    fresh = {at: arrival for at, arrival in arrivals.items() if at not in body_ids}
    if fresh:
        numbers = "SELECT nextval((SELECT pg_get_serial_sequence('body', 'id')::regclass)) FROM generate_series(1, %s)"
        ids = [body_id for (body_id,) in connection.execute(numbers, (len(fresh),)).fetchall()]
        body_ids |= dict(zip(fresh, ids, strict=True))
        _insert_bodies(connection, list(zip(ids, fresh.values(), strict=True)))
    return [body_ids.get(at) for at in stored]


def _insert_bodies(connection: Connection, fresh: Sequence[tuple[int, _Arrival]]) -> None:
    body_rows, xml_rows = [], []
    for body_id, (shard, body, place) in fresh:
        data = b"" if place else body.data
        content = (body.digest, body.dictionary_id, body.size, data, body.text, body.blocks)
        body_rows.append((shard, body_id, *content, *(place or (None, None, None))))
        if body.xml:
            xml, media_type = body.xml
            xml_rows.append((shard, body_id, media_type, xml))
    copy_rows(connection, "body", _BODY, body_rows)
    if xml_rows:
        copy_rows(connection, "xml", "shard, body_id, media_type, data", xml_rows)


def _same_bodies(connection: Connection, arrivals: dict[int, _Arrival]) -> dict[int, int]:
    """Finds identical bodies by digest, then by packed bytes. Bodies packed with another dictionary are not found."""
    if not arrivals:
        return {}
    keys = [(arrival.shard, arrival.body.digest, arrival.body.size) for arrival in arrivals.values()]
    find = (
        "SELECT b.shard, b.digest, b.id, b.data, b.text, b.blocks"
        " FROM unnest(%s::smallint[], %s::bytea[], %s::bigint[]) k(shard, digest, size)"
        " JOIN body b ON b.shard = k.shard AND b.digest = k.digest AND b.size = k.size AND b.segment IS NULL"
    )
    present: dict[tuple[object, ...], int] = {}
    for shard, digest, body_id, data, text, blocks in connection.execute(find, columns_of(keys, 3)):
        present[shard, digest, data, text, blocks] = body_id
    same = {
        at: present.get((arrival.shard, arrival.body.digest, arrival.body.data, arrival.body.text, arrival.body.blocks))
        for at, arrival in arrivals.items()
    }
    return {at: body_id for at, body_id in same.items() if body_id is not None}


def merge_aliases(connection: Connection) -> int:
    """See `model.ports.RunStore.merge_aliases`.

    Call it within a transaction; it locks the affected hosts in key order.
    """
    mergers, shards = alias_mergers(PostgresStatements(connection))
    if mergers:
        rows = [
            (shards[merger.alias.url_id], merger.alias.url_id, merger.page.url_id, merger.why) for merger in mergers
        ]
        connection.execute("CREATE TEMP TABLE merger (shard smallint, id bigint, page bigint, why text) ON COMMIT DROP")
        values = "unnest(%s::smallint[], %s::bigint[], %s::bigint[], %s::text[])"
        connection.execute(f"INSERT INTO merger SELECT * FROM {values}", columns_of(rows, 4))
        for statement in _MERGE:
            connection.execute(statement.encode(), (_MERGEABLE,) if "%s" in statement else None)
    return len(mergers)


def part_aliases(connection: Connection) -> None:
    """Undoes `merge_aliases`. Call it within a transaction that has locked the affected hosts."""
    for statement in _PART:
        connection.execute(statement.encode())
