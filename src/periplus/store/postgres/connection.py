"""Connections to PostgreSQL: opened, retried when the server goes away, and written to in bulk."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.rows import TupleRow

from periplus.errors import StoreError, UsageError
from periplus.settings import VERSION
from periplus.store.postgres.address import Address

#     address = address_of("postgresql://me@db/crawls?collection=press")
#     connection = connect(address)               # waits for a server that is starting; raises StoreError, UsageError
#     with connection.transaction(): ...          # statements name tables only: the search path is the collection
#
# What every connection has from us: a transaction that a dead or cut-off client left open ends after
# IDLE_TRANSACTION_S, so its hosts are free again; and a client whose server is gone learns of it within TCP_TIMEOUT_S.
# `autocommit` is on: a transaction is what stands within `connection.transaction()`, and nothing else holds a lock.

log = logging.getLogger(__name__)

Connection = psycopg.Connection[TupleRow]
# the server or the way to it; a mistake of ours is a ProgrammingError
LOST = (psycopg.OperationalError, psycopg.InterfaceError)
IDLE_TRANSACTION_S = 5  # docs/decisions/0040: without it a host stayed locked for hours after a partition
TCP_TIMEOUT_S = 10  # unanswered data; also the time to connect
LOCK_TIMEOUT_S = 30  # our transactions take milliseconds: who waits longer than this waits for somebody frozen
STATEMENT_TIMEOUT_S = 120
FIRST_PATIENCE_S = 10.0  # for a server that was not seen yet: a person waits, and the address may be wrong
PATIENCE_S = 300.0  # for one that was there, and is being restarted, or a standby that takes over
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
OLDEST_SERVER = 150_000  # 15.0


def _parameters(address: Address) -> dict[str, str]:
    """What libpq is told beside the address; what the address says of the same wins."""
    settings = {
        "idle_in_transaction_session_timeout": f"{IDLE_TRANSACTION_S}s", "lock_timeout": f"{LOCK_TIMEOUT_S}s",
        "statement_timeout": f"{STATEMENT_TIMEOUT_S}s", "tcp_user_timeout": f"{TCP_TIMEOUT_S}s",
        "client_min_messages": "warning",
        "periplus.collection": address.collection,
    }  # fmt: skip
    return {
        "application_name": f"periplus {VERSION}", "connect_timeout": str(TCP_TIMEOUT_S),
        "tcp_user_timeout": str(TCP_TIMEOUT_S * 1000),
        "keepalives": "1", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3",
        "client_encoding": "utf8",
        "target_session_attrs": "read-write",
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }  # fmt: skip


def connect(address: Address, *, patience_s: float = FIRST_PATIENCE_S) -> Connection:
    """A connection whose search path is the collection; its tables need not be there yet (`schema.create`,
    `schema.check`).

    Waits up to patience_s for a server that does not answer. Raises StoreError when it is over, UsageError for what
    waiting would not mend: a wrong password, no such database, an old server.
    """
    is_told = False
    for pause_s in pauses(patience_s):
        try:
            return _connect(address)
        except psycopg.Error as error:
            text = _first_line(error)
            if not isinstance(error, LOST) or _is_lasting(error):
                raise UsageError(f"{address} cannot be opened: {text}") from None
            if pause_s is None:
                raise StoreError(f"the database of {address} does not answer: {text}. {_advice(text)}") from None
            _note_trouble(f"{address} does not answer: {text}.", patience_s, is_new=not is_told)
            is_told = True
            time.sleep(pause_s)
    raise AssertionError("pauses ends with None")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _note_trouble(text: str, patience_s: float, *, is_new: bool) -> None:
    """For a person who wonders why nothing goes on; each further try is for those alone who ask for more."""
    if is_new:
        log.error("%s Trying again for up to %.0f s.", text, patience_s)
    else:
        log.info("%s", text)


def pauses(patience_s: float) -> Iterator[float | None]:
    """How long to wait before each further try: growing, and by chance, so that many workers do not come at one moment.

    None: no more.
    """
    until = time.monotonic() + patience_s
    longest = FIRST_PAUSE_S
    while time.monotonic() + longest < until:
        yield random.uniform(longest / 2, longest)
        longest = min(LONGEST_PAUSE_S, longest * 2)
    yield None


def _connect(address: Address) -> Connection:
    given = psycopg.conninfo.conninfo_to_dict(address.dsn)
    # all are texts, which its signature does not say of further ones
    connection = psycopg.connect(
        address.dsn,
        autocommit=True,
        **{name: value for name, value in _parameters(address).items() if name not in given},  # type: ignore[arg-type]
    )
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        if connection.info.server_version < OLDEST_SERVER:
            raise UsageError(
                f"{address} is PostgreSQL {connection.info.server_version // 10_000}; periplus needs 15 or newer"
            )
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise UsageError(
                f"{address} is a database whose encoding is not UTF8: make one with "
                "`createdb -E UTF8 -T template0 NAME`"
            )
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(address.collection)))
        stack.pop_all()
    return connection


def _is_lasting(error: psycopg.Error) -> bool:
    """Whether a refusal to connect would be the same in a minute: of the password, the user, the name of the database.

    libpq tells no state for those that come before the session; the words are the server's, in its
    language, so all else is waited for.
    """
    text = str(error)
    return any(
        words in text
        for words in (
            "password authentication failed",
            "does not exist",
            "no password supplied",
            "no pg_hba.conf entry",
            "invalid ",
        )
    )


# as `_is_lasting`: the server's words
_ALL_TAKEN = ("too many clients", "too many connections", "remaining connection slots", "no more connections allowed")


def _advice(text: str) -> str:
    """What to do when the patience for a server is over."""
    if any(words in text for words in _ALL_TAKEN):
        return "Raise max_connections there, start fewer workers (--workers), or put PgBouncer before it."
    return "Is the server running? If not, its log says why: its disk may be full."


# A transaction that the server's absence broke is done again, whole, on a new connection.

T = TypeVar("T")

_SENTENCES: dict[type[psycopg.Error], str] = {  # what doing it again does not mend, and the user can
    errors.DiskFull: "the database's disk is full: make room there; the crawl goes on where it was",
    errors.InsufficientPrivilege: (
        "the user of the database may not do this: grant it, or name another user in the address"
    ),
    errors.UndefinedTable: (
        "the collection's tables are gone from the database: was it dropped or renamed? See `periplus status`"
    ),
    errors.InvalidSchemaName: (
        "the collection is gone from the database: was it dropped or renamed? See `periplus status`"
    ),
}


# Of the server's history: each promotion of a standby begins another, and so does a restoration to an earlier moment.
_TIMELINE = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"


class Session:
    """One connection to a collection, renewed when it breaks."""

    def __init__(
        self,
        address: Address,
        patience_s: float = PATIENCE_S,
        succeeded: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        """succeeded: called before all else with a connection to a server that took another's place. With asynchronous
        replication it may lack what was committed last.
        """
        self.address, self._patience_s, self._succeeded = address, patience_s, succeeded
        self._connection = connect(address, patience_s=patience_s)
        self._compared: Connection | None = None  # of which the timeline was compared with that of the one before
        self._timeline = ""

    def run(self, action: Callable[[Connection], T]) -> T:
        """action in one transaction.

        It must bear to be done twice: when the answer to COMMIT is lost, nobody knows whether it was.

        Raises StoreError when the server stays away, or for what only a person can mend.
        """

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return action(connection)

        return self.read(whole)

    def read(self, action: Callable[[Connection], T]) -> T:
        """The same without a transaction, for what only asks: one way to the server and back instead of three."""
        is_told, began = False, time.monotonic()
        for pause_s in pauses(self._patience_s):
            try:
                connection = self._connected()
            except StoreError as error:
                away: psycopg.Error | StoreError = error
            else:
                try:
                    self._compare(connection)
                    answer = action(connection)
                    if is_told:
                        log.error("database %s answers again after %.0f s.", self.address, time.monotonic() - began)
                    return answer
                except psycopg.Error as error:
                    if not self._is_passing(error):
                        raise _sentence(error) from error
                    away = error
            if pause_s is None:
                raise _sentence(away) from away
            text = str(away) if isinstance(away, StoreError) else f"database {self.address}: {_trouble(away)}."
            _note_trouble(text, self._patience_s, is_new=not is_told)
            is_told = True
            time.sleep(pause_s)
        raise AssertionError("pauses ends with None")

    def _connected(self) -> Connection:
        if self._connection.closed:
            self._connection.close()  # of a broken one the rest
            self._connection = connect(self.address, patience_s=0)
        return self._connection

    def _compare(self, connection: Connection) -> None:
        if connection is self._compared:
            return
        timeline = self._timeline
        with contextlib.suppress(errors.FeatureNotSupported):  # storage that servers share loses nothing
            row = connection.execute(_TIMELINE).fetchone()
            timeline = str(row[0]) if row else ""
        if self._timeline and timeline != self._timeline:
            log.warning("database successor=%s timeline=%s", connection.info.port, timeline)
            self._succeeded(connection)
        self._compared, self._timeline = connection, timeline

    def _is_passing(self, error: psycopg.Error) -> bool:
        """Whether to do it again: the server was away, or another transaction was in the way."""
        if isinstance(error, errors.ReadOnlySqlTransaction):  # it is a standby now: its successor is looked for
            self._connection.close()
        is_away = isinstance(error, LOST) or self._connection.closed
        return is_away and (type(error) not in _SENTENCES or _broke_down(error))

    def close(self) -> None:
        self._connection.close()


def _broke_down(error: psycopg.Error) -> bool:
    """Whether the whole server ended with this error, as it does without room for its write-ahead log."""
    return error.diag.severity_nonlocalized == "PANIC"


def _trouble(error: psycopg.Error) -> str:
    text = _first_line(error)
    return f"the server broke down: {text}. Mend that and start it again" if _broke_down(error) else text


def _sentence(error: psycopg.Error | StoreError) -> psycopg.Error | StoreError:
    """For what is a user's trouble, a sentence; what is a mistake of ours stays as it is."""
    if type(error) in _SENTENCES:
        return StoreError(_SENTENCES[type(error)])  # type: ignore[index]  # of the types in the table
    if isinstance(error, LOST):
        text = _first_line(error)
        return StoreError(f"the database does not answer: {text}. {_advice(text)} The crawl goes on where it was.")
    return error


