"""Known-item search: is the page from which the query was taken the first hit?

Queries of each manual: titles, link texts and sentences that are unique to one page, searched for verbatim (sentences
also in quotes). Sampled with a fixed seed. Then the questions of `questions.py`.
`first`: share of queries whose page comes first; `MRR`: mean of 1 / place over the first ten. Also how long
queries take, and how fast pages are indexed.

    python quality/search/measure.py [--root FOLDER]... [--json FILE]

Always on a small generated set; then on the manuals found below each root, below MANUALS and below `/`.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from figures import Figure, digest_of, write
from manuals import ASKED_ONLY, MANUALS, Manual, index_of, manuals
from own_pages import own_manuals
from questions import measured as answers_to_questions

from periplus.model.page import BlockKind
from periplus.model.search import PageToIndex
from periplus.model.web import UrlId
from periplus.retrieval.asking import MatchWindow, Searcher
from periplus.retrieval.index import names, whole_name
from periplus.settings import Searching

SEED = 7
AIMS = {"title": 0.9}
MOST_QUERIES = 100  # of a kind and manual
SENTENCE_WORDS = (6, 14)
_SENTENCE = re.compile(r"[^.!?。]+[.!?。]")
_OPERATORS = re.compile(r'["“”„«»()|*]|(?<!\S)[-+]|\b(?:AND|OR|NOT)\b|(?<=\w):')


class Item(NamedTuple):
    """A query, and the page that it was taken from."""

    kind: str
    query: str
    page: UrlId


class Score(NamedTuple):
    queries: int
    first: float
    mrr: float


class Known(NamedTuple):
    """Number of pages with the same title, text, link text or sentence: all manuals are in one index, and
    translations leave much text unchanged.
    """

    titles: Counter[str]
    texts: Counter[bytes]
    anchors: Counter[str]
    sentences: Counter[str]


def known(kept: Sequence[Manual]) -> Known:
    pages = [page for manual in kept for page in manual.pages]
    return Known(
        Counter(name for page in pages for name in names(page, page.blocks.texts().__getitem__)),
        Counter(page.folded for page in pages),
        Counter(whole_name(anchor) for page in pages for anchor in page.anchors),
        Counter(name for page in pages for name in map(whole_name, _sentences_of(page))),
    )


def items(manual: Manual, all_of: Known, rng: random.Random) -> list[Item]:
    """The queries of one manual."""
    return [*_titles(manual, all_of, rng), *_anchors(manual, all_of, rng), *_sentences(manual, all_of, rng)]


def _sampled(kind: str, found: Sequence[tuple[str, UrlId]], rng: random.Random) -> list[Item]:
    chosen = rng.sample(sorted(found), min(MOST_QUERIES, len(found)))
    return [Item(kind, query, page) for query, page in chosen]


def _plain(text: str) -> str:
    """The words without query operators."""
    return " ".join(_OPERATORS.sub(" ", text).split())


def _titles(manual: Manual, all_of: Known, rng: random.Random) -> list[Item]:
    unique = [
        page for page in manual.pages if all_of.titles[whole_name(page.title)] == 1 and all_of.texts[page.folded] == 1
    ]
    return _sampled("title", [(query, page.url_id) for page in unique if (query := _plain(page.title))], rng)


def _anchors(manual: Manual, all_of: Known, rng: random.Random) -> list[Item]:
    found = []
    for page in manual.pages:
        for anchor in page.anchors:
            name = whole_name(anchor)
            if all_of.anchors[name] == 1 and all_of.titles[name] == 0 and len(name.split()) >= 2:
                found.append((_plain(anchor), page.url_id))
    return _sampled("anchor", found, rng)


def _sentences_of(page: PageToIndex) -> set[str]:
    low, high = SENTENCE_WORDS
    found = (
        match.strip(" .!?。")
        for block in page.blocks
        if block.kind is BlockKind.PARAGRAPH
        for match in _SENTENCE.findall(block.text)
    )
    return {
        sentence
        for sentence in found
        if low <= len(sentence.split()) <= high or (" " not in sentence and 12 <= len(sentence) <= 40)
    }


def _sentences(manual: Manual, all_of: Known, rng: random.Random) -> list[Item]:
    unique = [
        (_plain(sentence), page.url_id)
        for page in manual.pages
        for sentence in sorted(_sentences_of(page))
        if all_of.sentences[whole_name(sentence)] == 1
    ]
    chosen = _sampled("sentence", unique, rng)
    return [*chosen, *(Item("quoted", f'"{item.query}"', item.page) for item in chosen)]


def score(searcher: Searcher, asked: Sequence[Item], took: list[float]) -> dict[str, Score]:
    """Scores by kind of query. took: the seconds of each query are appended."""
    places: dict[str, list[int]] = {}
    for item in asked:
        begun = time.perf_counter()
        found = searcher.search(item.query, MatchWindow(10), lambda ids: [0.0] * len(ids))
        took.append(time.perf_counter() - begun)
        ids = [(match.url_id, *match.twins) for match in found.matches]
        places.setdefault(item.kind, []).append(next((at for at, group in enumerate(ids, 1) if item.page in group), 0))
    return {
        kind: Score(
            len(some),
            sum(place == 1 for place in some) / len(some),
            sum(1 / place for place in some if place) / len(some),
        )
        for kind, some in places.items()
    }


def measured(set_name: str, kept: Sequence[Manual]) -> list[Figure]:
    """Prints a table and gives the figures: one index over all manuals, as a collection of several sites would have."""
    pages = [page for manual in kept for page in manual.pages]
    all_of = known(kept)
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        speed = index_of(Path(folder), pages)
        searcher = Searcher(Path(folder), Searching())
        scores = {manual.name: score(searcher, items(manual, all_of, random.Random(SEED)), took) for manual in kept}
    for name, some in scores.items():
        for kind, value in some.items():
            print(f"{name:15} {kind:9} {value.queries:4} queries   first {value.first:.3f}   MRR {value.mrr:.3f}")
    query_ms = statistics.median(took) * 1000
    print(f"{set_name}: {len(pages)} pages, {speed:.0f} indexed a second, median query {query_ms:.3f} ms")
    data = digest_of(str(page.url) + page.title + page.folded.hex() for page in pages)
    return [
        *(
            Figure(f"{set_name}, {kind} first", share, AIMS.get(kind), data)
            for kind, share in _pooled(scores, "first").items()
        ),
        *(Figure(f"{set_name}, {kind} MRR", share, None, data) for kind, share in _pooled(scores, "mrr").items()),
        Figure(f"{set_name}, median query (ms)", query_ms, 1.0, higher_is_better=False),
        Figure(f"{set_name}, pages indexed a second", speed, 2000.0),
    ]


def _pooled(scores: dict[str, dict[str, Score]], what: str) -> dict[str, float]:
    """Means by kind over all queries of all manuals."""
    kinds = sorted({kind for some in scores.values() for kind in some})
    total = {kind: [some[kind] for some in scores.values() if kind in some] for kind in kinds}
    return {
        kind: sum(getattr(one, what) * one.queries for one in some) / sum(one.queries for one in some)
        for kind, some in total.items()
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--root", type=Path, action="append", default=[], help="Where packages were unpacked.")
    options.add_argument("--json", type=Path, help="Write the figures to this file.")
    given = options.parse_args()
    figures = measured("own towns", own_manuals())
    roots = [*given.root, *(Path(named) for named in filter(None, [os.environ.get("MANUALS")])), Path("/")]
    kept = list(manuals(roots, MANUALS.keys() - {*ASKED_ONLY}))
    if kept:
        figures += measured("manuals", kept)
    figures += answers_to_questions(roots)
    if given.json:
        write(given.json, figures)


if __name__ == "__main__":
    main()
