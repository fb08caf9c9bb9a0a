"""Which commands do what somebody asks for in a form: a map, a check, a survey, a topic, a portal."""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from periplus.analyse.units import unit_list
from periplus.api.survey import ITEMS, WITHIN, checked
from periplus.errors import InvalidUrl, UsageError
from periplus.model.job import JobOrder
from periplus.model.story import Portal
from periplus.model.survey import Unit
from periplus.model.web import Url
from periplus.model.webometrics import Campaign
from periplus.present.wording import count_of
from periplus.schedule.names import rules
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_key

# Whoever asks here may be a stranger to the command line, or no friend: only what is named below becomes part of a
# command, URLs in canonical form, numbers as numbers. Nothing here lifts a rule: private addresses, robots.txt and
# delays stay as the settings have them.

SUFFIX = ".periplus"
MOST_STARTS = 1_000
# pages fetched of the sites named, before the topic is learned: thirty of the topic among them are enough
FOLLOW_FIRST = 300
FOLLOW_PAGES = 2_000  # of a topical crawl whose form names none
WORDS_CHARS = 500
SURVEY_PAGES = 2_000  # of a survey whose form names none: an hour of twenty sites at the usual delay
PREPARE_S = 60.0
PERIODS = {"": 0.0, "hour": 3_600.0, "day": 86_400.0, "week": 604_800.0, "month": 2_592_000.0}
_NAME = re.compile(r"[\w][\w. -]{0,99}")
_NUMBERS = {
    "max_pages": ("--max-pages", 1, 10_000_000),
    "max_depth": ("--max-depth", 0, 100_000),
    "delay": ("--delay", 0.5, 3_600),
}
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
    Preset(
        "map",
        "Map a site",
        "Fetches the site politely and keeps it: its map, its pages and links, searchable.",
        "crawl",
    ),
    Preset(
        "check",
        "Check links",
        "Fetches the site, then asks for everything that it links to: dead links with the pages that hold them.",
        "check",
    ),
    Preset(
        "set",
        "Fetch a set of sites",
        "One collection of several sites, each followed within itself: one address a line.",
        "crawl",
        many=True,
    ),
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
        (
            "Fetches some pages of these sites, learns the topic from its words, then fetches "
            "more of it wherever links lead."
        ),
        "topic",
        many=True,
        by_words=True,
    ),
)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A wish as an order.

    folder: of the collection, within the folder of collections; before: a command that is done at once, without asking
    anything of the web; empty: none.
    """

    folder: str
    order: JobOrder
    period_s: float  # 0: once
    before: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """As one would type it."""
        return "\n".join(
            shlex.join(("periplus", *command))
            for command in (self.before, self.order.command, *self.order.then)
            if command
        )


def starts_of(text: str) -> tuple[Url, ...]:
    """URLs as people write them, parted by white space: `example.org` means https://example.org/.

    Raises InvalidUrl, UsageError.
    """
    found: dict[Url, None] = {}
    for word in text.split():
        full = word if "://" in word else f"https://{word}"
        try:
            if (
                not full.lower().startswith(("http://", "https://"))
                or "@" in full.partition("://")[2].partition("/")[0]
            ):
                raise InvalidUrl(word)
            found[canonical(full)] = None
        except InvalidUrl:
            raise InvalidUrl(f"{word[:200]!r} is no address of a site; write it like https://example.org/") from None
    if not found:
        raise UsageError("no site: write its address, like example.org")
    if len(found) > MOST_STARTS:
        raise UsageError(f"{len(found):,} sites at once: at most {MOST_STARTS:,}, or use `periplus crawl -i FILE`")
    return tuple(found)


def wished(form: Mapping[str, str]) -> JobRequest:
    """The order for what a form says: preset, url, and perhaps name, max_pages, max_depth, delay, include,
    exclude, every.

    Raises UsageError.
    """
    preset = next((one for one in PRESETS if one.name == form.get("preset", PRESETS[0].name)), None)
    if preset is None:
        raise UsageError(
            f"there is no preset {form.get('preset')!r}: choose among {', '.join(one.name for one in PRESETS)}"
        )
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
    return JobRequest(folder, JobOrder(command), PERIODS[every])


def _survey(form: Mapping[str, str], starts: tuple[Url, ...], folder: str, period_s: float) -> JobRequest:
    """Made at once, so that what cannot be surveyed is refused beside the form; read by a job."""
    pages = form.get("max_pages", "").strip() or str(SURVEY_PAGES)
    limit = ("--pages", _number("max_pages", pages, *_NUMBERS["max_pages"][1:]))
    further = flags({name: text for name, text in form.items() if name != "max_pages"})
    return JobRequest(
        folder,
        JobOrder(("survey", "run", "-c", folder, *further)),
        period_s,
        ("survey", "create", "-c", folder, *limit, *starts),
    )


def _follow(form: Mapping[str, str], starts: tuple[Url, ...], folder: str, period_s: float) -> JobRequest:
    """Jobs one after the other: some pages of the sites named, the topic learned, more of it fetched,
    all pages judged.
    """
    words = topic_words(form.get("words", ""))
    name = "-".join(re.findall(r"\w+", words)[:2])[:60].lower() or "topic"
    pages = form.get("max_pages", "").strip() or str(FOLLOW_PAGES)
    limit = ("--max-pages", _number("max_pages", pages, *_NUMBERS["max_pages"][1:]))
    further = flags({one: text for one, text in form.items() if one != "max_pages"})
    first = ("crawl", *starts, "-o", folder, "--max-pages", str(FOLLOW_FIRST), *further)
    learn = ("topic", "train", name, "-c", folder, "-p", f"words:{words}")
    more = ("topic", "crawl", name, *starts, "-c", folder, *limit, *further)
    return JobRequest(
        folder, JobOrder(first, then=(learn, more, ("topic", "judge", name, "-c", folder, "--keep"))), period_s
    )


def topic_words(text: str) -> str:
    """The words of a topic, as `words:` takes them. Raises UsageError where there are none."""
    words = " ".join(re.findall(r"[\w'-]+", text))
    if not re.search(r"\w", words) or len(words) > WORDS_CHARS:
        raise UsageError(f"a topic begins with a few words: harbour ship sailor (at most {WORDS_CHARS} letters)")
    return words


def prepared(wish: JobRequest, folder: Path) -> None:
    """Does what comes before the job, in the folder of collections.

    Raises UsageError with what the command says against it.
    """
    if not wish.before:
        return
    command = [sys.executable, "-m", "periplus.cli", *wish.before]
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=PREPARE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"`{wish.line.splitlines()[0]}` took longer than {PREPARE_S:g} s: try it on a command line"
        ) from None
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
    """The order that goes on with a crawl, its limits and patterns replaced by those of the form where it names any;
    LIFTED takes one away.
    """
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


USUAL = Campaign()
NAMED = 12  # sites that a command line names one by one; of more it names a file
RULE_WORDS = {name: sentence for name, (sentence, _) in rules().items()}
WITH_NUMBER = ("r2", "r3", "quantum")
LARGEST = {"pages": 10_000_000, "seed": 2**31, "max_time": 10_000_000, "rule_number": 1_000_000}


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """A survey that a form describes.

    run: the job that reads it; lines: the commands that make and run it, as one would type them.
    """

    campaign: Campaign
    run: JobOrder
    lines: str


def survey_wished(form: Mapping[str, str], folder: str) -> SurveyRequest:
    """sites, and perhaps title, rule, rule_number, pages, item, within, seed, max_depth, delay.

    folder: as commands name it. Raises UsageError.
    """
    units = units_of_text(form.get("sites", ""))
    campaign = Campaign(
        title=form.get("title", "").strip()[:200] or f"Survey of {count_of(len(units), 'site')}",
        units=units,
        rule=_rule(form) or USUAL.rule,
        within=_one_of(form, "within", WITHIN),
        item=_one_of(form, "item", ITEMS) or USUAL.item,
        pages=_whole(form, "pages", SURVEY_PAGES),
        seed=_whole(form, "seed", USUAL.seed),
    )
    checked(campaign)
    run = run_wished({name: text for name, text in form.items() if name in ("max_depth", "delay")}, folder)
    lines = [("periplus", "survey", "create", "-c", folder, *_said(form, campaign)), ("periplus", *run.command)]
    return SurveyRequest(campaign, run, "\n".join(map(shlex.join, lines)))


def run_wished(form: Mapping[str, str], folder: str) -> JobOrder:
    """The job that goes on with a survey: perhaps with pages in all, max_time, rule, max_depth, delay.

    Raises UsageError.
    """
    words = []
    if form.get("pages", "").strip():
        words += ["--pages", str(_whole(form, "pages", 0))]
    if form.get("max_time", "").strip():
        words += ["--max-time", str(_whole(form, "max_time", 0))]
    if rule := _rule(form):
        words += ["--rule", rule]
    return JobOrder(
        ("survey", "run", "-c", folder, *words, *flags({name: form.get(name, "") for name in ("max_depth", "delay")}))
    )


def units_of_text(text: str) -> tuple[Unit, ...]:
    """Sites as people paste them: an address a line (or parted by blanks), or CSV with a heading. Raises UsageError."""
    first = text.strip().partition("\n")[0]
    plain = not any(mark in first for mark in ",;\t") and "start" not in first.lower().split()
    units = unit_list("\n".join(text.split()) if plain else text)
    if len(units) > MOST_STARTS:
        raise UsageError(
            f"{len(units):,} sites at once: at most {MOST_STARTS:,} from a form, or use "
            "`periplus survey create -i FILE`"
        )
    starts_of("\n".join(unit.start for unit in units))  # refuses what is no address on the web
    return units


def _said(form: Mapping[str, str], campaign: Campaign) -> list[str]:
    """What differs from the usual, as flags."""
    words = ["--title", campaign.title] if form.get("title", "").strip() else []
    for flag in ("rule", "pages", "item", "within", "seed"):
        if getattr(campaign, flag) != getattr(USUAL, flag):
            words += [f"--{flag}", str(getattr(campaign, flag))]
    plain = all(
        unit == dataclasses.replace(unit, name=unit.prefixes[0], bundle="", official=True) for unit in campaign.units
    )
    if plain and len(campaign.units) <= NAMED:
        return [*words, *(unit.start for unit in campaign.units)]
    return [*words, "-i", "sites.csv" if not plain else "sites.txt"]


def _rule(form: Mapping[str, str]) -> str:
    name, number = form.get("rule", "").strip(), form.get("rule_number", "").strip()
    if not number or name not in WITH_NUMBER:
        return name
    return f"{name}:{_whole(form, 'rule_number', 1)}"


def _one_of(form: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    text = form.get(name, "")
    if text and text not in choices:
        raise UsageError(f"{name} is {' or '.join(choices)}, not {text[:50]!r}")
    return text


def _whole(form: Mapping[str, str], name: str, usual: int) -> int:
    text = form.get(name, "").strip()
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= LARGEST[name]):
        raise UsageError(f"{name.replace('_', ' ')} is a whole number up to {LARGEST[name]:,}, not {text[:50]!r}")
    return int(text)


# Here too only what is named becomes part of a command: words, addresses, searches, numbers; no
# path of a file, no rule.

METHODS = ("calibrated", "svm", "online")  # of `model.topic.Method`
EXAMPLES_MOST = 200  # lines of a form
EXAMPLE_CHARS = 2_000
LINE_CHARS = 300  # of a title or lead


def train_order(form: Mapping[str, str], collection: str) -> JobOrder:
    """Learns a topic by words and pages, then judges the collection's pages by it.

    collection: as a job names it. Raises UsageError.
    """
    positives = [f"words:{topic_words(form['words'])}"] if form.get("words", "").strip() else []
    positives += examples_of(form.get("positives", ""))
    negatives = examples_of(form.get("negatives", ""))
    if not positives:
        raise UsageError("say what the topic is: a few words, or pages of the collection")
    method = form.get("method", "") or METHODS[0]
    if method not in METHODS:
        raise UsageError(f"there is no method {method[:50]!r}: choose {', '.join(METHODS)}")
    name = topic_name(form.get("name", ""))
    words = [word for flag, specs in (("-p", positives), ("-n", negatives)) for spec in specs for word in (flag, spec)]
    chosen = () if method == METHODS[0] else ("--method", method)
    return JobOrder(
        ("topic", "train", name, "-c", collection, *words, *chosen), then=(judge_command(name, collection),)
    )


def topic_name(text: str) -> str:
    """Raises UsageError for what cannot be one."""
    name = text.strip()
    if not 0 < len(name) <= 64 or name.startswith("-") or not all(sign.isalnum() or sign in "-_" for sign in name):
        raise UsageError(f"{name[:80]!r} cannot be a topic's name: letters, digits, - and _, at most 64 of them")
    return name


def examples_of(text: str) -> list[str]:
    """Examples, one a line: addresses (perhaps with * in them) and searches; of files there are none.

    Raises UsageError.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > EXAMPLES_MOST:
        raise UsageError(f"{len(lines):,} lines of examples: at most {EXAMPLES_MOST}, or use `periplus topic train`")
    return [_example(line) for line in lines]


