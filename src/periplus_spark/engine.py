"""Which function computes each stage on a cluster, how the cluster is reached,
and work that keeps its state elsewhere.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from periplus.analyse.engines.dataset_files import manifest_in
from periplus.analyse.engines.stages import Cluster, Engine, StageTask
from periplus.errors import StoreError
from periplus_spark import frames

ROWS_A_TASK = 2_000_000  # of links: some 60 MB of an exchange
TASKS_A_CORE = 2

_STAGES: dict[str, Callable[[frames.SparkTask], None]] = {
    "ends": frames.ends,
    "graph": frames.graph,
    "ranks": frames.ranks,
    "web_ranks": frames.web_ranks,
    "map": frames.site_map,
    "broken": frames.broken,
    "external": frames.external,
    "duplicates": frames.duplicates,
    "sketches": frames.sketches,
    "near": frames.near,
    "outlines": frames.outlines,
    "templates": frames.templates,
    "interlinking": frames.interlinking,
    "cascades": frames.cascades,
}


@contextlib.contextmanager
def engine_on(master: str, memory_bytes: int) -> Iterator[Engine]:
    """The engine on this cluster.

    A session is begun with the first stage that is not there yet. memory_bytes: of the JVM, where it is on this
    machine. Raises StoreError for a cluster that cannot be reached, or an analysis that it gave up.
    """
    with contextlib.ExitStack() as opened:
        sessions: list[SparkSession] = []

        def run(name: str, task: StageTask) -> None:
            if not sessions:
                sessions.append(opened.enter_context(session_on(master, memory_bytes)))
            session = sessions[0]
            with _translated(f"the cluster {master} gave up at {name}"):
                tasks = max(
                    session.sparkContext.defaultParallelism * TASKS_A_CORE,
                    manifest_in(task.dataset).rows("links") // ROWS_A_TASK,
                )
                session.conf.set("spark.sql.shuffle.partitions", tasks)
                _STAGES[name](frames.SparkTask(session, task))

        yield {name: partial(run, name) for name in _STAGES}


@contextlib.contextmanager
def session_on(
    master: str, memory_bytes: int, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """Spark's own settings (spark-defaults.conf) hold for all that is not set here.

    Each machine has this program at the same path.
    """
    builder = (
        SparkSession.builder.master(master)
        .appName("periplus")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.parquet.compression.codec", "zstd")
    # all that a driver in Python looks at; else executors take the system's
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
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


log = logging.getLogger(__name__)

DRIVER_BYTES = 1 << 30  # it only waits
GROUP = "periplus"
CARRYING = {
    # a second copy of a slow task would be one more worker, and slow is what a polite crawl is
    "spark.speculation": "false",
    # lost machines are no reason to give up: the state is elsewhere, and each loss is one failure of a task
    "spark.task.maxFailures": "100",
    "spark.excludeOnFailure.enabled": "false",
}


class Carried:
    """Tasks on a cluster: some at work, others waiting for a core."""

    def __init__(self, context: SparkContext, tasks: int, work: Callable[[int], None]) -> None:
        self._context, self._tasks, self._work = context, tasks, work
        self._failure = ""
        self._thread = InheritableThread(target=self._carry, daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        try:
            self._context.setJobGroup(GROUP, "periplus", interruptOnCancel=True)
            self._context.parallelize(range(self._tasks), self._tasks).foreach(self._work)
        except (PySparkException, Py4JError) as error:
            self._failure = reason_of(error)

    @property
    def at_work(self) -> int:
        """Tasks that have a core now."""
        tracker = self._context.statusTracker()
        stages = [
            stage
            for job in tracker.getJobIdsForGroup(GROUP)
            if (info := tracker.getJobInfo(job))
            for stage in info.stageIds
        ]
        return sum(info.numActiveTasks for stage in stages if (info := tracker.getStageInfo(stage)))

    @property
    def is_over(self) -> bool:
        """All tasks have ended. Raises StoreError where the cluster gave up."""
        if self._thread.is_alive():
            return False
        if self._failure:
            raise StoreError(f"the cluster gave up: {self._failure}. The same command goes on where it was.")
        return True

    def wait(self, limit_s: float) -> None:
        """For all tasks to end by themselves; then those that are left are ended."""
        self._thread.join(limit_s)
        if self._thread.is_alive():
            log.warning("tasks cancelled=%d", self.at_work)
            self._context.cancelJobGroup(GROUP)
            self._thread.join(limit_s)


@contextlib.contextmanager
def carried(master: str, tasks: int, work: Callable[[int], None]) -> Iterator[Carried]:
    """Calls work in so many tasks, each with its number, as cores become free;
    of one whose machine was lost again, elsewhere.

    Raises StoreError.

    work: a function that the machines' own copy of this program has, with its arguments bound.
    """
    with session_on(master, DRIVER_BYTES, CARRYING) as session:
        yield Carried(session.sparkContext, tasks, work)


SPARK = Cluster(engine_on, carried)
