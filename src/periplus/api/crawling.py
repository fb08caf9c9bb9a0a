"""Runs a crawl or refresh: connects store, transport, policy and workers."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import logging
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from periplus.acquire.choosing import SiteTurns
from periplus.acquire.clock import SystemClock
from periplus.acquire.discovery import SIGNED_OUT, Aliases, Discovery, PageRenderer
from periplus.acquire.folders import FolderTransport
from periplus.acquire.leases import WorkerDeps
from periplus.acquire.politeness import AddressTurns, delay_for
from periplus.acquire.transport import CurlTransport, Wire, header_of, resolve_entries
from periplus.acquire.worker import Worker
from periplus.api.homes import database_at, home_of, leave_nothing, workable
from periplus.api.rules import rules_text
from periplus.api.secrets import resolve_secrets
from periplus.children import (
    INDEX_LOOK_S,
    finish_child,
    finish_indexing,
    start_child,
    start_indexing,
    stop_child,
    waited_s,
)
from periplus.document.media_types import may_be_kept, may_be_read
from periplus.errors import PeriplusError, UsageError
from periplus.features import service
from periplus.logs import JsonLines
from periplus.masking import without_secrets
from periplus.model.frontier import HostRow, RefreshFinding, RunCounts, TrapTally
from periplus.model.job import JobProgress
from periplus.model.ports import CHECK, Clock, CrawlHome, CrawlScope, PastTransport, RunPolicy, RunStore, Transport
from periplus.model.visit import FETCHED_REASONS, Reason
from periplus.model.web import HostKey, SiteKey, Url
from periplus.present.wording import REASON_WORDS, why_not
from periplus.schedule.learning import PAGES, AliasLearner
from periplus.schedule.traps import TrapDetector
from periplus.settings import Settings, as_values, last_settings, settings_from
from periplus.store.addresses import SharedAddresses, addresses_file
from periplus.store.part_messages import PART
from periplus.urls.folders import folders_of
from periplus.urls.hosts import host_key, parse_part, part_of
from periplus.urls.parameters import apply, rules_of
from periplus.urls.scope import own_hosts, site_scope
from periplus.values import Pairs, Place, frozen

log = logging.getLogger(__name__)

BUSY_SHARE = 0.6  # CPU share of one core above which a worker counts as busy
LOOK_S = 1.0  # how often the supervisor decides whether to start another worker
CHILD_GRACE_S = 15.0  # a stopped child is killed after this time; nothing is lost
# a page creates thousands of short-lived objects and no cycles: with the default 700, collection took 5 % of a crawl
GC_THRESHOLD = 50_000
# URLs reopened per transaction: an earlier depth limit may have excluded millions
OFFER_BATCH = 10_000
INDEX_AFTER_S = 2.0  # shorter crawls are indexed by the first search: starting a process costs half a second
AWAIT_S = 1.0  # how often a part that waits for other parts polls them
MOST_DEATHS = 20  # dead workers in one run after which no more are started
REOPENABLE = (
    Reason.SCOPE, Reason.DEPTH, Reason.HOST_DOWN, Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.TLS, Reason.PRIVATE,
    Reason.TRAP, Reason.NOT_ARCHIVED, Reason.BOT_WALL,
    Reason.ALIVE,
)  # fmt: skip
LOGIN_NOTE = "login "  # beginning of the messages of `Login`: the run could not sign in
ARCHIVE_NOTE = "the archive"  # beginning of the messages of `ArchiveTransport`: the archive is unavailable
_TROUBLES = (
    "unreachable", "server-error", "refused", "bot-wall", "robots-unreachable", "host-down", "tls", "bad-answer",
    "private-address", "bug",
)  # fmt: skip
REFRESH = "refresh"


@frozen
class CrawlOrder:
    """What to crawl, where to store it, and how."""

    place: Place  # a folder, or a database address
    starts: tuple[Url, ...]
    settings: Settings
    rules: str = ""  # TOML with the tables [[site]] and [[script]]
    kind: str = "crawl"  # or "refresh": request known URLs again
    due_only: bool = False  # refresh: only pages that are due
    part: str = ""  # "2/4": the collection is the second of four that share a web; empty: as stored in the collection
    exchange: str = ""  # folder or object storage URL through which parts exchange URLs; empty: as before
    until_all_done: bool = False  # an idle part waits until all parts are idle
    index: bool = True  # with `Storage.index`: make pages searchable meanwhile; otherwise the first search does it
    further: Pairs = ()  # (name, value): further data for the policy of this kind of run

    @property
    def folder(self) -> Path:
        """Folder of the periplus.toml that applies: of the collection, or for a database the working directory."""
        return self.place if isinstance(self.place, Path) else Path()

    @property
    def home(self) -> CrawlHome:
        """The home of the collection. Raises UsageError."""
        return home_of(self.place)


@frozen
class Progress:
    """State of a crawl."""

    counts: RunCounts
    hosts: tuple[HostRow, ...]  # hosts with the most queued URLs first
    elapsed_s: float
    workers: int
    paused: bool
    indexing: JobProgress | None = None  # set after the crawl, while the search index catches up


@frozen
class CrawlEnd:
    """How a crawl ended. state: done, stopped, suspicious or failed; note: the reason, as a sentence."""

    run_id: int
    state: str
    note: str
    counts: RunCounts
    elapsed_s: float
    went_on: bool  # the crawl continued an unfinished one
    traps: tuple[TrapTally, ...] = ()  # URL patterns excluded as endless series; for a refresh, those that grew
    part: str = ""  # of a web shared by several collections: other parts may still send URLs
    is_kept: bool = True  # False: no page was read, and the new collection was deleted again

    @property
    def doubtful(self) -> int:
        """Number of excluded URLs that may have content. URLs read under another session id do not count."""
        return sum(tally.urls for tally in self.traps if tally.pattern.startswith("/"))


PolicyMaker = Callable[[RunStore, CrawlOrder], RunPolicy]  # called in each worker

Labour = Callable[[RunStore, CrawlOrder, int, Callable[[Progress], bool]], tuple[str, float]]
"""Processes the queue of a run until it is empty: `work` does so on this machine, `joining` on a cluster."""


def check_order(order: CrawlOrder) -> None:
    """Rejects contradictory orders before anything is changed. Raises UsageError."""
    politeness = order.settings.politeness
    if not order.starts:
        raise UsageError("no start: give a URL, or a file of URLs with -i")
    if not (politeness.mine or order.settings.identity.folders) and politeness.ignore_robots:
        raise UsageError("--ignore-robots is allowed only for your own hosts: name them with --mine HOST")
    if not politeness.mine and politeness.per_host > 1:
        raise UsageError("--per-host above 1 is allowed only for your own hosts: name them with --mine HOST")
    page_rendering(order.settings, SystemClock())
    logins_of(order)
    resolve_secrets(order.settings.identity, order.folder)
    if without_secrets(order.exchange) != order.exchange:
        raise UsageError("a password in --exchange would be stored: give it in the variable FSSPEC_PROTOCOL_PASSWORD")
    if (past := order.settings.past).from_archive:
        service("archive place")(past.from_archive, past.at)
        if order.settings.identity.login or order.settings.identity.folders:
            raise UsageError("--from-archive excludes --login and local folders: only the archive is read")
    own_hosts(politeness.mine)
    site_scope(order.starts, order.settings.scope)
    identity = order.settings.identity
    for host, local in folders_of(identity.folders).items():
        if not local.is_dir():
            raise UsageError(f"the folder {local}, which serves {host.removesuffix(':80')}, does not exist")
    resolve_entries(identity.resolve)
    for entry in identity.header:
        header_of(entry)
    for what, name in (("cookie file", identity.cookie_file), ("file of certificate authorities", identity.ca_file)):
        if name and not Path(name).is_file():
            raise UsageError(f"cannot read the {what} {name}: there is no such file")


def crawl(order: CrawlOrder, watch: Callable[[Progress], bool], labour: Labour | None = None) -> CrawlEnd:
    """Runs or continues the crawl of a collection until no work is left, a limit is reached, or watch returns True.

    watch: called several times a second from this thread, also while the search index catches up; stopped then, the
    crawl is complete and the next search does the rest. labour: executes the run; None: `work`. Raises UsageError and
    StoreError.
    """
    check_order(order)
    home = order.home
    with home.only_crawl():
        order = _apply_rules(dataclasses.replace(order, settings=workable(order.settings)))
        try:
            return _crawl_alone(order, home, watch, labour or work)
        except PeriplusError:
            with contextlib.suppress(PeriplusError):
                leave_nothing(home, order.part)
            raise


def _apply_rules(order: CrawlOrder) -> CrawlOrder:
    """The order with the URL rules of the collection's periplus.toml, applied to its starts."""
    text = order.rules or rules_text(order.folder) or order.home.rules_text()
    rules = rules_of(text)
    # a start that the rules exclude is still crawled: the user asked for it
    starts = tuple(dict.fromkeys(apply(start, rules).url or start for start in order.starts))
    return dataclasses.replace(order, rules=text, starts=starts)


