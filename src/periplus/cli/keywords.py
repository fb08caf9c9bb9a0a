"""`periplus keywords`: what pages, sites and answers are about, at a glance."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import collection_option, found_collection, opened, output_option
from periplus.errors import UsageError
from periplus.present.lines import visible
from periplus.present.wording import count_of, number

if TYPE_CHECKING:
    from periplus.model.keywords import KeywordList

METHODS = ("learnt", "tfidf", "kpminer", "textrank", "singlerank", "positionrank", "topicrank", "multipartiterank")
SAY_EVERY_S = 2.0


@click.command()
@click.argument("target", nargs=-1, metavar="[URL... | SITE]")
@click.option("--query", metavar="WORDS", help="The pages that `periplus search WORDS` finds, against all others.")
@click.option("-n", "--most", type=click.IntRange(1, 200), default=10, show_default=True, help="How many keywords.")
@click.option("--method", type=click.Choice(METHODS), default="learnt", show_default=True, help="docs/keywords.md says what each does and how well.")
@click.option("--json", "as_json", is_flag=True, help="For programs: scores, how often, on how many pages.")
@collection_option
@output_option
def keywords(target: tuple[str, ...], as_json: bool, collection: Path | None, output: Path | None, **wish: Any) -> None:
    """Say what a page, several pages, a site or the answers to a query are about.

    Words and phrases in the text's own spelling, each stem once. Without a target: the collection's only site, or all of it.

    \b
    periplus keywords https://example.org/news/storm      of one page
    periplus keywords URL URL URL                         of several as one: a story
    periplus keywords example.org                         of a site; beside other sites, what tells it from them
    periplus keywords --query 'harbour lights' -n 20      what goes with these words
    periplus keywords --method singlerank --json URL      as published, for programs
    """
    from periplus.api.collection import open_collection

    if target and wish["query"] is not None:
        raise UsageError("give either pages or a site, or --query")
    with open_collection(found_collection(collection)) as kept:
        found = kept.keywords(*target, watch=_reporter(), **wish)
    with opened(output, exact=as_json) as out:
        if as_json:
            values = asdict(found) | {"keywords": [keyword._asdict() for keyword in found.keywords]}
            out.write(json.dumps(values, ensure_ascii=False, indent=1) + "\n")
        else:
            for line in lines(found):
                click.echo(line, file=out)


def lines(found: KeywordList) -> list[str]:
    """One keyword a line, best first."""
    said = [visible(found.subject), count_of(found.pages, "page"), f"beside {count_of(found.compared_with, 'page')} of the collection"]
    heading = click.style(", ".join(said), dim=True)
    several = found.pages > 1
    width = max((len(keyword.text) for keyword in found.keywords), default=0)
    rows = [
        f"{click.style(visible(keyword.text).ljust(width), bold=True)}  {number(keyword.times)}x"
        + (f" on {count_of(keyword.pages, 'page')}" if several else "")
        for keyword in found.keywords
    ]
    return [heading, *(rows or ["No keyword: there is too little text."])]


def _reporter() -> Callable[[int], None]:
    """Says on stderr how far reading came, now and then."""
    said = time.monotonic()

    def report(pages: int) -> None:
        nonlocal said
        if time.monotonic() - said >= SAY_EVERY_S:
            said = time.monotonic()
            click.echo(f"keywords: {number(pages)} pages read", err=True)

    return report
