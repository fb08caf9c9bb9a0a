"""The full-text index of a collection: fields, drafts (pages cut into terms) and ranks."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import uuid
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import compress, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import tantivy
from xxhash import xxh3_64_intdigest

from periplus.children import private_files
from periplus.document.words import WORD_CHARS, BlockTexts, TextCutter, fold_form, forms, shown_forms, table
from periplus.errors import StoreError
from periplus.model.page import BLOCK_KIND_CODES, POSITION_CODES, TEXT_PARTS, BlockKind, Blocks, Part, Position
from periplus.model.search import PageToIndex
from periplus.model.web import UrlId
from periplus.urls.hosts import host_name, registered_domain
from periplus.values import frozen

if TYPE_CHECKING:
    from periplus.model.arrays import Floats, Ints

# Fields of terms, in order
TITLE, ANCHOR, HEADING, TEXT, NAVIGATION, ADDRESS = "title", "anchor", "heading", "text", "navigation", "url"
FORMS, NAMES, DEFINED = "forms", "names", "defined"  # spellings; whole titles; names that a page defines
SITE, HOST, TYPE, MEDIA, LANGUAGE, YEAR, IS = "site", "host", "type", "media", "language", "year", "is"  # labels
NOINDEX = "noindex"  # the only value of `is`
# Numbers; `said` is the digest of the anchor texts of links to the page
ID, TWIN, WHEN, SAID = "id", "twin", "when", "said"
TERM_FIELDS = (TITLE, ANCHOR, HEADING, TEXT, NAVIGATION, ADDRESS)
WORDS, WHOLE = "words", "raw"  # analysers: split at blanks; unchanged
MOST_ANCHORS = 50  # distinct anchor texts: more add nothing to a page that a whole site links to
NAME_CHARS = 200  # longer titles are never typed as queries
# Separates blocks, so that no phrase spans two of them; ASCII is the fastest to process
BETWEEN = "qqblockqq"
_BREAK = f"\n{BETWEEN}\n"
# Pads the anchor and heading fields. Many pages have neither, so the average length would be so short that BM25 treats
# three words as a long text, in which one hit scores nearly nothing.
_PADDING = " ".join([BETWEEN] * 8)
_PARTS_OF_TITLE = re.compile(r"\s+[-–—|·•»:/]+\s+|\s*[|»—]\s*|:\s+")
_DEFINITIONS = ("dt", "dt.", "dt#")  # prefixes of the last step of a block's path
_RUN = re.compile(r"[\w.:]+")
_NAME = re.compile(r"\w*(?:[a-z][A-Z]|\w[._:]+\w)")  # how a name in a heading begins: RewriteRule, pg_dump, os.path
_VALUE = re.compile(r"[=\[<(].*", re.DOTALL)
_DOTS = re.compile(r"(?<=\w)(?:\.|::)(?=\w)")
_AROUND = " \t\n¶-:;,.\"'`“”"
MOST_DEFINITIONS = 2_000  # blocks per page
_MENUS = frozenset(
    POSITION_CODES[position] for position in (Position.NAV, Position.FOOTER, Position.HEADER, Position.ASIDE)
)
_TITLE, _HEADING = BLOCK_KIND_CODES[BlockKind.TITLE], BLOCK_KIND_CODES[BlockKind.HEADING]
_NAVIGATION_GROUP = 3
_IS_MENU = {part: part not in TEXT_PARTS for part in Part}
_GROUPS = {1: HEADING, 2: TEXT, _NAVIGATION_GROUP: NAVIGATION}  # of blocks
_IS_HEADING = bytes(kind == _HEADING for kind in range(256))
_GROUP_OF_KIND = bytes({_TITLE: 0, _HEADING: 1}.get(kind, 2) for kind in range(256))
_TYPE_NAMES = {
    "application/xhtml+xml": "html",
    "application/msword": "doc",
    "text/plain": "txt",
    "application/rtf": "rtf",
}
_TYPE_NAMES |= {
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.oasis.opendocument.text": "odt",
}
HELD_BYTES = 16_000_000  # in memory: about 750 pages of 4,000 words; packing and reading them back takes 0.1 ms each
MOST_BYTES = 1 << 32  # about 400,000 pages of 4,000 words; further pages are read again from the collection
ROOM_SHARE = 4  # at most this fraction of the free disk space: the crawl needs the rest
LATE_DRAFTS = 50_000  # entries in the dictionary, 130 bytes each; entries moved to the arrays take 16
LEVEL = 1  # 50 us for a page of a manual, compressed to a third
_SIZE_BITS = 30  # a place in the file packs the offset and, in the low bits, the length
FOLDER = "search"
STATE = "periplus.json"
SEARCH_REQUEST_FILE = "asked"  # a file; its mtime is the time of the last search that lacked pages during a crawl
FRESH_SEARCH_S = 60.0  # for this long after a search new pages are committed as they come
COMMIT_FILE = "meta.json"  # written by the engine with each commit
LOCK = "search.lock"  # beside the index, locked by its writer; the file is empty and is never deleted
VERSION = 3  # of fields and terms: an index with another version is rebuilt
HEAP_BYTES = 96_000_000  # the engine writes a segment when it has collected this much
# Bytes between two commits. Otherwise 10,000 pages may queue for the engine's thread: 100 MB of short pages, 1 GB of
# long ones
QUEUED_BYTES = 32_000_000
NOTHING = (-(1 << 63), 0)  # the position of an empty index, before any other
FILE = "ranks"
_ENTRY_BYTES = 9
_MOST = 255


def schema() -> tantivy.Schema:
    """The schema. Only numbers are stored; titles and snippets are read from the collection."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field(ID, indexed=True, fast=True)
    builder.add_integer_field(TWIN, fast=True)
    builder.add_integer_field(SAID, fast=True)
    builder.add_integer_field(WHEN, indexed=True, fast=True)
    for name in TERM_FIELDS:
        builder.add_text_field(name, tokenizer_name=WORDS, index_option="position")
    builder.add_text_field(FORMS, tokenizer_name=WORDS, index_option="basic")
    for name in (NAMES, DEFINED, HOST, TYPE, IS):
        builder.add_text_field(name, tokenizer_name=WHOLE, index_option="basic")
    for name in (SITE, LANGUAGE, YEAR, MEDIA):
        builder.add_text_field(name, tokenizer_name=WHOLE, index_option="basic", fast=True)
    return builder.build()


