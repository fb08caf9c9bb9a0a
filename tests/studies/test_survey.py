"""Campaigns over a small web: budget, choices, kills, added and removed sites, tables of links, output."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest
from campaigns import DRY, PAGES, POOR, RICH, asked, campaign, links, quick, ran, text, web
from voyage import PATIENCE_S, PATIENT, Collection, command, environment, flags_for, plain, told, until

from periplus.errors import UsageError
from periplus.model.frontier import ReadyHost
from periplus.model.visit import Reason
from periplus.model.web import HostKey, SiteKey, Url
from periplus.settings import Scope
from periplus.store.sqlite import reading
from periplus_studies import api as survey
from periplus_studies.api import standing_of
from periplus_studies.harvest import standing_lines
from periplus_studies.model import Campaign, CompanionClass
from periplus_studies.results import survey_of
from periplus_studies.schedule import UnitScope, campaign_from, survey_policy
from periplus_studies.units import unit_of
from testweb import Page, Server, Site, Web, serve
from testweb.wire import Answer


@pytest.fixture
def server():
    with serve(web()) as serving:
        yield serving


@pytest.mark.parametrize(
    ("rule", "within"), [("r1", "breadth"), ("r2:3", "breadth"), ("scout", "learned"), ("r3", "breadth")]
)
def test_the_budget_is_exact_and_no_page_is_requested_twice(tmp_path, server, rule, within):
    kept, end = ran(tmp_path / "c", server, campaign(server, rule=rule, within=within))
    assert (end.state, end.note, end.counts.fetched) == ("stopped", "30 pages are fetched", 30)
    assert Counter(asked(server)).most_common(1)[0][1] == 1 and len(asked(server)) == 30
    assert kept.sane() == []


@pytest.mark.parametrize("within", ["breadth", "learned"])
def test_several_pages_at_once_keep_the_budget_and_the_politeness(tmp_path, server, within):
    kept, end = ran(tmp_path / "c", server, campaign(server, rule="scout", within=within, at_once=3, pages=50))
    assert end.counts.fetched == len(asked(server)) == 50 and kept.sane() == []
    assert max(server.log.max_at_once(host) for host in (POOR, RICH, DRY)) == 1


def test_the_budget_may_be_a_time(tmp_path, server):
    _, end = ran(tmp_path / "c", server, campaign(server, pages=0), delay_s=0.1, max_time_s=0.6)
    assert (end.state, end.note) == ("stopped", "max-time 0.6 s is over") and end.counts.fetched < 3 * PAGES


@pytest.mark.parametrize(("item", "of_rich"), [("page", 8), ("host", 8), ("domain", 4)])
def test_links_are_counted_as_pages_hosts_or_domains(tmp_path, item, of_rich):
    made = Site("rich.test")
    outer = [f"http://{'ab'[place % 2]}.t{number}.example/{place}" for number in range(4) for place in range(2)]
    made.add(Page("/", "R", html=links(*outer)))
    with serve(Web([made])) as server:
        ran(tmp_path / "c", server, campaign(server, "rich.test", item=item))
    (row,) = standing_of(tmp_path / "c").sites
    assert row.links == of_rich


def test_r2_as_published_stays_with_the_best_site(tmp_path, server):
    """Two pages of each, then blocks of two on the largest mean: rich has 3 new links per page and never dries up."""
    ran(tmp_path / "c", server, campaign(server))
    assert [host for host, _ in asked(server)][6:] == [RICH] * 24


def test_the_same_seed_gives_the_same_choices(tmp_path, server):
    made = campaign(server, rule="scout", within="learned")
    for name in "ab":
        ran(tmp_path / name, server, made)
    both = asked(server)
    assert both[:30] == both[30:]
    assert {host for host, _ in both} == {RICH, POOR, DRY}


@pytest.mark.parametrize("within", ["breadth", "learned"])
def test_frequent_restarts_do_not_change_choices(tmp_path, server, within):
    ran(tmp_path / "whole", server, campaign(server, rule="r2:4", within=within))
    whole, before = asked(server), len(asked(server))
    survey.create(tmp_path / "parts", campaign(server, rule="r2:4", within=within))
    runs = 0
    while len(asked(server)) < 2 * before and runs < 30:
        at = len(asked(server))
        ran(tmp_path / "parts", server, stop=lambda watched, at=at: len(asked(server)) >= at + 3, delay_s=0.04)
        runs += 1
    parts = asked(server)[before:]
    assert runs > 2
    assert parts == whole


def test_the_rule_is_restored_after_a_run(tmp_path, server):
    watched = []
    ran(tmp_path / "c", server, campaign(server, rule="scout"), stop=lambda one: bool(watched.append(one.standing())))
    # no work is left: the same again
    ran(tmp_path / "c", server, stop=lambda one: bool(watched.append(one.standing())))
    stored = standing_of(tmp_path / "c")
    assert stored.sites == watched[-1].sites and stored.harvest == watched[-1].harvest
    assert sum(row.links for row in stored.sites) == sum(len(seen) for seen in links_by_site(tmp_path / "c").values())


def links_by_site(folder) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for link in survey.links(folder, survey.LinkChoice("external")):
        found.setdefault(link.unit, set()).add(link.target)
    return found


@pytest.mark.parametrize(("within", "at_once"), [("breadth", 1), ("learned", 1), ("learned", 4)])
def test_two_kills_do_not_change_the_order_of_pages(tmp_path, server, within, at_once):
    made = campaign(server, rule="r2:3", within=within, pages=60, at_once=at_once)
    ran(tmp_path / "whole", server, made)
    before = Counter(asked(server))
    folder = tmp_path / "c"
    survey.create(folder, made)
    words = command("survey", "run", "-q", "-c", folder, *flags_for(server.resolve, delay_s=0.01, **PATIENT))
    for pages in (15, 40):
        child = subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL)
        until(
            lambda most=pages, child=child: len(asked(server)) >= 60 + most or child.poll() is not None,
            "the campaign does not get so far",
        )
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    ended = subprocess.run(words, env=environment(), stderr=subprocess.DEVNULL, check=False)
    assert ended.returncode == 0
    again = Counter(asked(server)) - before
    assert set(again) == set(before) and 60 <= again.total() <= 60 + 2 * at_once
    assert visited(folder) == visited(tmp_path / "whole")
    assert server.log.max_at_once(RICH) == 1


def visited(folder) -> list[tuple[str]]:
    """Requested pages in stored order."""
    find = "SELECT u.text FROM visit v JOIN url u ON u.id = v.url_id WHERE v.purpose = 'page' ORDER BY v.id"
    return Collection(folder).ask(find)


def test_sites_are_added_and_removed_during_a_run(tmp_path, server):
    folder = tmp_path / "c"

    def meddle(watched) -> bool:
        if watched.pages >= 8 and not moved:
            survey.remove_sites(folder, ["rich"])
            survey.add_sites(folder, [unit_of(server.url(DRY), "dry")])
            moved.append(len(asked(server)))
        return False

    moved: list[int] = []
    kept, _ = ran(
        folder,
        server,
        campaign(server, POOR, RICH, rule="r2:1", pages=90),
        stop=meddle,
        commit_interval_s=0.02,
        delay_s=0.03,
    )
    after = [host for host, _ in asked(server)][moved[0] :]
    last_of_rich = max(place for place, host in enumerate(after) if host == RICH) if RICH in after else -1
    assert DRY in after and last_of_rich < after.index(DRY)
    assert kept.sane() == [] and not any(row.reason is Reason.WAITING for url, row in kept.urls.items() if RICH in url)
    assert [row.short for row in standing_of(folder).sites] == ["poor", "dry"]


def test_an_added_site_that_was_linked_before_is_crawled_from_its_start(tmp_path):
    other = Site("other.test")
    first = Site("first.test")
    first.add(Page("/", "F", html=links(other.url("/deep/page")) + text("f", 0)))
    other.add(Page("/", "O", html=links("/deep/page", "/x") + text("o", 0)))
    other.add(Page("/deep/page", "P", html=links("/") + text("o", 1)))
    other.add(Page("/x", "X", html=links("/") + text("o", 2)))
    with serve(Web([first, other])) as server:
        ran(tmp_path / "c", server, campaign(server, "first.test"))
        survey.add_sites(tmp_path / "c", [unit_of(server.url("other.test"))])
        kept, _ = ran(tmp_path / "c", server)
        depths = {
            url.partition("test:")[2].partition("/")[2]: depth for url, depth in kept.depths.items() if "other" in url
        }
        assert depths == {"": 0, "deep/page": 1, "x": 1}
        assert set(kept.reasons.values()) == {Reason.OK} and kept.sane() == []


def test_a_site_added_again_continues(tmp_path, server):
    folder, sites = tmp_path / "c", (POOR, RICH)
    ran(folder, server, campaign(server, *sites, pages=20))
    _, (gone,) = survey.remove_sites(folder, ["rich"])
    ran(folder, server)
    survey.add_sites(folder, [gone])
    survey.change(folder, lambda before: dataclasses.replace(before, pages=0))
    kept, end = ran(folder, server)
    assert end.state == "done" and kept.sane() == []
    assert Counter(host for host, _ in asked(server)) == {POOR: PAGES, RICH: PAGES}


def test_a_failing_start_is_unavailable_with_its_reason(tmp_path):
    down = Site("down.test")
    down.answer("/", Answer(404, b"gone", "text/html"), linked_from=None)
    with serve(Web([down, *web().sites.values()])) as server:
        ran(tmp_path / "c", server, campaign(server, "down.test", POOR, pages=10))
    first, second = standing_of(tmp_path / "c").sites
    assert first.state.startswith("not available: not found") and (first.links, second.state) == (0, "reading")


def test_depth_is_limited(tmp_path, server):
    kept, end = ran(tmp_path / "c", server, campaign(server, POOR, pages=0), max_depth=1)
    assert (end.state, end.counts.fetched) == ("done", 1 + PAGES // 2)
    assert {
        row.reason for row in kept.urls.values() if row.depth == 2 and POOR in row.url and "example" not in row.url
    } == {Reason.DEPTH}


def test_the_run_records_rule_settings_and_seed(tmp_path, server):
    kept, _ = ran(tmp_path / "c", server, campaign(server, seed=7))
    ((kind, seed, values),) = kept.ask("SELECT kind, seed, settings FROM run")
    said = json.loads(values)
    assert (kind, seed, said["survey_rule"], said["survey_within"], said["survey_pages"], said["max_depth"]) == (
        "survey",
        7,
        "r2:2",
        "breadth",
        30,
        5,
    )


def test_the_three_tables_of_links(tmp_path, server):
    folder = tmp_path / "c"
    ran(folder, server, campaign(server, pages=0), max_depth=1)
    internal = list(survey.links(folder, survey.LinkChoice("internal", site="rich", page=r":\d+/$")))
    assert {(link.depth, link.processed, link.reason) for link in internal} == {(1, True, "ok")} and len(
        internal
    ) == PAGES // 2
    unread = list(survey.links(folder, survey.LinkChoice("internal", site="rich", target="/p2$")))
    assert [(link.depth, link.processed, link.anchor) for link in unread] == [(2, False, "to /p2")]
    external = list(survey.links(folder, survey.LinkChoice("external", target="t1-0.rich")))
    assert [(link.unit, link.anchor, link.position, link.title) for link in external] == [
        ("rich", "to ple/", "body", "T")
    ]
    bad = list(survey.links(folder, survey.LinkChoice("bad")))
    assert sorted((link.unit, link.text, link.why, link.anchor) for link in bad)[0] == (
        "dry",
        "javascript:x()",
        "javascript",
        "bad",
    )


def test_links_are_deleted_as_chosen_and_no_others(tmp_path, server):
    folder = tmp_path / "c"
    ran(folder, server, campaign(server))
    wanted, every = survey.LinkChoice("external", target="all.example"), survey.LinkChoice("external")
    before = len(list(survey.links(folder, every)))
    chosen = len(list(survey.links(folder, wanted)))
    assert survey.delete(folder, wanted) == chosen == 30
    assert len(list(survey.links(folder, every))) == before - chosen
    assert survey.delete(folder, survey.LinkChoice("bad")) == len(
        {host for host, path in asked(server) if path == "/p1"}
    )
    assert list(survey.links(folder, survey.LinkChoice("bad"))) == []


def test_several_hosts_may_be_one_site_and_units_of_a_host_share_its_delay():
    units = [
        unit_of("https://www.a.org/", "a", prefixes=["a.org", "*.a.org"]),
        unit_of("https://b.org/~ann", "ann"),
        unit_of("https://b.org/~bob", "bob"),
        unit_of("https://c.org/", "c", prefixes=["c.org", "old.c.net"]),
    ]
    crawl_scope = UnitScope(units, Scope())
    sites = {
        url: crawl_scope.site_of(Url(url))
        for url in (
            "https://a.org/x",
            "https://www.a.org/",
            "http://mail.a.org/",
            "https://old.c.net/",
            "https://d.org/",
        )
    }
    assert list(sites.values()) == ["a.org", "a.org", "a.org", "c.org", "d.org"]
    assert (
        crawl_scope.site_of(Url("https://b.org/~ann/1")) == crawl_scope.site_of(Url("https://b.org/~bob/")) == "b.org"
    )
    assert crawl_scope.sites == {"a.org", "b.org", "c.org"}
    inside = [
        url
        for url in (*sites, "https://b.org/", "https://b.org/~ann/2", "https://b.org/~anna/")
        if crawl_scope.decide(Url(url)) is None
    ]
    assert inside == [
        "https://a.org/x",
        "https://www.a.org/",
        "http://mail.a.org/",
        "https://old.c.net/",
        "https://b.org/~ann/2",
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rule": "best"}, "no rule best"),
        ({"rule": "r1", "pages": 0}, "needs the number"),
        ({"item": "word"}, "counts links by"),
        ({"units": (unit_of("a.org", "x"), unit_of("b.org", "x"))}, "the name x"),
        ({"units": (unit_of("a.org"), unit_of("a.org/~x", "y", prefixes=["a.org"]))}, "prefix of both"),
    ],
)
def test_invalid_campaigns_are_refused_before_anything_is_created(tmp_path, wrong, said):
    with pytest.raises(UsageError, match=said):
        survey.create(tmp_path / "c", Campaign(**{"units": (unit_of("a.org"),), **wrong}))
    assert not (tmp_path / "c").exists()


def test_every_host_is_compared_and_10_000_scores_are_kept(tmp_path):
    """All from the start: the delay of scores must not depend on the time of discovery."""
    units = tuple(unit_of(f"s{number}.test") for number in range(10_000))
    policy = survey_policy(Campaign(units=units, pages=50, within="breadth"), survey.DEFAULTS)
    policy.book(SiteKey("s7.test"), [Url("http://x.test/")], 0.1)
    assert len(policy.scope.sites) == len(policy.rule.places) == 10_000


def test_choices_do_not_depend_on_the_order_of_offers():
    units = tuple(unit_of(f"s{number}.test") for number in range(5))
    hosts = [ReadyHost(7 - at, HostKey(f"s{at}.test:80"), SiteKey(f"s{at}.test"), 1, 0, 0.0) for at in range(5)]
    for offered in permutations(hosts):
        policy = survey_policy(Campaign(units=units, pages=50, within="breadth"), survey.DEFAULTS)
        policy.book(SiteKey("s0.test"), [Url("http://x.test/")], 0.1)
        assert policy.choose(offered, 3) == [6, 5, 4]


def test_the_commands_from_the_list_of_sites_to_the_report(tmp_path, server):
    folder = tmp_path / "s.periplus"
    listed = tmp_path / "sites.csv"
    listed.write_text(
        "start,name,short,bundle\n"
        + "".join(f"{server.url(host)},Site {host},{host[:4]},B\n" for host in (POOR, RICH, DRY)),
        "utf-8",
    )
    flags = flags_for(server.resolve)
    assert (
        "3 sites"
        in told("survey", "create", "-i", listed, "-c", folder, "--pages", "30", "--rule", "r3", cwd=tmp_path).stderr
    )
    ended = told("survey", "run", *flags, cwd=tmp_path)
    assert ended.returncode == 0 and "Stopped: 30 pages are fetched" in plain(ended.stderr)
    shown = told("survey", "status", cwd=tmp_path).stdout
    assert "rule r3, seed 1" in shown and "round robin" in shown and "complete " in shown
    values = json.loads(told("survey", "status", "--json", cwd=tmp_path).stdout)
    assert values["pages"] == 30 and {row["short"] for row in values["sites"]} == {"poor", "rich", "dry."}
    assert (
        "Delete 3 bad links" in told("survey", "links", "--kind", "bad", "--delete", cwd=tmp_path, given="n\n").stderr
    )
    assert told("survey", "links", "--kind", "bad", "-f", "csv", cwd=tmp_path).stdout.count("javascript:x()") > 0
    report = told("survey", "report", cwd=tmp_path).stdout
    assert all(text in report for text in ("Site rich.test", "survey_rule", "r3", "Method"))
    assert told("survey", "export", "sites", cwd=tmp_path).stdout.count("\n") == 4
    assert "<svg" in told("survey", "export", "yield", cwd=tmp_path).stdout
    assert told("survey", "mark", "all.example", "--status", "in", "--tag", "hub", cwd=tmp_path).returncode == 0
    assert [unit.start for unit in survey.campaign_of(folder).units][3:] == ["https://all.example/"]
    assert told("survey", "run", "--max-pages", "5", *flags, cwd=tmp_path).returncode == 2


def test_another_process_can_stop_it(tmp_path, server: Server):
    folder = tmp_path / "c"
    survey.create(folder, campaign(server, pages=0, at_once=1))

    def ask(watched) -> bool:
        if watched.pages >= 3 and not wished:
            survey.stop(folder)
            wished.append(True)
        return False

    wished: list[bool] = []
    end = survey.run(folder, quick(server, delay_s=0.05), ask)
    assert (end.state, end.note) == ("stopped", "stopped by `periplus survey stop`") and end.counts.fetched < 3 * PAGES
    assert survey.run(folder, quick(server), lambda watched: False).state == "done"


def test_output_fits_terminals_without_block_characters(tmp_path, server):
    ran(tmp_path / "c", server, campaign(server))
    with reading.reading():
        lines = list(standing_lines(standing_of(tmp_path / "c"), most=1, boxes=False))
    assert (
        all(line.isascii() for line in lines)
        and lines[1].split()[:3] == ["rich", "26", "79"]
        and lines[2] == "  and 2 more sites"
    )


def test_the_example_finds_the_site_with_external_links(tmp_path):
    program = Path(__file__).parents[2] / "examples" / "survey" / "campaign.py"
    ended = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "stopped 40 pages are fetched" and lines[2].split()[:3] == ["links", "30", "120"]


def companion_web() -> Web:
    """The small web; its starts link to a hub, a partner and a search engine; the hub links back to two of them."""
    made = web()
    hub, partner, engine = Site("hub.test"), Site("partner.test"), Site("www.google.com")
    outside = (hub.url("/en/"), partner.url("/"), engine.url("/"))
    for host, one in made.sites.items():
        inner = [f"/p{number}" for number in range(1, PAGES, 2)]
        one.add(Page("/", host, html=links(*inner, *outside) + f"<p>{text(host, 999)}</p>"))
    hub.add(Page("/en/", "Hub", html=links("/en/members") + f"<p>{text('hub', 1)}</p>"))
    back = [made.sites[host].url("/") for host in (RICH, POOR)]
    hub.add(Page("/en/members", "Members", html=links(*back) + f"<p>{text('hub', 2)}</p>"))
    partner.add(Page("/", "Partner", html=links("/p") + f"<p>{text('partner', 1)}</p>"))
    partner.add(Page("/p", "Page", html=links("/") + f"<p>{text('partner', 2)}</p>"))
    return Web([*made.sites.values(), hub, partner, engine])


@pytest.mark.parametrize("within", ["breadth", "learned"])
def test_companions_are_fetched_last_to_find_links_back(tmp_path, within):
    with serve(companion_web()) as server:
        made = campaign(server, within=within, pages=30, read_companions=4)
        kept, end = ran(tmp_path / "c", server, made)
        asked_of = [host for host, _ in asked(server)]
        # all.example, which they all link to, does not answer
        assert Counter(asked_of[26:]) == {"hub.test": 2, "partner.test": 2}
        assert not {*asked_of[:26]} - {RICH, POOR, DRY}
        assert len(asked_of) == end.counts.fetched == 30 and kept.sane() == []
        found = {site.name.partition(":")[0]: site for site in survey_of(tmp_path / "c", made.units).companions}
        assert found["hub.test"].kind is CompanionClass.COMMUNICATOR and found["hub.test"].back == 2
        assert found["partner.test"].kind is CompanionClass.STRONG
        stood = standing_of(tmp_path / "c")
        assert (stood.pages, [pages for _, pages in stood.companion_pages]) == (26, [2, 2])
        assert "companions   4 pages of 2 strong companions" in "\n".join(standing_lines(stood))


def test_a_stopped_run_continues_with_its_companions(tmp_path):
    with serve(companion_web()) as server:
        survey.create(tmp_path / "c", campaign(server, pages=40, read_companions=20))
        runs = 0
        while len(asked(server)) < 40 and runs < 30:
            at = len(asked(server))
            ran(tmp_path / "c", server, stop=lambda watched, at=at: len(asked(server)) >= at + 5, delay_s=0.04)
            runs += 1
        asked_of = [host for host, _ in asked(server)]
        # they have four pages; the rest of the budget goes to the survey's own sites
        assert Counter(asked_of[20:24]) == {"hub.test": 2, "partner.test": 2}
        assert len(asked_of) == len(set(asked(server))) == 40 and runs > 3


def test_without_strong_companions_their_pages_go_to_the_sites(tmp_path, server):
    _, end = ran(tmp_path / "c", server, campaign(server, RICH, pages=12, read_companions=4))
    assert [host for host, _ in asked(server)] == [RICH] * 12 and end.counts.fetched == 12


def test_a_companion_that_joins_the_survey_is_crawled_as_a_site(tmp_path):
    with serve(companion_web()) as server:
        ran(tmp_path / "c", server, campaign(server, pages=30, read_companions=10))
        hub = unit_of(server.url("hub.test"))
        survey.add_sites(tmp_path / "c", [hub])
        ran(tmp_path / "c", server)
        stood = standing_of(tmp_path / "c")
        assert hub.name in [row.name for row in stood.sites]
        assert [name.partition(":")[0] for name, _ in stood.companion_pages] == ["partner.test"]


def test_every_site_gets_its_least_pages_before_the_rule_chooses(tmp_path, server):
    ran(tmp_path / "c", server, campaign(server, rule="scout", least_pages=8))
    asked_of = [host for host, _ in asked(server)]
    assert Counter(asked_of[:24]) == {POOR: 8, RICH: 8, DRY: 8}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"least_pages": 11}, "11 pages of each of 3 sites exceed the budget of 30 pages"),
        ({"least_pages": 10, "read_companions": 1}, "exceed the budget of 29 pages"),
        ({"read_companions": 30}, "give a larger total"),
        ({"read_companions": 5, "pages": 0}, "give a larger total"),
        ({"least_pages": -1}, "must not be negative"),
    ],
)
def test_invalid_minimums_and_shares_are_refused(tmp_path, server, fields, words):
    with pytest.raises(UsageError, match=words):
        survey.create(tmp_path / "c", campaign(server, **fields))


def test_a_missing_survey_is_named_without_a_password():
    with pytest.raises(UsageError, match="has no survey") as refused:
        campaign_from("", "postgresql://me:s3cret@db/crawls?collection=web")
    assert "s3cret" not in str(refused.value)
