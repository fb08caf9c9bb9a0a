"""Statistics of a site's pages, per text and path, and the columns of a page's blocks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from periplus.analyse.content.counting import TextTable
from periplus.document import block_counts
from periplus.document.block_counts import BlockCounter
from periplus.model.arrays import Floats, Floats32, Ints32, Mask, Unsigned8, Unsigned64
from periplus.model.page import IS_APART, Blocks

Array = npt.NDArray[np.generic]
Ints = npt.NDArray[np.intp]

OTHER, LOWER, UPPER, DIGIT, SPACE, COMMA, STOP, WIDE, MARK = range(9)
CLASSES = 9
"""Character classes.

Caseless letters are LOWER; WIDE are ideographs and kana, of which two count as a word; MARK are signs that separate
links: | » · and others.
"""

_STOPS = ".!?…。！？।؟։;"
_COMMAS = ",:،、，：；"
_MARKS = "|»›«‹•·→←↑↓©®™/\\▶►>*#"
_PATH_CACHE_SIZE = 16_384  # paths: those of about a hundred sites, 1 kB each
DEEPEST = 24  # containers of a block that are examined, innermost first; real pages nest 5 to 20 deep
_KEY_BYTES = 8
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]{2,}")
_NAMES = re.compile(r"[#.].*")
_MENUS = frozenset(("breadcrumb", "breadcrumbs", "nav", "navfooter", "navheader", "navigation", "pagination"))
_CAPTIONS = re.compile(r"<?(?:fig|wp|img|image|photo|picture)?caption(?:text)?s?|bildunterschrift")
_COMMENTS = re.compile(
    r"(?:article|post|reader|user)?comments?(?:area|block|body|box|container|content|entry|item|list|listing|section|"
    r"stream|text|thread|tree|wrap|wrapper)?|commentaires?|commenti|comentarios?|disqus|dsq|koment|komentar\w?|"
    r"komentarz[ey]?|kommentare?|opini[ae]|reacties"
)
# Beside one of these words, a name with "comment" means their number, a list of the latest, or another kind of note
_NO_COMMENTS = frozenset((
    "closed", "count", "counts", "deprecation", "latest", "liczba", "link", "links", "most", "number", "open",
    "popular", "rank", "recent", "tab", "tabs", "top", "width",
))  # fmt: skip
_CONTROLS = frozenset((
    "<form", "captcha", "commentform", "form", "login", "pagination", "related", "respond", "rules", "sidebar",
))  # fmt: skip
_UNITS = (b"table", b"dl")
MOST_TEXTS = 65_536  # texts counted per site, 12 bytes each when stored; beyond this the rarest are dropped
MOST_PATHS = 8_192
_PATH_BYTES = 300  # in memory, per path: a list, three numbers, a key
_FORMAT = b"SE2\n"
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # odd: 2**64 divided by the golden ratio
_LEAST_PLACES = 255  # for a site without data
_NO_TEXTS = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32)
_APART = 3  # padding between pages in `around`: its reach
_IS_APART = np.frombuffer(IS_APART, dtype=np.bool)


@cache
def _counter() -> BlockCounter:
    """The counter with the table of character classes."""
    every = np.arange(65_536, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    categories = list(map(unicodedata.category, every))
    by_category = dict.fromkeys(categories, OTHER)
    by_category |= {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": LOWER, "Lo": LOWER, "Nd": DIGIT, "Zs": SPACE}
    table = np.frombuffer(bytes(map(by_category.__getitem__, categories)), dtype=np.uint8).copy()
    table[0x3041:0xA000] = WIDE
    table[0xF900:0xFB00] = WIDE
    for letters, kind in ((_STOPS, STOP), (_COMMAS, COMMA), (_MARKS, MARK), ("\n\t", SPACE)):
        table[[ord(letter) for letter in letters]] = kind
    is_word = np.frombuffer(bytes(map(str.isalnum, every)), dtype=np.bool).copy()
    is_word[ord("_")] = True
    table[is_word] |= block_counts.WORD
    # lower() turns İ into two characters, and Σ into ς at the end of a word
    small = every.replace("İ", "i").replace("Σ", "σ").lower()
    lower = np.frombuffer(small.encode("utf-16-le", "surrogatepass"), dtype="<u2").astype(np.uint16)
    lower[[ord("\n"), ord("ς")]] = ord(" "), ord("σ")
    return BlockCounter(table.data, lower.data, DIGIT)


_digest = xxhash.xxh3_64_intdigest


# Roles that the elements of a path give a block; CONTROL is a control within comments, MENU is beside content
CAPTION, COMMENT, CONTROL, MENU = 1, 2, 4, 8


@dataclass(slots=True, eq=False)  # frozen, it takes 3 us longer to create, and sites have many ids
class PathStep:
    """One element of a path. Compared by identity: `_step` creates each once. Never changed."""

    folded: bytes  # without digits
    name: bytes  # of the element
    words: tuple[str, ...]  # the element's name after "<", and the words of its id and classes
    roles: int  # that it gives to its blocks: CAPTION, COMMENT, MENU
    is_control: bool  # within comments


class PathFacts(NamedTuple):
    """The parsed facts of a path."""

    key: int  # 64-bit digest; digits are folded, so that `post-17` and `post-18` are equal
    shape: int  # digest of the element names only
    containers: bytes  # keys of the path and of its ancestors as uint64, innermost first
    steps: tuple[PathStep, ...]  # innermost first
    roles: int  # roles that its elements give to their blocks: CAPTION, COMMENT, CONTROL
    unit: int  # key of the innermost table or list of definitions around it, or 0


@lru_cache(maxsize=_PATH_CACHE_SIZE)
def facts(path: str) -> PathFacts:
    """The facts of a path, as in `Block.path`.

    Built from the facts of the parent path: `document.blocks` keeps paths below 500 steps.
    """
    head, slash, last = path.rpartition("/")
    step = _step(last)
    above = facts(head) if slash else _NO_PATH
    key, shape = _digest(step.folded, above.key), _digest(step.name, above.shape)
    containers = key.to_bytes(_KEY_BYTES, "little") + above.containers[: _KEY_BYTES * (DEEPEST - 1)]
    unit = key if step.name in _UNITS else above.unit
    steps = (step, *above.steps[: DEEPEST - 1])
    roles = above.roles | step.roles
    if step.is_control and roles & COMMENT:
        roles |= CONTROL
    return PathFacts(key, shape, containers, steps, roles, unit)


_NO_PATH = PathFacts(0, 0, b"", (), 0, 0)


@lru_cache(maxsize=_PATH_CACHE_SIZE)
def _role_of(name: str) -> int:
    """The role that a name stands for; 0: none."""
    return CAPTION if _CAPTIONS.fullmatch(name) else COMMENT if _COMMENTS.fullmatch(name) else 0


def _roles_of(names: Sequence[str]) -> int:
    """Roles that an element gives to its blocks. names: as in `PathStep.words`."""
    roles = 0
    for role in filter(None, map(_role_of, names)):
        if role == CAPTION or _NO_COMMENTS.isdisjoint(names):
            roles |= role
    if not _MENUS.isdisjoint(names):
        roles |= MENU
    return roles


@lru_cache(
    maxsize=_PATH_CACHE_SIZE
)  # most new paths differ only in the last step, such as sections with individual ids
def _step(step: str) -> PathStep:
    folded = _DIGITS.sub("0", step)
    name = _NAMES.sub("", folded)
    named = {word.lower() for word in _WORDS.findall(folded, len(name)) if len(word) > 2}
    words = ("<" + name, *sorted(named))
    of_path = folded.encode("utf-8", "surrogatepass"), name.encode("utf-8", "surrogatepass")
    return PathStep(*of_path, words, _roles_of(words), not _CONTROLS.isdisjoint(words))


class Traces(NamedTuple):
    """The digests of a page, used for both counting and measuring."""

    counts: Ints32  # [n, block_counts.COLUMNS]: character counts of each block, and the running number of words
    # For each block: 64 bits of its text (digits and case folded) and of the names of its ancestor elements
    digests: Unsigned64
    texts: Unsigned64  # of each block's exact text
    words: Unsigned64  # in lower case, block by block
    path: Ints  # for each block: index into paths
    paths: list[PathFacts]  # distinct paths, digits folded


class PageEvidence(NamedTuple):
    """Statistics of a site relative to one page, with the page itself excluded."""

    text_pages: Floats32  # per block: other pages with this text in elements of the same names
    path_pages: Floats32  # per path: other pages with it
    path_blocks: Floats32  # per path: blocks with it on other pages
    path_texts: Floats32  # per path: distinct texts among them
    pages: Floats32  # a single number: other pages known


def traces_of(blocks: Blocks) -> Traces:
    """Computes the traces of a page; compute them once if a page is both learnt and judged."""
    numbers: dict[int, int] = {}  # by key
    paths: list[PathFacts] = []
    numbers_of_names = []
    for path in blocks.path_names:
        of_path = facts(path)
        number = numbers.setdefault(of_path.key, len(numbers))
        numbers_of_names.append(number)
        if number == len(paths):
            paths.append(of_path)
    path_of = np.array(numbers_of_names, dtype=np.intp).take(np.asarray(blocks.paths))
    codes = np.frombuffer(f"{blocks.text}\n{blocks.apart}".encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    lines = np.zeros(len(blocks), dtype=np.int32)
    if blocks.lines:
        lines += np.asarray(blocks.lines)
    lines[np.frombuffer(blocks.kinds.translate(IS_APART), dtype=np.bool)] = -1
    table = np.zeros((len(blocks), block_counts.COLUMNS), dtype=np.int32)
    digests = np.empty((len(blocks), 2), dtype=np.uint64)
    words = np.empty(len(codes) // 2 + len(blocks) + 1, dtype=np.uint64)
    count = _counter().read(codes.data, lines.data, table.reshape(-1).data, digests.reshape(-1).data, words.data)
    shapes = np.array([path.shape for path in paths], dtype=np.uint64)
    return Traces(
        table, mix_digests(digests[:, 0], shapes.take(path_of)), digests[:, 1], words[:count].copy(), path_of, paths
    )


def mix_digests(digests: Unsigned64, others: Unsigned64) -> Unsigned64:
    """Combined digests of pairs, never 0."""
    pairs = (digests ^ (others * _MIXER)) * _MIXER
    pairs ^= pairs >> np.uint64(32)
    return np.maximum(pairs, 1)


class TextPages:
    """Number of a site's pages with each text, by digest."""

    def __init__(self, digests: Unsigned64, pages: Ints32) -> None:
        """digests: ascending, distinct."""
        self._number = 0  # of the page that was learnt last
        self._fill(digests, pages, 0)

    def _fill(self, digests: Unsigned64, pages: Ints32, more: int) -> None:
        """Rebuilds the table. more: additional texts to reserve space for."""
        self.count = self._used = len(digests)
        size = 1 << (4 * (self._used + more) + _LEAST_PLACES).bit_length()
        self._digests, self._pages = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.int32)
        self._table = TextTable(self._digests.data, self._pages.data, np.zeros(size, dtype=np.int32).data)
        self._table.learn(
            -1, digests.data, np.zeros(len(digests), dtype=np.intp).data, np.zeros(1, dtype=np.int32).data
        )
        places = np.flatnonzero(self._digests)
        self._pages[places[np.argsort(self._digests[places])]] = pages

    def learn(self, traces: Traces) -> Ints32:
        """Counts a page's texts; returns for each of its paths the number of new texts."""
        if 2 * (self._used + len(traces.digests)) > len(self._digests):
            self._fill(*self.columns(), len(traces.digests))
        new = np.zeros(len(traces.paths), dtype=np.int32)
        self._number += 1
        self._used += self._table.learn(self._number, traces.digests.data, traces.path.data, new.data)
        self.count += int(new.sum())
        return new

    def forget(self, traces: Traces) -> Ints32:
        """Reverts `learn`; returns for each of the page's paths the number of texts that no page has any more."""
        gone = np.zeros(len(traces.paths), dtype=np.int32)
        self._number += 1
        self._table.forget(self._number, traces.digests.data, traces.path.data, gone.data)
        self.count -= int(gone.sum())
        return gone

    def pages_of(self, digests: Unsigned64) -> Ints32:
        """The number of pages with each text."""
        pages = np.empty(len(digests), dtype=np.int32)
        self._table.look_up(digests.data, pages.data)
        return pages

    @property
    def size_bytes(self) -> int:
        """Size of the tables in memory."""
        return 2 * self._digests.nbytes  # 8 for the digest, 4 for its pages, 4 for the last page

    def columns(self) -> tuple[Unsigned64, Ints32]:
        """The digests, ascending, each with its number of pages."""
        places = np.flatnonzero(self._pages)
        places = places[np.argsort(self._digests[places])]
        return self._digests[places], self._pages[places]

    def keep(self, most: int) -> None:
        """Drops the rarest texts until at most `most` remain."""
        digests, pages = self.columns()
        least = 1
        while len(digests) > most:
            often = pages > least
            digests, pages, least = digests[often], pages[often], 2 * least
        self._fill(digests, pages, 0)


