"""The links of a page as every database keeps them: those that were seen at the same times are a row of columns.

docs/decisions/0054 and 0065.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from periplus.model.page import LINK_KINDS, POSITIONS
from periplus.store.rows import LinkChanges, LinkKey, NewLinks, link_rows

# What SQL picks by its place is as wide for each link, so that no walk through what is before is needed: kinds and
# landmarks are letters from `a` on (enough for 29 names), nofollow is 0 or 1, left out where none has it. `words` is a
# JSON array: a link's anchor or, where it stands on the page several times or names places, `TAB times SPACE fragments
# TAB anchor`: an anchor begins with no white space, and an address holds no tab.
LINKS_AT_MOST = 100  # of a row: SQLite before 3.44 reads what lies on further pages of the file again for each link
FIRST_LETTER = ord("a")
_LETTERS = bytes((FIRST_LETTER + code) % 256 for code in range(256))
_DIGITS = bytes(ord("1") if code else ord("0") for code in range(256))
KINDS = tuple(kind.value for kind in LINK_KINDS)
LANDMARKS = tuple(position.value for position in POSITIONS)
_CODES = {name: code for names in (KINDS, LANDMARKS) for code, name in enumerate(names)}

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


T = TypeVar("T")


class LinksRow(NamedTuple, Generic[T]):
    """A row, as far as all databases agree. targets: ids, as the database holds them."""

    source: int
    first_seen: float
    last_seen: float
    targets: T
    kinds: bytes
    positions: bytes
    nofollow: bytes | None
    words: str


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


Stored = dict[LinkKey, PageLink]


def new_rows(page: NewLinks, now: float) -> Iterator[LinksRow[Sequence[int]]]:
    """The rows of a page that has none yet."""
    links, nofollow = page.links, b""
    kinds, positions = links.kinds.translate(_LETTERS), links.positions.translate(_LETTERS)
    if any(links.nofollow):
        nofollow = links.nofollow.translate(_DIGITS)
    words: Sequence[str] = links.anchors
    if any(links.fragments) or max(links.times, default=1) > 1:
        words = list(map(_words, links.anchors, links.fragments, links.times))
    for start in range(0, len(kinds), LINKS_AT_MOST):
        part = slice(start, start + LINKS_AT_MOST)
        bars = nofollow[part] or None
        yield LinksRow(page.source, now, now, page.ids[part], kinds[part], positions[part], bars, _encode(words[part]))


def _words(anchor: str, fragments: str, times: int) -> str:
    return anchor if times == 1 and not fragments else f"\t{times} {fragments}\t{anchor}"


def parted(text: str) -> tuple[str, str, int]:
    """(anchor, fragments, times) of what stands in `words`."""
    if not text.startswith("\t"):
        return text, "", 1
    further, _, anchor = text[1:].partition("\t")
    times, _, fragments = further.partition(" ")
    return anchor, fragments, int(times)


def _row(source: int, links: Sequence[PageLink]) -> LinksRow[Sequence[int]]:
    """A row of links that were first and last seen at the same times."""
    targets, kinds, positions, nofollow, anchors, fragments, times, first, last = zip(*links, strict=True)
    return LinksRow(
        source,
        first[0],
        last[0],
        targets,
        bytes(map(_CODES.__getitem__, kinds)).translate(_LETTERS),
        bytes(map(_CODES.__getitem__, positions)).translate(_LETTERS),
        bytes(nofollow).translate(_DIGITS) if any(nofollow) else None,
        _encode(list(map(_words, anchors, fragments, times))),
    )


def rows_of(source: int, links: Iterable[PageLink]) -> list[LinksRow[Sequence[int]]]:
    """The rows of one page's links."""
    rows = []
    for _, alike in groupby(sorted(links, key=_SEEN), _SEEN):
        while some := list(islice(alike, LINKS_AT_MOST)):
            rows.append(_row(source, some))
    return rows


_SEEN = itemgetter(7, 8)


def unpacked(row: LinksRow[Any], targets: Iterable[int]) -> Iterator[PageLink]:
    """Raises ValueError for columns that do not fit together."""
    columns = (
        targets,
        (KINDS[letter - FIRST_LETTER] for letter in row.kinds),
        (LANDMARKS[letter - FIRST_LETTER] for letter in row.positions),
        (digit - ord("0") for digit in row.nofollow) if row.nofollow else repeat(0, len(row.kinds)),
        json.loads(row.words),
    )
    for target, kind, position, bars, text in zip(*columns, strict=True):
        yield PageLink(target, kind, position, bars, *parted(text), row.first_seen, row.last_seen)


# commits -------------------------------------------------------------------------------------------------------------


class PageChange(NamedTuple):
    """What a visit found on a page that may have links. ending: kinds of which those that it did not find end; empty:
    any.
    """

    page: NewLinks
    ending: Sequence[str]


def sorted_out(changes: LinkChanges) -> tuple[Sequence[NewLinks], list[PageChange]]:
    """(pages that have no links yet, each once; those that may have some)."""
    new: dict[int, NewLinks] = {}
    seen: list[NewLinks] = []
    for page in changes.new:
        if new.setdefault(page.source, page) is not page:  # one page twice in a batch
            seen.append(page)
    ending: dict[int, list[str]] = {}
    for ended in changes.ended:
        ending.setdefault(ended.source, []).append(ended.kind)
    pages = chain(seen, changes.seen)
    return list(new.values()), [PageChange(page, ending.pop(page.source, ())) for page in pages]


def met_again(change: PageChange, now: float, stored: Stored) -> tuple[Stored, list[PageLink]]:
    """(the links that the page has now, those that ended): of those that stay, first_seen stays too."""
    links = dict(stored)
    for row in link_rows(change.page, now):
        link = PageLink(*row[2:])  # type: ignore[arg-type]  # by LINK_COLUMNS, behind its shard
        before = stored.get(link.key)
        links[link.key] = link if before is None else link._replace(first_seen=before.first_seen)
    past = [link for link in links.values() if link.last_seen < now and _ends(link, change.ending)]
    for link in past:
        del links[link.key]
    return links, past


def _ends(link: PageLink, ending: Sequence[str]) -> bool:
    return any(kind in ("", link.kind) for kind in ending)


HISTORY_COLUMNS = "source, target, kind, position, nofollow, run_id, anchor, times, first_seen, last_seen"


def history_row(source: int, link: PageLink, run_id: int, checked: float) -> tuple[object, ...]:
    """By HISTORY_COLUMNS. checked: when the page was last asked, 0 if it was never asked again."""
    return (
        source, *link.key, run_id, link.anchor, link.times, link.first_seen, max(link.last_seen, checked)
    )  # fmt: skip
