"""Surveys and topical crawls in a folder or a database, and with two workers, equal those of one worker on a folder."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from campaigns import DRY, PAGES, POOR, RICH, asked, campaign, quick, web
from postgres_voyage import StoredCollection
from voyage import QUICK, Collection, flags_for, plain, told

from periplus.api.homes import home_of
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.settings import settings_from
from periplus_studies import api as survey
from periplus_studies.units import unit_of
from periplus_topics.api.topical_run import TopicalOrder, crawl_topic, harvest_of
from periplus_topics.api.topics import judge_of
from testweb import serve
from topics.test_topical import DEFAULTS, SHIP, judge, prose
from topics.test_topical import web as topical_web


@pytest.fixture
def server():
    with serve(web()) as serving:
        yield serving


@pytest.fixture(params=["folder", "database"])
def place(request, tmp_path):
    return tmp_path / "c" if request.param == "folder" else request.getfixturevalue("address").text


def faults_of(place):
    """Faults of a collection. A stopped run may leave links to foreign hosts to the next."""
    collection = StoredCollection(place) if isinstance(place, str) else Collection(place)
    return [fault for fault in collection.sane() if fault != "something left in the inbox"]


@pytest.mark.parametrize(("rule", "within"), [("r2:4", "breadth"), ("scout", "learned")])
def test_a_survey_in_a_database_equals_a_survey_in_a_folder(tmp_path, address, server, rule, within):
    made = campaign(server, rule=rule, within=within)
    survey.create(tmp_path / "c", made)
    survey.run(tmp_path / "c", quick(server), lambda watched: False)
    of_folder = asked(server)
    survey.create(address.text, made)
    end = survey.run(address.text, quick(server), lambda watched: False)
    assert (end.state, end.note, end.counts.fetched) == ("stopped", "30 pages are fetched", 30)
    assert asked(server)[30:] == of_folder
    assert survey.standing_of(address.text) == survey.standing_of(tmp_path / "c")
    assert faults_of(address.text) == []


def test_a_stopped_survey_in_a_database_continues_unchanged(tmp_path, address, server):
    made = campaign(server, rule="r2:4", within="learned")
    survey.create(tmp_path / "c", made)
    survey.run(tmp_path / "c", quick(server), lambda watched: False)
    of_folder = asked(server)
    survey.create(address.text, made)
    for most in (8, 19, 99):
        survey.run(
            address.text, quick(server, delay_s=0.04), lambda watched, most=most: len(asked(server)) >= 30 + most
        )
    assert asked(server)[30:] == of_folder


def test_sites_are_added_and_removed_in_a_database(address, server):
    place = address.text
    survey.create(place, campaign(server, POOR, RICH, rule="r2:1", pages=20))
    survey.run(place, quick(server), lambda watched: False)
    _, (gone,) = survey.remove_sites(place, ["rich"])
    survey.add_sites(place, [unit_of(server.url(DRY), "dry")])
    survey.change(place, lambda before: survey.Campaign(before.title, before.units, "r2:1", "breadth", pages=0))
    at = len(asked(server))
    assert survey.run(place, quick(server), lambda watched: False).state == "done"
    assert RICH not in {host for host, _ in asked(server)[at:]} and faults_of(place) == []
    survey.add_sites(place, [gone])
    survey.run(place, quick(server), lambda watched: False)
    assert Counter(host for host, _ in asked(server)) == {POOR: PAGES, RICH: PAGES, DRY: PAGES}
    assert [row.state for row in survey.standing_of(place).sites] == ["read"] * 3
    assert faults_of(place) == []


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_survey_fetches_the_same_pages_at_any_speed_with_any_number_of_workers(tmp_path, place, server, at_once):
    """One process chooses; for kills see test_survey."""
    made = campaign(server, rule="scout", within="learned", pages=40, at_once=at_once)
    survey.create(tmp_path / "slow", made)
    survey.run(tmp_path / "slow", quick(server, delay_s=0.02), lambda watched: False)
    before = Counter(asked(server))
    survey.create(place, made)
    end = survey.run(place, quick(server, workers=2), lambda watched: False)
    assert (end.state, end.note) == ("stopped", "40 pages are fetched")
    assert Counter(asked(server)) - before == before and set(before.values()) == {1}
    assert survey.standing_of(place) == survey.standing_of(tmp_path / "slow"), "in the same order: of curves too"
    assert server.log.max_at_once(RICH) == 1 and faults_of(place) == []


def test_a_survey_of_two_workers_knows_the_pages_of_both(place, server):
    """With a time budget each worker holds some of the sites."""
    survey.create(place, campaign(server, rule="r2:2", within="learned", pages=0, at_once=4))
    most = []
    end = survey.run(
        place, quick(server, workers=2, delay_s=0.05), lambda watched: bool(most.append(watched.progress.workers))
    )
    assert end.state == "done" and max(most) == 2
    assert len(asked(server)) == len(set(asked(server))) == 3 * PAGES
    standing = survey.standing_of(place)
    assert (standing.pages, sum(row.pages for row in standing.sites)) == (3 * PAGES, 3 * PAGES)
    assert server.log.max_at_once(RICH) == 1 and faults_of(place) == []


@pytest.fixture
def ships():
    with serve(topical_web()) as serving:
        yield serving


def order_of(server, place, **more):
    values = {**QUICK, "resolve": tuple(server.resolve), "delay_s": 0.01, "concurrency": 1, "commit_pages": 1} | more
    settings = settings_from(values, DEFAULTS)
    return TopicalOrder(place, (Url(server.url(SHIP)),), "ships", judge, settings)


def test_a_topical_crawl_in_a_database_equals_one_in_a_folder(tmp_path, address, ships):
    ends = []
    for place in (tmp_path / "c", address.text):
        at = len(ships.log.entries)
        crawl_topic(order_of(ships, place, max_pages=25), lambda progress: False)
        ends.append(crawl_topic(order_of(ships, place, max_pages=25), lambda progress: False))
        pages = [(entry.host, entry.target) for entry in ships.log.entries[at:] if entry.target != "/robots.txt"]
        assert len(pages) == len(set(pages)) == 50
        assert faults_of(place) == []
    assert [end.end.note for end in ends] == ["max-pages 25 reached"] * 2
    assert [end.gathered.pages for end in ends] == [50, 50]
    assert min(end.gathered.relevant for end in ends) >= 20, "of 51; by chance it would be 11"


def test_the_curve_of_a_topical_crawl_is_shared_in_the_database(tmp_path, address, ships, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    crawl_topic(order_of(ships, address.text, max_pages=1), lambda progress: False)
    end = crawl_topic(order_of(ships, address.text, max_pages=20), lambda progress: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    points = harvest_of(address.text, "ships")
    assert (points[-1].pages, points[-1].relevant) == (end.gathered.pages, end.gathered.relevant) == (21, points[-1][2])


def test_a_topical_crawl_of_two_workers_judges_the_pages_of_both(place, tmp_path, ships):
    topics = place if isinstance(place, str) else tmp_path / "topics"
    if isinstance(place, str):
        home_of(place).prepare("", 0.0)  # a command begins a collection for examples only in a folder
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        for number in range(12):
            (tmp_path / name / f"{number}.txt").write_text(prose(name == "good", f"{name} {number}"))
    words = ("topic", "train", "ships", "-p", tmp_path / "good", "-n", tmp_path / "bad", "-c", topics)
    assert told(*words, cwd=tmp_path).returncode == 0
    base = order_of(ships, place, max_pages=60, workers=2, concurrency=4, delay_s=0.25)
    order = TopicalOrder(
        base.place,
        base.seeds,
        "ships",
        judge_of(topics, "ships").judge,
        base.settings,
        topic_place=topics,
    )
    most = []
    end = crawl_topic(order, lambda progress: bool(most.append(progress.progress.workers)))
    pages = [(entry.host, entry.target) for entry in ships.log.entries if entry.target != "/robots.txt"]
    assert end.end.note == "max-pages 60 reached" and max(most) == 2
    assert len(pages) == len(set(pages)) == end.gathered.pages == harvest_of(place, "ships")[-1].pages == 60
    assert faults_of(place) == []
    assert not (tmp_path / "cache").exists(), "no worker makes a copy"


def test_a_site_of_several_hosts_is_one_unit_in_a_database(address, server):
    unit = unit_of(server.url(RICH), "both", prefixes=[server.url(RICH), server.url(POOR)])
    survey.create(address.text, survey.Campaign("Two hosts", (unit,), "r2:2", "breadth", pages=0))
    end = survey.run(address.text, quick(server), lambda watched: False)
    (row,) = survey.standing_of(address.text).sites
    assert (end.state, row.pages) == ("done", PAGES)
    reasons = dict(
        StoredCollection(address.text).ask("SELECT reason, count(*) FROM url WHERE text LIKE 'http://rich%' GROUP BY 1")
    )
    assert reasons == {Reason.OK: PAGES}


def test_the_commands_of_a_survey_in_a_database(address, tmp_path, server):
    store = ("-c", address.text)
    starts = [server.url(host) for host in (POOR, RICH)]
    made = told("survey", "create", *starts, *store, "--pages", "12", "--rule", "r2:2", cwd=tmp_path)
    assert made.returncode == 0 and "A survey of 2 sites" in made.stderr
    assert told("survey", "add", server.url(DRY), *store, cwd=tmp_path).returncode == 0
    ended = told("survey", "run", "-q", *store, *flags_for(server.resolve), cwd=tmp_path)
    assert ended.returncode == 0 and "12 pages are fetched" in plain(ended.stderr)
    values = json.loads(told("survey", "status", "--json", *store, cwd=tmp_path).stdout)
    assert (values["pages"], len(values["sites"])) == (12, 3)
    assert told("survey", "remove", DRY, *store, cwd=tmp_path).returncode in (0, 2)
    assert not list(tmp_path.iterdir()), "nothing is made beside the database"
