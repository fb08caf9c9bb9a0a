"""Checks of a collection in a database: the same result as in a folder, by several workers, through kills."""

import json
import os
import signal
import subprocess
from collections import Counter

import pytest
from postgres_voyage import StoredCollection
from test_check import ALWAYS, BY_GET, DEFAULTS, of_links, three_sites, truth_table
from voyage import command, environment, flags_for, served_apart, settings_for, told, until

import periplus
from periplus.api.checking import CheckOrder, check
from periplus.api.crawling import CrawlOrder
from periplus.api.grading import store_issues
from periplus.api.positions import issues_of
from periplus.model.ports import CHECK
from periplus.model.visit import Reason
from periplus.urls.canonical import canonical
from periplus_postgres.joining import join, run_in_progress, settings_of_run
from testweb import Page, Site, Web, read_log, serve
from testweb.wire import Answer


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def checked(address, server, start, *, stop=lambda progress: False, **values):
    """Checks in this process; returns (end, issues)."""
    settings = settings_for(server, **{**DEFAULTS, **values})
    order = CrawlOrder(address.text, (canonical(server.url(start)),), settings)
    end = check(CheckOrder(order), stop)
    issues = issues_of(address.text, settings, near=False)
    store_issues(address.text, end.run_id, issues)
    return end, issues


def test_the_truth_table_holds_of_a_database(address):
    site = Site("a.test")
    truth_table(site, site)
    with serve(site) as server:
        end, issues = checked(address, server, "a.test")
        assert (end.state, of_links(issues)) == ("done", ALWAYS | BY_GET)
        assert server.log.count("/places") == 1
    assert not StoredCollection(address.text).sane()


def test_the_truth_table_of_another_site_holds_and_redirects_are_followed_once(address):
    near, far = Site("a.test"), Site("b.test")
    truth_table(near, far)
    with serve(Web([near, far])) as server:
        _, issues = checked(address, server, "a.test")
        assert of_links(issues) == ALWAYS
        asked = Counter((entry.method, entry.target) for entry in server.log.of("b.test"))
        assert asked["GET", "/places"] == 1
        assert asked["HEAD", "/plain"] == 1, "linked, and where two redirects lead"
    assert not StoredCollection(address.text).sane()


def test_a_dead_link_found_by_a_check_is_dead_in_the_database_and_can_recover(address):
    near, far = Site("a.test"), Site("b.test")
    near.add(Page("/", "Home"))
    replies = {"/gone": Answer(404, b""), "/there": Answer(200, b"x")}
    for path in replies:
        far.answer(path, lambda asked: replies[asked.path], linked_from=None)
        near.link("/", far.url(path), path, target=far.url(path))

    def states():
        rows = StoredCollection(address.text).ask("SELECT text, reason FROM url")
        return {text.rpartition("/")[2]: reason for text, reason in rows if "b.test" in text}

    with serve(Web([near, far])) as server:
        first, issues = checked(address, server, "a.test")
        assert states() == {"gone": Reason.NOT_FOUND, "there": Reason.SCOPE}
        assert {issue.code for issue in issues} >= {"broken-link"}
        replies["/gone"], replies["/there"] = replies["/there"], replies["/gone"]
        checked(address, server, "a.test")
        assert states() == {"gone": Reason.SCOPE, "there": Reason.NOT_FOUND}
    with periplus.open(address.text) as collection:
        assert [link.target.rpartition("/")[2] for link in collection.links(broken=True)] == ["there"]
    seen = StoredCollection(address.text).ask("SELECT count(*) FROM issue WHERE run_id = ?", first.run_id)
    assert seen[0][0] > 0
    assert not StoredCollection(address.text).sane()


def test_a_stopped_check_of_a_database_continues(address):
    with serve(three_sites()) as server:
        first, _ = checked(
            address,
            server,
            "a.test",
            delay_s=0.05,
            stop=lambda progress: progress.counts.fetched >= 6 and server.log.count("/2") > 0,
        )
        second, issues = checked(address, server, "a.test", delay_s=0.05)
        assert (first.state, second.state) == ("stopped", "done")
        asked = Counter(target for host in ("b.test", "c.test") for target in server.log.targets(host))
        assert {target for target, times in asked.items() if times > 2} <= {"/robots.txt"}
        assert {code for code, _ in of_links(issues)} == {"refused-link"}


def test_a_worker_joins_a_check_and_leaves_the_end_to_it(address):
    joined = []

    def also_here(progress):
        record = run_in_progress(address.text)
        if record is not None and record.kind == CHECK and not joined:
            settings = settings_of_run(record)
            assert not settings.scope.sitemaps, "sitemaps are read by the crawl"
            joined.append(join(address.text, record, settings, lambda progress: True))
            assert run_in_progress(address.text) == record
        return False

    with serve(three_sites()) as server:
        end, _ = checked(address, server, "a.test", stop=also_here)
    assert end.state == "done" and len(joined) == 1
    assert not StoredCollection(address.text).sane()


def test_a_killed_check_of_a_database_continues(address, tmp_path):
    with served_apart("linked seed=3 sites=3 pages=25 links_between=12", tmp_path) as served:
        flags = flags_for(served.resolve, delay_s=0.03, recheck_wait_s=0.2)
        words = ("check", served.url("a.test"), "-c", address.text, "--workers", "2", *flags)
        child = subprocess.Popen(
            command(*words, "-q"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), cwd=tmp_path
        )
        until(
            lambda: any(entry.method == "HEAD" for entry in read_log(served.log_file)) or child.poll() is not None,
            "nothing is checked",
        )
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        done = told(*words, "--fail-on", "broken", "-f", "json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        heads = Counter((entry.host, entry.target) for entry in read_log(served.log_file) if entry.method == "HEAD")
        targets = {row[0] for row in StoredCollection(address.text).ask("SELECT text FROM url WHERE reason = 'scope'")}
        assert {f"http://{host}:{served.port}{target}" for host, target in heads} == targets
        assert sum(heads.values()) <= len(heads) + 4  # open requests, one per host and worker
        assert json.loads(
            told("check", "--offline", "-c", address.text, "-f", "json", cwd=tmp_path).stdout
        ) == json.loads(done.stdout)
    assert not StoredCollection(address.text).sane()
