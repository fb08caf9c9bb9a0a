"""`periplus segments`: do the WARC segments of a collection on PostgreSQL hold what its pages point at?"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from periplus.cli.options import opened, output_option
from periplus.cli.watching import Watch
from periplus.present.wording import count_of, number

if TYPE_CHECKING:
    from periplus.model.archive import SegmentState


@click.command()
@click.argument("address")
@click.option("--delete", is_flag=True, help="Delete segments that no page points into; refused while workers are at work.")
@click.option("-f", "--format", type=click.Choice(("text", "json")), default="text", show_default=True)
@output_option
def segments(address: str, delete: bool, format: str, output: Path | None) -> None:
    """Read the segments of the collection at ADDRESS, whole, and say what is wrong with them.

    An orphan is a record that no page points at: what a worker had written and not yet entered when it was killed. It costs room and
    nothing else; so does a torn tail. A page whose bytes are lost is an error, and the exit code is 1.

    \b
    periplus segments postgresql://me@db/crawls?collection=press
    periplus segments postgresql://me@db/crawls?collection=press --delete
    """
    from periplus.api.segments import check_segments

    watch = Watch()
    found = check_segments(address, delete=delete, watch=lambda name: watch(f"Read {name}", 0, 0))
    lost = sum(state.lost for state in found)
    with opened(output, exact=format == "json") as out:
        if format == "json":
            out.write(json.dumps([asdict(state) | {"deleted": delete and state.is_unused} for state in found], indent=1) + "\n")
        else:
            for state in found:
                out.write(f"{state.name}  {_told(state)}{'  deleted' if delete and state.is_unused else ''}\n")
    total = f"{count_of(len(found), 'segment')}, {number(sum(state.size_bytes for state in found))} bytes"
    orphans = f"{count_of(sum(state.orphans for state in found), 'orphan')} of {number(sum(state.orphan_bytes for state in found))} bytes"
    click.echo(f"{total}; {orphans}; {count_of(lost, 'page')} without bytes", err=True)
    sys.exit(1 if lost else 0)


def _told(state: SegmentState) -> str:
    parts = [f"{number(state.size_bytes)} bytes", count_of(state.records, "record")]
    if state.orphans:
        parts.append(f"{count_of(state.orphans, 'orphan')} of {number(state.orphan_bytes)} bytes")
    if state.torn_bytes:
        parts.append(f"torn tail of {number(state.torn_bytes)} bytes")
    if state.lost:
        parts.append(f"LOST: the bytes of {count_of(state.lost, 'page')}")
    return ", ".join(parts)
