"""Are the stories of a news web found as they were planted, its digests left out, its pages dated,
its sources put first?

    python quality/stories/measure.py [--json FILE]

On made webs only (tests/newsweb.py): reprints that are cut and edited, comments that link, follow-ups that link to the
story before, weekly digests with excerpts or links alone, a licence note that many pages share, sidebars and blogrolls.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from figures import Figure, digest_of, write

import stored
from newsweb import NewsRecipe, NewsWeb, news_web
from periplus.model.page import DateOrigin
from periplus_topics.api.stories import stories_of
from periplus_topics.model import Stories

SEEDS = range(1, 9)
AIM = 0.95


def pairwise(web: NewsWeb, found: Stories) -> tuple[int, int, int]:
    """(pairs found that are planted, pairs found, pairs planted)."""
    right = pairs = 0
    for story in found.stories:
        for one, other in combinations([str(page.url) for page in story.pages], 2):
            pairs += 1
            right += web.story_of.get(one, -1) == web.story_of.get(other, -2)
    planted = sum(count * (count - 1) // 2 for count in Counter(web.story_of.values()).values())
    return right, pairs, planted


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path, help="Write the figures to this file.")
    given = options.parse_args()
    totals: Counter[str] = Counter()
    scores, texts = [], []
    for seed in SEEDS:
        web = news_web(NewsRecipe(seed=seed))
        texts += [text for _, text in sorted(web.pages.items())]
        stored.NOW = web.now
        with tempfile.TemporaryDirectory() as folder:
            stored.stored(Path(folder) / "news.periplus", web.pages, web.starts)
            begun = time.perf_counter()
            found = stories_of(Path(folder) / "news.periplus")
            took = time.perf_counter() - begun
        right, pairs, planted = pairwise(web, found)
        scores.append(2 * right / (pairs + planted))
        told = [page for story in found.stories for page in story.pages]
        own = [page for page in told if page.date.source is not DateOrigin.FIRST_SEEN and page.url in web.published]
        totals["pages"] += found.pages
        totals["ms"] += round(took * 1000)
        totals["dated"] += len(own)
        totals["dated right"] += sum(
            0 <= web.published[page.url] - page.date.when < (86_400 if page.date.whole_day else 60) for page in own
        )
        totals["digests"] += len(web.digests)
        totals["digests found"] += len(web.digests & set(found.digests))
        totals["stories"] += len(web.source_of)
        totals["sources"] += sum(story.pages[0].url in set(web.source_of.values()) for story in found.stories)
        print(
            f"seed {seed}: {len(found.stories)} stories, {found.pages} pages, precision {right / pairs:.4f}, recall "
            f"{right / planted:.4f}, F {scores[-1]:.4f}"
        )
    data = digest_of(texts)
    figures = [
        Figure("pairwise F, mean", sum(scores) / len(scores), AIM, data),
        Figure("pairwise F, least", min(scores), AIM, data),
        Figure("digests left out", totals["digests found"] / totals["digests"], None, data),
        Figure("dates right, of pages that have one", totals["dated right"] / totals["dated"], None, data),
        Figure("sources first (one page in eight has no date)", totals["sources"] / totals["stories"], None, data),
        Figure("pages a second", 1000 * totals["pages"] / totals["ms"]),
    ]
    if given.json:
        write(given.json, figures)


if __name__ == "__main__":
    main()
