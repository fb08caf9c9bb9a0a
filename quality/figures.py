"""What does a measurement hand to the runner? Figures, each with its aim and the data that it was taken on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Figure(NamedTuple):
    """One measured number."""

    name: str  # within its folder: "cs, 200 characters and more"
    score: float
    aim: float | None = None  # None: there is none, it stands beside the others
    # digest of what it was measured on; empty: it depends on the machine or the hour, so it has no floor
    data: str = ""
    higher_is_better: bool = True
    by: str = ""  # a peer's or a plainer method's name: its score stands beside ours of the same name; it has no floor


def digest_of(texts: Iterable[str | bytes]) -> str:
    """Sixteen hexadecimal digits for the data, in its order."""
    state = hashlib.md5(usedforsecurity=False)
    for text in texts:
        state.update(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        state.update(b"\0")
    return state.hexdigest()[:16]


def write(path: Path, figures: Iterable[Figure]) -> None:
    """For the runner: what `--json FILE` of a measure.py writes."""
    path.write_text(
        json.dumps([figure._asdict() for figure in figures], indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read(path: Path) -> list[Figure]:
    """What was written."""
    return [Figure(**row) for row in json.loads(path.read_text("utf-8"))]
