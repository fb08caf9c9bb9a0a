"""The password of a database address is not stored or shown."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from starlette.testclient import TestClient
from voyage import command, flags_for, served_apart, told, told_apart, until

from interface import COMMANDS, client
from periplus.masking import without_secrets
from periplus.model.job import JobOrder
from periplus.store.job_queue import JobQueue
from periplus.store.sqlite.job_file import folder_queue
from periplus.ui.routes import application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places
from periplus_postgres.address import Address, address_of
from periplus_postgres.connection import Session, connect
from periplus_postgres.statements import database_queue

SECRET = "s3cretWord"
SCREENS = ("/", "/jobs", "/?format=json", "/jobs?format=json")


def with_password(address: Address, secret: str = SECRET) -> str:
    """Adds a password; the test server accepts any."""
    scheme, mark, rest = address.text.partition("://")
    user, at, place = rest.partition("@")
    return f"{scheme}{mark}{user}:{secret}{at}{place}" if at else f"{address.text}&password={secret}"


def rows_of(address: Address) -> str:
    """Every row of every table of the collection, as text."""
    with closing(connect(address)) as connection:
        find = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s ORDER BY 1"
        names = [str(row[0]) for row in connection.execute(find, (address.collection,))]
        assert {"job", "schedule", "run"} <= set(names)
        return "\n".join(str(row) for name in names for row in connection.execute(f'SELECT t::text FROM "{name}" t'))  # type: ignore[arg-type]


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own if it logs, or has processes that log."""
    return (told_apart if "-vv" in words or words[0] == "worker" else told)(*words, cwd=cwd)


def test_no_table_log_or_screen_has_the_password(tmp_path: Path, address: Address) -> None:
    store = with_password(address)
    with served_apart("linked seed=5 sites=1 pages=4 links_per_page=3", tmp_path) as web:
        crawl = ("crawl", web.url("a.test"), "-c", store, "-vv", *flags_for(web.resolve, delay_s=0.005))
        lines: list[tuple[str, ...]] = [
            (*crawl, "--max-pages", "2"),  # prints how to continue
            ("jobs", "add", "-c", store, *crawl),
            ("jobs", "add", "-c", store, "--every", "24h", "map", "-c", store),
            ("jobs", "add", *crawl),
            ("jobs", "add", "--every", "24h", "refresh", "-c", store),
            ("worker", "-c", store, "--until-done"),
            ("worker", "--until-done"),
            ("jobs", "list", "-c", store, "-f", "json"),
            ("jobs", "list", "-f", "json"),
            ("status", "-c", store),
            ("map", "-c", store),
            ("export", "pages", "-c", store),
            ("segments", store),
            ("move", store, "moved.periplus"),
            ("status", "-c", store),
            ("map", "-c", store.replace("@", "/@")),
        ]
        outputs = {line: run(*line, cwd=tmp_path) for line in lines}
    for line, ran in outputs.items():
        assert SECRET not in ran.stdout + ran.stderr, line[0]
    assert all(ran.returncode == 0 for line, ran in outputs.items() if line[0] in ("crawl", "worker", "move"))
    jobs = [
        job for words in lines if words[:2] == ("jobs", "list") for job in json.loads(outputs[words].stdout)["jobs"]
    ]
    assert len(jobs) == 4 and {job["state"] for job in jobs} == {"done"}, "without a password where none is needed"
    assert SECRET not in rows_of(address)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"jobs.db", "1.err"} <= {path.name for path in files}
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET.encode() not in b"".join(client(tmp_path).get(screen).content for screen in SCREENS)


