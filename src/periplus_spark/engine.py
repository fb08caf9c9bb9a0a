"""How a cluster is reached, the stages on it, and work that keeps its state elsewhere."""

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
from pyspark import InheritableThread, SparkConf, SparkContext
from pyspark.errors import PySparkException

from periplus.analyse.engines.stages import Cluster, Engine, StageTask
from periplus.errors import StoreError
from periplus_spark.blocks import blocks_of
from periplus_spark.stages import STAGES

log = logging.getLogger(__name__)

LOOK_S = 15.0
WAITING_LOOKS = 2  # between the tasks of two rounds there is a moment without any
# the JVMs hand out tasks and no more: a session took 5.4 CPU s before, 2.9 so
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextlib.contextmanager
def engine_on(master: str, memory_bytes: int) -> Iterator[Engine]:
    """The engine on this cluster.

    A session is begun with the first stage that is not there yet. memory_bytes: of all tasks, where they are on this
    machine. Raises StoreError for a cluster that cannot be reached, or an analysis that it gave up.
    """
    with contextlib.ExitStack() as opened:
        contexts: list[SparkContext] = []

        def run(name: str, task: StageTask) -> None:
            if not contexts:
                contexts.append(opened.enter_context(session_on(master)))
            context = contexts[0]
            cores = context.defaultParallelism
            with _translated(f"the cluster {master} gave up at {name}"):
                STAGES[name](context, blocks_of(task, cores, memory_bytes // cores if _is_here(master) else 0))

        yield {name: partial(run, name) for name in STAGES}


def _is_here(master: str) -> bool:
    return master.startswith("local")


@contextlib.contextmanager
def session_on(master: str, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[SparkContext]:
    """Spark's own settings (spark-defaults.conf) hold for all that is not set here.

    Each machine has this program at the same path.
    """
    own = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # a second copy of a slow task would only be one more: of an analysis, to write the same files
        "spark.speculation": "false",
        "spark.driver.defaultJavaOptions": JAVA_OPTIONS,
        "spark.executor.defaultJavaOptions": JAVA_OPTIONS,
    }
    conf = SparkConf().setMaster(master).setAppName("periplus").setAll([*own.items(), *more.items()])
    # all that a driver in Python looks at; else executors take the system's
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _translated(f"no session on {master} (is a master there, and Java 17 here?)"), _own_interrupt():
        context = SparkContext.getOrCreate(conf)
    context.setLogLevel("FATAL")
    over = threading.Event()
    threading.Thread(target=_tell_of_waiting, args=(context, master, over), daemon=True).start()
    try:
        yield context
    finally:
        over.set()
        context.stop()


def _tell_of_waiting(context: SparkContext, master: str, over: threading.Event) -> None:
    """Warns, once each time, where work has waited for a machine at two looks: of its own Spark says nothing."""
    looks = 0
    while not over.wait(LOOK_S):
        tracker = context.statusTracker()
        stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number))]
        looks = looks + 1 if stages and not any(stage.numActiveTasks for stage in stages) else 0
        if looks == WAITING_LOOKS:
            log.warning(
                "no machine of the cluster %s is at work: waiting for one. Ctrl-C ends; the same command goes on",
                master,
            )


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


GROUP = "periplus"
CARRYING = {
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
        return sum(state.numActiveTasks for stage in stages if (state := tracker.getStageInfo(stage)))

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
    with session_on(master, CARRYING) as context:
        yield Carried(context, tasks, work)


SPARK = Cluster(engine_on, carried)
