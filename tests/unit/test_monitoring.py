"""`/health` and `/metrics`: what they answer, to whom, and that they reveal nothing else."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from interface import COMMANDS, client
from periplus.api.collection import Collection, Status
from periplus.errors import StoreError
from periplus.model.frontier import WorkerRow
from periplus.model.ports import RunRecord
from periplus.model.results import StateTally
from periplus.model.visit import Reason, State
from periplus.store.sqlite import schema
from periplus.ui.monitoring import FRESH_S, metrics_text, monitoring_routes
from periplus.ui.routes import application
from periplus.ui.safety import Guard, Locks
from periplus.ui.state import AppState, places
from periplus.ui.users import Role, Users
from stored import page, stored

TOKEN = "lantern-at-sea"
URL = "https://hidden.example/secret-path"
NOW = 1e9


def run(number: int, state: str = "done", fetched: int = 7) -> RunRecord:
    return RunRecord(number, "crawl", (URL,), {"auth": "***"}, 0, NOW, None, state, "note", fetched, 100)


def status(**values) -> Status:
    given = {
        "folder": Path("/secret/folder"), "size_bytes": 4096, "running": True, "paused": False,
        "runs": (run(1), run(2, "running", 5)), "hosts": 3, "hosts_waiting": 2, "entries_waiting": 40, "busiest": (),
        "counts": (StateTally(State.FETCHED, Reason.OK, 12), StateTally(State.FAILED, Reason.TLS, 3)),
        "store": "postgresql://me@db/crawls", "lag_s": 2.5,
        "crew": (
            WorkerRow("a", 7, 50.0, 3, 4, 11, 0.5),
            WorkerRow("b", 7, -2.0, 1, 2, 6, 0.25),
        ),
    }  # fmt: skip
    return Status(**given | values)


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """(name, sorted labels) to value, as prometheus_client reads them; each series once."""
    read = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    values = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in read}
    assert len(values) == len(read), "a series with two values"
    return values


def value(text: str, name: str, **labels: str) -> float:
    return samples(text)[f"periplus_{name}", tuple(sorted(({"collection": "c"} | labels).items()))]


def test_prometheus_reads_every_family_with_its_type():
    kinds = {family.name: family.type for family in text_string_to_metric_families(metrics_text({"c": status()}))}
    assert kinds == {
        "periplus_up": "gauge", "periplus_pages": "counter", "periplus_received_bytes": "counter",
        "periplus_urls": "gauge", "periplus_waiting": "gauge", "periplus_waiting_hosts": "gauge",
        "periplus_lag_seconds": "gauge", "periplus_size_bytes": "gauge", "periplus_running": "gauge",
        "periplus_run": "gauge", "periplus_worker_pages": "counter", "periplus_worker_leases": "gauge",
        "periplus_worker_lease_seconds": "gauge", "periplus_commit_seconds": "summary",
    }  # fmt: skip


def test_the_help_of_a_family_does_not_repeat_its_type():
    families = text_string_to_metric_families(metrics_text({"c": status()}))
    assert [family.name for family in families if family.documentation.startswith(family.type)] == []


def test_the_figures_are_those_of_the_status():
    text = metrics_text({"c": status()})
    assert value(text, "pages_total") == 12 and value(text, "received_bytes_total") == 200
    assert value(text, "urls", state="failed", reason="tls") == 3
    assert value(text, "waiting") == 40 and value(text, "waiting_hosts") == 2
    assert value(text, "lag_seconds") == 2.5 and value(text, "size_bytes") == 4096
    assert value(text, "running") == 1 and value(metrics_text({"c": status(paused=True)}), "running") == 0
    assert value(text, "run", run="2", kind="crawl", state="running") == 1
    assert value(text, "worker_pages_total", host="a", worker="7") == 11
    assert value(text, "worker_leases", host="b", worker="7") == 1
    assert value(text, "worker_lease_seconds", host="b", worker="7") == -2
    assert value(text, "commit_seconds_sum", host="a", worker="7") == 0.5
    assert value(text, "commit_seconds_count", host="a", worker="7") == 4


def test_a_container_that_restarted_with_the_same_name_and_process_id_is_one_series():
    again = WorkerRow("a", 7, 60.0, 0, 1, 2, 0.1)
    text = metrics_text({"c": status(crew=(*status().crew, again))})
    assert value(text, "worker_pages_total", host="a", worker="7") == 2


def test_a_collection_that_cannot_be_read_is_down_and_has_no_other_series():
    text = metrics_text({"c": None, "d": status()})
    assert value(text, "up") == 0 and value(text, "up", collection="d") == 1
    assert [name for name, labels in samples(text) if ("collection", "c") in labels] == ["periplus_up"]


@pytest.mark.parametrize("name", ['with "quotes"', "back\\slash", "two\nlines", "é 中"])
def test_any_name_of_a_collection_is_a_label(name: str):
    assert value(metrics_text({name: status()}), "up", collection=name) == 1


def test_metrics_name_no_urls_hosts_addresses_folders_or_settings(tmp_path):
    folder = stored(tmp_path / "c.periplus", {URL: page("words")}, [URL])
    with schema.writing(folder) as connection:
        connection.execute("INSERT INTO worker (name, pid, joined, lease_until) VALUES ('w', 1, 0, 0)")
    for text in (metrics_text({"c": status()}), client(tmp_path).get("/metrics").text):
        assert value(text, "up") == 1
        for word in ("hidden", "secret", "://", "/secret", "postgresql", "me@db", "***", str(tmp_path), "note"):
            assert word not in text, word


def test_a_folder_is_measured_as_it_is(tmp_path):
    folder = stored(
        tmp_path / "c.periplus",
        {"https://e.org/": page("words", "/a"), "https://e.org/a": page("more")},
        ["https://e.org/"],
    )
    with schema.writing(folder) as connection:
        connection.execute("INSERT INTO host (key, site_id, pending, next_at) SELECT 'x', 1, 1, 5")
        connection.execute(
            "INSERT INTO worker (name, pid, joined, lease_until, host, commits, pages, commit_s)"
            " VALUES ('w', 12, 0, 0, 'm', 3, 2, 0.5)"
        )
        connection.execute("UPDATE host SET lease_by = 'w' WHERE key <> 'x'")
    with Collection(folder) as collection:
        assert collection.status().lag_s == pytest.approx(time.time() - 5, abs=3600)
    answer = client(tmp_path).get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert value(answer.text, "worker_leases", host="m", worker="12") >= 1
    assert value(answer.text, "commit_seconds_count", host="m", worker="12") == 3
    assert value(answer.text, "urls", state="fetched", reason="ok") == 2


@dataclass
class Source:
    """The clock and the health of a monitor, which counts its readings."""

    now: float = 0.0
    is_healthy: bool = True
    readings: int = 0
    shown: dict = field(default_factory=dict)

    def places(self) -> dict:
        self.readings += 1
        return self.shown

    def app(self, locks: Locks) -> TestClient:
        routes = monitoring_routes(lambda: self.is_healthy, self.places, lambda: self.now)
        return TestClient(
            Guard(Starlette(routes=routes), locks), base_url="http://127.0.0.1:9100", follow_redirects=False
        )


def test_many_requests_cost_one_reading():
    source = Source()
    asking = source.app(Locks())
    for _ in range(5):
        assert asking.get("/metrics").status_code == 200
    assert source.readings == 1
    source.now += FRESH_S
    asking.get("/metrics")
    assert source.readings == 2


def test_health_says_nothing_but_ok_or_not_ok():
    source = Source()
    asking = source.app(Locks(TOKEN))
    assert (asking.get("/health").status_code, asking.get("/health").text) == (200, "ok\n")
    source.is_healthy = False
    source.now += FRESH_S
    assert (asking.get("/health").status_code, asking.get("/health").text) == (503, "not ok\n")


@pytest.mark.parametrize("make", [lambda locks, folder: Source().app(locks), "serve"], ids=["worker", "serve"])
def test_metrics_take_a_token_where_screens_do_and_health_takes_none(make, tmp_path):
    users = Users(tmp_path)
    anna = users.add("anna", Role.LOOK)

    async def no_wait(seconds: float) -> None:
        waits.append(seconds)

    waits: list[float] = []
    locks = Locks(TOKEN, users=users, sleep=no_wait)
    if make == "serve":
        state = AppState(places([tmp_path]), locks, COMMANDS)
        asking = TestClient(application(state), base_url="http://127.0.0.1:8321", follow_redirects=False)
    else:
        asking = make(locks, tmp_path)

    def answer(token: str):
        return asking.get("/metrics", headers={"authorization": f"Bearer {token}"} if token else {})

    assert asking.get("/health").text == "ok\n"
    assert answer("").status_code == 401 and "periplus_up" not in answer("").text
    assert answer("wrong").status_code == 401
    assert [answer(token).status_code for token in (TOKEN, anna)] == [200, 200]
    assert max(waits) > 0, "a wrong token delays the next answers"
    assert asking.get("/jobs", headers={"authorization": f"Bearer {TOKEN}"}).status_code in (303, 404), "screens: no"
    users.remove("anna")
    assert answer(anna).status_code == 401


def test_metrics_are_open_where_every_screen_is_open_and_to_no_foreign_name(tmp_path):
    asking = client(tmp_path)
    assert asking.get("/metrics").status_code == asking.get("/jobs").status_code == 200
    for path in ("/metrics", "/health"):
        assert asking.get(path, headers={"host": "evil.example"}).status_code == 421
        assert asking.post(path).status_code == 403


def test_serve_is_not_healthy_without_its_queue_or_a_database(tmp_path, monkeypatch):
    state = AppState(places([tmp_path]), Locks(), COMMANDS)
    assert state.is_healthy()
    away = replace(places([tmp_path]), single=("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1",))

    def unreachable(address):
        raise StoreError("the database is unreachable")

    monkeypatch.setattr("periplus.ui.state.home_of", unreachable)
    assert not AppState(away, Locks(), COMMANDS).is_healthy()
    (tmp_path / "jobs.db").write_bytes(b"this is no queue" * 400)
    assert not AppState(places([tmp_path]), Locks(), COMMANDS).is_healthy()
