"""What becomes of a to-do list whose host is given up? It is dropped, until a new run."""

from __future__ import annotations

from periplus.model.freshness import Finding
from periplus.model.visit import Skipped
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.hosts import Holding
from periplus.store.postgres.ledger import Ledger, Run
from periplus.store.standing import RECHECK


def drop_all(connection: Connection, ledger: Ledger, run: Run, host: Holding, outcome: Skipped) -> None:
    """The host is locked, and all else of the transaction is written."""
    values = {"shard": host.shard, "host": host.id, "run": run.id, "started": run.started, "reason": outcome.reason.value, "rule": outcome.rule}
    pages = "SELECT url_id FROM queue WHERE shard = %(shard)s AND host_id = %(host)s AND purpose = 'page'"
    waiting = f"reason = 'waiting' AND shard = %(shard)s AND id IN ({pages})"
    keep = f"SELECT shard, id, %(run)s, reason, rule, status, layer FROM url WHERE {waiting} AND first_seen < %(started)s"
    connection.execute(f"INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, layer) {keep} ON CONFLICT DO NOTHING", values)
    dropped = connection.execute(f"UPDATE url SET reason = %(reason)s, rule = %(rule)s WHERE {waiting}", values).rowcount
    ledger.tallies["reason:waiting"] -= dropped
    ledger.tallies["reason:" + outcome.reason.value] += dropped
    gone = connection.execute("DELETE FROM queue WHERE shard = %(shard)s AND host_id = %(host)s RETURNING purpose", values).fetchall()
    ledger.count_finding(Finding.UNREACHED, sum(purpose == RECHECK for (purpose,) in gone))
    update = "UPDATE host SET pending = pending - %(gone)s, down_in_run = %(run)s WHERE shard = %(shard)s AND id = %(host)s"
    connection.execute(update, values | {"gone": len(gone)})
