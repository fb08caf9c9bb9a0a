"""Commands for the forms of the browser interface: a map, a check, a survey, a topic, a portal.

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
from periplus.model.story import Portal
from periplus.model.survey import Unit
from periplus.model.web import Url
from periplus.model.webometrics import Campaign
from periplus.present.wording import count_of
from periplus.schedule.bandit import rules
from periplus.schedule.survey import ITEMS, WITHIN, check_campaign
from periplus.settings import SUFFIX, SettingPreset, preset_named, rows
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_name
from periplus.urls.units import merge_twins, unit_list
from periplus.urls.user_patterns import user_pattern
from periplus.values import frozen


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


MOST_STARTS = 1_000
# pages fetched from the given sites before the topic is learned; thirty pages on the topic among them are enough
FOLLOW_FIRST = 300
FOLLOW_PAGES = 2_000  # default of a topical crawl
WORDS_CHARS = 500
SURVEY_PAGES = 2_000  # default of a survey: an hour for twenty sites with the default delay
PAGE_NUMBERS = {"pages": SURVEY_PAGES, "least_pages": 0, "read_companions": 0}  # fields of survey forms with defaults
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


@frozen
class JobRequest:
    """A request of a form.

    folder: of the collection, as in commands; period_s: 0.0: once; campaign: a survey, which is created at once without
    requests, so that errors are shown beside the form; before: the command that creates it.
    """

    folder: str
    order: JobOrder
    period_s: float = 0.0
    campaign: Campaign | None = None
    before: tuple[str, ...] = ()

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


def _survey(form: Form, starts: tuple[Url, ...], folder: str, further: tuple[str, ...]) -> JobRequest:
    request = survey_request({"sites": "\n".join(starts), "pages": form.get("max_pages", "")}, folder)
    return dataclasses.replace(request, order=JobOrder((*request.order.command, *further)))


def _follow(form: Form, starts: tuple[Url, ...], folder: str, further: tuple[str, ...]) -> JobRequest:
    """Jobs in sequence: fetch some pages of the sites, learn the topic, fetch more pages on it, judge all pages."""
    words = topic_words(form.get("words", ""))
    pages = str(whole(form, "max_pages", FOLLOW_PAGES, 1, MOST_PAGES))
    name = "-".join(re.findall(r"\w+", words)[:2])[:60].lower() or "topic"
    first = ("crawl", *starts, "-o", folder, "--max-pages", str(FOLLOW_FIRST), *further)
    learn = ("topic", "train", name, "-c", folder, "-p", f"words:{words}")
    more = ("topic", "crawl", name, *starts, "-c", folder, "--max-pages", pages, *further)
    return JobRequest(folder, JobOrder(first, then=(learn, more, judge_command(name, folder))))


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
    Preset(
        "survey",
        "Survey a set of sites",
        "Crawls many sites where most new external links are found, within a number of pages: one address a line.",
        "survey",
        _survey,
        many=True,
    ),
    Preset(
        "follow",
        "Follow a topic",
        (
            "Fetches some pages of these sites, learns the topic from its words, then follows links to more "
            "pages about it."
        ),
        "topic",
        _follow,
        many=True,
        by_words=True,
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


def topic_words(text: str) -> str:
    """The words of a topic, in the form of `words:`. Raises UsageError if there are none."""
    words = " ".join(re.findall(r"[\w'-]+", text))
    if not re.search(r"\w", words) or len(words) > WORDS_CHARS:
        raise UsageError(f"describe the topic in a few words: harbour ship sailor (up to {WORDS_CHARS} letters)")
    return words


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


USUAL = Campaign()
MOST_SITES = 12  # sites in a command line; more sites are given as a file
RULE_WORDS = {name: sentence for name, (sentence, _) in rules().items()}
WITH_NUMBER = ("r2", "r3", "quantum")


def survey_request(form: Form, folder: str) -> JobRequest:
    """The request of a survey form.

    form: sites, optionally title, rule, rule_number, item, within, seed, max_depth, delay, and PAGE_NUMBERS. folder: as
    in commands. Raises UsageError.
    """
    units = units_of_text(form.get("sites", ""))
    pages, least_pages, companion_pages = (
        whole(form, name, usual, 0, MOST_PAGES) for name, usual in PAGE_NUMBERS.items()
    )
    campaign = Campaign(
        title=form.get("title", "").strip()[:200] or f"Survey of {count_of(len(units), 'site')}",
        units=units,
        rule=_rule(form) or USUAL.rule,
        within=choice(form, "within", WITHIN),
        item=choice(form, "item", ITEMS, USUAL.item),
        pages=pages,
        seed=whole(form, "seed", USUAL.seed, 0, 2**31),
        least_pages=least_pages,
        read_companions=companion_pages,
    )
    check_campaign(campaign)
    run = survey_run({name: text for name, text in form.items() if name in ("max_depth", "delay")}, folder)
    return JobRequest(folder, run, 0.0, campaign, ("survey", "create", "-c", folder, *_campaign_flags(form, campaign)))


def survey_run(form: Form, folder: str) -> JobOrder:
    """The job that continues a survey. form: optionally max_time, rule, max_depth, delay, and PAGE_NUMBERS.

    Raises UsageError.
    """
    words = []
    for name in (*PAGE_NUMBERS, "max_time"):
        if form.get(name, "").strip():
            words += [_flag(name), str(whole(form, name, 0, 0, MOST_PAGES))]
    if rule := _rule(form):
        words += ["--rule", rule]
    limits = flags({name: form.get(name, "") for name in ("max_depth", "delay")})
    return JobOrder(("survey", "run", "-c", folder, *words, *limits))


def units_of_text(text: str) -> tuple[Unit, ...]:
    """Parses pasted sites: addresses separated by line breaks or blanks, or CSV with a header. Raises UsageError."""
    first = text.strip().partition("\n")[0]
    plain = not any(mark in first for mark in ",;\t") and "start" not in first.lower().split()
    units, _ = merge_twins(unit_list("\n".join(text.split()) if plain else text))
    if len(units) > MOST_STARTS:
        raise UsageError(
            f"{len(units):,} sites at once: at most {MOST_STARTS:,} from a form, or use "
            "`periplus survey create -i FILE`"
        )
    starts_of("\n".join(unit.start for unit in units))  # raises for other than web addresses
    return units


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _campaign_flags(form: Form, campaign: Campaign) -> list[str]:
    """Flags for values that differ from the defaults."""
    words = ["--title", campaign.title] if form.get("title", "").strip() else []
    for name in ("rule", "item", "within", "seed", *PAGE_NUMBERS):
        if getattr(campaign, name) != getattr(USUAL, name):
            words += [_flag(name), str(getattr(campaign, name))]
    plain = all(
        unit == dataclasses.replace(unit, name=unit.prefixes[0], bundle="", official=True) for unit in campaign.units
    )
    if plain and len(campaign.units) <= MOST_SITES:
        return [*words, *(unit.start for unit in campaign.units)]
    return [*words, "-i", "sites.csv" if not plain else "sites.txt"]


def _rule(form: Form) -> str:
    name = form.get("rule", "").strip()
    if name in WITH_NUMBER and form.get("rule_number", "").strip():
        return f"{name}:{whole(form, 'rule_number', 1, 0, 1_000_000)}"
    return name


METHODS = ("calibrated", "svm", "online")  # of `model.topic.Method`
EXAMPLES_MOST = 200  # lines in a form
EXAMPLE_CHARS = 2_000
LINE_CHARS = 300  # of a title or lead


def train_order(form: Form, collection: str) -> JobOrder:
    """The jobs that learn a topic from words and pages, then judge the collection's pages.

    collection: as in commands. Raises UsageError.
    """
    positives = [f"words:{topic_words(form['words'])}"] if form.get("words", "").strip() else []
    positives += examples_of(form.get("positives", ""))
    negatives = examples_of(form.get("negatives", ""))
    if not positives:
        raise UsageError("the topic needs a few words, or pages of the collection")
    method = choice(form, "method", METHODS, METHODS[0])
    name = topic_name(form.get("name", ""))
    words = [word for flag, specs in (("-p", positives), ("-n", negatives)) for spec in specs for word in (flag, spec)]
    words += [] if method == METHODS[0] else ["--method", method]
    return JobOrder(("topic", "train", name, "-c", collection, *words), then=(judge_command(name, collection),))


def topic_name(text: str) -> str:
    """The checked name of a topic. Raises UsageError."""
    name = text.strip()
    if not 0 < len(name) <= 64 or name.startswith("-") or not all(sign.isalnum() or sign in "-_" for sign in name):
        raise UsageError(f"{name[:80]!r} cannot be a topic's name: use up to 64 letters, digits, - and _")
    return name


def examples_of(text: str) -> list[str]:
    """Examples, one per line: addresses (optionally with *) and searches, but not files. Raises UsageError."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > EXAMPLES_MOST:
        raise UsageError(f"{len(lines):,} lines of examples: at most {EXAMPLES_MOST}, or use `periplus topic train`")
    return [_example(line) for line in lines]


