"""Checks a collection's links: from the order over the side requests of a check to the list of issues."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from periplus.acquire.clock import SystemClock
from periplus.acquire.fetch import check_side_request
from periplus.analyse.issues import audit_rules
from periplus.analyse.verdicts import SILENT, net_seems_down, probe_url
from periplus.api.changing import changing
from periplus.api.crawling import (
    LOGIN_NOTE,
    REFRESH,
    CrawlEnd,
    CrawlOrder,
    Progress,
    at_limit,
    crawl,
    refresh,
    work,
)
from periplus.api.evidence import FAILED, UrlEvidence
from periplus.api.homes import folder_of, home_of, workable
from periplus.api.page_notes import take_certificates
from periplus.errors import NoCollection
from periplus.model.audit import Verdict
from periplus.model.frontier import SideRequest
from periplus.model.graph import REASONS
from periplus.model.ports import CrawlHome, RunRecord
from periplus.model.visit import Cause, Purpose, Reason, Request
from periplus.model.web import HostKey, Url
from periplus.settings import Auditing, Budget, Settings, last_settings
from periplus.store.sqlite import checks, reading, schema, site_rows
from periplus.urls.canonical import canonical, url_id
from periplus.urls.hosts import host_key
from periplus.urls.scope import SiteScope, site_key, site_scope
from periplus.values import frozen

# docs/decisions/0004.
#
# A check is a run of its own kind: what links lead to and the crawl did not fetch is put on the to-do lists, and the
# same worker asks for it under the same politeness. Then everything that was seen is judged; what failed once is asked
# again, spaced, and judged anew. A check that was interrupted goes on: what was asked for since it began is not asked
# again. Pages that a crawl left at its limit are left by its check too.

ROUNDS_MOST = 4  # everything, what failed, what a retry within it delayed, and one to spare
FRAGMENTS_MOST = 500  # of one target that are looked for
_DEAD = frozenset({Verdict.BROKEN, Verdict.SERVER_ERROR, Verdict.SUSPECT, Verdict.REFUSED})
# whose state is none that a crawl saw
UNASKED = frozenset({Reason.SCOPE, Reason.RESOURCE, Reason.NOFOLLOW, Reason.DEPTH, Reason.ALIVE})


@frozen
class CheckOrder:
    """What to check. crawl: the site, which is crawled first unless that is done."""

    crawl: CrawlOrder
    external: bool = True  # other sites' URLs too
    fragments: bool = True  # and the places that links name on them
    head: bool = True  # HEAD first, where nobody needs the page
    onward: bool = True  # a crawl that came to its limit goes on first


@frozen
class CheckEnd:
    """How a check ended.

    state and note: as in CrawlEnd, failed where our own net was down; crawl: the crawl that went
    before, if one was needed.
    """

    run_id: int
    state: str
    note: str
    asked: int  # requests of the check
    crawl: CrawlEnd | None
    left: str = ""  # why pages of the crawl still wait, which the check left alone; empty: none does


def check(order: CheckOrder, watch: Callable[[Progress], bool]) -> CheckEnd:
    """Crawls where that is not done, then asks for what links lead to until everything is
    settled or watch returns True.

    Local folders are read anew. Raises UsageError and StoreError.
    """
    crawled = None if _is_crawled(order) else crawl(order.crawl, watch)
    if crawled is None and order.crawl.settings.identity.folders:  # files are edited between two checks
        crawled = refresh(dataclasses.replace(order.crawl, kind=REFRESH), watch).end
    if crawled is not None and (
        crawled.state == "failed" or (crawled.state == "stopped" and not at_limit(crawled.state, crawled.note))
    ):
        return CheckEnd(0, crawled.state, crawled.note, 0, crawled)
    with order.crawl.home.only_crawl():
        return dataclasses.replace(_check_alone(order, watch), crawl=crawled)


def order_for(
    place: Path | str,
    starts: tuple[Url, ...],
    settings: Settings,
    *,
    external: bool = True,
    fragments: bool = True,
    head: bool = True,
) -> CheckOrder:
    """A check of what begins at these starts; without them of the whole collection, from where it began.

    place: a folder, or an address. Raises UsageError for an unknown kind or severity, NoCollection.
    """
    audit_rules(settings.auditing.severity, settings.auditing.ignore)  # refused before a check rather than after it
    folder, store = (Path(), place) if isinstance(place, str) else (place, "")
    order = CrawlOrder(folder, starts or starts_known(place), settings, store=store)
    return CheckOrder(order, external, fragments, head, onward=bool(starts))


def starts_known(place: Path | str) -> tuple[Url, ...]:
    """Where the collection's crawls began. Raises NoCollection."""
    return tuple(dict.fromkeys(Url(text) for record in home_of(place).runs() for text in record.starts))


