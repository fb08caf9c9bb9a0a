"""What do ten questions cost in a folder and in PostgreSQL, alone and while four workers write into the same server?

CPU seconds of the command and of the server, and bytes in the reader's cache after it. Each question is asked twice,
since the first one of those that read a copy makes it. Load makes CPU seconds dearer: compare them with one another.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import product
from database import BUFFERS, PAGES, crawled, server_cpu_s, sites
from measure import load, run, table
from serving import serve

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import postgres_server

QUESTIONS = (
    ("status",), ("page", "PAGE"), ("pages", "--limit", "100"), ("pages", "--state", "failed", "--limit", "100"),
    ("links", "--to", "PAGE", "--limit", "100"), ("links", "--bad", "--limit", "100"), ("search", "harbour"),
    ("trends",), ("faults", "list", "--site", "SITE"), ("report", "--site", "SITE"),
)  # fmt: skip


def asked(place: str, question: tuple[str, ...], url: str, cwd: Path, pid: int) -> tuple[float, float]:
    """(CPU seconds of the command, of the server in this time)."""
    words = [word.replace("PAGE", url).replace("SITE", url.split("/")[2]) for word in question]
    at = 2 if words[0] == "faults" else 1
    before = server_cpu_s(pid)
    cost = run([sys.executable, "-m", "periplus", *words[:at], "-c", place, *words[at:]], core=None, cwd=cwd)
    if cost.exit_code:
        print(f"{words}: {cost.said[-300:]}", file=sys.stderr)
    return cost.cpu_s, server_cpu_s(pid) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=210)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp,
        contextlib.closing(postgres_server.own_server(fsync="on", full_page_writes="on", **BUFFERS)) as database,
        serve(sites(options.hosts), Path(temp), core=None, log=False) as server,
    ):
        cwd, dsn, pid = Path(temp), database.dsn(), database.process.pid
        os.environ["XDG_CACHE_HOME"] = str(cwd / "cache")
        mark = "&" if "?" in dsn else "?"
        place, folder = f"{dsn}{mark}collection=asked", str(cwd / "asked.periplus")
        crawled(server, folder, 1, cwd)
        run([sys.executable, "-m", "periplus", "move", folder, place], core=None, cwd=cwd)
        url = server.hosts[0].by_name
        print(f"{PAGES * options.hosts:,} pages of 4 KB with 21 links ({load()})", flush=True)
        rows = []
        for question in QUESTIONS:
            inside, _ = asked(folder, question, url, cwd, pid)
            again, _ = asked(folder, question, url, cwd, pid)
            first, second = asked(place, question, url, cwd, pid), asked(place, question, url, cwd, pid)
            cached = sum(file.stat().st_size for file in (cwd / "cache").rglob("*") if file.is_file())
            rows.append([" ".join(question), inside, again, *first, *second, cached / 1e6])
            print(rows[-1], flush=True)
        crawl = replace(product.by_name(server.hosts, f"{dsn}{mark}collection=writing", 4), index=False)
        with subprocess.Popen(product.command(crawl), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as writer:
            for row, question in zip(rows, QUESTIONS, strict=True):
                row.append(asked(place, question, url, cwd, pid)[0])
            print(f"the writers {'have ended' if writer.poll() is not None else 'still write'} ({load()})")
            writer.terminate()
        names = ("question", "folder", "again", "first", "server", "second", "server", "cache MB", "beside writers")
        print(table(names, [[f"{cell:.2f}" if isinstance(cell, float) else cell for cell in row] for row in rows]))


if __name__ == "__main__":
    main()