def _crawl_alone(order: CrawlOrder, home: CrawlHome, watch: Callable[[Progress], bool], labour: Labour) -> CrawlEnd:
    clock = SystemClock()
    went_on = home.prepare(order.rules, clock.now())
    if order.part or order.exchange or home.note(PART):
        part, exchange = service("part of a web")(home, order)
        order = dataclasses.replace(order, part=part, exchange=exchange)
    run_id = home.begin_run(order.kind, order.starts, order.settings, clock.now())
    JsonLines.run = run_id
    store = home.store(run_id, order.settings)
    try:
        known_traps = store.traps() if order.kind == REFRESH else ()
        open_run(store, order, clock.now())
        stop_note, elapsed_s = labour(store, order, run_id, watch)
        counts = store.counts()
        state, note = verdict(store, order, stop_note)
        traps = tuple(tally for tally in store.traps() if tally not in known_traps)
    finally:
        store.close()
    part = "" if order.until_all_done else order.part
    end = CrawlEnd(run_id, state, note, counts, elapsed_s, went_on, traps, part)
    if state == "done" and end.doubtful:
        end = dataclasses.replace(end, note=f"{end.doubtful:,} URLs are left in doubt")
    home.end_run(run_id, state, end.note, clock.now())
    return dataclasses.replace(end, is_kept=state != "failed" or not leave_nothing(home, order.part))


