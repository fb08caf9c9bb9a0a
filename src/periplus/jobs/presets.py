"""Which command does what somebody wishes for in a few words: map a site, check its links, survey a set, follow a topic?

Whoever asks here may be a stranger to the command line, or no friend: only what is named below becomes part of a command, URLs in canonical
form, numbers as numbers. Nothing here lifts a rule: private addresses, robots.txt and delays stay as the settings have them.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from periplus.errors import InvalidUrl, UsageError
from periplus.model.job import JobOrder
from periplus.model.web import Url
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_key

SUFFIX = ".periplus"
MOST_STARTS = 1_000
FOLLOW_FIRST = 300  # pages fetched of the sites named, before the topic is learned: thirty of the topic among them are enough
FOLLOW_PAGES = 2_000  # of a topical crawl whose form names none
WORDS_CHARS = 500
SURVEY_PAGES = 2_000  # of a survey whose form names none: an hour of twenty sites at the usual delay
PREPARE_S = 60.0
PERIODS = {"": 0.0, "hour": 3_600.0, "day": 86_400.0, "week": 604_800.0, "month": 2_592_000.0}
_NAME = re.compile(r"[\w][\w. -]{0,99}")
_NUMBERS = {"max_pages": ("--max-pages", 1, 10_000_000), "max_depth": ("--max-depth", 0, 100_000), "delay": ("--delay", 0.5, 3_600)}
_PATTERNS = {"include": "--include", "exclude": "--exclude"}
_FLAGS = _PATTERNS | {name: flag for name, (flag, _, _) in _NUMBERS.items()}
LIFTED = "-"  # in place of a limit or pattern: none from now on


@dataclass(frozen=True, slots=True)
class Preset:
    """A wish that has a command. many: several sites at once."""

    name: str
    title: str
    sentence: str
    command: str
    many: bool = False
    by_words: bool = False  # it asks for the words of a topic too


PRESETS = (
    Preset("map", "Map a site", "Fetches the site politely and keeps it: its map, its pages and links, searchable.", "crawl"),
    Preset("check", "Check links", "Fetches the site, then asks for everything that it links to: dead links with the pages that hold them.", "check"),
    Preset("set", "Fetch a set of sites", "One collection of several sites, each followed within itself: one address a line.", "crawl", many=True),
    Preset(
        "survey",
        "Survey a set of sites",
        "Reads many sites where they bring the most new external links, within a number of pages: one address a line.",
        "survey",
        many=True,
    ),
    Preset(
        "follow",
        "Follow a topic",
        "Fetches some pages of these sites, learns the topic from its words, then fetches more of it wherever links lead.",
        "topic",
        many=True,
        by_words=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Wished:
    """A wish as an order. folder: of the collection, within the folder of collections; before: a command that is done at once, without
    asking anything of the web; empty: none."""

    folder: str
    order: JobOrder
    period_s: float  # 0: once
    before: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """As one would type it."""
        return "\n".join(shlex.join(("periplus", *command)) for command in (self.before, self.order.command, *self.order.then) if command)


def starts_of(text: str) -> tuple[Url, ...]:
    """URLs as people write them, parted by white space: `example.org` means https://example.org/. Raises InvalidUrl, UsageError."""
    found: dict[Url, None] = {}
    for word in text.split():
        full = word if "://" in word else f"https://{word}"
        try:
            if not full.lower().startswith(("http://", "https://")) or "@" in full.partition("://")[2].partition("/")[0]:
                raise InvalidUrl(word)
            found[canonical(full)] = None
        except InvalidUrl:
            raise InvalidUrl(f"{word[:200]!r} is no address of a site; write it like https://example.org/") from None
    if not found:
        raise UsageError("no site: write its address, like example.org")
    if len(found) > MOST_STARTS:
        raise UsageError(f"{len(found):,} sites at once: at most {MOST_STARTS:,}, or use `periplus crawl -i FILE`")
    return tuple(found)


def wished(form: Mapping[str, str]) -> Wished:
    """The order for what a form says: preset, url, and perhaps name, max_pages, max_depth, delay, include, exclude, every. Raises UsageError."""
    preset = next((one for one in PRESETS if one.name == form.get("preset", PRESETS[0].name)), None)
    if preset is None:
        raise UsageError(f"there is no preset {form.get('preset')!r}: choose among {', '.join(one.name for one in PRESETS)}")
    starts = starts_of(form.get("url", ""))
    if len(starts) > 1 and not preset.many:
        raise UsageError(f"“{preset.title}” takes one address; for several choose “Fetch a set of sites”")
    every = form.get("every", "")
    if every not in PERIODS:
        raise UsageError(f"there is no period {every!r}: choose hour, day, week or month")
    folder = folder_name(form.get("name", "") or site_key(starts[0]).replace(":", "-").strip("[]"))
    if preset.command == "survey":
        return _survey(form, starts, folder, PERIODS[every])
    if preset.by_words:
        return _follow(form, starts, folder, PERIODS[every])
    flag = "-c" if preset.command == "check" else "-o"
    command = (preset.command, *starts, flag, folder, *flags(form))
    return Wished(folder, JobOrder(command), PERIODS[every])


