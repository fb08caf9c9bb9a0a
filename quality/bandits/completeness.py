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
from worlds import KINDS, world

from made_campaigns import Pages, made_campaign, made_web
from periplus_studies.harvest import richness

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=200, help="of each kind")
    number = parser.parse_args().campaigns
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
