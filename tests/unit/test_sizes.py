"""Bytes of a page with its resources, and bytes behind its links."""

import numpy as np

from periplus.analyse.sizes import KINDS, SizeInput, media_places, pulled_bytes, site_sizes, weights
from periplus.model.page import LinkKind, MediaClass

CLASSES = list(MediaClass)
TYPES = ["text/html", "image/png", "text/css", "application/pdf", "", "text/html"]
SIZES = [100, 2000, 300, 50_000, 0, 70]
LINKS = [
    (0, 1, "image"),
    (0, 1, "image"),
    (0, 1, "a"),  # the image is embedded and linked to
    (0, 2, "style"),
    (0, 4, "script"),
    (0, 3, "a"),
    (0, 0, "a"),
    (0, 5, "a"),
    (5, 1, "image"),
    (5, 3, "cite"),
]


def sizes():
    sources, targets, kinds = zip(*LINKS, strict=True)
    places = [KINDS.index(LinkKind(kind)) for kind in kinds]
    return SizeInput(
        np.array(SIZES), media_places(TYPES), np.array(sources), np.array(targets), np.array(places, np.uint8)
    )


def named(row):
    return {CLASSES[place].value: value for place, value in enumerate(row.tolist()) if value}


def test_a_page_counts_itself_and_each_resource_once():
    found = weights(sizes(), np.array([5, 0]))
    assert named(found.pulled[1]) == {"pages": 100, "images": 2000, "styles": 300}
    assert named(found.pulled[0]) == {"pages": 70, "images": 2000}
    assert pulled_bytes(sizes())[[0, 5]].tolist() == [2400, 2070]


def test_a_resource_of_unknown_size_counts_in_the_class_of_its_link():
    assert named(weights(sizes(), np.array([0])).pulled_unsized[0]) == {"scripts": 1}


def test_linked_bytes_exclude_resources_metadata_links_and_the_page_itself():
    found = weights(sizes(), np.arange(6))
    assert named(found.linked[0]) == {"images": 2000, "documents": 50_000, "pages": 70}
    assert named(found.linked[5]) == {}


def test_the_site_counts_each_url_once():
    found = site_sizes(sizes(), np.array([True, False, False, False, False, True]))
    assert named(found.size_bytes) == {"pages": 170, "images": 2000, "styles": 300, "documents": 50_000}
    assert named(found.urls) == {"pages": 2, "images": 1, "styles": 1, "documents": 1}
    assert named(found.unsized) == {"scripts": 1}


def test_without_pages_there_are_no_bytes():
    none = np.zeros(0, np.int64)
    empty = SizeInput(none, none.astype(np.uint8), none, none, none.astype(np.uint8))
    assert weights(empty, none).pulled.shape == (0, len(CLASSES))
    assert pulled_bytes(empty).tolist() == []
    assert site_sizes(empty, none.astype(np.bool_)).size_bytes.sum() == 0
