"""`/health` and `/metrics` of `serve` and `worker`.

`/health` answers everyone with `ok` or `not ok` and nothing else. `/metrics` needs the same role as the screens; its
labels hold names of collections and machines, and no URLs, hosts of the crawl, addresses of databases or secrets.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from periplus.api.collection import Status
from periplus.api.functions import open_collection
from periplus.errors import PeriplusError
from periplus.ui.safety import HEALTH, METRICS, Guard, Locks, needing, serve_in_thread
from periplus.ui.users import Role

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"  # the Prometheus text format
FRESH_S = 2.0  # an answer is used again for this time, so that many requests cost the database one reading
CONNECTIONS = 16  # of a worker at once; further ones are answered with 503
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})  # in labels
OK, NOT_OK = "ok\n", "not ok\n"
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
    values: dict[str, dict[str, float]] = {name: {} for name in _METRICS}  # by metric and series: each has one value
    for collection, status in collections.items():
        for name, value, labels in _samples(status):
            given = {"collection": collection} | labels
            series = f"periplus_{name}{{{','.join(f'{key}={_quoted(str(text))}' for key, text in given.items())}}}"
            values[name if name in values else name.rpartition("_")[0]][series] = value
    lines = []
    for name, series_values in values.items():
        kind, _, meaning = _METRICS[name].partition(" ")
        lines += [f"# HELP periplus_{name} {meaning}", f"# TYPE periplus_{name} {kind}"]
        lines += [f"{series} {float(value)!r}" for series, value in series_values.items()]
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _samples(status: Status | None) -> Iterator[tuple[str, float, dict[str, object]]]:
    """(name, value, labels beside the collection). Of workers with the same labels, one restarted, the last counts."""
    yield "up", status is not None, {}
    if status is None:
        return
    yield "pages_total", sum(run.fetched for run in status.runs), {}
    yield "received_bytes_total", sum(run.wire_bytes for run in status.runs), {}
    for tally in status.counts:
        yield "urls", tally.urls, {"state": tally.state, "reason": tally.reason}
    yield "waiting", status.entries_waiting, {}
    yield "waiting_hosts", status.hosts_waiting, {}
    yield "lag_seconds", status.lag_s, {}
    yield "size_bytes", status.size_bytes, {}
    yield "running", status.running and not status.paused, {}
    for run in status.runs[-1:]:
        yield "run", 1, {"run": run.id, "kind": run.kind, "state": status.state}
    for worker in status.crew:
        labels: dict[str, object] = {"host": worker.machine, "worker": worker.pid}
        yield "worker_pages_total", worker.totals.pages, labels
        yield "worker_leases", worker.leased_hosts, labels
        yield "worker_lease_seconds", worker.lease_s, labels
        yield "commit_seconds_sum", worker.totals.commit_s, labels
        yield "commit_seconds_count", worker.totals.batches, labels


def monitoring_routes(
    is_healthy: Callable[[], bool],
    places: Callable[[], Mapping[str, Path | str]],
    clock: Callable[[], float] = time.monotonic,
) -> list[Route]:
    """Routes of `/health` and `/metrics`. places: folders or database addresses of the collections, by name."""
    lock = threading.Lock()

    def recent(path: str) -> str:
        with lock:
            return answer(path, int(clock() / FRESH_S))

    @functools.lru_cache(2)
    def answer(path: str, moment: int) -> str:
        """moment: number of a period of FRESH_S, in which the answer is made once."""
        if path == METRICS:
            return metrics_text({name: _status(place) for name, place in places().items()})
        return OK if is_healthy() else NOT_OK

    def health(request: Request) -> Response:
        text = recent(HEALTH)
        return PlainTextResponse(text, 200 if text == OK else 503)

    def metrics(request: Request) -> Response:
        return PlainTextResponse(recent(METRICS), media_type=MEDIA_TYPE)

    return [Route(HEALTH, health), Route(METRICS, needing(Role.LOOK, metrics))]


def _status(place: Path | str) -> Status | None:
    try:
        with open_collection(place) as collection:
            return collection.status(0)
    except PeriplusError:
        return None


def serve_beside(routes: list[Route], locks: Locks, port: int) -> bool:
    """Serves routes in a thread. False: it could not begin, most often because the port is taken."""
    return serve_in_thread(Guard(Starlette(routes=routes), locks), locks.host, port, CONNECTIONS)
