"""URLs per second that 1, 2 and 4 processes lease, complete and discover, on SQLite and on PostgreSQL.

A generated web: hosts of 50 pages, 10 links per page, a fifth of them to other hosts; nothing is fetched, no page is
stored. A worker leases 50 hosts, takes up to 4 URLs of each, and completes them in one transaction with new links.
PostgreSQL runs on the same cores. A rate far below that of one process indicates deadlocks: see docs/decisions/0040.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import load, table

from periplus.api.homes import home_of
from periplus.model.frontier import Batch, Candidate, Completion, HostState, Lease
from periplus.model.ports import RunStore
from periplus.model.visit import Fetched, Headers, Reason, Visit
from periplus.model.web import SiteKey, Url
from periplus.settings import Settings
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_key

TESTS = Path(__file__).parent.parent / "tests"
PAGES, LINKS, FOREIGN = 50, 10, 0.2  # of a host; of a page; of these, to other hosts
HELD, TAKEN = 50, 4  # hosts leased at once; URLs taken of each
SEEN = 50_000  # links cached by a worker, as in a crawl
PAGE = Fetched(200, Headers(), b"")


def candidate(host: int, page: int, depth: int) -> Candidate:
    url = Url(f"http://h{host}.test/{page}")
    return Candidate(url, url_id(url), host_key(url), SiteKey(f"h{host}.test"), Reason.WAITING, depth)


def links(url: Url, hosts: int) -> list[Candidate]:
    rng, own = random.Random(url), int(url.split("/")[2][1:].partition(".")[0])
    return [
        candidate(rng.randrange(hosts) if rng.random() < FOREIGN else own, rng.randrange(PAGES), 1)
        for _ in range(LINKS)
    ]


def state(lease: Lease) -> HostState:
    return HostState(lease, 0.0, 0.001, 1.0, 0, True, "", release=True)


def work(store: RunStore, hosts: int) -> int:
    """Runs until no URL is left; returns the number of completed URLs."""
    name, done, seen = store.join(os.getpid(), time.time()), 0, set[int]()
    while True:
        now = time.time()
        ready = store.ready(HELD, 0.0, now)
        leases = store.lease(name, [host.host_id for host in ready], now) if ready else ()
        if not leases:
            if store.idle(now):
                break
            time.sleep(0.005)
            continue
        ended = []
        for lease in leases:
            for task in store.take(lease, TAKEN, frozenset(), now)[0]:
                found = [one for one in links(task.request.url, hosts) if one.url_id not in seen]
                seen.update(one.url_id for one in found)
                ended.append(
                    Completion(lease, task, Visit(task.request, now, 0.1, PAGE), Reason.OK, candidates=tuple(found))
                )
        if len(seen) > SEEN:
            seen.clear()
        store.commit(name, Batch(tuple(ended), tuple(map(state, leases))), now)
        done += len(ended)
    store.leave(name, time.time())
    return done


def measured(place: Path | str, workers: int, hosts: int) -> tuple[int, float]:
    """(URLs, seconds) of a number of processes on a new collection."""
    home, now = home_of(place), time.time()
    home.prepare("", now)
    run_id = home.begin_run("crawl", (), Settings(), now)
    store = home.store(run_id, Settings())
    store.offer([candidate(host, 0, 0) for host in range(hosts)], (), now)
    store.close()
    words = [sys.executable, __file__, "--child", str(place), str(run_id), str(hosts)]
    crowd = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(workers)]
    told = [tuple(map(float, worker.communicate()[0].split())) for worker in crowd]
    return int(sum(one[0] for one in told)), max(one[2] for one in told) - min(one[1] for one in told)


def cpu_s(server: int = 0) -> float:
    """CPU seconds of ended children and of a server's processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(") ")[2].split()[11:15] if server else []
    return used.ru_utime + used.ru_stime + sum(map(int, fields)) / os.sysconf("SC_CLK_TCK")


def child(place: str, run_id: int, hosts: int) -> None:
    store = home_of(place if "://" in place else Path(place)).store(run_id, Settings())
    began = time.monotonic()
    print(work(store, hosts), began, time.monotonic())
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--fsync", action="store_true", help="let PostgreSQL wait for the disk, as in real life")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], int(options.child[1]), int(options.child[2]))
        return
    sys.path.insert(0, str(TESTS))
    from postgres_server import own_server

    rows: list[tuple[object, ...]] = []
    with (
        contextlib.closing(own_server(fsync="on" if options.fsync else "off", shared_buffers="256MB")) as server,
        tempfile.TemporaryDirectory() as temp,
    ):
        for workers in options.workers:
            begun = cpu_s()
            folder = measured(Path(temp) / str(workers), workers, options.hosts)
            folder_ms = (cpu_s() - begun) * 1000 / folder[0]
            dsn, begun = server.dsn(), cpu_s(server.process.pid)
            stored = measured(f"{dsn}{'&' if '?' in dsn else '?'}collection=bench_{workers}", workers, options.hosts)
            stored_ms = (cpu_s(server.process.pid) - begun) * 1000 / stored[0]
            rates = folder[0] / folder[1], stored[0] / stored[1]
            rows.append((workers, rates[0], f"{folder_ms:.3f}", rates[1], f"{stored_ms:.3f}", rates[1] / rates[0]))
        deadlocks = server.said().count("deadlock detected")
    print(f"{options.hosts:,} hosts of {PAGES} pages, {LINKS} links a page ({load()}); {deadlocks} deadlocks")
    print(
        table(
            ("workers", "SQLite: URLs/s", "CPU ms a URL", "PostgreSQL: URLs/s", "CPU ms, server's too", "ratio"), rows
        )
    )


if __name__ == "__main__":
    main()
