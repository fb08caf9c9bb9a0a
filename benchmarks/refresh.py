"""Cost of a refresh of a site, compared with its first crawl: bytes, requests, CPU seconds; unchanged, and with some
changed pages.

python benchmarks/refresh.py FOLDER     # an empty folder for copies, collections and the server's files
"""

from __future__ import annotations

import gzip
import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import serving
from measure import table
from product import COMMAND, by_name, command
from serving import Server, Site, compress, compressed_copy
from sites import MANUALS

CHANGED_EVERY = 50  # one page in this many gets a new title and paragraph before the last refresh


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a run."""

    what: str
    requests: int
    not_modified: int
    sent_bytes: int  # bodies, from the server log
    cpu_s: float  # of our process and its children
    collection_bytes: int
    said: str


def run(what: str, words: Sequence[str], server: Server, folder: Path) -> Cost:
    mark = server.mark()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        list(words), capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode:
        raise SystemExit(ran.stderr)
    hits = server.hits(mark)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return Cost(
        what,
        len(hits),
        sum(hit.status == 304 for hit in hits),
        sum(hit.sent_bytes for hit in hits),
        cpu_s,
        size,
        ran.stderr.splitlines()[1],
    )


def change(root: Path) -> int:
    """Changes title and a paragraph on every CHANGED_EVERY-th page; returns the number of changed pages."""
    pages = sorted(root.rglob("*.html"))[::CHANGED_EVERY]
    for page in pages:
        text = page.read_text("utf-8", "surrogateescape")
        text = re.sub(r"<title>", "<title>Changed: ", text, count=1, flags=re.IGNORECASE)
        page.write_text(
            re.sub(r"(<body[^>]*>)", r"\1<p>Another paragraph.</p>", text, count=1, flags=re.IGNORECASE),
            "utf-8",
            "surrogateescape",
        )
        Path(f"{page}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
    return len(pages)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def main(work: Path) -> None:
    manual = MANUALS[0]
    root = compressed_copy(manual.root, work / "manual")
    folder = work / "collection"
    port = serving.free_port()
    # the same hosts for both servers; a running server would not reread its files
    serving.free_port = lambda: port
    again = [str(COMMAND), "refresh", "-c", str(folder), "-q"]
    site = [Site(manual.name, root, manual.start)]
    with serving.serve(site, made(work / "first")) as server:
        asked = command(by_name(server.hosts, folder))
        costs = [
            run("first crawl", asked, server, folder),
            run("refresh, unchanged", again, server, folder),
            run("again", again, server, folder),
        ]
    changed = change(root)
    with serving.serve(site, made(work / "second")) as server:
        costs.append(run(f"{changed} pages changed", again, server, folder))
    compress(root)
    with serving.serve(site, made(work / "third")) as server:
        costs.append(run("same bytes, new validators", again, server, folder))
    first = costs[0]
    rows = [
        (
            cost.what, f"{cost.requests:,}", f"{cost.not_modified:,}", f"{cost.sent_bytes:,}",
            f"{100 * cost.sent_bytes / first.sent_bytes:.2f} %",
            f"{cost.cpu_s:.2f}", f"{100 * cost.cpu_s / first.cpu_s:.0f} %", f"{cost.collection_bytes / 1e6:.1f}",
            cost.said,
        )
        for cost in costs
    ]  # fmt: skip
    print(table(["run", "requests", "304", "bytes", "of first", "cpu s", "of first", "on disk MB", "said"], rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
