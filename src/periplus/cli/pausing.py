"""`periplus pause` and `periplus resume`: a crawl that goes on asks for nothing more, until it may again."""

from __future__ import annotations

import time
from pathlib import Path

import click

from periplus.cli.options import collection_option, found_place, store_option
from periplus.cli.progress import say
from periplus.errors import UsageError


@click.command()
@collection_option
@store_option
def pause(collection: Path | None, store: str) -> None:
    """Have a crawl that goes on ask for nothing more, until `periplus resume`.

    It may be the crawl of another terminal, of a job or of other machines; a refresh, a check, a survey or a topical crawl too. Within some
    two seconds no request starts; what is under way is stored. Its workers wait and may be killed meanwhile, and hosts keep their delays.

    The pause is over with `periplus resume`, with the end of the crawl (Ctrl-C and Stop end it at once, as ever), and when another crawl,
    refresh or check of the collection begins. It counts for nothing against --max-time, but against a survey's.

    \b
    periplus pause
    periplus pause -c example.org.periplus
    periplus pause --store postgresql://me@db/crawls?collection=press
    """
    from periplus.api.homes import home_of

    home = home_of(found_place(collection, store))
    if not home.pause(time.time()):
        raise UsageError(f"no crawl goes on in {home}: there is nothing to pause")
    say(f"Paused: {home} asks for nothing more. `periplus resume` has it go on.")


@click.command()
@collection_option
@store_option
def resume(collection: Path | None, store: str) -> None:
    """Have a paused crawl go on, within a second.

    One that was stopped or killed is no paused one: `periplus crawl` goes on with that.

    \b
    periplus resume
    periplus resume -c example.org.periplus
    """
    from periplus.api.homes import home_of

    home = home_of(found_place(collection, store))
    if not home.resume(time.time()):
        raise UsageError(f"no crawl is paused in {home}. One that was stopped or killed goes on with the `periplus crawl` that began it.")
    say(f"Resumed: {home} goes on.")
