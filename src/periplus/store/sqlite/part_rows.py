"""What did checks learn of the sizes of what they asked for, and which parts do a site's pages pull in?

A part of a page (an image, a style) that the crawl left alone has no row in `page`: its size is what the header of a check's answer says.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

import numpy as np

from periplus.document.headers import media_type
from periplus.model.graph import LinkRows
from periplus.model.page import PULLED_KINDS
from periplus.model.web import SiteKey, Url
from periplus.store.heads import unpack_head
from periplus.store.sqlite.reading import SITE_OF_URL
from periplus.urls.canonical import url_id

_PULLED = ", ".join(f"'{kind.value}'" for kind in sorted(PULLED_KINDS))
_LENGTH_DIGITS = 18  # of a Content-Length that are believed: what SQLite and numpy hold
HOPS_MOST = 101  # as `api.judging` looks along redirects


@dataclass(frozen=True, slots=True)
class Told:
    """What a server said of a URL when a check asked for it."""

    media_type: str
    size_bytes: int  # as it travels (compressed, where the server compresses); 0: it told none


def are_wished(connection: sqlite3.Connection) -> bool:
    """Whether any check was to learn the sizes of parts."""
    found = connection.execute("SELECT DISTINCT settings FROM run WHERE kind = 'check'")
    return any(json.loads(settings).get("part_sizes") == "head" for (settings,) in found)


def told(connection: sqlite3.Connection) -> dict[int, Told]:
    """By id, what each URL that answered a check with success weighs; one that redirects weighs what its last URL does.

    Some 10 us a visit, measured over 100,000.
    """
    sizes: dict[int, Told] = {}
    moved: dict[int, int] = {}
    find = (
        "SELECT text, purpose, outcome, status, detail, wire_bytes, head FROM visit"
        " WHERE purpose IN ('head', 'check') AND text IS NOT NULL AND outcome IN ('fetched', 'redirected') ORDER BY id"
    )
    for text, purpose, outcome, status, detail, wire_bytes, head in connection.execute(find):
        url = url_id(Url(text))
        if outcome == "redirected":
            moved[url] = url_id(Url(detail))
            sizes.pop(url, None)
        elif 200 <= status < 300:
            moved.pop(url, None)
            sizes[url] = _told(head, wire_bytes if purpose == "check" and not detail else 0)
        elif purpose == "check":  # it is gone; a HEAD that fails says nothing
            moved.pop(url, None)
            sizes.pop(url, None)
    ends = {url: _end(url, moved) for url in moved}
    return sizes | {url: sizes[end] for url, end in ends.items() if end in sizes}


def _told(head: bytes | None, whole_bytes: int) -> Told:
    """whole_bytes: of the body, where all of it came; 0 where not. A HEAD may be answered with a length of 0 for what is not empty: not told."""
    headers = unpack_head(head)
    declared = headers.get("content-length")
    length = int(declared[:_LENGTH_DIGITS]) if declared.isascii() and declared.isdigit() else 0
    return Told(media_type(headers)[0], length or whole_bytes)


def _end(url: int, moved: dict[int, int]) -> int:
    for _ in range(HOPS_MOST):
        if url not in moved:
            break
        url = moved[url]
    return url


def parts(connection: sqlite3.Connection, site: SiteKey) -> LinkRows:
    """(page, part) of everything that the site's pages pull in, each pair once, ascending."""
    find = (
        f"SELECT DISTINCT l.source, l.target FROM url u CROSS JOIN link l ON l.source = u.id WHERE {SITE_OF_URL}"
        f" AND l.kind IN ({_PULLED}) AND u.reason NOT IN ('redirect', 'alias', 'rule') AND l.source <> l.target ORDER BY 1, 2"
    )
    found = np.array(connection.execute(find, (site,)).fetchall(), np.int64).reshape(-1, 2)
    return LinkRows(found[:, 0].copy(), found[:, 1].copy())
