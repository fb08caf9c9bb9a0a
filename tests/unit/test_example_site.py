"""The example site has only the faults that examples/README.md lists."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest

from periplus.settings import read_settings

ENDLESS = ("/calendar/", "/booking/")


class Links(HTMLParser):
    """Values of href and src, and the ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.add(values.get("id") or "")
        self.found += [values[name] for name in ("href", "src") if name in values]


@pytest.fixture(scope="module")
def port():
    command = [sys.executable, "-m", "periplus", "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            yield urlsplit(child.stdout.readline().decode().split()[-1]).port
        finally:
            child.send_signal(signal.SIGINT)
    assert child.returncode in (0, 130)


def get(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def crawled(port):
    """(status, text) by path of every page that links lead to, except the endless ones and the slow one."""
    pages, queue = {}, ["/"]
    while queue:
        path = queue.pop()
        if (
            path in pages
            or path == "/en/large-chart.html"
            or (path.startswith(ENDLESS) and any(p.startswith(path[:9]) for p in pages))
        ):
            continue
        status, fields, body = get(port, path)
        pages[path] = (status, body.decode("latin-1"))
        queue += [fields["Location"]] if "Location" in fields else []
        if fields.get("Content-Type", "").startswith("text/html") and status == 200:
            targets = (urljoin(path, link.partition("#")[0]) for link in Links(pages[path][1]).found)
            queue += [target for target in targets if target.startswith("/")]
    return pages


def test_only_the_planted_links_are_broken(crawled):
    assert {path for path, (status, _) in crawled.items() if status == 404} == {
        "/documents/register-1780.html",
        "/en/ports/old-quay-plan.html",
    }
    assert len([path for path, (status, _) in crawled.items() if status == 200 and path.endswith(".html")]) >= 60


def test_only_the_planted_fragment_is_broken(crawled):
    dead = set()
    for path, (_, text) in crawled.items():
        for link in Links(text).found:
            target, _, fragment = link.partition("#")
            if fragment and fragment not in Links(crawled[urljoin(path, target)][1]).ids:
                dead.add(link)
    assert dead == {"/en/glossary.html#piles-and-dolphins"}


def test_redirects_and_duplicates_are_the_planted_ones(crawled):
    assert [path for path, (status, _) in crawled.items() if status == 301] == [
        "/old/harbours.html",
        "/archive/harbours.html",
        "/en/harbours/",
    ]
    assert crawled["/en/ports/averby.html"] == crawled["/en/ports/averby-print.html"]
    assert crawled["/cs/zima-ascii.html"][1].isascii()
    assert not crawled["/cs/zima.html"][1].isascii()


def test_titles_are_missing_and_duplicate_only_where_planted(crawled):
    titles = {
        path: re.findall("<title>(.*?)</title>", text)
        for path, (status, text) in crawled.items()
        if status == 200 and path.endswith(".html")
    }
    assert [path for path, title in titles.items() if not title] == ["/en/notes.html"]
    assert {path for path, title in titles.items() if title == ["Log of the month"]} == {
        f"/en/log/{month}.html" for month in ("march", "april", "may")
    }


def test_the_orphan_is_in_the_sitemap_only(crawled, port):
    assert "/en/wrecks.html" not in crawled
    assert f"http://127.0.0.1:{port}/en/wrecks.html".encode() in get(port, "/sitemap.xml")[2]
    assert b"/private/" not in get(port, "/sitemap.xml")[2]
    robots = get(port, "/robots.txt")[2].decode()
    assert "Disallow: /private/" in robots
    assert "Crawl-delay" not in robots


def test_session_ids_and_calendar_never_end(port):
    first, second = (re.findall(r"sid=(\w+)", get(port, "/booking/index.html")[2].decode())[0] for _ in range(2))
    assert first != second
    assert b"/calendar/2027/01.html" in get(port, "/calendar/2026/12.html")[2]


def test_pages_have_the_planted_charsets_and_declarations(port):
    for path, charset, word in (
        ("/cs/index.html", "windows-1250", "přístavů"),
        ("/ru/index.html", "koi8-r", "моряк"),
        ("/el/index.html", "utf-8", "λιμάνια"),
    ):
        _, fields, body = get(port, path)
        assert fields["Content-Type"] == f"text/html; charset={charset}"
        assert word in body.decode(charset)
    for path, charset, word in (
        ("/ru/mayaki.html", "windows-1251", "Маяк"),
        ("/hu/kikotok.html", "iso-8859-2", "kikötő"),
    ):
        _, fields, body = get(port, path)
        assert fields["Content-Type"] == "text/html"
        assert b"charset" not in body
        assert word in body.decode(charset)


def test_the_site_has_a_soft_404_and_answers_304(port):
    status, fields, body = get(port, "/en/pilots/corrin.html")
    assert status == 200
    assert b"Page not found" in body
    assert get(port, "/en/pilots/anders.html", If_None_Match=get(port, "/en/pilots/anders.html")[1]["ETag"])[0] == 304
    assert "ETag" in fields


def test_the_towns_link_to_each_other_and_to_offices_that_answer(port):
    def page(host, path="/"):
        return get(port, path, Host=f"{host}:{port}")

    texts = [page("vellmouth.example", f"/page/{number}.html") for number in range(1, 40)]
    assert {status for status, _, _ in texts} == {200}
    targets = {urlsplit(link).hostname for _, _, body in texts for link in Links(body.decode()).found} - {None}
    assert "tide-tables.example" in targets and "averby.example" in targets
    assert page("tide-tables.example")[0] == 200
    assert page("vellmouth.example", "/page/40.html")[0] == 404


def test_the_settings_of_the_demo_are_valid_and_have_its_port(tmp_path):
    command = [sys.executable, "-m", "periplus", "demo", "--settings", "--port", "8001"]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    (tmp_path / "periplus.toml").write_text(text)
    settings = read_settings(tmp_path / "periplus.toml")
    assert settings.identity.resolve == ("*:8001:127.0.0.1",) and settings.identity.allow_private