class Draft(NamedTuple):
    """A page as the engine takes it, without anchor texts: they are complete only after all other pages are read."""

    url_id: UrlId
    twin: int
    when: int
    language: str
    texts: Sequence[tuple[str, str]]  # (field, terms separated by blanks, or a label), in order
    spellings: str  # separated by blanks, each once


def draft_page(page: PageToIndex, cutter: TextCutter) -> Draft:
    """Cuts the page into terms. cutter: made with the separator BETWEEN."""
    cutter.begin_page()
    of_block = BlockTexts(page.blocks)
    texts = [(TITLE, cutter.terms(page.title, page.language))] if page.title else []
    for language, groups in groups_of_languages(page):
        texts += [
            (field, cutter.block_terms(of_block, groups, group, language, spelled=field != NAVIGATION))
            for group, field in _GROUPS.items()
            if group in groups
        ]
    padding = cutter.terms(_PADDING, page.language, spelled=False)
    texts += [(ANCHOR, padding), (HEADING, padding)]
    texts.append((ADDRESS, cutter.terms(_BREAK.join(address_words(page.url)), "")))
    texts += [(NAMES, name) for name in names(page, of_block)]
    texts += [(DEFINED, name) for name in definitions(page.blocks, of_block)]
    texts += labels(page)
    twin = int.from_bytes(page.folded[:8], "big", signed=True)
    return Draft(page.url_id, twin, int(page.when), page.language, texts, cutter.spellings(BETWEEN))


