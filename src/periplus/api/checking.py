"""Checks a collection's links: plans the requests, runs them, and stores the verdicts."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from periplus.acquire.clock import SystemClock
from periplus.acquire.fetch import check_side_request
from periplus.analyse.issues import audit_rules
from periplus.analyse.verdicts import SILENT, net_seems_down, probe_url
from periplus.api.crawling import (
    LOGIN_NOTE,
    REFRESH,
    CrawlEnd,
    CrawlOrder,
    Progress,
    crawl,
    refresh,
    work,
)
from periplus.api.evidence import FAILURE_REASONS, UrlEvidence
from periplus.api.homes import at_limit, crawls_of, home_of, is_over, open_reader, snapshot_of, workable
from periplus.api.page_notes import take_certificates
from periplus.errors import NoCollection
from periplus.model.audit import Verdict
from periplus.model.frontier import SideRequest
from periplus.model.graph import REASONS
from periplus.model.ports import CHECK, RunRecord
from periplus.model.visit import Cause, Purpose, Reason, Request
from periplus.model.web import HostKey, Url
from periplus.settings import Settings
from periplus.store import checks, site_rows
from periplus.store.reader import CollectionReader
from periplus.store.site_arrays import redirects as all_redirects
from periplus.store.statements import Statements
from periplus.urls.canonical import canonical, url_id
from periplus.urls.hosts import host_key
from periplus.urls.scope import SiteScope, site_key, site_scope
from periplus.values import Place, frozen

# docs/decisions/0004.
#
# A check is a run of kind `check`: URLs that are linked to but were not fetched by the crawl are queued as side
# requests, and the same worker fetches them with the same politeness. Then all links are judged; failures are requested
# again after a delay and judged again. An interrupted check resumes: URLs requested since it began are not requested
# again. Pages that a crawl left at its limit are not fetched by the check either.

ROUNDS_MOST = 4  # all URLs, the failures, those delayed by a retry, and one spare
FRAGMENTS_MOST = 500  # checked per target
_DEAD = frozenset({Verdict.BROKEN, Verdict.SERVER_ERROR, Verdict.SUSPECT, Verdict.REFUSED})
# reasons of URLs that the crawl did not request
NO_REQUEST = frozenset({Reason.SCOPE, Reason.RESOURCE, Reason.NOFOLLOW, Reason.DEPTH, Reason.ALIVE})


@frozen
class CheckOrder:
    """What to check. crawl: the crawl that runs first unless it is finished."""

    crawl: CrawlOrder
    external: bool = True  # check URLs of other sites too
    fragments: bool = True  # check link fragments too
    head: bool = True  # use HEAD where the body is not needed
    onward: bool = True  # continue a crawl that stopped at its limit


@frozen
class CheckEnd:
    """How a check ended.

    state and note: as in CrawlEnd; failed if the local network was down. crawl: the crawl that ran first, if any.
    """

    run_id: int
    state: str
    note: str
    asked: int  # number of requests
    crawl: CrawlEnd | None
    left: str = ""  # why the crawl left pages unfetched, which the check did not fetch either; empty: none


def check(order: CheckOrder, watch: Callable[[Progress], bool]) -> CheckEnd:
    """Crawls if that is not finished, then requests link targets until all are judged or watch returns True.

    Local folders are read again. Raises UsageError and StoreError.
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
    place: Place,
    starts: tuple[Url, ...],
    settings: Settings,
    *,
    external: bool = True,
    fragments: bool = True,
    head: bool = True,
) -> CheckOrder:
    """The order for a check of these starts; without starts, of the whole collection.

    place: a folder or a database address. Raises UsageError for an unknown issue kind or severity, NoCollection.
    """
    audit_rules(settings.auditing.severity, settings.auditing.ignore)  # fails before the check rather than after it
    all_starts = starts or tuple(dict.fromkeys(Url(text) for run in home_of(place).runs() for text in run.starts))
    order = CrawlOrder(place, all_starts, settings, index=False)
    return CheckOrder(order, external, fragments, head, onward=bool(starts))


