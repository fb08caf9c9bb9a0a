"""Units (sites) of a survey: parsing lists of them, and the unit of a URL by the longest matching prefix."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from periplus.errors import UsageError
from periplus.model.web import Url
from periplus.urls.canonical import canonical
from periplus.urls.hosts import host_name, is_ip, registered_domain
from periplus.urls.scope import site_key
from periplus.values import Pairs, frozen
from periplus_studies.model import Unit

if TYPE_CHECKING:  # not imported at the start of a crawl
    from periplus.model.arrays import Ints32

EVERY_HOST = "*"
# Hosting platforms with many sites per host: the part of the path that identifies a site. Platforms with subdomains
# (github.io, blogspot.com) need no entry.
PLATFORMS: Mapping[str, str] = {
    EVERY_HOST: r"/(?:~|%7[Ee])[^/?]+",  # personal home pages at universities
    "github.com": r"/(?!(?:about|apps|features|login|marketplace|orgs|pricing|search|site|topics)(?:[/?]|$))[^/?]+",
    "gitlab.com": r"/(?!(?:explore|help|users)(?:[/?]|$))[^/?]+",
    "bitbucket.org": r"/[^/?]+",
    "codeberg.org": r"/[^/?]+",
    "sourceforge.net": r"/(?:projects|p)/[^/?]+",
    "sites.google.com": r"/(?:site|view)/[^/?]+|/a/[^/?]+/[^/?]+",
    "medium.com": r"/@[^/?]+",
    "geocities.com": r"/[^/?]+",
}
Path = str
UnitKey = int | str  # index of a target unit, or the name of another site
COLUMNS = ("start", "name", "short", "prefixes", "bundle", "official")
_NO = frozenset({"no", "false", "0"})


@frozen
class UnitChoice:
    """How URLs outside of all units are grouped into sites.

    met_by: `host` (without www.) or `domain` (registered); platforms: see PLATFORMS.
    """

    met_by: str = "host"
    platforms: Pairs = tuple(PLATFORMS.items())


@frozen
class UnitsOfUrls:
    """units: the given targets, then other sites by name. numbers: index in units of each URL."""

    units: tuple[Unit, ...]
    numbers: Ints32


def prefix_of(text: str) -> str:
    """A prefix in canonical form, without scheme, `www.` and final slash: `example.org:8080`, `example.org/~ann`,
    `*.example.org`.

    Raises UsageError (InvalidUrl) for invalid URLs.
    """
    bare = text.strip().partition("://")[2] or text.strip()
    below = bare.startswith("*.")
    scheme = "https://" if text.startswith("https://") or "://" not in text else "http://"
    url = canonical(scheme + bare.removeprefix("*."))
    path = url[url.index("/", 8) :].partition("?")[0].rstrip("/")
    return ("*." if below else "") + site_key(url) + path


def unit_of(
    start: str,
    name: str = "",
    short: str = "",
    prefixes: Sequence[str] = (),
    *,
    bundle: str = "",
    official: bool = True,
) -> Unit:
    """A unit by its start URL.

    The default prefix is the start's host, or its folder that is a site on a hosting platform.
    """
    url = canonical(start if "://" in start else f"https://{start}")
    own = tuple(dict.fromkeys(map(prefix_of, prefixes))) or (_default_prefix(url),)
    return Unit(name or own[0], short or _short(name or own[0]), url, own, bundle, official)


def _short(name: str) -> str:
    if len(name) <= 12 or is_ip(name.partition(":")[0]):
        return name
    return name.partition("/")[0].partition(".")[0][:22] if "." in name else name[:11] + "…"


def distinct(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """The units, with the name in place of each short name that several have."""
    units = tuple(units)
    times = Counter(unit.short for unit in units)
    return tuple(unit if times[unit.short] == 1 else replace(unit, short=unit.name) for unit in units)


def without_repetitions(units: Iterable[Unit]) -> tuple[tuple[Unit, ...], tuple[str, ...]]:
    """(the units, each once; a sentence for each that was there before under another address, as with `www.`)."""
    firsts: dict[tuple[str, ...], tuple[int, Unit]] = {}
    sentences = []
    for number, unit in enumerate(units, 1):
        first, same = firsts.setdefault((unit.name, *unit.prefixes), (number, unit))
        if first != number:
            sentences.append(f"site {number} of the list, {unit.start}, is site {first}, {same.start}: merged")
    return distinct(unit for _, unit in firsts.values()), tuple(sentences)


def _default_prefix(url: Url) -> str:
    return _platform_site(site_key(url), url[url.index("/", 8) :], _patterns(UnitChoice().platforms)) or site_key(url)


def promote(met: Unit, start: str = "") -> Unit:
    """Turns a discovered site into a target unit, crawled from its front page or from `start`."""
    return replace(met, start=canonical(start or f"https://{met.prefixes[0].removeprefix('*.')}/"))


def units_of(urls: Sequence[Url], targets: Sequence[Unit], choice: UnitChoice | None = None) -> UnitsOfUrls:
    """The unit of each URL: about 0.5 us per URL, for any number of units.

    Raises UsageError if two units have the same prefix.
    """
    places = list(map(unit_finder(targets, choice), urls))
    met = sorted({name for name in places if isinstance(name, str)})
    numbers: dict[UnitKey, int] = {name: len(targets) + place for place, name in enumerate(met)}
    numbers |= {place: place for place in range(len(targets))}
    units = distinct((*targets, *(Unit(name, _short(name), "", (name,)) for name in met)))
    return UnitsOfUrls(units, np.fromiter(map(numbers.__getitem__, places), np.int32, len(places)))


def unit_finder(targets: Sequence[Unit], choice: UnitChoice | None = None) -> Callable[[Url], UnitKey]:
    """A function that returns the index of a URL's target unit, or the name of its site. It caches hosts."""
    finder = _finder(targets, choice or UnitChoice())
    entries: dict[str, Callable[[Path], UnitKey] | UnitKey] = {}

    def unit(url: Url) -> UnitKey:
        end = url.find("/", 8)
        entry = entries.get(url[:end])
        if entry is None:
            entry = entries[url[:end]] = finder(Url(url[: end + 1]))
        return entry(url[end:]) if callable(entry) else entry

    return unit


