"""Jobs run by real workers: queued, watched, cancelled, killed and continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from voyage import (
    PATIENCE_S,
    Collection,
    Served,
    command,
    environment,
    flags_for,
    plain,
    served_apart,
    told,
    told_apart,
    until,
)

from periplus.errors import StoreError
from periplus.jobs.runner import opened_queue
from periplus.model.job import Job, JobState
from periplus.model.visit import Reason
from periplus.present.wording import job_remedy
from periplus.store.job_queue import JobQueue
from periplus.store.sqlite.job_file import folder_queue
from periplus.values import PIPES
from periplus_postgres import connection
from periplus_postgres.address import Address, address_of
from periplus_postgres.connection import Session
from periplus_postgres.statements import database_queue
from postgres_server import own_server

RECIPE = "linked seed=5 sites=1 pages=40 links_per_page=8"


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory):
    with served_apart(RECIPE, tmp_path_factory.mktemp("web")) as served:
        yield served


@pytest.fixture
def queue(tmp_path: Path):
    queue = folder_queue(tmp_path)
    yield queue
    queue.close()


@pytest.fixture
def shared(address: Address):
    """A queue in a database, for workers of many machines."""
    queue = database_queue(Session(address))
    yield queue, ("-c", address.text)
    queue.close()


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest):
    """(queue, its command-line arguments): in a folder or in a database."""
    return request.getfixturevalue("shared") if request.param == "postgres" else (request.getfixturevalue("queue"), ())


def asked_for(folder: Path, web: Served, where: tuple[str, ...] = (), **values: object) -> None:
    flags = flags_for(web.resolve, **{"delay_s": 0.03, **values})
    told(
        "jobs",
        "add",
        "-d",
        folder,
        *where,
        "crawl",
        web.url("a.test"),
        "-o",
        "a.periplus",
        "-q",
        *flags,
        "--no-sitemaps",
        cwd=folder,
    )


def worker(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*words), cwd=folder, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True
    )


def only(queue: JobQueue) -> Job:
    (job,) = queue.jobs()
    return job


def whole(folder: Path) -> bool:
    collection = Collection(folder / "a.periplus")
    return set(collection.reasons.values()) == {Reason.OK} and collection.sane() == []


def test_a_job_runs_and_reports_its_progress(tmp_path: Path, web: Served, queue: JobQueue) -> None:
    asked_for(tmp_path, web, delay_s=0.005)
    assert only(queue).state is JobState.QUEUED
    ran = told_apart("jobs", "run", cwd=tmp_path)
    assert "1 job ended" in plain(ran.stderr)
    assert only(queue).state is JobState.DONE
    assert whole(tmp_path)
    listed = json.loads(told("jobs", "list", "-f", "json", cwd=tmp_path).stdout)
    assert listed["jobs"][0]["state"] == "done"
    assert "done" in told("jobs", "list", cwd=tmp_path).stdout


def test_a_failed_job_keeps_its_error(tmp_path: Path, queue: JobQueue) -> None:
    told("jobs", "add", "refresh", "-c", "missing.periplus", cwd=tmp_path)
    told_apart("jobs", "run", cwd=tmp_path)
    assert only(queue).state is JobState.FAILED
    assert "missing.periplus" in only(queue).note


def test_a_failed_crawl_prints_cause_and_remedy(tmp_path: Path, queue: JobQueue) -> None:
    told("jobs", "add", "crawl", "http://127.0.0.1:9/", "-o", "a.periplus", cwd=tmp_path)
    told_apart("jobs", "run", cwd=tmp_path)
    note = only(queue).note
    assert note.startswith("Failed: no page was read; http://127.0.0.1:9/: private address, not requested"), note
    assert "consent for private addresses" in job_remedy(note)


def test_a_cancelled_job_stops_and_keeps_its_pages(tmp_path: Path, web: Served, queue: JobQueue) -> None:
    asked_for(tmp_path, web, delay_s=0.5)
    runner = worker(tmp_path, "worker")
    until(lambda: only(queue).done > 0, "progress")
    assert only(queue).total >= only(queue).done
    told("jobs", "cancel", str(only(queue).id), cwd=tmp_path)
    until(lambda: only(queue).state is JobState.CANCELLED, "the end of a cancelled job")
    assert len(Collection(tmp_path / "a.periplus").urls) > 0
    runner.send_signal(signal.SIGINT)
    assert runner.wait(PATIENCE_S) == 130


def half_a_minute_later(queue: JobQueue) -> None:
    assert isinstance(queue, JobQueue)
    queue.database.run(lambda statements: statements.change("UPDATE job SET lease_until = 1"))


def test_the_job_of_a_killed_worker_ends_and_is_continued_by_the_next(
    tmp_path: Path, web: Served, either: tuple[JobQueue, tuple[str, ...]]
) -> None:
    queue, where = either
    asked_for(tmp_path, web, where, delay_s=0.05)
    first = worker(tmp_path, "worker", *where)
    until(lambda: only(queue).done > 3, "progress")
    crawler = int((tmp_path / "a.periplus" / "crawl.lock").read_text())
    first.kill()
    first.wait(PATIENCE_S)
    until(lambda: not Path(f"/proc/{crawler}").exists(), "the job's process sees that its runner died")
    half_a_minute_later(queue)
    told_apart("jobs", "run", *where, cwd=tmp_path)
    assert (only(queue).state, only(queue).attempt) == (JobState.DONE, 2)
    assert whole(tmp_path)


def test_a_stopped_worker_returns_its_job(tmp_path: Path, web: Served, queue: JobQueue) -> None:
    asked_for(tmp_path, web, delay_s=0.05)
    first = worker(tmp_path, "worker")
    until(lambda: only(queue).done > 3, "progress")
    os.kill(first.pid, signal.SIGTERM)
    first.wait(PATIENCE_S)
    assert only(queue).state is JobState.QUEUED
    told_apart("jobs", "run", cwd=tmp_path)
    assert only(queue).state is JobState.DONE
    assert whole(tmp_path)


def test_a_worker_whose_parent_ended_early_ends(tmp_path: Path) -> None:
    """Started in the background of a shell, it ignores Ctrl-C until its modules are loaded;
    the server that started it may have ended by then.
    """
    read, write = os.pipe()
    ignoring = ["bash", "-c", 'trap "" INT; exec "$@"', "bash", *map(str, command("worker", "-d", tmp_path))]
    left = subprocess.Popen(
        ignoring,
        env=environment() | {PIPES: f"-1,{read}"},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(read,),
        start_new_session=True,
    )
    os.close(read)
    os.close(write)
    try:
        assert left.wait(PATIENCE_S) == 130
    finally:
        left.kill()
        left.wait()


@pytest.mark.faults
def test_a_job_survives_the_death_of_its_queue(tmp_path: Path, web: Served) -> None:
    """The database is killed while a job runs, and restarted: the job continues, and its end is stored."""
    with closing(own_server()) as server:
        with closing(psycopg.connect(server.dsn("postgres"), autocommit=True)) as admin:
            admin.execute("CREATE DATABASE jobs")
        address = address_of(server.dsn("jobs"))
        where = ("-c", address.text)
        asked_for(tmp_path, web, where, delay_s=0.1)
        with closing(database_queue(Session(address))) as queue:
            runner = worker(tmp_path, "worker", *where)
            until(lambda: only(queue).done > 3, "progress")
            server.stop(signal.SIGKILL)
            server.start()
            until(lambda: only(queue).state is JobState.DONE, "the job's end")
            runner.send_signal(signal.SIGINT)
            runner.wait(PATIENCE_S)
            assert only(queue).attempt == 1
        assert whole(tmp_path)


def test_clients_of_an_unavailable_queue_wait_for_seconds_and_workers_for_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    def away(address: Address, *, patience_s: float) -> None:
        waited.append(patience_s)
        raise StoreError("the database does not answer")

    monkeypatch.setattr(connection, "connect", away)
    for waits in (False, True):
        with pytest.raises(StoreError), opened_queue(Path(), "postgresql://me@db/x", waits=waits):
            pass
    assert waited == [10, 300]
