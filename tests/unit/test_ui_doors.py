"""Requests that are reserved for the owner of the server's machine: each form, start option and role."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from interface import COMMANDS
from periplus.store.sqlite.job_file import folder_queue
from periplus.ui.routes import application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places
from periplus.ui.users import Role, Users
from stored import copied, page, stored

TOKEN = "lantern-at-sea"
SITE = {"url": "https://e.org/"}


@dataclass(frozen=True)
class Door:
    """A form, the least role that may send it, and its response if only the owner can reach the server."""

    path: str
    form: dict[str, str]
    role: Role = Role.WORK


DOORS = {
    "private addresses": Door("/new", SITE | {"consent_private": "yes"}),
    "a proxy": Door("/new", SITE | {"set_proxy": "http://127.0.0.1:3128"}),
    "bad certificates": Door("/new", SITE | {"set_insecure": "yes"}),
    "a proxy for a crawl that goes on": Door("/c/e/resume", {"set_proxy": "http://127.0.0.1:3128"}),
    "bad certificates for a crawl that goes on": Door("/c/e/resume", {"set_insecure": "yes"}),
    "a proxy in a preset": Door(
        "/presets/save", {"preset_name": "p", "set_proxy": "http://127.0.0.1:3128"}, Role.ADMINISTER
    ),
    "a variable of the environment": Door(
        "/c/e/login",
        {"login_name": "x", "login_hosts": "evil.example", "login_bearer": "env:DOORS_SECRET"},
        Role.ADMINISTER,
    ),
}
ALWAYS_CLOSED = {  # not allowed in any form
    **{
        f"{name} by a form": Door("/new", SITE | {f"set_{name}": value})
        for name, value in {
            "allow_private": "yes", "login": "x", "ca_file": "/x", "cookie_file": "/x", "resolve": "a:1:127.0.0.1",
            "folders": "a.alt=/", "browser": "/bin/sh", "from_archive": "/", "auth": "a:b", "ignore_robots": "yes",
            "mine": "e.org",
        }.items()
    },
    "a file": Door("/new", {"url": "file:///etc/passwd"}),
}  # fmt: skip


@dataclass(frozen=True)
class Way:
    """How the server was started. others: whether other people can reach it."""

    others: bool
    token: str = ""
    users: bool = False
    rest: dict[str, object] = field(default_factory=dict)


WAYS = {
    "this machine alone": Way(False),
    "this machine by IPv6": Way(False, rest={"host": "::1"}),
    "a token": Way(True, TOKEN),
    "a token, for the network": Way(True, TOKEN, rest={"host": "0.0.0.0"}),
    "a further name": Way(True, rest={"names": ("crawls.example.org",)}),
    "users": Way(True, users=True),
    "users, for the network": Way(True, users=True, rest={"host": "0.0.0.0"}),
    "users, by a further name": Way(True, users=True, rest={"names": ("crawls.example.org",)}),
    "users and a token": Way(True, TOKEN, True, {"host": "::"}),
}
ASKING = [(way, role) for way, how in WAYS.items() for role in (*(Role if how.users else ()), None)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("doors")
    stored(where / "e.periplus", {"https://e.org/": page("Home")}, ["https://e.org/"])
    return where


async def at_once(seconds: float) -> None:
    return None


def asking(folder: Path, way: Way, role: Role | None) -> tuple[TestClient, Role | None, dict[str, str]]:
    """(client, its role after login, its CSRF token). role None: login with the server's token, if any."""
    users = Users(folder)
    if way.users:
        users.add("boss", Role.ADMINISTER)
    token = users.add("anna", role) if role else way.token
    locks = Locks(way.token, users=users, sleep=at_once, **way.rest)
    state = AppState(places([folder]), locks, COMMANDS)
    browser = TestClient(application(state), base_url="http://localhost", follow_redirects=False)
    sent = {"csrf_token": locks.csrf_token}
    if token:
        assert browser.post("/login", data={"token": token} | sent).status_code == 303
    return browser, (role or (Role.ADMINISTER if token or not way.users else None)), sent


def outcome(folder: Path) -> tuple[int, str, str]:
    """What an accepted form changes: jobs, presets, logins."""
    files = (folder / "periplus.toml", folder / "e.periplus" / "periplus.toml")
    texts = tuple(path.read_text("utf-8") if path.is_file() else "" for path in files)
    queue = folder_queue(folder)
    try:
        return len(queue.jobs()), *texts
    finally:
        queue.close()


@pytest.mark.parametrize(("way", "role"), ASKING, ids=lambda value: str(value).replace(" ", "-"))
def test_owner_requests_are_accepted_only_if_no_one_else_can_reach_the_server(made, tmp_path, monkeypatch, way, role):
    monkeypatch.setenv("DOORS_SECRET", "hunter2-of-the-server")
    folder = copied(made, tmp_path)
    browser, own, sent = asking(folder, WAYS[way], role)
    for name, door in (DOORS | ALWAYS_CLOSED).items():
        before = outcome(folder)
        answer = browser.post(door.path, data=door.form | sent)
        may = own is not None and own.allows(door.role)
        is_open = may and not WAYS[way].others and name in DOORS
        assert answer.status_code == (303 if is_open else 400 if may else 403), (name, answer.text[-600:])
        assert (outcome(folder) != before) is is_open, name


@pytest.mark.parametrize(("way", "role"), ASKING, ids=lambda value: str(value).replace(" ", "-"))
def test_screens_offer_only_what_the_server_accepts(made, tmp_path, way, role):
    browser, own, _ = asking(copied(made, tmp_path), WAYS[way], role)
    if own is None:
        assert browser.get("/").status_code == 303
        return
    begin, settings = browser.get("/new").text, browser.get("/c/e/settings").text
    is_open = not WAYS[way].others
    assert ("consent_private" in begin) is (is_open and own.allows(Role.WORK))
    for name in ("proxy", "insecure"):
        assert (f'name="set_{name}"' in begin) is (is_open and own.allows(Role.WORK)), name
    assert ('name="login_bearer"' in settings) is (is_open and own.allows(Role.ADMINISTER))
