"""The full-text index of a collection: its fields, drafts and ranks."""

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
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import tantivy
import zstandard
from xxhash import xxh3_64_intdigest

from periplus.children import private_files
from periplus.document.words import WORD_CHARS, BlockTexts, TextCutter, folded, forms, shown_forms, table
from periplus.errors import StoreError
from periplus.model.arrays import Floats, Ints
from periplus.model.page import BLOCK_KIND_CODES, POSITION_CODES, TEXT_PARTS, BlockKind, Blocks, Part, Position
from periplus.model.search import PageToIndex
from periplus.model.web import UrlId
from periplus.urls.hosts import host_name, registered_domain
from periplus.values import frozen

# of terms, in order
TITLE, ANCHOR, HEADING, TEXT, NAVIGATION, ADDRESS = "title", "anchor", "heading", "text", "navigation", "url"
FORMS, NAMES, DEFINED = "forms", "names", "defined"  # of spellings; of whole titles; of names that a page defines
SITE, HOST, TYPE, MEDIA, LANGUAGE, YEAR, IS = "site", "host", "type", "media", "language", "year", "is"  # of labels
NOINDEX = "noindex"  # the one value of `is`
ID, TWIN, WHEN, SAID = "id", "twin", "when", "said"  # of numbers; said: the digest of the words of links to the page
TERM_FIELDS = (TITLE, ANCHOR, HEADING, TEXT, NAVIGATION, ADDRESS)
WORDS, WHOLE = "words", "raw"  # analysers: parted at blanks; as it is
MOST_ANCHORS = 50  # different ones: a page that a whole site names otherwise is not known better by the fifty-first
NAME_CHARS = 200  # a title that is longer is not typed
# stands between two blocks, so that no phrase goes from one into the next; ASCII, since that is read quickest
BETWEEN = "qqblockqq"
_BREAK = f"\n{BETWEEN}\n"
# Every page's words of links and headings are so many longer: many pages have none at all, which makes the average so
# short that the engine holds three words for a long text, in which one hit counts for nothing.
_PADDING = " ".join([BETWEEN] * 8)
_PARTS_OF_TITLE = re.compile(r"\s+[-–—|·•»:/]+\s+|\s*[|»—]\s*|:\s+")
_DEFINITIONS = ("dt", "dt.", "dt#")  # how the last step of a path begins
_NAME = re.compile(r"(?<![\w.:])(?=\w*[a-z][A-Z]|\w*\w[._:]+\w)[\w.:]+")  # in a heading: RewriteRule, pg_dump, os.path
_VALUE = re.compile(r"[=\[<(].*", re.DOTALL)
_DOTS = re.compile(r"(?<=\w)(?:\.|::)(?=\w)")
_AROUND = " \t\n¶-:;,.\"'`“”"
MOST_DEFINED = 2_000  # blocks of a page
_MENUS = frozenset(
    POSITION_CODES[position] for position in (Position.NAV, Position.FOOTER, Position.HEADER, Position.ASIDE)
)
_TITLE, _HEADING = BLOCK_KIND_CODES[BlockKind.TITLE], BLOCK_KIND_CODES[BlockKind.HEADING]
_NAVIGATION_GROUP = 3
_GROUPS = {1: HEADING, 2: TEXT, _NAVIGATION_GROUP: NAVIGATION}  # of blocks
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


def schema() -> tantivy.Schema:
    """The index's fields. Nothing is stored but numbers: what is shown of a page is read from the collection."""
    made = tantivy.SchemaBuilder()
    made.add_integer_field(ID, indexed=True, fast=True)
    made.add_integer_field(TWIN, fast=True)
    made.add_integer_field(SAID, fast=True)
    made.add_integer_field(WHEN, indexed=True, fast=True)
    for name in TERM_FIELDS:
        made.add_text_field(name, tokenizer_name=WORDS, index_option="position")
    made.add_text_field(FORMS, tokenizer_name=WORDS, index_option="basic")
    for name in (NAMES, DEFINED, HOST, TYPE, IS):
        made.add_text_field(name, tokenizer_name=WHOLE, index_option="basic")
    for name in (SITE, LANGUAGE, YEAR, MEDIA):
        made.add_text_field(name, tokenizer_name=WHOLE, index_option="basic", fast=True)
    return made.build()


