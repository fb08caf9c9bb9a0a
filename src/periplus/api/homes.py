"""Is a collection kept in a folder or in a database? The one place where that is asked."""

from __future__ import annotations

from pathlib import Path

from periplus.errors import UsageError
from periplus.model.crawl_home import CrawlHome
from periplus.store.sqlite.home import FolderHome

ADDRESSES = ("postgresql://", "postgres://")


def is_address(text: str) -> bool:
    """Whether a text names a collection in a database, and no folder."""
    return text.startswith(ADDRESSES)


def home_of(place: Path | str) -> CrawlHome:
    """place: a folder, or an address. Raises UsageError for an address that is none, or without the extra that it takes."""
    if isinstance(place, Path):
        return FolderHome(place)
    try:
        from periplus.store.postgres.address import address_of
        from periplus.store.postgres.home import DatabaseHome
    except ModuleNotFoundError as missing:
        if missing.name != "psycopg":
            raise
        raise UsageError("collections in PostgreSQL need the extra `postgres`: pip install 'periplus[postgres]'") from None
    return DatabaseHome(address_of(place))
