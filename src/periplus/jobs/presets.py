"""Commands for the forms of the browser interface: a map, a check.

Input is not trusted: only canonical URLs, numbers, words, addresses and searches become part of a command, never file
paths. robots.txt is always obeyed; other limits are lifted only by an explicit consent.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from periplus.errors import InvalidUrl, UsageError
from periplus.features import loaded
from periplus.jobs.setting_fields import PREFIX, Form, require_consent, setting_flags, setting_values
from periplus.model.job import JobOrder
from periplus.model.web import Url
from periplus.settings import SUFFIX, SettingPreset, preset_named, rows
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_name
from periplus.urls.user_patterns import user_pattern
from periplus.values import Place, frozen

MOST_STARTS = 1_000
MOST_PAGES = 10_000_000
PERIODS = {"": 0.0, "hour": 3_600.0, "day": 86_400.0, "week": 604_800.0, "month": 2_592_000.0}
_NAME = re.compile(r"[\w][\w. -]{0,99}")
_NUMBERS = {"max_pages": (1, MOST_PAGES), "max_depth": (0, 100_000)}
_DELAY_S = (0.5, 3_600)
_PATTERNS = ("include", "exclude")
_FLAGS = {name: f"--{name.replace('_', '-')}" for name in (*_NUMBERS, "delay", *_PATTERNS)}
# consents of a form: to fetch your own hosts faster, and to fetch private addresses
CONSENTS = {
    "consent_mine": "These sites are mine: they may be asked with less than half a second between two requests, "
    "and several at once.",
    "consent_private": "These sites may be on this machine or in this network: a crawl can then reach its services.",
}
NO_LIMIT = "-"  # in place of a limit or pattern: none from now on


def whole(form: Form, name: str, usual: int, least: int, most: int) -> int:
    """An integer; `usual` if the field is empty."""
    text = form.get(name, "").strip() or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= most):
        raise UsageError(f"{_words(name)} is a number from {least:,} to {most:,}, not {text[:50]!r}")
    return int(text)


def decimal(form: Form, name: str, usual: float, least: float, most: float) -> float:
    text = form.get(name, "").strip()
    try:
        value = float(text or usual)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise UsageError(f"{_words(name)} must be between {least:g} and {most:,g}, not {text[:50]!r}")
    return value


def choice(form: Form, name: str, words: Collection[str], usual: str | None = "") -> str:
    """One of the words; `usual` if the field is empty. With usual None the field is required."""
    text = form.get(name, "").strip() or usual or ""
    if text != usual and text not in words:
        raise UsageError(f"{_words(name)} is one of {', '.join(filter(None, words))}, not {text[:50]!r}")
    return text


def _words(name: str) -> str:
    return name.replace("_", " ")


@frozen
class JobRequest:
    """A request of a form.

    folder: of the collection, as in commands; period_s: 0.0: once; prepare: called at once with the place of the
    collection, so that errors are shown beside the form; before: the command that does the same; screen: of the
    collection, which is shown next.
    """

    folder: str
    order: JobOrder
    period_s: float = 0.0
    prepare: Callable[[Place], None] | None = None
    before: tuple[str, ...] = ()
    screen: str = "live"

    @property
    def line(self) -> str:
        """The commands for a shell, one per line."""
        first = command_line(self.before) + "\n" if self.before else ""
        return first + order_lines(self.order)


def order_lines(order: JobOrder) -> str:
    """The commands of an order for a shell, one per line."""
    return "\n".join(map(command_line, (order.command, *order.then)))


def command_line(command: tuple[str, ...]) -> str:
    return shlex.join(("periplus", *command))


def starts_of(text: str) -> tuple[Url, ...]:
    """Start URLs, separated by white space: `example.org` means https://example.org/.

    Raises InvalidUrl, UsageError.
    """
    starts: dict[Url, None] = {}
    words = text.split()
    if len(words) > 1 and not any(re.search(r"[.:/]", word) for word in words):  # a sentence, not a list
        raise InvalidUrl(f"{text.strip()[:200]!r} is not the address of a site; write it like https://example.org/")
    for word in words:
        full = word if "://" in word else f"https://{word}"
        try:
            if (
                not full.lower().startswith(("http://", "https://"))
                or "@" in full.partition("://")[2].partition("/")[0]
            ):
                raise InvalidUrl(word)
            starts[canonical(full)] = None
        except InvalidUrl:
            raise InvalidUrl(
                f"{word[:200]!r} is not the address of a site; write it like https://example.org/"
            ) from None
    if not starts:
        raise UsageError("no site: write an address such as example.org")
    if len(starts) > MOST_STARTS:
        raise UsageError(f"{len(starts):,} sites at once: at most {MOST_STARTS:,}, or use `periplus crawl -i FILE`")
    return tuple(starts)


@frozen
class Preset:
    """A choice of the first form.

    request: takes the form, its start URLs, the folder of the collection, and flags of all fields but max_pages; the
    period of the result does not count. None: the command with these. many: several sites at once.
    """

    name: str
    title: str
    sentence: str
    command: str
    request: Callable[[Form, tuple[Url, ...], str, tuple[str, ...]], JobRequest] | None = None
    many: bool = False
    by_words: bool = False  # the form has a field for the words of a topic


PRESETS = (
    Preset(
        "map",
        "Map a site",
        "Fetches the site politely and keeps it: its map, its pages and links, searchable.",
        "crawl",
    ),
    Preset(
        "check",
        "Check links",
        "Fetches the site, then requests everything that it links to: broken links with the pages that contain them.",
        "check",
    ),
    Preset(
        "set",
        "Fetch a set of sites",
        "One collection of several sites, each followed within itself: one address a line.",
        "crawl",
        many=True,
    ),
)


def job_presets() -> Mapping[str, Preset]:
    """PRESETS by name, then those of features."""
    added = {name: preset for name, (_, preset) in loaded("presets", Preset).items()}
    return {preset.name: preset for preset in PRESETS} | added


def job_request(
    form: Form, named: Mapping[str, SettingPreset] = MappingProxyType({}), *, local: bool = True
) -> JobRequest:
    """The request of the first form.

    form: preset, url, optionally name, max_pages, max_depth, delay, include, exclude, every, settings_preset, and the
    fields of `setting_fields`. named: the presets of settings; local: only this machine can connect. Raises UsageError.
    """
    preset = job_presets()[choice(form, "preset", job_presets(), PRESETS[0].name)]
    starts = starts_of(form.get("url", ""))
    if len(starts) > 1 and not preset.many:
        raise UsageError(f"“{preset.title}” needs exactly one address; for several choose “Fetch a set of sites”")
    period_s = period(form)
    folder = folder_name(form.get("name", "") or site_name(starts[0]))
    consent = (*further_settings(form, named, local=local), *consent_flags(form, starts))
    if preset.request:
        further = (*flags({field: text for field, text in form.items() if field != "max_pages"}), *consent)
        return dataclasses.replace(preset.request(form, starts, folder, further), period_s=period_s)
    flag = "-c" if preset.command == "check" else "-o"
    return JobRequest(folder, JobOrder((preset.command, *starts, flag, folder, *flags(form), *consent)), period_s)


def further_settings(
    form: Form, named: Mapping[str, SettingPreset] = MappingProxyType({}), *, local: bool = True
) -> tuple[str, ...]:
    """The preset of settings that a form chooses, and its fields of settings, as flags. Raises UsageError."""
    values = setting_values(form, local=local)
    chosen = form.get("settings_preset", "").strip()
    preset = preset_named(chosen, named) if chosen else None
    require_consent(values, form, preset)
    return (*((f"--preset={chosen}",) if chosen else ()), *setting_flags(values))


def period(form: Form) -> float:
    """Seconds between two runs; 0.0: once. Raises UsageError."""
    every = form.get("every", "")
    if every not in PERIODS:
        raise UsageError(f"there is no period {every[:50]!r}: choose hour, day, week or month")
    return PERIODS[every]


def folder_name(name: str) -> str:
    """The folder of a collection of this name. Raises UsageError for an invalid name, such as one with `..`."""
    plain = name.strip().removesuffix(SUFFIX)
    if not _NAME.fullmatch(plain) or ".." in plain:
        raise UsageError(f"a collection cannot be called {name[:100]!r}: use letters, digits, dots, dashes and blanks")
    return plain + SUFFIX


def flags(form: Form) -> tuple[str, ...]:
    """Limits and patterns of a form as flags. Raises UsageError for invalid values."""
    least_s = 0.0 if form.get("consent_mine") == "yes" else _DELAY_S[0]
    words: list[str] = []
    for name, value in everyday_values(form, least_s).items():
        flag = _FLAGS[name.removesuffix("_s")]
        words += [f"{flag}={text}" for text in value] if isinstance(value, list) else [flag, f"{value:.12g}"]
    return tuple(words)


def everyday_values(form: Form, least_s: float = _DELAY_S[0]) -> dict[str, Any]:
    """Limits and patterns of a form as settings. least_s: minimum delay. Raises UsageError for invalid values."""
    given = {name: text.strip() for name, text in form.items() if text.strip()}
    values: dict[str, Any] = {
        name: whole(form, name, least, least, most) for name, (least, most) in _NUMBERS.items() if name in given
    }
    if "delay" in given:
        values["delay_s"] = decimal(form, "delay", 0, least_s, _DELAY_S[1])
    for name in _PATTERNS:
        if name in given:
            lines = filter(None, map(str.strip, given[name].split("\n")))
            values[name] = [user_pattern(line, name).text for line in lines]
    return values


def consent_flags(form: Form, starts: tuple[Url, ...]) -> tuple[str, ...]:
    """Flags by the form's consents. The consent “mine” covers the hosts of the start URLs."""
    hosts = dict.fromkeys(start.partition("://")[2].partition("/")[0] for start in starts)
    mine = [f"--mine={host}" for host in hosts] if form.get("consent_mine") == "yes" else []
    return (*mine, *(["--allow-private"] if form.get("consent_private") == "yes" else []))


