"""Collections with segments and index on S3 that is slow, fails sometimes, or shows objects late: pages are still
crawled, found and deleted. By s3fs, with moto: `pip install 'moto[server]' s3fs`, then `make test-faults`.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from postgres_voyage import StoredCollection
from test_faults_workers import LONG, hosts_of, pages_of
from voyage import PATIENCE_S, command, environment, flags_for, served_apart, until

import judge
from periplus.model.visit import Reason
from periplus_postgres.address import Address
from testweb.log import read_log

MISSING = [name for name in ("moto", "s3fs", "werkzeug") if importlib.util.find_spec(name) is None]
pytestmark = [LONG, pytest.mark.skipif(bool(MISSING), reason=f"pip install 'moto[server]' s3fs: no {MISSING}")]
BUCKET = "press"
SHOWN_S = 1.5  # after this time written objects are visible in every mode
KEYS = {"AWS_ACCESS_KEY_ID": "moto", "AWS_SECRET_ACCESS_KEY": "moto", "AWS_DEFAULT_REGION": "us-east-1"}


@contextlib.contextmanager
def moody_s3(folder: Path, mood: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A server with a bucket, configured for s3fs in the environment.

    calls(): number of calls so far; objects(): stored objects by name.
    """
    port_file, log_file = folder / "s3.json", folder / "s3.txt"
    log_file.touch()
    words = [sys.executable, str(Path(__file__).with_name("moody_s3.py")), str(port_file), str(log_file), mood]
    with (folder / "s3-messages.txt").open("wb") as messages:
        server = subprocess.Popen(words, stdout=messages, stderr=messages)
    try:
        until(lambda: port_file.exists() or server.poll() is not None, "a server")
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{_port(port_file)}"}.items():
            monkeypatch.setenv(name, value)
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        system = s3fs.S3FileSystem(use_listings_cache=False)
        system.mkdir(BUCKET)

        def objects() -> dict[str, bytes]:
            time.sleep(SHOWN_S)
            return {name: system.cat_file(name) for name in system.find(BUCKET)}

        yield SimpleNamespace(calls=lambda: log_file.read_text("utf-8").count("\n"), objects=objects)
    finally:
        server.kill()
        server.wait()


def _port(port_file: Path) -> int:
    return int(json.loads(port_file.read_text("utf-8"))["port"])


def done(folder: Path, reader: str, *words: str) -> str:
    """Output of a successful command. reader: the user whose caches it has."""
    given = environment() | {"XDG_CACHE_HOME": str(folder / reader)}
    ran = subprocess.run(
        command(*words), cwd=folder, env=given, capture_output=True, text=True, timeout=5 * PATIENCE_S, check=False
    )
    assert ran.returncode == 0 and "Traceback" not in ran.stderr, (words[0], ran.stderr)
    return ran.stdout


def recorded(objects: dict[str, bytes], host: str) -> int:
    """Number of pages of the host in segments."""
    mark = f"\r\nWARC-Target-URI: http://{host}".encode()
    return sum(gzip.decompress(data).count(mark) for name, data in objects.items() if name.endswith(".warc.gz"))


@pytest.mark.parametrize("mood", ["slow_s=0.3", "fail_every=10", "late_s=1"])
def test_pages_are_crawled_found_and_deleted_on_faulty_object_storage(
    tmp_path: Path, address: Address, monkeypatch: pytest.MonkeyPatch, mood: str
) -> None:
    place = f"{address.text}&segments=s3://{BUCKET}/segments&index=s3://{BUCKET}/index"
    with (
        moody_s3(tmp_path, mood, monkeypatch) as s3,
        served_apart("linked seed=5 sites=4 pages=12 links_between=12 links_per_page=8", tmp_path) as web,
    ):
        flags = [*flags_for(web.resolve, delay_s=0.1, workers=2, commit_interval_s=1.0), "--no-sitemaps", "-q"]
        done(tmp_path, "one", "crawl", *map(web.url, hosts_of(web)), "-c", place, *flags)
        log, stored = read_log(web.log_file), StoredCollection(address.text)
        assert judge.never_asked(log, pages_of(web)) == [] and judge.repeats(log) == 0
        assert judge.early_starts(log, 0.1) == [] and judge.meetings(log) == []
        assert set(stored.reasons.values()) == {Reason.OK} and stored.sane() == []
        calls = [s3.calls()]
        host, pages = hosts_of(web)[0], len(stored.reasons)
        for reader in ("one", "two"):
            words = ("search", "harbour", "-c", address.text, "-f", "json")
            assert json.loads(done(tmp_path, reader, *words))["total"] == pages
        states = json.loads(done(tmp_path, "one", "segments", address.text, "--delete", "-f", "json"))
        assert sum(state["lost"] for state in states) == 0
        assert sum(state["records"] - state["orphans"] for state in states) == pages
        assert recorded(s3.objects(), host) >= 12
        calls.append(s3.calls())

        done(tmp_path, "one", "delete", "--site", f"{host}:{web.port}", "-c", address.text, "-y")
        assert recorded(s3.objects(), host) == 0
        calls.append(s3.calls())
        states = json.loads(done(tmp_path, "one", "segments", address.text, "-f", "json"))
        assert (sum(state["lost"] for state in states), sum(state["records"] for state in states)) == (0, pages - 12)
        for reader in ("one", "two"):
            words = ("search", f"site:{host}", "-c", address.text, "-f", "json")
            assert json.loads(done(tmp_path, reader, *words))["total"] == 0

        done(tmp_path, "one", "delete", "--everything", address.collection, "-c", address.text, "-y")
        assert s3.objects() == {}
        print(f"calls: {calls[0]} to crawl and index, {calls[2] - calls[1]} to delete a site, {s3.calls()} in all")