def document(draft: Draft, anchors: Sequence[str]) -> tantivy.Document:
    """The page as an engine document. anchors: distinct anchor texts of links to it."""
    document = tantivy.Document()
    document.add_integer(ID, draft.url_id)
    document.add_integer(TWIN, draft.twin)
    document.add_integer(SAID, anchor_digest(anchors))
    document.add_integer(WHEN, draft.when)
    spellings = draft.spellings
    if anchors:
        words = forms(_BREAK.join(anchors[:MOST_ANCHORS]))
        document.add_text(ANCHOR, _terms(words, draft.language))
        spaced = f" {spellings} {BETWEEN} "  # substring tests are faster than splitting it into words
        spellings = " ".join([spellings, *(form for form in shown_forms(words) if f" {form} " not in spaced)])
    for field, text in draft.texts:
        document.add_text(field, text)
    document.add_text(FORMS, spellings)
    return document


def _terms(words: Sequence[str], language: str) -> str:
    return " ".join(map(table(language).__getitem__, words))


def anchor_digest(anchors: Sequence[str]) -> int:
    """Digest of anchor texts, to detect that they changed since they were indexed. 0 if there are none."""
    return xxh3_64_intdigest("\n".join(anchors[:MOST_ANCHORS]).encode("utf-8", "replace")) - (1 << 63) if anchors else 0


def groups_of_languages(page: PageToIndex) -> Iterator[tuple[str, bytes]]:
    """Yields (language, for each block the key in _GROUPS of its field; 0: not indexed, or in another language)."""
    import numpy as np  # searches need none of it: 40 ms

    blocks = page.blocks
    groups = np.frombuffer(blocks.kinds.translate(_GROUP_OF_KIND), np.uint8)
    parts = parts_or_guess(blocks, page.parts)
    menus = np.frombuffer(bytes(map(_IS_MENU.__getitem__, parts)), np.uint8)
    groups = np.where(menus & (groups > 0), np.uint8(_NAVIGATION_GROUP), groups)
    if not blocks.language_names:
        yield page.language, groups.tobytes()
        return
    numbers: dict[str, int] = {}
    number_of = [numbers.setdefault(name or page.language, len(numbers)) for name in blocks.language_names]
    own = np.array(number_of).take(np.asarray(blocks.languages))
    for language, number in numbers.items():
        yield language, np.where(own == number, groups, np.uint8(0)).tobytes()


def parts_or_guess(blocks: Blocks, parts: Sequence[Part]) -> Sequence[Part]:
    """The parts of the blocks. For an unmarked page, blocks in menus, headers and footers count as navigation."""
    if len(parts) == len(blocks):
        return parts
    return [
        Part.NAVIGATION if position in _MENUS and kind != _HEADING else Part.CONTENT
        for kind, position in zip(blocks.kinds, blocks.positions, strict=True)
    ]


def address_words(url: str) -> tuple[str, str]:
    """Host and path of a URL, as text."""
    host, slash, path = url.partition("://")[2].partition("/")
    return host.partition(":")[0], unquote(slash + path)


def names(page: PageToIndex, of_block: Callable[[int], str]) -> set[str]:
    """Names that find the page as an exact title: title, main heading, and the first part of titles like `Page - Site`.

    of_block: the text of a block by its number.
    """
    blocks = page.blocks
    first = (number for number, level in enumerate(blocks.levels) if level == 1 and blocks.kinds[number] == _HEADING)
    whole = [page.title, *map(of_block, islice(first, 1))]
    parts = [part for title in whole for part in (title, *_PARTS_OF_TITLE.split(title)[:1])]
    return {name for name in map(whole_name, parts) if name}


