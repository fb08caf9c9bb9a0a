"""Pauses crawls in tests and checks that they are idle."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from periplus.api.crawling import Progress
from periplus.api.homes import home_of
from testweb import Server

STILL_LOOKS = 2  # half a second of them


class Pauser:
    """Pauses the crawl after some pages, checks for a while that it is idle, then resumes it."""

    def __init__(self, place: Path | str, server: Server, ready: Callable[[], bool] = lambda: True) -> None:
        """ready: whether the check may begin."""
        self.home, self.server, self.ready = home_of(place), server, ready
        self.looks = self.asked = 0
        self.paused = self.over = False

    def __call__(self, progress: Progress) -> bool:
        if not self.paused and progress.counts.fetched >= 8:
            self.paused = self.home.pause(time.time())
        elif self.paused and not self.over:
            assert progress.paused
            if not any(host.leased for host in progress.hosts) and (self.looks or self.ready()):
                self.looks_on()
        return False

    def looks_on(self) -> None:
        """Waits until all open requests are stored: no worker holds a host."""
        self.looks += 1
        if self.looks == 1:
            self.asked = len(self.server.log.entries)
        elif self.looks > STILL_LOOKS:
            assert len(self.server.log.entries) == self.asked
            assert self.home.resume(time.time())
            self.over = True
