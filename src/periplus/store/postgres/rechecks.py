"""Which URLs does a refresh ask for again, where the collection is in PostgreSQL?"""

from __future__ import annotations

from periplus.model.freshness import ASKED_AGAIN, EARLY_SHARE, FIRST_INTERVAL_S
from periplus.model.frontier import LAYER_NONE
from periplus.store.postgres import pages
from periplus.store.postgres.connection import Connection

_NOW = "extract(epoch FROM clock_timestamp())"
_DUE = (
    f"coalesce(f.checked, u.visited, 0) + coalesce(f.interval_s, %(first)s) * %(early)s <= {_NOW}"
    " OR EXISTS (SELECT 1 FROM start s WHERE s.shard = u.shard AND s.url_id = u.id)"
)
_ENQUEUE = (
    "INSERT INTO queue (shard, host_id, layer, url_id, purpose)"
    " SELECT u.shard, u.host_id, coalesce(u.layer, %(none)s), u.id, 'recheck' FROM url u LEFT JOIN freshness f ON f.shard = u.shard AND f.url_id = u.id"
    f" WHERE u.reason = ANY(%(reasons)s) AND (%(all)s OR {_DUE})"
    " AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.shard = u.shard AND q.host_id = u.host_id AND q.url_id = u.id AND q.purpose = 'recheck')"
    ' ORDER BY u.layer NULLS LAST, u.text COLLATE "C"'
)


def ask_again(connection: Connection, *, due_only: bool) -> int:
    """Enters what is to be asked for again into the to-do lists; returns how many. robots.txt, and with it the sitemaps, are read anew.

    due_only: only what its own interval says, and the starts. What an interrupted refresh left stands there already. Within a transaction.
    """
    connection.execute("SET LOCAL statement_timeout = 0")  # every URL is looked at
    connection.execute("SELECT 1 FROM host ORDER BY shard, id FOR NO KEY UPDATE")
    pages.part_twins(connection)  # each address is asked for, and they are merged again if they are still the same
    reasons = [reason.value for reason in ASKED_AGAIN]
    values = {"all": not due_only, "first": FIRST_INTERVAL_S, "early": 1 - EARLY_SHARE, "none": LAYER_NONE, "reasons": reasons}
    added = connection.execute(_ENQUEUE, values).rowcount
    lists = "SELECT shard, host_id, count(*) AS many FROM queue GROUP BY shard, host_id"
    connection.execute(f"UPDATE host h SET pending = n.many FROM ({lists}) n WHERE n.shard = h.shard AND n.host_id = h.id AND h.pending <> n.many")
    connection.execute("DELETE FROM robots")
    return added
