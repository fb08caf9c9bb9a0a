"""What becomes of the part of a to-do list whose origin is given up? It is dropped, until a new run."""

from __future__ import annotations

from periplus.model.freshness import Finding
from periplus.model.frontier import GivenUp
from periplus.model.visit import CHECKS, Purpose, Request, Skipped, Visit
from periplus.model.web import Url
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.hosts import Holding
from periplus.store.postgres.ledger import Ledger, Run
from periplus.store.rows import visit_row
from periplus.store.standing import RECHECK


def drop(connection: Connection, ledger: Ledger, run: Run, host: Holding, given_up: GivenUp) -> None:
    """The host is locked, and all else of the transaction is written but visits and sums. Origins of one host differ in their scheme."""
    values = {"shard": host.shard, "host": host.id, "run": run.id, "started": run.started, "reason": given_up.reason.value, "rule": given_up.rule}
    values["scheme"] = given_up.origin[:5]
    text = "coalesce(text, (SELECT u.text FROM url u WHERE u.shard = queue.shard AND u.id = queue.url_id))"
    listed = f"FROM queue WHERE shard = %(shard)s AND host_id = %(host)s AND left({text}, 5) = %(scheme)s"
    pages = f"SELECT url_id {listed} AND purpose = 'page'"
    waiting = f"reason = 'waiting' AND shard = %(shard)s AND id IN ({pages})"
    keep = f"SELECT shard, id, %(run)s, reason, rule, status, layer FROM url WHERE {waiting} AND first_seen < %(started)s"
    connection.execute(f"INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, layer) {keep} ON CONFLICT DO NOTHING", values)
    dropped = connection.execute(f"UPDATE url SET reason = %(reason)s, rule = %(rule)s WHERE {waiting}", values).rowcount
    ledger.tallies["reason:waiting"] -= dropped
    ledger.tallies["reason:" + given_up.reason.value] += dropped
    gone = connection.execute(f"DELETE {listed} RETURNING purpose, text", values).fetchall()
    ledger.count_finding(Finding.UNREACHED, sum(purpose == RECHECK for purpose, _ in gone))
    outcome = Skipped(given_up.reason, given_up.rule)  # links' targets have no reason of their own: that they were not asked for is told by a visit
    for purpose, target in gone:
        if purpose in CHECKS:
            ledger.visit_row(host.shard, visit_row(run.id, 0, Visit(Request(Url(target), Purpose(purpose)), ledger.now, 0.0, outcome)))
    update = "UPDATE host SET pending = pending - %(gone)s WHERE shard = %(shard)s AND id = %(host)s"
    connection.execute(update, values | {"gone": len(gone)})
