"""Runs the commands of a tutorial in order, in one folder, against the example webs.

A block ```console is a terminal: a line `$ command`, its continuation lines `> `, then the output. A line `...` matches
any number of lines; output is compared only if it is shown. A block titled "Second terminal" has one command, which
runs until the next such block or the end. Blocks ```python run in a single Python session, and a block ```text after
one is its output. A command must exit with 0 unless it prints its code (`; echo $?`).

Ports, times, dates, session ids, keys of stories and sizes of files are replaced before the comparison, and white space
is folded. Progress is switched off, since it depends on speed.

python tests/tutorials.py docs/tutorials/webmaster.md     prints the real output
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVERS = {"demo": "8000", "serve": "8321"}  # default port of each command
START_S, PATIENCE_S = 300.0, 1_200.0  # ten times the duration on an idle machine
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARIABLE = (  # in this order
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?: ?UTC|Z)?)?"), "<date>"),
    (re.compile(r"\b\d{1,2} [A-Z][a-z]{2,8} \d{4}\b"), "<date>"),
    (re.compile(r"\b\d\d:\d\d(?::\d\d)? UTC\b"), "<time>"),
    (re.compile(r"\b(pin|approve): [a-z2-7]{8}(?:, [a-z2-7]{8})*"), r"\1: <keys>"),
    (re.compile(r"[\d.,]+ [kKMG]?B on disk"), "<size> on disk"),
    (re.compile(r"\b[\d,]+ bytes\b"), "<size>"),  # of a compressed file
    (re.compile(r"\b\d[\d.,]* ?(?:ms|s|min)(?: \d+ s)?(?![\w/])"), "<time>"),
)
SESSION = """
import json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "<tutorial>", "exec"), names)
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        code = 1
    print("\\0%d" % code, flush=True)
"""


class TutorialFailure(AssertionError):
    """A command failed, or its output differs from the tutorial."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command or a block of Python, with the output that the tutorial shows."""

    kind: str  # shell, background or python
    text: str
    shown: str
    line: int  # of the tutorial, from 1


def steps(text: str) -> list[Step]:
    """The steps of a tutorial, in order."""
    parts: list[Step] = []
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        language, title, body = block[1], block[2], block[3]
        if language == "console":
            kind = "background" if "Second terminal" in title else "shell"
            parts += [Step(kind, *command, line + offset) for offset, *command in _commands(body)]
        elif language == "python":
            parts.append(Step("python", body, "", line))
        elif language == "text" and parts and parts[-1].kind == "python":
            parts[-1] = Step("python", parts[-1].text, body, parts[-1].line)
    return parts


def _commands(body: str) -> Iterator[tuple[int, str, str]]:
    """(line within the block, command, output) of each command in a terminal block."""
    lines = body.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        after = start + 1
        while after < end and lines[after].startswith("> "):
            after += 1
        command = "\n".join(line[2:] for line in lines[start:after])
        yield start, command, "\n".join(lines[after:end])


