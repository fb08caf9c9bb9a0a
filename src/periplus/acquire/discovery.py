"""Extracts from an answer: the document, candidate URLs, aliases, sitemap requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from operator import gt
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from periplus.acquire.politeness import HeldHost
from periplus.document.headers import media_type
from periplus.document.media_types import is_part
from periplus.document.understand import understand
from periplus.errors import InvalidUrl
from periplus.model.frontier import (
    PRIORITY_SITEMAP,
    PRIORITY_WITHOUT_DEPTH,
    Candidate,
    Completion,
    GivenUp,
    Lease,
    SideRequest,
    Task,
)
from periplus.model.page import CLICK_KINDS, FOLLOWED_KINDS, Document, LinkKind, link_codes
from periplus.model.ports import CrawlScope
from periplus.model.visit import Cut, Fetched, Purpose, Reason, Redirected, Request, Skipped, Visit
from periplus.model.web import AliasDetection, HostKey, SiteKey, Url
from periplus.settings import Settings
from periplus.urls.canonical import canonical, url_id
from periplus.urls.hosts import host_key, root_of
from periplus.urls.parameters import NO_RULES, Rules, apply
from periplus.urls.scope import site_key

if TYPE_CHECKING:
    from periplus.document.sitemaps import Sitemap

_FOLLOWED_CODES = link_codes(FOLLOWED_KINDS)
_IS_FOLLOWED = bytes(code in _FOLLOWED_CODES for code in range(256))  # 1 for these codes
_CLICK_CODES = link_codes(CLICK_KINDS)
# the parts that `keep_parts` fetches; audio and video are too large
_PARTS = link_codes(frozenset({LinkKind.IMAGE, LinkKind.STYLE, LinkKind.SCRIPT, LinkKind.ICON}))
# end of the message of a run that was signed in before: it waits for the user
SIGNED_OUT = "; signed out, so the crawl pauses: sign in again, then the same command goes on"
MOST_SITES = 64  # sites whose alias detection is in memory; others are read from the store when needed
GENERATION = 200_000  # texts in one half of the memory: some 60 MB in all when full
MOST_SITEMAP_DEPTH = 3  # indexes of indexes exist; deeper nesting is a loop


class Naming(NamedTuple):
    """The canonical page of a URL; page None: the URL breaks a rule.

    rule: the rule or finding; empty if the URL is the canonical one. learned: by alias detection, not by a rule.
    """

    page: Url | None
    rule: str = ""
    learned: bool = False


class Aliases:
    """Maps URLs to canonical pages, in one worker: by the user's rules first, then by alias detection."""

    def __init__(self, rules: Rules = NO_RULES, lessons: Callable[[SiteKey], AliasDetection] | None = None) -> None:
        """lessons: loads a site's alias detection from the store; None: no detection."""
        self._rules, self._lessons = rules, lessons
        self._learners: dict[SiteKey, AliasDetection] = {}
        self._retracted: list[tuple[SiteKey, str]] = []

    def __bool__(self) -> bool:
        return bool(self._rules) or self._lessons is not None

    def of(self, url: Url) -> Naming:
        applied = apply(url, self._rules) if self._rules else None
        if applied is not None and applied.url != url:
            return Naming(applied.url, applied.rule)
        if self._lessons is None:
            return Naming(url)
        target = self._learner(site_key(url)).target_of(url)
        return Naming(target.url, "; ".join(target.findings), True)

    def ruling(self, task: Task) -> Skipped | None:
        """Skips a page task whose URL has become an alias since it was queued; None: request it."""
        if self._lessons is None or task.request.purpose is not Purpose.PAGE or task.priority == 0:
            return None
        naming = self.of(task.request.url)
        return None if naming.page == task.request.url else Skipped(Reason.ALIAS, naming.rule)

    def learn(self, url: Url, document: Document) -> None:
        # the empty shells that scripts fill have equal text on all pages, which would look like aliases
        if self._lessons is not None and not document.needs_script:
            site = site_key(url)
            self._retracted += [
                (site, retraction.finding) for retraction in self._learner(site).learn(url, document.digests.text)
            ]

    def collect(self) -> tuple[tuple[SiteKey, str], ...]:
        """The findings retracted since the last call, for the store."""
        retracted, self._retracted = tuple(self._retracted), []
        return retracted

    def forget(self) -> None:
        """After a lost lease: drops what was learned, since some of its pages were not stored."""
        self._learners.clear()

    def _learner(self, site: SiteKey) -> AliasDetection:
        learner = self._learners.pop(site, None)
        if learner is None:
            assert self._lessons is not None
            learner = self._lessons(site)
            if len(self._learners) >= MOST_SITES:
                del self._learners[next(iter(self._learners))]
        self._learners[site] = learner  # LRU order
        return learner


