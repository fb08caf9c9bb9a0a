"""Pages for benchmarks of crawlers.

(a) real pages of some 64 KB: Python's manual and the C part of cppreference, two hosts;
(b) generated pages of 25 KB with 40 links each, one host, the same for the same seed;
(c) generated pages with links to always new addresses beyond the crawl depth;
(d) real pages of some 265 KB: the large ones of the manuals, on four hosts.
"""

from __future__ import annotations

import random
from pathlib import Path

from serving import Site, compress, compressed_copy
from sites import DOC

CPPREFERENCE = Path("/usr/share/cppreference/doc/html")
SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou"]
CACHE = Path("/tmp/periplus-benchmarks")
EDITION = 2  # of the generators below: part of each folder's name, increment if their pages change


def real(cache: Path = CACHE) -> list[Site]:
    """Corpus (a): 527 + 546 = 1,073 pages of 64 KB in the mean (sites.truth), and 452 dead addresses."""
    python = compressed_copy(DOC / "python3.11/html", cache / "python")
    cpp = compressed_copy(CPPREFERENCE, cache / "cpp-c", only=("en/c.html", "en/c"))
    return [Site("python.test", python), Site("cpp.test", cpp, "/en/c.html")]


def generated(
    cache: Path = CACHE, *, pages: int = 5000, links: int = 40, page_bytes: int = 25_600, seed: int = 1
) -> list[Site]:
    """Corpus (b): all pages are reachable from the start: the first links of page n go to the children of n // 2 + 1,
    the rest are random.
    """
    root = cache / f"generated{EDITION}-{pages}-{links}-{page_bytes}-{seed}"
    if not (root / ".complete").exists():
        rng = random.Random(seed)
        words = vocabulary(rng)
        for number in range(pages):
            near = [child for child in (2 * number + 1, 2 * number + 2) if child < pages]
            others = rng.sample(range(pages), links - len(near))
            write(
                root,
                path_of(number),
                html(f"Page {number}", [path_of(one) for one in near + others], page_bytes, rng, words),
            )
        write(root, "/index.html", html("Start", [path_of(one) for one in range(links)], page_bytes, rng, words))
        finish(root)
    return [Site("generated.test", root)]


def leafy(cache: Path = CACHE, *, pages: int = 5000, leaves: int = 200, seed: int = 1) -> list[Site]:
    """Corpus (c): the start, hubs below it, pages below those;
    each page links to `leaves` unique addresses.

    Crawled to depth 2 it has about `pages` pages and pages * leaves known addresses, which do not exist as files.
    """
    root = cache / f"leafy{EDITION}-{pages}-{leaves}-{seed}"
    if not (root / ".complete").exists():
        rng = random.Random(seed)
        words = vocabulary(rng)
        hubs = max(1, round(pages**0.5))
        write(root, "/index.html", html("Start", [f"/hub/{hub}.html" for hub in range(hubs)], 2000, rng, words))
        for hub in range(hubs):
            below = [f"/page/{number}.html" for number in range(hub, pages, hubs)]
            write(root, f"/hub/{hub}.html", html(f"Hub {hub}", below, 2000, rng, words))
        for number in range(pages):
            below = [f"/leaf/{number % 97}/{number}-{leaf}.html" for leaf in range(leaves)]
            write(root, f"/page/{number}.html", html(f"Page {number}", below, 2000, rng, words))
        finish(root)
    return [Site("leafy.test", root)]


def large(cache: Path = CACHE, *, hosts: int = 4) -> list[Site]:
    """Corpus (d): pages of 150 to 500 KB, the same on each host except for a comment;
    crawl them with depth 1.
    """
    manuals = [DOC / name for name in ("python3.11/html", "sqlite3", "postgresql-doc-15/html")]
    found = sorted(
        path
        for manual in manuals
        for path in manual.rglob("*.html")
        if path.is_file() and 150_000 <= path.stat().st_size <= 500_000
    )
    sites = []
    for host in range(1, hosts + 1):
        root = cache / f"large{EDITION}-{host}"
        if not (root / ".complete").exists():
            for number, path in enumerate(found):
                write(root, f"/page{number}.html", f"{path.read_text(errors='replace')}<!-- {host} -->")
            write(
                root,
                "/index.html",
                "<!DOCTYPE html><title>Start</title>"
                + "".join(f'<a href="/page{n}.html">page {n}</a> ' for n in range(len(found))),
            )
            finish(root)
        sites.append(Site(f"large{host}.test", root))
    return sites


def path_of(number: int) -> str:
    return f"/part{number % 50}/page{number}.html"


def vocabulary(rng: random.Random) -> list[str]:
    return ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(4000)]


def html(title: str, links: list[str], page_bytes: int, rng: random.Random, words: list[str]) -> str:
    """A page of about page_bytes: a menu of the first links, and paragraphs with the other links."""
    menu, rest = links[:10], links[10:]
    parts = [
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>\n<nav><ul>'
    ]
    parts += [f'<li><a href="{link}">{rng.choice(words)}</a></li>' for link in menu]
    parts.append(f"</ul></nav>\n<main><h1>{title}</h1>")
    size = sum(map(len, parts))
    while size < page_bytes or rest:
        sentence = " ".join(rng.choices(words, k=60))
        anchor = f' <a href="{rest.pop()}">{rng.choice(words)} {rng.choice(words)}</a>' if rest else ""
        parts.append(f'<p class="text">{sentence}{anchor}.</p>')
        size += len(parts[-1])
    return "\n".join([*parts, "</main></body></html>\n"])


def write(root: Path, path: str, text: str) -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def finish(root: Path) -> None:
    compress(root)
    (root / ".complete").touch()
