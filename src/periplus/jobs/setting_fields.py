"""Settings as fields of forms: their default values with sources, and the command-line flags of a filled form.

Values are checked by the table of settings, with the same messages as flags. Forms cannot set files of the server's
machine, passwords, or ignoring robots.txt. Settings for the user's own sites or private addresses need an explicit
consent: WITHHELD.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from periplus.errors import UnknownSetting, UsageError
from periplus.masking import SECRETS, masked_setting
from periplus.present.wording import size
from periplus.settings import (
    DELAY_FLOOR_S,
    SettingPreset,
    SettingRow,
    as_values,
    edited_toml,
    read_files,
    rows,
    settings_from,
)
from periplus.values import frozen

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

Form = Mapping[str, str]
PREFIX = "set_"  # of a field's name; that of its setting follows
EVERYDAY = frozenset({"max_pages", "max_depth", "delay_s", "include", "exclude"})  # have fields of their own
TITLES = {
    "scope": "Where", "budget": "How much", "politeness": "How polite", "storage": "What to keep",
    "rendering": "Rendering", "identity": "Network", "limits": "Limits of one exchange",
    "auditing": "Faults", "searching": "Search", "past": "Archives",
}  # fmt: skip
_A_FILE = "Names a file of the server's machine: written into periplus.toml."
WITHHELD = {
    "cookie_file": _A_FILE, "login": _A_FILE, "ca_file": _A_FILE, "folders": _A_FILE, "resolve": _A_FILE,
    "browser": "Names a program of the server's machine: written into periplus.toml.",
    "from_archive": _A_FILE, "at": "For `crawl --from-archive`.",
    "header": "A secret would be shown in the list of jobs: write it into periplus.toml.",
    "auth": "A password would be shown in the list of jobs: write it into periplus.toml.",
    "ignore_robots": "Crawls started here always obey robots.txt; the command line can override it for your own hosts.",
    "mine": "By the consent “these sites are mine”, for the sites of the form.",
    "allow_private": "By the consent for private addresses.",
}  # fmt: skip
"""Settings that no form sets, and what does."""
LOCAL_SETTINGS = frozenset({"proxy", "insecure"})  # redirect host names: only if no other machine can connect
_NEEDS_CONSENT = "is for sites of your own: tick “These sites are mine”"
_TRUTHS = {"yes": True, "no": False}
_KINDS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    bool: ("yes or no", _TRUTHS.__getitem__),
    int: ("a whole number", int),
    float: ("a number", float),
}
_PRESET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_NEEDS_REFERENCE = (
    "give a reference here, not the password or token itself: env:NAME, an environment variable of this server and its "
    "worker, or keyring:SERVICE/USER"
)
_NAMED_SECRET = re.compile(r"env:[A-Za-z_]\w*|keyring:[^/\s][^/]*/\S.*", re.ASCII)
_LOGIN_FIELDS = ("form", "user_field", "user", "secret_field", "secret", "sign", "bearer", "hosts", "check")


@frozen
class SettingField:
    """One setting in a form. value: used if the field is empty; source: the file or preset of that value, or empty;
    withheld: why no form sets it, or empty.
    """

    row: SettingRow
    value: str
    source: str
    withheld: str

    @property
    def name(self) -> str:
        """Name of the field in the form."""
        return PREFIX + self.row.name

    @property
    def label(self) -> str:
        return _label(self.row)

    @property
    def choices(self) -> tuple[str, ...]:
        """Choices; empty for free text."""
        return tuple(_TRUTHS) if self.row.kind is bool else self.row.choices

    @property
    def is_number(self) -> bool:
        return self.row.kind in (int, float)


@frozen
class SettingGroup:
    """Settings that are shown together."""

    title: str
    fields: tuple[SettingField, ...]


def setting_groups(files: Sequence[Path], preset: SettingPreset | None = None, *, local: bool) -> list[SettingGroup]:
    """Every setting, by group. files: sources of values, each overriding the ones before; preset: overrides them;
    local: only this machine can connect. Raises UnknownSetting for an error in a file.
    """
    settings, sources = read_files(files)
    if preset:
        settings = settings_from(preset.values, settings)
        sources |= dict.fromkeys(preset.values, f"the preset {preset.name}")
    values = as_values(settings)
    fields: dict[str, list[SettingField]] = {group: [] for group in TITLES}  # a test checks that each has a title
    for row in rows():
        held = _withheld(row, local=local)
        fields[row.group].append(
            SettingField(row, format_value(row, values[row.name]), sources.get(row.name, ""), held)
        )
    return [SettingGroup(TITLES[group], tuple(members)) for group, members in fields.items()]


def in_words(values: Mapping[str, Any]) -> str:
    """The settings of a preset as a text."""
    table = {row.name: row for row in rows()}
    words = ", ".join(f"{_label(table[name])} {_with_unit(table[name], value)}" for name, value in values.items())
    return words[:1].upper() + words[1:]


def _with_unit(row: SettingRow, value: object) -> str:
    if row.unit == "bytes" and isinstance(value, int):
        return size(value)
    return f"{format_value(row, value)} s" if row.unit == "s" else format_value(row, value)


def _label(row: SettingRow) -> str:
    return row.name.removesuffix("_s").replace("_", " ")


def _withheld(row: SettingRow, *, local: bool) -> str:
    if row.group == "searching":
        return "Of searches, not of a crawl: written into the collection's periplus.toml."
    if row.name in LOCAL_SETTINGS and not local:
        return "Only where this server listens on this machine alone: else written into periplus.toml."
    return WITHHELD.get(row.name, "")


def format_value(row: SettingRow, value: object) -> str:
    """A value for display, with secrets masked."""
    value = masked_setting(row.name, value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def setting_values(form: Form, *, local: bool = True) -> dict[str, Any]:
    """Values of the form's fields of settings, by name, without empty fields.

    Raises UsageError for settings that no form sets, and UnknownSetting as a flag of the command does.
    """
    table = {row.name: row for row in rows()}
    values: dict[str, Any] = {}
    for field, text in form.items():
        if not field.startswith(PREFIX) or not text.strip():
            continue
        row = table.get(field.removeprefix(PREFIX))
        if row is None:
            raise UnknownSetting(f"there is no setting {field.removeprefix(PREFIX)[:50]!r}")
        if reason := _withheld(row, local=local):
            raise UsageError(f"{row.name} cannot be set in a form. {reason}")
        values[row.name] = value = _value(row, text.strip())
        if row.name in SECRETS and (masked_setting(row.name, value) != value or value.startswith("file:")):
            raise UsageError(_NEEDS_REFERENCE)
    settings_from(values)
    return values


def _value(row: SettingRow, text: str) -> Any:
    """The text of a field as its setting's type. Raises UnknownSetting."""
    if row.many:
        return [line.strip() for line in text.split("\n") if line.strip()]
    word, read = _KINDS.get(row.kind, ("a text", str))
    try:
        return read(text)
    except (ValueError, KeyError):
        raise UnknownSetting(f"{row.name} must be {word}, not {text[:50]!r}") from None


