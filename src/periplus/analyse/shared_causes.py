"""Words for the cause that issues of several pages share: one template, one session parameter."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from periplus.model.arrays import Ints
from periplus.model.web import Url
from periplus.urls.url_patterns import SESSION_NAMES

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
            first, last = np.searchsorted(affected, span).tolist()
            of_all = int(np.diff(np.searchsorted(pages, span))[0])
            if first <= row and last - row >= LEAST and 2 * (last - first) >= of_all:
                end = last
                causes |= dict.fromkeys(affected[row:last].tolist(), f"pages below {folder}")
                break
        row = end
    return [causes.get(page, "") for page in subjects.tolist()]


def session_causes(subjects: Ints, url: Sequence[Url]) -> list[str]:
    """k texts: the session parameter in each URL; empty: there is none."""
    return [_session(url[page]) for page in subjects.tolist()]


def _session(url: Url) -> str:
    names = (name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True))
    found = next((name for name in names if name.lower() in SESSION_NAMES), "")
    return f"URLs with the session parameter {found}" if found else ""


def _folders(url: Url) -> list[str]:
    """The folders of a URL's path, the root first, each with a slash at its end."""
    steps = url.partition("?")[0].split("/")[:-1]
    return list(accumulate(f"{step}/" for step in steps))[2:]