class Memory:
    """A cache of recently seen URLs with their smallest depth: at least the last GENERATION different ones.

    A URL that fell out of the cache is offered to the store again.
    """

    def __init__(self) -> None:
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}

    def is_new(self, text: str, depth: int | None = None) -> bool:
        """True the first time, and again at a smaller depth, which may be within the limit. Remembers the URL."""
        clicks = PRIORITY_WITHOUT_DEPTH if depth is None else depth
        before = self._young.get(text)
        if before is not None and before <= clicks:
            return False
        if before is None:
            before = self._old.get(text, clicks + 1)
            if len(self._young) >= GENERATION:
                self._old, self._young = self._young, {}
        self._young[text] = min(before, clicks)
        return clicks < before

    def depths(self, texts: Iterable[str]) -> Iterator[int]:
        """The depths of these URLs, as far as they were seen lately; a large number for others."""
        return map(self._young.get, texts, repeat(1 << 62))

    def forget(self) -> None:
        self._young.clear()
        self._old.clear()


def as_part(fetched: Fetched) -> Fetched | None:
    """An image, style sheet or the like as a file that is not parsed; without its bytes if they are incomplete.

    None: it may be a page.
    """
    if not is_part(media_type(fetched.headers)[0], fetched.body[:16]):
        return None
    return replace(fetched, body=fetched.body if fetched.cut is Cut.NONE else b"", cut=Cut.NOT_WANTED)


