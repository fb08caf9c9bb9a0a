"""What is remembered of checking links: what was asked and seen, what was found in each run?

A link's target that is no page of ours has no row for its answer but its visits (purpose `head` or `check`), and one of
`verdict` where it is dead. `look` adds what was seen on a page that is not kept.
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

CHECK = "check"  # the kind of run that checks links
VERDICTS = """CREATE TABLE verdict (
    url_id INTEGER PRIMARY KEY, reason TEXT NOT NULL, rule TEXT NOT NULL, status INTEGER NOT NULL,
    was TEXT NOT NULL, was_rule TEXT NOT NULL, was_status INTEGER);
"""  # URLs that a crawl did not ask for and a check found dead: as it found them, and as the crawl left them
TABLES = f"""{VERDICTS}
CREATE INDEX queue_text ON queue (text) WHERE text IS NOT NULL;
CREATE INDEX visit_checked ON visit (text) WHERE purpose IN ('head', 'check');
CREATE TABLE look (
    visit_id INTEGER PRIMARY KEY, media_type TEXT NOT NULL, title TEXT NOT NULL, h1 TEXT NOT NULL, text TEXT NOT NULL, fragments TEXT NOT NULL);
CREATE TABLE issue (
    run_id INTEGER NOT NULL, code TEXT NOT NULL, url_id INTEGER NOT NULL, related_id INTEGER NOT NULL,
    PRIMARY KEY (run_id, code, url_id, related_id)) WITHOUT ROWID;
