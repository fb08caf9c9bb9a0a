"""A paused crawl is idle, survives the death of workers, and is complete in the end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaigns import campaign, ran
from campaigns import web as campaign_web
from click.testing import CliRunner
from pausing import Pauser
from postgres_voyage import crawled_into
from voyage import Collection, crawled

from periplus.api.crawling import Progress
from periplus.api.homes import home_of
from periplus.cli.main import main
from testweb import GraphRecipe, Server, Web, graph_site, serve

HOSTS, PAGES = ("a.test", "b.test", "c.test", "d.test"), 12
DELAY_S = 0.05  # five pages of a host per poll of a worker (0.25 s): no host ends before the pause


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(
        Web(
            [
                graph_site(GraphRecipe(seed=5, pages=PAGES, links_per_page=4, shape="random", host=host))
                for host in HOSTS
            ]
        )
    ) as server:
        yield server


def test_a_paused_crawl_sends_no_request_until_it_is_resumed(address, server: Server) -> None:
    """In a database; in a folder the next test sees it too."""
    pauser = Pauser(address.text, server)
    collection, end = crawled_into(address.text, server, *HOSTS, stop=pauser, sitemaps=False, delay_s=DELAY_S)
    assert pauser.over
    assert (end.state, end.counts.fetched) == ("done", len(HOSTS) * PAGES)
    assert collection.sane() == []
    assert collection.ask("SELECT count(*) FROM meta WHERE name = 'paused'") == [(0,)]
    asked = [entry.host + entry.target for entry in server.log.entries]
    assert len(asked) == len(set(asked)), "nothing is asked for twice"


def test_a_worker_killed_in_a_pause_costs_nothing(tmp_path: Path, server: Server) -> None:
    """The pause is stored: a killed worker does not end it."""

    def kill() -> bool:
        for (pid,) in Collection(tmp_path).ask("SELECT pid FROM worker WHERE pid <> ?", os.getpid()):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return bool(killed)

    killed: list[int] = []
    pauser = Pauser(tmp_path, server, kill)
    collection, end = crawled(tmp_path, server, *HOSTS, stop=pauser, sitemaps=False, workers=2, delay_s=0.1)
    assert pauser.over and killed
    assert (end.state, end.counts.fetched) == ("done", len(HOSTS) * PAGES)
    assert collection.sane() == []


def test_a_paused_crawl_is_stopped_at_once_and_the_next_one_is_not_paused(tmp_path: Path, server: Server) -> None:
    home = home_of(tmp_path)

    def stop(progress: Progress) -> bool:
        return progress.paused or (progress.counts.fetched >= 8 and not home.pause(time.time()))

    collection, end = crawled(tmp_path, server, *HOSTS, stop=stop, sitemaps=False, delay_s=DELAY_S)
    assert (end.state, end.note) == ("stopped", "stopped by the user")
    assert collection.sane() == []
    assert not home.resume(time.time()) and not home.pause(time.time()), "no crawl is running"
    assert crawled(tmp_path, server, *HOSTS, sitemaps=False)[1].counts.by_reason == {"ok": len(HOSTS) * PAGES}


def test_a_survey_is_paused_like_a_crawl(tmp_path: Path) -> None:
    with serve(campaign_web()) as server:
        hosts = tuple(server.web.sites)[:3]
        pauser = Pauser(tmp_path, server)
        _, end = ran(
            tmp_path, server, campaign(server, *hosts), stop=lambda watched: pauser(watched.progress), delay_s=DELAY_S
        )
    assert pauser.over
    assert (end.note, end.counts.fetched) == ("30 pages are fetched", 30)


def test_the_commands_pause_and_resume_any_crawl_and_report_it(tmp_path: Path, server: Server) -> None:
    said: list[str] = []
    run = lambda *words: CliRunner().invoke(main, [*words, "-c", str(tmp_path)])  # noqa: E731

    def stop(progress: Progress) -> bool:
        if not said and progress.counts.fetched >= 8:
            said.extend(
                [
                    run("pause").stderr,
                    run("status").stdout,
                    run("resume").stderr,
                    run("status").stdout,
                    run("resume").stderr,
                ]
            )
        return False

    crawled(tmp_path, server, *HOSTS, stop=stop, sitemaps=False, delay_s=DELAY_S)
    assert said[0] == f"Paused: {tmp_path}/. `periplus resume` continues it.\n"
    assert "paused: `periplus resume` continues it" in said[1]
    assert said[2] == f"Resumed: {tmp_path}/.\n"
    assert "running" in said[3] and "paused" not in said[3]
    assert said[4].startswith(f"periplus: no crawl is paused in {tmp_path}/.")
    failed = run("pause")
    assert (failed.exit_code, failed.stderr) == (
        2,
        f"periplus: no crawl is running in {tmp_path}/: there is nothing to pause\n",
    )
