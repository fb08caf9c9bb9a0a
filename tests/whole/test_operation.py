"""What an operator does while a crawl runs: a backup, an upgrade, moving a part. By the commands of the docs."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest
from crews import Crew
from postgres_voyage import StoredCollection
from test_faults_workers import hosts_of
from voyage import PATIENCE_S, command, environment, flags_for, served_apart, until

import periplus
import periplus_postgres
import postgres_server
from periplus.api.homes import home_of
from periplus.children import finish_child
from postgres_server import empty_collection

DOCS = Path(__file__).parents[2] / "docs" / "cluster.md"
WEB = "linked seed=5 sites=6 pages=10 links_between=20 links_per_page=8"
PAGES = 60
SLOW = {"delay_s": 0.5}


def documented(heading: str) -> list[str]:
    """The commands of a section of docs/cluster.md."""
    section = re.search(rf"^### {heading}\n(.*?)^###? ", DOCS.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert section, heading
    blocks = re.findall(r"```sh\n(.*?)```", section[1], re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def run(line: str, replaced: Mapping[str, str], **options) -> str:
    """Runs a line of the documents with its example names replaced; its standard output."""
    words = shlex.split(line, comments=True)
    if replaced:  # in one pass: a name in a replacement is not replaced again
        pattern = "|".join(re.escape(old) for old in sorted(replaced, key=len, reverse=True))
        words = [re.sub(pattern, lambda match: replaced[match[0]], word) for word in words]
    words = command(*words[1:]) if words[0] == "periplus" else words
    given = environment() | {"PATH": f"{postgres_server.binaries()}:{os.environ['PATH']}"} | options.pop("env", {})
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=given, cwd="/", **options
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@contextlib.contextmanager
def other_database(address) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(name, address of a collection of the same name in it, environment with which createdb reaches the server)."""
    name = f"restored_{uuid.uuid4().hex[:8]}"
    parts = psycopg.conninfo.conninfo_to_dict(address.dsn)
    text = address.text.replace(f"/{parts['dbname']}", f"/{name}", 1)
    reached = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password"}
    try:
        yield name, text, {key: str(parts[value]) for key, value in reached.items() if parts.get(value)}
    finally:
        with psycopg.connect(address.dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def moved_names(address, text: str, name: str, place: Path, other: Path, backup: Path) -> dict[str, str]:
    """The names of the documents and those of a test."""
    dsn = text.partition("collection=")[0].rstrip("?&")
    return {
        "postgresql://me@db/restored?collection=web": text, "postgresql://me@db/restored": dsn,
        "postgresql://me@db/crawls": address.dsn, "--schema=web": f"--schema={address.collection}",
        "web.dump": str(backup / "c.dump"), "web.meta": f"{address.collection}.meta",
        "/shared/web": str(place), "/restored/web": str(other), "/backup/web": str(backup / "segments"),
        "restored": name,
    }  # fmt: skip


def crawl_on(text: str, web, *flags: str, env: Mapping[str, str] | None = None, **values) -> subprocess.Popen[bytes]:
    starts = [web.url(host) for host in hosts_of(web)]
    words = ["crawl", *starts, "-o", text, "-q", *flags, *flags_for(web.resolve, sitemaps=False, **SLOW | values)]
    return subprocess.Popen(command(*words, "--no-sitemaps"), env=env or environment(), start_new_session=True)


def pages(stored: StoredCollection) -> int:
    return stored.ask("SELECT count(*) FROM page")[0][0]


def test_a_backup_of_a_running_crawl_is_restored_and_the_crawl_goes_on(tmp_path, address) -> None:
    place, other, backup = tmp_path / "segments", tmp_path / "restored-segments", tmp_path / "backup"
    backup.mkdir()
    stored, commands = StoredCollection(address.text), documented("Backup and restore")
    with served_apart(WEB, tmp_path) as web, other_database(address) as (name, text, server):
        names = moved_names(address, text, name, place, other, backup)
        store = f"{address.text}&segments={place}"
        crew = Crew(web, tmp_path / "c", hosts_of(web), store=store, delay_s=15.0)  # lasts two minutes at least
        crew.hire()
        until(lambda: pages(stored) >= 6, "some pages")
        for line in commands[:2]:
            run(line, names)
        assert not crew.is_over and pages(stored) < PAGES
        crew.boss.send_signal(signal.SIGTERM)
        assert crew.boss.wait(PATIENCE_S) == 130
        for worker in crew.workers:
            worker.terminate()
            finish_child(worker, PATIENCE_S)
        assert crawl_on(store, web, delay_s=0.0).wait(PATIENCE_S) == 0
        for line in commands[2:]:
            output = run(line, names, env=server)
        restored = StoredCollection(text)
        assert 6 <= pages(restored) < PAGES, "of the moment of the backup"
        assert restored.ask("SELECT count(*) FROM body WHERE segment IS NULL") == [(0,)]
        assert output, "the segments were read"
        process = crawl_on(text, web)
        assert process.wait(PATIENCE_S) == 0
        assert restored.tables == stored.tables and pages(restored) == PAGES
        assert restored.sane() == []
        lost = sorted(other.glob("*.warc.gz"))[0]
        lost.unlink()
        with pytest.raises(AssertionError):
            run(commands[-1], names)


def program(folder: Path, version: str, tables: str = "1") -> dict[str, str]:
    """Environment of a copy of this program that calls itself so, and its tables."""
    copy = folder / version
    for package in (periplus, periplus_postgres):
        source = Path(package.__path__[0])
        shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in (
        ("periplus/settings.py", 'VERSION = "0.1.0"', f'VERSION = "{version}"'),
        ("periplus_postgres/schema.py", 'VERSION: Final = "1"', f'VERSION: Final = "{tables}"'),
    ):
        text = (copy / file).read_text("utf-8")
        assert text.count(old) == 1
        (copy / file).write_text(text.replace(old, new), "utf-8")
    given = environment()
    given["PYTHONPATH"] = os.pathsep.join(filter(None, (str(copy), given.get("PYTHONPATH", ""))))
    subprocess.run([sys.executable, "-m", "compileall", "-q", copy], check=True)  # a start would take seconds
    asked = subprocess.run(command("--version"), env=given, capture_output=True, text=True, check=True, cwd="/")
    assert f"version {version}" in asked.stdout
    return given


def test_workers_of_a_new_version_take_over_during_the_crawl(tmp_path, address) -> None:
    """The crawl is paused while processes start and stop, so that it is not over before."""
    new, stored, home = program(tmp_path, "0.2.0"), StoredCollection(address.text), home_of(address.text)
    with served_apart(WEB, tmp_path) as web:
        crew = Crew(web, tmp_path / "c", hosts_of(web), store=address.text, delay_s=1.5)
        crew.hire()
        until(lambda: pages(stored) >= 10, "some pages")
        assert home.pause(0.0)
        words = command("worker", "-c", address.text, "-q")
        worker = subprocess.Popen(words, env=new, start_new_session=True)
        until(lambda: worker.pid in crew.at_work(), "a new worker beside old ones")
        crew.dismiss(1)
        assert home.resume(0.0)
        until(lambda: stored.ask(f"SELECT pages > 0 FROM worker WHERE pid = {worker.pid}") == [(True,)], "its pages")
        assert home.pause(0.0) and not crew.is_over and pages(stored) < PAGES
        crew.boss.send_signal(signal.SIGTERM)
        assert crew.boss.wait(PATIENCE_S) == 130
        assert worker.wait(PATIENCE_S) == 0, "it ends with the run"
        assert crawl_on(address.text, web, env=new, delay_s=0.0).wait(PATIENCE_S) == 0
        assert pages(stored) == PAGES
        assert stored.ask("SELECT state FROM run ORDER BY id") == [("stopped",), ("done",)]
        assert crew.faults() == []


def test_a_version_with_other_tables_changes_nothing_and_its_pages_can_be_carried_over(tmp_path, address) -> None:
    new, stored = program(tmp_path, "0.2.0", tables="2"), StoredCollection(address.text)
    dump = f"pg_dump --schema={address.collection} {shlex.quote(address.dsn)}"
    with served_apart(WEB, tmp_path) as web:
        assert crawl_on(address.text, web, delay_s=0.0, max_pages=40).wait(PATIENCE_S) == 0
        before = run(dump, {})
        start = web.url(hosts_of(web)[0])
        for words in (("status",), ("worker",), ("crawl", start), ("map", "--site", hosts_of(web)[0])):
            told = command(words[0], "-c", address.text, *words[1:])
            done = subprocess.run(
                told, env=new, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
            assert done.returncode == 1, (words, done.stderr)
            assert "was written by another version (1; this is 2)" in done.stderr
        strip = re.compile(r"^\\(un)?restrict .*$", re.MULTILINE)
        assert strip.sub("", run(dump, {})) == strip.sub("", before)
        with empty_collection() as other:
            carried = StoredCollection(re.sub(r"collection=\w+", f"collection=new_{uuid.uuid4().hex[:8]}", other))
            old_line, new_line = documented("Upgrade")
            names = {
                "postgresql://me@db/crawls?collection=web2": carried.address,
                "postgresql://me@db/crawls?collection=web": address.text,
                "web.warc.gz": str(tmp_path / "w.warc.gz"),
            }
            run(old_line, names)
            run(new_line, names, env=new)
            found = "SELECT text FROM url WHERE reason = 'ok'"
            assert len(stored.ask(found)) == 40
            assert set(carried.ask(found)) == set(stored.ask(found))


def test_a_part_moves_to_another_server_while_the_other_part_crawls(tmp_path, address) -> None:
    other, backup = tmp_path / "restored-segments", tmp_path / "backup"
    backup.mkdir()
    place = tmp_path / "segments"
    commands = documented("Backup and restore")
    with (
        served_apart(WEB, tmp_path) as web,
        empty_collection() as first,
        other_database(address) as (name, text, server),
    ):
        names = moved_names(address, text, name, place, other, backup)
        shared = ("--exchange", str(tmp_path / "exchange"), "--until-all-done")
        one = crawl_on(first, web, "--part", "1/2", *shared)
        moved = crawl_on(f"{address.text}&segments={place}", web, "--part", "2/2", *shared)
        try:
            until(lambda: pages(StoredCollection(address.text)) >= 5, "some pages of the part")
            moved.send_signal(signal.SIGTERM)
            assert moved.wait(PATIENCE_S) == 130
            for line in commands:
                run(line, names, env=server)
            with psycopg.connect(address.dsn, autocommit=True) as connection:
                connection.execute(f"DROP SCHEMA {address.collection} CASCADE")
            assert one.poll() is None, "it waits for the other part"
            moved = crawl_on(text, web, "--part", "2/2", *shared)
            assert [process.wait(PATIENCE_S) for process in (one, moved)] == [0, 0]
        finally:
            for process in (one, moved):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        assert pages(StoredCollection(first)) + pages(StoredCollection(text)) == PAGES
        assert pages(StoredCollection(text)) > 5
        assert StoredCollection(first).sane() == StoredCollection(text).sane() == []
