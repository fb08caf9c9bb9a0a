"""Which commands do what a form about a topic or a portal says?

As in `jobs.presets`, only what is named here becomes part of a command: words, addresses, searches, numbers; no path of a file, no rule.
"""

from __future__ import annotations

from collections.abc import Mapping

from periplus.errors import UsageError
from periplus.jobs.presets import FOLLOW_PAGES, PERIODS, flags, starts_of, topic_words
from periplus.model.job import JobOrder
from periplus.model.portal import Portal
from periplus.model.web import Url

METHODS = ("calibrated", "svm", "online")  # of `model.topic.Method`
EXAMPLES_MOST = 200  # lines of a form
EXAMPLE_CHARS = 2_000
LINE_CHARS = 300  # of a title or lead


def train_order(form: Mapping[str, str], collection: str) -> JobOrder:
    """Learns a topic by words and pages, then judges the collection's pages by it. collection: as a job names it. Raises UsageError."""
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
    return JobOrder(("topic", "train", name, "-c", collection, *words, *chosen), then=(judge_command(name, collection),))


def topic_name(text: str) -> str:
    """Raises UsageError for what cannot be one."""
    name = text.strip()
    if not 0 < len(name) <= 64 or name.startswith("-") or not all(sign.isalnum() or sign in "-_" for sign in name):
        raise UsageError(f"{name[:80]!r} cannot be a topic's name: letters, digits, - and _, at most 64 of them")
    return name


def examples_of(text: str) -> list[str]:
    """Examples, one a line: addresses (perhaps with * in them) and searches; of files there are none. Raises UsageError."""
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
    return JobOrder(("topic", "crawl", name, *given, "-c", collection, *limits), then=(judge_command(name, collection),))


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
    numbers = {field: _whole(form, field, *limits) for field, limits in _PORTAL_NUMBERS.items()}
    return Portal(
        name=name, title=_line(form, "title") or name, created=created, lead=_line(form, "lead"), topic=form.get("topic", "").strip(), period_s=period_s,
        approve=bool(form.get("approve")), address=address, **numbers,
    )  # fmt: skip


_PORTAL_NUMBERS = {"stories": (12, 1, 200), "sites": (20, 0, 1_000)}  # usual, least, most; as `periplus portal create` has it


def _line(form: Mapping[str, str], field: str) -> str:
    return " ".join(form.get(field, "").split())[:LINE_CHARS]


def _whole(form: Mapping[str, str], field: str, usual: int, least: int, most: int) -> int:
    text = form.get(field, "").strip() or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < 9 and least <= int(text) <= most):
        raise UsageError(f"{field} is a number from {least} to {most:,}, not {text[:50]!r}")
    return int(text)


def portal_command(portal: Portal, collection: str) -> tuple[str, ...]:
    """What one would type to begin it."""
    words = ["portal", "create", portal.name, "-c", collection]
    for flag, text in (("--title", portal.title if portal.title != portal.name else ""), ("--lead", portal.lead), ("--topic", portal.topic)):
        words += [flag, text] if text else []
    words += ["--period", f"{portal.period_s / 3600:g}h"] if portal.period_s else []
    words += ["--approve"] * portal.approve + (["--address", portal.address] if portal.address else [])
    for flag, value, (usual, _, _) in (("--stories", portal.stories, _PORTAL_NUMBERS["stories"]), ("--sites", portal.sites, _PORTAL_NUMBERS["sites"])):
        words += [flag, str(value)] if value != usual else []
    return tuple(words)
