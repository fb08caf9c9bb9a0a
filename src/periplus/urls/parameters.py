"""Canonical URLs by the collection's rules, which are tables of periplus.toml."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from operator import itemgetter
from typing import Any
from urllib.parse import quote, unquote_plus

from periplus.errors import UsageError
from periplus.model.web import SiteKey, Url
from periplus.urls import hosts
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_key
from periplus.urls.user_patterns import UserPattern, user_pattern
from periplus.values import frozen

# A site rule removes parts of URLs that never matter on a site (`www.`, a final slash, index files, session ids). A
# script rule lists the parameters of one script: required, required with one of several values, optional, optional with
# a default; other parameters are removed, and the rest is sorted by name. A URL that breaks its script rule is
# excluded, with the rule as the reason. Site rules are applied first, then the first script rule whose path matches.
# Without rules URLs are unchanged.

Pairs = list[tuple[str, str]]  # (name, the rest with its "="), as spelled in the query
ROUNDS = 8  # upper bound of passes; more site rules than this hardly ever depend on each other
_PATH_PARAMETER = re.compile(r";([^;/=]*)(?:=[^;/]*)?")
_SITE_FIELDS = ("site", "scheme", "www", "slash", "index", "ignored", "path_ignored", "sort")
_SCRIPT_FIELDS = ("path", "site", "required", "one_of", "optional", "default", "ignored", "sort")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*(site|script)[ \t]*\]\]", re.MULTILINE)


@frozen
class SiteRule:
    """Parts of URLs that never matter on a site. site: empty for all sites of the collection."""

    site: SiteKey | str = ""
    scheme: str = ""  # https or http: the one to use on standard ports
    www: str = ""  # drop or add
    slash: str = ""  # drop or add: the final one of a path
    index: frozenset[str] = frozenset()  # names of index files
    ignored: UserPattern | None = None  # names of parameters
    path_ignored: UserPattern | None = None  # `;name=value` within a path
    sort: bool = False  # parameters by name


@frozen
class ScriptRule:
    """The parameters of a script. Names are percent-encoded as in queries; values are plain text."""

    path: str  # as written by the user, for messages
    pattern: UserPattern
    site: SiteKey | str = ""
    required: frozenset[str] = frozenset()
    one_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    default: Mapping[str, str] = field(default_factory=dict)
    ignored: UserPattern | None = None  # if set, only these are removed, not all unlisted ones
    sort: bool = True

    def has(self, name: str) -> bool:
        """Whether the rule lists the parameter, except as ignored."""
        return any(name in names for names in (self.required, self.one_of, self.optional, self.default))


@frozen
class Rules:
    """A collection's rules. All matching site rules apply, in order; then the first matching script rule."""

    sites: tuple[SiteRule, ...] = ()
    scripts: tuple[ScriptRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sites or self.scripts)


NO_RULES = Rules()


@frozen
class RuleResult:
    """The result of applying rules to a URL."""

    url: Url | None  # the canonical URL; None: excluded
    rule: str = ""  # the reason, as a text for users; empty if the URL is unchanged
    steps: tuple[str, ...] = ()  # each change and each matching rule, in order


def apply(url: Url, rules: Rules) -> RuleResult:
    """The canonical URL of the page, or the rule that excludes it.

    Idempotent; the result is canonical. Takes some 5 us with rules.
    """
    if not rules:
        return RuleResult(url)
    steps: list[str] = []
    site = site_key(url)
    seen = url
    url = _apply_site_rules(url, [rule for rule in rules.sites if rule.site in ("", site)], steps)
    address, _, query = url.partition("?")
    path = address[address.index("/", 8) :]
    for script in rules.scripts:
        if script.site in ("", site) and script.pattern.fits(path):
            steps.append(f"script {script.path} fits")
            broken, query = _apply_script_rule(query, script, steps)
            if broken:
                return RuleResult(None, f"{script.path}: {broken}", (*steps, f"excluded: {broken}"))
            url = Url(f"{address}?{query}" if query else address)
            break
    if url == seen:
        return RuleResult(url, "", tuple(steps) or ("no rule applies",))
    return RuleResult(url, "; ".join(step for step in steps if not step.endswith(" fits")), tuple(steps))


