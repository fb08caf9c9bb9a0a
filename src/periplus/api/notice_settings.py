"""By which mail server, and by which rules, do notices leave a folder of collections? As its notices.toml and the environment say.

The password is read from a file that it names or from the variable PERIPLUS_SMTP_PASSWORD: never from a command line, and kept nowhere.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from periplus.errors import UnknownSetting
from periplus.model.notice import MailSettings, NoticeSettings

FILE = "notices.toml"
PASSWORD = "PERIPLUS_SMTP_PASSWORD"
_MAIL: dict[str, type] = {"server": str, "port": int, "security": str, "user": str, "password_file": str, "sender": str, "ca_file": str}
_WEBHOOK: dict[str, type] = {"allow_private": bool, "ca_file": str}
_TABLES: dict[str, dict[str, type]] = {"mail": _MAIL, "webhook": _WEBHOOK, "interface": {"address": str}}


def notice_settings(folder: Path) -> NoticeSettings:
    """Raises UnknownSetting for a file that says what there is not."""
    content = _read(folder / FILE)
    mail, webhook = content["mail"], content["webhook"]
    security = str(mail.get("security", "starttls"))
    if security not in ("tls", "starttls", "none"):
        raise UnknownSetting(f"{folder / FILE}: security is tls, starttls or none, not {security!r}")
    settings = MailSettings(
        server=str(mail.get("server", "")), port=_port(mail.get("port"), security), security=security, user=str(mail.get("user", "")),
        password=_password(folder, str(mail.get("password_file", ""))), sender=str(mail.get("sender", "")), ca_file=str(mail.get("ca_file", "")),
    )  # fmt: skip
    if settings.server and "@" not in settings.sender:
        raise UnknownSetting(f"{folder / FILE}: the table [mail] needs a sender, like periplus@example.org")
    address = str(content["interface"].get("address", ""))
    return NoticeSettings(settings, webhook.get("allow_private") is True, str(webhook.get("ca_file", "")), address)


def _port(given: object, security: str) -> int:
    return given if isinstance(given, int) else {"tls": 465, "starttls": 587, "none": 25}[security]


def _password(folder: Path, file: str) -> str:
    if not file:
        return os.environ.get(PASSWORD, "")
    try:
        return (folder / file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownSetting(f"the password of the mail server cannot be read from {file}: {error}") from None


def _read(path: Path) -> dict[str, dict[str, object]]:
    try:
        content = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnknownSetting(f"{path} is not valid TOML: {error}") from None
    for name, table in content.items():
        if name not in _TABLES or not isinstance(table, dict):
            raise UnknownSetting(f"{path}: there is no table {name!r}: it may have {', '.join(f'[{one}]' for one in _TABLES)}")
        for key, value in table.items():
            if key not in _TABLES[name] or not isinstance(value, _TABLES[name][key]):
                raise UnknownSetting(f"{path}: [{name}] has {', '.join(_TABLES[name])}, each of its type; {key} = {value!r} is none of them")
    return {name: content.get(name, {}) for name in _TABLES}
