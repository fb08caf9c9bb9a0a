"""Brings a collection up to date by the settings of its last crawl, and counts what was new, changed or gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from periplus.acquire.clock import SystemClock
from periplus.api.audit import CHECK
from periplus.api.crawling import CrawlEnd, CrawlOrder, Progress, crawl
from periplus.api.homes import home_of
from periplus.errors import UsageError
from periplus.model.frontier import RefreshFinding
from periplus.model.ports import Clock
from periplus.model.web import Url
from periplus.settings import Settings, rows, settings_from

REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class RefreshEnd:
    """How a refresh ended. findings: how many URLs were what; all kinds are named."""

    end: CrawlEnd
    findings: Mapping[RefreshFinding, int]

    @property
    def checked(self) -> int:
        return sum(
            count
            for finding, count in self.findings.items()
            if finding not in (RefreshFinding.NEW, RefreshFinding.UNREACHED)
        )


def refresh_order(place: Path | str, given: Mapping[str, Any], *, due_only: bool = False) -> CrawlOrder:
    """A refresh of the collection by the settings of its last crawl or refresh, with those given in their place.

    place: a folder, or an address.

    Raises NoCollection, UsageError where nothing was crawled yet, UnknownSetting.
    """
    records = home_of(place).runs()
    starts = tuple(dict.fromkeys(Url(text) for record in records for text in record.starts))
    if not starts:
        raise UsageError(f"{place} has no run yet: `periplus crawl URL` begins one there")
    # what a check was told is not how the site is crawled
    crawls = [record for record in records if record.kind != CHECK] or records
    settings = settings_from(given, last_settings(crawls[-1].settings))
    folder, store = (Path(), place) if isinstance(place, str) else (place, "")
    return CrawlOrder(folder, starts, settings, kind=REFRESH, due_only=due_only, store=store)


def last_settings(stored: Mapping[str, object]) -> Settings:
    """The settings of a run as they were stored; a password is not among them,
    and names that are gone since are left out.
    """
    names = {row.name for row in rows()} - {"auth"}
    return settings_from({name: value for name, value in stored.items() if name in names})


def refresh(order: CrawlOrder, watch: Callable[[Progress], bool], clock: Clock | None = None) -> RefreshEnd:
    """Asks again for what the collection knows, and follows what is new. watch: as for `crawl`.

    A refresh in which no server answered is no success, whatever the collection holds from before.
    """
    end = crawl(order, watch)
    findings = order.home.findings(end.run_id)
    answered = sum(
        findings[finding]
        for finding in (RefreshFinding.NEW, RefreshFinding.UNCHANGED, RefreshFinding.CHANGED, RefreshFinding.BACK)
    )
    unreached = findings[RefreshFinding.UNREACHED]
    if end.state == "done" and (unreached or not answered):
        state = "suspicious" if answered else "failed"
        note = (
            f"{unreached} URLs were not asked for, because their hosts were given up"
            if answered
            else "no page was read again"
        )
        end = replace(end, state=state, note=f"{note}; what was known of them is kept")
        order.home.end_run(end.run_id, end.state, end.note, (clock or SystemClock()).now())
    return RefreshEnd(end, findings)
