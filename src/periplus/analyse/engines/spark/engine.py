"""Which function computes each stage on a cluster, and how is the cluster reached?"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from periplus.analyse.engines.spark import alike, links, maps, ranks
from periplus.analyse.engines.stages import Engine, Task
from periplus.analyse.engines.tables import manifest_in
from periplus.errors import StoreError

ROWS_A_TASK = 2_000_000  # of links: some 60 MB of an exchange
TASKS_A_CORE = 2

_STAGES: dict[str, Callable[[SparkSession, Task], None]] = {
    "ends": links.ends,
    "graph": links.graph,
    "ranks": ranks.ranks,
    "web_ranks": ranks.web_ranks,
    "map": maps.site_map,
    "broken": links.broken,
    "external": links.external,
    "duplicates": alike.duplicates,
    "sketches": alike.sketches,
    "near": alike.near,
    "outlines": alike.outlines,
    "templates": alike.templates,
    "interlinking": links.interlinking,
    "cascades": alike.cascades,
}


@contextlib.contextmanager
def engine_on(master: str, memory_bytes: int) -> Iterator[Engine]:
    """The engine on this cluster. A session is begun with the first stage that is not there yet. memory_bytes: of the JVM, where it is on
    this machine. Raises StoreError for a cluster that cannot be reached, or an analysis that it gave up."""
    with contextlib.ExitStack() as opened:
        sessions: list[SparkSession] = []

        def run(name: str, task: Task) -> None:
            if not sessions:
                sessions.append(opened.enter_context(session_on(master, memory_bytes)))
            session = sessions[0]
            with _translated(f"the cluster {master} gave up at {name}"):
                tasks = max(session.sparkContext.defaultParallelism * TASKS_A_CORE, manifest_in(task.dataset).rows("links") // ROWS_A_TASK)
                session.conf.set("spark.sql.shuffle.partitions", tasks)
                _STAGES[name](session, task)

        yield {name: partial(run, name) for name in _STAGES}


@contextlib.contextmanager
def session_on(master: str, memory_bytes: int, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[SparkSession]:
    """Spark's own settings (spark-defaults.conf) hold for all that is not set here. Each machine has this program at the same path."""
    builder = SparkSession.builder.master(master).appName("periplus").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.parquet.compression.codec", "zstd")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # all that a driver in Python looks at; else executors take the system's
    if master.startswith("local"):
        builder = builder.config("spark.driver.memory", f"{max(memory_bytes >> 20, 1024)}m")
    for name, value in more.items():
        builder = builder.config(name, value)
    with _translated(f"no session on {master} (is a master there, and Java 17 here?)"), _own_interrupt():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("FATAL")
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def _own_interrupt() -> Iterator[None]:
    """Leaves Ctrl-C to who had it before: pyspark takes it, cancels every job and raises."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise StoreError(f"{what}: {reason_of(error)}. The same command goes on where it was.") from error


def reason_of(error: Exception) -> str:
    """Its first line, and that of Java's own, where pyspark says only that there was one."""
    own = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return (own.strip().splitlines() or [type(error).__name__])[0]
