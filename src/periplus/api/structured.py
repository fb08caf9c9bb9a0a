"""What pages say to machines, read from their stored bytes when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

from periplus.document import html
from periplus.document.decode import decode
from periplus.document.structured import StructuredValue, values_of
from periplus.store.moving import PageBody


def structured_rows(pages: Iterator[PageBody]) -> Iterator[tuple[object, ...]]:
    """Rows of STRUCTURED, in the order of the pages."""
    for page in pages:
        for value in values_in(page):
            yield (page.url, *value)


def values_in(page: PageBody) -> Iterator[StructuredValue]:
    """Of a page that is HTML; of any other none."""
    if page.media_type in html.HTML_TYPES:
        text, _ = decode(page.body, page.charset, page.media_type)
        yield from values_of(html.parse(text), page.url)
