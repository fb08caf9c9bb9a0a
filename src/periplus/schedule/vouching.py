"""Which pages of a host do others link to under many addresses, and were not fetched under any?

A site that spells its links anew on each page (print versions, tracking, orders of parameters, slashes) shows every page many
times. Most of what it answers then is barren, its families are capped, and with them pages that nobody has seen yet. A trap's
pages are linked to by their own kind only. So a page is *due* when two pages link to it under two addresses, at least one of them
from *elsewhere*: neither from its own path, nor from one above it, nor from its siblings by number. On a host where many pages
became due so, one link from elsewhere is enough.

Bounded: each page is due once; and when BREEDERS of those fetched were barren and led to pages never met, and fresh pages do not
outnumber them, nothing is due any more. A site of many addresses soon leads to known pages only, and is fetched whole.
What it does not know as one page, as a print version, it fetches as two. After a resume it begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from periplus.model.web import Url
from periplus.urls.canonical import INDEX_FILE, TRACKING
from periplus.urls.families import families, plain

REMEMBERED = 1 << 14  # pages of one host, the latest met: about 2 MB
BREEDERS = 120  # on the doubled sites of our tests, 311 pages each, there are 60 to 95
DOUBLED = 0.25  # of the pages met became due: the host spells all its pages in many ways. Those of our tests reach it within 100 pages
DOUBLED_PAGES = 12  # at least: on a small site a few pages have two addresses by chance

_DUE, _FETCHED = "due", "fetched"


class Vouching:
    """What pages of a host were linked to from elsewhere. Kept by one TrapWatch; nothing of it is stored.

    States of a page:  unknown -> met -> linked (by one page) -> due (by two) -> fetched. From each state it may be fetched.
    """

    def __init__(self) -> None:
        self._pages: dict[int, tuple[int, bool] | str] = {}  # key -> the page that linked to it first, whether one did from elsewhere
        self._bred = 0
        self._met = 0
        self._vouched = 0  # of the pages met, those that became due

    def is_due(self, url: Url, fresh: int) -> bool:
        """Whether the page is to be fetched though its families say otherwise. fresh: pages of the host that brought something new."""
        return self._bred < BREEDERS + fresh and self._has_word(self._pages.get(_key(url)))

    def _has_word(self, state: tuple[int, bool] | str | None) -> bool:
        """On a doubled host one page's word is enough; what no page of the host showed comes from another host or a sitemap."""
        if isinstance(state, str):
            return state is _DUE
        is_doubled = self._vouched >= max(DOUBLED_PAGES, DOUBLED * self._met)
        return is_doubled and (state is None or state[1])

    def fetched(self, url: Url) -> bool:
        """Note that it was; True when it was due."""
        key = _key(url)
        before = self._pages.pop(key, None)
        self._put(key, _FETCHED)
        return self._has_word(before)

    def linked(self, source: Url, links: Mapping[Url, tuple[str, ...]]) -> bool:
        """Note addresses that a page was the first to show, with their families; True when one leads to a page never met."""
        by, unknown = _key(source), False
        path, own = _path(source), families(source)[0].partition("?")[0]
        is_home = path.count("/") == 2
        for link, (leaf, *_) in links.items():
            key = _key(link)
            before = self._pages.get(key)
            if before is None:
                unknown = True
                self._met += 1
            elif isinstance(before, str):
                continue
            below = _path(link).startswith(path) and not is_home
            elsewhere = not below and (own.endswith("/**") or not leaf.startswith(own))
            if before is None:
                self._put(key, (by, elsewhere))
            else:
                elsewhere = elsewhere or before[1]
                is_due = elsewhere and before[0] != by
                self._vouched += is_due
                self._put(key, _DUE if is_due else (before[0], elsewhere))
        return unknown

    def bred(self) -> None:
        """A page that was due was barren and led to one never met."""
        self._bred += 1

    def _put(self, key: int, state: tuple[int, bool] | str) -> None:
        self._pages[key] = state
        if len(self._pages) > REMEMBERED:
            del self._pages[next(iter(self._pages))]


def _key(url: Url) -> int:
    """The page in 64 bits: without session tokens, tracking parameters, their order, index file, last slash. Never stored."""
    if "?" not in url and ";" not in url and "/(" not in url:  # most links; a third of the time
        return hash(INDEX_FILE.sub("/", url).rstrip("/"))
    path, _, query = plain(url).url.partition("?")
    kept = sorted(part for part in query.split("&") if part and not TRACKING.match(part))
    path = INDEX_FILE.sub("/", path).rstrip("/")
    return hash(path + "?" + "&".join(kept) if kept else path)


def _path(url: Url) -> str:
    return url.partition("?")[0].rstrip("/")
