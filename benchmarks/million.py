"""What does a large web cost, end to end: its crawl with index, and everything that is asked of it afterwards?

    .venv/bin/python benchmarks/million.py                                # 1,000,000 pages in a folder
    .venv/bin/python benchmarks/million.py --store postgresql             # in a server of our own
    .venv/bin/python benchmarks/million.py --store postgresql://...       # in that of somebody
    .venv/bin/python benchmarks/million.py --pages 50000 --steps crawl map

The web is that of small_pages.py. What is finished stands in a file beside the collection, so that the same command
goes on after a stop, and says so. A step that fails is a row with its exit code; the next ones are tried all the same.
Everything is below --work: a million pages take some 10 GB in a folder, 20 in PostgreSQL; --fresh deletes it first.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import product
from corpora import CACHE
from measure import MIB, SHARED_SAMPLE_S, Family, as_installed, family_cpu_s, load, proportional_bytes, run, table
from serving import Host, Site, free_port
from small_pages import FIRST_ADDRESS, host_name, vocabulary

HERE = Path(__file__).parent
READY_S = 60.0
SCREEN_S = 600.0  # until a screen is whole
AGAIN_S = 0.5  # between two looks at one that is being made
WAITING = b'role="status" data-again'  # on a screen that is asked for again until it is there
PLAN = ("pages", "hosts", "first", "links", "workers", "no_index", "store")
POSTGRES = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "256MB", "max_wal_size": "4GB"}
HEADS = ("step", "wall s", "CPU s", "server CPU s", "peak MiB", "server MiB", "disk MiB", "exit", "note")


@dataclass(frozen=True, slots=True)
class Row:
    """What one step cost. cpu_s, peak_mib: of the command and its children; the web's server is no part of them."""

    what: str
    wall_s: float
    cpu_s: float
    server_cpu_s: float  # of the database; without one, of the web's server
    peak_mib: float  # PSS of all its processes at one moment
    server_mib: float
    disk_mib: float  # of the collection afterwards
    exit_code: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where everything is. database: the id of the server of our own, 0 for none."""

    work: Path
    store: str  # a folder or an address
    words: str  # of a query: a frequent word and a rare one
    limit_s: float
    database: int = 0

    def disk_mib(self) -> float:
        kept = self.work / ("server/data" if self.database else "kept")
        return sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) / MIB

    def out(self, name: str) -> str:
        return str(self.work / "out" / name)


def measured(place: Place, what: str, words: list[str], server: int = 0) -> Row:
    """One command. server: the id of a process whose CPU is told apart."""
    server = server or place.database
    before = family_cpu_s(server) if server else 0.0
    watch = Family(server, proportional_bytes, SHARED_SAMPLE_S) if server else None
    cost = run(words, core=None, cwd=place.work, shared=True, limit_s=place.limit_s)
    peak = watch.end() / MIB if watch else 0.0
    spent = family_cpu_s(server) - before if server else 0.0
    lines = [line for line in cost.said.strip().splitlines() if line.strip()]
    note = lines[-1].strip()[:100] if lines and cost.exit_code else ""
    return Row(what, cost.wall_s, cost.cpu_s, spent, cost.rss_bytes / MIB, peak, place.disk_mib(), cost.exit_code, note)


def command(name: str, words: list[str], place: Place) -> Iterator[Row]:
    yield measured(place, name, [str(product.COMMAND), *words, "-c", place.store])


def crawl(options: argparse.Namespace, port: int, place: Place) -> Iterator[Row]:
    """Of all hosts; the web is served for so long. The note says how many pages the collection then has."""
    hosts = [
        Host(Site(host_name(number), place.work), f"127.0.0.{FIRST_ADDRESS + number}", port)
        for number in range(options.hosts)
    ]
    words = [sys.executable, str(HERE / "small_pages.py"), "--port", str(port)]
    words += [f"--{name}={getattr(options, name)}" for name in ("pages", "hosts", "first", "links")]
    asked = product.by_name(hosts, place.store, options.workers)
    asked = replace(asked, starts=asked.starts[:1], scope="domain", index=not options.no_index)
    with subprocess.Popen(words, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n", "the web is not served; is its port taken?"
            row = measured(place, "crawl", product.command(asked), 0 if place.database else server.pid)
        finally:
            server.terminate()
    yield replace(row, note=row.note or pages_read(place))


def pages_read(place: Place) -> str:
    """How many pages the collection has, as it says itself."""
    status = product.status(place.store)
    counts = {one["reason"]: one["urls"] for one in status.get("counts", [])}
    return f"{counts.get('ok', 0):,} pages of {status.get('known', 0):,} URLs; {status.get('error', '')}".strip("; ")


def screens(place: Place) -> Iterator[Row]:
    """The first look at each, in one server of the interface: until it answers, and until it is whole."""
    port = free_port()
    words = [str(product.COMMAND), "serve", place.store, "--port", str(port), "--no-workers"]
    started = time.monotonic()
    silence = subprocess.DEVNULL
    with subprocess.Popen(words, stdout=silence, stderr=silence, env=as_installed()) as child:
        watch = Family(child.pid, proportional_bytes, SHARED_SAMPLE_S)
        base = f"http://127.0.0.1:{port}"
        try:
            names = collections(base, started + READY_S, child)
            yield screen_row("serve: overview", time.monotonic() - started, child.pid, place, 0.0, watch)
            for what, address in (
                ("pages", "t/pages"), ("map", "site"), ("issues", "t/issues"), ("by cause", "t/faults"),
                ("links", "t/links"), ("search", "search?" + urlencode({"q": place.words})),
                ("search again", "search?" + urlencode({"q": place.words})),
            ):  # fmt: skip
                began, worked = time.monotonic(), family_cpu_s(child.pid)
                first_s, code, note = looked_at(f"{base}/c/{names[0]}/{address}", began + SCREEN_S)
                row = screen_row(f"serve: {what}", time.monotonic() - began, child.pid, place, worked, watch)
                yield replace(row, exit_code=code, note=note or f"first answer {first_s:.2f} s")
        finally:
            child.terminate()
            watch.end()


def screen_row(what: str, wall_s: float, pid: int, place: Place, worked_s: float, watch: Family) -> Row:
    peak = watch.largest / MIB
    return Row(what, wall_s, family_cpu_s(pid) - worked_s, 0.0, peak, 0.0, place.disk_mib(), 0)


def collections(base: str, until: float, child: subprocess.Popen[bytes]) -> list[str]:
    """Names of the collections that are served, as soon as it answers."""
    while True:
        try:
            request = urllib.request.Request(f"{base}/", headers={"accept": "application/json"})
            with urllib.request.urlopen(request, timeout=READY_S) as answer:
                return [one["name"] for one in json.load(answer)["collections"]]
        except OSError:
            if child.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)


def looked_at(address: str, until: float) -> tuple[float, int, str]:
    """(seconds to the first answer, 0 or the status of a fault, what is to be said of it)."""
    began, first_s = time.monotonic(), 0.0
    while True:
        try:
            with urllib.request.urlopen(address, timeout=SCREEN_S) as answer:
                body = answer.read()
        except urllib.error.HTTPError as error:
            return time.monotonic() - began, error.code, error.reason
        first_s = first_s or time.monotonic() - began
        if WAITING not in body:
            return first_s, 0, ""
        if time.monotonic() > until:
            return first_s, 1, f"not whole after {SCREEN_S:.0f} s; first answer {first_s:.2f} s"
        time.sleep(AGAIN_S)


def steps(options: argparse.Namespace, port: int, place: Place) -> dict[str, Callable[[Place], Iterator[Row]]]:
    """By name, in the order of a person who looks at what was crawled."""
    check = ["check", "--offline", "-f", "csv", "-o", place.out("issues.csv")]
    words = {
        "map": ["map", "-f", "xml", "-o", place.out("map.xml")],
        "report": ["report", "-o", place.out("report.html")],
        "check": check,  # the first looks at the markup of every page
        "check again": check,
        "search": ["search", place.words],
        "search again": ["search", place.words],
        "links": ["export", "links", "-o", place.out("links.csv")],
        "parquet": ["export", "parquet", place.out("tables")],
        "stories": ["stories"],
    }
    later: dict[str, Callable[[Place], Iterator[Row]]] = {name: partial(command, name, words[name]) for name in words}
    return {"crawl": partial(crawl, options, port), "serve": screens, **later}


def finished(notes: Path) -> tuple[dict[str, list[Row]], list[str]]:
    """(rows of the steps that came to an end, the steps that were begun, each time)."""
    lines = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
    done = {line["step"]: [Row(**row) for row in line["rows"]] for line in lines if "rows" in line}
    return done, [line["step"] for line in lines if "rows" not in line]


def note(notes: Path, line: dict[str, object]) -> None:
    with notes.open("a") as file:
        file.write(json.dumps(line) + "\n")


@contextlib.contextmanager
def stored(options: argparse.Namespace, work: Path) -> Iterator[Place]:
    """Where the collection is; a database server of our own is there for so long."""
    words = f"{vocabulary()[0]} {vocabulary()[-1]}"
    place = partial(Place, work, words=words, limit_s=options.limit_s)
    if options.store != "postgresql":
        yield place(store=options.store if "://" in options.store else str(work / "kept"))
        return
    sys.path.insert(0, str(HERE.parent / "tests"))
    from postgres_server import Server

    (work / "server").mkdir(exist_ok=True)
    server = Server(folder=work / "server", **POSTGRES).start()
    try:
        yield place(store=server.dsn() + "&collection=million", database=server.process.pid)
    finally:
        server.stop()


def begun(options: argparse.Namespace, work: Path) -> int:
    """The port of the web: it is part of every address, so what goes on has that of its beginning."""
    plan = {name: getattr(options, name) for name in PLAN}
    file = work / "plan.json"
    if file.exists():
        before = json.loads(file.read_text())
        if (port := before.pop("port")) and before == plan:
            return int(port)
        raise SystemExit(f"{work} was made by {before}: --fresh, or another --work")
    (work / "out").mkdir(parents=True)
    port = free_port()
    file.write_text(json.dumps({"port": port, **plan}))
    return port


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--first", type=float, default=0.8, help="share of the first host: map and report are of it")
    parser.add_argument("--links", type=int, default=10, help="of a page")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--no-index", action="store_true", help="crawl without: the first search then has to make it")
    parser.add_argument("--store", default="folder", help="folder, postgresql, or an address")
    parser.add_argument("--work", type=Path, help="folder for everything")
    parser.add_argument("--steps", nargs="+", help="only these, also when they were done before")
    parser.add_argument("--limit-s", type=float, default=6 * 3600, help="longest time of one step")
    parser.add_argument("--fresh", action="store_true", help="delete what an earlier run left in --work")
    options = parser.parse_args()
    kind = options.store.partition(":")[0] + ("-unindexed" if options.no_index else "")
    work = (options.work or CACHE / f"large-{kind}-{options.pages}").absolute()
    if options.fresh:
        shutil.rmtree(work, ignore_errors=True)
    port, notes = begun(options, work), work / "steps.jsonl"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; the same command goes on"))
    with stored(options, work) as place:
        todo = steps(options, port, place)
        for name in options.steps or todo:
            done, before = finished(notes)
            if name in done and not options.steps:
                continue
            note(notes, {"step": name, "load": load()})
            print(f"{name}; {load()}", flush=True)
            try:
                rows = list(todo[name](place))
            except (OSError, AssertionError, ValueError, KeyError, IndexError) as error:  # one step may fail alone
                rows = [Row(name, *[0.0] * 6, 1, f"{type(error).__name__}: {error}"[:100])]
            if name in before and name not in done:
                rows[0] = replace(rows[0], note=f"the rest, after a stop; {rows[0].note}")
            note(notes, {"step": name, "rows": [asdict(row) for row in rows]})
    done, _ = finished(notes)
    print(
        f"\n{options.pages:,} pages of {options.hosts} hosts in {options.store}, {options.workers} workers; {load()}\n"
    )
    print(table(HEADS, [tuple(asdict(row).values()) for name in todo for row in done.get(name, [])]))


if __name__ == "__main__":
    main()
