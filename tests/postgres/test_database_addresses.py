"""Addresses of collections in databases: passwords never appear in texts, and invalid addresses are refused."""

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.masking import without_secrets
from periplus_postgres.address import address_of


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("postgresql://me:s3cret@db/x?collection=a", "postgresql://me@db/x?collection=a"),
        ("postgres://me:s3@cret@db:1/x", "postgres://me@db:1/x"),
        ("postgresql://me:12,x@h/d", "postgresql://me@h/d"),
        ("postgresql://me:s3/cret@db/x", "postgresql://me@db/x"),
        ("postgresql:/me:my s3cret@h/x", "postgresql:/me@h/x"),
        ("postgresql:///x?user=a&password=s3cret&collection=b", "postgresql:///x?user=a&collection=b"),
        ("'postgresql://a:s3cret@h/x' and postgresql://b:s3cret@h/x", "'postgresql://a@h/x' and postgresql://b@h/x"),
        *((same, same) for same in [
            "postgresql://db:5432/x?y=a@b", "postgresql://a:1,b:2/x?y=a@b", "postgresql://[::1]:5432/x?y=a@b",
            "postgresql://me@db/x", "http://h:80/a:b@c", "http://me@h/", "me@h: postgresql", "",
        ]),
        ("http://me:s3cret@h/ and socks5h://me:s3@cret@h:1", "http://me:***@h/ and socks5h://me:***@h:1"),
    ],
)  # fmt: skip
def test_only_passwords_are_removed_from_texts(text, safe):
    assert without_secrets(text) == safe


@given(st.text("abc019:/?#@%,-", min_size=1))
def test_no_valid_password_is_left_in_a_text(password):
    text = f"postgresql://me:X{password}X@db.example/x?collection=press"
    try:
        address = address_of(text)
    except UsageError as error:
        assert f"X{password}X" not in str(error)
        return
    assert f"X{password}X" not in f"{address} {address!r}"
    assert without_secrets(text) == "postgresql://me@db.example/x?collection=press"


def test_an_address_of_another_kind_of_database_is_refused():
    with pytest.raises(UsageError, match=r"mysql://me:\*\*\*@db/x is not the address of a database"):
        address_of("mysql://me:s3cret@db/x")


@pytest.mark.parametrize("place", ["memory://x", "simplecache::memory://x"])
def test_a_store_of_segments_in_process_memory_is_refused(place):
    with pytest.raises(UsageError, match="is lost when this process ends"):
        address_of(f"postgresql://me@db/x?segments={place}")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("search port --stoer postgresql://me:s3cret@db/x", "No such option '--stoer'"),
        ("search port -storm", "in quotes"),
        ("jobs add crawl --stoer x", "No such option '--stoer'"),
        ("jobs add topic trane x", "periplus topic has no command trane"),
        ("jobs add --stoer x crawl x", "No such option '--stoer'"),
        ("demo -c postgresql://me:s3cret@db/x", "No such option '-c'"),
        ("map -c postgresql:/me:s3cret@db/x", "a folder is meant here"),
        ("map -c postgresql://me:s3cret@db/x -c here", "name only one"),
        ("map -c here -c postgresql://me:s3cret@db/x", "name only one"),
        ("report postgresql://me:s3cret@db/x", "unexpected extra argument (postgresql://me@db/x)"),
        ("postgresql://me:s3cret@db/x", "No such command 'postgresql://me@db/x'"),
        ("crawl -c postgresql://me:s3/cret@db/x http://a.test/", "USER:PASSWORD@HOST:PORT"),
    ],
)
def test_commands_refuse_unknown_options_without_showing_a_password(line, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, line.split())
    assert ran.exit_code == 2
    assert sentence in ran.output
    assert "cret" not in ran.output


NOWHERE = "postgresql://me:s3cret@127.0.0.1:1/x?collection=press&sslmode=none"  # libpq refuses it without connecting
REFUSED = "periplus: postgresql://me@127.0.0.1:1/x?collection=press cannot be opened"


def test_a_collection_is_given_by_an_option_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in (f"status -c {NOWHERE}", f"status -c {NOWHERE}", f"refresh -c {NOWHERE}", "map", "status"):
        ran = CliRunner().invoke(main, line.split(), env={"PERIPLUS_COLLECTION": NOWHERE})
        assert REFUSED in ran.output, line
    ran = CliRunner().invoke(main, ["status", "-c", "elsewhere"], env={"PERIPLUS_COLLECTION": NOWHERE})
    assert "elsewhere has no collection" in ran.output


def test_the_job_queue_is_in_the_database_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, ["jobs", "list"], env={"PERIPLUS_COLLECTION": NOWHERE})
    assert REFUSED in ran.output
    ran = CliRunner().invoke(main, ["jobs", "list"], env={"PERIPLUS_COLLECTION": "press.periplus"})
    assert (ran.exit_code, ran.output[:8]) == (0, "No jobs:")
