"""Past states of a collection in a folder, for comparisons: its URLs, links and pages at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from periplus.model.arrays import Ints, Ints16
from periplus.model.graph import REASON_CODES, LinkRows, UrlRows
from periplus.model.page import CLICK_KINDS, LinkKind
from periplus.model.tables import any_of
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.reader import CollectionReader
from periplus.store.site_rows import SITE_OF_URL, joined_links, link_blocks
from periplus.urls.canonical import url_id
from periplus.values import Row, frozen

FOREVER = 1e99
PAST_FIELDS = (
    "title",
    "media_type",
    "size",
    "text_chars",
    "text_digest",
    "canonical",
    "description",
    "h1",
    "language",
    "robots",
)
_CLICKS = any_of(CLICK_KINDS)
_PAIR = np.dtype([("first", np.int64), ("second", np.int64)])


@frozen
class RunEnd:
    """The end of a run. until: URLs first seen from then on were not known."""

    run_id: int
    until: float  # the next run's start, seconds since the epoch

    @classmethod
    def after(cls, reader: CollectionReader, run_id: int) -> RunEnd:
        started = reader.statements.rows("SELECT min(started) FROM run WHERE id > ?", (run_id,))[0][0]
        return cls(run_id, FOREVER if started is None else started)


@frozen
class PastUrls:
    """The URLs of one site at a point in time. statuses: 0: no response."""

    rows: UrlRows
    statuses: Ints16


def answers_by_run(reader: CollectionReader) -> dict[int, tuple[int | None, float]]:
    """(greatest depth of a fetched page, mean response time in seconds) of each run that fetched pages."""
    find = (
        "SELECT v.run_id, max(u.depth), avg(v.took_s) FROM visit v JOIN url u ON u.id = v.url_id"
        " WHERE v.purpose = 'page' AND v.outcome = 'fetched' AND v.url_id <> 0 GROUP BY v.run_id"
    )
    return {run: (depth, took_s) for run, depth, took_s in reader.stream(find)}


def reasons_at_ends(reader: CollectionReader) -> dict[int, Counter[str]]:
    """Number of URLs by reason at the end of each run."""
    runs_begun = reader.statements.rows("SELECT id, started FROM run ORDER BY id")
    greatest = reader.statements.dialect.greatest
    first_run = "(SELECT count(*) FROM run r WHERE r.started <= u.first_seen)"
    came = f"SELECT {greatest}({first_run}, 1), u.reason, count(*) FROM url u GROUP BY 1, 2"
    counts: list[Counter[str]] = [Counter() for _ in runs_begun]
    for place, reason, urls in reader.stream(came):  # first assume that the current reason never changed
        counts[place - 1][reason] += urls
    for earlier, later in pairwise(counts):
        later.update(earlier)
    past = (
        f"SELECT h.url_id, h.run_id, h.reason, u.reason, {greatest}({first_run}, 1) FROM url_history h"
        " JOIN url u ON u.id = h.url_id ORDER BY h.url_id, h.run_id"
    )
    places = {run_id: place for place, (run_id, _) in enumerate(runs_begun)}
    last = (-1, 0)  # URL, index of the first run not covered by its previous history rows
    for identity, run_id, reason, now, first in reader.stream(past):
        begin = last[1] if last[0] == identity else first - 1
        end = places.get(run_id, begin)
        for place in range(begin, end):
            counts[place][reason] += 1
            counts[place][now] -= 1
        last = (identity, max(begin, end))
    return {run_id: counts[place] for run_id, place in places.items()}


UrlPast = dict[int, tuple[str, str, int]]  # id: reason, rule, status


def url_past(reader: CollectionReader, moment: RunEnd) -> UrlPast:
    """URLs with another state at that time: the earliest later history row applies."""
    find = (
        "SELECT url_id, reason, rule, coalesce(status, 0) FROM url_history WHERE run_id > ?"
        " ORDER BY url_id DESC, run_id DESC"
    )
    # of several rows of a URL, a dictionary keeps the last: that of the earliest run
    return {row[0]: row[1:4] for row in reader.stream(find, (moment.run_id,))}


def site_urls(reader: CollectionReader, site: SiteKey, moment: RunEnd, past: UrlPast) -> PastUrls:
    find = (
        "SELECT u.id, u.text, u.reason, coalesce(u.depth, -1), coalesce(u.status, 0) FROM url u"
        f" WHERE {SITE_OF_URL} AND u.first_seen < ?"
    )
    ids: list[int] = []
    texts: list[Url] = []
    codes, depths, statuses = bytearray(), list[int](), list[int]()
    for identity, text, now, depth, status_now in reader.stream(find, (site, moment.until)):
        reason, _, status = past.get(identity, (now, "", status_now))
        ids.append(identity)
        texts.append(Url(text))
        codes.append(REASON_CODES[reason])
        depths.append(depth)
        statuses.append(min(status, 999))
    urls = UrlRows(np.array(ids, np.int64), texts, np.frombuffer(bytes(codes), np.uint8), np.array(depths, np.int32))
    return PastUrls(urls, np.array(statuses, np.int16))


def redirects(reader: CollectionReader, moment: RunEnd, past: UrlPast) -> LinkRows:
    """Target of each redirect at that time, and page of each alias under the current rules."""
    rules: dict[int, str] = dict(
        reader.stream("SELECT id, rule FROM url WHERE reason = 'redirect' AND first_seen < ?", (moment.until,))
    )
    for identity, (reason, rule, _) in past.items():
        rules.pop(identity, None)
        if reason == Reason.REDIRECT:
            rules[identity] = rule
    ends = {identity: url_id(Url(rule)) for identity, rule in rules.items() if rule}
    aliases = (
        "SELECT a.url_id, a.page_id FROM alias a JOIN url u ON u.id = a.url_id"
        " WHERE u.reason = 'alias' AND a.page_id IS NOT NULL"
    )
    ends |= {alias: page for alias, page in reader.stream(aliases) if alias not in past}
    return LinkRows(np.fromiter(ends.keys(), np.int64, len(ends)), np.fromiter(ends.values(), np.int64, len(ends)))


def page_links(reader: CollectionReader, site: SiteKey, moment: RunEnd) -> LinkRows:
    """The site's links to pages, independent of the state of their sources; may contain duplicates."""
    now = f"url u CROSS JOIN page_links l ON l.source = u.id WHERE {SITE_OF_URL} AND l.first_seen < ? ORDER BY u.id"
    links = joined_links(link_blocks(reader, now, (site, moment.until), CLICK_KINDS - {LinkKind.REDIRECT}))
    ended = (
        "SELECT l.source, l.target FROM link_history l JOIN url u ON u.id = l.source WHERE l.run_id > ?"
        f" AND l.first_seen < ? AND {SITE_OF_URL} AND l.kind IN {_CLICKS} AND l.kind <> 'redirect'"
    )
    pairs = np.fromiter(reader.stream(ended, (moment.run_id, moment.until, site)), dtype=_PAIR)
    return LinkRows(np.append(links.sources, pairs["first"]), np.append(links.targets, pairs["second"]))