class Draft(NamedTuple):
    """What the engine is given of a page, but for the words of links to it,
    of which the last come when all others were read.
    """

    url_id: UrlId
    twin: int
    when: int
    language: str
    texts: Sequence[tuple[str, str]]  # (field, terms parted by blanks, or a label), in order
    spellings: str  # parted by blanks, each once


def drafted(page: PageToIndex, cutter: TextCutter) -> Draft:
    """The page, cut into terms. cutter: with the word BETWEEN."""
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
    """The page, as the engine takes it. anchors: the words of links to it, each once."""
    made = tantivy.Document()
    made.add_integer(ID, draft.url_id)
    made.add_integer(TWIN, draft.twin)
    made.add_integer(SAID, said_digest(anchors))
    made.add_integer(WHEN, draft.when)
    spellings = draft.spellings
    if anchors:
        words = forms(_BREAK.join(anchors[:MOST_ANCHORS]))
        made.add_text(ANCHOR, _terms(words, draft.language))
        spaced = f" {spellings} {BETWEEN} "  # to look for some words takes less than to cut it into all of its own
        spellings = " ".join([spellings, *(form for form in shown_forms(words) if f" {form} " not in spaced)])
    for field, text in draft.texts:
        made.add_text(field, text)
    made.add_text(FORMS, spellings)
    return made


def _terms(words: Sequence[str], language: str) -> str:
    return " ".join(map(table(language).__getitem__, words))


def said_digest(anchors: Sequence[str]) -> int:
    """By which it is told whether the words of links to a page are still those that were indexed. 0: there are none."""
    return xxh3_64_intdigest("\n".join(anchors[:MOST_ANCHORS]).encode("utf-8", "replace")) - (1 << 63) if anchors else 0


def groups_of_languages(page: PageToIndex) -> Iterator[tuple[str, bytes]]:
    """(language, of each block in which field its text is: a place in _GROUPS; 0: in none, or of another language)."""
    blocks = page.blocks
    groups = np.frombuffer(blocks.kinds.translate(_GROUP_OF_KIND), np.uint8)
    parts = parts_or_guess(blocks, page.parts)
    menus = np.frombuffer(bytes([part not in TEXT_PARTS for part in parts]), np.uint8)
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
    """The blocks' parts; of a page not marked yet, what stands in menus, headers and footers is navigation."""
    if len(parts) == len(blocks):
        return parts
    return [
        Part.NAVIGATION if position in _MENUS and kind != _HEADING else Part.CONTENT
        for kind, position in zip(blocks.kinds, blocks.positions, strict=True)
    ]


def address_words(url: str) -> tuple[str, str]:
    """Host and path of a URL, to be read as text."""
    host, slash, path = url.partition("://")[2].partition("/")
    return host.partition(":")[0], unquote(slash + path)


def names(page: PageToIndex, of_block: Callable[[int], str]) -> set[str]:
    """By which words as a whole the page may be asked for: its title, main heading,
    and the parts of a title like `Page - Site`. of_block: the text of each of its blocks.
    """
    blocks = page.blocks
    first = (number for number, level in enumerate(blocks.levels) if level == 1 and blocks.kinds[number] == _HEADING)
    whole = [page.title, *map(of_block, islice(first, 1))]
    parts = [part for title in whole for part in (title, *_PARTS_OF_TITLE.split(title)[:1])]
    return {name for name in map(whole_name, parts) if name}


