"""Which rows of a table are on one page of it, how many are there, and what do they share?

For whoever turns pages, one after another.

A wish names conditions by column, an order and a place. A first look at the rows that answer, at most SAMPLED of them,
gives what they share; where there are fewer it has seen them all, and they are sorted by their keys. Where there are
more than COUNTED and no order is wished, they stand as they lie on disk: sorting a million rows for the first fifty
took most of the time. Each call is bounded by its caller's time limit.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from periplus.errors import UsageError
from periplus.model.table import Column, ColumnKind
from periplus.model.web import Url
from periplus.store.sqlite.reading import rows
from periplus.store.sqlite.views import VIEWS
from periplus.urls.canonical import url_id

COUNTED = 100_000  # rows after which counting stops: 20 ms
SAMPLED = 10_000  # rows of which facets are told: 0.1 s; ids are hashes, so these are as good as drawn by lot
# URLs: of a collection with more, links are looked at and counted no further than FEW, for a rare kind
# of them costs a whole look
LARGE = 100_000
FEW = 2_000
FACET_VALUES = 12
DEEPEST = 1_000_000  # rows that may be leafed over
EMPTY = "-"  # in a condition: the column says nothing
_RANGE = re.compile(r"(-?[0-9.]*)\.\.(-?[0-9.]*)")
_CLASS = re.compile(r"[1-5]xx", re.IGNORECASE)
TEXT, INTEGER, REAL, BOOLEAN, TIME = ColumnKind


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table that can be leafed through.

    source: what stands after FROM, every join a LEFT JOIN to one row, so that SQLite leaves out those that are not
    asked for. key: an expression that names a row, empty where none does; order: of the rows where none is wished.
    """

    name: str
    columns: tuple[Column, ...]
    expressions: tuple[str, ...]
    source: str
    key: str = ""
    order: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()  # columns that `q` looks into
    facets: tuple[str, ...] = ()
    # (column with a URL, expression of that URL's id): found without looking at every text
    ids: tuple[tuple[str, str], ...] = ()
    # (column that says something of a link's target, condition on `url`): asked once, not for each link
    targets: tuple[tuple[str, str], ...] = ()

    def expression(self, name: str) -> str:
        """Raises UsageError for a column that there is not."""
        for column, expression in zip(self.columns, self.expressions, strict=True):
            if column.name == name:
                return expression
        raise UsageError(
            f"{self.name} have no column {name!r}: choose among {', '.join(column.name for column in self.columns)}"
        )

    def kind(self, name: str) -> ColumnKind:
        return next(column.kind for column in self.columns if column.name == name)


