"""Cost of encryption: large pages over HTTP and HTTPS, by one worker, in one run.

nginx has a self-signed certificate, which the crawl trusts and verifies. Results are pages per CPU second of the
crawler, which do not depend on other load; and the same without the startup time, measured by crawls of the start
pages alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import corpora
import product
from measure import MIB, Cost, alternated, load, median, run, table
from serving import CERTIFICATE, Server, Site, pages, serve

STARTS = "start pages, "  # prefix of a trial that fetches only start pages


def trial(server: Server, home: Path, index: bool, depth: int | None, seen: list[int]) -> Cost:
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
        mark = server.mark()
        ca_file = home / CERTIFICATE
        wanted = replace(
            product.by_name(server.hosts, Path(folder) / "kept"),
            max_depth=depth,
            index=index,
            ca_file=ca_file if ca_file.exists() else None,
        )
        cost = run(product.command(wanted), cwd=Path(folder))
        seen.append(pages(server.hits(mark)))
    if cost.exit_code:
        sys.exit(f"a crawl failed: {cost.said[-500:]}")
    return cost


def measured(title: str, sites: list[Site], options: argparse.Namespace, depth: int | None) -> None:
    seen: dict[str, list[int]] = {}
    trials: dict[str, Callable[[], Cost]] = {}
    with ExitStack() as stack:
        for name in ("http", "https"):
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="periplus-nginx-")))
            server = stack.enter_context(serve(sites, home, tls=name == "https"))
            trials[name] = partial(trial, server, home, options.index, depth, seen.setdefault(name, []))
            trials[STARTS + name] = partial(trial, server, home, options.index, 0, seen.setdefault(STARTS + name, []))
        costs = alternated(options.rounds, trials)
    rows = []
    for name, found in ((name, found) for name, found in costs.items() if not name.startswith(STARTS)):
        start_s, few = median(cost.cpu_s for cost in costs[STARTS + name]), seen[STARTS + name][0]
        each = [cost.cpu_s / count * 1000 for cost, count in zip(found, seen[name], strict=True)]
        rate = median(count / cost.wall_s for cost, count in zip(found, seen[name], strict=True))
        rows.append(
            (
                name,
                seen[name][0],
                median(each),
                f"{min(each):.3g}-{max(each):.3g}",
                1000 / median(each),
                (seen[name][0] - few) / (median(cost.cpu_s for cost in found) - start_s),
                rate,
                max(one.rss_bytes for one in found) / MIB,
            )
        )
    heads = ("over", "pages", "CPU s / 1,000", "range", "pages / CPU s", "without the start", "pages / s", "RSS MiB")
    print(f"\n## {title} ({load()})\n\n{table(heads, rows)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--index", action="store_true", help="index them too")
    options = parser.parse_args()
    if not product.is_there():
        sys.exit("periplus crawl is not there yet")
    real = corpora.large()
    count = len(list(real[0].root.glob("page*.html")))
    mean = sum(path.stat().st_size for path in real[0].root.glob("page*.html")) / count
    measured(f"(d) {count:,} real pages of {mean / 1000:.0f} KB on each of {len(real)} hosts", real, options, 1)
    made = [
        Site(f"made{seed}.test", corpora.generated(pages=200, links=40, page_bytes=240_000, seed=seed)[0].root)
        for seed in range(1, 5)
    ]
    measured("generated pages of 240 KB on four hosts", made, options, None)


if __name__ == "__main__":
    main()