def definitions(blocks: Blocks, of_block: Callable[[int], str]) -> set[str]:
    """The names that a page defines: what its definition lists (`dt`) and signatures explain, as it is written but for
    case: `os.path.join`; and "~" with what stands behind a dot (`~join`, `~path.join`), and with names in headings.
    """
    defining = {place for place, path in enumerate(blocks.path_names) if _is_defining(path[path.rfind("/") + 1 :])}
    places = blocks.paths if len(blocks.paths) else bytes(len(blocks))
    chosen = [at for at, place in enumerate(places) if place in defining] if defining else []
    shares = blocks.shares
    names = set[str]()
    for at in chosen[:MOST_DEFINED]:
        text = of_block(at)
        if not len(shares) or 0 < shares[at] <= len(text) // 2:  # an index leads elsewhere
            pieces = [piece.split() for piece in _VALUE.sub("", text[:NAME_CHARS]).split(",")]
            names.update(name for words in pieces if words for name in (" ".join(words), words[-1]))
    headings = "\n".join([of_block(at)[:NAME_CHARS] for at, kind in enumerate(blocks.kinds) if kind == _HEADING])
    mentioned = set(_NAME.findall(headings))
    whole = {defined_name(name) for name in names} - {""}
    parts = {name[dot.end() :] for name in whole for dot in _DOTS.finditer(name)}
    return whole | {"~" + name for name in parts.union(map(defined_name, mentioned)) - whole}


@lru_cache(maxsize=1 << 14)  # of the last step: most paths are of one page alone
def _is_defining(step: str) -> bool:
    """Whether a path that ends so is that of what definition lists or signatures explain."""
    return step[:3] in _DEFINITIONS or "signature" in step


def defined_name(text: str) -> str:
    """What is compared where definitions are: a name as it is written, without case, value and marks around it."""
    return _VALUE.sub("", text).strip(_AROUND).lower()[:WORD_CHARS]


def whole_name(text: str) -> str:
    """What is compared where whole titles are: the words, without case and diacritics."""
    return folded(" ".join(forms(text)))[:NAME_CHARS] if len(text) <= 4 * NAME_CHARS else ""


def labels(page: PageToIndex) -> Iterator[tuple[str, str]]:
    """(field, value) of what a search is narrowed by."""
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
    """A host and what it lies within, up to the registered domain."""
    top = registered_domain(name)
    names = [name]
    while name != top and "." in name:
        name = name.partition(".")[2]
        names.append(name)
    return names


def type_names(media_type: str) -> tuple[str, ...]:
    """By what a media type may be asked for: `application/pdf`, `application`, `pdf`."""
    major, _, minor = media_type.partition("/")
    return media_type, major, minor, _TYPE_NAMES.get(media_type, minor)


# While a crawl goes on, most links to a page are not known yet, and the engine cannot change a part of a page. So what
# was made of it waits until the crawl ends, or somebody searches: the first pages in memory, the others compressed in a
# file without a name. Both end with the process: whoever comes after reads such a page from the collection.

HELD_BYTES = 32_000_000  # in memory: some 1,500 pages of 4,000 words; to pack and read them back takes .1 ms each
MOST_BYTES = 1 << 32  # some 400,000 pages of 4,000 words; further ones are read again
ROOM_SHARE = 4  # nor more than this part of the disk's room: the crawl needs it
LATE_DRAFTS = 50_000  # in a dictionary, 130 bytes each; of those before 16
LEVEL = 1  # 50 us a page of a manual, a third of its size
_SIZE_BITS = 30  # of a place in the file: the offset, then so many bits of the length


