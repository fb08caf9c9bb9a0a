"""Captures of a URL in a web archive: the key that they share, and which of them is nearest to a time."""

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
    """One line of an archive's index. taken: seconds since the epoch, UTC; status: 0 where it is not known, as of a
    revisit; place: where its bytes are, in the words of whoever made this.
    """

    url: str
    taken: float
    status: int
    place: str


def by_nearness(captures: Iterable[Capture], url: Url, at: float) -> list[Capture]:
    """The captures of a URL, those nearest to a time first; at: seconds since the epoch, infinite: the latest.

    Those of another spelling with the same key (http for https, with www. or without) come last, as do refusals and
    failures of the server (429, 5xx) among those of one spelling.
    """
    return sorted(
        captures,
        key=lambda one: (
            not _is_of(one, url),
            one.status == 429 or one.status >= 500,
            abs(one.taken - at) if at < math.inf else -one.taken,
        ),
    )


def _is_of(capture: Capture, url: Url) -> bool:
    try:
        return capture.url == url or canonical(capture.url) == url
    except InvalidUrl:
        return False


_KEPT = "".join(map(chr, range(0x21, 0x7F))).replace("#", "").replace("%", "")  # what stands in a key as it is
# Sessions in paths of ASP.NET and in queries, as the Wayback Machine's keys leave them out.
_PATH_SESSION = re.compile(r"/\((?:[0-9a-z]{24}|(?:[a-z]\([0-9a-z]{24}\))+)\)(?=/[^?]+\.aspx)")
_QUERY_SESSION = re.compile(
    r"(?:^|(?<=&))(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)"
    r"(?:&|$)"
)


def capture_key(url: str) -> str:
    """The URL as CDXJ sorts it: `org,example)/path?a=1&b=2`.

    Lower case, escaped anew, www., sessions, the scheme and its port dropped, the query sorted: equal to the keys of
    the Wayback Machine, pywb and cdxj-indexer. Total for http and https URLs in canonical form.
    """
    parts = urlsplit(url)
    host = re.sub(r"^www\d*\.", "", (parts.hostname or "").rstrip("."))
    place = host if ":" in host else ",".join(reversed(host.split(".")))
    port = f":{parts.port}" if parts.port and parts.port != {"http": 80, "https": 443}.get(parts.scheme) else ""
    path = _PATH_SESSION.sub("", _resolved(_escaped(parts.path))).rstrip("/") or "/"
    query = _QUERY_SESSION.sub("", _escaped(parts.query))
    return f"{place}{port}){path}{'?' + '&'.join(sorted(query.split('&'))) if query else ''}"


def _escaped(text: str) -> str:
    """Unescaped until nothing changes, then escaped once, in lower case."""
    data = text.encode("utf-8", "replace")
    while (bare := unquote_to_bytes(data)) != data:
        data = bare
    return quote_from_bytes(data, _KEPT).lower()


def _resolved(path: str) -> str:
    """A path without dots and doubled slashes."""
    places: list[str] = []
    for place in path.split("/"):
        if place == ".." and places:
            places.pop()
        elif place not in ("", ".", ".."):
            places.append(place)
    return "/" + "/".join(places)
