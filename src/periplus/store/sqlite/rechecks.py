"""Which URLs does a refresh ask for again, and what did it find?"""

from __future__ import annotations

import contextlib
from pathlib import Path

from periplus.model.freshness import ASKED_AGAIN, EARLY_SHARE, FIRST_INTERVAL_S, Finding
from periplus.model.frontier import LAYER_NONE
from periplus.store.sqlite import schema
from periplus.store.sqlite.listing import names

_DUE = "coalesce(f.checked, u.visited, 0) + coalesce(f.interval_s, :first) * :early <= :now OR u.id IN (SELECT url_id FROM start)"
_ENQUEUE = (
    "INSERT INTO queue (host_id, layer, seq, url_id, purpose)"
    " SELECT u.host_id, coalesce(u.layer, :none), :seq + row_number() OVER (ORDER BY u.layer IS NULL, u.layer, u.text), u.id, 'recheck'"
    f" FROM url u LEFT JOIN freshness f ON f.url_id = u.id WHERE u.reason IN ({names(sorted(ASKED_AGAIN))}) AND (:all OR {_DUE})"
    " AND u.id NOT IN (SELECT url_id FROM queue WHERE purpose = 'recheck')"
)


def ask_again(folder: Path, now: float, *, due_only: bool) -> int:
    """Enters what is to be asked for again into the to-do lists; returns how many. robots.txt, and with it the sitemaps, are read anew.

    due_only: only what its own interval says, and the starts. What an interrupted refresh left stands there already.
    """
    with schema.writing(folder) as connection:
        seq = int(connection.execute("SELECT value FROM meta WHERE name = 'seq'").fetchone()[0])
        values = {"all": not due_only, "now": now, "first": FIRST_INTERVAL_S, "early": 1 - EARLY_SHARE, "none": LAYER_NONE, "seq": seq}
        added = connection.execute(_ENQUEUE, values).rowcount
        connection.execute("UPDATE meta SET value = ? WHERE name = 'seq'", (str(seq + added + 1),))
        of_host = "SELECT host_id, count(*) AS many FROM queue WHERE purpose = 'recheck' AND seq > ? GROUP BY host_id"
        connection.execute(f"UPDATE host SET pending = pending + n.many FROM ({of_host}) n WHERE n.host_id = host.id", (seq,))
        connection.execute("DELETE FROM robots")
    return added


def findings(folder: Path, run_id: int) -> dict[Finding, int]:
    """What a run found, by kind; every kind is named."""
    with contextlib.closing(schema.connect(folder, read_only=True)) as connection:
        found = dict(connection.execute("SELECT name, value FROM run_count WHERE run_id = ?", (run_id,)))
    return {finding: found.get(finding.value, 0) for finding in Finding}
