"""Deleting pages, sites, runs and collections: what is deleted, when it is refused, and what is updated."""

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
from periplus.jobs.runner import make_order
from periplus.model.collection import Deletion
from periplus.model.job import JobOrder, JobState
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url
from periplus.store import deletion
from periplus.store.sqlite import reading, runs
from periplus.store.sqlite.frontier import FolderHome
from periplus.store.sqlite.job_file import folder_queue
from periplus.store.sqlite.listing import SqliteReader
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


def test_a_deleted_page_with_incoming_links_stays_known_and_is_not_fetched_again(folder: Path) -> None:
    done = deleting.delete(folder, Deletion(ids(f"{START}a")))
    assert (done.pages, done.staying, done.orphans) == (1, 1, 1)
    assert reasons(folder)[f"{START}a"] == Reason.DELETED
    assert f"{START}lost" not in reasons(folder), "only the deleted page knew it"
    assert sound(folder) == []
    stored(folder, WEB, [START])
    assert reasons(folder)[f"{START}a"] == Reason.DELETED, "links do not restore it"


def test_a_deleted_page_is_fetched_again_if_it_is_a_start(folder: Path) -> None:
    deleting.delete(folder, Deletion(ids(f"{START}a")))
    from periplus.model.frontier import Candidate
    from periplus.settings import Settings
    from periplus.store.sqlite.frontier import SqliteCrawlStore
    from periplus.urls.hosts import host_key
    from periplus.urls.scope import site_key

    url = canonical(f"{START}a")
    run = FolderHome(folder).begin_run("crawl", [url], Settings(), 2_000_000.0)
    store = SqliteCrawlStore(folder, run, Settings().budget, Settings().storage)
    store.offer(
        [Candidate(url, url_id(url), host_key(url), site_key(url), Reason.WAITING, 0)], (), 2_000_000.0, reopen=True
    )
    store.close()
    assert reasons(folder)[f"{START}a"] == Reason.WAITING
    assert sound(folder) == []


def test_links_to_a_deleted_page_are_deleted_on_request(folder: Path) -> None:
    done = deleting.delete(folder, Deletion(ids(f"{START}a"), links_to=True))
    assert done.links_to == 1
    assert f"{START}a" not in reasons(folder)
    assert sound(folder) == []


def test_deleting_a_site_deletes_all_its_rows(folder: Path) -> None:
    deleting.delete(folder, Deletion(site=SiteKey("ads.net"), links_to=True))
    assert "ads.net" not in {row[0] for row in content(folder)["site"]}
    assert sound(folder) == []
    deleting.delete(folder, Deletion(site=SiteKey("e.org"), links_to=True))
    kept = content(folder)
    assert [kept[name] for name in ("url", "page", "body", "link", "visit", "host", "site", "queue")] == [[]] * 8
    assert dict(kept["tally"]) == {}


def test_deleting_a_site_deletes_only_its_robots_txt(tmp_path: Path) -> None:
    from periplus.model.frontier import Batch, StoredRobots
    from periplus.model.web import Origin
    from periplus.settings import Settings
    from periplus.store.sqlite.frontier import SqliteCrawlStore

    folder = stored(tmp_path / "two", {**WEB, "https://f.org/": page("Other")}, [START, "https://f.org/"])
    run = FolderHome(folder).begin_run("crawl", [canonical(START)], Settings(), 2_000_000.0)
    with contextlib.closing(SqliteCrawlStore(folder, run, Settings().budget, Settings().storage)) as store:
        worker = store.join(os.getpid(), 2_000_000.0)
        origins = [Origin("https://e.org:443"), Origin("https://f.org:443")]
        known = tuple(StoredRobots(origin, 200, "", b"User-agent: *", 2e6, 3e6) for origin in origins)
        store.commit(worker, Batch(robots=known), 2_000_000.0)
        store.leave(worker, 2_000_000.0)
    FolderHome(folder).end_run(run, "done", "", 2_000_001.0)
    assert len(content(folder)["robots"]) == 2
    deleting.delete(folder, Deletion(site=SiteKey("e.org")))
    assert content(folder)["robots"] == [("https://f.org:443",)]


