"""A database user with SELECT alone reads everything, writes nothing, and is told what it may not do."""

from __future__ import annotations

import contextlib
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from interface import COMMANDS
from periplus.api.functions import open_collection
from periplus.cli.main import main
from periplus.ui.routes import SCREENS, application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places
from periplus_postgres.address import address_of
from periplus_postgres.connection import connect
from periplus_postgres.moving import move
from periplus_studies import api as survey
from periplus_studies.model import Campaign
from periplus_studies.units import unit_of
from periplus_topics.api.topics import TopicOrder, train_topic
from postgres_server import empty_collection
from stored import page, stored

HOME = "https://e.org/"
ANSWERS = {HOME: page("Harbour", "/a", "/gone"), f"{HOME}a": page("Pilots", "/"), f"{HOME}gone": 404}
READS = [
    ["status"], ["page", "/a"], ["pages"], ["links", "--to", "/a"], ["search", "pilots"], ["faults", "list"],
    ["trends"], ["diff", "1", "2"], ["report"], ["map"], ["duplicates"], ["check", "--offline"], ["jobs", "list"],
    ["index"], ["export", "pages"], ["export", "links"], ["export", "issues"], ["template"],
    ["map", "-f", "sitemap", "-o", "sitemaps"], ["topic", "list"], ["topic", "show", "t"], ["topic", "judge", "t"],
    ["survey", "status"], ["survey", "links"], ["survey", "export", "sites"], ["sql", "SELECT url, title FROM pages"],
]  # fmt: skip
INDEXING = ("search", "index")  # make a local index where readers share none
WRITES = [
    ["crawl", HOME], ["refresh"], ["check", HOME], ["delete", "/a", "--yes"], ["rules", "apply"],
    ["jobs", "add", "crawl", HOME], ["worker", "--until-done"], ["survey", "create", HOME],
    ["topic", "train", "sea", "-p", HOME, "-n", f"{HOME}a"], ["topic", "learn", "t"], ["topic", "remove", "t"],
    ["topic", "judge", "t", "--keep"], ["survey", "mark", "e.org"],
    ["survey", "links", "--kind", "internal", "--delete", "--yes"],
]  # fmt: skip


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """(owner's address, address of a role that may only read)."""
    folder = tmp_path_factory.mktemp("read-only") / "e.periplus"
    stored(folder, ANSWERS, [HOME])
    stored(folder, ANSWERS, [HOME])
    with open_collection(folder) as collection:
        train_topic(collection, TopicOrder("t", [HOME], [f"{HOME}a"]))
    survey.create(folder, Campaign("One site", (unit_of(HOME),)))
    role = f"reader_{uuid4().hex[:8]}"
    with empty_collection() as owner:
        move(str(folder), owner)
        address = address_of(owner)
        with contextlib.closing(connect(address)) as connection:
            connection.execute(f"CREATE ROLE {role} LOGIN".encode())
            connection.execute(f"GRANT USAGE ON SCHEMA {address.collection} TO {role}".encode())
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.collection} TO {role}".encode())
            connection.execute(f"REVOKE TEMPORARY ON DATABASE {connection.info.dbname} FROM PUBLIC".encode())
            try:
                yield address, f"{owner}&user={role}"
            finally:
                connection.execute(f"GRANT TEMPORARY ON DATABASE {connection.info.dbname} TO PUBLIC".encode())
                connection.execute(f"DROP OWNED BY {role}".encode())
                connection.execute(f"DROP ROLE {role}".encode())


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """The reader's own folders."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def state_of(address):
    """Everything that a write would change: each row with its transaction, also of locks."""
    with contextlib.closing(connect(address)) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        union = " UNION ALL ".join(
            f"SELECT '{name}', xmin::text, xmax::text, ctid::text FROM {name}" for (name,) in names
        )
        return sorted(connection.execute(union.encode()).fetchall())


def told(place, words):
    at = 2 if words[0] in ("export", "faults", "jobs", "portal", "rules", "survey", "topic") else 1
    return CliRunner().invoke(main, [*words[:at], "-c", place, *words[at:]])


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_every_reading_command_answers_and_writes_nothing(reader, at_home, words):
    owner, place = reader
    before = state_of(owner)
    ended = told(place, words)
    assert ended.exit_code in (0, 5), (ended.output, ended.exception)
    assert state_of(owner) == before
    made = [path for path in at_home.rglob("*") if path.is_file() and "sitemap" not in path.name]
    assert words[0] in INDEXING or made in ([], [at_home / "report.html"]), "it stores nothing of the collection"
    assert not [path for path in made if path.name == "collection.db"]


SEGMENTED = [
    ["pages", "--segment", "pilots"], ["links", "--segment", "other"], ["export", "pages", "--segment", "pilots"],
    ["export", "issues", "--segment", "other"], ["check", "--offline", "--segment", "other"],
]  # fmt: skip


@pytest.mark.parametrize("words", SEGMENTED, ids=" ".join)
def test_segments_are_read_without_a_copy(reader, at_home, words):
    owner, place = reader
    rules = at_home / "periplus.toml"
    rules.write_text('[segments]\npilots = "/a"\n', "utf-8")
    before = state_of(owner)
    ended = told(place, words)
    assert ended.exit_code in (0, 5) and HOME in ended.output, (ended.output, ended.exception)
    assert state_of(owner) == before
    assert [path for path in at_home.rglob("*") if path.is_file()] == [rules]


@pytest.mark.parametrize("words", WRITES, ids=" ".join)
def test_what_it_may_not_do_is_refused_in_a_sentence(reader, at_home, words):
    owner, place = reader
    before = state_of(owner)
    ended = told(place, words)
    assert isinstance(ended.exception, SystemExit) and ended.exit_code in (1, 2), (ended.output, ended.exception)
    refusals = ("permission denied for", "permission denied to create temporary", "the database user may only read")
    assert any(refusal in ended.output for refusal in refusals), ended.output
    assert state_of(owner) == before


def shown(place):
    """Status and text of every screen of `serve`."""
    state = AppState(places([place]), Locks(""), COMMANDS)
    (name,) = state.places.collections()
    values = {"name": name, "table": "pages", "topic": "t", "portal": "p", "view": "v", "what": "w", "ending": "json"}
    with TestClient(application(state), base_url="http://localhost") as browser:
        answers = {
            screen.path: browser.get(screen.path.format(**values), params={"url": HOME, "q": "pilots"})
            for screen in SCREENS
        }
    return {path: (answer.status_code, answer.text) for path, answer in answers.items()}


def test_every_screen_opens_as_for_the_owner_and_nothing_is_written_in_the_database(reader, at_home):
    owner, place = reader
    before = state_of(owner)
    screens = shown(place)
    assert state_of(owner) == before
    assert {path.name for path in Path(at_home).iterdir()} <= {"cache", "jobs.db", "notices.db"}
    expected = {path: status for path, (status, _) in shown(owner.text).items()}  # refused: a topic that is not there
    status, text = screens.pop("/c/{name}/delete")
    assert (status, "create temporary tables" in text) == (503, True), "the plan of a deletion needs them"
    assert {path: status for path, (status, _) in screens.items()} | {"/c/{name}/delete": 200} == expected
    assert sum(status == 200 for status in expected.values()) > 20
    assert not [path for path, (_, text) in screens.items() if "permission denied" in text]


def test_its_role_can_write_nothing_at_all(reader):
    with psycopg.connect(address_of(reader[1]).dsn, autocommit=True) as connection:
        for statement in ("CREATE TEMP TABLE t (n int)", f"DELETE FROM {reader[0].collection}.url"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
