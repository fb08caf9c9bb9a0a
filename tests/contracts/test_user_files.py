"""Files that users made, in a folder and in a database."""

from __future__ import annotations

import contextlib

import pytest

from periplus.api.homes import files_of
from periplus.errors import StoreError, UsageError
from periplus_postgres.connection import connect
from periplus_postgres.moving import into_database, silent
from stored import stored

NAME, LABELS = "topics/ships.json", "topics/ships.labels.jsonl"


@pytest.fixture(params=["folder", "database"])
def place(request, tmp_path):
    folder = stored(tmp_path / "c.periplus", {"https://e.org/": "<title>Home</title>"}, ["https://e.org/"])
    if request.param == "folder":
        return folder
    address = request.getfixturevalue("address")
    into_database(folder, address.text, silent)
    return address.text


def test_a_file_is_written_replaced_and_removed(place):
    files = files_of(place)
    assert files.read(NAME) is None and files.changed_s(NAME) == 0.0 and not files.remove(NAME)
    files.write(NAME, b"1")
    first_s = files.changed_s(NAME)
    files.write(NAME, bytes(range(256)))
    assert files.read(NAME) == bytes(range(256))
    assert files.changed_s(NAME) >= first_s > 1.7e9
    assert files.remove(NAME) and not files.remove(NAME)
    assert files.read(NAME) is None and files.names("topics/*") == []


def test_data_is_appended(place):
    files = files_of(place)
    files.append(LABELS, b"1\n")
    files_of(place).append(LABELS, b"2\n")
    assert files.read(LABELS) == b"1\n2\n"


def test_names_match_a_pattern(place):
    files = files_of(place)
    for name in (LABELS, NAME, "topics/a.json"):
        files.write(name, b"")
    assert files.names("topics/*.json") == ["topics/a.json", NAME]
    assert files.names("topics/ships.*") == [NAME, LABELS]


@pytest.mark.parametrize(
    "name", ["../evil.json", "topics/../../evil.json", "/tmp/evil.json", "topics/a.sh", "topics/.x.json", "a.json"]
)
def test_other_names_are_refused(place, name):
    files = files_of(place)
    for use in (files.read, files.changed_s, files.remove, lambda name: files.write(name, b"x")):
        with pytest.raises(UsageError, match="not the name of a user's file"):
            use(name)


def test_other_names_in_a_table_are_ignored_and_a_reader_may_not_write(address, tmp_path):
    with contextlib.closing(connect(address)) as database:
        into_database(
            stored(tmp_path / "c.periplus", {"https://e.org/": "x"}, ["https://e.org/"]), address.text, silent
        )
        files, role = files_of(address.text), f"reader_{address.collection}"
        files.write(NAME, b"1")
        database.execute("INSERT INTO file VALUES ('topics/../evil.json', 'x')")
        database.execute(f"CREATE ROLE {role} LOGIN".encode())
        database.execute(f"GRANT USAGE ON SCHEMA {address.collection} TO {role}".encode())
        database.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.collection} TO {role}".encode())
        try:
            reads = files_of(f"{address.text}&user={role}")
            assert reads.names("topics/*") == [NAME] and reads.read(NAME) == b"1"
            for write in (reads.write, reads.append):
                with pytest.raises(StoreError, match="permission denied for table file: the database user"):
                    write(NAME, b"2")
            assert files.read(NAME) == b"1"
        finally:
            database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
