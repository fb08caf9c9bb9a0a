"""Runs jobs from the queue: each is a command in a separate process, monitored until it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.api.homes import store_of
from periplus.children import Command
from periplus.errors import UsageError
from periplus.features import features
from periplus.logs import FORMAT_VARIABLE
from periplus.masking import MASK, SOURCES, masked_command
from periplus.model.job import Job, JobOrder, JobProgress, JobState
from periplus.model.ports import Clock
from periplus.values import IN_DOUBT, frozen

if TYPE_CHECKING:
    from periplus.store.job_queue import JobQueue

KINDS = (
    "crawl",
    "refresh",
    "check",
    "map",
    "report",
    "export",
    "index",
    "template",
    "delete",
    *(command.name for feature in features().values() for command in feature.commands if command.is_job),
)
LEASE_S = 30.0  # a runner without a heartbeat for this time is considered dead
LOOK_S = 0.5  # interval at which a running job is polled
NAP_S = 1.0  # interval at which an empty queue is polled
GRACE_S = 60.0  # time for a stopped job to store its answers
EXIT_INTERRUPT = 130  # exit code of a command that was stopped by Ctrl-C
ENDS = ("Failed:", "Suspicious:")  # start of the line with the result of a crawl; the rest of the line is not an error
LOGS = "jobs"  # folder of the jobs' output, beside the queue
# wait before a job whose process was killed (usually out of memory) is tried again; doubled each time
AGAIN_S = 20.0
_TAIL_BYTES = 4_000


@contextlib.contextmanager
def opened_queue(
    folder: Path, store: str = "", *, make: bool = False, waits: bool = False
) -> Iterator[tuple[JobQueue, Clock]]:
    """The queue of the folder or, if store is an address, of the collection in that database.

    make: create a missing collection; waits: wait minutes for a database that is restarting, as workers do, instead of
    seconds.

    Raises UsageError, NoCollection, StoreError.
    """
    place = store or folder
    queue, clock = store_of(place).queue(place, make=make, waits=waits)
    try:
        yield queue, clock
    finally:
        queue.close()


# If a runner dies, its job's process stops as at Ctrl-C and saves its work. So the next attempt continues where the
# last one stopped.


@frozen
class Runner:
    """A process that runs jobs.

    name: of this runner, shown to users; stopped: polled a few times per second; watchers: called with each job that
    has ended, and with None while there is none.
    """

    folder: Path
    queue: JobQueue
    clock: Clock
    name: str
    stopped: Callable[[], bool]
    watchers: Sequence[Callable[[Job | None], None]] = ()


def make_order(command: tuple[str, ...], priority: int = 0) -> JobOrder:
    """An order for a command. Raises UsageError for commands that are not in KINDS."""
    if not command or command[0] not in KINDS:
        raise UsageError(
            f"{command[0] if command else ''!r} cannot be a job; a job is one of the commands {', '.join(KINDS)}, with "
            "its arguments"
        )
    safe = masked_command(command)
    if any(MASK in word for word in safe):
        raise UsageError(f"a job stores no password or token: give a reference such as --proxy env:NAME ({SOURCES})")
    return JobOrder(safe, priority)


def run_jobs(runner: Runner, *, forever: bool) -> int:
    """Runs due jobs until it is stopped or no job is open. Returns the number of ended jobs."""
    ended = 0
    while not runner.stopped():
        runner.queue.tick(runner.clock.now())
        job = runner.queue.claim(runner.name, runner.clock.now(), LEASE_S)
        if job is not None:
            if do(runner, job):
                ended += 1
                for watch in runner.watchers:
                    watch(runner.queue.job(job.id))
        elif not forever and not runner.queue.open_jobs():
            break
        else:
            for watch in runner.watchers:
                watch(None)
            time.sleep(NAP_S)
    return ended


def do(runner: Runner, job: Job) -> bool:
    """Runs one job in a separate process.

    True: it has ended; False: it was returned to the queue, or another runner has it.
    """
    (runner.folder / LOGS).mkdir(0o700, exist_ok=True)
    out_file, err_file = ((runner.folder / LOGS / f"{job.id}.{ending}") for ending in ("out", "err"))
    with (
        out_file.open("wb") as out,
        err_file.open("ab") as err,
        # users read the log of a job
        Command(
            job.order.command, env={**os.environ, FORMAT_VARIABLE: "text"}, cwd=runner.folder, stdout=out, stderr=err
        ) as command,
    ):
        continues = _watch(runner, job, command)
    status = command.process.returncode
    state, note = _result_of(job, status, continues=continues, log=err_file)
    wait_s = AGAIN_S * 2 ** (job.attempt - 1) if state is JobState.QUEUED and status < 0 else 0.0
    return runner.queue.finish(job, state, note, runner.clock.now(), wait_s) and state is not JobState.QUEUED


def _watch(runner: Runner, job: Job, command: Command) -> bool:
    """Monitors the command until it ends.

    False: it was stopped because the job was cancelled or is another runner's; True: it ended, or the runner stops.
    """
    progress, stop_at, cancelled = JobProgress(), float("inf"), False
    while True:
        try:
            command.process.wait(LOOK_S)
            return not cancelled
        except subprocess.TimeoutExpired:
            pass
        progress = command.progress(progress)
        continues = runner.queue.beat(job, progress, runner.clock.now(), LEASE_S)
        if stop_at == float("inf") and (not continues or runner.stopped()):
            cancelled = not continues
            command.process.send_signal(signal.SIGINT)
            stop_at = time.monotonic() + GRACE_S
        elif time.monotonic() > stop_at:
            command.process.kill()


def _result_of(job: Job, status: int, *, continues: bool, log: Path) -> tuple[JobState, str]:
    """(state, note) by the exit status of a process, negative for a signal."""
    if status == 0:
        return JobState.DONE, ""
    if not continues:
        return JobState.CANCELLED, "cancelled"
    if status == EXIT_INTERRUPT:
        return JobState.QUEUED, "stopped with its runner; the next runner continues it"
    if status < 0:
        again = job.attempt < job.order.most_attempts
        return JobState.QUEUED if again else JobState.FAILED, f"killed by {signal.Signals(-status).name}" + (
            "; it is tried again" if again else ""
        )
    if status == IN_DOUBT:
        return JobState.DONE, "some URLs are left in doubt: `periplus status` lists them"
    return JobState.FAILED, error_of(_end_of(log)) or f"exit code {status}"


def error_of(lines: Sequence[str]) -> str:
    """The error of a failed command, from the lines of its stderr.

    The last line in the form of our or click's errors, else the last line (of a traceback), else empty.
    """
    for line in reversed(lines):
        sentence = line.removeprefix("periplus: ").removeprefix("Error: ")
        if sentence != line or line.startswith(ENDS):
            return sentence.strip()
    return lines[-1].strip() if lines else ""


def _end_of(log: Path) -> list[str]:
    """The last lines of a job's output."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read().decode("utf-8", "replace").strip().splitlines()
