"""CDXJ indexes of web archives: for each capture its key, its time and where it stands."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

_KEPT = "".join(map(chr, range(0x21, 0x7F))).replace("#", "").replace("%", "")  # what stands in a key as it is
# Sessions in paths of ASP.NET and in queries, as the Wayback Machine's keys leave them out.
_PATH_SESSION = re.compile(r"/\((?:[0-9a-z]{24}|(?:[a-z]\([0-9a-z]{24}\))+)\)(?=/[^?]+\.aspx)")
_QUERY_SESSION = re.compile(
    r"(?:^|(?<=&))(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)"
    r"(?:&|$)"
)


def url_key(url: str) -> str:
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


def cdxj_line(url: str, stamp: str, values: dict[str, str]) -> str:
    """One line of an index. stamp: 14 digits, UTC; values: field names as pywb's."""
    return f"{url_key(url)} {stamp} {json.dumps({'url': url} | values)}\n"


class IndexLines:
    """Lines of an index, sorted on disk: there may be millions."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")
        self._connection.execute("CREATE TABLE line (text TEXT NOT NULL)")

    def add(self, line: str) -> None:
        self._connection.execute("INSERT INTO line VALUES (?)", (line,))

    def sorted(self) -> Iterator[str]:
        return (line for (line,) in self._connection.execute("SELECT text FROM line ORDER BY text"))

    def close(self) -> None:
        self._connection.close()
