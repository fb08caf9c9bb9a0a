"""A survey of many sites: plan, runs, progress, links, and the user's decisions on sites."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

import numpy as np

from periplus.acquire.clock import SystemClock
from periplus.api.crawling import CrawlEnd, CrawlOrder, Progress, check_order, open_run, run_outcome, work
from periplus.api.homes import home_of, open_reader, snapshot_of, workable
from periplus.api.rules import rules_text
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.model.ports import CrawlHome, RunRecord, RunStore, VisitReader
from periplus.model.tables import Row, row_maker
from periplus.model.visit import FETCHED_REASONS, Reason
from periplus.model.web import SiteKey, Url
from periplus.present.wording import REASON_WORDS, why_not
from periplus.settings import Settings, settings_from
from periplus.store import runs
from periplus.store.notes import count_change
from periplus.store.reader import CollectionReader
from periplus.store.statements import Row as Key
from periplus.store.statements import Statements
from periplus.urls.hosts import is_within
from periplus.urls.scope import site_key
from periplus.values import Place, frozen
from periplus_studies import store
from periplus_studies.analyse import companions_worth_reading
from periplus_studies.harvest import harvest_of, harvest_rows
from periplus_studies.model import (
    SURVEY_LINKS,
    Campaign,
    CampaignProgress,
    CompanionRules,
    Harvest,
    SiteMark,
    SiteProgress,
    SiteStatus,
    Unit,
)
from periplus_studies.results import mark_sites
from periplus_studies.rules import CLICK_LINKS
from periplus_studies.schedule import (
    PLAN,
    SurveyPolicy,
    YieldRecord,
    campaign_from,
    check_campaign,
    plan_text,
    read_units,
    start_of,
    survey_policy,
    target_pages,
    within_of,
)
from periplus_studies.units import prefix_of, promote, unit_finder, unit_of

STOP = "survey_stop"  # name of a note in the collection
SURVEY = "survey"  # kind of run
# five clicks as in the published runs; depth counts links only, so sitemaps are not read
DEFAULTS = settings_from({"max_depth": 5, "sitemaps": False, "index": False})
LOOK_S = 0.5  # polling interval for changes of the plan
MOST_QUANTUM = 1_000_000  # the rule allocates pages, not the frontier
_GOOD = FETCHED_REASONS | {Reason.REDIRECT, Reason.ALIAS}
MOST_NAMES = 20_000  # names compared to suggest one for an unknown name: a third of a second


def create(place: Place, campaign: Campaign) -> None:
    """Creates a survey in a new collection, or in one without a survey. Raises UsageError, StoreError."""
    check_campaign(campaign)
    home = home_of(place)
    try:
        home.note(PLAN)
    except NoCollection:
        home.prepare(rules_text(place) if isinstance(place, Path) else "", time.time())

    def new_plan(before: str) -> str:
        if before:
            raise UsageError(
                f"{home} already has a survey: `periplus survey add` adds sites, `periplus survey run` continues it"
            )
        return plan_text(campaign)

    home.change_note(PLAN, new_plan)


def campaign_of(place: Place) -> Campaign:
    """The survey of a collection. Raises UsageError without one, NoCollection, StoreError."""
    return campaign_from(home_of(place).note(PLAN), home_of(place))


def campaign_here(place: Place) -> Campaign | None:
    """The survey of a collection, or None. Raises NoCollection, StoreError."""
    plan = home_of(place).note(PLAN)
    return campaign_from(plan, home_of(place)) if plan else None


def change(place: Place, changed: Callable[[Campaign], Campaign]) -> Campaign:
    """Replaces the survey by `changed(survey)`. A running survey applies it within a second."""

    home = home_of(place)

    def changed_text(before: str) -> str:
        return plan_text(check_campaign(changed(campaign_from(before, home))))

    return campaign_from(home.change_note(PLAN, changed_text), home)


def add_sites(place: Place, units: Iterable[Unit]) -> Campaign:
    """Adds sites. Raises UsageError for a name or prefix that is already in the survey."""
    return change(place, lambda before: dataclasses.replace(before, units=(*before.units, *units)))


def remove_sites(place: Place, names: Iterable[str]) -> tuple[Campaign, tuple[Unit, ...]]:
    """Removes sites by name, short name or prefix; returns the survey and the removed sites. Keeps fetched pages."""
    asked, gone = list(names), dict[str, Unit]()

    def without_sites(before: Campaign) -> Campaign:
        for name in asked:
            units = [unit for unit in before.units if name in (unit.name, unit.short, unit.start, *unit.prefixes)]
            if not units:
                raise UsageError(f"no site {name} in the survey; `periplus survey status` lists them")
            gone.update((unit.name, unit) for unit in units)
        return dataclasses.replace(before, units=tuple(unit for unit in before.units if unit.name not in gone))

    return change(place, without_sites), tuple(gone.values())


def stop(place: Place) -> None:
    """Asks the running survey to stop after committing its pages in flight."""
    home_of(place).change_note(STOP, lambda _: "1")


# Running --------------------------------------------------------------------------------------------------------------


@frozen
class RunProgress:
    """Progress of a survey for its watcher; `standing` computes details on demand because it is slow."""

    progress: Progress
    pages: int  # counted against the budget, in all runs
    standing: Callable[[], CampaignProgress]


def run(place: Place, settings: Settings, watch: Callable[[RunProgress], bool]) -> CrawlEnd:
    """Runs a survey until its page budget or time is used up, no work is left, watch returns True, or `stop` is called.

    settings: as for a crawl, based on DEFAULTS; max_time_s limits this run. watch: called several times a second from
    this thread. Raises UsageError, NoCollection, StoreError.
    """
    home = home_of(place)
    check_order(_order(place, campaign_of(place), settings))
    with home.only_crawl():
        home.change_note(STOP, lambda _: "")
        return _Run(place, home, settings, watch).run()


def _order(place: Place, campaign: Campaign, settings: Settings) -> CrawlOrder:
    """The survey as an order for the crawl engine.

    With a page budget, one process makes all choices. Otherwise one worker unless more are requested; each chooses
    among the hosts that it leases.
    """
    if not campaign.units:
        raise UsageError("the survey has no site: add one with `periplus survey add ADDRESS`")
    at_once = campaign.at_once or (1 if campaign.pages else settings.politeness.concurrency)
    workers = 1 if campaign.pages else min(settings.storage.workers or 1, at_once)
    settings = dataclasses.replace(
        settings,
        budget=dataclasses.replace(settings.budget, max_pages=0, quantum=MOST_QUANTUM),
        politeness=dataclasses.replace(settings.politeness, concurrency=at_once // workers),
        storage=dataclasses.replace(settings.storage, workers=workers),
    )
    starts = tuple(dict.fromkeys(map(start_of, read_units(campaign))))
    rules = home_of(place).rules_text() or ("" if isinstance(place, str) else rules_text(place))
    return CrawlOrder(place, starts, workable(settings), rules, kind=SURVEY)


def policy_of(store: RunStore, order: CrawlOrder) -> SurveyPolicy:
    """The policy for a survey worker. store: of the run."""
    policy = survey_policy(campaign_from(store.note(PLAN), order.home), order.settings)
    policy.learn(store.visits(0))
    return policy


class _Run:
    """A run, divided into parts with an unchanged plan."""

    def __init__(self, place: Place, home: CrawlHome, settings: Settings, watch: Callable[[RunProgress], bool]) -> None:
        self._place, self._home, self._settings, self._watch = place, home, settings, watch
        self._began = self._looked_at = time.monotonic()
        self._limit_s = settings.budget.max_time_s  # for the whole run
        self._before = sum(record.fetched for record in home.runs() if record.kind == SURVEY)
        self._why = ""
        self._has_chosen = False  # whether companions were chosen (possibly none)

    def run(self) -> CrawlEnd:
        clock = SystemClock()
        self._take_plan()
        self._home.prepare(self._order.rules, clock.now())
        order = self._order
        run_id = self._home.begin_run(SURVEY, order.starts, order.settings, clock.now(), _record(self._campaign))
        while True:
            note = self._part(run_id)
            if self._why != "changed" and (self._why or note or not self._goes_on()):
                break
            self._take_plan()
        pages = self._campaign.pages
        state, text = run_outcome(self._counts, self._waiting, self._why or note, self._first)
        if state == "stopped" and self._counts.fetched and not (self._why or note):
            text = f"{pages:,} pages are fetched" if pages else text
        self._home.end_run(run_id, state, text, clock.now())
        return CrawlEnd(run_id, state, text, self._counts, time.monotonic() - self._began, self._before > 0)

    def _take_plan(self) -> None:
        self._plan, self._why = self._home.note(PLAN), ""
        self._campaign = campaign_from(self._plan, self._place)
        timeless = dataclasses.replace(self._settings.budget, max_time_s=0.0)
        self._order = _order(self._place, self._campaign, dataclasses.replace(self._settings, budget=timeless))

    def _part(self, run_id: int) -> str:
        """Why the engine stopped; empty if no work is left or the page budget is used up."""
        waits = self._companions_wait()
        pages = target_pages(self._campaign) if waits else self._campaign.pages
        left, note = max(pages - self._before, 0), ""
        budget = dataclasses.replace(self._order.settings.budget, max_pages=left)
        settings = dataclasses.replace(self._order.settings, budget=budget)
        order = dataclasses.replace(self._order, settings=settings)
        self._store = store = self._home.store(run_id, settings)
        try:
            policy = survey_policy(self._campaign, order.settings)
            store.apply_scope(policy.scope)
            open_run(store, order, time.time(), policy.scope)
            policy.learn(store.visits(0))
            self._policy = policy
            if left or not self._campaign.pages:
                note, _ = work(store, order, run_id, self._tick, policy)
            else:
                self._tick(Progress(store.counts(), (), 0.0, 0, False))
            if waits and not (self._why or note):
                self._select = _companions(store, policy, self._campaign)
            self._counts, self._waiting = store.counts(), not store.idle(time.time())
            start = order.starts[0]
            self._first = why_not(start, *store.states([start])[start])
        finally:
            store.close()
        return note

    def _companions_wait(self) -> bool:
        """Whether companions have not been chosen yet."""
        campaign = self._campaign
        return bool(campaign.read_companions and not campaign.companions and not self._has_chosen)

    def _goes_on(self) -> bool:
        """Whether another part follows: companions were added to the plan, or none were found and their pages go to the
        survey's own sites.
        """
        if not self._companions_wait():
            return False
        self._has_chosen, companions = True, self._select
        if companions:
            change(self._place, lambda before: dataclasses.replace(before, companions=companions))
        return True

    def _tick(self, progress: Progress) -> bool:
        """Whether to stop: requested by the watcher or by another process, or because the plan changed."""
        now = time.monotonic()
        progress = dataclasses.replace(progress, elapsed_s=now - self._began)
        pages = self._before + progress.counts.fetched
        if self._watch(RunProgress(progress, pages, lambda: self._standing(progress.elapsed_s))):
            return True
        if self._limit_s and progress.elapsed_s >= self._limit_s:
            self._why = f"max-time {self._limit_s:g} s is over"
        elif now - self._looked_at >= LOOK_S:
            self._looked_at = now
            if self._store.note(STOP):
                self._why = "stopped by `periplus survey stop`"
            elif self._store.note(PLAN) != self._plan:
                self._why = "changed"
        return bool(self._why)

    def _standing(self, elapsed_s: float) -> CampaignProgress:
        return standing(self._campaign, self._policy, self._store, elapsed_s)


def _companions(reader: VisitReader, policy: SurveyPolicy, campaign: Campaign) -> tuple[Unit, ...]:
    """The companions to read, strongest first; each starts at its page that most survey sites link to."""
    scope = policy.scope
    pages: dict[SiteKey, dict[Url, set[SiteKey]]] = {}
    for visit in reader.visits(0):
        source = scope.site_of(visit.url)
        for link in visit.links if source in scope.sites else ():
            site = site_key(link.target)
            if link.kind in CLICK_LINKS and scope.site_of(link.target) not in scope.sites:
                pages.setdefault(site, {}).setdefault(link.target, set()).add(source)
    citing = {str(site): len(set().union(*cited.values())) for site, cited in pages.items()}
    starts = [
        min(cited, key=lambda url: (-len(cited[url]), len(url), url))
        for name in companions_worth_reading(citing, CompanionRules(), len(campaign.units), campaign.read_companions)
        for cited in [pages[SiteKey(name)]]
    ]
    return tuple(unit_of(url, prefixes=[site_key(url)]) for url in starts)


def _record(campaign: Campaign) -> dict[str, object]:
    """Parameters of the choices, for the record of the run."""
    return {
        "survey_rule": campaign.rule,
        "survey_within": within_of(campaign),
        "survey_item": campaign.item,
        "survey_pages": campaign.pages,
        "survey_at_once": campaign.at_once,
        "survey_least_pages": campaign.least_pages,
        "survey_read_companions": campaign.read_companions,
        "seed": campaign.seed,
    }


# Progress -------------------------------------------------------------------------------------------------------------


def standing_of(place: Place) -> CampaignProgress:
    """Progress of a collection's survey, from stored pages; also during a run.

    Raises UsageError, NoCollection, StoreError.
    """
    home = home_of(place)
    campaign = campaign_from(home.note(PLAN), place)
    policy = survey_policy(campaign, depth_settings(home.runs()))
    with home.reader() as reader:
        policy.learn(reader.visits(0))
        return standing(campaign, policy, reader)


def depth_settings(records: Sequence[RunRecord]) -> Settings:
    """Settings with the depth limit of the last run."""
    return settings_from({"max_depth": records[-1].settings.get("max_depth", -1)}) if records else Settings()


def standing(campaign: Campaign, policy: SurveyPolicy, reader: VisitReader, elapsed_s: float = 0.0) -> CampaignProgress:
    """Progress according to a policy."""
    waiting: Counter[SiteKey] = Counter()
    for host, entries in reader.waiting_by_host().items():
        waiting[policy.site_of(host)] += entries
    starts = reader.states([start_of(unit) for unit in campaign.units])
    names: dict[SiteKey, str] = {}
    for unit, site in zip(campaign.units, policy.scope.site_of_unit, strict=False):
        names[site] = f"{names[site]} + {unit.short}" if site in names else unit.short
    harvest = _harvest(policy.record, names, waiting, campaign.item)
    return CampaignProgress(
        campaign,
        len(policy.record.site),
        _live_sites(campaign, policy, waiting, starts),
        harvest,
        elapsed_s,
        tuple((str(site), pages) for site, pages in policy.companions.items() if pages),
    )


def _harvest(record: YieldRecord, names: Mapping[SiteKey, str], waiting: Mapping[SiteKey, int], item: str) -> Harvest:
    """Yield curves, the round-robin baseline, and completeness. O(links log links)."""
    site = np.array(record.site, np.int64)
    sites = [*record.sites, *(key for key in names if key not in record.sites)]  # including sites without pages
    pages = np.bincount(site, minlength=len(sites)) + np.array([waiting.get(key, 0) for key in sites], np.int64)
    titles = [names.get(key, key) for key in sites]
    rows = harvest_rows(titles, pages, site.astype(np.int32), record.pairs())
    return harvest_of(rows, harvest_rows(titles, pages, site.astype(np.int32), record.pairs(outside=True)), item)


def _live_sites(
    campaign: Campaign, policy: SurveyPolicy, waiting: Mapping[SiteKey, int], starts: Mapping[Url, tuple[str, str]]
) -> tuple[SiteProgress, ...]:
    """One row per site in the order of the survey; units that share a host are merged."""
    rows: dict[SiteKey, SiteProgress] = {}
    scores, yields = policy.rule.scores(), policy.rule.yields
    for unit, site in zip(campaign.units, policy.scope.site_of_unit, strict=False):
        if (row := rows.get(site)) is not None:
            rows[site] = row._replace(
                name=f"{row.name} + {unit.name}",
                short=f"{row.short} + {unit.short}",
                prefixes=(*row.prefixes, unit.prefixes[0]),
            )
            continue
        place, left = policy.rule.places.get(site), waiting.get(site, 0)
        pages = 0 if place is None else int(yields.pages[0, place])
        rows[site] = SiteProgress(
            unit.name,
            unit.short,
            _state(starts.get(start_of(unit)), pages, left),
            pages,
            0 if place is None else int(yields.links[0, place]),
            _recent(policy, site),
            scores.get(site) if pages >= policy.rule.rule.first else None,
            left,
            unit.prefixes[:1],
        )
    return tuple(rows.values())


def _recent(policy: SurveyPolicy, site: SiteKey) -> float:
    """Items per page over the site's recent pages."""
    rewards = policy.rule.recent.get(site)
    return sum(rewards) / len(rewards) if rewards else 0.0


