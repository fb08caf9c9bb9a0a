"""A command, a kind of issue, a screen, a column of the pages, and a table of its own."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import click
from starlette.requests import Request
from starlette.responses import Response

from periplus.analyse.audit import Finding
from periplus.analyse.audit_input import AuditInput, IssueColumns
from periplus.api.functions import open_collection
from periplus.api.homes import open_reader
from periplus.api.page_columns import ExtraColumns
from periplus.api.tables import ResultTable
from periplus.cli.options import collection_option, collection_place
from periplus.model.audit import Category, IssueKind, Severity
from periplus.model.tables import Table, columns_of
from periplus.model.web import UrlId
from periplus.store.reader import CollectionReader
from periplus.ui import rendering
from periplus.ui.description import Routes, Screen, TableScreen
from periplus.ui.state import place_read
from periplus.values import JsonObject, Place, Row

PAGES = 10
TINY_CHARS = 4


class LongPage(NamedTuple):
    """A page and its size in bytes, with its share of all pages' bytes."""

    url: str
    size: int
    share: float


def longest_pages(place: Place) -> list[LongPage]:
    """The longest pages of a collection, the longest first."""
    with open_collection(place) as collection:
        rows = [(row.size or 0, row.url) for row in collection.pages(state="fetched", columns=("url", "size"))]
    total = sum(size for size, _ in rows) or 1
    return [LongPage(url, size, round(size / total, 4)) for size, url in heapq.nlargest(PAGES, rows)]


@click.command()
@collection_option
def longest(collection: Place | None) -> None:
    """List the longest pages of a collection."""
    for page in longest_pages(collection_place(collection)):
        click.echo(f"{page.size:>12,}  {page.url}")


def _tiny_titles(site: AuditInput) -> IssueColumns:
    chars = site.pages.title_chars
    return IssueColumns(site.pages.place[(chars > 0) & (chars <= TINY_CHARS)])


TINY_TITLE = Finding(
    IssueKind(
        "title-tiny",
        Severity.NOTICE,
        Category.TITLES,
        f"Titles of at most {TINY_CHARS} characters",
        "A reader of search results cannot tell what the page is about.",
        "Write a title that names the subject of the page.",
    ),
    _tiny_titles,
)


def _rows(place: Place, subject: str) -> Iterator[tuple[object, ...]]:
    return ((number, *page) for number, page in enumerate(longest_pages(place), 1))


def _stamp(place: Place, subject: str) -> object:
    with open_reader(place) as reader:
        return reader.version()


TABLES = {
    "longest": ResultTable(
        Table(
            "longest",
            "The longest pages.",
            columns_of("""
                place integer: the longest page has 1
                url text searched: the address
                size integer: size in bytes
                share real: share of the bytes of all pages, 0 to 1
            """),
        ),
        _rows,
        _stamp,
    )
}


def _show(request: Request) -> Response:
    """The longest pages."""
    name, place = place_read(request)
    pages: list[JsonObject] = [page._asdict() for page in longest_pages(place)]
    return rendering.answer(request, "longest/longest.html", {"title": "Longest pages", "name": name, "pages": pages})


def page_columns(place: Place) -> ExtraColumns:
    """A column of `pages`: the number of words of each page."""

    def values(reader: CollectionReader, names: Sequence[str]) -> Callable[[UrlId], Row]:
        return lambda page_id: (len((reader.text(page_id) or "").split()),)

    return ExtraColumns(columns_of("words integer: number of words of the page's text"), values)


ROUTES = Routes(
    (Screen("/c/{name}/longest", _show, {"name": str, "pages": list[JsonObject]}),),
    {},
    {},
    {"longest": TableScreen("Longest pages", "longest", ("place", "url", "size", "share"), home="longest")},
)
