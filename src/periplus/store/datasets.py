"""Turns a collection's rows into blocks of a dataset's tables, numbered and sorted in bounded memory."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from periplus.errors import StoreError
from periplus.model.dataset import Block, Coded, WholeRows
from periplus.model.page import LINK_KINDS, POSITIONS, BlockKind
from periplus.store.bodies import BodyCodec, blocks_of, unpack_parts
from periplus.store.corruption import reported

# Rows are dealt into files by their first number, then each file is sorted.

Rows = NDArray[np.int64]  # [rows, width]
FILES = 64  # open at once; each is read whole: of 10 M rows about 160,000, of a thousand million 16 M
BUFFER_BYTES = 1 << 18  # of each file
HELD_ROWS = 500_000  # up to here memory holds them all; of more, these tell where to cut


def in_order(
    blocks: Iterable[Rows], by: tuple[int, ...], folder: Path, sample: NDArray[np.int64] | None = None
) -> Iterator[Rows]:
    """The rows ascending by the columns `by`, of which the first is 0, block by block;
    two blocks share no number of column 0.

    Files are cut where HELD_ROWS numbers of column 0 say, which must be drawn by chance from all: the `sample`; None:
    those of the first rows, whose order then says nothing of column 0, as that of hashes. folder: for temporary files,
    deleted at the end; not touched where there are no more rows. Memory: the rows of the fullest file, four times.
    """
    rest = iter(blocks)
    held: list[Rows] = []
    count = 0
    for block in rest:
        held.append(block)
        count += len(block)
        if count > HELD_ROWS:
            first = np.concatenate([block[:, 0] for block in held])[:HELD_ROWS] if sample is None else sample
            yield from _dealt(held, rest, (by, np.sort(first)), folder)
            return
    if held:
        yield _sorted(np.concatenate(held), by)


def _dealt(
    held: list[Rows], rest: Iterator[Rows], order: tuple[tuple[int, ...], NDArray[np.int64]], folder: Path
) -> Iterator[Rows]:
    """order: the columns, and the sample, ascending."""
    by, seen = order
    width = held[0].shape[1]
    cuts = seen[np.arange(1, FILES) * len(seen) // FILES]
    with tempfile.TemporaryDirectory(prefix="sort-", dir=folder) as place, ExitStack() as stack:
        paths = [Path(place) / f"{number:02}" for number in range(FILES)]
        files = [stack.enter_context(path.open("wb", buffering=BUFFER_BYTES)) for path in paths]
        while held:
            _deal(held.pop(), cuts, files)
        for block in rest:
            _deal(block, cuts, files)
        stack.close()
        for path in paths:
            rows = np.fromfile(path, np.int64).reshape(-1, width)
            path.unlink()
            if len(rows):
                yield _sorted(rows, by)


def _deal(block: Rows, cuts: NDArray[np.int64], files: list[BinaryIO]) -> None:
    numbers = np.searchsorted(cuts, block[:, 0], side="right")
    order = np.argsort(numbers, kind="stable")
    rows, ends = block[order], np.searchsorted(numbers[order], np.arange(FILES + 1))
    for number, file in enumerate(files):
        if ends[number] < ends[number + 1]:
            rows[ends[number] : ends[number + 1]].tofile(file)


def _sorted(rows: Rows, by: tuple[int, ...]) -> Rows:
    return rows[np.lexsort([rows[:, column] for column in reversed(by)])]


TEXT_ROWS = 20_000  # of a block with texts
PAGE_ROWS = 500  # of a block with whole pages' texts
_APART = (BlockKind.TITLE, BlockKind.ALT)  # not of a page's running text


class Numbers:
    """The numbers of URLs, by id. 16 bytes a URL."""

    def __init__(self, ids: NDArray[np.int64]) -> None:
        """ids: in the order of the URLs' texts."""
        self._numbers = np.argsort(ids)
        self._ids = ids[self._numbers]

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """-1 for what is not known."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        places = np.searchsorted(self._ids, ids).clip(max=len(self._ids) - 1)
        return np.where(self._ids[places] == ids, self._numbers[places], -1)


def tables(rows: WholeRows, folder: Path, *, with_texts: bool) -> Iterator[tuple[str, Iterable[Block]]]:
    """A dataset's tables by name, each to be read to its end before the next. folder: for temporary files."""
    hosts = rows.hosts()
    yield "hosts", [_hosts(hosts)]
    ids = [np.zeros(0, np.int64)]
    yield "urls", _urls(rows, _host_numbers(hosts), ids)
    numbers = Numbers(np.concatenate(ids))
    ids.clear()
    yield "redirects", [_redirects(rows, numbers)]
    yield "pages", ((numbers.of(np.array(these, np.int64)), *others) for these, *others in _columns(rows.pages()))
    yield "links", _links(rows, numbers, folder)
    if with_texts:
        yield "texts", _texts(rows, numbers)


