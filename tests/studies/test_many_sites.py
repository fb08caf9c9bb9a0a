"""A survey of sites crawled over loopback: its figures equal those of the web."""

from __future__ import annotations

import pytest
from voyage import crawled

from periplus_studies.model import CompanionClass, CompanionRules
from periplus_studies.results import SurveyOrder, survey_of
from periplus_studies.units import unit_of
from testweb import Page, Site, Web, serve
from testweb.wire import Answer


def linked(*links: str) -> str:
    return "<!DOCTYPE html><title>T</title>" + "".join(f'<p><a href="{link}">to {link[-1:]}</a></p>' for link in links)


def small_web() -> Web:
    """Institutes a, b, c, d that do not link to one another but all to the academy, which links back to a, b and c;
    d forbids a folder.
    """
    sites = {name: Site(f"{name}.test") for name in ("a", "b", "c", "d", "academy", "far")}
    academy = sites["academy"].url("/")
    for name in "abcd":
        pages = {
            "/": linked("/1", "/2", academy),
            "/1": linked("/", academy + "news"),
            "/2": linked("/1", sites["far"].url(f"/{name}")),
        }
        if name == "d":
            pages["/"] = linked("/1", "/2", "/secret/x", academy)
            sites[name].answer(
                "/robots.txt", Answer(200, b"User-agent: *\nDisallow: /secret/\n", "text/plain"), linked_from=None
            )
        for path, html in pages.items():
            sites[name].add(Page(path, "T", html=html + f"<!-- {name}{path} -->"))
    sites["academy"].add(Page("/", "Academy", html=linked(*(sites[name].url("/") for name in "abc"), "/news")))
    sites["academy"].add(Page("/news", "News", html=linked("/", sites["a"].url("/1"))))
    return Web(sites.values())


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("survey") / "c"
    with serve(small_web()) as server:
        crawled(folder, server, "a.test", "b.test", "c.test", "d.test", "academy.test", sitemaps=False)
        units = [unit_of(server.url(f"{name}.test"), name.upper(), name) for name in "abcd"]
    return folder, units


def test_a_communicator_ties_the_target_set_together(surveyed):
    folder, units = surveyed
    found = survey_of(folder, units, SurveyOrder(rules=CompanionRules()))
    academy, far = found.companions
    assert (academy.kind, academy.units, academy.back, academy.fetched) == (CompanionClass.COMMUNICATOR, 4, 3, 2)
    assert (far.kind, far.units, far.back) == (CompanionClass.STRONG, 4, None)
    assert academy.gain is not None
    assert (academy.gain.strong_before, academy.gain.largest_strong) == (1, 3)
    assert (academy.gain.weak_before, academy.gain.largest_weak) == (1, 4)
    assert (academy.gain.pairs_before, academy.gain.pairs) == (0, 6)
    assert [row.vertices for row in found.connectivity] == ["all", "official", "bundles", "with communicators"]


def test_the_method_sheet_lists_exclusions(surveyed):
    folder, units = surveyed
    records = survey_of(folder, units).method.units
    assert [(record.fetched, record.robots, record.state) for record in records] == [
        (3, 0, ""),
        (3, 0, ""),
        (3, 0, ""),
        (3, 1, ""),
    ]


def test_figures_equal_those_of_the_web(surveyed):
    folder, units = surveyed
    found = survey_of(folder, units)
    said = [(row.self_links, row.out_companion, row.in_companion, row.in_links) for row in found.figures]
    assert said == [
        (4, 3, 2, 0),
        (4, 3, 1, 0),
        (4, 3, 1, 0),
        (5, 3, 0, 0),
    ]
    assert found.harvest.richness.observed == 2 + 4  # two pages of the academy, four of far.test
    assert found.harvest.companions.found[-1] == 2
    by_host = survey_of(folder, units, SurveyOrder(item="host"))
    assert by_host.harvest.richness.observed == 2
