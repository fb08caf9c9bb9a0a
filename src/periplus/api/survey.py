"""A survey of many sites: plan, runs, state, links, and the user's decisions on sites."""

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
from periplus.analyse.harvest import harvest_of, harvest_rows
from periplus.analyse.webometrics import companions_worth_reading
from periplus.api.changing import changing
from periplus.api.crawling import CrawlEnd, CrawlOrder, Progress, check_order, judged, open_run, work
from periplus.api.homes import folder_of, home_of, workable
from periplus.api.rules import rules_text
from periplus.api.webometrics import mark_sites
from periplus.errors import NoCollection, UsageError
from periplus.model.ports import CrawlHome, RunRecord, RunStore, VisitReader
from periplus.model.survey import SURVEY_LINKS, CompanionRules, SiteMark, SiteStatus, Unit
from periplus.model.tables import Row, row_maker
from periplus.model.visit import FETCHED, Reason
from periplus.model.web import SiteKey, Url
from periplus.model.webometrics import (
    Campaign,
    CampaignProgress,
    Harvest,
    SiteProgress,
)
from periplus.present.wording import REASON_WORDS, why_not
from periplus.schedule.bandit import CLICKED
from periplus.schedule.survey import (
    SurveyPolicy,
    YieldRecord,
    campaign_from,
    checked,
    plan_text,
    read_units,
    start_of,
    survey_policy,
    target_pages,
    within_of,
)
from periplus.settings import Settings, settings_from
from periplus.store.sqlite import reading, schema, site_rows, survey
from periplus.store.sqlite.survey import LinkKey
from periplus.urls.hosts import is_within
from periplus.urls.scope import site_key
from periplus.urls.units import prefix_of, promoted, unit_finder, unit_of
from periplus.values import frozen

PLAN, STOP = "survey", "survey_stop"  # names of the collection's notes
Place = Path | str  # a folder, or the address of a collection in a database


def create(place: Place, campaign: Campaign) -> None:
    """A survey in a collection, which may be there but hold no survey. Raises UsageError, StoreError."""
    checked(campaign)
    home = home_of(place)
    try:
        home.note(PLAN)
    except NoCollection:
        home.prepare(rules_text(place) if isinstance(place, Path) else "", time.time())

    def begun(before: str) -> str:
        if before:
            raise UsageError(
                f"{home} holds a survey already: `periplus survey add` adds sites, `periplus survey run` goes on"
            )
        return plan_text(campaign)

    home.change_note(PLAN, begun)


def campaign_of(place: Place) -> Campaign:
    """The survey of a collection. Raises UsageError where there is none, NoCollection, StoreError."""
    return campaign_from(home_of(place).note(PLAN), home_of(place))


def campaign_here(place: Place) -> Campaign | None:
    """The survey of a collection; None: it holds none. Raises NoCollection, StoreError."""
    plan = home_of(place).note(PLAN)
    return campaign_from(plan, home_of(place)) if plan else None


def change(place: Place, changed: Callable[[Campaign], Campaign]) -> Campaign:
    """The survey as `changed` makes it of what it was. A run that is at work takes it over within a second."""

    home = home_of(place)

    def changed_text(before: str) -> str:
        return plan_text(checked(changed(campaign_from(before, home))))

    return campaign_from(home.change_note(PLAN, changed_text), home)


def add_sites(place: Place, units: Iterable[Unit]) -> Campaign:
    """With further sites. Raises UsageError for a name or prefix that is there."""
    return change(place, lambda before: dataclasses.replace(before, units=(*before.units, *units)))


