"""Reads a collection bounded in time and at one moment: its sums, questions in SQL, and values that we never write."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from periplus.children import process_lives
from periplus.errors import NoCollection, OutOfTime, StoreError, UsageError
from periplus.model.page import LinkKind, Position
from periplus.model.tables import VIEWS
from periplus.model.visit import Purpose, Reason
from periplus.store.page_links import FIRST_LETTER
from periplus.store.sqlite import schema
from periplus.urls.user_patterns import user_pattern

# Functions over a connection that only reads. A crawl may go on meanwhile: each statement sees one moment, and
# `snapshot` gives several statements the same one.

Connection = sqlite3.Connection  # by this name for those who may not speak SQL
Follow = Callable[[Connection], AbstractContextManager[object]]
"""What each transaction of a change is within: given its connection, has a database follow at its end."""
# of SQLite's primary codes; others say nothing of the file
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
BLOCK_ROWS = 2_000  # fetched at once: rows stream, and a call a row would cost a third more
LIMIT_STEPS = 20_000  # of SQLite between two looks at the CPU time: some 2 ms
WATCH_S = 0.05  # between two looks at the clock and at temporary files
MOST_TEMPORARY_BYTES = 2 << 30  # of sorts and of what is made unique: some 20 million rows of links
_TEMPORARY = "etilqs_"  # SQLite's name for files that it deletes when it has opened them
SITE_OF_URL = "u.host_id IN (SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?)"


def connect(folder: Path) -> sqlite3.Connection:
    """A connection that only reads.

    Sorts spill to disk, so that a long list needs little memory. Raises NoCollection, StoreError.
    """
    connection = schema.connect(folder, read_only=True)
    connection.create_function("matches", 2, text_matches, deterministic=True)
    return connection


def text_matches(text: str, pattern: str) -> bool:
    """Whether text contains wanted, or matches it as a regular expression. `page?id=1` is meant as it stands."""
    if pattern in text:
        return True
    try:
        return user_pattern(pattern, "url").is_in(text)
    except UsageError:
        return False


def name_segments(connection: sqlite3.Connection, segment_of: Callable[[int | None], str | None]) -> None:
    """Makes columns of segments computable on this connection: see `model.tables.with_segments`."""
    connection.create_function("segment_of", 1, segment_of, deterministic=True)


@contextlib.contextmanager
def reading(limits: Sequence[str] = ()) -> Iterator[None]:
    """Translates SQLite's errors. limits: what `limited` notes when it stops a statement."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted" and limits:
            raise OutOfTime(f"{limits[0]}: ask for less, or allow more time") from None
        raise StoreError(f"the collection cannot be read: {error}") from error
    except sqlite3.ProgrammingError as error:
        if "closed" not in str(error):
            raise
        raise UsageError(
            "the collection was closed: ask it while it is open, within `with periplus.open(FOLDER) as collection`"
        ) from None
    except OverflowError:
        raise UsageError("a number is too large: SQLite counts to 2 ** 63 - 1") from None
    except sqlite3.DatabaseError as error:
        if (
            type(error) is not sqlite3.DatabaseError
            or getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _DAMAGE
        ):
            raise UsageError(f"this cannot be read: {error}") from None
        raise StoreError(
            f"the collection is damaged: {error}. Restore it from a copy, or crawl again into another folder."
        ) from error


