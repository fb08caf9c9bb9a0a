"""Secrets in settings are stored, shown and sent only where they belong.

Each setting that may contain a secret gets a marker. Then every file, export, screen, message and command line is
searched for it, verbatim and in base64. Databases: test_passwords.py. Logins: browser/test_sessions.py.
"""

from __future__ import annotations

import gzip
import subprocess
import threading
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from stat import S_IMODE
from uuid import uuid4

import pytest
from served_interface import served
from test_passwords import command_lines
from voyage import command, flags_for, told, until

from interface import client, token_of
from periplus.api.exporting import export_file
from periplus.model.tables import EXPORTS
from periplus.present.writers import writers

PLACES = ("proxy", "auth", "start", "header", "field")


class Proxy(BaseHTTPRequestHandler):
    """Answers for every host with one of 40 pages, each with a link to the next; records requests."""

    def do_GET(self) -> None:
        self.server.seen.append(dict(self.headers))  # type: ignore[attr-defined]
        number = int("0" + self.path.rpartition("/")[2]) if self.path.rpartition("/")[2].isdigit() else 0
        page = f"<title>{number}</title><p>Page number {number} of some.<p><a href='/{number + 1}'>next</a>".encode()
        self.send_response(404 if self.path.endswith(".txt") or number > 40 else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *words: object) -> None: ...


@contextmanager
def proxy() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def forms_of(marker: str, user: str = "me") -> list[bytes]:
    """Forms in which a marker may occur."""
    pair = f"{user}:{marker}".encode()
    return [marker.encode(), b64encode(pair).rstrip(b"="), pair.hex().encode()]


def contents(path: Path) -> bytes:
    """Contents of a file, decompressed if necessary."""
    data = path.read_bytes()
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as package:
        data += b"".join(unpacked(package.read(name)) for name in package.namelist())
    return unpacked(data)


def unpacked(data: bytes) -> bytes:
    try:
        return data + gzip.decompress(data)
    except (OSError, EOFError):
        return data


