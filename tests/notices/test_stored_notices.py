"""Notices of a collection in a database equal those of the same collection in a folder."""

import contextlib
import sqlite3

import pytest
from starlette.testclient import TestClient

from interface import COMMANDS
from periplus.model.job import Job, JobOrder, JobState
from periplus.ui.routes import application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places
from periplus_notices import api as notices
from periplus_notices.api import Notifier
from periplus_notices.model import NoticeKind
from periplus_notices.present import screen
from periplus_postgres.connection import connect
from periplus_postgres.moving import into_database, silent
from stored import page, stored

HOME = "https://e.org/"
WEB = {HOME: page("Home", "/a"), "https://e.org/a": page("A", "/")}
SUSPICIOUS = "UPDATE run SET state = 'suspicious', note = 'nothing came'"


def with_secret(address):
    return f"{address.text}&password=s3cret"


@pytest.fixture
def told_of_both(tmp_path, monkeypatch, address):
    """(folder of collections, notices of the folder, notices of the database)."""
    monkeypatch.chdir(tmp_path)
    folder = stored(tmp_path / "e.periplus", WEB, [HOME])
    for number, change in enumerate(("", "INSERT INTO site (key) VALUES ('new.net')", SUSPICIOUS)):
        with contextlib.closing(sqlite3.connect(folder / "collection.db")) as raw, raw:
            raw.execute("DELETE FROM meta WHERE name = 'moved'")
            raw.execute(change)
        with contextlib.closing(connect(address)) as database:
            database.execute(f"DROP SCHEMA IF EXISTS {address.collection} CASCADE".encode())
        into_database(folder, address.text, silent)
        told = [notices.look(tmp_path, place, 1.0 + number) for place in (folder, with_secret(address))]
    return tmp_path, *told


def test_a_signed_out_crawl_is_told(tmp_path):
    folder = stored(tmp_path / "e.periplus", WEB, [HOME])
    notices.look(tmp_path, folder, 1.0)
    with contextlib.closing(sqlite3.connect(folder / "collection.db")) as raw, raw:
        raw.execute("UPDATE run SET state = 'stopped', note = 'login ''wiki'': 401; signed out'")
    (told,) = notices.look(tmp_path, folder, 2.0)
    assert told.subjects == ("run 1: stopped, login 'wiki': 401; signed out",)


def test_notices_are_equal_and_have_no_password(told_of_both, address):
    base, of_folder, of_database = told_of_both
    assert {notice.kind for notice in of_folder} == {NoticeKind.SUSPICIOUS}
    kinds = [[(notice.kind, notice.subjects, notice.count) for notice in told] for told in (of_folder, of_database)]
    assert kinds[0] == kinds[1]
    assert {notice.collection for notice in of_database} == {notices.noticed_name(with_secret(address))}
    assert "s3cret" not in str(of_database) + notices.feed(base, with_secret(address))
    assert notices.feed(base, with_secret(address)).count("<entry>") == 2
    assert screen(of_database[0], "https://x.example/").startswith(f"https://x.example/c/{address.collection}/")


def test_a_subscription_to_an_address_gets_its_notices_only(told_of_both, address):
    base, *_ = told_of_both
    made, _ = notices.subscribe(base, "http://127.0.0.1:9/hook", (), with_secret(address))
    assert made.collection == notices.noticed_name(address.text)
    assert "s3cret" not in str(made)


def test_failed_jobs_of_addresses_are_reported(told_of_both, address):
    base, *_ = told_of_both
    assert notices.collections_of(base, ("check", "-c", address.text)) == [address.text]
    assert notices.collections_of(base, ("check", f"--collection={address.text}")) == [address.text]
    order = JobOrder(("check", "-c", address.text))
    Notifier(base)(Job(1, order, JobState.FAILED, 0, 0, "it failed", 1, 1, "", False, 1.0, 1.0, 2.0))
    with notices.book(base) as book:
        (failed,) = [one for one in book.notices(most=9) if one.kind is NoticeKind.FAILED]
    assert failed.collection == notices.noticed_name(address.text)


def test_the_screen_of_notices_offers_both(told_of_both, address):
    base, *_ = told_of_both
    state = AppState(places([base, with_secret(address)]), Locks("", ()), COMMANDS)
    answer = TestClient(application(state), base_url="http://127.0.0.1:8321").get("/notices")
    assert notices.noticed_name(address.text).replace("&", "&amp;") in answer.text and "s3cret" not in answer.text
    assert f"/feeds/{address.collection}.atom" in answer.text
