"""Notices of changes by mail, webhook and feed: sent once, signed, and retried until delivered."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import socket
import sqlite3
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from lxml import etree

from interface import client, token_of
from periplus.acquire.clock import SystemClock
from periplus.cli.main import main
from periplus.errors import StoreError, UnknownSetting, UsageError
from periplus.jobs.runner import Runner, run_jobs
from periplus.model.job import JobOrder
from periplus.store.sqlite.job_file import folder_queue
from periplus_notices import api as notices
from periplus_notices import store as stored_notices
from periplus_notices.api import PASSWORD, Notifier, notice_settings
from periplus_notices.model import Channel, NoticeKind
from periplus_notices.present import title
from stored import page, stored

START = "https://e.org/"
WEB = {START: page("Home", "/a", "/b"), f"{START}a": 404, f"{START}b": page("B", "/z")}


class At:
    """A clock with a fixed time."""

    def __init__(self, now: float) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return SystemClock().monotonic()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a collection that has a new broken link since the last look."""
    stored(tmp_path / "e.periplus", WEB, [START])
    assert notices.look(tmp_path, tmp_path / "e.periplus", 1.0) == [], "the first look has no notices"
    stored(tmp_path / "e.periplus", {f"{START}z": 404}, [START])
    return tmp_path


@contextlib.contextmanager
def hook(status: int = 204) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """(URL of a web server, requests that arrived)."""
    arrived: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.append(
                (
                    {name.lower(): text for name, text in self.headers.items()},
                    self.rfile.read(int(self.headers["content-length"])),
                )
            )
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *said: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", arrived
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def mail_server() -> Iterator[tuple[int, list[str]]]:
    """(port of a mail server, received lines)."""
    listening = socket.create_server(("127.0.0.1", 0))
    said: list[str] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, connection.makefile("rwb") as wire:
                    converse(wire)

    def converse(wire) -> None:
        def tell(text: str) -> None:
            wire.write(text.encode() + b"\r\n")
            wire.flush()

        tell("220 here")
        in_letter = False
        for raw in wire:
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            said.append(line)
            if in_letter:
                in_letter = line != "."
                if not in_letter:
                    tell("250 taken")
            elif line.upper() == "DATA":
                in_letter = True
                tell("354 go on")
            elif line.upper().startswith("EHLO"):
                tell("250-here")
                tell("250 AUTH PLAIN")
            elif line.upper().startswith("AUTH"):
                tell("235 welcome")
            else:
                tell("250 well")
            if line.upper() == "QUIT":
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], said
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def allow_private(folder: Path) -> None:
    (folder / "notices.toml").write_text("[webhook]\nallow_private = true\n")


def test_a_new_broken_link_is_noticed_once(folder: Path) -> None:
    (dead,) = notices.look(folder, folder / "e.periplus", 2.0)
    assert (dead.kind, dead.subjects, dead.count) == (NoticeKind.BROKEN, (f"{START}z",), 1)
    assert title(dead) == "e: 1 new broken URL: https://e.org/z"
    assert notices.look(folder, folder / "e.periplus", 3.0) == []


def test_new_sites_suspicious_ends_and_portal_changes_are_noticed(folder: Path) -> None:
    collection = folder / "e.periplus"
    notices.look(folder, collection, 2.0)
    with contextlib.closing(sqlite3.connect(collection / "collection.db")) as raw, raw:
        raw.execute("INSERT INTO site (key) VALUES ('new.net')")
        raw.execute("UPDATE run SET state = 'suspicious', note = 'nothing came' WHERE id = 2")
        raw.execute("INSERT INTO freshness SELECT id, 1, 1, 1 FROM url WHERE text = ?", (f"{START}b",))
    assert {notice.kind: notice.subjects for notice in notices.look(folder, collection, 3.0)} == {
        NoticeKind.VANISHED: (f"{START}b",),
        NoticeKind.SITES: ("new.net",),
        NoticeKind.SUSPICIOUS: ("run 2: suspicious, nothing came",),
    }
    with contextlib.closing(sqlite3.connect(collection / "collection.db")) as raw, raw:
        raw.execute("INSERT INTO portal_page VALUES ('front', 'https://e.org/story', 'k')")
    (renewed,) = notices.look(folder, collection, 4.0)
    assert (renewed.kind, renewed.subjects) == (NoticeKind.PORTAL, ("front: https://e.org/story",))


