"""Captures of a URL in a web archive: their sort key, and their order by distance to a time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from periplus.errors import InvalidUrl
from periplus.model.web import Url
from periplus.urls.canonical import canonical


class Capture(NamedTuple):
    """A line of an archive's index. taken: seconds since the epoch, UTC; status: 0 if unknown, as for revisits; place:
    the location of its bytes, in the format of the source.
    """

    url: str
    taken: float
    status: int
    place: str


def by_nearness(captures: Iterable[Capture], url: Url, at: float) -> list[Capture]:
    """The captures of a URL, nearest to a time first. at: seconds since the epoch; infinity: latest first.

    Captures of other URLs with the same key (http for https, with or without www.) come last. Within both groups
    refusals and server errors (429, 5xx) come last.
    """
    return sorted(
        captures,
        key=lambda capture: (
            not _is_of(capture, url),
            capture.status == 429 or capture.status >= 500,
            abs(capture.taken - at) if at < math.inf else -capture.taken,
        ),
    )


def _is_of(capture: Capture, url: Url) -> bool:
    try:
        return capture.url == url or canonical(capture.url) == url
    except InvalidUrl:
        return False


_UNESCAPED_CHARACTERS = (
    "".join(map(chr, range(0x21, 0x7F))).replace("#", "").replace("%", "")
)  # characters that are not escaped
# Session ids in ASP.NET paths and in queries, which the Wayback Machine removes from its keys.
_PATH_SESSION = re.compile(r"/\((?:[0-9a-z]{24}|(?:[a-z]\([0-9a-z]{24}\))+)\)(?=/[^?]+\.aspx)")
_QUERY_SESSION = re.compile(
    r"(?:^|(?<=&))(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)"
    r"(?:&|$)"
)


def capture_key(url: str) -> str:
    """The URL's sort key (SURT) in CDXJ: `org,example)/path?a=1&b=2`.

    In lower case and escaped again, without www., session ids, scheme and default port, with a sorted query: equal to
    the keys of the Wayback Machine, pywb and cdxj-indexer. Never raises for canonical http and https URLs.
    """
    parts = urlsplit(url)
    host = re.sub(r"^www\d*\.", "", (parts.hostname or "").rstrip("."))
    place = host if ":" in host else ",".join(reversed(host.split(".")))
    port = f":{parts.port}" if parts.port and parts.port != {"http": 80, "https": 443}.get(parts.scheme) else ""
    path = _PATH_SESSION.sub("", _resolve_dots(_escape(parts.path))).rstrip("/") or "/"
    query = _QUERY_SESSION.sub("", _escape(parts.query))
    return f"{place}{port}){path}{'?' + '&'.join(sorted(query.split('&'))) if query else ''}"


def _escape(text: str) -> str:
    """Unescapes until nothing changes, then escapes once, in lower case."""
    data = text.encode("utf-8", "replace")
    while (bare := unquote_to_bytes(data)) != data:
        data = bare
    return quote_from_bytes(data, _UNESCAPED_CHARACTERS).lower()


def _resolve_dots(path: str) -> str:
    """A path without dot segments and double slashes."""
    places: list[str] = []
    for place in path.split("/"):
        if place == ".." and places:
            places.pop()
        elif place not in ("", ".", ".."):
            places.append(place)
    return "/" + "/".join(places)
