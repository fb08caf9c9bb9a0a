"""Which of a site's pages belong into its sitemap, and where do the files lie?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from periplus.api.facts import chosen_start, starts_of
from periplus.errors import UsageError
from periplus.model.web import Url
from periplus.present.sitemap_xml import sitemap_files
from periplus.store.sqlite import graph_rows, reading, runs
from periplus.store.sqlite.site_rows import findable_pages
from periplus.urls.hosts import host_key


def written_sitemaps(connection: reading.Connection, site: str, folder: Path) -> list[Path]:
    """Fetched pages that neither ask not to be indexed nor name another as canonical; of pages of one content the first.
    Raises UsageError where there is none, or the folder cannot be written."""
    with reading.snapshot(connection):
        start = chosen_start(starts_of(runs.run_records(connection), connection, graph_rows.redirects(connection)), site)
        rows = list(_first_of_each(findable_pages(connection, start.site)))
    if not rows:
        raise UsageError(f"no page of {start.site} belongs into a sitemap: none was fetched that may be indexed")
    several = len({host_key(url) for url, _ in rows}) > 1
    written = []
    for file in sitemap_files(rows):
        place = folder / host_key(Url(file.origin + "/")).replace(":", "_") if several else folder
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / file.name).write_bytes(file.body)
        except OSError as error:
            raise UsageError(f"{place / file.name} cannot be written: {error.strerror}. Name another folder with -o.") from None
        written.append(place / file.name)
    return written


def _first_of_each(rows: Iterator[tuple[Url, float, bytes]]) -> Iterator[tuple[Url, float]]:
    """Of URLs with one content the first."""
    met: set[bytes] = set()
    for url, changed, content in rows:
        if content not in met:
            met.add(content)
            yield url, changed