@pytest.mark.parametrize("given", ["address", "PGPASSWORD", "PGPASSFILE"])
def test_a_password_given_in_any_way_is_in_no_table_file_cache_screen_or_process_title(
    given: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, address: Address, monkeypatch
) -> None:
    secret, store = uuid4().hex, address.text
    if given == "address":
        store = with_password(address, secret)
    elif given == "PGPASSWORD":
        monkeypatch.setenv(given, secret)
    else:
        (file := tmp_path_factory.mktemp("home") / "pgpass").write_text(f"*:*:*:*:{secret}\n")
        file.chmod(0o600)
        monkeypatch.setenv(given, str(file))
    monkeypatch.chdir(tmp_path)
    outputs = []
    with served_apart("linked seed=5 sites=2 pages=6 links_per_page=3", tmp_path) as web:
        flags = flags_for(web.resolve, delay_s=0.05)
        began = subprocess.Popen(
            command("crawl", web.url("a.test"), "-c", store, "-vv", "--workers", "2", *flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        until(lambda: web.lines() > 2 or began.poll() is not None, "nothing is asked")
        titles = command_lines()
        assert str(began.pid) in titles
        outputs.append(began.communicate()[0])
        lines: list[tuple[str, ...]] = [
            ("notices", "add", "http://127.0.0.1:9/hook", "-c", store),
            ("jobs", "add", "-c", store, "check", "-c", store, "--no-external", *flags),
            ("jobs", "add", "check", "-c", store, "--no-external", *flags),
            ("worker", "-c", store, "--until-done", "-vv"),
            ("worker", "--until-done", "-vv"),
            ("notices", "send", store),
            ("notices", "list", "-f", "json"),
            ("notices", "feed", "-c", store),
            ("search", "page", "-c", store),
            ("delete", web.url("a.test"), "-c", store, "--yes"),
            ("rules", "apply", "-c", store),
            ("jobs", "list", "-c", store, "-f", "json"),
            ("jobs", "list", "-f", "json"),
        ]
        for line in lines:
            ran = run(*line, cwd=tmp_path)
            assert ran.returncode in (0, 5), (line[:2], ran.stdout + ran.stderr)
            outputs.append(ran.stdout + ran.stderr)
    assert secret not in "".join(outputs)
    assert [pid for pid, title in titles.items() if secret.encode() in title] == []
    assert secret not in rows_of(address)
    with closing(connect(address)) as connection:
        assert secret not in str(connection.execute("SELECT * FROM pg_stat_activity").fetchall())
    state = AppState(places([tmp_path, store]), Locks("", ()), COMMANDS)
    web_client = TestClient(application(state), base_url="http://127.0.0.1:8321")
    collection = f"/c/{address.collection}"
    screens = (*SCREENS, "/notices", "/notices?format=json", "/feeds/all.atom", f"/feeds/{address.collection}.atom")
    of_collection = ("live", "settings", "t/pages", "t/issues", "delete", "search?q=page", "live?format=json")
    for screen in (*screens, *(f"{collection}/{name}" for name in of_collection)):
        answer = web_client.get(screen)
        assert answer.status_code == 200 and secret not in answer.text, screen
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"jobs.db", "notices.db", "pages.db"} <= {path.name for path in files}, "the cache of the index is there too"
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


def command_lines() -> dict[str, bytes]:
    """Command lines of all processes by id, as `ps` shows them."""
    lines = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            lines[path.parent.name] = path.read_bytes()
    return lines


@pytest.fixture(params=["folder", "database"])
def queue(request: pytest.FixtureRequest, tmp_path: Path):
    queue = (
        folder_queue(tmp_path)
        if request.param == "folder"
        else database_queue(Session(request.getfixturevalue("address")))
    )
    yield queue
    queue.close()


def test_a_queue_keeps_no_password(queue: JobQueue) -> None:
    store = f"postgresql://me:{SECRET}@db/x"
    order = JobOrder(("map", "-c", store), then=(("report", "-c", store),))
    queue.add(order, 1.0)
    queue.repeat(order, 3_600.0, 1.0)
    find = "SELECT command, next FROM job UNION ALL SELECT command, next FROM schedule"
    assert SECRET not in str(queue.database.read(lambda statements: statements.rows(find)))
    assert queue.jobs()[0].order.command == ("map", "-c", "postgresql://me@db/x")


@pytest.mark.parametrize("place", ["sftp://me:{}@host/pages", "sftp%3A%2F%2Fme%3A{}%40host%2Fpages"])
def test_a_password_in_the_url_of_segments_is_refused_and_not_shown(tmp_path: Path, place: str) -> None:
    store = f"postgresql://me@db/x?segments={place.format(SECRET)}&collection=press"
    added = told("jobs", "add", "map", "-c", store, cwd=tmp_path)
    refused = told("crawl", "http://a.test/", "-c", store, cwd=tmp_path)
    assert refused.returncode == 2 and "FSSPEC_SFTP_PASSWORD" in refused.stderr
    assert SECRET not in added.stderr + refused.stderr
    assert SECRET.encode() not in (tmp_path / "jobs.db").read_bytes()


def test_other_urls_of_segments_have_no_password() -> None:
    for place in ("s3://bucket/a:b@c", "/data/a:b@c", "sftp://me@host:22/x", "sftp%3A%2F%2Fhost%3A22%2Fa%40b"):
        text = f"postgresql://me@db/x?segments={place}"
        assert without_secrets(text) == text
        address_of(text)
