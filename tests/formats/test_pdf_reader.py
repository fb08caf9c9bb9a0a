"""A PDF file that kills, blocks or fills its reader process has a fault, and the next file is read."""

from __future__ import annotations

import pytest

from periplus_formats.pdf_reader import PdfReader

# Programs instead of PDFium: they read the length and the bytes of a file, then act as their name says.
TAKES = (
    "import sys, os, time, signal; n = int.from_bytes(sys.stdin.buffer.read(8), 'little'); "
    "data = sys.stdin.buffer.read(n); "
)
ANSWERS = "import json; told = json.dumps(['<p>' + data.decode(), '']).encode(); out = sys.stdout.buffer; "
SAYS = "out.write(len(told).to_bytes(8, 'little') + told); out.flush(); "
HALF = "out.write((len(told) + 5).to_bytes(8, 'little') + told); out.flush(); "
FILLS = (
    "import periplus_formats.pdf_reader as r; r.MEMORY_BYTES = 400 << 20; r._limit_resources(); x = b'x' * (1 << 30); "
)


@pytest.fixture
def made():
    readers = []

    def made(program, limit_s=30.0):
        readers.append(PdfReader(("-c", program), limit_s))
        return readers[-1]

    yield made
    for reader in readers:
        reader.close()


def test_a_reader_process_returns_its_answer(made):
    assert made(TAKES + ANSWERS + SAYS).html_of(b"abc").html == "<p>abc"


@pytest.mark.parametrize(
    "end",
    ["os.kill(os.getpid(), signal.SIGSEGV)", "os.abort()", "sys.exit(0)", "raise MemoryError", ANSWERS + HALF, FILLS],
    ids=["crash", "abort", "exit", "raise", "half an answer", "memory"],
)
def test_a_file_that_kills_its_reader_has_a_fault(made, end, capfd):
    """The next file gets a new process."""
    reader = made(TAKES + end)
    for _ in range(2):
        told = reader.html_of(b"abc")
        assert told.fault == "damaged: its reader did not survive it" and "<body></body>" in told.html


def test_a_file_that_takes_too_long_has_a_fault(made):
    assert made(TAKES + "time.sleep(600)", 0.5).html_of(b"abc").fault == "its reader took longer than 0.5 s"


def test_a_reader_that_does_not_read_is_ended(made):
    """The file is larger than the pipe's buffer, so a plain write would block forever."""
    assert (
        made("import time; time.sleep(600)", 0.5).html_of(bytes(1 << 20)).fault == "its reader took longer than 0.5 s"
    )


def test_a_reader_that_died_between_files_is_replaced(made):
    reader = made(TAKES + ANSWERS + SAYS)
    assert reader.html_of(b"one").html == "<p>one"
    reader._child.wait(300)
    assert reader.html_of(b"two").html == "<p>two"


def test_closing_ends_the_process(made):
    reader = made(TAKES + ANSWERS + SAYS + "time.sleep(600)")
    reader.html_of(b"one")
    child = reader._child
    reader.close()
    assert child.poll() is not None
