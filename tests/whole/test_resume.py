"""A killed crawl loses only open requests: the same command continues to the same result."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from voyage import (
    PATIENCE_S,
    PATIENT,
    Collection,
    Served,
    command,
    environment,
    flags_for,
    plain,
    served_apart,
    told,
    until,
)

from periplus.api.search_index import catch_up
from periplus.api.searching import standing
from periplus.model.visit import Reason

HOSTS = ("a.test", "b.test", "c.test")
RECIPE = "linked seed=5 sites=3 pages=45 links_between=8 links_per_page=8"


class Voyage:
    """The command on a collection, to be started, interrupted and restarted."""

    def __init__(self, web: Served, folder: Path, *hosts: str, **values: object) -> None:
        self.web, self.folder = web, folder
        self._said = folder.with_name(f"{folder.name}-said.txt")
        flags = flags_for(web.resolve, **{"delay_s": 0.03, "sitemaps": False, "index": True, **PATIENT, **values})
        flags += [] if "sitemaps" in values else ["--no-sitemaps"]
        self.words = command("crawl", *(web.url(host) for host in hosts), "-o", folder, "-q", *flags)

    def start(self) -> subprocess.Popen[bytes]:
        with self._said.open("wb") as file:
            return subprocess.Popen(self.words, stderr=file, env=environment(), start_new_session=True)

    @property
    def said(self) -> str:
        """Output of the last process so far."""
        return plain(self._said.read_text("utf-8"))

    def finish(self) -> str:
        """Runs it to its end, in this process; returns its output."""
        ran = told(*self.words[3:], cwd=self.folder.parent)
        assert ran.returncode == 0, ran.stderr
        assert "Traceback" not in ran.stderr
        return plain(ran.stderr)

    def kill_after(self, requests: int, sign: int = signal.SIGKILL) -> subprocess.Popen[bytes]:
        """Starts it and sends the signal after a number of further requests."""
        target = self.web.lines() + requests
        crawl = self.start()
        until(lambda: self.web.lines() >= target or crawl.poll() is not None, "requests")
        crawl.send_signal(sign)
        crawl.wait(PATIENCE_S)
        return crawl

    def pages(self) -> list[tuple[str, str]]:
        """(host, target) of every served page, in the order of the log."""
        entries = map(json.loads, self.web.log_file.read_text("utf-8").splitlines())
        return [(entry["host"], entry["target"]) for entry in entries if entry["target"] != "/robots.txt"]


def undisturbed(web: Served, folder: Path, hosts: tuple[str, ...]) -> dict[str, set[tuple]]:
    """The tables of an uninterrupted crawl, without its log entries."""
    before = web.log_file.read_bytes()
    Voyage(web, folder, *hosts, delay_s=0.005, index=False).finish()
    with web.log_file.open("r+b") as file:
        file.truncate(len(before))
    return Collection(folder).tables


def assert_whole(voyage: Voyage, expected: dict[str, set[tuple]]) -> None:
    collection = Collection(voyage.folder)
    assert collection.sane() == []
    assert set(collection.reasons.values()) == {Reason.OK}
    assert collection.tables == expected


@pytest.mark.parametrize(
    ("seed", "kills"), [(20, 7), *(pytest.param(seed, 20, marks=pytest.mark.faults) for seed in (1, 2))]
)
def test_many_kills_lose_nothing(tmp_path: Path, seed: int, kills: int) -> None:
    """At random times, by number of requests. Each kill costs at most one page per host."""
    rng = random.Random(seed)
    with served_apart(RECIPE, tmp_path) as web:
        expected = undisturbed(web, tmp_path / "calm", HOSTS)
        voyage = Voyage(web, tmp_path / "killed", *HOSTS)
        ends, killed = [0], 0
        for _ in range(kills):
            killed += voyage.kill_after(rng.randint(1, 9)).returncode == -signal.SIGKILL
            ends.append(len(voyage.pages()))
        voyage.finish()
        pages = voyage.pages()
        again = [
            len(set(pages[:end]) & set(pages[end:following]))
            for end, following in zip(ends[1:], [*ends[2:], len(pages)], strict=True)
        ]
        print("refetches after each kill:", again)
        assert killed > 0.7 * kills, "most kills must come before the end"
        assert max(again) <= len(HOSTS)
        assert_whole(voyage, expected)
        catch_up(voyage.folder, lambda done, waiting: False)  # short crawls leave it to the first search
        assert standing(voyage.folder) == (0, True), "every page is searchable"


def children_of(pid: int) -> list[int]:
    """Process ids, from /proc."""
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def test_a_killed_helper_is_replaced(tmp_path: Path) -> None:
    """A worker process dies; the other worker and a successor do its work in the same run."""
    with served_apart(RECIPE, tmp_path) as web:
        expected = undisturbed(web, tmp_path / "calm", HOSTS)
        voyage = Voyage(web, tmp_path / "killed", *HOSTS, workers=2)
        crawl = voyage.start()
        victims: list[int] = []
        for wanted in (20, 60):
            until(lambda wanted=wanted: web.lines() >= wanted and bool(children_of(crawl.pid)), "a helper at work")
            victims.append(children_of(crawl.pid)[0])
            os.kill(victims[-1], signal.SIGKILL)
            until(lambda: victims[-1] not in children_of(crawl.pid), "the helper's burial")
        assert crawl.wait(PATIENCE_S) == 0, voyage.said
        assert len(set(victims)) == 2
        assert_whole(voyage, expected)
        pages = voyage.pages()
        assert len(pages) - len(set(pages)) <= 2 * len(HOSTS)


def test_helpers_end_with_their_killed_parent_and_the_next_run_is_complete(tmp_path: Path) -> None:
    with served_apart(RECIPE, tmp_path) as web:
        expected = undisturbed(web, tmp_path / "calm", HOSTS)
        voyage = Voyage(web, tmp_path / "killed", *HOSTS, workers=2)
        crawl = voyage.start()
        until(lambda: web.lines() >= 30 and bool(children_of(crawl.pid)), "a helper at work")
        helper = children_of(crawl.pid)[0]
        crawl.kill()
        crawl.wait(PATIENCE_S)
        voyage.finish()
        until(
            lambda: not Path(f"/proc/{helper}").exists() or "State:\tZ" in Path(f"/proc/{helper}/status").read_text(),
            "the helper's end",
        )
        assert_whole(voyage, expected)


def test_a_lease_shorter_than_a_request_does_not_stop_the_crawl(tmp_path: Path) -> None:
    """The lease is extended to outlast any request. Regression: the worker once waited for ever."""
    with served_apart("graph seed=2 pages=5 page_bytes=800", tmp_path) as web:
        Voyage(web, tmp_path / "c", "a.test", lease_s=1, total_timeout_s=30).finish()
        assert set(Collection(tmp_path / "c").reasons.values()) == {Reason.OK}


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_is_clean_and_prints_how_to_continue(tmp_path: Path, sign: int) -> None:
    """Open requests are stored; leases are released; the printed command continues the crawl."""
    with served_apart("graph seed=2 pages=30 page_bytes=800", tmp_path) as web:
        voyage = Voyage(web, tmp_path / "c", "a.test")
        crawl = voyage.kill_after(8, sign)
        assert crawl.returncode == 130
        assert (
            "Stopped: stopped by the user" in voyage.said and "To continue: periplus crawl http://a.test" in voyage.said
        )
        collection = Collection(tmp_path / "c")
        assert collection.sane() == []
        assert collection.ask("SELECT state, note FROM run") == [("stopped", "stopped by the user")]
        assert len(collection.visits()) == web.lines(), "every answer is stored"
        voyage.finish()
        assert len(voyage.pages()) == 30, "and no page was fetched twice"
        again = voyage.finish()
        assert "This crawl is already complete" in again and "0 fetched in this run" in again
        assert web.lines() == 31


def test_fresh_lists_deletions_and_starts_again(tmp_path: Path) -> None:
    with served_apart("graph seed=2 pages=5 page_bytes=800", tmp_path) as web:
        voyage = Voyage(web, tmp_path / "c", "a.test")
        voyage.finish()
        (tmp_path / "c" / "periplus.toml").write_text("[settings]\nmax_depth = 9\n", "utf-8")
        voyage.words.append("--fresh")
        said = voyage.finish()
        assert f"--fresh: deleting the collection in {tmp_path}/c/ (collection.db" in said
        assert (tmp_path / "c" / "periplus.toml").exists(), "settings are not the crawl's to delete"
        assert len(voyage.pages()) == 10


def test_ours_two_crawls_of_one_collection_at_once_are_refused(tmp_path: Path) -> None:
    """The second prints the reason and ends without changes; --fresh does not delete the running crawl."""
    with served_apart("graph seed=2 pages=120 page_bytes=800", tmp_path) as web:
        voyage = Voyage(web, tmp_path / "c", "a.test", delay_s=0.3)
        first = voyage.start()
        until(lambda: web.lines() >= 2, "requests")
        for more in ([], ["--fresh"]):
            second = subprocess.run(
                [*voyage.words, *more],
                capture_output=True,
                text=True,
                env=environment(),
                timeout=PATIENCE_S,
                check=False,
            )
            assert second.returncode == 1
            assert f"another crawl (process {first.pid}) is running on {tmp_path}/c" in plain(second.stderr)
        until(lambda: len(voyage.pages()) > 2, "pages")
        first.terminate()
        assert first.wait(PATIENCE_S) == 130
        assert len(voyage.pages()) == len(set(voyage.pages())) > 2
        assert Collection(tmp_path / "c").sane() == []
        assert told("crawl", cwd=tmp_path).returncode == 2
