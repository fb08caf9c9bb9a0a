"""Pages behind a login with scripts that fetch content: the session applies to their requests, and to no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from voyage import Collection

import browser
from login_site import PASSWORD, LoginSite, served
from periplus.api.collection import Collection as Reader
from periplus.cli.main import main
from periplus.model.page import ALL_PARTS
from periplus_postgres.moving import move

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not browser.PROGRAM, reason="no Chromium here: make test-browser"),
]
MATTER = "Secret matter number 3 of the house"
APP = """<!DOCTYPE html><html lang=en><title>App</title><p>Signed in as ada.</p><div id=root></div><script>
const show = text => { const line = document.createElement("p"); line.textContent = text; root.append(line); };
fetch("/logout").catch(() => show("the way out is closed"));
fetch("/data.json").then(answer => answer.json()).then(data => show(data.text), error => show("no data: " + error));
show("cookies of the page: " + document.cookie);
</script>"""


def run(
    tmp_path: Path, site: LoginSite, start: str, monkeypatch: pytest.MonkeyPatch, *words: str, store: str = ""
) -> Result:
    monkeypatch.setenv("DOOR_PASSWORD", PASSWORD)
    file = tmp_path / "door.toml"
    file.write_text(
        f'form = "{site.url}/login"\nsigned_in = {{ text = "Signed in as" }}\n'
        '[fields]\nusername = "ada"\npassword = "env:DOOR_PASSWORD"\n'
    )
    polite = ["--allow-private", "--mine", "127.0.0.1", "--delay", "0", "--retry-wait", "0.05", "--no-sitemaps", "-q"]
    place = ["-c", store] if store else ["-o", str(tmp_path / "c")]
    order = ["crawl", start, *place, "--login", str(file), "--render", "always", *polite, *words]
    return CliRunner().invoke(main, order, catch_exceptions=False)


def text_of(tmp_path: Path, url: str) -> str:
    with Reader(tmp_path / "c") as reader:
        return reader.page(url).text(ALL_PARTS)


def test_requests_of_a_page_behind_the_login_use_its_session(tmp_path, monkeypatch):
    with served(LoginSite(pages=2)) as site:
        site.markup["/app"], site.data["/data.json"] = APP, f'{{"text": "{MATTER}"}}'
        result = run(tmp_path, site, f"{site.url}/", monkeypatch)
        assert result.exit_code == 0, result.output
        assert "/logout" not in site.paths()
        text = text_of(tmp_path, f"{site.url}/app")
    assert MATTER in text
    assert "the way out is closed" in text
    assert not re.search("cookies of the page: .", text)  # scripts cannot read the session
    assert [secret for secret in site.secrets if secret in text] == []


def test_a_database_stores_data_fetched_by_a_page_behind_the_login(tmp_path, monkeypatch, address):
    with served(LoginSite(pages=2, lasts=5)) as site:
        site.markup["/app"], site.data["/data.json"] = APP, f'{{"text": "{MATTER}"}}'
        result = run(tmp_path, site, f"{site.url}/", monkeypatch, store=address.text)
        assert result.exit_code == 0, result.output
    move(address.text, str(tmp_path / "c"))
    text = text_of(tmp_path, f"{site.url}/app")
    assert MATTER in text
    assert [secret for secret in site.secrets if secret in text] == []


@pytest.mark.parametrize("door", ["redirect", "401"])
def test_the_end_of_a_session_is_detected_in_requests_of_rendered_pages(tmp_path, monkeypatch, door):
    with served(LoginSite(pages=1, lasts=7, door=door)) as site:
        for number in range(8):
            path = f"/data/{number}.json"
            site.data[path] = f'{{"text": "datum {number} of the house"}}'
            site.markup[f"/app/{number}"] = APP.replace("/data.json", path)
        result = run(tmp_path, site, f"{site.url}/", monkeypatch)
        assert result.exit_code == 0, result.output
        assert len(site.paths("POST")) > 1
        for number in range(8):
            assert f"datum {number} of the house" in text_of(tmp_path, f"{site.url}/app/{number}")
    assert Collection(tmp_path / "c").sane() == []


def test_a_page_of_another_host_gets_no_data_behind_the_login(tmp_path, monkeypatch):
    with served(LoginSite(pages=2)) as site, served(LoginSite()) as other:
        inside = f"{site.url}/data.json"
        site.data["/data.json"] = f'{{"text": "{MATTER}"}}'
        other.sessions["guest"] = 1000
        ways = "".join(
            f"<script src='{inside}?by={way}'></script><link rel=stylesheet href='{inside}?by={way}2'>" for way in "ab"
        )
        evil = f"""<!DOCTYPE html><html lang=en><title>Evil</title><p>evil as sent</p>{ways}
            <img src="{inside}?by=image"><script>
            fetch("{inside}?by=fetch", {{credentials: "include", mode: "no-cors"}});
            fetch("/away?by=redirect", {{credentials: "include", mode: "no-cors"}});
            new Worker(URL.createObjectURL(new Blob(["fetch('{inside}?by=worker', {{mode: 'no-cors'}})"])));</script>"""
        other.markup["/evil"], other.goes_to, other.door = evil, f"{inside}?by=redirect", "open"
        site.goes_to = f"{other.url}/evil"
        result = run(tmp_path, site, f"{site.url}/", monkeypatch, "--scope", "any", "--screenshots")
        assert result.exit_code in (0, 3), result.output
        assert "/evil" in other.paths()
        assert "evil as sent" in text_of(tmp_path, f"{other.url}/evil")
        by = [path for path in site.paths() if "by=" in path]
    # for the crawl the redirect is a link of the page (`goes_to`); its answer goes to no script
    assert by in ([], ["/data.json?by=redirect"])
    assert MATTER not in text_of(tmp_path, f"{other.url}/evil")
