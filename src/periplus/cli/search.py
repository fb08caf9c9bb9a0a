"""`periplus search` and `periplus index`: find pages by their words."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    FILE,
    collection_option,
    collections_option,
    columns_of,
    draws_boxes,
    format_option,
    open_output,
    opened_collection,
    option,
    output_option,
)
from periplus.cli.progress import Watch, say
from periplus.errors import UsageError
from periplus.model.search import OPERATORS
from periplus.model.web import Url
from periplus.present.tables import json_text
from periplus.present.wording import count_of, iso, number, utc, visible
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.model.search import Hit, SearchResult

WIDEST = 100  # columns: longer lines are hard to read
INDENT = "    "
Marks = tuple[tuple[int, int], ...]

QUERIES = "\b\n" + "\n".join(f"{operator.example:<21}{operator.sentence}" for operator in OPERATORS)


class SearchCommand(click.Command):
    """A command whose arguments are words. An unknown option is an error that explains how to search for a word with a
    leading -.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            how = "Write words that begin with - after --, or in quotes: periplus search 'port -storm'."
            raise click.UsageError(f"{error.format_message()} {how}", ctx) from None


@click.command(cls=SearchCommand, epilog=QUERIES)
@click.argument("query", nargs=-1, type=click.UNPROCESSED)
@collections_option
@option(
    "--like",
    "Also pages near a vector: a file, `-` for standard input, or the URL of a page.",
    str,
    "",
    metavar="VECTOR",
)
@option(
    "--embed-with",
    "Also pages near the words: a command that reads the words and prints their vector.",
    str,
    "",
    metavar="COMMAND",
)
@option("-n --limit", "Hits on a page.", click.IntRange(1, 1000), 10)
@option("--page", "Number of the page of hits.", click.IntRange(1, 1000), 1)
@option("--facets", "Count the results by site, type, language and year.", bool)
@format_option(("text", "json"))
@output_option
def search(query: tuple[str, ...], collection: Sequence[Place], format: str, output: Path | None, **flags: Any) -> None:
    """Find pages by their words, in one collection or in several as one.

    Diacritics may be left out: `prilis` finds `příliš`; pages that have a word as it was typed come first. Works while
    a crawl goes on; otherwise it first indexes what changed since the last search.

    \b
    periplus search harbour lights
    periplus search '"harbour lights" -storm site:example.org after:2024'
    periplus search --facets -f json 'přístav OR гавань'
    periplus search lights at sea --embed-with './embed.py'
    periplus search harbour -c north.periplus -c south.periplus -c ~/collections
    """
    words, nearness = " ".join(query), [flags.pop(name) for name in ("like", "embed_with")]
    if not words and not nearness[0]:
        raise UsageError("no query: give words, or --like")
    result, shown = _search(collection, words, nearness, flags)
    with open_output(output, exact=format != "text") as out:
        if format == "json":
            out.write(json_text(as_json(result)))
            return
        width = min(columns_of(out), WIDEST)
        for line in lines(result, (flags["page"] - 1) * flags["limit"] + 1, width, shown):
            plain = line if draws_boxes(out) else line.replace("…", "...").replace(" · ", ", ")
            click.echo(plain, file=out)


def _search(
    places: Sequence[Place], words: str, nearness: Sequence[Any], flags: Mapping[str, Any]
) -> tuple[SearchResult, Callable[[Hit], str]]:
    """The result, and what a hit's address is shown as."""
    from periplus.api.homes import collections_at

    named = collections_at(places, Path()) if places else {}
    if len(places) < 2 and len(named) < 2:
        with opened_collection(places[0] if places else None) as reader:
            result = reader.search(words, like=_like(words, *nearness), watch=_reporter(), **flags)
            as_path = reader.path_shortener()
        return result, lambda hit: as_path(hit.url)
    from periplus.api.functions import open_collection, search_collections

    @cache
    def shortener(name: str) -> Callable[[str], str]:
        with open_collection(named[name]) as reader:
            return reader.path_shortener()

    like = _like(words, *nearness)
    return search_collections(
        named if len(places) == 1 else places, words, like=like, watch=_reporter(), **flags
    ), lambda hit: shortener(hit.collection)(hit.url)


def _like(words: str, like: str, embed_with: str) -> list[float] | str | None:
    """Vector or page for a search of similar pages. Raises UsageError."""
    if not like and not embed_with:
        return None
    from periplus.features import service
    from periplus.retrieval.vectors import parse_vector

    embedding = service("embedding")
    if like and embed_with:
        raise UsageError("--like and --embed-with both give a query vector: use only one")
    if embed_with:
        return list(embedding.embedder(embed_with)(embedding.text_of(words)))
    if like == "-":
        return parse_vector(sys.stdin.read())
    return list(embedding.read_vector(like)) if Path(like).is_file() else like


def _rows_read(rows: int) -> None:
    if rows % 1_000_000 < 4_096:
        say(f"{number(rows)} vectors read")


