"""The checks in tests/judge.py find each fault, and none in a correct crawl."""

from __future__ import annotations

import sqlite3

import pytest

import judge
from testweb.log import Entry, Log


def log(*requests: tuple[float, float, str, int], host: str = "a.test") -> Log:
    """requests: (arrived, ended, target, at once)."""
    return Log(
        [
            Entry(0.0, arrived, ended, host, "GET", target, "", (), 200, 1, at_once, 1)
            for arrived, ended, target, at_once in requests
        ]
    )


POLITE = log((0.0, 0.1, "/robots.txt", 1), (1.0, 1.1, "/", 1), (2.0, 2.1, "/a", 1))


def test_a_polite_log_has_no_faults():
    assert judge.early_starts(POLITE, 1.0) == judge.meetings(POLITE) == judge.overlaps(POLITE, 1.0) == []
    assert judge.repeats(POLITE) == 0
    assert judge.never_asked(POLITE, {("a.test", "/"), ("a.test", "/a")}) == []
    assert judge.longest_pause(POLITE, "a.test", 0.5, 4.0) == 2.0


def test_each_fault_of_a_log_is_found():
    assert len(judge.early_starts(log((0.0, 0.1, "/", 1), (0.9, 1.0, "/a", 1)), 1.0)) == 1
    assert len(judge.meetings(log((0.0, 2.0, "/", 1), (1.0, 1.1, "/a", 2)))) == 1
    assert len(judge.overlaps(log((0.0, 2.0, "/", 1), (1.0, 1.1, "/a", 2)), 1.0)) == 1
    assert judge.repeats(log((0.0, 0.1, "/", 1), (1.0, 1.1, "/", 1), (2.0, 2.1, "/", 1))) == 2
    assert judge.never_asked(POLITE, {("a.test", "/b")}) == ["a.test/b"]


def test_hosts_are_checked_separately():
    both = Log([*log((0.0, 0.5, "/", 1)), *log((0.1, 0.6, "/", 1), host="b.test")])
    assert judge.early_starts(both, 1.0) == judge.overlaps(both, 1.0) == []
    assert judge.repeats(both) == 0


TABLES = """
CREATE TABLE host (id, pending, lease_by);
CREATE TABLE queue (host_id, url_id);
CREATE TABLE url (id, reason);
CREATE TABLE link (source, target);
CREATE TABLE page (url_id);
CREATE TABLE visit (url_id);
CREATE TABLE worker (name);
CREATE TABLE run (id, state);
INSERT INTO host VALUES (1, 0, NULL);
INSERT INTO url VALUES (1, 'ok'), (2, 'scope');
INSERT INTO page VALUES (1);
INSERT INTO visit VALUES (1);
INSERT INTO link VALUES (1, 2);
INSERT INTO run VALUES (1, 'done');
"""


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("SELECT 1", []),
        ("INSERT INTO host VALUES (2, 3, NULL)", ["pending is not the number of entries", "work left"]),
        ("UPDATE url SET reason = 'waiting' WHERE id = 2", ["waiting without an entry"]),
        ("INSERT INTO queue VALUES (1, 9)", ["pending is not the number of entries", "an entry of nothing"]),
        ("INSERT INTO link VALUES (1, 9)", ["a link to nothing"]),
        ("INSERT INTO link VALUES (2, 1)", ["a link from no page"]),
        ("INSERT INTO page VALUES (2)", ["a page without a visit"]),
        ("DELETE FROM page", ["read, and no page"]),
        ("UPDATE host SET lease_by = 'me'", ["a lease left"]),
        ("INSERT INTO worker VALUES ('me')", ["a worker left"]),
        ("UPDATE run SET state = 'running'", ["a run that never ended"]),
    ],
)
def test_each_fault_of_the_tables_is_found(damage, expected):
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES + damage)
    assert [
        line.partition(":")[0] for line in judge.unsound(lambda select: connection.execute(select).fetchall())
    ] == expected
    connection.close()
