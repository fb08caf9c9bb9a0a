"""Commands for the forms of topics and portals. Input is not trusted: see `periplus.jobs.presets`."""

from __future__ import annotations

import re

from periplus.errors import UsageError
from periplus.jobs.presets import (
    MOST_PAGES,
    JobRequest,
    Preset,
    choice,
    decimal,
    flags,
    period,
    starts_of,
    whole,
)
from periplus.jobs.setting_fields import Form
from periplus.model.job import JobOrder
from periplus.model.web import Url
from periplus_topics.model import Portal

# pages fetched from the given sites before the topic is learned; thirty pages on the topic among them are enough
FOLLOW_FIRST = 300
FOLLOW_PAGES = 2_000  # default of a topical crawl
WORDS_CHARS = 500
METHODS = ("calibrated", "svm", "online")  # of `model.topic.Method`
EXAMPLES_MOST = 200  # lines in a form
EXAMPLE_CHARS = 2_000
LINE_CHARS = 300  # of a title or lead


def _follow(form: Form, starts: tuple[Url, ...], folder: str, further: tuple[str, ...]) -> JobRequest:
    """Jobs in sequence: fetch some pages of the sites, learn the topic, fetch more pages on it, judge all pages."""
    words = topic_words(form.get("words", ""))
    pages = str(whole(form, "max_pages", FOLLOW_PAGES, 1, MOST_PAGES))
    name = "-".join(re.findall(r"\w+", words)[:2])[:60].lower() or "topic"
    first = ("crawl", *starts, "-o", folder, "--max-pages", str(FOLLOW_FIRST), *further)
    learn = ("topic", "train", name, "-c", folder, "-p", f"words:{words}")
    more = ("topic", "crawl", name, *starts, "-c", folder, "--max-pages", pages, *further)
    return JobRequest(folder, JobOrder(first, then=(learn, more, judge_command(name, folder))))


FOLLOW = Preset(
    "follow",
    "Follow a topic",
    "Fetches some pages of these sites, learns the topic from its words, then follows links to more pages about it.",
    "topic",
    _follow,
    many=True,
    by_words=True,
)


def topic_words(text: str) -> str:
    """The words of a topic, in the form of `words:`. Raises UsageError if there are none."""
    words = " ".join(re.findall(r"[\w'-]+", text))
    if not re.search(r"\w", words) or len(words) > WORDS_CHARS:
        raise UsageError(f"describe the topic in a few words: harbour ship sailor (up to {WORDS_CHARS} letters)")
    return words


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
