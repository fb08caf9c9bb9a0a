"""The public functions in a typed program: crawls a site, reads it, searches it, checks it. Passes mypy and pyright.

python examples/client.py https://example.org example.org.periplus
"""

from __future__ import annotations

import sys

import periplus
from periplus.errors import PeriplusError


def main(start: str, folder: str) -> int:
    end = periplus.crawl(start, folder, max_pages=100)
    print(end.state, end.counts.fetched)
    with periplus.open(folder) as collection:
        for tally in collection.status().counts:
            print(tally.state.value, tally.reason.value, tally.urls)
        for top in collection.map().top(5):
            print(top.score, top.url, top.title)
        for link in collection.table("links").to_dicts()[:3]:
            print(link["source"], link["target"])
        print([hit.url for hit in collection.search("harbour").hits])
    for row in periplus.sql(folder, "SELECT reason, count(*) AS many FROM urls GROUP BY reason"):
        print(row)
    print(periplus.search(folder, "harbour", limit=3).total)
    print(periplus.check(folder=folder, external=False))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:3]))
    except PeriplusError as error:
        sys.exit(str(error))