def settings_before(place: Path | str) -> Settings:
    """How the collection's last crawl or refresh asked: its settings, but for what the user thinks of issues,
    and for its limits if it is over.

    The defaults where there was none. Raises NoCollection.
    """
    crawls = _crawls(home_of(place))
    settings = dataclasses.replace(last_settings(crawls[-1].settings), auditing=Auditing()) if crawls else Settings()
    return (
        dataclasses.replace(settings, budget=Budget(quantum=settings.budget.quantum))
        if crawls and _is_over(crawls[-1])
        else settings
    )


def _crawls(home: CrawlHome) -> list[RunRecord]:
    """And refreshes, oldest first. Raises NoCollection."""
    return [record for record in home.runs() if record.kind != checks.CHECK]


def _is_over(crawl: RunRecord) -> bool:
    return crawl.state in ("done", "suspicious") or at_limit(crawl.state, crawl.note)


def _is_crawled(order: CheckOrder) -> bool:
    """Whether the last crawl or refresh of the collection came to its end, or to its limit and is not to go on,
    and began at these starts too.
    """
    crawls: list[RunRecord] = []
    with contextlib.suppress(NoCollection):
        crawls = _crawls(order.crawl.home)
    begun = {text for record in crawls for text in record.starts}
    is_over = bool(crawls) and _is_over(crawls[-1]) and not (order.onward and crawls[-1].state == "stopped")
    return is_over and begun.issuperset(order.crawl.starts)


def _check_alone(order: CheckOrder, watch: Callable[[Progress], bool]) -> CheckEnd:
    clock, home = SystemClock(), order.crawl.home
    last = _crawls(home)[-1]
    left = last.note if last.state == "stopped" else ""
    settings = for_a_check(workable(order.crawl.settings))
    crawl_order = dataclasses.replace(order.crawl, settings=settings)
    run_id = home.begin_run(checks.CHECK, crawl_order.starts, order.crawl.settings, clock.now())
    # of a check that was interrupted the beginning stands there
    since = float(home.change_note(checks.SINCE, lambda text: text or repr(clock.now())))
    store = home.store(run_id, settings)
    stop_note = net_note = ""
    try:
        for number in range(ROUNDS_MOST):
            requests = planned(dataclasses.replace(order, crawl=crawl_order), since, clock.now())
            if not requests and store.idle(clock.now()):
                break
            store.offer((), requests, clock.now())
            stop_note, _ = work(store, crawl_order, run_id, watch)
            if number == 0 and not stop_note and _net_seems_down(crawl_order, since):
                store.offer(
                    (),
                    [check_side_request(Request(canonical(settings.politeness.net_probe), Purpose.CHECK))],
                    clock.now(),
                )
                stop_note, _ = work(store, crawl_order, run_id, watch)
                net_note = "" if stop_note else _net_note(crawl_order, since)
            if net_note or stop_note or not store.idle(clock.now()):
                stop_note = stop_note or ("" if net_note else "work is left")
                break
        counts = store.counts()
    finally:
        store.close()
    state = "failed" if net_note or stop_note.startswith(LOGIN_NOTE) else "stopped" if stop_note else "done"
    if not stop_note:
        _store_judgement(crawl_order, run_id, clock.now(), net_down=bool(net_note))
        home.change_note(checks.SINCE, lambda text: "")  # the next check asks everything anew
    home.end_run(run_id, state, net_note or stop_note, clock.now())
    return CheckEnd(run_id, state, net_note or stop_note, counts.fetched, None, left)


