"""Reads a collection: snapshots, time limits, SQL queries of users, and checks of stored values."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from periplus.children import process_lives
from periplus.errors import OutOfTime, StoreError, UsageError
from periplus.model.page import LinkKind, Position
from periplus.model.tables import VIEWS
from periplus.model.visit import Purpose, Reason
from periplus.store.page_links import FIRST_LETTER
from periplus.store.reader import ROWS_AT_ONCE, Answer
from periplus.store.sqlite import schema

# Functions on a read-only connection. A crawl may be running: each statement sees a consistent state, and `snapshot`
# gives several statements the same one.

Connection = sqlite3.Connection  # alias for packages that must not import sqlite3
# SQLite's primary error codes for a damaged file
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
LIMIT_STEPS = 20_000  # SQLite steps between two checks of the CPU time: about 2 ms
WATCH_S = 0.05  # between two checks of the clock and of temporary files
MOST_TEMPORARY_BYTES = 2 << 30  # for sorting and DISTINCT: about 20 million rows of links
_TEMPORARY = "etilqs_"  # SQLite's name prefix of files that it unlinks after opening
LOOK_S = 60.0  # enough for a few million pages
_TYPES = {"INTEGER": ("integer",), "REAL": ("real", "integer"), "TEXT": ("text",), "BLOB": ("blob",)}
_WORDS: dict[tuple[str, str], Iterable[str]] = {
    ("url", "reason"): Reason,
    ("bad_link", "kind"): LinkKind,
    ("bad_link", "position"): Position,
    ("queue", "purpose"): Purpose,
    ("visit", "purpose"): Purpose,
}
_JSON = {("run", "starts"), ("run", "settings"), ("family", "record"), ("page_links", "words")}
_LETTERS = {("page_links", "kinds"): LinkKind, ("page_links", "positions"): Position}
# longer values are refused, for example zeroblob(1e9), since a single step of SQLite cannot be interrupted
LONGEST_VALUE_BYTES = 4_000_000
_ALLOWED_ACTIONS = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_PRAGMA,
    }
)
_PRAGMAS = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "database_list", "function_list"}
)
# seven columns as in a Netscape cookie file. Newer releases of Firefox store milliseconds
_COOKIES = """SELECT host, iif(host LIKE '.%', 'TRUE', 'FALSE'), path, iif(isSecure, 'TRUE', 'FALSE'),
    iif(expiry > 100000000000, expiry / 1000, expiry), name, value FROM moz_cookies"""


def connect(folder: Path) -> sqlite3.Connection:
    """Opens a read-only connection.

    Sorts use temporary files, so that a long list needs little memory. Raises NoCollection, StoreError.
    """
    return schema.connect(folder, read_only=True)


@contextlib.contextmanager
def reading(limits: Sequence[str] = ()) -> Iterator[None]:
    """Translates SQLite's errors. limits: messages of `limit_reads` when it stops a statement."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted" and limits:
            raise OutOfTime(f"{limits[0]}: query less, or allow more time") from None
        raise StoreError(f"the collection cannot be read: {error}") from error
    except sqlite3.ProgrammingError as error:
        if "closed" not in str(error):
            raise
        raise UsageError(
            "the collection was closed: use it within `with periplus.open(FOLDER) as collection`"
        ) from None
    except OverflowError:
        raise UsageError("a number is too large: the limit is 2 ** 63 - 1") from None
    except sqlite3.DatabaseError as error:
        if (
            type(error) is not sqlite3.DatabaseError
            or getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _DAMAGE
        ):
            raise UsageError(f"cannot read this: {error}") from None
        raise StoreError(
            f"the collection is damaged: {error}. Restore it from a copy, or crawl again into another folder."
        ) from error


