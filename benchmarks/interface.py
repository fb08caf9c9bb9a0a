"""Response times of the interface on a collection of a million pages and ten million links.

Each address is requested in turn, in this process and without a socket (a second round measures cached answers). The
collection of made_rows.py is created if it is missing, with a visit per page. The index of its links is created too, as
for the first user who opens a page; its time is listed separately. First requests count like later ones. Aims: 300 ms
at the median, 1 s at the 95th percentile.
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import statistics
import sys
import time
from pathlib import Path
from urllib.parse import quote

from made_rows import collection_of, page_url
from measure import load, table
from starlette.testclient import TestClient

from periplus.store.sqlite import schema
from periplus.ui.routes import application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places

ONE = quote(page_url(50_000), safe="")
ADDRESSES = (
    "/", "/jobs", "live", "t/pages", "t/pages?state=failed", "t/pages?status=404", "t/pages?q=harbours",
    "t/pages?q=nowhere", "t/pages?title=~7777",
    "t/pages?type=text/html&sort=-size", "t/pages?sort=title", "t/pages?sort=-visited", "t/pages?depth=2&at=200",
    "t/pages?host=site7.test:443",
    "t/links", "t/links?kind=redirect", f"t/links?source={ONE}", "t/links?anchor=~harbour 7", "t/external", "t/dead",
    "t/bad", "t/hosts", "t/runs",
    "t/redirects", "t/visits", "t/visits?outcome=failed", f"t/visits?url={ONE}", f"t/links?target={ONE}",
    f"page?url={ONE}", f"page?url={ONE}&view=visits",
    f"page?url={ONE}&view=blocks", f"graph?node={ONE}", f"graph?node={ONE}&steps=2&menus=hide",
    f"graph?node={ONE}&by=directory", f"graph?node={ONE}&by=site",
    f"graph.gexf?node={ONE}", "survey", "topics", "stories", "portals",
)  # fmt: skip
VISITS = """
INSERT INTO visit (run_id, url_id, purpose, started, took_s, outcome, status, detail, wire_bytes, address)
SELECT 1, url_id, 'page', fetched, took_s, 'fetched', 200, '', wire_bytes, '192.0.2.1' FROM page ORDER BY body_digest
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    folder = collection_of(chosen.pages, chosen.links)
    with contextlib.closing(sqlite3.connect(folder / schema.DATABASE, isolation_level=None)) as connection:
        connection.execute("UPDATE host SET fetched = ? WHERE id = 1", (chosen.pages,))  # as after a crawl
        if not connection.execute("SELECT 1 FROM visit LIMIT 1").fetchone():
            connection.execute(VISITS)
    state = AppState(places([folder]), Locks(), frozenset({"crawl"}))
    asking = TestClient(application(state), base_url="http://127.0.0.1")
    started = time.perf_counter()
    asking.get(f"/c/{quote(Path(folder).name.removesuffix('.periplus'))}/graph")
    state.browser.indexes.finish()
    print(f"the book of its links was there after {time.perf_counter() - started:.1f} s")
    rows, all_s, all_worked = [], [], []
    for address in ADDRESSES:
        path = (
            address
            if address.startswith("/")
            else (f"/c/{quote(Path(folder).name.removesuffix('.periplus'))}/{address}")
        )
        took, worked, status = [], [], 0
        for _ in range(chosen.rounds):
            started, worked_s = time.perf_counter(), time.process_time()
            status = asking.get(path).status_code
            took.append(time.perf_counter() - started)
            worked.append(time.process_time() - worked_s)
        all_s += took
        all_worked += worked
        rows.append(
            (
                address.replace(ONE, "URL"),
                str(status),
                *(f"{1000 * value:,.0f}" for value in (statistics.median(took), max(took), max(worked))),
            )
        )
    print(f"{chosen.pages:,} pages, {chosen.links:,} links; {load()}")
    print(table(("address", "status", "median ms", "longest ms", "of CPU"), rows))
    for what, values in (("all", all_s), ("all in CPU time, independent of other load", all_worked)):
        ordered = sorted(values)
        print(
            f"{what}: median {1000 * statistics.median(ordered):,.0f} ms, 95th percentile "
            f"{1000 * ordered[int(0.95 * (len(ordered) - 1))]:,.0f} ms"
        )


if __name__ == "__main__":
    sys.exit(main())
