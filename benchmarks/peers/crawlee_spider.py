"""Crawlee with fair options: its Parsel or BeautifulSoup crawler, storage in memory, links by its own enqueue_links,
title kept.

Called as: python crawlee_spider.py parsel|beautifulsoup START... in the peer's own venv.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Any

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import BeautifulSoupCrawler, ParselCrawler
from crawlee.storage_clients import FileSystemStorageClient, MemoryStorageClient

AT_ONCE = 32
KEPT = os.environ.get("PEER_KEEPS")  # killed.py: folder of the state for restarts


def crawler_of(parser: str) -> Any:
    """Robots obeyed; least and greatest concurrency are equal, so that it does not throttle itself."""
    settings = {
        "storage_client": FileSystemStorageClient() if KEPT else MemoryStorageClient(),
        "configuration": Configuration(purge_on_start=False, storage_dir=KEPT) if KEPT else Configuration(),
        "respect_robots_txt_file": True,
        "concurrency_settings": ConcurrencySettings(
            min_concurrency=AT_ONCE, max_concurrency=AT_ONCE, desired_concurrency=AT_ONCE
        ),
        "max_request_retries": 0,
        "configure_logging": False,
    }
    if parser == "parsel":
        return ParselCrawler(**settings)
    return BeautifulSoupCrawler(parser="lxml", **settings)


async def crawl(parser: str, starts: list[str]) -> None:
    crawler = crawler_of(parser)

    async def handle(context: Any) -> None:
        title = (
            context.selector.css("title::text").get()
            if parser == "parsel"
            else context.soup.title and context.soup.title.string
        )
        await context.push_data({"url": context.request.url, "title": str(title)})
        await context.enqueue_links(strategy="same-hostname")

    crawler.router.default_handler(handle)
    await crawler.run(starts)


def main() -> None:
    logging.disable(logging.ERROR)
    parser, *starts = sys.argv[1:]
    asyncio.run(crawl(parser, starts))


if __name__ == "__main__":
    main()