def verdict(store: RunStore, order: CrawlOrder, stop_note: str) -> tuple[str, str]:
    """(state, note) of a finished run. stop_note: why it was stopped; empty: it was not."""
    waiting = not store.idle(SystemClock().now())
    start = order.starts[0]
    first = why_not(start, *store.states([start])[start])
    counts, pages = store.counts(), order.settings.budget.max_pages
    if order.part and not stop_note and set(counts.by_reason) <= {Reason.OTHER_PART, Reason.SCOPE, Reason.RESOURCE}:
        return "done", f"no URL belongs to part {order.part}"
    return run_outcome(counts, waiting, stop_note or (f"max-pages {pages} reached" if waiting and pages else ""), first)


def work(
    store: RunStore,
    order: CrawlOrder,
    run_id: int,
    watch: Callable[[Progress], bool],
    policy: RunPolicy | None = None,
) -> tuple[str, float]:
    """Processes the queue, with more processes where they help.

    Returns (reason for stopping, empty if no work was left; seconds).

    policy: replaces the default policy of this process's worker; for other workers see `child.POLICIES`.
    """
    supervisor = Supervisor(store, order, run_id, watch)
    ended_by_itself = False
    try:
        while True:
            supervisor.stop_note = run_worker(store, order, supervisor.tick, policy) or supervisor.stop_note
            if supervisor.stop_note or not supervisor.awaits_work():
                break
        store.merge_aliases()
        ended_by_itself = not supervisor.stop_note
    finally:
        supervisor.stop(at_once=not ended_by_itself)
        if supervisor.exchange is not None:
            supervisor.exchange.close()
    return supervisor.stop_note, supervisor.elapsed_s


def open_run(store: RunStore, order: CrawlOrder, now: float, scope: CrawlScope | None = None) -> None:
    """Queues the starts, and URLs that earlier runs excluded if the present settings admit them; in a refresh, the URLs
    to request again.
    """
    if order.kind == "refresh":
        order.home.ask_again(now, due_only=order.due_only)
        return
    discovery = Discovery(scope or site_scope(order.starts, order.settings.scope), order.settings)
    starts = discovery.of_starts(order.starts)
    store.offer(starts, (), now, reopen=True)
    left_out = (
        discovery.candidate(url, depth, in_sitemap=in_sitemap)
        for url, depth, in_sitemap in store.unrequested_urls(REOPENABLE)
    )
    again = (candidate for candidate in left_out if candidate.reason is Reason.WAITING)
    while lot := list(islice(again, OFFER_BATCH)):
        store.offer(lot, (), now, reopen=True)
    if order.part:
        number, parts = parse_part(order.part)
        starts = tuple(start for start in starts if part_of(start.host, parts) == number)
    order.home.add_starts([candidate.url_id for candidate in starts], [candidate.site for candidate in starts], now)


