"""Bytes behind the links of a page, by class of media type."""

import numpy as np
import pytest

from periplus.analyse.sizes import linked_bytes
from periplus.model.graph import LinkGraph
from periplus.model.page import MediaClass, media_class


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("text/html", "pages"),
        ("application/xhtml+xml", "pages"),
        ("application/pdf", "documents"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "documents"),
        ("application/atom+xml", "documents"),
        ("text/plain", "documents"),
        ("image/svg+xml", "images"),
        ("video/mp4", "recordings"),
        ("text/css", "styles"),
        ("application/javascript", "scripts"),
        ("application/zip", "other"),
        ("", "other"),
    ],
)
def test_a_media_type_has_one_class(media_type, expected):
    assert media_class(media_type) == expected


def test_a_page_counts_the_bytes_of_linked_images():
    """Page 0 links to three images, one of unknown size, and to page 4."""
    graph = LinkGraph(
        tuple("abcde"),
        np.array([0, 4, 4, 4, 4, 5]),
        np.array([1, 2, 3, 4, 0], np.int32),
        np.ones(5, bool),
        np.zeros(5, np.int32),
    )
    found = linked_bytes(
        graph, np.array([70, 1000, 2**40, 0, 30]), ["text/html", "image/png", "image/jpeg", "image/png", "text/html"]
    )
    by_class = [dict(zip(MediaClass, row, strict=True)) for row in found.sizes.tolist()]
    assert {name: size for name, size in by_class[0].items() if size} == {"pages": 30, "images": 1000 + 2**40}
    assert {name: size for name, size in by_class[4].items() if size} == {"pages": 70}
    assert found.sizes[1:4].sum() == 0
    assert found.unsized.tolist() == [1, 0, 0, 0, 0]


def test_an_empty_graph_has_no_linked_bytes():
    empty = LinkGraph((), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, bool), np.zeros(0, np.int32))
    assert linked_bytes(empty, np.zeros(0, np.int64), []).sizes.shape == (0, len(MediaClass))
