"""How does a collection become a web archive?"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

from periplus.acquire.transport import user_agent
from periplus.document.understand import canonical_xml
from periplus.errors import StoreError
from periplus.model.archive import Exchange, RunNote
from periplus.model.visit import Fetched
from periplus.settings import VERSION, Settings, settings_from
from periplus.store.sqlite import reading, runs
from periplus.store.sqlite.contents import Contents
from periplus.store.sqlite.exchanges import exchanges, shared_bodies
from periplus.store.warc.writing import FILE_BYTES, Archive, Written, write_archive
from periplus.urls.canonical import url_id


def export_warc(folder: Path, path: Path, *, file_bytes: int = FILE_BYTES, index: Path | None = None, with_xml: bool = False) -> Written:
    """Writes everything that was fetched as WARC 1.1, in the order of fetching. index: a CDXJ file. Raises NoCollection, StoreError.

    with_xml: beside each page that is read a conversion record with its canonical XML.
    """
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        notes = {record.id: _note(record) for record in runs.run_records(connection)}
        archive = Archive(path, notes, VERSION, shared_bodies(connection), file_bytes, _xml_of(connection) if with_xml else None)
        try:
            return write_archive(archive, exchanges(connection), index)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror or error}. Is the disk full, or the folder read-only?") from error


def _xml_of(connection: reading.Connection) -> Callable[[Exchange], tuple[bytes, str] | None]:
    """A page as XML: as it was kept, else made of its bytes."""
    contents = Contents(connection)

    def xml_of(exchange: Exchange) -> tuple[bytes, str] | None:
        if (kept := contents.xml(url_id(exchange.url))) is not None or exchange.body is None:
            return kept
        return canonical_xml(exchange.url, Fetched(exchange.status, exchange.headers, exchange.body))

    return xml_of


def _note(record: runs.RunRecord) -> RunNote:
    """A run as its archive describes it; what its settings say of passwords was never stored."""
    settings = settings_of_run(record.settings)
    robots = not (settings.manners.mine and settings.manners.ignore_robots)
    return RunNote(record.id, record.started, user_agent(settings.identity), record.starts, json.dumps(record.settings), robots)


def settings_of_run(values: dict[str, object]) -> Settings:
    """The settings of a stored run, as far as this version knows them; passwords and files of another machine left out."""
    from periplus.settings import rows

    known = {row.name for row in rows()} - {"auth", "cookie_file", "ca_file", "proxy", "resolve"}
    return settings_from({name: value for name, value in values.items() if name in known})
