"""What of a collection is worth a notice, as it stands now?"""

from __future__ import annotations

import sqlite3

from periplus.model.notice import NoticeKind

MOST = 100_000  # of one kind: who has more dead links needs no letter
_QUESTIONS = {
    NoticeKind.DEAD: (
        "SELECT u.text FROM url u JOIN reason r ON r.name = u.reason WHERE r.state = 'invalid' AND u.reason NOT IN ('bug', 'private-address')"
        " UNION SELECT u.text FROM issue i JOIN url u ON u.id = i.related_id WHERE i.code IN ('broken-link', 'broken-resource')"
        " AND i.run_id = (SELECT max(run_id) FROM issue) LIMIT :most"
    ),
    NoticeKind.VANISHED: "SELECT u.text FROM freshness f JOIN url u ON u.id = f.url_id WHERE f.gone_since IS NOT NULL LIMIT :most",
    NoticeKind.SITES: "SELECT key FROM site LIMIT :most",
    NoticeKind.SUSPICIOUS: (
        "SELECT 'run ' || id || ': ' || state || iif(note = '', '', ', ' || note) FROM run WHERE state IN ('suspicious', 'failed') LIMIT :most"
    ),
}
_ENTRIES = "SELECT portal || ': ' || min(url) FROM portal_page GROUP BY portal, entry LIMIT :most"


def facts(connection: sqlite3.Connection) -> dict[NoticeKind, set[str]]:
    """By kind, what holds now: what was told before is the teller's business."""
    found = {kind: {text for (text,) in connection.execute(question, {"most": MOST})} for kind, question in _QUESTIONS.items()}
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'portal_page'").fetchone():
        found[NoticeKind.PORTAL] = {text for (text,) in connection.execute(_ENTRIES, {"most": MOST})}
    return found


def newest_run(connection: sqlite3.Connection) -> int:
    """Its number; 0: there was none."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM run").fetchone()[0])
