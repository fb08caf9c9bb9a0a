"""Local folders as hosts: URLs, responses from disk, and paths shown to users."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from periplus.acquire.clock import SystemClock
from periplus.acquire.folders import FolderTransport, is_path, starts_of
from periplus.acquire.transport import Wire
from periplus.document.media_types import may_be_read
from periplus.errors import InvalidUrl, UsageError
from periplus.model.ports import Transport
from periplus.model.visit import Cut, Purpose, Request
from periplus.model.web import HostKey, Url
from periplus.settings import FetchLimits, Identity
from periplus.urls.folders import as_file_links, folder_host, folders_of, parts_of, path_formatter, url_of_path

ROOT = "http://site.alt"


class Nowhere:
    """A network that never answers."""

    in_flight = 0

    def __init__(self):
        self.asked, self.closed = [], False

    def start(self, request, before=0.0):
        self.asked.append(request.url)

    def wait(self, timeout_s):
        return ()

    def close(self):
        self.closed = True


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    for name, text in {
        "index.html": "<title>Home</title>", "guide/a b.html": "<p>a", "guide/Ü.md": "# Ü", "empty/x.bin": "\0\1",
        "film.mp4": "film", "pages.tar.gz": "packed", "LICENSE": "free", ".git/config": "secret", "odd%2Fname.txt": "x",
    }.items():  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (tmp_path / "outside.html").write_text("secret")
    (root / "out.html").symlink_to(tmp_path / "outside.html")
    (root / "up").symlink_to(tmp_path)
    (root / "in.html").symlink_to(root / "index.html")
    os.mkfifo(root / "pipe.html")
    return root


def transport(
    site: Path,
    limits: FetchLimits = FetchLimits(),  # noqa: B008 - frozen
    network: Transport | None = None,
) -> FolderTransport:
    wire = Wire(limits, Identity(), 8, frozenset(), may_be_read, may_be_read)
    return FolderTransport(network or Nowhere(), {HostKey("site.alt:80"): site}, wire, SystemClock())


def answer(site: Path, path: str, purpose: Purpose = Purpose.PAGE, etag: str = "", limits: FetchLimits | None = None):
    wire = transport(site, limits or FetchLimits())
    wire.start(Request(Url(ROOT + path), purpose, etag=etag))
    assert wire.in_flight == 1
    (response,) = wire.wait(5.0)
    assert wire.in_flight == 0
    return response


@pytest.mark.parametrize(
    ("path", "status", "start"),
    [
        ("/", 200, b"<title>Home"),
        ("/index.html", 200, b"<title>Home"),
        ("/index.html?version=2", 200, b"<title>Home"),
        ("/in.html", 200, b"<title>Home"),
        ("/guide/a%20b.html", 200, b"<p>a"),
        ("/guide/%C3%9C.md", 200, b"# \xc3\x9c"),
        ("/odd%252Fname.txt", 200, b"x"),
        ("/LICENSE", 200, b"free"),
        ("/guide", 301, b""),
        ("/INDEX.html", 404, b""),
        ("/Guide/a%20b.html", 404, b""),
        ("/index.html/", 404, b""),
        ("/odd%2Fname.txt", 404, b""),
        ("/%2e%2e/outside.html", 404, b""),
        ("/..%2foutside.html", 404, b""),
        ("/a%00b", 404, b""),
        ("/" + "x" * 5000, 404, b""),
        ("/pipe.html", 404, b""),
        ("/out.html", 403, b""),
        ("/up/outside.html", 403, b""),
        ("/missing.html", 404, b""),
    ],
)
def test_a_folder_answers_like_a_file_server_and_never_from_outside(site, path, status, start):
    response = answer(site, path)
    assert (response.status, response.cause) == (status, None)
    assert response.body.startswith(start) and b"secret" not in response.body


def test_a_folder_redirects_to_its_url_with_a_slash_and_lists_its_files(site):
    assert answer(site, "/guide").headers.get("location") == "http://site.alt/guide/"
    page = answer(site, "/guide/").body.decode()
    assert '<a href="./a%20b.html">a b.html</a>' in page and '<a href="./%C3%9C.md">Ü.md</a>' in page
    (site / "index.html").unlink()
    home = answer(site, "/").body.decode()
    assert "LICENSE" in home and '<a href="./guide/">guide</a>' in home and ".git" not in home
    assert '<meta name="robots" content="noindex">' in home


def test_headers_have_type_size_and_etag_and_an_unchanged_file_gets_304(site):
    first = answer(site, "/index.html")
    assert first.headers.get("content-type") == "text/html"
    assert answer(site, "/guide/%C3%9C.md").headers.get("content-type") == "text/markdown"
    assert first.headers.get("content-length") == "19"
    tag = first.headers.get("etag")
    assert answer(site, "/index.html", etag=tag).status == 304
    (site / "index.html").write_text("<title>Changed</title>")
    assert answer(site, "/index.html", etag=tag).status == 200


@pytest.mark.parametrize(
    ("path", "cut"),
    [("/film.mp4", Cut.NOT_WANTED), ("/pages.tar.gz", Cut.NOT_WANTED), ("/empty/x.bin", Cut.NOT_WANTED)],
)
def test_files_of_unread_types_are_not_read_from_disk(site, path, cut):
    assert (answer(site, path).cut, answer(site, path).body) == (cut, b"")
    assert answer(site, path, Purpose.HEAD).status == 200


def test_a_long_file_is_cut_at_the_limit(site):
    (site / "long.html").write_text("x" * 5_000)
    limits = FetchLimits(body_bytes=1_024)
    response = answer(site, "/long.html", limits=limits)
    assert (len(response.body), response.cut) == (1_024, Cut.BODY_LIMIT)


def test_other_hosts_go_to_the_network(site):
    nowhere = Nowhere()
    wire = transport(site, network=nowhere)
    wire.start(Request(Url("http://example.org/")))
    wire.start(Request(Url("http://other.alt/")))
    assert nowhere.asked == ["http://example.org/", "http://other.alt/"]
    assert wire.wait(0.0) == ()
    wire.close()
    assert nowhere.closed


def test_starts_are_folders_files_or_urls(site, monkeypatch):
    monkeypatch.chdir(site.parent)
    entry = f"site.alt={site}"
    for text in ("./site", "site", "./site/", str(site), f"file://{site}", f"file:{site}/"):
        assert starts_of([text]) == ((Url("http://site.alt/"),), (entry,)), text
    assert starts_of(["./site/guide/a b.html"]) == (
        (Url("http://guide.alt/a%20b.html"),), (f"guide.alt={site}/guide",),
    )  # fmt: skip
    assert starts_of([f"file://{site}/guide/a%20b.html#top"])[0] == (Url("http://guide.alt/a%20b.html"),)
    assert starts_of(["example.org", "./site"])[0] == (Url("https://example.org/"), Url("http://site.alt/"))
    host = folder_host(site.parent)
    markdown = starts_of(["./site/guide/Ü.md"])
    assert markdown == ((Url(f"http://{host}/site/guide/%C3%9C.md"),), (f"{host}={site.parent}",))
    (site.parent / "example.org").mkdir()
    assert starts_of(["example.org"]) == ((Url("https://example.org/"),), ())
    assert not is_path("missing") and not is_path("https://example.org/")
    for text, error in (("./missing", UsageError), ("file://server/share", UsageError), ("mailto:a@b.c", InvalidUrl)):
        with pytest.raises(error):
            starts_of([text])


@pytest.mark.parametrize(
    ("name", "host"),
    [("docs", "docs.alt"), ("Q2 Report (final)", "q2-report-final.alt"), ("Příručka", "prirucka.alt"),
     ("книга", "folder.alt"), ("a" * 80, "a" * 60 + ".alt"), ("--x--", "x.alt")],
)  # fmt: skip
def test_a_folder_becomes_a_host_with_its_name(name, host):
    assert folder_host(Path("/srv") / name) == host


def test_entries_of_the_setting_are_checked():
    assert folders_of(["docs.alt=/srv/docs"]) == {"docs.alt:80": Path("/srv/docs")}
    for entries in (["docs=/srv"], ["docs.alt=srv"], ["docs.alt"], ["example.org=/srv"], ["a.alt=/x", "a.alt=/y"]):
        with pytest.raises(UsageError):
            folders_of(entries)


def test_names_are_the_same_after_conversion_to_a_url_and_back():
    for name in ("a b", "100%", "Ü", "a#b?c", "x\udcff", "a%2Fb", "...", "a;b=c"):
        url = url_of_path("x.alt", ["d", name], is_folder=False)
        assert parts_of(url.removeprefix("http://x.alt")) == ("d", name)
    assert parts_of("/a/../b") is None


def test_paths_are_shown_relative_to_the_current_folder():
    folders = folders_of(["docs.alt=/home/u/docs"])
    shown = path_formatter(folders, Path("/home/u"))
    assert shown("http://docs.alt/guide/a%20b.html#top") == "docs/guide/a b.html#top"
    assert shown("leads to http://docs.alt/x.html, at last") == "leads to docs/x.html, at last"
    assert shown("http://docs.alt/") == "docs/" and shown("http://other.alt/") == "http://other.alt/"
    assert path_formatter(folders, Path("/home/u/docs"))("http://docs.alt/a.md?x=1") == "a.md?x=1"
    assert path_formatter(folders, Path("/tmp"))("http://docs.alt/a.md") == "/home/u/docs/a.md"
    assert path_formatter({}, Path("/tmp"))("http://docs.alt/a.md") == "http://docs.alt/a.md"
    assert as_file_links(folders, '<a href="http://docs.alt/a%20b">docs.alt</a>') == (
        '<a href="file:///home/u/docs/a%20b">docs</a>'
    )