def _state(start: tuple[str, str] | None, pages: int, waiting: int) -> str:
    """State of a site from the (reason, rule) of its start."""
    if start is None or start[0] == Reason.WAITING:
        return "waiting" if not pages else "reading"
    reason = Reason(start[0])
    if reason not in _GOOD:
        return f"not available: {REASON_WORDS[reason]}" + (f" ({start[1]})" if start[1] else "")
    return "reading" if waiting else "read"


# Links ----------------------------------------------------------------------------------------------------------------


@frozen
class LinkChoice:
    """A filter for links: substrings or regular expressions for page, target and anchor. Empty: any."""

    kind: str = "external"  # of SURVEY_LINKS
    site: str = ""  # name or short name of a unit
    page: str = ""
    target: str = ""
    anchor: str = ""
    limit: int = -1


def links(place: Place, choice: LinkChoice) -> Iterator[Row]:
    """Rows of a table of SURVEY_LINKS, page by page; streamed. Raises UsageError, NoCollection, StoreError."""
    with snapshot_of(place) as reader:
        for _, row in _select(reader, place, choice):
            yield row


def delete(place: Place, choice: LinkChoice) -> int:
    """Deletes these links, but not their pages; returns the number.

    For a folder, allowed during a run, which keeps what it learned from them until it ends. Raises StoreError during a
    run on a collection in a database.
    """
    home, is_shared = home_of(place), isinstance(place, str)

    def delete_all(statements: Statements) -> int:
        runs.refuse(statements)
        count_change(statements)
        return store.delete(statements, choice.kind, keys)

    with home.only_crawl() if is_shared else contextlib.nullcontext():
        with snapshot_of(place) as reader:
            if is_shared and (workers := reader.activity(time.time()).workers):
                raise StoreError(f"{workers} workers are running on {home}. Stop them, or wait for their end.")
            keys = [key for key, _ in _select(reader, place, choice)]
        return home.change(delete_all)


