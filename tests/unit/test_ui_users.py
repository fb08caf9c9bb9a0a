"""Users of the interface: every route with every role, tokens, revocation."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import jinja2
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from interface import COMMANDS
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.ui.routes import FILES, FORMS, SCREENS, application
from periplus.ui.safety import COOKIE, Locks
from periplus.ui.state import AppState, places
from periplus.ui.users import FILE, Role, Users
from stored import page, stored

NAMES = {
    "name": "c",
    "table": "pages",
    "topic": "t",
    "portal": "p",
    "view": "v",
    "what": "w",
    "ending": "json",
    "path": "x",
}
GETS = {screen.path: screen.role for screen in SCREENS} | dict.fromkeys(FILES, Role.LOOK)
POSTS = {screen.path: screen.take_role for screen in SCREENS if screen.take} | {
    path: role for path, (role, _) in FORMS.items()
}
STREAMS = {path for path in GETS if path.endswith("/events")}  # these responses never end


def filled(path: str) -> str:
    return path.replace("{path:path}", "x").format(**NAMES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored(tmp_path / "c.periplus", {"https://e.org/": page("Home")}, ["https://e.org/"])
    return tmp_path


@pytest.fixture
def users(folder: Path) -> Users:
    return Users(folder)


def client(folder: Path, users: Users, token: str = "") -> tuple[TestClient, Locks]:
    locks = Locks(token, users=users, sleep=_at_once)
    state = AppState(places([folder]), locks, COMMANDS)
    return TestClient(application(state), base_url="http://localhost", follow_redirects=False), locks


async def _at_once(seconds: float) -> None:
    return None


def logged_in(folder: Path, users: Users, token: str) -> tuple[TestClient, Locks]:
    browser, locks = client(folder, users)
    answer = browser.post("/login", data={"token": token, "csrf_token": locks.csrf_token})
    assert answer.status_code == 303 and COOKIE in answer.cookies
    return browser, locks


def test_every_route_has_a_role_and_deletion_needs_an_administrator():
    assert set(GETS.values()) == {Role.LOOK, Role.ADMINISTER} and set(POSTS.values()) == {Role.WORK, Role.ADMINISTER}
    assert POSTS["/c/{name}/delete"] is POSTS["/notices/change"] is GETS["/notices"] is Role.ADMINISTER
    assert {path for path, role in POSTS.items() if role is Role.LOOK} == set(), "the role look changes nothing"


@pytest.mark.parametrize("role", list(Role))
def test_each_route_accepts_only_its_roles(folder, users, role):
    users.add("boss", Role.ADMINISTER)
    browser, locks = logged_in(folder, users, users.add("anna", role))
    for path, needed in GETS.items():
        if path not in STREAMS or not role.allows(needed):
            status = browser.get(filled(path)).status_code
            assert (status == 403) is not role.allows(needed), (path, status)
    for path, needed in POSTS.items():
        answer = browser.post(filled(path), data={"csrf_token": locks.csrf_token})
        refused = answer.status_code == 403 and "takes the role" in answer.text
        assert refused is not role.allows(needed), (path, answer.status_code)


@pytest.mark.parametrize("role", list(Role))
def test_no_screen_shows_a_form_that_the_user_may_not_send(folder, users, role):
    users.add("boss", Role.ADMINISTER)
    browser, _ = logged_in(folder, users, users.add("anna", role))
    sent = 0
    for path in (
        "/",
        "/jobs",
        "/surveys",
        *(filled(path) for path in GETS if path.startswith("/c/") and "." not in path),
    ):
        if "events" in path or (answer := browser.get(path)).status_code != 200:
            continue
        text = answer.text
        sent += text.count('method="post"')
        assert role is not Role.LOOK or ('method="post"' not in text and "formaction" not in text), path
        assert role is Role.ADMINISTER or not re.search(r'href="(/notices|delete)"|action="/c/c/delete"', text), path
    assert bool(sent) is (role is not Role.LOOK)


def test_every_form_of_a_template_depends_on_the_role():
    """Also on screens without data here. Some screens are for administrators only."""
    environment = jinja2.Environment(loader=jinja2.PackageLoader("periplus.ui"), autoescape=True)
    makers = {"making", "deciding"}  # macros with a form or a part of one
    for name in set(environment.list_templates()) - {"login.html", "notices.html", "delete.html", "survey_parts.html"}:
        source = environment.loader.get_source(environment, name)[0]
        for node in _open_to_all(environment.parse(source)):
            if isinstance(node, jinja2.nodes.TemplateData):
                assert 'method="post"' not in node.data and "formaction=" not in node.data.replace(
                    'formmethod="get" formaction=', ""
                ), (name, node.data[:200])
            called = getattr(getattr(node, "node", None), "name", "") if isinstance(node, jinja2.nodes.Call) else ""
            assert called not in makers, (name, called)


def _open_to_all(node):
    """The nodes of a template outside conditions on the user's role."""
    for child in node.iter_child_nodes():
        names = (
            {name.name for name in child.test.find_all(jinja2.nodes.Name)} if isinstance(child, jinja2.nodes.If) else ()
        )
        if isinstance(child, jinja2.nodes.If):
            names = names | ({child.test.name} if isinstance(child.test, jinja2.nodes.Name) else set())
        if not {"may_work", "may_administer", "decides", "picks"} & set(names):
            yield child
            yield from _open_to_all(child)


