"""Where do the bytes of a batch's pages go, before its rows? Into a segment, closed or flushed; or packed, to go with the rows."""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from periplus.errors import StoreError
from periplus.model.archive import Exchange, RunNote
from periplus.model.frontier import Batch, Completion
from periplus.model.visit import Fetched
from periplus.model.web import SiteKey
from periplus.settings import Keeping
from periplus.store.bodies import PAGES_FOR_DICTIONARY, BodyCodec, train
from periplus.store.postgres.connection import Connection, pauses
from periplus.store.postgres.schema import shard_of
from periplus.store.postgres.session import Session
from periplus.store.rows import PackedBody, packed
from periplus.store.segments import Place, SegmentWriter, shelf_of

log = logging.getLogger(__name__)
LOOK_AFTER = PAGES_FOR_DICTIONARY // 8  # pages of a site after which it is asked for its dictionary
SHELF_PATIENCE_S = 60.0  # for object storage that refuses now and then; after it the batch is given up, and fetched again


class Parcels(NamedTuple):
    """A batch whose bytes are taken care of. bodies and places: one for each completion; learned: dictionaries of sites."""

    batch: Batch
    bodies: Sequence[PackedBody | None]
    places: Sequence[Place | None]
    learned: dict[SiteKey, bytes]


class Packer:
    """Packs bodies for one process. With segments, their bytes are there for good when `pack` returns."""

    def __init__(self, session: Session, keeping: Keeping, segments: str, note: RunNote) -> None:
        """segments: the place where they are kept; empty: in the database."""
        self._session, self._keeping = session, keeping
        self._codec = BodyCodec()
        self._dictionaries: dict[SiteKey, int] = {}
        self._try_at: dict[SiteKey, int] = {}  # pages at which to try again to learn a dictionary, for sites that gave none
        self._packed: Counter[SiteKey] = Counter()  # pages of each site: now and then it is asked whether it has a dictionary by now
        self._shelf, self._note = segments if keeping.keep_bodies else "", note
        self._writer = SegmentWriter(shelf_of(segments), f"run{note.run_id}-{uuid.uuid4().hex}", note) if self._shelf else None

    def pack(self, batch: Batch) -> Parcels:
        """Raises StoreError when segments cannot be written: then nothing of the batch may be stored."""
        if self._writer is not None:
            return self._shelve(batch, self._writer)
        learned = {site: self._learn(site) for site in self._sites_to_learn(batch)}
        bodies = [packed(completion, self._keeping, self._codec, self._dictionaries.get(completion.lease.site)) for completion in batch.completions]
        return Parcels(batch, bodies, [None] * len(bodies), {site: data for site, data in learned.items() if data})

    def _shelve(self, batch: Batch, writer: SegmentWriter) -> Parcels:
        rest = replace(self._keeping, keep_bodies=False)
        for pause_s in pauses(SHELF_PATIENCE_S):
            try:
                places = [writer.append(_exchange(one, self._note.run_id)) if _has_body(one) else None for one in batch.completions]
                writer.flush()
                break
            except StoreError as error:
                if pause_s is None:
                    raise
                log.warning("segments trouble=%s pause_s=%.1f", error, pause_s)
                time.sleep(pause_s)
        bodies = [packed(one, rest, self._codec, None) or _empty(one, place) for one, place in zip(batch.completions, places, strict=True)]
        return Parcels(batch, bodies, places, {})

    def _sites_to_learn(self, batch: Batch) -> list[SiteKey]:
        """Those that have had so many pages since they were last looked at that there may be a dictionary, somebody else's or ours."""
        if not self._keeping.keep_bodies:
            return []
        for completion in batch.completions:
            if completion.document is not None and completion.lease.site not in self._dictionaries:
                self._packed[completion.lease.site] += 1
        due = [site for site, pages in self._packed.items() if pages >= LOOK_AFTER]
        for site in due:
            del self._packed[site]
        return due

    def _learn(self, site: SiteKey) -> bytes:
        """A dictionary for a site that has enough pages and none yet, trained outside of any transaction; else empty."""
        found = self._session.read(lambda connection: _site(connection, site))
        if found is None or found[0] is not None or found[1] < self._try_at.get(site, PAGES_FOR_DICTIONARY):
            if found is not None and found[0] is not None:  # somebody was first
                self._use(site, found[0])
            return b""
        self._try_at[site] = found[1] * 2  # in case this fails: of a site of errors or tiny pages there is nothing to learn
        rows = self._session.read(lambda connection: _samples(connection, site))
        return train([self._codec.unpack(data, None) for (data,) in rows])

    def _use(self, site: SiteKey, dictionary_id: int) -> None:
        if not self._codec.knows(dictionary_id):
            find = "SELECT data FROM dictionary WHERE shard = %s AND id = %s"
            row = self._session.read(lambda connection: connection.execute(find, (shard_of(site), dictionary_id)).fetchone())
            assert row is not None
            self._codec.add(dictionary_id, row[0])
        self._dictionaries[site] = dictionary_id

    def close(self) -> None:
        if self._writer is not None:
            self._writer.__exit__(None, None, None)


