"""Stored results of link checks: requests, responses, issues by run.

The result for a link target that is not a page of the crawl is stored in its visits (purpose `head` or `check`), and in
a row of `verdict` if it is dead. `look` holds data of checked pages, which are not stored themselves.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from periplus.model.audit import FragmentVerdict
from periplus.model.frontier import Look
from periplus.model.page import LinkKind
from periplus.model.tables import any_of
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.sqlite import page_links
from periplus.values import frozen

VERDICTS = """CREATE TABLE verdict (
    url_id INTEGER PRIMARY KEY, reason TEXT NOT NULL, rule TEXT NOT NULL, status INTEGER NOT NULL,
    was TEXT NOT NULL, was_rule TEXT NOT NULL, was_status INTEGER);
"""  # dead URLs that only a check requested: state after the check, and state after the crawl
TABLES = f"""{VERDICTS}
CREATE INDEX queue_text ON queue (text) WHERE text IS NOT NULL;
CREATE INDEX visit_checked ON visit (text) WHERE purpose IN ('head', 'check');
CREATE TABLE look (
    visit_id INTEGER PRIMARY KEY, media_type TEXT NOT NULL, title TEXT NOT NULL, h1 TEXT NOT NULL, text TEXT NOT NULL, fragments TEXT NOT NULL);
CREATE TABLE issue (
    run_id INTEGER NOT NULL, code TEXT NOT NULL, url_id INTEGER NOT NULL, related_id INTEGER NOT NULL,
    PRIMARY KEY (run_id, code, url_id, related_id)) WITHOUT ROWID;
