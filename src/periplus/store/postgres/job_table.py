"""The job queue in PostgreSQL, for workers on many machines."""

from __future__ import annotations

import time

from periplus.store.job_queue import JobQueue
from periplus.store.postgres.connection import Session
from periplus.store.postgres.statements import SessionStatements


def database_queue(session: Session) -> JobQueue:
    """The jobs of a collection whose tables exist. session: closed with the queue.

    The times passed to the queue should come from `DatabaseClock`. All operations are idempotent, so that they can be
    repeated after a failure of the server.
    """
    return JobQueue(SessionStatements(session))


class DatabaseClock:
    """A `model.ports.Clock` with the time of the database, shared by all machines."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now(self) -> float:
        row = self._session.run(
            lambda connection: connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        )
        return float(str(row[0])) if row else 0.0

    def monotonic(self) -> float:
        return time.monotonic()
