"""Time of a search, and speed of indexing, with 10,000 pages or a million, of words with realistic frequencies.

    python benchmarks/search.py [--pages 10000] [--words 400] [--folder KEEP]

Pages consist of 200,000 words by Zipf's law, with a fixed seed. Queries: a word, two words, a title, a phrase,
a word with its site; each drawn from a random page, so words are queried as often as they occur. Times are of
`Searcher.search` alone, top ten, without facets.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from periplus.model.page import Block, BlockKind, Blocks
from periplus.model.search import PageToIndex
from periplus.model.web import SiteKey, Url, UrlId
from periplus.retrieval.asking import MatchWindow, Searcher
from periplus.retrieval.index import IndexWriter
from periplus.settings import Searching

VOCABULARY = 200_000
QUERIES = 200  # per kind


class Words:
    """Invented words; the frequency of the n-th is proportional to 1 / (n + 2)."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        syllables = [one + two for one in "bdfgklmnprstvz" for two in ("a", "e", "i", "o", "u", "an", "er", "ist")]
        self.all = [
            "".join(self.rng.choices(syllables, k=2 + number % 3)) + ("" if number < 12_000 else str(number % 7))
            for number in range(VOCABULARY)
        ]
        self.sums = list(accumulate(1 / (number + 2) for number in range(VOCABULARY)))

    def some(self, count: int) -> list[str]:
        return self.rng.choices(self.all, cum_weights=self.sums, k=count)


def pages(words: Words, count: int, length: int) -> Iterator[PageToIndex]:
    """Pages of paragraphs of 40 words, with a heading before every fifth."""
    for number in range(count):
        blocks = []
        for place in range(0, length, 40):
            if place % 200 == 0:
                blocks.append(Block(BlockKind.HEADING, " ".join(words.some(4)), "main/h2", 2))
            blocks.append(Block(BlockKind.PARAGRAPH, " ".join(words.some(40)), "main/p"))
        site = f"site{number % 50}.example.org"
        url = Url(f"https://{site}/{words.some(1)[0]}/{number}")
        title = " ".join(words.some(4))
        yield PageToIndex(
            UrlId(number + 1),
            url,
            SiteKey(site),
            "text/html",
            "en",
            title,
            Blocks.of(blocks),
            (),
            (),
            1.6e9 + number * 60,
            number.to_bytes(16, "little"),
        )


def queries(some: list[PageToIndex], rng: random.Random) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {"one word": [], "two words": [], "title": [], "phrase": [], "word and site": []}
    for _ in range(QUERIES):
        page = rng.choice(some)
        body = rng.choice([block for block in page.blocks if block.kind is BlockKind.PARAGRAPH]).text.split()
        place = rng.randrange(len(body) - 3)
        made["one word"].append(rng.choice(body))
        made["two words"].append(" ".join(rng.sample(body, 2)))
        made["title"].append(page.title)
        made["phrase"].append(f'"{" ".join(body[place : place + 3])}"')
        made["word and site"].append(f"{rng.choice(body)} site:{page.site}")
    return made


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=10_000)
    options.add_argument("--words", type=int, default=400, help="on a page")
    options.add_argument("--folder", type=Path, help="keep the index here, and use it if it is there")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        sample: list[PageToIndex] = []
        rng = random.Random(2)
        writer = IndexWriter(folder, "benchmark")
        if writer.position != (given.pages, given.words):
            writer.clear()
            spent = {"making": 0.0}

            def timed(source: Iterator[PageToIndex]) -> Iterator[PageToIndex]:
                while True:
                    begun = time.process_time()
                    page = next(source, None)
                    spent["making"] += time.process_time() - begun
                    if page is None:
                        return
                    yield page

            begun = time.process_time()
            writer.put(timed(pages(Words(1), given.pages, given.words)))
            writer.commit((given.pages, given.words))
            writer.close()
            took = time.process_time() - begun - spent["making"]
            print(
                f"{given.pages} pages of {given.words} words: {given.pages / took:.0f} pages per second on "
                "one core, without generating them"
            )
        else:
            writer.close()
        for page in pages(Words(1), 500, given.words):
            sample.append(page)
        begun = time.perf_counter()
        searcher = Searcher(folder, Searching())
        print(
            f"opened in {(time.perf_counter() - begun) * 1000:.1f} ms; "
            f"{sum(path.stat().st_size for path in (folder / 'search').iterdir()) / 1e6:.0f} MB"
        )
        every: list[float] = []
        for kind, asked in queries(sample, rng).items():
            took_s = []
            for query in asked:
                begun = time.perf_counter()
                searcher.search(query, MatchWindow(10), lambda ids: [0.0] * len(ids))
                took_s.append(time.perf_counter() - begun)
            every += took_s
            print(
                f"{kind:15} median {statistics.median(took_s) * 1000:7.3f} ms   p95 "
                f"{sorted(took_s)[int(len(took_s) * 0.95)] * 1000:8.3f} ms"
            )
        print(f"all             median {statistics.median(every) * 1000:7.3f} ms")
        print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