@contextlib.contextmanager
def limit_reads(
    connection: sqlite3.Connection, limit_s: float, cpu_s: Callable[[], float] = time.thread_time
) -> Iterator[None]:
    """Stops reads within this context after limit_s seconds of CPU time, or if they fill temporary files; 0: no limit.
    cpu_s: CPU seconds of the calling thread. Wall time does not count, since on a busy machine every query takes long.
    A stream may be read by several threads; each has the whole limit. SQLite checks every LIMIT_STEPS steps; a thread
    interrupts longer steps. Raises OutOfTime.
    """
    if not limit_s:
        with reading():
            yield
        return
    ended, stopped = threading.Event(), list[str]()
    began = {threading.get_native_id(): cpu_s()}
    late = f"reading took longer than {limit_s:g} s of CPU and was stopped"

    def is_over() -> bool:
        now = cpu_s()
        if now - began.setdefault(threading.get_native_id(), now) > limit_s:
            stopped.append(late)
        return bool(stopped)

    def reason() -> str:
        spent = {thread: spent_s(thread) for thread in list(began)}
        if any(now - firsts.setdefault(thread, now) > limit_s for thread, now in spent.items()):
            return late
        full = temporary_bytes() > MOST_TEMPORARY_BYTES
        return f"reading filled more than {MOST_TEMPORARY_BYTES >> 20} MiB of temporary files and was stopped" * full

    firsts: dict[int, float] = {}
    watch = threading.Thread(target=_watch, args=(connection, reason, ended, stopped), daemon=True)
    watch.start()
    connection.set_progress_handler(is_over, LIMIT_STEPS)
    try:
        with reading(stopped):
            yield
    finally:
        ended.set()
        watch.join()  # a later interrupt would stop the next statement
        with contextlib.suppress(sqlite3.ProgrammingError):  # already closed
            connection.set_progress_handler(None, 0)


def _watch(
    connection: sqlite3.Connection, reason: Callable[[], str], ended: threading.Event, stopped: list[str]
) -> None:
    """Interrupts repeatedly after a limit, since an interrupt between two statements has no effect."""
    while not ended.wait(WATCH_S):
        if why := reason():
            stopped.append(why)
        if stopped:
            with contextlib.suppress(sqlite3.ProgrammingError):  # already closed, as an abandoned stream
                connection.interrupt()


def spent_s(thread: int) -> float:
    """CPU seconds of a thread of this process, by native id; 0 if unknown or if it has ended."""
    try:
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text("ascii").split()[0]) / 1e9
    except (OSError, ValueError):
        return 0.0


def temporary_bytes() -> int:
    """Size of SQLite's temporary files that this process has open; 0 if unknown."""
    size = 0
    for file in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):  # already closed
            size += file.stat().st_size if _TEMPORARY in str(file.readlink()) else 0
    return size


@contextlib.contextmanager
def open_reader(folder: Path, limit_s: float = 0.0) -> Iterator[sqlite3.Connection]:
    """Opens a read-only connection and closes it at the end. limit_s: CPU time, see `limit_reads`.

    Raises NoCollection, StoreError.
    """
    with contextlib.closing(connect(folder)) as connection, limit_reads(connection, limit_s):
        yield connection


@contextlib.contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Gives all statements within the context the same snapshot, taken at the first one."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


@contextlib.contextmanager
def moment(folder: Path) -> Iterator[sqlite3.Connection]:
    """Opens a read-only connection with one snapshot. Raises as `open_reader`."""
    with open_reader(folder) as connection, snapshot(connection):
        yield connection


def rows(cursor: sqlite3.Cursor, at_once: int = ROWS_AT_ONCE) -> Iterator[tuple[object, ...]]:
    """Yields a cursor's rows, fetched in blocks."""
    while block := cursor.fetchmany(at_once):
        yield from block


def is_being_crawled(connection: sqlite3.Connection, now: float) -> bool:
    """Whether a live worker of this machine has a lease. The state of a killed run is still `running`."""
    workers = connection.execute("SELECT pid FROM worker WHERE lease_until >= ?", (now,)).fetchall()
    return any(process_lives(pid) for (pid,) in workers)


# SQLite can store text in a numeric column. Checking every value would cost every reader; instead a command that fails
# checks the values afterwards, in one scan of each table.


def wrong_value(folder: Path) -> str:
    """Describes the first column with a value of the wrong type; empty if there is none.

    Raises NoCollection, StoreError.
    """
    with open_reader(folder, LOOK_S) as connection, snapshot(connection):
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, columns in _columns().items():
            tests = {
                f"{table}.{column} {text}": test
                for column, kind in columns
                for text, test in _tests(table, column, kind)
            }
            if table in there and tests:
                row = connection.execute(
                    f"SELECT {', '.join(f'max({test})' for test in tests.values())} FROM {table}"
                ).fetchone()
                if wrong := [text for text, is_wrong in zip(tests, row, strict=True) if is_wrong]:
                    return wrong[0]
    return ""


