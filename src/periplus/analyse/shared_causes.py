"""Words for the cause that issues of several pages share: one template, one session parameter."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from periplus.model.arrays import Ints
from periplus.model.web import Url
from periplus.urls.url_patterns import SESSION_NAMES

_SESSION = re.compile(rf"[?&;]({'|'.join(map(re.escape, SESSION_NAMES))})=", re.IGNORECASE)
LEAST = 3  # pages with an issue: fewer may be mistakes in single pages


def folder_causes(subjects: Ints, pages: Ints, url: Sequence[Url]) -> list[str]:
    """k texts: the highest folder of which at least half of the pages have the issue; empty: there is none.

    subjects: k places of pages with the issue; pages: places of all pages, ascending. Pages of a folder are most often
    made by one template, so that one repair mends them all. O(k log k).
    """
    affected = np.unique(subjects)
    causes: dict[int, str] = {}
    row = 0
    while row < len(affected):
        end = row + 1
        for folder in _folders(url[affected[row]]):
            # URLs are sorted: those below a folder stand together, and "0" is the next character after "/"
            span = (bisect_left(url, folder), bisect_left(url, folder[:-1] + "0"))
            (first, last), (begin, of_all) = (np.searchsorted(places, span) for places in (affected, pages))
            if last - row >= LEAST and 2 * (last - first) >= of_all - begin:
                end = last
                causes |= dict.fromkeys(affected[row:end].tolist(), f"pages below {folder}")
                break
        row = end
    return [causes.get(page, "") for page in subjects.tolist()]


def session_causes(subjects: Ints, url: Sequence[Url]) -> list[str]:
    """k texts: the session parameter in each URL; empty: there is none."""
    found = (_SESSION.search(url[page]) for page in subjects.tolist())
    return [f"URLs with the session parameter {match[1]}" if match else "" for match in found]


def _folders(url: Url) -> list[str]:
    """The folders of a URL's path, the root first, each with a slash at its end."""
    steps = url.partition("?")[0].split("/")[:-1]
    return list(accumulate(f"{step}/" for step in steps))[2:]
