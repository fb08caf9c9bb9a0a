"""What does an answer bring: a page understood, URLs to offer, sitemaps to read?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from periplus.acquire.aliases import Aliases
from periplus.acquire.discovery import Discovery
from periplus.document.sitemaps import read_sitemap
from periplus.document.understand import understand
from periplus.model.frontier import LAYER_SITEMAP, Candidate, Errand, Task
from periplus.model.page import Document
from periplus.model.ports import Territory
from periplus.model.visit import Fetched, Purpose, Reason, Redirected, Request, Skipped, Visit
from periplus.model.web import Url
from periplus.settings import Settings
from periplus.urls.hosts import host_key

MOST_SITEMAP_DEPTH = 3  # an index of indexes is met in practice, deeper ones are loops


@dataclass(frozen=True, slots=True)
class Harvest:
    """What one answer brought."""

    document: Document | None = None
    candidates: tuple[Candidate, ...] = ()
    errands: tuple[Errand, ...] = ()


class Harvester:
    """Reads answers. Remembers which URLs it has given out, so that each is offered once."""

    def __init__(self, scope: Territory, settings: Settings, aliases: Aliases | None = None) -> None:
        self._scope, self._settings = scope, settings
        self._discovery = Discovery(scope, settings.scope, aliases)

    def ruling(self, task: Task) -> Skipped | None:
        """See `Discovery.ruling`."""
        return self._discovery.ruling(task)

    def of(self, request: Request, visit: Visit) -> Harvest:
        """Nothing for robots.txt, which is the desk's, and for answers without content."""
        if request.purpose is Purpose.ROBOTS:
            return Harvest()
        match visit.outcome:
            case Fetched(status=status) as fetched if 200 <= status < 300:
                return self._of_page(request, fetched) if request.purpose is Purpose.PAGE else self._of_sitemap(request, fetched)
            case Redirected(target=target) if request.hops < self._settings.limits.redirect_hops and target != request.url:
                if request.purpose is Purpose.SITEMAP:
                    return Harvest(errands=(self._errand(target, request),))
                return Harvest(candidates=self._discovery.of_redirect(request.url, target, request.layer, request.hops + 1))
            case Skipped(reason=Reason.ALIAS):
                return Harvest(candidates=self._discovery.named(request.url, request.layer))
            case _:
                return Harvest()

    def _of_page(self, request: Request, fetched: Fetched) -> Harvest:
        document = understand(request.url, fetched)
        return Harvest(document, self._discovery.of_page(request.url, document, request.layer))

    def _of_sitemap(self, request: Request, fetched: Fetched) -> Harvest:
        sitemap = read_sitemap(fetched.body, request.url)
        nested = sitemap.nested if request.hops < MOST_SITEMAP_DEPTH else ()
        return Harvest(None, self._discovery.of_sitemap(sitemap), tuple(self._errand(url, request) for url in nested))

    def _errand(self, url: Url, request: Request) -> Errand:
        onward = Request(url, Purpose.SITEMAP, hops=request.hops + 1, about=request.about)
        return Errand(host_key(url), self._scope.site_of(url), onward, LAYER_SITEMAP)

    def vouched(self, urls: Iterable[Url]) -> tuple[Candidate, ...]:
        """Offers again what was held back, as long as nothing vouched for it."""
        return tuple(self._discovery.candidate(url, None) for url in urls)

    def forget(self) -> None:
        """What was given out was lost on its way to the store: it must be offered again."""
        self._discovery.forget()