"""  # noqa: E501
_OF_CHECKS = "purpose IN ('head', 'check')"  # written as in the index, or SQLite does not take it
_NET_DOWN = "net-down"  # in run_count: our own net was down in this run, and what got no answer then says nothing
_JUDGED = (
    f"(outcome NOT IN ('failed', 'skipped') OR run_id NOT IN (SELECT run_id FROM run_count WHERE name = '{_NET_DOWN}'))"
)
_ADD_TALLY = (
    "INSERT INTO tally VALUES ('reason:' || ?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
)
SINCE = "check_since"  # a note: when the check that has not ended yet began


@frozen
class VisitEvidence:
    """One visit as evidence.

    url: that was asked for; outcome, status, detail: as `store.rows.outcome_columns` writes them.
    """

    url: Url
    purpose: str
    started: float
    outcome: str
    status: int
    detail: str


def asked_among(connection: sqlite3.Connection, urls: Sequence[Url]) -> set[tuple[str, str]]:
    """(URL, purpose) of what the check that goes on has asked for among the URLs."""
    find = f"SELECT text, purpose FROM visit WHERE text = ? AND {_OF_CHECKS} AND started >= ?"
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (SINCE,)).fetchone()
    start = float(row[0]) if row else float("inf")
    return {(text, purpose) for url in urls for text, purpose in connection.execute(find, (url, start))}


def asked(connection: sqlite3.Connection) -> Iterator[VisitEvidence]:
    """All that was ever asked to check links, oldest first; without what failed while our own net was down."""
    find = (
        "SELECT text, purpose, started, outcome, status, detail FROM visit"
        f" WHERE {_OF_CHECKS} AND {_JUDGED} ORDER BY id"
    )
    for url, *rest in connection.execute(find):
        yield VisitEvidence(Url(url), *rest)


def looks(connection: sqlite3.Connection) -> dict[Url, Look]:
    """The latest look at each URL."""
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
    """Every visit of the pages that stand at one of the reasons, oldest first."""
    find = (
        "SELECT v.url_id, u.text, v.purpose, v.started, v.outcome, v.status, v.detail FROM visit v"
        " JOIN url u ON u.id = v.url_id"
        f" WHERE u.reason IN {any_of(reasons)} ORDER BY v.id"
    )
    for url_id, url, *rest in connection.execute(find):
        yield UrlId(url_id), VisitEvidence(Url(url), *rest)


def host_failures(connection: sqlite3.Connection) -> Iterator[VisitEvidence]:
    """Every request for a robots.txt to which nobody answered: so it would have been with any page of the host."""
    of_robots = "purpose = 'robots' AND outcome = 'failed' AND text IS NOT NULL"
    for url, *rest in connection.execute(
        f"SELECT text, purpose, started, outcome, status, detail FROM visit WHERE {of_robots} AND {_JUDGED} ORDER BY id"
    ):
        yield VisitEvidence(Url(url), *rest)


def asked_since(connection: sqlite3.Connection, begun: float) -> Iterator[VisitEvidence]:
    """What was asked to check links since then, requests for robots.txt included, oldest first."""
    find = (
        "SELECT text, purpose, started, outcome, status, detail FROM visit WHERE started >= ?"
        " AND purpose IN ('head', 'check', 'robots') ORDER BY id"
    )
    for url, *rest in connection.execute(find, (begun,)):
        if url:
            yield VisitEvidence(Url(url), *rest)


def net_was_down(connection: sqlite3.Connection, run_id: int) -> None:
    """What got no answer in this run is no evidence. Within a transaction."""
    connection.execute("INSERT OR REPLACE INTO run_count VALUES (?, ?, 1)", (run_id, _NET_DOWN))


def store_issues(connection: sqlite3.Connection, run_id: int, keys: Iterable[tuple[str, int, int]]) -> None:
    """keys: (code, id of the page, id of the other URL or 0). Within a transaction."""
    connection.executemany("INSERT OR IGNORE INTO issue VALUES (?, ?, ?, ?)", ((run_id, *key) for key in keys))


def issues_of(connection: sqlite3.Connection, run_id: int, code: str) -> Iterator[tuple[int, int]]:
    """(id of the page, id of the other URL or 0) of the issues of one code that `store_issues` took."""
    yield from connection.execute("SELECT url_id, related_id FROM issue WHERE run_id = ? AND code = ?", (run_id, code))


def runs_with(connection: sqlite3.Connection, code: str) -> list[tuple[int, float]]:
    """(number, when it began) of the checks that saw an issue of this code, latest first."""
    find = "SELECT id, started FROM run WHERE EXISTS (SELECT 1 FROM issue WHERE run_id = run.id AND code = ?)"
    return connection.execute(f"{find} ORDER BY started DESC", (code,)).fetchall()


def pages_with(connection: sqlite3.Connection, codes: Iterable[str]) -> dict[int, int]:
    """Pages with an issue of one of these codes, by the check that saw them; of a check that saw none no entry."""
    listed = list(codes)
    marks = ", ".join("?" * len(listed))
    find = f"SELECT run_id, count(DISTINCT url_id) FROM issue WHERE code IN ({marks}) GROUP BY run_id"
    return dict(connection.execute(find, listed).fetchall())


def pages_by_code(connection: sqlite3.Connection) -> dict[int, dict[str, int]]:
    """Pages with an issue of each kind, by the check that saw them."""
    table: dict[int, dict[str, int]] = {}
    for run, code, pages in connection.execute(
        "SELECT run_id, code, count(DISTINCT url_id) FROM issue GROUP BY run_id, code"
    ):
        table.setdefault(run, {})[code] = pages
    return table


def store_verdicts(connection: sqlite3.Connection, dead: Iterable[tuple[int, str, str, int]]) -> None:
    """dead: (id, reason, rule, status) of every URL that checks found dead and the crawl did not ask for,
    in place of those before.

    Within a transaction, while none is settled. `settle` makes them the URLs' states.
    """
    connection.execute("DELETE FROM verdict")
    insert = "INSERT INTO verdict SELECT id, ?, ?, ?, reason, rule, status FROM url WHERE id = ?"
    connection.executemany(insert, ((reason, rule, status, url_id) for url_id, reason, rule, status in dead))


def restate(connection: sqlite3.Connection, revived: Iterable[tuple[int, str, str, int]]) -> None:
    """revived: (id, reason, rule, status) of URLs that the crawl found dead and a check did not:
    they stand so for later runs too.

    Within a transaction.
    """
    for url_id, reason, rule, status in revived:
        before = connection.execute("SELECT reason FROM url WHERE id = ?", (url_id,)).fetchone()[0]
        connection.execute(
            "UPDATE url SET reason = ?, rule = ?, status = ? WHERE id = ?", (reason, rule, status, url_id)
        )
        connection.executemany(_ADD_TALLY, [(before, -1), (reason, 1)])


def crawled_as(connection: sqlite3.Connection) -> dict[int, str]:
    """The reasons at which the crawl left what checks found dead, by id."""
    return dict(connection.execute("SELECT url_id, was FROM verdict").fetchall())


def visited_at(connection: sqlite3.Connection, url_id: int) -> float:
    """When a known URL was last asked for by the crawl."""
    row = connection.execute("SELECT visited FROM url WHERE id = ?", (url_id,)).fetchone()
    return float(row[0] or 0.0) if row else 0.0


def fragments(connection: sqlite3.Connection) -> Iterator[tuple[int, int, str, str, str]]:
    """(source, target, kind, position, fragments parted by blanks) of every link of a reader's that
    names a place, by target.
    """
    yield from connection.execute(
        "SELECT source, target, kind, position, fragments FROM link"
        f" WHERE source IN {page_links.PERHAPS_WITH_FRAGMENTS} AND fragments <> ''"
        " AND kind IN ('a', 'area') ORDER BY target"
    )


def redirects_to_places(connection: sqlite3.Connection) -> list[int]:
    """URLs whose redirect names a place itself: browsers go there, not to the place that a link names."""
    find = (
        "SELECT DISTINCT u.id FROM url u CROSS JOIN link l ON l.source = u.id"
        " WHERE u.reason = 'redirect' AND l.kind = 'redirect' AND l.fragments <> ''"
    )
    return [number for (number,) in connection.execute(find)]


def targets(connection: sqlite3.Connection, site: SiteKey) -> set[int]:
    """What the site's pages link to, whatever for; not what forms send to, nor what is only cited."""
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
