"""How many addresses, pages and frontier operations can one core process per second?"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from lxml import html as lxml_html
from measure import load, median, table
from selectolax.lexbor import LexborHTMLParser
from sites import DOC

from periplus.model.frontier import Batch, Candidate, Completion
from periplus.model.visit import Fetched, Headers, Reason, Skipped, Visit
from periplus.model.web import SiteKey, Url
from periplus.settings import Budget, Settings, Storage
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import SqliteCrawlStore
from periplus.store.sqlite.runs import begin_run
from periplus.urls.canonical import canonical, resolve, url_id
from periplus.urls.hosts import host_key

MOVE_TURNS = 50  # commits of 400 URLs each
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
    """Median over rounds in CPU time, which depends little on other load."""
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
    """Baseline: the parsing of a simple hand-written crawler."""
    tree = lxml_html.fromstring(body)
    # always a list for this expression
    return tree.findtext(".//title"), [urldefrag(urljoin(url, href)).url for href in tree.xpath("//a/@href")]  # type: ignore[union-attr]


def offered(number: int) -> Candidate:
    """The number-th waiting URL of a generated web of 1,000 hosts."""
    url = Url(f"http://h{number % 1000:03}.test/section-{number % 37}/page-{number}.html")
    host = host_key(url)
    return Candidate(url, url_id(url), host, SiteKey(host), Reason.WAITING, 1)


def frontier_rows(known: int) -> list[tuple[str, int, float]]:
    """URLs offered, and URLs leased and completed, per CPU second. Completed URLs are skipped: no page is stored."""
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as temp:
        folder = Path(temp)
        schema.create(folder)
        run_id = begin_run(folder, "crawl", (), Settings(), 0.0)
        store = SqliteCrawlStore(folder, run_id, Budget(), Storage())
        begun = time.process_time()
        for start in range(0, known, 5000):
            store.offer(map(offered, range(start, start + 5000)), (), 1.0)
        offering = time.process_time() - begun
        worker = store.join(os.getpid(), 1.0)
        begun, done = time.process_time(), 0
        leases = store.lease(worker, [host.host_id for host in store.ready(200, 1.0, 1.0)], 1.0)
        for turn in range(MOVE_TURNS):
            completions = [
                Completion(lease, task, Visit(task.request, 1.0, 0.0, Skipped(Reason.ROBOTS)), Reason.ROBOTS)
                for lease in leases[turn % 5 :: 5]
                for task in store.take(lease, 10, frozenset(), 1.0)[0]
            ]
            store.commit(worker, Batch(tuple(completions)), 1.0)
            done += len(completions)
        moving = time.process_time() - begun
        store.close()
    return [("offered, all of them new", known, known / offering), ("given out and done", done, done / moving)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--known", type=int, default=1_000_000, help="URLs in the frontier; a multiple of 5,000")
    options = parser.parse_args()
    pages = sample(options.pages, options.seed)
    hrefs = hrefs_of(pages)
    mean = sum(len(body) for _, body in pages) / len(pages)
    print(f"{len(pages)} pages of {mean / 1000:.0f} KB, {len(hrefs):,} distinct hrefs ({load()})")
    rows = [*url_rows(hrefs, options.rounds), *page_rows(pages, options.rounds)]
    print(table(("what", "of", "per CPU second", "against the baseline"), rows))
    print(table(("frontier, of a million URLs on 1,000 hosts", "URLs", "per CPU second"), frontier_rows(options.known)))


if __name__ == "__main__":
    main()