def setting_flags(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Command-line flags in the form `--name=value`, so that a value cannot be taken for a flag."""
    words: list[str] = []
    for row in rows():
        if row.name not in values:
            continue
        value = values[row.name]
        if row.kind is bool:
            words.append(row.flag if value else f"--no-{row.flag[2:]}")
        elif row.many:
            words += [f"{row.flag}={text}" for text in value]
        else:
            words.append(f"{row.flag}={value:.12g}" if isinstance(value, float) else f"{row.flag}={value}")
    return tuple(words)


def require_consent(values: Mapping[str, Any], form: Form, preset: SettingPreset | None) -> None:
    """Raises UsageError for settings and presets that need a consent which the form does not have."""
    if preset and preset.values.get("ignore_robots"):
        raise UsageError(f"the preset {preset.name} ignores robots.txt: {WITHHELD['ignore_robots']}")
    if preset and preset.values.get("allow_private") and form.get("consent_private") != "yes":
        raise UsageError(
            f"the preset {preset.name} allows private addresses: tick *These sites may be on "
            f"this machine or in this network*"
        )
    if form.get("consent_mine") == "yes":
        return
    every = {**(preset.values if preset else {}), **values}
    if every.get("per_host", 1) > 1 or every.get("delay_s", DELAY_FLOOR_S) < DELAY_FLOOR_S:
        name = f"the preset {preset.name}" if preset and values.get("per_host", 1) <= 1 else "per_host above 1"
        raise UsageError(f"{name} {_NEEDS_CONSENT}")


def with_preset(text: str, name: str, values: Mapping[str, Any]) -> str:
    """Adds or replaces the table [presets.NAME] in the text of a periplus.toml.

    The rest of the text does not change. Raises UsageError for an invalid name, and without values.
    """
    if not _PRESET_NAME.fullmatch(name):
        raise UsageError(f"a preset cannot be called {name[:50]!r}: take letters, digits, - and _")
    if not values:
        raise UsageError("every field is empty: fill in the settings of the preset")
    return edited_toml(text, lambda document: document.setdefault("presets", {}).update({name: values}))


def login_table(form: Form) -> dict[str, Any]:
    """The table [login.NAME] of a form, without empty fields. Raises UsageError for a literal secret, and for a
    reference to a file.
    """
    given = {key: form.get(f"login_{key}", "").strip() for key in _LOGIN_FIELDS}
    for key in ("secret", "bearer"):
        if given[key] and not _NAMED_SECRET.fullmatch(given[key]):
            raise UsageError(_NEEDS_REFERENCE)
    if given["user"].startswith("file:"):
        raise UsageError("write the user name itself here, or env:NAME")
    table: dict[str, Any] = {"hosts": given["hosts"].split(), "form": given["form"]}
    fields = {given["user_field"]: given["user"], given["secret_field"]: given["secret"]}
    if given["form"] and all(fields) and all(fields.values()):
        table["fields"] = fields
    table |= {"bearer": given["bearer"], "check": given["check"]}
    table |= {"signed_in": {"text": given["sign"]} if given["sign"] else {}}
    return {key: value for key, value in table.items() if value}


def with_login(text: str, name: str, table: Mapping[str, Any]) -> str:
    """Adds or replaces the table [login.NAME] in the text of a periplus.toml, and adds NAME to `login` in [settings].
    An empty table removes both.

    The rest of the text does not change. Raises UsageError for an invalid name.
    """
    if not _PRESET_NAME.fullmatch(name):
        raise UsageError(f"a login cannot be called {name[:50]!r}: take letters, digits, - and _")

    def edit(document: TOMLDocument) -> None:
        settings, logins = document.setdefault("settings", {}), document.setdefault("login", {})
        names = [other for other in settings.pop("login", []) if other != name]
        logins.pop(name, None)
        if table:
            names.append(name)
            logins[name] = table
        if names:
            settings["login"] = names

    return edited_toml(text, edit)
