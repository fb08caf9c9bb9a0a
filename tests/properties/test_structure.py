"""Blocks are read from the store as they were written."""

from __future__ import annotations

import gzip

from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.model.page import Block, BlockKind, Blocks, Part, Position
from periplus.store.bodies import BodyCodec, pack_blocks, pack_parts, unpack_blocks, unpack_parts

LINE = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n"), min_size=1, max_size=300)
PATH = st.text("abc/#.", max_size=20)


@st.composite
def a_block(draw):
    kind = draw(st.sampled_from(BlockKind))
    text = draw(LINE)
    if kind is BlockKind.CODE:
        text = "\n".join([text, *draw(st.lists(st.text("xy ", max_size=3), max_size=4)), "end"])
    level = draw(st.integers(1, 6)) if kind is BlockKind.HEADING else 0
    chars = draw(st.one_of(st.just(0), st.just(len(text)), st.integers(0, 80_000)))
    return Block(
        kind,
        text,
        draw(PATH),
        level,
        draw(st.sampled_from(Position)),
        chars,
        draw(st.sampled_from(["", "", "cs", "zh-hant"])),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(a_block(), min_size=1, max_size=30).map(Blocks.of))
def test_blocks_come_out_as_they_went_in(blocks):
    assert unpack_blocks(pack_blocks(blocks), blocks.text) == blocks


@given(st.lists(st.sampled_from(Part)))
def test_parts_come_out_as_they_went_in(parts):
    assert unpack_parts(pack_parts(parts)) == tuple(parts)
    assert len(pack_parts(parts)) == len(parts)


def test_the_numbers_of_kinds_and_landmarks_never_change():
    """They are stored in collections."""
    rows = (
        *(Block(kind, "x", "p", 1 if kind is BlockKind.HEADING else 0) for kind in BlockKind),
        *(Block(BlockKind.PARAGRAPH, "y", "p", 0, place) for place in Position),
    )
    blocks = Blocks.of(rows)
    assert unpack_blocks(bytes.fromhex(STORED), blocks.text) == blocks == rows


def test_every_kind_landmark_and_part_has_a_number():
    for kind in BlockKind:
        for place in Position:
            blocks = Blocks.of([Block(kind, "x", "", 0, place)])
            assert unpack_blocks(pack_blocks(blocks), blocks.text) == blocks


STORED = "28b52ffd206b8d0100c0011000000011000101020304050607080205427000780a780a006080cf7d4ce500e4c00e9c03e0e660061727e339a705"  # noqa: E501


@given(st.binary(min_size=1, max_size=300), st.binary(min_size=1, max_size=300), st.integers(1, 3000))
def test_a_text_and_its_body_come_out_of_one_frame_as_they_went_in(text, body, times):
    codec, words = BodyCodec(), text * times
    first, second = codec.pack_page(words, body)
    assert codec.unpack(first, None) == words
    assert codec.unpack_body(second, None, first) == body
    assert codec.unpack_body(codec.pack(body, None), None, first) == body
    assert codec.unpack_body(gzip.compress(body) + gzip.compress(words) + b"\0\0", None, first) == body + words
