"""Topical crawls over a small web: order, kills, limits, reasons to stop, the command."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess

import numpy as np
import pytest
from pausing import Pauser
from voyage import QUICK, Collection, command, environment, flags_for, told, until

from periplus.errors import UsageError
from periplus.model.web import Url
from periplus.settings import settings_from
from periplus_topics.api.topical_run import DEFAULTS, TopicalOrder, crawl_topic
from periplus_topics.schedule.queue import make_queue
from testweb import Page, Site, Web, serve

SHIP, MORE, PORTAL, OFF, HIDDEN, LIST = "ship.test", "more.test", "portal.test", "off.test", "hidden.test", "list.test"


def prose(relevant: bool, number: str) -> str:
    """Unique text: pages with equal text would be treated as a trap."""
    rng = random.Random(number)
    words = ["harbour", "sailor", "anchor", "cargo"] if relevant else ["football", "recipe", "garden", "season"]
    return " ".join(
        rng.choice(words) if rng.random() < 0.5 else "".join(rng.choices("abcdefghij", k=6)) for _ in range(80)
    )


def page(site: Site, path: str, relevant: bool, *links: tuple[str, str]) -> None:
    body = "".join(f'<p><a href="{target}">{said}</a></p>' for target, said in links)
    title = "harbour" if relevant else "garden"
    html = f"<!DOCTYPE html><title>{title} {path}</title><p>{prose(relevant, site.host + path)}</p>{body}"
    site.add(Page(path, f"{title} {path}", html=html))


def web() -> Web:
    """50 relevant pages of 230: on two sites, in a directory of a portal, and on a site that is linked only from a list
    off the topic.
    """
    sites = {host: Site(host) for host in (SHIP, MORE, PORTAL, OFF, HIDDEN, LIST)}
    start = [(f"/p{n}", f"cargo {n}") for n in range(1, 16)] + [
        (sites[other].url("/"), "more") for other in (MORE, PORTAL, OFF, LIST)
    ]
    page(sites[SHIP], "/", True, *start)
    for n in range(1, 16):
        page(
            sites[SHIP], f"/p{n}", True, (sites[MORE].url(f"/p{n}"), "sailor"), (sites[OFF].url(f"/p{n}"), "elsewhere")
        )
    page(sites[MORE], "/", True, *((f"/p{n}", "anchor") for n in range(1, 13)))
    for n in range(1, 16):
        page(sites[MORE], f"/p{n}", True, (sites[SHIP].url("/"), "back"))
    directories = ("ships", "sport", "food", "news")
    page(sites[PORTAL], "/", False, *((f"/{part}/0", part) for part in directories))
    for part in directories:
        for n in range(11):
            page(
                sites[PORTAL],
                f"/{part}/{n}",
                part == "ships",
                *((f"/{part}/{m}", "next") for m in (n + 1, n + 2) if m < 11),
            )
    page(sites[OFF], "/", False, *((f"/p{n}", "garden") for n in range(1, 120)))
    for n in range(1, 120):
        page(sites[OFF], f"/p{n}", False, (f"/p{(n * 7) % 119 + 1}", "recipe"))
    page(
        sites[LIST],
        "/",
        False,
        (sites[HIDDEN].url("/"), "their harbour"),
        *((sites[OFF].url(f"/p{n}"), "garden") for n in range(9)),
    )
    page(sites[HIDDEN], "/", True, *((f"/p{n}", "sailor") for n in range(1, 8)))
    for n in range(1, 8):
        page(sites[HIDDEN], f"/p{n}", True)
    return Web(list(sites.values()))


def judge(texts):
    """Judges by the share of words of the topic."""
    counts = [
        (sum(text.lower().count(word) for word in ("harbour", "sailor", "anchor", "cargo")), len(text.split()))
        for text in texts
    ]
    return np.array([min(1.0, 4 * own / max(words, 1)) for own, words in counts])


def is_relevant(target: str) -> bool:
    host, _, path = target.partition("/")
    return host in (SHIP, MORE, HIDDEN) or (host == PORTAL and path.startswith("ships/"))


@pytest.fixture
def server():
    with serve(web()) as serving:
        yield serving


def order_of(server, folder, **more):
    fields = {name: more.pop(name) for name in ("order", "least_harvest", "known") if name in more}
    base = {**QUICK, "resolve": tuple(server.resolve), "delay_s": 0.01, "concurrency": 1, "commit_pages": 1}
    settings = settings_from(base | more, DEFAULTS)
    return TopicalOrder(folder, (Url(server.url(SHIP)),), "ships", judge, settings, **fields)


def ran(server, folder, watch=lambda standing: False, **more):
    return crawl_topic(order_of(server, folder, **more), watch)


def asked(server):
    return [f"{entry.host}{entry.target}" for entry in server.log.entries if entry.target != "/robots.txt"]


def test_a_topical_crawl_is_paused_like_any_other(tmp_path, server):
    pauser = Pauser(tmp_path / "c", server)
    end = ran(server, tmp_path / "c", lambda standing: pauser(standing.progress), max_pages=60, delay_s=0.05)
    assert pauser.over and end.gathered.pages == len(set(asked(server))) == len(asked(server)) == 60
    assert Collection(tmp_path / "c").sane() == []


def test_relevant_pages_are_fetched_first(tmp_path, server):
    """Approximately: a new host is requested at the next iteration of the loop, so the order depends on the
    machine.
    """
    end = ran(server, tmp_path / "c", max_pages=70)
    targets = asked(server)
    found = [target for target in targets if is_relevant(target)]
    assert len(targets) == len(set(targets)) == 70
    assert len(found) >= 28, "of 51; by chance it would be 15"
    assert all(map(is_relevant, targets[:12])), "while the seed's site has pages that promise much"
    assert end.end.state == "stopped" and end.end.note == "max-pages 70 reached"
    assert end.gathered.pages == 70 and end.gathered.relevant == len(found)
    assert Collection(tmp_path / "c").sane() == []


def test_the_published_order_runs_on_the_same_engine(tmp_path, server):
    end = ran(server, tmp_path / "c", order="waits", max_pages=40)
    assert end.end.counts.fetched == 40 and len(set(asked(server))) == 40


def test_all_reachable_pages_are_fetched_in_the_end(tmp_path, server):
    end = ran(server, tmp_path / "c", known=(Url(server.url(HIDDEN, "/p3")), Url(server.url(HIDDEN, "/nowhere"))))
    assert end.end.note == "no page is left to fetch" and end.end.counts.waiting == 0
    assert end.recall == 0.5
    assert {target.partition("/")[0] for target in asked(server)} == set(server.web.sites)


def test_it_stops_when_the_harvest_falls(tmp_path, server, monkeypatch):
    monkeypatch.setattr("periplus_topics.schedule.policy.WINDOW", 30)
    end = ran(server, tmp_path / "c", least_harvest=0.9)
    assert end.end.state == "stopped" and "were relevant, fewer than 90.0%" in end.end.note
    assert end.end.counts.waiting > 0


def test_a_continued_crawl_knows_earlier_pages(tmp_path, server, monkeypatch):
    """The order of equally promising pages may differ: promises are recomputed at a start, and hosts have delays."""
    made = []
    monkeypatch.setattr(
        "periplus_topics.api.topical_run.make_queue", lambda name: made.append(make_queue(name)) or made[-1]
    )
    ran(server, tmp_path / "c", max_pages=40)
    ran(server, tmp_path / "c", max_pages=1, watch=lambda standing: True)
    before, after = (queue.seen for queue in made if len(queue.seen))
    assert (before.urls, before.read) == (after.urls, after.read)
    again = np.flatnonzero(before.waits != after.waits)  # taken when the budget was spent, and returned
    assert after.waits[again].all() and len(again) <= 2
    for name in ("links", "worth_sum", "promise", "credit", "worth", "parents", "words"):
        np.testing.assert_allclose(getattr(before, name), getattr(after, name), err_msg=name)


def test_a_killed_crawl_continues_with_its_knowledge(tmp_path, server):
    folder = tmp_path / "c"
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").mkdir()
    for n in range(12):
        (tmp_path / "good" / f"{n}.txt").write_text(prose(True, f"good {n}"))
        (tmp_path / "bad" / f"{n}.txt").write_text(prose(False, f"bad {n}"))
    ran(server, folder, max_pages=1)
    assert (
        told(
            "topic", "train", "ships", "-p", tmp_path / "good", "-n", tmp_path / "bad", "-c", folder, cwd=tmp_path
        ).returncode
        == 0
    )
    words = command("topic", "crawl", "ships", server.url(SHIP), "-q", "--json", "--max-pages", "60", "-c", folder)
    words += flags_for(server.resolve, delay_s=0.02)
    child = subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: len(asked(server)) >= 20 or child.poll() is not None, "the crawl does not get so far")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    before = set(asked(server))
    ended = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert said["stop_reason"] == "max-pages 60 reached" and said["pages"] >= 75
    assert said["relevant"] >= 30 and said["recent_harvest"]["share"] > 0.25
    twice = len(asked(server)) - len(set(asked(server)))
    assert twice <= 6 and len(before) >= 20, "only what was under way when it was killed"
    assert "To continue: periplus topic crawl ships" in ended.stderr


def test_a_crawl_without_seeds_or_topic_is_refused(tmp_path, server):
    ran(server, tmp_path / "c", max_pages=1)
    refused = told("topic", "crawl", "ships", "-c", tmp_path / "c", cwd=tmp_path)
    assert refused.returncode == 2 and "no seed" in refused.stderr
    refused = told("topic", "crawl", "ships", "a.test", "-c", tmp_path / "c", cwd=tmp_path)
    assert refused.returncode == 2 and "no topic 'ships'" in refused.stderr
    with pytest.raises(UsageError):
        ran(server, tmp_path / "c", order="depth")