def _apply_site_rules(url: Url, fitting: list[SiteRule], steps: list[str]) -> Url:
    """Applies all rules repeatedly until nothing changes, since one rule may make another one match."""
    for _ in range(ROUNDS):
        before, done = url, len(steps)
        for rule in fitting:
            url = _apply_site_rule(url, rule, steps)
        if url == before:
            del steps[done:]  # the rules undid each other's changes
            break
    return url


def _apply_site_rule(url: Url, rule: SiteRule, steps: list[str]) -> Url:
    address, mark, query = url.partition("?")
    start = address.index("//") + 2
    slash = address.index("/", start)
    origin, path = _origin(address[:start], address[start:slash], rule, steps), address[slash:]
    shorter = _path(path, rule)
    if shorter != path:
        steps.append(f"path {path} is {shorter}")
    if mark and (rule.ignored or rule.sort):
        query = _query(query, rule, steps)
        mark = "?" if query else ""
    changed = origin + shorter + mark + query
    if rule.path_ignored and ";" in path:  # removing parameters may leave dot segments
        changed = canonical(changed)
    return Url(changed)


def _origin(scheme: str, authority: str, rule: SiteRule, steps: list[str]) -> str:
    host = authority
    if rule.www == "drop":
        host = hosts.without_www(authority)
    elif rule.www == "add" and not authority.startswith("www."):
        name = authority.partition(":")[0]
        if "." in name and not hosts.is_ip(name) and hosts.registered_domain(name) == name:
            host = "www." + authority
    if host != authority:
        steps.append(f"host {authority} is {host}")
    target = f"{rule.scheme}://" if rule.scheme else scheme
    if target != scheme and (":" not in host or host.endswith("]")):
        steps.append(f"{scheme} is {target}")
        scheme = target
    return scheme + host


def _path(path: str, rule: SiteRule) -> str:
    """Applies a rule to a path, repeatedly until nothing changes."""
    while True:
        before = path
        if rule.path_ignored and ";" in path:
            path = _PATH_PARAMETER.sub(
                lambda match: "" if rule.path_ignored and rule.path_ignored.fits(match[1]) else match[0], path
            )
        head, _, last = path.rpartition("/")
        if last and last in rule.index:
            path, last = head + "/", ""
        if rule.slash == "drop" and not last:
            path = path.rstrip("/") or "/"
        elif rule.slash == "add" and last and "." not in last:
            path += "/"
        if path == before:
            return path


def _query(query: str, rule: SiteRule, steps: list[str]) -> str:
    pairs = _pairs(query)
    left = [pair for pair in pairs if not (rule.ignored and rule.ignored.fits(pair[0]))]
    if len(left) < len(pairs):
        steps.append("without " + _printable({name for name, _ in pairs} - {name for name, _ in left}))
    if left == pairs and not rule.sort:
        return query
    return _in_order(left, rule, steps)


def _apply_script_rule(query: str, rule: ScriptRule, steps: list[str]) -> tuple[str, str]:
    """(violation, query). At least one of them is empty."""
    pairs = [(_rule_spelling(name, rule), rest) for name, rest in _pairs(query)]
    names = {name for name, _ in pairs}
    missing = sorted((rule.required | rule.one_of.keys()) - names)
    if missing:
        return f"{_printable(missing)} is required", ""
    for name, rest in pairs:
        allowed = rule.one_of.get(name)
        if allowed is not None and (value := _value(rest)) not in allowed:
            return f"{_printable([name])} is one of {', '.join(sorted(allowed))}, not {value[:40]!r}", ""
    left = [pair for pair in pairs if _is_kept(pair[0], rule)]
    if len(left) < len(pairs):
        steps.append("without " + _printable(names - {name for name, _ in left}))
    added = [(name, "=" + quote(value, safe="")) for name, value in rule.default.items() if name not in names]
    steps.extend(f"{_printable([name])} is {rule.default[name]} where it is missing" for name, _ in added)
    return "", _in_order(left + added, rule, steps)