def _finder(targets: Sequence[Unit], choice: UnitChoice) -> Callable[[Url], Callable[[Path], UnitKey] | UnitKey]:
    """A function from a host's root URL to the unit of all its URLs, or to a function from their paths to units."""
    if choice.met_by not in ("host", "domain"):
        raise UsageError(f"other sites are grouped by host or domain, not by {choice.met_by!r}")
    claims = _claims(targets)
    patterns = _patterns(choice.platforms)

    def of_host(root: Url) -> Callable[[Path], UnitKey] | UnitKey:
        site = site_key(root)
        name = registered_domain(host_name(root)) if choice.met_by == "domain" else site
        paths = sorted(_of_host(site, claims), key=lambda claim: -len(claim[0]))
        if paths and not paths[0][0]:
            return paths[0][1]  # the whole host without paths: the usual case
        whole = next((unit for path, unit in paths if not path), None)
        deeper = [claim for claim in paths if claim[0]]

        def of_path(path: Path) -> UnitKey:
            for prefix, unit in deeper:
                if _is_below(path, prefix):
                    return unit
            return whole if whole is not None else _platform_site(site, path, patterns) or name

        return of_path

    return of_host


def _claims(targets: Iterable[Unit]) -> dict[str, list[tuple[Path, int]]]:
    """By host (or `*.host`): (path of a prefix, index of its unit)."""
    claims: dict[str, list[tuple[Path, int]]] = {}
    owner: dict[str, str] = {}
    for place, unit in enumerate(targets):
        for prefix in unit.prefixes:
            if prefix in owner:
                raise UsageError(
                    f"{prefix} is a prefix of both {owner[prefix]} and {unit.name}: give it to one of them"
                )
            owner[prefix] = unit.name
            host, slash, path = prefix.partition("/")
            claims.setdefault(host, []).append((slash + path, place))
    return claims


def _of_host(site: str, claims: Mapping[str, list[tuple[Path, int]]]) -> list[tuple[Path, int]]:
    """The claims on a host: its own, then those of enclosing `*.` domains, nearest first; without duplicate paths."""
    around = list(claims.get(site, ()))
    name = site
    while name:
        around += claims.get(f"*.{name}", ())
        name = name.partition(".")[2]
    return [claim for place, claim in enumerate(around) if claim[0] not in {earlier[0] for earlier in around[:place]}]


def _is_below(path: Path, prefix: Path) -> bool:
    """Compares whole segments: `/ann/x` and `/ann?q` are below `/ann`, `/anna` is not."""
    return path.startswith(prefix) and (len(path) == len(prefix) or path[len(prefix)] in "/?")


def _patterns(platforms: Iterable[tuple[str, str]]) -> dict[str, re.Pattern[str]]:
    return {host: re.compile(pattern) for host, pattern in platforms}


def _platform_site(site: str, path: Path, patterns: Mapping[str, re.Pattern[str]]) -> str:
    """The site of a path on a hosting platform; empty: none."""
    pattern = patterns.get(site) or patterns.get(EVERY_HOST)
    match = pattern.match(path) if pattern else None
    return site + match[0].replace("%7E", "~").replace("%7e", "~") if match else ""


def unit_list(text: str) -> tuple[Unit, ...]:
    """Parses a list of units: CSV with COLUMNS in any order, of which only `start` is required; prefixes are separated
    by blanks.

    Without a header line the list has one URL per line. Empty lines and lines that begin with # are ignored. Raises
    UsageError with the line number.
    """
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise UsageError("the list of sites is empty: give one address per line, or CSV with the column `start`")
    mark = max(",;\t", key=lines[0].count)
    head = [cell.strip().lower() for cell in lines[0].split(mark)]
    if "start" not in head:
        return tuple(_unit({"start": line.strip()}, number) for number, line in enumerate(lines, 1))
    unknown = sorted(set(head) - set(COLUMNS))
    if unknown:
        raise UsageError(
            f"the list of sites has unknown columns: {', '.join(unknown)}. Known columns: {', '.join(COLUMNS)}"
        )
    rows = csv.DictReader(io.StringIO("\n".join(lines[1:])), fieldnames=head, delimiter=mark, restval="")
    return tuple(
        _unit({name: str(value).strip() for name, value in row.items() if name}, number)
        for number, row in enumerate(rows, 2)
    )


def _unit(row: dict[str, str], line: int) -> Unit:
    try:
        return unit_of(
            row["start"],
            row.get("name", ""),
            row.get("short", ""),
            row.get("prefixes", "").split(),
            bundle=row.get("bundle", ""),
            official=row.get("official", "").lower() not in _NO,
        )
    except UsageError as error:
        raise UsageError(f"line {line} of the list of sites: {error}") from None
