"""How much memory does a gzip bomb (0.8 MB that decompress to 800 MB) cost the crawler?"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zlib
from pathlib import Path

import peers
import product
from corpora import write
from measure import MIB, Cost, run, table
from serving import Site, compress, serve

GROWN_BYTES = 800_000_000
LIMIT_S = 120.0


def site(root: Path, *, bomb: bool) -> Site:
    """Twenty pages and, with bomb, the bomb."""
    names = [f"/{number}.html" for number in range(20)] + (["/bomb.html"] if bomb else [])
    links = "".join(f'<li><a href="{name}">{name}</a>' for name in names)
    for name in ["/index.html", *names[:20]]:
        write(root, name, f"<!DOCTYPE html><title>{name}</title><ul>{links}</ul>")
    compress(root)
    if bomb:
        (root / "bomb.html").write_text("<p>what a client without gzip gets</p>")
        with (root / "bomb.html.gz").open("wb") as file:
            packer = zlib.compressobj(9, wbits=31)
            file.write(packer.compress(b'<!DOCTYPE html><title>Bomb</title><a href="/0.html">0</a>'))
            block = b" " * 1_000_000
            for _ in range(GROWN_BYTES // len(block)):
                file.write(packer.compress(block))
            file.write(packer.flush())
    return Site("bomb.test" if bomb else "calm.test", root)


def crawl(one: Site, folder: Path) -> tuple[Cost, dict[str, object]]:
    with serve([one], folder) as server:
        cost = run(
            product.command(product.by_name(server.hosts, folder / "kept")), cwd=folder, family=True, limit_s=LIMIT_S
        )
    return cost, product.status(folder / "kept")


def peers_rows(sites: dict[str, Site], home: Path) -> list[tuple[object, ...]]:
    """Memory of each installed peer: (peer, MiB without, MiB with, MiB more, exit codes)."""
    rows: list[tuple[object, ...]] = []
    for name, peer in peers.PEERS.items():
        if not peer.is_there():
            continue
        costs = []
        for what, one in sites.items():
            folder = home / f"{name}-{what}"
            folder.mkdir()
            with serve([one], folder) as server:
                command = peer.command([host.by_address for host in server.hosts], folder / "files")
                costs.append(run(command, cwd=folder, family=True, limit_s=LIMIT_S))
        calm, bombed = (cost.rss_bytes / MIB for cost in costs)
        rows.append((name, calm, bombed, bombed - calm, ",".join(str(cost.exit_code) for cost in costs)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true", help="also measure the installed peers")
    options = parser.parse_args()
    if not product.is_there():
        sys.exit("periplus crawl is not there yet")
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as temp:
        rows, said, sites = [], [], {}
        for bomb in (False, True):
            folder = Path(temp) / ("bomb" if bomb else "calm")
            (folder / "root").mkdir(parents=True)
            one = sites[folder.name] = site(folder / "root", bomb=bomb)
            cost, status = crawl(one, folder)
            rows.append(
                ("with the bomb" if bomb else "without", cost.rss_bytes / MIB, cost.wall_s, cost.cpu_s, cost.exit_code)
            )
            said.append(", ".join(f"{name}={value}" for name, value in product.leaves(status)))
        print(table(("crawl", "peak RSS MiB", "wall s", "CPU s", "exit"), rows))
        print(
            f"the bomb costs {float(str(rows[1][1])) - float(str(rows[0][1])):.0f} MiB more; status with it: {said[1]}"
        )
        if options.peers:
            heads = ("peer", "peak RSS MiB without", "with", "MiB more", "exit codes")
            print(table(heads, peers_rows({name: sites[name] for name in ("calm", "bomb")}, Path(temp))))


if __name__ == "__main__":
    main()
