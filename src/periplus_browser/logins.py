"""Reads login definitions from TOML files or tables [login.NAME] in periplus.toml, with secrets from other sources."""

from __future__ import annotations

import re
import tomllib
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from periplus.api.secrets import lies_in, secret_of
from periplus.document import html
from periplus.errors import InvalidUrl, StoreError, UsageError
from periplus.masking import SOURCES
from periplus.model.web import Origin, Url
from periplus.settings import SETTINGS_FILE, read_tables
from periplus.store.sqlite.reading import profile_cookies
from periplus.urls.canonical import canonical
from periplus.urls.hosts import host_name, is_within, origin_of
from periplus.urls.user_patterns import UserPattern, user_pattern
from periplus.values import Pairs, nearest
from periplus_browser.login import Cookie, Login, Sign

KEYS = (
    "hosts", "form", "selector", "fields", "headers", "bearer", "basic", "cookies", "cookie_file", "check", "signed_in",
    "signed_out", "never", "allow",
)  # fmt: skip
SIGNS = ("text", "selector", "address")
_SECRET_FIELD = re.compile(r"pass|pwd|secret|token|pin\b|otp|key", re.IGNORECASE)
_LINE = re.compile(r"[\x20-\x7e]+")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2


def logins_of(names: Iterable[str], folder: Path) -> tuple[Login, ...]:
    """The logins with these names: each the path of a file or a NAME of [login.NAME] in a periplus.toml.

    folder: of the collection; it must not contain secrets. Raises UsageError; messages never contain secrets.
    """
    logins = tuple(_find_login(name, folder) for name in names)
    taken: dict[Origin, str] = {}
    for login in logins:
        for origin in login.origins:
            if origin in taken:
                raise UsageError(
                    f"the logins {taken[origin]!r} and {login.name!r} both name {origin}: only one login "
                    "per host is allowed"
                )
            taken[origin] = login.name
    return logins


