"""Creates a collection of a site with a million pages and ten million links by direct inserts, without a crawl.

Pages with titles and sizes, links by `graph.power_law`, dead links, redirects, other sites, a sitemap; no texts. It is
cached in /tmp/periplus-benchmarks.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from corpora import CACHE
from graph import power_law

from periplus.model.visit import STATE_OF, Reason
from periplus.model.web import Url
from periplus.settings import Settings
from periplus.store.sqlite import page_links, schema
from periplus.store.sqlite.frontier import FolderHome
from periplus.urls.canonical import url_id

HOME = Url("https://million.test/")
NOW = 1_790_000_000.0
DEAD, MOVED, OUTSIDE = 0.004, 0.004, 0.01  # further URLs of each kind, as a share of the pages
BROKEN_LINKS = 0.002  # share of links that lead to a URL of each kind instead
NO_TITLE, SAME_TITLE, NO_DESCRIPTION, SAME_TEXT = 97, 89, 7, 101  # interval between pages with each fault


def page_url(number: int) -> Url:
    return Url(f"{HOME}part-{number // 1000:04}/page-{number:07}.html") if number else HOME


def other_urls(pages: int) -> list[tuple[Url, Reason, int]]:
    """(URL, reason, host) of URLs that are not pages."""
    dead = [(Url(f"{HOME}gone/{n}.html"), Reason.NOT_FOUND, 1) for n in range(int(pages * DEAD))]
    moved = [(Url(f"{HOME}old/{n}.html"), Reason.REDIRECT, 1) for n in range(int(pages * MOVED))]
    hosts = max(1, int(pages * OUTSIDE) // 10)
    return (
        dead
        + moved
        + [(Url(f"https://site{n % hosts}.test/{n}"), Reason.SCOPE, 2 + n % hosts) for n in range(int(pages * OUTSIDE))]
    )


def page_row(number: int) -> dict[str, object]:
    """Row of a page; sizes and times vary with its number."""
    title = (
        ""
        if number % NO_TITLE == 96
        else f"Chapter {number // SAME_TITLE}"
        if number % SAME_TITLE < 2
        else f"Page {number} of the book of harbours"
    )
    text = (number - number % SAME_TEXT if number % SAME_TEXT < 2 else number).to_bytes(16, "little")
    return {
        "url_id": url_id(page_url(number)), "fetched": NOW, "media_type": "text/html",
        "size": 2_000 + number * 7_919 % 60_000, "wire_bytes": 5_000,
        "took_s": 0.05 + number % 1_000 / 400, "charset": "utf-8", "charset_source": "header", "language": "en",
        "title": title,
        "description": "" if number % NO_DESCRIPTION == 6 else (
"What to know of harbour "
f"{number} before you sail there"
), "h1": f"Harbour {number}",
        "h1s": 1, "text_chars": 1_500 + number % 9_000, "body_digest": number.to_bytes(16, "little"),
        "text_digest": text, "folded_digest": text,
    }  # fmt: skip


def inserted(connection: sqlite3.Connection, name: str, rows: Iterable[dict[str, object]]) -> None:
    """Inserts rows; missing columns get an empty value."""
    columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
    nothing = {
        column[1]: (0 if column[2] in ("INTEGER", "REAL") else "" if column[2] == "TEXT" else b"")
        if column[3]
        else None
        for column in columns
    }
    insert = f"INSERT INTO {name} ({', '.join(nothing)}) VALUES ({', '.join('?' * len(nothing))})"
    connection.executemany(insert, (tuple((nothing | row).values()) for row in rows))


def link_rows(pages: int, links: int, others: list[tuple[Url, Reason, int]]) -> Iterator[tuple[object, ...]]:
    """All links, by the order of their pages' ids."""
    rng = np.random.default_rng(1)
    offsets, targets = power_law(pages, links, 1)
    ids = np.array([url_id(page_url(number)) for number in range(pages)])
    strange = np.array([url_id(url) for url, _, _ in others])
    for number in np.argsort(ids).tolist():
        mine = ids[targets[offsets[number] : offsets[number + 1]]]
        lost = rng.random(len(mine)) < 3 * BROKEN_LINKS
        mine[lost] = strange[rng.integers(len(strange), size=int(lost.sum()))]
        source = int(ids[number])
        for place, target in enumerate(sorted(set(mine.tolist()))):
            yield source, target, "a", "nav" if place % 3 else "main", 0, f"to harbour {place}", "", 1, NOW, NOW


def generate(folder: Path, pages: int, links: int) -> None:
    """Creates the collection beside its final place, then renames it."""
    draft = folder.with_suffix(".new")
    shutil.rmtree(draft, ignore_errors=True)
    schema.create(draft)
    run_id = FolderHome(draft).begin_run("crawl", [HOME], Settings(), NOW)
    others = other_urls(pages)
    with contextlib.closing(sqlite3.connect(draft / schema.DATABASE, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        hosts = max(host for _, _, host in others)
        inserted(
            connection,
            "site",
            ({"id": n, "key": "million.test" if n == 1 else f"site{n - 2}.test"} for n in range(1, hosts + 1)),
        )
        inserted(
            connection,
            "host",
            (
                {"id": n, "key": ("million.test" if n == 1 else f"site{n - 2}.test") + ":443", "site_id": n}
                for n in range(1, hosts + 1)
            ),
        )
        rows = [(url_id(page_url(n)), page_url(n), 1, "ok", min(n, 5), 200, n % 50 != 0) for n in range(pages)]
        rows += [
            (url_id(url), url, host, reason.value, 3, {Reason.NOT_FOUND: 404, Reason.REDIRECT: 301}.get(reason), 0)
            for url, reason, host in others
        ]
        names = ("id", "text", "host_id", "reason", "depth", "status", "in_sitemap")
        inserted(connection, "url", (dict(zip(names, row, strict=True)) for row in sorted(rows)))
        inserted(
            connection, "page", (page_row(n) for n in np.argsort([url_id(page_url(n)) for n in range(pages)]).tolist())
        )
        page_links.fill(connection, link_rows(pages, links, others))
        moved = [
            (url_id(url), url_id(page_url(n)), "redirect", "head", 0, "", "", 1, NOW, NOW)
            for n, (url, reason, _) in enumerate(others)
            if reason is Reason.REDIRECT
        ]
        page_links.fill(connection, moved)
        named = Counter(reason.value for _, reason, _ in others)
        tallies = [("reason:ok", pages), *((f"reason:{name}", count) for name, count in named.items())]
        connection.executemany("INSERT OR REPLACE INTO tally VALUES (?, ?)", tallies)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert all(Reason(name.removeprefix("reason:")) in STATE_OF for name, _ in tallies)
    FolderHome(draft).end_run(run_id, "done", "", NOW + 3600)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


def collection_of(pages: int, links: int) -> Path:
    """The cached collection of this size, created if missing."""
    folder = CACHE / f"million-{schema.SCHEMA_VERSION}-{pages}-{links}.periplus"
    if not folder.exists():
        generate(folder, pages, links)
    return folder