def _example(line: str) -> str:
    if len(line) > EXAMPLE_CHARS:
        raise UsageError(f"an example is longer than {EXAMPLE_CHARS:,} letters")
    if line.startswith("search:"):
        return line
    if "*" not in line:
        return str(starts_of(line)[0]) if len(line.split()) == 1 else f"search:{line}"
    full = line if "://" in line else f"https://{line}"
    if not full.startswith(("http://", "https://")) or len(full.split()) > 1:
        raise UsageError(f"{line[:100]!r} is not a pattern of URLs; write it like https://example.org/films/*")
    return full


def judge_command(name: str, collection: str) -> tuple[str, ...]:
    return ("topic", "judge", name, "-c", collection, "--keep")


def crawl_order(name: str, form: Form, seeds: tuple[Url, ...], collection: str) -> JobOrder:
    """The jobs that fetch more pages on a topic, then judge all pages. seeds: the default. Raises UsageError."""
    starts = starts_of(form["seeds"]) if form.get("seeds", "").strip() else seeds
    if not starts:
        raise UsageError("give a few pages to start from")
    limits = flags({"max_pages": str(FOLLOW_PAGES)} | {field: text for field, text in form.items() if text.strip()})
    per_cent = form.get("least_harvest", "").strip()
    if per_cent:
        least = decimal({"least_harvest": per_cent.rstrip(" %")}, "least_harvest", 0, 0, 100)
        limits += ("--least-harvest", f"{least / 100:g}")
    command = ("topic", "crawl", name, *starts, "-c", collection, *limits)
    return JobOrder(command, then=(judge_command(name, collection),))


