"""The parts of the fuzzers and comparisons in quality/."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

QUALITY = Path(__file__).parents[2] / "quality"


@pytest.fixture
def folders(monkeypatch):
    for name in ("fuzz", "twins"):
        monkeypatch.syspath_prepend(str(QUALITY / name))
    yield
    for name in ("targets", "seeds", "answers", "compare", "one"):
        sys.modules.pop(name, None)


def test_every_fuzz_target_accepts_its_seeds(folders):
    from targets import TARGETS

    for target in TARGETS.values():
        for seed in target.seeds:
            target.run(seed)


def test_compiled_modules_are_interpreted_for_coverage(folders):
    from one import SOURCES, interpreted

    spec = interpreted(str(SOURCES / "periplus" / "document")).find_spec("trigrams")
    assert spec.origin.endswith("trigrams.py")
    with pytest.raises(ImportError):
        interpreted("/nowhere")


def test_a_difference_is_reduced_to_the_smallest_page(folders):
    from compare import reduced

    page = b"<html><p>one two<table><tr><td>x</table><p>more <b>words</b> and &amp; <td>"
    assert reduced(page, lambda data: b"<td" in data and b"&" in data) == b"&<td"
    assert reduced(page, lambda data: True) == b""


def test_two_versions_of_a_reader_can_be_compared(folders):
    from compare import Reader, fields_of

    sources = QUALITY.parent / "src"
    readers = [Reader(sources, "understand"), Reader(sources, "understand")]
    try:
        assert fields_of(readers, b"<title>T</title><p>a <a href=/b>b</a>", frozenset()) == ()
        readers[0].ask(b"<p>a")
        assert readers[0].answer()["blocks.text"] == ["a"]
    finally:
        for reader in readers:
            reader.end()
