"""`periplus mcp`: collections as tools of programs with a language model."""

from __future__ import annotations

from pathlib import Path

import click

from periplus.cli.options import FOLDER, option
from periplus.cli.progress import say
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.extras import extra_needed

ADDRESS = "127.0.0.1:8322"


@click.command()
@option(
    "-c --collection",
    "A collection's folder, or a folder that holds some; may be given several times. By default those here.",
    FOLDER,
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
@option("--name names", "With --http: a further host name under which it is reached.", str, metavar="HOST", many=True)
@option(
    "--embed-with",
    "A command that reads the words of a query and prints their vector, for collections with vectors: docs/vectors.md.",
    str,
    "",
    metavar="COMMAND",
)
def mcp(collection: tuple[Path, ...], http: str, token: str, names: tuple[str, ...], embed_with: str) -> None:
    """Offer collections to language models, as tools of the Model Context Protocol.

    Speaks on standard input and output with the program that starts it (an assistant, an editor, a notebook), or with
    --http with any that ask, which may then search, read pages, follow links, and look at the map, faults and
    differences between runs. Nothing is fetched or changed. docs/mcp.md says how programs are told of it, and what the
    tools answer.

    \b
    periplus mcp
    periplus mcp -c example.org.periplus -c ~/collections
    PERIPLUS_TOKEN=... periplus mcp --http 0.0.0.0:8322 --name tools.example.org
    """
    from periplus.mcp.answers import Served, collections_at

    with extra_needed():
        from periplus.mcp import server
    for path in collection:
        if not path.is_dir():
            raise NoCollection(f"{path} is no folder: name a collection, or a folder that holds collections")
    from periplus.api.embedding import embedder

    served = Served(lambda: collections_at(collection, Path()), embedder(embed_with) if embed_with else None)
    if not http:
        server.serve_stdio(served)
        return
    from periplus.mcp.http import PATH, serve_http
    from periplus.ui.safety import Locks, require_locks
    from periplus.ui.state import places
    from periplus.ui.users import Users

    host, port = host_and_port(http)
    locks = Locks(token, tuple(name.lower() for name in names), Users(places(collection).base))
    require_locks(host, locks)
    say(f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}  Ctrl-C ends it.")
    if not serve_http(server.server_of(served), locks, host, port):
        raise StoreError(f"nothing can listen on {host}, port {port}: another program has it, perhaps")


def host_and_port(text: str) -> tuple[str, int]:
    """`127.0.0.1:8322`, `[::1]:8322`, `:8322` or `8322` of this machine. Raises UsageError."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError(f"{text!r} is no address to listen on: write HOST:PORT, like {ADDRESS}")
    return host, int(port)
