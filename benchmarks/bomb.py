"""How much memory does a gzip bomb cost the crawler: 0.8 MB that grow to 800 MB?"""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path

import product
from corpora import write
from measure import MIB, Cost, run, table
from serving import Site, compress, serve

GROWN_BYTES = 800_000_000


def site(root: Path, *, bomb: bool) -> Site:
    """Twenty pages and, with bomb, one more that is the bomb."""
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
        cost = run(product.command(product.by_name(server.hosts, folder / "kept")), cwd=folder, family=True, limit_s=120)
    return cost, product.status(folder / "kept")


def main() -> None:
    if not product.is_there():
        sys.exit("periplus crawl is not there yet")
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as temp:
        rows, said = [], []
        for bomb in (False, True):
            folder = Path(temp) / ("bomb" if bomb else "calm")
            (folder / "root").mkdir(parents=True)
            one = site(folder / "root", bomb=bomb)
            cost, status = crawl(one, folder)
            rows.append(("with the bomb" if bomb else "without", cost.rss_bytes / MIB, cost.wall_s, cost.cpu_s, cost.exit_code))
            said.append(", ".join(f"{name}={value}" for name, value in product.leaves(status)))
        print(table(("crawl", "peak RSS MiB", "wall s", "CPU s", "exit"), rows))
        print(f"the bomb costs {float(str(rows[1][1])) - float(str(rows[0][1])):.0f} MiB more; status with it: {said[1]}")


if __name__ == "__main__":
    main()
