"""The content of a collection with URLs instead of row numbers, so that collections with other histories compare."""

from __future__ import annotations

import contextlib
from pathlib import Path

from periplus.store.sqlite import reading

URL = "(SELECT text FROM url WHERE id = {})"
QUESTIONS = {
    "url": (
        "SELECT u.text, h.key, u.reason, u.rule, u.status, u.in_sitemap, u.visited IS NULL FROM url u"
        " JOIN host h ON h.id = u.host_id"
    ),
    "page": (
        "SELECT u.text, p.title, p.size, p.media_type, p.folded_digest, b.digest FROM page p"
        " JOIN url u ON u.id = p.url_id LEFT JOIN body b ON b.id = p.body_id"
    ),
    "body": "SELECT digest, size, text IS NULL, blocks FROM body",
    "xml": "SELECT b.digest, x.media_type FROM xml x JOIN body b ON b.id = x.body_id",
    "link": (
        f"SELECT {URL.format('source')}, {URL.format('target')}, kind, position, nofollow, anchor, times FROM link"
    ),
    "bad_link": f"SELECT {URL.format('source')}, text, kind, anchor FROM bad_link",
    "visit": (
        "SELECT coalesce(v.text, u.text), v.purpose, v.outcome, v.status, v.wire_bytes FROM visit v LEFT"
        " JOIN url u ON u.id = v.url_id"
    ),
    "host": "SELECT h.key, s.key, h.pending, h.fetched FROM host h JOIN site s ON s.id = h.site_id",
    "site": "SELECT key, fetched, dictionary_id IS NULL FROM site",
    "queue": (
        "SELECT h.key, u.text, q.text, q.purpose FROM queue q JOIN host h ON h.id = q.host_id LEFT"
        " JOIN url u ON u.id = q.url_id"
    ),
    "tally": "SELECT name, value FROM tally WHERE value <> 0",
    "run": "SELECT id, kind, fetched, wire_bytes FROM run",
    "start": f"SELECT {URL.format('url_id')} FROM start",
    "robots": "SELECT origin FROM robots",
    "alias": f"SELECT {URL.format('url_id')}, {URL.format('page_id')} FROM alias",
    "url_history": f"SELECT {URL.format('url_id')}, run_id, reason, rule, status, depth FROM url_history",
    "freshness": f"SELECT {URL.format('url_id')} FROM freshness",
    "dictionary": "SELECT count(*) FROM dictionary",
}


def content(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each table, sorted."""
    with contextlib.closing(reading.connect(folder)) as connection:
        return {name: sorted(connection.execute(question).fetchall(), key=repr) for name, question in QUESTIONS.items()}


def sound(folder: Path) -> list[str]:
    """Names of the consistency checks that fail: dangling references and wrong totals."""
    checks = {
        ("link without source or target"): (
            "SELECT count(*) FROM link WHERE source NOT IN (SELECT id FROM url) OR target NOT IN (SELECT id FROM url)"
        ),
        "past link without target": "SELECT count(*) FROM link_history WHERE target NOT IN (SELECT id FROM url)",
        "page without URL": "SELECT count(*) FROM page WHERE url_id NOT IN (SELECT id FROM url)",
        "page without body": (
            "SELECT count(*) FROM page WHERE body_id IS NOT NULL AND body_id NOT IN (SELECT id FROM body)"
        ),
        "body without page": "SELECT count(*) FROM body WHERE id NOT IN (SELECT body_id FROM page"
        " WHERE body_id IS NOT NULL UNION"
        " SELECT body_id FROM page_history WHERE body_id IS NOT NULL)",
        "visit without URL": "SELECT count(*) FROM visit WHERE url_id <> 0 AND url_id NOT IN (SELECT id FROM url)",
        "entry without URL": "SELECT count(*) FROM queue WHERE url_id <> 0 AND url_id NOT IN (SELECT id FROM url)",
        "pending": (
            "SELECT count(*) FROM host h WHERE pending <> (SELECT count(*) FROM queue q WHERE q.host_id = h.id)"
        ),
        "tally of a reason": (
            "SELECT count(*) FROM tally t WHERE name LIKE 'reason:%' AND value <> (SELECT count(*) FROM url"
            " WHERE reason = substr(t.name, 8))"
        ),
        "known": "SELECT count(*) FROM tally WHERE name = 'known' AND value <> (SELECT count(*) FROM url)",
        "site without host": "SELECT count(*) FROM site WHERE id NOT IN (SELECT site_id FROM host)",
        "fetched of sites": (
            "SELECT count(*) FROM site s WHERE fetched <> (SELECT sum(fetched) FROM host WHERE site_id = s.id)"
        ),
        "body of a dictionary": (
            "SELECT count(*) FROM body WHERE dictionary_id IS NOT NULL"
            " AND dictionary_id NOT IN (SELECT id FROM dictionary)"
        ),
        "history": "SELECT count(*) FROM url_history WHERE url_id NOT IN (SELECT id FROM url)",
        "look": "SELECT count(*) FROM look WHERE visit_id NOT IN (SELECT id FROM visit)",
    }
    with contextlib.closing(reading.connect(folder)) as connection:
        return [name for name, question in checks.items() if connection.execute(question).fetchone()[0]]
