"""`/health` and `/metrics` of `serve` and `worker`.

`/health` answers everyone with `ok` or `not ok` and nothing else. `/metrics` needs the same role as the screens; its
labels hold names of collections and machines, and no URLs, hosts of the crawl, addresses of databases or secrets.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from periplus.api.collection import Status
from periplus.api.functions import open_collection
from periplus.errors import PeriplusError
from periplus.ui.safety import HEALTH, METRICS, Guard, Locks, needing, run_server
from periplus.ui.users import Role

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"  # the Prometheus text format
FRESH_S = 2.0  # an answer is used again for this time, so that many requests cost the database one reading
CONNECTIONS = 16  # of a worker at once; further ones are answered with 503
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})  # in labels
NOT_OK = "not ok\n"
# name: "type meaning"
_METRICS = {
    "up": "gauge 1 if the collection can be read.",
    "pages_total": "counter Pages requested in all runs.",
    "received_bytes_total": "counter Bytes received in all runs.",
    "urls": "gauge URLs by state and reason; errors have the state failed.",
    "waiting": "gauge Pages, robots.txt files, sitemaps and links in the queue.",
    "waiting_hosts": "gauge Hosts with a queue.",
    "lag_seconds": "gauge How long ago a host without a worker could have been requested again, at most.",
    "size_bytes": "gauge Size of the collection, without segments.",
    "running": "gauge 1 while a crawl runs, 0 while it is paused or none runs.",
    "run": "gauge The last run, with its state.",
    "worker_pages_total": "counter Pages stored by a worker since it joined the run.",
    "worker_leases": "gauge Hosts leased by a worker.",
    "worker_lease_seconds": "gauge Time until a worker's leases expire; negative: expired.",
    "commit_seconds": "summary Duration of a worker's commits.",
}


def metrics_text(collections: Mapping[str, Status | None]) -> str:
    """The metrics in the Prometheus text format 0.0.4. collections: by name; None: it cannot be read."""
    lines = {}
    for name, text in _METRICS.items():
        kind, about = text.split(" ", 1)
        lines[name] = [f"# HELP periplus_{name} {about}", f"# TYPE periplus_{name} {kind}"]
    for collection, status in collections.items():
        for labels, values in _samples(status):
            given = {"collection": collection} | labels
            series = ",".join(f'{key}="{str(text).translate(_ESCAPES)}"' for key, text in given.items())
            for name, value in values.items():
                family = name.removesuffix("_sum").removesuffix("_count")
                lines[family].append(f"periplus_{name}{{{series}}} {float(value)!r}")
    return "\n".join([*chain.from_iterable(lines.values()), ""])


def _samples(status: Status | None) -> Iterator[tuple[dict[str, object], dict[str, float]]]:
    """(labels beside the collection, values by name). Of workers with the same labels, one restarted, the last."""
    yield {}, {"up": status is not None}
    if status is None:
        return
    yield (
        {},
        {
            "pages_total": sum(run.fetched for run in status.runs),
            "received_bytes_total": sum(run.wire_bytes for run in status.runs),
            "waiting": status.entries_waiting,
            "waiting_hosts": status.hosts_waiting,
            "lag_seconds": status.lag_s,
            "size_bytes": status.size_bytes,
            "running": status.running and not status.paused,
        },
    )
    for tally in status.counts:
        yield {"state": tally.state, "reason": tally.reason}, {"urls": tally.urls}
    for run in status.runs[-1:]:
        yield {"run": run.id, "kind": run.kind, "state": status.state}, {"run": 1}
    for (machine, pid), worker in {worker[:2]: worker for worker in status.crew}.items():
        yield (
            {"host": machine, "worker": pid},
            {
                "worker_pages_total": worker.pages,
                "worker_leases": worker.leased_hosts,
                "worker_lease_seconds": worker.lease_s,
                "commit_seconds_sum": worker.commit_s,
                "commit_seconds_count": worker.commits,
            },
        )


def monitoring_routes(
    is_healthy: Callable[[], bool],
    places: Callable[[], Mapping[str, Path | str]],
    clock: Callable[[], float] = time.monotonic,
) -> list[Route]:
    """Routes of `/health` and `/metrics`. places: folders or database addresses of the collections, by name."""
    lock = threading.Lock()

    @functools.lru_cache(2)
    def text(path: str, moment: int) -> str:
        """moment: number of a period of FRESH_S, in which the answer is made once."""
        if path == METRICS:
            return metrics_text({name: _status(place) for name, place in places().items()})
        return "ok\n" if is_healthy() else NOT_OK

    def answer(request: Request) -> PlainTextResponse:
        with lock:
            made = text(request.url.path, int(clock() / FRESH_S))
        return PlainTextResponse(made, 503 if made == NOT_OK else 200, media_type=MEDIA_TYPE)

    return [Route(HEALTH, answer), Route(METRICS, needing(Role.LOOK, answer))]


def _status(place: Path | str) -> Status | None:
    try:
        with open_collection(place) as collection:
            return collection.status(0)
    except PeriplusError:
        return None


def serve_beside(routes: list[Route], locks: Locks, port: int) -> bool:
    """Serves routes in a thread. False: it could not begin, most often because the port is taken."""
    return run_server(Guard(Starlette(routes=routes), locks), locks.host, port, CONNECTIONS, in_thread=True)
