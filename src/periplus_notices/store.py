"""Subscriptions, notices and their delivery, and the facts that notices report."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from periplus.errors import StoreError
from periplus.store.reader import CollectionReader
from periplus.store.sqlite.schema import connect_file, refuse_network_disk
from periplus.values import Row
from periplus_notices.model import Channel, Delivery, Notice, NoticeKind, Subscription

# States of a delivery: waiting -> sent | given up. Invariants: (1) a notice has one row, identified by its key,
# whichever process finds it; (2) the reported facts and the notice are stored in one transaction; (3) a process that
# takes a delivery first postpones it, so that other processes leave it alone, and it is sent again if the process dies.
# So each notice arrives at least once.

DATABASE = "notices.db"
MOST_SUBJECTS = 20  # subjects listed in a notice
MOST_NOTICES = 1_000  # newest notices; older ones are deleted after delivery
HOLD_S = 120.0  # time for which a delivery belongs to the process that took it
# the wait quadruples after each attempt: the last attempt is about nine hours after the first
FIRST_WAIT_S, LONGEST_WAIT_S, MOST_ATTEMPTS = 60.0, 21_600.0, 8
_NOTICE = "n.id, n.key, n.kind, n.collection, n.made, n.subjects, n.count"
_TABLES = """
CREATE TABLE IF NOT EXISTS subscription (
    id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, target TEXT NOT NULL, kinds TEXT NOT NULL, collection TEXT NOT NULL,
    made REAL NOT NULL, secret TEXT NOT NULL, UNIQUE (channel, target, collection));
