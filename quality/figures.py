"""Figures that a measurement gives to the runner, each with its aim and a digest of its data."""

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
    aim: float | None = None  # None: for information only
    # digest of the data; empty: depends on the machine or the time, so the figure has no floor
    data: str = ""
    higher_is_better: bool = True
    by: str = ""  # a peer or a simpler method: listed beside our figure of the same name, without a floor


def digest_of(texts: Iterable[str | bytes]) -> str:
    """Sixteen hexadecimal digits that depend on the texts and their order."""
    state = hashlib.md5(usedforsecurity=False)
    for text in texts:
        state.update(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        state.update(b"\0")
    return state.hexdigest()[:16]


def write(path: Path, figures: Iterable[Figure]) -> None:
    """Writes the output of `--json FILE` of a measure.py."""
    path.write_text(
        json.dumps([figure._asdict() for figure in figures], indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read(path: Path) -> list[Figure]:
    """Reads what `write` wrote."""
    return [Figure(**row) for row in json.loads(path.read_text("utf-8"))]