@contextlib.contextmanager
def limited(
    connection: sqlite3.Connection, limit_s: float, cpu_s: Callable[[], float] = time.thread_time
) -> Iterator[None]:
    """Stops what reads for more than limit_s seconds of CPU within, or fills temporary files; 0: no limit.

    cpu_s: CPU seconds of the thread that calls it. Wall time does not count: on a busy machine each question takes
    long, and none is too large. A stream may be read by several threads, and each has the whole limit. SQLite asks
    every LIMIT_STEPS steps; a thread interrupts steps that take longer than that. Raises OutOfTime.
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
        watch.join()  # an interruption that comes later would meet the next statement
        with contextlib.suppress(sqlite3.ProgrammingError):  # closed meanwhile
            connection.set_progress_handler(None, 0)


def _watch(
    connection: sqlite3.Connection, reason: Callable[[], str], ended: threading.Event, stopped: list[str]
) -> None:
    """Interrupts what runs beyond a limit, again and again: between two statements there is nothing to interrupt."""
    while not ended.wait(WATCH_S):
        if why := reason():
            stopped.append(why)
        if stopped:
            with contextlib.suppress(sqlite3.ProgrammingError):  # closed meanwhile, as a stream that nobody reads
                connection.interrupt()


def spent_s(thread: int) -> float:
    """CPU seconds of a thread of this process, by its native id; 0 where the system does not tell, or it has ended."""
    try:
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text("ascii").split()[0]) / 1e9
    except (OSError, ValueError):
        return 0.0


def temporary_bytes() -> int:
    """Bytes of SQLite's temporary files that this process has open; 0 where the system does not list them."""
    size = 0
    for file in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):  # closed meanwhile
            size += file.stat().st_size if _TEMPORARY in str(file.readlink()) else 0
    return size


@contextlib.contextmanager
def opened(folder: Path, limit_s: float = 0.0) -> Iterator[sqlite3.Connection]:
    """A connection that only reads, closed at the end. limit_s: of CPU, see `limited`.

    Raises NoCollection, StoreError.
    """
    with contextlib.closing(connect(folder)) as connection, limited(connection, limit_s):
        yield connection


@contextlib.contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Everything within sees the collection as it is at the first statement."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