def test_a_problem_that_returns_is_noticed_again(folder: Path) -> None:
    told = []
    with notices.book(folder) as kept:
        for run, dead in enumerate([set(), {"x"}, set(), {"x"}]):
            told += kept.compare("c.periplus", run, {NoticeKind.BROKEN: dead}, float(run))
    assert [notice.subjects for notice in told] == [("x",), ("x",)]


def test_a_notice_counts_all_subjects_and_names_some(folder: Path) -> None:
    with notices.book(folder) as kept:
        kept.compare("c.periplus", 1, {NoticeKind.SITES: set()}, 1.0)
        (notice,) = kept.compare("c.periplus", 2, {NoticeKind.SITES: {f"{n:03}" for n in range(500)}}, 2.0)
    assert (notice.count, len(notice.subjects)) == (500, stored_notices.MOST_SUBJECTS)


def test_a_webhook_is_signed_and_sent_once(folder: Path) -> None:
    allow_private(folder)
    with hook() as (address, arrived):
        _, secret = notices.subscribe(folder, address)
        notices.look(folder, folder / "e.periplus", 2.0)
        assert notices.deliver(folder) == (1, 0)
        assert notices.deliver(folder) == (0, 0)
    ((headers, body),) = arrived
    said = dict(part.split("=", 1) for part in headers["periplus-signature"].split(","))
    assert hmac.compare_digest(
        said["v1"], hmac.new(secret.encode(), f"{said['t']}.".encode() + body, hashlib.sha256).hexdigest()
    )
    assert json.loads(body)["subjects"] == [f"{START}z"]
    assert headers["content-type"].startswith("application/json")


def test_a_private_address_is_refused_unless_the_settings_allow_it(folder: Path) -> None:
    with hook() as (address, arrived):
        notices.subscribe(folder, address)
        assert "private address" in notices.test(folder, 1)
        assert arrived == []
        allow_private(folder)
        assert notices.test(folder, 1) == ""
        assert len(arrived) == 1


def test_a_failed_delivery_is_retried_and_finally_given_up(folder: Path) -> None:
    allow_private(folder)
    clock = At(1_000.0)
    with hook(500) as (address, arrived):
        notices.subscribe(folder, address)
        notices.look(folder, folder / "e.periplus", 900.0)
        for attempt in range(stored_notices.MOST_ATTEMPTS):
            assert notices.deliver(folder, clock) == (0, 1)
            wait_s = min(stored_notices.FIRST_WAIT_S * 4**attempt, stored_notices.LONGEST_WAIT_S)
            clock.time += wait_s - 1.0
            assert notices.deliver(folder, clock) == (0, 0), "not before its time"
            clock.time += 1.0
        assert notices.deliver(folder, clock) == (0, 0)
        with notices.book(folder) as kept:
            assert kept.standing() == {1: (0, 0, 1, "status 500")}
        assert len(arrived) == stored_notices.MOST_ATTEMPTS


def test_a_delivery_of_a_killed_process_is_taken_over(folder: Path) -> None:
    with notices.book(folder) as kept:
        kept.subscribe(Channel.WEBHOOK, "https://e.org/", (), "", 1.0)
        kept.note(NoticeKind.FAILED, "", "job 1", ["x"], 1.0)
        assert len(kept.take(10.0)) == 1
        assert kept.take(10.0 + stored_notices.HOLD_S / 2) == [], "another leaves it alone meanwhile"
        assert len(kept.take(10.0 + stored_notices.HOLD_S)) == 1
        assert kept.note(NoticeKind.FAILED, "", "job 1", ["x"], 1.0) is None, "the same notice is stored once"