class Discovery:
    """Reads answers and turns links into candidates: each URL once per worker, unless it is found at a smaller depth.

    Nearly all links of a page have been seen before, so most are dropped here.
    """

    def __init__(self, scope: CrawlScope, settings: Settings, aliases: Aliases | None = None) -> None:
        self._scope, self._rules, self._aliases = scope, settings.scope, aliases or Aliases()
        self._settings = settings
        self._parts = _PARTS if settings.storage.keep_parts else frozenset()
        self._followed, self._noted = Memory(), Memory()

    def candidate(self, url: Url, depth: int | None, *, hops: int = 0, in_sitemap: bool = False) -> Candidate:
        """The candidate for a URL: waiting, or excluded by scope or depth."""
        is_inside, rule = self._scope.ruling(url)
        if not is_inside:
            reason = Reason.SCOPE
        elif self._is_too_deep(depth):
            reason, rule = Reason.DEPTH, f"max-depth {self._rules.max_depth}"
        else:
            reason, rule = Reason.WAITING, ""
        return self._new_candidate(url, reason, depth, rule, hops=hops, in_sitemap=in_sitemap)

    def _new_candidate(self, url: Url, reason: Reason, depth: int | None, rule: str = "", **facts: Any) -> Candidate:
        """facts: further fields of the candidate."""
        return Candidate(url, url_id(url), host_key(url), self._scope.site_of(url), reason, depth, rule, **facts)

    def _is_too_deep(self, depth: int | None) -> bool:
        return self._rules.max_depth >= 0 and (depth is None or depth > self._rules.max_depth)

    def ruling(self, task: Task) -> Skipped | None:
        """Skips a page task that was queued under other limits and that this run's scope or depth excludes.

        A later run with other limits fetches it.
        """
        request = task.request
        if request.purpose is not Purpose.PAGE or task.recheck:
            return None
        if refused := self._scope.exclusion_reason(request.url):
            return Skipped(Reason.SCOPE, refused)
        return Skipped(Reason.DEPTH, f"max-depth {self._rules.max_depth}") if self._is_too_deep(request.depth) else None

    def alias_candidates(
        self, url: Url, depth: int | None, *, hops: int = 0, in_sitemap: bool = False
    ) -> tuple[Candidate, ...]:
        """The candidate for a URL's canonical page, and another for the URL itself if it is an alias."""
        naming = self._aliases.of(url) if self._aliases and self._scope.decide(url) is None else None
        if naming is None or (naming.page is not None and url_id(naming.page) == url_id(url)):
            return (self.candidate(url, depth, hops=hops, in_sitemap=in_sitemap),)
        if naming.page is None:
            return (self._new_candidate(url, Reason.RULE, depth, naming.rule, in_sitemap=in_sitemap),)
        page = self.candidate(naming.page, depth, hops=hops, in_sitemap=in_sitemap)
        return page, self._new_candidate(
            url, Reason.ALIAS, depth, naming.rule, page=page.url_id, learned=naming.learned
        )

    def of_page(self, source: Url, document: Document, depth: int | None) -> tuple[Candidate, ...]:
        """Candidates from the links of a page at `depth`.

        Parts of pages (images, styles) and nofollow links are recorded, not queued.

        Depth is the number of clicks: URLs from `link rel=next`, feeds and the like have no depth, as URLs from
        sitemaps. Depth counts within the site of a start URL: a link from another start's site sets none, since it
        would depend on which site is crawled faster.
        """
        next_depth = None if depth is None else depth + 1
        home = root_of(source)  # a fast test: most links stay on their host, and so within its site
        candidates: list[Candidate] = []
        links, least = document.links, PRIORITY_WITHOUT_DEPTH if next_depth is None else next_depth
        least_noted = depth if self._parts and depth is not None else PRIORITY_WITHOUT_DEPTH
        offered, noted = self._followed.depths(links.targets), self._noted.depths(links.targets)
        followed = bytes(map(gt, links.kinds.translate(_IS_FOLLOWED), links.nofollow))
        unseen = [
            at
            for at, (is_followed, before, noted_before) in enumerate(zip(followed, offered, noted, strict=True))
            if (before > least if is_followed else noted_before > least_noted)
        ]
        for at in unseen:
            target, kind, is_followed = links.targets[at], links.kinds[at], followed[at]
            below = next_depth if kind in _CLICK_CODES else None
            if is_followed:
                clicks = None if not target.startswith(home) and self._is_cross_site(source, target) else below
                if self._followed.is_new(target, clicks):
                    candidates += self.alias_candidates(target, clicks)
            elif kind in self._parts:  # on any host, with the depth of its page
                if self._noted.is_new(target, depth):
                    candidates.append(self._new_candidate(target, Reason.WAITING, depth))
            elif self._noted.is_new(target):
                if kind not in _FOLLOWED_CODES:
                    candidates.append(self._new_candidate(target, Reason.RESOURCE, None))
                else:
                    new = self.candidate(target, below)
                    if new.reason is not Reason.SCOPE:
                        new = new._replace(reason=Reason.NOFOLLOW, rule="")
                    candidates.append(new)
        return tuple(candidates)

    def _is_cross_site(self, source: Url, target: Url) -> bool:
        site = self._scope.site_of(target)
        return site in self._scope.sites and site != self._scope.site_of(source)

    def of_redirect(self, source: Url, target: Url, depth: int | None, hops: int) -> tuple[Candidate, ...]:
        """Candidates for a redirect's target, which has the depth of its source."""
        if self._is_cross_site(source, target):
            return self.alias_candidates(target, None, hops=hops)
        self._followed.is_new(target, depth)
        candidates = self.alias_candidates(target, depth, hops=hops)
        if candidates[0].url == source:  # the server requires what the rules remove, so the target is the page
            return (self.candidate(target, depth, hops=hops),)
        return candidates

    def of_script(self, text: str, request: Request) -> tuple[Candidate, ...]:
        """Candidates for a URL that a page's script navigated to, as for a redirect. None for invalid URLs."""
        try:
            target = canonical(text, request.url)
        except InvalidUrl:
            return ()
        hops = request.hops + 1
        if target == request.url or hops > self._settings.limits.redirect_hops:
            return ()
        return self.of_redirect(request.url, target, request.depth, hops)

    def of_sitemap(self, sitemap: Sitemap) -> tuple[Candidate, ...]:
        return tuple(
            candidate
            for entry in sitemap.entries
            for candidate in self.alias_candidates(entry.url, None, in_sitemap=True)
        )

    def of_starts(self, starts: Iterable[Url]) -> tuple[Candidate, ...]:
        return tuple(self.candidate(start, 0) for start in starts)

    def forget(self) -> None:
        """After a lost lease: URLs whose candidates were not stored must be offered again."""
        for memory in (self._followed, self._noted):
            memory.forget()

    def of(self, lease: Lease, task: Task, visit: Visit) -> Completion:
        """The visit with its document, candidates and sitemap requests, without a reason.

        Adds nothing for robots.txt, which `RobotsGate` reads, or for answers without content.
        """
        request, candidates = visit.request, tuple[Candidate, ...]()
        side_requests: tuple[SideRequest, ...] = ()
        match visit.outcome:
            case _ if request.purpose is Purpose.ROBOTS:
                pass
            case Fetched(status=status, cut=cut) as fetched if 200 <= status < 300 and cut is not Cut.BOT_WALL:
                if request.purpose is Purpose.SITEMAP:
                    return self._with_sitemap(Completion(lease, task, visit, None), fetched)
                if self._settings.storage.keep_parts and (part := as_part(fetched)):
                    fetched = part
                    visit = replace(visit, outcome=part)
                document = understand(
                    request.url, fetched, with_xml=self._settings.storage.keep_xml, wiki_links=self._rules.wiki_links
                )
                candidates = self.of_page(request.url, document, request.depth)
                return Completion(lease, task, visit, None, document=document, candidates=candidates)
            case Redirected(target=target) if (
                request.hops < self._settings.limits.redirect_hops and target != request.url
            ):
                if request.purpose is Purpose.SITEMAP:
                    side_requests = (self._sitemap_request(target, request),)
                else:
                    candidates = self.of_redirect(request.url, target, request.depth, request.hops + 1)
            case Skipped(reason=Reason.ALIAS):
                candidates = self.alias_candidates(request.url, request.depth)
            case _:
                pass
        return Completion(lease, task, visit, None, candidates=candidates, side_requests=side_requests)

    def _with_sitemap(self, read: Completion, fetched: Fetched) -> Completion:
        from periplus.document.sitemaps import read_sitemap  # the import takes 2 ms, and is not always needed

        request = read.visit.request
        sitemap = read_sitemap(fetched.body, request.url)
        nested = sitemap.nested if request.hops < MOST_SITEMAP_DEPTH else ()
        side_requests = tuple(self._sitemap_request(url, request) for url in nested)
        return replace(read, candidates=self.of_sitemap(sitemap), side_requests=side_requests)

    def _sitemap_request(self, url: Url, request: Request) -> SideRequest:
        onward = Request(url, Purpose.SITEMAP, hops=request.hops + 1, about=request.about)
        return SideRequest(host_key(url), self._scope.site_of(url), onward, PRIORITY_SITEMAP)


