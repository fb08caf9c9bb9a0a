"""What does each part of a page cost us, and what is the least that it can cost?

The least is measured by floors.c, a program of one file without checks, rules or repair, compiled here (it needs the
headers of SQLite, zlib and zstd). Both read the pages of corpus (a). Ours runs in one process without a network; its
whole is a crawl of the same pages from nginx, as the floor's is.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import corpora
import product
from measure import CLIENT_CORE, load, median, run, table
from serving import Host, Site, serve

from periplus.acquire.inflating import inflate
from periplus.document.digest import digests
from periplus.document.language import page_language
from periplus.document.links import rows_of
from periplus.document.metadata import metadata
from periplus.document.reader import read_page
from periplus.document.understand import source_of, understand
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from periplus.settings import FetchLimits
from periplus.store.bodies import BodyCodec

SOURCE = Path(__file__).with_suffix(".c")
HTML = Headers((("content-type", "text/html; charset=utf-8"),))


def built(folder: Path) -> Path:
    """The compiled floor."""
    program = folder / "floors"
    subprocess.run(["cc", "-O2", "-w", "-o", program, SOURCE, "-lsqlite3", "-lz", "-lzstd"], check=True)
    return program


def pages_of(site: Site) -> list[tuple[str, bytes]]:
    """(path, body) of the site's pages."""
    files = sorted(path for path in site.root.rglob("*.html") if path.is_file())
    return [(f"/{path.relative_to(site.root).as_posix()}", path.read_bytes()) for path in files]


def floor_us(program: Path, host: Host, temp: Path) -> dict[str, float]:
    """Microseconds a page, by part."""
    paths = "".join(f"{path}\n" for path, _ in pages_of(host.site))
    database = temp / f"{host.site.name}-{time.monotonic_ns()}.sqlite"
    command = [str(program), host.address, str(host.port), str(database)]
    lines = subprocess.run(command, input=paths, text=True, capture_output=True, check=True).stdout.splitlines()
    return {name: float(figure) for name, figure in (line.split() for line in lines)}


def us_a_page(pages: Sequence[object], call: Callable[[object], object]) -> float:
    """CPU time of a call, warm."""
    for page in pages[:20]:
        call(page)
    begun = time.process_time()
    for page in pages:
        call(page)
    return (time.process_time() - begun) / len(pages) * 1e6


def ours_us(site: Site) -> dict[str, float]:
    """Microseconds a page, by part, of the functions that a crawl calls."""
    bodies = [(Url(f"http://{site.name}{path}"), body) for path, body in pages_of(site)]
    wires = [gzip.compress(body, 6) for _, body in bodies]
    limits, codec = FetchLimits(), BodyCodec()
    fetched = [(url, Fetched(200, HTML, body)) for url, body in bodies]
    sources = [source_of(*page) for page in fetched]
    readers = [read_page(source.page) for source in sources]
    rows = [(reader, source, metadata(reader, source.headers)) for reader, source in zip(readers, sources, strict=True)]
    documents = [understand(*page) for page in fetched]
    words = [(body, document.blocks.text) for (_, body), document in zip(bodies, documents, strict=True)]
    parts: dict[str, tuple[Sequence[object], Callable[..., object]]] = {
        "inflate": (wires, lambda wire: inflate(wire, "gzip", limits)),
        "read": (sources, lambda source: read_page(source.page)),
        "links": (rows, lambda row: rows_of(*row).links()),
        "language": (words, lambda pair: page_language("", pair[1])),
        "digests": (words, lambda pair: digests(pair[0], pair[1].encode())),
        "pack": (words, lambda pair: codec.pack_page(pair[1].encode(), pair[0])),
        "understand": (fetched, lambda page: understand(*page)),
    }
    return {name: us_a_page(values, call) for name, (values, call) in parts.items()}


def crawl_us(hosts: Sequence[Host], temp: Path, pages: int) -> float:
    """CPU time of a crawl without index, in microseconds a page."""
    crawl = product.by_address(hosts, temp / f"{time.monotonic_ns()}.periplus")
    command = [str(product.COMMAND), *product.arguments(crawl), "--no-index"]
    return run(command, core=CLIENT_CORE).cpu_s / pages * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sites = corpora.real()
    counts = {site.name: len(pages_of(site)) for site in sites}
    total = sum(counts.values())
    floors: dict[str, list[float]] = {}
    ours: dict[str, list[float]] = {}

    def note(rows: dict[str, list[float]], by_site: dict[str, dict[str, float]]) -> None:
        for name in next(iter(by_site.values())):
            mean = sum(by_site[site][name] * counts[site] for site in counts) / total
            rows.setdefault(name, []).append(mean)

    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as temp, serve(sites, Path(temp)) as server:
        program = built(Path(temp))
        os.sched_setaffinity(0, {CLIENT_CORE})
        for _ in range(options.rounds):
            note(floors, {host.site.name: floor_us(program, host, Path(temp)) for host in server.hosts})
            note(ours, {site.name: ours_us(site) for site in sites})
            ours.setdefault("whole", []).append(crawl_us(server.hosts, Path(temp), total))
    floor = {name: median(values) for name, values in floors.items()}
    floor["understand"] = sum(floor[name] for name in ("read", "links", "language", "digests"))
    floor["whole"] = sum(median(values) for values in floors.values())
    cost = {name: median(values) for name, values in ours.items()}
    rows = [(name, floor[name], cost.get(name, ""), cost[name] / floor[name] if name in cost else "") for name in floor]
    print(f"{total:,} pages, {options.rounds} rounds ({load()})")
    print(table(("part", "floor, us a page", "ours", "ratio"), rows))


if __name__ == "__main__":
    main()