CREATE TABLE IF NOT EXISTS notice (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, collection TEXT NOT NULL, made REAL NOT NULL,
    subjects TEXT NOT NULL, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS delivery (
    notice_id INTEGER NOT NULL, subscription_id INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'waiting', attempts INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL DEFAULT 0, fault TEXT NOT NULL DEFAULT '', PRIMARY KEY (notice_id, subscription_id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS delivery_waiting ON delivery (next_at) WHERE state = 'waiting';
CREATE TABLE IF NOT EXISTS compared (collection TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (collection, kind)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reported (collection TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, PRIMARY KEY (collection, kind, subject)) WITHOUT ROWID;
"""  # noqa: E501
MOST = 100_000  # facts of one kind
_QUESTIONS = {
    NoticeKind.BROKEN: (
        "SELECT u.text FROM url u JOIN reason r ON r.name = u.reason WHERE r.state = 'failed'"
        " AND u.reason NOT IN ('bug', 'private-address')"
        " UNION SELECT u.text FROM issue i JOIN url u ON u.id = i.related_id"
        " WHERE i.code IN ('broken-link', 'broken-resource')"
        " AND i.run_id = (SELECT max(run_id) FROM issue) LIMIT ?"
    ),
    NoticeKind.VANISHED: (
        "SELECT u.text FROM freshness f JOIN url u ON u.id = f.url_id WHERE f.gone_since IS NOT NULL LIMIT ?"
    ),
    NoticeKind.SITES: "SELECT key FROM site LIMIT ?",
    NoticeKind.SUSPICIOUS: (
        "SELECT 'run ' || id || ': ' || state || CASE WHEN note = '' THEN '' ELSE ', ' || note END FROM run"
        " WHERE state IN ('suspicious', 'failed') OR note LIKE 'login %' LIMIT ?"
    ),
    NoticeKind.PORTAL: "SELECT portal || ': ' || min(url) FROM portal_page GROUP BY portal, entry LIMIT ?",
}


class NoticeStore:
    """The notices of one folder.

    Each call is one transaction. The file contains webhook secrets, so that only its owner may read it.
    """

    def __init__(self, folder: Path) -> None:
        try:
            refuse_network_disk(folder)
            (folder / DATABASE).touch(mode=0o600)
            self._connection = connect_file(folder / DATABASE)
            self._connection.executescript(_TABLES)
        except (OSError, sqlite3.DatabaseError) as error:
            raise StoreError(
                f"cannot store notices in {folder}: {error}. Is the disk full, or the folder read-only?"
            ) from error

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            yield self._connection

    def subscribe(
        self, channel: Channel, target: str, kinds: tuple[NoticeKind, ...], collection: str, now: float
    ) -> tuple[Subscription, str]:
        """Creates a subscription, or changes the kinds of an equal one. Returns it with the webhook secret."""
        upsert = (
            "INSERT INTO subscription (channel, target, kinds, collection, made, secret) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (channel, target, collection) DO UPDATE SET kinds = excluded.kinds"
        )
        with self._transaction() as connection:
            connection.execute(
                upsert, (channel.value, target, ",".join(kinds), collection, now, secrets.token_urlsafe(24))
            )
            find = (
                "SELECT id, channel, target, kinds, collection, made, secret FROM subscription WHERE channel = ?"
                " AND target = ? AND collection = ?"
            )
            row = connection.execute(find, (channel.value, target, collection)).fetchone()
        return _subscription(row[:-1]), str(row[-1])

    def subscriptions(self) -> list[Subscription]:
        return [
            _subscription(row)
            for row in self._connection.execute(
                "SELECT id, channel, target, kinds, collection, made FROM subscription ORDER BY id"
            )
        ]

    def secret_of(self, subscription: int) -> str:
        row = self._connection.execute("SELECT secret FROM subscription WHERE id = ?", (subscription,)).fetchone()
        return str(row[0]) if row else ""

    def unsubscribe(self, subscription: int) -> None:
        """Deletes a subscription. Raises StoreError if it does not exist."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM delivery WHERE subscription_id = ?", (subscription,))
            if not connection.execute("DELETE FROM subscription WHERE id = ?", (subscription,)).rowcount:
                raise StoreError(f"there is no subscription {subscription}; see `periplus notices list`")

    def compare(self, collection: str, run: int, facts: Mapping[NoticeKind, set[str]], now: float) -> list[Notice]:
        """Creates notices of facts that are new since the last call, and stores the current facts.

        The first call for a collection creates none.
        """
        rows = []
        with self._transaction() as connection:
            for kind, present in facts.items():
                first = connection.execute(
                    "INSERT OR IGNORE INTO compared VALUES (?, ?)", (collection, kind.value)
                ).rowcount
                of_kind = (collection, kind.value)
                before = {
                    text
                    for (text,) in connection.execute(
                        "SELECT subject FROM reported WHERE collection = ? AND kind = ?", of_kind
                    )
                }
                connection.executemany(
                    "DELETE FROM reported WHERE collection = ? AND kind = ? AND subject = ?",
                    [(*of_kind, text) for text in before - present],
                )
                connection.executemany(
                    "INSERT INTO reported VALUES (?, ?, ?)", [(*of_kind, text) for text in present - before]
                )
                if (new := sorted(present - before)) and not first:
                    rows.append(self._note(connection, kind, collection, f"{run} {_digest(new)}", (new, now)))
        return [notice for notice in rows if notice is not None]

    def note(self, kind: NoticeKind, collection: str, key: str, subjects: list[str], now: float) -> Notice | None:
        """Creates a notice identified by its key, or returns None if it exists."""
        with self._transaction() as connection:
            return self._note(connection, kind, collection, key, (subjects, now))

    @staticmethod
    def _note(
        connection: sqlite3.Connection, kind: NoticeKind, collection: str, key: str, notice: tuple[list[str], float]
    ) -> Notice | None:
        subjects, now = notice
        full = f"{kind.value} {collection} {key}"
        texts = [text[:2_000] for text in subjects[:MOST_SUBJECTS]]
        insert = "INSERT OR IGNORE INTO notice (key, kind, collection, made, subjects, count) VALUES (?, ?, ?, ?, ?, ?)"
        cursor = connection.execute(
            insert, (full, kind.value, collection, now, json.dumps(texts, ensure_ascii=False), len(subjects))
        )
        if not cursor.rowcount:
            return None
        number = int(cursor.lastrowid or 0)
        wants = (
            f"(collection = '' OR collection = ?2) AND (kinds = '' AND ?3 <> '{NoticeKind.REPORT}'"
            " OR instr(',' || kinds || ',', ',' || ?3 || ',') > 0)"
        )
        send = (
            "INSERT INTO delivery (notice_id, subscription_id, next_at) SELECT ?1, id, ?4"
            f" FROM subscription WHERE {wants}"
        )
        connection.execute(send, (number, collection, kind.value, now))
        old = "SELECT id FROM notice ORDER BY id DESC LIMIT -1 OFFSET ?"
        connection.execute(f"DELETE FROM delivery WHERE state <> 'waiting' AND notice_id IN ({old})", (MOST_NOTICES,))
        connection.execute(
            f"DELETE FROM notice WHERE id IN ({old}) AND id NOT IN (SELECT notice_id FROM delivery)", (MOST_NOTICES,)
        )
        return Notice(number, full, kind, collection, now, tuple(texts), len(subjects))

    def notices(self, *, collection: str = "", most: int = 50) -> list[Notice]:
        """Notices of one collection or of all, newest first."""
        of_one = "WHERE n.collection = ?" if collection else "WHERE ? = ''"
        return [
            _notice(row)
            for row in self._connection.execute(
                f"SELECT {_NOTICE} FROM notice n {of_one} ORDER BY n.id DESC LIMIT ?", (collection, most)
            )
        ]

    def take(self, now: float, most: int = 20) -> list[Delivery]:
        """Takes due deliveries, oldest first. They belong to the caller for HOLD_S."""
        columns = (
            f"{_NOTICE}, s.id, s.channel, s.target, s.kinds, s.collection, s.made, s.secret, "
            "d.attempts, d.state, d.fault"
        )
        joined = "delivery d JOIN notice n ON n.id = d.notice_id JOIN subscription s ON s.id = d.subscription_id"
        find = (
            f"SELECT {columns} FROM {joined} WHERE d.state = 'waiting' AND d.next_at <= ?"
            " ORDER BY d.notice_id, s.id LIMIT ?"
        )
        with self._transaction() as connection:
            deliveries = [_delivery(row) for row in connection.execute(find, (now, most))]
            hold = (
                "UPDATE delivery SET next_at = ?, attempts = attempts + 1 WHERE notice_id = ? AND subscription_id = ?"
            )
            connection.executemany(
                hold, [(now + HOLD_S, delivery.notice.id, delivery.subscription.id) for delivery in deliveries]
            )
        return deliveries

    def end_attempt(self, delivery: Delivery, fault: str, now: float) -> None:
        """Ends an attempt: sent if fault is empty, else retried later or given up. delivery: from `take`."""
        attempts = delivery.attempts + 1
        state = "sent" if not fault else "given up" if attempts >= MOST_ATTEMPTS else "waiting"
        wait_s = min(FIRST_WAIT_S * 4 ** (attempts - 1), LONGEST_WAIT_S)
        update = "UPDATE delivery SET state = ?, fault = ?, next_at = ? WHERE notice_id = ? AND subscription_id = ?"
        with self._transaction() as connection:
            connection.execute(update, (state, fault[:500], now + wait_s, delivery.notice.id, delivery.subscription.id))

    def standing(self) -> dict[int, tuple[int, int, int, str]]:
        """(sent, waiting, given up, last fault) by subscription."""
        counts = ", ".join(f"count(*) FILTER (WHERE state = '{state}')" for state in ("sent", "waiting", "given up"))
        last = (
            "(SELECT fault FROM delivery f WHERE f.subscription_id = d.subscription_id AND fault <> ''"
            " ORDER BY notice_id DESC LIMIT 1)"
        )
        rows = self._connection.execute(
            f"SELECT subscription_id, {counts}, coalesce({last}, '') FROM delivery d GROUP BY subscription_id"
        )
        return {row[0]: row[1:] for row in rows}


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()[:16]


def _subscription(row: Row) -> Subscription:
    number, channel, target, kinds, collection, made_at = row
    # types as in the columns
    return Subscription(
        number, Channel(str(channel)), target,  # type: ignore[arg-type]
        tuple(map(NoticeKind, filter(None, str(kinds).split(",")))), collection, made_at,  # type: ignore[arg-type]
    )  # fmt: skip


def _notice(row: Row) -> Notice:
    number, key, kind, collection, made_at, subjects, count = row
    # types as in the columns
    return Notice(number, key, NoticeKind(str(kind)), collection, made_at, tuple(json.loads(str(subjects))), count)  # type: ignore[arg-type]


def _delivery(row: Row) -> Delivery:
    # types as in the columns
    return Delivery(_notice(row[:7]), _subscription(row[7:13]), *row[13:14], *row[14:])  # type: ignore[arg-type]


def facts(reader: CollectionReader) -> dict[NoticeKind, set[str]]:
    """Current facts by kind, whether or not they were reported."""
    return {
        kind: {text for (text,) in reader.statements.rows(question, (MOST,))} for kind, question in _QUESTIONS.items()
    }