@contextlib.contextmanager
def moment(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees the collection as it is at the first statement. Raises as `opened`."""
    with opened(folder) as connection, snapshot(connection):
        yield connection


def rows(cursor: sqlite3.Cursor) -> Iterator[tuple[object, ...]]:
    """A cursor's rows, a block at a time."""
    while block := cursor.fetchmany(BLOCK_ROWS):
        yield from block


def is_being_crawled(connection: sqlite3.Connection, now: float) -> bool:
    """Whether a worker of this machine lives and holds a lease; a run that was killed still stands as running."""
    workers = connection.execute("SELECT pid FROM worker WHERE lease_until >= ?", (now,)).fetchall()
    return any(process_lives(pid) for (pid,) in workers)


def is_unused(folder: Path, now: float) -> bool:
    """Whether a folder holds no collection, or one without a page, a survey and a crawl at work: one that was killed
    before its first page. One that cannot be read counts as used.
    """
    find = "SELECT NOT EXISTS (SELECT 1 FROM page) AND NOT EXISTS (SELECT 1 FROM meta WHERE name = 'survey')"
    try:
        with opened(folder) as connection:
            return connection.execute(find).fetchone() == (1,) and not is_being_crawled(connection, now)
    except NoCollection:
        return True
    except StoreError:  # the command that reads it says why
        return False


def is_copy_of_running(connection: sqlite3.Connection, now: float) -> bool:
    """Whether this is a copy of a collection in a database, where somebody held a lease that is not over."""
    find = "SELECT 1 FROM meta WHERE name = 'busy_until' AND CAST(value AS REAL) >= ?"
    return connection.execute(find, (now,)).fetchone() is not None


def note_of(connection: sqlite3.Connection, name: str) -> str:
    """What the collection notes under a name; empty: nothing."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return str(row[0]) if row else ""


# SQLite keeps a text in a column of numbers if it is told to. Reading every value with that in mind would cost every
# reader; so a command that fails looks afterwards, by one pass over each table.

LOOK_S = 60.0  # a collection of some million pages is looked through
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


def wrong_value(folder: Path) -> str:
    """The first column with a value of the wrong kind, and what is wrong with it, in words; empty: there is none.

    Raises NoCollection, StoreError.
    """
    with opened(folder, LOOK_S) as connection, snapshot(connection):
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
    """Of each table of ours the columns, with their types as we declare them."""
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
    """(what is wrong, the SQL that finds it), for one column. Where nothing is known is no wrong value."""
    if types := _TYPES.get(kind):  # without one a column holds anything
        yield (
            f"holds a value that is no {kind.lower()}",
            f"typeof({column}) NOT IN ({', '.join(map(repr, types))}, 'null')",
        )
    if words := _WORDS.get((table, column)):
        yield "holds a word that is none of ours", f"{column} NOT IN ({', '.join(repr(str(word)) for word in words)})"
    if letters := _LETTERS.get((table, column)):
        last = chr(FIRST_LETTER + len(letters) - 1)
        ours = f"[^{chr(FIRST_LETTER)}-{last}]"
        yield "holds a letter that is none of ours", f"CAST({column} AS TEXT) GLOB '*{ours}*'"
    if (table, column) in _JSON:
        yield "holds what is no JSON", f"NOT json_valid({column})"


# a longer text or blob is refused, such as zeroblob(1e9): nothing stops one step of SQLite
LONGEST_VALUE_BYTES = 4_000_000
_ALLOWED = frozenset(
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
# matches: a regular expression may run for ever, and no limit stops it
_FUNCTIONS_DENIED = frozenset({"load_extension", "matches"})


@dataclass(frozen=True, slots=True)
class Answer:
    """columns: their names; rows: values a row, streamed, bytes as hexadecimal text."""

    columns: Sequence[str]
    rows: Iterator[tuple[object, ...]]


def ask(connection: sqlite3.Connection, question: str, limit_s: float, most: int = -1) -> Answer:
    """The answer to one statement that only reads.

    most: rows, -1: all. limit_s: for the statement and for reading its rows; 0: none.

    Raises UsageError for what SQLite does not understand or what would do more than read; StoreError when the time is
    over, also while the rows are read.
    """
    connection.set_authorizer(_authorised)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE_BYTES)
    answer = _streamed(connection, question, limit_s, most)
    columns = next(answer)
    return Answer([str(name) for name in columns], answer)


def _streamed(connection: sqlite3.Connection, question: str, limit_s: float, most: int) -> Iterator[tuple[object, ...]]:
    """First the names of the columns, then the rows."""
    with limited(connection, limit_s or math.inf):  # the bound on temporary files holds without a limit of time
        with _understood():
            cursor = connection.execute(question)
        if cursor.description is None:
            raise UsageError(
                "the statement has no result: `periplus sql` answers questions, as in SELECT count(*) FROM urls"
            )
        yield tuple(column[0] for column in cursor.description)
        with _understood():
            for number, row in enumerate(rows(cursor)):
                if number == most:
                    return
                yield tuple(value.hex() if isinstance(value, bytes) else value for value in row)


def _authorised(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
        # how SQLite asks for pragma_table_info(...) and json_each(...); a true one it refuses itself
        return sqlite3.SQLITE_OK
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first not in _PRAGMAS):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS_DENIED:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Says what is wrong with a statement, and what there is to be asked."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise UsageError(f"this cannot be asked: {error}") from None
    except sqlite3.Warning as error:  # until Python 3.12, several statements
        raise UsageError(f"this cannot be asked: {error}") from None
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.DataError):
            raise UsageError(
                "a value of the answer, or the statement, is larger than "
                f"{LONGEST_VALUE_BYTES // 1_000_000} MB: ask for less"
            ) from None
        if "authorization denied" in str(error) or "not authorized" in str(error) or "prohibited" in str(error):
            raise UsageError("`periplus sql` only reads: SELECT, and PRAGMA table_info(NAME)") from None
        if isinstance(error, sqlite3.OperationalError) and str(error) != "interrupted" and _is_mistake(error):
            raise UsageError(
                f"SQLite does not understand this: {error}. There are the views {', '.join(VIEWS)}; "
                "docs/sql.md lists their columns."
            ) from None
        raise


def _is_mistake(error: sqlite3.OperationalError) -> bool:
    """Whether the fault is the statement's and not the disk's: SQLITE_ERROR, with its extended codes."""
    return (error.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_ERROR
