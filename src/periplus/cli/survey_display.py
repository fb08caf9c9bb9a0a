"""How does a campaign look while it runs?

Its sites and curves on a terminal, a line now and then elsewhere; always on stderr.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from periplus.children import RunnerLink
from periplus.cli.progress import say, troubles
from periplus.model.job import JobProgress
from periplus.present.harvest import completeness_told, standing_lines
from periplus.present.wording import duration

if TYPE_CHECKING:
    from rich.live import Live

    from periplus.api.survey_run import Watched
    from periplus.model.webometrics import CampaignProgress

PLAIN_EVERY_S = 5.0
SHARE = 0.05  # of the time that may go into showing: estimates over a million links take seconds
LEAST_S = 0.5
SITES_SHOWN = 15


class CampaignDisplay:
    """Shows what is watched. Use as a context."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Live | None = None
        if sys.stderr.isatty() and not quiet:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=4, transient=True)
        self._every_s = LEAST_S if self._live else PLAIN_EVERY_S
        self._shown_at = time.monotonic()
        self._runner = RunnerLink()

    def __enter__(self) -> CampaignDisplay:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, watched: Watched) -> None:
        counts = watched.progress.counts
        rate = counts.fetched / watched.progress.elapsed_s if watched.progress.elapsed_s else 0.0
        self._runner.tell(JobProgress(counts.fetched, counts.fetched + counts.waiting, f"{rate:.1f} pages a second"))
        if self._quiet or time.monotonic() - self._shown_at < self._every_s:
            return
        begun = time.monotonic()
        standing = watched.standing()
        head = " · ".join(
            [
                duration(watched.progress.elapsed_s),
                f"{watched.pages:,} pages in all",
                f"{rate:.1f}/s",
                *troubles(watched.progress),
            ]
        )
        if self._live:
            from rich.text import Text

            self._live.update(Text("\n".join([head, "", *standing_lines(standing, most=SITES_SHOWN)])))
        else:
            say(f"{head} · {_told(standing)}")
        self._shown_at = time.monotonic()
        self._every_s = max(LEAST_S if self._live else PLAIN_EVERY_S, (self._shown_at - begun) / SHARE)


def _told(standing: CampaignProgress) -> str:
    harvest = standing.harvest
    return (
        f"{harvest.total.found[-1]:,.0f} external {harvest.item}s, {harvest.recent:.2f} a page lately; complete: "
        f"{completeness_told(harvest)}"
    )
