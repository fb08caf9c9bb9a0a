"""`periplus mcp`: collections as tools of programs with a language model; `periplus export` of texts for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.api.homes import place_at
from periplus.cli.export import FORMAT_SENTENCE
from periplus.cli.options import FILE, choose_parts, option, parts_options, place_option
from periplus.cli.progress import Watch, say
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.present.wording import count_of, number
from periplus.values import Place

if TYPE_CHECKING:
    from periplus_agents.texts import TextExport

ADDRESS = "127.0.0.1:8322"


@click.command()
@option(
    "-c --collection",
    "A collection's folder, a folder of collections, or postgresql://...; can be repeated. Default: the "
    "collections here.",
    str,
    metavar="PLACE",
    many=True,
)
@click.option(
    "--http",
    is_flag=False,
    flag_value=ADDRESS,
    default="",
    metavar="[HOST:PORT]",
    help=f"Serve over HTTP (streamable), at the path /mcp; by default at {ADDRESS}.",
)
@click.option(
    "--token",
    envvar="PERIPLUS_TOKEN",
    default="",
    help="With --http: what every request must bear. Better in the variable PERIPLUS_TOKEN.",
)
@option("--name names", "With --http: a further host name of the server.", str, metavar="HOST", many=True)
@option(
    "--embed-with",
    "A command that reads the words of a query and prints their vector, for collections with vectors: docs/vectors.md.",
    str,
    "",
    metavar="COMMAND",
)
@option("--allow-crawl", "Offer a tool that fetches pages, within the budget of the next flags.", bool)
@option("--crawl-pages", "Most pages fetched while the server runs.", click.IntRange(1), 100)
@option("--crawl-time", "Most seconds for them in total.", click.FloatRange(1), 600.0, metavar="SECONDS")
@option("--crawl-bytes", "Most bytes fetched in total.", click.IntRange(1), 100_000_000)
@option(
    "--crawl-host", "A host that it may fetch from, beside the collections' own; *.HOST: all below.", str, many=True
)
def mcp(collection: tuple[str, ...], http: str, token: str, names: tuple[str, ...], **flags: Any) -> None:
    """Offer collections to language models, as tools of the Model Context Protocol.

    Communicates on standard input and output with the program that starts it (an assistant, an editor, a notebook), or
    over HTTP with --http. Clients can search, read pages, follow links, and read the map, faults and differences
    between runs. Nothing is fetched or changed without --allow-crawl. docs/mcp.md describes the setup of clients and
    the answers of the tools.

    \b
    periplus mcp
    periplus mcp -c example.org.periplus -c ~/collections
    periplus mcp -c example.org.periplus --allow-crawl --crawl-pages 50
    PERIPLUS_TOKEN=... periplus mcp --http 0.0.0.0:8322 --name tools.example.org
    """
    from periplus.api.homes import collections_at
    from periplus.urls.scope import own_hosts
    from periplus_agents import server
    from periplus_agents.answers import ServedCollections
    from periplus_agents.crawling import CrawlBudget
    from periplus_agents.embedding import embedder

    places = [place_at(text) for text in collection]
    folders = [place for place in places if isinstance(place, Path)]
    for path in folders:
        if not path.is_dir():
            raise NoCollection(f"{path} is not a folder: name a collection, or a folder of collections")
    budget = None
    if flags["allow_crawl"]:
        own_hosts(flags["crawl_host"])
        budget = CrawlBudget(flags["crawl_pages"], flags["crawl_time"], flags["crawl_bytes"], flags["crawl_host"])
    embed = embedder(flags["embed_with"]) if flags["embed_with"] else None
    served = ServedCollections(lambda: collections_at(places, Path()), embed, budget)
    if not http:
        server.serve_stdio(served)
        return
    from periplus.ui.safety import Locks, require_locks
    from periplus.ui.state import places as places_of
    from periplus.ui.users import Users
    from periplus_agents.http import PATH, serve_http

    host, port = host_and_port(http)
    locks = Locks(token, tuple(name.lower() for name in names), Users(places_of(folders).base), host)
    require_locks(locks)
    say(f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}  Ctrl-C ends it.")
    if not serve_http(server.server_of(served), locks, port):
        raise StoreError(f"nothing can listen on {host}, port {port}: another program has it, perhaps")


def host_and_port(text: str) -> tuple[str, int]:
    """`127.0.0.1:8322`, `[::1]:8322`, `:8322` or `8322` of this machine. Raises UsageError."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError(f"{text!r} is not an address to listen on: write HOST:PORT, like {ADDRESS}")
    return host, int(port)


@click.command()
@click.argument("target", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False))
@parts_options
@place_option
def markdown(place: Place, target: Path, parts: str, whole: bool) -> None:
    """The pages as a FOLDER of Markdown files, their facts in front matter.

    Of pages with the same text only one is written. File names are valid on every file system.
    """
    from periplus_agents.texts import export_markdown

    watch = Watch()
    done = export_markdown(
        place,
        target,
        parts=choose_parts(parts, whole),
        watch=lambda pages, count: watch("Writing pages", pages, count),
    )
    _say_texts(target, done)


@click.command()
@click.argument("target", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False))
@place_option
def llms(place: Place, target: Path) -> None:
    """llms.txt and llms-full.txt of the collection, in a FOLDER.

    The first lists the pages by section, the second holds their contents as Markdown (llmstxt.org).
    """
    from periplus_agents.texts import export_llms

    watch = Watch()
    _say_texts(target, export_llms(place, target, watch=lambda pages, count: watch("Writing pages", pages, count)))


@click.command()
@option("-o --output", "By default the collection's name with .chunks.jsonl, here.", FILE)
@option("-f --format", FORMAT_SENTENCE.replace("else csv", "else jsonl"), str, "", metavar="FORMAT")
@option("--words", "Most words in a chunk.", click.IntRange(20, 100_000), 300)
@parts_options
@place_option
def chunks(place: Place, output: Path | None, format: str, words: int, parts: str, whole: bool) -> None:
    """The pages in chunks by their headings, for indexes of vectors and language models.

    A chunk belongs to one section; a sentence, code block, list item or row is split only if it alone is too long. Each
    chunk has an id, its page's URL and title, the headings above it and its position in the page.

    \b
    periplus export chunks -o chunks.parquet --words 200
    """
    from periplus.api.homes import name_of
    from periplus_agents.texts import export_chunks

    watch = Watch()
    name = name_of(place).removesuffix(".periplus")
    path = output or Path(f"{name}.chunks.{format or 'jsonl'}")
    done = export_chunks(
        place,
        path,
        format=format,
        words=words,
        parts=choose_parts(parts, whole),
        watch=lambda pages, count: watch("Cutting pages", pages, count),
    )
    _say_texts(path, done)


def _say_texts(target: Path, done: TextExport) -> None:
    counts = f"{count_of(done.pages, 'page')}, {number(done.size_bytes)} bytes"
    counts += f"; {count_of(done.same, 'page')} with the text of another left out" if done.same else ""
    click.echo(f"Written to {target}: {counts}", err=True)
