"""Which pages that answered 200 are error pages all the same? Loads only those texts that can decide it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from periplus.analyse.duplicates import shingles
from periplus.analyse.verdicts import (
    PROBE_WORDS,
    TEXT_CHARS,
    HostHabits,
    PageProbe,
    looks_missing,
    says_missing,
    sent_home,
    without_address,
)
from periplus.api.audit import UrlEvidence
from periplus.model.frontier import Look
from periplus.model.web import HostKey, Url, UrlId
from periplus.store.sqlite import checks, reading
from periplus.store.sqlite.page_rows import Contents
from periplus.store.sqlite.site_rows import PageTexts
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_key

ALIKE_CHARS = (0.7, 1.4)  # of a probe's length without its address: beyond, texts do not share nine shingles in ten


def missing_pages(connection: reading.Connection, seen: UrlEvidence, pages: Sequence[PageTexts]) -> dict[int, str]:
    """Why each seems to be one, by id: of the site's pages, of what leads to its home page,
    and of others that checks looked at.
    """
    looks = checks.looks(connection)
    habits = _habits(connection, seen, looks, pages)
    own, contents = {page.url_id for page in pages}, Contents(connection)
    found = {}
    for page in pages:
        look = _own_look(contents, seen, page, habits)
        if look is not None and (why := looks_missing(look, habits.get(host_key(Url(look.url)), HostHabits()))):
            found[page.url_id] = why
    for url, seen_there in looks.items():
        number = url_id(url)
        if (
            number not in own
            and PROBE_WORDS not in url
            and (why := looks_missing(_look(url, url, seen_there), HostHabits()))
        ):
            found[number] = why
    return found | _sent_home(seen, habits)


def _habits(
    connection: reading.Connection, seen: UrlEvidence, looks: Mapping[Url, Look], pages: Sequence[PageTexts]
) -> dict[HostKey, HostHabits]:
    """What each host sends for URLs that cannot exist, and its home page beside it."""
    probes: dict[HostKey, list[PageProbe]] = {}
    for number, url in seen.met().items():
        if PROBE_WORDS not in url:
            continue
        end = seen.text(seen.way(number).end)
        if end in looks:
            probes.setdefault(host_key(url), []).append(_look(url, end, looks[end]))
    homes = {
        host_key(seen.text(page.url_id)): page
        for page in pages
        if host_key(seen.text(page.url_id)) in probes and _is_home(seen.text(page.url_id))
    }
    contents = Contents(connection)
    return {
        host: HostHabits(found, _page_look(seen, homes[host], contents) if host in homes else None)
        for host, found in probes.items()
    }


def _is_home(url: Url) -> bool:
    return url.count("/") == 3 and url.endswith("/")


def _own_look(
    contents: Contents, seen: UrlEvidence, page: PageTexts, habits: Mapping[HostKey, HostHabits]
) -> PageProbe | None:
    """The page as `looks_missing` takes it; None where title and length alone say that it is none."""
    short = page.text_chars <= TEXT_CHARS and (says_missing(page.title) or says_missing(page.h1))
    if not short and not habits:
        return None
    host = habits.get(host_key(seen.text(page.url_id)))
    if short or (
        host is not None and any(_may_be_alike(page.text_chars, seen.text(page.url_id), probe) for probe in host.probes)
    ):
        return _page_look(seen, page, contents)
    return None


def _may_be_alike(text_chars: int, url: Url, probe: PageProbe) -> bool:
    """By length alone. Either may repeat its address, as often as the probe does: short texts differ by little else."""
    low, high = ALIKE_CHARS
    chars = len(without_address(probe.text, probe.url))
    times = (len(probe.text) - chars) / len(probe.url.rpartition("/")[2])  # that it is repeated, at most
    return low * chars <= text_chars <= high * chars + times * len(url)


def _page_look(seen: UrlEvidence, page: PageTexts, contents: Contents) -> PageProbe:
    text, url = contents.text(UrlId(page.url_id)) or "", seen.text(page.url_id)
    return PageProbe(url, url, page.title, page.h1, text, shingles(without_address(text, url)))


def _look(url: Url, final: Url, look: Look) -> PageProbe:
    return PageProbe(url, final, look.title, look.h1, look.text, shingles(without_address(look.text, url)))


def _sent_home(seen: UrlEvidence, habits: Mapping[HostKey, HostHabits]) -> dict[int, str]:
    """Deep URLs that redirect to a home page, where those do as well that cannot exist."""
    if not any(probe.url != probe.final_url for host in habits.values() for probe in host.probes):
        return {}
    return {
        number: "it leads to the home page, as URLs do that cannot exist"
        for number, look in _redirected(seen)
        if _is_sent_home(look, habits)
    }


def _is_sent_home(look: PageProbe, habits: Mapping[HostKey, HostHabits]) -> bool:
    host = habits.get(host_key(Url(look.url)))
    return host is not None and PROBE_WORDS not in look.url and sent_home(look, host)


def _redirected(seen: UrlEvidence) -> Iterator[tuple[int, PageProbe]]:
    """Every URL that redirects, with where to; nothing else of the look is known."""
    none = shingles("")
    for number in seen.redirecting():
        yield number, PageProbe(seen.text(number), seen.text(seen.way(number).end), "", "", "", none)
