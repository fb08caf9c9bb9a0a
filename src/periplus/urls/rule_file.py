"""What do the tables [[site]] and [[script]] of a collection's periplus.toml mean? Text in, `Rules` out; pure.

[[site]]                          # what never makes another page, on every site or on one
site = "example.org"              # as `periplus status` writes it; without it: every site
ignored = ["utm_*", "PHPSESSID"]  # parameters that fall away
path_ignored = ["jsessionid"]     # as in /page;jsessionid=1
index = ["index.html"]            # /docs/index.html is /docs/
slash = "drop"                    # /docs/ is /docs; or "add"
www = "drop"                      # www.example.org is example.org; or "add"
scheme = "https"                  # http:// is https://; or "http"
sort = true                       # the order of parameters does not matter

[[script]]                        # which parameters make a page of one script
path = "/tisk.php"                # or a list of paths; * is anything but a slash, ** anything
required = ["clanek"]             # without it a URL is ignored
one_of = { rubrika = ["sport", "kultura"] }    # required, with one of these values
optional = ["strana"]
default = { jazyk = "cz" }        # filled in where it is missing
                                  # all other parameters fall away; with ignored = [...] only those do
sort = false                      # by default parameters are sorted by name
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from periplus.errors import UsageError
from periplus.urls.parameters import Rules, ScriptRule, SiteRule, names_pattern, path_pattern, query_name

_SITE_FIELDS = ("site", "scheme", "www", "slash", "index", "ignored", "path_ignored", "sort")
_SCRIPT_FIELDS = ("path", "site", "required", "one_of", "optional", "default", "ignored", "sort")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*(site|script)[ \t]*\]\]", re.MULTILINE)


def rules_of(text: str, where: str = "periplus.toml") -> Rules:
    """The rules in a TOML text; other tables are others' business. Raises UsageError, naming line and field."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not valid TOML: {error}") from None
    lines: dict[str, list[int]] = {"site": [], "script": []}
    for match in _HEADER.finditer(text):
        lines[match[1]].append(text.count("\n", 0, match.start()) + 1)
    tables = [_Table(name, table, _place(where, name, number, lines[name])) for name in lines for number, table in enumerate(_tables(content, name, where))]
    return Rules(
        tuple(_site_rule(table) for table in tables if table.name == "site"),
        tuple(_script_rule(table) for table in tables if table.name == "script"),
    )


def rules_key(text: str) -> str:
    """The rules of a TOML text in one spelling, whatever stands around them: equal for equal rules. Empty for none."""
    content = tomllib.loads(text)
    tables = {name: content[name] for name in ("site", "script") if content.get(name)}
    return json.dumps(tables, sort_keys=True) if tables else ""


def _place(where: str, name: str, number: int, lines: list[int]) -> str:
    at = f"{where}, line {lines[number]}" if number < len(lines) else where
    return f"{at}, [[{name}]] {number + 1}"


def _tables(content: Mapping[str, Any], name: str, where: str) -> list[Any]:
    found = content.get(name, [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise UsageError(f"{where}: {name} is written as [[{name}]], once for each rule")
    return found


class _Table:
    """One table of the file, asked for its fields by type."""

    def __init__(self, name: str, values: Mapping[str, Any], place: str) -> None:
        self.name, self._values, self._place = name, values, place
        known = _SITE_FIELDS if name == "site" else _SCRIPT_FIELDS
        unknown = [field for field in values if field not in known]
        if unknown:
            raise self.error(f"there is no field {', '.join(unknown)}: choose among {', '.join(known)}")

    def error(self, what: str) -> UsageError:
        return UsageError(f"{self._place}: {what}")

    def has(self, field: str) -> bool:
        return field in self._values

    def text(self, field: str, choices: tuple[str, ...] = ()) -> str:
        value = self._values.get(field, "")
        if not isinstance(value, str) or (choices and value and value not in choices):
            raise self.error(f"{field} is {' or '.join(map(repr, choices)) if choices else 'a text'}, not {value!r}")
        return value

    def flag(self, field: str, default: bool) -> bool:
        value = self._values.get(field, default)
        if not isinstance(value, bool):
            raise self.error(f"{field} is true or false, not {value!r}")
        return value

    def names(self, field: str, value: Any = None) -> tuple[str, ...]:
        value = self._values.get(field, []) if value is None else value
        if not isinstance(value, list) or not all(isinstance(part, str) and part for part in value):
            raise self.error(f'{field} is a list of texts, as in ["one", "two"], not {value!r}')
        return tuple(value)

    def paths(self) -> tuple[str, ...]:
        value = self._values.get("path")
        found = self.names("path") if isinstance(value, list) else (self.text("path"),)
        for each in found or ("",):
            if not each.startswith(("/", "*")):
                raise self.error(f"path begins with a slash, as in /tisk.php, not {each!r}")
        return found

    def table(self, field: str) -> Mapping[str, Any]:
        value = self._values.get(field, {})
        if not isinstance(value, dict):
            raise self.error(f"{field} is a table, as in {{ name = ... }}, not {value!r}")
        return value


def _site_rule(table: _Table) -> SiteRule:
    return SiteRule(
        site=table.text("site"),
        scheme=table.text("scheme", ("https", "http")),
        www=table.text("www", ("drop", "add")),
        slash=table.text("slash", ("drop", "add")),
        index=frozenset(table.names("index")),
        ignored=names_pattern(table.names("ignored")),
        path_ignored=names_pattern(table.names("path_ignored")),
        sort=table.flag("sort", False),
    )


def _script_rule(table: _Table) -> ScriptRule:
    path = table.paths()
    one_of = {name: frozenset(table.names(f"one_of.{name}", values)) for name, values in table.table("one_of").items()}
    default = table.table("default")
    if not all(isinstance(value, str) for value in default.values()):
        raise table.error("default takes texts, in quotation marks")
    listed = [*table.names("required"), *one_of, *table.names("optional"), *default]
    for name in listed:
        if listed.count(name) > 1:
            raise table.error(f"{name} is listed twice; it has one of required, one_of, optional and default")
    ignored = names_pattern(table.names("ignored")) or re.compile(r"(?!)") if table.has("ignored") else None
    return ScriptRule(
        path=", ".join(path),
        pattern=path_pattern(path),
        site=table.text("site"),
        required=frozenset(map(query_name, table.names("required"))),
        one_of={query_name(name): values for name, values in one_of.items()},
        optional=frozenset(map(query_name, table.names("optional"))),
        default={query_name(name): value for name, value in default.items()},
        ignored=ignored,
        sort=table.flag("sort", True),
    )