def _find_login(name: str, folder: Path) -> Login:
    tables: dict[str, tuple[Path, Any]] = {}
    for path in (Path(SETTINGS_FILE), folder / SETTINGS_FILE):
        given = read_tables(path).get("login", {})
        if isinstance(given, dict):
            tables |= {key: (path, table) for key, table in given.items()}
    if name in tables:
        path, table = tables[name]
        return login_of(table, name, f"{path}, [login.{name}]", folder, is_public=True)
    path = Path(name).expanduser()
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        named = f"; defined logins: {', '.join(tables)}" if tables else ""
        raise UsageError(f"--login {name}: no such file or table [login.{name}]{named}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--login {name}: it cannot be read: {type(error).__name__}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"--login {name}: it is not valid TOML: {error}") from None
    return login_of(table, path.stem, str(path), folder, is_public=lies_in(path, folder))


class _Reader:
    """Reads the values of one login. where: for messages. is_public: its file may be copied with the collection."""

    def __init__(self, table: Mapping[str, Any], where: str, folder: Path, *, is_public: bool) -> None:
        self.table, self.where, self.folder, self.is_public = table, where, folder, is_public

    def wrong(self, what: str) -> UsageError:
        return UsageError(f"{self.where}: {what}")

    def text(self, key: str) -> str:
        value = self.table.get(key, "")
        if not isinstance(value, str):
            raise self.wrong(f"{key} must be a string")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(f"{key} must be a list of strings")
        return tuple(value)

    def pairs(self, key: str) -> dict[str, str]:
        value = self.table.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise self.wrong(f'{key} must be a table of strings, as in {key} = {{ name = "value" }}')
        return dict(value)

    def url(self, key: str) -> Url | None:
        try:
            return canonical(self.text(key)) if self.text(key) else None
        except InvalidUrl as error:
            raise self.wrong(f"{key}: {error}") from None

    def secret(self, key: str, value: str, *, always: bool = True) -> str:
        """The secret that a value refers to, or the value itself if it may be written in the file."""
        secret = secret_of(value, self.folder, f"{self.where}: {key}")
        if not secret and self.is_public and always:
            raise self.wrong(f"{key}: a secret must not be stored in the collection's folder: use {SOURCES}")
        return secret or value

    def line(self, key: str, value: str) -> str:
        """The secret that a value refers to, or the value, valid in a header."""
        secret = self.secret(key, value)
        if not _LINE.fullmatch(secret):
            raise self.wrong(f"{key}: a header value must be one line of ASCII")
        return secret

    def sign(self, key: str) -> Sign:
        given = self.pairs(key)
        for name in given:
            if name not in SIGNS:
                raise self.wrong(f"{key} may have text, selector or address, not {name!r}")
        sign = Sign(" ".join(given.get("text", "").split()), given.get("selector", ""), given.get("address", ""))
        self.check_selector(f"{key}.selector", sign.selector)
        return sign

    def check_selector(self, key: str, selector: str) -> None:
        try:
            html.select(html.parse(""), selector or "a")
        except ValueError as error:
            raise self.wrong(f"{key}: {error}") from None

    def patterns(self, key: str) -> tuple[UserPattern, ...]:
        return tuple(user_pattern(text, f"{self.where}: {key}") for text in self.texts(key))

    def origins(self) -> frozenset[Origin]:
        """Origins in `hosts` (https by default); without `hosts`, those of the form or of the page to check."""
        named = self.texts("hosts") or tuple(filter(None, (self.text("form"), self.text("check"))))
        if not named:
            raise self.wrong('hosts must name where the login is sent, as in hosts = ["intranet.example.org"]')
        try:
            return frozenset(origin_of(canonical(text if "://" in text else f"https://{text}/")) for text in named)
        except InvalidUrl as error:
            raise self.wrong(f"hosts: {error}") from None


def login_of(table: Any, name: str, where: str, folder: Path, *, is_public: bool) -> Login:
    """A login from its table, with resolved secrets. Raises UsageError."""
    if not isinstance(table, dict):
        raise UsageError(f"{where}: a login must be a table")
    for key in table:
        if key not in KEYS:
            raise UsageError(f"{where}: unknown key {key!r}{nearest(key, KEYS)}; a login may have {', '.join(KEYS)}")
    reader = _Reader(table, where, folder, is_public=is_public)
    form, check, origins = reader.url("form"), reader.url("check"), reader.origins()
    signed_in, fields = reader.sign("signed_in"), _fields(reader)
    headers, cookies = _headers(reader), _cookies(reader, origins)
    reader.check_selector("selector", reader.text("selector"))
    if form is None and not headers and not cookies:
        raise reader.wrong("it has nothing to sign in with: form and fields, headers, bearer, basic or cookies")
    if form is not None and not (fields and signed_in):
        raise reader.wrong("a form needs fields, and signed_in: a text, selector or address seen only when signed in")
    if form is None and signed_in and check is None:
        raise reader.wrong("signed_in without a form needs check: the address of a page that shows it")
    for key, url in (("form", form), ("check", check)):
        if url is not None and origin_of(url) not in origins:
            raise reader.wrong(f"{key} is on {origin_of(url)}, which is not in hosts")
    return Login(
        name, origins, headers, cookies, form, fields, reader.text("selector"), check, signed_in,
        reader.sign("signed_out"), reader.patterns("never"), reader.patterns("allow"),
    )  # fmt: skip


def _fields(reader: _Reader) -> Pairs:
    fields = reader.pairs("fields")
    return tuple(
        (name, reader.secret(f"fields.{name}", value, always=bool(_SECRET_FIELD.search(name))))
        for name, value in fields.items()
    )


def _headers(reader: _Reader) -> tuple[str, ...]:
    lines = []
    for name, value in reader.pairs("headers").items():
        if not _TOKEN.fullmatch(name) or name.lower() in ("host", "cookie", "content-length", "user-agent"):
            raise reader.wrong(f"headers: {name!r} is not a header that a login may set")
        lines.append(f"{name}: {reader.line(f'headers.{name}', value)}")
    if reader.text("bearer"):
        lines.append(f"Authorization: Bearer {reader.line('bearer', reader.text('bearer'))}")
    if reader.text("basic"):
        pair = reader.secret("basic", reader.text("basic"))
        lines.append(f"Authorization: Basic {b64encode(pair.encode()).decode()}")
    return tuple(lines)


def _cookies(reader: _Reader, origins: frozenset[Origin]) -> tuple[Cookie, ...]:
    for name in reader.pairs("cookies"):
        if not _TOKEN.fullmatch(name):
            raise reader.wrong(f"cookies: {name!r} is not a valid cookie name")
    cookies = [
        Cookie(name, reader.line(f"cookies.{name}", value), host_name(Url(origin)))
        for name, value in reader.pairs("cookies").items()
        for origin in sorted(origins)
    ]
    if not (path := reader.text("cookie_file")):
        return tuple(cookies)
    if lies_in(Path(path).expanduser(), reader.folder):
        raise reader.wrong("cookie_file: the file is in the collection's folder: store it elsewhere")
    try:
        place = Path(path).expanduser()
        text = profile_cookies(place) if place.is_dir() else place.read_text("utf-8")
    except StoreError as error:
        raise reader.wrong(f"cookie_file: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise reader.wrong(f"cookie_file: {path} cannot be read: {type(error).__name__}") from None
    filed = netscape_cookies(text)
    names = {host_name(Url(origin)) for origin in origins}
    own = [
        cookie
        for cookie in filed
        if any(is_within(name, cookie.domain) if cookie.below else name == cookie.domain for name in names)
    ]
    if not own:
        raise reader.wrong(f"cookie_file: {path} has no cookie for {', '.join(sorted(names))}")
    return (*cookies, *own)


def netscape_cookies(text: str) -> tuple[Cookie, ...]:
    """Cookies of a Netscape cookies.txt file (seven columns separated by tabs); ignores other lines."""
    cookies = []
    for line in text.splitlines():
        columns = line.removeprefix("#HttpOnly_").split("\t")
        if len(columns) != 7 or (line.startswith("#") and not line.startswith("#HttpOnly_")):
            continue
        domain, below, path, secure, expires, name, value = columns
        if not name or not _LINE.fullmatch(name + value):
            continue
        ends = float(expires) if expires.isdigit() and int(expires) else float("inf")
        host = domain.lstrip(".").lower()
        cookies.append(Cookie(name, value, host, path or "/", below == "TRUE", secure == "TRUE", ends))
    return tuple(cookies)
