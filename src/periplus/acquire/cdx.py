"""Asks a CDX server which copies of a URL a web archive has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from periplus.model.ports import Clock, Transport
from periplus.model.visit import Request
from periplus.model.web import Url

# What servers answer with differs: lines of JSON (pywb), an array of arrays under a row of names (Wayback Machine),
# lines of CDXJ, or lines of CDX with eleven fields, of which the first seven are the same everywhere.
# Sources: the CDX Server API of the Wayback Machine and of pywb.

ASKED_COPIES = 10  # the nearest in time: some of them are redirects or errors
ANSWER_S = 60.0  # of a large archive's index
_SHOWN = frozenset({"200", "-", ""})  # a page; of a revisit some servers do not know the status
_NAMES = {"timestamp": "timestamp", "url": "url", "original": "url", "status": "status", "statuscode": "status"}
_CDX = ("urlkey", "timestamp", "url", "mime", "status")


class ArchivedCopy(NamedTuple):
    """One copy of a URL. taken: seconds since the epoch, UTC; address: where it is shown, empty where not known."""

    url: str
    taken: float
    address: str


class CdxServer:
    """One archive's index, asked one question at a time, each delay_s after the one before."""

    def __init__(self, address: Url, transport: Transport, clock: Clock, delay_s: float) -> None:
        self._address, self._transport, self._clock, self._delay_s = address, transport, clock, delay_s
        self._next = clock.monotonic()

    def nearest(self, url: Url, at: float) -> ArchivedCopy | str | None:
        """The copy nearest to a time in seconds since the epoch; None: there is none; a text: why that is unknown."""
        while (rest_s := self._next - self._clock.monotonic()) > 0:
            self._transport.wait(rest_s)
        self._next = self._clock.monotonic() + self._delay_s
        self._transport.start(Request(Url(question(self._address, url, at))))
        until = self._clock.monotonic() + ANSWER_S
        while not (answers := self._transport.wait(max(0.0, until - self._clock.monotonic()))):
            if self._clock.monotonic() >= until:
                return "no answer in time"
        answer = answers[0]
        if answer.cause is not None:
            return f"{answer.cause.value}: {answer.detail}" if answer.detail else answer.cause.value
        if answer.status == 404:  # so some servers say that there is none
            return None
        if answer.status != 200:
            return f"status {answer.status}"
        copies = [(stamp, text) for stamp, text, status in copies_of(answer.body) if status in _SHOWN]
        dated = [
            (abs(taken - at), taken, stamp, text) for stamp, text in copies if (taken := time_of(stamp)) is not None
        ]
        if not dated:
            return None
        _, taken, stamp, text = min(dated)
        return ArchivedCopy(text, taken, shown_at(self._address, stamp, text))


def question(server: Url, url: Url, at: float) -> str:
    stamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%d%H%M%S")
    sign = "&" if "?" in server else "?"
    limits = f"closest={stamp}&sort=closest&limit={ASKED_COPIES}&output=json"
    return f"{server}{sign}url={quote(url, safe='')}&{limits}"


def copies_of(body: bytes) -> Iterator[tuple[str, str, str]]:
    """(time of 14 digits, URL, status) of each copy that an answer names. Total."""
    text = body.decode("utf-8", "replace").strip()
    try:
        table = json.loads(text) if text.startswith("[") else None
    except ValueError:
        table = None
    if isinstance(table, list):
        rows = [row for row in table if isinstance(row, list)]
        for row in rows[1:]:
            yield from _copy(dict(zip(map(str, rows[0]), row, strict=False)))
        return
    for line in text.splitlines():
        before, brace, _ = line.partition("{")
        words = before.split()
        values: object = None
        if brace:
            try:
                values = json.loads(line[len(before) :])
            except ValueError:
                continue
            if isinstance(values, dict) and len(words) >= 2:
                values = {"timestamp": words[1]} | values
        elif len(words) >= len(_CDX):
            values = dict(zip(_CDX, words, strict=False))
        if isinstance(values, dict):
            yield from _copy(values)


def _copy(values: dict[str, object]) -> Iterator[tuple[str, str, str]]:
    named = {_NAMES[name]: str(value) for name, value in values.items() if name in _NAMES}
    if named.get("timestamp") and named.get("url"):
        yield named["timestamp"], named["url"], named.get("status", "")


def time_of(stamp: str) -> float | None:
    """Seconds since the epoch of a time of 14 digits; None: it is none."""
    try:
        return datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def shown_at(server: Url, stamp: str, url: str) -> str:
    """Where the archive of a CDX server shows a copy, as the Wayback Machine and pywb have it; empty: not known."""
    parts = urlsplit(server)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    if path.endswith("/cdx/search/cdx"):
        return f"{origin}{path.removesuffix('/cdx/search/cdx')}/web/{stamp}/{url}"
    if path.endswith(("/cdx", "-cdx")):
        return f"{origin}{path[:-4]}/{stamp}/{url}"
    return ""
