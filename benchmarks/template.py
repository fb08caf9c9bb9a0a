"""Time and memory of `periplus template --method shorkin` by number of pages.

    python benchmarks/template.py                  5,000, 10,000, 20,000, 40,000 pages of a generated site
    python benchmarks/template.py --pages 40000    one size

The site is generated from a seed: four templates with a menu of sections with a marked active item, breadcrumbs, a
date, an author, tags, five random related links, a footer, and unique paragraphs. Each size runs in a separate process;
memory is the peak.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from periplus.api.templates import shorkin_marks
from periplus.model.duplicates import PUBLISHED_RULES

SIZES = (5_000, 10_000, 20_000, 40_000)
SECTIONS = 20
AUTHORS = 60
TAGS = 300
_WORDS = [
    f"{a}{b}{c}"
    for a in "bdfgklmnprst"
    for b in ("a", "e", "i", "o", "ur", "en")
    for c in ("to", "ra", "nik", "sel", "ma")
]


def made_pages(count: int, paragraphs: int, seed: int = 1) -> Iterator[str]:
    rng = random.Random(seed)
    menus = [
        [f"<li><a href='/t{kind}/s{at}/'>{rng.choice(_WORDS)} {at}</a></li>\n" for at in range(SECTIONS)]
        for kind in range(4)
    ]
    boxes = [
        "".join(
            f"<div class='box{kind}'><h4>{rng.choice(_WORDS)}</h4><p>{_words(rng, 12)}</p></div>\n" for _ in range(12)
        )
        for kind in range(4)
    ]
    for _ in range(count):
        kind, section = rng.randrange(4), rng.randrange(SECTIONS)
        menu = [
            item.replace("<li>", "<li class='active'>") if at == section else item
            for at, item in enumerate(menus[kind])
        ]
        yield _page(rng, (kind, section), rng.randint(3, paragraphs), "".join(menu), boxes[kind])


def _page(rng: random.Random, place: tuple[int, int], count: int, menu: str, boxes: str) -> str:
    kind, section = place
    paragraphs = "".join(f"<p>{_words(rng, rng.randint(20, 80))}<br>{_words(rng, 10)}</p>\n" for _ in range(count))
    tags = "".join(
        f"<a class='tag' href='/tag/{tag}'>tag {tag}</a> <span>·</span> " for tag in rng.sample(range(TAGS), 4)
    )
    related = "".join(
        f"<li><a href='/p/{other}'><b>Page</b> <i>{other}</i></a></li>\n"
        for other in (rng.randrange(40_000) for _ in range(5))
    )
    return (
        f"<html><head><title>{_words(rng, 5)}</title><link rel='stylesheet' href='/t{kind}.css'></head><body><div "
        f"id='top{kind}'><img src='/logo.png'>"
        f"<ul class='menu'>{menu}</ul><p class='path'><a href='/'>Home</a> <a "
        f"href='/s{section}'>Section {section}</a></p></div>\n"
        f"<div class='main'><h1>{_words(rng, 6)}</h1><p><span "
        f"class='date'>2013-{rng.randint(1, 12)}-{rng.randint(1, 28)}</span> <b>by</b> "
        f"<a href='/who/{rng.randrange(AUTHORS)}'><i>author</i></a></p>\n{paragraphs}<div "
        f"class='tags'>{tags}</div><ul class='more'>{related}</ul></div>\n"
        f"<div class='side'>{boxes}</div><div id='foot'><p>Copyright <a href='/about'>about</a> <a "
        "href='/contact'>contact</a></p></div></body></html>"
    )


def _words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


def measured(count: int, paragraphs: int) -> dict[str, float]:
    made_s, size, read_s = 0.0, 0, 0.0
    began = time.process_time()
    pages = made_pages(count, paragraphs)

    def source(page: int) -> str:
        nonlocal made_s, size, read_s
        start = time.process_time()
        made = next(pages)
        made_s += time.process_time() - start
        size += len(made)
        return made

    def watch(what: str, done: int, total: int) -> None:
        nonlocal read_s
        if what == "Reading pages":
            read_s = time.process_time() - began - made_s

    judged = shorkin_marks(source, count, PUBLISHED_RULES, watch)
    return {
        "pages": count,
        "kb_a_page": round(size / count / 1024, 1),
        "read_s": round(read_s, 1),
        "whole_s": round(time.process_time() - began - made_s, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "templates": len(judged.clusters),
        "pages_in_them": sum(len(cluster.pages) for cluster in judged.clusters),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument(
        "--paragraphs", type=int, default=40, help="of a page's own, at most; 450 make pages of some 80 KB"
    )
    options = parser.parse_args()
    if options.pages:
        print(json.dumps(measured(options.pages, options.paragraphs)), flush=True)
        return
    for size in SIZES:
        subprocess.run(
            [sys.executable, __file__, "--pages", str(size), "--paragraphs", str(options.paragraphs)], check=True
        )


if __name__ == "__main__":
    main()
