"""Runs crawls of the synthetic web and reads their results: settings for loopback, the command, and the tables."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest.mock
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from periplus.api.crawling import CrawlEnd, CrawlOrder, crawl
from periplus.cli.main import main
from periplus.model.page import FOLLOWED_KINDS
from periplus.model.visit import STATE_OF, Reason
from periplus.settings import settings_from
from periplus.urls.canonical import canonical
from testweb import Server

TESTS = Path(__file__).parent.parent
QUICK = {  # settings for loopback with minimal waits. Hosts are foreign: see quick_hosts.py
    "allow_private": True,
    "delay_s": 0.02,
    "retry_wait_s": 0.05,
    "connect_timeout_s": 2.0,
    "first_byte_timeout_s": 3.0,
    "total_timeout_s": 4.0,
    "commit_interval_s": 0.05,
    "workers": 1,
    "index": False,  # a second process for each crawl; the first search of a test indexes
}
# for crawls that are compared: a request that a busy machine answers late would be repeated, in another order
PATIENT = {"connect_timeout_s": 60.0, "first_byte_timeout_s": 60.0, "total_timeout_s": 120.0}
PATIENCE_S = 600.0  # limit of waiting for any process or event, generous for busy machines


@dataclass(frozen=True, slots=True)
class Row:
    """A URL in the collection."""

    url: str
    reason: Reason
    rule: str
    depth: int | None
    status: int | None
    in_sitemap: bool

    @property
    def state(self) -> str:
        return STATE_OF[self.reason].value


class Collection:
    """Result of a crawl in a folder, read directly from the tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ask(self, query: str, *values: object) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.folder / "collection.db", timeout=PATIENCE_S)) as connection:
            return connection.execute(query, values).fetchall()

    @property
    def urls(self) -> dict[str, Row]:
        rows = self.ask("SELECT text, reason, rule, depth, status, in_sitemap FROM url")
        return {row[0]: Row(row[0], Reason(row[1]), row[2], row[3], row[4], bool(row[5])) for row in rows}

    @property
    def reasons(self) -> dict[str, Reason]:
        return {url: row.reason for url, row in self.urls.items()}

    @property
    def depths(self) -> dict[str, int | None]:
        return {url: row.depth for url, row in self.urls.items()}

    @property
    def titles(self) -> dict[str, str]:
        return dict(self.ask("SELECT u.text, p.title FROM page p JOIN url u ON u.id = p.url_id"))

    @property
    def links(self) -> set[tuple]:
        """(source, target, kind, position, nofollow, anchor, fragments, times)."""
        query = "SELECT a.text, b.text, l.kind, l.position, l.nofollow, l.anchor, l.fragments, l.times FROM link l"
        return set(self.ask(query + " JOIN url a ON a.id = l.source JOIN url b ON b.id = l.target"))

    @property
    def graph(self) -> set[tuple[str, str]]:
        """As `Truth.graph`: distinct links to pages, without self-links and links of redirects."""
        followed = {kind.value for kind in FOLLOWED_KINDS}
        return {
            (row[0], row[1]) for row in self.links if row[2] in followed and row[0] != row[1] and row[2] != "redirect"
        }

    @property
    def tables(self) -> dict[str, set[tuple]]:
        """Data that must be equal in two crawls of a web, independent of timing."""
        return {
            "url": set(self.ask("SELECT text, reason, rule, depth, status, in_sitemap FROM url")),
            "link": self.links,
            "page": set(
                self.ask(
                    "SELECT u.text, p.title, p.media_type, p.size, p.charset, p.cut, p.body_digest, p.text_digest"
                    " FROM page p JOIN url u ON u.id = p.url_id"
                )
            ),
        }

    def visits(self, url: str = "") -> list[tuple]:
        """(url, purpose, outcome, status, detail), ordered by end; of one URL if given."""
        query = (
            "SELECT coalesce(v.text, u.text) AS t, v.purpose, v.outcome, v.status, v.detail FROM visit v LEFT"
            " JOIN url u ON u.id = v.url_id ORDER BY v.id"
        )
        return [row for row in self.ask(query) if url in ("", row[0])]

    def sane(self) -> list[str]:
        """What is wrong with the collection after a crawl that ended by itself; nothing, one hopes."""
        queued = "SELECT count(*) FROM host h WHERE pending <> (SELECT count(*) FROM queue q WHERE q.host_id = h.id)"
        tallies = (
            "SELECT name, value FROM tally WHERE name LIKE 'reason:%' AND value <> (SELECT count(*) FROM url"
            " WHERE 'reason:' || reason = name)"
        )
        checks = {
            "integrity": self.ask("PRAGMA integrity_check") != [("ok",)],
            "leases left": self.ask("SELECT count(*) FROM host WHERE lease_by IS NOT NULL") != [(0,)],
            "workers left": self.ask("SELECT count(*) FROM worker") != [(0,)],
            "pending miscounted": self.ask(queued) != [(0,)],
            "tallies wrong": bool(self.ask(tallies)),
            "waiting without an entry": self.ask(
                "SELECT count(*) FROM url WHERE reason = 'waiting' AND id NOT IN (SELECT url_id FROM queue)"
            )
            != [(0,)],
            "a run that never ended": self.ask("SELECT count(*) FROM run WHERE state = 'running'") != [(0,)],
        }
        return [name for name, wrong in checks.items() if wrong]


