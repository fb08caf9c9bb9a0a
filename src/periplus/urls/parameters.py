"""What is the page's one URL, by the collection's rules?

A site's rule says what never matters on a site (`www.`, a last slash, index files, session ids); a script's rule says which
parameters make a page of one script, as the site mapper's A3 has it: required, required of a set, optional, optional with a
default; unlisted ones fall away, the rest is sorted by name. A URL that breaks its script's rule is ignored, and the rule is
the reason. The rules of a site come first, then the first script whose path fits. Without rules a URL is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote, unquote_plus

from periplus.model.web import SiteKey, Url
from periplus.urls import hosts
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_key

Pairs = list[tuple[str, str]]  # (name, the rest with its "="), as the query spells them


@dataclass(frozen=True, slots=True)
class SiteRule:
    """What never makes another page on a site. site: empty for every site of the collection."""

    site: SiteKey | str = ""
    scheme: str = ""  # https or http: the one to use on standard ports
    www: str = ""  # drop or add
    slash: str = ""  # drop or add: the last one of a path
    index: frozenset[str] = frozenset()  # file names that a folder shows by itself
    ignored: re.Pattern[str] | None = None  # names of parameters
    path_ignored: re.Pattern[str] | None = None  # `;name=value` within a path
    sort: bool = False  # parameters by name


@dataclass(frozen=True, slots=True)
class ScriptRule:
    """Which parameters make a page of one script. Names are spelled as queries spell them; values are plain text."""

    path: str  # as the user wrote it, for messages
    pattern: re.Pattern[str]
    site: SiteKey | str = ""
    required: frozenset[str] = frozenset()
    one_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    default: Mapping[str, str] = field(default_factory=dict)
    ignored: re.Pattern[str] | None = None  # when given, only these fall away, not all that are unlisted
    sort: bool = True


@dataclass(frozen=True, slots=True)
class Rules:
    """A collection's rules. All site rules that fit hold, in order; of the scripts the first that fits."""

    sites: tuple[SiteRule, ...] = ()
    scripts: tuple[ScriptRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sites or self.scripts)


NO_RULES = Rules()
ROUNDS = 8  # more site rules that wait for one another than anybody writes


@dataclass(frozen=True, slots=True)
class Applied:
    """What becomes of a URL."""

    url: Url | None  # the page's one URL; None: ignored
    rule: str = ""  # what made it so, in words for users; empty when the URL stays as it is
    steps: tuple[str, ...] = ()  # one for each thing that changed or was looked at, in order


def apply(url: Url, rules: Rules) -> Applied:
    """The page's one URL, or the rule that it breaks. Idempotent; the result is canonical. Some 5 us with rules, none without."""
    if not rules:
        return Applied(url)
    steps: list[str] = []
    site = site_key(url)
    seen = url
    url = _on_sites(url, [rule for rule in rules.sites if rule.site in ("", site)], steps)
    address, _, query = url.partition("?")
    path = address[address.index("/", 8) :]
    for script in rules.scripts:
        if script.site in ("", site) and script.pattern.fullmatch(path):
            steps.append(f"script {script.path} fits")
            broken, query = _on_script(query, script, steps)
            if broken:
                return Applied(None, f"{script.path}: {broken}", (*steps, f"ignored: {broken}"))
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
    wanted = f"{rule.scheme}://" if rule.scheme else scheme
    if wanted != scheme and (":" not in host or host.endswith("]")):
        steps.append(f"{scheme} is {wanted}")
        scheme = wanted
    return scheme + host


def _path(path: str, rule: SiteRule) -> str:
    """The path without what never matters; again until nothing changes, for one step may bare another."""
    while True:
        before = path
        if rule.path_ignored and ";" in path:
            path = _PATH_PARAMETER.sub(lambda match: "" if rule.path_ignored and rule.path_ignored.fullmatch(match[1]) else match[0], path)
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
    kept = [pair for pair in pairs if not (rule.ignored and rule.ignored.fullmatch(pair[0]))]
    if len(kept) < len(pairs):
        steps.append("without " + _shown({name for name, _ in pairs} - {name for name, _ in kept}))
    in_order = sorted(kept, key=_name) if rule.sort else kept
    if in_order != kept:
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
    kept = [pair for pair in pairs if _is_kept(pair[0], rule)]
    if len(kept) < len(pairs):
        steps.append("without " + _shown(names - {name for name, _ in kept}))
    added = [(name, "=" + quote(value, safe="")) for name, value in rule.default.items() if name not in names]
    steps.extend(f"{_shown([name])} is {rule.default[name]} where it is missing" for name, _ in added)
    in_order = sorted(kept + added, key=_name) if rule.sort else kept + added
    if in_order != kept + added:
        steps.append("parameters sorted by name")
    return "", _joined(in_order)


def _is_kept(name: str, rule: ScriptRule) -> bool:
    if name in rule.required or name in rule.one_of or name in rule.optional or name in rule.default:
        return True
    return rule.ignored is not None and not rule.ignored.fullmatch(name)


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


def names_pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    """One expression for names, in which `*` stands for anything: `utm_*`. None for no names."""
    parts = ["[^&=]*".join(re.escape(quote(part, safe="")) for part in name.split("*")) for name in sorted(names)]
    return re.compile("|".join(parts)) if parts else None


def path_pattern(paths: Iterable[str]) -> re.Pattern[str]:
    """One expression for paths, in which `*` stands for anything but a slash and `**` for anything at all."""
    return re.compile("|".join("".join(_path_part(part) for part in re.split(r"(\*\*?)", path)) for path in paths))


def _path_part(part: str) -> str:
    wild = {"*": "[^/]*", "**": ".*"}
    return wild.get(part) or re.escape(quote(part, safe="/:;@!$&'()+,=~-._%|[]^{}"))
