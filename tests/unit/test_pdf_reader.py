"""A PDF file may kill, stop or fill its reader: it is told, and the next file is read."""

from __future__ import annotations

import pytest

from periplus.document.formats.pdf_reader import PdfReader

# programs that stand in for PDFium: each reads one file's length and bytes, then does what its name says
TAKES = (
    "import sys, os, time, signal; n = int.from_bytes(sys.stdin.buffer.read(8), 'little'); "
    "data = sys.stdin.buffer.read(n); "
)
ANSWERS = "import json; told = json.dumps(['<p>' + data.decode(), '']).encode(); out = sys.stdout.buffer; "
SAYS = "out.write(len(told).to_bytes(8, 'little') + told); out.flush(); "
HALF = "out.write((len(told) + 5).to_bytes(8, 'little') + told); out.flush(); "
FILLS = (
    "import periplus.document.formats.pdf_reader as r; r.MEMORY_BYTES = 400 << 20; r._limit_resources(); "
    "x = b'x' * (1 << 30); "
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


def test_an_answer_comes_back(made):
    assert made(TAKES + ANSWERS + SAYS).html_of(b"abc").html == "<p>abc"


@pytest.mark.parametrize(
    "end",
    ["os.kill(os.getpid(), signal.SIGSEGV)", "os.abort()", "sys.exit(0)", "raise MemoryError", ANSWERS + HALF, FILLS],
    ids=["crash", "abort", "exit", "raise", "half an answer", "memory"],
)
def test_what_its_reader_does_not_survive_has_a_fault(made, end, capfd):
    """Each file gets a new process where the last one died."""
    reader = made(TAKES + end)
    for _ in range(2):
        told = reader.html_of(b"abc")
        assert told.fault == "damaged: its reader did not survive it" and "<body></body>" in told.html


def test_what_takes_too_long_has_a_fault(made):
    assert made(TAKES + "time.sleep(600)", 0.5).html_of(b"abc").fault == "its reader took longer than 0.5 s"


def test_a_reader_that_takes_nothing_in_is_ended_too(made):
    """More than a pipe holds: writing would wait for ever."""
    assert (
        made("import time; time.sleep(600)", 0.5).html_of(bytes(1 << 20)).fault == "its reader took longer than 0.5 s"
    )


def test_a_reader_that_died_between_two_files_costs_none(made):
    reader = made(TAKES + ANSWERS + SAYS)
    assert reader.html_of(b"one").html == "<p>one"
    reader._child.wait(30)
    assert reader.html_of(b"two").html == "<p>two"


def test_the_process_is_gone_when_it_is_closed(made):
    reader = made(TAKES + ANSWERS + SAYS + "time.sleep(600)")
    reader.html_of(b"one")
    child = reader._child
    reader.close()
    assert child.poll() is not None
