"""`periplus mcp`: collections as tools of programs with a language model."""

from __future__ import annotations

from pathlib import Path

import click

from periplus.cli.options import FOLDER, option
from periplus.errors import NoCollection
from periplus.extras import extra_needed


@click.command()
@option(
    "-c --collection",
    "A collection's folder, or a folder that holds some; may be given several times. By default those here.",
    FOLDER,
    many=True,
)
def mcp(collection: tuple[Path, ...]) -> None:
    """Offer collections to language models, as tools of the Model Context Protocol.

    Speaks on standard input and output with the program that starts it (an assistant, an editor, a notebook), which
    may then search, read pages, follow links, and look at the map, faults and differences between runs. Nothing is
    fetched or changed. docs/mcp.md says how programs are told of it, and what the tools answer.

    \b
    periplus mcp
    periplus mcp -c example.org.periplus -c ~/collections
    """
    from periplus.mcp.tools import Served, collections_at

    with extra_needed():
        from periplus.mcp import server
    for path in collection:
        if not path.is_dir():
            raise NoCollection(f"{path} is no folder: name a collection, or a folder that holds collections")
    server.serve_stdio(Served(lambda: collections_at(collection, Path())))
