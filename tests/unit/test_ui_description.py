"""JSON responses of the interface agree with its OpenAPI description, and no request makes the server fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.transport import Response as Answer
from starlette.testclient import TestClient

from interface import client
from periplus.ui.description import Screen
from periplus.ui.routes import FILES as ROUTED_FILES
from periplus.ui.routes import SCREENS
from periplus.ui.safety import HEALTH, LOGIN, METRICS
from stored import page, stored

EXAMPLES = 10  # per route and kind; 60 were tried during development
START = "https://e.org/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("described")
    answers = {START: page("Home", "/a", "/b", "https://x.net/"), f"{START}a": 404, f"{START}b": page("B", "/", "/a")}
    stored(folder / "one.periplus", answers, [START])
    stored(folder / "one.periplus", {**answers, f"{START}a": page("A", "/b")}, [START])
    return folder


@pytest.fixture(scope="module")
def asking(folder: Path) -> Iterator[TestClient]:
    with client(folder) as asking:
        yield asking


def described(asking: TestClient) -> dict[str, dict[str, dict[str, object]]]:
    found: dict[str, dict[str, dict[str, object]]] = asking.get("/openapi.json").json()
    return found


def test_every_route_is_described(asking: TestClient) -> None:
    app = asking.app.app  # within the guard
    there = {route.path for route in app.routes if "GET" in (route.methods or ())}
    assert set(described(asking)["paths"]) == there - {
        LOGIN,
        HEALTH,
        METRICS,
        "/static/{file}",
        "/openapi.json",
        *ROUTED_FILES,
    }


def test_the_description_is_derived_from_the_handlers(asking: TestClient) -> None:
    paths = described(asking)["paths"]
    assert (
        paths["/c/{name}/page"]["get"]["summary"]
        == "One page, seen in one of VIEWS; `raw` gives its source or XML as a file."
    )
    assert "PageSummary" in described(asking)["components"]["schemas"]
    assert all(operation["get"]["summary"] for operation in paths.values())


def test_a_protected_interface_describes_its_security(folder: Path) -> None:
    from periplus.ui.description import describe as made

    assert "security" in made([], {"name": ["x"]}, locked=True)
    assert "security" not in made([], {"name": ["x"]}, locked=False)
    assert client(folder, token="a-long-token").get("/openapi.json").status_code == 303


def answer(asking: TestClient, path: str) -> object:
    where = path.replace("{name}", "one").replace("{table}", "pages")
    params = {"format": "json"}
    if path.endswith("/page"):
        params["url"] = START
    if path.endswith("/fault"):
        row = asking.get("/c/one/t/faults?columns=code,cause&format=json").json()["rows"][0]
        params |= dict(zip(("code", "cause"), row, strict=True))
    found = asking.get(where, params=params)
    assert found.status_code == 200, found.text
    return found.json()


@pytest.mark.parametrize("screen", [screen for screen in SCREENS if screen.answer], ids=lambda screen: screen.path)
def test_a_simple_request_is_answered_as_described(asking: TestClient, screen: Screen) -> None:
    whole, path = described(asking), screen.path
    schema = whole["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]  # type: ignore[index]
    rule = jsonschema_rs.validator_for({**schema, "components": whole["components"]})  # type: ignore[dict-item]
    said = answer(asking, path)
    assert [str(error) for error in rule.iter_errors(said)] == []
    assert not rule.is_valid({**said, "title": 7}), "the check cannot fail"  # type: ignore[dict-item]
    named = [name for name in screen.answer if not name.endswith("?")]
    assert all(not rule.is_valid({key: value for key, value in said.items() if key != name}) for name in named)  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", range(4))
def test_responses_agree_with_the_description(asking: TestClient, part: int) -> None:
    """Random valid and invalid requests give 200 with the described response or an error message, never a failure."""
    schema = schemathesis.openapi.from_dict(described(asking))
    operations = [found.ok() for found in schema.get_all_operations()]
    for operation in operations[part::4]:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            check(asking, operation, mode)


def check(asking: TestClient, operation, mode) -> None:
    @settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def asks(case) -> None:
        target = case.as_transport_kwargs(base_url="http://127.0.0.1:8321")
        query = {**(case.query or {}), **({} if mode is GenerationMode.NEGATIVE else {"format": "json"})}
        if operation.path.endswith("/page") and len(str(query.get("url", ""))) % 2:
            query["url"] = START  # otherwise hardly any page would be known
        answered = asking.get(
            target["url"].partition(":8321")[2] or "/", params=query, headers={"accept": "application/json"}
        )
        assert answered.status_code < 500, (answered.url, answered.text[:500])
        assert answered.status_code in (200, 400, 404), answered.url
        body = answered.json()
        case.validate_response(Answer(
            status_code=answered.status_code, headers={name: [text] for name, text in answered.headers.items()},
            content=answered.content,
            request=_prepared(answered), elapsed=0.0, verify=False, http_version="1.1",
        ), checks=[schemathesis.checks.not_a_server_error, _conforms()])  # fmt: skip
        assert body["title"]

    asks()


def _conforms():
    from schemathesis.specs.openapi.checks import response_schema_conformance

    return response_schema_conformance


def _prepared(answered):
    import requests

    return requests.Request("GET", str(answered.url)).prepare()


FILES = (
    "map.svg",
    "map.xml",
    "map.json",
    "map.gexf",
    "map.x",
    "graph.svg",
    "graph.gexf",
    "picture.svg",
    "t/pages.csv",
    "t/links.jsonl",
    "t/x.csv",
    "t/pages.x",
)
WORDS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", "0", "-1", "1" * 30, "site", "size", "last", "e.org", START, "~", "!-", "..", "1..", "\x00", "é"]
    ),
)
NAMES = st.sampled_from(
    [
        "q",
        "sort",
        "columns",
        "at",
        "per",
        "by",
        "site",
        "nodes",
        "node",
        "steps",
        "menus",
        "most",
        "title",
        "status",
        "size",
        "visited",
        "find",
    ]
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(FILES), st.dictionaries(NAMES, WORDS, max_size=3))
def test_files_never_make_the_server_fail(asking: TestClient, path: str, query: dict[str, str]) -> None:
    found = asking.get(f"/c/one/{path}", params=query)
    assert found.status_code < 500, (found.url, found.text[:500])