def test_reports_are_mailed_to_subscribers_after_each_run(folder: Path) -> None:
    with mail_server() as (port, said):
        (folder / "notices.toml").write_text(
            f'[mail]\nserver = "127.0.0.1"\nport = {port}\nsecurity = "none"\nsender = "periplus@example.org"\n'
        )
        notices.subscribe(folder, "all@example.org")
        notices.subscribe(folder, "boss@example.org", ["report"])
        dead, report = notices.look(folder, folder / "e.periplus", 2.0)
        assert (dead.kind, report.kind) == (NoticeKind.BROKEN, NoticeKind.REPORT)
        assert report.subjects[0].startswith("run 2 (crawl): 2 pages read (") and "2 failed URLs" in report.subjects[0]
        assert notices.look(folder, folder / "e.periplus", 3.0) == [], "one letter a run"
        assert notices.deliver(folder) == (2, 0), notices.test(folder, 1)
    letters = "\n".join(said).split("\ndata\n")[1:]
    to_all, to_boss = sorted(letters, key=lambda text: "To: boss" in text)
    assert ": status:" not in to_all and "new broken URL" not in to_boss
    assert "Subject: Periplus: e: status: run 2" in " ".join(to_boss.split())
    assert 'filename="e-report.html"' in to_boss and "To: boss@example.org" in to_boss
    assert 'filename="e-report.pdf"' in to_boss and "application/pdf" in to_boss


def test_a_subscriber_gets_only_the_subscribed_notices(folder: Path) -> None:
    with notices.book(folder) as kept:
        kept.subscribe(Channel.WEBHOOK, "https://e.org/", (NoticeKind.SITES,), "", 1.0)
        kept.subscribe(Channel.WEBHOOK, "https://f.org/", (), "other.periplus", 1.0)
        kept.note(NoticeKind.BROKEN, "e.periplus", "1", ["x"], 1.0)
        assert kept.take(2.0) == []
        kept.unsubscribe(1)
        with pytest.raises(StoreError, match="no subscription 1"):
            kept.unsubscribe(1)


def test_only_the_owner_can_read_the_file_with_secrets(folder: Path) -> None:
    assert stat.S_IMODE((folder / stored_notices.DATABASE).stat().st_mode) == 0o600


