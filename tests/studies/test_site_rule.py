"""A selection rule as the policy of a crawl."""

from __future__ import annotations

import numpy as np
import pytest

from periplus.document.understand import understand
from periplus.errors import UsageError
from periplus.model.frontier import ReadyHost
from periplus.model.visit import Fetched, Headers
from periplus.model.web import HostKey, SiteKey, Url
from periplus.urls.hosts import host_name
from periplus_studies.rules import CLICK_LINKS, RULES, Novelty, SitePolicy, parse_rule

SITES = 12
RICH = 7


def site_of(url: Url) -> SiteKey:
    return SiteKey(host_name(url))


def policy(name: str = "scout", **other) -> SitePolicy:
    return SitePolicy(parse_rule(name, 600, SITES), Novelty("page", site_of), seed=5, **other)


def host(site: int) -> ReadyHost:
    return ReadyHost(site, HostKey(f"s{site}.test:80"), SiteKey(f"s{site}.test"), 1, 0, 0.0)


def played(rule: SitePolicy, pages: int, *, lengths: int = 10_000) -> list[int]:
    """The selected sites, one page at a time. Site RICH yields 3 links on each second page, the others hardly any."""
    asked: list[int] = []
    for _ in range(pages):
        ready = [host(site) for site in range(SITES) if asked.count(site) < lengths]
        if not ready:
            break
        (site,) = rule.choose(ready, 1)
        number = asked.count(site)
        rule.book(SiteKey(f"s{site}.test"), 3.0 * (number % 2) if site == RICH else float(number % 40 == 39))
        asked.append(site)
    return asked


@pytest.mark.parametrize("name", [*RULES, "r2:5", "r3:4", "quantum:3"])
def test_every_rule_selects_each_site_and_no_exhausted_one(name: str):
    asked = played(policy(name), 130, lengths=10)
    assert sorted(asked) == sorted(list(range(SITES)) * 10)


@pytest.mark.parametrize("name", RULES)
def test_the_same_seed_gives_the_same_choices(name: str):
    assert played(policy(name), 80) == played(policy(name), 80)


def test_our_rule_gives_a_rich_site_twice_its_share():
    """It keeps exploring where many pages yield a little, since such sites run dry."""
    assert played(policy(), 500).count(RICH) > 2 * 500 / SITES


@pytest.mark.parametrize("name", ["r2"])
def test_a_rich_site_gets_most_pages(name: str):
    assert played(policy(name), 500).count(RICH) > 250


@pytest.mark.parametrize("sites", [SITES, 300])
@pytest.mark.parametrize("name", [*RULES, "r2:5"])
def test_only_booked_pages_change_a_selection(name: str, sites: int):
    """Earlier selections and sets of hosts do not matter: a policy that only books pages selects the same."""
    hosts, rng = [host(site) for site in range(sites)], np.random.default_rng(3)
    live, replayed = policy(name), policy(name)
    for one in (live, replayed):
        for each in hosts:
            one.place(each.site)
    for _ in range(400):
        some = hosts[rng.integers(sites) :]
        number = live.choose(some, 1)[0]
        reward = float(rng.poisson(number % 5))
        for one in (live, replayed):
            one.book(hosts[number].site, reward)
    assert list(live.choose(hosts, sites)) == list(replayed.choose(hosts, sites))


def test_with_seconds_as_cost_a_slow_host_comes_later():
    rule = policy("r2:1", cost="seconds")
    for site, took_s in ((0, 2.0), (1, 0.2)):
        for _ in range(10):
            rule.book(SiteKey(f"s{site}.test"), 2.0 if site == 0 else 1.0, took_s=took_s)
    assert rule.choose([host(0), host(1)], 1) == [1]


def test_incremental_scores_of_many_sites_are_close_to_exact_scores():
    """The incremental computation compared with the full one."""
    many, rng = policy(), np.random.default_rng(2)
    for _ in range(2000):
        site = int(rng.integers(300))
        many.book(SiteKey(f"s{site}.test"), float(rng.poisson(site / 100)))
        many.choose([host(site)], 1)
    lagging = many.scores()
    many._whole_at = -1
    for site, score in many.scores().items():
        assert lagging[site] == pytest.approx(score, rel=0.05)


def new(novelty: Novelty, site: str, document) -> int:
    """Number of a document's targets that are new on a site."""
    return novelty.count(SiteKey(site), novelty.targets(SiteKey(site), document.links.targets_of(CLICK_LINKS)))


def test_new_links_count_once_per_site_and_by_unit():
    def page(*links: str):
        body = "".join(f'<a href="{link}">x</a>' for link in links).encode()
        return understand(
            Url("http://s1.test/"), Fetched(200, Headers((("content-type", "text/html"),)), b"<html><body>" + body)
        )

    first = page("/inner", "http://a.org/1", "http://a.org/1", "http://a.org/2", "mailto:x@a.org")
    second = page("http://a.org/2", "http://b.a.org/", "http://c.org/")
    for unit, counts in (("page", [2, 2]), ("host", [1, 2]), ("domain", [1, 1])):
        novelty = Novelty(unit, site_of)
        assert [new(novelty, "s1.test", document) for document in (first, second)] == counts
    assert new(novelty, "s2.test", second) == 2


def test_an_unknown_rule_is_refused_with_the_names():
    with pytest.raises(UsageError, match="scout"):
        parse_rule("best", 100, 3)
    with pytest.raises(UsageError, match="pages"):
        parse_rule("r1", 0, 3)
