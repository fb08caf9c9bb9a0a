"""The activity line of a command that prints nothing for two seconds; its output has lines of its own."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator

import click
import pytest

from periplus.cli import progress
from periplus.cli.progress import Pulse, Watch

PATIENCE_S = 300.0


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal with an activity line from the start."""
    monkeypatch.setattr(progress, "SILENCE_S", 0.0)
    monkeypatch.setattr(progress, "PULSE_EVERY_S", 0.001)
    return Terminal()


@contextlib.contextmanager
def pulse(terminal: io.StringIO, command: str) -> Iterator[None]:
    """The activity line of a command whose standard output and error are this stream."""
    with contextlib.redirect_stdout(terminal), contextlib.redirect_stderr(terminal):
        with Pulse(lambda: command):
            yield
        assert sys.stdout is terminal and sys.stderr is terminal


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def shown(terminal: Terminal) -> str:
    """The visible text, without cleared lines."""
    lines = terminal.getvalue().split("\n")
    return "\n".join(line.rpartition("\x1b[K")[2] for line in lines)


def test_the_line_shows_command_and_progress_and_is_cleared(terminal):
    with pulse(terminal, "report"):
        until(lambda: "report · " in terminal.getvalue())
        Watch()("reading pages", 3, 40)
        until(lambda: "reading pages: 3 of 40 · " in terminal.getvalue())
        click.echo("report.html")
    assert shown(terminal) == "report.html\n"


def test_no_line_is_drawn_after_a_prompt(terminal):
    with pulse(terminal, "delete"):
        click.echo("Delete it? [y/N]: ", nl=False, err=True)
        before = terminal.getvalue()
        time.sleep(0.05)
        assert terminal.getvalue() == before
        click.echo("y")
        until(lambda: "delete · " in terminal.getvalue()[len(before) :])


def test_a_waiting_command_has_no_line(terminal):
    with pulse(terminal, ""):
        time.sleep(0.05)
    assert terminal.getvalue() == ""


def test_output_of_bytes_ends_the_line(terminal):
    terminal.buffer = io.BytesIO()
    with pulse(terminal, "links"):
        until(lambda: "links · " in terminal.getvalue())
        assert sys.stdout.buffer is terminal.buffer
        before = terminal.getvalue()
        click.echo("done", err=True)
        time.sleep(0.05)
        assert terminal.getvalue() == before + "done\n"
    assert shown(terminal) == "done\n"


def test_there_is_no_line_without_a_terminal():
    plain = io.StringIO()
    with pulse(plain, "report"):
        assert sys.stderr is plain
