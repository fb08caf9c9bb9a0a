"""Texts for measuring the detection of encodings: the project's own, and others if available, cut and re-encoded."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from testweb.tongues import ENCODINGS, TEXTS, written

LONG, SHORT = (200, 1000, 4000), (30, 60, 120)
MEASURED = ("cs", "sk", "hu", "pl", "ru", "de", "en")  # the languages of the aims, and Slovak
PIECES = 25  # per language and size of a set, drawn with a fixed seed
TOP_LEVEL = {"cs": "cz", "el": "gr", "uk": "ua", "en": "uk", "zh": "cn"}  # other languages: the domain is the code
# usual replacements for characters that an encoding lacks
_PLAIN = str.maketrans(
    {
        "–": "-",
        "—": "-",
        "„": '"',
        "“": '"',
        "”": '"',
        "‚": "'",
        "’": "'",
        "‘": "'",
        "…": "...",
        "\xa0": " ",
        "•": "*",
        "«": '"',
        "»": '"',
        "№": "N",
    }
)


class Sample(NamedTuple):
    """A text in an encoding."""

    language: str
    encoding: str
    size: int
    text: str
    body: bytes


def texts(more: Path | None = None) -> dict[str, dict[str, list[str]]]:
    """Set: language: texts. more: a folder of LANGUAGE/*.txt."""
    found: dict[str, dict[str, list[str]]] = {
        "made": {language: ["\n".join(parts)] for language, parts in TEXTS.items()}
    }
    if folder := os.environ.get("CORPORA"):
        corpora: dict[str, list[str]] = {}
        for name in ("daniel", "debdocs"):
            path = Path(folder) / f"extraction-{name}.jsonl.gz"
            for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()) if path.exists() else ():
                if len(row["gold"]) > 300:
                    corpora.setdefault(row["lang"], []).append(row["gold"])
        found |= {"corpora": corpora} if corpora else {}
    if more:
        found["more"] = {
            path.name: [one.read_text("utf-8") for one in sorted(path.glob("*.txt"))] for path in sorted(more.iterdir())
        }
    return found


def pieces(of_language: list[str], size: int, rng: random.Random) -> Iterator[str]:
    """Samples of that many characters; every third one inside a table drawn in ASCII."""
    for number in range(PIECES):
        text = rng.choice(of_language)
        start = rng.randrange(max(1, len(text) - size))
        yield in_table(text[start : start + size]) if number % 3 == 2 else text[start : start + size]


def in_table(text: str) -> str:
    """The words of the text in four columns."""
    words = text.split()
    line = "+" + ("-" * 14 + "+") * 4
    rows = (
        "| " + " | ".join(word.ljust(12) for word in words[start : start + 4]) + " |"
        for start in range(0, len(words), 4)
    )
    return "\n".join((line, *rows, line))


def encoded(text: str, encoding: str) -> tuple[str, bytes] | None:
    """(text with replacements, its bytes) in an encoding; None if the text cannot be encoded."""
    for form in (text, text.translate(_PLAIN)):
        try:
            return form, written(form, encoding)
        except ValueError:  # includes UnicodeEncodeError
            continue
    return None


def samples(
    of_set: dict[str, list[str]], sizes: tuple[int, ...], languages: tuple[str, ...] = MEASURED
) -> list[Sample]:
    """Every sample in every encoding of its language, UTF-8 included. Samples in pure ASCII only for English."""
    rng = random.Random(5)
    found = []
    for language in languages:
        for size in sizes if language in of_set else ():
            for piece in pieces(of_set[language], size, rng):
                for encoding in ("utf-8", *ENCODINGS[language]):
                    made = encoded(piece, encoding)
                    if made and (language == "en" or encoding == "utf-8" or not made[1].isascii()):
                        found.append(Sample(language, encoding, size, *made))
    return found
