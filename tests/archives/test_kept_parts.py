"""Crawls with `keep_parts`: page resources are fetched and stored once, in folders and in databases."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from postgres_voyage import crawled_into
from voyage import Collection, crawled

from periplus.model.visit import Reason
from periplus.settings import settings_from
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.canonical import canonical, url_id
from periplus_archives.api import export_wacz, import_archives
from periplus_archives.site_copy import export_site
from testweb import Page, PageLink, Server, Site, Web, serve
from testweb.wire import PORT, Answer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
FONT = b"wOF2" + bytes(range(256))
CSS = '@import "more.css"; body { background: url("bg.png") } @font-face { src: url(/f.woff2) }'
HEAD = (
    f'<link rel=stylesheet href="http://parts.test:{PORT}/css/s.css"><link rel=icon href="/i.ico">'
    f'<script src="/s.js"></script><style>p{{background:url(http://parts.test:{PORT}/secret.png)}}</style>'
    '<img src="/p.png"><img srcset="/p.png 1x, /big.png 2x"><video src="/v.mp4"></video><img src="/gone.png">'
)
# path, media type, body
HERE = (
    ("/s.js", "text/javascript", b"let a = 1"),
    ("/p.png", "image/png", PNG),
    ("/big.png", "application/octet-stream", PNG + b"more"),
    ("/i.ico", "image/x-icon", b"\0\0\1\0icon"),
    ("/v.mp4", "video/mp4", b"\0\0\0\x18ftypmp42"),
    ("/file.zip", "application/zip", b"PK\3\4 not a part"),
)
THERE = (
    ("/css/s.css", "text/css", CSS.encode()),
    ("/css/more.css", "text/css; charset=utf-8", "p::before { content: 'ž' }".encode()),
    ("/css/bg.png", "image/png", PNG),
    ("/f.woff2", "application/octet-stream", FONT),
    ("/secret.png", "image/png", PNG),
)


def web() -> Web:
    home, parts = Site("a.test"), Site("parts.test")
    for number in range(3):
        links = [PageLink("/1", "on"), PageLink("/2", "on"), PageLink("/file.zip", "a file")]
        home.add(Page(f"/{number or ''}", f"Page {number}", ("Some words.",), links, head=HEAD))
    for site, answers in ((home, HERE), (parts, THERE)):
        for path, media_type, body in answers:
            site.answer(path, Answer(body=body, media_type=media_type, gzip=False), None, None)
    parts.answer("/robots.txt", Answer(body=b"User-agent: *\nDisallow: /secret", media_type="text/plain"), None, None)
    return Web([home, parts])


def reasons(collection: Collection) -> dict[str, Reason]:
    return {url.partition("//")[2].replace(".test", "").partition(":")[0] + "/" + url.split("/", 3)[3]: reason
            for url, reason in collection.reasons.items()}  # fmt: skip


KEPT = dict.fromkeys(("a/s.js", "a/p.png", "a/big.png", "a/i.ico", "a/file.zip"), Reason.OTHER_MEDIA) | dict.fromkeys(
    ("parts/css/s.css", "parts/css/more.css", "parts/css/bg.png", "parts/f.woff2"), Reason.OTHER_MEDIA
)
EXPECTED = KEPT | dict.fromkeys(("a/", "a/1", "a/2"), Reason.OK) | {
    "a/v.mp4": Reason.RESOURCE, "a/gone.png": Reason.NOT_FOUND, "parts/secret.png": Reason.ROBOTS
}  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Server]:
    folder = tmp_path_factory.mktemp("kept") / "c"
    with serve(web()) as server:
        collection, end = crawled(folder, server, "a.test", delay_s=0.005, keep_parts=True)
        assert (end.state, collection.sane()) == ("done", [])
        asked = server.log.targets("a.test") + server.log.targets("parts.test")
    assert all(asked.count(path) <= 1 for path, *_ in (*HERE, *THERE)), "each part is fetched once"
    assert "/secret.png" not in asked and "/v.mp4" not in asked
    return folder, server


def test_parts_on_any_host_are_fetched_and_are_not_pages(kept: tuple[Path, Server]) -> None:
    folder, _ = kept
    assert reasons(Collection(folder)) == EXPECTED


def bodies(folder: Path) -> dict[str, bytes | None]:
    connection = reading.connect(folder)
    try:
        urls = [text for (text,) in connection.execute("SELECT text FROM url WHERE reason = 'other-media'")]
        return {url.split("/", 3)[3]: SqliteReader(connection).body(url_id(canonical(url))) for url in urls}
    finally:
        connection.close()


def test_bytes_of_parts_are_kept_and_those_of_other_files_are_not(kept: tuple[Path, Server]) -> None:
    expected = {path[1:]: body for path, _, body in (*HERE, *THERE) if path not in ("/secret.png", "/v.mp4")}
    assert bodies(kept[0]) == expected | {"file.zip": None}


def test_a_database_stores_the_same(kept: tuple[Path, Server], address) -> None:
    with serve(web()) as server:
        stored, end = crawled_into(address.text, server, "a.test", delay_s=0.005, keep_parts=True)
    assert (end.state, stored.sane()) == ("done", [])
    assert reasons(stored) == EXPECTED
    of = "SELECT b.size, length(b.data) > 0 FROM page p JOIN body b ON b.id = p.body_id ORDER BY 1"
    assert stored.ask(of) == [(size, bool(data)) for size, data in Collection(kept[0]).ask(of)]


def test_without_the_setting_no_part_is_requested(tmp_path: Path) -> None:
    with serve(web()) as server:
        collection, _ = crawled(tmp_path / "c", server, "a.test", delay_s=0.005)
        assert server.log.targets("parts.test") == [] and "/p.png" not in server.log.targets("a.test")
    assert reasons(collection)["a/p.png"] is Reason.RESOURCE


def test_a_copy_is_whole(kept: tuple[Path, Server], tmp_path: Path) -> None:
    done = export_site(kept[0], tmp_path / "copy")
    assert (done.pages, done.parts) == (3, 8)
    hosts = sorted(path.name for path in (tmp_path / "copy").iterdir() if path.is_dir())
    home, parts = (tmp_path / "copy" / host for host in hosts)
    page = (home / "index.html").read_text("utf-8")
    assert f'href="../{parts.name}/css/s.css"' in page and 'srcset="p.png 1x, big.png 2x"' in page
    sheet = (parts / "css" / "s.css").read_text("utf-8")
    assert '@import "more.css"' in sheet and 'url("bg.png")' in sheet and 'url("../f.woff2")' in sheet
    assert (parts / "f.woff2").read_bytes() == FONT
    assert (parts / "css" / "more.css").read_text("utf-8").startswith('@charset "utf-8"')
    missing = (tmp_path / "copy" / "not-kept.csv").read_text("utf-8")
    assert "secret.png,robots" in missing and "gone.png,not-found,404" in missing and "v.mp4,resource" in missing


def test_archives_contain_the_parts_and_restore_them(kept: tuple[Path, Server], tmp_path: Path) -> None:
    export_wacz(kept[0], tmp_path / "x.wacz", 1e9)
    with zipfile.ZipFile(tmp_path / "x.wacz") as package:
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()[1:]]
    assert sorted(page["title"] for page in pages) == ["Page 0", "Page 1", "Page 2"]
    import_archives(
        tmp_path / "again", (tmp_path / "x.wacz",), settings=settings_from({"keep_parts": True, "scope": "any"})
    )
    assert bodies(tmp_path / "again") == bodies(kept[0])
    import_archives(tmp_path / "without", (tmp_path / "x.wacz",))
    assert set(bodies(tmp_path / "without").values()) == {None}
