"""The interface shows collections in databases like those in folders, and stores decisions in the database."""

import contextlib
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from interface import COMMANDS, token_of
from periplus.api.faults import noted_faults
from periplus.api.functions import open_collection
from periplus.api.homes import home_of
from periplus.api.page_segments import rules_at, write_rules
from periplus.errors import UsageError
from periplus.masking import without_secrets
from periplus.store.job_queue import JobQueue
from periplus.store.sqlite.job_file import folder_queue
from periplus.ui.routes import application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places
from periplus_postgres import index_place
from periplus_postgres.connection import connect
from periplus_postgres.moving import into_database, move, silent
from periplus_studies.api import marks_in
from periplus_topics import store as portal_rows
from periplus_topics.api.portal import portals
from periplus_topics.api.topics import TopicOrder, stored_labels, topic_names, train_topic
from periplus_topics.model import EditorVerdict
from stored import page, stored

HOME = "https://e.org/"
ANSWERS = {HOME: page("Home", "/a", "/gone"), "https://e.org/a": page("Pilots", "/"), "https://e.org/gone": 404}
SCREENS = (
    "live", "t/pages", "t/links", "t/issues", "map", "site", "search?q=pilots", "settings", "topics", "portals",
    "stories", "page?url=https://e.org/a", "compare", "survey", "t/sites", "t/faults", "t/stories", "graph",
    "keywords?of=https://e.org/a",
)  # fmt: skip


@pytest.fixture
def served(tmp_path, monkeypatch, address):
    """(client, state) of a server with a folder of collections and a collection in a database."""
    monkeypatch.chdir(tmp_path)
    folder = stored(tmp_path / "here" / "e.periplus", ANSWERS, [HOME])
    into_database(folder, address.text, silent)
    state = AppState(places([tmp_path / "here", address.text]), Locks("", ()), COMMANDS)
    client = TestClient(application(state), base_url="http://127.0.0.1:8321", follow_redirects=False)
    return client, state, address


def posted(client, path, form, **values):
    return client.post(
        path, data={"csrf_token": token_of(client, form), **values}, headers={"origin": "http://127.0.0.1:8321"}
    )


def test_screens_are_equal_for_both(served, caches):
    client, _, address = served
    rows = {row.pop("name"): row for row in client.get("/?format=json").json()["collections"]}
    assert {*rows} == {"e", address.collection}
    one, other = ({**rows[name], "size_bytes": 0} for name in ("e", address.collection))
    assert one == other and one["state"] == "done"
    for screen in SCREENS:
        of_folder, of_database = (client.get(f"/c/{name}/{screen}") for name in ("e", address.collection))
        assert of_folder.status_code == of_database.status_code == 200, (screen, of_database.text[:500])
        assert not list(caches.rglob("collection.db")), screen


def test_decisions_on_faults_are_stored_in_the_database(served):
    client, _, address = served
    fault = next(iter(noted_faults(address.text).values())).fault
    values = {"code": fault.code, "cause": fault.cause}
    path = f"/c/{address.collection}/fault?{urlencode(values)}"
    assert client.get(f"{path}&format=json").json()["total"]
    answer = posted(client, path.partition("?")[0], path, **values, decision="accepted", words="it may stay")
    assert answer.status_code == 303, answer.text
    (note,) = home_of(address.text).fault_notes()
    assert note.words == "it may stay"
    assert "it may stay" in client.get(path).text


