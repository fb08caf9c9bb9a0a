"""A crawl that a cluster's machines carry loses nothing when one of them dies, and hurries no host.

Run by `make test-spark`.

Judged from the server's log and the tables.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time

import pytest
from crews import BODIES
from postgres_voyage import StoredCollection
from voyage import QUICK, command, environment, flags_for, served_apart, told

import judge
from periplus.model.visit import Reason
from postgres_server import own_server
from spark_cluster import cluster, why_no_spark
from testweb.log import read_log

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(why_no_spark()), reason=why_no_spark())]

DELAY_S = 0.25
LEASE_S = 4.0
LIMIT_S = 400.0
WEB = "linked seed=7 sites=6 pages=60 links_between=12 links_per_page=8"


def free_port():
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def store():
    """A collection in a database that executors reach by TCP."""
    server = own_server(port=free_port())
    try:
        yield server.dsn() + "?collection=carried"
    finally:
        server.close()


def hosts_of(web):
    return tuple(sorted({url.split("/")[2].partition(":")[0] for url in web.truth["pages"]}))


def pages_of(web):
    parts = [url.split("/", 3) for url in web.truth["pages"]]
    return {(part[2].partition(":")[0], "/" + part[3]) for part in parts}


def held_by(collection, pids):
    """How many hosts are in the hands of workers with these pids."""
    rows = collection.ask("SELECT w.pid FROM host h JOIN worker w ON w.name = h.lease_by")
    return sum(pid in pids for (pid,) in rows)


def until(question, driver, what):
    end = time.monotonic() + LIMIT_S
    while not question():
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.05)


@contextlib.contextmanager
def driver_of(web, store, on, folder):
    """The command, which has the cluster crawl all hosts of the web; killed at the end if it still does."""
    hosts = hosts_of(web)
    limits = {"total_timeout_s": 2.0, "first_byte_timeout_s": 2.0, "connect_timeout_s": 2.0, "lease_s": LEASE_S}
    flags = [*flags_for(web.resolve, hosts, **QUICK | limits | {"delay_s": DELAY_S, "workers": 6}), "--no-sitemaps"]
    words = command("crawl", *(web.url(host) for host in hosts), "-c", store, "--on", on, *flags)
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=folder
    ) as driver:
        try:
            yield driver
        finally:
            driver.kill()


def judged(web, store, repeats):
    """Whole, polite and sound."""
    log, collection = read_log(web.log_file), StoredCollection(store)
    print(f"{judge.repeats(log)} pages asked for again of {len(pages_of(web))}")
    assert judge.never_asked(log, pages_of(web)) == []
    assert judge.repeats(log) <= repeats
    assert judge.early_starts(log, DELAY_S) == []
    assert judge.unsound(collection.ask, (*judge.ALWAYS, BODIES)) == []
    assert set(collection.reasons.values()) == {Reason.OK}
    return collection


def test_a_killed_machine_loses_nothing_and_hurries_nobody(tmp_path, store):
    """Two machines of one core; one that holds hosts is killed, with all that runs on it,
    when a fifth of the pages is there.
    """
    with (
        served_apart(WEB, tmp_path) as web,
        cluster(tmp_path / "cluster") as made,
        driver_of(web, store, made.url, tmp_path) as driver,
    ):
        collection, victim = StoredCollection(store), made.workers[0]
        until(lambda: web.lines() > len(pages_of(web)) / 5, driver, "a fifth of the pages")
        until(lambda: held_by(collection, made.family(victim)), driver, "hosts in the victim's hands")
        held = held_by(collection, made.family(victim))
        made.kill(victim)
        said, errors = driver.communicate(timeout=LIMIT_S)
        assert driver.returncode == 0, (said, errors)
        judged(web, store, held * 5)
        assert judge.unsound(collection.ask, judge.AT_THE_END) == []


def test_after_a_killed_driver_the_same_command_goes_on(tmp_path, store):
    with served_apart(WEB, tmp_path) as web, cluster(tmp_path / "cluster", workers=1, cores=2) as made:
        with driver_of(web, store, made.url, tmp_path) as driver:
            until(lambda: web.lines() > len(pages_of(web)) / 5, driver, "a fifth of the pages")
        before = web.lines()
        with driver_of(web, store, made.url, tmp_path) as again:
            said, errors = again.communicate(timeout=LIMIT_S)
            assert again.returncode == 0, (said, errors)
        collection = judged(web, store, 5 * len(hosts_of(web)))
        assert web.lines() > before
        assert [state for (state,) in collection.ask("SELECT state FROM run ORDER BY id")][-1] == "done"
        assert collection.ask("SELECT count(*) FROM host WHERE lease_by IS NOT NULL") == [(0,)]


def test_ctrl_c_ends_the_run_and_the_workers_store_what_they_have(tmp_path, store):
    with served_apart(WEB, tmp_path) as web, driver_of(web, store, "local[2]", tmp_path) as driver:
        until(lambda: web.lines() > 30, driver, "some pages")
        driver.send_signal(signal.SIGINT)
        said, errors = driver.communicate(timeout=LIMIT_S)
        collection = StoredCollection(store)
        assert driver.returncode == 130, (said, errors)
        assert collection.ask("SELECT state, note FROM run") == [("stopped", "stopped by the user")]
        assert (
            judge.unsound(
                collection.ask, (*judge.ALWAYS, *(one for one in judge.AT_THE_END if one.what != "work left"))
            )
            == []
        )
        asked = sum(judge.pages_of(read_log(web.log_file)).values())
        assert collection.ask("SELECT count(*) FROM page") == [(asked,)]


def test_without_a_database_there_is_nothing_to_join(tmp_path):
    ran = told("crawl", "https://example.org/", "--on", "spark://127.0.0.1:1", cwd=tmp_path)
    assert ran.returncode == 2
    assert "--on needs -o ADDRESS" in ran.stderr
    assert list(tmp_path.iterdir()) == []
