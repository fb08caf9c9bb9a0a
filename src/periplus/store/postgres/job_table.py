"""The queue of jobs in PostgreSQL, for workers on many machines."""

from __future__ import annotations

import time

from periplus.store.job_queue import JobQueue
from periplus.store.postgres.connection import Session
from periplus.store.postgres.statements import SessionStatements


def database_queue(session: Session) -> JobQueue:
    """The jobs of a collection that has its tables. session: closed with the queue.

    The times that are passed to the queue should be the database's: `DatabaseClock`. A transaction that a lost server
    broke is done again; each bears it.
    """
    return JobQueue(SessionStatements(session))


class DatabaseClock:
    """The time of the database, which all who share it go by, whatever their own clocks say. A `model.ports.Clock`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now(self) -> float:
        row = self._session.run(
            lambda connection: connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        )
        return float(str(row[0])) if row else 0.0

    def monotonic(self) -> float:
        return time.monotonic()
