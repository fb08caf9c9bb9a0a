"""How is a collection in PostgreSQL reached, and what if the server is away for a while?

    address = address_of("postgresql://me@db/crawls?collection=press")
    connection = connect(address)               # waits for a server that is starting; raises StoreError, UsageError
    with connection.transaction(): ...          # statements name tables only: the search path is the collection

What every connection has from us: a transaction that a dead or cut-off client left open ends after IDLE_TRANSACTION_S, so its hosts
are free again; and a client whose server is gone learns of it within TCP_TIMEOUT_S. `autocommit` is on: a transaction is what stands
within `connection.transaction()`, and nothing else holds a lock.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Iterator

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from periplus.errors import StoreError, UsageError
from periplus.settings import VERSION
from periplus.store.postgres.address import Address

log = logging.getLogger(__name__)

Connection = psycopg.Connection[TupleRow]
LOST = (psycopg.OperationalError, psycopg.InterfaceError)  # the server or the way to it; a mistake of ours is a ProgrammingError
IDLE_TRANSACTION_S = 5  # docs/decisions/0040: without it a host stayed locked for hours after a partition
TCP_TIMEOUT_S = 10  # unanswered data; also the time to connect
LOCK_TIMEOUT_S = 30  # our transactions take milliseconds: who waits longer than this waits for somebody frozen
STATEMENT_TIMEOUT_S = 120
FIRST_PATIENCE_S = 10.0  # for a server that was not seen yet: a person waits, and the address may be wrong
PATIENCE_S = 300.0  # for one that was there, and is being restarted, or a standby that takes over
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
OLDEST_SERVER = 150_000  # 15.0


def _parameters(address: Address) -> dict[str, str]:
    """What libpq is told beside the address; what the address says of the same wins."""
    settings = {
        "idle_in_transaction_session_timeout": f"{IDLE_TRANSACTION_S}s", "lock_timeout": f"{LOCK_TIMEOUT_S}s",
        "statement_timeout": f"{STATEMENT_TIMEOUT_S}s", "tcp_user_timeout": f"{TCP_TIMEOUT_S}s", "client_min_messages": "warning",
        "periplus.collection": address.collection,
    }  # fmt: skip
    return {
        "application_name": f"periplus {VERSION}", "connect_timeout": str(TCP_TIMEOUT_S), "tcp_user_timeout": str(TCP_TIMEOUT_S * 1000),
        "keepalives": "1", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3", "client_encoding": "utf8",
        "target_session_attrs": "read-write",
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }  # fmt: skip


def connect(address: Address, *, patience_s: float = FIRST_PATIENCE_S) -> Connection:
    """A connection whose search path is the collection; its tables need not be there yet (`schema.create`, `schema.check`).

    Waits up to patience_s for a server that does not answer. Raises StoreError when it is over, UsageError for what
    waiting would not mend: a wrong password, no such database, an old server.
    """
    for pause_s in pauses(patience_s):
        try:
            return _connect(address)
        except psycopg.Error as error:
            said = str(error).strip().partition("\n")[0] or type(error).__name__
            if not isinstance(error, LOST) or _is_lasting(error):
                raise UsageError(f"{address} cannot be opened: {said}") from None
            if pause_s is None:
                raise StoreError(f"the database of {address} does not answer: {said}. Is the server running?") from None
            log.warning("database away=%s pause_s=%.1f", said, pause_s)
            time.sleep(pause_s)
    raise AssertionError("pauses ends with None")


def pauses(patience_s: float) -> Iterator[float | None]:
    """How long to wait before each further try: growing, and by chance, so that many workers do not come at one moment. None: no more."""
    until = time.monotonic() + patience_s
    longest = FIRST_PAUSE_S
    while time.monotonic() + longest < until:
        yield random.uniform(longest / 2, longest)
        longest = min(LONGEST_PAUSE_S, longest * 2)
    yield None


def _connect(address: Address) -> Connection:
    said = psycopg.conninfo.conninfo_to_dict(address.dsn)
    connection = psycopg.connect(address.dsn, autocommit=True, **{name: value for name, value in _parameters(address).items() if name not in said})  # type: ignore[arg-type]  # all are texts, which its signature does not say of further ones
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        if connection.info.server_version < OLDEST_SERVER:
            raise UsageError(f"{address} is PostgreSQL {connection.info.server_version // 10_000}; periplus needs 15 or newer")
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise UsageError(f"{address} is a database whose encoding is not UTF8: make one with `createdb -E UTF8 -T template0 NAME`")
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(address.collection)))
        stack.pop_all()
    return connection


def _is_lasting(error: psycopg.Error) -> bool:
    """Whether a refusal to connect would be the same in a minute: of the password, the user, the name of the database.

    libpq tells no state for those that come before the session; the words are the server's, in its language, so all else is waited for.
    """
    said = str(error)
    return any(words in said for words in ("password authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry", "invalid "))
