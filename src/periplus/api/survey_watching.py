"""How does a campaign stand at this moment, for however many who watch it? Only the pages that are new are read."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from periplus.api.survey_choice import Chooser, again, chooser_of
from periplus.api.survey_live import last_settings, standing
from periplus.api.survey_plan import campaign_from
from periplus.model.campaign import Campaign, CampaignStanding
from periplus.store.sqlite import browsing, reading, runs, survey_plan, survey_visits

SHARE = 0.1  # of the time at most goes into looking: a look that took 0.3 s is shown for 3 s
LEAST_S = 1.0  # so long each look is shown
CATCH_UP_S = 0.7  # a long campaign that nobody watched so far is caught up with in several looks of so long
REMEMBERED = 20  # campaigns that are watched at once: 8 bytes a link each


@dataclass(frozen=True, slots=True)
class SurveyMoment:
    """A campaign as it stands. seq: grows with every change; behind: stored pages that are not in it yet."""

    seq: int
    standing: CampaignStanding
    behind: bool


@dataclass(slots=True)
class _Watch:
    """What is remembered of one campaign between two looks."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    plan: str = ""
    chooser: Chooser | None = None
    last: int = 0  # visit that was booked
    seen: tuple[int, int, str] = (0, 0, "")  # runs, visits, plan of the last look
    fetched: int = 0  # by all runs: less than before, if pages were deleted
    moment: SurveyMoment | None = None
    good_until: float = 0.0


class SurveyWatchers:
    """Looks at campaigns for all who watch. For many threads."""

    def __init__(self) -> None:
        self._watches: dict[Path, _Watch] = {}
        self._lock = threading.Lock()

    def look(self, folder: Path) -> SurveyMoment:
        """Raises UsageError where there is no survey, NoCollection, StoreError."""
        with self._lock:
            if len(self._watches) > REMEMBERED:
                self._watches.clear()
            watch = self._watches.setdefault(folder.resolve(), _Watch())
        with watch.lock, contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            plan = survey_plan.plan(connection)
            if watch.moment is None or plan != watch.plan or time.monotonic() > watch.good_until:
                began = time.monotonic()
                with reading.snapshot(connection):
                    watch.moment = _looked(folder, watch, connection)
                watch.good_until = time.monotonic() + max(LEAST_S, (time.monotonic() - began) / SHARE)
                if watch.moment.behind:
                    watch.good_until = 0.0
            return watch.moment


def _looked(folder: Path, watch: _Watch, connection: reading.Connection) -> SurveyMoment:
    plan = survey_plan.plan(connection)
    campaign = campaign_from(plan, folder)
    seen = (*browsing.standing(connection), plan)
    if watch.moment is not None and seen == watch.seen and not watch.moment.behind:
        return watch.moment
    fetched = sum(run.fetched for run in runs.run_records(connection))
    deleted, watch.fetched = fetched < watch.fetched, fetched
    if watch.chooser is None or plan != watch.plan or deleted:
        watch.plan, watch.last = plan, 0
        watch.chooser = _chooser(campaign, connection)
    behind = _caught_up(watch, watch.chooser, connection)
    watch.seen = seen
    return SurveyMoment(watch.moment.seq + 1 if watch.moment else 1, standing(campaign, watch.chooser, connection), behind)


def _chooser(campaign: Campaign, connection: reading.Connection) -> Chooser:
    """As the campaign's own, but that it need not tell pages of a site apart: orders take half a megabyte a site."""
    return chooser_of(dataclasses.replace(campaign, within="breadth"), last_settings(connection))


def _caught_up(watch: _Watch, chooser: Chooser, connection: reading.Connection) -> bool:
    """Books what is new, for CATCH_UP_S at most. Whether more is there."""
    end = time.monotonic() + CATCH_UP_S
    for visit in survey_visits.page_visits(connection, watch.last):
        again(chooser, connection, visit)
        watch.last = visit.id
        if time.monotonic() > end:
            return True
    return False


def campaign_here(folder: Path) -> Campaign | None:
    """The survey in folder; None: it holds none. Raises NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        text = survey_plan.plan(connection)
    return campaign_from(text, folder) if text else None