def remove_sites(place: Place, names: Iterable[str]) -> tuple[Campaign, tuple[Unit, ...]]:
    """Without the sites of these names, short names or prefixes; and these. Their fetched pages stay."""
    asked, gone = list(names), dict[str, Unit]()

    def changed(before: Campaign) -> Campaign:
        for name in asked:
            units = [unit for unit in before.units if name in (unit.name, unit.short, unit.start, *unit.prefixes)]
            if not units:
                raise UsageError(f"there is no site {name} in the survey; `periplus survey status` names them")
            gone.update((unit.name, unit) for unit in units)
        return dataclasses.replace(before, units=tuple(unit for unit in before.units if unit.name not in gone))

    return change(place, changed), tuple(gone.values())


def stop(place: Place) -> None:
    """Asks the run that is at work to stop; it stores what is under way."""
    home_of(place).change_note(STOP, lambda _: "1")


# Running --------------------------------------------------------------------------------------------------------------

SURVEY = "survey"  # kind of a run
# five clicks, as in the published runs; depths are known by links alone
DEFAULTS = settings_from({"max_depth": 5, "sitemaps": False, "index": False})
LOOK_S = 0.5  # how often the plan is looked at
MOST_QUANTUM = 1_000_000  # the rule shares pages out, not the frontier


@frozen
class Watched:
    """What whoever watches a campaign is shown; the standing is made when it is asked for, for it takes time."""

    progress: Progress
    pages: int  # of the budget, in all runs
    standing: Callable[[], CampaignProgress]


def run(place: Place, settings: Settings, watch: Callable[[Watched], bool]) -> CrawlEnd:
    """Goes on with a campaign until its pages or its time are spent, nothing is left, watch returns True,
    or `stop` is called.

    settings: as for a crawl, made over DEFAULTS; max_time_s limits this run. watch: called some times a second from
    this thread. Raises UsageError, NoCollection, StoreError.
    """
    home = home_of(place)
    check_order(_order(place, campaign_of(place), settings))
    with home.only_crawl():
        home.change_note(STOP, lambda _: "")
        return _Run(place, home, settings, watch).run()


