"""Scrapy with fair options: links by one XPath, joined and deduplicated by hand, title kept.

Runs in the peers' own venv.

Called as: python scrapy_spider.py DELAY_S PER_HOST START...
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess


class Lean(scrapy.Spider):
    """Every page of the starts' hosts."""

    name = "lean"

    def __init__(self, starts: list[str]) -> None:
        super().__init__()
        self.start_urls = starts
        self.seen = set(starts)
        self.hosts = {urlsplit(start).netloc for start in starts}

    def parse(self, response: Any) -> Iterator[Any]:
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        links = []
        for text in response.xpath("//a/@href").getall():
            try:
                url = urldefrag(urljoin(response.url, text.strip())).url
                host = urlsplit(url).netloc
            except ValueError:
                continue
            links.append(url)
            if host in self.hosts and url not in self.seen:
                self.seen.add(url)
                yield scrapy.Request(url, dont_filter=True)  # deduplicated above, which is cheaper than its own filter
        yield {"url": response.url, "title": response.xpath("//title/text()").get(), "links": links}


def main() -> None:
    delay_s, per_host, *starts = sys.argv[1:]
    settings = {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 128,
        "CONCURRENT_REQUESTS_PER_DOMAIN": int(per_host),
        "DOWNLOAD_DELAY": float(delay_s),
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "AUTOTHROTTLE_ENABLED": False,
        "JOBDIR": os.environ.get("PEER_KEEPS") or None,  # killed.py: folder of the state for restarts
    }
    process = CrawlerProcess(settings)
    process.crawl(Lean, starts=starts)
    process.start()


if __name__ == "__main__":
    main()
