"""Links as a folder keeps them: those of one page that were seen at the same times are a row of columns.

Arrays are made of them without an object a link, and the view `link` gives any program that reads SQLite a row a link:
docs/decisions/0054.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from typing import Any, NamedTuple

from periplus.model.page import LINK_KIND_CODES, LINK_KINDS, POSITIONS, LinkKind
from periplus.store.corruption import reported
from periplus.store.rows import LinkChanges, LinkKey, NewLinks, link_rows

# What SQL picks by its place is as wide for each link, in a BLOB, of which `substr` takes a part without a walk through
# what is before: ids as decimal numbers, kinds and landmarks as letters from `a` on (enough for 29 names), nofollow as
# 0 or 1, left out where none has it. `words` is a JSON array: a link's anchor or, where it stands on the page several
# times or names places, `TAB times SPACE fragments TAB anchor`: an anchor begins with no white space, and an address
# holds no tab. SQLite before 3.42 has no function but `json_each` that takes JSON apart in a view which is not trusted.
ID_WIDTH = 21  # a blank, a sign and 19 digits
LINKS_AT_MOST = 100  # of a row: SQLite before 3.44 reads what lies on further pages of the file again for each link
FIRST_LETTER = ord("a")
_LETTERS = bytes((FIRST_LETTER + code) % 256 for code in range(256))
_DIGITS = bytes(ord("1") if code else ord("0") for code in range(256))
KINDS = tuple(kind.value for kind in LINK_KINDS)
LANDMARKS = tuple(position.value for position in POSITIONS)
_CODES = {name: code for names in (KINDS, LANDMARKS) for code, name in enumerate(names)}

COLUMNS = "source, first_seen, last_seen, targets, kinds, positions, nofollow, words"
TABLE = """
CREATE TABLE page_links (
    source INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL, targets BLOB NOT NULL, kinds BLOB NOT NULL,
    positions BLOB NOT NULL, nofollow BLOB, words TEXT NOT NULL);
CREATE INDEX page_links_source ON page_links (source);
"""  # noqa: E501


def _named(column: str, names: Sequence[str]) -> str:
    """SQL for the name that a link's letter stands for."""
    cases = " ".join(f"WHEN x'{FIRST_LETTER + code:x}' THEN '{name}'" for code, name in enumerate(names))
    return f"CASE substr(p.{column}, w.key + 1, 1) {cases} END"


_TAB = "char(9)"
_FURTHER = f"substr(w.value, 2, instr(substr(w.value, 2), {_TAB}) - 1)"  # times and fragments


def _either(further: str, plain: str) -> str:
    return f"CASE substr(w.value, 1, 1) WHEN {_TAB} THEN {further} ELSE {plain} END"


VIEW = f"""
CREATE VIEW link AS SELECT p.source AS source,
    CAST(substr(p.targets, {ID_WIDTH} * w.key + 1, {ID_WIDTH}) AS INTEGER) AS target,
    {_named("kinds", KINDS)} AS kind,
    {_named("positions", LANDMARKS)} AS position,
    CASE WHEN p.nofollow IS NULL THEN 0 ELSE CAST(substr(p.nofollow, w.key + 1, 1) AS INTEGER) END AS nofollow,
    {_either(f"substr(w.value, 2 + instr(substr(w.value, 2), {_TAB}))", "w.value")} AS anchor,
    {_either(f"substr({_FURTHER}, instr({_FURTHER}, ' ') + 1)", "''")} AS fragments,
    {_either(f"CAST({_FURTHER} AS INTEGER)", "1")} AS times,
    p.first_seen AS first_seen, p.last_seen AS last_seen
FROM page_links p JOIN json_each(p.words) w;
"""


