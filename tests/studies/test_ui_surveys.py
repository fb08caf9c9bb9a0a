"""Screens of surveys: content, forms, and computation without reading the collection again."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from interface import client, token_of
from periplus.api import deleting
from periplus.errors import UsageError
from periplus.model.collection import Deletion
from periplus.model.job import JobState
from periplus.store.sqlite.job_file import folder_queue
from periplus.urls.canonical import canonical, url_id
from periplus_studies import api as survey
from periplus_studies.api import campaign_of, decide, marks_in, standing_of
from periplus_studies.forms import survey_request, survey_run, units_of_text
from periplus_studies.model import Campaign, CompanionRules, SiteStatus
from periplus_studies.results import SurveyOrder
from periplus_studies.screens import VIEWS, chosen_prefixes
from periplus_studies.units import unit_of
from periplus_studies.watching import Surveys, SurveyWatchers
from stored import NOW, copied, page, stored

A, B, C = "https://a.org/", "https://b.org/", "https://c.org/"
OUT = ("https://hub.net/", "https://shop.net/x", "https://w3.org/")
WEB = {
    A: page("Ay", "/1", B, *OUT),
    A + "1": page("Ay one", A, C, OUT[0]),
    B: page("Bee", A, OUT[0], OUT[2]),
    C: page("Sea", A, OUT[0], "javascript:no()"),
    OUT[0]: page("Hub", A, B),
    OUT[1]: 404,
    OUT[2]: 404,
}
LOOKS = (
    "/surveys",
    "/c/e/survey",
    *(f"/c/e/survey/{view}" for view in VIEWS),
    "/c/e/survey/links?kind=bad",
    "/c/plain/survey",
)
TABLES = (
    "standing",
    "companions",
    "sites",
    "colinks",
    "suffixes",
    "connectivity",
    "interlinking",
    "records",
    "internal",
    "external",
    "bad",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("surveys")
    stored(where / "e.periplus", WEB, [A, B, C, OUT[0]])
    survey.create(where / "e.periplus", Campaign("Three sites", (unit_of(A), unit_of(B), unit_of(C)), pages=50))
    stored(where / "plain.periplus", {A: page("Ay")}, [A])
    return where


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


@pytest.fixture
def queue(folder: Path):
    queue = folder_queue(folder)
    yield queue
    queue.close()


def json(folder: Path, path: str):
    answer = client(folder).get(path, headers={"accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def rows(folder: Path, path: str) -> list[dict[str, object]]:
    found = json(folder, path)
    return [dict(zip((column["name"] for column in found["columns"]), row, strict=True)) for row in found["rows"]]


@pytest.mark.parametrize("path", LOOKS)
def test_every_view_has_landmarks_labels_and_its_json(folder, path):
    text = client(folder).get(path).text
    for part in ("<main", "<nav", "<h1>", "<title>"):
        assert part in text, part
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    labelled = set(re.findall(r'<label[^>]*\sfor="([^"]+)"', text))
    outside = re.sub(r"<label\b.*?</label>", "", text, flags=re.DOTALL)
    for field in re.findall(r"<(?:input|select|textarea)\b[^>]*>", outside):
        assert (
            'type="hidden"' in field or "aria-label=" in field or any(f'id="{name}"' in field for name in labelled)
        ), field
    assert isinstance(json(folder, path), dict)


def test_surveys_are_listed_and_other_collections_are_not(folder):
    (row,) = json(folder, "/surveys")["surveys"]
    assert (row["name"], row["title"], row["sites"], row["budget"], row["rule"]) == ("e", "Three sites", 3, 50, "scout")
    assert "has no survey" in client(folder).get("/c/plain/survey").text


def test_the_state_of_a_survey_equals_that_of_the_command(folder):
    found, truth = json(folder, "/c/e/survey"), standing_of(folder / "e.periplus")
    assert found["pages"] == truth.pages == 4
    assert found["harvest"]["total"] == truth.harvest.total.found[-1]
    assert {row["name"]: (row["pages"], row["links"]) for row in found["sites"]} == {
        row.name: (row.pages, row.links) for row in truth.sites
    }


def test_a_watcher_reads_only_new_rows(folder):
    watchers = SurveyWatchers()
    first = watchers.look(folder / "e.periplus")
    assert watchers.look(folder / "e.periplus") is first
    survey.add_sites(folder / "e.periplus", [unit_of("https://hub.net/")])
    second = watchers.look(folder / "e.periplus")
    assert (second.seq, second.standing.pages) == (first.seq + 1, 5), (
        "the pages of a site that comes count from the beginning"
    )
    assert second.standing.harvest == standing_of(folder / "e.periplus").harvest


def test_a_watcher_drops_deleted_pages(folder, monkeypatch):
    monkeypatch.setattr("periplus_studies.watching.LEAST_S", 0.0)
    monkeypatch.setattr("periplus_studies.watching.SHARE", 1e9)
    watchers, where = SurveyWatchers(), folder / "e.periplus"
    before = watchers.look(where).standing
    deleting.delete(where, Deletion((url_id(canonical(A + "1")),)))
    after = watchers.look(where).standing
    assert (before.pages, after.pages) == (4, 3)
    assert after.harvest == standing_of(where).harvest


def test_companions_are_classified_by_the_thresholds_in_the_url(folder):
    usual = {row["site"]: (row["class"], row["units"]) for row in rows(folder, "/c/e/survey/companions")}
    assert usual == {"hub.net": ("communicator", 3), "shop.net": ("private", 1), "w3.org": ("global", 2)}
    strict = {row["site"]: row["class"] for row in rows(folder, "/c/e/survey/companions?strong_least=4")}
    assert strict["hub.net"] == "weak"
    assert [row["site"] for row in rows(folder, "/c/e/survey/companions?units=2..&sort=site")] == ["hub.net", "w3.org"]
    assert client(folder).get("/c/e/survey/companions?strong_share=2").status_code == 400
    assert client(folder).get("/c/e/survey/companions?model=word").status_code == 400
    assert client(folder).get("/c/e/survey/nothing").status_code == 404


def test_another_item_needs_no_second_reading(folder, monkeypatch):
    from periplus_studies import watching as remembered

    read, made = [], remembered.survey_rows_of
    monkeypatch.setattr(remembered, "survey_rows_of", lambda *asked: read.append(1) or made(*asked))
    surveys = Surveys()
    usual = surveys.of(folder / "e.periplus", SurveyOrder())
    assert surveys.of(folder / "e.periplus", SurveyOrder()) is usual
    strict = surveys.of(folder / "e.periplus", SurveyOrder(rules=CompanionRules(strong_least=4)))
    assert {site.kind for site in strict.results.companions} != {site.kind for site in usual.results.companions}
    assert len(read) == 1
    decide(folder / "e.periplus", ["shop.net"], SiteStatus.OUT, now=NOW)
    assert (
        len(surveys.of(folder / "e.periplus", SurveyOrder()).results.companions) == len(usual.results.companions) - 1
    ), "a decision has an immediate effect"


def test_the_matrix_has_all_links_between_the_sites(folder):
    found = json(folder, "/c/e/survey/matrix")
    assert (found["names"], found["matrix"]) == (["a.org", "b.org", "c.org"], [[2, 1, 1], [1, 0, 0], [1, 0, 0]])
    assert [
        (row["source"], row["target"], row["links"])
        for row in rows(folder, "/c/e/survey/matrix?source=a.org&sort=target")
    ] == [
        ("a.org", "a.org", 2),
        ("a.org", "b.org", 1),
        ("a.org", "c.org", 1),
    ]


@pytest.mark.parametrize("table", TABLES)
def test_every_filtered_table_can_be_downloaded(folder, table):
    asking = client(folder)
    for ending, sign in (("csv", b","), ("xlsx", b"PK"), ("jsonl", b"{")):
        answer = asking.get(f"/c/e/survey/t/{table}.{ending}")
        assert sign in answer.content[:300], (table, ending)
        assert answer.headers["content-disposition"].startswith("attachment")
    assert asking.get(f"/c/e/survey/t/{table}.exe").status_code == 400


def test_a_file_has_the_rows_of_the_screen(folder):
    text = client(folder).get("/c/e/survey/t/companions.csv?class=weak&strong_least=4&sort=site").text
    assert [row["site"] for row in csv.DictReader(io.StringIO(text))] == ["hub.net"]


def test_drawings_and_documents_can_be_downloaded_without_scripts(folder):
    asking = client(folder)
    for name, sign in (("report.html", b"<!DOCTYPE html>"), ("network.svg", b"<svg"), ("network.gexf", b"<?xml"),
        ("matrix.csv", b"page links"),
                       ("yield.svg", b"<svg"), ("fragment.xml", b"<?xml")):  # fmt: skip
        answer = asking.get(f"/c/e/survey/file/{name}")
        assert sign in answer.content[:200], name
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "sandbox" in answer.headers["content-security-policy"]
    for what in ("live", "network", "matrix", "fragment", "yield"):
        assert b"<svg" in asking.get(f"/c/e/survey/picture/{what}.svg").content[:200]
    assert asking.get("/c/e/survey/file/report.pdf").status_code == 400
    assert asking.get("/c/e/survey/picture/report.svg").status_code == 400


def test_a_form_creates_a_survey_and_a_job(folder, queue):
    asking = client(folder)
    form = {
        "sites": "a.org\nb.org",
        "name": "two",
        "title": "Two",
        "pages": "7",
        "rule": "r2",
        "rule_number": "5",
        "delay": "2",
    }
    answer = asking.post("/surveys/new", data={**form, "csrf_token": token_of(asking, "/surveys")})
    assert (answer.status_code, answer.headers["location"]) == (303, "/c/two/survey")
    made = campaign_of(folder / "two.periplus")
    assert (made.title, made.pages, made.rule, [unit.start for unit in made.units]) == ("Two", 7, "r2:5", [A, B])
    assert [job.order.command for job in queue.jobs()] == [("survey", "run", "-c", "two.periplus", "--delay", "2")]
    line = client(folder).get("/surveys", params=form).text
    assert (
        "periplus survey create -c two.periplus --title Two --rule r2:5 --pages 7 https://a.org/ https://b.org/" in line
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"sites": ""},
        {"sites": "javascript:x"},
        {"rule": "best"},
        {"pages": "many"},
        {"item": "word"},
        {"name": "../up"},
        {"delay": "0"},
    ],
)
def test_an_invalid_form_is_refused_and_keeps_its_values(folder, queue, wrong):
    asking = client(folder)
    answer = asking.post(
        "/surveys/new",
        data={"sites": "a.org", "name": "two", "title": "Typed", **wrong, "csrf_token": token_of(asking, "/surveys")},
    )
    assert answer.status_code == 400
    assert 'value="Typed"' in answer.text
    assert 'role="alert"' in answer.text
    assert queue.open_jobs() == 0
    assert not (folder / "two.periplus").exists()


def test_a_collection_can_become_a_survey(folder, queue):
    asking = client(folder)
    answer = asking.post("/c/plain/survey/create", data={"sites": "a.org", "csrf_token": token_of(asking, "/surveys")})
    assert answer.headers["location"] == "/c/plain/survey"
    assert json(folder, "/c/plain/survey")["pages"] == 1, "fetched pages count"
    again = asking.post("/c/plain/survey/create", data={"sites": "a.org", "csrf_token": token_of(asking, "/surveys")})
    assert (again.status_code, "already has a survey" in again.text) == (400, True)


def test_a_survey_can_be_run_and_stopped_as_a_job(folder, queue):
    asking = client(folder)
    csrf_token = token_of(asking, "/c/e/survey")
    asking.post("/c/e/survey/change", data={"what": "run", "pages": "80", "max_time": "60", "csrf_token": csrf_token})
    assert queue.jobs()[0].order.command == ("survey", "run", "-c", "e.periplus", "--pages", "80", "--max-time", "60")
    asking.post("/c/e/survey/change", data={"what": "stop", "csrf_token": csrf_token})
    assert queue.jobs()[0].state is JobState.CANCELLED
    assert "does not run" in asking.post("/c/e/survey/change", data={"what": "stop", "csrf_token": csrf_token}).text
    assert asking.post("/c/e/survey/change", data={"what": "explode", "csrf_token": csrf_token}).status_code == 400
    assert asking.post("/c/e/survey/change", data={"what": "run"}).status_code == 403, "without a CSRF token"


def test_sites_can_be_added_and_removed(folder):
    asking, where = client(folder), folder / "e.periplus"
    csrf_token = token_of(asking, "/c/e/survey")
    form = {
        "what": "decide",
        "csrf_token": csrf_token,
        "back": "companions?class=strong",
        "site:hub.net": "on",
        "status": "in",
        "tags": "hub of all",
    }
    answer = asking.post("/c/e/survey/change", data=form)
    assert answer.headers["location"] == "/c/e/survey/companions?class=strong"
    assert [unit.name for unit in campaign_of(where).units] == ["a.org", "b.org", "c.org", "hub.net"]
    assert marks_in(where)["hub.net"].tags == ("hub", "of", "all")
    asking.post(
        "/c/e/survey/change",
        data={"what": "decide", "csrf_token": csrf_token, "site:b.org": "on", "others": "shop.net", "status": "out"},
    )
    assert [unit.name for unit in campaign_of(where).units] == ["a.org", "c.org", "hub.net"]
    assert {row["site"] for row in rows(folder, "/c/e/survey/companions")} == {"w3.org"}, (
        "what is out stands in no list"
    )
    assert {mark["prefix"] for mark in json(folder, "/c/e/survey/companions")["decided"]} == {
        "hub.net",
        "b.org",
        "shop.net",
    }
    assert (
        asking.post(
            "/c/e/survey/change", data={"what": "decide", "csrf_token": csrf_token, "status": "out"}
        ).status_code
        == 400
    )
    asking.post(
        "/c/e/survey/change", data={"what": "add", "csrf_token": csrf_token, "sites": "start,name\nhttps://d.org/,Dee"}
    )
    assert campaign_of(where).units[-1].name == "Dee"


@pytest.mark.parametrize(
    "site", ["b.org", "https://b.org/1", "hub.net", "*.hub.net", "hub.net/~ann", "elsewhere.example"]
)
def test_known_sites_can_be_marked(folder, site):
    where = folder / "e.periplus"
    if site == "elsewhere.example":
        decide(where, [site], SiteStatus.IN, now=NOW)
    assert decide(where, [site], SiteStatus.OUT, now=NOW)[0] in marks_in(where)


def test_a_site_of_the_survey_can_be_marked_by_its_name(folder):
    where = folder / "e.periplus"
    survey.add_sites(where, [unit_of("https://d.org/x", "The Dee", "dee", ["d.org", "d.net"])])
    assert decide(where, ["The Dee"], SiteStatus.OUT, now=NOW) == ("d.org", "d.net")
    assert [unit.name for unit in campaign_of(where).units] == ["a.org", "b.org", "c.org"]


@pytest.mark.parametrize(
    ("site", "message"),
    [
        ("hubb.net", "similar names are hub.net"),
        ("org", "in the survey"),
        ("b.com", "similar names are b.org"),
        ("zzzzzzzzz", "no site zzzzzzzzz"),
    ],
)
def test_an_unknown_site_is_refused_with_similar_names(folder, site, message):
    where = folder / "e.periplus"
    with pytest.raises(UsageError, match=message):
        decide(where, ["a.org", site], SiteStatus.OUT, now=NOW)
    assert not marks_in(where) and len(campaign_of(where).units) == 3


def test_the_back_link_is_always_an_own_screen(folder):
    asking = client(folder)
    form = {"what": "decide", "site:b.org": "on", "status": "out", "csrf_token": token_of(asking, "/c/e/survey")}
    for back, screen in (
        ({"back": "companions?class=weak&at=2"}, "survey/companions?class=weak&at=2"),
        ({"back": "//evil.example/?x=1"}, "survey"),
        ({}, "survey"),
    ):
        assert asking.post("/c/e/survey/change", data=form | back).headers["location"] == f"/c/e/{screen}"


def test_selected_and_typed_sites_are_chosen():
    assert chosen_prefixes({"site:a.org b.org": "on", "others": " c.org ", "tags": "x"}) == ["a.org", "b.org", "c.org"]


def test_pasted_lists_are_parsed():
    assert [unit.start for unit in units_of_text("a.org  b.org\n\nhttps://c.org/")] == [A, B, C]
    (unit,) = units_of_text("start;name;prefixes\na.org;Ay;a.org *.a.net")
    assert (unit.name, unit.prefixes) == ("Ay", ("a.org", "*.a.net"))
    for wrong in ("ftp://a.org/", "https://", "\n".join(f"s{place}.org" for place in range(1001))):
        with pytest.raises(UsageError):
            units_of_text(wrong)


def test_the_command_uses_a_file_for_names_of_sites():
    lines = survey_request({"sites": "start,name\na.org,Ay"}, "x.periplus").line
    assert lines == (
        "periplus survey create -c x.periplus --pages 2000 -i sites.csv\nperiplus survey run -c x.periplus"
    )
    assert (
        "-i sites.txt"
        in survey_request({"sites": "\n".join(f"s{place}.org" for place in range(40))}, "x.periplus").line
    )
    assert survey_run({"rule": "r3", "rule_number": "4"}, "x.periplus").command[-2:] == ("--rule", "r3:4")


def test_the_forms_of_a_survey_have_minimum_pages_and_companions(folder, queue):
    browser = client(folder)
    asked = {"sites": "a.org", "name": "floor", "pages": "60", "least_pages": "4", "read_companions": "10"}
    flags = "--pages 60 --least-pages 4 --read-companions 10"
    assert flags in browser.get("/surveys", params=asked).text
    token = token_of(browser, "/surveys")
    browser.post("/surveys/new", data={**asked, "csrf_token": token})
    campaign = campaign_of(folder / "floor.periplus")
    assert (campaign.least_pages, campaign.read_companions) == (4, 10)
    more = {"least_pages": "6", "read_companions": "0", "pages": "70"}
    assert "--pages 70 --least-pages 6 --read-companions 0" in browser.get("/c/floor/survey", params=more).text
    browser.post("/c/floor/survey/change", data={**more, "what": "run", "csrf_token": token})
    assert survey_run(more, "floor.periplus").command in {job.order.command for job in queue.jobs()}


def test_minimum_pages_beyond_the_budget_are_refused_beside_the_form(folder):
    browser = client(folder)
    token = token_of(browser, "/surveys")
    asked = {"sites": "a.org b.org", "name": "floor", "pages": "10", "least_pages": "6", "csrf_token": token}
    assert "exceed the budget of 10 pages" in browser.post("/surveys/new", data=asked).text
    assert not (folder / "floor.periplus").exists()
