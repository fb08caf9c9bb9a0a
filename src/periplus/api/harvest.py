"""How much of what a topical crawl fetched was on its topic, from its first page to its last? A curve that is kept with the topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from periplus.api.topics import topic_file


class HarvestPoint(NamedTuple):
    """A topical crawl at one moment."""

    when: float  # seconds since the epoch
    pages: int  # judged, in all runs
    relevant: int  # of them
    lately: float  # share of the last pages


def harvest_file(folder: Path, topic: str) -> Path:
    """Raises UsageError for a name that cannot be a topic's."""
    return topic_file(folder, topic).with_suffix(".harvest.jsonl")


def is_due(pages: int, noted: int) -> bool:
    """Whether a crawl of so many pages is worth a point, when the last was at `noted`: 600 points for 100,000 pages draw a smooth line."""
    return pages >= noted + max(10, noted // 100)


def note_harvest(folder: Path, topic: str, point: HarvestPoint) -> None:
    """Adds a point; a crawl on a full disk goes on without."""
    file = harvest_file(folder, topic)
    try:
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="ascii") as lines:
            lines.write(json.dumps(point._asdict()) + "\n")
    except OSError:
        return


def harvest_of(folder: Path, topic: str) -> list[HarvestPoint]:
    """In order; empty where no crawl went. Of two runs that judged the same pages the later one counts."""
    found: list[HarvestPoint] = []
    try:
        lines = harvest_file(folder, topic).read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    for line in lines:
        try:
            point = HarvestPoint(**json.loads(line))
        except (ValueError, TypeError):  # a kill came between
            continue
        while found and found[-1].pages >= point.pages:
            found.pop()
        found.append(point)
    return found
