"""What a secret is, and how it is masked: in settings, commands and texts, before they are written or shown.

A setting may name where its secret stands: `env:NAME`, `file:PATH` or `keyring:SERVICE/USER`. Such a reference is no
secret and is kept; `api.logins.secret_of` reads what it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

MASK = "***"
SECRETS = ("auth", "proxy")  # settings of a crawl that may hold a secret
SOURCES = "env:NAME, file:PATH or keyring:SERVICE/USER"
_REFERENCE = re.compile(r"(?:env|file|keyring):.+")
_FLAGS = {"--auth": "auth", "--proxy": "proxy", "--token": "auth"}  # a token is masked as a password is
_USER_INFO = re.compile(r"^([a-z0-9+.-]+://)?.*@", re.IGNORECASE | re.DOTALL)

# Addresses of collections in databases, postgresql://USER:PASSWORD@HOST/DATABASE?collection=NAME, as texts name them.

_SCHEME = r"postgres(?:ql)?:/{1,2}"  # one slash: as a path has it
# not a port; to the first @, and to further ones before any parameter, whatever a password has in it
_USER_PASSWORD = re.compile(
    rf"({_SCHEME}[^:@/?#\[\s]*):(?!\d*(?:,[^@/]*)?(?:[/?#\s]|$))(?:(?!{_SCHEME})[^@\n])*@(?:[^\s'\"=&]*@)?",
    re.IGNORECASE,
)
# of the place of segments, sftp://USER:PASSWORD@HOST/FOLDER, written plainly or in per cent
_SEGMENTS_PASSWORD = re.compile(
    r"(segments=[\w+.:-]+?(?:://|%3A%2F%2F)[^:@/%&\s'\"]*)(?::|%3A)(?:(?!%2F)[^/&\s'\"])*(@|%40)", re.IGNORECASE
)
_PASSWORD_PARAMETER = re.compile(rf"({_SCHEME}[^\s'\"]*?[?&])(?:ssl)?password=[^&\s'\"]*&?", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"([a-z][a-z0-9+.-]*://[^\s/?#@:'\"]*):[^\s/?#]*@", re.IGNORECASE)  # of any other


def without_secrets(text: str) -> str:
    """A text without the passwords of the addresses in it.

    Those of PostgreSQL addresses and of the places of their segments are cut out: such an address can still be used
    where PGPASSFILE or PGPASSWORD says the password. In other addresses MASK stands in their place.
    """
    text, more = _USER_PASSWORD.sub(r"\1@", _SEGMENTS_PASSWORD.sub(r"\1\2", text)), 1
    while more:
        text, more = _PASSWORD_PARAMETER.subn(r"\1", text)
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", text)


def masked_setting(name: str, value: Any) -> Any:
    """The value of a setting as it may be stored and shown."""
    if isinstance(value, list | tuple):
        return [masked_setting(name, one) for one in value]
    if not isinstance(value, str) or _REFERENCE.fullmatch(value):
        return value
    if name == "proxy":
        return _USER_INFO.sub(rf"\1{MASK}@", value)
    return value and MASK if name == "auth" else without_secrets(value)


def masked_command(words: Iterable[str]) -> tuple[str, ...]:
    """The words of a command as they may be stored and shown."""
    return tuple(_masked_word(before, word) for before, word in pairwise(("", *words)))


def _masked_word(before: str, word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and name in _FLAGS:
        return f"{name}={masked_setting(_FLAGS[name], value)}"
    return str(masked_setting(_FLAGS.get(before, ""), word))
