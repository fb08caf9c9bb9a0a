"""Which topics a collection has, how they are taught by labels, and how more of them is fetched."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping

from starlette.requests import Request
from starlette.responses import Response

from periplus.api.collection import Collection
from periplus.api.functions import open_collection
from periplus.errors import PeriplusError, UsageError
from periplus.jobs.presets import (
    MOST_PAGES,
    JobRequest,
    Preset,
    decimal,
    flags,
    order_lines,
    starts_of,
    whole,
)
from periplus.jobs.setting_fields import Form
from periplus.model.job import Job, JobOrder
from periplus.model.page import TEXT_PARTS
from periplus.model.web import Url
from periplus.ui import rendering
from periplus.ui.live import jobs_about, push
from periplus.ui.safety import form_of
from periplus.ui.state import AppState, place_read, state_of
from periplus.values import JsonObject, Place, fields_of, frozen
from periplus_topics.api.labelling import Labelling, Sessions
from periplus_topics.api.topical_run import harvest_of
from periplus_topics.api.topics import (
    JUDGED,
    JudgedPage,
    changed_s,
    remove_topic,
    stored_judgements,
    stored_labels,
    topic_names,
    topic_of,
)
from periplus_topics.present.stories import topic_values, write_harvest_svg

_SESSIONS = Sessions()
BEST = 12  # pages and words of each kind that are named on a topic's own screen
BLOCKS, BLOCK_CHARS = 6, 500  # of a page that is to be labelled: what one reads in some seconds
HISTORY = 8  # answers of a session that are shown
READ_S = 5.0
ANSWERS = {"yes": True, "no": False}
# pages fetched from the given sites before the topic is learned; thirty pages on the topic among them are enough
FOLLOW_FIRST = 300
FOLLOW_PAGES = 2_000  # default of a topical crawl
WORDS_CHARS = 500
EXAMPLES_MOST = 200  # lines in a form
EXAMPLE_CHARS = 2_000


@frozen
class TopicRow:
    """A topic in the list. fault: why it cannot be read; judged: when, 0.0: never."""

    name: str
    positives: int = 0
    negatives: int = 0
    f: float | None = None
    labels: int = 0
    judged: float = 0.0
    fault: str = ""


def topics(request: Request, refused: rendering.RefusedForm | None = None) -> Response:
    """The topics of a collection, and the form that makes one; with a form in the address, its command."""
    state = state_of(request)
    name, place = place_read(request)
    values: JsonObject = {
        "title": "Topics", "name": name, "topics": [_row(place, topic) for topic in topic_names(place)],
        "jobs": _jobs(state, name, ""),
    }  # fmt: skip

    def line(asked: Mapping[str, str]) -> str:
        return order_lines(train_order(asked, _word(request))) if asked.get("name") else ""

    return rendering.answer_form(request, "periplus_topics/topics.html", values, line, refused)


def create(request: Request) -> Response:
    """Asks for a topic to be learned, and shows it as it comes."""
    form = form_of(request)
    try:
        state_of(request).add_job(train_order(form, _word(request)))
    except UsageError as error:
        return topics(request, (form, str(error)))
    return rendering.to_screen(request.path_params["name"], "topics")


def _word(request: Request) -> str:
    """The collection as a job's command names it."""
    return state_of(request).folder_word(place_read(request)[1])


def _row(place: Place, name: str) -> TopicRow:
    try:
        topic = topic_of(place, name)
        labels = len(stored_labels(place, name))
    except PeriplusError as error:
        return TopicRow(name, fault=str(error))
    positives = sum(mark.positive for mark in topic.examples)
    return TopicRow(
        name,
        positives,
        len(topic.examples) - positives,
        topic.report.scores.f,
        labels,
        changed_s(place, name, JUDGED),
    )


def _jobs(state: AppState, collection: str, topic: str) -> list[Job]:
    """About this topic, or any."""
    return jobs_about(
        state, collection, lambda order: order.kind == "topic" and (not topic or order.command[2:3] == (topic,))
    )


def topic(request: Request) -> Response:
    """How well a topic was learned, by which words; what belongs to it; what can be done with it."""
    name, place = place_read(request)
    chosen = request.path_params["topic"]
    learned = topic_of(place, chosen)
    with open_collection(place, time_limit_s=READ_S) as collection:
        starts = _starts(collection)
    line = ""
    if request.query_params.get("show") == "crawl":
        line = order_lines(crawl_order(chosen, request.query_params, starts, _word(request)))
    telling = learned.report.telling
    values: JsonObject = {
        "title": chosen, "name": name, "topic": chosen, "facts": topic_values(learned),
        "labels": len(stored_labels(place, chosen)),
        "for_it": [word for word in telling if word.weight > 0][:BEST],
        "against": [word for word in telling if word.weight < 0][:BEST],
        "starts": list(starts), "line": line, **_last_judgement(place, chosen), **_moving_values(request),
    }  # fmt: skip
    return rendering.answer(request, "periplus_topics/topic.html", values)


def _last_judgement(place: Place, topic: str) -> JsonObject:
    """The last judgement: time, number of pages, the best; and whether the topic was retrained since."""
    when = changed_s(place, topic, JUDGED)
    pages, relevant = 0, 0
    best: list[JudgedPage] = []
    for judged_page in stored_judgements(place, topic):
        pages, relevant = pages + 1, relevant + (judged_page.page.probability >= 0.5)
        best += [judged_page] if len(best) < BEST else []
    stale = bool(when) and when < changed_s(place, topic)
    return {
        "judged": when,
        "pages": pages,
        "relevant": relevant,
        "best": [_best(page) for page in best],
        "stale": stale,
    }


