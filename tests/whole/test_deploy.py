"""Do the commands of `deploy/` do what they are for? Started as they are written, without an engine for containers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from postgres_voyage import StoredCollection
from prometheus_client.parser import text_string_to_metric_families
from test_faults_s3 import MISSING, moody_s3
from voyage import PATIENCE_S, environment, flags_for, served_apart, until

DEPLOY = Path(__file__).parents[2] / "deploy"
TOKEN = "lantern-at-sea"
WEB = "linked seed=5 sites=6 pages=25 links_between=20 links_per_page=8"
PAGES = 150


@dataclass(frozen=True)
class Unit:
    """A service: the words of its command after `periplus`, its environment, its port for probes, its probe."""

    words: tuple[str, ...]
    environment: dict[str, str]
    port: int
    probe: tuple[str, ...] = ()


def compose() -> dict:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def composed() -> dict[str, Unit]:
    units = {}
    for name, service in compose()["services"].items():
        if service["image"] == "periplus-cluster" and "entrypoint" not in service:
            probe = service["healthcheck"]["test"][1:]
            port = int(re.search(r":(\d+)/health", probe[-1])[1])
            units[name] = Unit(tuple(service["command"]), service["environment"], port, tuple(probe))
    return units


def of_systemd(name: str, instance: str = "") -> Unit:
    text = (DEPLOY / "systemd" / name).read_text("utf-8").replace("%i", instance)
    program, *words = shlex.split(re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1])
    assert program == "/opt/periplus/bin/periplus"
    file = (DEPLOY / "systemd" / "periplus.env").read_text("utf-8")
    given = dict(line.split("=", 1) for line in file.splitlines() if line and not line.startswith("#"))
    return Unit(tuple(words), given, int(instance or words[words.index("--port") + 1]))


def from_systemd() -> dict[str, Unit]:
    return {
        "worker-1": of_systemd("periplus-worker@.service", "9101"),
        "worker-2": of_systemd("periplus-worker@.service", "9102"),
        "serve": of_systemd("periplus-serve.service"),
    }


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def asked(port: int, path: str, token: str = "") -> tuple[int, str]:
    """(status, text) of an address on this machine; 0: nothing listens."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if token:
        request.add_header("authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Machine:
    """Runs units as their manager would: starts them again when they end, stops them with SIGTERM.

    replaced: texts of the environment and their values here; ports: by the port that a unit names.
    """

    def __init__(self, folder: Path, units: dict[str, Unit], replaced: dict[str, str]) -> None:
        self._folder, self.units, self._replaced = folder, units, replaced
        self.ports = {unit: free_port() for unit in units}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.starts = dict.fromkeys(units, 0)

    def environment_of(self, name: str) -> dict[str, str]:
        values = {}
        for key, value in self.units[name].environment.items():
            values[key] = value
            for old, new in self._replaced.items():
                values[key] = values[key].replace(old, new)
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        return environment() | values | {"XDG_CACHE_HOME": str(folder / "cache")}

    def words_of(self, name: str) -> list[str]:
        """The command, with a port that is free here in place of its own."""
        unit, port = self.units[name], str(self.ports[name])
        words = [word.replace(str(unit.port), port) for word in unit.words]
        return words if str(port) in " ".join(words) else [*words, "--port", port]

    def run(self, name: str, *words: str) -> None:
        """A further command with the unit's environment, to its end: `compose run`."""
        done = subprocess.run(
            [sys.executable, "-m", "periplus", *words], env=self.environment_of(name), cwd=self._folder / name,
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def keep_up(self) -> None:
        """Starts every unit that is not running."""
        for name in self.units:
            if name not in self._processes or self._processes[name].poll() is not None:
                with (self._folder / f"{name}.log").open("ab") as log:
                    self._processes[name] = subprocess.Popen(
                        [sys.executable, "-m", "periplus", *self.words_of(name)], stderr=log, stdout=log,
                        env=self.environment_of(name), cwd=self._folder / name, start_new_session=True,
                    )  # fmt: skip
                self.starts[name] += 1

    def health(self, name: str) -> tuple[int, str]:
        return asked(self.ports[name], "/health")

    def stop(self) -> dict[str, int]:
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        return {name: process.wait(PATIENCE_S) for name, process in self._processes.items()}

    def kill(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def lines(self, name: str) -> list[str]:
        return (self._folder / f"{name}.log").read_text("utf-8").splitlines()


@contextlib.contextmanager
def machine(folder: Path, units: dict[str, Unit], replaced: dict[str, str]) -> Iterator[Machine]:
    running = Machine(folder, units, replaced)
    try:
        yield running
    finally:
        running.kill()


# the same commands as those of compose, see below
@pytest.fixture(params=[pytest.param("systemd", marks=pytest.mark.faults), "compose", "compose on s3"])
def units(request, tmp_path, address, monkeypatch) -> Iterator[tuple[dict[str, Unit], dict[str, str]]]:
    """(units, what stands in their environments, and what it is here)."""
    dsn = address.text
    if request.param == "systemd":
        given = of_systemd("periplus-serve.service").environment["PERIPLUS_COLLECTION"].partition("&segments=")
        yield from_systemd(), {given[0]: dsn, given[2]: str(tmp_path / "segments")}
        return
    given = compose()["x-periplus"]["environment"]["PERIPLUS_COLLECTION"].partition("&segments=")
    secrets = {"${PERIPLUS_TOKEN:?}": TOKEN, "${POSTGRES_PASSWORD:?}": "unused", "${STORAGE_PASSWORD:?}": "moto"}
    if request.param == "compose":
        yield composed(), {given[0]: dsn, given[2]: str(tmp_path / "segments"), **secrets}
        return
    if MISSING:
        pytest.skip(f"pip install 'moto[server]' s3fs: no {MISSING}")
    with moody_s3(tmp_path, "slow_s=0", monkeypatch):
        endpoint = os.environ["AWS_ENDPOINT_URL"]
        bucket = compose()["services"]["bucket"]["entrypoint"]
        subprocess.run([sys.executable, *bucket[1:]], check=True, timeout=PATIENCE_S)
        yield composed(), {given[0]: dsn, "http://storage:9000": endpoint, **secrets}


def test_a_crawl_by_the_services_as_they_are_written(units, tmp_path, address) -> None:
    with served_apart(WEB, tmp_path) as web, machine(tmp_path, *units) as running:
        starts = [web.url(f"{letter}.test") for letter in "abcdef"]
        flags = flags_for(web.resolve, delay_s=0.5, workers=1)  # long enough for a second worker to join
        running.run("worker-1", "jobs", "add", "crawl", *starts, "-q", *flags)
        running.keep_up()
        until(lambda: all(running.health(name) == (200, "ok\n") for name in running.units), "healthy services")
        token = TOKEN if running.units["serve"].environment["PERIPLUS_TOKEN"] else ""
        stored = StoredCollection(f"{address.text}")

        def both_work() -> bool:
            running.keep_up()
            return len(stored.ask("SELECT DISTINCT pid FROM worker WHERE batches > 0")) > 1

        until(both_work, "two workers at one crawl")
        figures = {name: asked(running.ports[name], "/metrics", token) for name in running.units}

        def is_over() -> bool:
            running.keep_up()
            return stored.ask("SELECT count(*) FROM job WHERE state IN ('queued', 'running')") == [(0,)]

        until(is_over, "the job's end")
        assert stored.ask("SELECT state, note FROM job") == [("done", "")]

        def is_idle(name: str) -> bool:
            """A worker that joined the crawl ends with it, and is started again."""
            text = "".join(running.lines(name))
            return running.health(name)[0] == 200 and text.rfind("Running the jobs") >= text.rfind("Joining run")

        until(lambda: running.keep_up() or all(map(is_idle, running.units)), "idle services")
        ends = running.stop()
        assert ends.pop("serve") in (0, -signal.SIGTERM) and set(ends.values()) == {130}, ends
        for name, (status, text) in figures.items():
            assert status == 200, (name, text)
            samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
            assert {s.value for s in samples if s.name == "periplus_running"} == {1.0}
            assert len({s.labels["worker"] for s in samples if s.name == "periplus_commit_seconds_count"}) > 1
        if token:
            assert asked(running.ports["serve"], "/metrics")[0] in (0, 401)
        lines = [json.loads(line) for name in running.units for line in running.lines(name)]
        assert {"host", "worker", "run", "message"} <= set.intersection(*map(set, lines))
        assert any(line["run"] for line in lines), "the lines of a worker that joined have its run"
        assert not any(secret in str(lines) for secret in (TOKEN, "moto:"))
        assert stored.ask("SELECT count(*) FROM page") == [(PAGES,)]
        assert stored.ask("SELECT count(*) FROM body WHERE segment IS NULL") == [(0,)]
        assert stored.sane() == []


def test_both_ways_run_the_same_commands() -> None:
    def plain(unit: Unit) -> str:
        return re.sub(r" --(listen|port|host|name) \S+", "", " ".join(unit.words))

    assert {name: plain(unit) for name, unit in composed().items()} == {
        name: plain(unit) for name, unit in from_systemd().items()
    }


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("name", ["periplus-serve.service", "periplus-worker@.service"])
def test_systemd_accepts_the_units(name: str, tmp_path) -> None:
    text = (DEPLOY / "systemd" / name).read_text("utf-8").replace("/opt/periplus/bin/periplus", sys.executable)
    copy = tmp_path / name.replace("@", "@9101")
    copy.write_text(text, "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_services_wait_for_what_they_need_and_have_no_secret_in_the_file() -> None:
    services = compose()["services"]
    assert {"postgres", "storage", "bucket", "worker-1", "worker-2", "serve"} == services.keys()
    for service in services.values():
        assert service["restart"] in ("always", "on-failure")
        for name, value in service.get("environment", {}).items():
            if name.endswith(("PASSWORD", "TOKEN", "SECRET_ACCESS_KEY")):
                assert re.fullmatch(r"\$\{[A-Z_]+:\?\}", value), name
    assert all(port.startswith("127.0.0.1:") for port in services["serve"]["ports"])
