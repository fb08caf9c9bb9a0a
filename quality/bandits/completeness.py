"""How often does the completeness interval of a survey contain the true value?

Runs campaigns on generated sites with known items. Prints the share of 95 % intervals that contain the number of
items on all known pages, their width, and the ratio of estimate to truth. Campaigns differ in rule, budget (5 to 90
% of the pages), number of sites and discovery of pages. The sites are those generated here and those of worlds.py,
whose items are all distinct and clustered. The constants were set on other seeds, below 2,000.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import numpy as np
from manuals import Manual, manuals
from worlds import KINDS, world

from made_campaigns import Pages, made_campaign, made_web
from periplus_studies.harvest import harvest_rows, richness
from periplus_studies.model import Estimate

FIRST_SEED = 2_000
WORLD_PAGES = 300  # of a site of worlds.py


def web(kind: str, seed: int) -> Pages:
    """The items of each page of each site."""
    if kind == "made":
        return made_web(seed)
    number, sites = 0, []
    for counts in world(kind, seed, pages=WORLD_PAGES):
        ends = number + np.cumsum(counts[counts >= 0])
        sites.append(
            [list(range(int(end - count), int(end))) for end, count in zip(ends, counts[counts >= 0], strict=True)]
        )
        number = int(ends[-1])
    return sites


def half_read(site: Manual) -> tuple[Estimate, int]:
    """The interval when half of a manual was read breadth first, and the items of the whole manual."""
    read = len(site.paths) // 2
    known = len({0, *range(read), *(target for page in site.links[:read] for target, _, _ in page)})
    pairs = np.array([(page, item) for page, items in enumerate(site.external[:read]) for item in items], np.int64)
    rows = harvest_rows([site.name], np.array([known]), np.zeros(read, np.int32), (pairs[:, 0], pairs[:, 1]))
    total = richness(rows).total
    assert total is not None
    return total, len({item for page in site.external for item in page})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=200, help="of each kind")
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the packages of manuals.py are unpacked")
    number, root = parser.parse_args().campaigns, parser.parse_args().root
    halves = [(site.name, *half_read(site)) for site in manuals(root) if len(site.paths) >= 24]
    for name, total, truth in halves:
        print(f"{name:24} {truth:6} in [{total.low:.0f}; {total.high:.0f}], high / low {total.high / total.low:.2f}")
    if halves:
        held_in = [total.low - 0.5 <= truth <= total.high + 0.5 for _, total, truth in halves]
        print(f"half of each manual: {np.mean(held_in):.1%} of {len(halves)} intervals hold", flush=True)
    for kind in ("made", *KINDS):
        held, widths, ratios = [], [], []
        for seed in range(FIRST_SEED, FIRST_SEED + number):
            made = made_campaign(web(kind, seed), seed)
            found = richness(made.rows).total
            if found is not None:
                held.append(found.low - 0.5 <= made.truth <= found.high + 0.5)
                widths.append(found.high / max(found.low, 1.0))
                ratios.append(found.value / max(made.truth, 1))
        said = (
            f"{np.mean(held):.1%} of {len(held)} intervals hold; high / low {np.median(widths):.2f}; estimate / truth"
        )
        print(
            (
                f"{kind:10s} {said} {' '.join(f'{value:.2f}' for value in np.percentile(ratios, [5, 50, 95]))} "
                "(5, 50, 95 % of campaigns)"
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
