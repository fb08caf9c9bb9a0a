"""Which texts are meant by the examples of a topic: folders, files, pages of the collection, searches, a few words?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from periplus.analyse.topic.words import content_text
from periplus.api.collection import Collection
from periplus.document.understand import understand
from periplus.errors import InvalidUrl, UsageError
from periplus.model.topic import Example
from periplus.model.visit import Fetched, Headers
from periplus.model.web import UrlId
from periplus.store.sqlite import block_rows, reading
from periplus.store.sqlite.block_rows import PageBlocks
from periplus.store.sqlite.listing import PageFilter
from periplus.urls.canonical import canonical, url_id
from periplus.urls.scope import site_key

SEARCH, WORDS = "search:", "words:"
SEARCHED = 200  # hits of a search: further ones answer it less and less
BY_WORDS = 30  # as many pages as a topic can be begun with: F .97 with 30 positives
WORDS_SHARE = 0.5  # of the best hit's score: a page with one of the words in passing is no example
FILE_BYTES = 20_000_000  # of an example file that are read: books have 1 MB
FILES_MOST = 50_000
PAGE_FILES = "https://files.invalid/"  # where files seem to lie, for their names' endings

Watch = Callable[[str, int, int], None]  # what is done, how many, of how many


def examples_from(kept: Collection, specs: Iterable[str], positive: bool, watch: Watch) -> Iterator[Example]:
    """The texts that the specs name, in their order. Raises UsageError for one that names none."""
    for spec in specs:
        count = 0
        for example in _of_spec(kept, spec, positive):
            count += 1
            watch(spec, count, 0)
            yield example
        if not count:
            raise UsageError(f"{spec!r} gives no example: no page with text answers to it. `periplus pages` and `periplus search` show what there is.")


def names_files(spec: str) -> bool:
    """Whether the spec names a file or a folder, for which no collection is needed."""
    return not spec.startswith((SEARCH, WORDS)) and "://" not in spec and Path(spec).exists()


def names_many(spec: str) -> bool:
    """Whether the spec names pages of the collection by what they have in common, not one by one."""
    return spec.startswith((SEARCH, WORDS)) or ("*" in spec and not names_files(spec))


def _of_spec(kept: Collection, spec: str, positive: bool) -> Iterator[Example]:
    if spec.startswith(SEARCH):
        yield from _of_pages(kept, _found(kept, spec.removeprefix(SEARCH), SEARCHED), positive)
    elif spec.startswith(WORDS):
        words = spec.removeprefix(WORDS).strip("\"' ").replace(",", " ").split()
        if not words:
            raise UsageError(f'{spec!r} names no words: write words:"harbour ship sailor"')
        yield Example(" ".join(words), positive, WORDS, spec)
        quoted = " OR ".join(f'"{word}"' for word in words if '"' not in word)
        yield from _of_pages(kept, _found(kept, quoted, BY_WORDS, WORDS_SHARE), positive)
    elif names_files(spec):
        yield from _of_files(Path(spec), positive)
    elif "*" in spec:
        rows = kept.page_columns(PageFilter(state="indexed"), ("url",))
        yield from _of_pages(kept, [str(url) for (url,) in rows if fnmatchcase(str(url), spec if "://" in spec else f"*://{spec}")], positive)
    else:
        yield from _of_pages(kept, [_known(kept, spec)], positive)


def _found(kept: Collection, query: str, most: int, share: float = 0.0) -> list[str]:
    """URLs of the best hits; share: of the best one's score that a hit needs."""
    hits = kept.search(query, limit=most).hits
    return [str(hit.url) for hit in hits if hit.score >= share * hits[0].score]


def _known(kept: Collection, spec: str) -> str:
    """The URL, if the collection has it."""
    try:
        url = kept.meant(spec)
    except InvalidUrl:
        url = None
    if url is None or not kept.knows(url):
        raise UsageError(
            f"{spec!r} is no file or folder here and no page of the collection. Examples are a folder, a file, a URL, a pattern (https://example.org/films/*),"
            f' {SEARCH}"..." or {WORDS}"..."'
        )
    return str(url)


def _of_pages(kept: Collection, urls: Iterable[str], positive: bool) -> Iterator[Example]:
    for page in pages_of(kept, [url_id(canonical(url)) for url in urls]):
        if text := text_of_page(page):
            yield Example(text, positive, site_key(page.url), page.url)


def pages_of(kept: Collection, ids: Iterable[UrlId]) -> Iterator[PageBlocks]:
    """Those of the URLs that are pages, read by a connection of their own: the collection's may have a time limit, and work to do."""
    connection = reading.connect(kept.folder)
    try:
        with reading.reading():
            yield from block_rows.pages_of(connection, ids)
    finally:
        connection.close()


def text_of_page(page: PageBlocks) -> str:
    """What of it is judged; empty where it has no text."""
    return content_text(page.title, page.blocks, page.parts) if page.blocks else ""


def _of_files(path: Path, positive: bool) -> Iterator[Example]:
    """A file, or all below a folder but hidden ones, by their names."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))[:FILES_MOST]
    for file in files:
        if text := text_of_file(file):
            yield Example(text, positive, str(path), str(file))


def text_of_file(file: Path) -> str:
    """What of it is judged, whatever its format. Raises UsageError for one that cannot be read."""
    try:
        with file.open("rb") as opened:
            body = opened.read(FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    suffix = "".join(sign for sign in file.suffix.lower() if sign.isascii() and (sign.isalnum() or sign == "."))
    document = understand(canonical(f"{PAGE_FILES}example{suffix}"), Fetched(200, Headers(), body))
    return content_text(document.title, document.blocks, None) if document.blocks else ""