def renewal(portal: str, collection: str) -> JobOrder:
    """The jobs of a schedule that refreshes the collection and then rebuilds its portal."""
    return JobOrder(("refresh", "-c", collection), then=(build_command(portal, collection),))


def build_command(portal: str, collection: str) -> tuple[str, ...]:
    return ("portal", "build", portal, "-c", collection)


# (default, minimum, maximum), as in `periplus portal create`
_PORTAL_NUMBERS = {"stories": (12, 1, 200), "sites": (20, 0, 1_000)}


def portal_of(form: Form, created: float) -> Portal:
    """The definition of a portal in a form. Raises UsageError."""
    name, title, lead = (" ".join(form.get(field, "").split())[:LINE_CHARS] for field in ("name", "title", "lead"))
    address = str(starts_of(form["address"])[0]) if form.get("address", "").strip() else ""
    numbers = {field: whole(form, field, *limits) for field, limits in _PORTAL_NUMBERS.items()}
    return Portal(
        name=name, title=title or name, created=created, lead=lead, topic=form.get("topic", "").strip(),
        period_s=period(form), approve=bool(form.get("approve")), address=address, **numbers,
    )  # fmt: skip


def portal_command(portal: Portal, collection: str) -> tuple[str, ...]:
    """The command that creates the portal."""
    usual = {"--title": portal.name} | {f"--{field}": str(limits[0]) for field, limits in _PORTAL_NUMBERS.items()}
    values = {
        "--title": portal.title, "--lead": portal.lead, "--topic": portal.topic,
        "--period": f"{portal.period_s / 3600:g}h" if portal.period_s else "",
        "--address": portal.address, "--stories": str(portal.stories), "--sites": str(portal.sites),
    }  # fmt: skip
    words = ["portal", "create", portal.name, "-c", collection]
    for flag, text in values.items():
        words += [flag, text] if text not in ("", usual.get(flag)) else []
    return (*words, *["--approve"] * portal.approve)
