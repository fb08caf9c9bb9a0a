"""What did checks find dead that a crawl did not ask for? As `store.sqlite.checks`: invalid between runs, and within one as the crawl left it."""

from __future__ import annotations

from periplus.store.postgres.connection import Connection

_AS_CRAWLED, _AS_CHECKED = ("was", "was_rule", "was_status"), ("reason", "rule", "status")
# What stands otherwise meanwhile, since a crawl asked for it, stays.
_RESTATE = """
WITH moved AS (
    SELECT u.shard, u.id, u.reason, u.rule, u.status, u.layer, u.first_seen, v.{3} AS new, v.{4} AS new_rule, v.{5} AS new_status
    FROM verdict v JOIN url u ON u.shard = v.shard AND u.id = v.url_id AND u.reason = v.{0} AND u.rule = v.{1}),
kept AS (
    INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, layer)
    SELECT shard, id, %(run)s, reason, rule, status, layer FROM moved
    WHERE first_seen < (SELECT started FROM run WHERE id = %(run)s) ON CONFLICT DO NOTHING),
restated AS (
    UPDATE url u SET reason = m.new, rule = m.new_rule, status = m.new_status FROM moved m WHERE u.shard = m.shard AND u.id = m.id)
INSERT INTO tally SELECT 0, 'reason:' || reason, sum(change)
FROM (SELECT reason, -1 AS change FROM moved UNION ALL SELECT new, 1 FROM moved) c GROUP BY reason
ON CONFLICT (part, name) DO UPDATE SET value = tally.value + excluded.value
"""
_LOCK = "SELECT 1 FROM host WHERE (shard, id) IN (SELECT u.shard, u.host_id FROM verdict v JOIN url u ON u.shard = v.shard AND u.id = v.url_id)"


def lift(connection: Connection, run_id: int) -> None:
    """The URLs stand again as the crawl left them, for the run that begins. Within a transaction."""
    _restate(connection, run_id, _AS_CHECKED, _AS_CRAWLED)


def settle(connection: Connection, run_id: int) -> None:
    """What checks found dead is invalid, for whoever reads the collection after the run. Within a transaction."""
    _restate(connection, run_id, _AS_CRAWLED, _AS_CHECKED)


def _restate(connection: Connection, run_id: int, now: tuple[str, str, str], then: tuple[str, str, str]) -> None:
    """now, then: columns of `verdict`. Hosts are locked in their order, as everywhere."""
    connection.execute(f"{_LOCK} ORDER BY shard, id FOR NO KEY UPDATE".encode())
    connection.execute(_RESTATE.format(*now, *then).encode(), {"run": run_id})
