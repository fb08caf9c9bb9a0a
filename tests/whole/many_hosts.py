"""Cost of a crawl of very many hosts, by one worker, two pages each, without network: `many_hosts.py FOLDER HOSTS`.

Prints as JSON: hosts, stored pages, seconds and memory; CPU time per page in the first and in the last tenth.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

from fakes import FakeClock, FakeTransport, Scripted, own_turns
from periplus.acquire.choosing import SiteTurns
from periplus.acquire.discovery import Aliases, Discovery
from periplus.acquire.leases import WorkerDeps
from periplus.acquire.worker import Worker
from periplus.model.visit import Purpose, Request
from periplus.model.web import Url
from periplus.schedule.traps import TrapDetector
from periplus.settings import settings_from
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.urls.scope import site_scope


def answer(request: Request) -> Scripted:
    if request.purpose is not Purpose.PAGE:
        return Scripted(status=404)
    return Scripted(f'<html><title>{request.url}</title><body><a href="/2">two</a><p>words of {request.url}'.encode())


class CountingTransport(FakeTransport):
    """Records only the times of requests."""

    def start(self, request: Request, before: float = math.inf) -> None:
        super().start(request, before)
        if request.purpose is Purpose.PAGE:
            self.times.append(time.process_time())


def peak_mib() -> float:
    """Peak memory of this process; getrusage would include the parent process."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def main(folder: Path, hosts: int) -> dict[str, float]:
    settings = settings_from({"sitemaps": False, "trap_window": 0, "index": False, "commit_interval_s": 60.0})
    starts = [Url(f"http://h{number}.example/") for number in range(hosts)]
    clock = FakeClock()
    schema.create(folder)
    run_id = FolderHome(folder).begin_run("crawl", starts[:1], settings, clock.now())
    store = SqliteCrawlStore(folder, run_id, settings.budget, settings.storage)
    scope = site_scope(starts, settings.scope)
    before = peak_mib()
    began = time.process_time()
    store.offer(Discovery(scope, settings).of_starts(starts), (), clock.now())
    offered = time.process_time()
    transport = CountingTransport(clock, answer)
    transport.times = []
    deps = WorkerDeps(
        store,
        transport,
        clock,
        SiteTurns(50),
        lambda memory, past: TrapDetector(0, 0, memory, past),
        scope,
        frozenset(),
        Aliases(),
        own_turns(8, 0.5),
    )
    Worker(deps, settings).run(lambda: transport.started.clear() or False)
    counts = store.counts()
    idle = store.idle(clock.now())
    store.close()
    tenth, times = len(transport.times) // 10, transport.times
    return {
        "hosts": hosts,
        "pages": counts.by_reason["ok"],
        "idle": idle,
        "offer_us": (offered - began) / hosts * 1e6,
        "page_us": (time.process_time() - offered) / len(times) * 1e6,
        "first_us": (times[tenth] - times[0]) / tenth * 1e6,
        "last_us": (times[-1] - times[-tenth]) / tenth * 1e6,
        "memory_mib": peak_mib(),
        "before_mib": before,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