@click.command()
@collection_option
@option("--anew", "Delete the index first and rebuild it from the stored pages.", bool)
@option("--vectors", "Load vectors of pages or chunks, replacing the present ones: docs/vectors.md.", FILE)
def index(collection: Place | None, anew: bool, vectors: Path | None) -> None:
    """Bring the search index up to date.

    `periplus search` updates it automatically; run this before the first search of a large collection that was imported
    or crawled with --no-index. For a database with index=PLACE in its address, the index and --vectors are stored there
    and shared by all machines.
    """
    from periplus.api.search_index import GARBAGE_LOOK

    gc.set_threshold(GARBAGE_LOOK)
    with opened_collection(collection) as reader:
        click.echo(reader.index(anew=anew, watch=_reporter()))
        if vectors is not None:
            note = reader.take_vectors(vectors, _rows_read)
            left = f"; {count_of(note.skipped, 'row')} without a page or a direction left out" if note.skipped else ""
            here = "" if note.pages_here == note.pages else f", {number(note.pages_here)} of them of the collection"
            click.echo(
                f"{count_of(note.rows, 'vector')} of {number(note.dimensions)} numbers, of "
                f"{count_of(note.pages, 'page')}{here}{left}"
            )


def _reporter() -> Callable[[int, int], bool]:
    """Says on stderr how far indexing came, now and then."""
    watch = Watch()

    def report(done: int, waiting: int) -> bool:
        watch("indexing", done, done + waiting)
        return False

    return report


def as_json(result: SearchResult) -> dict[str, object]:
    """The result for programs: marks are [start, end) in the text beside them, times ISO 8601."""
    hits = []
    for hit in result.hits:
        values = asdict(hit) | {"when": iso(hit.when)}
        hits.append(values)
    facets = {facet.name: dict(facet.values) for facet in result.facets}
    return {
        "query": result.query, "total": result.total, "took_ms": round(result.took_s * 1000, 2),
        "suggestion": result.suggestion,
        "notes": list(result.notes), "hits": hits, "facets": facets,
    }  # fmt: skip


def lines(
    result: SearchResult, first: int, width: int, shown: Callable[[Hit], str] = lambda hit: hit.url
) -> Iterator[str]:
    """The result for reading, its hits counted from first; colours fall away where the output is no terminal.

    shown: what a hit's address is shown as.
    """
    yield click.style(_summary(result, first), dim=True)
    for note in result.notes:
        yield click.style(f"Note: {visible(note)}", fg="yellow")
    if result.suggestion:
        yield f"Did you mean: {click.style(visible(result.suggestion), bold=True)}"
    for place, hit in enumerate(result.hits, first):
        yield ""
        yield from _hit_lines(replace(hit, url=Url(shown(hit))), place, width)
    if result.facets:
        yield ""
        yield from _facet_lines(result)


def _summary(result: SearchResult, first: int) -> str:
    if not result.total:
        return "No pages match."
    took = f"{result.took_s * 1000:.0f} ms"
    shown = f"{number(first)} to {number(first + len(result.hits) - 1)}" if result.hits else "none on this page"
    return f"{count_of(result.total, 'page')} · {shown} · {took}"


def _hit_lines(hit: Hit, place: int, width: int) -> Iterator[str]:
    title = hit.title or hit.url.rpartition("/")[2] or hit.url
    marks = hit.title_marks if hit.title else ()
    for at, line in enumerate(_wrap(title, marks, width - len(INDENT), "cyan")):
        yield (f"{place:>2}  " if not at else INDENT) + line
    yield INDENT + click.style(visible(hit.url), fg="green")
    if hit.snippet is not None:
        for line in _wrap(hit.snippet.text, hit.snippet.marks, width - len(INDENT), None):
            yield INDENT + line
    if hit.missing:
        yield INDENT + click.style(f"without: {', '.join(map(visible, hit.missing))}", dim=True)
    when = utc(hit.when, "%d %B %Y").lstrip("0")
    facts = [hit.collection, hit.media_type.removeprefix("text/"), hit.language, when]
    if hit.twins:
        facts.append(f"the same text at {count_of(len(hit.twins), 'other address', 'other addresses')}")
    if hit.near:
        facts.append(f"nearly the same at {count_of(len(hit.near), 'other address', 'other addresses')}")
    yield INDENT + click.style(" · ".join(part for part in facts if part), dim=True)


def _wrap(text: str, marks: Marks, width: int, colour: str | None) -> Iterator[str]:
    """The text in lines no wider than width, broken between words, what is marked bold."""
    start = 0
    while start < len(text):
        end = min(start + width, len(text))
        if end < len(text):
            gap = text.rfind(" ", start, end + 1)
            end = gap if gap > start else end
        yield _style(text, start, end, marks, colour)
        start = end + 1 if text[end : end + 1] == " " else end


def _style(text: str, start: int, end: int, marks: Marks, colour: str | None) -> str:
    pieces, place = [], start
    for mark, other in marks:
        low, high = max(mark, start), min(other, end)
        if low < high:
            pieces += [_paint(text[place:low], colour), _paint(text[low:high], colour, bold=True)]
            place = high
    return "".join([*pieces, _paint(text[place:end], colour)])


def _paint(text: str, colour: str | None, *, bold: bool = False) -> str:
    """Sign by sign, so that places stay: what is no sign becomes a blank."""
    clean = "".join(sign if sign.isprintable() else " " for sign in text)
    return click.style(clean, fg=colour, bold=bold or None) if clean and (colour or bold) else clean


def _facet_lines(result: SearchResult) -> Iterator[str]:
    for facet in result.facets:
        values = ", ".join(f"{visible(value) or 'unknown'} {number(pages)}" for value, pages in facet.values)
        yield f"{click.style(facet.name, bold=True):<8} {values}"
