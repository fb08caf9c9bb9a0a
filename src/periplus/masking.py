"""Masks secrets in settings, commands and texts before they are stored or shown.

A setting may have a reference instead of a secret: `env:NAME`, `file:PATH` or `keyring:SERVICE/USER`. References are
not masked; `api.secrets.secret_of` resolves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

MASK = "***"
SECRETS = ("auth", "proxy")  # settings of a crawl that may hold a secret
SOURCES = "env:NAME, file:PATH or keyring:SERVICE/USER"
_HEADER = re.compile(r"(\S+ +[^:\s]+: *)(.*)", re.DOTALL)  # of the setting `header`
_PLAIN_HEADERS = ("accept", "accept-language", "cache-control", "dnt", "from", "referer", "user-agent")
_REFERENCE = re.compile(r"(?:env|file|keyring):.+")
# tokens are masked like passwords
_FLAGS = {
    "--auth": "auth",
    "--proxy": "proxy",
    "--header": "header",
    "--token": "auth",
}
_USER_INFO = re.compile(r"^([a-z0-9+.-]+://)?.*@", re.IGNORECASE | re.DOTALL)

# Addresses of collections in databases: postgresql://USER:PASSWORD@HOST/DATABASE?collection=NAME.

_SCHEME = r"postgres(?:ql)?:/{1,2}"  # with a single slash in paths
# not a port; up to the last @ before the parameters, since a password may contain any character
_USER_PASSWORD = re.compile(
    rf"({_SCHEME}[^:@/?#\[\s]*):(?!\d*(?:,[^@/]*)?(?:[/?#\s]|$))(?:(?!{_SCHEME})[^@\n])*@(?:[^\s'\"=&]*@)?",
    re.IGNORECASE,
)
# of segment storage, sftp://USER:PASSWORD@HOST/FOLDER, plain or percent-encoded
_SEGMENTS_PASSWORD = re.compile(
    r"(segments=[\w+.:-]+?(?:://|%3A%2F%2F)[^:@/%&\s'\"]*)(?::|%3A)(?:(?!%2F)[^/&\s'\"])*(@|%40)", re.IGNORECASE
)
# linear: a repetition ends at the next scheme, and a scheme has a limited length
_PASSWORD_PARAMETER = re.compile(
    rf"({_SCHEME}(?:(?!postgres(?:ql)?:/)[^\s'\"])*?[?&])(?:ssl)?password=[^&\s'\"]*&?", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"([a-z][a-z0-9+.-]{0,30}://[^\s/?#@:'\"]*):[^\s/?#]*@", re.IGNORECASE)  # of other URLs


def without_secrets(text: str) -> str:
    """A text without the passwords of its URLs.

    Passwords of PostgreSQL and segment storage URLs are removed: such a URL can still be used with PGPASSFILE or
    PGPASSWORD. In other URLs they are replaced by MASK.
    """
    text, more = _USER_PASSWORD.sub(r"\1@", _SEGMENTS_PASSWORD.sub(r"\1\2", text)), 1
    while more:
        text, more = _PASSWORD_PARAMETER.subn(r"\1", text)
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", text)


def masked_setting(name: str, value: Any) -> Any:
    """The value of a setting with secrets masked."""
    if isinstance(value, list | tuple):
        return [masked_setting(name, item) for item in value]
    if not isinstance(value, str) or _REFERENCE.fullmatch(value):
        return value
    if name == "header" and (parts := _HEADER.fullmatch(value)):
        is_plain = parts[1].split()[1].rstrip(":").lower() in _PLAIN_HEADERS or _REFERENCE.fullmatch(parts[2])
        return value if is_plain else parts[1] + MASK
    if name == "proxy":
        return _USER_INFO.sub(rf"\1{MASK}@", value)
    return value and MASK if name == "auth" else without_secrets(value)


def masked_command(words: Iterable[str]) -> tuple[str, ...]:
    """The words of a command with secrets masked."""
    return tuple(_masked_word(before, word) for before, word in pairwise(("", *words)))


def _masked_word(before: str, word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and name in _FLAGS:
        return f"{name}={masked_setting(_FLAGS[name], value)}"
    return str(masked_setting(_FLAGS.get(before, ""), word))