def _is_kept(name: str, rule: ScriptRule) -> bool:
    return rule.has(name) or (rule.ignored is not None and not rule.ignored.fits(name))


def _rule_spelling(name: str, rule: ScriptRule) -> str:
    """The name in the rule's spelling, if the rule lists it: `%63lanek` becomes clanek."""
    if "%" not in name and "+" not in name:
        return name
    spelled = quote(unquote_plus(name), safe="")
    return spelled if rule.has(spelled) else name


def _pairs(query: str) -> Pairs:
    splits = (pair.partition("=") for pair in query.split("&") if pair)
    return [(name, equals + value) for name, equals, value in splits]


def _in_order(pairs: Pairs, rule: SiteRule | ScriptRule, steps: list[str]) -> str:
    """The query, sorted by name if the rule says so."""
    in_order = sorted(pairs, key=itemgetter(0)) if rule.sort else pairs
    if in_order != pairs:
        steps.append("parameters sorted by name")
    return "&".join(map("".join, in_order))


@lru_cache(maxsize=4096)  # few different values, repeated in many links
def _value(rest: str) -> str:
    return unquote_plus(rest[1:])


def _printable(names: Iterable[str]) -> str:
    return ", ".join(unquote_plus(name)[:40] for name in sorted(names))


def query_name(text: str) -> str:
    """A parameter name in percent-encoded form."""
    return quote(text, safe="")


def names_pattern(names: Iterable[str]) -> UserPattern | None:
    """An expression that matches any of the names, with `*` as a wildcard: `utm_*`. None without names."""
    parts = ["[^&=]*".join(re.escape(quote(part, safe="")) for part in name.split("*")) for name in sorted(names)]
    return user_pattern("|".join(parts), "ignored") if parts else None


def path_pattern(paths: Iterable[str]) -> UserPattern:
    """An expression that matches any of the paths; `*` matches anything but a slash, `**` anything."""
    parts = ("".join(_path_part(part) for part in re.split(r"(\*\*?)", path)) for path in paths)
    return user_pattern("|".join(parts), "path")


def _path_part(part: str) -> str:
    wild = {"*": "[^/]*", "**": ".*"}
    return wild.get(part) or re.escape(plain_path(part))


def plain_path(text: str) -> str:
    """A user's path in the form of canonical URLs, percent-encoded as needed."""
    return quote(text, safe="/:;@!$&'()+,=~-._%|[]^{}")


# [[site]]                          # parts of URLs that never matter, on all sites or on one
# site = "example.org"              # as shown by `periplus status`; without it: all sites
# ignored = ["utm_*", "PHPSESSID"]  # parameters that are removed
# path_ignored = ["jsessionid"]     # as in /page;jsessionid=1
# index = ["index.html"]            # /docs/index.html is /docs/
# slash = "drop"                    # /docs/ is /docs; or "add"
# www = "drop"                      # www.example.org is example.org; or "add"
# scheme = "https"                  # http:// is https://; or "http"
# sort = true                       # the order of parameters does not matter
#
# [[script]]                        # the parameters of a script
# path = "/tisk.php"                # or a list of paths; * is anything but a slash, ** anything
# required = ["clanek"]             # without it a URL is excluded
# one_of = { rubrika = ["sport", "kultura"] }    # required, with one of these values
# optional = ["strana"]
# default = { jazyk = "cz" }        # added if it is missing
#                                   # all other parameters are removed; with ignored = [...] only the listed ones
# sort = false                      # by default parameters are sorted by name


