"""The page's one URL by the collection's rules, and the rules as tables of periplus.toml."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote_plus

from periplus.errors import UsageError
from periplus.model.web import SiteKey, Url
from periplus.urls import hosts
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_key
from periplus.urls.user_patterns import UserPattern, user_pattern
from periplus.values import frozen

# A site's rule says what never matters on a site (`www.`, a last slash, index files, session ids); a script's rule says
# which parameters make a page of one script, as the site mapper's A3 has it: required, required of a set, optional,
# optional with a default; unlisted ones fall away, the rest is sorted by name. A URL that breaks its script's rule is
# excluded, and the rule is the reason. The rules of a site come first, then the first script whose path fits. Without
# rules a URL is left as it is.

Pairs = list[tuple[str, str]]  # (name, the rest with its "="), as the query spells them


@frozen
class SiteRule:
    """What never makes another page on a site. site: empty for every site of the collection."""

    site: SiteKey | str = ""
    scheme: str = ""  # https or http: the one to use on standard ports
    www: str = ""  # drop or add
    slash: str = ""  # drop or add: the last one of a path
    index: frozenset[str] = frozenset()  # file names that a folder shows by itself
    ignored: UserPattern | None = None  # names of parameters
    path_ignored: UserPattern | None = None  # `;name=value` within a path
    sort: bool = False  # parameters by name


@frozen
class ScriptRule:
    """Which parameters make a page of one script. Names are spelled as queries spell them; values are plain text."""

    path: str  # as the user wrote it, for messages
    pattern: UserPattern
    site: SiteKey | str = ""
    required: frozenset[str] = frozenset()
    one_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    default: Mapping[str, str] = field(default_factory=dict)
    ignored: UserPattern | None = None  # when given, only these fall away, not all that are unlisted
    sort: bool = True


@frozen
class Rules:
    """A collection's rules. All site rules that fit hold, in order; of the scripts the first that fits."""

    sites: tuple[SiteRule, ...] = ()
    scripts: tuple[ScriptRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sites or self.scripts)


NO_RULES = Rules()
ROUNDS = 8  # more site rules that wait for one another than anybody writes


@frozen
class Applied:
    """What becomes of a URL."""

    url: Url | None  # the page's one URL; None: excluded
    rule: str = ""  # what made it so, in words for users; empty when the URL stays as it is
    steps: tuple[str, ...] = ()  # one for each thing that changed or was looked at, in order


def apply(url: Url, rules: Rules) -> Applied:
    """The page's one URL, or the rule that it breaks.

    Idempotent; the result is canonical. Some 5 us with rules, none without.
    """
    if not rules:
        return Applied(url)
    steps: list[str] = []
    site = site_key(url)
    seen = url
    url = _on_sites(url, [rule for rule in rules.sites if rule.site in ("", site)], steps)
    address, _, query = url.partition("?")
    path = address[address.index("/", 8) :]
    for script in rules.scripts:
        if script.site in ("", site) and script.pattern.fits(path):
            steps.append(f"script {script.path} fits")
            broken, query = _on_script(query, script, steps)
            if broken:
                return Applied(None, f"{script.path}: {broken}", (*steps, f"excluded: {broken}"))
            url = Url(f"{address}?{query}" if query else address)
            break
    if url == seen:
        return Applied(url, "", tuple(steps) or ("no rule concerns it",))
    return Applied(url, "; ".join(step for step in steps if not step.endswith(" fits")), tuple(steps))


def _on_sites(url: Url, fitting: list[SiteRule], steps: list[str]) -> Url:
    """All rules, again until nothing changes: a later one may bare what an earlier one looks for."""
    for _ in range(ROUNDS):
        before, done = url, len(steps)
        for rule in fitting:
            url = _on_site(url, rule, steps)
        if url == before:
            del steps[done:]  # rules that undo one another
            break
    return url


def _on_site(url: Url, rule: SiteRule, steps: list[str]) -> Url:
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
    if rule.path_ignored and ";" in path:  # only then dots may come to stand alone in the path
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
    """The path without what never matters; again until nothing changes, for one step may bare another."""
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


_PATH_PARAMETER = re.compile(r";([^;/=]*)(?:=[^;/]*)?")


def _query(query: str, rule: SiteRule, steps: list[str]) -> str:
    pairs = _pairs(query)
    left = [pair for pair in pairs if not (rule.ignored and rule.ignored.fits(pair[0]))]
    if len(left) < len(pairs):
        steps.append("without " + _shown({name for name, _ in pairs} - {name for name, _ in left}))
    in_order = sorted(left, key=_name) if rule.sort else left
    if in_order != left:
        steps.append("parameters sorted by name")
    if in_order == pairs and not rule.sort:
        return query
    return _joined(in_order)


def _on_script(query: str, rule: ScriptRule, steps: list[str]) -> tuple[str, str]:
    """(what is broken, the query). One of the two is empty, or both."""
    pairs = [(_as_listed(name, rule), rest) for name, rest in _pairs(query)]
    names = {name for name, _ in pairs}
    missing = sorted((rule.required | rule.one_of.keys()) - names)
    if missing:
        return f"{_shown(missing)} is required", ""
    for name, rest in pairs:
        allowed = rule.one_of.get(name)
        if allowed is not None and (value := _value(rest)) not in allowed:
            return f"{_shown([name])} is one of {', '.join(sorted(allowed))}, not {value[:40]!r}", ""
    left = [pair for pair in pairs if _is_kept(pair[0], rule)]
    if len(left) < len(pairs):
        steps.append("without " + _shown(names - {name for name, _ in left}))
    added = [(name, "=" + quote(value, safe="")) for name, value in rule.default.items() if name not in names]
    steps.extend(f"{_shown([name])} is {rule.default[name]} where it is missing" for name, _ in added)
    in_order = sorted(left + added, key=_name) if rule.sort else left + added
    if in_order != left + added:
        steps.append("parameters sorted by name")
    return "", _joined(in_order)