def plain(text: str) -> list[str]:
    """The lines of an output, with placeholders for values that differ between runs."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for pattern, word in VARIABLE:
        lines = [pattern.sub(word, line) for line in lines]
    return [line for line in lines if line]


def agrees(shown: str, output: str) -> bool:
    """Whether the output matches what the tutorial shows. If it shows nothing, any output matches."""
    pattern = "".join(r"(?:[^\n]*\n)*" if line == "..." else re.escape(line) + "\n" for line in plain(shown))
    return not pattern or re.fullmatch(pattern, "".join(line + "\n" for line in plain(output))) is not None


def free_port(taken: Collection[str]) -> str:
    """A free port with four digits, so that columns are as wide as in the tutorial."""
    for port in range(2000 + os.getpid() % 5000, 10_000):
        with socket.socket() as sock, contextlib.suppress(OSError):
            if str(port) in taken:
                continue
            sock.bind(("127.0.0.1", port))
            return str(port)
    raise TutorialFailure("no port of four digits is free")


class Terminal:
    """A folder, a home, a Python session and a background process. A context manager that ends its processes."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir(parents=True)
        (folder / "home").mkdir()
        self.python = program / "python"
        keep = ("LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
        environment = {name: os.environ[name] for name in keep if name in os.environ} | {
            "PATH": f"{program}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "COLUMNS": "100",
            "PERIPLUS_NO_PROGRESS": "1",
            "PYTHONUTF8": "1",
        }
        self.streams: dict[str, Any] = {
            "cwd": self.folder,
            "env": environment,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
        }
        self.ports: dict[str, str] = {}
        for written in SERVERS.values():
            self.ports[written] = free_port(self.ports.values())
        self.beside: subprocess.Popen[str] | None = None
        self.session: subprocess.Popen[str] | None = None

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_beside()
        if self.session:
            self.session.communicate(timeout=START_S)

    def end_beside(self) -> None:
        """Presses Ctrl-C in the second terminal."""
        if self.beside:
            self.beside.send_signal(signal.SIGINT)
            try:
                self.beside.communicate(timeout=START_S)
            except subprocess.TimeoutExpired:
                self.beside.kill()
                self.beside.communicate()
            self.beside = None

    def changed(self, text: str) -> str:
        """A command with the ports of this run instead of those in the tutorial or the default ports."""
        for written, port in self.ports.items():
            text = text.replace(written, port)
        for command, written in SERVERS.items():
            text = re.sub(rf"periplus {command}\b", rf"\g<0> --port {self.ports[written]}", text)
        return text

    def original(self, text: str) -> str:
        for written, port in self.ports.items():
            text = text.replace(port, written).replace(f" --port {written}", "")
        return text

    def run(self, step: Step) -> tuple[int, str]:
        """The exit code and the output of a step, with the ports of the tutorial."""
        if step.kind == "python":
            return self._python(step)
        if step.kind == "background":
            return self._begin(step)
        end = subprocess.run(
            ["bash", "-c", self.changed(step.text)],
            **self.streams,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=False,
        )
        return end.returncode, self.original(end.stdout)

    def _begin(self, step: Step) -> tuple[int, str]:
        """Starts a background command and waits until it has printed the shown number of lines, at least one."""
        self.end_beside()
        command = self.changed(step.text)
        self.beside = subprocess.Popen(
            ["bash", "-c", f"exec env {command}"],
            **self.streams,
            stdin=subprocess.DEVNULL,
        )
        assert self.beside.stdout is not None
        output = "".join(self.beside.stdout.readline() for _ in range(max(1, len(step.shown.splitlines()))))
        if "periplus serve" in command:
            self._await_port(self.ports[SERVERS["serve"]])
        return self.beside.poll() or 0, self.original(output)

    def _await_port(self, port: str) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), timeout=1):
                return
            time.sleep(0.1)
        raise TutorialFailure(f"nothing listens on port {port}")

    def _python(self, step: Step) -> tuple[int, str]:
        if self.session is None:
            self.session = subprocess.Popen(
                [self.python, "-u", "-c", SESSION],
                **self.streams,
                stdin=subprocess.PIPE,
            )
        assert self.session.stdin is not None and self.session.stdout is not None
        self.session.stdin.write(json.dumps(self.changed(step.text)) + "\n")
        self.session.stdin.flush()
        lines: list[str] = []
        for line in self.session.stdout:
            before, mark, code = line.partition("\0")
            lines.append(before)
            if mark:
                return int(code), self.original("".join(lines))
        return 1, self.original("".join(lines))


@dataclass(frozen=True, slots=True)
class Ended:
    """A step with its real output."""

    step: Step
    output: str
    took_s: float


def follow(tutorial: Path, folder: Path, program: Path) -> Iterator[Ended]:
    """Runs a tutorial in an empty folder and home. program: the folder of `periplus` and `python`.

    Raises TutorialFailure if a step fails or its output differs.
    """
    parts = steps(tutorial.read_text("utf-8"))
    if not parts:
        raise TutorialFailure(f"{tutorial.name} has no commands")
    with Terminal(folder, program) as terminal:
        for step in parts:
            began = time.monotonic()
            code, output = terminal.run(step)
            where = f"{tutorial.name}, line {step.line}: {step.text}"
            if code:
                raise TutorialFailure(f"{where}\nended with {code}:\n{output}")
            if not agrees(step.shown, output):
                shown, came = ("\n".join(plain(text)) for text in (step.shown, output))
                raise TutorialFailure(f"{where}\nis shown with\n{shown}\n--- but came\n{came}")
            yield Ended(step, output, time.monotonic() - began)


def main() -> None:
    for name in sys.argv[1:]:
        folder = Path(tempfile.mkdtemp(prefix="tutorial-"))
        try:
            for ended in follow(Path(name), folder, Path(sys.executable).parent):
                print(f"\n$ {ended.step.text}   [{ended.took_s:.1f} s]\n{ended.output}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