def _select(reader: CollectionReader, place: Place, choice: LinkChoice) -> Iterator[tuple[Key, Row]]:
    """(key, row) of the selected links."""
    if choice.kind not in SURVEY_LINKS:
        raise UsageError(f"unknown kind of link {choice.kind!r}: choose among {', '.join(SURVEY_LINKS)}")
    units = campaign_from(reader.note(PLAN), home_of(place)).units
    only, unit_of_url, row = _place(units, choice.site), unit_finder(units), row_maker(SURVEY_LINKS[choice.kind].names)
    keyed = (
        (key, row((units[number].short, page, *rest)))
        for key, page, rest in store.links(reader, choice.kind, choice.page, choice.target, choice.anchor)
        if isinstance(number := unit_of_url(page), int)
        and only in (None, number)
        and (choice.kind == "bad" or (unit_of_url(rest[0]) == number) == (choice.kind == "internal"))
    )
    return islice(keyed, choice.limit) if choice.limit >= 0 else keyed


def _place(units: tuple[Unit, ...], name: str) -> int | None:
    if not name:
        return None
    for place, unit in enumerate(units):
        if name in (unit.name, unit.short):
            return place
    raise UsageError(f"no site {name} in the survey; `periplus survey status` lists them")


# Decisions on sites ---------------------------------------------------------------------------------------------------


