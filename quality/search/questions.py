"""Does a search answer questions to a manual?

Questions as typed, in four languages, each with the pages that answer it, collected before any was tried:
`questions.tsv`. One index per manual. Weights were tuned on the manuals of TUNED only. Baseline: BM25 over all words of
a page and its title (k1 1.2, b .75, OR query), with the same stems.

    python quality/search/questions.py [--root FOLDER]... [--json FILE] [--misses]

Only available manuals are measured, found as in `measure.py`. `--misses` lists each question whose page
is not the first.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from figures import Figure, digest_of, write
from manuals import Manual, index_of, manuals

from periplus.document.words import forms, table
from periplus.model.web import UrlId
from periplus.retrieval.asking import MatchWindow, Searcher
from periplus.settings import Searching

QUESTIONS = Path(__file__).parent / "questions.tsv"
TUNED = ("python-en", "django-en", "apache-fr", "handbook-de")
PLACES = {1: 0.75, 3: 0.92, 10: 0.96}  # rank: aim for the share of questions answered at this rank or better
K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a manual, and the pages that answer it."""

    manual: str
    text: str
    pages: tuple[str, ...]  # paths below the manual's folder


def questions() -> list[Question]:
    rows = [line.split("\t") for line in QUESTIONS.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [Question(manual, text, tuple(pages.split())) for manual, text, pages in rows]


Answering = Callable[[str], Sequence[Sequence[UrlId]]]  # question -> first ten hits, each with its duplicates


def bm25(manual: Manual) -> Answering:
    """BM25 over title and blocks."""
    stems = table(manual.language)
    counts = [
        Counter(stems[form] for form in forms("\n".join([page.title, *page.blocks.texts()]))) for page in manual.pages
    ]
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / len(lengths)
    pages_with = Counter(term for count in counts for term in count)

    def score(terms: set[str], count: Counter[str], length: int) -> float:
        return sum(
            log(1 + (len(counts) - pages_with[term] + 0.5) / (pages_with[term] + 0.5))
            * count[term] * (K1 + 1) / (count[term] + K1 * (1 - B + B * length / mean))
            for term in terms
        )  # fmt: skip

    def answer(text: str) -> Sequence[Sequence[UrlId]]:
        terms = {stems[form] for form in forms(text)}
        scored = [
            (-score(terms, count, length), page.url_id)
            for page, count, length in zip(manual.pages, counts, lengths, strict=True)
        ]
        return [(url_id,) for worth, url_id in sorted(scored)[:10] if worth < 0]

    return answer


def ours(searcher: Searcher) -> Answering:
    def answer(text: str) -> Sequence[Sequence[UrlId]]:
        found = searcher.search(text, MatchWindow(10), lambda ids: [0.0] * len(ids))
        return [(match.url_id, *match.twins) for match in found.matches]

    return answer


def places(manual: Manual, asked: Sequence[Question], answering: Answering) -> list[int]:
    """Rank of the first answering page for each question; 0: not among the first ten."""
    paths = {page.url_id: str(page.url).partition(".test/")[2] for page in manual.pages}
    return [
        next(
            (
                place
                for place, hit in enumerate(answering(question.text), 1)
                if any(paths[url_id] in question.pages for url_id in hit)
            ),
            0,
        )
        for question in asked
    ]


def share(some: Sequence[int], most: int) -> float:
    return sum(0 < place <= most for place in some) / len(some)


def shown(name: str, some: Sequence[int]) -> str:
    return f"{name:24} {len(some):4} " + "  ".join(f"{most:2}: {100 * share(some, most):5.1f}" for most in PLACES)


def measured(roots: list[Path], *, misses: bool = False) -> list[Figure]:
    """Prints a table and gives the figures."""
    asked = questions()
    sets = manuals(roots, {question.manual for question in asked})
    gathered: dict[tuple[str, str], list[int]] = {}
    took = 0.0
    for manual in sets:
        own = [question for question in asked if question.manual == manual.name]
        with tempfile.TemporaryDirectory() as folder:
            index_of(Path(folder), manual.pages)
            searcher = Searcher(Path(folder), Searching())
            begun = time.process_time()
            places_here = places(manual, own, ours(searcher))
            took += time.process_time() - begun
        group = "tuned on" if manual.name in TUNED else "not tuned on"
        for maker, some in (("ours", places_here), ("BM25", places(manual, own, bm25(manual)))):
            print(shown(f"{manual.name}, {maker}", some))
            for name in (group, "all"):
                gathered.setdefault((name, maker), []).extend(some)
        for question, place in zip(own, places_here, strict=True):
            if misses and place != 1:
                print(f"    {place:2}  {question.text}   ({' '.join(question.pages)})")
    for (name, maker), some in gathered.items():
        print(shown(f"{name}, {maker}", some))
    if not gathered:
        return []
    queries = len(gathered["all", "ours"])
    print(f"{queries} questions, {1000 * took / queries:.2f} ms CPU each, without snippets")
    data = digest_of(f"{question.manual} {question.text} {question.pages}" for question in asked)
    return [
        Figure(f"questions {name}, first {most}", share(some, most), aim, data)
        if maker == "ours"
        else Figure(f"questions {name}, first {most}", share(some, most), by=maker)
        for (name, maker), some in gathered.items()
        for most, aim in PLACES.items()
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--root", type=Path, action="append", default=[], help="Where packages were unpacked.")
    options.add_argument("--json", type=Path, help="Write the figures to this file.")
    options.add_argument("--misses", action="store_true", help="List the questions whose page is not the first.")
    given = options.parse_args()
    roots = [*given.root, *(Path(named) for named in filter(None, [os.environ.get("MANUALS")])), Path("/")]
    figures = measured(roots, misses=given.misses)
    if given.json:
        write(given.json, figures)


if __name__ == "__main__":
    main()
