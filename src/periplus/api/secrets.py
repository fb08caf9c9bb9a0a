"""Resolves secrets that settings and logins refer to: variables of the environment, files, the keyring."""

from __future__ import annotations

import dataclasses
import importlib
import os
from pathlib import Path
from typing import Any

from periplus.acquire.transport import header_of
from periplus.errors import UsageError
from periplus.masking import MASK, SECRETS, SOURCES
from periplus.settings import Identity


def lies_in(path: Path, folder: Path) -> bool:
    """Whether the path is inside the collection's folder; always False for the default folder `.`."""
    return folder != Path() and path.resolve().is_relative_to(folder.resolve())


def resolve_secrets(identity: Identity, folder: Path) -> Identity:
    """The identity with its secrets resolved. Raises UsageError for a secret that was masked when stored."""
    secrets: dict[str, Any] = {}
    for name in SECRETS:
        value = getattr(identity, name)
        if MASK in value:
            raise UsageError(
                f"the secret of --{name} was not stored: give --{name} again, or name its source ({SOURCES}), which is "
                "stored"
            )
        secrets[name] = secret_of(value, folder, f"--{name}") or value
    secrets["header"] = tuple(_with_secret(entry, folder) for entry in identity.header)
    return dataclasses.replace(identity, **secrets)


def _with_secret(entry: str, folder: Path) -> str:
    """An entry of the setting `header` with its secret resolved."""
    host, line = header_of(entry)
    name, _, value = line.partition(": ")
    if value == MASK:
        raise UsageError(f"the value of --header {host} {name} was not stored: give it again, or name its source")
    return f"{host} {name}: {secret_of(value, folder, f'--header {host} {name}') or value}"


def secret_of(value: str, folder: Path, where: str) -> str:
    """The secret that a value refers to; empty if it is no reference. Raises UsageError; messages have no secrets."""
    source, colon, name = value.partition(":")
    reader = _SOURCES.get(source) if colon else None
    if reader is None:
        return ""
    try:
        secret = reader(name.strip(), folder)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    if not secret:
        raise UsageError(f"{where}: {value} is empty")
    return secret


def _of_environment(name: str, folder: Path) -> str:
    if name not in os.environ:
        raise UsageError(f"the environment has no variable {name}")
    return os.environ[name]


def _of_file(name: str, folder: Path) -> str:
    path = Path(name).expanduser()
    if lies_in(path, folder):
        raise UsageError(f"{name} is in the collection's folder: store it elsewhere")
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} cannot be read: {type(error).__name__}") from None


def _of_keyring(name: str, folder: Path) -> str:
    service, _, user = name.partition("/")
    try:
        keyring, errors = importlib.import_module("keyring"), importlib.import_module("keyring.errors")
    except ModuleNotFoundError:
        raise UsageError("keyring: needs the package keyring, which is not installed: pip install keyring") from None
    try:
        secret = keyring.get_password(service, user)
    except errors.KeyringError as error:
        raise UsageError(f"the keyring does not answer: {type(error).__name__}") from None
    if secret is None:
        raise UsageError(f"the keyring has nothing for {service}/{user}")
    return str(secret)


_SOURCES = {"env": _of_environment, "file": _of_file, "keyring": _of_keyring}
