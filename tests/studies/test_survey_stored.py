"""A survey of a collection in a database answers as in its folder, and leaves no copy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from interface import COMMANDS, token_of
from periplus.api.functions import open_collection
from periplus.api.homes import home_of, open_reader
from periplus.errors import StoreError
from periplus.ui.routes import application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places
from periplus.values import Place
from periplus_postgres.moving import into_database, silent
from periplus_studies import api as survey
from periplus_studies.model import SURVEY_LINKS, Campaign, SiteStatus
from periplus_studies.report import TABLES, survey_table
from periplus_studies.results import pages_of_set, survey_of, table_of, write_paper
from periplus_studies.screens import VIEWS
from periplus_studies.units import unit_of
from stored import page, stored

A, B, C, HUB = "https://a.org/", "https://b.org/", "https://c.org/", "https://hub.net/"
WEB = {
    A: page("Ay", "/1", "/old", B, HUB, "https://w3.org/", "javascript:no()", "javascript:no()"),
    A + "1": page("Ay one", A, "/2#part", C, HUB, "https://shop.net/é"),
    A + "2": page("Ay one", A, "/2#part", C, HUB, "https://shop.net/é").replace("2#part", "1"),
    A + "old": "/1",
    B: page("Bee", A, HUB, "mailto:b@b.org", "http://[bad/"),
    C: page("Sea", A, HUB, f"{HUB}x?a=1", "tel:1"),
    HUB: page("Hub", A, B),
    "https://w3.org/": 404,
}
CHOICES = [
    *(survey.LinkChoice(kind) for kind in SURVEY_LINKS),
    survey.LinkChoice("external", site="a.org", limit=2),
    survey.LinkChoice("external", page="/1", target="hub", anchor="home"),
    survey.LinkChoice("external", target=r"(shop|w3)\.\w+/"),
    survey.LinkChoice("bad", page="a.org", target="javascript", anchor="no"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = stored(tmp_path / "e.periplus", WEB, [A, B, C, HUB])
    survey.create(folder, Campaign("Three sites", (unit_of(A), unit_of(B), unit_of(C)), pages=50))
    survey.decide(folder, ["hub.net"], SiteStatus.UNDECIDED, ["hub", "of all"], now=5.0)
    return folder


@pytest.fixture
def both(folder: Path, address, tmp_path: Path) -> tuple[Place, Place]:
    moved = shutil.copytree(folder, tmp_path / "moved")
    into_database(moved, address.text, silent)
    return folder, address.text


@pytest.fixture
def equal(both: tuple[Place, Place], tmp_path: Path):
    """Checks that both collections give the same answer; then that no copy was made."""

    def check(answer: Callable[[Place], object]) -> object:
        of_folder, of_database = map(answer, both)
        assert of_folder == of_database
        return of_folder

    yield check
    assert {path.parent.name for path in tmp_path.rglob("collection.db")} == {"e.periplus", "moved"}


def test_tables_paper_and_progress_are_equal(equal, tmp_path):
    def tables(place):
        results = survey_of(place, survey.campaign_of(place).units)
        return {name: list(survey_table(results, name)[1]) for name in TABLES if "changes" not in name}

    def paper(place):
        results = survey_of(place, survey.campaign_of(place).units)
        return write_paper(results, tmp_path / f"paper {isinstance(place, str)}")

    assert any(row for rows in equal(tables).values() for row in rows)
    assert len(equal(paper)) == 64
    assert equal(lambda place: list(table_of(place, "companions")[1]))
    assert equal(survey.standing_of).pages == 6


def test_links_and_sets_of_pages_are_equal(equal):
    found = {choice: equal(lambda place, one=choice: list(survey.links(place, one))) for choice in CHOICES}
    assert all(found.values())
    assert len(found[CHOICES[3]]) == 2 and len(found[CHOICES[6]]) == len({*found[CHOICES[6]]})

    def pages(place):
        with open_reader(place) as reader:
            return {name: sorted(pages_of_set(reader, name)) for name in ("target", "strong", "communicator")}

    assert equal(pages)["target"]


def test_decisions_are_equal_and_leave_the_other_marks(equal):
    survey_marks = equal(survey.marks_in)
    equal(lambda place: survey.decide(place, ["hub.net"], SiteStatus.IN, ["hub"], now=6.0))
    equal(lambda place: survey.decide(place, ["b.org", "shop.net"], SiteStatus.OUT, now=7.0))
    assert {*equal(survey.marks_in)} == {*survey_marks, "b.org", "shop.net"}
    assert [unit.name for unit in equal(survey.campaign_of).units] == ["a.org", "c.org", "hub.net"]


@pytest.mark.parametrize("choice", CHOICES, ids=repr)
def test_the_same_links_are_deleted(equal, choice):
    before = len(equal(lambda place: list(survey.links(place, survey.LinkChoice(choice.kind)))))
    deleted = equal(lambda place: survey.delete(place, choice))
    assert (
        len(equal(lambda place: list(survey.links(place, survey.LinkChoice(choice.kind))))) == before - deleted < before
    )
    assert equal(lambda place: survey.delete(place, choice)) == 0 or choice.limit > 0


def test_no_link_is_deleted_in_a_database_while_it_is_crawled(both):
    with home_of(both[1]).only_crawl(), pytest.raises(StoreError, match="another crawl is running"):
        survey.delete(both[1], CHOICES[0])
    with open_collection(both[1]) as collection:
        assert len(list(collection.links())) > 0


def test_screens_and_forms_are_equal(equal, both):
    origin = "http://127.0.0.1:8321"

    def browser(place):
        state = AppState(places([place]), Locks("", ()), COMMANDS)
        (name,) = state.places.collections()
        return TestClient(application(state), base_url=origin, follow_redirects=False), f"/c/{name}/survey"

    browsers = {place: browser(place) for place in both}

    def decided(place):
        client, path = browsers[place]
        values = {"what": "decide", "others": "shop.net", "status": "out", "tags": "dull"}
        values["csrf_token"] = token_of(client, path)
        return client.post(f"{path}/change", data=values, headers={"origin": origin}).status_code

    def shown(place, view):
        client, path = browsers[place]
        answer = client.get(f"{path}{view}", headers={"accept": "application/json"})
        assert answer.status_code == 200, answer.text
        if "json" not in answer.headers["content-type"]:
            return answer.text
        return {key: value for key, value in answer.json().items() if key not in ("name", "made", "line")}

    assert equal(decided) == 303
    files = ("t/standing.csv", "t/external.csv", "t/bad.csv", "t/companions.csv", "picture/live.svg", "file/matrix.csv")
    for view in ("", *(f"/{view}" for view in (*VIEWS, *files))):
        assert equal(lambda place, one=view: shown(place, one))