def _sites(hosts: Sequence[tuple[int, str, str]]) -> dict[str, int]:
    return {key: number for number, key in enumerate(sorted({site for _, _, site in hosts}))}


def _hosts(hosts: Sequence[tuple[int, str, str]]) -> Block:
    sites = _sites(hosts)
    return (
        np.arange(len(hosts)),
        [name for _, name, _ in hosts],
        np.array([sites[site] for _, _, site in hosts], np.int64),
        [site for _, _, site in hosts],
    )


def _host_numbers(hosts: Sequence[tuple[int, str, str]]) -> dict[int, tuple[int, int]]:
    """By a host's id its number and its site's."""
    sites = _sites(hosts)
    return {host_id: (number, sites[site]) for number, (host_id, _, site) in enumerate(hosts)}


def _urls(rows: WholeRows, host_numbers: dict[int, tuple[int, int]], ids: list[NDArray[np.int64]]) -> Iterator[Block]:
    """ids receives theirs, block by block."""
    count = 0
    for these, texts, host_ids, *others in _columns(rows.urls()):
        ids.append(np.array(these, np.int64))
        of_hosts = np.array([host_numbers[host_id] for host_id in host_ids], np.int64)
        numbers = np.arange(count, count + len(these))
        count += len(these)
        yield (numbers, ids[-1], texts, of_hosts[:, 0], of_hosts[:, 1], *others)


def _columns(blocks: Iterator[Sequence[tuple[object, ...]]]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    for rows in blocks:
        yield tuple(zip(*rows, strict=True))


def _redirects(rows: WholeRows, numbers: Numbers) -> Block:
    hops = rows.redirects()
    sources, targets = numbers.of(hops.sources), numbers.of(hops.targets)
    numbered = (sources >= 0) & (targets >= 0)
    order = np.argsort(sources[numbered])
    return sources[numbered][order], targets[numbered][order]


def _links(rows: WholeRows, numbers: Numbers, folder: Path) -> Iterator[Block]:
    sample = numbers.of(rows.first_sources(HELD_ROWS))
    for block in in_order(_numbered(rows.links(), numbers), (0, 1, 2, 3, 4), folder, sample):
        columns = block.T
        kinds, positions = Coded(columns[2].astype(np.int8), LINK_KINDS), Coded(columns[3].astype(np.int8), POSITIONS)
        yield (columns[0], columns[1], kinds, positions, columns[4], columns[5], columns[6], columns[7])


def _numbered(blocks: Iterator[NDArray[np.int64]], numbers: Numbers) -> Iterator[NDArray[np.int64]]:
    for block in blocks:
        block[:, 0], block[:, 1] = numbers.of(block[:, 0]), numbers.of(block[:, 1])
        yield block[(block[:, 0] >= 0) & (block[:, 1] >= 0)]


def _texts(rows: WholeRows, numbers: Numbers) -> Iterator[Block]:
    codec = BodyCodec()
    for these, *packed in _columns(rows.texts()):
        texts = [_text_and_content(codec, *one) for one in zip(*packed, strict=True)]
        yield numbers.of(np.array(these, np.int64)), [text for text, _ in texts], [content for _, content in texts]


def _text_and_content(
    codec: BodyCodec, packed_text: bytes, packed_blocks: bytes | None, packed_parts: bytes | None
) -> tuple[str, str | None]:
    """(text, its content; None: not told apart yet)."""
    with reported():
        text = codec.unpack(packed_text, None).decode()
    if packed_parts is None:
        return text, None
    return text, "\n".join(blocks_of(text, packed_blocks).content(unpack_parts(packed_parts), _APART))


# PostgreSQL cuts names at 63 bytes, and what is made of these is up to 10 longer
_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")


def sound(name: str) -> str:
    """The name. Raises StoreError for what may not stand in a statement."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name!r} is no name for a table or a column of results")
    return name
