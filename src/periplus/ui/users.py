"""Users of the interface with the roles look, work or administer, each with a token."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from periplus.errors import StoreError, UsageError
from periplus.files import replace_file
from periplus.values import frozen

FILE = "users.json"  # in the folder of collections; only its owner may read it
_NAME = re.compile(r"[\w][\w.@+-]{0,63}")
TOKEN_BYTES = 24  # random bytes: cannot be guessed, so a plain digest is enough


class Role(StrEnum):
    """A role, least first; each includes the roles before it. The value is visible to users: stable."""

    LOOK = "look"  # all screens and files except administrators' ones
    WORK = "work"  # start, stop and change crawls, surveys, topics, portals
    ADMINISTER = "administer"  # delete collections, see and change subscriptions

    def allows(self, needed: Role) -> bool:
        return list(Role).index(self) >= list(Role).index(needed)


@frozen
class User:
    """A user. digest: SHA-256 of the token, hexadecimal; made: seconds since the epoch, UTC."""

    name: str
    role: Role
    digest: str
    made: float

    @property
    def session(self) -> str:
        """The cookie's value: derived from the token's digest and does not reveal it; a new token ends the session."""
        return hmac.new(self.digest.encode(), b"periplus session", hashlib.sha256).hexdigest()


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(slots=True)
class Users:
    """The users of a folder of collections, reread when their file has changed, so that a removed user loses access at
    once.
    """

    folder: Path | None = None  # None: there are none
    _stamp: tuple[int, int, int] = (0, 0, 0)
    _read: tuple[User, ...] = ()
    _secret: str = ""

    def all(self) -> Sequence[User]:
        """Raises StoreError for a damaged file: then no user has access."""
        if self.folder is None:
            return ()
        try:
            facts = (self.folder / FILE).stat()
        except FileNotFoundError:
            self._stamp, self._read, self._secret = (0, 0, 0), (), ""
            return ()
        stamp = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        if stamp != self._stamp:
            self._secret, self._read = _parse(self.folder / FILE)
            self._stamp = stamp
        return self._read

    @property
    def secret(self) -> str:
        """Secret for derived keys that no user's token may open; empty without users."""
        return self._secret if self.all() else ""

    def of_token(self, token: str) -> User | None:
        """Takes the same time whichever user it is."""
        return _matching(self.all(), digest_of(token), "digest")

    def of_session(self, cookie: str) -> User | None:
        return _matching(self.all(), cookie, "session")

    def add(self, name: str, role: Role, now: float | None = None) -> str:
        """Adds a user, or gives one another role and token; returns the token, which is stored nowhere.

        Raises UsageError for a name that is none, StoreError.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"a user cannot be called {name[:80]!r}: letters, digits and . @ + - _, at most 64")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        made = time.time() if now is None else now
        others = [user for user in self.all() if user.name != name]
        self._write([*others, User(name, role, digest_of(token), made)])
        return token

    def remove(self, name: str) -> None:
        """Raises UsageError where there is none, StoreError."""
        others = [user for user in self.all() if user.name != name]
        if len(others) == len(self.all()):
            names = ", ".join(user.name for user in self.all()) or "there are none"
            raise UsageError(f"there is no user {name[:80]!r}; the users: {names}")
        self._write(others)

    def _write(self, users: Sequence[User]) -> None:
        assert self.folder is not None
        content = {
            "secret": self.secret or secrets.token_urlsafe(TOKEN_BYTES),
            "users": [asdict(user) for user in users],
        }
        try:
            replace_file(self.folder / FILE, json.dumps(content, indent=1).encode())
        except OSError as error:
            raise StoreError(f"{self.folder / FILE} cannot be written: {error.strerror}") from None


def _matching(users: Sequence[User], given: str, attribute: str) -> User | None:
    match = None
    for user in users:
        if hmac.compare_digest(getattr(user, attribute).encode(), given.encode("utf-8", "replace")):
            match = user
    return match


def _parse(path: Path) -> tuple[str, tuple[User, ...]]:
    try:
        content = json.loads(path.read_text("utf-8"))
        users = tuple(replace(User(**row), role=Role(row["role"])) for row in content["users"])
        return str(content["secret"]), users
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"{path} cannot be read as a list of users: {error}. Remove it, and add the users again."
        ) from None
