"""How do single links become rows: resolved, judged, merged and counted?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeAlias, TypeVar

from periplus.document.charsets import encoding_of
from periplus.errors import InvalidUrl
from periplus.model.page import BadLink, Link, LinkKind, Position
from periplus.model.web import Url
from periplus.urls.canonical import identity, resolve, scheme_of_href

ROWS_MOST = 20_000  # distinct ones of one page; what is beyond is not recorded
ELEMENTS_MOST = 200_000  # of one tag on one page; a reference of 421 pages has 30,000 links, and more than these take 3 s
BAD_ROWS_MOST = 2_000
HREF_CHARS = 65_536  # a longer one is malformed: no server takes it
ANCHOR_CHARS = 1_000  # for an `a` around a whole card or article
BAD_TEXT_CHARS = 2_000  # as the model says
FRAGMENTS_MOST = 20_000  # of one row
_CACHED_CHARS = 300  # bounds the caches below to some 20 MB

_PAGES = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})  # an empty href is the page itself, `#x` a place in it
_NAMES = _PAGES | {LinkKind.REFRESH, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
_CONTENT_IN_PLACE = frozenset({"data", "about", "blob"})  # where a part is embedded these are its content, no link

_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_PLAIN_FRAGMENTS = re.compile(r"[A-Za-z0-9_.:/()-]*")  # percent-encoding leaves it as it is
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~%-][^:\\\t\n\r]*")  # relative, and not a mere query
_ANYWHERE = Url("http://localhost/")
_new = tuple.__new__  # half of what a named tuple's own takes
_Element = TypeVar("_Element")


Place: TypeAlias = tuple[LinkKind, Position, bool]
"""What tells links to one target apart: kind, position, nofollow. A plain tuple: one is made per link."""


@dataclass(slots=True)
class Row:
    """A Link in the making."""

    target: Url  # as it was met first
    anchor: str
    count: int
    fragments: dict[str, None]  # as written


class Rows:
    """The rows of one page while they are gathered."""

    def __init__(self, base: Url, nofollow: bool, charset: str = "utf-8") -> None:
        """base: what relative links are resolved against. nofollow: of the whole page. charset: of the links' queries."""
        self.resolve_against(base)
        self._nofollow = nofollow
        self._charset = charset
        self._rows: dict[tuple[Url, Place], Row] = {}
        self._bad: dict[tuple[str, Place, str], str] = {}
        self._bounds: dict[str, None] = {}

    def first(self, found: Sequence[_Element]) -> Sequence[_Element]:
        """As many elements of one tag as are looked at."""
        if len(found) <= ELEMENTS_MOST:
            return found
        self._bounds[f"more than {ELEMENTS_MOST:,} elements of one kind with links"] = None
        return found[:ELEMENTS_MOST]

    def bounds(self) -> tuple[str, ...]:
        """Which bounds were met: what lies behind them is not among the rows."""
        fragments = f"more than {FRAGMENTS_MOST:,} places of one page linked to"
        return (*self._bounds, *([fragments] if any(len(row.fragments) > FRAGMENTS_MOST for row in self._rows.values()) else ()))

    def resolve_against(self, base: Url) -> None:
        """From now on."""
        self._base = base
        self._folder = Url(base[: base.partition("?")[0].rindex("/") + 1])

    def add(self, href: str, place: Place, anchor: str = "") -> Row | None:
        """Records one link that stood there as href. None when it is no link, or one too many."""
        href = href.strip(_C0_AND_SPACE)
        head, _, fragment = href.partition("#")
        if not head and place[0] not in _PAGES:
            return None
        if self._nofollow:
            place = (place[0], place[1], True)
        try:
            if len(href) > HREF_CHARS:
                raise InvalidUrl("longer than any server takes")
            target = self._target(head if head.isascii() and head.isprintable() else with_query_in(self._charset, head))
        except InvalidUrl:
            self._add_bad(href, place, anchor)
            return None
        key = identity(target), place
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= ROWS_MOST:
                self._bounds[f"more than {ROWS_MOST:,} distinct links"] = None
                return None
            row = self._rows[key] = Row(target, anchor, 1, {})
        else:
            row.count += 1
            row.anchor = row.anchor or anchor
        if fragment:
            row.fragments[fragment] = None
        return row

    def _target(self, head: str) -> Url:
        """What a href without its fragment leads to; most from the cache, since the menu of a site is on all its pages."""
        if not head:
            return self._base
        if len(head) <= _CACHED_CHARS and (target := _below(self._folder, head)):
            return target
        return resolve(head + "#", self._base)[0]  # the `#` guards a space at the end, which a fragment was cut from

    def _add_bad(self, href: str, place: Place, anchor: str) -> None:
        scheme = scheme_of_href(href)
        if scheme in _CONTENT_IN_PLACE and place[0] not in _NAMES:
            return
        why = "malformed" if scheme in ("", "http", "https") else scheme
        key = (href[:BAD_TEXT_CHARS], place, why)
        if key in self._bad or len(self._bad) < BAD_ROWS_MOST:
            self._bad[key] = self._bad.get(key) or anchor
        else:
            self._bounds[f"more than {BAD_ROWS_MOST:,} distinct links that are none"] = None

    def links(self) -> tuple[Link, ...]:
        """The rows, in the order in which their first links were added."""
        return tuple(
            [
                _new(Link, (row.target, kind, position, row.anchor[:ANCHOR_CHARS], nofollow, _encoded(row.fragments) if row.fragments else (), row.count))
                for (_, (kind, position, nofollow)), row in self._rows.items()
            ]
        )

    def bad_links(self) -> tuple[BadLink, ...]:
        """Distinct texts that are no links, in order."""
        return tuple(BadLink(text, kind, position, anchor[:ANCHOR_CHARS], why) for (text, (kind, position, _), why), anchor in self._bad.items())


def with_query_in(charset: str, href: str) -> str:
    """A href, its query as a browser sends it from a page in that charset: `?q=č` of windows-1250 is `?q=%E8`."""
    address, sharp, fragment = href.partition("#")
    head, mark, query = address.partition("?")
    encoding = encoding_of(charset) if query else None
    return head + mark + encoding.url_query(query) + sharp + fragment if encoding else href


def _encoded(fragments: Iterable[str]) -> tuple[str, ...]:
    """Fragments as they stand in a canonical URL, distinct."""
    first = tuple(islice(fragments, FRAGMENTS_MOST))
    if _PLAIN_FRAGMENTS.fullmatch("".join(first)):
        return first
    return tuple(dict.fromkeys(filter(None, (resolve("#" + fragment, _ANYWHERE)[1] for fragment in first))))


@lru_cache(maxsize=16_384)
def _below(folder: Url, head: str) -> Url | None:
    """resolve, for heads that take nothing from a base but its folder; None for others. Raises InvalidUrl."""
    if head[-1] <= " ":
        return None
    if _PLAIN_PATH.fullmatch(head):
        return resolve(head, folder)[0]
    if head.startswith("/") and head[1:2] not in ("/", "\\", "\t", "\n", "\r"):
        return _anywhere(head, Url(folder[: folder.index("/", 8) + 1]))
    return _anywhere(head, _ANYWHERE) if head.startswith(("http://", "https://")) else None


@lru_cache(maxsize=16_384)
def _anywhere(head: str, base: Url) -> Url:
    """resolve, for heads that mean the same in each folder of a host."""
    return resolve(head, base)[0]