def settings_for(server: Server, **values: object):
    """QUICK settings that find the server's hosts."""
    return settings_from({**QUICK, "resolve": tuple(server.resolve), **values})


def crawled(
    folder: Path,
    server: Server,
    *starts: str,
    stop: Callable[[object], bool] = lambda progress: False,
    **values: object,
) -> tuple[Collection, CrawlEnd]:
    """Crawls in this process. starts: `host` or `host/path`; values: settings."""
    urls = tuple(canonical(start if "://" in start else server.url(*_parted(start))) for start in starts)
    deadline = time.monotonic() + PATIENCE_S

    def watch(progress: object) -> bool:
        assert time.monotonic() < deadline, f"the crawl does not end: {progress}"
        return stop(progress)

    end = crawl(CrawlOrder(folder, urls, settings_for(server, **values)), watch)
    return Collection(folder), end


def _parted(start: str) -> tuple[str, str]:
    host, slash, path = start.partition("/")
    return host, slash + path or "/"


def flags_for(resolve: Iterable[str], mine: Iterable[str] = (), **values: object) -> list[str]:
    """The same settings as flags of the command."""
    given: dict[str, object] = {**QUICK, "resolve": tuple(resolve), "mine": tuple(mine), **values}
    words = []
    for name, value in given.items():
        flag = "--" + name.removesuffix("_s").replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, tuple):
            words += [word for one in value for word in (flag, str(one))]
        elif value is not False:
            words += [flag, str(value)]
        elif name == "index":  # the only one whose default is True
            words.append("--no-index")
    return words


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "periplus", *map(str, words)]


def told(*words: str | Path, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command to its end, in this process: a process of its own takes a second of CPU to start."""
    line, signals = [*map(str, words)], (signal.SIGINT, signal.SIGTERM)
    handlers = {number: signal.getsignal(number) for number in signals}
    with contextlib.chdir(cwd), unittest.mock.patch("sys.argv", ["periplus", *line]):
        ran = CliRunner().invoke(main, line, input=given)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    if ran.exception and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return subprocess.CompletedProcess(line, ran.exit_code, ran.stdout, ran.stderr)


def told_apart(*words: str | Path, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command to its end in a process of its own: for its log, and for what starts processes."""
    return subprocess.run(
        command(*words), cwd=cwd, input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def until(question: Callable[[], bool], what: str) -> None:
    """Waits until it is so; fails after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not question():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.005)


@dataclass(frozen=True, slots=True)
class Served:
    """A web in a process of its own, so that nothing of it shares our fate."""

    port: int
    resolve: tuple[str, ...]
    log_file: Path
    truth: dict

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def lines(self) -> int:
        """Requests so far."""
        with self.log_file.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


@contextlib.contextmanager
def served_apart(recipe: str, folder: Path, *, program: Sequence[str] = ("-m", "testweb")) -> Iterator[Served]:
    """`python -m testweb RECIPE`, ended by its own process id. program: another that takes the same flags."""
    port_file, log_file, truth_file = folder / "port.json", folder / "log.jsonl", folder / "truth.json"
    log_file.touch()
    words = [
        sys.executable,
        *program,
        recipe,
        "--port-file",
        port_file,
        "--log-file",
        log_file,
        "--truth-file",
        truth_file,
    ]
    server = subprocess.Popen(
        list(map(str, words)), cwd=TESTS, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(TESTS)}
    )
    try:
        until(lambda: port_file.exists() or server.poll() is not None, "the test web does not start")
        told_port = json.loads(port_file.read_text("utf-8"))
        yield Served(
            told_port["port"], tuple(told_port["resolve"]), log_file, json.loads(truth_file.read_text("utf-8"))
        )
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def environment() -> dict[str, str]:
    """For subprocesses: a terminal wide enough that no message is broken."""
    return {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


def plain(text: str) -> str:
    """Output without colours and line breaks."""
    return re.sub(r"\s+", " ", re.sub(r"\x1b\[[0-9;]*m", "", text))