def _hosts_since(order: CrawlOrder, since: float) -> tuple[set[HostKey], set[HostKey]]:
    """(hosts of other sites that were asked since then, those of them that gave no answer)."""
    own = site_scope(order.starts, order.settings.scope).sites
    with reading.opened(folder_of(order.place)) as connection:
        rows = [
            row
            for row in checks.asked_since(connection, since)
            if site_key(row.url) not in own and row.outcome != "skipped"
        ]
    silent = {
        host_key(row.url) for row in rows if row.outcome == "failed" and Cause(row.detail.partition(": ")[0]) in SILENT
    }
    answered = {host_key(row.url) for row in rows if row.outcome != "failed"}
    return silent | answered, silent - answered


def _net_seems_down(order: CrawlOrder, since: float) -> bool:
    hosts, silent = _hosts_since(order, since)
    return bool(order.settings.politeness.net_probe) and net_seems_down(len(hosts), len(silent))


def _net_note(order: CrawlOrder, since: float) -> str:
    """That the probe failed too; empty: it was answered, so the links are what is dead."""
    hosts, silent = _hosts_since(order, since)
    probe = Url(order.settings.politeness.net_probe)
    if host_key(canonical(probe)) in hosts - silent:
        return ""
    return (
        f"our own net is down: {len(silent):,} of {len(hosts):,} hosts of other sites do not answer, {probe} among "
        "them; links to other sites are not judged"
    )


def for_a_check(settings: Settings) -> Settings:
    """The settings that its workers have. Sitemaps and the number of pages are the crawl's business."""
    scope, budget = (
        dataclasses.replace(settings.scope, sitemaps=False),
        dataclasses.replace(settings.budget, max_pages=0),
    )
    return dataclasses.replace(settings, scope=scope, budget=budget)


def _store_judgement(order: CrawlOrder, run_id: int, now: float, *, net_down: bool) -> None:
    """What was found dead becomes failed when the run ends; what the crawl found dead, and the check did not,
    is failed no longer. net_down: what got no answer in this run says nothing.
    """
    with changing(order.place, alone=False) as (folder, follow):
        if net_down:
            with schema.writing(folder) as connection, follow(connection):
                checks.mark_network_down(connection, run_id)
        with reading.moment(folder) as connection:
            seen = UrlEvidence(
                connection,
                site_rows.all_urls(connection),
                order.settings.politeness.recheck_wait_s,
                order.settings.limits.redirect_hops,
            )
            dead, revived = list(seen.dead()), list(seen.revived())
        with schema.writing(folder) as connection, follow(connection):
            checks.store_verdicts(connection, dead)
            checks.restate(connection, revived)
    take_certificates(order.place, site_scope(order.starts, order.settings.scope).sites, order.settings, now)


def planned(order: CheckOrder, since: float, now: float) -> list[SideRequest]:
    """What is to be asked, by what was seen so far: first what was not asked since the check began, then what failed,
    when its time comes.
    """
    folder = folder_of(order.crawl.place)
    with reading.moment(folder) as connection:
        urls, settings = site_rows.all_urls(connection), order.crawl.settings
        seen = UrlEvidence(connection, urls, settings.politeness.recheck_wait_s, settings.limits.redirect_hops)
        plan = _Plan(order, seen, since, now)
        fragments = _fragments(connection) if order.fragments else {}
        targets = {url for site in plan.scope.sites for url in checks.targets(connection, site)}
        targets |= set(site_rows.redirects(connection).targets.tolist())
        targets |= {int(urls.ids[place]) for place in _places_of(urls, FAILED)}
        for url in sorted(targets):
            plan.add(url, fragments.get(url, ()))
        if settings.storage.part_sizes == "head":
            answers = site_rows.part_sizes(connection)
            parts = {int(url) for site in plan.scope.sites for url in site_rows.parts(connection, site).targets}
            for url in sorted(url for url in parts if url in answers and not answers[url].size_bytes):
                plan.add_unsized(url)
        for host in sorted(
            {
                host_key(urls.texts[place])
                for place in _places_of(urls, (Reason.OK, Reason.PARTIAL, Reason.NEEDS_SCRIPT, Reason.NOINDEX))
            }
        ):
            plan.add_probe(host)
        return plan.side_requests


