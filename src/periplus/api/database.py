"""A collection in a database, read: what of a `Collection` it can answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from periplus.api.collection import Status
from periplus.api.exporting import export_rows, exported_columns
from periplus.api.homes import home_of
from periplus.api.page import PageToWrite, markdown_of, markdown_pieces, shown, text_of
from periplus.api.rows import Rows
from periplus.errors import UsageError
from periplus.model.collection import SegmentState
from periplus.model.page import ALL_PARTS, TEXT_PARTS, Blocks, Part, Publication
from periplus.model.tables import Row
from periplus.model.visit import Fetched, Headers
from periplus.model.web import SiteKey, Url
from periplus.store.crawl_reads import backlog, state_tallies, traps
from periplus.store.dialect import shard_of
from periplus.store.postgres.address import Address, address_of
from periplus.store.runs import is_paused, records
from periplus.store.segments import object_storage, swept
from periplus.urls.canonical import canonical, resolve, url_id
from periplus.urls.scope import site_key

if TYPE_CHECKING:  # what needs the extra `postgres` is loaded by whichever function connects
    from periplus.api.marks import SiteSample
    from periplus.api.site import Site
    from periplus.model.ports import RunRecord
    from periplus.store.postgres.connection import Connection

BUSIEST = 10  # hosts that a status names


@dataclass(frozen=True, slots=True)
class DatabasePage:
    """One page of a collection in a database, as it is kept. row: of `model.tables.SEEN`."""

    row: Row
    _text: str
    _blocks: Blocks
    _parts: tuple[Part, ...] | None
    _body: bytes | None
    _xml: tuple[bytes, str] | None
    _judge: Callable[[Row, Blocks], tuple[Part, ...]]  # one part for each block, where they are not marked

    @property
    def url(self) -> Url:
        return Url(self.row.url)

    def parts(self) -> tuple[Part, ...]:
        """As `Page.parts`."""
        return self._judge(self.row, self._blocks) if self._parts is None else self._parts

    def text(self, parts: Collection[Part] = TEXT_PARTS) -> str:
        """As `Page.text`."""
        blocks, is_shown = self._kept(), self._shown(parts)
        return self._text if is_shown is None else text_of(blocks, is_shown)

    def markdown(self, parts: Collection[Part] = TEXT_PARTS) -> str:
        """As `Page.markdown`."""
        return markdown_of(self._to_write(parts))

    def markdown_pieces(self, parts: Collection[Part] = TEXT_PARTS) -> list[str]:
        """The same in pieces, a heading, paragraph, list, table or code each."""
        return markdown_pieces(self._to_write(parts))

    def _shown(self, parts: Collection[Part]) -> list[bool] | None:
        return None if ALL_PARTS.issubset(parts) else shown(self.parts(), parts)

    def _kept(self) -> Blocks:
        if not self._blocks:
            raise UsageError(f"there is no text of {self.url}: it was not fetched, has no words, or keep_text is off")
        return self._blocks

    def _to_write(self, parts: Collection[Part]) -> PageToWrite:
        from periplus.document.understand import canonical_xml

        xml, title = self._xml, self.row.title or ""
        if xml is None and self._body is not None:
            field = f"{self.row.media_type}; charset={self.row.charset or 'utf-8'}"
            xml = canonical_xml(self.url, Fetched(200, Headers((("content-type", field),)), self._body))
        blocks = self._kept()
        return PageToWrite(self.url, title if Part.HEADLINE in parts else "", xml, blocks, self._shown(parts))


class DatabaseCollection:
    """One collection at an address (`postgresql://...`), read. A crawl may go on meanwhile.

    Each call opens a connection of its own. Search, reports and studies are asked of collections in folders:
    `periplus move` makes one.
    """

    def __init__(self, address: str) -> None:
        """Raises NoCollection, StoreError."""
        self._text, self._address = address, address_of(address)
        self._samples: dict[SiteKey, SiteSample] = {}
        self.runs()

    def __enter__(self) -> DatabaseCollection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DatabaseCollection {self._address.collection}>"

    def close(self) -> None:
        """Does nothing: no connection is held."""

    def runs(self) -> Sequence[RunRecord]:
        """All runs, oldest first."""
        return home_of(self._text).runs()

    def status(self) -> Status:
        """What there is, in one value and one snapshot."""
        from periplus.store.postgres import hosts as host_rows
        from periplus.store.postgres.statements import PostgresStatements

        with _connected(self._address) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            statements = PostgresStatements(connection)
            work = backlog(statements, BUSIEST, host_rows.time_now(connection, None))
            workers = host_rows.workers_with_lease(connection)
            return Status(
                folder=Path(),
                size_bytes=host_rows.size_bytes(connection),
                running=workers > 0,
                paused=is_paused(statements),
                runs=tuple(records(statements)),
                counts=tuple(state_tallies(statements)),
                hosts=work.hosts,
                hosts_waiting=work.hosts_waiting,
                entries_waiting=work.to_fetch,
                busiest=work.busiest,
                traps=tuple(traps(statements)),
                store=str(self._address),
                workers=workers,
            )

    def map(
        self, site: str = "", *, scale: str = "normalised", damping: float = 0.85, rounds: int | None = None
    ) -> Site:
        """The hierarchical map of a site, as `Collection.map` makes it. Raises UsageError where there is none."""
        from periplus.api.facts import RankOrder
        from periplus.api.site import stored_map

        return stored_map(self._text, site, RankOrder(scale, damping, rounds))

    def page(self, url: str) -> DatabasePage:
        """One page with what is known and kept of it. url: in full, or a path on the site where the crawl began.

        Raises InvalidUrl, and UsageError for a URL that was never seen.
        """
        from periplus.store.postgres.page_texts import stored_page

        starts = [start for run in self.runs() for start in run.starts]
        target = resolve(url, Url(starts[0]))[0] if starts and url.startswith("/") else canonical(url)
        page = stored_page(self._address, shard_of(site_key(target)), url_id(target))
        if page is None:
            raise UsageError(f"the collection does not know {target}")
        return DatabasePage(*page, self._judged)

    def _judged(self, row: Row, blocks: Blocks) -> tuple[Part, ...]:
        """One part for each block of a page, by others of its site."""
        from periplus.api.marks import LOOKED_AT, parts_by, sample_of
        from periplus.store.postgres.page_texts import blocks_of_site

        site = site_key(Url(row.url))
        if site not in self._samples:
            self._samples[site] = sample_of(blocks_of_site(self._address, site, LOOKED_AT))
        written = Publication(row.author or "", "", row.date_published or "", "", row.date_modified or "")
        return parts_by(self._samples[site], row.id, blocks, written)

    @contextlib.contextmanager
    def texts(self) -> Iterator[tuple[int, Iterator[DatabasePage]]]:
        """(how many pages have a text, these pages, the nearest to the start first), at one moment; streamed."""
        from periplus.store.postgres.page_texts import stored_pages

        with stored_pages(self._address) as (count, pages):
            yield count, (DatabasePage(*page, self._judged) for page in pages)

    def table(self, name: str) -> Rows:
        """One table whole: `urls`, `pages`, `links`, `visits`, `hosts`, ...: docs/sql.md. Raises UsageError."""

        def read(names: Sequence[str]) -> Iterator[Sequence[object]]:
            with export_rows(self._text, name, ranks=False) as exported:
                yield from exported.rows

        return Rows(name, exported_columns(self._text, name, ranks=False), read)


def clear(store: str) -> None:
    """Deletes what a collection in a database holds, the segments that its pages lie in too; its jobs stay, and the
    place of its segments unless the address names another.

    Raises UsageError while somebody works on it, NoCollection, StoreError.
    """
    from periplus.store.postgres import schema, table_rows

    address = address_of(store)
    with home_of(store).only_crawl(), _connected(address) as connection:
        if workers := table_rows.workers_at_work(connection):
            raise UsageError(f"workers are at work on {address}: {workers}. Stop them, then delete.")
        place, names = table_rows.place_of_segments(connection), table_rows.segments_of_pages(connection)
        schema.clear(connection, address.segments or place)
        if names:
            with contextlib.closing(object_storage(place)) as storage:
                for name in names:
                    storage.delete(name)


def check_segments(
    store: str, *, delete: bool = False, watch: Callable[[str], None] = lambda name: None
) -> Sequence[SegmentState]:
    """Reads every segment of a collection in a database, and says whether it holds what pages point at.

    delete: those that no page points into, while nobody crawls. watch: is told the segment that was read. Raises
    UsageError, NoCollection, StoreError.
    """
    from periplus.store.postgres import table_rows

    address = address_of(store)
    with _connected(address) as connection:
        place = table_rows.place_of_segments(connection)
        if not place:
            raise UsageError(f"{address} keeps the bytes of its pages in the database: there are no segments to check")
        if delete and (workers := table_rows.workers_at_work(connection)):
            raise UsageError(
                f"{workers} workers are at work: what they have written and not yet entered looks "
                "unused. Stop them, then delete."
            )
        # segments are read between two blocks of rows
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        states, storage = [], object_storage(place)
        with connection.transaction():
            for state in swept(storage, table_rows.claimed(connection)):
                watch(state.name)
                states.append(state)
        if delete:
            for state in states:
                if state.is_unused:
                    storage.delete(state.name)
        storage.close()
        return states


@contextlib.contextmanager
def _connected(address: Address) -> Iterator[Connection]:
    """To a collection that is there. Raises UsageError, NoCollection, StoreError."""
    from periplus.store.postgres import schema
    from periplus.store.postgres.connection import connect

    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        yield connection