"""  # noqa: E501
_OF_CHECKS = "purpose IN ('head', 'check')"  # as in the index, otherwise SQLite does not use it
_NET_DOWN = "net-down"  # key in run_count: our own network was down in this run, so failures are not evidence
_IS_EVIDENCE = (
    f"(outcome NOT IN ('failed', 'skipped') OR run_id NOT IN (SELECT run_id FROM run_count WHERE name = '{_NET_DOWN}'))"
)
_ADD_TALLY = (
    "INSERT INTO tally VALUES ('reason:' || ?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
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


def requested_among(connection: sqlite3.Connection, urls: Sequence[Url]) -> set[tuple[str, str]]:
    """(URL, purpose) of those of the URLs that the current check requested."""
    find = f"SELECT text, purpose FROM visit WHERE text = ? AND {_OF_CHECKS} AND started >= ?"
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (SINCE,)).fetchone()
    start = float(row[0]) if row else float("inf")
    return {(text, purpose) for url in urls for text, purpose in connection.execute(find, (url, start))}


def check_visits(connection: sqlite3.Connection) -> Iterator[VisitEvidence]:
    """All visits of link checks, oldest first, without failures while our own network was down."""
    find = (
        "SELECT text, purpose, started, outcome, status, detail FROM visit"
        f" WHERE {_OF_CHECKS} AND {_IS_EVIDENCE} ORDER BY id"
    )
    for url, *rest in connection.execute(find):
        yield VisitEvidence(Url(url), *rest)


def looks(connection: sqlite3.Connection) -> dict[Url, Look]:
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
        for url, media_type, title, h1, text, fragments in connection.execute(find)
    }


def failures(connection: sqlite3.Connection, reasons: Iterable[Reason]) -> Iterator[tuple[UrlId, VisitEvidence]]:
    """All visits of the pages with one of the reasons, oldest first."""
    find = (
        "SELECT v.url_id, u.text, v.purpose, v.started, v.outcome, v.status, v.detail FROM visit v"
        " JOIN url u ON u.id = v.url_id"
        f" WHERE u.reason IN {any_of(reasons)} ORDER BY v.id"
    )
    for url_id, url, *rest in connection.execute(find):
        yield UrlId(url_id), VisitEvidence(Url(url), *rest)


def host_failures(connection: sqlite3.Connection) -> Iterator[VisitEvidence]:
    """All robots.txt requests without a response, which is evidence for all pages of the host."""
    of_robots = "purpose = 'robots' AND outcome = 'failed' AND text IS NOT NULL"
    for url, *rest in connection.execute(
        "SELECT text, purpose, started, outcome, status, detail FROM visit "
        f"WHERE {of_robots} AND {_IS_EVIDENCE} ORDER BY id"
    ):
        yield VisitEvidence(Url(url), *rest)


def asked_since(connection: sqlite3.Connection, begun: float) -> Iterator[VisitEvidence]:
    """Visits of link checks since then, including robots.txt, oldest first."""
    find = (
        "SELECT text, purpose, started, outcome, status, detail FROM visit WHERE started >= ?"
        " AND purpose IN ('head', 'check', 'robots') ORDER BY id"
    )
    for url, *rest in connection.execute(find, (begun,)):
        if url:
            yield VisitEvidence(Url(url), *rest)


def mark_network_down(connection: sqlite3.Connection, run_id: int) -> None:
    """Marks a run whose failures are not evidence. Call it within a transaction."""
    connection.execute("INSERT OR REPLACE INTO run_count VALUES (?, ?, 1)", (run_id, _NET_DOWN))


def store_issues(connection: sqlite3.Connection, run_id: int, keys: Iterable[tuple[str, int, int]]) -> None:
    """Stores issues. keys: (code, id of the page, id of the other URL or 0). Call it within a transaction."""
    connection.executemany("INSERT OR IGNORE INTO issue VALUES (?, ?, ?, ?)", ((run_id, *key) for key in keys))


def issues_of(connection: sqlite3.Connection, run_id: int, code: str) -> Iterator[tuple[int, int]]:
    """(id of the page, id of the other URL or 0) of the issues of one code stored for a run."""
    yield from connection.execute("SELECT url_id, related_id FROM issue WHERE run_id = ? AND code = ?", (run_id, code))


def runs_with(connection: sqlite3.Connection, code: str) -> list[tuple[int, float]]:
    """(id, start) of the checks that found an issue of this code, latest first."""
    find = "SELECT id, started FROM run WHERE EXISTS (SELECT 1 FROM issue WHERE run_id = run.id AND code = ?)"
    return connection.execute(f"{find} ORDER BY started DESC", (code,)).fetchall()


def pages_with(connection: sqlite3.Connection, codes: Iterable[str]) -> dict[int, int]:
    """Number of pages with an issue of one of these codes, by check. Checks without such pages have no entry."""
    listed = list(codes)
    marks = ", ".join("?" * len(listed))
    find = f"SELECT run_id, count(DISTINCT url_id) FROM issue WHERE code IN ({marks}) GROUP BY run_id"
    return dict(connection.execute(find, listed).fetchall())


def pages_by_code(connection: sqlite3.Connection) -> dict[int, dict[str, int]]:
    """Number of pages with an issue of each kind, by check."""
    table: dict[int, dict[str, int]] = {}
    for run, code, pages in connection.execute(
        "SELECT run_id, code, count(DISTINCT url_id) FROM issue GROUP BY run_id, code"
    ):
        table.setdefault(run, {})[code] = pages
    return table


def store_verdicts(connection: sqlite3.Connection, dead: Iterable[tuple[int, str, str, int]]) -> None:
    """Replaces the verdicts. dead: (id, reason, rule, status) of all URLs that checks found dead and the crawl did not
    request.

    Call it within a transaction, while no verdict is in force. The end of the run puts them in force.
    """
    connection.execute("DELETE FROM verdict")
    insert = "INSERT INTO verdict SELECT id, ?, ?, ?, reason, rule, status FROM url WHERE id = ?"
    connection.executemany(insert, ((reason, rule, status, url_id) for url_id, reason, rule, status in dead))


def restate(connection: sqlite3.Connection, revived: Iterable[tuple[int, str, str, int]]) -> None:
    """Changes the state of URLs permanently. revived: (id, reason, rule, status) of URLs that were dead in the crawl
    and alive in a check.

    Call it within a transaction.
    """
    for url_id, reason, rule, status in revived:
        before = connection.execute("SELECT reason FROM url WHERE id = ?", (url_id,)).fetchone()[0]
        connection.execute(
            "UPDATE url SET reason = ?, rule = ?, status = ? WHERE id = ?", (reason, rule, status, url_id)
        )
        connection.executemany(_ADD_TALLY, [(before, -1), (reason, 1)])


def crawled_as(connection: sqlite3.Connection) -> dict[int, str]:
    """Reason after the crawl of URLs that checks found dead, by id."""
    return dict(connection.execute("SELECT url_id, was FROM verdict").fetchall())


def visit_time_s(connection: sqlite3.Connection, url_id: int) -> float:
    """Time of the last request of a URL by the crawl, or 0.0."""
    row = connection.execute("SELECT visited FROM url WHERE id = ?", (url_id,)).fetchone()
    return float(row[0] or 0.0) if row else 0.0


def fragments(connection: sqlite3.Connection) -> Iterator[tuple[int, int, str, str, str]]:
    """(source, target, kind, position, fragments separated by spaces) of all links for readers with a fragment, by
    target.
    """
    yield from connection.execute(
        "SELECT source, target, kind, position, fragments FROM link"
        f" WHERE source IN {page_links.PERHAPS_WITH_FRAGMENTS} AND fragments <> ''"
        " AND kind IN ('a', 'area') ORDER BY target"
    )


def redirects_to_places(connection: sqlite3.Connection) -> list[int]:
    """URLs that redirect to a URL with a fragment, which browsers prefer to the link's fragment."""
    find = (
        "SELECT DISTINCT u.id FROM url u CROSS JOIN link l ON l.source = u.id"
        " WHERE u.reason = 'redirect' AND l.kind = 'redirect' AND l.fragments <> ''"
    )
    return [number for (number,) in connection.execute(find)]


def targets(connection: sqlite3.Connection, site: SiteKey) -> set[int]:
    """Link targets of the site's pages, except those of forms, citations and sitemaps."""
    find = (
        "SELECT l.targets, l.kinds FROM url u CROSS JOIN page_links l ON l.source = u.id"
        " WHERE u.host_id IN (SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?)"
        " AND u.reason NOT IN ('redirect', 'alias', 'rule')"
    )
    others = page_links.letters_of(LinkKind.FORM, LinkKind.CITE, LinkKind.SITEMAP)
    linked: set[int] = set()
    for targets, kinds in connection.execute(find, (site,)):
        linked.update(
            target for target, kind in zip(map(int, targets.split()), kinds, strict=True) if kind not in others
        )
    return linked