def definitions(blocks: Blocks, of_block: Callable[[int], str]) -> set[str]:
    """Names that the page defines in definition lists (`dt`) and signatures, in lower case: `os.path.join`.

    The parts after a dot (`~join`, `~path.join`) and names in headings are added with a "~".
    """
    defining = {place for place, path in enumerate(blocks.path_names) if _is_defining(path)}
    places = blocks.paths if len(blocks.paths) else bytes(len(blocks))
    chosen = compress(count(), map(defining.__contains__, places)) if defining else ()
    shares = blocks.shares
    names = set[str]()
    for at in islice(chosen, MOST_DEFINITIONS):
        text = of_block(at)
        if not len(shares) or 0 < shares[at] <= len(text) // 2:  # otherwise an entry of an index that links elsewhere
            pieces = [piece.split() for piece in _VALUE.sub("", text[:NAME_CHARS]).split(",")]
            names.update(name for words in pieces if words for name in (" ".join(words), words[-1]))
    headings = "\n".join([of_block(at)[:NAME_CHARS] for at in compress(count(), blocks.kinds.translate(_IS_HEADING))])
    runs = set(_RUN.findall(" ".join(set(headings.split()))))  # headings repeat many words
    mentioned = set(filter(_NAME.match, runs))
    whole = {defined_name(name) for name in names} - {""}
    parts = {name[dot.end() :] for name in whole for dot in _DOTS.finditer(name)}
    return whole | {"~" + name for name in parts.union(map(defined_name, mentioned)) - whole}


def _is_defining(path: str) -> bool:
    """Whether a path ends with a definition term or a signature."""
    if "dt" not in path and "signature" not in path:  # nearly all
        return False
    step = path[path.rfind("/") + 1 :]
    return step[:3] in _DEFINITIONS or "signature" in step


def defined_name(text: str) -> str:
    """Normalised name of a definition: lower case, without its value and surrounding punctuation."""
    return _VALUE.sub("", text).strip(_AROUND).lower()[:WORD_CHARS]


def whole_name(text: str) -> str:
    """Normalised title: its words without case and diacritics."""
    return fold_form(" ".join(forms(text)))[:NAME_CHARS] if len(text) <= 4 * NAME_CHARS else ""


def labels(page: PageToIndex) -> Iterator[tuple[str, str]]:
    """Yields (field, value) pairs that searches filter by."""
    yield SITE, page.site
    yield LANGUAGE, primary(page.language)
    yield YEAR, str(datetime.fromtimestamp(page.when, UTC).year)
    yield MEDIA, page.media_type
    yield from [(IS, NOINDEX)] * page.noindex
    yield from ((HOST, host) for host in dict.fromkeys((str(page.site), *hosts(host_name(page.url)))))
    yield from ((TYPE, name) for name in dict.fromkeys(type_names(page.media_type)))


def primary(language: str) -> str:
    return language.lower().replace("_", "-").partition("-")[0]


def hosts(name: str) -> list[str]:
    """A host and its parent domains, up to the registered domain."""
    top = registered_domain(name)
    names = [name]
    while name != top and "." in name:
        name = name.partition(".")[2]
        names.append(name)
    return names


def type_names(media_type: str) -> tuple[str, ...]:
    """Names for a media type in queries: `application/pdf`, `application`, `pdf`."""
    major, _, minor = media_type.partition("/")
    return media_type, major, minor, _TYPE_NAMES.get(media_type, minor)


# During a crawl most links to a page are not known yet, and the engine cannot update a part of a document. Therefore
# drafts are kept until the crawl ends or a search needs them: the first ones in memory, the rest compressed in an
# unnamed temporary file. Both vanish with the process; a later process reads those pages from the collection again.


