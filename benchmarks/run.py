"""Runs all benchmarks with short defaults, in at most five minutes: `make bench`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import peers
from measure import load

HERE = Path(__file__).parent
SHORT = (
    ("addresses, pages and moves of the frontier a second", "frontier.py", "--pages", "60", "--known", "200000"),
    ("graph of a million pages", "graph.py"),
    ("the truth about the manuals", "sites.py"),
    (
        "cost of a page beside the peers",
        "beside_peers.py",
        "--rounds",
        "1",
        "--only",
        "periplus",
        "scrapy",
        "wget2-files",
        "wget2-nothing-kept",
    ),
    ("whole real sites", "real_sites.py", "--only", "postgresql", "sqlite"),
    ("politeness", "politeness.py", "--hosts", "100"),
    ("a gzip bomb", "bomb.py"),
    ("one worker and two", "workers.py", "--rounds", "1", "--hosts", "4"),
    ("memory", "memory.py", "--pages", "1000"),
    ("templates of 5,000 pages", "template.py", "--pages", "5000"),
    ("where the time goes", "crawl_profile.py", "--top", "5"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--install-peers",
        action="store_true",
        help=f"install {', '.join(peers.PACKAGES.values())} beside {peers.VENV} first",
    )
    options = parser.parse_args()
    if options.install_peers:
        peers.install()
    started = time.monotonic()
    failed = []
    for title, script, *more in SHORT:
        print(f"\n# {title} ({script}; {load()})\n", flush=True)
        if subprocess.run([sys.executable, HERE / script, *more], check=False).returncode:
            failed.append(script)
    print(f"\nall in {time.monotonic() - started:.0f} s" + (f"; failed: {', '.join(failed)}" if failed else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
