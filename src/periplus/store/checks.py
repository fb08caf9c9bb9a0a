"""Stored results of link checks: requests, responses, issues by run.

The result for a link target that is not a page of the crawl is stored in its visits (purpose `head` or `check`), and in
a row of `verdict` if it is dead. `look` holds data of checked pages, which are not stored themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from periplus.model.audit import FragmentVerdict
from periplus.model.frontier import Look
from periplus.model.page import LinkKind
from periplus.model.tables import any_of
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.notes import note
from periplus.store.page_links import perhaps_with_fragments
from periplus.store.reader import CollectionReader
from periplus.store.runs import change_states, url_before
from periplus.store.statements import Statements
from periplus.values import frozen

_OF_CHECKS = "purpose IN ('head', 'check')"  # as in the index, otherwise SQLite does not use it
_NET_DOWN = "net-down"  # key in run_count: our own network was down in this run, so failures are not evidence
_IS_EVIDENCE = (
    f"(outcome NOT IN ('failed', 'skipped') OR run_id NOT IN (SELECT run_id FROM run_count WHERE name = '{_NET_DOWN}'))"
)
SINCE = "check_since"  # name of a note: start of the current check


@frozen
class VisitEvidence:
    """A visit as evidence.

    url: the requested URL; outcome, status, detail: see `store.rows.outcome_columns`.
    """

    url: Url
    purpose: str
    started: float
    outcome: str
    status: int
    detail: str


def requested_among(statements: Statements, urls: Sequence[Url]) -> set[tuple[str, str]]:
    """(URL, purpose) of those of the URLs that the current check requested."""
    find = f"SELECT text, purpose FROM visit WHERE text = ? AND {_OF_CHECKS} AND started >= ?"
    start = float(note(statements, SINCE) or "inf")
    return {(text, purpose) for url in urls for text, purpose in statements.rows(find, (url, start))}


def check_visits(reader: CollectionReader) -> Iterator[VisitEvidence]:
    """All visits of link checks, oldest first, without failures while our own network was down."""
    find = (
        "SELECT text, purpose, started, outcome, status, detail FROM visit"
        f" WHERE {_OF_CHECKS} AND {_IS_EVIDENCE} ORDER BY id"
    )
    for url, *rest in reader.stream(find):
        yield VisitEvidence(Url(url), *rest)


def looks(reader: CollectionReader) -> dict[Url, Look]:
    """Latest look at each URL."""
    find = (
        "SELECT v.text, l.media_type, l.title, l.h1, l.text, l.fragments FROM look l CROSS"
        " JOIN visit v ON v.id = l.visit_id ORDER BY l.visit_id"
    )
    return {
        Url(url): Look(
            media_type,
            title,
            h1,
            text,
            tuple((name, FragmentVerdict(verdict)) for name, verdict in json.loads(fragments).items()),
        )
        for url, media_type, title, h1, text, fragments in reader.stream(find)
    }


def failures(reader: CollectionReader, reasons: Iterable[Reason]) -> Iterator[tuple[UrlId, VisitEvidence]]:
    """All visits of the pages with one of the reasons, oldest first."""
    find = (
        "SELECT v.url_id, u.text, v.purpose, v.started, v.outcome, v.status, v.detail FROM visit v"
        " JOIN url u ON u.id = v.url_id"
        f" WHERE u.reason IN {any_of(reasons)} ORDER BY v.id"
    )
    for url_id, url, *rest in reader.stream(find):
        yield UrlId(url_id), VisitEvidence(Url(url), *rest)


def host_failures(reader: CollectionReader) -> Iterator[VisitEvidence]:
    """All robots.txt requests without a response, which is evidence for all pages of the host."""
    of_robots = "purpose = 'robots' AND outcome = 'failed' AND text IS NOT NULL"
    for url, *rest in reader.stream(
        "SELECT text, purpose, started, outcome, status, detail FROM visit "
        f"WHERE {of_robots} AND {_IS_EVIDENCE} ORDER BY id"
    ):
        yield VisitEvidence(Url(url), *rest)


def asked_since(reader: CollectionReader, begun: float) -> Iterator[VisitEvidence]:
    """Visits of link checks since then, including robots.txt, oldest first."""
    find = (
        "SELECT text, purpose, started, outcome, status, detail FROM visit WHERE started >= ?"
        " AND purpose IN ('head', 'check', 'robots') ORDER BY id"
    )
    for url, *rest in reader.stream(find, (begun,)):
        if url:
            yield VisitEvidence(Url(url), *rest)


def mark_network_down(statements: Statements, run_id: int) -> None:
    """Marks a run whose failures are not evidence. Call it within a transaction."""
    insert = "INSERT INTO run_count (run_id, name, value) VALUES (?, ?, 1) ON CONFLICT DO NOTHING"
    statements.change(insert, (run_id, _NET_DOWN))


def store_issues(statements: Statements, run_id: int, keys: Iterable[tuple[str, int, int]]) -> None:
    """Stores issues. keys: (code, id of the page, id of the other URL or 0). Call it within a transaction."""
    insert = "INSERT INTO issue (run_id, code, url_id, related_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    statements.change_rows(insert, ((run_id, *key) for key in keys))


def issues_of(reader: CollectionReader, run_id: int, code: str) -> Iterator[tuple[int, int]]:
    """(id of the page, id of the other URL or 0) of the issues of one code stored for a run."""
    find = "SELECT url_id, related_id FROM issue WHERE run_id = ? AND code = ?"
    return iter(reader.statements.rows(find, (run_id, code)))


def runs_with(reader: CollectionReader, code: str) -> list[tuple[int, float]]:
    """(id, start) of the checks that found an issue of this code, latest first."""
    find = "SELECT id, started FROM run WHERE EXISTS (SELECT 1 FROM issue WHERE run_id = run.id AND code = ?)"
    return reader.statements.rows(f"{find} ORDER BY started DESC", (code,))


def pages_with(reader: CollectionReader, codes: Iterable[str]) -> dict[int, int]:
    """Number of pages with an issue of one of these codes, by check. Checks without such pages have no entry."""
    listed = list(codes)
    marks = ", ".join("?" * len(listed))
    find = f"SELECT run_id, count(DISTINCT url_id) FROM issue WHERE code IN ({marks}) GROUP BY run_id"
    return dict(reader.statements.rows(find, listed))


def pages_by_code(reader: CollectionReader) -> dict[int, dict[str, int]]:
    """Number of pages with an issue of each kind, by check."""
    table: dict[int, dict[str, int]] = {}
    for run, code, pages in reader.stream(
        "SELECT run_id, code, count(DISTINCT url_id) FROM issue GROUP BY run_id, code"
    ):
        table.setdefault(run, {})[code] = pages
    return table


def store_verdicts(statements: Statements, dead: Iterable[tuple[int, str, str, int]]) -> None:
    """Replaces the verdicts. dead: (id, reason, rule, status) of all URLs that checks found dead and the crawl did not
    request.

    Call it within a transaction, while no verdict is in force. The end of the run puts them in force.
    """
    statements.change("DELETE FROM verdict")
    shard, url = statements.dialect.shard, f"url u WHERE {statements.dialect.anywhere('u')}u.id = ?"
    columns = f"{shard}url_id, reason, rule, status, was, was_rule, was_status"
    insert = f"INSERT INTO verdict ({columns}) SELECT {shard}id, ?, ?, ?, reason, rule, status FROM {url}"
    statements.change_rows(insert, ((reason, rule, status, url_id) for url_id, reason, rule, status in dead))


def restate(statements: Statements, run_id: int, revived: Iterable[tuple[int, str, str, int]]) -> None:
    """Changes the state of URLs permanently. revived: (id, reason, rule, status) of URLs that were dead in the crawl
    and alive in a check, which is this run.

    Call it within a transaction.
    """
    find = f"SELECT {url_before(statements)} FROM url u WHERE {statements.dialect.anywhere('u')}u.id = ?"
    change_states(
        statements, run_id, [(*row, *new) for url_id, *new in revived for row in statements.rows(find, (url_id,))]
    )


def crawled_as(reader: CollectionReader) -> dict[int, str]:
    """Reason after the crawl of URLs that checks found dead, by id."""
    return dict(reader.statements.rows("SELECT url_id, was FROM verdict"))


def visit_time_s(reader: CollectionReader, url_id: int) -> float:
    """Time of the last request of a URL by the crawl, or 0.0."""
    find = f"SELECT u.visited FROM url u WHERE {reader.statements.dialect.anywhere('u')}u.id = ?"
    return next((float(visited or 0.0) for (visited,) in reader.statements.rows(find, (url_id,))), 0.0)


def fragments(reader: CollectionReader) -> Iterator[tuple[int, int, str, str, str]]:
    """(source, target, kind, position, fragments separated by spaces) of all links for readers with a fragment, by
    target.
    """
    yield from reader.stream(
        "SELECT source, target, kind, position, fragments FROM link"
        f" WHERE source IN {perhaps_with_fragments(reader.statements.dialect)} AND fragments <> ''"
        " AND kind IN ('a', 'area') ORDER BY target"
    )


def redirects_to_places(reader: CollectionReader) -> list[int]:
    """URLs that redirect to a URL with a fragment, which browsers prefer to the link's fragment."""
    find = (
        "SELECT DISTINCT u.id FROM url u CROSS JOIN link l ON l.source = u.id"
        " WHERE u.reason = 'redirect' AND l.kind = 'redirect' AND l.fragments <> ''"
    )
    return [number for (number,) in reader.stream(find)]


def targets(reader: CollectionReader, site: SiteKey) -> set[int]:
    """Link targets of the site's pages, except those of forms, citations and sitemaps."""
    from periplus.store.site_rows import OF_SITE, link_blocks  # imports NumPy, which crawls do without

    kinds = frozenset(LinkKind) - {LinkKind.FORM, LinkKind.CITE, LinkKind.SITEMAP}
    return {target for block in link_blocks(reader, OF_SITE, (site,), kinds) for target in block.targets.tolist()}
