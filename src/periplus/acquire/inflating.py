"""Reads HTTP answers: header lines, and content codings with limits on size and compression ratio."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

from isal import isal_zlib

from periplus.extras import is_installed
from periplus.model.visit import Cut, Headers
from periplus.settings import FetchLimits

STEP_BYTES = 262_144  # inflated at a time; limits are checked between steps
RATIO_GRACE_BYTES = 1_048_576  # the ratio is not checked below this size
ZSTD_WINDOW_BYTES = 1 << 23  # RFC 9659: the maximum for content codings
ZSTD_SLICE_BYTES = 512  # 4 bytes may become 128 KB (RFC 8878, 3.1.1.2): so a step is 16 MB at most
HAS_BROTLI = is_installed("brotli")  # else `br` is not sent in Accept-Encoding
FIELD_BYTES = 80  # longer header lines differ in each answer
MOST_CODINGS = 3  # longer chains are treated as an attack


def read_header(lines: Sequence[bytes]) -> tuple[int, Headers, bool]:
    """(status, header, whether it is complete) of the last answer; earlier ones are 1xx or a proxy's answer to CONNECT.

    lines: as libcurl passes them, with line ends; trailer fields are included.
    """
    status, status_line, is_whole, fields = 0, "", False, list[tuple[str, str]]()
    for line in lines:
        field = _repeated_field(line) if len(line) <= FIELD_BYTES else _field(line)
        if field is not None:
            fields.append(field)
        elif line[:5] == b"HTTP/":
            parts = line.split(None, 2)
            status = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
            status_line, is_whole, fields = line.decode("latin-1").strip(), False, []
        elif line in (b"\r\n", b"\n"):
            is_whole = True
    return status, Headers(tuple(fields), status_line), is_whole


def _field(line: bytes) -> tuple[str, str] | None:
    """(name, value), or None if the line is not a header field."""
    name, colon, value = line.decode("latin-1").partition(":")
    return (name.strip().lower(), value.strip()) if colon and name[:5] != "HTTP/" else None


_repeated_field = lru_cache(maxsize=2_048)(_field)  # most lines repeat in every answer of a host


def _zlib_steps(body: bytes, window_bits: int) -> Iterator[tuple[bytes, int]]:
    inflater = isal_zlib.decompressobj(wbits=window_bits)
    data = body
    while True:
        step = inflater.decompress(data, STEP_BYTES)
        data = inflater.unconsumed_tail
        yield step, len(body) - len(data)
        if inflater.eof:
            data = inflater.unused_data.lstrip(b"\0")  # further members may follow, and padding after the last
            if data[:2] != b"\x1f\x8b" or window_bits < 16:
                return
            inflater = isal_zlib.decompressobj(wbits=window_bits)
        elif not step and not data:  # without data left, the inflater may still hold output
            raise EOFError


def _gzip(body: bytes) -> Iterator[tuple[bytes, int]]:
    if not body.startswith(b"\x1f\x8b"):  # the inflater would wait for the ten bytes of a header
        raise ValueError("no gzip")
    return _zlib_steps(body, 31)


def _deflate(body: bytes) -> Iterator[tuple[bytes, int]]:
    """RFC 9110 requires the zlib format; some servers send raw deflate data."""
    zlib_wrapped = len(body) >= 2 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _zlib_steps(body, 15 if zlib_wrapped else -15)


def _zstd(body: bytes) -> Iterator[tuple[bytes, int]]:
    """Uses decompressobj, since the stream reader does not distinguish the end of a frame from truncation.

    decompressobj has no output limit; small input slices bound its output.
    """
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    inflater = decompressor.decompressobj()
    consumed = 0
    while consumed < len(body):
        step = inflater.decompress(body[consumed : consumed + ZSTD_SLICE_BYTES])
        consumed = min(len(body), consumed + ZSTD_SLICE_BYTES) - len(inflater.unused_data)
        yield step, consumed
        if inflater.eof and consumed < len(body):
            inflater = decompressor.decompressobj()
    if not inflater.eof:
        raise EOFError


def _brotli(body: bytes) -> Iterator[tuple[bytes, int]]:
    import brotli

    inflater = brotli.Decompressor()
    data = body
    while not inflater.is_finished():
        step = inflater.process(data, output_buffer_limit=STEP_BYTES)
        data = b""
        if not step and inflater.can_accept_more_data():
            raise EOFError
        yield step, len(body)


_DECODERS = {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "zstd": _zstd}
if HAS_BROTLI:
    _DECODERS["br"] = _brotli


def _errors() -> tuple[type[Exception], ...]:
    import zstandard

    errors = (zlib.error, cast(type[Exception], isal_zlib.error), zstandard.ZstdError, ValueError)
    if not HAS_BROTLI:
        return errors
    import brotli

    return (*errors, brotli.error)


def _decode(body: bytes, coding: str, limits: FetchLimits) -> tuple[bytes, Cut]:
    steps: list[bytes] = []
    size = 0
    try:
        for step, consumed in _DECODERS[coding](body):
            steps.append(step)
            size += len(step)
            if size > limits.inflated_bytes:
                steps[-1] = step[: len(step) - (size - limits.inflated_bytes)]
                return b"".join(steps), Cut.INFLATED_LIMIT
            if size > RATIO_GRACE_BYTES and size > consumed * limits.inflation_ratio:
                return b"".join(steps), Cut.RATIO_LIMIT
    except EOFError:
        return b"".join(steps), Cut.SHORT
    except _errors():
        return b"".join(steps) if size else body, Cut.BAD_ENCODING
    return steps[0] if len(steps) == 1 else b"".join(steps), Cut.NONE


@lru_cache(maxsize=64)
def _codings(content_encoding: str) -> Sequence[str]:
    codings = [coding.strip().lower() for coding in content_encoding.split(",")]
    return [coding for coding in codings if coding and coding != "identity"]


def inflate(body: bytes, content_encoding: str, limits: FetchLimits) -> tuple[bytes, Cut]:
    """The body without its content codings (RFC 9110, 8.4.1), and why it is incomplete, if it is. Never raises.

    A body that is not in the coding that its header names is returned unchanged, with Cut.BAD_ENCODING.
    """
    codings = _codings(content_encoding)
    if len(codings) > MOST_CODINGS:
        return body, Cut.BAD_ENCODING
    for coding in reversed(codings):
        if coding not in _DECODERS:
            return body, Cut.BAD_ENCODING
        if not body:
            break
        body, cut = _decode(body, coding, limits)
        if cut is not Cut.NONE:
            return body, cut
    return body, Cut.NONE
