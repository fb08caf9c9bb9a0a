"""Page weight with resources, and the bytes behind a page's links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from periplus.analyse.linkgraph import sort_distinct
from periplus.model.arrays import Ints, Mask, Unsigned8
from periplus.model.graph import LinkGraph
from periplus.model.page import PULLED_KINDS, LinkKind, MediaClass, media_class
from periplus.model.results import LinkedBytes
from periplus.values import frozen

KINDS = tuple(LinkKind)
"""A link kind is stored as its index here."""
LINKED_KINDS = frozenset({LinkKind.ANCHOR, LinkKind.AREA})
"""Links that a reader can follow."""
_CLASSES = len(MediaClass)
_CLASS_PLACE = {kind: place for place, kind in enumerate(MediaClass)}
# For targets that were not fetched, the kind of link determines the class: an image of unknown size is still an image.
_CLASS_OF_KIND = {
    LinkKind.IMAGE: MediaClass.IMAGES,
    LinkKind.ICON: MediaClass.IMAGES,
    LinkKind.STYLE: MediaClass.STYLES,
    LinkKind.SCRIPT: MediaClass.SCRIPTS,
    LinkKind.MEDIA: MediaClass.RECORDINGS,
    LinkKind.FRAME: MediaClass.PAGES,
    LinkKind.IFRAME: MediaClass.PAGES,
}


def linked_bytes(graph: LinkGraph, size_bytes: Ints, media_type: Sequence[str]) -> LinkedBytes:
    """The sizes of each page's link targets, summed by MediaClass, each target once per page.

    graph: n nodes, including every link target to be counted. size_bytes, media_type: one per node; 0 bytes: unknown,
    counted in `unsized`. O(n + m). Sums are exact up to 2^53 bytes per page.
    """
    count, kinds = len(graph.pages), len(MediaClass)
    kind = media_places(media_type).astype(np.int64)
    sources = np.repeat(np.arange(count), np.diff(graph.offsets))
    sizes = size_bytes[graph.targets]
    sums = np.bincount(sources * kinds + kind[graph.targets], weights=sizes, minlength=count * kinds)
    unsized = np.bincount(sources[sizes == 0], minlength=count)
    return LinkedBytes(sums.reshape(count, kinds).astype(np.int64), unsized.astype(np.int64))


@frozen
class SizeInput:
    """u URLs and m links between them; links may repeat."""

    size_bytes: Ints  # u: 0 if unknown
    media: Unsigned8  # u: index in MediaClass, from `media_places`; OTHER if unknown
    sources: Ints  # m: indices of URLs
    targets: Ints  # m
    kinds: Unsigned8  # m: indices in KINDS


@frozen
class PageWeights:
    """Bytes by media class of k pages, a row per page, columns in the order of MediaClass."""

    pulled: Ints  # k x classes: including the page's own bytes
    pulled_unsized: Ints  # k x classes: number of resources of unknown size
    linked: Ints  # k x classes: link targets


@frozen
class SiteSizes:
    """Totals of the site: each URL once, however many pages use it."""

    size_bytes: Ints  # by class: the pages, their resources and link targets
    urls: Ints  # by class: URLs of known size
    unsized: Ints  # by class: URLs of unknown size


def media_places(media_types: Sequence[str]) -> Unsigned8:
    """The index in MediaClass of each media type's class."""
    of_type = {name: _CLASS_PLACE[media_class(name)] for name in set(media_types)}
    return np.fromiter((of_type[name] for name in media_types), np.uint8, len(media_types))


def pulled_bytes(sizes: SizeInput) -> Ints:
    """int64[u]: the bytes of each URL including its resources, each once. O(u + m log m)."""
    source, target = _pairs(sizes, PULLED_KINDS)
    parts = np.bincount(source, weights=sizes.size_bytes[target], minlength=len(sizes.size_bytes))  # exact up to 2^53
    return np.asarray(sizes.size_bytes + parts.astype(np.int64))


def weights(sizes: SizeInput, pages: Ints) -> PageWeights:
    """The resources and link targets of these pages (k distinct indices): each target once per page, without
    self-links.
    """
    row = np.full(len(sizes.size_bytes), -1)
    row[pages] = np.arange(len(pages))
    classes = _classes(sizes)
    pulled, unsized = _sums(sizes, PULLED_KINDS, row, classes)
    pulled[row[pages], sizes.media[pages]] += sizes.size_bytes[pages]
    return PageWeights(pulled, unsized, _sums(sizes, LINKED_KINDS, row, classes)[0])


def _sums(sizes: SizeInput, kinds: frozenset[LinkKind], row: Ints, classes: Ints) -> tuple[Ints, Ints]:
    """(bytes, targets of unknown size) by row and class, over links of these kinds. row: of each source; -1: none."""
    shape = (int(row.max(initial=-1)) + 1, _CLASSES)
    source, target = _pairs(sizes, kinds, row >= 0)
    cell, is_sized = row[source] * _CLASSES + classes[target], sizes.size_bytes[target] > 0
    total = np.bincount(cell, weights=sizes.size_bytes[target], minlength=shape[0] * _CLASSES)
    unknown = np.bincount(cell[~is_sized], minlength=shape[0] * _CLASSES)
    return total.astype(np.int64).reshape(shape), unknown.astype(np.int64).reshape(shape)


def _pairs(sizes: SizeInput, kinds: frozenset[LinkKind], among: Mask | None = None) -> tuple[Ints, Ints]:
    """Distinct (source, target) pairs of links of these kinds, without self-links. among: mask of sources."""
    count = max(len(sizes.size_bytes), 1)
    links = np.isin(sizes.kinds, [KINDS.index(kind) for kind in kinds]) & (sizes.sources != sizes.targets)
    if among is not None:
        links &= among[sizes.sources]
    pairs = sort_distinct(sizes.sources[links].astype(np.int64) * count + sizes.targets[links])
    return pairs // count, pairs % count


def _classes(sizes: SizeInput) -> Ints:
    """The class of each URL: of its media type, or if that is unknown, of a kind of link to it."""
    classes = sizes.media.astype(np.int64)
    by_kind = np.array([_CLASS_PLACE[_CLASS_OF_KIND.get(kind, MediaClass.OTHER)] for kind in KINDS], np.int64)
    guess = by_kind[sizes.kinds]
    other = _CLASS_PLACE[MediaClass.OTHER]
    guessed = (classes[sizes.targets] == other) & (guess != other) & (sizes.size_bytes[sizes.targets] == 0)
    classes[sizes.targets[guessed]] = guess[guessed]
    return classes


def site_sizes(sizes: SizeInput, own: Mask) -> SiteSizes:
    """The bytes of the site's pages (own: bool[u]), their resources and link targets, each URL once."""
    counted = np.isin(sizes.kinds, [KINDS.index(kind) for kind in PULLED_KINDS | LINKED_KINDS]) & own[sizes.sources]
    used = own.copy()
    used[sizes.targets[counted]] = True
    classes, is_sized = _classes(sizes), sizes.size_bytes > 0
    total = np.bincount(classes[used], weights=sizes.size_bytes[used], minlength=_CLASSES)
    return SiteSizes(
        total.astype(np.int64),
        np.bincount(classes[used & is_sized], minlength=_CLASSES).astype(np.int64),
        np.bincount(classes[used & ~is_sized], minlength=_CLASSES).astype(np.int64),
    )
