"""Which database and which collection in it does an address mean?

`postgresql://user@host/database?collection=NAME&segments=PLACE&index=PLACE`: all but these words is libpq's own URI.
One PostgreSQL schema holds one collection, so a database holds as many as one likes; without a name it is `periplus`.
segments: a folder or URL that every worker can write to, where the bytes of pages are kept; without it they stay in the
database. Only the first crawl says it. index: another, where all who search the collection share its index.
"""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from periplus.errors import UsageError
from periplus.masking import without_secrets
from periplus.values import frozen

SCHEMES = ("postgresql://", "postgres://")
DEFAULT_COLLECTION = "periplus"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")  # PostgreSQL cuts names at 63 bytes
# libpq's: hosts with ports, after user and password; what a password has of / ? # @ and % must be written %2F and so on
_SERVERS = re.compile(
    r"(?:(?:[^%@]|%[0-9A-Fa-f]{2})*@)?(?:(?:\[[^\]]*\]|[^:@]*)(?::[0-9]*)?)(?:,(?:\[[^\]]*\]|[^:@,]*)(?::[0-9]*)?)*"
)
_PLACES = ("segments", "index")
_OWN = frozenset({"collection", *_PLACES})


@frozen
class Address:
    """A collection in a database.

    dsn: as libpq reads it, perhaps with a password; segments, index: empty where none was said.
    """

    dsn: str = field(repr=False)
    collection: str = DEFAULT_COLLECTION
    segments: str = ""
    index: str = ""

    @property
    def text(self) -> str:
        """The whole address again, password included: for a child process, never for a log."""
        parts = urlsplit(self.dsn)
        words = (("collection", self.collection), ("segments", self.segments), ("index", self.index))
        own = [(name, value) for name, value in words if value]
        query = "&".join(part for part in (parts.query, urlencode(own)) if part)
        return urlunsplit(parts._replace(query=query))

    def __str__(self) -> str:
        """For people: without password, and without what only libpq wants to know."""
        parts = urlsplit(self.dsn)
        user, _, place = parts.netloc.rpartition("@")
        who = user.partition(":")[0]
        server = place or quote(dict(parse_qsl(parts.query)).get("host", ""), safe="")
        netloc = f"{who}@{server}" if who else server
        return f"postgresql://{netloc}{parts.path}?collection={self.collection}"


def is_address(text: str) -> bool:
    """Whether a text means a collection in PostgreSQL, rather than a folder."""
    return text.startswith(SCHEMES)


def address_of(text: str) -> Address:
    """Raises UsageError."""
    if not is_address(text):
        raise UsageError(
            f"{without_secrets(text)} is no address of a database: postgresql://USER@HOST/DATABASE?collection=NAME"
        )
    parts = urlsplit(text)
    if not _SERVERS.fullmatch(parts.netloc):  # not shown: a password might be
        raise UsageError(
            "the address of the database has no USER:PASSWORD@HOST:PORT: in a password / ? # @ % are written as %2F, "
            "%3F, %23, %40, %25; better, leave it to PGPASSFILE"
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
            f"collection={collection} is no name for a collection: use up to 63 of a-z, 0-9 and _, not "
            "beginning with a digit or pg_"
        )
    places = {name: own.get(name, "") for name in _PLACES}
    for name, place in places.items():
        check_place(name, place)
    return Address(urlunsplit(parts._replace(query=others)), collection, **places)


def noted_place(place: str) -> str:
    """A place of storage as a collection remembers it: a folder by its absolute path."""
    return str(Path(place).absolute()) if place and "://" not in place else place


def check_place(name: str, place: str) -> None:
    """Raises UsageError for a place of storage that other processes cannot use."""
    scheme = place.partition("://")[0].rpartition("::")[2]
    if scheme == "memory":
        raise UsageError(
            f"{name}={place} ends with this process, and what lies there with it: name a folder or a bucket"
        )
    if without_secrets(f"segments={place}") != f"segments={place}":  # as of the parameter that it knows
        raise UsageError(
            f"a password in {name}= would be stored for all workers to read: leave it out, and give it to each in the "
            f"variable FSSPEC_{scheme.upper()}_PASSWORD"
        )