def _is_kept(name: str, rule: ScriptRule) -> bool:
    if name in rule.required or name in rule.one_of or name in rule.optional or name in rule.default:
        return True
    return rule.ignored is not None and not rule.ignored.fits(name)


def _as_listed(name: str, rule: ScriptRule) -> str:
    """The name as the rule's own spelling has it: `%63lanek` is clanek, to every server."""
    if "%" not in name and "+" not in name:
        return name
    spelled = quote(unquote_plus(name), safe="")
    listed = spelled in rule.required or spelled in rule.one_of or spelled in rule.optional or spelled in rule.default
    return spelled if listed else name


def _pairs(query: str) -> Pairs:
    return [(pair.partition("=")[0], pair[len(pair.partition("=")[0]) :]) for pair in query.split("&") if pair]


def _joined(pairs: Pairs) -> str:
    return "&".join(name + rest for name, rest in pairs)


def _name(pair: tuple[str, str]) -> str:
    return pair[0]


@lru_cache(maxsize=4096)  # values of sets are few, and met on every link
def _value(rest: str) -> str:
    return unquote_plus(rest[1:])


def _shown(names: Iterable[str]) -> str:
    return ", ".join(unquote_plus(name)[:40] for name in sorted(names))


def query_name(text: str) -> str:
    """A parameter's name as a query spells it: what is not plain is percent-encoded."""
    return quote(text, safe="")


def names_pattern(names: Iterable[str]) -> UserPattern | None:
    """One expression for names, in which `*` stands for anything: `utm_*`. None for no names."""
    parts = ["[^&=]*".join(re.escape(quote(part, safe="")) for part in name.split("*")) for name in sorted(names)]
    return user_pattern("|".join(parts), "ignored") if parts else None


def path_pattern(paths: Iterable[str]) -> UserPattern:
    """One expression for paths, in which `*` stands for anything but a slash and `**` for anything at all."""
    parts = ("".join(_path_part(part) for part in re.split(r"(\*\*?)", path)) for path in paths)
    return user_pattern("|".join(parts), "path")


def _path_part(part: str) -> str:
    wild = {"*": "[^/]*", "**": ".*"}
    return wild.get(part) or re.escape(plain_path(part))


def plain_path(text: str) -> str:
    """A path as users write it in the spelling of canonical URLs: what has to be is percent-encoded."""
    return quote(text, safe="/:;@!$&'()+,=~-._%|[]^{}")


# [[site]]                          # what never makes another page, on every site or on one
# site = "example.org"              # as `periplus status` writes it; without it: every site
# ignored = ["utm_*", "PHPSESSID"]  # parameters that fall away
# path_ignored = ["jsessionid"]     # as in /page;jsessionid=1
# index = ["index.html"]            # /docs/index.html is /docs/
# slash = "drop"                    # /docs/ is /docs; or "add"
# www = "drop"                      # www.example.org is example.org; or "add"
# scheme = "https"                  # http:// is https://; or "http"
# sort = true                       # the order of parameters does not matter
#
# [[script]]                        # which parameters make a page of one script
# path = "/tisk.php"                # or a list of paths; * is anything but a slash, ** anything
# required = ["clanek"]             # without it a URL is excluded
# one_of = { rubrika = ["sport", "kultura"] }    # required, with one of these values
# optional = ["strana"]
# default = { jazyk = "cz" }        # filled in where it is missing
#                                   # all other parameters fall away; with ignored = [...] only those do
# sort = false                      # by default parameters are sorted by name

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
    """The rules of a TOML text in one spelling, whatever stands around them: equal for equal rules. Empty for none."""
    content = tomllib.loads(text)
    tables = {name: content[name] for name in ("site", "script") if content.get(name)}
    return json.dumps(tables, sort_keys=True) if tables else ""


def _place(where: str, name: str, number: int, lines: list[int]) -> str:
    at = f"{where}, line {lines[number]}" if number < len(lines) else where
    return f"{at}, [[{name}]] {number + 1}"


def _tables(content: Mapping[str, Any], name: str, where: str) -> list[Any]:
    tables = content.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{where}: {name} is written as [[{name}]], once for each rule")
    return tables


class _Table:
    """One table of the file, asked for its fields by type."""

    def __init__(self, name: str, values: Mapping[str, Any], place: str) -> None:
        self.name, self._values, self._place = name, values, place
        fields = _SITE_FIELDS if name == "site" else _SCRIPT_FIELDS
        unknown = [field for field in values if field not in fields]
        if unknown:
            raise self.error(f"there is no field {', '.join(unknown)}: choose among {', '.join(fields)}")

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
        paths = self.names("path") if isinstance(value, list) else (self.text("path"),)
        for each in paths or ("",):
            if not each.startswith(("/", "*")):
                raise self.error(f"path begins with a slash, as in /tisk.php, not {each!r}")
        return paths

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