class PageRenderer(Protocol):
    """Renders pages of a worker in a browser; the service `rendering` of a feature."""

    @property
    def is_busy(self) -> bool: ...

    @property
    def fds(self) -> Sequence[int]: ...

    def wants(self, visit: Visit) -> bool:
        """Whether a page must be rendered before it is read."""

    def needs(self, read: Completion) -> bool:
        """Whether a page that was read as sent must be rendered after all."""

    def begin(self, host: HeldHost, task: Task, visit: Visit, links: tuple[Candidate, ...]) -> None:
        """links: candidates from the page as sent; they join the candidates of the rendered page."""

    def advance(self) -> Iterator[tuple[HeldHost, Task, Callable[[Discovery], Completion]]]:
        """The pages that ended since the last call, each with the function that reads it."""

    def requests(self) -> Iterator[Request]:
        """New requests of pages; pass their visits to `answer`."""

    @property
    def pending_requests(self) -> Sequence[Request]:
        """The unanswered requests."""

    def answer(self, visit: Visit) -> None: ...

    def close(self) -> None: ...


class HostCallbacks(NamedTuple):
    """The worker's functions on its hosts."""

    held_host: Callable[[HostKey], HeldHost | None]
    refill: Callable[[HeldHost], bool]  # takes tasks; False: there are none
    schedule: Callable[[HeldHost], None]
    request_lease: Callable[[Request], None]  # of a host that is not held
    settle: Callable[[HeldHost, Task, Visit], None]


class LoginGate(Protocol):
    """Signs in to the hosts of a worker; made by the service `login sessions` of a feature."""

    @property
    def failure(self) -> str:
        """Why the crawl cannot continue, or ""."""

    def ruling(self, task: Task) -> Skipped | None:
        """Refuses URLs that would log out or delete something; None: allowed."""

    def admits(self, host: HeldHost) -> bool:
        """Whether the host's next task may be requested.

        If not, the host waits, or its `parts` hold its session's request.
        """

    def store_cookies(self, visit: Visit) -> Visit:
        """Stores the answer's cookies in its session. Returns the visit without cookie values."""

    def accepts(self, host: HeldHost, task: Task, visit: Visit) -> bool:
        """Whether a page may be stored now. If not, it is withheld or requested again."""

    def take(self, visit: Visit) -> None:
        """Processes the outcome of a session's own request."""

    def given_up(self, origin: GivenUp) -> None:
        """Fails the session whose next request goes to an origin that was given up."""
