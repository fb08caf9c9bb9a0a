"""Screens of portals and stories: creation, decisions, preview, updates."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from interface import client, token_of
from newsweb import NewsRecipe, news_web
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.store.job_queue import JobQueue
from periplus.store.sqlite.job_file import folder_queue
from periplus_topics.api import portal as portals
from periplus_topics.api.portal import review_of
from periplus_topics.api.stories import store_stories, stored_stories, stories_file, stories_of
from periplus_topics.model import Portal
from periplus_topics.screens.portals import portal_command, portal_of
from stored import copied, stored
from unit.test_ui_accessible import faults

WEB = news_web(NewsRecipe(seed=4, sites=9, stories=6, singles=4, days=20))
PORTAL = "/c/n/portal/coast"
DECIDE, DO = f"{PORTAL}/decide", f"{PORTAL}/do"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A news web with a portal that publishes approved stories, built once."""
    where = tmp_path_factory.mktemp("portals")
    stored(where / "n.periplus", WEB.pages, WEB.starts, now=WEB.now)
    portals.create(where / "n.periplus", Portal("coast", "The coast", WEB.now, sites=4, approve=True))
    portals.build(where / "n.periplus", "coast", None, WEB.now)
    return where


@pytest.fixture
def folder(built, tmp_path):
    """A copy that a test can change."""
    return copied(built, tmp_path)


def sent(asking, path: str, at: str = PORTAL, /, **form: str):
    return asking.post(path, data={"csrf_token": token_of(asking, at), **form})


def seen(asking, kind: str) -> list[str]:
    return [entry["key"] for entry in asking.get(f"{PORTAL}?show={kind}&format=json").json()["entries"]]


def queue_of(folder: Path) -> JobQueue:
    return folder_queue(folder)


SCREENS = (
    "/c/n/portals",
    "/c/n/portals?name=new&every=day",
    PORTAL,
    f"{PORTAL}?show=published&q=a",
    "/c/n/stories",
    "/c/n/story?n=1",
    "/c/n/keywords",
    "/c/n/t/entries:coast",
    "/c/n/t/sources:coast",
    "/c/n/t/story-pages",
)


@pytest.mark.parametrize("path", SCREENS)
def test_each_screen_has_landmarks_labels_and_its_json(folder, path):
    answer = client(folder).get(path)
    assert answer.status_code == 200, answer.text
    assert faults(answer.text) == []
    assert isinstance(client(folder).get(path, headers={"accept": "application/json"}).json(), dict)


def test_new_stories_wait_for_the_editor(folder):
    review = review_of(folder / "n.periplus", "coast")
    assert {entry.kind for entry in review.entries} == {"waiting"}
    assert len(review.entries) == 6
    assert not review.decided
    edition = portals.edition_of(folder / "n.periplus", review.portal, WEB.now)
    assert [entry.key for entry in edition.waiting] == [entry.key for entry in review.entries]
    assert [entry.story.title for entry in edition.waiting] == [entry.title for entry in review.entries]
    assert [list(entry.keywords) for entry in edition.waiting] == [list(entry.keywords) for entry in review.entries]


def test_an_entry_can_be_approved_hidden_pinned_and_cleared(folder):
    asking = client(folder)
    first, second, third, *_ = seen(asking, "waiting")
    answer = sent(asking, DECIDE, approve=first, show="waiting")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{PORTAL}?show=waiting#e-{second}"  # the next entry
    sent(asking, DECIDE, hide=second)
    sent(asking, DECIDE, pin=third)
    assert (seen(asking, "published"), seen(asking, "hidden")) == ([third, first], [second])
    assert asking.get(f"{PORTAL}?format=json").json()["decided"] is True
    sent(asking, DECIDE, reset=third)
    assert third in seen(asking, "waiting")
    portals.build(folder / "n.periplus", "coast", None, WEB.now)
    assert seen(asking, "published") == [first]
    assert f"story/{first}.html" in asking.get(f"{PORTAL}/site/index.html").text


PNG = b"\x89PNG\r\n\x1a\n--\r\n\r\n--x" + bytes(range(256))


