"""Which pages hold these words? The index of a collection: made anew from the collection whenever it is missing, damaged or of another version.

A folder with the engine's files and `periplus.json`: the version, whose collection it is, and the last change that it holds. That file is
written after the engine's commit; a kill between the two has those changes indexed again, each page in place of its earlier self.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tantivy

from periplus.errors import StoreError
from periplus.model.search import PageToIndex
from periplus.model.web import UrlId
from periplus.search.drafts import Drafts
from periplus.search.fields import ID, WHOLE, WORDS, Draft, document, drafted, schema

FOLDER = "search"
STATE = "periplus.json"
LOCK = "search.lock"  # beside the index, held by whoever writes it; the file itself says nothing, and stays
VERSION = 2  # of fields and terms: an index of another one is made anew
HEAP_BYTES = 96_000_000  # the engine writes a segment when so much is collected
NOTHING = (-(1 << 63), 0)  # the position of an empty index: before any other


@dataclass(frozen=True, slots=True)
class IndexState:
    """What an index says of itself. position: up to where it follows the collection; whoever follows knows what the numbers mean,
    here a later position is the greater one. settled: ranks and the words of links, which need all pages, are of that position too."""

    collection: str
    position: tuple[int, int]
    settled: bool = False
    version: int = VERSION


class IndexBusy(Exception):
    """Another process writes to the index."""


def read_state(folder: Path) -> IndexState | None:
    """What the index in folder (a collection's) says of itself; None where there is none that this program knows."""
    try:
        content = json.loads((folder / FOLDER / STATE).read_text("utf-8"))
        first, second = content["position"]
        state = IndexState(str(content["collection"]), (int(first), int(second)), bool(content["settled"]), int(content["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return state if state.version == VERSION else None


def _write_state(folder: Path, state: IndexState) -> None:
    draft = folder / FOLDER / f"{STATE}.new"
    with draft.open("w", encoding="utf-8") as file:
        json.dump({"version": state.version, "collection": state.collection, "position": state.position, "settled": state.settled}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / FOLDER / STATE)


def open_index(folder: Path) -> tantivy.Index | None:
    """The index in folder, to be read or written; None where there is none, or a damaged one."""
    try:
        index = tantivy.Index.open(str(folder / FOLDER))
    except (ValueError, OSError):  # the engine's errors
        return None
    return _prepared(index)


def _prepared(index: tantivy.Index) -> tantivy.Index:
    index.register_tokenizer(WORDS, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.register_tokenizer(WHOLE, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).build())
    return index


class IndexWriter:
    """Takes pages in. One process at a time writes; the kernel frees the lock when its holder dies."""

    def __init__(self, folder: Path, collection: str) -> None:
        """collection: what tells it from others. An index that is not this collection's, or unreadable, gives way to an empty one.
        Raises IndexBusy, StoreError."""
        self._folder = folder
        with contextlib.ExitStack() as held:
            held.callback(os.close, _locked(folder))
            state = read_state(folder)
            index = open_index(folder) if state is not None and state.collection == collection else None
            if index is None or state is None:
                index, state = _emptied(folder), IndexState(collection, NOTHING)
            self._state = state
            with _translated(folder):
                self._writer = index.writer(HEAP_BYTES, 1)  # one thread of the engine: while it writes, this one cuts words
                self._drafts = held.enter_context(contextlib.closing(Drafts(folder)))
            self._held = held.pop_all()

    @property
    def position(self) -> tuple[int, int]:
        """Up to where the index follows the collection; NOTHING: it is empty."""
        return self._state.position

    @property
    def settled(self) -> bool:
        return self._state.settled

    def put(self, pages: Iterable[PageToIndex], *, heard: bool = True) -> int:
        """Takes the pages in, each in place of its earlier self; says how many. heard: what others call them is known; else it comes by `say`."""
        count = 0
        for page in pages:
            draft = drafted(page)
            self._put(draft, page.anchors)
            if heard:
                self._drafts.forget(page.url_id)
            else:
                self._drafts.keep(draft)
            count += 1
        return count

    def say(self, url_id: UrlId, anchors: Sequence[str]) -> bool:
        """Takes in what others call a page that was put before. False: what it was put as is not kept, and it has to be put again."""
        draft = self._drafts.find(url_id)
        if draft is not None:
            self._put(draft, anchors)
        return draft is not None

    def _put(self, draft: Draft, anchors: Sequence[str]) -> None:
        with _translated(self._folder):
            self._writer.delete_documents_by_term(ID, draft.url_id)
            self._writer.add_document(document(draft, anchors))

    def remove(self, ids: Iterable[UrlId]) -> None:
        with _translated(self._folder):
            for url_id in ids:
                self._writer.delete_documents_by_term(ID, url_id)
                self._drafts.forget(url_id)

    def clear(self) -> None:
        """Removes every page."""
        with _translated(self._folder):
            self._writer.delete_all_documents()
        self.commit(NOTHING)

    def commit(self, position: tuple[int, int], *, settled: bool = False) -> None:
        """Makes searchable, and safe, what was put and removed. The arguments are what the index then says of itself."""
        with _translated(self._folder):
            self._writer.commit()
            self._state = IndexState(self._state.collection, position, settled)
            _write_state(self._folder, self._state)

    def close(self) -> None:
        """Waits for the engine's own threads; what was not committed is forgotten."""
        with self._held, _translated(self._folder):
            self._writer.wait_merging_threads()


def _emptied(folder: Path) -> tantivy.Index:
    """A new index in place of what is there."""
    where = folder / FOLDER
    with _translated(folder):
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True, exist_ok=True)
        return _prepared(tantivy.Index(schema(), str(where)))


def _locked(folder: Path) -> int:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"the collection in {folder} cannot be written: {error.strerror}. Is the disk full, or the folder read-only?") from error
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on this system: the engine has one of its own
        pass
    except BlockingIOError:
        os.close(lock)
        raise IndexBusy from None
    return lock


@contextlib.contextmanager
def _translated(folder: Path) -> Iterator[None]:
    """The engine's errors, and the disk's, as ours."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise StoreError(f"the search index in {folder / FOLDER} cannot be written: {error}. Is the disk full? Delete that folder and search again.") from error
