"""The keys of public JSON responses are those in docs/json.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from interface import client
from json_keys import documented, keys_in_code, keys_of, properties_of, undocumented
from periplus.api.homes import collections_at
from periplus.cli.main import main
from periplus_agents.answers import ServedCollections
from periplus_agents.tools import TOOLS, answer_call
from stored import page, stored

START = "https://e.org/"
COMMANDS = (
    ("status",), ("search", "home"), ("duplicates",), ("keywords", START), ("diff",), ("map",), ("stories",),
    ("template",), ("page", START), ("page", START, "--as", "blocks"), ("page", START, "--as", "headers"),
    ("delete", f"{START}b", "--dry-run"), ("topic", "list"),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "e.periplus"
    web = {START: page("Home", "/a", "/b", "https://x.net/"), f"{START}a": 404, f"{START}b": page("B", "/", "/a")}
    stored(folder, web, [START])
    return stored(folder, {**web, f"{START}a": page("A", "/b")}, [START])


def test_the_openapi_description_has_documented_keys(folder: Path) -> None:
    assert undocumented(properties_of(client(folder).get("/openapi.json").json())) == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_print_documented_keys(folder: Path, words: tuple[str, ...]) -> None:
    ended = CliRunner().invoke(main, [*words, "-c", str(folder), "--json" if words[0] in JSON_FLAG else "-fjson"])
    assert ended.exit_code == 0, ended.output
    assert undocumented(keys_of(json.loads(ended.stdout))) == []


JSON_FLAG = frozenset({"page", "keywords", "topic"})


@pytest.mark.parametrize("words", [("jobs", "list"), ("notices", "list")], ids=" ".join)
def test_queues_print_documented_keys(tmp_path: Path, words: tuple[str, ...]) -> None:
    for added in (["jobs", "add", "--every", "24h", "crawl", START], ["notices", "add", "https://example.org/hook"]):
        ended = CliRunner().invoke(main, [*added[:2], "-d", str(tmp_path), *added[2:]])
        assert ended.exit_code == 0, ended.output
    shown = json.loads(CliRunner().invoke(main, [*words, "-d", str(tmp_path), "-f", "json"]).stdout)
    assert any(shown.values()) and undocumented(keys_of(shown)) == []


@pytest.mark.parametrize("name", ["collections", "search", "page", "map", "rows", "faults", "diff", "keywords"])
def test_tools_return_documented_keys(folder: Path, name: str) -> None:
    arguments = {"search": {"query": "home"}, "page": {"url": START, "as": "facts"}, "rows": {"table": "pages"}}
    answer = answer_call(ServedCollections(lambda: collections_at([folder], Path())), name, arguments.get(name, {}))
    assert name in TOOLS and undocumented(keys_of(answer.structure())) == []


def test_an_error_is_an_rfc_9457_problem_document(folder: Path) -> None:
    answer = client(folder).get("/c/none/live", headers={"accept": "application/json"})
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"title", "detail", "status"} <= set(answer.json()) and answer.json()["status"] == answer.status_code == 404


def test_every_documented_key_occurs_in_the_code() -> None:
    assert sorted(documented() - keys_in_code()) == []


def test_an_undocumented_key_is_found() -> None:
    assert undocumented(keys_of({"hits": [{"no_such_key": {"neither": 1}}]})) == ["neither", "no_such_key"]
