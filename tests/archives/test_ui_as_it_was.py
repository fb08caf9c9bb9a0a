"""Replay of stored pages: without scripts, with their resources, without requests to the web."""

from pathlib import Path
from urllib.parse import quote

import pytest
from test_archive_files import answer, warc

from interface import client
from periplus.settings import settings_from
from periplus_archives.api import import_archives
from stored import page

SHEET = "body { background: url(bg.png) } @import '/gone.css';"
HOME = (
    '<!DOCTYPE html><meta charset="iso-8859-2"><meta http-equiv=Content-Security-Policy content="img-src none">'
    '<base href="/"><link rel=stylesheet href="css/s.css"><title>Home</title><script>alert(1)</script>'
    '<a href="a#part">A</a><a href="/moved">M</a><a href="/never">N</a><a href="https://f.org/x">F</a>'
    '<a href="javascript:alert(1)">J</a><img src="css/bg.png" onerror="alert(1)"><form action="/search"></form>'
)
PNG = "\x89PNG"


def typed(url: str, media_type: str, body: str):
    made = answer(url, body)
    return (*made[:3], [("Content-Type", media_type)], *made[4:])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("replay")
    moved = answer("https://e.org/moved", "", status="301 Moved", head=[("Location", "/a")])
    answers = (
        answer("https://e.org/", HOME),
        answer("https://e.org/a", page("A", "/")),
        moved,
        typed("https://e.org/css/s.css", "text/css", SHEET),
        typed("https://e.org/css/bg.png", "image/png", PNG),
        typed("https://e.org/s.js", "text/javascript", "alert(1)"),
        typed("https://e.org/x.png", "image/png\x7f", PNG),
        answer("https://e.org/404", page("Gone"), status="404 Not Found"),
    )
    (where / "x.warc.gz").write_bytes(warc(*answers))
    settings = settings_from({"keep_parts": True})
    import_archives(where / "e.periplus", (where / "x.warc.gz",), ("https://e.org/",), settings)
    return where


def shown(folder: Path, url: str):
    return client(folder).get("/c/e/as-it-was?url=" + quote(url, safe=""))


def place(url: str) -> str:
    return "/c/e/as-it-was?url=" + quote(url, safe="")


def test_links_lead_to_stored_pages_or_else_to_the_web(folder: Path) -> None:
    answered = shown(folder, "https://e.org/")
    assert (answered.status_code, answered.headers["content-type"]) == (200, "text/html; charset=utf-8")
    text = answered.text
    assert f'href="{place("https://e.org/css/s.css")}"' in text and f'src="{place("https://e.org/css/bg.png")}"' in text
    assert f'href="{place("https://e.org/a")}#part"' in text and f'href="{place("https://e.org/moved")}"' in text
    assert 'href="https://e.org/never"' in text and 'href="https://f.org/x"' in text
    assert "<base href" not in text and 'charset="utf-8"' in text


def test_the_policy_allows_no_script_form_frame_or_foreign_resource(folder: Path) -> None:
    """The exact text, since every addition to the policy allows something."""
    assert shown(folder, "https://e.org/").headers["content-security-policy"] == (
        "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox allow-same-origin"
    )
    assert shown(folder, "https://e.org/css/bg.png").headers["x-content-type-options"] == "nosniff"


def test_resources_have_their_types_and_style_sheets_are_rewritten(folder: Path) -> None:
    sheet, picture = shown(folder, "https://e.org/css/s.css"), shown(folder, "https://e.org/css/bg.png")
    assert sheet.headers["content-type"].startswith("text/css")
    assert (
        f'url("{place("https://e.org/css/bg.png")}")' in sheet.text and '@import "https://e.org/gone.css"' in sheet.text
    )
    assert (picture.headers["content-type"], picture.content.decode()) == ("image/png", PNG)


def test_a_redirect_leads_to_its_target(folder: Path) -> None:
    answered = shown(folder, "https://e.org/moved")
    assert (answered.status_code, answered.headers["location"]) == (303, place("https://e.org/a"))


@pytest.mark.parametrize(
    "url",
    ["https://e.org/404", "https://e.org/never", "https://nowhere.org/", "https://e.org/s.js", "", "javascript:1"],
)
def test_a_page_that_is_not_stored_is_refused_with_a_message(folder: Path, url: str) -> None:
    answered = shown(folder, url)
    assert answered.status_code == 400 and "alert" not in answered.text


def test_the_page_screen_links_to_the_replay_of_a_stored_body(folder: Path) -> None:
    screen = client(folder).get("/c/e/page?url=https://e.org/").text
    assert "As it was" in screen and "/c/e/as-it-was?url=https%3A%2F%2Fe.org%2F" in screen
    assert "As it was" not in client(folder).get("/c/e/page?url=https://e.org/404").text