def test_deleting_a_run_deletes_or_keeps_the_pages_that_only_it_fetched(tmp_path: Path, folder: Path) -> None:
    stored(folder, {**WEB, f"{START}lost": page("Found", "/")}, [START])
    copy = shutil.copytree(folder, tmp_path / "copy.periplus")
    deleting.delete(folder, Deletion(run=2))
    assert reasons(folder)[f"{START}lost"] == Reason.DELETED
    assert [row[0] for row in content(folder)["run"]] == [1]
    deleting.delete(copy, Deletion(run=2, run_pages=False))
    assert reasons(copy)[f"{START}lost"] == Reason.OK
    assert sound(folder) == sound(copy) == []


def test_changes_of_a_deleted_run_belong_to_the_next_run(folder: Path) -> None:
    """Run 2 loses a page and run 3 finds it again: without run 2, run 1 still has it."""
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


def test_the_only_run_cannot_be_deleted(folder: Path) -> None:
    with pytest.raises(UsageError, match="no other run"):
        deleting.plan(folder, Deletion(run=1))


@pytest.mark.parametrize("deletion", [Deletion(), Deletion(run=7), Deletion(site=SiteKey("nobody.org"))])
def test_deleting_something_unknown_is_refused(folder: Path, deletion: Deletion) -> None:
    with pytest.raises(UsageError):
        deleting.plan(folder, deletion)


def test_nothing_is_deleted_during_a_crawl(folder: Path) -> None:
    before = content(folder)
    with runs.only_crawl(folder):
        with pytest.raises(StoreError, match="a crawl is running"):
            deleting.delete(folder, Deletion(ids(f"{START}a")))
        with pytest.raises(StoreError, match="a crawl is running"):
            deleting.remove_collection(folder, "e")
    assert content(folder) == before


def test_an_interrupted_deletion_can_be_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "BATCH", 1)
    order = Deletion(site=SiteKey("e.org"), links_to=True)
    reports: list[tuple[int, int]] = []
    deleting.delete(folder, order, lambda done, total: bool(reports.append((done, total)) or True))
    assert reports == [(1, 4)]
    assert sound(folder) == []
    deleting.delete(folder, order)
    assert content(folder)["site"] == []


def test_a_planned_deletion_changes_nothing(folder: Path) -> None:
    before = content(folder)
    plan = deleting.plan(folder, Deletion(site=SiteKey("e.org")))
    assert (plan.pages, plan.urls, plan.links_from, plan.bodies) == (2, 4, 5, 2)
    assert content(folder) == before


def test_a_deleted_page_leaves_search_and_its_group_of_duplicates(tmp_path: Path) -> None:
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


def test_deleting_invalidates_cached_tables(folder: Path) -> None:
    with contextlib.closing(reading.connect(folder)) as connection:
        before = SqliteReader(connection).version()
    deleting.delete(folder, Deletion(ids(START)))
    with contextlib.closing(reading.connect(folder)) as connection:
        assert SqliteReader(connection).version() > before


def test_a_deleted_text_is_no_longer_in_any_file(tmp_path: Path) -> None:
    secret = "unmistakable-secret-" * 3
    folder = stored(tmp_path / "e.periplus", {START: page("Home", "/a"), f"{START}a": page(secret, "/")}, [START])
    assert any(secret.encode() in path.read_bytes() for path in folder.glob("collection.db*"))
    deleting.delete(folder, Deletion(ids(f"{START}a"), links_to=True))
    assert not any(secret.encode() in path.read_bytes() for path in folder.glob("collection.db*"))


def test_shrinking_frees_disk_space(tmp_path: Path) -> None:
    web = {
        START: page("Home", *(f"/{n}" for n in range(300))),
        **{f"{START}{n}": page(f"Page {n} " * 200, "/") for n in range(300)},
    }
    folder = stored(tmp_path / "e.periplus", web, [START])
    before = (folder / "collection.db").stat().st_size
    deleting.delete(folder, Deletion(site=SiteKey("e.org")), shrink=True)
    assert (folder / "collection.db").stat().st_size < before / 2