def rules_of(text: str, where: str = "periplus.toml") -> Rules:
    """Parses the rules in a TOML text, and ignores its other tables. Raises UsageError with line and field."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not valid TOML: {error}") from None
    lines: dict[str, list[int]] = {"site": [], "script": []}
    for match in _HEADER.finditer(text):
        lines[match[1]].append(text.count("\n", 0, match.start()) + 1)
    tables = [
        _Table(name, table, _place(where, name, number, lines[name]))
        for name in lines
        for number, table in enumerate(_tables(content, name, where))
    ]
    return Rules(
        tuple(_site_rule(table) for table in tables if table.name == "site"),
        tuple(_script_rule(table) for table in tables if table.name == "script"),
    )


def rules_key(text: str) -> str:
    """A key that is equal for equal rules, without regard to other tables of the TOML text. Empty without rules."""
    content = tomllib.loads(text)
    tables = {name: content[name] for name in ("site", "script") if content.get(name)}
    return json.dumps(tables, sort_keys=True) if tables else ""


def _place(where: str, name: str, number: int, lines: list[int]) -> str:
    at = f"{where}, line {lines[number]}" if number < len(lines) else where
    return f"{at}, [[{name}]] {number + 1}"


def _tables(content: Mapping[str, Any], name: str, where: str) -> list[Any]:
    tables = content.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{where}: write [[{name}]] for each rule, not {name} = ...")
    return tables


class _Table:
    """A table of the file, with typed access to its fields."""

    def __init__(self, name: str, values: Mapping[str, Any], place: str) -> None:
        self.name, self._values, self._place = name, values, place
        fields = _SITE_FIELDS if name == "site" else _SCRIPT_FIELDS
        unknown = [field for field in values if field not in fields]
        if unknown:
            raise self.error(f"unknown field {', '.join(unknown)}: choose among {', '.join(fields)}")

    def error(self, what: str) -> UsageError:
        return UsageError(f"{self._place}: {what}")

    def has(self, field: str) -> bool:
        return field in self._values

    def text(self, field: str, choices: tuple[str, ...] = ()) -> str:
        value = self._values.get(field, "")
        if not isinstance(value, str) or (choices and value and value not in choices):
            raise self.error(f"{field} must be {' or '.join(map(repr, choices)) if choices else 'text'}, not {value!r}")
        return value

    def flag(self, field: str, default: bool) -> bool:
        value = self._values.get(field, default)
        if not isinstance(value, bool):
            raise self.error(f"{field} must be true or false, not {value!r}")
        return value

    def names(self, field: str, value: Any = None) -> tuple[str, ...]:
        value = self._values.get(field, []) if value is None else value
        if not isinstance(value, list) or not all(isinstance(part, str) and part for part in value):
            raise self.error(f'{field} must be a list of texts such as ["one", "two"], not {value!r}')
        return tuple(value)

    def paths(self) -> tuple[str, ...]:
        value = self._values.get("path")
        paths = self.names("path") if isinstance(value, list) else (self.text("path"),)
        for each in paths or ("",):
            if not each.startswith(("/", "*")):
                raise self.error(f"path must begin with a slash, as in /tisk.php, not {each!r}")
        return paths

    def table(self, field: str) -> Mapping[str, Any]:
        value = self._values.get(field, {})
        if not isinstance(value, dict):
            raise self.error(f"{field} must be a table such as {{ name = ... }}, not {value!r}")
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
        raise table.error("the values of default must be texts in quotation marks")
    listed = [*table.names("required"), *one_of, *table.names("optional"), *default]
    for name in listed:
        if listed.count(name) > 1:
            raise table.error(f"{name} is listed twice; list it in only one of required, one_of, optional and default")
    ignored = names_pattern(table.names("ignored")) or user_pattern("&", "ignored") if table.has("ignored") else None
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
