"""The login form in a collection's settings: it writes tables, and never a secret."""

from __future__ import annotations

import tomllib

import pytest

from interface import client, token_of
from periplus.errors import UsageError
from periplus.jobs.setting_fields import with_login
from stored import page, stored

HOME = "https://e.org/"
FORM = {
    "login_name": "wiki",
    "login_form": "https://wiki.example.org/login",
    "login_user_field": "user",
    "login_user": "ada",
    "login_secret_field": "pass",
    "login_secret": "env:WIKI_PASSWORD",
    "login_sign": "Log out",
}


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """(client, path of the collection's periplus.toml)."""
    monkeypatch.setenv("WIKI_PASSWORD", "not to be seen")
    stored(tmp_path / "e.periplus", {HOME: page("Home")}, [HOME])
    path = tmp_path / "e.periplus" / "periplus.toml"
    path.write_text("# ours\n[settings]\nretries = 1  # enough\n\n[[site]]\nsort = true\n", "utf-8")
    return client(tmp_path), path


def test_a_login_is_written_as_a_table_without_other_changes(settings):
    asking, path = settings
    token = {"csrf_token": token_of(asking, "/c/e/settings")}
    answer = asking.post("/c/e/login", data=token | FORM)
    assert (answer.status_code, answer.headers["location"]) == (303, "/c/e/settings#login")
    text = path.read_text("utf-8")
    assert "# ours\n" in text and "retries = 1  # enough\n" in text
    assert tomllib.loads(text) == {
        "site": [{"sort": True}],
        "settings": {"retries": 1, "login": ["wiki"]},
        "login": {
            "wiki": {
                "form": "https://wiki.example.org/login",
                "fields": {"user": "ada", "pass": "env:WIKI_PASSWORD"},
                "signed_in": {"text": "Log out"},
            }
        },
    }
    screen = asking.get("/c/e/settings").text
    assert "https://wiki.example.org/login" in screen and "not to be seen" not in screen + text
    token_only = {"login_name": "api", "login_hosts": "api.example.org", "login_bearer": "env:WIKI_PASSWORD"}
    assert asking.post("/c/e/login", data=token | token_only).status_code == 303
    assert tomllib.loads(path.read_text("utf-8"))["settings"]["login"] == ["wiki", "api"]
    for name in ("wiki", "api"):
        assert asking.post("/c/e/login", data=token | {"login_name": name, "remove": "yes"}).status_code == 303
    assert tomllib.loads(path.read_text("utf-8")) == {"site": [{"sort": True}], "settings": {"retries": 1}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"login_secret": "hunter2"}, "give a reference here, not the password"),
        ({"login_secret": "file:/etc/shadow"}, "give a reference here, not the password"),
        ({"login_user": "file:/etc/passwd"}, "write the user name itself here"),
        ({"login_secret": "env:NOT_SET_HERE"}, "the environment has no variable NOT_SET_HERE"),
        ({"login_sign": ""}, "a form needs fields, and signed_in"),
        ({"login_form": "gopher://x"}, "form:"),
        ({"login_name": "a b"}, "a login cannot be called"),
    ],
)
def test_an_invalid_login_is_refused_and_nothing_is_written(settings, given, message):
    asking, path = settings
    before = path.read_text("utf-8")
    form = {"csrf_token": token_of(asking, "/c/e/settings"), **FORM, **given}
    answer = asking.post("/c/e/login", data=form)
    assert answer.status_code == 400 and message in answer.text
    assert "https://wiki.example.org/login" in answer.text or "login_form" in given  # the form keeps its values
    assert path.read_text("utf-8") == before


def test_no_login_is_written_if_other_machines_can_reach_the_server(settings, tmp_path):
    _, path = settings
    before = path.read_text("utf-8")
    asking = client(tmp_path, token="lantern-at-sea")
    asking.post("/login", data={"token": "lantern-at-sea", "csrf_token": token_of(asking, "/login")})
    screen = asking.get("/c/e/settings").text
    assert "Save the login" not in screen and "logins are edited only in" in screen
    answer = asking.post("/c/e/login", data={"csrf_token": token_of(asking, "/c/e/settings"), **FORM})
    assert answer.status_code == 400 and "by hand" in answer.text
    assert path.read_text("utf-8") == before


@pytest.mark.parametrize(
    "text", ["settings = { retries = 1 }\n", '[settings]\nlogin = [\n"b",\n]\n', 'login.b.form = "x"\n', "# only\n"]
)
def test_a_login_is_added_and_removed_in_any_form_of_the_file(text):
    before, login = tomllib.loads(text), {"hosts": ["b.test"], "bearer": "env:X"}
    made = with_login(text, "a", login)
    after = tomllib.loads(made)
    assert after["login"] == before.get("login", {}) | {"a": login}
    names = before.get("settings", {}).get("login", [])
    assert after["settings"] == before.get("settings", {}) | {"login": [*names, "a"]}
    removed = tomllib.loads(with_login(made, "a", {}))
    assert {name: table for name, table in removed.items() if table} == before and text.count("#") == made.count("#")


def test_a_file_whose_logins_are_no_table_is_left_as_it_is():
    with pytest.raises(UsageError, match="by hand"):
        with_login("login = 3\n", "a", {"hosts": ["b.test"]})