def run_worker(store: RunStore, order: CrawlOrder, tick: Callable[[], bool], policy: RunPolicy | None = None) -> str:
    """Runs one worker in this process until it is finished. policy: see `work`. Returns why signing in failed, or an
    empty string.
    """
    settings = dataclasses.replace(order.settings, identity=resolve_secrets(order.settings.identity, order.folder))
    auth_hosts = frozenset(map(host_key, order.starts)) if settings.identity.auth else frozenset[HostKey]()
    clock = SystemClock()
    mine = frozenset(settings.politeness.mine)
    table = SharedAddresses(addresses_file())
    addresses = AddressTurns(settings.politeness.per_address, delay_for(settings.politeness, False, None), mine, table)
    reads = may_be_kept if settings.storage.keep_parts else may_be_read
    wire = Wire(settings.limits, settings.identity, settings.politeness.concurrency, auth_hosts, reads, reads)
    if not settings.identity.proxy:  # with a proxy, every address is the proxy's
        wire = dataclasses.replace(
            wire, admits=lambda host, address: addresses.admits(host, address, clock.monotonic())
        )
    logins = logins_of(order)
    rendering = page_rendering(settings, clock, logins)
    sessions = service("login sessions")(logins, clock, settings.politeness) if logins else None
    if sessions is not None:
        wire = dataclasses.replace(wire, credentials=sessions.credentials)
    archive: PastTransport | None = service("archive")(settings, wire, clock) if settings.past.from_archive else None
    transport: Transport = archive or CurlTransport(wire, clock)
    if folders := folders_of(settings.identity.folders):
        transport = FolderTransport(transport, folders, wire, clock, settings.scope.wiki_links)
    deps = WorkerDeps(
        store=store,
        transport=transport,
        clock=clock,
        policy=policy or SiteTurns(settings.budget.quantum),
        detector=partial(TrapDetector, settings.scope.trap_window, settings.scope.max_doubtful),
        scope=policy.scope if policy else site_scope(order.starts, settings.scope),
        mine=mine,
        aliases=Aliases(
            rules_of(order.rules), (lambda site: _lessons(store, site)) if settings.scope.learn_parameters else None
        ),
        addresses=addresses,
        rendering=rendering,
        sign_in=sessions and sessions.gate,
        is_past=archive is not None,
    )
    if archive is not None:  # its hosts receive no requests, so there is no robots.txt, delay or retry
        free = dataclasses.replace(settings.politeness, delay_s=0.0, per_host=1, ignore_robots=True, retries=0)
        settings = dataclasses.replace(settings, politeness=free)
    gc.freeze()  # objects that exist now live until the end
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    try:
        Worker(deps, settings).run(tick if archive is None else lambda: bool(archive.failure) or tick())
    finally:
        if rendering is not None:
            rendering.close()
        transport.close()
        table.close()
    if archive is not None:
        return archive.failure
    return str(sessions.failure) if sessions is not None else ""


def logins_of(order: CrawlOrder) -> Sequence[Any]:
    """The logins of a crawl, each a `periplus_browser.login.Login`. Raises UsageError."""
    names = order.settings.identity.login
    return service("logins")(names, order.folder) if names else ()


def page_rendering(settings: Settings, clock: Clock, logins: Sequence[Any] = ()) -> PageRenderer | None:
    """The page renderer, or None if rendering is off.

    logins: their origins are not served to pages of other origins. Raises UsageError without a browser.
    """
    if settings.rendering.render == "never":
        return None
    renderer: PageRenderer = service("rendering")(
        settings, clock, {origin: login.origins for login in logins for origin in login.origins}
    )
    return renderer


def _lessons(store: RunStore, site: SiteKey) -> AliasLearner:
    """Relearns parameter rules from the site's stored pages: they are not stored themselves."""
    learner = AliasLearner()
    for url, digest in store.texts(site, PAGES):
        learner.learn(url, digest)
    return learner


