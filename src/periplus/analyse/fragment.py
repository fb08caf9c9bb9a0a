"""Which documents and links does a fragment of the web consist of? Stored rows in, `WebFragment` out; duplicates merged first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from periplus.analyse.linkgraph import distinct_sorted, places_in_sorted, resolved
from periplus.analyse.units import UnitsOfUrls
from periplus.model.fragment import Ints, Mask, Numbers, WebFragment
from periplus.model.graph import REASONS, LinkRows, UrlRows
from periplus.model.visit import FETCHED, Reason
from periplus.model.web import Url

_WAITING = frozenset({Reason.WAITING, Reason.DEPTH, Reason.HOST_DOWN, Reason.NOFOLLOW, Reason.TRAP, Reason.ALIVE})
_IS_FETCHED = np.array([reason in FETCHED for reason in REASONS])
_IS_WAITING = np.array([reason in _WAITING for reason in REASONS])


def web_fragment(urls: UrlRows, links: LinkRows, redirects: LinkRows, contents: tuple[Ints, Ints], assigned: UnitsOfUrls, chosen: int) -> WebFragment:
    """The documents of all units and the distinct links between them.

    urls: ascending by id. links: hyperlinks; redirects: one for each URL that redirects, or that is an alias. contents: (ids, digests) of
    fetched pages. assigned: of urls, chosen targets first. Links of what was not fetched, to unknown URLs, in circles of redirects and
    from a document to itself fall away. O(urls log urls + links log links).
    """
    fetched = _IS_FETCHED[urls.reasons] if len(urls.reasons) else np.zeros(0, np.bool_)
    names = list(map(_bare, urls.texts))
    place = _places_of_pages(urls, names, redirects, fetched)
    twin = _twins(urls, assigned.numbers, contents, fetched)
    place = np.where(place >= 0, twin[place], -1) if len(place) else place
    sources, ends = _placed(urls.ids, links, place, fetched)
    kept = fetched | (_IS_WAITING[urls.reasons] if len(urls.reasons) else fetched)
    kept &= place == np.arange(len(place))
    kept[ends] = True
    number = np.cumsum(kept) - 1
    rows = np.flatnonzero(kept)
    count = max(len(rows), 1)
    pairs = distinct_sorted(number[sources] * count + number[ends])
    directory, host = _folders(map(names.__getitem__, rows.tolist()), assigned.numbers[rows])
    return WebFragment(
        units=assigned.units,
        chosen=chosen,
        ids=urls.ids[rows],
        unit=assigned.numbers[rows],
        directory=directory,
        host=host,
        fetched=fetched[rows],
        waiting=_IS_WAITING[urls.reasons[rows]],
        sources=pairs // count,
        ends=pairs % count,
        merged=int((fetched & (twin != np.arange(len(twin)))).sum()),
    )


def _bare(url: Url) -> str:
    """The URL without what http and https, `www.` and its lack differ in."""
    return (url[8:] if url[4] == "s" else url[7:]).removeprefix("www.")


def _places_of_pages(urls: UrlRows, names: Sequence[str], redirects: LinkRows, fetched: Mask) -> Ints:
    """For each URL, the place of the URL that stands for its page: where redirects end, and of URLs of one name (`_bare`) the one
    that was fetched, else the first. -1: nowhere."""
    ids, known = resolved(urls.ids, redirects)
    place = places_in_sorted(urls.ids, ids)
    place[~known] = -1
    read = np.flatnonzero(fetched)[::-1].tolist()
    standing = dict(zip(map(names.__getitem__, read), read, strict=True))  # of several the first, which is written last
    first = np.fromiter(map(standing.setdefault, names, range(len(names))), np.int64, len(names))
    return np.where(place >= 0, _kept_if_fetched(first, place, fetched), -1) if len(place) else place


def _kept_if_fetched(first: Ints, place: Ints, fetched: Mask) -> Ints:
    """A page that was fetched stands for itself: http and https may have answered differently, and equal contents are merged later."""
    return np.where(fetched[place], place, first[place])


def _twins(urls: UrlRows, units: Numbers, contents: tuple[Ints, Ints], fetched: Mask) -> Ints:
    """For each URL, the place of the first by text among the fetched pages of its unit with its content; its own where there is none."""
    twin = np.arange(len(urls.ids))
    place = places_in_sorted(urls.ids, contents[0])
    known = place >= 0
    place, digest = place[known], contents[1][known]
    read = fetched[place]
    place, digest = place[read], digest[read]
    order = np.lexsort((digest, units[place]))
    place, digest = place[order], digest[order]
    same = np.zeros(len(place) + 1, np.bool_)  # as the one before it
    same[1:-1] = (digest[1:] == digest[:-1]) & (units[place[1:]] == units[place[:-1]])
    begins = np.flatnonzero(~same[:-1] & same[1:])
    ends = np.flatnonzero(same[:-1] & ~same[1:])
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        group = place[begin : end + 1]
        twin[group] = min(group.tolist(), key=lambda row: urls.texts[row])
    return twin


def _placed(ids: Ints, links: LinkRows, place: Ints, fetched: Mask) -> tuple[Ints, Ints]:
    """The links that count, by places."""
    none = np.zeros(0, np.int64)
    if not len(ids):
        return none, none
    source, end = places_in_sorted(ids, links.sources), places_in_sorted(ids, links.targets)
    known = (source >= 0) & (end >= 0)
    source, end = source[known], end[known]
    read = fetched[source]
    source, end = place[source[read]], place[end[read]]
    counts = (source >= 0) & (end >= 0) & (source != end)
    return source[counts], end[counts]


def _folders(names: Iterable[str], units: Numbers) -> tuple[Numbers, Numbers]:
    """(a number for each URL's directory, one for its host), each of one unit. names: of the URLs, by `_bare`."""
    numbers: dict[str, int] = {}
    folders = ((name.partition("?")[0] if "?" in name else name).rpartition("/")[0] for name in names)
    folder = np.array([numbers.setdefault(name, len(numbers)) for name in folders], np.int64)
    hosts: dict[str, int] = {}
    host = np.array([hosts.setdefault(name.partition("/")[0], len(hosts)) for name in numbers], np.int64)
    return _numbered(folder, units), _numbered(host[folder], units)


def _numbered(values: Ints, units: Numbers) -> Numbers:
    """A number for each distinct pair of a value and a unit, from 0."""
    span = int(values.max()) + 1 if len(values) else 1
    keys = units.astype(np.int64) * span + values
    return np.searchsorted(distinct_sorted(keys), keys).astype(np.int32)