class Drafts:
    """Drafts by page, as far as there is space for them."""

    def __init__(self, folder: Path) -> None:
        """folder: its disk holds the temporary file."""
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by `close`
        self._end = 0
        # Places in the file; 0 = deleted. Most are in arrays, sorted by page
        self._late: dict[UrlId, int] = {}
        self._ids: Sequence[int] = array("q")
        self._places: Sequence[int] = array("q")
        self._held: dict[UrlId, Draft] = {}
        self._held_bytes = 0
        import zstandard

        self._writer, self._reader = zstandard.ZstdCompressor(level=LEVEL), zstandard.ZstdDecompressor()

    def close(self) -> None:
        self._file.close()

    @property
    def is_full(self) -> bool:
        return self._end > 0 and self._end > min(
            MOST_BYTES, (self._end + shutil.disk_usage(self._folder).free) // ROOM_SHARE
        )

    def keep(self, draft: Draft) -> None:
        """Stores a draft, replacing the page's earlier one."""
        self.forget(draft.url_id)
        size = _size_bytes(draft)
        if self._held_bytes + size <= HELD_BYTES:
            self._held[draft.url_id] = draft
            self._held_bytes += size
            return
        data = self._writer.compress(_pack(draft))
        with contextlib.suppress(OSError):  # the disk is full; drafts are only a cache
            self._file.seek(self._end)
            self._file.write(data)
            self._file.flush()
            self._note(draft.url_id, self._end << _SIZE_BITS | len(data))
            self._end += len(data)

    def forget(self, url_id: UrlId) -> None:
        draft = self._held.pop(url_id, None)
        self._held_bytes -= _size_bytes(draft) if draft is not None else 0
        if self._place(url_id):
            self._note(url_id, 0)

    def _note(self, url_id: UrlId, place: int) -> None:
        self._late[url_id] = place
        if len(self._late) >= LATE_DRAFTS:
            import numpy as np

            late = np.array([*self._late.items()], np.int64)
            ids, first = np.unique(np.concatenate((late[:, 0], self._ids)), return_index=True)
            places = np.concatenate((late[:, 1], self._places))[first]
            self._ids, self._places = array("q", ids.tobytes()), array("q", places.tobytes())
            self._late = {}

    def _place(self, url_id: UrlId) -> int:
        place = self._late.get(url_id)
        if place is not None:
            return place
        at = bisect_left(self._ids, url_id)
        return self._places[at] if at < len(self._ids) and self._ids[at] == url_id else 0

    def find(self, url_id: UrlId) -> Draft | None:
        """The page's draft, or None if it was not kept."""
        place = self._place(url_id)
        if not place:
            return self._held.get(url_id)
        self._file.seek(place >> _SIZE_BITS)
        return _unpack(self._reader.decompress(self._file.read(place & ((1 << _SIZE_BITS) - 1))))


def _size_bytes(draft: Draft) -> int:
    """Size of a draft in memory, with 120 bytes for each pair."""
    return sum([120 + sys.getsizeof(text) for _, text in draft.texts]) + sys.getsizeof(draft.spellings)


def _pack(draft: Draft) -> bytes:
    """A line of JSON, then one line per terms text and the spellings: they have no line feeds, and JSON is slow."""
    terms = [(field, text) for field, text in draft.texts if field in TERM_FIELDS]
    others = [(field, text) for field, text in draft.texts if field not in TERM_FIELDS]
    head = json.dumps((draft.url_id, draft.twin, draft.when, draft.language, [field for field, _ in terms], others))
    return "\n".join([head, *(text for _, text in terms), draft.spellings]).encode("utf-8", "surrogatepass")


def _unpack(data: bytes) -> Draft:
    head, *texts, spellings = data.decode("utf-8", "surrogatepass").split("\n")
    url_id, twin, when, language, fields, others = json.loads(head)
    return Draft(url_id, twin, when, language, [*zip(fields, texts, strict=True), *others], spellings)


# The folder holds the engine's files and `periplus.json`: the version, the collection, and the last change that the
# index includes. `periplus.json` is written after the engine's commit; after a crash between the two, those changes are
# indexed again, which is idempotent.


@frozen
class IndexState:
    """Metadata of an index.

    position: the change of the collection up to which the index is complete. The caller defines the numbers; a greater
    position is later. settled: ranks and anchor texts, which depend on all pages, are complete for that position too.
    """

    collection: str
    position: tuple[int, int]
    settled: bool = False
    version: int = VERSION


class IndexBusy(Exception):
    """Another process writes to the index."""


