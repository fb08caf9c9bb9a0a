"""Does a search over several collections rank pages as a search over one collection of all pages does?

The manuals with questions are crawled from their folders: all into one collection, each into one of its
own (a web that is split by host), and the first manual once more into four, by its folders (a site that is split).
Each question of `questions.tsv` is searched in both. `same`: share of the first ten that both have;
`first`: share of questions whose first hit is the same; then, for both, the share of questions answered at
rank 1 and within the first ten, and nDCG@10.

    python quality/search/several.py [--root FOLDER]...
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from math import log2
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from manuals import MANUALS
from questions import Question, questions

from periplus.api.functions import crawl, search_collections

PARTS = (  # of the manual of Python: each folder in one of four collections
    ("library", "faq"), ("c-api", "extending", "reference"),
    ("tutorial", "howto", "whatsnew", "using", "distutils", "install", "installing", "distributing"),
)  # fmt: skip
SPLIT = "python-en"
MOST = 10


def crawled(roots: dict[str, Path], folder: Path, **settings: object) -> Path:
    """The collection of these manuals in a folder."""
    hosts = [f"{name}.alt={root}" for name, root in roots.items()]
    starts = [f"http://{name}.alt/" for name in roots]
    crawl(starts, folder, folders=hosts, scope="site", **settings)
    return folder


def by_parts(root: Path, folder: Path) -> list[Path]:
    every = "|".join(name for part in PARTS for name in part)
    patterns = [*({"include": [f"/({'|'.join(part)})/"]} for part in PARTS), {"exclude": [f"/({every})/"]}]
    return [
        crawled({SPLIT: root}, folder / f"part{number}.periplus", **pattern) for number, pattern in enumerate(patterns)
    ]


def answers(places: Sequence[Path], question: Question) -> list[list[str]]:
    """Addresses of each of the first hits and of its duplicates."""
    hits = search_collections(places, question.text, limit=MOST).hits
    return [[str(hit.url), *map(str, hit.twins)] for hit in hits]


def gains(hits: Sequence[Sequence[str]], question: Question) -> list[int]:
    pages = {f"http://{question.manual}.alt/{path}" for path in question.pages}
    return [int(not pages.isdisjoint(addresses)) for addresses in hits]


def ndcg(of_hits: Sequence[int], most: int) -> float:
    """most: number of answering pages."""
    best = sum(1 / log2(place + 2) for place in range(min(most, MOST)))
    return sum(gain / log2(place + 2) for place, gain in enumerate(of_hits)) / best


def compared(name: str, one: Sequence[Path], several: Sequence[Path], asked: Sequence[Question]) -> None:
    pairs = [(answers(one, question), answers(several, question)) for question in asked]
    same = fmean(
        len({hit[0] for hit in left} & {address for hit in right for address in hit}) / max(len(left), 1)
        for left, right in pairs
    )
    first = fmean(left[:1] == right[:1] or left[0][0] in right[0] for left, right in pairs if left and right)
    print(f"{name}: {len(asked)} questions, same {same:.3f}, first {first:.3f}")
    for side, label in enumerate(("one", "several")):
        scored = [gains(pair[side], question) for pair, question in zip(pairs, asked, strict=True)]
        least = fmean(ndcg(hits, len(question.pages)) for hits, question in zip(scored, asked, strict=True))
        at_first, among = fmean(any(hits[:1]) for hits in scored), fmean(map(any, scored))
        print(f"    {label:8} first {100 * at_first:5.1f}  among ten {100 * among:5.1f}  nDCG@10 {least:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", action="append", type=Path, default=[])
    roots = [*parser.parse_args().root, Path("/")]
    asked = questions()
    manuals = {
        name: next(root / MANUALS[name][1] for root in roots if (root / MANUALS[name][1]).is_dir())
        for name in dict.fromkeys(question.manual for question in asked)
        if any((root / MANUALS[name][1]).is_dir() for root in roots)
    }
    asked = [question for question in asked if question.manual in manuals]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one = crawled(manuals, folder / "all.periplus")
        each = [crawled({manual: root}, folder / f"{manual}.periplus") for manual, root in manuals.items()]
        compared("by host", [one], each, asked)
        if SPLIT in manuals:
            own = [question for question in asked if question.manual == SPLIT]
            whole = folder / f"{SPLIT}.periplus"
            compared("by part of a site", [whole], by_parts(manuals[SPLIT], folder), own)


if __name__ == "__main__":
    main()