def _of_rows() -> str:
    """SQL for the rows, made of rows a link as schemas before 5 had them."""

    def letters(column: str, names: Sequence[str]) -> str:
        cases = " ".join(f"WHEN '{name}' THEN '{chr(FIRST_LETTER + code)}'" for code, name in enumerate(names))
        return f"CAST(group_concat(CASE {column} {cases} END, '') AS BLOB)"

    targets = f"CAST(group_concat(printf('%{ID_WIDTH}d', target), '') AS BLOB)"
    words = f"iif(times = 1 AND fragments = '', anchor, {_TAB} || times || ' ' || fragments || {_TAB} || anchor)"
    part = f"(row_number() OVER (PARTITION BY source, first_seen, last_seen) - 1) / {LINKS_AT_MOST} AS part"
    return (
        f"SELECT source, first_seen, last_seen, {targets} AS targets,"
        f" {letters('kind', KINDS)} AS kinds, {letters('position', LANDMARKS)} AS positions,"
        f" iif(max(nofollow), CAST(group_concat(nofollow, '') AS BLOB), NULL) AS nofollow,"
        f" json_group_array({words}) AS words FROM (SELECT *, {part} FROM main.link)"
        " GROUP BY source, first_seen, last_seen, part"
    )


SCHEMA = TABLE + VIEW
IN_PLACE = f"CREATE TEMP VIEW page_links AS {_of_rows()};\n"
FROM_ROWS = f"""
{TABLE}
INSERT INTO page_links ({COLUMNS}) {_of_rows()};
DROP TABLE main.link;
{VIEW}
"""
# Pages of which the targets hold a URL's number as text: looking at each link of these alone takes half the time
PERHAPS_TO = f"(SELECT source FROM page_links WHERE instr(targets, CAST(printf('%{ID_WIDTH}d', {{}}) AS BLOB)))"
TO_TARGET = f"link WHERE target = ?1 AND source IN {PERHAPS_TO.format('?1')}"
Row = tuple[object, ...]
_CLICKED = frozenset(FIRST_LETTER + LINK_KIND_CODES[kind] for kind in (LinkKind.ANCHOR, LinkKind.AREA))
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_STORE = f"INSERT INTO page_links ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class PageLink(NamedTuple):
    """A link of a page as it is kept."""

    target: int
    kind: str
    position: str
    nofollow: int
    anchor: str
    fragments: str  # parted by blanks
    times: int
    first_seen: float
    last_seen: float

    @property
    def key(self) -> LinkKey:
        return self[:4]


def new_rows(page: NewLinks, now: float) -> Iterator[Row]:
    """The rows of a page that has none yet."""
    links, nofollow, targets = page.links, b"", _targets(page.ids)
    kinds, positions = links.kinds.translate(_LETTERS), links.positions.translate(_LETTERS)
    if any(links.nofollow):
        nofollow = links.nofollow.translate(_DIGITS)
    words: Sequence[str] = links.anchors
    if any(links.fragments) or max(links.times, default=1) > 1:
        words = list(map(_words, links.anchors, links.fragments, links.times))
    for start in range(0, len(kinds), LINKS_AT_MOST):
        end = start + LINKS_AT_MOST
        ids = targets[start * ID_WIDTH : end * ID_WIDTH]
        bars = nofollow[start:end] or None
        yield (page.source, now, now, ids, kinds[start:end], positions[start:end], bars, _encode(words[start:end]))


def _targets(ids: Sequence[int]) -> bytes:
    return (f"%{ID_WIDTH}d" * len(ids) % tuple(ids)).encode("ascii")


def _words(anchor: str, fragments: str, times: int) -> str:
    return anchor if times == 1 and not fragments else f"\t{times} {fragments}\t{anchor}"


def _row(source: int, links: Sequence[PageLink]) -> Row:
    """A row of links that were first and last seen at the same times."""
    targets, kinds, positions, nofollow, anchors, fragments, times, first, last = zip(*links, strict=True)
    return (
        source,
        first[0],
        last[0],
        _targets(targets),
        bytes(map(_CODES.__getitem__, kinds)).translate(_LETTERS),
        bytes(map(_CODES.__getitem__, positions)).translate(_LETTERS),
        bytes(nofollow).translate(_DIGITS) if any(nofollow) else None,
        _encode(list(map(_words, anchors, fragments, times))),
    )


