"""Crawls by the real command with additional workers that a test may kill and freeze.

The workers are the same as those that the crawl itself would start, but the test controls them.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from voyage import PATIENCE_S, QUICK, TESTS, Collection, Served, command, environment, flags_for, until

import judge
from periplus.api import crawling
from periplus.api.crawling import CrawlOrder
from periplus.api.homes import workable
from periplus.children import finish_child
from periplus.settings import settings_from
from periplus.urls.canonical import canonical
from testweb.log import Log, read_log

BODIES = judge.Question(
    "a page without its bytes",
    "SELECT url_id FROM page p WHERE body_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM body b WHERE b.id = p.body_id)",
)
TWICE = judge.Question(
    "a page stored twice",
    "SELECT url_id FROM visit WHERE purpose = 'page' AND outcome = 'fetched' GROUP BY url_id HAVING count(*) > 1",
)


class Crew:
    """Workers of a crawl. boss: the command itself, with one worker; further workers come and go."""

    def __init__(self, web: Served, folder: Path, hosts: tuple[str, ...], store: str = "", **values: object) -> None:
        """store: the address of a database instead of the folder."""
        self.web, self.folder, self.hosts, self.store = web, folder, hosts, store
        values = {"sitemaps": False, "delay_s": 0.05, **values}
        settings = settings_from({**QUICK, "resolve": web.resolve, **values})
        self._order = CrawlOrder(store or folder, tuple(canonical(web.url(host)) for host in hosts), workable(settings))
        flags = [*flags_for(web.resolve, **values), "--no-sitemaps"]
        words = command("crawl", *self._order.starts, *(("-c", store) if store else ("-o", folder)), "-q", *flags)
        self._said = folder.with_name(f"{folder.name}-said.txt")
        with self._said.open("wb") as file:
            self.boss = subprocess.Popen(words, stderr=file, env=environment(), start_new_session=True)
        until(lambda: self._run_id() is not None or self.boss.poll() is not None, "a run")
        self.workers: list[subprocess.Popen[bytes]] = []
        self._killed: set[int] = set()

    def _run_id(self) -> int | None:
        if not self.store and not (self.folder / "collection.db").exists():
            return None
        rows = self.collection.ask("SELECT max(id) FROM run WHERE state = 'running'")
        return rows[0][0]

    @property
    def collection(self) -> Collection:
        if self.store:
            from postgres_voyage import StoredCollection

            return StoredCollection(self.store)
        return Collection(self.folder)

    @property
    def is_over(self) -> bool:
        return self.boss.poll() is not None

    def hire(self, number: int = 1) -> None:
        """Starts further workers and waits until they have joined, unless the crawl ends before."""
        for worker in self.workers:
            if worker.poll() is not None:
                finish_child(worker)
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        run_id = self._run_id()
        for _ in range(number if run_id is not None else 0):
            self.workers.append(crawling.start_worker(self._order, run_id))
        until(
            lambda: self.is_over or {worker.pid for worker in self.workers if worker.poll() is None} <= self.at_work(),
            "workers at work",
        )

    def at_work(self) -> set[int]:
        """Process ids of the workers that have joined."""
        return {pid for (pid,) in self.collection.ask("SELECT pid FROM worker")}

    def holders(self) -> set[int]:
        """Process ids of the workers that hold a host."""
        return {pid for (pid,) in self.collection.ask("SELECT DISTINCT pid FROM worker JOIN host ON lease_by = name")}

    def held_by(self, pid: int) -> list[str]:
        """The hosts that the worker of this process holds, without their ports."""
        keys = self.collection.ask("SELECT key FROM host JOIN worker ON lease_by = name WHERE pid = ?", pid)
        return [str(key).rpartition(":")[0] or str(key) for (key,) in keys]

    def kill(self, rng: random.Random) -> bool:
        """Kills a worker. False: there is none."""
        living = [worker for worker in self.workers if worker.poll() is None]
        if not living:
            return False
        victim = rng.choice(living)
        victim.kill()
        finish_child(victim, PATIENCE_S)
        self.workers.remove(victim)
        self._killed.add(victim.pid)
        return True

    def dismiss(self, number: int) -> None:
        """Stops a number of workers, as an operator would."""
        leaving, self.workers = self.workers[:number], self.workers[number:]
        for worker in leaving:
            worker.terminate()
        for worker in leaving:
            finish_child(worker, PATIENCE_S)

    def finish(self) -> Log:
        """Waits for the end of the crawl; returns the server log."""
        assert self.boss.wait(PATIENCE_S) == 0, self.messages()
        for worker in self.workers:
            finish_child(worker, PATIENCE_S)
            assert worker.returncode == 0, f"worker {worker.pid} ended with {worker.returncode}"
        assert "Traceback" not in self.messages()
        return read_log(self.web.log_file)

    def faults(self) -> list[str]:
        """Faults of the collection after a crawl that ended on its own.

        A worker killed after the last check of the crawl is still listed; the next worker removes it.
        """
        found = [
            *self.collection.sane(),
            *judge.unsound(self.collection.ask, (*judge.ALWAYS, *judge.AT_THE_END, BODIES, TWICE)),
        ]
        listed = self.at_work() <= self._killed
        return [fault for fault in found if not (listed and fault.startswith(("workers left", "a worker left")))]

    def messages(self) -> str:
        """Standard error of the command itself; its workers write to ours."""
        return self._said.read_text("utf-8")

    def close(self) -> None:
        for process in (self.boss, *self.workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
            process.kill()
            finish_child(process, PATIENCE_S)


@contextlib.contextmanager
def crew(web: Served, folder: Path, hosts: tuple[str, ...], store: str = "", **values: object) -> Iterator[Crew]:
    """A running crawl; all its processes end with the block."""
    made = Crew(web, folder, hosts, store, **values)
    try:
        yield made
    finally:
        made.close()


def crowded(place: str, run_id: int, workers: int, collection: Collection) -> tuple[float, list[str]]:
    """(pages per second, faults) of workers without network on a collection (folder or address) whose pages all link to
    the same 20 hosts.
    """
    words = [sys.executable, str(Path(__file__).with_name("crowd.py")), place, str(run_id), "20"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    crowd = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(workers)
    ]
    ended = [(*worker.communicate(timeout=4 * PATIENCE_S), worker.returncode) for worker in crowd]
    assert [(error, status) for _, error, status in ended] == [("", 0)] * workers
    told = [tuple(map(float, said.split())) for said, _, _ in ended]
    done, seconds = sum(one[0] for one in told), max(one[2] for one in told) - min(one[1] for one in told)
    wrong = judge.unsound(collection.ask, (*judge.ALWAYS[:3], *judge.AT_THE_END[:3]))
    if (
        done != collection.ask("SELECT count(*) FROM url WHERE reason = 'ok'")[0][0]
        or collection.ask("SELECT count(*) FROM visit")[0][0] != done
    ):
        wrong.append("a page was completed twice, or not at all")
    return done / seconds, wrong