def _is_crawled(order: CheckOrder) -> bool:
    """Whether the last crawl or refresh is finished (or stopped at its limit and must not continue) and includes these
    starts.
    """
    crawls: list[RunRecord] = []
    with contextlib.suppress(NoCollection):
        crawls = crawls_of(order.crawl.home)
    begun = {text for record in crawls for text in record.starts}
    is_done = bool(crawls) and is_over(crawls[-1]) and not (order.onward and crawls[-1].state == "stopped")
    return is_done and begun.issuperset(order.crawl.starts)


def _check_alone(order: CheckOrder, watch: Callable[[Progress], bool]) -> CheckEnd:
    clock, home = SystemClock(), order.crawl.home
    last = crawls_of(home)[-1]
    left = last.note if last.state == "stopped" else ""
    settings = check_settings(workable(order.crawl.settings))
    crawl_order = dataclasses.replace(order.crawl, settings=settings)
    run_id = home.begin_run(CHECK, crawl_order.starts, order.crawl.settings, clock.now())
    # an interrupted check has stored its start time
    since = float(home.change_note(checks.SINCE, lambda text: text or repr(clock.now())))
    store = home.store(run_id, settings)
    stop_note = net_note = ""
    try:
        for number in range(ROUNDS_MOST):
            requests = plan_requests(dataclasses.replace(order, crawl=crawl_order), since, clock.now())
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
    """(hosts of other sites requested since then, those of them that did not answer)."""
    own = site_scope(order.starts, order.settings.scope).sites
    with open_reader(order.place) as reader:
        rows = [
            row
            for row in checks.asked_since(reader, since)
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
    """Message that the local network is down, as the probe failed too; empty if the probe was answered."""
    hosts, silent = _hosts_since(order, since)
    probe = Url(order.settings.politeness.net_probe)
    if host_key(canonical(probe)) in hosts - silent:
        return ""
    return (
        f"the local network is down: {len(silent):,} of {len(hosts):,} hosts of other sites do not answer, including "
        f"{probe}; links to other sites are not judged"
    )


def check_settings(settings: Settings) -> Settings:
    """Settings for the workers of a check. Sitemaps and the page limit apply to the crawl only."""
    scope, budget = (
        dataclasses.replace(settings.scope, sitemaps=False),
        dataclasses.replace(settings.budget, max_pages=0),
    )
    return dataclasses.replace(settings, scope=scope, budget=budget)


def _store_judgement(order: CrawlOrder, run_id: int, now: float, *, net_down: bool) -> None:
    """Marks dead URLs as failed, and clears the failure of URLs that the crawl found dead and the check did not.

    net_down: ignore missing answers of this run.
    """
    if net_down:
        order.home.change(lambda statements: checks.mark_network_down(statements, run_id))
    with snapshot_of(order.place) as reader:
        seen = UrlEvidence(
            reader,
            site_rows.all_urls(reader),
            order.settings.politeness.recheck_wait_s,
            order.settings.limits.redirect_hops,
        )
        dead, revived = list(seen.dead_urls()), list(seen.alive_urls())

    def store(statements: Statements) -> None:
        checks.store_verdicts(statements, dead)
        checks.restate(statements, run_id, revived)

    order.home.change(store)
    take_certificates(order.place, site_scope(order.starts, order.settings.scope).sites, order.settings, now)


def plan_requests(order: CheckOrder, since: float, now: float) -> list[SideRequest]:
    """Requests to make next: first URLs not requested since the check began, then failures whose retry is due."""
    with snapshot_of(order.crawl.place) as reader:
        urls, settings = site_rows.all_urls(reader), order.crawl.settings
        seen = UrlEvidence(reader, urls, settings.politeness.recheck_wait_s, settings.limits.redirect_hops)
        plan = _Plan(order, seen, since, now)
        fragments = _fragments(reader) if order.fragments else {}
        targets = {url for site in plan.scope.sites for url in checks.targets(reader, site)}
        targets |= set(all_redirects(reader).targets.tolist())
        targets |= {int(urls.ids[place]) for place in _places_of(urls, FAILURE_REASONS)}
        for url in sorted(targets):
            plan.add(url, fragments.get(url, ()))
        if settings.storage.part_sizes == "head":
            answers = site_rows.part_sizes(reader)
            parts = {int(url) for site in plan.scope.sites for url in site_rows.parts(reader, site).targets}
            for url in sorted(url for url in parts if url in answers and not answers[url].size_bytes):
                plan.add_size_request(url)
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


def _fragments(reader: CollectionReader) -> dict[int, tuple[str, ...]]:
    """Fragments that links name, by target URL id."""
    by_target: dict[int, dict[str, None]] = {}
    for _, target, _, _, fragments in checks.fragments(reader):
        by_target.setdefault(target, {}).update(dict.fromkeys(fragments.split()))
    return {target: tuple(names)[:FRAGMENTS_MOST] for target, names in by_target.items()}


class _Plan:
    """Collects the side requests of a check. Call `add` for any link target."""

    def __init__(self, order: CheckOrder, seen: UrlEvidence, since: float, now: float) -> None:
        self._order, self._seen, self._since, self._now = order, seen, since, now
        self.scope: SiteScope = site_scope(order.crawl.starts, order.crawl.settings.scope)
        self.side_requests: list[SideRequest] = []
        self._ends: set[int] = set()  # redirect ends that are requested again; many links may share one

    def add(self, url: int, fragments: Sequence[str]) -> None:
        """Queues a URL that was not requested yet, or a retry of an unconfirmed failure."""
        text, seen = self._seen.text(url), self._seen
        if not text or not self._is_wanted(text):
            return
        if seen.crawl_reason(url) in NO_REQUEST and seen.request_time(url, by_get=bool(fragments)) < self._since:
            by_get = bool(fragments) or not self._order.head
            self.side_requests.append(
                check_side_request(Request(text, Purpose.CHECK if by_get else Purpose.HEAD, about=" ".join(fragments)))
            )
            return
        judgement, end = seen.judgement(url, {}), seen.way(url).end
        is_head_alone = seen.request_time(url, by_get=False) >= self._since > seen.request_time(url, by_get=True)
        if judgement.verdict in _DEAD and is_head_alone and end != url:  # some servers redirect HEAD alone to a 404
            self.side_requests.append(check_side_request(Request(text, Purpose.CHECK, about=" ".join(fragments))))
        if judgement.ask_again_at and end not in self._ends:
            self._ends.add(end)
            request = Request(self._seen.text(end), Purpose.CHECK, about=" ".join(fragments))
            self.side_requests.append(check_side_request(request, max(0.0, judgement.ask_again_at - self._now)))

    def add_size_request(self, part: int) -> None:
        """Queues a GET for a page resource whose server answers HEAD without Content-Length. Bodies of images, styles
        and scripts are not read.
        """
        end = self._seen.way(part).end
        is_new = end not in self._ends and self._seen.request_time(end, by_get=True) < self._since
        if (
            is_new
            and self._is_wanted(self._seen.text(part))
            and self._seen.request_time(part, by_get=False) >= self._since
        ):
            self._ends.add(end)
            self.side_requests.append(check_side_request(Request(self._seen.text(end), Purpose.CHECK)))

    def add_probe(self, host: HostKey) -> None:
        """Queues one URL that cannot exist on each own host, to learn how the host reports a missing page."""
        for start in self.scope.starts:
            if host_key(start) == host:
                url = canonical(probe_url(start, f"{int(self._since * 1000):x}"))
                if self._seen.request_time(url_id(url), by_get=True) < self._since:
                    self.side_requests.append(check_side_request(Request(url, Purpose.CHECK)))
                return

    def _is_wanted(self, url: Url) -> bool:
        """Whether scope patterns, URL length and `external` admit the URL."""
        own, rules = site_key(url) in self.scope.sites, self._order.crawl.settings.scope
        if not own and not self._order.external:
            return False
        if len(url) > rules.url_bytes or any(pattern.is_in(url) for pattern in self.scope.exclude):
            return False
        return not (own and self.scope.include) or any(pattern.is_in(url) for pattern in self.scope.include)