def test_text_and_a_picture_from_a_form_appear_on_the_portal(folder):
    asking = client(folder)
    key = seen(asking, "waiting")[0]
    path, form = (
        f"{PORTAL}/entry?key={key}",
        {"csrf_token": token_of(asking), "words": "Back <b>\r\n again.", "show": "x"},
    )
    refused = asking.post(path, data=form, files={"picture": ("b.png", PNG)})
    assert refused.status_code == 400
    assert "Back &lt;b&gt;" in refused.text  # to be corrected
    assert "needs a description" in refused.text
    done = asking.post(path, data=form | {"alt": 'A "buoy"'}, files={"picture": ("../../b.png", PNG)})
    assert (done.status_code, done.headers["location"]) == (303, f"{PORTAL}?show=x#e-{key}")
    entry = asking.get(f"{path}&format=json").json()["entry"]
    assert (entry["words"], entry["picture"], entry["alt"]) == ("Back <b> again.", "png", 'A "buoy"')
    assert faults(asking.get(path).text) == []
    picture = asking.get(f"{PORTAL}/picture?key={key}")
    assert (picture.content, picture.headers["content-type"]) == (PNG, "image/png")
    assert asking.get(f"{PORTAL}?format=json").json()["decided"] is True
    sent(asking, DECIDE, approve=key)
    portals.build(folder / "n.periplus", "coast", None, WEB.now)
    shown = asking.get(f"{PORTAL}/site/story/{key}.png")
    assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
    sent(asking, path.replace("&", ""), without="yes", alt="A buoy", words="")
    assert asking.get(f"{path}&format=json").json()["entry"]["picture"] == ""
    assert asking.get(f"{PORTAL}/picture?key={key}").status_code == 404
    assert asking.get(f"{PORTAL}/entry?key=none").status_code == 404


def test_all_selected_entries_are_decided_at_once(folder):
    asking = client(folder)
    keys = seen(asking, "waiting")
    sent(asking, DECIDE, what="approve", **{f"pick-{key}": "yes" for key in keys[:4]})
    assert set(seen(asking, "published")) == set(keys[:4])
    for form in (
        {"what": "approve"},
        {"what": "burn", f"pick-{keys[4]}": "yes"},
        {"what": "hide", "pick-nothing": "yes"},
        {"ban": keys[4]},
    ):
        assert sent(asking, DECIDE, **form).status_code == 400, form
    assert set(seen(asking, "published")) == set(keys[:4])


def test_sites_can_be_pinned_and_banned(folder):
    asking = client(folder)
    sites = [site["key"] for site in asking.get(f"{PORTAL}?format=json").json()["sites"]]
    answer = sent(asking, DECIDE, ban=sites[0])
    assert answer.headers["location"].endswith("#sites")
    sent(asking, DECIDE, pin=sites[1])
    said = {site["key"]: site["verdict"] for site in asking.get(f"{PORTAL}?format=json").json()["sites"]}
    assert (said[sites[0]], said[sites[1]]) == ("banned", "pinned")
    assert asking.get("/c/n/t/sources:coast?verdict=banned&format=json").json()["rows"][0][0] == sites[0]


def test_entries_can_be_filtered_and_downloaded(folder):
    asking = client(folder)
    shown = asking.get(f"{PORTAL}?format=json").json()
    word = shown["entries"][0]["title"].split()[0].lower()
    some = asking.get(PORTAL, params={"q": word, "format": "json"}).json()
    assert 0 < some["total"] <= shown["total"]
    assert len(asking.get("/c/n/t/entries:coast.csv").text.splitlines()) == shown["total"] + 1
    sent(asking, DECIDE, hide=shown["entries"][0]["key"])
    assert asking.get("/c/n/t/entries:coast?kind=hidden&format=json").json()["count"]["rows"] == 1
    assert asking.get(f"{PORTAL}?show=none").status_code == 400
    assert asking.get(f"{PORTAL}?at=99&format=json").json()["at"] == 1
    for bad in ("entries:none", "entries:../coast", "sources:"):
        assert asking.get(f"/c/n/t/{bad}").status_code in (400, 404), bad


