"""Faults of names: missing, failing, flapping or lying name servers. Private addresses are never requested."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lying_names import NAMES, SILENT
from test_faults_disk import may
from voyage import Collection, command, environment

from periplus.model.visit import Reason

may_lie = may("--net", "ip", "link", "set", "lo", "up")
pytestmark = [pytest.mark.faults, pytest.mark.skipif(not may_lie, reason="needs the right to a network of its own")]
HOSTS = (*NAMES, SILENT)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collection, dict[str, list[str]], str]:
    """Two runs of a crawl with the lying name server: collection, requests to the servers, output."""
    folder = tmp_path_factory.mktemp("names")
    flags = "--delay 0.5 --retry-wait 0.2 --connect-timeout 2 --no-sitemaps --no-index -q --workers 1"
    crawl = " ".join(
        map(shlex.quote, command("crawl", *(f"http://{host}/" for host in HOSTS), "-o", "c", *flags.split()))
    )
    words = [
        "unshare",
        "--mount",
        "--net",
        sys.executable,
        str(Path(__file__).with_name("lying_names.py")),
        f"{crawl} --max-time 3; {crawl}",
    ]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment(), timeout=900, check=False)
    return Collection(folder / "c"), json.loads((folder / "asked.json").read_text("utf-8")), ran.stderr


def reason(collection: Collection, host: str) -> Reason:
    return collection.reasons[f"http://{host}/"]


def test_private_addresses_are_never_requested(told) -> None:
    assert told[1]["private"] == []


@pytest.mark.parametrize("host", ["liar.example", "mapped.example", "metadata.example", "zero.example"])
def test_a_name_of_this_machine_or_its_network_is_refused(told, host: str) -> None:
    assert reason(told[0], host) is Reason.PRIVATE


def test_an_ordinary_name_is_crawled(told) -> None:
    assert reason(told[0], "honest.example") is Reason.OK
    assert "honest.example /8" in told[1]["public"]


def test_of_two_addresses_the_public_one_is_requested(told) -> None:
    assert reason(told[0], "both.example") is Reason.OK


def test_a_name_that_becomes_private_is_no_longer_requested(told) -> None:
    """The first look-up gives a public address, a later one this machine."""
    collection, asked, _ = told
    assert any(line.startswith("rebound.example") for line in asked["public"])
    assert Reason.PRIVATE in {row.reason for url, row in collection.urls.items() if "rebound.example" in url}


def test_a_flaky_name_server_costs_only_time(told) -> None:
    assert reason(told[0], "flapping.example") is Reason.OK


@pytest.mark.parametrize("host", ["failing.example", "missing.example", SILENT])
def test_a_missing_name_is_an_unreachable_host(told, host: str) -> None:
    assert reason(told[0], host) is Reason.HOST_DOWN


def test_faults_are_reported_without_a_traceback(told) -> None:
    assert "Traceback" not in told[2]
