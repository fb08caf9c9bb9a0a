"""minet with fair options: its crawler as a library, its own link extraction, 16 threads, no throttle, no output.

It does not fetch robots.txt, which is cheaper. Called as: python minet_spider.py
START... in the peer's own venv.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from minet.crawl import Crawler, Spider

AT_ONCE = 16


class Within(Spider[Any, Any]):
    """Every page of the starts' hosts."""

    def __init__(self, starts: list[str]) -> None:
        self._starts = starts
        self._hosts = {urlsplit(start).netloc for start in starts}

    def start(self) -> list[str]:
        return self._starts

    def process(self, job: Any, response: Any) -> Any:
        if response.status != 200 or not response.is_html:
            return None
        links = response.links(strip_fragment=True)
        return response.end_url, [link for link in links if urlsplit(link).netloc in self._hosts]


def main() -> None:
    kept = os.environ.get("PEER_KEEPS")  # killed.py: folder of the state for restarts
    resuming = {"persistent_storage_path": kept, "resume": Path(kept).exists()} if kept else {}
    crawler = Crawler(
        Within(sys.argv[1:]),
        visit_urls_only_once=True,
        throttle=0,
        domain_parallelism=AT_ONCE,
        max_workers=AT_ONCE,
        **resuming,
    )
    with crawler:
        for _ in crawler:
            pass


if __name__ == "__main__":
    main()
