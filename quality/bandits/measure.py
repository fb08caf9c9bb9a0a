"""Which share of the links that could have been found does each rule find?

Prints shares of the exact offline optimum with standard errors, over generated worlds (with seeds not used for
tuning) and over random sets of ten real manuals; whether the rules rank as published; and the gain by the learned
order of pages within a site.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import reading
from figures import Figure, digest_of, write
from makers import MAKERS, made
from manuals import Manual, manuals
from numpy.typing import NDArray
from play import play
from published import RULES as PUBLISHED
from published import rule_of
from worlds import KINDS, PAGES, SITES, Counts, optimum, worlds

FIRST_SEED = 10_000
PRINTED = ("r1", "r2:5", "r2:20", "r2:50", "r2:100", "r3")
AIMS = {"academy": 0.70, "university": 0.78, "mixed": 0.77, "manuals": 0.90, "mean": 0.76}
AIM_WITHIN = 0.50
AIM_MAKERS = 0.75  # on average
SELF_LINKING = frozenset({"cppreference"})  # one link to its own canonical address on each page: no external links
LEAST_PAGES = 100
FEW = 200  # pages of ten sites together, to measure the order within sites


def shares(rule: str, counts: Counts, best: NDArray[np.float64], budget: int = PAGES) -> NDArray[np.float64]:
    return play(rule_of(rule, budget, SITES), counts, budget=budget) / best


def figure(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.3f} ({values.std() / np.sqrt(len(values)):.3f})"


def url_patterns(number: int, sites: list[Manual]) -> dict[str, Counts]:
    """There are few manuals, so sets of ten of them overlap: the standard error is that of the draws, not of
    the sites.
    """
    found = {kind: worlds(kind, FIRST_SEED, number) for kind in KINDS}
    if len(sites) >= SITES:
        found["manuals"] = reading.world([reading.breadth_first(site) for site in sites], number, SITES, FIRST_SEED)[0]
    return found


def rules_table(
    found: dict[str, Counts], best: dict[str, NDArray[np.float64]], rules: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    print(f"{'rule':12}" + "".join(f"{kind:>16}" for kind in found) + f"{'mean':>8}")
    for rule in rules:
        row = {kind: shares(rule, counts, best[kind]) for kind, counts in found.items()}
        table[rule] = {kind: float(values.mean()) for kind, values in row.items()}
        print(
            f"{rule:12}"
            + "".join(f"{figure(values):>16}" for values in row.values())
            + f"{np.mean(list(table[rule].values())):8.3f}",
            flush=True,
        )
    return table


def other_makers(number: int) -> list[Figure]:
    """Our rule on the worlds of the other generators, compared with the best published rule and raw-ucb."""
    worlds_of = {kind: made(kind, FIRST_SEED, number) for kind in MAKERS}
    best = {kind: np.maximum(optimum(counts), 1) for kind, counts in worlds_of.items()}
    table = rules_table(worlds_of, best, (*PRINTED, "raw-ucb", "scout"))
    figures = []
    for kind, counts in worlds_of.items():
        data, ours = digest_of([counts.tobytes()]), table["scout"][kind]
        others = max(row[kind] for rule, row in table.items() if rule != "scout")
        figures.append(Figure(f"scout, {kind}", ours, AIM_MAKERS, data))
        figures.append(Figure(f"scout less the best of r1 to r3 and raw-ucb, {kind}", ours - others, -0.01, data))
    return figures


def order_of_printed(found: dict[str, Counts]) -> None:
    """How the published rules rank, on average and in single worlds."""
    for kind in KINDS:
        links = {rule: play(rule_of(rule, PAGES, SITES), found[kind]) for rule in ("r1", "r2:20", "r3")}
        means = {rule: values.mean() for rule, values in links.items()}
        best = np.argmax(list(links.values()), axis=0)
        ratio = links["r2:20"] / np.maximum(links["r1"], 1)
        print(
            f"{kind:11} r1 {means['r1']:6.0f}  r2/r1 {means['r2:20'] / means['r1']:.2f}  r3/r1 "
            f"{means['r3'] / means['r1']:.2f}; best in single worlds: "
            f"r1 {np.mean(best == 0):.0%}, r2 {np.mean(best == 1):.0%}, r3 {np.mean(best == 2):.0%}; "
            f"r2/r1 from {np.quantile(ratio, 0.1):.2f} to {np.quantile(ratio, 0.9):.2f} (10 to 90 %)",
            flush=True,
        )


def order_within(sites: list[Manual], number: int) -> dict[str, float]:
    """Ten manuals at a time, compared with the best combination of breadth-first prefixes of PAGES pages in total."""
    ways = {"breadth": reading.breadth_first, "learned": reading.learned, "hindsight": reading.in_hindsight}
    made = {
        way: reading.world([order(site) for site in sites], number, SITES, FIRST_SEED)[0] for way, order in ways.items()
    }
    best = optimum(made["breadth"])
    found = {}
    for pages in (FEW, PAGES):
        for way, counts in made.items():
            values = optimum(counts, pages) / best if way == "hindsight" else shares("scout", counts, best, pages)
            found[f"{way} {pages}"] = float(values.mean())
            print(f"{pages:5} pages, {way:10} {figure(values)}", flush=True)
    return found


def figures_of(table: dict[str, dict[str, float]], within: dict[str, float], data: dict[str, str]) -> list[Figure]:
    """Our rule's shares, its lead over the best published rule of each kind, and the order within sites."""
    ours = table["scout"]
    found = [Figure(f"scout, {kind}", ours[kind], AIMS[kind], data[kind]) for kind in ours]
    found += [
        Figure(f"scout, {kind}", table[rule][kind], by=rule) for rule in table.keys() - {"scout"} for kind in ours
    ]
    found += [
        Figure(
            f"scout less the best of r1 to r3, {kind}",
            ours[kind] - max(table[rule][kind] for rule in PRINTED),
            0.0,
            data[kind],
        )
        for kind in ours
    ]
    found.append(
        Figure(
            "scout, mean of the kinds",
            float(np.mean(list(ours.values()))),
            AIMS["mean"],
            digest_of(data[kind] for kind in ours),
        )
    )
    found += [
        Figure(f"{way} pages", share, AIM_WITHIN if way == f"learned {FEW}" else None, data["manuals"])
        for way, share in within.items()
    ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=400, help="of each kind")
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(os.environ.get("MANUALS", "/")),
        help="where Debian's documentation packages are unpacked",
    )
    parser.add_argument("--all", action="store_true", help="the other published rules too")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    sites = [site for site in manuals(options.root) if site.name not in SELF_LINKING and len(site.paths) >= LEAST_PAGES]
    found = url_patterns(options.worlds, sites)
    best = {kind: np.maximum(optimum(counts), 1) for kind, counts in found.items()}
    table = rules_table(found, best, (*PRINTED, *(PUBLISHED if options.all else ("raw-ucb",)), "scout"))
    order_of_printed(found)
    further = other_makers(min(options.worlds, 100))
    within = order_within(sites, min(options.worlds, 100)) if len(sites) >= SITES else {}
    if options.json:
        write(
            options.json,
            figures_of(table, within, {kind: digest_of([counts.tobytes()]) for kind, counts in found.items()})
            + further,
        )


if __name__ == "__main__":
    main()
