"""Suggests archived copies for broken links: those closest to the time when the link was first seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from periplus.acquire.cdx import ArchivedCopy, CdxServer
from periplus.acquire.clock import SystemClock
from periplus.acquire.politeness import delay_for
from periplus.acquire.transport import CurlTransport, Wire
from periplus.analyse.issues import IssueTable, KindIssues
from periplus.analyse.linkgraph import sort_distinct
from periplus.api.homes import open_reader
from periplus.api.logins import resolve_secrets
from periplus.model.web import Url
from periplus.present.wording import utc
from periplus.settings import FetchLimits, Settings
from periplus.urls.canonical import start_urls, url_id
from periplus.urls.hosts import host_key
from periplus.values import frozen

DEAD = frozenset({"broken-link", "broken-resource", "soft-404"})
MOST_URLS = 1_000  # URLs per check: about eight minutes at half a second each
MOST_FAILURES = 3  # consecutive failures after which the archive is no longer asked
LIMITS = FetchLimits(body_bytes=1 << 20, inflated_bytes=1 << 22, total_timeout_s=60.0, first_byte_timeout_s=60.0)


@frozen
class Suggestions:
    """The issues, with copies added to the details of broken links. asked: number of broken URLs."""

    issues: IssueTable
    asked: int
    copies: int
    left: int  # broken URLs that were not looked up
    fault: str = ""  # latest error of the archive


def with_copies(
    folder: Path,
    issues: IssueTable,
    server: str,
    settings: Settings,
    watch: Callable[[int, int], None] = lambda done, count: None,
) -> Suggestions:
    """Looks up a copy of each broken URL on a CDX server. Raises UsageError for an invalid server address.

    watch: called with (URLs looked up, total).
    """
    (address,) = start_urls([server])
    links = [kind for kind in issues.kinds if kind.kind.code in DEAD]
    targets = {issues.url[place] for kind in links for place in sort_distinct(kind.related).tolist()}
    dead = sorted(url for url in targets if url.startswith("http"))
    clock = SystemClock()
    host = host_key(address)
    delay_s = delay_for(settings.politeness, host in settings.politeness.mine, None)
    transport = CurlTransport(Wire(LIMITS, resolve_secrets(settings.identity, folder), 1), clock)
    copies: dict[str, ArchivedCopy] = {}
    failures, fault, asked = 0, "", 0
    try:
        index = CdxServer(address, transport, clock, delay_s)
        for text, first_seen in _first_seen_times(folder, dead[:MOST_URLS]):
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
    named = issues.of(_with_copies(kind, issues, copies) if kind.kind.code in DEAD else kind for kind in issues.kinds)
    return Suggestions(named, asked, len(copies), len(dead) - asked, fault)


def _with_copies(kind: KindIssues, issues: IssueTable, copies: dict[str, ArchivedCopy]) -> KindIssues:
    """Adds copies to the details of the issues of broken links."""
    words = kind.words.copy()
    for row, place in enumerate(kind.related.tolist()):
        if (copy := copies.get(issues.url[place])) is not None:
            where = f"archived {utc(copy.taken)}{': ' if copy.address else ''}{copy.address}"
            words[row] = "; ".join(filter(None, (words[row], where)))
    return replace(kind, words=words)


def _first_seen_times(folder: Path, urls: Sequence[str]) -> list[tuple[str, float]]:
    """(URL, time when it was first seen)."""
    with open_reader(folder) as reader:
        times = [(url, reader.first_seen_s(url_id(Url(url)))) for url in urls]
    return [(url, moment) for url, moment in times if moment is not None]