@dataclass(frozen=True, slots=True)
class TableQuery:
    """What of a table is wanted.

    conditions: (column, text) as `condition` reads them, all of them at once; text: anywhere in the columns that are
    searched; sort: columns, the first decides first, a leading - turns one round; most: -1: all.
    within: (expression, whole numbers): no row answers whose value is not among them, as
    somebody knows who has an index.
    """

    conditions: tuple[tuple[str, str], ...] = ()
    text: str = ""
    sort: tuple[str, ...] = ()
    first: int = 0
    most: int = 50
    within: tuple[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows answer; capped: at least so many."""

    rows: int
    capped: bool


@dataclass(frozen=True, slots=True)
class TableSample:
    """A first look at the rows that answer.

    sampled: how many the facets are of; keys: of all of them, None where they are too many or have none.
    """

    count: Count
    sampled: int
    facets: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    keys: list[object] | None
    # those wished for, where the look met them; None: they are still to be found
    rows: tuple[tuple[object, ...], ...] | None = None


def _source(name: str, source: str, made: Sequence[tuple[str, ColumnKind, str, str]], **further: object) -> TableSource:
    columns = tuple(Column(column, kind, sentence) for column, kind, _, sentence in made)
    # as below
    return TableSource(name, columns, tuple(expression for _, _, expression, _ in made), source, **further)  # type: ignore[arg-type]


def _time(expression: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%SZ', nullif({expression}, 0), 'unixepoch')"


_PAGES = (
    ("url", TEXT, "u.text", "the address"),
    ("title", TEXT, "p.title", "the title"),
    ("state", TEXT, "(SELECT state FROM reason WHERE name = u.reason)", "indexed, registered, ignored or invalid"),
    ("reason", TEXT, "u.reason", "why it is in its state"),
    ("rule", TEXT, "nullif(u.rule, '')", "the rule, limit, failure or redirect target behind the reason"),
    ("status", INTEGER, "nullif(u.status, 0)", "HTTP status of the last answer"),
    ("type", TEXT, "p.media_type", "media type"),
    ("size", INTEGER, "p.size", "bytes, after decompression"),
    ("depth", INTEGER, "u.depth", "clicks from the start"),
    (
        "language",
        TEXT,
        "coalesce(nullif(p.language_found, ''), nullif(p.language, ''))",
        "as its words tell, else as declared",
    ),
    ("charset", TEXT, "p.charset", "encoding that it was read with"),
    ("site", TEXT, "s.key", "the site"),
    ("host", TEXT, "h.key", "host and port"),
    ("text_chars", INTEGER, "p.text_chars", "characters of text"),
    ("response_s", REAL, "p.took_s", "seconds from the request to the last byte"),
    ("description", TEXT, "p.description", "the meta description"),
    ("h1", TEXT, "p.h1", "the first main heading"),
    ("canonical", TEXT, "nullif(p.canonical, '')", "the canonical URL that it names"),
    ("in_sitemap", BOOLEAN, "u.in_sitemap", "whether a sitemap names it"),
    ("first_seen", TIME, _time("u.first_seen"), "when it was first met"),
    ("visited", TIME, _time("u.visited"), "when it was last asked for"),
)
_OF_URL = (
    "url u LEFT JOIN page p ON p.url_id = u.id LEFT JOIN host h ON h.id = u.host_id LEFT"
    " JOIN site s ON s.id = h.site_id"
)
_SITE_OF = "SELECT k.site_id FROM url w JOIN host k ON k.id = w.host_id WHERE w.id = {}"
_LINKS = (
    ("source", TEXT, "a.text", "the page with the link"),
    ("anchor", TEXT, "l.anchor", "its words"),
    ("target", TEXT, "b.text", "where it leads"),
    ("kind", TEXT, "l.kind", "a, image, canonical, redirect, ..."),
    ("position", TEXT, "l.position", "nav, header, main, aside, footer, body or head"),
    ("nofollow", BOOLEAN, "l.nofollow", "whether it asks not to be followed"),
    (
        "internal",
        BOOLEAN,
        f"({_SITE_OF.format('l.source')}) = ({_SITE_OF.format('l.target')})",
        "whether it stays on its site",
    ),
    (
        "target_site",
        TEXT,
        f"(SELECT key FROM site WHERE id = ({_SITE_OF.format('l.target')}))",
        "the site of the target",
    ),
    ("target_reason", TEXT, "b.reason", "what became of the target"),
    (
        "target_state",
        TEXT,
        "(SELECT state FROM reason WHERE name = b.reason)",
        "indexed, registered, ignored or invalid",
    ),
    ("target_status", INTEGER, "nullif(b.status, 0)", "HTTP status of the target's last answer"),
    ("times", INTEGER, "l.times", "how many such links the page has"),
)
_OF_LINK = "link l LEFT JOIN url a ON a.id = l.source LEFT JOIN url b ON b.id = l.target"
# Where pages of one site alone were fetched, its own URLs are looked up once, and not two sites for
# each of ten million links
_ALONE = "(SELECT count(DISTINCT site_id) FROM host WHERE fetched > 0) = 1"
_URLS = (
    "SELECT id FROM url WHERE host_id {} (SELECT id FROM host WHERE site_id = (SELECT site_id FROM host"
    " WHERE fetched > 0 LIMIT 1))"
)
_OF_TARGET = (
    ("target_state", "reason IN (SELECT name FROM reason WHERE state = ?)"),
    ("target_reason", "reason = ?"),
    ("target_status", "status = ?"),
    ("target_site", "host_id IN (SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?)"),
)
_BAD = (
    ("source", TEXT, "a.text", "the page that it stands on"),
    ("text", TEXT, "b.text", "as it was written"),
    ("why", TEXT, "b.why", "its scheme, or malformed"),
    ("anchor", TEXT, "b.anchor", "its words"),
    ("kind", TEXT, "b.kind", "a, image, ..."),
    ("position", TEXT, "b.position", "the part of the page"),
)


def _of_view(
    name: str, key: str, order: tuple[str, ...], searched: tuple[str, ...], facets: tuple[str, ...]
) -> TableSource:
    """A view of `periplus sql` as it is."""
    view = VIEWS[name]
    return TableSource(
        name, view.columns, tuple(column.name for column in view.columns), name, key, order, searched, facets
    )


SOURCES = {
    source.name: source
    for source in (
        _source(
            "pages", _OF_URL, _PAGES, key="u.id", order=("depth", "url"), ids=(("url", "u.id"),),
            searched=("url", "title"),
            facets=("state", "reason", "status", "type", "depth", "language"),
        ),
        _source(
            "links", _OF_LINK, _LINKS, ids=(("source", "l.source"), ("target", "l.target")), targets=_OF_TARGET,
            searched=("source", "target", "anchor"),
            facets=("kind", "position", "internal", "target_state", "target_reason"),
        ),
        _source("bad", "bad_link b LEFT JOIN url a ON a.id = b.source", _BAD, key="b.rowid",
            searched=("source", "text", "anchor"), facets=("why", "position")),
        _of_view("hosts", "", ("-fetched", "host"), ("host",), ("site", "waits_for")),
        _of_view("sites", "", ("-pages_crawled", "name"), ("name",), ()),
        _of_view("runs", "", ("-id",), ("note", "start_urls"), ("kind", "state")),
        _of_view("redirects", "", (), ("url", "target_url"), ("status", "permanent")),
        _of_view("visits", "", ("-id",), ("url", "detail"), ("purpose", "outcome", "status")),
    )
}  # fmt: skip


def condition(source: TableSource, name: str, text: str) -> tuple[str, list[object]]:
    """A condition in SQL, and its values.

    Of texts: `word` just this, `~part` anywhere within; of numbers: `404`, `4xx`, `100..200`, `5..`; of what is true or
    not: `yes`, `no`; of times: their beginning, as in `2026-11`; of all: `-`, there is none; a leading `!`: the others.

    Raises UsageError for what cannot be meant.
    """
    expression, kind = source.expression(name), source.kind(name)
    if text.startswith("!"):
        where, values = condition(source, name, text[1:])
        return f"NOT coalesce({where}, 0)", values
    if (quick := _quick(source, name, text)) is not None:
        return quick
    if text == EMPTY:
        return f"coalesce({expression}, '') = ''", []
    if kind is BOOLEAN:
        if text not in ("yes", "no"):
            raise UsageError(f"{name} is yes or no, not {text!r}")
        return f"{expression} = ?", [int(text == "yes")]
    if kind in (INTEGER, REAL):
        return _numeric(expression, name, text)
    if kind is TIME:
        return f"substr({expression}, 1, ?) = ?", [len(text), text]
    if text.startswith("~"):
        return _holds(expression), [_pattern(text[1:])]
    return f"{expression} = ?", [text]


def _holds(expression: str) -> str:
    """That a text holds another, A and a being one: two thirds of the time that instr() takes over lower()."""
    return f"{expression} LIKE ? ESCAPE '\\'"


def _pattern(text: str) -> str:
    return "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"


def _quick(source: TableSource, name: str, text: str) -> tuple[str, list[object]] | None:
    """The same condition, said so that SQLite finds what it means without looking at each row's text; None:
    there is no such way.
    """
    if name in dict(source.ids) and text.startswith(("http://", "https://")):
        return f"{dict(source.ids)[name]} = ?", [url_id(Url(text))]
    if name == "internal" and text in ("yes", "no"):
        inside = text == "yes"
        return (
            (
                f"CASE WHEN {_ALONE} THEN l.target IN ({_URLS.format('IN' if inside else 'NOT IN')}) ELSE "
                f"{source.expression(name)} = {int(inside)} END"
            ),
            [],
        )
    if (
        name in dict(source.targets)
        and text != EMPTY
        and not _RANGE.fullmatch(text)
        and not _CLASS.fullmatch(text)
        and text[:1] != "~"
    ):
        return f"l.target IN (SELECT id FROM url WHERE {dict(source.targets)[name]})", [text]
    return None


def _numeric(expression: str, name: str, text: str) -> tuple[str, list[object]]:
    try:
        if _CLASS.fullmatch(text):
            return f"{expression} BETWEEN ? AND ?", [int(text[0]) * 100, int(text[0]) * 100 + 99]
        if span := _RANGE.fullmatch(text):
            low, high = float(span[1] or "-inf"), float(span[2] or "inf")
            return f"{expression} BETWEEN ? AND ?", [low, high]
        return f"{expression} = ?", [float(text)]
    except ValueError:
        raise UsageError(f"{name} is a number, or a range like 100..200, not {text!r}") from None


def _where(source: TableSource, wish: TableQuery) -> tuple[str, list[object]]:
    parts: list[tuple[str, list[object]]] = [condition(source, name, text) for name, text in wish.conditions]
    if wish.text:
        found = [_holds(source.expression(name)) for name in source.searched]
        parts.append((f"({' OR '.join(found)})", [_pattern(wish.text)] * len(found)))
    if wish.within is not None:
        parts.append((f"{wish.within[0]} IN (SELECT value FROM json_each(?))", [json.dumps(wish.within[1])]))
    return " AND ".join(part for part, _ in parts) or "1", [value for _, values in parts for value in values]


def _order(source: TableSource, wish: TableQuery) -> str:
    """What says nothing stands last, either way."""
    parts = []
    for name in wish.sort or source.order:
        expression = source.expression(name.removeprefix("-"))
        parts.append(f"{expression} IS NULL, {expression}" + (" DESC" if name.startswith("-") else ""))
    return f" ORDER BY {', '.join(parts)}" if parts else ""


def found(
    connection: sqlite3.Connection,
    source: TableSource,
    wish: TableQuery,
    columns: Sequence[str] = (),
    look: TableSample | None = None,
) -> Iterator[tuple[object, ...]]:
    """The rows wished for, with the columns named, or all.

    look: at the same rows; spares a second search. Raises UsageError.
    """
    if wish.first > DEEPEST:
        raise UsageError(f"nobody leafs beyond {DEEPEST:,} rows: filter, or download the table")
    if look is not None and look.rows is not None:
        yield from look.rows
        return
    shown = ", ".join(source.expression(name) for name in columns or [column.name for column in source.columns])
    where, values = _where(source, wish)
    order = "" if look is not None and look.count.capped and not wish.sort else _order(source, wish)
    place = (wish.most, wish.first)
    if not source.key or wish.most < 0:
        yield from rows(
            connection.execute(
                f"SELECT {shown} FROM {source.source} WHERE {where}{order} LIMIT ? OFFSET ?", (*values, *place)
            )
        )
        return
    if look is not None and look.keys is not None:
        where, values = f"{source.key} IN (SELECT value FROM json_each(?))", [json.dumps(look.keys)]
    keys = connection.execute(
        f"SELECT {source.key} FROM {source.source} WHERE {where}{order} LIMIT ? OFFSET ?", (*values, *place)
    )
    for (key,) in keys.fetchall():
        yield connection.execute(f"SELECT {shown} FROM {source.source} WHERE {source.key} = ?", (key,)).fetchone()


def looked(
    connection: sqlite3.Connection, source: TableSource, wish: TableQuery, columns: Sequence[str] = ()
) -> TableSample:
    """How many rows answer, and what they share.

    columns: that will be asked for; of many links the look brings them along, for to find a rare kind of them again
    takes as long as the look.
    """
    where, values = _where(source, wish)
    names = [source.key or "NULL", *map(source.expression, source.facets)]
    briefly = not source.key and known(connection) > LARGE
    most = FEW if briefly else SAMPLED
    brings = briefly and not _order(source, wish) and 0 <= wish.most <= most - wish.first
    shown = (
        [source.expression(name) for name in columns or [column.name for column in source.columns]] if brings else []
    )
    cursor = connection.execute(
        f"SELECT {', '.join(names + shown)} FROM {source.source} WHERE {where} LIMIT ?", (*values, most)
    )
    keys: list[object] = []
    met: list[tuple[object, ...]] = []
    tallies = [Counter[object]() for _ in source.facets]
    for key, *shared in rows(cursor):
        if brings and wish.first <= len(keys) < wish.first + wish.most:
            met.append(tuple(shared[len(tallies) :]))
        keys.append(key)
        for tally, value in zip(tallies, shared[: len(tallies)], strict=True):
            tally[value] += 1
    page = tuple(met) if brings else None
    facets = tuple((name, _told(source, name, tally)) for name, tally in zip(source.facets, tallies, strict=True))
    if len(keys) < most:
        return TableSample(Count(len(keys), False), len(keys), facets, keys if source.key else None, page)
    if briefly:
        return TableSample(Count(FEW, True), FEW, facets, None, page)
    many = int(
        connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {source.source} WHERE {where} LIMIT ?)", (*values, COUNTED + 1)
        ).fetchone()[0]
    )
    return TableSample(Count(min(many, COUNTED), many > COUNTED), SAMPLED, facets, None)


def known(connection: sqlite3.Connection) -> int:
    """URLs of the collection."""
    return int(connection.execute("SELECT coalesce(sum(value), 0) FROM tally WHERE name LIKE 'reason:%'").fetchone()[0])


def _told(source: TableSource, name: str, tally: Counter[object]) -> tuple[tuple[str, int], ...]:
    """The commonest values as text; empty: it says nothing."""
    words = {0: "no", 1: "yes"} if source.kind(name) is BOOLEAN else {}
    said = [
        ("" if value is None else words.get(value, str(value)) if isinstance(value, int) else str(value), pages)
        for value, pages in tally.items()
    ]
    return tuple(sorted(said, key=lambda one: (-one[1], one[0]))[:FACET_VALUES])


def standing(connection: sqlite3.Connection) -> tuple[int, int]:
    """(runs, visits) so far: what was computed under the same numbers still holds."""
    row = connection.execute(
        "SELECT (SELECT coalesce(max(id), 0) FROM run), (SELECT coalesce(max(id), 0) FROM visit)"
    ).fetchone()
    return int(row[0]), int(row[1])


def kept_in_memory(name: str, columns: Sequence[Column], content: Sequence[Sequence[object]]) -> sqlite3.Connection:
    """A table of computed rows, to be leafed through like a stored one: with `memory_source`."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    keep(connection, name, columns, content)
    return connection


def keep(
    connection: sqlite3.Connection, name: str, columns: Sequence[Column], content: Sequence[Sequence[object]]
) -> None:
    """Another table beside it."""
    connection.execute(f'CREATE TABLE "{name}" ({", ".join(column.name for column in columns)})')
    connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', content)


def memory_source(
    name: str, columns: tuple[Column, ...], searched: tuple[str, ...], facets: tuple[str, ...]
) -> TableSource:
    return TableSource(name, columns, tuple(column.name for column in columns), name, "rowid", (), searched, facets)
