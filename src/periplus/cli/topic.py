"""`periplus topic`: learn a topic from examples, judge pages by it, label the pages that it is least sure of."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    SUFFIX,
    collection_folder,
    collection_option,
    columns_of,
    format_option,
    json_option,
    opened,
    option,
    output_option,
)
from periplus.cli.progress import Watch
from periplus.errors import UsageError
from periplus.present.wording import count_of, visible

if TYPE_CHECKING:
    from periplus.api.labelling import Labelling
    from periplus.model.topic import Judged, Topic

METHODS = ("calibrated", "svm", "online")  # of `model.topic.Method`

from periplus.cli import topic_crawl  # noqa: E402  it loads NumPy, which reads these variables

JUDGED = 20  # pages that are listed
_KEYS = {"y": True, "n": False}


@click.group()
def topic() -> None:
    """Tell the pages of a topic from all others, by examples.

    \b
    periplus topic train films --positive films/ --negative other/     learn from two folders of texts or pages
    periplus topic train ships --positive words:"harbour ship sailor"  begin with a few words; all other pages are the rest
    periplus topic label ships                                         say yes or no to the pages that it is least sure of
    periplus topic judge ships                                         the pages that belong to it, best first
    periplus topic crawl ships https://example.org/                    fetch more of them, wherever they are
    """  # noqa: E501


@topic.command()
@click.argument("name")
@click.option(
    "--positive",
    "-p",
    "positives",
    multiple=True,
    required=True,
    metavar="EXAMPLES",
    help="What the topic is. Give it as often as you like.",
)
@option(
    "--negative -n negatives",
    "What it is not. None: pages of the collection that nobody chose.",
    metavar="EXAMPLES",
    many=True,
)
@option("--method", "svm: linear machine over tf-idf; online: hashed words.", METHODS, "calibrated")
@option("--background", "Pages of the collection that the threshold is seen on.", click.IntRange(0), 2000)
@format_option(("text", "json"))
@json_option
@collection_option
@output_option
def train(
    name: str,
    positives: tuple[str, ...],
    negatives: tuple[str, ...],
    collection: Path | None,
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
    from periplus.api.collection import open_collection
    from periplus.api.topics import TopicOrder, train_topic
    from periplus.model.topic import Method

    with open_collection(_place(name, positives, negatives, collection)) as reader:
        learned = train_topic(
            reader, TopicOrder(name, positives, negatives, Method(flags["method"]), flags["background"]), Watch()
        )
    _write(learned, flags["format"] == "json", output)


def _place(name: str, positives: tuple[str, ...], negatives: tuple[str, ...], collection: Path | None) -> Path:
    """The collection; one is begun where both kinds of examples are files alone and there is none."""
    from periplus.api.topics import begin, names_files

    alone = bool(negatives) and all(map(names_files, (*positives, *negatives)))
    if alone and collection is None and not any(Path().glob(f"*{SUFFIX}")):
        collection = Path(f"{name}{SUFFIX}")
    folder = collection_folder(collection)
    if alone:
        begin(folder, name)
    return folder


@topic.command("list")
@option("--json as_json", "As JSON.", bool)
@collection_option
def list_command(collection: Path | None, as_json: bool) -> None:
    """List the topics of a collection."""
    from periplus.api.topics import topic_names, topic_of
    from periplus.present.text import topic_values

    folder = collection_folder(collection)
    learned = [topic_of(folder, name) for name in topic_names(folder)]
    if as_json:
        click.echo(json.dumps([topic_values(one) for one in learned], ensure_ascii=False, indent=1))
        return
    for one in learned:
        positives = sum(mark.positive for mark in one.examples)
        scores = f", F {one.report.scores.f:.3f}" if one.report else ""
        click.echo(
            f"{one.name:24} {one.method.value:10} {positives:,} examples for, "
            f"{len(one.examples) - positives:,} against{scores}"
        )
    if not learned:
        click.echo("No topic yet: `periplus topic train` learns one.", err=True)


@topic.command()
@click.argument("name")
@format_option(("text", "json"))
@json_option
@collection_option
@output_option
def show(name: str, collection: Path | None, format: str, output: Path | None) -> None:
    """Say how well a topic was learned, and by which words."""
    from periplus.api.topics import topic_of

    _write(topic_of(collection_folder(collection), name), format == "json", output)


@topic.command()
@click.argument("name")
@click.argument("targets", nargs=-1, metavar="[URL|FILE]...")
@option("-n --limit", "Pages that are listed where none is named; -1: all.", click.IntRange(-1), JUDGED)
@option("--keep", "Keep what is said of all pages in the collection: `periplus serve` shows it.", bool)
@option("--json as_json", "A JSON object a line.", bool)
@collection_option
@output_option
def judge(name: str, targets: tuple[str, ...], collection: Path | None, output: Path | None, **flags: Any) -> None:
    """Say how likely pages belong to a topic, 0 to 1; from .5 on they do.

    Without URL or FILE: all pages of the collection, best first.
    """
    from periplus.api.collection import open_collection
    from periplus.api.results import store_judged
    from periplus.api.topics import judged_pages, judged_target

    limit, as_json = flags["limit"], flags["as_json"]
    if targets and flags["keep"]:
        raise UsageError("--keep is for all pages of the collection: name none")
    with open_collection(collection_folder(collection)) as reader:
        judged = (
            [judged_target(reader, name, target) for target in targets]
            if targets
            else judged_pages(reader, name, -1, Watch())
        )
        if flags["keep"]:
            store_judged(reader.folder, name, judged)
    judged = judged if targets or limit < 0 else judged[:limit]
    with opened(output, exact=as_json) as out:
        for one in judged:
            text = (
                json.dumps(one._asdict(), ensure_ascii=False)
                if as_json
                else f"{one.probability:5.3f}  {visible(one.url)}  {visible(one.title)}"
            )
            out.write((text if as_json else text[: max(columns_of(out), len(one.url) + 7)].rstrip()) + "\n")


@topic.command()
@click.argument("name")
@collection_option
def remove(name: str, collection: Path | None) -> None:
    """Delete a topic with its examples and labels."""
    from periplus.api.topics import remove_topic

    for file in remove_topic(collection_folder(collection), name):
        click.echo(f"Deleted {file}")


@topic.command()
@click.argument("name")
@collection_option
def learn(name: str, collection: Path | None) -> None:
    """Learn a topic anew from its examples and all labels given since, and say how well."""
    from periplus.api.collection import open_collection
    from periplus.api.topics import relearned

    with open_collection(collection_folder(collection)) as reader:
        Watch()("learning", 0, 0)
        _write(relearned(reader, name), False, None)


@topic.command()
@click.argument("name")
@collection_option
@option("-n --limit", "End after so many answers.", click.IntRange(1))
def label(name: str, collection: Path | None, limit: int | None) -> None:
    """Say yes or no to the pages that a topic is least sure of; it learns from each answer at once.

    Two keys: y, it belongs to the topic; n, it does not. s skips, q ends. Every answer is kept as it is given. Without
    a terminal the keys are read from the input, as in: printf 'y\\nn\\nq\\n' | periplus topic label films
    """
    from periplus.api.collection import open_collection
    from periplus.api.labelling import Labelling

    with open_collection(collection_folder(collection)) as reader:
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
    if learned.report is not None:
        click.echo(
            f"{count_of(session.answers, 'page')} labelled. {learned.name}: F "
            f"{learned.report.scores.f:.3f}, cross-validated."
        )


def _ask(session: Labelling, limit: int | None) -> None:
    while limit is None or session.answers < limit:
        page = session.least_sure()
        if page is None:
            click.echo("No page is left to be labelled.", err=True)
            return
        click.echo("\n".join(_page_lines(page, session.answers + 1)))
        key = _key()
        if key == "q":
            return
        if key in _KEYS:
            session.answer(_KEYS[key])
        else:
            session.skip()


def _page_lines(page: Judged, number: int) -> list[str]:
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
                raise UsageError(f"{word!r} is no answer: write y, n, s (skip) or q (end), one a line")
        return "q"
    click.echo("   [y]es  [n]o  [s]kip  [q]uit ", nl=False)
    while (key := click.getchar().lower()) not in ("y", "n", "s", "q"):
        pass
    click.echo(key)
    return key


def _write(learned: Topic, as_json: bool, output: Path | None) -> None:
    from periplus.present.text import topic_lines, topic_values

    with opened(output, exact=as_json) as out:
        if as_json:
            out.write(json.dumps(topic_values(learned), ensure_ascii=False, indent=1) + "\n")
            return
        out.writelines(line + "\n" for line in topic_lines(learned))


topic.add_command(topic_crawl.crawl)
