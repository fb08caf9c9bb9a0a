"""Connections to PostgreSQL: opening, retries when the server is away, and bulk parameters."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.rows import TupleRow

from periplus.errors import StoreError, UsageError
from periplus.settings import VERSION
from periplus_postgres.address import Address

#     address = address_of("postgresql://me@db/crawls?collection=press")
#     connection = connect(address)               # waits for a server that is starting; raises StoreError, UsageError
#     with connection.transaction(): ...          # the search path is the collection's schema
#
# Every connection is set up so that a transaction left open by a dead or disconnected client ends after
# IDLE_TRANSACTION_S, which frees its hosts, and a client whose server is gone notices within TCP_TIMEOUT_S.
# `autocommit` is on: only code within `connection.transaction()` runs in a transaction and holds locks.

log = logging.getLogger(__name__)

Connection = psycopg.Connection[TupleRow]
# the server or the connection failed; mistakes of ours raise ProgrammingError
CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError)
IDLE_TRANSACTION_S = 5  # docs/decisions/0040: without it a host stayed locked for hours after a partition
TCP_TIMEOUT_S = 10  # unanswered data; also the time to connect
LOCK_TIMEOUT_S = 30  # our transactions take milliseconds, so a longer wait means that another client is frozen
STATEMENT_TIMEOUT_S = 120
FIRST_PATIENCE_S = 10.0  # for the first connection: a user is waiting, and the address may be wrong
PATIENCE_S = 300.0  # for a known server, which may be restarting or failing over
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
OLDEST_SERVER = 150_000  # 15.0
# messages of the server, see `_is_permanent`
_CONNECTION_LIMIT_MESSAGES = (
    "too many clients",
    "too many connections",
    "remaining connection slots",
    "no more connections allowed",
)
T = TypeVar("T")
_USER_MESSAGES: dict[type[psycopg.Error], str] = {  # errors that the user can fix, but not a retry
    errors.DiskFull: "the database's disk is full: free some space; the crawl then continues",
    errors.InsufficientPrivilege: ("the database user lacks a privilege: grant it, or use another user in the address"),
    errors.UndefinedTable: (
        "the collection's tables are gone from the database: was it dropped or renamed? See `periplus status`"
    ),
    errors.InvalidSchemaName: (
        "the collection is gone from the database: was it dropped or renamed? See `periplus status`"
    ),
}
# The server's timeline: changes with each promotion of a standby and each point-in-time recovery.
_TIMELINE = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"


def _parameters(address: Address) -> dict[str, str]:
    """Additional libpq parameters. Parameters of the address take precedence."""
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
    """Opens a connection whose search path is the collection. Its tables need not exist yet (`schema.create`,
    `schema.check`).

    Waits up to patience_s for an unreachable server. Raises StoreError after that, and UsageError for errors that
    waiting cannot fix: a wrong password, no such database, an old server.
    """
    is_logged = False
    for pause_s in pauses(patience_s):
        try:
            return _connect(address)
        except psycopg.Error as error:
            text = _first_line(error)
            if not isinstance(error, CONNECTION_ERRORS) or _is_permanent(error):
                raise UsageError(f"{address} cannot be opened: {text}") from None
            if pause_s is None:
                raise StoreError(f"the database of {address} is unreachable: {text}. {_advice(text)}") from None
            _log_failure(f"{address} is unreachable: {text}.", patience_s, is_new=not is_logged)
            is_logged = True
            time.sleep(pause_s)
    raise AssertionError("pauses ends with None")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _log_failure(text: str, patience_s: float, *, is_new: bool) -> None:
    """Logs the first failure as an error for the user, later retries at level INFO."""
    if is_new:
        log.error("%s Trying again for up to %.0f s.", text, patience_s)
    else:
        log.info("%s", text)


def pauses(patience_s: float) -> Iterator[float | None]:
    """Yields delays before retries: increasing and random, so that many workers do not retry at the same time.

    Yields None at the end.
    """
    until = time.monotonic() + patience_s
    longest = FIRST_PAUSE_S
    while time.monotonic() + longest < until:
        yield random.uniform(longest / 2, longest)
        longest = min(LONGEST_PAUSE_S, longest * 2)
    yield None


def _connect(address: Address) -> Connection:
    given = psycopg.conninfo.conninfo_to_dict(address.dsn)
    # all values are texts, which the signature does not declare
    connection = psycopg.connect(
        address.dsn,
        autocommit=True,
        cursor_factory=_Cursor,
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


class _Cursor(psycopg.Cursor[TupleRow]):
    """Translates a missing privilege to StoreError in every command: many users may only read."""

    def execute(self, *statement: Any, **options: Any) -> Self:
        try:
            return super().execute(*statement, **options)
        except errors.InsufficientPrivilege as error:
            raise _privilege_error(error) from error

    def executemany(self, *statement: Any, **options: Any) -> None:
        try:
            super().executemany(*statement, **options)
        except errors.InsufficientPrivilege as error:
            raise _privilege_error(error) from error


def _privilege_error(error: psycopg.Error) -> StoreError:
    return StoreError(f"{_first_line(error)}: {_USER_MESSAGES[type(error)]}")


def _is_permanent(error: psycopg.Error) -> bool:
    """Whether a failed connection cannot succeed later: wrong password, user or database name.

    libpq reports no SQLSTATE for errors before the session starts, so the server's message is matched. It may be in
    another language; then we retry.
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


