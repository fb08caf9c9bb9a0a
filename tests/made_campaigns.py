"""Simulated campaigns over synthetic sites whose items are all known, also those on pages that were not read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from periplus.model.frontier import ReadyHost
from periplus.model.web import HostKey, SiteKey
from periplus_studies.harvest import harvest_rows
from periplus_studies.model import HarvestRows
from periplus_studies.rules import Novelty, SitePolicy, parse_rule

RULES = ("scout", "r2:5", "r2:20", "quantum:5", "r3:3")
Pages = list[list[list[int]]]  # items by site and page, in crawl order


@dataclass(frozen=True)
class MadeCampaign:
    """The result of a simulated campaign."""

    rows: HarvestRows
    pages: Pages
    read: list[int]  # read pages per site
    known: list[int]
    rule: str

    @property
    def truth(self) -> int:
        """Number of distinct items on the known pages."""
        return len(
            {item for site, known in zip(self.pages, self.known, strict=True) for page in site[:known] for item in page}
        )


def made_web(seed: int, most_sites: int = 60) -> Pages:
    """Sites that differ in size, items per page, decline of the yield, repetition, and overlap with other sites."""
    rng = np.random.default_rng(seed)
    common, private = int(rng.integers(50, 3000)), rng.uniform(0.0, 0.9)
    fade, spread = rng.choice([0.0, 0.0, 0.3, 0.6]), rng.uniform(0.2, 1.2)
    pages, number = [], common
    for size in np.clip(np.exp(rng.normal(np.log(80), 0.9, int(rng.integers(6, most_sites)))), 2, 1000).astype(int):
        rate, repeats = (
            np.exp(rng.normal(0.0, spread) - spread**2 / 2) * rng.choice([0.3, 1.0, 3.0]),
            rng.choice([0.0, 0.3, 0.7]),
        )
        footer, pool = list(range(number, number + int(rng.integers(0, 3)))), []
        number += len(footer)
        site = []
        for place in range(size):
            page = list(footer)
            for _ in range(rng.poisson(rate * (1 + place / 30) ** -fade)):
                if rng.random() >= private:
                    page.append(int(common * rng.random() ** 2))
                elif pool and rng.random() < repeats:
                    page.append(pool[int(rng.integers(len(pool)))])
                else:
                    number += 1
                    pool.append(number)
                    page.append(number)
            site.append(page)
        pages.append(site)
    return pages


def made_campaign(pages: Pages, seed: int) -> MadeCampaign:
    """A campaign whose rule, budget (5 to 90 % of all pages) and order of discovery are drawn from the seed."""
    rng = np.random.default_rng([1, seed])
    sizes = [len(site) for site in pages]
    budget = max(1, int(sum(sizes) * rng.uniform(0.05, 0.9)))
    name = str(rng.choice(RULES))
    rule = SitePolicy(parse_rule(name, budget, len(pages)), Novelty("page", lambda url: SiteKey("")), seed)
    # Each page read links to ten new pages of its site; otherwise the first page links to all of them.
    gradual = bool(rng.random() < 0.5)
    hosts = [ReadyHost(place, HostKey(f"s{place}:80"), SiteKey(f"s{place}"), 1, 0, 0.0) for place in range(len(pages))]
    read, known, seen, order = [0] * len(pages), [1] * len(pages), [set[int]() for _ in pages], []
    for _ in range(budget):
        (site,) = rule.choose([host for host in hosts if read[host.host_id] < known[host.host_id]], 1)
        items = set(pages[site][read[site]])
        rule.book(hosts[site].site, float(len(items - seen[site])))
        seen[site] |= items
        read[site] += 1
        known[site] = min(sizes[site], 1 + 10 * read[site]) if gradual else sizes[site]
        order.append((site, items))
    pairs = np.array(
        [(place, item) for place, (_, items) in enumerate(order) for item in sorted(items)], np.int64
    ).reshape(-1, 2)
    names = [f"s{place}" for place in range(len(pages))]
    rows = harvest_rows(
        names, np.array(known), np.array([site for site, _ in order], np.int32), (pairs[:, 0], pairs[:, 1])
    )
    return MadeCampaign(rows, pages, read, known, name)
