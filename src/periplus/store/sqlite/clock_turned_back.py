"""What becomes of times that were kept, when the clock is set back? They move with it: else each host would wait until the old time comes again.

A clock that is set forward needs nothing: what waited is due, and leases that seem to be over cost a page each.
"""

from __future__ import annotations

import sqlite3

NOTICED_S = 1.0  # less is a clock being kept right; what waits for so much longer is no harm


def last_known(connection: sqlite3.Connection) -> float:
    """The latest time that the runs so far are known to have reached; 0 without a run."""
    run = connection.execute("SELECT max(max(started), coalesce(max(ended), 0)) FROM run").fetchone()[0]
    visit = connection.execute("SELECT started FROM visit ORDER BY id DESC LIMIT 1").fetchone()
    return max(run or 0.0, visit[0] if visit else 0.0)


def follow(connection: sqlite3.Connection, back_s: float, now: float) -> None:
    """Moves what waits for a time to come, in the transaction of the caller. now: by the clock as it is set now."""
    if back_s <= NOTICED_S:
        return
    connection.execute("UPDATE host SET next_at = next_at - ? WHERE next_at > ?", (back_s, now))
    connection.execute("UPDATE queue SET not_before = not_before - ? WHERE not_before > ?", (back_s, now))
    connection.execute("UPDATE worker SET lease_until = lease_until - ?", (back_s,))
