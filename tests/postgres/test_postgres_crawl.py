"""Crawls in PostgreSQL equal crawls in a folder."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest
from postgres_voyage import StoredCollection, crawled_into, crawling_order
from voyage import PATIENCE_S, Collection, crawled, flags_for, plain, told

from periplus.api.crawling import crawl, refresh, refresh_order
from periplus.api.homes import home_of
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.jobs.runner import opened_queue
from periplus.model.job import JobOrder
from periplus.model.visit import Reason
from periplus_postgres.address import address_of
from periplus_postgres.collection import remove
from periplus_postgres.connection import connect
from periplus_postgres.joining import join, run_in_progress, settings_of_run
from testweb import Site, Web, linked_sites, serve
from testweb.recipes import web_of

LIMITS = {"first_byte_timeout_s": 0.6, "total_timeout_s": 1.0, "retry_wait_s": 0.02, "delay_s": 0.0}


def visits(collection: Collection) -> list[tuple]:
    return sorted((url, purpose, outcome, status) for url, purpose, outcome, status, _ in collection.visits())


@pytest.mark.parametrize(
    "recipe",
    ["linked seed=5 sites=4 pages=12 links_between=20 links_per_page=8", "faults", "identity", "mixed", "manual"],
)
def test_a_crawl_in_a_database_equals_a_crawl_in_a_folder(recipe: str, tmp_path, address) -> None:
    web = web_of(recipe)
    with serve(web) as server:
        starts = tuple(web.sites)
        folder, end = crawled(tmp_path / "c", server, *starts, **LIMITS)
        stored, other = crawled_into(address.text, server, *starts, **LIMITS)
        assert (end.state, end.note, end.counts.by_reason) == (other.state, other.note, other.counts.by_reason)
        assert stored.tables == folder.tables
        assert recipe == "faults" or visits(stored) == visits(folder), "some faults are over after the first time"
        asked = "SELECT u.text, a.rule, a.learned, a.was FROM alias a JOIN url u ON u.id = a.url_id"
        assert set(stored.ask(asked)) == set(folder.ask(asked))
        assert stored.sane() == []


def linked() -> Web:
    return linked_sites(seed=5, sites=4, pages=12, links_between=20, links_per_page=8)


def test_pages_are_stored_in_segments_if_a_place_is_set(tmp_path, address) -> None:
    place, web = tmp_path / "segments", linked()
    with serve(web) as server:
        stored, end = crawled_into(f"{address.text}&segments={place}", server, *web.sites)
        assert end.state == "done"
        assert stored.ask("SELECT count(*) FROM body WHERE segment IS NULL OR length(data) > 0") == [(0,)]
        assert (
            sum(path.stat().st_size for path in place.glob("*.warc.gz"))
            >= stored.ask("SELECT sum(length) FROM body")[0][0]
        )
        with pytest.raises(UsageError, match="remove segments= from"):
            home_of(f"{address.text}&segments={tmp_path / 'elsewhere'}").prepare("", 0.0)


def test_a_first_crawl_without_pages_leaves_no_collection(address) -> None:
    new = address.text.replace(address.collection, f"{address.collection}_new")
    with serve(Site("a.test")) as server:
        for place, stays in ((new, False), (address.text, True)):  # the latter existed before
            end = crawl(crawling_order(place, server, "a.test", allow_private=False), lambda progress: False)
            assert (end.state, end.is_kept) == ("failed", stays), end.note
    with pytest.raises(NoCollection):
        home_of(new).runs()
    assert [run.state for run in home_of(address.text).runs()] == ["failed"]


def test_a_new_collection_with_a_job_is_kept_if_its_first_crawl_fails(address) -> None:
    new = address.text.replace(address.collection, f"{address.collection}_new")
    home = home_of(new)
    home.prepare("", 0.0)
    try:
        with opened_queue(Path(), new) as (queue, clock):
            queue.add(JobOrder(("check", "-c", new)), clock.now())
        assert not home.discard()
        assert list(home.runs()) == []
    finally:
        remove(new)


def test_a_stopped_crawl_continues_without_repeated_requests(address) -> None:
    web = linked()
    with serve(web) as server:
        _, first = crawled_into(
            address.text, server, *web.sites, stop=lambda progress: progress.counts.fetched >= 12, sitemaps=False
        )
        assert first.state == "stopped"
        stored, second = crawled_into(address.text, server, *web.sites, sitemaps=False)
        assert (second.state, second.went_on) == ("done", True)
        pages = [(entry.host, entry.target) for entry in server.log if entry.target != "/robots.txt"]
        assert len(pages) == len(set(pages)) == 48
        assert stored.sane() == []


def test_fresh_lists_deletions_keeps_jobs_and_foreign_tables_and_starts_at_run_1(tmp_path, address) -> None:
    store, web = f"{address.text}&segments={tmp_path / 'segments'}", linked()
    with serve(web) as server:
        stored, _ = crawled_into(store, server, *web.sites)
        with contextlib.closing(connect(address)) as connection:
            connection.execute("CREATE TABLE mine AS SELECT 7 AS number")
        before = {path.name for path in (tmp_path / "segments").iterdir()}
        told("jobs", "add", "-c", address.text, "map", "-c", address.text, cwd=tmp_path)
        words = ["crawl", server.url("a.test"), "-c", address.text, "--fresh", "-q", "--max-pages", "3"]
        words += flags_for(server.resolve)
        with home_of(address.text).only_crawl():
            refused = told(*words, cwd=tmp_path)
        assert "another crawl is running" in refused.stderr and len(stored.urls) > 40
        again = told(*words, cwd=tmp_path)
    assert f"--fresh: deleting what {address} holds (48 URLs; " in plain(again.stderr)
    assert (again.returncode, stored.ask("SELECT id FROM run")) == (0, [(1,)])
    assert stored.ask("SELECT count(*) FROM visit WHERE purpose = 'page'") == [(3,)]
    assert stored.ask("SELECT count(*) FROM job") == [(1,)] and stored.ask("SELECT number FROM mine") == [(7,)]
    after = {path.name for path in (tmp_path / "segments").iterdir()}
    assert not before & after and {name for (name,) in stored.ask("SELECT DISTINCT segment FROM body")} == after


def test_a_page_limit_is_obeyed(address) -> None:
    web = linked()
    with serve(web) as server:
        stored, end = crawled_into(address.text, server, *web.sites, max_pages=17)
        assert (end.counts.fetched, end.state) == (17, "stopped")
        assert stored.ask("SELECT count(*) FROM page") == [(17,)]


def test_a_refresh_finds_no_changes(address) -> None:
    web = linked()
    with serve(web) as server:
        stored, first = crawled_into(address.text, server, *web.sites, delay_s=0.0)
        before = stored.tables
        done = refresh(refresh_order(address.text, {}), lambda progress: False)
        assert done.end.state == "done"
        assert {finding.value: count for finding, count in done.findings.items() if count} == {
            "unchanged": first.counts.fetched
        }
        assert stored.tables == before
        assert stored.sane() == []


def test_of_two_crawls_on_one_collection_the_second_is_refused(address) -> None:
    home = home_of(address.text)
    with (
        home.only_crawl(),
        pytest.raises(StoreError, match=r"periplus worker -c"),
        home_of(address.text).only_crawl(),
    ):
        pass
    with home_of(address.text).only_crawl():
        pass


def test_a_joining_worker_has_the_settings_of_the_run_and_ends_the_run_of_a_dead_boss(address) -> None:
    """The boss created its run and offered its starts, then died."""
    web = linked()
    with serve(web) as server:
        order = crawling_order(address.text, server, *web.sites, max_pages=30)
        begun = threading.Event()
        with pytest.raises(RuntimeError, match="killed"):
            crawl(order, lambda progress: begun.set() or _die())
        record = run_in_progress(address.text)
        assert record is not None
        settings = settings_of_run(record)
        assert settings.budget.max_pages == 30
        end = join(address.text, record, settings, patient())
        assert end.counts.fetched == 30
        stored = StoredCollection(address.text)
        assert stored.ask("SELECT state, note FROM run") == [("stopped", "max-pages 30 reached")]
        assert run_in_progress(address.text) is None
        assert stored.sane() == []


def _die() -> bool:
    raise RuntimeError("killed")


def patient():
    deadline = time.monotonic() + PATIENCE_S

    def watch(progress) -> bool:
        assert time.monotonic() < deadline, f"it does not end: {progress}"
        return False

    return watch


def test_a_worker_leaves_a_run_ended_elsewhere(address) -> None:
    web = linked()
    with serve(web) as server:
        order = crawling_order(address.text, server, *web.sites, delay_s=1.0)
        with pytest.raises(RuntimeError, match="killed"):
            crawl(order, lambda progress: progress.counts.fetched > 0 and _die())
        record = run_in_progress(address.text)
        home_of(address.text).end_run(record.id, "stopped", "enough", 0.0)
        end = join(address.text, record, settings_of_run(record), patient())
        assert end.note == "stopped by the user"
        assert StoredCollection(address.text).ask("SELECT note FROM run") == [("enough",)]


def test_rules_apply_from_the_first_crawl(address) -> None:
    home = home_of(address.text)
    rules = '[[site]]\nwww = "drop"\n'
    assert home.prepare(rules, 0.0) is False
    home.begin_run("crawl", (), crawling_settings(), 0.0)
    assert home_of(address.text).rules_text() == rules
    assert home.prepare(rules, 0.0) is True
    with pytest.raises(UsageError, match="other URL rules"):
        home.prepare("", 0.0)


def crawling_settings():
    from periplus.settings import Settings

    return Settings()


def test_texts_that_postgresql_cannot_hold_cost_no_page(address) -> None:
    """U+0000 in an anchor, a lone surrogate in a title: SQLite keeps both, here they become U+FFFD."""
    from contracts.crawl_values import PAGE, batch, candidate, completion, get, take
    from contracts.crawl_worlds import PostgresWorld
    from periplus.document.understand import understand

    world = PostgresWorld(address, {100})
    try:
        store = world.open()
        store.offer([candidate("http://a.test/")], (), 0.0)
        worker = store.join(100, 0.0)
        lease = get(store, worker)["a.test"]
        (task,) = take(store, lease)
        import dataclasses

        document = dataclasses.replace(understand(task.request.url, PAGE), title="a\0b\ud800c")
        store.commit(worker, batch(completion(lease, task, document=document)), 0.0)
        assert StoredCollection(address.text).ask("SELECT title FROM page") == [("a\ufffdb\ufffd\ufffd\ufffdc",)]
        assert store.counts().by_reason == {Reason.OK: 1}
    finally:
        world.close()


def test_addresses_identify_the_collection_without_a_password() -> None:
    address = address_of(
        "postgresql://me:secret@db.example:5433/crawls?sslmode=require&collection=press&segments=s3://pages"
    )
    assert (address.collection, address.segments) == ("press", "s3://pages")
    assert address.dsn == "postgresql://me:secret@db.example:5433/crawls?sslmode=require"
    assert str(address) == "postgresql://me@db.example:5433/crawls?collection=press"
    assert address_of(address.text) == address
    assert address_of("postgresql:///crawls").collection == "periplus"
    for wrong in ("postgresql:///crawls?collection=Press", "postgresql:///crawls?collection=public", "mysql:///crawls"):
        with pytest.raises(UsageError):
            address_of(wrong)