def test_with_users_every_request_needs_a_token(folder, users):
    browser, _ = client(folder, users)
    assert browser.get("/").status_code == 200, "without users and token the local user may do everything"
    users.add("anna", Role.LOOK)
    for path in GETS:
        assert browser.get(filled(path)).status_code == 303 or path == "/feeds/{name}.atom"
    for path in POSTS:
        assert browser.post(filled(path), data={}).status_code == 403
    assert browser.get("/feeds/c.atom").status_code == 303


def test_removal_and_a_new_token_end_a_session_immediately(folder, users):
    first = users.add("anna", Role.WORK)
    browser, _ = logged_in(folder, users, first)
    assert browser.get("/jobs").status_code == 200
    second = users.add("anna", Role.LOOK)
    assert browser.get("/jobs").status_code == 303 and users.of_token(first) is None
    browser, _ = logged_in(folder, users, second)
    Users(folder).add("boss", Role.ADMINISTER)  # another process
    assert browser.get("/jobs").status_code == 200
    Users(folder).remove("anna")
    assert browser.get("/jobs").status_code == 303


def test_the_token_of_the_server_is_an_administrator(folder, users):
    users.add("anna", Role.LOOK)
    browser, locks = client(folder, users, "lantern-at-sea")
    browser.post("/login", data={"token": "lantern-at-sea", "csrf_token": locks.csrf_token})
    assert browser.get("/notices").status_code == 200
    assert not Locks("", users=users).opens(""), "no token is no key"
    assert Locks("", users=users).session_of("") == ""
    browser, locks = client(folder, users)
    browser.cookies.set(COOKIE, Locks("").session)
    assert browser.get("/jobs").status_code == 303, "a session without a token gives no access"


def test_feeds_have_their_own_key(folder, users):
    token = users.add("anna", Role.LOOK)
    browser, locks = client(folder, users)
    assert browser.get(f"/feeds/c.atom?key={locks.feed_key}").status_code == 200
    assert locks.feed_key not in (folder / FILE).read_text() and token not in locks.feed_key


def test_the_file_has_digests_and_only_its_owner_can_read_it(folder, users):
    token = users.add("anna", Role.WORK, 5.0)
    text = (folder / FILE).read_text()
    assert token not in text and stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert [(user.name, user.role, user.made) for user in Users(folder).all()] == [("anna", Role.WORK, 5.0)]


def test_a_damaged_file_blocks_all_access(folder, users):
    browser, _ = logged_in(folder, users, users.add("anna", Role.ADMINISTER))
    (folder / FILE).write_text("{")
    assert browser.get("/").status_code == 503
    with pytest.raises(StoreError, match="cannot be read as a list of users"):
        Users(folder).all()


def test_invalid_names_and_unknown_users_are_refused(users):
    for name in ("", "a b", "-", "x" * 65, "a\n"):
        with pytest.raises(UsageError):
            users.add(name, Role.LOOK)
    with pytest.raises(UsageError, match="there is no user"):
        users.remove("nobody")


def test_the_command_adds_lists_and_removes(folder):
    def run(*words):
        return CliRunner().invoke(main, ["serve", str(folder), *words])

    token = run("--add-user", "anna", "--role", "work").stdout.strip()
    assert Users(folder).of_token(token).role is Role.WORK
    assert "anna" in run("--users").stdout and token not in run("--users").stdout
    assert run("--remove-user", "anna").exit_code == 0
    assert json.loads((folder / FILE).read_text())["users"] == []
    assert run("--remove-user", "anna").exit_code == 2
