"""Sends notices about jobs: after each job, the changes in the collections that it worked on."""

from __future__ import annotations

import contextlib
import logging
import shlex
import time
from pathlib import Path

from periplus.api import notices
from periplus.errors import PeriplusError
from periplus.model.job import Job, JobState

LOOK_EVERY_S = 30.0  # how often an idle runner tries again to send notices
_log = logging.getLogger(__name__)


class Notifier:
    """Called by a runner after each job, and with None while it is idle.

    Errors do not affect the job: they are logged, and sending is tried again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = 0.0

    def __call__(self, job: Job | None) -> None:
        if job is None and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_EVERY_S
        try:
            if job is not None:
                self._look(job)
            notices.deliver(self._folder)
        except PeriplusError as error:
            _log.warning("notices folder=%s error=%s", self._folder, error)

    def _look(self, job: Job) -> None:
        now, folder = time.time(), self._folder
        collections = notices.collections_of(folder, job.order.command)
        if job.state is JobState.FAILED:
            message = f"periplus {shlex.join(job.order.command)}: {job.note}"
            notices.add_failure(folder, job.id, message, collections[0] if collections else None, now, job.epoch)
        for collection in collections:
            with contextlib.suppress(PeriplusError):  # its job has already reported a damaged collection
                notices.look(folder, collection, now)
