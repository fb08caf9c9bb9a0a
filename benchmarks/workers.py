"""Speedup of two workers over one.

The machine has two cores and the server needs a part of them, so a factor of two is impossible. With c seconds of the
crawler's CPU and s of the server's for a page, one worker needs at least max(c, s) a page, two workers on two cores at
least max(c, c + s) / 2 each way: the best ratio is max(c, s) / max((c + s) / 2, s). The result is the reached share of
it; above 0.9 is good. The server sends compressed files from a cache of open files and writes no log, so that s is
small; nothing is pinned. A short crawl includes the start of the second process (about 0.4 s); with --hosts 12 that is
a fiftieth.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import corpora
import product
from measure import Cost, alternated, load, median, run, table
from serving import Server, Site, serve


def sites(hosts: int) -> list[Site]:
    """Different generated sites without links to each other."""
    made = [corpora.generated(pages=1000, seed=seed)[0] for seed in range(1, hosts + 1)]
    return [Site(f"w{number}.test", one.root) for number, one in enumerate(made)]


def trial(server: Server, workers: int, spent: dict[int, list[float]]) -> Cost:
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
        before = server.cpu_s()
        # otherwise one worker has a second process
        wanted = replace(product.by_name(server.hosts, Path(folder) / "kept", workers), index=False)
        cost = run(product.command(wanted), core=None, cwd=Path(folder), family=True)
    spent.setdefault(workers, []).append(server.cpu_s() - before)
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not product.is_there():
        sys.exit("periplus crawl is not there yet")
    pages = 1001 * options.hosts
    spent: dict[int, list[float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp,
        serve(sites(options.hosts), Path(temp), core=None, log=False) as server,
    ):
        costs = alternated(options.rounds, {str(count): partial(trial, server, count, spent) for count in (1, 2)})
    wall = {name: median(one.wall_s for one in found) for name, found in costs.items()}
    rows = [
        (
            name,
            pages / wall[name],
            median(one.cpu_s for one in found) / pages * 1000,
            median(spent[int(name)]) / pages * 1000,
            str([one.exit_code for one in found]),
        )
        for name, found in costs.items()
    ]
    print(table(("workers", "pages / s", "crawler CPU s / 1,000", "server CPU s / 1,000", "exit codes"), rows))
    if any(one.exit_code for found in costs.values() for one in found):
        sys.exit(
            "a crawl failed: " + next(one.said for found in costs.values() for one in found if one.exit_code)[-500:]
        )
    own, server_own = float(str(rows[0][2])), float(str(rows[0][3]))
    best = max(own, server_own) / max((own + server_own) / 2, server_own)
    ratio = wall["1"] / wall["2"]
    print(
        f"two workers are {ratio:.2f} times as fast as one; best possible here {best:.2f}; reached "
        f"{ratio / best:.2f} of it ({load()})"
    )


if __name__ == "__main__":
    main()
