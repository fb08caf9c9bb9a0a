"""A local Spark cluster: a master and workers from the pyspark wheel, as child processes, ended by pid."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

WAIT_S = 300.0  # a JVM starts slowly on a busy machine
LOOPBACK = "127.0.0.1"


def why_no_spark() -> str:
    """Why the tests cannot run, or an empty string."""
    if os.environ.get("PERIPLUS_TEST_SPARK") != "1":
        return "PERIPLUS_TEST_SPARK=1 runs the tests on Spark: make test-spark"
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: pip install 'periplus[cluster]'"
    return "" if shutil.which("java") else "there is no java: Spark needs 17"


@dataclass
class Cluster:
    """A running cluster. url: spark://host:port."""

    url: str
    master: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def family(self, worker: subprocess.Popen[bytes]) -> list[int]:
        """Pids of the processes that a worker started: executors and their Python processes."""
        found, waiting = [], [worker.pid]
        while waiting:
            with contextlib.suppress(OSError):  # the process ended in the meantime
                children = [
                    int(pid)
                    for path in Path(f"/proc/{waiting.pop()}/task").glob("*/children")
                    for pid in path.read_text().split()
                ]
                found += children
                waiting += children
        return found

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """Kills a worker and all its processes, as in a power failure."""
        family = self.family(worker)
        worker.kill()
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def cluster(folder: Path, workers: int = 2, cores: int = 1) -> Iterator[Cluster]:
    """A cluster whose workers have all joined."""
    folder.mkdir()
    port = _free_port()
    url = f"spark://{LOOPBACK}:{port}"
    made = Cluster(
        url,
        _started(
            folder,
            "master",
            "org.apache.spark.deploy.master.Master",
            "--host",
            LOOPBACK,
            "--port",
            str(port),
            "--webui-port",
            "0",
        ),
    )
    try:
        _until(folder / "master.log", "Starting Spark master", made.master)
        for number in range(workers):
            place = str(folder / f"work{number}")
            flags = (
                "--host",
                LOOPBACK,
                "--cores",
                str(cores),
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                place,
                url,
            )
            made.workers.append(_started(folder, f"worker{number}", "org.apache.spark.deploy.worker.Worker", *flags))
        for number, worker in enumerate(made.workers):
            _until(folder / f"worker{number}.log", "Successfully registered with master", worker)
        yield made
    finally:
        for process in (*made.workers, made.master):
            process.terminate()
        for process in (*made.workers, made.master):
            process.wait(30)


def _started(folder: Path, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), main, *arguments], stdout=log, stderr=log, env=environment
        )


def _until(log: Path, words: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + WAIT_S
    while words not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        return int(found.getsockname()[1])
