"""Splits a collection into several that share its web; each is a folder or a collection in a database."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from periplus.api.homes import home_of, place_at
from periplus.api.rules import rules_text
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.features import is_address
from periplus.model.visit import Reason
from periplus.model.web import HostKey, Url
from periplus.settings import SETTINGS_FILE, SUFFIX
from periplus.store import runs
from periplus.store.part_messages import IDENTITY, LEFT_ASIDE, PART
from periplus.store.sqlite import reading, schema
from periplus.store.url_state import RAISABLE_REASONS
from periplus.urls.hosts import WebPart, host_key, part_of
from periplus.values import Place, Row
from periplus_postgres import copying, folder_rows
from periplus_postgres import schema as database_schema
from periplus_postgres.address import address_of
from periplus_postgres.connection import connect
from periplus_postgres.copying import DatabaseRows
from periplus_postgres.exchange import PLACE, exchange_place
from periplus_postgres.folder_rows import FolderRows
from periplus_postgres.moved_tables import OWNERS, MovedBody, MovedTable, RowStore, Sum, sum_of
from periplus_postgres.moving import Watch, into_database, segment_reader, silent

SPLIT = "split"  # in meta of the collection and its parts: id of the split
# A row belongs to the part of its host; runs and users' decisions belong to all parts.
_FIRST, _LAST = ("host", "site"), ("body", "dictionary")  # the others refer to hosts; bodies are those of the pages
_EXCEPTIONS = frozenset({"meta", "tally", "outbox", "file", *_FIRST, *_LAST})
_OWNERS = OWNERS | {"issue": "url_id"}
_FOREIGN_URLS = (  # URLs of other parts that rows of a part refer to
    "SELECT page_id FROM alias WHERE page_id IS NOT NULL UNION SELECT target FROM link_history"
    " UNION SELECT related_id FROM issue UNION SELECT target FROM link"
)
Accepts = Callable[[Row], bool]
R = TypeVar("R", bound=Row)


def split(
    source: str, targets: Sequence[str], exchange: str = "", watch: Watch = silent
) -> dict[str, Mapping[str, int]]:
    """Splits a collection by registered domain into as many parts as targets; returns the rows of each new part.

    Each part is created atomically, and existing parts are kept, so that the same call continues after an interruption.
    The source remains readable, with a note that names the parts; it can no longer be crawled. Raises UsageError,
    NoCollection, StoreError.
    """
    if len({source, *targets}) <= len(targets) or len(targets) < 2:
        raise UsageError("name the collection to split and at least two different places for its parts")
    home = home_of(place_at(source))
    if home.note(PART):
        raise UsageError(f"{home} is part {home.note(PART)} of its web already: only a whole collection can be split")
    place, made = exchange_place(exchange), {}
    with home.only_crawl():
        identity = home.change_note(SPLIT, lambda before: before or uuid4().hex)
        parts = {target: WebPart(number, len(targets)) for number, target in enumerate(targets, 1)}
        missing = {target: part for target, part in parts.items() if not _is_made(target, part, identity)}
        aim = ", ".join(str(home_of(place_at(target))) for target in targets)
        home.change_note(runs.NEW_PLACE_KEY, lambda before: _only(before, aim))
        if missing:
            rules = rules_text(place_at(source))
            with _open_source(place_at(source)) as (rows, seq):
                for target, part in missing.items():
                    watch(f"Making part {part}", 0)
                    notes = {PART: str(part), IDENTITY: uuid4().hex, SPLIT: identity}
                    notes |= {PLACE: place} if place else {}
                    fill = PartFiller(rows, part, notes, seq)
                    made[f"{part} {target}"] = _make_part(fill, target, rules)
    return made


@contextlib.contextmanager
def _open_source(place: Place) -> Iterator[tuple[RowStore, int]]:
    """(rows of a collection in one snapshot, number of its last queue entry)."""
    if isinstance(place, Path):
        with reading.moment(place) as connection:
            yield FolderRows(connection, has_shards=True), folder_rows.last_seq(connection)
        return
    address = address_of(place)
    with copying.translate_errors(), contextlib.closing(connect(address)) as database:
        database_schema.check(database, address.collection)
        copying.remove_time_limits(database)
        copying.merge_inbox(database, address.collection)
        with copying.one_moment(database):
            yield DatabaseRows(database, segment_reader(database)), copying.last_seq(database)


def _only(before: str, aim: str) -> str:
    """New value of the note. Raises StoreError if the collection was moved elsewhere."""
    if before not in ("", aim):
        raise StoreError(f"this collection moved to {before}: split it there, or give the same targets")
    return aim


def _is_made(target: str, part: WebPart, identity: str) -> bool:
    """Whether the target already is this part of this split. Raises StoreError if it has another collection."""
    try:
        home = home_of(place_at(target))
        if (home.note(SPLIT), home.note(PART)) == (identity, str(part)):
            return True
        is_empty = is_address(target) and not home.runs()
    except NoCollection:
        return False
    if is_empty:
        return False
    raise StoreError(f"{target} has another collection. Choose another place for part {part}.")


def _make_part(fill: PartFiller, target: str, rules: str) -> Mapping[str, int]:
    with contextlib.ExitStack() as stack:
        new = Path(target)
        if is_address(target):
            new = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="periplus-"))) / f"part{SUFFIX}"
        with schema.draft_collection(new) as draft:
            rows = fill(draft)
            if rules:
                (new / SETTINGS_FILE).write_text(rules, "utf-8")
        if is_address(target):
            into_database(new, target, silent)
    return rows


class PartFiller:
    """Fills a new collection with one part of another, which must not change.

    notes: notes of the part; seq: number of the last queue entry. Link targets in other parts are inserted as already
    sent there. Raises StoreError unless all rows arrived.
    """

    def __init__(self, source: RowStore, part: WebPart, notes: Mapping[str, str], seq: int) -> None:
        self._source, self._part, self._notes, self._seq = source, part, notes, seq

    def __call__(self, draft: sqlite3.Connection) -> dict[str, int]:
        """Returns the number of rows by table."""
        target = FolderRows(draft)
        tables = {table.name: table for table in target.tables()}
        with folder_rows.transaction(draft):
            names = (*_FIRST, *(name for name in tables if name not in _EXCEPTIONS))
            rows = {name: self._copy(target, tables[name]) for name in names}
            bodies = self._copy_bodies(target)
            rows |= {"body": bodies.rows, "dictionary": self._copy(target, tables["dictionary"])}
            _verify("body", bodies, (body.row for body in target.bodies()))
            self._insert_foreign_urls(target, tables)
            self._complete(target, tables["meta"])
        return rows

    def _copy(self, target: FolderRows, table: MovedTable) -> int:
        """Copies the part's rows of a table and verifies them; returns their number."""
        sent, accepts = Sum(), self._condition(target.connection, table)
        target.enter(table, _count_rows(filter(accepts, self._source.rows(table)), sent))
        _verify(table.name, sent, target.rows(table))
        return sent.rows

    def _copy_bodies(self, target: FolderRows) -> Sum:
        """Copies the bodies of the pages. They can be read when their dictionaries are copied."""
        draft, sent = target.connection, Sum()
        draft.execute("CREATE TEMP TABLE held (id INTEGER PRIMARY KEY)")
        for table in ("page", "page_history"):
            find = f"SELECT body_id FROM main.{table} WHERE body_id > 0"
            draft.execute(f"INSERT OR IGNORE INTO held {find}")
        is_held = _lookup(draft, "temp.held")
        target.enter_bodies(_count_rows((body for body in self._source.bodies() if is_held(body.id)), sent))
        draft.execute("DROP TABLE held")
        return sent

    def _condition(self, draft: sqlite3.Connection, table: MovedTable) -> Accepts:
        """Whether a row of the table belongs to the part. Conditions may refer to tables filled before."""
        name, at = table.name, {column: place for place, column in enumerate(table.columns, 1)}
        if name == "host":
            return lambda row: self._is_own(str(row[at["key"]]))
        if name == "robots":
            return lambda row: self._is_own(str(row[at["origin"]]).partition("://")[2])
        if name in _LAST + _FIRST:
            used = "SELECT site_id FROM main.host"
            if name == "dictionary":
                used = "SELECT dictionary_id FROM main.body UNION SELECT dictionary_id FROM main.site"
            ids = {number for (number,) in draft.execute(used)}
            return lambda row: row[at["id"]] in ids
        if name == "visit":
            of_url, url, text = _lookup(draft, "main.url"), at["url_id"], at["text"]
            return lambda row: of_url(row[url]) if row[url] else self._is_own(host_key(Url(str(row[text]))))
        if name == "look":
            owner, place = _lookup(draft, "main.visit"), at["visit_id"]
        elif name in _OWNERS:
            owner = _lookup(draft, "main.host" if _OWNERS[name] == "host_id" else "main.url")
            place = at[_OWNERS[name]]
        else:
            return lambda row: True
        return lambda row: owner(row[place])

    def _is_own(self, host: str) -> bool:
        return part_of(HostKey(host), self._part.of) == self._part.number

    def _insert_foreign_urls(self, target: FolderRows, tables: Mapping[str, MovedTable]) -> None:
        """Inserts URLs of other parts that rows of this part refer to, with their hosts and sites."""
        draft = target.connection
        draft.execute("CREATE TEMP TABLE other (id INTEGER PRIMARY KEY)")
        draft.execute(f"INSERT INTO other SELECT * FROM ({_FOREIGN_URLS}) EXCEPT SELECT id FROM main.url")
        self._insert(target, tables["url"], lambda rows: map(_foreign_url_maker(tables["url"]), rows))
        plain = frozenset({"id", "key", "site_id"})  # further columns describe the crawl of the other part
        for name, of in (("host", "url"), ("site", "host")):
            draft.execute("DELETE FROM other")
            missing = f"SELECT {name}_id FROM main.{of} EXCEPT SELECT id FROM main.{name}"
            draft.execute(f"INSERT INTO other {missing}")
            self._insert(target, _columns_of(tables[name], plain), lambda rows: rows)
        draft.execute("DROP TABLE other")

    def _insert(self, target: FolderRows, table: MovedTable, change: Callable[[Iterable[Row]], Iterable[Row]]) -> None:
        """Inserts the rows of a table whose ids are in `other`."""
        is_other, place = _lookup(target.connection, "temp.other"), table.columns.index("id") + 1
        target.enter(table, change(row for row in self._source.rows(table) if is_other(row[place])))

    def _complete(self, target: FolderRows, meta: MovedTable) -> None:
        """Writes the part's own notes and totals."""
        draft = target.connection
        target.enter(meta, self._source.rows(meta))
        draft.executemany("INSERT OR REPLACE INTO main.meta VALUES (?, ?)", self._notes.items())
        draft.execute("INSERT INTO main.tally SELECT 'reason:' || reason, count(*) FROM main.url GROUP BY reason")
        draft.execute("INSERT INTO main.tally SELECT 'known', count(*) FROM main.url")
        folder_rows.complete(draft, self._seq)