def _advice(text: str) -> str:
    """Advice for an unreachable server."""
    if any(words in text for words in _CONNECTION_LIMIT_MESSAGES):
        return "Raise max_connections there, start fewer workers (--workers), or use PgBouncer."
    return "Is the server running? If not, see its log: its disk may be full."


# A transaction that failed because the server was away is repeated on a new connection.


class Session:
    """A connection to a collection, reopened after failures."""

    def __init__(
        self,
        address: Address,
        patience_s: float = PATIENCE_S,
        on_failover: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        """on_failover: called first on a connection after a failover. With asynchronous replication the last commits
        may be lost.
        """
        self.address, self._patience_s, self._on_failover = address, patience_s, on_failover
        self._connection = connect(address, patience_s=patience_s)
        self._compared: Connection | None = None  # last connection whose timeline was compared
        self._timeline = ""

    def run(self, action: Callable[[Connection], T]) -> T:
        """Runs an action in one transaction.

        The action must be idempotent: if the response to COMMIT is lost, it is repeated although it may be committed.
        Raises StoreError if the server stays away, or for an error that only the user can fix.
        """

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return action(connection)

        return self.read(whole)

    def read(self, action: Callable[[Connection], T]) -> T:
        """Runs a read-only action without a transaction: one round trip instead of three."""
        is_logged, began = False, time.monotonic()
        for pause_s in pauses(self._patience_s):
            try:
                connection = self._connect()
            except StoreError as error:
                away: psycopg.Error | StoreError = error
            else:
                try:
                    self._compare(connection)
                    answer = action(connection)
                    if is_logged:
                        log.error("database %s is back after %.0f s.", self.address, time.monotonic() - began)
                    return answer
                except psycopg.Error as error:
                    if not self._can_retry(error):
                        raise _user_error(error) from error
                    away = error
            if pause_s is None:
                raise _user_error(away) from away
            text = str(away) if isinstance(away, StoreError) else f"database {self.address}: {_description(away)}."
            _log_failure(text, self._patience_s, is_new=not is_logged)
            is_logged = True
            time.sleep(pause_s)
        raise AssertionError("pauses ends with None")

    def _connect(self) -> Connection:
        if self._connection.closed:
            self._connection.close()  # releases a broken connection
            self._connection = connect(self.address, patience_s=0)
        return self._connection

    def _compare(self, connection: Connection) -> None:
        if connection is self._compared:
            return
        timeline = self._timeline
        with contextlib.suppress(errors.FeatureNotSupported):  # servers with shared storage lose nothing
            row = connection.execute(_TIMELINE).fetchone()
            timeline = str(row[0]) if row else ""
        if self._timeline and timeline != self._timeline:
            log.warning("database successor=%s timeline=%s", connection.info.port, timeline)
            self._on_failover(connection)
        self._compared, self._timeline = connection, timeline

    def _can_retry(self, error: psycopg.Error) -> bool:
        """Whether a retry may help: the server was away, or another transaction interfered."""
        if isinstance(error, errors.ReadOnlySqlTransaction):  # it is a standby now: connect to the new primary
            self._connection.close()
        is_away = isinstance(error, CONNECTION_ERRORS) or self._connection.closed
        return is_away and (type(error) not in _USER_MESSAGES or _is_server_crash(error))

    def close(self) -> None:
        self._connection.close()


def _is_server_crash(error: psycopg.Error) -> bool:
    """Whether the server crashed with this error, for example without space for its write-ahead log."""
    return error.diag.severity_nonlocalized == "PANIC"


def _description(error: psycopg.Error) -> str:
    text = _first_line(error)
    return f"the server crashed: {text}. Fix this and restart it" if _is_server_crash(error) else text


def _user_error(error: psycopg.Error | StoreError) -> psycopg.Error | StoreError:
    """Converts errors that a user can fix to StoreError; returns others unchanged."""
    if type(error) in _USER_MESSAGES:
        return StoreError(_USER_MESSAGES[type(error)])  # type: ignore[index]  # of the types in the table
    if isinstance(error, CONNECTION_ERRORS):
        text = _first_line(error)
        return StoreError(f"the database is unreachable: {text}. {_advice(text)} The crawl then continues.")
    return error


@contextlib.contextmanager
def try_lock(connection: Connection, lock: tuple[int, int]) -> Iterator[bool]:
    """Tries to take an advisory lock of the session; yields whether it succeeded, and releases it at the end.

    The server releases it when the connection of a killed process ends.
    """
    row = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", lock).fetchone()
    is_held = bool(row and row[0])
    try:
        yield is_held
    finally:
        if is_held:
            with contextlib.suppress(psycopg.Error):  # if the connection is gone, so is the lock
                connection.execute("SELECT pg_advisory_unlock(%s, %s)", lock)


def columns_of(rows: Iterable[Sequence[object]], width: int) -> list[list[object]]:
    """Rows as columns, for `unnest`: one statement for any number of rows."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def clean_text(value: T) -> T:
    """Replaces characters that PostgreSQL's text cannot hold (U+0000, lone surrogates) by U+FFFD in a value of frozen
    dataclasses and tuples.

    Slow, and only used after PostgreSQL refused a value. SQLite stores both.
    """
    new: object = value
    if type(value) is str:
        new = str(value).replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    elif isinstance(value, tuple) and hasattr(value, "_make"):
        new = value._make(map(clean_text, value))
    elif isinstance(value, tuple):
        new = tuple(map(clean_text, value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        new = dataclasses.replace(
            value,
            **{field.name: clean_text(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init},
        )
    return new  # type: ignore[return-value]  # always of the same type