def decide(
    place: Place, sites: Sequence[str], status: SiteStatus, tags: Sequence[str] = (), *, start: str = "", now: float
) -> tuple[str, ...]:
    """Stores a status and tags for sites given by prefix, and updates the survey: sites with status `in` join it,
    others leave it.

    Any address may join; otherwise a site must be in the survey (also by name), linked to, or marked before, which
    catches typing errors. start: start page of the one site that joins; empty: its home page. Fetched pages are kept.
    Returns the prefixes. Raises UsageError, NoCollection, StoreError.
    """
    if not sites:
        raise UsageError("no site given")
    if start and (len(sites) > 1 or status is not SiteStatus.IN):
        raise UsageError("a start address needs exactly one site with the status `in`")
    before = campaign_here(place)
    prefixes = tuple(dict.fromkeys(_prefixes(place, before, sites, anywhere=status is SiteStatus.IN)))
    if before is None:
        if status is SiteStatus.IN:
            name = str(home_of(place)).removesuffix("/")
            raise UsageError(
                f"{name} has no survey that a site could join: create one with `periplus survey create -c {name} "
                "ADDRESS...`"
            )
    elif status is SiteStatus.IN:
        if come := _new(before, prefixes):
            add_sites(place, [promote(unit_of(prefix, prefixes=[prefix]), start) for prefix in come])
    elif gone := [unit.name for unit in before.units if set(unit.prefixes) & set(prefixes)]:
        remove_sites(place, gone)
    mark_sites(place, [SiteMark(prefix, status, tuple(tags)) for prefix in prefixes], now)
    return prefixes


