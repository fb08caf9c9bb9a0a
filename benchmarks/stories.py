"""Cost and accuracy of stories in 20,000, 60,000, 150,000 and a million generated news pages.

    .venv/bin/python benchmarks/stories.py                           three sizes
    .venv/bin/python benchmarks/stories.py --pages 1000000           one
    .venv/bin/python benchmarks/stories.py --collection FOLDER       the stories of an existing collection

The news is inserted into a collection without a crawl: sites of different sizes, words with realistic frequencies. A
third of the pages belong to stories of 2 to 60 pages: verbatim, cut, edited, or as a comment with a link; some are
digests of several stories; one page in five ends with an agency note that about 200 pages share; each site has its own
boilerplate. Half of the sites have dates in their URLs, a quarter in their texts. A page depends only on its number and
the seed. Collections are cached in /tmp/periplus-benchmarks; each run deletes the file `stories.read`.

Each run is a separate process and reports CPU seconds and peak memory (total, and without mapped files) by stage.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from corpora import CACHE, SYLLABLES
from made_rows import inserted

from periplus.model.web import Url, UrlId
from periplus.settings import Settings
from periplus.store import column_files
from periplus.store.bodies import BodyCodec
from periplus.store.sqlite import page_links, schema
from periplus.store.sqlite.frontier import FolderHome
from periplus.urls.canonical import url_id
from periplus_topics.api.stories import stories_of

SIZES = (20_000, 60_000, 150_000)
BEGAN, DAY_S, DAYS = 1_704_067_200.0, 86_400.0, 365  # 2024-01-01
NOW = BEGAN + (DAYS + 20) * DAY_S
SITE_PAGES = 250  # mean per site
TOLD, DIGESTS, NOTED = 0.33, 0.004, 0.2  # shares of pages with a story; with several stories; with an agency note
NOTE_PAGES = 200  # pages that share a note
WORDS, DRAWN = 100_000, 1 << 18  # distinct words; size of the sampling table, in which frequent words are repeated
SENTENCES = (10, 26)  # per text
COMMENT = "comment"
LOOKED_S = 0.05  # interval between memory samples


class Post(NamedTuple):
    """Attributes of a page before its text is generated."""

    url: Url
    site: int
    when: float
    story: int  # -1: none
    part: int  # number within its story: 0 is the source
    number: int


class News:
    """All posts of a news web; texts are generated on demand."""

    def __init__(self, pages: int, seed: int = 1) -> None:
        rng = random.Random(seed)
        self.pages, self.seed = pages, seed
        spellings = dict.fromkeys("".join(rng.choices(SYLLABLES, k=rng.randint(1, 5))) for _ in range(3 * WORDS))
        known = list(spellings)[:WORDS]
        self.words = rng.choices(
            known, cum_weights=list(accumulate(1 / (at + 10) for at in range(len(known)))), k=DRAWN
        )
        self.sites = [f"news{at:05}.test" for at in range(max(20, pages // SITE_PAGES))]
        self._sizes = list(accumulate(1 / (at + 20) for at in range(len(self.sites))))
        self.notes = [self.sentence(rng, [], 28) for _ in range(max(1, int(pages * NOTED / NOTE_PAGES)))]
        self.about = [self.sentence(rng, [], 40) for _ in self.sites]
        self.posts: list[Post] = []
        self.stories: list[list[Post]] = []
        while len(self.posts) < TOLD * pages:
            self._plant(rng)
        while len(self.posts) < pages - len(self.sites):
            self._post(rng, self._site(rng), BEGAN + rng.random() * DAYS * DAY_S, -1, 0)

    def _site(self, rng: random.Random) -> int:
        return rng.choices(range(len(self.sites)), cum_weights=self._sizes)[0]

    def _plant(self, rng: random.Random) -> None:
        """Adds a story; half of the stories have 2 or 3 pages, few have 60."""
        when, story = BEGAN + rng.random() * DAYS * DAY_S, len(self.stories)
        self.stories.append([])
        for part in range(min(60, int(rng.paretovariate(1.1)) + 1)):
            self.stories[story].append(self._post(rng, self._site(rng), when, story, part))
            when += rng.random() * DAY_S / 2

    def _post(self, rng: random.Random, site: int, when: float, story: int, part: int) -> Post:
        number = len(self.posts)
        day = time.strftime("/%Y/%m/%d/", time.gmtime(when)) if site % 2 else "/news/"
        post = Post(Url(f"https://{self.sites[site]}{day}p{number}"), site, when, story, part, number)
        self.posts.append(post)
        return post

    def sentence(self, rng: random.Random, names: list[str], length: int = 0) -> str:
        words = rng.choices(self.words, k=length or rng.randint(8, 18))
        if names:
            for at in range(rng.randint(1, 3)):
                words[rng.randrange(len(words))] = names[(at + len(words)) % len(names)]
        return " ".join(words).capitalize() + "."

    def told(self, story: int) -> tuple[list[str], str, list[str]]:
        """(names, title, sentences) of a story; a negative number: of a page without a story."""
        rng = random.Random(f"{self.seed} {story}")
        names = ["".join(rng.choices(SYLLABLES, k=4)) for _ in range(9)]
        title = " ".join([*names[:3], *rng.choices(self.words, k=3)]).capitalize()
        return names, title, [self.sentence(rng, names) for _ in range(rng.randint(*SENTENCES))]

    def page(self, post: Post) -> tuple[str, str, list[tuple[UrlId, str]]]:
        """(title, text with one line per block, links with their texts)."""
        rng = random.Random(f"{self.seed} page {post.number}")
        links: list[tuple[UrlId, str]] = []
        if post.story < 0 and self.stories and rng.random() < DIGESTS:
            title, sentences = f"The week {int((post.when - BEGAN) / DAY_S / 7)}", []
            for story in rng.sample(range(len(self.stories)), min(6, len(self.stories))):
                _, about, of_story = self.told(story)
                sentences += [*of_story[:2], about]
                links.append((url_id(self.stories[story][0].url), about))
        else:
            names, title, sentences = self.told(post.story if post.story >= 0 else -1 - post.number)
            if post.part:
                title, sentences = self._retold(rng, post, names, title, sentences, links)
        lines = [" ".join(sentences[at : at + 3]) for at in range(0, len(sentences), 3)]
        if post.site % 4 == 0:
            lines.insert(0, time.strftime("Published %B %d, %Y", time.gmtime(post.when)))
        if rng.random() < NOTED:
            lines.append(rng.choice(self.notes))
        return f"{title} | {self.sites[post.site]}", "\n".join([*lines, self.about[post.site]]), links

    def _retold(
        self, rng: random.Random, post: Post, names: list[str], title: str, sentences: list[str],
        links: list[tuple[UrlId, str]],
    ) -> tuple[str, list[str]]:  # fmt: skip
        how, own = rng.choice(("full", "cut", "edited", "heavy", COMMENT)), self.sentence(rng, names)
        if how == COMMENT:
            title, sentences = " ".join(rng.choices(self.words, k=4)), [self.sentence(rng, names) for _ in range(6)]
        elif how == "cut":
            sentences = [own, *sentences[: max(5, int(len(sentences) * rng.uniform(0.4, 0.7)))]]
        elif how != "full":
            changed = 0.1 if how == "edited" else 0.15
            sentences = [
                " ".join(rng.choice(self.words) if rng.random() < changed else word for word in sentence.split())
                for sentence in sentences
                if how == "edited" or rng.random() < 0.7
            ]
        if how == COMMENT or rng.random() < 0.3:
            anchor = " ".join(rng.sample(names, 2))
            links.append((url_id(self.stories[post.story][0].url), anchor))
            sentences = [*sentences, f"{own[:-1]} {anchor}."]
        return title, [own, *sentences]


def generate(folder: Path, news: News) -> None:
    """Creates the collection beside its final place, then renames it."""
    draft = folder.with_suffix(".new")
    shutil.rmtree(draft, ignore_errors=True)
    schema.create(draft)
    run_id = FolderHome(draft).begin_run("crawl", [Url(f"https://{news.sites[0]}/")], Settings(), BEGAN)
    posts = sorted((url_id(post.url), post) for post in news.posts)
    with contextlib.closing(sqlite3.connect(draft / schema.DATABASE, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        inserted(connection, "site", ({"id": at, "key": name} for at, name in enumerate(news.sites, 1)))
        inserted(
            connection,
            "host",
            ({"id": at, "key": name + ":443", "site_id": at} for at, name in enumerate(news.sites, 1)),
        )
        names = ("id", "text", "host_id", "reason", "depth", "status", "first_seen")
        rows = (
            dict(zip(names, (key, post.url, post.site + 1, "ok", 1, 200, post.when + DAY_S), strict=True))
            for key, post in posts
        )
        inserted(connection, "url", rows)
        codec = BodyCodec()
        for at in range(0, len(posts), 1_000):
            written = [(key, post, *news.page(post)) for key, post in posts[at : at + 1_000]]
            inserted(connection, "page", (_page_row(*row, body=at + nth) for nth, row in enumerate(written, 1)))
            inserted(
                connection,
                "body",
                (
                    {"id": at + nth, "digest": row[0].to_bytes(8, "little", signed=True), "size": len(row[3]),
                     "text": codec.pack(row[3].encode(), None)}
                    for nth, row in enumerate(written, 1)
                ),
            )  # fmt: skip
            page_links.fill(connection, _link_rows(written))
        connection.execute("INSERT OR REPLACE INTO tally VALUES ('reason:ok', ?)", (len(posts),))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    FolderHome(draft).end_run(run_id, "done", "", NOW)
    draft.rename(folder)


def _page_row(key: UrlId, post: Post, title: str, text: str, _: object, body: int) -> dict[str, object]:
    return {
        "url_id": key, "fetched": NOW, "media_type": "text/html", "size": len(text), "title": title, "language": "en",
        "text_chars": len(text), "body_digest": key.to_bytes(8, "little", signed=True), "body_id": body,
        "last_modified": post.when if post.site % 3 else 0.0,
    }  # fmt: skip


def _link_rows(written: list[tuple[UrlId, Post, str, str, list[tuple[UrlId, str]]]]) -> Iterator[tuple[object, ...]]:
    for key, _, _, _, links in written:
        for target, anchor in dict(links).items():
            yield key, target, "a", "main", 0, anchor, "", 1, NOW, NOW


def collection_of(pages: int) -> Path:
    """The cached collection of this size, created if missing."""
    folder = CACHE / f"news-{schema.SCHEMA_VERSION}-{pages}.periplus"
    if not folder.exists():
        generate(folder, News(pages))
    return folder


def status_kib(name: str) -> int:
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0])


def measure(folder: Path) -> None:
    """Prints the cost of the stories of a collection in this process as JSON: each stage, then the total."""
    (folder / column_files.STORIES).unlink(missing_ok=True)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak memory, which is inherited from the parent process
    anonymous_kib, stages, ended = [0], dict[str, float](), threading.Event()

    def look() -> None:
        while not ended.wait(LOOKED_S):
            anonymous_kib[0] = max(anonymous_kib[0], status_kib("RssAnon"))

    def watch(what: str, done: int, total: int) -> None:
        stages.setdefault(what, time.process_time())

    looks = threading.Thread(target=look, daemon=True)
    looks.start()
    begun = time.monotonic()
    stories = stories_of(folder, watch=watch)
    wall_s = time.monotonic() - begun
    begins = [*stages.values(), time.process_time()]
    ended.set()
    looks.join()
    values = {
        "pages": stories.pages, "stories": len(stories.stories),
        "of_stories": sum(len(one.pages) for one in stories.stories),
        "digests": len(stories.digests), "wall_s": wall_s, "cpu_s": begins[-1],
        "peak_mib": status_kib("VmHWM") / 1024, "anonymous_mib": anonymous_kib[0] / 1024,
        "stages": {what: end - begin for what, (begin, end) in zip(stages, pairwise(begins), strict=True)},
        "digest": hashlib.sha256(repr(stories).encode()).hexdigest()[:16],
        "told": [[page.url for page in story.pages] for story in stories.stories],
    }  # fmt: skip
    print(json.dumps(values))


def planted(news: News, told: list[list[str]]) -> tuple[float, float]:
    """(precision, recall) of pairs of pages in the same story."""
    story_of = {str(post.url): post.story for post in news.posts if post.story >= 0}
    right = pairs = 0
    for urls in told:
        counts = Counter(story_of.get(url, -1) for url in urls)
        pairs += len(urls) * (len(urls) - 1) // 2
        right += sum(count * (count - 1) // 2 for story, count in counts.items() if story >= 0)
    spread = (len(posts) for posts in news.stories if len({post.site for post in posts}) > 1)
    return right / max(pairs, 1), right / max(1, sum(count * (count - 1) // 2 for count in spread))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, nargs="+", default=SIZES)
    options.add_argument("--collection", type=Path, help="a folder, in place of news that is made")
    options.add_argument("--measured", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measured:
        measure(given.measured)
        return
    for pages in given.pages if given.collection is None else (0,):
        folder = given.collection or collection_of(pages)
        run = subprocess.run([sys.executable, __file__, "--measured", str(folder)], capture_output=True, check=True)
        cost = json.loads(run.stdout)
        print(
            f"{cost['pages']:,} pages: {cost['cpu_s']:.1f} CPU s, {cost['wall_s']:.0f} s, peak {cost['peak_mib']:,.0f} "
            f"MiB ({cost['anonymous_mib']:,.0f} without mapped files); {cost['stories']:,} stories with "
            f"{cost['of_stories']:,} pages, {cost['digests']:,} digests; {cost['digest']}"
        )
        print("  " + ", ".join(f"{what} {cpu_s:.1f}" for what, cpu_s in cost["stages"].items()))
        if given.collection is None:
            precision, recall = planted(News(pages), cost["told"])
            print(f"  of the planted pairs: precision {precision:.4f}, recall {recall:.4f}")
        print(f"  load {', '.join(f'{load:.1f}' for load in os.getloadavg())}", flush=True)


if __name__ == "__main__":
    main()
