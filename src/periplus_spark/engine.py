"""Spark sessions, stages of analyses on a cluster, and tasks that keep their state elsewhere (crawls)."""

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

from periplus.errors import StoreError
from periplus_spark import streamed
from periplus_spark.api import Cluster
from periplus_spark.files import Engine, StageTask
from periplus_spark.stages import STAGES, blocks_of

log = logging.getLogger(__name__)

LOOK_S = 15.0
WAITING_LOOKS = 2  # checks in a row without running tasks; between two rounds there may be one
# the JVMs only schedule tasks: with these options a session takes 2.9 s of CPU instead of 5.4 s
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
GROUP = "periplus"
CARRYING = {
    # lost machines must not end the job: the state is elsewhere, and each loss counts as a task failure
    "spark.task.maxFailures": "100",
    "spark.excludeOnFailure.enabled": "false",
}


@contextlib.contextmanager
def engine_on(master: str, memory_bytes: int) -> Iterator[Engine]:
    """The engine on this cluster; stages that no cluster computes run here. The session starts with the first stage
    that the cluster must compute.

    memory_bytes: for all tasks, if they run on this machine. Raises StoreError if the cluster cannot be reached or a
    stage fails.
    """
    with contextlib.ExitStack() as opened:
        contexts: list[SparkContext] = []

        def run(name: str, task: StageTask) -> None:
            if not contexts:
                contexts.append(opened.enter_context(session_on(master)))
            context = contexts[0]
            cores = context.defaultParallelism
            with _translate_errors(f"the cluster {master} failed at {name}"):
                STAGES[name](context, blocks_of(task, cores, memory_bytes // cores if _is_here(master) else 0))

        yield {**streamed.ENGINE, **{name: partial(run, name) for name in STAGES}}


def _is_here(master: str) -> bool:
    return master.startswith("local")


@contextlib.contextmanager
def session_on(master: str, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[SparkContext]:
    """A Spark session. Settings that are not set here come from spark-defaults.conf.

    This program must be installed at the same path on each machine.
    """
    own = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # a second copy of a slow task would only repeat its work and write the same files
        "spark.speculation": "false",
        "spark.driver.defaultJavaOptions": JAVA_OPTIONS,
        "spark.executor.defaultJavaOptions": JAVA_OPTIONS,
    }
    conf = SparkConf().setMaster(master).setAppName("periplus").setAll([*own.items(), *more.items()])
    # the Python of the executors; by default they use the system's
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with (
        _translate_errors(f"no session on {master} (is the master running, and is Java 17 installed?)"),
        _own_interrupt(),
    ):
        context = SparkContext.getOrCreate(conf)
    context.setLogLevel("FATAL")
    over = threading.Event()
    threading.Thread(target=_warn_of_waiting, args=(context, master, over), daemon=True).start()
    try:
        yield context
    finally:
        over.set()
        context.stop()


def _warn_of_waiting(context: SparkContext, master: str, over: threading.Event) -> None:
    """Warns once if tasks wait for a machine at WAITING_LOOKS checks in a row; Spark itself prints no warning."""
    looks = 0
    while not over.wait(LOOK_S):
        tracker = context.statusTracker()
        stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number))]
        looks = looks + 1 if stages and not any(stage.numActiveTasks for stage in stages) else 0
        if looks == WAITING_LOOKS:
            log.warning(
                "waiting for a machine of the cluster %s. Ctrl-C stops; the same command continues later",
                master,
            )


@contextlib.contextmanager
def _own_interrupt() -> Iterator[None]:
    """Restores the handler of Ctrl-C, which pyspark replaces by one that cancels every job and raises."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _translate_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise StoreError(f"{what}: {reason_of(error)}. Run the same command again to continue.") from error


def reason_of(error: Exception) -> str:
    """The first line of an error message; of the Java exception if there is one."""
    own = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return (own.strip().splitlines() or [type(error).__name__])[0]


class ClusterTasks:
    """Tasks on a cluster, running or waiting for a core."""

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
        """Number of running tasks."""
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
        """Whether all tasks have ended. Raises StoreError if the cluster failed."""
        if self._thread.is_alive():
            return False
        if self._failure:
            raise StoreError(f"the cluster failed: {self._failure}. Run the same command again to continue.")
        return True

    def wait(self, limit_s: float) -> None:
        """Waits for all tasks to end; after limit_s cancels the remaining ones."""
        self._thread.join(limit_s)
        if self._thread.is_alive():
            log.warning("tasks cancelled=%d", self.at_work)
            self._context.cancelJobGroup(GROUP)
            self._thread.join(limit_s)


@contextlib.contextmanager
def run_on_cluster(master: str, tasks: int, work: Callable[[int], None]) -> Iterator[ClusterTasks]:
    """Calls work(number) in `tasks` tasks as cores become free; tasks of lost machines run again on others.

    work: a function of this program, which is installed on every machine, with its arguments bound. Raises StoreError.
    """
    with session_on(master, CARRYING) as context:
        yield ClusterTasks(context, tasks, work)


SPARK = Cluster(engine_on, run_on_cluster)