def store_dictionary(connection: Connection, site: SiteKey, data: bytes) -> None:
    """The site's dictionary, unless it has one. Of two who learned at once one keeps a row that nobody uses."""
    row = connection.execute("INSERT INTO dictionary (shard, data) VALUES (%s, %s) RETURNING id", (shard_of(site), data)).fetchone()
    assert row is not None
    connection.execute("UPDATE site SET dictionary_id = %s WHERE shard = %s AND key = %s AND dictionary_id IS NULL", (row[0], shard_of(site), site))


def _site(connection: Connection, site: SiteKey) -> tuple[int | None, int] | None:
    """(dictionary, pages fetched) of a site."""
    find = (
        "SELECT s.dictionary_id, (SELECT sum(h.fetched) FROM host h WHERE h.shard = s.shard AND h.site_id = s.id)::bigint"
        " FROM site s WHERE s.shard = %s AND s.key = %s"
    )
    row = connection.execute(find, (shard_of(site), site)).fetchone()
    return (row[0], int(row[1] or 0)) if row else None


def _samples(connection: Connection, site: SiteKey) -> list[tuple[bytes]]:
    find = (
        "SELECT b.data FROM site s JOIN host h ON h.shard = s.shard AND h.site_id = s.id JOIN url u ON u.shard = h.shard AND u.host_id = h.id"
        " JOIN page p ON p.shard = u.shard AND p.url_id = u.id JOIN body b ON b.shard = p.shard AND b.id = p.body_id"
        " WHERE s.shard = %s AND s.key = %s AND length(b.data) > 0 AND b.dictionary_id IS NULL LIMIT %s"
    )
    return [(row[0],) for row in connection.execute(find, (shard_of(site), site, PAGES_FOR_DICTIONARY)).fetchall()]


def _has_body(completion: Completion) -> bool:
    return completion.document is not None and isinstance(completion.visit.outcome, Fetched) and bool(completion.visit.outcome.body)


def _exchange(completion: Completion, run_id: int) -> Exchange:
    visit, outcome = completion.visit, completion.visit.outcome
    assert isinstance(outcome, Fetched)
    asked = (visit.request.url, visit.request.purpose.value, visit.started, visit.took_s)
    return Exchange(0, run_id, *asked, "fetched", outcome.status, "", visit.address, outcome.headers, outcome.body, outcome.cut.value, 0)


def _empty(completion: Completion, place: Place | None) -> PackedBody | None:
    """A row for bytes that lie elsewhere, where nothing else is kept of them."""
    outcome = completion.visit.outcome
    if place is None or completion.document is None or not isinstance(outcome, Fetched):
        return None
    return PackedBody(completion.document.digests.body, None, len(outcome.body), b"", None)
