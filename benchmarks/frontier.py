"""How many addresses, pages and moves of the frontier can one core take in a second?"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from importlib import import_module
from urllib.parse import urldefrag, urljoin

from lxml import html as lxml_html
from measure import load, median, table
from selectolax.lexbor import LexborHTMLParser
from sites import DOC

from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from periplus.urls.canonical import canonical, resolve, url_id

ROOT = DOC / "python3.11/html"
BASE = Url("http://python.test/library/index.html")


def sample(count: int, seed: int) -> list[tuple[Url, bytes]]:
    """Pages of Python's manual with their URLs."""
    files = sorted(path for path in ROOT.rglob("*.html") if path.is_file())
    chosen = random.Random(seed).sample(files, min(count, len(files)))
    return [(Url(f"http://python.test/{path.relative_to(ROOT).as_posix()}"), path.read_bytes()) for path in chosen]


def hrefs_of(pages: list[tuple[Url, bytes]]) -> list[tuple[str, Url]]:
    """(href as written, the page's URL), distinct."""
    found: dict[tuple[str, Url], None] = {}
    for url, body in pages:
        for node in LexborHTMLParser(body).css("a[href]"):
            found[node.attributes["href"] or "", url] = None
    return list(found)


def per_second(count: int, call: Callable[[], object], rounds: int) -> float:
    """Median over rounds, by the CPU's clock: other work on the machine costs little."""
    rates = []
    for _ in range(rounds):
        started = time.process_time()
        call()
        rates.append(count / (time.process_time() - started))
    return median(rates)


def url_rows(hrefs: list[tuple[str, Url]], rounds: int) -> list[tuple[object, ...]]:
    web = [(href, base) for href, base in hrefs if not href.startswith(("mailto:", "javascript:", "data:"))]
    whole = [urljoin(base, href) for href, base in web if urljoin(base, href).startswith("http")]
    urls = [canonical(text) for text in whole]
    web = [(href, base) for href, base in web if urljoin(base, href).startswith("http")]
    plain = per_second(len(web), lambda: [urldefrag(urljoin(base, href)) for href, base in web], rounds)
    calls: dict[str, Callable[[], object]] = {
        "canonical": lambda: [canonical(text) for text in whole],
        "resolve": lambda: [resolve(href, base) for href, base in web],
        "url_id": lambda: [url_id(url) for url in urls],
    }
    rows: list[tuple[object, ...]] = [("urllib: urljoin + urldefrag", "URLs", plain, 1.0)]
    for name, call in calls.items():
        rate = per_second(len(web), call, rounds)
        rows.append((name, "URLs", rate, rate / plain))
    return rows


def page_rows(pages: list[tuple[Url, bytes]], rounds: int) -> list[tuple[object, ...]]:
    plain = per_second(len(pages), lambda: [links_by_lxml(url, body) for url, body in pages], rounds)
    rows: list[tuple[object, ...]] = [("lxml: links joined + title", "pages", plain, 1.0)]
    try:
        understand = import_module("periplus.document.understand").understand
    except ImportError:
        return [*rows, ("understand", "pages", "not there yet", "")]
    answer = Headers((("content-type", "text/html"),))
    rate = per_second(len(pages), lambda: [understand(url, Fetched(200, answer, body)) for url, body in pages], rounds)
    return [*rows, ("understand", "pages", rate, rate / plain)]


def links_by_lxml(url: Url, body: bytes) -> tuple[str | None, list[str]]:
    """What a crawler written by hand does with a page: the baseline."""
    tree = lxml_html.fromstring(body)
    return tree.findtext(".//title"), [urldefrag(urljoin(url, href)).url for href in tree.xpath("//a/@href")]  # type: ignore[union-attr]  # a list, for this expression


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pages = sample(options.pages, options.seed)
    hrefs = hrefs_of(pages)
    mean = sum(len(body) for _, body in pages) / len(pages)
    print(f"{len(pages)} pages of {mean / 1000:.0f} KB, {len(hrefs):,} distinct hrefs ({load()})")
    rows = [*url_rows(hrefs, options.rounds), *page_rows(pages, options.rounds)]
    print(table(("what", "of", "per CPU second", "against the baseline"), rows))
    print("frontier moves: not yet measured (the store's frontier is not there yet)")


if __name__ == "__main__":
    main()