def _survey(form: Mapping[str, str], starts: tuple[Url, ...], folder: str, period_s: float) -> Wished:
    """Made at once, so that what cannot be surveyed is refused beside the form; read by a job."""
    pages = form.get("max_pages", "").strip() or str(SURVEY_PAGES)
    limit = ("--pages", _number("max_pages", pages, *_NUMBERS["max_pages"][1:]))
    further = flags({name: text for name, text in form.items() if name != "max_pages"})
    return Wished(folder, JobOrder(("survey", "run", "-c", folder, *further)), period_s, ("survey", "create", "-c", folder, *limit, *starts))


def _follow(form: Mapping[str, str], starts: tuple[Url, ...], folder: str, period_s: float) -> Wished:
    """Jobs one after the other: some pages of the sites named, the topic learned, more of it fetched, all pages judged."""
    words = topic_words(form.get("words", ""))
    name = "-".join(re.findall(r"\w+", words)[:2])[:60].lower() or "topic"
    pages = form.get("max_pages", "").strip() or str(FOLLOW_PAGES)
    limit = ("--max-pages", _number("max_pages", pages, *_NUMBERS["max_pages"][1:]))
    further = flags({one: text for one, text in form.items() if one != "max_pages"})
    first = ("crawl", *starts, "-o", folder, "--max-pages", str(FOLLOW_FIRST), *further)
    learn = ("topic", "train", name, "-c", folder, "-p", f"words:{words}")
    more = ("topic", "crawl", name, *starts, "-c", folder, *limit, *further)
    return Wished(folder, JobOrder(first, then=(learn, more, ("topic", "judge", name, "-c", folder, "--keep"))), period_s)


def topic_words(text: str) -> str:
    """The words of a topic, as `words:` takes them. Raises UsageError where there are none."""
    words = " ".join(re.findall(r"[\w'-]+", text))
    if not re.search(r"\w", words) or len(words) > WORDS_CHARS:
        raise UsageError(f"a topic begins with a few words: harbour ship sailor (at most {WORDS_CHARS} letters)")
    return words


def prepared(wish: Wished, folder: Path) -> None:
    """Does what comes before the job, in the folder of collections. Raises UsageError with what the command says against it."""
    if not wish.before:
        return
    command = [sys.executable, "-m", "periplus.cli", *wish.before]
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=PREPARE_S, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(f"`{wish.line.splitlines()[0]}` took longer than {PREPARE_S:g} s: try it on a command line") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(said[-1].removeprefix("periplus: ") if said else f"exit code {done.returncode}")


def folder_name(name: str) -> str:
    """The folder of a collection of this name. Raises UsageError for one that could lie elsewhere."""
    plain = name.strip().removesuffix(SUFFIX)
    if not _NAME.fullmatch(plain) or ".." in plain:
        raise UsageError(f"a collection cannot be called {name[:100]!r}: take letters, digits, dots, dashes and blanks")
    return plain + SUFFIX


def flags(form: Mapping[str, str]) -> tuple[str, ...]:
    """Limits and patterns as flags. Raises UsageError for what is none."""
    words: list[str] = []
    for name, (flag, low, high) in _NUMBERS.items():
        text = form.get(name, "").strip()
        if text:
            words += [flag, _number(name, text, low, high)]
    for name, flag in _PATTERNS.items():
        for pattern in form.get(name, "").split("\n"):
            if pattern.strip():
                words.append(f"{flag}={_pattern(pattern.strip())}")
    return tuple(words)


def _number(name: str, text: str, low: float, high: float) -> str:
    try:
        value = float(text) if name == "delay" else int(text)
    except ValueError:
        raise UsageError(f"{name} is a number, not {text[:50]!r}") from None
    if not low <= value <= high:
        raise UsageError(f"{name} lies between {low:g} and {high:,g}")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError(f"{text[:100]!r} is no regular expression: {error}") from None
    return text[:1000]


def gone_on(command: tuple[str, ...], form: Mapping[str, str]) -> JobOrder:
    """The order that goes on with a crawl, its limits and patterns replaced by those of the form where it names any; LIFTED takes one away."""
    changed = flags({name: text for name, text in form.items() if text.strip() != LIFTED})
    lifted = {flag for name, flag in _FLAGS.items() if form.get(name, "").strip() == LIFTED}
    replaced = lifted | {word.partition("=")[0] for word in changed if word.startswith("--")}
    kept: list[str] = []
    words = iter(command)
    for word in words:
        flag, given, _ = word.partition("=")
        if flag in replaced:
            if not given:
                next(words, None)
            continue
        kept.append(word)
    return JobOrder((*kept, *changed))
