"""Page columns defined by the user's rules in the table [extract] of periplus.toml."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.api.homes import open_reader
from periplus.api.page_segments import rules_file
from periplus.errors import NoCollection
from periplus.model.web import Url, UrlId
from periplus.settings import read_rules
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.document.extraction import ExtractRule

Values = tuple[str | None, ...]


def stored_extract_rules(place: Place) -> tuple[ExtractRule, ...]:
    """The extraction rules of a collection, if any. Raises UsageError for invalid rules."""
    path = rules_file(place)
    text = read_rules(path)
    if "extract" not in text:  # avoids importing the parser
        return ()
    from periplus.document.extraction import extract_rules

    return extract_rules(text, str(path))


def page_extractor(reader: CollectionReader, rules: Sequence[ExtractRule]) -> Callable[[int], Values]:
    """A function from page ids to extracted values; all None if the body is not stored."""
    from periplus.document.extraction import extract_values

    nothing = (None,) * len(rules)

    def values(page_id: int) -> Values:
        as_read, body = reader.read_as(UrlId(page_id)), reader.body(UrlId(page_id))
        return extract_values(rules, body, as_read[1], as_read[0]) if as_read and body else nothing

    return values


@contextlib.contextmanager
def open_extractor(place: Place, rules: Sequence[ExtractRule]) -> Iterator[Callable[[int], Values]]:
    """Like `page_extractor`, for a folder or an address."""
    with open_reader(place) as reader:
        yield page_extractor(reader, rules)


def add_values(
    rows: Iterator[Sequence[object]], place: int, values: Callable[[int], Values]
) -> Iterator[tuple[object, ...]]:
    """Page rows extended by the extracted values. place: index of the id in a row."""
    for row in rows:
        page_id = row[place]
        assert isinstance(page_id, int)
        yield (*row, *values(page_id))


def page_values(folder: Path, url: Url) -> list[tuple[ExtractRule, str | None]]:
    """The rules of a collection in a folder, each with its value for a page; empty if the page is not stored.

    Raises UsageError for invalid rules.
    """
    rules = stored_extract_rules(folder)
    if not rules:
        return []
    try:
        with open_reader(folder) as reader:
            if reader.read_as(url_id(url)) is None:
                return []
            return list(zip(rules, page_extractor(reader, rules)(url_id(url)), strict=True))
    except NoCollection:
        return []
