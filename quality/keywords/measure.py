"""How well do our keywords agree with keywords of authors, editors and indexers?

Exact match of stems; macro F1 of the first 5 and the first 10, in hundredths, over all gold keywords, including those
absent from the text. The texts of a set are one collection. The shipped weights were trained on these sets (not on the
project's own texts); held-out scores are printed by `train.py --held-out` and listed in docs/keywords.md.

    CORPORA=... MANUALS=... python quality/keywords/measure.py [--all-methods] [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from figures import Figure, digest_of, write
from gold import Text, sets, stems
from scoring import f1

from periplus_topics.analyse.keyword_reading import NOTHING, count_texts, read
from periplus_topics.analyse.keywords import METHODS, keywords_of

AIMS = {  # two points above the best earlier score
    "SemEval2017": (22.3, 31.4), "Inspec": (23.4, 30.3), "Russian news": (23.0, 21.3),
    "help cs": (24.8, 22.5), "help hu": (23.2, 20.1), "help ru": (24.1, 21.8),
}  # fmt: skip
SPEED_AIM = 300.0  # texts a second
SHOWN = ("learnt",)
TEXTS = 200  # of a set


def measured(name: str, texts: Sequence[Text], methods: Sequence[str]) -> list[Figure]:
    """Prints a line for each method."""
    data = digest_of(text.text for text in texts)
    figures = []
    begun = time.process_time()
    readings = [read(text.text, text.language) for text in texts]
    counts = count_texts(readings)
    reading_s = time.process_time() - begun
    for method in methods:
        begun = time.process_time()
        lists = [keywords_of(reading, counts, 10, method) for reading in readings]
        speed = len(texts) / (time.process_time() - begun + reading_s)
        right = [
            [stems(keyword.text, text.language) in text.keywords for keyword in found]
            for text, found in zip(texts, lists, strict=True)
        ]
        scores = [
            100 * sum(f1(some, len(text.keywords), most) for some, text in zip(right, texts, strict=True)) / len(texts)
            for most in (5, 10)
        ]
        print(
            f"{name:14} {method:17} {len(texts):5} texts  {scores[0]:5.1f} {scores[1]:5.1f}  {speed:6.0f}/s", flush=True
        )
        if method == "learnt":
            aims = AIMS.get(name, (None, None))
            figures += [
                Figure(f"{name}, F1@{most}", score, aim, data)
                for most, score, aim in zip((5, 10), scores, aims, strict=True)
            ]
            figures.append(Figure(f"{name}, texts a second of one core", speed, SPEED_AIM))
    return figures


def alone(texts: Sequence[Text]) -> Figure:
    """Score on a single text without a collection."""
    lists = [keywords_of(read(text.text, text.language), NOTHING, 5) for text in texts]
    right = [
        [stems(keyword.text, text.language) in text.keywords for keyword in found]
        for text, found in zip(texts, lists, strict=True)
    ]
    score = 100 * sum(f1(some, len(text.keywords), 5) for some, text in zip(right, texts, strict=True)) / len(texts)
    return Figure("own, each alone, F1@5", score, None, digest_of(text.text for text in texts))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--all-methods", action="store_true", help="also the methods that learn nothing")
    options.add_argument("--json", type=Path, help="Write the figures to this file.")
    given = options.parse_args()
    every = sets(TEXTS)
    methods = list(METHODS) if given.all_methods else list(SHOWN)
    figures = [alone(every["own"])]
    for name, texts in every.items():
        figures += measured(name, texts[:TEXTS], methods)
    if given.json:
        write(given.json, figures)


if __name__ == "__main__":
    main()