def read_state(folder: Path) -> IndexState | None:
    """Metadata of the index of a collection's folder, or None if there is no index of this version."""
    try:
        content = json.loads((folder / FOLDER / STATE).read_text("utf-8"))
        first, second = content["position"]
        state = IndexState(
            str(content["collection"]), (int(first), int(second)), bool(content["settled"]), int(content["version"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return state if state.version == VERSION else None


def write_state(folder: Path, state: IndexState) -> None:
    """Stores the metadata of the index."""
    draft = folder / FOLDER / f"{STATE}.new"
    with draft.open("w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / FOLDER / STATE)


def open_index(folder: Path) -> tantivy.Index | None:
    """Opens the index of a folder; None if it is missing or damaged."""
    try:
        index = tantivy.Index.open(str(folder / FOLDER))
    except (ValueError, OSError):  # the engine's errors
        return None
    return _register_analysers(index)


def join_indexes(folders: Sequence[Path], into: Path) -> list[int]:
    """Creates in `into` an index that links to the segments of several collections' indexes.

    The engine then computes statistics over all of them. Returns the position of its folder for each segment. Folders
    without an index of this version are skipped; if all are, nothing is created.
    """
    place = into / FOLDER
    place.mkdir()
    meta: dict[str, Any] = {}
    segments, origins = list[dict[str, Any]](), list[int]()
    for origin, folder in enumerate(folders):
        own = (folder / FOLDER).resolve()
        if read_state(folder) is None:
            continue
        with contextlib.suppress(OSError):  # rebuilt at this moment
            meta = json.loads((own / COMMIT_FILE).read_bytes())
            for segment in meta["segments"]:
                name = uuid.UUID(int=len(segments))  # a copied collection has the same segment names as its original
                for path in own.glob(f"{uuid.UUID(segment['segment_id']).hex}.*"):
                    (place / (name.hex + path.name[len(name.hex) :])).symlink_to(path)
                segments.append(segment | {"segment_id": str(name)})
                origins.append(origin)
    if meta:
        (place / COMMIT_FILE).write_text(json.dumps(meta | {"segments": segments}), "utf-8")
    return origins


def _register_analysers(index: tantivy.Index) -> tantivy.Index:
    index.register_tokenizer(WORDS, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.register_tokenizer(WHOLE, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).build())
    return index


class IndexWriter:
    """Writes pages to the index. One process at a time: the kernel releases the lock when its holder dies."""

    def __init__(self, folder: Path, collection: str) -> None:
        """collection: its unique id.

        An index of another collection, or an unreadable one, is replaced with an empty one. Raises IndexBusy,
        StoreError.
        """
        self._folder = folder
        with contextlib.ExitStack() as held:
            held.enter_context(only_writer(folder))
            state = read_state(folder)
            index = open_index(folder) if state is not None and state.collection == collection else None
            if index is None or state is None:
                index, state = _create_empty(folder), IndexState(collection, NOTHING)
                write_state(folder, state)
            self._state, self._cutter = state, TextCutter(BETWEEN)
            with translate_errors(folder):
                # One engine thread: it writes while this thread cuts words
                self._writer = index.writer(HEAP_BYTES, 1)
                self._drafts = held.enter_context(contextlib.closing(Drafts(folder)))
            self._queued_bytes = 0  # since the engine's last commit
            self._held = held.pop_all()

    @property
    def position(self) -> tuple[int, int]:
        """The change up to which the index is complete; NOTHING if it is empty."""
        return self._state.position

    @property
    def is_settled(self) -> bool:
        return self._state.settled

    def put(self, pages: Iterable[PageToIndex]) -> None:
        """Indexes the pages, replacing earlier versions."""
        for page in pages:
            self._drafts.forget(page.url_id)
            self._put(draft_page(page, self._cutter), page.anchors)

    def keep(self, pages: Iterable[PageToIndex]) -> None:
        """Cuts pages into terms and keeps the drafts, as far as there is space. Anchor texts follow in `put_draft`."""
        for page in pages:
            self._drafts.forget(page.url_id)
            if not self._drafts.is_full:
                self._drafts.keep(draft_page(page, self._cutter))

    def put_draft(self, url_id: UrlId, anchors: Sequence[str]) -> bool:
        """Indexes a page from its draft, replacing an earlier version. anchors: anchor texts of links to it.

        False: there is no draft; call `put` instead.
        """
        draft = self._drafts.find(url_id)
        if draft is not None:
            self._put(draft, anchors)
        return draft is not None

    def _put(self, draft: Draft, anchors: Sequence[str]) -> None:
        self._queued_bytes += _size_bytes(draft)
        with translate_errors(self._folder):
            self._writer.delete_documents_by_term(ID, draft.url_id)
            self._writer.add_document(document(draft, anchors))
            if self._queued_bytes > QUEUED_BYTES:
                self._writer.commit()
                self._queued_bytes = 0

    def remove(self, ids: Iterable[UrlId]) -> None:
        with translate_errors(self._folder):
            for url_id in ids:
                self._writer.delete_documents_by_term(ID, url_id)
                self._drafts.forget(url_id)

    def clear(self) -> None:
        """Removes every page."""
        with translate_errors(self._folder):
            self._writer.delete_all_documents()
        self.commit(NOTHING)

    def commit(self, position: tuple[int, int], *, settled: bool = False) -> None:
        """Commits all changes and then stores position and settled."""
        with translate_errors(self._folder):
            self._writer.commit()
            self._queued_bytes = 0
            self._state = IndexState(self._state.collection, position, settled)
            write_state(self._folder, self._state)

    def close(self) -> None:
        """Waits for the engine's threads; uncommitted changes are lost."""
        with self._held, translate_errors(self._folder):
            self._writer.wait_merging_threads()


def _create_empty(folder: Path) -> tantivy.Index:
    """A new index in place of the existing one."""
    where = folder / FOLDER
    with translate_errors(folder):
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True, exist_ok=True)
        return _register_analysers(tantivy.Index(schema(), str(where)))


def ask(folder: Path, now: float) -> bool:
    """Asks the indexing process to commit soon, because of a search. False if that was already requested."""
    path = folder / FOLDER / SEARCH_REQUEST_FILE
    earlier = is_asked(folder, now)
    with contextlib.suppress(OSError):  # no index yet, or a read-only disk
        path.touch()
        os.utime(path, (now, now))
    return not earlier


def is_asked(folder: Path, now: float) -> bool:
    """Whether there was a search within the last FRESH_SEARCH_S seconds."""
    try:
        return abs(now - (folder / FOLDER / SEARCH_REQUEST_FILE).stat().st_mtime) < FRESH_SEARCH_S
    except OSError:
        return False


def is_written(folder: Path) -> bool:
    """Whether a process holds the writer's lock."""
    try:
        with only_writer(folder):
            return False
    except IndexBusy:
        return True
    except StoreError:
        return False


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Holds the writer's lock. Raises IndexBusy, StoreError."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror}. Is the disk full, or the folder read-only?"
        ) from error
    with contextlib.closing(os.fdopen(lock)):
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on this system: the engine has its own
            pass
        except BlockingIOError:
            raise IndexBusy from None
        with private_files():
            yield


@contextlib.contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Translates errors of the engine and the disk to StoreError."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise StoreError(
            f"the search index in {folder / FOLDER} cannot be written: {error}. Is the disk full? Delete "
            "that folder and search again."
        ) from error


# Layout: page ids, ascending, then one byte of rank per page: `link_score` scaled to 0..255. The file is replaced as a
# whole and may be missing.


class Ranks:
    """Link ranks of the pages of a collection; unknown pages have 0."""

    def __init__(self, folder: Path) -> None:
        self._ids: array[int] = array("q")
        self._scores = b""
        try:
            content = (folder / FOLDER / FILE).read_bytes()
        except OSError:
            return
        count, rest = divmod(len(content), _ENTRY_BYTES)
        if not rest:
            self._ids.frombytes(content[: 8 * count])
            self._scores = content[8 * count :]
            if sys.byteorder == "big":
                self._ids.byteswap()

    def of(self, ids: Sequence[UrlId]) -> list[float]:
        """The rank of each page, 0 to 1."""
        return [self._of(url_id) / _MOST for url_id in ids]

    def _of(self, url_id: int) -> int:
        place = bisect_left(self._ids, url_id)
        return self._scores[place] if place < len(self._ids) and self._ids[place] == url_id else 0


def write_ranks(folder: Path, ids: Ints, scores: Floats) -> None:
    """Stores the ranks. ids: ascending; scores: 0 to 1."""
    import numpy as np

    draft = folder / FOLDER / f"{FILE}.new"
    draft.write_bytes(ids.astype("<i8").tobytes() + np.rint(_MOST * scores).astype(np.uint8).tobytes())
    draft.replace(folder / FOLDER / FILE)