def _places_of(urls: site_rows.AllUrls, reasons: Iterable[Reason]) -> Iterator[int]:
    codes = [REASONS.index(reason) for reason in reasons]
    return iter(np.flatnonzero(np.isin(urls.reasons, codes)).tolist())


def _fragments(connection: reading.Connection) -> dict[int, tuple[str, ...]]:
    """The places that links name on each target."""
    by_target: dict[int, dict[str, None]] = {}
    for _, target, _, _, fragments in checks.fragments(connection):
        by_target.setdefault(target, {}).update(dict.fromkeys(fragments.split()))
    return {target: tuple(names)[:FRAGMENTS_MOST] for target, names in by_target.items()}


class _Plan:
    """Gathers what is to be asked. `add` may be called for any URL that links lead to."""

    def __init__(self, order: CheckOrder, seen: UrlEvidence, since: float, now: float) -> None:
        self._order, self._seen, self._since, self._now = order, seen, since, now
        self.scope: SiteScope = site_scope(order.crawl.starts, order.crawl.settings.scope)
        self.side_requests: list[SideRequest] = []
        self._ends: set[int] = set()  # that are asked again: many links may lead to one

    def add(self, url: int, fragments: Sequence[str]) -> None:
        """A first look at what was not asked for yet; another at what failed and is not settled."""
        text, seen = self._seen.text(url), self._seen
        if not text or not self._is_wanted(text):
            return
        if seen.crawled_as(url) in UNASKED and seen.asked_at(url, by_get=bool(fragments)) < self._since:
            by_get = bool(fragments) or not self._order.head
            self.side_requests.append(
                check_side_request(Request(text, Purpose.CHECK if by_get else Purpose.HEAD, about=" ".join(fragments)))
            )
            return
        judgement, end = seen.judgement(url, {}), seen.way(url).end
        is_head_alone = seen.asked_at(url, by_get=False) >= self._since > seen.asked_at(url, by_get=True)
        if judgement.verdict in _DEAD and is_head_alone and end != url:  # some servers redirect HEAD alone to a 404
            self.side_requests.append(check_side_request(Request(text, Purpose.CHECK, about=" ".join(fragments))))
        if judgement.ask_again_at and end not in self._ends:
            self._ends.add(end)
            request = Request(self._seen.text(end), Purpose.CHECK, about=" ".join(fragments))
            self.side_requests.append(check_side_request(request, max(0.0, judgement.ask_again_at - self._now)))

    def add_unsized(self, part: int) -> None:
        """A part of a page whose server answers HEAD without its length is asked for by GET: of images,
        styles and scripts no body is read.
        """
        end = self._seen.way(part).end
        is_new = end not in self._ends and self._seen.asked_at(end, by_get=True) < self._since
        if is_new and self._is_wanted(self._seen.text(part)) and self._seen.asked_at(part, by_get=False) >= self._since:
            self._ends.add(end)
            self.side_requests.append(check_side_request(Request(self._seen.text(end), Purpose.CHECK)))

    def add_probe(self, host: HostKey) -> None:
        """One URL of each own host that cannot exist, to know how it says so."""
        for start in self.scope.starts:
            if host_key(start) == host:
                url = canonical(probe_url(start, f"{int(self._since * 1000):x}"))
                if self._seen.asked_at(url_id(url), by_get=True) < self._since:
                    self.side_requests.append(check_side_request(Request(url, Purpose.CHECK)))
                return

    def _is_wanted(self, url: Url) -> bool:
        """Neither left out by the user's expressions, nor of another site where those are not to be asked."""
        own, rules = site_key(url) in self.scope.sites, self._order.crawl.settings.scope
        if not own and not self._order.external:
            return False
        if len(url) > rules.url_bytes or any(pattern.is_in(url) for pattern in self.scope.exclude):
            return False
        return not (own and self.scope.include) or any(pattern.is_in(url) for pattern in self.scope.include)
