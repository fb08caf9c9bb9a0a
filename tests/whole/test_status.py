"""`periplus status` counts correctly."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from crews import crew
from test_faults_workers import hosts_of
from voyage import PATIENCE_S, served_apart, told, until

OTHERS = "SELECT count(*) FROM queue WHERE purpose <> 'page'"
BY_HOST = """
SELECT h.key, (SELECT count(*) FROM url u WHERE u.host_id = h.id AND u.reason = 'waiting')
    + (SELECT count(*) FROM queue q WHERE q.host_id = h.id AND q.purpose <> 'page') FROM host h
"""


@pytest.mark.parametrize("store", ["folder", "postgres"])
def test_each_number_equals_the_tables_after_a_killed_worker_and_a_stop(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """For sites that link to each other: a page found first by a link of another site is listed twice."""
    address = request.getfixturevalue("address").text if store == "postgres" else ""
    with (
        served_apart("linked seed=7 sites=12 pages=40 links_between=100 links_per_page=8", tmp_path) as web,
        crew(web, tmp_path / "c", hosts_of(web), store=address, delay_s=0.1, lease_s=60) as workers,
    ):
        workers.hire()
        until(lambda: web.lines() >= 60 or workers.is_over, "the first pages")
        assert workers.kill(random.Random(0))
        until(lambda: web.lines() >= 120 or workers.is_over, "further pages")
        workers.boss.terminate()
        workers.boss.wait(PATIENCE_S)
        ask = workers.collection.ask
        place = ["-c", address] if address else ["-c", str(tmp_path / "c")]
        answer = told("status", "-f", "json", *place, cwd=tmp_path)
        status, text = json.loads(answer.stdout), told("status", *place, cwd=tmp_path).stdout
        ((waiting, known),) = ask("SELECT count(*) FILTER (WHERE reason = 'waiting'), count(*) FROM url")
        entries, others = ask("SELECT count(*) FROM queue")[0][0], ask(OTHERS)[0][0]
        assert entries > waiting + others, "some pages are listed twice"
        assert (status["urls"], status["entries_waiting"]) == (known, waiting + others)
        assert {one["reason"]: one["urls"] for one in status["counts"]} == dict(
            ask("SELECT reason, count(*) FROM url GROUP BY reason")
        )
        by_host = dict(ask(BY_HOST))
        shown = {one["host"]: one["waiting"] for one in status["busiest"]}
        assert len(shown) >= 5 and shown == {host: by_host[host] for host in shown}
        assert list(shown.values()) == sorted(shown.values(), reverse=True)
        assert f"{waiting:,}    waiting\n" in text and f"{waiting + others:,} to fetch" in text
        assert status["runs"][-1]["fetched"] == ask("SELECT count(*) FROM visit WHERE purpose = 'page'")[0][0]
