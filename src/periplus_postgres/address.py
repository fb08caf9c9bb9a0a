"""Parses addresses of collections in PostgreSQL.

An address is `postgresql://user@host/database?collection=NAME&segments=PLACE&index=PLACE`, a libpq URI with three more
parameters. collection: the PostgreSQL schema that contains the collection, by default `periplus`; a database can hold
many. segments: a folder or URL that all workers can write to, where bytes of pages are stored; by default they are
stored in the database. Only the first crawl needs it. index: the same for a search index shared by all readers.
"""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from periplus.errors import UsageError
from periplus.masking import without_secrets
from periplus.values import frozen

DEFAULT_COLLECTION = "periplus"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")  # PostgreSQL truncates names at 63 bytes
# as in libpq: user and password, then hosts with ports; / ? # @ and % in a password must be percent-encoded
_SERVERS = re.compile(
    r"(?:(?:[^%@]|%[0-9A-Fa-f]{2})*@)?(?:(?:\[[^\]]*\]|[^:@]*)(?::[0-9]*)?)(?:,(?:\[[^\]]*\]|[^:@,]*)(?::[0-9]*)?)*"
)
_PLACES = ("segments", "index")
_OWN = frozenset({"collection", *_PLACES})


@frozen
class Address:
    """The address of a collection in a database.

    dsn: for libpq, may contain a password; segments, index: may be empty.
    """

    dsn: str = field(repr=False)
    collection: str = DEFAULT_COLLECTION
    segments: str = ""
    index: str = ""

    @property
    def text(self) -> str:
        """The complete address with the password, for child processes. Never log it."""
        parts = urlsplit(self.dsn)
        words = (("collection", self.collection), ("segments", self.segments), ("index", self.index))
        own = [(name, value) for name, value in words if value]
        query = "&".join(part for part in (parts.query, urlencode(own)) if part)
        return urlunsplit(parts._replace(query=query))

    def __str__(self) -> str:
        """For messages: without password and libpq parameters."""
        parts = urlsplit(self.dsn)
        user, _, place = parts.netloc.rpartition("@")
        who = user.partition(":")[0]
        server = place or quote(dict(parse_qsl(parts.query)).get("host", ""), safe="")
        netloc = f"{who}@{server}" if who else server
        return f"postgresql://{netloc}{parts.path}?collection={self.collection}"


def address_of(text: str | Address) -> Address:
    """Parses an address, unless it is parsed already. Raises UsageError."""
    if isinstance(text, Address):
        return text
    if text.partition("://")[0] not in ("postgresql", "postgres"):
        raise UsageError(
            f"{without_secrets(text)} is not the address of a database: postgresql://USER@HOST/DATABASE?collection=NAME"
        )
    parts = urlsplit(text)
    if not _SERVERS.fullmatch(parts.netloc):  # not shown, since it may contain a password
        raise UsageError(
            "the address of the database is not of the form USER:PASSWORD@HOST:PORT. In a password write / ? # @ % as "
            "%2F, %3F, %23, %40, %25, or use PGPASSFILE"
        )
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    own = {name: value for name, value in parameters if name in _OWN}
    others = urlencode([(name, value) for name, value in parameters if name not in _OWN], quote_via=quote)
    collection = own.get("collection") or DEFAULT_COLLECTION
    if (
        not _NAME.fullmatch(collection)
        or collection.startswith("pg_")
        or collection in ("public", "information_schema")
    ):
        raise UsageError(
            f"collection={collection} is not a valid collection name: use up to 63 of a-z, 0-9 and _, not "
            "starting with a digit or pg_"
        )
    places = {name: own.get(name, "") for name in _PLACES}
    for name, place in places.items():
        check_place(name, place)
    return Address(urlunsplit(parts._replace(query=others)), collection, **places)


def noted_place(place: str) -> str:
    """A storage place in the form that is stored in a collection: absolute for folders."""
    return str(Path(place).absolute()) if place and "://" not in place else place


def check_place(name: str, place: str) -> None:
    """Raises UsageError for a storage place that other processes cannot use."""
    scheme = place.partition("://")[0].rpartition("::")[2]
    if scheme == "memory":
        raise UsageError(f"{name}={place} is lost when this process ends: use a folder or a bucket")
    if without_secrets(f"segments={place}") != f"segments={place}":  # checked as the known parameter `segments`
        raise UsageError(
            f"a password in {name}= would be readable by all workers: remove it, and set it for each worker in the "
            f"variable FSSPEC_{scheme.upper()}_PASSWORD"
        )
