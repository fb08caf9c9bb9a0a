"""MCP over HTTP: access control, refusals before the protocol, rate limits, and the official client."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from periplus.api.homes import collections_at
from periplus.errors import UsageError
from periplus_agents.answers import ServedCollections
from stored import page, stored

pytest.importorskip("mcp", reason="the extra mcp")

import anyio
import httpx2
from starlette.testclient import TestClient

from periplus.ui.safety import Locks, require_locks
from periplus.ui.users import Role, Users
from periplus_agents import http
from periplus_agents.commands import host_and_port
from periplus_agents.crawling import CrawlBudget
from periplus_agents.server import server_of

HOST = "127.0.0.1:8322"
ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "collections", "arguments": {}}}
HEADERS = {"host": HOST, "accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
TOKEN = "a long token of ours"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = {"https://e.org/": page("Home", "/a"), "https://e.org/a": page("A lighthouse", "/")}
    return stored(tmp_path_factory.mktemp("http") / "e.periplus", pages, ["https://e.org/"])


async def _at_once(wait_s: float) -> None:
    """Nobody waits in a test."""


@contextlib.contextmanager
def connected(
    folder: Path, locks: Locks, rate: http.QuestionRate | None = None, budget: CrawlBudget | None = None
) -> Iterator[TestClient]:
    served = ServedCollections(lambda: collections_at([folder], Path()), budget=budget)
    with TestClient(http.application(server_of(served), locks, rate), f"http://{HOST}") as client:
        client.headers.clear()
        client.headers.update(HEADERS)
        yield client


def test_a_request_is_answered_as_json_with_no_store(folder):
    with connected(folder, Locks()) as client:
        answer = client.post("/mcp", json=ASK)
    assert answer.status_code == 200
    assert answer.json()["result"]["structuredContent"]["content"][0]["name"] == "e"
    assert answer.headers["content-type"] == "application/json"
    assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),  # a foreign host name (DNS rebinding)
        ({"host": "evil.example:8322", "origin": "http://evil.example:8322"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),  # a local file or a sandboxed frame
        ({"origin": "http://127.0.0.1:9999"}, 403),  # another program on this machine
        ({"origin": "ftp://127.0.0.1:8322"}, 403),
        ({"origin": f"http://{HOST}/"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "tools.example.org", "origin": "https://tools.example.org"}, 200),  # --name
    ],
)
def test_other_origins_and_foreign_host_names_are_refused(folder, headers, status):
    with connected(folder, Locks(names=("tools.example.org",))) as client:
        assert client.post("/mcp", json=ASK, headers=headers).status_code == status


def test_an_https_origin_is_refused_without_an_allowed_name(folder):
    with connected(folder, Locks()) as client:
        assert client.post("/mcp", json=ASK, headers={"origin": f"https://{HOST}"}).status_code == 403
        assert client.post("/mcp", json=ASK, headers={"origin": f"http://{HOST}"}).status_code == 200


def test_only_post_with_json_is_accepted(folder):
    with connected(folder, Locks()) as client:
        assert client.get("/mcp").status_code == 405
        assert client.delete("/mcp").status_code == 405
        assert client.options("/mcp").status_code == 405  # no CORS preflight: other origins are never allowed
        assert client.post("/", json=ASK).status_code == 404
        assert client.post("/mcp/../collections", json=ASK).status_code == 404
        assert client.post("/mcp", content=b"x=1", headers={"content-type": "text/plain"}).status_code == 400
        assert client.post("/mcp", content=b"{", headers={"content-type": "application/json"}).status_code == 400


def test_a_token_gives_access_and_wrong_tokens_wait_longer_each_time(folder):
    waits: list[float] = []

    async def sleep(wait_s: float) -> None:
        waits.append(wait_s)

    with connected(folder, Locks(TOKEN, sleep=sleep)) as client:
        nothing = client.post("/mcp", json=ASK)
        assert (nothing.status_code, nothing.headers["www-authenticate"]) == (401, 'Bearer realm="periplus"')
        assert waits == []
        for wrong in ("x", "y", f"{TOKEN} "[:-2]):
            refused = client.post("/mcp", json=ASK, headers={"authorization": f"Bearer {wrong}"})
            assert refused.status_code == 401
            assert "collections" not in refused.text
        basic = client.post("/mcp", json=ASK, headers={"authorization": f"Basic {TOKEN}"})
        assert basic.status_code == 401
        assert client.post("/mcp", json=ASK, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.post(f"/mcp?token={TOKEN}", json=ASK).status_code == 401  # not in the URL, since URLs are logged
    assert waits == [0.0, 0.5, 1.0, 2.0]  # the right token waits too, otherwise its speed would reveal it


def test_tokens_of_interface_users_are_valid(folder, tmp_path):
    users = Users(tmp_path)
    anna = users.add("anna", Role.LOOK)
    with connected(folder, Locks(users=users, sleep=_at_once)) as client:
        assert client.post("/mcp", json=ASK).status_code == 401
        assert client.post("/mcp", json=ASK, headers={"authorization": f"Bearer {anna}"}).status_code == 200
        users.remove("anna")
        users.add("bert", Role.LOOK)
        assert client.post("/mcp", json=ASK, headers={"authorization": f"Bearer {anna}"}).status_code == 401
        (tmp_path / "users.json").write_text("damaged", "utf-8")
        assert client.post("/mcp", json=ASK, headers={"authorization": f"Bearer {anna}"}).status_code == 503


def test_a_crawl_needs_the_role_work(folder, tmp_path):
    users = Users(tmp_path)
    tokens = {role: users.add(role.value, role) for role in (Role.LOOK, Role.WORK)}
    question = ASK | {"params": {"name": "crawl", "arguments": {"urls": ["https://other.example/"]}}}
    offered = {}
    with connected(folder, Locks(users=users, sleep=_at_once), budget=CrawlBudget(1, 60.0, 1_000)) as client:
        for role, token in tokens.items():
            bearer = {"authorization": f"Bearer {token}"}
            listed = client.post("/mcp", json=ASK | {"method": "tools/list", "params": {}}, headers=bearer).json()
            answer = client.post("/mcp", json=question, headers=bearer).json()["result"]
            offered[role] = "crawl" in {tool["name"] for tool in listed["result"]["tools"]}
            why = "no tool 'crawl'" if role is Role.LOOK else "neither on a host of this collection"
            assert answer["isError"]
            assert why in answer["content"][0]["text"]
    assert offered == {Role.LOOK: False, Role.WORK: True}


def test_listening_on_a_public_address_needs_a_token_or_users(tmp_path):
    for locks in (Locks(host="0.0.0.0"), Locks("short", host="0.0.0.0")):
        with pytest.raises(UsageError, match="can be reached by others"):
            require_locks(locks)
    require_locks(Locks(TOKEN, host="0.0.0.0"))
    require_locks(Locks())
    users = Users(tmp_path)
    users.add("anna", Role.LOOK)
    require_locks(Locks(users=users, host="::"))


def test_requests_are_limited_in_size_and_rate(folder):
    now = [0.0]
    with connected(folder, Locks(), http.QuestionRate(lambda: now[0])) as client:
        large = ASK | {"params": {"name": "search", "arguments": {"query": "x" * http.BODY_BYTES}}}
        assert client.post("/mcp", json=large).status_code == 413
        statuses = [client.post("/mcp", json=ASK | {"method": "ping"}).status_code for _ in range(http.AT_FIRST)]
        assert statuses[: http.AT_FIRST - 1] == [200] * (http.AT_FIRST - 1)
        refused = client.post("/mcp", json=ASK)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        now[0] += 1.0
        assert client.post("/mcp", json=ASK).status_code == 200


def test_the_rate_limit_remembers_a_limited_number_of_addresses():
    rate, waits = http.QuestionRate(lambda: 0.0), []
    for _ in range(http.AT_FIRST):
        assert rate.wait_s("192.0.2.1") == 0.0
    for others in (http.ADDRESSES - 1, http.ADDRESSES):
        for number in range(others):
            rate.wait_s(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        waits.append(rate.wait_s("192.0.2.1"))
    assert waits[0] > 0.0 == waits[1], "the address with the oldest request is forgotten"
    spent = http.QuestionRate(lambda: 0.0)
    waits = [spent.wait_s(f"2001:db8::{number:x}") for number in range(http.AT_FIRST + 1)]
    assert waits[-1] > 0  # addresses of one /64 network count together


def test_the_address_to_listen_on_is_parsed():
    assert host_and_port("127.0.0.1:8322") == ("127.0.0.1", 8322)
    assert host_and_port("[::1]:80") == ("::1", 80)
    assert host_and_port(":9000") == host_and_port("9000") == ("127.0.0.1", 9000)
    for wrong in ("", "localhost", "localhost:", "127.0.0.1:0", "h:99999", "h:-1"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            host_and_port(wrong)


def test_the_official_client_can_use_the_program_over_http(folder):
    from mcp import ClientSession
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    words = (sys.executable, "-m", "periplus", "mcp", "--http", f"127.0.0.1:{port}", "-c", str(folder))
    program = subprocess.Popen([*words, "--token", TOKEN], stderr=subprocess.PIPE)
    url = f"http://127.0.0.1:{port}/mcp"

    async def talk() -> None:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=bearer) as client:
            async with (
                streamable_http_client(url, http_client=client) as (read, write),
                ClientSession(read, write) as session,
            ):
                about = await session.initialize()
                assert about.server_info.name == "periplus"
                hits = await session.call_tool("search", {"query": "lighthouse"})
                assert [hit["url"] for hit in hits.structured_content["content"]] == ["https://e.org/a"]
                refused = await session.call_tool("page", {"url": "https://e.org/never"})
                assert refused.is_error
            # the newest protocol version has no handshake
            async with Client(streamable_http_client(url, http_client=client)) as newest:
                answer = await newest.call_tool("page", {"url": "/a"})
                assert "A lighthouse" in answer.content[0].text

    try:
        assert program.stderr is not None
        assert url.encode() in program.stderr.readline()
        anyio.run(_listening, port)
        with httpx2.Client() as stranger:
            assert stranger.post(url, json=ASK).status_code == 401
        anyio.run(talk)
    finally:
        program.terminate()
        program.wait(300)
        program.stderr.close()


async def _listening(port: int) -> None:
    for _ in range(6000):
        try:
            stream = await anyio.connect_tcp("127.0.0.1", port)
        except OSError:
            await anyio.sleep(0.05)
        else:
            await stream.aclose()
            return
    raise AssertionError("the server does not begin")