def rows_of(source: int, links: Iterable[PageLink]) -> list[Row]:
    """The rows of one page's links."""
    rows = []
    for _, alike in groupby(sorted(links, key=_SEEN), _SEEN):
        while some := list(islice(alike, LINKS_AT_MOST)):
            rows.append(_row(source, some))
    return rows


_SEEN = itemgetter(7, 8)


def of_page(connection: sqlite3.Connection, source: int) -> dict[LinkKey, PageLink]:
    """The links that are kept of a page. Raises StoreError for columns that do not fit together."""
    find = f"SELECT {COLUMNS} FROM page_links WHERE source = ? ORDER BY rowid"
    with reported():
        return {link.key: link for row in connection.execute(find, (source,)).fetchall() for link in _unpacked(row[1:])}


def _unpacked(row: Sequence[Any]) -> Iterator[PageLink]:
    first, last, targets, kinds, positions, nofollow, words = row
    columns = (
        map(int, targets.split()),
        (KINDS[letter - FIRST_LETTER] for letter in kinds),
        (LANDMARKS[letter - FIRST_LETTER] for letter in positions),
        (digit - ord("0") for digit in nofollow) if nofollow else repeat(0, len(kinds)),
        json.loads(words),
    )
    for target, kind, position, bars, text in zip(*columns, strict=True):
        yield PageLink(target, kind, position, bars, *_parted(text), first, last)


def _parted(text: str) -> tuple[str, str, int]:
    """(anchor, fragments, times) of what stands in `words`."""
    if not text.startswith("\t"):
        return text, "", 1
    further, _, anchor = text[1:].partition("\t")
    times, _, fragments = further.partition(" ")
    return anchor, fragments, int(times)


def letters_of(*kinds: LinkKind) -> bytes:
    return bytes(FIRST_LETTER + LINK_KIND_CODES[kind] for kind in kinds)


def hyperlinks(connection: sqlite3.Connection) -> Iterator[tuple[int, int, str, str]]:
    """(source, target, anchor, landmark) of whatever a reader may click, page by page. Raises StoreError."""
    with reported():
        for source, targets, kinds, positions, words in connection.execute(
            "SELECT source, targets, kinds, positions, words FROM page_links"
        ):
            columns = zip(map(int, targets.split()), kinds, positions, json.loads(words), strict=True)
            for target, kind, position, text in columns:
                if kind in _CLICKED:
                    yield source, target, _parted(text)[0], LANDMARKS[position - FIRST_LETTER]


class LinkColumns(NamedTuple):
    """Links of some pages as columns."""

    pages: Sequence[Sequence[Any]]  # what was asked for of each page's row
    many: Sequence[int]  # links of each of them
    targets: Sequence[int]
    kinds: Sequence[str]
    positions: Sequence[str]
    nofollow: Sequence[int]
    anchors: Sequence[str]
    fragments: Sequence[str]
    times: Sequence[int]


def in_columns(connection: sqlite3.Connection, asked: str, joins: str, at_once: int) -> Iterator[LinkColumns]:
    """All links in the order of the view, of some pages at once. asked: expressions over page_links l and the joins.

    Raises StoreError for columns that do not fit together.
    """
    cursor = connection.execute(f"SELECT targets, kinds, positions, nofollow, words, {asked} FROM page_links l {joins}")
    while rows := cursor.fetchmany(at_once):
        with reported():
            targets, kinds, positions, nofollow, words, *pages = map(list, zip(*rows, strict=True))
            many = list(map(len, kinds))
            bars = b"".join(bar or b"0" * links for bar, links in zip(nofollow, many, strict=True))
            texts = json.loads(f"[{','.join(words)}]")
            if list(map(len, positions)) != many or list(map(len, texts)) != many:
                raise ValueError("columns of different lengths")
            parted = map(_parted, chain.from_iterable(texts))
            columns: tuple[Sequence[Any], ...] = (
                list(map(int, b"".join(targets).split())),
                [KINDS[letter - FIRST_LETTER] for letter in b"".join(kinds)],
                [LANDMARKS[letter - FIRST_LETTER] for letter in b"".join(positions)],
                [digit - ord("0") for digit in bars],
                *zip(*parted, strict=True),
            )
            if any(len(column) != sum(many) for column in columns):
                raise ValueError("columns of different lengths")
        yield LinkColumns(list(zip(*pages, strict=True)), many, *columns)


def insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    connection.executemany(_STORE, rows)


def replace(connection: sqlite3.Connection, source: int, links: Iterable[PageLink]) -> None:
    """In place of what is kept of the page."""
    connection.execute("DELETE FROM page_links WHERE source = ?", (source,))
    insert(connection, rows_of(source, links))


def move(connection: sqlite3.Connection, source: int, target: int) -> None:
    """The links of one page become those of another, whose own stay where they are other ones."""
    moved = of_page(connection, source)
    if moved:
        replace(connection, target, (of_page(connection, target) | moved).values())
        connection.execute("DELETE FROM page_links WHERE source = ?", (source,))


def drop(connection: sqlite3.Connection, source: int, targets: frozenset[int]) -> None:
    """The page's links to these URLs go."""
    replace(connection, source, [link for link in of_page(connection, source).values() if link.target not in targets])


def drop_each(connection: sqlite3.Connection, keys: Iterable[tuple[int, LinkKey]]) -> int:
    """Some links, each behind its page, go; returns how many there were."""
    dropped = 0
    for source, of_source in groupby(sorted(keys), itemgetter(0)):
        links = of_page(connection, source)
        gone = {key for _, key in of_source} & links.keys()
        replace(connection, source, [link for key, link in links.items() if key not in gone])
        dropped += len(gone)
    return dropped


def fill(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Enters rows by LINK_COLUMNS, those of a page one after another, into an empty table."""
    for source, of_source in groupby(rows, itemgetter(0)):
        insert(connection, rows_of(source, (PageLink(*row[1:]) for row in of_source)))  # type: ignore[arg-type]


# commits -------------------------------------------------------------------------------------------------------------


def enter(connection: sqlite3.Connection, changes: LinkChanges) -> None:
    """What a transaction says of links: see `LinkChanges`."""
    new: dict[int, NewLinks] = {}
    seen: list[NewLinks] = []
    for page in changes.new:
        if new.setdefault(page.source, page) is not page:  # one page twice in a batch
            seen.append(page)
    insert(connection, chain.from_iterable(new_rows(page, changes.now) for page in new.values()))
    seen += changes.seen
    ending: dict[int, list[str]] = {}
    for ended in changes.ended:
        ending.setdefault(ended.source, []).append(ended.kind)
    for page in seen:
        _enter_seen(connection, changes, page, ending.pop(page.source, ()))


def _enter_seen(connection: sqlite3.Connection, changes: LinkChanges, page: NewLinks, ending: Sequence[str]) -> None:
    """Enters the links of a page that may have some: of those that stay, first_seen stays too."""
    now, stored = changes.now, of_page(connection, page.source)
    links = dict(stored)
    for row in link_rows(page, now):
        link = PageLink(*row[2:])  # type: ignore[arg-type]  # by LINK_COLUMNS, behind its shard
        before = stored.get(link.key)
        links[link.key] = link if before is None else link._replace(first_seen=before.first_seen)
    past = [link for link in links.values() if link.last_seen < now and any(kind in ("", link.kind) for kind in ending)]
    if past:
        checked = connection.execute("SELECT checked FROM freshness WHERE url_id = ?", (page.source,)).fetchone()
        latest = checked[0] if checked else 0.0
        connection.executemany(
            "INSERT OR IGNORE INTO link_history (source, target, kind, position, nofollow, run_id, anchor, times,"
            " first_seen, last_seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (page.source, *link.key, changes.run_id, link.anchor, link.times, link.first_seen,
                 max(link.last_seen, latest))
                for link in past
            ],
        )  # fmt: skip
        for link in past:
            del links[link.key]
    replace(connection, page.source, links.values())
