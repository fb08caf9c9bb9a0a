"""How long does a selection rule take with many sites, compared with taking the first site?"""

from __future__ import annotations

import time

import numpy as np
from measure import table

from periplus.model.frontier import ReadyHost
from periplus.model.web import HostKey, SiteKey
from periplus_studies.rules import Novelty, SitePolicy, parse_rule

SITES, PAGES = 10_000, 1000
AIM_MS = 0.2


def ms_a_page(name: str, ready: int) -> float:
    """CPU time to choose among `ready` hosts and to learn the result, in a campaign of SITES sites."""
    policy = SitePolicy(parse_rule(name, 10 * SITES, SITES), Novelty("page", SiteKey), seed=1)
    keys = [SiteKey(f"s{number}.test") for number in range(SITES)]
    rng = np.random.default_rng(1)
    rewards = [float(reward) for reward in rng.poisson(0.5, SITES + PAGES)]
    for key in keys:
        policy.book(key, rewards.pop())
    hosts = [
        ReadyHost(number, HostKey(f"{keys[number]}:80"), keys[number], 1, 0, 0.0)
        for number in range(0, SITES, SITES // ready)
    ]
    started = time.process_time()
    for _ in range(PAGES):
        (chosen,) = policy.choose(hosts, 1)
        policy.book(keys[chosen], rewards.pop())
    return (time.process_time() - started) / PAGES * 1000


def main() -> None:
    rows = [(name, *(f"{ms_a_page(name, ready):.3f}" for ready in (10, 64, 500))) for name in ("scout", "r3")]
    print(table(("rule", "10 ready", "64 ready", "500 ready"), rows))
    print(f"ms a page, {SITES} sites; aim {AIM_MS}")


if __name__ == "__main__":
    main()