def _new(campaign: Campaign, prefixes: Sequence[str]) -> list[str]:
    """Prefixes that no site of the survey has."""
    claimed = {prefix for unit in campaign.units for prefix in unit.prefixes}
    return [prefix for prefix in prefixes if prefix not in claimed]


def _prefixes(place: Place, campaign: Campaign | None, sites: Sequence[str], *, anywhere: bool) -> Iterator[str]:
    """Prefixes of these sites.

    Raises UsageError for a site that is neither in the survey nor linked to, unless `anywhere`.
    """
    units = campaign.units if campaign is not None else ()
    named = {name: unit.prefixes for unit in units for name in (unit.short, unit.name)}
    with open_reader(place) as reader:
        met = list(reader.site_names().values())
        noted = {prefix for unit in units for prefix in unit.prefixes} | store.marks(reader).keys()
    for name in sites:
        if name in named:
            yield from named[name]
            continue
        prefix = prefix_of(name)
        if (
            anywhere
            or prefix in noted
            or any(is_within(site, prefix.removeprefix("*.").partition("/")[0]) for site in met)
        ):
            yield prefix
        else:
            near = get_close_matches(prefix, dict.fromkeys([*noted, *named, *met][:MOST_NAMES]))
            hint = f"; similar names are {', '.join(near)}" if near else ""
            raise UsageError(
                f"no site {name} in the survey, and no known link leads to it{hint}. With the status `in` any address "
                "can join"
            )


def marks_in(place: Place) -> dict[str, SiteMark]:
    """Stored marks, by prefix. Raises NoCollection, StoreError."""
    with open_reader(place) as reader:
        return store.marks(reader)