def test_the_preview_shows_what_was_published_and_nothing_else(folder):
    asking = client(folder)
    page = asking.get(f"{PORTAL}/site/index.html")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "sandbox" in policy
    assert "allow-scripts" not in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert asking.get(f"{PORTAL}/site/portal.css").headers["content-type"].startswith("text/css")
    assert asking.get(f"{PORTAL}/site/").headers["location"].endswith("/site/index.html")
    (folder / "n.periplus" / "portals" / "coast" / "secret.html").write_text("mine")
    for path in (
        "secret.html",
        ".periplus-files.json",
        "../coast.review.json",
        "%2e%2e/coast.review.json",
        "..%2f..%2fcollection.db",
        "/etc/passwd",
        "none.html",
    ):
        answer = asking.get(f"{PORTAL}/site/{path}")
        assert answer.status_code in (303, 400, 404), path
        assert "mine" not in answer.text


def test_the_portal_can_be_downloaded_as_a_zip_file(folder):
    answer = client(folder).get(f"{PORTAL}/files.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = archive.namelist()
        assert "coast/index.html" in names
        assert (
            archive.read("coast/index.html")
            == (folder / "n.periplus" / "portals" / "coast" / "index.html").read_bytes()
        )
    assert all(name.startswith("coast/") and "periplus-files" not in name for name in names)


def test_a_form_creates_a_portal_like_the_command(folder):
    asking = client(folder)
    form = {
        "name": "hills",
        "title": "The hills",
        "lead": "Up there",
        "approve": "yes",
        "stories": "5",
        "sites": "3",
        "every": "week",
        "address": "e.org/p/",
    }
    shown = asking.get("/c/n/portals", params=form).text
    assert "periplus portal create hills -c n.periplus" in shown
    assert sent(asking, "/c/n/portals", "/c/n/portals", **form).headers["location"] == "/c/n/portal/hills"
    made = portals.find_portal(folder / "n.periplus", "hills")
    words = portal_command(made, str(folder / "n.periplus"))
    CliRunner().invoke(
        main, ["portal", "remove", "hills", "--yes", "-c", str(folder / "n.periplus")], catch_exceptions=False
    )
    assert CliRunner().invoke(main, list(words), catch_exceptions=False).exit_code == 0
    again = portals.find_portal(folder / "n.periplus", "hills")
    assert (again.title, again.lead, again.approve, again.stories, again.sites, again.period_s, again.address) == (
        "The hills", "Up there", True, 5, 3, 604_800.0, "https://e.org/p/",
    )  # fmt: skip
    assert made.name == again.name
    queue = queue_of(folder)
    (schedule,), (job,) = queue.schedules(), queue.jobs()
    queue.close()
    assert (schedule.order.command, schedule.order.then) == (
        ("refresh", "-c", "n.periplus"),
        (("portal", "build", "hills", "-c", "n.periplus"),),
    )
    assert job.order.command == ("portal", "build", "hills", "-c", "n.periplus")


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "../x"},
        {"name": ""},
        {"name": "coast"},
        {"stories": "0"},
        {"topic": "none"},
        {"every": "second"},
        {"address": "javascript:x"},
    ],
)
def test_an_invalid_portal_is_refused_beside_the_form(folder, bad):
    answer = sent(client(folder), "/c/n/portals", "/c/n/portals", **({"name": "hills"} | bad))
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


def test_two_portals_share_a_schedule(folder):
    asking = client(folder)
    sent(asking, "/c/n/portals", "/c/n/portals", name="hills", every="day")
    sent(asking, DO, what="change", title="The coast", every="day", approve="yes")
    queue = queue_of(folder)
    (schedule,) = queue.schedules()
    assert [command[2] for command in schedule.order.then] == ["hills", "coast"]
    sent(asking, DO, what="change", title="The coast", approve="yes")
    (schedule,) = queue.schedules()
    assert [command[2] for command in schedule.order.then] == ["hills"]
    assert sent(asking, "/c/n/portal/hills/do", what="remove", sure="hill").status_code == 400
    sent(asking, "/c/n/portal/hills/do", what="remove", sure="hills")
    assert queue.schedules() == []
    queue.close()
    assert [portal.name for portal, _ in portals.portals(folder / "n.periplus")] == ["coast"]