def _order(place: Place, campaign: Campaign, settings: Settings) -> CrawlOrder:
    """The campaign as the engine's order.

    With a budget of pages one process makes the choices, however many are asked for. Else one worker unless several are
    asked for: each chooses among the hosts that it holds.
    """
    if not campaign.units:
        raise UsageError("the survey has no site: `periplus survey add ADDRESS` adds one")
    at_once = campaign.at_once or (1 if campaign.pages else settings.politeness.concurrency)
    workers = 1 if campaign.pages else min(settings.storage.workers or 1, at_once)
    settings = dataclasses.replace(
        settings,
        budget=dataclasses.replace(settings.budget, max_pages=0, quantum=MOST_QUANTUM),
        politeness=dataclasses.replace(settings.politeness, concurrency=at_once // workers),
        storage=dataclasses.replace(settings.storage, workers=workers),
    )
    starts = tuple(dict.fromkeys(map(start_of, read_units(campaign))))
    folder, store = (Path(), place) if isinstance(place, str) else (place, "")
    rules = home_of(place).rules_text() or ("" if store else rules_text(folder))
    return CrawlOrder(folder, starts, workable(settings), rules, kind=SURVEY, store=store)


def policy_of(store: RunStore, order: CrawlOrder) -> SurveyPolicy:
    """The policy of a survey's worker. store: of the run."""
    policy = survey_policy(campaign_from(store.note(PLAN), order.home), order.settings)
    policy.learn(store.visits(0))
    return policy


class _Run:
    """A run, in parts in which the plan stays as it is."""

    def __init__(self, place: Place, home: CrawlHome, settings: Settings, watch: Callable[[Watched], bool]) -> None:
        self._place, self._home, self._settings, self._watch = place, home, settings, watch
        self._began = self._looked_at = time.monotonic()
        self._limit_s = settings.budget.max_time_s  # of the run, not of its parts
        self._before = sum(record.fetched for record in home.runs() if record.kind == SURVEY)
        self._why = ""
        self._has_chosen = False  # companions, or that there are none

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
        state, text = judged(self._counts, self._waiting, self._why or note, self._first)
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
        """Why the engine stopped; empty: nothing is left or the pages are spent."""
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
                self._chosen = _companions(store, policy, self._campaign)
            self._counts, self._waiting = store.counts(), not store.idle(time.time())
            start = order.starts[0]
            self._first = why_not(start, *store.states([start])[start])
        finally:
            store.close()
        return note

    def _companions_wait(self) -> bool:
        """Whether companions are still to be chosen."""
        campaign = self._campaign
        return bool(campaign.read_companions and not campaign.companions and not self._has_chosen)

    def _goes_on(self) -> bool:
        """Whether a part follows: companions were chosen, and stand in the plan; or there are none to be read, and
        their pages go to the survey's own sites.
        """
        if not self._companions_wait():
            return False
        self._has_chosen, companions = True, self._chosen
        if companions:
            change(self._place, lambda before: dataclasses.replace(before, companions=companions))
        return True

    def _tick(self, progress: Progress) -> bool:
        """Whether to stop: the watcher says so, another process asks for it, or the plan is another."""
        now = time.monotonic()
        progress = dataclasses.replace(progress, elapsed_s=now - self._began)
        pages = self._before + progress.counts.fetched
        if self._watch(Watched(progress, pages, lambda: self._standing(progress.elapsed_s))):
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
    """The companions to read, the strongest first: each begins at the page that most sites of the survey link to."""
    scope = policy.scope
    pages: dict[SiteKey, dict[Url, set[SiteKey]]] = {}
    for visit in reader.visits(0):
        source = scope.site_of(visit.url)
        for link in visit.links if source in scope.sites else ():
            site = site_key(link.target)
            if link.kind in CLICKED and scope.site_of(link.target) not in scope.sites:
                pages.setdefault(site, {}).setdefault(link.target, set()).add(source)
    citing = {str(site): len(set().union(*cited.values())) for site, cited in pages.items()}
    starts = [
        min(cited, key=lambda url: (-len(cited[url]), len(url), url))
        for name in companions_worth_reading(citing, CompanionRules(), len(campaign.units), campaign.read_companions)
        for cited in [pages[SiteKey(name)]]
    ]
    return tuple(unit_of(url, prefixes=[site_key(url)]) for url in starts)


def _record(campaign: Campaign) -> dict[str, object]:
    """What decides the choices, for the run's record."""
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


# How it stands --------------------------------------------------------------------------------------------------------


def standing_of(place: Place) -> CampaignProgress:
    """State of a collection's campaign, from stored pages, also during a run.

    Raises UsageError, NoCollection, StoreError.
    """
    home = home_of(place)
    campaign = campaign_from(home.note(PLAN), place)
    policy = survey_policy(campaign, depth_settings(home.runs()))
    with home.reader() as reader:
        policy.learn(reader.visits(0))
        return standing(campaign, policy, reader)


def depth_settings(records: Sequence[RunRecord]) -> Settings:
    """Of the last run: the depths that it read."""
    return settings_from({"max_depth": records[-1].settings.get("max_depth", -1)}) if records else Settings()


def standing(campaign: Campaign, policy: SurveyPolicy, reader: VisitReader, elapsed_s: float = 0.0) -> CampaignProgress:
    """The same of a policy that is at work."""
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
    """Curves, the round robin, completeness. O(links log links)."""
    site = np.array(record.site, np.int64)
    sites = [*record.sites, *(key for key in names if key not in record.sites)]  # also those of which nothing was read
    pages = np.bincount(site, minlength=len(sites)) + np.array([waiting.get(key, 0) for key in sites], np.int64)
    titles = [names.get(key, key) for key in sites]
    rows = harvest_rows(titles, pages, site.astype(np.int32), record.pairs())
    return harvest_of(rows, harvest_rows(titles, pages, site.astype(np.int32), record.pairs(outside=True)), item)


def _live_sites(
    campaign: Campaign, policy: SurveyPolicy, waiting: Mapping[SiteKey, int], starts: Mapping[Url, tuple[str, str]]
) -> tuple[SiteProgress, ...]:
    """One for each site, in the order of the campaign: units that share a host are one."""
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
    """Items a page over the site's last pages."""
    rewards = policy.rule.recent.get(site)
    return sum(rewards) / len(rewards) if rewards else 0.0


_GOOD = FETCHED | {Reason.REDIRECT, Reason.ALIAS}


def _state(start: tuple[str, str] | None, pages: int, waiting: int) -> str:
    """By what became of the start, as (reason, rule)."""
    if start is None or start[0] == Reason.WAITING:
        return "waiting" if not pages else "reading"
    reason = Reason(start[0])
    if reason not in _GOOD:
        return f"not available: {REASON_WORDS[reason]}" + (f" ({start[1]})" if start[1] else "")
    return "reading" if waiting else "read"


# Its links ------------------------------------------------------------------------------------------------------------


@frozen
class LinkChoice:
    """Which links: texts that page, target and anchor contain, or expressions that they match. Empty: any."""

    kind: str = "external"  # of SURVEY_LINKS
    site: str = ""  # name or short name of a unit
    page: str = ""
    target: str = ""
    anchor: str = ""
    limit: int = -1


def links(folder: Path, choice: LinkChoice) -> Iterator[Row]:
    """The rows of a table of SURVEY_LINKS, page by page; streamed. Raises UsageError, NoCollection, StoreError."""
    with reading.moment(folder) as connection:
        for _, row in _chosen(connection, folder, choice):
            yield row


def delete(place: Place, choice: LinkChoice) -> int:
    """Deletes these links from the collection, and nothing else; returns how many.

    The pages that hold them stay as they are.

    Of a folder while a campaign runs too: what is read later is kept. What the rule has learned from them stays
    learned until the run ends. Raises StoreError while one runs on a collection in a database.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(place, str):
            stack.enter_context(home_of(place).only_crawl())
        folder, follow = stack.enter_context(changing(place))
        with reading.moment(folder) as connection:
            keys = [key for key, _ in _chosen(connection, folder, choice)]
        connection = stack.enter_context(schema.writing(folder))
        stack.enter_context(follow(connection))
        if choice.kind == "bad":
            return survey.delete_bad(connection, [key for key in keys if isinstance(key, int)])
        return survey.delete_links(connection, [key for key in keys if isinstance(key, LinkKey)])


def _chosen(connection: reading.Connection, folder: Path, choice: LinkChoice) -> Iterator[tuple[LinkKey | int, Row]]:
    """(key, row) of the links that are chosen."""
    if choice.kind not in SURVEY_LINKS:
        raise UsageError(f"there are links of the kinds {', '.join(SURVEY_LINKS)}, not {choice.kind!r}")
    units = campaign_from(survey.note(connection, PLAN), folder).units
    only, place_of, row = _place(units, choice.site), unit_finder(units), row_maker(SURVEY_LINKS[choice.kind].names)
    values = _bad_values if choice.kind == "bad" else _link_values
    keyed = (
        (key, row((units[place].short, page, *rest)))
        for key, page, rest in values(connection, choice, place_of)
        if isinstance(place := place_of(page), int) and only in (None, place)
    )
    return islice(keyed, choice.limit) if choice.limit >= 0 else keyed


_Keyed = Iterator[tuple[LinkKey | int, Url, tuple[object, ...]]]  # (key, page, what stands in the columns after it)


def _bad_values(connection: reading.Connection, choice: LinkChoice, _: Callable[[Url], int | str]) -> _Keyed:
    for bad in survey.bad_links(connection, choice.page, choice.target, choice.anchor):
        yield bad.row, bad.page, (bad.text, bad.why, bad.anchor, bad.position)


def _link_values(connection: reading.Connection, choice: LinkChoice, place_of: Callable[[Url], int | str]) -> _Keyed:
    internal = choice.kind == "internal"
    for link in survey.links(connection, choice.page, choice.target, choice.anchor):
        if (place_of(link.target) == place_of(link.page)) == internal:
            within = (link.target, link.depth, link.visited, link.reason, link.anchor)
            outside = (link.target, link.anchor, link.key.position, link.title, link.times)
            yield link.key, link.page, within if internal else outside


def _place(units: tuple[Unit, ...], name: str) -> int | None:
    if not name:
        return None
    for place, unit in enumerate(units):
        if name in (unit.name, unit.short):
            return place
    raise UsageError(f"there is no site {name} in the survey; `periplus survey status` names them")


# What the user decides on sites ---------------------------------------------------------------------------------------

MOST_COMPARED = 20_000  # names that one which is not known is compared with: a third of a second


def decide(
    place: Place, sites: Sequence[str], status: SiteStatus, tags: Sequence[str] = (), *, start: str = "", now: float
) -> tuple[str, ...]:
    """Notes a status and tags for sites, named by their prefixes, and brings the survey in line: what is `in` joins it,
    anything else leaves it.

    Any address may join; else a site of the survey, also by its name, or one that was met or marked, so that no slip of
    the pen is noted. start: where the reading of the one site that joins begins; empty: its front page. What was
    fetched of a site that leaves is kept. Returns the prefixes. Raises UsageError, NoCollection, StoreError.
    """
    if not sites:
        raise UsageError("no site is chosen")
    if start and (len(sites) > 1 or status is not SiteStatus.IN):
        raise UsageError("a start address goes with one site that is taken in")
    before = campaign_here(place)
    prefixes = tuple(dict.fromkeys(_prefixes(folder_of(place), before, sites, anywhere=status is SiteStatus.IN)))
    if before is None:
        if status is SiteStatus.IN:
            name = str(home_of(place)).removesuffix("/")
            raise UsageError(
                f"{name} holds no survey that a site could join: `periplus survey create -c {name} ADDRESS...` "
                "makes one"
            )
    elif status is SiteStatus.IN:
        if come := _new(before, prefixes):
            add_sites(place, [promoted(unit_of(prefix, prefixes=[prefix]), start) for prefix in come])
    elif gone := [unit.name for unit in before.units if set(unit.prefixes) & set(prefixes)]:
        remove_sites(place, gone)
    mark_sites(place, [SiteMark(prefix, status, tuple(tags)) for prefix in prefixes], now)
    return prefixes


def _new(campaign: Campaign, prefixes: Sequence[str]) -> list[str]:
    """Those that no site of the survey claims."""
    claimed = {prefix for unit in campaign.units for prefix in unit.prefixes}
    return [prefix for prefix in prefixes if prefix not in claimed]


def _prefixes(folder: Path, campaign: Campaign | None, sites: Sequence[str], *, anywhere: bool) -> Iterator[str]:
    """Of these sites.

    Raises UsageError for one that is neither of the survey nor met in links, unless it may be anywhere.
    """
    units = campaign.units if campaign is not None else ()
    named = {name: unit.prefixes for unit in units for name in (unit.short, unit.name)}
    with reading.opened(folder) as connection:
        met = list(site_rows.site_names(connection).values())
        noted = {prefix for unit in units for prefix in unit.prefixes} | schema.marks(connection).keys()
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
            near = get_close_matches(prefix, dict.fromkeys([*noted, *named, *met][:MOST_COMPARED]))
            hint = f"; near it are {', '.join(near)}" if near else ""
            raise UsageError(
                f"there is no site {name} in the survey, and no link that was met leads to one{hint}. With the "
                "status `in` any address joins"
            )


def marks_in(folder: Path) -> dict[str, SiteMark]:
    """Stored marks, by prefix. Raises NoCollection, StoreError."""
    with reading.opened(folder) as connection:
        return schema.marks(connection)