def _lookup(draft: sqlite3.Connection, table: str) -> Callable[[object], bool]:
    find = f"SELECT 1 FROM {table} WHERE id = ?"
    return lambda number: draft.execute(find, (number,)).fetchone() is not None


def _count_rows(rows: Iterable[R], sent: Sum) -> Iterator[R]:
    for row in rows:
        sent.add((row.row if isinstance(row, MovedBody) else row)[1:])
        yield row


def _verify(name: str, sent: Sum, rows: Iterable[Row]) -> None:
    if sent != (arrived := sum_of(row[1:] for row in rows)):
        raise StoreError(f"the table {name} was not copied completely: {sent} were sent, {arrived} arrived.")


def _columns_of(table: MovedTable, columns: frozenset[str]) -> MovedTable:
    pairs = [pair for pair in zip(table.columns, table.kinds, strict=True) if pair[0] in columns]
    return MovedTable(table.name, tuple(name for name, _ in pairs), tuple(kind for _, kind in pairs))


def _foreign_url_maker(table: MovedTable) -> Callable[[Row], Row]:
    """Returns a function that makes the row of a URL that was sent to another part."""
    at = {column: place for place, column in enumerate(table.columns, 1)}

    def change(row: Row) -> Row:
        values = list(row)
        reason = Reason(str(row[at["reason"]]))
        if reason not in LEFT_ASIDE:
            values[at["reason"]] = Reason.OTHER_PART.value
            values[at["rule"]] = reason.value if reason in RAISABLE_REASONS else "waiting"
        values[at["status"]] = values[at["visited"]] = None
        return tuple(values)

    return change
