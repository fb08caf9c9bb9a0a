"""Archived copies beside dead links: those nearest to when the link was first seen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from periplus.acquire.cdx import ArchivedCopy, CdxServer
from periplus.acquire.clock import SystemClock
from periplus.acquire.politeness import delay_for
from periplus.acquire.transport import CurlTransport, Wire
from periplus.model.audit import Issue
from periplus.model.web import Url
from periplus.present.wording import utc
from periplus.settings import FetchLimits, Settings
from periplus.store.sqlite import page_rows, reading
from periplus.urls.canonical import start_urls, url_id
from periplus.urls.hosts import host_key

DEAD = frozenset({"broken-link", "broken-resource", "soft-404"})
MOST_ASKED = 1_000  # links of one check: at half a second each, some eight minutes
MOST_FAILURES = 3  # answers in a row that say nothing: then the archive is left alone
LIMITS = FetchLimits(body_bytes=1 << 20, inflated_bytes=1 << 22, total_timeout_s=60.0, first_byte_timeout_s=60.0)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The issues, with copies in the details of dead links. asked: dead addresses."""

    issues: list[Issue]
    asked: int
    copies: int
    left: int  # dead addresses that were not asked for
    fault: str = ""  # why the archive could not tell, the last time that it could not


def with_copies(
    folder: Path,
    issues: Sequence[Issue],
    server: str,
    settings: Settings,
    watch: Callable[[int, int], None] = lambda done, count: None,
) -> Suggestions:
    """Asks a CDX server for a copy of each dead address. Raises UsageError for an address that is none.

    watch: called with how many were asked for, and how many there are.
    """
    (address,) = start_urls([server])
    dead = sorted({issue.related for issue in issues if issue.code in DEAD and issue.related.startswith("http")})
    clock = SystemClock()
    host = host_key(address)
    delay_s = delay_for(settings.politeness, host in settings.politeness.mine, None)
    transport = CurlTransport(Wire(LIMITS, settings.identity, 1), clock)
    copies: dict[str, ArchivedCopy] = {}
    failures, fault, asked = 0, "", 0
    try:
        index = CdxServer(address, transport, clock, delay_s)
        for text, first_seen in _first_seen(folder, dead[:MOST_ASKED]):
            watch(asked, len(dead))
            answer = index.nearest(Url(text), first_seen)
            asked += 1
            if isinstance(answer, str):
                failures, fault = failures + 1, answer
                if failures == MOST_FAILURES:
                    break
                continue
            failures = 0
            if answer is not None:
                copies[text] = answer
    finally:
        transport.close()
    named = [_with_copy(issue, copies) for issue in issues]
    return Suggestions(named, asked, len(copies), len(dead) - asked, fault)


def _with_copy(issue: Issue, copies: dict[str, ArchivedCopy]) -> Issue:
    copy = copies.get(issue.related) if issue.code in DEAD else None
    if copy is None:
        return issue
    where = f"archived {utc(copy.taken)}{': ' if copy.address else ''}{copy.address}"
    return replace(issue, detail="; ".join(filter(None, (issue.detail, where))))


def _first_seen(folder: Path, urls: Sequence[str]) -> list[tuple[str, float]]:
    """(URL, when it was first seen)."""
    with contextlib.closing(reading.connect(folder)) as connection:
        times = [(url, page_rows.first_seen(connection, url_id(Url(url)))) for url in urls]
    return [(url, moment) for url, moment in times if moment is not None]
