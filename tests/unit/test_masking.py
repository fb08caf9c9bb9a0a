"""Masking of secrets in settings and commands."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from periplus.api.secrets import secret_of
from periplus.errors import UsageError
from periplus.masking import masked_command, masked_setting


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        ("auth", "me:s3cret", "***"),
        ("auth", "", ""),
        ("auth", "env:OUR_AUTH", "env:OUR_AUTH"),
        ("auth", "file:/home/me/auth", "file:/home/me/auth"),
        ("auth", "keyring:proxy/me", "keyring:proxy/me"),
        ("proxy", "http://me:s3cret@h:3128", "http://***@h:3128"),
        ("proxy", "http://s3cret@h:3128", "http://***@h:3128"),
        ("proxy", "me:s3/cr@et@h:3128", "***@h:3128"),
        ("proxy", "socks5h://h:1080", "socks5h://h:1080"),
        ("proxy", "env:OUR_PROXY", "env:OUR_PROXY"),
        ("header", "h X-Key: s3cret: 1", "h X-Key: ***"),
        ("header", "h Authorization: Bearer s3cret", "h Authorization: ***"),
        ("header", "h X-Key: env:OUR_KEY", "h X-Key: env:OUR_KEY"),
        ("header", "h Accept-Language: de", "h Accept-Language: de"),
        ("from_archive", "cdx:https://me:s3cret@web.example/cdx", "cdx:https://me:***@web.example/cdx"),
        ("resolve", ("a:80:127.0.0.1",), ["a:80:127.0.0.1"]),
        ("max_pages", 3, 3),
    ],
)
def test_the_secret_of_a_setting_is_masked(name, value, masked):
    assert masked_setting(name, value) == masked
    assert masked_setting(name, masked) == masked


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        ("crawl http://me:s3cret@a.test/ -o C", "crawl http://me:***@a.test/ -o C"),
        ("crawl u --auth me:s3cret --proxy http://s3cret@h", "crawl u --auth *** --proxy http://***@h"),
        ("crawl u --auth=me:s3cret --proxy=me:s3cret@h", "crawl u --auth=*** --proxy=***@h"),
        ("serve --token s3cret", "serve --token ***"),
        ("worker -c postgresql://me:s3cret@db/x?collection=a", "worker -c postgresql://me@db/x?collection=a"),
        ("crawl u --auth env:A --proxy=file:B --auth", "crawl u --auth env:A --proxy=file:B --auth"),
        ("crawl u --author me:s3cret", "crawl u --author me:s3cret"),
    ],
)
def test_the_secrets_of_a_command_are_masked(words, masked):
    assert " ".join(masked_command(words.split())) == masked
    assert masked_command(masked.split()) == tuple(masked.split())


def test_the_value_of_a_header_is_masked_in_a_command():
    words = ("crawl", "u", "--header", "h X-Key: s3cret", "--header=h X-Key: env:KEY")
    assert masked_command(words) == ("crawl", "u", "--header", "h X-Key: ***", "--header=h X-Key: env:KEY")


def test_a_secret_is_read_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {("proxy", "me"): "s3cret"}
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=lambda *name: known.get(name)))
    monkeypatch.setitem(sys.modules, "keyring.errors", SimpleNamespace(KeyringError=OSError))
    assert secret_of("keyring:proxy/me", Path(), "--auth") == "s3cret"
    with pytest.raises(UsageError, match="nothing for proxy/you"):
        secret_of("keyring:proxy/you", Path(), "--auth")