def test_building_and_gathering_are_jobs(folder):
    asking = client(folder)
    for what in ("build", "gather"):
        sent(asking, DO, what=what)
    assert sent(asking, DO, what="burn").status_code == 400
    queue = queue_of(folder)
    assert {job.order.command[1] for job in queue.jobs()} == {"build", "show"}
    queue.close()
    assert len(asking.get(f"{PORTAL}?format=json").json()["jobs"]) == 2


def test_a_portal_that_was_not_built_says_so(folder):
    portals.create(folder / "n.periplus", Portal("new", "New", WEB.now))
    asking = client(folder)
    assert "not been gathered yet" in asking.get("/c/n/portal/new").text
    assert asking.get("/c/n/portal/new/site/index.html").status_code == 404
    assert asking.get("/c/n/portal/new/files.zip").status_code == 404
    assert asking.get("/c/n/portal/none").status_code == 400


def test_stored_stories_equal_the_computed_ones(folder):
    collection = folder / "n.periplus"
    found, kept = stories_of(collection), stored_stories(collection)
    assert [story.pages for story in kept.stories] == [story.pages for story in found.stories]
    assert [(story.links, story.disordered) for story in kept.stories] == [
        (story.links, story.disordered) for story in found.stories
    ]
    assert (kept.pages, set(kept.posts), set(kept.dated)) == (found.pages, set(found.posts), set(found.dated))
    store_stories(collection, kept)
    assert stored_stories(collection).stories == kept.stories
    stories_file(collection).write_text('{"stories": [{}]}')
    with pytest.raises(StoreError, match="--keep"):
        stored_stories(collection)


def test_stories_and_recommended_sites_equal_those_of_the_commands(folder):
    asking = client(folder)
    shown = asking.get("/c/n/stories?k=3&format=json").json()
    found = stories_of(folder / "n.periplus")
    assert [row["title"] for row in shown["stories"]] == [story.title for story in found.stories]
    chosen = CliRunner().invoke(
        main, ["influence", "-k", "3", "--json", "-c", str(folder / "n.periplus")], catch_exceptions=False
    )
    assert asking.get("/c/n/influence.json?k=3").text == chosen.stdout
    assert len(asking.get("/c/n/influence.csv?k=3").text.splitlines()) == len(shown["chosen"]) + 1
    for path in ("/c/n/influence.svg?k=3", "/c/n/story.svg?n=1"):
        assert asking.get(path).headers["content-type"].startswith("image/svg+xml")
        assert "sandbox" in asking.get(path).headers["content-security-policy"]
    for bad in ("stories?k=0", "stories?objective=fun", "story?n=999", "story", "influence.exe"):
        assert asking.get(f"/c/n/{bad}").status_code == 400, bad


def test_stories_are_computed_by_a_job(folder):
    stories_file(folder / "n.periplus").unlink()
    asking = client(folder)
    assert asking.get("/c/n/stories").status_code == 200
    assert asking.get("/c/n/t/stories?format=json").json()["rows"] == []
    sent(asking, "/c/n/stories", "/c/n/stories")
    queue = queue_of(folder)
    (job,) = queue.jobs()
    queue.close()
    assert job.order.command == ("stories", "-c", "n.periplus", "--keep")
    assert (
        CliRunner()
        .invoke(main, ["stories", "--keep", "-c", str(folder / "n.periplus")], catch_exceptions=False)
        .exit_code
        == 0
    )
    assert len(asking.get("/c/n/t/stories?format=json").json()["rows"]) == 6


def test_keywords_of_a_page_are_shown_and_unknown_pages_refused(folder):
    asking = client(folder)
    url = next(iter(WEB.source_of.values()))
    assert asking.get("/c/n/keywords", params={"of": url, "format": "json"}).json()["result"]["keywords"]
    assert asking.get("/c/n/keywords?of=https://none.example/").status_code == 400
    assert asking.get("/c/n/keywords?of=a&query=b").status_code == 400


def test_an_invalid_period_of_a_portal_is_refused():
    with pytest.raises(UsageError, match="period"):
        portal_of({"name": "x", "every": "second"}, 0.0)