@pytest.fixture
def caches(monkeypatch, tmp_path):
    """The user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


def test_a_portal_is_created_edited_and_removed_in_the_database(served):
    client, state, address = served
    at = f"/c/{address.collection}"
    assert posted(client, f"{at}/portals", f"{at}/portals", name="coast", title="The coast").status_code == 303
    portal = f"{at}/portal/coast"
    assert "The coast" in client.get(portal).text
    assert [one.title for one, _ in portals(address.text)] == ["The coast"]
    posted(client, f"{portal}/decide", portal, what="ban", **{"pick-e.org": "1"})
    decided = home_of(address.text).read(lambda statements: portal_rows.decisions(statements, "coast"))
    assert decided.sites == {"e.org": EditorVerdict.BANNED}
    posted(client, f"{portal}/do", portal, what="change", title="Another coast")
    assert "Another coast" in client.get(portal).text
    posted(client, f"{portal}/do", portal, what="build")
    with state.queue() as queue:
        commands = {job.order.command for job in queue.jobs()}
    assert commands == {("portal", "build", "coast", "-c", without_secrets(address.text))}
    assert posted(client, f"{portal}/do", portal, what="remove", sure="coast").status_code == 303
    assert portals(address.text) == []


def test_a_topic_is_labelled_and_removed_in_the_database(served, caches):
    client, _, address = served
    with open_collection(address.text) as collection:
        train_topic(collection, TopicOrder("sea", ["https://e.org/a"]))
    topic = f"/c/{address.collection}/topic/sea"
    asked = client.get(f"{topic}/label?format=json").json()["page"]["url"]
    assert posted(client, f"{topic}/label", f"{topic}/label", page=asked, what="no").status_code == 303
    assert [(one.name, one.positive) for one in stored_labels(address.text, "sea")] == [(asked, False)]
    posted(client, f"{topic}/label", f"{topic}/label", what="undo")
    assert stored_labels(address.text, "sea") == []
    assert posted(client, f"{topic}/do", topic, what="remove", sure="sea").status_code == 303
    assert topic_names(address.text) == []
    assert not list(caches.rglob("collection.db"))


def test_a_survey_is_created_and_its_sites_marked_in_the_database(served, caches):
    client, _, address = served
    at = f"/c/{address.collection}/survey"
    assert posted(client, f"{at}/create", at, sites="https://e.org/", title="A survey", run="").status_code == 303
    assert client.get(f"{at}?format=json").json()["campaign"]["sites"] == 1
    posted(client, f"{at}/change", at, what="add", sites="https://other.example/")
    posted(client, f"{at}/change", at, what="decide", status="out", tags="dull", others="e.org")
    assert client.get(f"{at}?format=json").json()["campaign"]["sites"] == 1
    assert marks_in(address.text)["e.org"].tags == ("dull",)
    assert not list(caches.rglob("collection.db"))


def test_segments_are_named_in_the_database_and_move_with_it(served, tmp_path):
    client, _, address = served
    form = f"/c/{address.collection}/settings"
    wrong = posted(client, f"/c/{address.collection}/segments", form, rules="[other]")
    assert wrong.status_code == 400 and "invalid segment rules" in wrong.text
    rules = '[segments]\npilots = "/a"'
    assert posted(client, f"/c/{address.collection}/segments", form, rules=rules).status_code == 303
    assert "pilots" in client.get(form).text
    assert [rule.name for rule in rules_at(address.text)] == ["pilots"]
    move(address.text, str(tmp_path / "back"))
    assert [rule.name for rule in rules_at(tmp_path / "back")] == ["pilots"]


def test_segments_of_a_folder_move_into_the_database_and_local_ones_precede(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    folder = stored(tmp_path / "e.periplus", ANSWERS, [HOME])
    (folder / "periplus.toml").write_text('[login.e]\nhosts = ["e.org"]\n\n[segments]\nfirst = "/a"\n')
    into_database(folder, address.text, silent)
    assert [rule.name for rule in rules_at(address.text)] == ["first"]
    assert "login" not in home_of(address.text).rules_text()
    (tmp_path / "periplus.toml").write_text("[settings]\nmax_pages = 5\n")
    assert [rule.name for rule in rules_at(address.text)] == ["first"]
    (tmp_path / "periplus.toml").write_text('[segments]\nhere = "/"\n')
    assert [rule.name for rule in rules_at(address.text)] == ["here"]
    with pytest.raises(UsageError, match="change them there"):
        write_rules(address.text, 'x = "/"')


def test_logins_are_not_stored_in_databases(served):
    client, _, address = served
    form = f"/c/{address.collection}/settings"
    assert "Logins are not stored in the database" in (shown := client.get(form).text) and "login_secret" not in shown
    fields = {"login_name": "e", "login_form": "https://e.org/in", "login_user": "ann", "login_secret": "env:SECRET"}
    answer = posted(client, f"/c/{address.collection}/login", form, **fields)
    assert answer.status_code == 400 and "Logins are not stored in the database" in answer.text
    assert "SECRET" not in home_of(address.text).rules_text()


def test_jobs_are_queued_at_the_address_without_its_password(served):
    _, state, address = served
    assert state.places.base.name == "here"
    secret = address.text.replace("postgres@", "postgres:s3cret@")
    state = replace(state, places=replace(state.places, single=(secret,)))
    client = TestClient(application(state), base_url="http://127.0.0.1:8321", follow_redirects=False)
    posted(client, "/jobs/change", "/jobs", what="schedule", kind="refresh", collection=address.collection, every="day")
    with contextlib.closing(folder_queue(state.places.base)) as queue:
        assert isinstance(queue, JobQueue)
        commands = [schedule.order.command for schedule in queue.schedules()]
    assert commands == [("refresh", "-c", address.text)]


def test_a_search_by_the_shared_index_needs_no_copy(served, caches, tmp_path, monkeypatch):
    client, _, address = served
    with contextlib.closing(connect(address)) as database:
        index_place.remember(database, str(tmp_path / "index"))
    with monkeypatch.context() as other:
        other.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
        with open_collection(address.text) as collection:
            assert [hit.title for hit in collection.search("pilots").hits] == ["Pilots"]
    for path in (f"/c/{address.collection}/search?q=pilots", "/search?q=pilots"):
        (answer,) = client.get(f"{path}&format=json").json()["results"]
        assert not answer["fault"] and "https://e.org/a" in {hit["url"] for hit in answer["result"]["hits"]}
    assert not list(caches.rglob("collection.db"))
