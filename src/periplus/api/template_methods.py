"""By which methods are navigation and content told apart, and what does each say of a site's pages?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from periplus.analyse.fragmenters import Chains, Fragments, Mask, chains, covered, fragments, source_left
from periplus.analyse.marked_text import marked_blocks
from periplus.analyse.shorkin import ChainCluster, clusters_of, navigation_of
from periplus.document.decode import decode
from periplus.errors import UsageError
from periplus.model.page import Block, Part
from periplus.model.template import MarkedBlock, Run, TemplateRules
from periplus.store.sqlite import reading
from periplus.store.sqlite.block_rows import pages_of
from periplus.store.sqlite.contents import Contents
from periplus.store.sqlite.source_rows import SourceRow

Watch = Callable[[str, int, int], None]  # (what is being done, pages done, pages in all)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a method says of pages, by their numbers. Neither sources nor texts are kept: they are read again when they are asked for."""

    clusters: Sequence[ChainCluster]  # largest first
    navigation_bytes: Sequence[int]  # by page
    sizes: Sequence[int]  # by page, bytes
    blocks: Callable[[int], Iterable[MarkedBlock]]
    source_left: Callable[[int], str]


def by_shorkin(source: Callable[[int], str], count: int, rules: TemplateRules, watch: Watch) -> Judged:
    """Shorkin's method. source: of a page, by its number. Memory: 12 bytes for each tag and text of the site."""
    length = rules.min_fragmenters_chain
    held: list[Chains] = []
    parts: list[NDArray[np.int32]] = []
    for page in range(count):
        watch("Reading pages", page, count)
        pieces = fragments(source(page))
        held.append(chains(pieces, length))
        parts.append(np.fromiter(map(len, pieces.parts), np.int32, len(pieces.parts)))
    found = _clusters(held, rules, watch)
    navigation = navigation_of(count, found)
    gone = [int(size[covered(one, wanted, length)].sum()) if len(one) else 0 for size, one, wanted in zip(parts, held, navigation, strict=True)]

    def marked(page: int) -> tuple[Fragments, Mask]:
        pieces = fragments(source(page))
        return pieces, covered(chains(pieces, length), navigation[page], length)

    sizes = [int(size.sum()) for size in parts]
    return Judged(found, gone, sizes, lambda page: marked_blocks(*marked(page)), lambda page: source_left(*marked(page)))


def _clusters(held: Sequence[Chains], rules: TemplateRules, watch: Watch) -> list[ChainCluster]:
    found = clusters_of(held, rules, lambda taken, _: watch("Comparing pages", taken, len(held)))
    return sorted(found, key=lambda cluster: -len(cluster.pages))


def of_sources(connection: reading.Connection, rows: Sequence[SourceRow], rules: TemplateRules, watch: Watch) -> Judged:
    """Shorkin's method on stored pages."""
    contents = Contents(connection)

    def source(page: int) -> str:
        row = rows[page]
        return decode(contents.body(row.url_id) or b"", row.charset, row.media_type)[0]

    return by_shorkin(source, len(rows), rules, watch)


def of_marks(connection: reading.Connection, rows: Sequence[SourceRow], rules: TemplateRules, watch: Watch) -> Judged:
    """The marks that are stored with the blocks of pages. Templates are found among them by the same rules, a navigation block for a chain.

    Blocks are whole and their white space is folded, so that no run of them need agree; and pages alike in all are of one template too.
    """

    def marked(page: int) -> Iterator[tuple[Block, Part]]:
        for found in pages_of(connection, [rows[page].url_id]):
            yield from zip(found.blocks, found.parts or (), strict=False)

    held: list[Chains] = []
    sizes: list[int] = []
    for page in range(len(rows)):
        watch("Reading pages", page, len(rows))
        blocks = list(marked(page))
        held.append(np.array([_chain(block) for block, part in blocks if part is Part.NAVIGATION], np.uint64))
        sizes.append(sum(_bytes(block) for block, _ in blocks))
    alike = TemplateRules(**{name: getattr(rules, name) for name in rules.__slots__} | {"duplicates": 100})
    gone = [int((one & np.uint64(0xFFFFFFFF)).sum()) for one in held]
    return Judged(_clusters(held, alike, watch), gone, sizes, lambda page: (_shown(*one) for one in marked(page)), _no_source)


def _bytes(block: Block) -> int:
    return len(block.text.encode("utf-8", "replace"))


def _chain(block: Block) -> int:
    """As `fragmenters.chains` name theirs: 32 bits that tell it apart, 32 of length."""
    return xxhash.xxh32_intdigest(f"{block.kind} {block.text}".encode("utf-8", "replace")) << 32 | _bytes(block)


def _shown(block: Block, part: Part) -> MarkedBlock:
    return MarkedBlock(block.kind, block.level, (Run(block.text, part),))


def _no_source(page: int) -> str:
    raise UsageError("marks are of a page's text, not of its source: take --text, or --method shorkin")


def are_marked(connection: reading.Connection, rows: Sequence[SourceRow]) -> bool:
    """Whether any page has marks. Looks at some, spread over all."""
    some = rows[:: max(1, len(rows) // 50)]
    return any(page.parts is not None for page in pages_of(connection, [row.url_id for row in some]))


METHODS: dict[str, Callable[[reading.Connection, Sequence[SourceRow], TemplateRules, Watch], Judged]] = {"site": of_marks, "shorkin": of_sources}
