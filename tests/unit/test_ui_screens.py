"""Screens of the interface in HTML and JSON, and their forms."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from interface import client, token_of
from periplus.api import search_index
from periplus.model.job import JobOrder, JobState
from periplus.settings import Budget, Settings, Storage
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.store.sqlite.job_file import folder_queue
from periplus.ui import pages, state
from periplus.ui.live import figures
from periplus.ui.pages import decode, pieces
from periplus.ui.rendering import query, visible, web_link
from periplus.ui.state import places, works_on
from stored import NOW, copied, page, stored

HOME = "https://e.org/"
SITE = {
    HOME: page("Home of lanterns", "/a", "/b", "/gone"),
    "https://e.org/a": page("Alpha", "/b/c"),
    "https://e.org/b": page("Beta", "/"),
    "https://e.org/b/c": page("Gamma", "/"),
    "https://e.org/gone": 404,
}
PAGE = "/c/e/page?url=https%3A%2F%2Fe.org%2F"
SCREENS = (
    "/",
    "/jobs",
    "/search?q=alpha",
    "/c/e/live",
    "/c/e/map",
    "/c/e/graph?steps=2",
    "/c/e/t/pages",
    PAGE,
    PAGE + "&view=visits",
    PAGE + "&view=place",
    "/c/e/search?q=alpha",
    "/c/e/compare",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("screens")
    stored(where / "e.periplus", SITE, [HOME])
    return where


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


@pytest.fixture
def queue(folder: Path):
    queue = folder_queue(folder)
    yield queue
    queue.close()


@pytest.mark.parametrize("path", SCREENS)
def test_every_screen_has_landmarks_a_title_and_its_json(folder, path):
    answer = client(folder).get(path)
    assert answer.status_code == 200, answer.text
    for part in ('<html lang="en">', "<main", "<nav", 'class="skip" href="#main"', "<h1>", "<title>"):
        assert part in answer.text, part
    json = client(folder).get(path, headers={"accept": "application/json"})
    assert json.headers["content-type"] == "application/json"
    assert isinstance(json.json(), dict)


@pytest.mark.parametrize("path", SCREENS)
def test_every_field_has_a_label_and_ids_are_unique(folder, path):
    text = client(folder).get(path).text
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    labelled = set(re.findall(r'<label[^>]*\sfor="([^"]+)"', text))
    outside = re.sub(r"<label\b.*?</label>", "", text, flags=re.DOTALL)
    for field in re.findall(r"<(?:input|select|textarea)\b[^>]*>", outside):
        assert (
            'type="hidden"' in field or "aria-label=" in field or any(f'id="{name}"' in field for name in labelled)
        ), field


def test_collections_are_listed_with_their_state(folder):
    (row,) = client(folder).get("/?format=json").json()["collections"]
    assert (row["name"], row["state"], row["fetched"], row["urls"], row["failed"]) == ("e", "done", 4, 5, 1)


def test_a_collection_that_cannot_be_read_is_named_with_its_fault(folder):
    (folder / "bad.periplus").mkdir()
    (folder / "bad.periplus" / "collection.db").write_bytes(b"no database at all" * 100)
    rows = {row["name"]: row for row in client(folder).get("/?format=json").json()["collections"]}
    assert "cannot be read" in rows["bad"]["fault"]
    assert rows["e"]["fault"] == ""


def test_two_collections_with_the_same_name_are_numbered(tmp_path):
    for part in ("one", "two"):
        stored(tmp_path / part / "e.periplus", {HOME: page("Home")}, [HOME])
    named = places([tmp_path / "one", tmp_path / "two"]).collections()
    assert list(named) == ["e", "e 2"]
    assert named["e"].parent.name == "one"
    assert places([tmp_path / "one" / "e.periplus", tmp_path / "one"]).collections() == {
        "e": tmp_path / "one" / "e.periplus"
    }


def test_a_url_is_enough_to_start_a_crawl(folder, queue):
    asking = client(folder)
    answer = asking.post("/new", data={"url": "example.org", "csrf_token": token_of(asking)})
    assert (answer.status_code, answer.headers["location"]) == (303, "/c/example.org/live")
    (job,) = queue.jobs()
    assert job.order.command == ("crawl", "https://example.org/", "-o", "example.org.periplus")
    assert "Waiting for a worker" in asking.get("/c/example.org/live").text


def test_a_period_also_creates_a_schedule(folder, queue):
    asking = client(folder)
    asking.post("/new", data={"url": "example.org", "preset": "check", "every": "week", "csrf_token": token_of(asking)})
    (schedule,) = queue.schedules()
    assert (schedule.period_s, schedule.order.kind, queue.open_jobs()) == (604_800.0, "check", 1)


def test_starting_a_survey_creates_its_collection(folder, queue):
    asking = client(folder)
    form = {"url": "a.org\nb.org", "preset": "survey", "name": "two", "csrf_token": token_of(asking)}
    assert asking.post("/new", data=form).headers["location"] == "/c/two/survey"
    assert queue.jobs()[0].order.command == ("survey", "run", "-c", "two.periplus")
    assert "two" in places([folder]).collections()


def test_an_invalid_url_is_refused_beside_the_form(folder, queue):
    asking = client(folder)
    answer = asking.post("/new", data={"url": "not a url://", "max_pages": "77", "csrf_token": token_of(asking)})
    assert answer.status_code == 400
    assert "not a url://" in answer.text
    assert 'value="77"' in answer.text, "what was typed is there to be mended"
    assert 'role="alert"' in answer.text
    assert queue.open_jobs() == 0


def test_the_command_line_is_shown_without_running_it(folder, queue):
    answer = client(folder).get("/", params={"url": "example.org", "max_pages": "5"})
    assert "periplus crawl https://example.org/ -o example.org.periplus --max-pages 5" in answer.text
    assert queue.open_jobs() == 0


def test_no_secret_is_in_a_url(folder):
    for path in SCREENS:
        for form in re.findall(r"<form\b.*?</form>", client(folder).get(path).text, flags=re.DOTALL):
            assert 'method="post"' in form or 'name="csrf_token"' not in form, path
            assert 'formmethod="get"' not in form or '<input type="hidden" name="csrf_token"' not in form, path


def test_jobs_can_be_cancelled_repeated_and_scheduled(folder, queue):
    asking = client(folder)
    csrf_token = token_of(asking)
    job = queue.add(JobOrder(("check", "-c", "e.periplus")), NOW)
    assert (
        asking.post("/jobs/change", data={"what": "cancel", "job": job.id, "csrf_token": csrf_token}).status_code == 303
    )
    assert queue.job(job.id).state is JobState.CANCELLED
    asking.post("/jobs/change", data={"what": "again", "job": job.id, "csrf_token": csrf_token})
    assert queue.open_jobs() == 1
    asking.post(
        "/jobs/change",
        data={"what": "schedule", "collection": "e", "kind": "refresh", "every": "day", "csrf_token": csrf_token},
    )
    (schedule,) = queue.schedules()
    assert schedule.order.command == ("refresh", "-c", "e.periplus")
    asking.post("/jobs/change", data={"what": "pause", "schedule": schedule.id, "csrf_token": csrf_token})
    assert queue.schedules()[0].paused
    asking.post("/jobs/change", data={"what": "forget", "schedule": schedule.id, "csrf_token": csrf_token})
    assert queue.schedules() == []
    for form in (
        {"what": "burn"},
        {"what": "cancel", "job": "x"},
        {"what": "schedule", "collection": "e", "kind": "crawl", "every": "day"},
    ):
        assert asking.post("/jobs/change", data=form | {"csrf_token": csrf_token}).status_code == 400


def test_a_crawl_can_be_stopped_and_resumed(folder, queue):
    asking = client(folder)
    csrf_token = token_of(asking)
    assert asking.post("/c/e/stop", data={"csrf_token": csrf_token}).status_code == 400, "no crawl is running"
    asking.post("/c/e/resume", data={"csrf_token": csrf_token})
    (job,) = queue.jobs()
    assert job.order.command == ("crawl", HOME, "-o", "e.periplus")
    asking.post("/c/e/stop", data={"csrf_token": csrf_token})
    assert queue.job(job.id).state is JobState.CANCELLED
    asking.post("/c/e/resume", data={"csrf_token": csrf_token, "max_pages": "7"})
    assert queue.jobs()[0].order.command == ("crawl", HOME, "-o", "e.periplus", "--max-pages", "7")


def test_a_finished_collection_can_be_refreshed_and_checked(folder, queue):
    """With the consents of its last crawl, which only a person can give."""
    asking = client(folder)
    csrf_token = token_of(asking)
    queue.add(JobOrder(("crawl", HOME, "-o", "e.periplus", "--mine=e.org", "--allow-private")), 0.0)
    queue.cancel(queue.jobs()[0].id, 0.0)
    for kind in ("refresh", "check"):
        asking.post("/c/e/again", data={"csrf_token": csrf_token, "kind": kind})
        newest = max(queue.jobs(), key=lambda job: job.id)
        assert newest.order.command == (kind, "-c", "e.periplus", "--mine=e.org", "--allow-private")
    assert asking.post("/c/e/again", data={"csrf_token": csrf_token, "kind": "delete"}).status_code == 400


def test_a_running_crawl_can_be_paused_and_resumed(folder, queue):
    """Buttons show the possible actions. A job that is stopping is not resumed but followed by another."""
    asking, place = client(folder), folder / "e.periplus"
    csrf_token = token_of(asking)

    def buttons():
        found = client(folder).get("/c/e/live").text
        return re.findall(r'<button form="steer" formaction="(\w+)"[^>]*>([^<]+)<', found), re.search(
            r'class="chip state-(\w+)', found
        )[1]

    assert "nothing to pause" in asking.post("/c/e/pause", data={"csrf_token": csrf_token}).text
    assert buttons() == ([("again", "Refresh"), ("again", "Check links")], "done"), "no URL waits"
    run_id = FolderHome(place).begin_run("crawl", (HOME,), Settings(), time.time())
    store = SqliteCrawlStore(place, run_id, Budget(), Storage())
    store.join(os.getpid(), time.time())
    assert buttons() == ([("pause", "Pause"), ("stop", "Stop")], "running")
    assert asking.post("/c/e/pause", data={"csrf_token": csrf_token}).status_code == 303
    assert store.is_paused()
    assert buttons() == ([("resume", "Resume"), ("stop", "Stop")], "paused")
    assert client(folder).get("/c/e/live?format=json").json()["moment"]["state"] == "paused"
    assert client(folder).get("/?format=json").json()["collections"][0]["state"] == "paused"
    asking.post("/c/e/resume", data={"csrf_token": csrf_token})
    assert (store.is_paused(), list(queue.jobs()), buttons()[1]) == (False, [], "running")
    asking.post("/c/e/pause", data={"csrf_token": csrf_token})
    asking.post("/c/e/resume", data={"csrf_token": csrf_token, "max_pages": "7"})
    assert store.is_paused(), "with other limits it is another crawl's business"
    assert len(queue.jobs()) == 1
    store.close()
    FolderHome(place).end_run(run_id, "done", "", time.time())


def test_a_finished_crawl_shows_its_final_state(folder):
    found = client(folder).get("/c/e/live?format=json").json()
    assert found["moment"]["state"] == "done"
    text = client(folder).get("/c/e/live").text
    assert "state-done" in text
    assert 'href="/c/e/t/pages?state=failed"' in text


def test_an_unfinished_run_without_workers_is_shown_as_killed(tmp_path):
    stored(tmp_path / "k.periplus", {HOME: page("Home")}, [HOME], state="running")
    assert client(tmp_path).get("/c/k/live?format=json").json()["moment"]["state"] == "killed"


def test_the_counters_are_filters_that_add_up(folder):
    from periplus.ui.watching import Watchers

    moment = Watchers().look(folder / "e.periplus")
    counts = {word: (count, where) for word, count, where in figures(moment)}
    asking = client(folder)
    for count, where in counts.values():
        assert asking.get(f"/c/e/t/pages{where or '?'}&format=json").json()["count"]["rows"] == count


def test_a_second_look_reads_only_new_rows(folder):
    from periplus.ui.watching import Watchers

    watchers = Watchers()
    first, second = watchers.look(folder / "e.periplus"), watchers.look(folder / "e.periplus")
    assert first is second
    assert first.asked == 5
    assert [visit.url for visit in first.errors] == ["https://e.org/gone"]


def test_a_look_at_a_long_run_counts_a_part_and_has_the_newest_visits(folder, monkeypatch):
    from periplus.ui import watching

    whole = watching.Watchers().look(folder / "e.periplus")
    monkeypatch.setattr(watching, "ROWS_A_STEP", 2)
    monkeypatch.setattr(watching, "TAKE_S", -1.0)
    watchers = watching.Watchers()
    part = watchers.look(folder / "e.periplus")
    assert part.behind and part.asked == 2
    assert part.newest == whole.newest
    monkeypatch.setattr(watching, "LOOK_S", -1.0)
    while part.behind:
        part = watchers.look(folder / "e.periplus")
    assert (part.asked, part.newest, part.errors, part.by_type) == (
        whole.asked,
        whole.newest,
        whole.errors,
        whole.by_type,
    )


def test_the_last_event_number_is_parsed(folder):
    from periplus.ui.live import _sequence

    assert [_sequence(said) for said in ("", "7", "x", "9" * 20, "-1", "٣")] == [0, 7, 0, 0, 0, 0]


def test_a_job_belongs_to_the_collection_of_its_command(folder, queue):
    known = places([folder]).collections()
    mine = queue.add(JobOrder(("refresh", "-c", "e.periplus")), NOW)
    other = queue.add(JobOrder(("refresh", "-c", "ee.periplus")), NOW)
    assert works_on(mine, "e", known["e"])
    assert not works_on(other, "e", known["e"])


def test_a_page_is_shown_with_its_links_and_copies(folder):
    found = client(folder).get("/c/e/page?url=https://e.org/b&format=json").json()
    assert [link["source"] for link in found["inlinks"]] == [HOME]
    assert [link["target"] for link in found["outlinks"]] == [HOME]
    assert client(folder).get("/c/e/page?url=https://nowhere.org/").status_code == 400
    assert client(folder).get("/c/e/page?url=javascript:alert(1)").status_code == 400
    assert client(folder).get(PAGE + "&view=nothing").status_code == 400


def test_a_stored_source_is_escaped_and_its_file_is_a_download(folder):
    text = client(folder).get(PAGE + "&view=source").text
    assert "&lt;title&gt;Home of lanterns" in text
    raw = client(folder).get(PAGE + "&view=source&raw=1")
    assert raw.headers["content-disposition"].startswith("attachment")
    assert raw.headers["content-type"] == "application/octet-stream"
    assert "sandbox" in raw.headers["content-security-policy"]
    assert b"<title>Home of lanterns" in raw.content


def test_blocks_are_shown_by_part(folder):
    view = client(folder).get(PAGE + "&view=blocks&format=json").json()
    assert "Home of lanterns" in [block["text"] for block in view["blocks"]]
    part = view["blocks"][0]["part"]
    shown = client(folder).get(f"{PAGE}&view=blocks&parts={part}&format=json").json()
    assert {block["part"] for block in shown["blocks"]} == {part}
    assert [name for name, _, is_chosen in shown["parts"] if is_chosen] == [part]


def test_the_map_can_be_opened_searched_and_downloaded(folder):
    asking = client(folder)
    found = asking.get("/c/e/map?find=gamma&format=json").json()
    assert [place["url"] for place in found["results"]] == ["https://e.org/b/c"]
    assert next(place["url"] for place in found["places"]) == HOME
    steps = [place["step"] for place in found["places"]]
    assert steps.count("open") == steps.count("close")
    for ending, sign in (
        ("xml", b"<?xml"),
        ("xhtml", b"<!DOCTYPE"),
        ("pdf", b"%PDF"),
        ("svg", b"<svg"),
        ("gexf", b"<?xml"),
        ("json", b"{"),
        ("graphml", b"<?xml"),
    ):
        answer = asking.get(f"/c/e/map.{ending}")
        assert sign in answer.content[:200], ending
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "sandbox" in answer.headers["content-security-policy"]
    assert asking.get("/c/e/map.exe").status_code == 400
    assert asking.get("/c/e/map?nodes=0").status_code == 400
    assert asking.get("/c/e/picture.svg?by=colour").status_code == 400


def test_a_search_highlights_matches(folder):
    search_index.catch_up(folder / "e.periplus")  # a screen does not wait for the index
    text = client(folder).get("/c/e/search?q=lanterns").text
    assert "<mark>lanterns</mark>" in text
    assert client(folder).get("/search?q=lanterns&format=json").json()["results"][0]["result"]["total"] == 1
    assert client(folder).get("/c/e/search?q=lanterns&at=0").status_code == 400


def test_highlights_split_a_text_into_pieces():
    assert list(pieces("a lamp at sea", ((2, 6), (10, 13)))) == [
        ("a ", False),
        ("lamp", True),
        (" at ", False),
        ("sea", True),
        ("", False),
    ]


def test_runs_can_be_compared(folder):
    assert "has one run" in client(folder).get("/c/e/compare").text
    found = client(folder).get("/c/e/compare?before=1&after=1&format=json").json()
    assert found["comparison"]["unchanged"] == 4
    assert client(folder).get("/c/e/compare?before=99&after=1").status_code == 400


def test_crawled_text_is_escaped():
    assert web_link("javascript:alert(1)") == "javascript:alert(1)"
    assert str(web_link('https://e.org/"><b>')) == (
        '<a href="https://e.org/&#34;&gt;&lt;b&gt;" rel="noopener noreferrer '
        'nofollow">https://e.org/&#34;&gt;&lt;b&gt;</a>'
    )
    assert visible("a\u202eb\x00c\nd") == "abc\nd"


def test_a_changed_query_keeps_other_parameters_and_resets_the_page():
    assert query({"q": "a b", "at": "3"}, sort="-size") == "?q=a+b&sort=-size"
    assert query({"q": "a", "at": "3"}, at=4) == "?q=a&at=4"
    assert query({"q": "a"}, q=None) == "?"


def test_a_source_in_an_unknown_encoding_is_decoded():
    assert decode("á".encode("cp1250"), "windows-1250") == "á"
    assert decode(b"a", "no-such-encoding") == "a"


def test_many_watchers_share_a_rendered_part(folder):
    from periplus.ui import live

    made = []

    def make(request):
        made.append(1)
        return f"picture {len(made)}"

    request = type("Asked", (), {"path_params": {"name": "e"}, "app": client(folder).app.app})()
    assert {live._part(request, "live e", make) for _ in range(50)} == {"picture 1"}
    assert live._part(request, "survey e", make) == "picture 2", "each screen has its own"


def test_a_page_shows_its_place_in_the_map(folder):
    place = client(folder).get("/c/e/page?format=json&url=https://e.org/b/c").json()["place"]
    assert [step["url"] for step in place["way"]] == [HOME, "https://e.org/a", "https://e.org/b/c"]
    assert (place["depth"], place["siblings"], place["children"]) == (2, 0, 0)
    home = client(folder).get(f"/c/e/page?format=json&view=place&url={HOME}").json()["place"]
    assert {step["url"] for step in home["below"]} == {"https://e.org/a", "https://e.org/b"}
    assert (home["children"], home["siblings"]) == (2, 0)


def test_a_page_outside_the_map_says_so(folder):
    text = client(folder).get("/c/e/page?view=place&url=https://e.org/gone").text
    assert "It is not a page of the map of e.org." in text


def test_a_search_answers_immediately_while_the_index_is_made(folder, monkeypatch):
    """It shows the indexed pages. The rest is indexed in the background, for the next search."""
    goes_on, whole = threading.Event(), search_index.catch_up

    def slow(folder: Path) -> bool:
        with search_index.IndexWorker(folder):
            goes_on.wait(300)
        return whole(folder)

    monkeypatch.setattr(state, "search_index", SimpleNamespace(catch_up=slow))
    monkeypatch.setattr(pages, "CATCH_UP_S", 0.01)
    asking = client(folder)
    first = asking.get("/c/e/search?q=alpha")
    assert (first.status_code, "being brought up to date" in first.text, "data-again" in first.text) == (
        200,
        True,
        True,
    )
    goes_on.set()
    monkeypatch.setattr(pages, "CATCH_UP_S", 60.0)
    assert "being brought up to date" not in asking.get("/c/e/search?q=alpha").text
    assert asking.get("/c/e/search?q=alpha&format=json").json()["results"][0]["result"]["total"]
