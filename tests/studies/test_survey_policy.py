"""The policy of a survey: its own sites before its companion sites."""

from __future__ import annotations

import pytest

from periplus.model.frontier import ReadyHost
from periplus.model.web import HostKey, SiteKey
from periplus.settings import Settings
from periplus_studies.model import Campaign, Unit
from periplus_studies.schedule import survey_policy


def unit(name: str) -> Unit:
    return Unit(name, name, f"http://{name}.test/", (f"{name}.test",))


def host(number: int, name: str) -> ReadyHost:
    return ReadyHost(number, HostKey(f"{name}.test:80"), SiteKey(f"{name}.test"), 1, 0, 0.0)


OWN, COMPANION = host(1, "own"), host(2, "hub")


@pytest.fixture
def policy():
    """The policy of a survey with ten pages of one site and two pages of a companion site."""
    campaign = Campaign(units=(unit("own"),), companions=(unit("hub"),), pages=12, read_companions=2)
    return survey_policy(campaign, Settings())


def read(policy, pages: int) -> None:
    """Books pages of the survey's own site."""
    for _ in range(pages):
        policy.book(OWN.site, [], 0.1)


def test_companions_wait_for_the_pages_of_the_surveys_own_sites(policy):
    for pages in range(10):
        assert policy.choose([COMPANION, OWN], 1) == [OWN.host_id], f"after {pages} pages"
        read(policy, 1)
    assert policy.choose([COMPANION, OWN], 1) == [COMPANION.host_id]


def test_companions_are_read_if_no_own_site_is_left(policy):
    read(policy, 3)
    assert policy.choose([COMPANION], 1) == [COMPANION.host_id]
