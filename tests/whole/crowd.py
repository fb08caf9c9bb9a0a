"""A worker without network: it leases, takes, completes and commits; all pages link to the same few hosts.

Run as a program: `crowd.py PLACE RUN_ID LINKED_HOSTS`, PLACE a folder or the address of a database, to the end of the
crawl; prints the number of stored pages, and start and end time.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from contracts.crawl_values import batch, candidate, completion, state
from periplus.model.ports import RunStore
from periplus.settings import Budget, Storage
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus_postgres.address import address_of
from periplus_postgres.frontier import PostgresCrawlStore

KEEPING = Storage(lease_s=60.0)
LINKS = 20  # per page, each to another of the few hosts
NAP_S = 0.02  # of a worker without a free host, so that idle workers use little CPU
HELD = 10  # hosts at a time


def linked(url: str, few: int) -> list[object]:
    """Links of a page: to shared URLs of the few hosts, and to one unique URL."""
    rng = random.Random(url)
    return [candidate(f"http://few{at % few}.test/{rng.randrange(200)}", 1) for at in range(LINKS)]


def opened(place: str, run_id: int) -> RunStore:
    """A store of the run, in its folder or its database."""
    if "://" in place:
        return PostgresCrawlStore(address_of(place), run_id, Budget(), KEEPING)
    return SqliteCrawlStore(Path(place), run_id, Budget(), KEEPING)


def work(place: str, run_id: int, few: int) -> int:
    """Runs until no work is left; returns the number of stored pages."""
    store = opened(place, run_id)
    name, done = store.join(os.getpid(), time.time()), 0
    while not store.idle(time.time()):
        ready = store.ready(HELD, 0.0, time.time())
        leases = store.lease(name, [host.host_id for host in ready], time.time()) if ready else ()
        if not leases:
            time.sleep(NAP_S)
            continue
        ended = []
        for lease in leases:
            tasks, _ = store.take(lease, 10, frozenset(), time.time())
            ended += [
                completion(lease, task, candidates=tuple(linked(task.request.url, few) if task.priority == 0 else ()))
                for task in tasks
            ]
        lost = store.commit(name, batch(*ended, hosts=tuple(state(lease, 0.0) for lease in leases)), time.time())
        assert not lost
        done += len(ended)
    store.leave(name, time.time())
    store.close()
    return done


if __name__ == "__main__":
    began = time.monotonic()
    print(work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), began, time.monotonic(), flush=True)