def holders(folder: Path, marker: str) -> list[str]:
    """Files that contain the marker."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(form in contents(path) for form in forms_of(marker))
    ]


@pytest.fixture
def planted(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    """(folder of collections, markers by place, arguments of a crawl with all of them, proxy, process titles during the
    crawl, output).
    """
    monkeypatch.setenv("NO_COLOR", "1")
    markers = {name: uuid4().hex for name in PLACES}
    login = tmp_path_factory.mktemp("apart") / "login.toml"
    login.write_text(f'hosts = ["http://b.test"]\nheaders = {{ X-Key = "{markers["header"]}" }}\n')
    with proxy() as server:
        words = [
            "crawl", f"http://me:{markers['start']}@a.test/", "http://b.test/", "-o", "C", "-vv",
            "--proxy", f"http://me:{markers['proxy']}@127.0.0.1:{server.server_port}",
            "--header", f"a.test X-Other: {markers['field']}",
            f"--auth=me:{markers['auth']}", "--login", str(login), *flags_for((), workers=2),
        ]  # fmt: skip
        began = subprocess.Popen(
            command(*words, "--max-pages", "30"),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        until(lambda: len(server.seen) > 3 or began.poll() is not None, "nothing is asked")  # type: ignore[attr-defined]
        titles = command_lines()
        printed = began.communicate()[0]
        assert str(began.pid) in titles and began.returncode == 0, printed
        yield tmp_path, markers, words, server, titles, printed


def test_no_file_export_screen_message_or_process_shows_a_secret(planted) -> None:
    folder, markers, _, server, titles, printed = planted
    sent = [set(headers.values()) for headers in server.seen]
    basic = {name: f"Basic {b64encode(f'me:{markers[name]}'.encode()).decode()}" for name in ("proxy", "auth")}
    assert all(basic["proxy"] in values for values in sent), "each request signs in at the proxy"
    assert any(basic["auth"] in values for values in sent)
    assert any(markers["header"] in values for values in sent)
    assert {headers["Host"] for headers in server.seen if markers["field"] in headers.values()} == {"a.test"}
    assert "To continue: " in printed
    lines: list[tuple[str, ...]] = [
        ("report", "-c", "C", "--site", "a.test", "-o", "report.html"),
        ("status", "-c", "C"),
        ("map", "-c", "C", "--site", "a.test", "-f", "xml", "-o", "map.xml"),
        ("map", "-c", "C", "--site", "a.test", "-f", "xhtml", "-o", "map.xhtml"),
        ("export", "warc", "-c", "C", "-o", "C.warc.gz"),
        ("export", "wacz", "-c", "C", "-o", "C.wacz"),
        ("export", "site", "-c", "C", "copy"),
        ("settings", "--effective", "-c", "C"),
    ]
    outputs = [printed]
    for line in lines:
        ran = told(*line, cwd=folder)
        assert ran.returncode == 0, (line, ran.stderr)
        outputs.append(ran.stdout + ran.stderr)
    for name, ending in [*((name, "csv") for name in EXPORTS), *(("runs", ending) for ending in writers())]:
        export_file(folder / "C", name, folder / f"{name}.{ending}", format=ending, ranks=False)
    asking = client(folder)
    tables = ("runs", "pages", "urls", "visits")
    screens = (
        "/", "/?format=json", "/jobs", "/jobs?format=json", "/notices", "/c/C/live", "/c/C/live?format=json",
        "/c/C/settings", "/c/C/settings?format=json", *(f"/c/C/t/{name}?format=json" for name in tables), "/c/C/report",
    )  # fmt: skip
    answers = {screen: asking.get(screen) for screen in screens}
    assert {screen for screen, answer in answers.items() if answer.status_code not in (200, 404)} == set()
    assert "***@127.0.0.1" in (folder / "runs.csv").read_text("utf-8")
    for name, marker in markers.items():
        forms = forms_of(marker)
        assert holders(folder, marker) == [], name
        assert [output for output in outputs if any(form.decode() in output for form in forms)] == [], name
        assert [screen for screen, answer in answers.items() if any(form in answer.content for form in forms)] == []
        assert [title for title in titles.values() if any(form in title for form in forms)] == [], name


def test_a_secret_is_requested_again_and_a_reference_is_stored(planted, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, markers, words, server, _, _ = planted
    before = len(server.seen)
    refused = told("refresh", "-c", "C", cwd=folder)
    assert refused.returncode == 2 and "the secret of --auth was not stored: give --auth again" in refused.stderr
    half = told("refresh", "-c", "C", "--auth", f"me:{markers['auth']}", cwd=folder)
    assert half.returncode == 2 and "the secret of --proxy was not stored" in half.stderr
    copied = told("crawl", "http://a.test/", "-o", "C", "--auth", "***", cwd=folder)
    assert copied.returncode == 2 and len(server.seen) == before, "nothing is asked without the proxy"
    monkeypatch.setenv("OUR_PROXY", words[words.index("--proxy") + 1])
    (away := folder.parent / f"{uuid4().hex}.txt").write_text(f"me:{markers['auth']}\n")
    references = ("--proxy", "env:OUR_PROXY", "--auth", f"file:{away}")
    half = told("refresh", "-c", "C", *references, cwd=folder)
    assert half.returncode == 2 and "the value of --header a.test X-Other was not stored" in half.stderr
    given = told("refresh", "-c", "C", *references, "--header", f"a.test X-Other: file:{away}", cwd=folder)
    assert given.returncode == 0 and len(server.seen) > before, given.stderr
    before = len(server.seen)
    again = told("refresh", "-c", "C", cwd=folder)
    assert again.returncode == 0 and len(server.seen) > before, again.stderr
    away.unlink()
    assert holders(folder, markers["proxy"]) == [] and holders(folder, markers["auth"]) == []
    monkeypatch.delenv("OUR_PROXY")
    missing = told("refresh", "-c", "C", "--auth", "me:x", cwd=folder)
    assert missing.returncode == 2 and "the environment has no variable OUR_PROXY" in missing.stderr
    (folder / "C" / "auth.txt").write_text("me:x")
    inside = told("refresh", "-c", "C", "--auth", "file:C/auth.txt", cwd=folder)
    assert inside.returncode == 2 and "is in the collection's folder" in inside.stderr


@pytest.mark.parametrize("flag", ["--proxy", "--auth", "--header"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_job_accepts_secrets_only_as_references(tmp_path: Path, flag: str, joined: bool) -> None:
    marker = uuid4().hex
    value = {"--proxy": f"http://me:{marker}@127.0.0.1:9", "--auth": f"me:{marker}", "--header": f"h X-K: {marker}"}[
        flag
    ]
    words = (f"{flag}={value}",) if joined else (flag, value)
    refused = told("jobs", "add", "crawl", "http://a.test/", *words, cwd=tmp_path)
    assert refused.returncode == 2 and "a job stores no password or token" in refused.stderr
    assert marker not in refused.stderr and holders(tmp_path, marker) == []
    reference = "h X-K: env:NAME" if flag == "--header" else "env:NAME"
    kept = told("jobs", "add", "crawl", "http://a.test/", flag, reference, cwd=tmp_path)
    assert kept.returncode == 0 and "env:NAME" in told("jobs", "list", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    "value", ["http://me:{}@127.0.0.1:9", "http://{}@127.0.0.1:9", "me:{}@127.0.0.1:9", "file:/{}"]
)
@pytest.mark.parametrize("path", ["/new", "/presets/save"])
def test_a_form_accepts_secrets_only_as_references(tmp_path: Path, path: str, value: str) -> None:
    marker, asking = uuid4().hex, client(tmp_path)
    form = {"csrf_token": token_of(asking), "preset": "map", "url": "http://a.test/", "preset_name": "a"}
    refused = asking.post(path, data=form | {"set_proxy": value.format(marker)})
    assert "give a reference here" in refused.text and refused.status_code == 400
    assert holders(tmp_path, marker) == [] and not list(tmp_path.glob("*.toml"))
    taken = asking.post(path, data=form | {"set_proxy": "env:OUR_PROXY"})
    assert taken.status_code == 303


def test_the_token_of_a_server_is_hidden_from_other_users(tmp_path: Path) -> None:
    marker = uuid4().hex
    with served(tmp_path, "--token", marker):
        assert [title for title in command_lines().values() if marker.encode() in title] == []


def test_files_of_a_collection_and_its_queue_are_private_and_exports_follow_the_umask(planted) -> None:
    folder, *_ = planted
    for line in [
        ("search", "page", "-c", "C"),
        ("stories", "-c", "C", "--keep"),
        ("jobs", "add", "map", "-c", "C"),
        ("jobs", "run"),
        ("export", "pages", "-c", "C", "-o", "p.csv"),
    ]:
        ran = subprocess.run(command(*line), cwd=folder, umask=0o022, check=False, capture_output=True)
        assert ran.returncode == 0, ran.stderr
    kept = [path for path in (folder / "C").rglob("*") if path.is_file()]
    assert {"collection.db", "crawl.lock", "write.lock", "meta.json"} <= {path.name for path in kept}
    assert {oct(S_IMODE(path.stat().st_mode)) for path in (*kept, folder / "jobs.db", folder / "notices.db")} == {
        "0o600"
    }
    folders = [folder / "C", folder / "jobs", *(path for path in (folder / "C").rglob("*") if path.is_dir())]
    assert {oct(S_IMODE(path.stat().st_mode)) for path in folders} == {"0o700"}
    assert oct(S_IMODE((folder / "p.csv").stat().st_mode)) == "0o644"


def test_the_files_of_an_open_collection_are_private(tmp_path: Path) -> None:
    from periplus.store.sqlite import schema

    (tmp_path / "C").mkdir(0o755)
    schema.create(tmp_path / "C")
    with schema.writing(tmp_path / "C") as connection:
        connection.execute("CREATE TABLE a (b)")
        modes = {path.name: oct(S_IMODE(path.stat().st_mode)) for path in (tmp_path / "C").iterdir()}
    assert {"collection.db", "collection.db-wal", "collection.db-shm"} <= modes.keys() and set(modes.values()) == {
        "0o600"
    }
