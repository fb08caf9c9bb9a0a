"""`periplus stories`: what was told on several sites, by whom first, and how it spread."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from periplus.cli.options import collection_option, columns_of, found_collection, opened, output_option
from periplus.cli.watching import Watch
from periplus.errors import UsageError


@click.command()
@collection_option
@click.option("-n", "--most", type=click.IntRange(-1), default=20, show_default=True, help="Stories that are listed; -1: all.")
@click.option("--story", type=click.IntRange(1), default=None, metavar="NUMBER", help="Show this one of the list, page by page.")
@click.option("--least-sites", type=click.IntRange(2), default=2, show_default=True, help="Sites that have to tell a story.")
@click.option("-f", "--format", type=click.Choice(("text", "json", "svg")), default="text", show_default=True, help="svg draws one story's cascade.")
@click.option("--keep", is_flag=True, help="Keep them in the collection: `periplus serve` shows them.")
@click.option("--json", "as_json", is_flag=True, help="The same as -f json.")
@output_option
def stories(collection: Path | None, format: str, output: Path | None, **flags: Any) -> None:
    """Find what several sites tell, and how it spread.

    Pages that share text (reprints, cut and edited) are one story, and so are pages that link to it from other sites; menus, blogrolls and
    weekly digests do not glue stories together. A story's pages stand in order: by their dates, then by the direction of links, then by when
    they were first seen.

    \b
    periplus stories                       the weightiest, most sites first
    periplus stories --story 3             one of them: who had it when, and from whom
    periplus stories --story 3 -f svg -o cascade.svg
    periplus stories --json -o stories.json
    """
    from periplus.api.results import keep_stories
    from periplus.api.stories import stories_of
    from periplus.present.cascade_svg import write_cascade_svg
    from periplus.present.story_text import cascade_lines, stories_lines, write_stories_json

    format, story = "json" if flags["as_json"] else format, flags["story"]
    if format == "svg" and story is None:
        raise UsageError("svg draws one story: say which, as in --story 1")
    if format == "json" and story is not None:
        raise UsageError("JSON holds all stories: leave --story out")
    folder = found_collection(collection)
    found = stories_of(folder, least_sites=flags["least_sites"], watch=partial(Watch(), "reading pages"))
    if flags["keep"]:
        keep_stories(folder, found)
    if story is not None and story > len(found.stories):
        raise UsageError(f"there is no story {story}: {len(found.stories)} were found")
    with opened(output, exact=format != "text") as out:
        if format == "json":
            write_stories_json(found, out)
        elif story is not None and format == "svg":
            write_cascade_svg(found.stories[story - 1], out)
        elif story is not None:
            out.writelines(line + "\n" for line in cascade_lines(found.stories[story - 1], columns_of(out)))
        else:
            out.writelines(line + "\n" for line in stories_lines(found, columns_of(out), flags["most"]))