def resume_order(command: tuple[str, ...], form: Form, *, local: bool = True) -> JobOrder:
    """The order that continues a crawl with the limits and patterns of the form; LIFTED removes a limit."""
    given = {name: text for name, text in form.items() if text.strip() != NO_LIMIT}
    values = setting_values(given, local=local)
    is_mine = any(word.startswith("--mine") for word in command)
    require_consent(values, {"consent_mine": "yes" if is_mine else ""}, None)
    changed = (*flags(given), *setting_flags(values))
    lifted = {flag for name, flag in _FLAGS.items() if form.get(name, "").strip() == NO_LIMIT}
    lifted |= {row.flag for row in rows() if form.get(PREFIX + row.name, "").strip() == NO_LIMIT}
    replaced = lifted | {word.partition("=")[0] for word in changed if word.startswith("--")}
    truths = {word for row in rows() if row.kind is bool for word in (row.flag, f"--no-{row.flag[2:]}")}
    for word in replaced & truths:
        plain = word.removeprefix("--no-") if word.startswith("--no-") else word[2:]
        replaced |= {f"--{plain}", f"--no-{plain}"}
    unchanged: list[str] = []
    words = iter(command)
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag in replaced:
            if not equals and flag not in truths:
                next(words, None)
            continue
        unchanged.append(word)
    return JobOrder((*unchanged, *changed))