def site_pages(reader: CollectionReader, site: SiteKey, moment: RunEnd) -> dict[int, Row]:
    """PAST_FIELDS of the site's pages, by id."""
    now = (
        f"SELECT u.id, {', '.join(f'p.{name}' for name in PAST_FIELDS)} FROM url u CROSS"
        f" JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL}"
    )
    then = (
        f"SELECT h.url_id, {', '.join(f'h.{name}' for name in PAST_FIELDS)} FROM page_history h"
        " WHERE h.run_id > ? ORDER BY h.url_id DESC, h.run_id DESC"
    )
    values: dict[int, Row] = {row[0]: row[1:] for row in reader.stream(now, (site,))}
    return values | {row[0]: row[1:] for row in reader.stream(then, (moment.run_id,)) if row[0] in values}


def ids_at(reader: CollectionReader, reasons: Iterable[Reason], past: UrlPast) -> Ints:
    """Ids of the URLs of any site that had one of the reasons; ascending."""
    names = frozenset(reason.value for reason in reasons)
    now = {identity for (identity,) in reader.stream(f"SELECT id FROM url WHERE reason IN {any_of(names)}")}
    then = (now - past.keys()) | {identity for identity, row in past.items() if row[0] in names}
    return np.array(sorted(then), np.int64)


def texts_of(reader: CollectionReader, ids: Iterable[int]) -> Iterator[tuple[UrlId, Url]]:
    """(id, URL) of the known URLs."""
    for identity in ids:
        if (text := reader.text_of(identity)) is not None:
            yield UrlId(identity), Url(text)
