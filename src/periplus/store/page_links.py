"""Storage of a page's links in both databases: a row of columns for all links that were seen at the same times.

See docs/decisions/0054 and 0065.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from periplus.model.page import LINK_KINDS, POSITIONS
from periplus.store.rows import LinkChanges, NewLinks, PageLink, StoredLinks, link_rows
from periplus.store.statements import Dialect, PageKey, Row, Statements

# Values that SQL picks by position have a fixed width per link, so that it need not scan: kinds and landmarks are
# letters from `a` on (enough for 29 names); nofollow is 0 or 1, or NULL if no link has it. `words` is a JSON array of
# anchors. A link with fragments or several occurrences is written as `TAB times SPACE fragments TAB anchor`: an anchor
# never begins with white space, and a fragment contains no tab.
LINKS_AT_ONCE = 10_000  # links deleted at a time
LINKS_AT_MOST = 100  # per row: SQLite before 3.44 reads overflow pages again for each link
FIRST_LETTER = ord("a")
_LETTERS = bytes((FIRST_LETTER + code) % 256 for code in range(256))
_DIGITS = bytes(ord("1") if code else ord("0") for code in range(256))
KINDS = tuple(kind.value for kind in LINK_KINDS)
LANDMARKS = tuple(position.value for position in POSITIONS)
_CODES = {name: code for names in (KINDS, LANDMARKS) for code, name in enumerate(names)}

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ESCAPES = bytes([*range(ord("\t")), *range(ord("\t") + 1, ord(" ")), *b'"\\'])  # by JSON, besides the tab


T = TypeVar("T")


class LinksRow(NamedTuple, Generic[T]):
    """A row, except for the type of targets, which are ids in the database's own format."""

    source: int
    first_seen: float
    last_seen: float
    targets: T
    kinds: bytes
    positions: bytes
    nofollow: bytes | None
    words: str


def perhaps_with_fragments(dialect: Dialect) -> str:
    """Subquery: pages that may have links with fragments. The tab before fragments is two characters in JSON."""
    return rf"(SELECT source FROM page_links WHERE {dialect.position}(words, '\t') > 0)"


def drop_links(statements: Statements, links: Iterable[Row]) -> int:
    """Deletes links, given as (shard, source, target, kind, position, nofollow); returns how many existed."""
    dropped, rest = 0, iter(sorted(links))
    while lot := set(islice(rest, LINKS_AT_ONCE)):
        before = statements.stored_links({link[:2] for link in lot})
        after = {
            page: {key: link for key, link in stored.items() if (*page, *key) not in lot}
            for page, stored in before.items()
        }
        statements.store_links(after)
        dropped += sum(len(stored) - len(after[page]) for page, stored in before.items())
    return dropped


def drop_targets(statements: Statements, pages: Mapping[PageKey, Set[int]]) -> None:
    """Deletes links of pages. pages: the targets of these links, by page."""
    stored = statements.stored_links(pages)
    statements.store_links({
        page: {key: link for key, link in links.items() if link.target not in pages[page]}
        for page, links in stored.items()
    })  # fmt: skip


def move_links(statements: Statements, source: PageKey, target: PageKey) -> None:
    """Moves the links of one page to another, which keeps its own different links."""
    stored = statements.stored_links([source, target])
    if stored[source]:
        statements.store_links({target: stored[target] | stored[source], source: {}})


def new_rows(page: NewLinks, now: float) -> Iterator[LinksRow[Sequence[int]]]:
    """Rows for a page without stored links."""
    links = page.links
    kinds, positions = links.kinds.translate(_LETTERS), links.positions.translate(_LETTERS)
    nofollow = links.nofollow.translate(_DIGITS) if any(links.nofollow) else b""
    words = list(links.anchors)
    for at, (fragments, times) in enumerate(zip(links.fragments, links.times, strict=True)):
        if fragments or times > 1:
            words[at] = f"\t{times} {fragments}\t{words[at]}"
    for start in range(0, len(kinds), LINKS_AT_MOST):
        part = slice(start, start + LINKS_AT_MOST)
        bars = nofollow[part] or None
        yield LinksRow(page.source, now, now, page.ids[part], kinds[part], positions[part], bars, _array(words[part]))


