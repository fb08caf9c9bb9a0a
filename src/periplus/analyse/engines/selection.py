"""Which URLs, links and pages count, and in what order do pages go? The rules that all engines share."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from periplus.analyse.audit_links import NOT_FOLLOWED
from periplus.analyse.engines.tables import Ints, Mask, blocks, flags, is_among, numbers
from periplus.analyse.linkgraph import PAGES
from periplus.model.page import FOLLOWED_KINDS, LinkKind
from periplus.model.visit import FETCHED, STATE_OF, Reason, State

PAGE_REASONS = sorted(reason.value for reason in PAGES)
FETCHED_REASONS = sorted(reason.value for reason in FETCHED)
INVALID_REASONS = sorted(reason.value for reason in Reason if STATE_OF[reason] is State.INVALID)
FOLLOWED = sorted(kind.value for kind in FOLLOWED_KINDS)
ASKED = sorted(kind.value for kind in LinkKind if kind not in NOT_FOLLOWED)

DEPTH_MOST, LENGTH_MOST, NUMBER_BITS, LENGTH_BITS = 1022, 8191, 40, 13
"""What a merit has room for: it is one number of 63 bits. Longer URLs are alike in length, and deeper pages in depth."""
FOLDER = r"^[a-z]+://(?:www\.)?([^?]*)/.*$"
"""Of a URL, what names the folder that it lies in: without scheme and `www.`, as analyse.fragment tells directories."""
LEADERS_MOST = 16  # of one bucket, as in analyse.nearness: bounds the work where thousands of pages share a band and no more


class UrlVectors(NamedTuple):
    """What is held of each URL: 11 bytes."""

    site: Ints
    page: Mask
    fetched: Mask
    invalid: Mask


def url_vectors(dataset: Path) -> UrlVectors:
    return UrlVectors(
        numbers(dataset, "urls", "site"),
        is_among(dataset, "urls", "reason", PAGE_REASONS),
        is_among(dataset, "urls", "reason", FETCHED_REASONS),
        is_among(dataset, "urls", "reason", INVALID_REASONS),
    )


def end_vector(ends_folder: Path, urls: int) -> Ints:
    """Of each URL, where redirects lead from there: itself where there are none, -1 in a circle."""
    end = np.arange(urls)
    end[numbers(ends_folder, "ends", "source")] = numbers(ends_folder, "ends", "end", missing=-1)
    return end


def homes(dataset: Path, end: Ints, urls: UrlVectors) -> Ints:
    """The home page of each site that has one, ascending: where its first start leads."""
    ends = end[flags(dataset, "urls", "is_start")]
    ends = np.unique(ends[ends >= 0])
    ends = ends[urls.fetched[ends]]
    _, first = np.unique(urls.site[ends], return_index=True)
    found: Ints = np.sort(ends[first])
    return found


def merits(depth: Ints, length: Ints, number: Ints) -> Ints:
    """By which pages go in order, the least first: nearer to the start (-1: no link leads there), shorter URL, then by the URL's text."""
    near = np.where(depth < 0, DEPTH_MOST + 1, np.minimum(depth, DEPTH_MOST))
    found: Ints = (near << (LENGTH_BITS + NUMBER_BITS)) | (np.minimum(length, LENGTH_MOST) << NUMBER_BITS) | number
    return found


def merits_of(dataset: Path) -> Ints:
    """Of each URL."""
    import pyarrow.compute as pc

    lengths = [np.asarray(pc.binary_length(block.column(0)), np.int64) for block in blocks(dataset, "urls", ["text"])]
    length = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    return merits(numbers(dataset, "urls", "depth"), length, np.arange(len(length)))


def directory_hashes(dataset: Path) -> Ints:
    """Of each URL, 64 bits that name the folder that it lies in."""
    import pyarrow.compute as pc
    import xxhash

    found = []
    for block in blocks(dataset, "urls", ["text"]):
        names = pc.replace_substring_regex(block.column(0), FOLDER, r"\1").dictionary_encode()
        hashes = np.fromiter((xxhash.xxh3_64_intdigest(name.encode()) for name in names.dictionary.to_pylist()), np.uint64, len(names.dictionary))
        found.append(hashes.view(np.int64)[np.asarray(names.indices)])
    return np.concatenate(found) if found else np.zeros(0, np.int64)
