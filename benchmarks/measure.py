"""Measures the cost of commands: time, CPU, memory."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SERVER_CORE = 0
CLIENT_CORE = 1
# interval between memory samples of a process tree; a shorter one costs more than 2 % of the server's core
SAMPLE_S = 0.05
SHARED_SAMPLE_S = 0.5  # the same for PSS, which the kernel computes in 5 ms for half a gigabyte
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a command, including its children."""

    wall_s: float
    cpu_s: float  # user + system, of the command and the children that it waited for
    rss_bytes: int  # largest resident size of one process; with family or shared: of all processes together
    exit_code: int
    said: str  # end of its output


def pinned(command: Sequence[str], core: int | None) -> list[str]:
    """The command pinned to a core; None: not pinned."""
    return list(command) if core is None else ["taskset", "-c", str(core), *command]


def as_installed() -> dict[str, str]:
    """The environment without PYTHONDONTWRITEBYTECODE: pip compiled the modules of the peers, so ours may be cached
    too.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def descendants(pid: int) -> list[int]:
    """The process and its living descendants."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        try:
            waiting += [
                int(word)
                for task in Path(f"/proc/{one}/task").iterdir()
                for word in (task / "children").read_text().split()
            ]
        except OSError:  # the process ended in the meantime
            continue
    return found


def resident_bytes(pid: int) -> int:
    """0 if the process has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def proportional_bytes(pid: int) -> int:
    """Proportional set size (PSS); 0 if the process has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return 1024 * int(rollup.partition("\nPss:")[2].split(maxsplit=1)[0])


class Family:
    """Peak memory of a process and its descendants together, sampled periodically.

    resident_bytes counts shared pages once per process, so the sum is an upper bound.
    """

    def __init__(self, pid: int, of: Callable[[int], int] = resident_bytes, every_s: float = SAMPLE_S) -> None:
        self._pid, self._of, self._every_s = pid, of, every_s
        self.largest = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(self._every_s):
            self.largest = max(self.largest, sum(map(self._of, descendants(self._pid))))

    def end(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.largest


def run(
    command: Sequence[str],
    *,
    core: int | None = CLIENT_CORE,
    cwd: Path | None = None,
    family: bool = False,
    shared: bool = False,
    limit_s: float = 600.0,
) -> Cost:
    """Runs the command; after limit_s seconds it is terminated (exit code -15).

    shared: memory is the sum of PSS over the process tree, sampled less often.
    """
    output = Path(os.devnull) if cwd is None else cwd / ".said"
    with output.open("wb") as sink:
        started = time.monotonic()
        streams = {"stdout": sink, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        child = subprocess.Popen(pinned(command, core), cwd=cwd, env=as_installed(), **streams)
        alarm = threading.Timer(limit_s, child.terminate)
        alarm.start()
        watch = (
            Family(child.pid, proportional_bytes, SHARED_SAMPLE_S) if shared else Family(child.pid) if family else None
        )
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:  # stopping this script stops the command
            child.terminate()
            child.wait()
            raise
        finally:
            alarm.cancel()
        wall = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    rss = usage.ru_maxrss * 1024
    if watch is not None:
        rss = (watch.end() or rss) if shared else max(rss, watch.end())
    said = "" if cwd is None else output.read_text(errors="replace")[-2000:]
    return Cost(wall, usage.ru_utime + usage.ru_stime, rss, child.returncode, said)


def process_cpu_s(pid: int) -> float:
    """User + system seconds of a living process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_cpu_s(pid: int) -> float:
    """User + system seconds of a living process and its descendants, including ended ones."""
    seconds = 0.0
    for one in descendants(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # the process ended in the meantime
            continue
        seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return seconds


def median(values: Iterable[float]) -> float:
    """The median; nan without values."""
    found = list(values)
    return statistics.median(found) if found else float("nan")


def alternated(rounds: int, trials: dict[str, Callable[[], Cost]]) -> dict[str, list[Cost]]:
    """Runs each trial once per round, in alternating order, so that drifting load affects all of them equally."""
    results: dict[str, list[Cost]] = {name: [] for name in trials}
    for number in range(rounds):
        names = list(trials) if number % 2 == 0 else list(reversed(trials))
        for name in names:
            results[name].append(trials[name]())
    return results


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table with aligned columns; floats with three significant digits."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [
        max(len(head), *(len(row[place]) for row in cells)) if cells else len(head) for place, head in enumerate(heads)
    ]
    lines = [list(heads), ["-" * width for width in widths], *cells]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def load() -> str:
    """The load of the machine, to be printed with the figures."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