def _example(line: str) -> str:
    if len(line) > EXAMPLE_CHARS:
        raise UsageError(f"an example of more than {EXAMPLE_CHARS:,} letters")
    if line.startswith("search:"):
        return line
    if "*" not in line:
        return str(starts_of(line)[0]) if len(line.split()) == 1 else f"search:{line}"
    full = line if "://" in line else f"https://{line}"
    if not full.startswith(("http://", "https://")) or len(full.split()) > 1:
        raise UsageError(f"{line[:100]!r} is no pattern of addresses; write it like https://example.org/films/*")
    return full


def judge_command(name: str, collection: str) -> tuple[str, ...]:
    return ("topic", "judge", name, "-c", collection, "--keep")


def crawl_order(name: str, form: Mapping[str, str], seeds: tuple[Url, ...], collection: str) -> JobOrder:
    """Fetches more of a topic, then judges all pages. seeds: where the form names none. Raises UsageError."""
    given = starts_of(form["seeds"]) if form.get("seeds", "").strip() else seeds
    if not given:
        raise UsageError("name a few pages to start from")
    limits = flags({"max_pages": str(FOLLOW_PAGES)} | {field: text for field, text in form.items() if text.strip()})
    harvest = form.get("least_harvest", "").strip()
    if harvest:
        limits += ("--least-harvest", f"{_percent(harvest) / 100:g}")
    return JobOrder(
        ("topic", "crawl", name, *given, "-c", collection, *limits), then=(judge_command(name, collection),)
    )


