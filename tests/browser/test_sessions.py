"""Crawls behind a login on loopback, which logs all requests."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import socket
import sqlite3
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from login_site import PASSWORD, TOKEN, LoginSite, served
from periplus.api import crawling
from periplus.cli.main import main
from periplus.model.visit import Purpose
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus_postgres.connection import connect

SIGN = 'signed_in = { text = "Signed in as" }\n'
FIELDS = '[fields]\nusername = "ada"\npassword = "env:DOOR_PASSWORD"\n'


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOOR_PASSWORD", PASSWORD)
    monkeypatch.setenv("DOOR_TOKEN", TOKEN)


def form_login(site: LoginSite, more: str = "") -> str:
    return f'form = "{site.url}/login"\n{SIGN}{more}{FIELDS}'


def run(tmp_path: Path, site: LoginSite, login: str, *words: str, verb: str = "crawl") -> Result:
    file = tmp_path / "door.toml"
    file.write_text(login, "utf-8")
    target = [f"{site.url}/", "-o", str(tmp_path / "c")] if verb == "crawl" else ["-c", str(tmp_path / "c")]
    polite = ["--allow-private", "--mine", "127.0.0.1", "--delay", "0", "--retry-wait", "0.05", "--no-sitemaps"]
    return CliRunner().invoke(main, [verb, *target, "--login", str(file), *polite, "-q", *words])


def pages(tmp_path: Path) -> dict[str, str]:
    """Path and reason of each URL."""
    with contextlib.closing(sqlite3.connect(tmp_path / "c" / "collection.db")) as connection:
        rows = connection.execute("SELECT text, reason FROM url").fetchall()
    return {"/" + text.split("/", 3)[3]: reason for text, reason in rows}


def read(tmp_path: Path) -> set[str]:
    return {path for path, reason in pages(tmp_path).items() if reason == "ok"}


def texts(tmp_path: Path) -> str:
    result = CliRunner().invoke(main, ["pages", "-c", str(tmp_path / "c"), "--format", "json"])
    assert result.exit_code == 0, result.output
    return result.output


def whole(site: LoginSite) -> set[str]:
    return {"/", *(f"/p/{number}" for number in range(site.pages))}


def leaks(folder: Path, secrets: list[str]) -> list[tuple[str, str]]:
    """Places of a secret in the files of a folder. An archive in it shows the compressed data."""
    return [
        (path.name, secret)
        for path in folder.rglob("*")
        if path.is_file()
        for secret in secrets
        if secret.encode() in path.read_bytes()
    ]


def test_a_form_is_submitted_as_served_and_all_pages_behind_it_are_fetched(tmp_path):
    with served(LoginSite()) as site:
        result = run(tmp_path, site, form_login(site))
    assert result.exit_code == 0, result.output
    assert read(tmp_path) == whole(site)
    assert site.paths("POST") == ["/login?next=/"]
    assert site.paths()[:2] == ["/robots.txt", "/login"]


@pytest.mark.parametrize("door", ["redirect", "form", "401"])
def test_a_logout_during_a_crawl_is_detected_and_affected_pages_are_fetched_again(tmp_path, door):
    with served(LoginSite(lasts=6, door=door)) as site:
        result = run(tmp_path, site, form_login(site))
    assert result.exit_code == 0, result.output
    assert read(tmp_path) == whole(site)
    assert len(site.paths("POST")) >= 3
    assert set(pages(tmp_path).values()) <= {"ok", "scope"}
    assert "Sign in" not in texts(tmp_path)


def test_a_crawl_that_is_signed_out_pauses_and_goes_on_after_a_new_sign_in(tmp_path):
    with served(LoginSite(door="401")) as site:
        site.sessions["mine"] = 6
        login = f'hosts = ["{site.url}"]\ncookies = {{ sid = "mine" }}\ncheck = "{site.url}/"\n{SIGN}'
        first = run(tmp_path, site, login, "--max-time", "60")
        assert "signed out, so the crawl pauses" in " ".join(first.output.split())
        with contextlib.closing(sqlite3.connect(tmp_path / "c" / "collection.db")) as connection:
            assert connection.execute("SELECT state FROM run").fetchall() == [("stopped",)]
        assert 0 < len(read(tmp_path)) < len(whole(site))
        site.sessions["mine"] = 10**6
        again = run(tmp_path, site, login)
    assert (again.exit_code, read(tmp_path)) == (0, whole(site)), again.output


def test_a_sign_missing_on_some_pages_is_checked_on_a_page_that_has_it(tmp_path):
    with served(LoginSite(pages=40, lasts=25, sign_on_pages=False, door="form")) as site:
        result = run(tmp_path, site, form_login(site))
    assert result.exit_code == 0, result.output
    assert read(tmp_path) == whole(site)
    with served(LoginSite(pages=40, sign_on_pages=False)) as site:
        run(tmp_path, site, form_login(site), "--fresh")
    assert read(tmp_path) == whole(site)
    assert (
        len(site.paths()) <= 1 + 1 + 41 + 3 + 1
    )  # robots.txt, the form, the pages, a check after every 16, the landing page


def test_logout_and_delete_links_are_never_requested(tmp_path):
    with served(LoginSite()) as site:
        result = run(tmp_path, site, form_login(site, 'never = ["/p/1$"]\nallow = ["x"]\n'))
        checked = run(tmp_path, site, form_login(site), verb="check")
    assert result.exit_code == 0, result.output
    assert checked.exit_code in (0, 1), checked.output
    assert not {"/logout", "/item/3/delete", "/Special:UserLogout"} & {one.path for one in site.asked}
    assert "/p/1" not in read(tmp_path)
    assert pages(tmp_path)["/logout"] == "scope"


@pytest.mark.parametrize(
    "way", ['bearer = "env:DOOR_TOKEN"', '[headers]\nAuthorization = "Bearer PLAIN"', 'cookies = { sid = "given-sid" }']
)
def test_a_header_a_bearer_token_and_cookies_log_in_too(tmp_path, way):
    with served(LoginSite()) as site:
        site.sessions["given-sid"] = 1000
        hosts = f'hosts = ["{site.url}"]\n'
        result = run(tmp_path, site, hosts + way.replace("PLAIN", TOKEN))
    assert result.exit_code == 0, result.output
    assert read(tmp_path) == whole(site)
    assert leaks(tmp_path / "c", [TOKEN, "given-sid"]) == []


@pytest.mark.parametrize("factor", [1, 1000])
def test_a_firefox_profile_made_by_hand_logs_in(tmp_path, factor):
    profile = tmp_path / "profile"
    profile.mkdir()
    with served(LoginSite(door="401")) as site, contextlib.closing(sqlite3.connect(profile / "cookies.sqlite")) as jar:
        site.sessions["by-hand"] = 10**6
        jar.execute("CREATE TABLE moz_cookies (host, path, isSecure, expiry, name, value)")
        rows = [("127.0.0.1", "/", 0, 4_000_000_000 * factor, "sid", "by-hand"), (".x.test", "/", 1, 0, "own", "other")]
        jar.executemany("INSERT INTO moz_cookies VALUES (?, ?, ?, ?, ?, ?)", rows)
        jar.commit()
        login = f'hosts = ["{site.url}"]\ncookie_file = "{profile}"\ncheck = "{site.url}/"\n{SIGN}'
        result = run(tmp_path, site, login)
        assert (result.exit_code, read(tmp_path)) == (0, whole(site)), result.output
        assert not any("other" in asked.cookie for asked in site.asked)
        empty = run(tmp_path, site, login.replace("/profile", ""), "--fresh")
    assert empty.exit_code == 2 and "is Firefox closed?" in empty.output


def test_a_netscape_cookie_file_logs_in(tmp_path):
    with served(LoginSite()) as site:
        site.sessions["filed-sid"] = 1000
        jar = tmp_path / "cookies.txt"
        jar.write_text("# Netscape HTTP Cookie File\n#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\tfiled-sid\n")
        login = f'hosts = ["{site.url}"]\ncookie_file = "{jar}"\ncheck = "{site.url}/"\n{SIGN}'
        result = run(tmp_path, site, login)
    assert result.exit_code == 0, result.output
    assert read(tmp_path) == whole(site)


def test_a_login_is_sent_only_to_its_hosts(tmp_path):
    with served(LoginSite(pages=2)) as other, served(LoginSite(pages=3)) as site:
        site.goes_to = f"{other.url}/p/1"
        login = form_login(site, 'headers = { X-Key = "env:DOOR_TOKEN", Authorization = "env:DOOR_TOKEN" }\n')
        result = run(tmp_path, site, login, "--scope", "any")
    assert result.exit_code in (0, 3), result.output
    assert "/p/1" in other.paths()
    assert [one for one in other.asked if one.cookie or one.authorization] == []
    assert all(one.authorization == TOKEN for one in site.asked if one.path != "/robots.txt")


def test_no_file_of_a_collection_contains_a_secret(tmp_path):
    with served(LoginSite(lasts=6)) as site:
        run(tmp_path, site, form_login(site), "--keep-xml")
        run(tmp_path, site, form_login(site), verb="refresh")
    folder = tmp_path / "c"
    for file in (folder / "a.warc.gz", folder / "a.wacz"):
        made = CliRunner().invoke(main, ["export", file.name.split(".")[1], "-c", str(folder), "-o", str(file)])
        assert made.exit_code == 0, made.output
    archive = gzip.decompress((folder / "a.warc.gz").read_bytes())
    (folder / "a.warc").write_bytes(archive)
    zipfile.ZipFile(folder / "a.wacz").extractall(folder / "unzipped")
    assert b"sid=" not in archive  # set by answers to the form, which are not stored
    assert b"seen=[masked]" in archive
    assert leaks(folder, [*site.secrets, "5eenv41ue"]) == []


def test_a_wrong_password_ends_the_crawl_with_the_missing_sign(tmp_path, monkeypatch):
    monkeypatch.setenv("DOOR_PASSWORD", "no such word")
    with served(LoginSite()) as site:
        result = run(tmp_path, site, form_login(site))
    assert result.exit_code == 4
    assert "the text 'Signed in as' is missing" in result.output
    assert "a page titled 'Sign in', with a form that asks for a password" in result.output
    assert "no such word" not in result.output
    assert len(site.paths("POST")) == 1  # further attempts could lock the account
    assert not [path for path in site.paths() if path.startswith("/p/")]


def test_robots_txt_and_address_rules_apply_to_the_login(tmp_path):
    with served(LoginSite(robots="User-agent: *\nDisallow: /login\n")) as site:
        result = run(tmp_path, site, form_login(site))
        assert result.exit_code == 4
        assert "robots.txt line 2 (Disallow: /login) disallows" in result.output
        assert site.paths() == ["/robots.txt"]
        again = run(tmp_path, site, form_login(site), "--no-allow-private")
    assert again.exit_code == 4
    assert site.paths("POST") == []


@pytest.mark.parametrize(
    ("login", "message"),
    [
        ("form = 'https://a.test/login'", "a form needs fields, and signed_in"),
        ("feilds = {}", "unknown key 'feilds' (is it fields?)"),
        ("hosts = ['a.test']", "it has nothing to sign in with"),
        ("hosts = ['a.test']\nbearer = 'env:NOT_SET_HERE'", "the environment has no variable NOT_SET_HERE"),
        ("bearer = 'x'", "hosts must name where the login is sent"),
        (
            "hosts = ['a.test']\nform = 'https://b.test/l'\nfields = {a='1'}\nsigned_in={text='x'}",
            "form is on https://b",
        ),
        ("hosts = ['a.test']\nbearer = 'x'\nsigned_in = {text='x'}", "signed_in without a form needs check"),
        ("form = 'https://a.test/l'\nfields = {a='1'}\nsigned_in={selector='a[['}", "invalid CSS selector"),
        ("= x", "it is not valid TOML"),
    ],
)
def test_an_invalid_login_is_refused_before_any_request(tmp_path, login, message):
    result = run(tmp_path, LoginSite(url="https://a.test"), login)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "c").exists()


def test_secrets_in_the_collection_are_refused(tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "periplus.toml").write_text('[login.door]\nhosts = ["a.test"]\nbearer = "plain"\n')
    result = CliRunner().invoke(main, ["crawl", "https://a.test/", "-o", str(folder), "--login", "door"])
    assert result.exit_code == 2
    assert "a secret must not be stored in the collection's folder" in result.output
    assert "plain" not in result.output


def test_a_form_without_the_fields_is_reported_with_its_fields(tmp_path):
    with served(LoginSite()) as site:
        result = run(tmp_path, site, form_login(site).replace("username", "user"))
    assert result.exit_code == 4
    assert "has all the fields password, user; it has: csrf, go, keep, password, username" in result.output


def test_a_form_on_a_foreign_host_logs_in_to_the_crawled_host(tmp_path):
    with served(LoginSite(lasts=9)) as door, served(LoginSite(door="401")) as site:
        site.sessions = door.sessions
        hosts = f'hosts = ["{door.url}", "{site.url}"]\n'
        result = run(tmp_path, site, hosts + form_login(door))
    assert result.exit_code == 0, result.output
    assert whole(site) <= read(tmp_path)
    assert site.paths("POST") == []
    assert not [path for path in door.paths() if path.startswith("/p/")]


def test_a_lost_queue_entry_of_a_form_is_restored(tmp_path, monkeypatch):
    """Otherwise a crawl that waits for it would wait for ever."""
    commit, lost = SqliteCrawlStore.commit, []

    def losing(self, worker, batch, now):
        logins = [one for one in batch.side_requests if one.request.purpose is Purpose.LOGIN]
        if logins and len(lost) < 2:
            lost.extend(logins)
            batch = replace(batch, side_requests=tuple(one for one in batch.side_requests if one not in logins))
        return commit(self, worker, batch, now)

    monkeypatch.setattr(SqliteCrawlStore, "commit", losing)
    monkeypatch.setattr("periplus_browser.session.LIST_AGAIN_S", 0.2)
    with served(LoginSite()) as door, served(LoginSite(door="401")) as site:
        site.sessions = door.sessions
        hosts = f'hosts = ["{door.url}", "{site.url}"]\n'
        result = run(tmp_path, site, hosts + form_login(door), "--max-time", "30")
    assert len(lost) == 2
    assert result.exit_code == 0, result.output
    assert whole(site) <= read(tmp_path)


def test_an_unreachable_form_ends_the_crawl_with_its_address(tmp_path, monkeypatch):
    monkeypatch.setattr("periplus.acquire.leases.Commits.request_lease", lambda self, request: None)
    monkeypatch.setattr("periplus_browser.session.MOST_LISTED_S", 0.5)
    with served(LoginSite()) as door, served(LoginSite(door="401")) as site:
        hosts = f'hosts = ["{door.url}", "{site.url}"]\n'
        result = run(tmp_path, site, hosts + form_login(door), "--max-time", "30")
    assert result.exit_code == 4
    assert f"{door.url}/login could not be requested in" in " ".join(result.output.split())


def test_a_form_on_another_host_is_requested_once(tmp_path):
    """Its tokens are valid once: a second request might replace the cookie of the first."""
    with served(LoginSite()) as door, served(LoginSite(door="401")) as site:
        site.sessions = door.sessions
        hosts = f'hosts = ["{door.url}", "{site.url}"]\n'
        result = run(tmp_path, site, hosts + form_login(door), "--delay", "0.05")
    assert result.exit_code == 0, result.output
    assert door.paths() == ["/robots.txt", "/login", "/"]
    with contextlib.closing(sqlite3.connect(tmp_path / "c" / "collection.db")) as connection:
        visits = connection.execute("SELECT outcome FROM visit WHERE purpose = 'login'").fetchall()
    assert visits == []  # its answer is not stored


@pytest.mark.parametrize("delay", ["0", "0.3"])
def test_a_form_whose_host_is_down_ends_the_crawl(tmp_path, delay):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with served(LoginSite(door="401")) as site:
        door = LoginSite(url=f"http://127.0.0.1:{port}")
        hosts = f'hosts = ["{door.url}", "{site.url}"]\n'
        result = run(tmp_path, site, hosts + form_login(door), "--delay", delay, "--max-time", "30")
    assert result.exit_code == 4
    assert f"{door.url}/login was not requested: host-down" in " ".join(result.output.split())


def test_a_sign_may_be_in_the_data_of_the_checked_page(tmp_path):
    with served(LoginSite()) as site:
        site.data["/api/me"] = '{"user": "ada", "may": ["read"]}'
        login = f'hosts = ["{site.url}"]\nbearer = "env:DOOR_TOKEN"\ncheck = "{site.url}/api/me"\n'
        fine = run(tmp_path, site, login + """signed_in = { text = '"user": "ada"' }""")
        assert fine.exit_code == 0, fine.output
        assert read(tmp_path) == whole(site)
        other = run(tmp_path, site, login + """signed_in = { text = '"user": "eve"' }""", "--fresh")
    assert other.exit_code == 4, other.output
    assert "is missing on" in other.output


def test_a_table_of_periplus_toml_signs_in_for_a_refresh_too(tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    with served(LoginSite()) as site:
        table = form_login(site).replace("[fields]", "[login.door.fields]")
        (folder / "periplus.toml").write_text(f'[settings]\nlogin = ["door"]\n\n[login.door]\n{table}')
        polite = ["--allow-private", "--mine", "127.0.0.1", "--delay", "0", "-q"]
        first = CliRunner().invoke(main, ["crawl", f"{site.url}/", "-o", str(folder), *polite])
        site.sessions.clear()
        again = CliRunner().invoke(main, ["refresh", "-c", str(folder), *polite])
    assert (first.exit_code, again.exit_code) == (0, 0), first.output + again.output
    assert read(tmp_path) == whole(site)
    assert len(site.paths("POST")) == 2


@pytest.mark.parametrize("apart", [False, True])
def test_a_survey_fetches_pages_behind_a_login_with_the_form_on_any_host(tmp_path, apart):
    with served(LoginSite(lasts=9)) as door, served(LoginSite(lasts=9, door="401" if apart else "redirect")) as site:
        if apart:
            site.sessions = door.sessions
        file, folder = tmp_path / "door.toml", str(tmp_path / "s")
        at = door if apart else site
        file.write_text(f'hosts = ["{door.url}", "{site.url}"]\n' + form_login(at), "utf-8")
        words = ["survey", "create", f"{site.url}/", "-c", folder, "--pages", "10"]
        assert CliRunner().invoke(main, words).exit_code == 0
        polite = ["--allow-private", "--mine", "127.0.0.1", "--delay", "0", "--retry-wait", "0.05", "--max-time", "60"]
        result = CliRunner().invoke(main, ["survey", "run", "-c", folder, "--login", str(file), *polite])
        assert result.exit_code == 0, result.output
        with contextlib.closing(sqlite3.connect(tmp_path / "s" / "collection.db")) as connection:
            texts_of = connection.execute("SELECT title FROM page").fetchall()
    assert len(at.paths("POST")) >= 2
    assert len(texts_of) == 10 and ("Sign in",) not in texts_of


def test_a_token_in_each_request_allows_several_workers(tmp_path, monkeypatch):
    begin, begun = crawling.start_worker, []

    def noted(order, run_id):
        begun.append(run_id)
        return begin(order, run_id)

    monkeypatch.setattr(crawling, "start_worker", noted)
    with served(LoginSite(pages=30)) as site, served(LoginSite(pages=30)) as other:
        hosts = f'hosts = ["{site.url}", "{other.url}"]\nbearer = "env:DOOR_TOKEN"\n'
        several = (f"{other.url}/", "--workers", "2", "--delay", "0.05")
        result = run(tmp_path, site, hosts, *several)
        assert result.exit_code == 0, result.output
        assert len(begun) == 1
        for one in (site, other):
            asked = [request for request in one.asked if request.path != "/robots.txt"]
            assert len(asked) >= 31
            assert {request.authorization for request in asked} == {f"Bearer {TOKEN}"}
        begun.clear()
        cookies = f'hosts = ["{site.url}"]\ncookies = {{ sid = "env:DOOR_TOKEN" }}\n'
        run(tmp_path, site, cookies, *several, "--fresh")
    assert begun == []


def test_the_debug_log_contains_no_secret(tmp_path, caplog):
    caplog.set_level("DEBUG")
    with served(LoginSite(lasts=6)) as site:
        result = run(tmp_path, site, form_login(site), "-vv")
    assert "is in" in caplog.text
    assert [secret for secret in site.secrets if secret in caplog.text + result.output] == []


def test_the_delay_applies_to_all_requests_including_the_login(tmp_path):
    with served(LoginSite(pages=4, lasts=3)) as site:
        run(tmp_path, site, form_login(site), "--delay", "0.1")
    gaps = [later.at - earlier.at for earlier, later in itertools.pairwise(site.asked)]
    assert len(site.paths("POST")) > 1
    assert min(gaps) > 0.08  # the server sees each request some milliseconds after it was sent


def test_a_form_on_a_foreign_host_works_in_a_database_too(tmp_path, address):
    with served(LoginSite(lasts=9)) as door, served(LoginSite(door="401")) as site:
        site.sessions = door.sessions
        file = tmp_path / "door.toml"
        file.write_text(f'hosts = ["{door.url}", "{site.url}"]\n' + form_login(door), "utf-8")
        words = ["--login", str(file), "--allow-private", "--mine", "127.0.0.1", "--delay", "0", "--no-sitemaps", "-q"]
        more = ["--max-time", "60", "-c", address.text]
        result = CliRunner().invoke(main, ["crawl", f"{site.url}/", *more, *words])
    assert result.exit_code == 0, result.output
    with connect(address) as connection:
        (count,) = connection.execute("SELECT count(*) FROM url WHERE reason = 'ok'").fetchone()
    assert count >= len(whole(site))


def test_login_works_for_a_collection_in_a_database(tmp_path, address):
    with served(LoginSite(lasts=6)) as site:
        file = tmp_path / "door.toml"
        file.write_text(form_login(site), "utf-8")
        words = ["--login", str(file), "--allow-private", "--mine", "127.0.0.1", "--delay", "0", "--no-sitemaps", "-q"]
        result = CliRunner().invoke(main, ["crawl", f"{site.url}/", "-c", address.text, *words])
    assert result.exit_code == 0, result.output
    assert f"in all {len(whole(site))} read" in result.output
    with connect(address) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        rows = [str(row) for (name,) in tables for row in connection.execute(f'SELECT * FROM "{name}"')]
    assert len(rows) > len(whole(site))
    assert [secret for secret in site.secrets if any(secret in row for row in rows)] == []