class Drafts:
    """Drafts by page, as far as there is room for them."""

    def __init__(self, folder: Path) -> None:
        """folder: on whose disk there is room."""
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # ended by `close`
        self._end = 0
        # places in the file; 0: forgotten. Of most in arrays, ascending by page
        self._late: dict[UrlId, int] = {}
        self._ids, self._places = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._held: dict[UrlId, Draft] = {}
        self._held_bytes = 0
        self._writer, self._reader = zstandard.ZstdCompressor(level=LEVEL), zstandard.ZstdDecompressor()

    def close(self) -> None:
        self._file.close()

    @property
    def is_full(self) -> bool:
        return self._end > min(MOST_BYTES, (self._end + shutil.disk_usage(self._folder).free) // ROOM_SHARE)

    def keep(self, draft: Draft) -> None:
        """In place of the page's earlier one."""
        self.forget(draft.url_id)
        size = _size_bytes(draft)
        if self._held_bytes + size <= HELD_BYTES:
            self._held[draft.url_id] = draft
            self._held_bytes += size
            return
        data = self._writer.compress(_packed(draft))
        with contextlib.suppress(OSError):  # the disk is full: this is a saving, not a duty
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
            late = np.array([*self._late.items()], np.int64)
            ids, places = np.concatenate((late[:, 0], self._ids)), np.concatenate((late[:, 1], self._places))
            self._ids, first = np.unique(ids, return_index=True)
            self._places, self._late = places[first], {}

    def _place(self, url_id: UrlId) -> int:
        place = self._late.get(url_id)
        if place is not None:
            return place
        at = int(np.searchsorted(self._ids, url_id))
        return int(self._places[at]) if at < len(self._ids) and self._ids[at] == url_id else 0

    def find(self, url_id: UrlId) -> Draft | None:
        """The page's draft; None: it was not kept."""
        place = self._place(url_id)
        if not place:
            return self._held.get(url_id)
        self._file.seek(place >> _SIZE_BITS)
        return _unpacked(self._reader.decompress(self._file.read(place & ((1 << _SIZE_BITS) - 1))))


def _size_bytes(draft: Draft) -> int:
    """Of a draft in memory, with 120 for each pair."""
    return sum([120 + sys.getsizeof(text) for _, text in draft.texts]) + sys.getsizeof(draft.spellings)


def _packed(draft: Draft) -> bytes:
    """A line of JSON, then terms and spellings, a line each: they hold no line feed, and are long to write as JSON."""
    terms = [(field, text) for field, text in draft.texts if field in TERM_FIELDS]
    others = [(field, text) for field, text in draft.texts if field not in TERM_FIELDS]
    head = json.dumps((draft.url_id, draft.twin, draft.when, draft.language, [field for field, _ in terms], others))
    return "\n".join([head, *(text for _, text in terms), draft.spellings]).encode("utf-8", "surrogatepass")


def _unpacked(data: bytes) -> Draft:
    head, *texts, spellings = data.decode("utf-8", "surrogatepass").split("\n")
    url_id, twin, when, language, fields, others = json.loads(head)
    return Draft(url_id, twin, when, language, [*zip(fields, texts, strict=True), *others], spellings)


# A folder with the engine's files and `periplus.json`: the version, whose collection it is, and the last change that it
# holds. That file is written after the engine's commit; a kill between the two has those changes indexed again, each
# page in place of its earlier self.

FOLDER = "search"
STATE = "periplus.json"
ASKED = "asked"  # a file whose time is that of the last search that lacked pages while a crawl went on
ASKED_S = 60.0  # so long after it pages are made searchable as they come
COMMITTED = "meta.json"  # the engine's own, written with each commit
LOCK = "search.lock"  # beside the index, held by whoever writes it; the file itself says nothing, and stays
VERSION = 3  # of fields and terms: an index of another one is made anew
HEAP_BYTES = 96_000_000  # the engine writes a segment when so much is collected
# of pages between two commits: else 10,000 may wait for the engine's thread, 100 MB of short ones, 1 GB of long ones
QUEUED_BYTES = 32_000_000
NOTHING = (-(1 << 63), 0)  # the position of an empty index: before any other


@frozen
class IndexState:
    """What an index says of itself.

    position: up to where it follows the collection; whoever follows knows what the numbers mean, here a later position
    is the greater one. settled: ranks and the words of links, which need all pages, are of that position too.
    """

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
        state = IndexState(
            str(content["collection"]), (int(first), int(second)), bool(content["settled"]), int(content["version"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return state if state.version == VERSION else None


def write_state(folder: Path, state: IndexState) -> None:
    """What the index in folder says of itself from now on."""
    draft = folder / FOLDER / f"{STATE}.new"
    with draft.open("w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
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


def joined(folders: Sequence[Path], into: Path) -> list[int]:
    """Makes in a folder an index of the segments of all of these (collections'), which are linked and not copied: the
    engine then counts words and lengths over all. Returns of each segment the place of its folder. Folders without an
    index that this program knows are left out; where there is none, nothing is made.
    """
    place = into / FOLDER
    place.mkdir()
    meta: dict[str, Any] = {}
    segments, origins = list[dict[str, Any]](), list[int]()
    for origin, folder in enumerate(folders):
        own = (folder / FOLDER).resolve()
        if read_state(folder) is None:
            continue
        with contextlib.suppress(OSError):  # made anew at this moment
            meta = json.loads((own / COMMITTED).read_bytes())
            for segment in meta["segments"]:
                name = uuid.UUID(int=len(segments))  # a copied collection has segments of the names of its model's
                for path in own.glob(f"{uuid.UUID(segment['segment_id']).hex}.*"):
                    (place / (name.hex + path.name[len(name.hex) :])).symlink_to(path)
                segments.append(segment | {"segment_id": str(name)})
                origins.append(origin)
    if meta:
        (place / COMMITTED).write_text(json.dumps(meta | {"segments": segments}), "utf-8")
    return origins


def _prepared(index: tantivy.Index) -> tantivy.Index:
    index.register_tokenizer(WORDS, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.register_tokenizer(WHOLE, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).build())
    return index


class IndexWriter:
    """Takes pages in. One process at a time writes; the kernel frees the lock when its holder dies."""

    def __init__(self, folder: Path, collection: str) -> None:
        """collection: what tells it from others.

        An index that is not this collection's, or unreadable, gives way to an empty one. Raises IndexBusy, StoreError.
        """
        self._folder = folder
        with contextlib.ExitStack() as held:
            held.enter_context(only_writer(folder))
            state = read_state(folder)
            index = open_index(folder) if state is not None and state.collection == collection else None
            if index is None or state is None:
                index, state = _emptied(folder), IndexState(collection, NOTHING)
                write_state(folder, state)
            self._state, self._cutter = state, TextCutter(BETWEEN)
            with translated(folder):
                # one thread of the engine: while it writes, this one cuts words
                self._writer = index.writer(HEAP_BYTES, 1)
                self._drafts = held.enter_context(contextlib.closing(Drafts(folder)))
            self._queued_bytes = 0  # since the engine's last commit
            self._held = held.pop_all()

    @property
    def position(self) -> tuple[int, int]:
        """Up to where the index follows the collection; NOTHING: it is empty."""
        return self._state.position

    @property
    def settled(self) -> bool:
        return self._state.settled

    def put(self, pages: Iterable[PageToIndex]) -> None:
        """Takes the pages in, each in place of its earlier self."""
        for page in pages:
            self._drafts.forget(page.url_id)
            self._put(drafted(page, self._cutter), page.anchors)

    def keep(self, pages: Iterable[PageToIndex]) -> None:
        """Cuts the pages into terms, as far as there is room for these. What others call them comes by `put_kept`."""
        for page in pages:
            self._drafts.forget(page.url_id)
            if not self._drafts.is_full:
                self._drafts.keep(drafted(page, self._cutter))

    def put_kept(self, url_id: UrlId, anchors: Sequence[str]) -> bool:
        """Puts a page that `keep` took in, once more where it was put before; anchors: what others call it.

        False: it is not kept, and has to be put.
        """
        draft = self._drafts.find(url_id)
        if draft is not None:
            self._put(draft, anchors)
        return draft is not None

    def _put(self, draft: Draft, anchors: Sequence[str]) -> None:
        self._queued_bytes += _size_bytes(draft)
        with translated(self._folder):
            self._writer.delete_documents_by_term(ID, draft.url_id)
            self._writer.add_document(document(draft, anchors))
            if self._queued_bytes > QUEUED_BYTES:
                self._writer.commit()
                self._queued_bytes = 0

    def remove(self, ids: Iterable[UrlId]) -> None:
        with translated(self._folder):
            for url_id in ids:
                self._writer.delete_documents_by_term(ID, url_id)
                self._drafts.forget(url_id)

    def clear(self) -> None:
        """Removes every page."""
        with translated(self._folder):
            self._writer.delete_all_documents()
        self.commit(NOTHING)

    def commit(self, position: tuple[int, int], *, settled: bool = False) -> None:
        """Makes searchable, and safe, what was put and removed.

        The arguments are what the index then says of itself.
        """
        with translated(self._folder):
            self._writer.commit()
            self._queued_bytes = 0
            self._state = IndexState(self._state.collection, position, settled)
            write_state(self._folder, self._state)

    def close(self) -> None:
        """Waits for the engine's own threads; what was not committed is forgotten."""
        with self._held, translated(self._folder):
            self._writer.wait_merging_threads()


def _emptied(folder: Path) -> tantivy.Index:
    """A new index in place of what is there."""
    where = folder / FOLDER
    with translated(folder):
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True, exist_ok=True)
        return _prepared(tantivy.Index(schema(), str(where)))


def ask(folder: Path, now: float) -> bool:
    """Tells the process that indexes that somebody searches. False: it knew."""
    path = folder / FOLDER / ASKED
    earlier = is_asked(folder, now)
    with contextlib.suppress(OSError):  # no index yet, or a disk that is read-only
        path.touch()
        os.utime(path, (now, now))
    return not earlier


def is_asked(folder: Path, now: float) -> bool:
    """Whether somebody searched of late."""
    try:
        return abs(now - (folder / FOLDER / ASKED).stat().st_mtime) < ASKED_S
    except OSError:
        return False


def is_written(folder: Path) -> bool:
    """Whether a process writes to the index."""
    try:
        with only_writer(folder):
            return False
    except IndexBusy:
        return True
    except StoreError:
        return False


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Nobody else writes to the index within. Raises IndexBusy, StoreError."""
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
        except ImportError:  # no such locks on this system: the engine has one of its own
            pass
        except BlockingIOError:
            raise IndexBusy from None
        with private_files():
            yield


@contextlib.contextmanager
def translated(folder: Path) -> Iterator[None]:
    """The engine's errors, and the disk's, as ours."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise StoreError(
            f"the search index in {folder / FOLDER} cannot be written: {error}. Is the disk full? Delete "
            "that folder and search again."
        ) from error


# Pages' ids, ascending, then as many scores of 0 to 255: what `link_score` says, stretched. It is written
# whole, and may be missing.

FILE = "ranks"
_ENTRY_BYTES = 9
_MOST = 255


class Ranks:
    """Of the pages of a collection; what is not known has the least."""

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
        """Of each page, 0 to 1."""
        return [self._of(url_id) / _MOST for url_id in ids]

    def _of(self, url_id: int) -> int:
        place = bisect_left(self._ids, url_id)
        return self._scores[place] if place < len(self._ids) and self._ids[place] == url_id else 0


def write_ranks(folder: Path, ids: Ints, scores: Floats) -> None:
    """ids: ascending; scores: 0 to 1."""
    draft = folder / FOLDER / f"{FILE}.new"
    draft.write_bytes(ids.astype("<i8").tobytes() + np.rint(_MOST * scores).astype(np.uint8).tobytes())
    draft.replace(folder / FOLDER / FILE)