def _percent(text: str) -> float:
    try:
        value = float(text.rstrip(" %"))
    except ValueError:
        raise UsageError(f"the least harvest is a number of per cent, not {text[:50]!r}") from None
    if not 0 <= value <= 100:
        raise UsageError("the least harvest lies between 0 and 100 per cent")
    return value


def renewal(portal: str, collection: str) -> JobOrder:
    """Brings the collection up to date, then builds its portal anew: for a schedule."""
    return JobOrder(("refresh", "-c", collection), then=(build_command(portal, collection),))


def build_command(portal: str, collection: str) -> tuple[str, ...]:
    return ("portal", "build", portal, "-c", collection)


def portal_of(form: Mapping[str, str], created: float) -> Portal:
    """A portal as a form says it is to be. Raises UsageError."""
    name = form.get("name", "").strip()
    address = str(starts_of(form["address"])[0]) if form.get("address", "").strip() else ""
    period_s = PERIODS.get(form.get("every", ""))
    if period_s is None:
        raise UsageError(f"there is no period {form.get('every', '')[:50]!r}: choose hour, day, week or month")
    numbers = {field: _topic_whole(form, field, *limits) for field, limits in _PORTAL_NUMBERS.items()}
    return Portal(
        name=name, title=_line(form, "title") or name, created=created, lead=_line(form, "lead"),
        topic=form.get("topic", "").strip(), period_s=period_s,
        approve=bool(form.get("approve")), address=address, **numbers,
    )  # fmt: skip


