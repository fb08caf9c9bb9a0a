"""Screens of a failed crawl, and its restart with consent."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interface import client, token_of
from periplus.model.job import Job, JobOrder, JobState
from periplus.store.job_queue import JobQueue
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome
from periplus.store.sqlite.job_file import folder_queue
from periplus.ui.watching import Watchers
from stored import NOW, page, stored

HOME = "http://127.0.0.1:9/"
CRAWL = ("crawl", HOME, "-o", "x.periplus")
NOTE = f"Failed: no page was read; {HOME}: private address, not requested — after 0.5 s"
AGAIN = {"consent_private": "yes"}


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[JobQueue]:
    queue = folder_queue(tmp_path)
    yield queue
    queue.close()


def failed(queue: JobQueue, order: JobOrder = JobOrder(CRAWL), note: str = NOTE) -> Job:  # noqa: B008 - a value
    queue.add(order, NOW)
    job = queue.claim("worker", NOW, 60.0)
    assert job is not None
    queue.finish(job, JobState.FAILED, note, NOW, 0.0)
    return job


def test_a_failed_first_crawl_shows_the_reason_and_offers_consent(tmp_path: Path, queue: JobQueue) -> None:
    failed(queue)
    asking = client(tmp_path)
    text = asking.get("/c/x/live").text
    assert "<p>http://127.0.0.1:9/: private address, not requested — after 0.5 s</p>" in text
    assert "start it again with the consent for private addresses" in text
    assert '<input type="checkbox" name="consent_private" value="yes" form="steer">' in text
    assert 'formaction="resume">Start it again</button>' in text
    assert "--allow-private" not in text and "No faults were found" not in text and "study this" not in text
    shown = asking.get("/c/x/live?format=json").json()
    assert (shown["failure"], shown["read"]) == (NOTE, 0)


def test_one_click_restarts_the_crawl_with_consent(tmp_path: Path, queue: JobQueue) -> None:
    learn, judge = ("topic", "train", "t", "-c", "x.periplus"), ("topic", "crawl", "t", HOME, "-c", "x.periplus")
    failed(queue, JobOrder(CRAWL, then=(learn, judge)))
    asking = client(tmp_path)
    form = {"csrf_token": token_of(asking, "/c/x/live")}
    assert asking.post("/c/x/resume", data=form | AGAIN).headers["location"] == "/c/x/live"
    order = queue.jobs()[0].order
    assert (order.command, order.then) == (
        (*CRAWL, "--allow-private"),
        (learn, (*judge, "--allow-private")),
    )


def test_without_consent_the_same_crawl_is_restarted(tmp_path: Path, queue: JobQueue) -> None:
    failed(queue)
    asking = client(tmp_path)
    asking.post("/c/x/resume", data={"csrf_token": token_of(asking, "/c/x/live")})
    assert [job.order.command for job in queue.jobs()] == [CRAWL, CRAWL]


def test_a_server_that_others_can_reach_neither_offers_nor_accepts_consent(tmp_path: Path, queue: JobQueue) -> None:
    failed(queue)
    asking = client(tmp_path, names=("crawls.example",))
    text = asking.get("/c/x/live").text
    assert "consent_private" not in text and "allow_private = true" in text
    refused = asking.post("/c/x/resume", data={"csrf_token": token_of(asking, "/c/x/live")} | AGAIN)
    assert refused.status_code == 400 and "on this machine alone" in refused.text
    assert len(queue.jobs()) == 1


def test_another_failure_offers_no_consent(tmp_path: Path, queue: JobQueue) -> None:
    failed(queue, note="Failed: no page was read; https://e.invalid/: host given up (name not found) — after 5 s")
    text = client(tmp_path).get("/c/x/live").text
    assert "Check the spelling" in text and "consent_private" not in text


def test_an_unknown_collection_is_not_shown_as_failed(tmp_path: Path, queue: JobQueue) -> None:
    asking = client(tmp_path)
    assert asking.get("/c/x/live").status_code == 404
    assert asking.post("/c/x/resume", data={"csrf_token": token_of(asking)}).status_code == 404


@pytest.mark.parametrize("state", ["failed", "running", "stopped", "done"])
def test_a_collection_without_pages_is_never_called_free_of_faults(tmp_path: Path, state: str) -> None:
    folder = stored(tmp_path / "x.periplus", {HOME: 404}, [HOME], state=state)
    if state == "failed":
        FolderHome(folder).end_run(1, state, NOTE, NOW)
    text = client(tmp_path).get("/c/x/live").text
    assert "No faults were found" not in text
    assert ("No page was fetched" in text) if state == "failed" else ("No page was fetched yet" in text)


def test_a_failed_run_of_a_collection_with_pages_can_be_resumed_with_consent(tmp_path: Path, queue: JobQueue) -> None:
    stored(tmp_path / "x.periplus", {HOME: page("Home")}, [HOME], state="failed")
    asking = client(tmp_path)
    asking.post("/c/x/resume", data={"csrf_token": token_of(asking, "/c/x/live")} | AGAIN)
    assert queue.jobs()[0].order.command == (*CRAWL, "--allow-private")


def test_a_collection_that_its_failing_crawl_deletes_meanwhile_is_still_watched(
    tmp_path: Path, queue: JobQueue
) -> None:
    queue.add(JobOrder(CRAWL), NOW)
    database = tmp_path / "x.periplus" / schema.DATABASE
    schema.create(database.parent)

    def delete_before_opening(event: str, values: tuple[object, ...]) -> None:
        if event == "sqlite3.connect" and str(database) in str(values[0]):
            database.unlink(missing_ok=True)

    sys.addaudithook(delete_before_opening)
    answer = client(tmp_path).get("/c/x/live")
    assert answer.status_code == 200 and "Waiting for a worker" in answer.text


def test_a_watcher_sees_a_new_crawl_in_the_same_folder(tmp_path: Path) -> None:
    """Both runs have the number 1."""
    folder, watchers = tmp_path / "x.periplus", Watchers()
    stored(folder, {HOME: 404, f"{HOME}a": 404}, [HOME])
    assert not watchers.look(folder).newest or watchers.look(folder).newest[0].status == 404
    shutil.rmtree(folder)
    stored(folder, {HOME: page("Home")}, [HOME])
    with schema.writing(folder) as connection:
        connection.execute("UPDATE run SET started = started + 1")
    end = time.monotonic() + 300.0
    while [visit.status for visit in watchers.look(folder).newest] != [200]:
        assert time.monotonic() < end