def test_a_collection_is_deleted_only_by_its_name(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"type the collection's name, e\.periplus"):
        deleting.remove_collection(folder, "f")
    assert folder.exists()
    deleting.remove_collection(folder, "e.periplus")
    assert list(folder.parent.iterdir()) == []


def run_delete(*words: str, folder: Path, stdin: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(main, ["delete", "-c", str(folder), *words], input=stdin)
    return done.exit_code, done.output


def test_the_command_lists_what_it_deletes_and_asks(folder: Path) -> None:
    code, output = run_delete(f"{START}a", folder=folder)
    assert code == 2
    assert "1 page, with its contents" in output
    assert "no terminal to ask on" in output
    assert reasons(folder)[f"{START}a"] == Reason.OK
    code, output = run_delete(f"{START}a".partition("://")[2], "--dry-run", folder=folder)
    assert (code, "1 page, with its contents" in output) == (0, True)
    code, output = run_delete("--site", "e.org", "--dry-run", "-f", "json", folder=folder)
    assert json.loads(output)["plan"]["pages"] == 2
    assert run_delete("-i", "-", "--yes", folder=folder, stdin=f"{START}a\n")[0] == 0
    assert reasons(folder)[f"{START}a"] == Reason.DELETED
    assert "does not know" in run_delete("https://e.org/never", folder=folder)[1]
    assert make_order(("delete", "--site=e.org", "--yes")).kind == "delete"


def test_in_the_browser_selected_pages_are_deleted_after_a_preview(folder: Path) -> None:
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


def test_in_the_browser_a_large_deletion_becomes_a_job(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_in_the_browser_a_collection_is_deleted_by_its_name(folder: Path) -> None:
    asking = client(folder.parent)
    form = {"csrf_token": token_of(asking, "/c/e/delete"), "what": "everything"}
    assert asking.post("/c/e/delete", data=form | {"typed": "x"}).status_code == 400
    assert asking.post("/c/e/delete", data={"what": "everything", "typed": "e"}).status_code == 403
    assert asking.post("/c/e/delete", data=form | {"typed": "e"}).status_code == 303
    assert not folder.exists()


def test_jobs_and_schedules_of_a_deleted_collection_are_deleted(folder: Path) -> None:
    asking = client(folder.parent)
    queue = folder_queue(folder.parent)
    queue.add(JobOrder(("crawl", START, "-o", folder.name)), 1.0)
    kept = queue.add(JobOrder(("crawl", START, "-o", "other.periplus")), 1.0)
    queue.repeat(JobOrder(("refresh", "-c", str(folder.resolve()))), 3600.0, 1.0)
    asking.post("/c/e/delete", data={"csrf_token": token_of(asking, "/c/e/delete"), "what": "everything", "typed": "e"})
    assert ([job.id for job in queue.jobs() if job.state is JobState.QUEUED], queue.schedules()) == ([kept.id], [])
    queue.close()


def test_all_filtered_rows_can_be_selected(folder: Path) -> None:
    found = client(folder.parent).get("/c/e/delete?all=pages&q=lantern&format=json").json()
    assert found["plan"]["urls"] == 1


def test_a_filter_by_site_does_not_delete_the_site(folder: Path) -> None:
    found = client(folder.parent).get("/c/e/delete?all=pages&site=e.org&q=lantern&format=json").json()
    assert (found["plan"]["urls"], found["request"]["site"]) == (1, None)


def test_aliases_of_a_page_are_deleted_with_it(folder: Path) -> None:
    with contextlib.closing(__import__("sqlite3").connect(folder / "collection.db")) as raw, raw:
        other, own = ids(f"{START}b", f"{START}a")
        raw.execute(
            "INSERT INTO alias (url_id, page_id, rule, learned, was) VALUES (?, ?, 'x', 0, 'waiting')", (other, own)
        )
    done = deleting.delete(folder, Deletion((url_id(Url(f"{START}a")),)))
    assert done.urls == 2
    assert content(folder)["alias"] == []
