"""How close to optimal is the choice of sites, how well does it cover later stories, how long does it take?

    python quality/influence/measure.py [--json FILE]

On generated cascades always (sites with heavy-tailed numbers of posts, stories within subjects), and on
`cascades-*.txt.gz` of the folder CORPORA. Aims: at least .997 of the bound of the linear programme on every run by
sites; a million entries within a second. No aim by posts: there the integer optimum is below the bound.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from figures import Figure, digest_of, write
from linear_programme import least_bound

from periplus_topics.analyse.influence import WHOLE, coverage, fill_budget, lazy_greedy, value_of
from periplus_topics.api.stories import ReadingRequest, cascades_from, choose_sites, holdout
from periplus_topics.model import Cascades, Objective, halves

SITES = (20, 40, 100)
BOUND_AIM = 0.997
POSTS_SHARE = 0.1
# published results on the whole data set; the corpus is its earlier half
HOLDOUT_AIMS = dict(zip(SITES, (0.71, 0.81, 0.89), strict=True))
SPEED_ENTRIES = 1_000_000


def made(seed: int, stories: int, sites: int, entries: int) -> Cascades:
    """Sites have subjects, and weights by Zipf's law; a story is mostly on sites of its subject; delays are
    log-normal.
    """
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, sites + 1) ** 0.8
    subject = rng.integers(0, 20, sites)
    sizes = np.minimum(2 + rng.pareto(1.2, stories) * entries / stories / 4, sites / 10).astype(np.int64)
    members, delays = [], []
    for size, about in zip(sizes.tolist(), rng.integers(0, 20, stories).tolist(), strict=True):
        chance = np.where(subject == about, 10.0, 1.0) * weight
        one = np.unique(rng.choice(sites, size, p=chance / chance.sum()))
        late = np.sort(rng.lognormal(2.0, 1.5, len(one)))
        members.append(rng.permutation(one))
        delays.append(late - late[0])
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in members])])
    joined = np.concatenate(members)
    starts = np.sort(rng.random(stories)) * 5000
    return Cascades(
        tuple(map(str, range(sites))),
        ("",) * stories,
        offsets,
        joined,
        np.concatenate(delays),
        starts,
        np.bincount(joined, minlength=sites),
    )


def measured(name: str, cascades: Cascades) -> list[Figure]:
    data = digest_of([cascades.members.tobytes(), cascades.offsets.tobytes(), cascades.delays_h.tobytes()])
    figures = []
    print(
        f"{name}: {len(cascades.offsets) - 1} stories on {len(cascades.sites)} sites, {len(cascades.members)} entries"
    )
    for objective in Objective:
        for wish in (
            *(ReadingRequest(objective, sites) for sites in SITES),
            ReadingRequest(objective, POSTS_SHARE, True),
        ):
            begun = time.perf_counter()
            found = choose_sites(cascades, wish)
            took = time.perf_counter() - begun
            cover = coverage(cascades, objective, by_posts=wish.by_posts)
            bound = least_bound(cover, [choice.site for choice in found.chosen], found.budget)
            whole = bool((cover.values == np.floor(cover.values)).all())  # then every choice has an integer value
            share = found.value * cover.total / (np.floor(bound + WHOLE) if whole else bound)
            what = (
                f"{len(found.chosen)} sites for a tenth of the posts" if wish.by_posts else f"{int(wish.budget)} sites"
            )
            print(
                f"  {objective.value} {what:40} {found.value:.4f}, of the bound {share:.4f}, "
                f"busiest {found.most_posts[-1]:.4f},"
                f" {took:.2f} s"
            )
            short = f"{name}, {objective.value}, " + ("posts" if wish.by_posts else f"{int(wish.budget)}")
            figures.append(Figure(short, found.value, None, data))
            figures.append(Figure(short + ", of the bound", share, None if wish.by_posts else BOUND_AIM, data))
    for sites in SITES:
        ahead, greedy = holdout(cascades, ReadingRequest(Objective.DL, sites)), greedy_later(cascades, sites)
        print(
            f"  dl {sites} sites for the future, later half: {ahead.later[-1]:.4f}, plain greedy {greedy:.4f}, in "
            f"hindsight {ahead.hindsight:.4f}, busiest {ahead.most_posts[-1]:.4f}"
        )
        what = f"{name}, dl, {sites}, later half, for the future"
        figures.append(Figure(what, ahead.later[-1], HOLDOUT_AIMS[sites] if name != "made" else None, data))
        figures.append(Figure(what, greedy, by="greedy"))
        figures.append(Figure(what + ", less plain greedy", ahead.later[-1] - greedy, 0.0, data))
    return figures


def greedy_later(cascades: Cascades, sites: int) -> float:
    """Score on the later half of a plain greedy choice on the earlier half."""
    earlier, later = halves(cascades)
    past, ahead = coverage(earlier, Objective.DL), coverage(later, Objective.DL)
    return value_of(ahead, fill_budget(past, lazy_greedy(past, sites).sites, sites)) / ahead.total


def speed() -> Figure:
    cascades = made(3, 40_000, 20_000, SPEED_ENTRIES)
    entries = len(cascades.members)
    begun = time.process_time()  # CPU time of this process, independent of other load
    picked = lazy_greedy(coverage(cascades, Objective.DL), 100)
    took = time.process_time() - begun
    print(f"{entries} entries, 100 sites: {took:.2f} s, {picked.evaluations} gains worked out")
    return Figure(
        "CPU seconds a million entries, 100 sites", took * SPEED_ENTRIES / entries, 1.0, higher_is_better=False
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path, help="Write the figures to this file.")
    given = options.parse_args()
    figures = measured("made", made(1, 1500, 800, 12_000))
    if folder := os.environ.get("CORPORA"):
        for path in sorted(Path(folder).glob("cascades-*.txt.gz")):
            figures += measured(path.name.split(".")[0].removeprefix("cascades-"), cascades_from(path))
    figures.append(speed())
    if given.json:
        write(given.json, figures)


if __name__ == "__main__":
    main()
