"""`periplus move`: a collection from a folder into a database, or back."""

from __future__ import annotations

import click

from periplus.cli.watching import Watch
from periplus.present.wording import number


@click.command()
@click.argument("source")
@click.argument("target")
def move(source: str, target: str) -> None:
    """Move a collection from SOURCE to TARGET: a folder, and a collection on PostgreSQL. A crawl that was stopped goes on there.

    All of it enters in one transaction, is read back and compared; then it is there, or nothing is. SOURCE stays as it was, to be read,
    with a note where it went; crawls there are refused. With segments=PLACE in the address the bytes of pages become WARC files there.
    Moved back into a folder, a collection can be searched and analysed.

    \b
    periplus move example.org.periplus 'postgresql://me@db/crawls?collection=example&segments=s3://bucket/example'
    periplus crawl --store 'postgresql://me@db/crawls?collection=example' https://example.org
    periplus move 'postgresql://me@db/crawls?collection=example' example.org.2.periplus
    """
    from periplus.api.moving import move as moved

    watch = Watch()
    done = moved(source, target, lambda what, rows: watch(what, rows, 0))
    told = ", ".join(f"{name} {number(rows)}" for name, rows in done.rows.items() if name in ("url", "page", "link", "visit", "queue", "body"))
    click.echo(f"Moved to {done.place}: {told}. Every table was compared.", err=True)