# usual, least, most; as `periplus portal create` has it
_PORTAL_NUMBERS = {"stories": (12, 1, 200), "sites": (20, 0, 1_000)}


def _line(form: Mapping[str, str], field: str) -> str:
    return " ".join(form.get(field, "").split())[:LINE_CHARS]


def _topic_whole(form: Mapping[str, str], field: str, usual: int, least: int, most: int) -> int:
    text = form.get(field, "").strip() or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < 9 and least <= int(text) <= most):
        raise UsageError(f"{field} is a number from {least} to {most:,}, not {text[:50]!r}")
    return int(text)


def portal_command(portal: Portal, collection: str) -> tuple[str, ...]:
    """What one would type to begin it."""
    words = ["portal", "create", portal.name, "-c", collection]
    for flag, text in (
        ("--title", portal.title if portal.title != portal.name else ""),
        ("--lead", portal.lead),
        ("--topic", portal.topic),
    ):
        words += [flag, text] if text else []
    words += ["--period", f"{portal.period_s / 3600:g}h"] if portal.period_s else []
    words += ["--approve"] * portal.approve + (["--address", portal.address] if portal.address else [])
    for flag, value, (usual, _, _) in (
        ("--stories", portal.stories, _PORTAL_NUMBERS["stories"]),
        ("--sites", portal.sites, _PORTAL_NUMBERS["sites"]),
    ):
        words += [flag, str(value)] if value != usual else []
    return tuple(words)