class Supervisor:
    """Supervises a run between turns of this process's own worker: reports progress, stops the run, starts workers
    where they help.
    """

    def __init__(self, store: RunStore, order: CrawlOrder, run_id: int, watch: Callable[[Progress], bool]) -> None:
        self._store, self._order, self._run_id, self._watch = store, order, run_id, watch
        # Rendering uses one worker and its browsers, because a page's resources on any host must reach them.
        # A login session also needs one worker, which keeps the cookies in memory: a second sign-in might end the
        # session. An archive needs one too, since all hosts are served by it.
        is_rendering = order.settings.rendering.render != "never"
        has_session = any(login.has_session for login in logins_of(order))
        is_alone = is_rendering or has_session or bool(order.settings.past.from_archive)
        self._most = 0 if is_alone else (order.settings.storage.workers or os.cpu_count() or 1) - 1
        self._started = time.monotonic()
        self._measured, self._cpu, self._waited = self._started, time.process_time(), waited_s()
        self._processors = os.cpu_count() or 1
        self._gainful = self._processors  # estimated number of workers that find a free processor
        self._workers: list[subprocess.Popen[bytes]] = []
        self._ticked, self._paused_s = self._started, 0.0  # paused time does not count towards max_time
        self._deaths = 0  # workers that failed
        self._index_worker: subprocess.Popen[bytes] | None = None
        shares_index = isinstance(order.place, Path) or database_at(order.place).shares_index(order.place)
        self._is_indexed = order.index and order.settings.storage.index and shares_index
        self.stop_note = ""
        self.exchange = (
            service("exchange of URLs")(store, parse_part(order.part), order.exchange) if order.exchange else None
        )

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def awaits_work(self) -> bool:
        """Waits until other parts send URLs, if `until_all_done` is set and this part is idle.

        Returns False if none came, or on a stop.
        """
        while self.exchange is not None and not self.stop_note:
            waits = self.exchange.finish()
            if not self._store.idle(time.time()):
                return True
            if not waits or not self._order.until_all_done:
                break
            until = time.monotonic() + AWAIT_S
            while not self.tick() and time.monotonic() < until:
                time.sleep(INDEX_LOOK_S)
        return False

    def tick(self) -> bool:
        if self.exchange is not None:
            self.exchange.turn()
        self._workers = [worker for worker in self._workers if self._is_at_work(worker)]
        progress, now, settings = self._progress(), time.monotonic(), self._order.settings
        self._paused_s += (now - self._ticked) * progress.paused
        self._ticked = now
        if self._watch(progress):
            self.stop_note = "stopped by the user"
        limit_s = settings.budget.max_time_s
        if limit_s and self.elapsed_s - self._paused_s >= limit_s:
            self.stop_note = f"max-time {limit_s:g} s is over"
        places = min(self._most, MOST_DEATHS - self._deaths) - len(self._workers)
        if not self.stop_note and places > 0 and self._needs_worker():
            self._workers.append(start_worker(self._order, self._run_id))
        if self._index_worker is None and self._is_indexed and self.elapsed_s > INDEX_AFTER_S:
            self._index_worker = start_indexing(self._order.place)
        return bool(self.stop_note)

    def _progress(self) -> Progress:
        return Progress(
            self._store.counts(),
            tuple(self._store.busiest(8, time.time())),
            self.elapsed_s,
            1 + len(self._workers),
            self._store.is_paused(),
        )

    def _is_at_work(self, worker: subprocess.Popen[bytes]) -> bool:
        """Whether the worker still runs.

        The run continues after a worker's death, but repeated deaths stop the start of new workers.
        """
        status = worker.poll()
        if status:
            self._deaths += 1
            log.warning("worker pid=%d ended=%d", worker.pid, status)
        if status is not None:
            finish_child(worker)
        return status is None

    def _needs_worker(self) -> bool:
        """Whether another worker is useful: there are free hosts and this worker is busy; or, with a number of workers
        in the settings, another one would find a free processor.
        """
        now, is_ordered = time.monotonic(), self._order.settings.storage.workers > 0
        busy = False
        if now - self._measured >= LOOK_S:
            cpu, waited = time.process_time(), waited_s()
            elapsed_s, used_s = now - self._measured, cpu - self._cpu
            busy = used_s > BUSY_SHARE * elapsed_s
            share = (used_s + waited - self._waited) / elapsed_s  # of a processor: used or waited for
            self._gainful = max(self._processors, int(self._processors / max(share, 0.001)))
            self._measured, self._cpu, self._waited = now, cpu, waited
        if is_ordered:
            busy = 1 + len(self._workers) < self._gainful
        return busy and self._store.fair_share(time.time()) > 1

    def stop(self, *, at_once: bool) -> None:
        """Ends the child processes, which commit first. Pages in flight in a killed child are fetched again."""
        if at_once:
            for worker in self._workers:
                worker.terminate()
        for worker in self._workers:
            finish_child(worker, CHILD_GRACE_S if at_once else None)
        if self._index_worker is not None and at_once:
            stop_child(self._index_worker)  # nothing is lost: the next search does the rest
        elif self._index_worker is not None:
            finish_indexing(
                self._index_worker,
                lambda indexing: self._watch(dataclasses.replace(self._progress(), indexing=indexing)),
            )