def test_a_mail_has_all_due_notices_and_the_password_is_not_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "very-secret")
    with mail_server() as (port, said):
        (folder / "notices.toml").write_text(
            f'[mail]\nserver = "127.0.0.1"\nport = {port}\nsecurity = "none"\nuser = "me"\n'
            'sender = "periplus@example.org"\n'
            '[interface]\naddress = "https://c.example.org/"\n'
        )
        notices.subscribe(folder, "ops@example.org")
        notices.look(folder, folder / "e.periplus", 2.0)
        notices.add_failure(folder, 7, "periplus crawl x: no such host", None, 3.0, 1)
        assert notices.deliver(folder) == (2, 0), notices.test(folder, 1)
    letters = [line for line in said if line.startswith("Subject:")]
    assert letters == ["Subject: Periplus: e: 1 new broken URL: https://e.org/z, and 1 other notice"]
    assert "  https://c.example.org/c/e/t/links?target_state=failed" in said
    assert any("periplus crawl x: no such host" in line for line in said)
    assert not any(b"very-secret" in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_an_unreachable_mail_server_is_reported_without_the_password(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "very-secret")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (folder / "notices.toml").write_text(
        f'[mail]\nserver = "127.0.0.1"\nport = {port}\nuser = "me"\nsender = "p@example.org"\n'
    )
    notices.subscribe(folder, "ops@example.org")
    fault = notices.test(folder, 1)
    assert "Connection refused" in fault
    assert "very-secret" not in fault


@pytest.mark.parametrize(
    "target", ["", "x", "a@b c", "a@b\nBcc: c@d", "javascript:alert(1)", "https://u:p@e.org/", "a,b@c", "ftp://e.org/"]
)
def test_an_invalid_subscriber_address_is_refused(folder: Path, target: str) -> None:
    (folder / "notices.toml").write_text('[mail]\nserver = "m.example.org"\nsender = "p@example.org"\n')
    with pytest.raises(UsageError):
        notices.subscribe(folder, target)


@pytest.mark.parametrize(
    "text",
    [
        "[mail",
        "[post]\n",
        "mail = 25\n",
        "[mail]\nport = 'x'\n",
        "[mail]\nserver = 'x'\n",
        "[mail]\nsecurity = 'ssl'\n",
        "[mail]\npassword = 'x'\n",
    ],
)
def test_invalid_settings_are_refused(folder: Path, text: str) -> None:
    (folder / "notices.toml").write_text(text)
    with pytest.raises(UnknownSetting):
        notice_settings(folder)


def test_the_password_can_be_in_a_file(folder: Path) -> None:
    (folder / "secret").write_text("from-file\n")
    (folder / "notices.toml").write_text('[mail]\nserver = "m"\nsender = "p@e.org"\npassword_file = "secret"\n')
    mail = notice_settings(folder).mail
    assert (mail.password, mail.port) == ("from-file", 587)


def test_a_runner_sends_notices_after_each_job(folder: Path) -> None:
    """The job fails and its collection has a broken link: both are noticed."""
    allow_private(folder)
    queue = folder_queue(folder)
    with hook() as (address, arrived), contextlib.closing(queue):
        notices.subscribe(folder, address)
        queue.add(JobOrder(("map", "-c", "e.periplus", "--site", "nowhere")), 1.0)
        run_jobs(Runner(folder, queue, SystemClock(), "r", lambda: False, [Notifier(folder)]), forever=False)
    assert sorted(json.loads(body)["kind"] for _, body in arrived) == ["broken-links", "job-failed"]


def test_the_feed_is_atom_and_hostile_text_is_escaped(folder: Path) -> None:
    with notices.book(folder) as kept:
        kept.note(NoticeKind.BROKEN, "e.periplus", "1", ["https://e.org/<script>&\x00\u202e"], 1_000.0)
    feed = etree.fromstring(notices.feed(folder, "e.periplus").encode())
    spaces = {"a": "http://www.w3.org/2005/Atom"}
    assert feed.xpath("string(a:title)", namespaces=spaces) == "Periplus: e"
    assert feed.xpath("string(a:entry/a:content)", namespaces=spaces) == "https://e.org/<script>&"
    assert notices.feed(folder, "other.periplus").count("<entry>") == 0


def test_the_command_adds_lists_and_removes(folder: Path) -> None:
    def asked(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["notices", words[0], "-d", str(folder), *words[1:]])
        return done.exit_code, done.output

    assert asked("add", "http://127.0.0.1/hook", "--kind", "broken-links")[0] == 0
    assert "no mail server is set" in asked("add", "me@e.org")[1]
    assert "http://127.0.0.1/hook  broken-links" in asked("list")[1]
    told = json.loads(asked("list", "-f", "json")[1])
    assert told["subscriptions"][0]["sent"] == 0
    assert "secret" not in told["subscriptions"][0]
    assert "<feed" in asked("feed")[1]
    assert asked("send")[0] == 1, "the hook lies at a private address"
    assert asked("remove", "1")[0] == 0
    assert "No subscribers" in asked("list")[1]


def test_in_the_browser_a_webhook_is_added_with_its_secret_shown_once(folder: Path) -> None:
    asking = client(folder)
    form = {
        "csrf_token": token_of(asking, "/notices"),
        "what": "add",
        "target": "https://e.org/hook",
        "broken-links": "on",
    }
    secret = asking.post("/notices/change", data=form).text.partition("<code>")[2].partition("</code>")[0]
    with notices.book(folder) as kept:
        assert kept.secret_of(1) == secret
        assert kept.subscriptions()[0].kinds == (NoticeKind.BROKEN,)
    assert secret not in asking.get("/notices").text + asking.get("/notices?format=json").text
    assert "no address" not in asking.post("/notices/change", data=form | {"target": "x"}).text
    assert asking.post("/notices/change", data=form | {"target": "x"}).status_code == 400
    assert (
        asking.post(
            "/notices/change", data={"csrf_token": form["csrf_token"], "what": "remove", "subscription": "1"}
        ).status_code
        == 303
    )


def test_the_key_of_feeds_opens_only_feeds(folder: Path) -> None:
    from periplus.ui.safety import Locks

    key = Locks("long-enough-token").feed_key
    asking = client(folder, token="long-enough-token")
    assert asking.get("/feeds/all.atom").status_code == 303
    assert asking.get("/feeds/all.atom?key=x").status_code == 303
    assert asking.get(f"/feeds/all.atom?key={key}").status_code == 200
    assert asking.get(f"/feeds/e.atom?key={key}").headers["content-type"].startswith("application/atom+xml")
    assert asking.get(f"/notices?key={key}").status_code == 303
    assert asking.get(f"/feeds/../notices?key={key}").status_code == 303
    assert client(folder).get("/feeds/nobody.atom").status_code == 404
