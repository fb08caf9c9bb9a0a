"""Content codings: round trips, damaged streams, and limits against decompression bombs."""

import gzip
import random
import tracemalloc
import zlib

import brotli
import pytest
import zstandard

from periplus.acquire.inflating import RATIO_GRACE_BYTES, STEP_BYTES, inflate
from periplus.model.visit import Cut
from periplus.settings import FetchLimits

LIMITS = FetchLimits()
LOOSE = FetchLimits(inflation_ratio=100_000)
TEXT = b"".join(b"<p>Sounding %d: %d fathoms.</p>\n" % (n, n * 7919 % 97) for n in range(4000))


def raw_deflate(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "x-gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", PACKERS)
def test_a_compressed_body_is_restored(coding):
    assert inflate(PACKERS[coding](TEXT), coding, LIMITS) == (TEXT, Cut.NONE)


@pytest.mark.parametrize("coding", PACKERS)
@pytest.mark.parametrize("size", [1, STEP_BYTES - 1, STEP_BYTES, STEP_BYTES + 1, STEP_BYTES + 2, 2 * STEP_BYTES + 1])
def test_nothing_is_lost_at_the_borders_of_steps(coding, size):
    for data in (bytes(size), (b"ab" * size)[:size], random.Random(size).randbytes(size)):
        assert inflate(PACKERS[coding](data), coding, LOOSE) == (data, Cut.NONE)


def test_rfc9110_deflate_is_zlib_and_raw_deflate_is_accepted():
    assert inflate(raw_deflate(TEXT), "deflate", LIMITS) == (TEXT, Cut.NONE)


def test_several_members_are_concatenated():
    for pack, coding in ((PACKERS["gzip"], "gzip"), (PACKERS["zstd"], "zstd")):
        assert inflate(pack(b"one ") + pack(b"two"), coding, LIMITS) == (b"one two", Cut.NONE)


def test_bytes_after_the_last_member_are_ignored():
    packed = PACKERS["gzip"](b"all")
    assert inflate(packed + bytes(20), "gzip", LIMITS) == (b"all", Cut.NONE)
    assert inflate(packed + b"rubbish", "gzip", LIMITS) == (b"all", Cut.NONE)


def test_zstd_streams_need_no_declared_size():
    packer = zstandard.ZstdCompressor().compressobj()
    assert inflate(packer.compress(TEXT) + packer.flush(), "zstd", LIMITS) == (TEXT, Cut.NONE)


@pytest.mark.parametrize("coding", PACKERS)
def test_the_received_part_of_a_truncated_stream_is_returned(coding):
    data = TEXT + random.Random(1).randbytes(400_000)  # the random part gets its own blocks
    packed = PACKERS[coding](data)
    for length in (len(packed) - 1, len(packed) * 2 // 3):
        body, cut = inflate(packed[:length], coding, LIMITS)
        assert cut is Cut.SHORT
        assert data.startswith(body)
        assert length < len(packed) - 1 or len(body) > len(data) * 0.6


@pytest.mark.parametrize("coding", ["gzip", "zstd", "br", "deflate"])
def test_a_body_with_a_wrong_coding_header_is_kept_unchanged(coding):
    for body in (b"<!doctype html><p>plain", b"\xff\xfe" * 100, b"<!doctype html>" * 10_000):
        assert inflate(body, coding, LIMITS) == (body, Cut.BAD_ENCODING)
    assert inflate(b"plain", "gzip", LIMITS) == (b"plain", Cut.BAD_ENCODING)


def test_the_part_before_the_damage_of_a_stream_is_returned():
    packed = bytearray(PACKERS["gzip"](TEXT + random.Random(2).randbytes(STEP_BYTES * 2)))
    packed[-8:-4] = b"\0\0\0\0"  # the checksum
    body, cut = inflate(bytes(packed), "gzip", LIMITS)
    assert cut is Cut.BAD_ENCODING
    assert body.startswith(TEXT)


def test_several_codings_are_undone_in_reverse_order():
    assert inflate(PACKERS["br"](PACKERS["gzip"](TEXT)), "gzip, br", LIMITS) == (TEXT, Cut.NONE)
    assert inflate(PACKERS["gzip"](TEXT), "identity, GZIP ,", LIMITS) == (TEXT, Cut.NONE)


def test_ours_a_body_with_many_or_unknown_codings_is_kept_unchanged():
    assert inflate(b"x", "gzip, gzip, gzip, gzip", LIMITS) == (b"x", Cut.BAD_ENCODING)
    assert inflate(b"x", "compress", LIMITS) == (b"x", Cut.BAD_ENCODING)
    assert inflate(b"x", "", LIMITS) == (b"x", Cut.NONE)
    assert inflate(b"", "gzip", LIMITS) == (b"", Cut.NONE)


def test_the_limit_of_inflated_bytes_is_exact():
    limits = FetchLimits(inflated_bytes=5000)
    for coding, pack in PACKERS.items():
        assert inflate(pack(TEXT), coding, limits) == (TEXT[:5000], Cut.INFLATED_LIMIT)
        assert inflate(pack(TEXT[:5000]), coding, limits) == (TEXT[:5000], Cut.NONE)


def _bomb(coding, megabytes=40):
    block = bytes(1 << 20)
    if coding == "zstd":
        packer = zstandard.ZstdCompressor(level=1).compressobj()
    elif coding == "br":
        packer = brotli.Compressor(quality=1)
    else:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    compress = packer.process if coding == "br" else packer.compress
    return b"".join(compress(block) for _ in range(megabytes)) + (packer.finish() if coding == "br" else packer.flush())


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("limits", [LIMITS, LOOSE])
def test_a_bomb_needs_limited_memory(coding, limits):
    """32 MiB may be kept, 64 MiB with the parts before joining. The ratio limit ends it much earlier."""
    bomb = _bomb(coding)
    tracemalloc.start()
    body, cut = inflate(bomb, coding, limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if limits is LIMITS:
        assert cut is Cut.RATIO_LIMIT
        assert peak < 40 << 20
    else:
        assert cut in (Cut.INFLATED_LIMIT, Cut.RATIO_LIMIT)
        assert peak < 100 << 20
    assert RATIO_GRACE_BYTES < len(body) <= limits.inflated_bytes


def test_rfc9659_a_zstd_window_over_8_mib_is_refused():
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=25)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = packer.compress(random.Random(3).randbytes(9 << 20)) + packer.flush()
    assert inflate(body, "zstd", LIMITS)[1] is Cut.BAD_ENCODING