def start_worker(order: CrawlOrder, run_id: int) -> subprocess.Popen[bytes]:
    """Starts another worker process for the same collection and run."""
    return start_child(
        "-m",
        "periplus.api.child",
        order={
            "place": str(order.place),
            "run_id": run_id,
            "starts": order.starts,
            "settings": as_values(order.settings),
            "rules": order.rules,
            "kind": order.kind,
            "further": order.further,
        },
    )


def run_outcome(counts: RunCounts, waiting: bool, stop_note: str, first: str) -> tuple[str, str]:
    """(state, note) of a run that ended.

    A crawl that fetched no useful page has failed. first: result of the first start.
    """
    read = sum(counts.by_reason.get(reason, 0) for reason in FETCHED_REASONS)
    troubles = {reason: counts.by_reason.get(reason, 0) for reason in _TROUBLES}
    worst = max(troubles, key=lambda reason: troubles[reason])
    if stop_note.startswith((LOGIN_NOTE, ARCHIVE_NOTE)):
        return "stopped" if stop_note.endswith(SIGNED_OUT) else "failed", stop_note
    if not read:
        return ("stopped", stop_note) if stop_note and not counts.fetched else ("failed", f"no page was read; {first}")
    if stop_note:
        return "stopped", stop_note
    if waiting:
        return "stopped", "work is left"
    bad = sum(troubles.values())
    if bad > read:
        often = f"{REASON_WORDS[Reason(worst)]} ({troubles[worst]})"
        return "suspicious", f"{bad} URLs failed and {read} were read; most often: {often}"
    return "done", ""


# Refresh: updates a collection with the settings of its last crawl.


@frozen
class RefreshEnd:
    """How a refresh ended. findings: number of URLs by finding, for every finding."""

    end: CrawlEnd
    findings: Mapping[RefreshFinding, int]


def refresh_order(place: Place, given: Mapping[str, Any], *, due_only: bool = False) -> CrawlOrder:
    """A refresh of the collection with the settings of its last crawl or refresh, overridden by `given`.

    place: a folder or a database address. Raises NoCollection, UsageError if nothing was crawled yet, UnknownSetting.
    """
    home = home_of(place)
    records = home.runs()
    starts = tuple(dict.fromkeys(Url(text) for record in records for text in record.starts))
    if not starts:
        raise UsageError(f"{home} has no run yet: `periplus crawl URL` starts one there")
    # the settings of a check do not describe how the site is crawled
    crawls = [record for record in records if record.kind != CHECK] or records
    settings = settings_from(given, last_settings(crawls[-1].settings))
    return CrawlOrder(place, starts, settings, kind=REFRESH, due_only=due_only)


def refresh(order: CrawlOrder, watch: Callable[[Progress], bool], clock: Clock | None = None) -> RefreshEnd:
    """Requests known URLs again and follows new links. watch: as for `crawl`.

    A refresh in which no server answered fails, whatever the collection has from before.
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
            f"{unreached} URLs were not requested, because their hosts did not answer"
            if answered
            else "no page was read again"
        )
        end = dataclasses.replace(end, state=state, note=f"{note}; their stored state is kept")
        order.home.end_run(end.run_id, end.state, end.note, (clock or SystemClock()).now())
    return RefreshEnd(end, findings)