class SiteEvidence:
    """Counts of 64-bit digests over a site's pages.

    The result does not depend on the order of pages, except for texts that occur on two paths.

    Learn each page once; before learning a new version of a page, forget the old one. Memory is bounded: beyond
    MOST_TEXTS the rarest texts are dropped; boilerplate is counted again at once.
    """

    def __init__(self) -> None:
        self.pages = 0
        self._texts = TextPages(*_NO_TEXTS)
        self._paths: dict[int, list[int]] = {}  # pages, blocks, distinct texts

    def learn(self, blocks: Blocks, traces: Traces | None = None) -> None:
        """Counts a page that is not yet counted. traces: its `traces_of`, if already computed."""
        traces = traces or traces_of(blocks)
        self.pages += 1
        new, blocks_on = self._texts.learn(traces).tolist(), _blocks_on(traces)
        for facts_of_path, more_blocks, more_texts in zip(traces.paths, blocks_on, new, strict=True):
            row = self._paths.setdefault(facts_of_path.key, [0, 0, 0])
            row[0] += 1
            row[1] += more_blocks
            row[2] += more_texts
        if self._texts.count > MOST_TEXTS:
            self._texts.keep(MOST_TEXTS // 2)
        if len(self._paths) > MOST_PATHS:
            self._paths = _most_frequent(self._paths, MOST_PATHS // 2)

    def forget(self, blocks: Blocks) -> None:
        """Reverts `learn` of a page."""
        traces = traces_of(blocks)
        self.pages = max(self.pages - 1, 0)
        gone, blocks_on = self._texts.forget(traces).tolist(), _blocks_on(traces)
        for number, facts_of_path in enumerate(traces.paths):
            row = self._paths.get(facts_of_path.key)
            if row is not None:
                row[:] = [
                    max(count - less, 0) for count, less in zip(row, (1, blocks_on[number], gone[number]), strict=True)
                ]
                if not row[0]:
                    del self._paths[facts_of_path.key]

    @property
    def size_bytes(self) -> int:
        """Total size in memory."""
        return self._texts.size_bytes + _PATH_BYTES * len(self._paths)

    def to_bytes(self) -> bytes:
        """Serialised: 12 bytes per text, 20 per path."""
        texts, text_pages = self._texts.columns()
        head = np.array([self.pages, len(texts), len(self._paths)], dtype="<u8")
        keys = np.concatenate((texts, np.array([*self._paths], dtype=np.uint64))).astype("<u8")
        of_paths = np.array([count for row in self._paths.values() for count in row], dtype="<u4")
        return _FORMAT + head.tobytes() + keys.tobytes() + text_pages.astype("<u4").tobytes() + of_paths.tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes) -> SiteEvidence:
        """Reads the output of to_bytes. Raises ValueError for anything else."""
        body = stored[len(_FORMAT) :]
        if stored[: len(_FORMAT)] != _FORMAT or len(body) < 24:
            raise ValueError("not a site's evidence; learn the site's pages again")
        pages, texts, paths = np.frombuffer(body[:24], dtype="<u8").tolist()
        if len(body) != 24 + 12 * texts + 20 * paths:
            raise ValueError("a site's evidence was cut off; learn the site's pages again")
        keys = np.frombuffer(body, dtype="<u8", count=texts + paths, offset=24).astype(np.uint64)
        counts = np.frombuffer(body, dtype="<u4", offset=24 + 8 * (texts + paths)).astype(np.int32)
        evidence = cls()
        evidence.pages = pages
        evidence._texts = TextPages(keys[:texts], counts[:texts])
        rows = counts[texts:].reshape(-1, 3).tolist()
        evidence._paths = dict(zip(keys[texts:].tolist(), rows, strict=True))
        return evidence

    def evidence_of(self, blocks: Blocks, traces: Traces | None = None, *, counted: bool) -> PageEvidence:
        """The statistics of the site relative to these blocks. counted: whether this page has been learnt itself."""
        traces = traces or traces_of(blocks)
        own, size, none = int(counted), len(traces.paths), (0, 0, 0)
        others = self._texts.pages_of(traces.digests).astype(np.float32) - own
        path = traces.path
        alone = np.bincount(path[others <= 0], minlength=size)
        rows = np.array([self._paths.get(trace.key, none) for trace in traces.paths], dtype=np.float32).reshape(-1, 3)
        pages, blocks_on, texts = np.maximum(
            rows.T - own * np.array([np.ones(size), np.bincount(path, minlength=size), alone], dtype=np.float32), 0
        )
        return PageEvidence(
            np.maximum(others, 0), pages, blocks_on, texts, np.array([max(self.pages - own, 0)], dtype=np.float32)
        )


def concatenate(seen: Sequence[PageEvidence]) -> PageEvidence:
    """Concatenates the statistics of several pages."""
    return seen[0] if len(seen) == 1 else PageEvidence(*map(np.concatenate, zip(*seen, strict=True)))


def _blocks_on(traces: Traces) -> list[int]:
    """The number of blocks on each path of a page."""
    counts: list[int] = np.bincount(traces.path, minlength=len(traces.paths)).tolist()
    return counts


def _most_frequent(paths: dict[int, list[int]], most: int) -> dict[int, list[int]]:
    least = 1
    while len(paths) > most:
        paths = {key: row for key, row in paths.items() if row[0] > least}
        least *= 2
    return paths


class Pages:
    """One or more non-empty pages side by side: their blocks, distinct paths, and the containers of the paths.

    A page has about ten blocks per path, and a path is about ten containers deep, so measures of paths are computed
    once per path.
    """

    def __init__(self, pages: Sequence[Blocks], traces: Sequence[Traces]) -> None:
        self.traces = traces
        sizes = np.array([len(blocks) for blocks in pages], dtype=np.intp)
        self.ends: Ints = np.cumsum(sizes)
        self.begins: Ints = self.ends - sizes
        self.sizes = sizes
        self.page: Ints = np.repeat(np.arange(len(pages)), sizes)
        self.index: Ints = np.arange(len(self.page)) - self.begins[self.page]  # within its page
        self._place_paths([trace.paths for trace in traces])
        self.kind = np.frombuffer(b"".join([blocks.kinds for blocks in pages]), dtype=np.uint8)
        self.positions = np.frombuffer(b"".join([blocks.positions for blocks in pages]), dtype=np.uint8)
        levels = [blocks.levels or bytes(len(blocks)) for blocks in pages]
        self.level: Ints = np.frombuffer(b"".join(levels), dtype=np.uint8).astype(np.intp)
        counts = np.concatenate([trace.counts for trace in traces])
        self.letters: Floats32 = counts[:, :CLASSES].T.astype(np.float32, order="C")  # a row per class
        self.first, self.last = counts[:, block_counts.FIRST], counts[:, block_counts.LAST]
        self.chars: Floats32 = self.letters.sum(axis=0)
        shares = [np.asarray(blocks.shares) if blocks.shares else np.ones(len(blocks)) for blocks in pages]
        share = np.concatenate(shares).astype(np.float32)  # 0: only links, see `Blocks`
        self.linked: Floats32 = np.where(share, np.minimum(share - 1, self.chars), self.chars) / self.chars
        self.is_apart: Mask = _IS_APART[self.kind]  # of titles and alt texts
        self.words: Floats32 = words_of(self.letters, self.is_apart)
        self.plain: Floats32 = self.words * (1 - self.linked)
        self.total: Floats32 = np.maximum(self.totals(self.words), 1)  # words of each page
        self.roles: Unsigned8 = np.array([path.roles for path in self.paths], dtype=np.uint8).take(self.path)

    def _place_paths(self, paths: Sequence[Sequence[PathFacts]]) -> None:
        counts = np.array([len(steps) for steps in paths], dtype=np.intp)
        self.path_begins: Ints = np.cumsum(counts) - counts
        own = np.concatenate([trace.path for trace in self.traces])
        self.path: Ints = own + self.path_begins[self.page]  # of each block
        self.path_page: Ints = np.repeat(np.arange(len(paths)), counts)
        self.paths = each = list(chain.from_iterable(paths))
        self.depths: Ints = np.array([len(path.steps) for path in each], dtype=np.intp)
        self.step_begins: Ints = np.cumsum(self.depths) - self.depths
        self.step_owner: Ints = np.repeat(np.arange(len(self.depths)), self.depths)
        keys = np.frombuffer(b"".join([path.containers for path in each]), dtype="<u8").astype(np.uint64)
        page = self.path_page[self.step_owner]
        different, self._container = np.unique(mix_digests(keys, page.astype(np.uint64)), return_inverse=True)
        self.container_page: Ints = np.zeros(len(different), dtype=np.intp)
        self.container_page[self._container] = page

    def text_places(self, is_text: Mask) -> tuple[Ints, Ints]:
        """Where the text of each block begins and ends in `Blocks.text`, a line feed and `Blocks.apart` of its page.

        is_text: whether it is in `Blocks.text`.
        """
        chars = self.chars.astype(np.intp)
        size = (chars + 1) * is_text
        before, apart_before = np.cumsum(size) - size, np.cumsum(chars + 1 - size) - (chars + 1 - size)
        first = before[self.begins]
        own = np.append(first[1:], size.sum()) - first
        begins = np.where(
            is_text,
            before - first[self.page],
            apart_before - (apart_before[self.begins] - np.maximum(own, 1))[self.page],
        )
        return begins, begins + chars

    def container_at(self, level: int) -> Ints:
        """For each path, its ancestor container `level` steps out, at most the outermost."""
        return self._container[self.step_begins + np.minimum(level, self.depths - 1)]

    def sums(self, values: Array) -> Floats:
        """The values of blocks, summed over each container."""
        of_paths = np.bincount(self.path, weights=values, minlength=len(self.depths))
        return np.bincount(self._container, weights=of_paths[self.step_owner]).astype(np.float64)

    def within(self, marked: Mask) -> tuple[Floats, Floats]:
        """For each path: the number of marked containers around it, and the difference to the maximum of its page."""
        depth = np.bincount(self.step_owner, weights=marked[self._container], minlength=len(self.depths)).astype(
            np.float64
        )
        return depth, np.maximum.reduceat(depth, self.path_begins)[self.path_page] - depth

    def totals(self, values: Floats32) -> Floats32:
        """The values of blocks, summed over each page.

        Page by page: NumPy's summation order depends on the array length, and results must not depend on the batch.
        """
        return np.array(
            [values[begin:end].sum() for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True)],
            dtype=np.float32,
        )

    def of_paths(self, rows: Sequence[Array] | Array) -> Floats32:
        """Expands rows of paths to rows of blocks."""
        return np.array(rows, dtype=np.float32).take(self.path, axis=1)

    def of_pages(self, rows: Sequence[Array]) -> Floats32:
        """Expands rows of pages to rows of blocks."""
        return np.array(rows, dtype=np.float32).take(self.page, axis=1)

    def means(self, rows: Sequence[Floats32], widths: Sequence[int]) -> list[Floats32]:
        """For each width, the moving averages of the rows over that many blocks on either side."""
        totals = np.zeros((len(rows), len(self.page) + 1))
        np.cumsum(np.array(rows), axis=1, dtype=np.float64, out=totals[:, 1:])
        columns = []
        at, begin, end = np.arange(len(self.page)), self.begins[self.page], self.ends[self.page]
        for width in widths:
            low, high = np.maximum(at - width, begin), np.minimum(at + width + 1, end)
            columns += list(((totals.take(high, axis=1) - totals.take(low, axis=1)) / (high - low)).astype(np.float32))
        return columns

    def around(self, rows: Sequence[Floats32]) -> list[Floats32]:
        """Values of the three blocks before and the three after each block, farthest first before it; 0 beyond the
        page.
        """
        padded = np.zeros((len(rows), len(self.page) + _APART * (len(self.sizes) + 1)), dtype=np.float32)
        place = np.arange(len(self.page)) + _APART * (self.page + 1)
        padded[:, place] = rows
        return [row for step in (-3, -2, -1, 1, 2, 3) for row in padded.take(place + step, axis=1)]


def words_of(letters: Floats32, is_apart: Mask) -> Floats32:
    """The number of words of each block, 0 for titles and alt texts. letters: a row per class of characters."""
    words: Floats32 = 1 + letters[SPACE] + letters[WIDE] / np.float32(2)
    words[is_apart] = 0
    return words


def signed_distance(steps: Ints) -> Floats:
    """Signed logarithmic distance in blocks: nearby blocks differ most."""
    far: Floats = np.sign(steps) * np.log1p(np.abs(steps))
    return far