def _array(texts: Sequence[str]) -> str:
    """A JSON array of at least one text. Texts without quotes, backslashes and control characters need no encoder,
    which takes 13 ns a character.
    """
    whole = '","'.join(texts)
    written = whole.encode("utf-8", "surrogatepass")
    if len(written) - len(written.translate(None, _ESCAPES)) > 2 * (len(texts) - 1):  # more than the quotes between
        return _encode(texts)
    whole = whole.replace("\t", r"\t")
    return f'["{whole}"]'


def _words(anchor: str, fragments: str, times: int) -> str:
    return anchor if times == 1 and not fragments else f"\t{times} {fragments}\t{anchor}"


def split_words(text: str) -> tuple[str, str, int]:
    """Parses an element of `words` into (anchor, fragments, times)."""
    if not text.startswith("\t"):
        return text, "", 1
    further, _, anchor = text[1:].partition("\t")
    times, _, fragments = further.partition(" ")
    return anchor, fragments, int(times)


def _row(source: int, links: Sequence[PageLink]) -> LinksRow[Sequence[int]]:
    """Builds a row from links with equal first_seen and last_seen."""
    targets, kinds, positions, nofollow, anchors, fragments, times, first, last = zip(*links, strict=True)
    return LinksRow(
        source,
        first[0],
        last[0],
        targets,
        bytes(map(_CODES.__getitem__, kinds)).translate(_LETTERS),
        bytes(map(_CODES.__getitem__, positions)).translate(_LETTERS),
        bytes(nofollow).translate(_DIGITS) if any(nofollow) else None,
        _array(list(map(_words, anchors, fragments, times))),
    )


def rows_of(source: int, links: Iterable[PageLink]) -> list[LinksRow[Sequence[int]]]:
    """Rows for the links of one page."""
    rows = []
    for _, alike in groupby(sorted(links, key=_seen_times), _seen_times):
        while block := list(islice(alike, LINKS_AT_MOST)):
            rows.append(_row(source, block))
    return rows


_seen_times = itemgetter(7, 8)


def unpack_links(row: LinksRow[Any], targets: Iterable[int]) -> Iterator[PageLink]:
    """Yields the links of a row. Raises ValueError if its columns are inconsistent."""
    columns = (
        targets,
        (KINDS[letter - FIRST_LETTER] for letter in row.kinds),
        (LANDMARKS[letter - FIRST_LETTER] for letter in row.positions),
        (digit - ord("0") for digit in row.nofollow) if row.nofollow else repeat(0, len(row.kinds)),
        json.loads(row.words),
    )
    for target, kind, position, bars, text in zip(*columns, strict=True):
        yield PageLink(target, kind, position, bars, *split_words(text), row.first_seen, row.last_seen)


# commits -------------------------------------------------------------------------------------------------------------


class PageChange(NamedTuple):
    """Links found by a visit on a page that may have stored links. ending: kinds of links to close if the visit did not
    find them; empty: none, '' in it: all kinds.
    """

    page: NewLinks
    ending: Sequence[str]


def new_and_seen_pages(changes: LinkChanges) -> tuple[Sequence[NewLinks], list[PageChange]]:
    """(distinct pages without stored links, pages that may have stored links)."""
    new: dict[int, NewLinks] = {}
    seen: list[NewLinks] = []
    for page in changes.new:
        if new.setdefault(page.source, page) is not page:  # the same page twice in a batch
            seen.append(page)
    ending: dict[int, list[str]] = {}
    for ended in changes.ended:
        ending.setdefault(ended.source, []).append(ended.kind)
    pages = chain(seen, changes.seen)
    return list(new.values()), [PageChange(page, ending.pop(page.source, ())) for page in pages]


def merged_links(change: PageChange, now: float, stored: StoredLinks) -> tuple[StoredLinks, list[PageLink]]:
    """(current links of the page, closed links). Links that stay keep first_seen."""
    links = dict(stored)
    for row in link_rows(change.page, now):
        link = PageLink(*row[2:])  # type: ignore[arg-type]  # LINK_COLUMNS after the shard
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
    """A row of HISTORY_COLUMNS. checked: time of the last refresh of the page, or 0."""
    return (
        source, *link.key, run_id, link.anchor, link.times, link.first_seen, max(link.last_seen, checked)
    )  # fmt: skip
