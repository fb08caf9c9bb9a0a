"""How is work that keeps its state elsewhere spread over a cluster's machines, and done again where one was lost?"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException

from periplus.analyse.engines.spark.engine import reason_of, session_on
from periplus.errors import StoreError

log = logging.getLogger(__name__)

DRIVER_BYTES = 1 << 30  # it only waits
GROUP = "periplus"
CARRYING = {
    "spark.speculation": "false",  # a second copy of a slow task would be one more worker, and slow is what a polite crawl is
    "spark.task.maxFailures": "100",  # lost machines are no reason to give up: the state is elsewhere, and each loss is one failure of a task
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
        stages = [stage for job in tracker.getJobIdsForGroup(GROUP) if (info := tracker.getJobInfo(job)) for stage in info.stageIds]
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
    """Calls work in so many tasks, each with its number, as cores become free; of one whose machine was lost again, elsewhere. Raises StoreError.

    work: a function that the machines' own copy of this program has, with its arguments bound.
    """
    with session_on(master, DRIVER_BYTES, CARRYING) as session:
        yield Carried(session.sparkContext, tasks, work)