def _columns() -> dict[str, list[tuple[str, str]]]:
    """(column, declared type) of each of our tables."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.build(connection)
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            )
        ]
        return {
            table: [(row[1], row[2]) for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables
        }


def _tests(table: str, column: str, kind: str) -> Iterable[tuple[str, str]]:
    """(error, SQL that finds it) for one column. NULL is always valid."""
    if types := _TYPES.get(kind):  # columns without a type may hold anything
        yield (
            f"has a value that is not {kind.lower()}",
            f"typeof({column}) NOT IN ({', '.join(map(repr, types))}, 'null')",
        )
    if words := _WORDS.get((table, column)):
        yield "has an unknown word", f"{column} NOT IN ({', '.join(repr(str(word)) for word in words)})"
    if letters := _LETTERS.get((table, column)):
        last = chr(FIRST_LETTER + len(letters) - 1)
        ours = f"[^{chr(FIRST_LETTER)}-{last}]"
        yield "has an unknown letter", f"CAST({column} AS TEXT) GLOB '*{ours}*'"
    if (table, column) in _JSON:
        yield "has invalid JSON", f"NOT json_valid({column})"


def ask(connection: sqlite3.Connection, question: str, limit_s: float, most: int = -1) -> Answer:
    """See `store.reader.CollectionReader.ask`."""
    connection.set_authorizer(_authorize)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE_BYTES)
    answer = _stream_rows(connection, question, limit_s, most)
    columns = next(answer)
    return Answer([str(name) for name in columns], answer)


def _stream_rows(
    connection: sqlite3.Connection, question: str, limit_s: float, most: int
) -> Iterator[tuple[object, ...]]:
    """Yields the column names, then the rows."""
    with limit_reads(connection, limit_s or math.inf):  # the limit on temporary files applies without a time limit too
        with _translated_errors():
            cursor = connection.execute(question)
        if cursor.description is None:
            raise UsageError("the statement has no result: use a query, for example SELECT count(*) FROM urls")
        yield tuple(column[0] for column in cursor.description)
        with _translated_errors():
            for number, row in enumerate(rows(cursor)):
                if number == most:
                    return
                yield tuple(value.hex() if isinstance(value, bytes) else value for value in row)


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
        # SQLite's check for pragma_table_info(...) and json_each(...); a real update is refused by SQLite itself
        return sqlite3.SQLITE_OK
    if action not in _ALLOWED_ACTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first not in _PRAGMAS):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    """Translates errors of a statement to UsageError."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise UsageError(f"cannot execute this: {error}") from None
    except sqlite3.Warning as error:  # several statements, before Python 3.12
        raise UsageError(f"cannot execute this: {error}") from None
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.DataError):
            raise UsageError(
                "a value of the result, or the statement, is larger than "
                f"{LONGEST_VALUE_BYTES // 1_000_000} MB: query less"
            ) from None
        if "authorization denied" in str(error) or "not authorized" in str(error) or "prohibited" in str(error):
            raise UsageError("`periplus sql` only reads: SELECT, and PRAGMA table_info(NAME)") from None
        if isinstance(error, sqlite3.OperationalError) and str(error) != "interrupted" and _is_mistake(error):
            raise UsageError(
                f"SQLite does not understand this: {error}. The views are {', '.join(VIEWS)}; "
                "docs/sql.md lists their columns."
            ) from None
        raise


def _is_mistake(error: sqlite3.OperationalError) -> bool:
    """Whether the statement is wrong and not the disk: SQLITE_ERROR with its extended codes."""
    return (error.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_ERROR


def profile_cookies(folder: Path) -> str:
    """The cookies of a Firefox profile as a Netscape cookie file. Raises StoreError."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"{(folder / 'cookies.sqlite').absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            return "".join("\t".join(map(str, row)) + "\n" for row in connection.execute(_COOKIES))
    except sqlite3.Error as error:
        raise StoreError(f"{folder} has no cookies of Firefox that can be read: {error}; is Firefox closed?") from None