@contextlib.contextmanager
def try_lock(connection: Connection, lock: tuple[int, int]) -> Iterator[bool]:
    """An advisory lock of the session, freed before this returns; False: another session has it.

    Of a process that was killed the server frees it when it sees the connection end.
    """
    row = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", lock).fetchone()
    is_held = bool(row and row[0])
    try:
        yield is_held
    finally:
        if is_held:
            with contextlib.suppress(psycopg.Error):  # the connection is gone, and so is the lock
                connection.execute("SELECT pg_advisory_unlock(%s, %s)", lock)


def columns_of(rows: Iterable[Sequence[object]], width: int) -> list[list[object]]:
    """Rows as columns, for `unnest`: one statement for all, whatever their number."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def cleaned(value: T) -> T:
    """A value of frozen dataclasses and tuples without what PostgreSQL's text cannot hold:
    U+0000 and lone halves of pairs become U+FFFD.

    Slow, and rarely needed: only for what PostgreSQL refused. SQLite keeps both.
    """
    new: object = value
    if type(value) is str:
        new = str(value).replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    elif isinstance(value, tuple) and hasattr(value, "_make"):
        new = value._make(map(cleaned, value))
    elif isinstance(value, tuple):
        new = tuple(map(cleaned, value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        new = dataclasses.replace(
            value,
            **{field.name: cleaned(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init},
        )
    return new  # type: ignore[return-value]  # of the same type, by construction
