"""Exports pages as text for other programs: Markdown files, llms.txt, and chunks."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

from periplus.api.collection import Collection
from periplus.api.functions import open_collection
from periplus.api.page import Page
from periplus.errors import StoreError, UsageError
from periplus.model.page import TEXT_PARTS, Part
from periplus.model.tables import CHUNKS, Row
from periplus.present.writers import find_writer
from periplus.urls.files import FileNames
from periplus.values import Place, frozen
from periplus_agents.chunks import chunks
from periplus_agents.markdown import inline_text

Watch = Callable[[int, int], None]


@frozen
class TextExport:
    """Result of an export. same: pages left out as exact duplicates."""

    pages: int
    same: int
    files: int
    size_bytes: int


@contextlib.contextmanager
def _pages_at(place: Place, watch: Watch) -> Iterator[_Pages]:
    """place: a folder or a database address."""
    with open_collection(place) as collection:
        rows = list(collection.pages(state="fetched", columns=("url", "text_chars", "text_digest")))
        yield _Pages(len(rows), ((row, partial(_with_text, collection, row.url)) for row in rows), watch)


def _with_text(collection: Collection, url: str) -> Page | None:
    page = collection.page(url)
    return page if page.row.has_text else None


class _Pages:
    """Pages with text, closest to the start first, without exact duplicates.

    rows: of all pages, each with a function that reads the page, or returns None if it has no text.
    """

    def __init__(self, total: int, rows: Iterable[tuple[Row, Callable[[], Page | None]]], watch: Watch) -> None:
        self._total, self._rows, self._watch = total, rows, watch
        self.count = self.same = 0

    def __iter__(self) -> Iterator[Page]:
        texts: set[str] = set()
        for done, (row, read) in enumerate(self._rows):
            self._watch(done, self._total)
            if not row.text_chars:
                continue
            if row.text_digest in texts:
                self.same += 1
                continue
            texts.add(row.text_digest)
            if (page := read()) is not None:
                self.count += 1
                yield page
        if not self.count:
            raise UsageError("the collection has no page with text: keep_text was off, or it is empty")


def export_markdown(
    place: Place,
    target: Path,
    *,
    parts: frozenset[Part] = TEXT_PARTS,
    watch: Watch = lambda done, count: None,
) -> TextExport:
    """Writes each page as a Markdown file below target, with YAML front matter.

    place: a folder or a database address. parts: parts of pages to write. File names are valid on every file system.
    Raises UsageError if target is not empty or no page has text, NoCollection, StoreError.
    """
    _require_empty(target)
    names, size = FileNames(), 0
    with _pages_at(place, watch) as pages, _writing(target):
        for page in pages:
            data = (front_matter(page) + page.markdown(parts)).encode("utf-8", "replace")
            file = target / names.of(page.url, "text/markdown")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            size += len(data)
        return TextExport(pages.count, pages.same, pages.count, size)


def _require_empty(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} already exists: choose a new or empty folder")


@contextlib.contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror or error}. Is the disk full, or the folder read-only?"
        ) from error


def front_matter(page: Page) -> str:
    """The page's facts as YAML, with JSON-encoded values (valid YAML); unknown facts are left out."""
    row = page.row
    facts = {
        "url": row.url,
        "title": row.title,
        "description": row.description,
        "author": row.author,
        "date": row.date_published,
        "date_modified": row.date_modified,
        "last_modified": row.last_modified,
        "fetched": row.fetched_at,
        "language": row.language,
    }
    lines = [f"{name}: {json.dumps(str(value), ensure_ascii=False)}\n" for name, value in facts.items() if value]
    return f"---\n{''.join(lines)}---\n\n"


def export_llms(place: Place, target: Path, *, watch: Watch = lambda done, count: None) -> TextExport:
    """Writes llms.txt (title, summary, list of pages by section) and llms-full.txt (page contents) into target.

    Sections are top-level directories of URLs. Raises UsageError if one of the files exists or no page has text,
    NoCollection, StoreError. Format: llmstxt.org.
    """
    index, full = target / "llms.txt", target / "llms-full.txt"
    if there := [path for path in (index, full) if path.exists()]:
        raise UsageError(f"{there[0]} already exists: write into another folder, or remove it")
    sections: dict[str, list[str]] = {}
    home = about = ""
    with _pages_at(place, watch) as pages, _writing(target):
        target.mkdir(parents=True, exist_ok=True)
        with full.open("w", encoding="utf-8", errors="replace") as out:
            for page in pages:
                row = page.row
                title = inline_text(row.title or row.h1 or row.url)
                if not home:
                    home, about = title, inline_text(row.description or "")
                    out.write(f"# {home}\n")
                note = f": {inline_text(row.description)}" if row.description else ""
                sections.setdefault(_section(row.url), []).append(f"- [{title}]({row.url}){note}")
                out.write(f"\n---\n\nSource: {row.url}\n\n{page.markdown()}")
        text = f"# {home}\n" + (f"\n> {about}\n" if about else "")
        # sections with a single page are merged into Pages
        pairs = ((name if len(lines) > 1 else "Pages", lines) for name, lines in sections.items())
        merged: dict[str, list[str]] = {"Pages": []}
        for name, lines in pairs:
            merged.setdefault(name, []).extend(lines)
        text += "".join(f"\n## {name}\n\n" + "\n".join(lines) + "\n" for name, lines in merged.items() if lines)
        index.write_text(text, "utf-8", errors="replace")
        return TextExport(pages.count, pages.same, 2, index.stat().st_size + full.stat().st_size)


def _section(url: str) -> str:
    """Top-level directory of the URL; `Pages` for URLs in the root."""
    folder, slash, _ = urlsplit(url).path.removeprefix("/").partition("/")
    return inline_text(unquote(folder)) if slash and folder else "Pages"


def export_chunks(
    place: Place,
    path: Path,
    *,
    format: str = "",
    words: int = 300,
    parts: frozenset[Part] = TEXT_PARTS,
    watch: Watch = lambda done, count: None,
) -> TextExport:
    """Writes all pages in chunks of at most `words` words to a file, one row of CHUNKS each.

    format: jsonl, parquet, csv, ...; empty: from the file extension. parts: parts of pages to write. Raises UsageError,
    NoCollection, StoreError.
    """
    writer = find_writer(format or path.suffix.removeprefix(".").lower() or "jsonl")
    with _pages_at(place, watch) as pages, _writing(path):
        rows = chain.from_iterable(_rows(page, words, parts) for page in pages)
        writer.write(CHUNKS, rows, path)
        return TextExport(pages.count, pages.same, 1, path.stat().st_size)


def _rows(page: Page, words: int, parts: frozenset[Part]) -> Iterator[tuple[object, ...]]:
    row = page.row
    for number, chunk in enumerate(chunks(page.markdown_pieces(parts), words), 1):
        headings = " > ".join(chunk.headings)
        yield (
            f"{row.id & (2**64 - 1):016x}-{number}", row.url, row.title, headings, number, chunk.first, chunk.last,
            chunk.words, chunk.text, row.language, row.last_modified, row.fetched_at,
        )  # fmt: skip
