"""`periplus topic`: learn a topic from examples, judge pages by it, label those in doubt, and fetch more of them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from periplus.cli.options import (
    FOLDER,
    LongCommand,
    collection_option,
    collection_place,
    columns_of,
    format_option,
    open_output,
    opened_collection,
    option,
    output_option,
    place_option,
    place_word,
    setting_options,
    settings_of,
    verbose_option,
    write_output,
)
from periplus.cli.progress import Display, Watch, say, troubles
from periplus.errors import UsageError
from periplus.model.job import JobProgress
from periplus.present.wording import count_of, duration, size, visible
from periplus.settings import SUFFIX
from periplus.values import Place

if TYPE_CHECKING:
    from periplus_topics.api.labelling import Labelling
    from periplus_topics.api.topical_run import TopicalEnd, TopicalProgress
    from periplus_topics.model import PageJudgement, Topic, TopicReport

ORDERS = ("weighed", "waits")  # of `schedule.topical.queue`

LISTED_PAGES = 20  # pages that are listed
_KEYS = {"y": True, "n": False}


@click.group()
def topic() -> None:
    """Classify pages as relevant to a topic or not, from examples.

    \b
    periplus topic train films --positive films/ --negative other/     learn from two folders of texts or pages
    periplus topic train ships --positive words:"harbour ship sailor"  start from a few words; all other pages are the
    rest
    periplus topic label ships                                         label the pages that improve it most
    periplus topic judge ships                                         the relevant pages, best first
    periplus topic crawl ships https://example.org/                    fetch more of them, from any site
    """


@topic.command()
@click.argument("name")
@click.option(
    "--positive",
    "-p",
    "positives",
    multiple=True,
    metavar="EXAMPLES",
    help="Positive examples. Can be repeated.",
)
@option("--words", 'A few words about the topic: the same as -p words:"..."', many=True, metavar="WORDS")
@option("--query", 'The results of a search: the same as -p search:"..."', many=True, metavar="WORDS")
@option(
    "--negative -n negatives",
    "Negative examples. Default: pages of the collection that were not chosen.",
    metavar="EXAMPLES",
    many=True,
)
@option("--background", "Pages of the collection for calibrating the threshold.", click.IntRange(0), 2000)
@format_option(("text", "json"))
@collection_option
@output_option
def train(
    name: str,
    positives: tuple[str, ...],
    negatives: tuple[str, ...],
    collection: Place | None,
    output: Path | None,
    **flags: Any,
) -> None:
    """Learn a topic from examples.

    EXAMPLES are a folder, a file (of any format that Periplus reads), a URL of the collection, a pattern of them,
    search:"..." for the pages that a search finds, or words:"..." for a few words. Take negatives from where the
    positives come from: else their source is learned.
    With folders and files alone no collection is needed: an empty one is begun for the topic.

    \b
    periplus topic train films -p films/ -n 'https://example.org/news/*' -n search:"football OR weather"
    """
    from periplus.api.functions import open_collection
    from periplus_topics.api.topics import TopicOrder, train_topic

    positives += (*(f"words:{text}" for text in flags["words"]), *(f"search:{text}" for text in flags["query"]))
    if not positives:
        raise UsageError("no example of the topic: name a folder, a file, a URL or a pattern with -p, or some --words")
    with open_collection(_place(name, positives, negatives, collection)) as reader:
        learned = train_topic(reader, TopicOrder(name, positives, negatives, flags["background"]), Watch())
    _write(learned, flags["format"] == "json", output)


def _place(name: str, positives: tuple[str, ...], negatives: tuple[str, ...], collection: Place | None) -> Place:
    """The collection; one is begun where both kinds of examples are files alone and there is none."""
    from periplus_topics.api.topics import begin, names_files

    alone = bool(negatives) and all(map(names_files, (*positives, *negatives)))
    if alone and collection is None and not any(Path().glob(f"*{SUFFIX}")):
        collection = Path(f"{name}{SUFFIX}")
    place = collection_place(collection)
    if alone and isinstance(place, Path):
        begin(place, name)
    return place


@topic.command("list")
@option("--json as_json", "As JSON.", bool)
@collection_option
def list_command(collection: Place | None, as_json: bool) -> None:
    """List the topics of a collection."""
    from periplus_topics.api.topics import topic_names, topic_of
    from periplus_topics.present.stories import topic_values

    place = collection_place(collection)
    learned = [topic_of(place, name) for name in topic_names(place)]
    if as_json:
        click.echo(json.dumps([topic_values(topic_row) for topic_row in learned], ensure_ascii=False, indent=1))
        return
    for topic_row in learned:
        positives = sum(mark.positive for mark in topic_row.examples)
        click.echo(
            f"{topic_row.name:24} {positives:,} examples for, "
            f"{len(topic_row.examples) - positives:,} against, F {topic_row.report.scores.f:.3f}"
        )
    if not learned:
        click.echo("No topic yet: `periplus topic train` creates one.", err=True)


@topic.command()
@click.argument("name")
@format_option(("text", "json"))
@collection_option
@output_option
def show(name: str, collection: Place | None, format: str, output: Path | None) -> None:
    """Say how well a topic was learned, and by which words."""
    from periplus_topics.api.topics import topic_of

    _write(topic_of(collection_place(collection), name), format == "json", output)


@topic.command()
@click.argument("name")
@click.argument("targets", nargs=-1, metavar="[URL|FILE]...")
@option("-n --limit", "Pages in the list if no page is named; -1: all.", click.IntRange(-1), LISTED_PAGES)
@option("--topic-from", "Folder of another collection that has the topic.", FOLDER)
@option("--keep", "Store the judgement of all pages in the collection: `periplus serve` shows it.", bool)
@option("--json as_json", "A JSON object a line.", bool)
@collection_option
@output_option
def judge(name: str, targets: tuple[str, ...], collection: Place | None, output: Path | None, **flags: Any) -> None:
    """Say how likely pages belong to a topic, 0 to 1; from .5 on they do.

    Without URL or FILE: all pages of the collection, best first.

    \b
    periplus topic judge ships -c 'postgresql://me@db/crawls?collection=ships' --topic-from ships.periplus
    """
    from periplus_topics.api.topics import judged_pages, judged_target, store_classifications

    limit, as_json = flags["limit"], flags["as_json"]
    if targets and flags["keep"]:
        raise UsageError("--keep is for all pages of the collection: name none")
    if flags["keep"] and flags["topic_from"]:
        raise UsageError("--keep stores judgements beside the topic: leave out --topic-from")
    with opened_collection(collection) as reader:
        judged = (
            [judged_target(reader, name, target, flags["topic_from"]) for target in targets]
            if targets
            else judged_pages(reader, name, -1, Watch(), flags["topic_from"])
        )
        if flags["keep"]:
            store_classifications(reader.place, name, judged)
    judged = judged if targets or limit < 0 else judged[:limit]
    with open_output(output, exact=as_json) as out:
        for page in judged:
            text = (
                json.dumps(page._asdict(), ensure_ascii=False)
                if as_json
                else f"{page.probability:5.3f}  {visible(page.url)}  {visible(page.title)}"
            )
            out.write((text if as_json else text[: max(columns_of(out), len(page.url) + 7)].rstrip()) + "\n")


@topic.command()
@click.argument("name")
@place_option
def remove(name: str, place: Place) -> None:
    """Delete a topic with its examples and labels."""
    from periplus_topics.api.topics import remove_topic

    for file in remove_topic(place, name):
        click.echo(f"Deleted {file}")


@topic.command()
@click.argument("name")
@place_option
def learn(name: str, place: Place) -> None:
    """Retrain a topic with its examples and all labels given since, and print its quality."""
    from periplus.api.functions import open_collection
    from periplus_topics.api.topics import retrain

    with open_collection(place) as reader:
        Watch()("learning", 0, 0)
        _write(retrain(reader, name), False, None)


@topic.command()
@click.argument("name")
@place_option
@option("-n --limit", "End after this number of answers.", click.IntRange(1))
def label(name: str, place: Place, limit: int | None) -> None:
    """Say yes or no to the pages that teach a topic most; it learns from each answer at once.

    Two keys: y, it belongs to the topic; n, it does not. s skips, q ends. Every answer is kept as it is given. Without
    a terminal the keys are read from the input, as in: printf 'y\\nn\\nq\\n' | periplus topic label films
    """
    from periplus.api.functions import open_collection
    from periplus_topics.api.labelling import Labelling

    with open_collection(place) as reader:
        session = Labelling(reader, name, Watch())
        try:
            _ask(session, limit)
        except (KeyboardInterrupt, EOFError):
            click.echo("", err=True)
        if not session.answers:
            click.echo("Nothing was labelled.", err=True)
            return
        click.echo(f"Learning from {count_of(session.answers, 'answer')} ...", err=True)
        learned = session.finish(reader)
    f = _f_score(learned.report)
    click.echo(f"{count_of(session.answers, 'page')} labelled. {learned.name}: {f}, cross-validated.")


def _ask(session: Labelling, limit: int | None) -> None:
    while limit is None or session.answers < limit:
        page = session.current_page()
        if page is None:
            click.echo("All pages are labelled.", err=True)
            return
        click.echo("\n".join(_page_lines(page, session.answers + 1)))
        key = _key()
        if key == "q":
            return
        if key in _KEYS:
            session.answer(_KEYS[key])
            click.echo(click.style(f"   {_f_score(session.report)}", dim=True))
        else:
            session.skip()


def _f_score(report: TopicReport) -> str:
    low, high = report.f_interval
    return f"F {report.scores.f:.3f} (90 % interval {low:.2f} to {high:.2f})"


def _page_lines(page: PageJudgement, number: int) -> list[str]:
    title = click.style(visible(page.title or page.url), bold=True)
    return [
        "",
        f"{number}. {title}",
        click.style(f"   {visible(page.url)}   {page.probability:.2f}", dim=True),
        f"   {visible(page.beginning)}",
    ]


def _key() -> str:
    """y, n, s or q: a key of the terminal, or a line of the input; its end is q."""
    if not sys.stdin.isatty():
        for line in sys.stdin:
            if (word := line.strip().lower()) and word[0] in "ynsq":
                return word[0]
            if word:
                raise UsageError(f"{word!r} is not an answer: write y, n, s (skip) or q (end), one a line")
        return "q"
    click.echo("   [y]es  [n]o  [s]kip  [q]uit ", nl=False)
    while (key := click.getchar().lower()) not in ("y", "n", "s", "q"):
        pass
    click.echo(key)
    return key


def _write(learned: Topic, as_json: bool, output: Path | None) -> None:
    from periplus_topics.present.stories import topic_lines, topic_values

    write_output(output, topic_lines(learned), topic_values(learned) if as_json else None)


# `periplus topic crawl`: fetches pages about a topic from any site, starting from a few pages.


@topic.command(cls=LongCommand)
@click.argument("name")
@click.argument("seeds", nargs=-1, metavar="[URL]...")
@option(
    "-i --input lists",
    "File of seeds, one a line, # comments; - for stdin.",
    click.File("r", encoding="utf-8"),
    many=True,
)
@place_option
@option("--topic-from", "Folder of another collection that has the topic.", FOLDER)
@option("--order", "Order of the queue; waits: site by site, as published.", ORDERS, "weighed")
@option(
    "--least-harvest", "Stop when fewer of the last 500 pages are relevant. [0: never]", click.FloatRange(0, 1), 0.0
)
@option(
    "--known",
    "File of relevant pages known from elsewhere: prints how many of them were found.",
    click.File("r", encoding="utf-8"),
)
@option("--json as_json", "Write the result as JSON to stdout.", bool)
@option("-q --quiet", "No progress, only the result.", bool)
@verbose_option
@setting_options
def crawl(
    name: str,
    seeds: tuple[str, ...],
    lists: tuple[TextIO, ...],
    place: Place,
    known: TextIO | None,
    **flags: Any,
) -> None:
    """Fetch pages about a topic from any site, starting from a few pages.

    Each fetched page is judged, and the order of the queue is learned from that: by the pages that link to a URL, their
    words, its site, its directory. One request at a time to a host; robots.txt is obeyed. You can kill it at any time:
    the same command continues. `periplus topic judge NAME` shows the relevance of each page.

    \b
    periplus crawl https://example.org/ -o ships.periplus --max-pages 500
    periplus topic train ships -p words:"harbour ship sailor" -c ships.periplus
    periplus topic crawl ships https://example.org/ -c ships.periplus --max-pages 5000 --least-harvest 0.1
    """
    from periplus.cli.crawl import EXIT, EXIT_INTERRUPT, StopOnSignal, configure_logs, lines_of, notice
    from periplus.urls.canonical import start_urls
    from periplus_topics.api.topical_run import DEFAULTS, TopicalOrder, crawl_topic
    from periplus_topics.api.topics import judge_of

    starts = start_urls([*seeds, *(line for file in lists for line in lines_of(file))])
    if not starts:
        raise UsageError("no seed: name a few pages on the topic, or a file of them with -i")
    topic_place = flags["topic_from"] or place
    judge = judge_of(topic_place, name)
    settings = settings_of(flags, place if isinstance(place, Path) else Path(), DEFAULTS)
    configure_logs(flags["verbose"])
    notice(settings)
    stopping, display = StopOnSignal(), Display(quiet=flags["quiet"], is_drawn=False)

    def watch(standing: TopicalProgress) -> bool:
        indexing, is_stopped = standing.progress.indexing, stopping.asked
        if indexing is not None:
            display.show_indexing(indexing, stopped=is_stopped)
        else:
            _show(display, standing)
        return is_stopped

    listed = start_urls(lines_of(known)) if known else ()
    order = TopicalOrder(
        place,
        starts,
        name,
        judge.judge,
        settings,
        flags["order"],
        flags["least_harvest"],
        listed,
        topic_place=topic_place,
    )
    end = crawl_topic(order, watch)
    _tell(end, place, name, flags["topic_from"])
    if flags["as_json"]:
        click.echo(json.dumps(_as_json(end)))
    sys.exit(EXIT_INTERRUPT if stopping.asked else EXIT[end.end.state])


def _show(display: Display, standing: TopicalProgress) -> None:
    progress, counts, gathered = standing.progress, standing.progress.counts, standing.gathered
    harvest = f"{gathered.lately:.0%} of the last {len(gathered.last):,} relevant"

    def line() -> str:
        parts = [
            duration(progress.elapsed_s),
            f"{counts.fetched:,} fetched",
            f"{gathered.relevant:,} relevant",
            harvest,
        ]
        return " · ".join([*parts, f"{counts.waiting:,} waiting", size(counts.wire_bytes), *troubles(progress)])

    display.show(JobProgress(counts.fetched, counts.fetched + counts.waiting, harvest), line)


def _tell(end: TopicalEnd, place: Place, name: str, topic_from: Path | None) -> None:
    gathered, counts = end.gathered, end.end.counts
    from periplus.cli.crawl import say_end

    say_end(end.end)
    if not end.end.is_kept:
        say(f"Nothing was stored, so {place_word(place)} was not kept.")
        return
    say(f"{counts.fetched:,} fetched in this run ({size(counts.wire_bytes)}), {counts.waiting:,} waiting.")
    say(f"Of {gathered.pages:,} pages in all runs {gathered.relevant:,} are relevant ({gathered.harvest:.1%}), of the "
f"last {len(gathered.last):,} "
        f"{gathered.lately:.1%}.")  # fmt: skip
    if end.recall is not None:
        say(f"Known relevant pages found: {end.recall:.1%}.")
    if counts.waiting:
        say(f"To continue: {shlex.join(['periplus', *sys.argv[1:]])}")
    from periplus.api.homes import home_of

    knows = f" --topic-from {shlex.quote(str(topic_from))}" if topic_from else ""
    command = f"periplus topic judge {shlex.quote(name)} -c {place_word(place)}{knows}"
    say(f"Kept in {home_of(place)} — next: {command}")


def _as_json(end: TopicalEnd) -> dict[str, object]:
    gathered, counts = end.gathered, end.end.counts
    return {
        "state": end.end.state,
        "stop_reason": end.end.note,
        "fetched": counts.fetched,
        "waiting": counts.waiting,
        "pages": gathered.pages,
        "relevant": gathered.relevant,
        "harvest": round(gathered.harvest, 4),
        "recent_harvest": {"pages": len(gathered.last), "share": round(gathered.lately, 4)},
        "recall": end.recall,
        "elapsed_s": round(end.end.elapsed_s, 2),
    }