def _best(judged_page: JudgedPage) -> JsonObject:
    return {
        **fields_of(judged_page.page, "url title probability"),
        "label": judged_page.label,
    }


def _starts(collection: Collection) -> tuple[Url, ...]:
    """Starts of the last topical crawl, else of the first run."""
    runs = collection.runs()
    chosen = next((run for run in reversed(runs) if run.kind == "topical"), runs[0] if runs else None)
    return tuple(map(Url, chosen.starts)) if chosen else ()


def _moving_values(request: Request) -> JsonObject:
    """Values that change during a topical crawl."""
    name, place = place_read(request)
    chosen = request.path_params["topic"]
    points = harvest_of(place, chosen)
    return {
        "name": name,
        "topic": chosen,
        "jobs": _jobs(state_of(request), name, chosen),
        "harvest": points[-1] if points else None,
        "points": len(points),
    }


def events(request: Request) -> Response:
    """The topic's jobs and its harvest, pushed each time that they changed."""
    topic_of(place_read(request)[1], request.path_params["topic"])  # refuses what is not there before the stream begins
    return push(request, f"topic {request.path_params['topic']} of {request.path_params['name']}", _moving)


def _moving(request: Request) -> str:
    return rendering.render(request, "periplus_topics/topic_part.html", _moving_values(request))


def harvest(request: Request) -> Response:
    """The harvest's curve, as an image."""
    _, place = place_read(request)
    chosen, out = request.path_params["topic"], io.StringIO()
    write_harvest_svg(chosen, [(point.pages, point.relevant, point.lately) for point in harvest_of(place, chosen)], out)
    return rendering.drawing(out.getvalue())


def act(request: Request) -> Response:
    """Actions of a topic's screen: judge, learn, crawl, remove."""
    state, form = state_of(request), form_of(request)
    name, place = place_read(request)
    chosen, what, word = request.path_params["topic"], form.get("what", ""), _word(request)
    topic_of(place, chosen)
    match what:
        case "remove":
            if form.get("sure") != chosen:
                raise UsageError(f"to delete a topic with its examples and labels, enter its name, {chosen}")
            remove_topic(place, chosen)
            return rendering.to_screen(name, "topics")
        case "judge":
            order = JobOrder(judge_command(chosen, word))
        case "learn":
            order = JobOrder(("topic", "learn", chosen, "-c", word), then=(judge_command(chosen, word),))
        case "crawl":
            with open_collection(place, time_limit_s=READ_S) as collection:
                order = crawl_order(chosen, form, _starts(collection), word)
        case _:
            raise UsageError(f"unknown action {what[:50]!r}: choose judge, learn, crawl or remove")
    state.add_job(order)
    return rendering.to_screen(name, f"topic/{chosen}")


def label(request: Request) -> Response:
    """The page that teaches the topic most, and two answers to it."""
    name, place = place_read(request)
    chosen = request.path_params["topic"]
    with _SESSIONS.of(place, chosen) as session:
        page, report = session.current_page(), session.report
        values: JsonObject = {
            "title": f"Label: {chosen}", "name": name, "topic": chosen, "page": page,
            "scores": report.scores, "f_interval": report.f_interval,
            "answers": session.answers,
            "left": session.left,
            "labels": [{"url": url, "title": title, "relevant": yes} for url, title, yes in session.history[:HISTORY]],
        }  # fmt: skip
    labels = stored_labels(place, chosen)
    values |= {"labels_total": len(labels), "labels_positive": sum(example.positive for example in labels)}
    return rendering.answer(
        request,
        "periplus_topics/topic_label.html",
        values | {"blocks": list(_blocks(place, page.url)) if page else []},
    )


def _blocks(place: Place, url: Url) -> Iterator[str]:
    """Excerpt of a page: the first blocks of its content, or of all its text if content is not marked."""
    try:
        with open_collection(place, time_limit_s=READ_S) as collection:
            page = collection.page(url)
            blocks, parts, title = page.blocks(), page.parts(), page.row.title or ""
    except PeriplusError:
        return
    texts = [
        block.text for place, block in enumerate(blocks)
        if (not parts or place >= len(parts) or parts[place] in TEXT_PARTS) and block.text not in title
    ]  # fmt: skip
    for text in texts[:BLOCKS]:
        yield rendering.cut(text, BLOCK_CHARS)


def answer(request: Request) -> Response:
    """An answer to the page that was shown; to another one than that is asked for, nothing: it came twice."""
    name, place = place_read(request)
    chosen, form = request.path_params["topic"], form_of(request)
    with _SESSIONS.of(place, chosen) as session:
        _take_answer(session, form.get("what", ""), form.get("page", ""))
    return rendering.to_screen(name, f"topic/{chosen}/label")


def _take_answer(session: Labelling, what: str, url: str) -> None:
    page = session.current_page()
    if what == "undo":
        session.undo()
    elif what not in (*ANSWERS, "skip"):
        raise UsageError(f"an answer is yes, no, skip or undo, not {what[:50]!r}")
    elif page is None or page.url != url:
        return
    elif what == "skip":
        session.skip()
    else:
        session.answer(ANSWERS[what])


# Commands for the forms. Input is not trusted: see `periplus.jobs.presets`.


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
    name = topic_name(form.get("name", ""))
    words = [word for flag, specs in (("-p", positives), ("-n", negatives)) for spec in specs for word in (flag, spec)]
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
