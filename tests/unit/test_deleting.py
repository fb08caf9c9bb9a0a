"""What goes with a page, a site, a run; who may delete when; and what knows of it afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from deleted import content, sound
from interface import client, token_of
from periplus.api import deleting
from periplus.api.collection import Collection
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.jobs.runner import ordered
from periplus.model.collection import Deletion
from periplus.model.job import JobOrder, JobState
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url
from periplus.store.sqlite import deletion, reading, runs, tables
from periplus.store.sqlite.job_file import folder_queue
from periplus.urls.canonical import canonical, url_id
from stored import page, stored

START = "https://e.org/"
WEB = {
    START: page("Home", "/a", "/b", "https://ads.net/x"),
    f"{START}a": page("Lantern", "/b", "/lost"),
    f"{START}b": 404,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return stored(tmp_path / "e.periplus", WEB, [START])


def ids(*urls: str) -> tuple:
    return tuple(url_id(canonical(url)) for url in urls)


def reasons(folder: Path) -> dict[object, object]:
    return {row[0]: row[2] for row in content(folder)["url"]}


def test_a_page_that_others_link_to_stays_known_and_is_left_alone(folder: Path) -> None:
    done = deleting.delete(folder, Deletion(ids(f"{START}a")))
    assert (done.pages, done.staying, done.orphans) == (1, 1, 1)
    assert reasons(folder)[f"{START}a"] == Reason.DELETED
    assert f"{START}lost" not in reasons(folder), "only the deleted page knew it"
    assert sound(folder) == []
    stored(folder, WEB, [START])
    assert reasons(folder)[f"{START}a"] == Reason.DELETED, "links do not bring it back"


def test_a_deleted_page_comes_back_when_it_is_named(folder: Path) -> None:
    deleting.delete(folder, Deletion(ids(f"{START}a")))
    from periplus.model.frontier import Candidate
    from periplus.settings import Settings
    from periplus.store.sqlite.frontier import SqliteCrawlStore
    from periplus.urls.hosts import host_key
    from periplus.urls.scope import site_key

    url = canonical(f"{START}a")
    run = runs.begin_run(folder, "crawl", [url], Settings(), 2_000_000.0)
    store = SqliteCrawlStore(folder, run, Settings().budget, Settings().storage)
    store.offer(
        [Candidate(url, url_id(url), host_key(url), site_key(url), Reason.WAITING, 0)], (), 2_000_000.0, reopen=True
    )
    store.close()
    assert reasons(folder)[f"{START}a"] == Reason.WAITING
    assert sound(folder) == []


def test_links_to_it_go_where_that_is_wished(folder: Path) -> None:
    done = deleting.delete(folder, Deletion(ids(f"{START}a"), links_to=True))
    assert done.links_to == 1
    assert f"{START}a" not in reasons(folder)
    assert sound(folder) == []


def test_a_site_goes_with_all_that_was_asked_of_it(folder: Path) -> None:
    deleting.delete(folder, Deletion(site=SiteKey("ads.net"), links_to=True))
    assert "ads.net" not in {row[0] for row in content(folder)["site"]}
    assert sound(folder) == []
    deleting.delete(folder, Deletion(site=SiteKey("e.org"), links_to=True))
    kept = content(folder)
    assert [kept[name] for name in ("url", "page", "body", "link", "visit", "host", "site", "queue")] == [[]] * 8
    assert dict(kept["tally"]) == {}


def test_a_deleted_sites_robots_txt_goes_and_that_of_others_stays(tmp_path: Path) -> None:
    from periplus.model.frontier import Batch, StoredRobots
    from periplus.model.web import Origin
    from periplus.settings import Settings
    from periplus.store.sqlite.frontier import SqliteCrawlStore

    folder = stored(tmp_path / "two", {**WEB, "https://f.org/": page("Other")}, [START, "https://f.org/"])
    run = runs.begin_run(folder, "crawl", [canonical(START)], Settings(), 2_000_000.0)
    with contextlib.closing(SqliteCrawlStore(folder, run, Settings().budget, Settings().storage)) as store:
        worker = store.join(os.getpid(), 2_000_000.0)
        origins = [Origin("https://e.org:443"), Origin("https://f.org:443")]
        known = tuple(StoredRobots(origin, 200, "", b"User-agent: *", 2e6, 3e6) for origin in origins)
        store.commit(worker, Batch(robots=known), 2_000_000.0)
        store.leave(worker, 2_000_000.0)
    runs.end_run(folder, run, "done", "", 2_000_001.0)
    assert len(content(folder)["robots"]) == 2
    deleting.delete(folder, Deletion(site=SiteKey("e.org")))
    assert content(folder)["robots"] == [("https://f.org:443",)]


def test_a_run_goes_with_the_pages_that_only_it_fetched_or_without(tmp_path: Path, folder: Path) -> None:
    stored(folder, {**WEB, f"{START}lost": page("Found", "/")}, [START])
    copy = shutil.copytree(folder, tmp_path / "copy.periplus")
    deleting.delete(folder, Deletion(run=2))
    assert reasons(folder)[f"{START}lost"] == Reason.DELETED
    assert [row[0] for row in content(folder)["run"]] == [1]
    deleting.delete(copy, Deletion(run=2, run_pages=False))
    assert reasons(copy)[f"{START}lost"] == Reason.OK
    assert sound(folder) == sound(copy) == []


def test_what_a_deleted_run_changed_counts_to_the_next(folder: Path) -> None:
    """Run 2 loses a page, run 3 finds it again: without run 2 the first still has it."""
    with contextlib.closing(__import__("sqlite3").connect(folder / "collection.db")) as raw, raw:
        for run in (2, 3):
            raw.execute("INSERT INTO run (id, kind, starts, settings, seed, started, ended, state)"
" SELECT ?, kind, starts, settings, seed,"
                        " started + ?, ended + ?, state FROM run WHERE id = 1",
                        (run, run * 1000, run * 1000))  # fmt: skip
        raw.execute("INSERT INTO url_history VALUES (?, 2, 'ok', '', 200, 1)", ids(f"{START}a"))
        raw.execute("INSERT INTO url_history VALUES (?, 3, 'not-found', '', 404, 1)", ids(f"{START}a"))
    deleting.delete(folder, Deletion(run=2))
    with contextlib.closing(reading.connect(folder)) as connection:
        assert connection.execute("SELECT run_id, reason FROM url_history").fetchall() == [(3, "ok")]
    with Collection(folder) as kept:
        assert kept.diff("1", "3").removed == ()


def test_the_only_run_does_not_go_alone(folder: Path) -> None:
    with pytest.raises(UsageError, match="no other run"):
        deleting.plan(folder, Deletion(run=1))


@pytest.mark.parametrize("wish", [Deletion(), Deletion(run=7), Deletion(site=SiteKey("nobody.org"))])
def test_what_is_not_there_is_refused(folder: Path, wish: Deletion) -> None:
    with pytest.raises(UsageError):
        deleting.plan(folder, wish)


def test_nothing_goes_while_a_crawl_is_at_work(folder: Path) -> None:
    before = content(folder)
    with runs.only_crawl(folder):
        with pytest.raises(StoreError, match="a crawl is running"):
            deleting.delete(folder, Deletion(ids(f"{START}a")))
        with pytest.raises(StoreError, match="a crawl is running"):
            deleting.remove_collection(folder, "e")
    assert content(folder) == before


def test_stopped_between_two_transactions_the_same_wish_does_the_rest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "BATCH", 1)
    wish = Deletion(site=SiteKey("e.org"), links_to=True)
    told: list[tuple[int, int]] = []
    deleting.delete(folder, wish, lambda done, total: bool(told.append((done, total)) or True))
    assert told == [(1, 4)]
    assert sound(folder) == []
    deleting.delete(folder, wish)
    assert content(folder)["site"] == []


def test_a_planned_deletion_changes_nothing(folder: Path) -> None:
    before = content(folder)
    plan = deleting.plan(folder, Deletion(site=SiteKey("e.org")))
    assert (plan.pages, plan.urls, plan.links_from, plan.bodies) == (2, 4, 5, 2)
    assert content(folder) == before


def test_search_finds_it_no_longer_and_another_stands_for_its_duplicates(tmp_path: Path) -> None:
    web = {
        START: page("Home", "/a", "/b"),
        f"{START}a": page("Lantern light", "/"),
        f"{START}b": page("Lantern light", "/"),
    }
    folder = stored(tmp_path / "e.periplus", web, [START])
    with Collection(folder) as kept:
        assert len(kept.search("lantern").hits) == 1
        (group,) = kept.duplicates().groups
        representative = group.url
    deleting.delete(folder, Deletion(ids(str(representative))))
    with Collection(folder) as kept:
        (hit,) = kept.search("lantern").hits
        assert hit.url != representative
        assert hit.twins == ()
        assert kept.duplicates().groups == ()


def test_what_was_remembered_of_the_collection_holds_no_longer(folder: Path) -> None:
    with contextlib.closing(reading.connect(folder)) as connection:
        before = tables.version(connection)
    deleting.delete(folder, Deletion(ids(START)))
    with contextlib.closing(reading.connect(folder)) as connection:
        assert tables.version(connection) > before


def test_a_deleted_text_is_in_no_file(tmp_path: Path) -> None:
    secret = "unmistakable-secret-" * 3
    folder = stored(tmp_path / "e.periplus", {START: page("Home", "/a"), f"{START}a": page(secret, "/")}, [START])
    assert any(secret.encode() in path.read_bytes() for path in folder.glob("collection.db*"))
    deleting.delete(folder, Deletion(ids(f"{START}a"), links_to=True))
    assert not any(secret.encode() in path.read_bytes() for path in folder.glob("collection.db*"))


def test_shrinking_gives_the_space_back(tmp_path: Path) -> None:
    web = {
        START: page("Home", *(f"/{n}" for n in range(300))),
        **{f"{START}{n}": page(f"Page {n} " * 200, "/") for n in range(300)},
    }
    folder = stored(tmp_path / "e.periplus", web, [START])
    before = (folder / "collection.db").stat().st_size
    deleting.delete(folder, Deletion(site=SiteKey("e.org")), shrink=True)
    assert (folder / "collection.db").stat().st_size < before / 2


def test_a_collection_goes_only_by_its_name(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"type the collection's name, e\.periplus"):
        deleting.remove_collection(folder, "f")
    assert folder.exists()
    deleting.remove_collection(folder, "e.periplus")
    assert list(folder.parent.iterdir()) == []


def asked(*words: str, folder: Path, stdin: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(main, ["delete", "-c", str(folder), *words], input=stdin)
    return done.exit_code, done.output


def test_the_command_says_what_goes_and_asks(folder: Path) -> None:
    code, said = asked(f"{START}a", folder=folder)
    assert code == 2
    assert "1 page, with its contents" in said
    assert "no terminal to ask on" in said
    assert reasons(folder)[f"{START}a"] == Reason.OK
    code, said = asked(f"{START}a".partition("://")[2], "--dry-run", folder=folder)
    assert (code, "1 page, with its contents" in said) == (0, True)
    code, said = asked("--site", "e.org", "--dry-run", "-f", "json", folder=folder)
    assert json.loads(said)["plan"]["pages"] == 2
    assert asked("-i", "-", "--yes", folder=folder, stdin=f"{START}a\n")[0] == 0
    assert reasons(folder)[f"{START}a"] == Reason.DELETED
    assert "does not know" in asked("https://e.org/never", folder=folder)[1]
    assert ordered(("delete", "--site=e.org", "--yes")).kind == "delete"


def test_in_the_browser_ticked_pages_go_after_it_was_said_what_goes(folder: Path) -> None:
    asking = client(folder.parent)
    table = asking.get("/c/e/t/pages").text
    number = table.partition('aria-label="Select https://e.org/a"')[0].rpartition('value="')[2].partition('"')[0]
    address = f"/c/e/delete?page={number}"
    assert "1 page, with its contents" in asking.get(address).text
    assert reasons(folder)[f"{START}a"] == Reason.OK
    done = asking.post("/c/e/delete", data={"csrf_token": token_of(asking, address), "pages": number})
    assert done.status_code == 303
    assert reasons(folder)[f"{START}a"] == Reason.DELETED
    assert "Lantern" not in asking.get("/c/e/t/pages").text


def test_in_the_browser_much_is_a_job(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleting, "BATCH", 1)
    asking = client(folder.parent)
    asking.post(
        "/c/e/delete",
        data={"csrf_token": token_of(asking, "/c/e/delete?site=e.org"), "site": "e.org", "links_to": "on"},
    )
    queue = folder_queue(folder.parent)
    (job,) = queue.jobs()
    queue.close()
    assert job.order.command == ("delete", "-c", str(folder.resolve()), "--yes", "--site=e.org", "--links-to")


def test_in_the_browser_a_collection_goes_by_its_name(folder: Path) -> None:
    asking = client(folder.parent)
    form = {"csrf_token": token_of(asking, "/c/e/delete"), "what": "everything"}
    assert asking.post("/c/e/delete", data=form | {"typed": "x"}).status_code == 400
    assert asking.post("/c/e/delete", data={"what": "everything", "typed": "e"}).status_code == 403
    assert asking.post("/c/e/delete", data=form | {"typed": "e"}).status_code == 303
    assert not folder.exists()


def test_what_was_asked_for_of_a_collection_goes_with_it(folder: Path) -> None:
    asking = client(folder.parent)
    queue = folder_queue(folder.parent)
    queue.add(JobOrder(("crawl", START, "-o", folder.name)), 1.0)
    kept = queue.add(JobOrder(("crawl", START, "-o", "other.periplus")), 1.0)
    queue.repeat(JobOrder(("refresh", "-c", str(folder.resolve()))), 3600.0, 1.0)
    asking.post("/c/e/delete", data={"csrf_token": token_of(asking, "/c/e/delete"), "what": "everything", "typed": "e"})
    assert ([job.id for job in queue.jobs() if job.state is JobState.QUEUED], queue.schedules()) == ([kept.id], [])
    queue.close()


def test_all_that_a_filter_leaves_can_be_chosen(folder: Path) -> None:
    found = client(folder.parent).get("/c/e/delete?all=pages&q=lantern&format=json").json()
    assert found["plan"]["urls"] == 1


def test_a_filter_by_site_is_no_wish_to_delete_the_site(folder: Path) -> None:
    found = client(folder.parent).get("/c/e/delete?all=pages&site=e.org&q=lantern&format=json").json()
    assert (found["plan"]["urls"], found["request"]["site"]) == (1, None)


def test_addresses_of_one_page_go_with_it(folder: Path) -> None:
    with contextlib.closing(__import__("sqlite3").connect(folder / "collection.db")) as raw, raw:
        other, own = ids(f"{START}b", f"{START}a")
        raw.execute(
            "INSERT INTO alias (url_id, page_id, rule, learned, was) VALUES (?, ?, 'x', 0, 'waiting')", (other, own)
        )
    done = deleting.delete(folder, Deletion((url_id(Url(f"{START}a")),)))
    assert done.urls == 2
    assert content(folder)["alias"] == []
