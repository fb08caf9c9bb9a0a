"""One crawl of more than fifty foreign hosts, each with its own fault: pages are fetched, faults reported."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
from urllib.parse import urlsplit

import pytest
from fault_hosts import CONTROL, fault_hosts, fault_web
from voyage import Collection, command, environment, until
from worlds import without_session

from periplus.model.visit import Reason
from testweb import serve

CRAWL_S = 1500.0
GAP_S = 0.45  # half a second between two requests, less the difference of two clocks on a busy machine
DEAF = {"drip.test", "silent.test", "silent-page.test"}  # servers that continue an answer after the client left

pytestmark = pytest.mark.real


def test_there_are_more_than_fifty():
    assert len(fault_hosts()) > 55


def run(words, *, kill_when=None):
    """Runs the command, or kills it with its workers once kill_when holds. Returns the exit code."""
    process = subprocess.Popen(words, env=environment(), start_new_session=True)
    try:
        if kill_when is not None:
            until(lambda: process.poll() is not None or kill_when(), "requests enough")
            os.killpg(process.pid, signal.SIGKILL)
        return process.wait(CRAWL_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("kills", [0, 2])
def test_each_host_is_crawled_as_far_as_possible(tmp_path, kills):
    with serve(fault_web(fault_hosts())) as server:
        key = truth_of(server)
        starts = tmp_path / "starts.txt"
        starts.write_text("".join(f"http://{host}:{server.port}/\n" for host in key), "utf-8")
        words = command(
            "crawl",
            "-i",
            starts,
            "-o",
            tmp_path / "c",
            "-q",
            "--allow-private",
            "--resolve",
            server.resolve[0],
            "--per-address",
            "100",
        )
        for kill in range(kills):
            run(words, kill_when=lambda wanted=(kill + 1) * 150: len(server.log) > wanted)
        assert run(words) == 0
        log = server.log
        wrong = [
            fault
            for host, told in key.items()
            for fault in faults_of(host, told, server, Collection(tmp_path / "c"), kills)
        ]
        if not kills:
            wrong += [
                f"{host}: {min(log.gaps(host)):.3f} s between two requests"
                for host in key
                if log.gaps(host) and min(log.gaps(host)) < GAP_S
            ]
            wrong += [
                f"{host}: more than one request at once"
                for host in key
                if log.max_at_once(host) > 1 and host not in DEAF
            ]
        wrong += [
            f"{host}: robots.txt was not the first"
            for host in key
            if log.targets(host)[:1] not in ([], ["/robots.txt"])
        ]
    assert not wrong, "\n".join(wrong)


def truth_of(server):
    """The expected results, from the control host."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
        connection.request("GET", "/truth", headers={"Host": f"{CONTROL}:{server.port}"})
        return json.load(connection.getresponse())


def faults_of(host, told, server, collection, kills):
    """Faults in the results of a host."""
    rows = {url: row for url, row in collection.urls.items() if urlsplit(url).hostname == host}
    for url, reason in told["reasons"].items():
        if url.startswith(f"http://{host}:") and (url not in rows or rows[url].reason.value != reason):
            yield (
                f"{url} is {rows[url].reason.value + ' ' + rows[url].rule if url in rows else 'not there'}, not "
                f"{reason}"
            )
    read = {without_session(url.partition(str(server.port))[2]) for url, row in rows.items() if row.reason is Reason.OK}
    lost = set(told["pages"]) - read
    if lost:
        yield f"{host}: lost {sorted(lost)[:5]}"
    asked = len(server.log.targets(host))
    if asked > told["most"] * (1 + kills):
        yield f"{host}: {asked} requests, {told['most']} at most"
