"""Is this URL another address of a page: by the collection's rules, or by what its site's pages taught?"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from periplus.model.frontier import Task
from periplus.model.page import Document
from periplus.model.twins import TwinSense
from periplus.model.visit import Purpose, Reason, Skipped
from periplus.model.web import SiteKey, Url
from periplus.urls.parameters import NO_RULES, Rules, apply
from periplus.urls.scope import site_key

MOST_SITES = 64  # whose lessons are kept at a time; those of others are read from the store again when their turn comes


class Naming(NamedTuple):
    """The page that a URL is an address of; None: it breaks a rule. rule: which; empty when the URL is the page's own."""

    page: Url | None
    rule: str = ""
    learned: bool = False


class Aliases:
    """One worker's knowledge of addresses. Rules go before lessons."""

    def __init__(self, rules: Rules = NO_RULES, lessons: Callable[[SiteKey], TwinSense] | None = None) -> None:
        """lessons: what is known of a site so far, from the store; None: nothing is learned."""
        self._rules, self._lessons = rules, lessons
        self._senses: dict[SiteKey, TwinSense] = {}
        self._fallen: list[tuple[SiteKey, str]] = []

    def __bool__(self) -> bool:
        return bool(self._rules) or self._lessons is not None

    def of(self, url: Url) -> Naming:
        applied = apply(url, self._rules) if self._rules else None
        if applied is not None and applied.url != url:
            return Naming(applied.url, applied.rule)
        if self._lessons is None:
            return Naming(url)
        twin = self._sense(site_key(url)).twin_of(url)
        return Naming(twin.url, "; ".join(twin.findings), True)

    def ruling(self, task: Task) -> Skipped | None:
        """A page's task that need not be asked for any longer, for its page was fetched under another address meanwhile."""
        if self._lessons is None or task.request.purpose is not Purpose.PAGE or task.layer == 0:
            return None
        naming = self.of(task.request.url)
        return None if naming.page == task.request.url else Skipped(Reason.ALIAS, naming.rule)

    def learn(self, url: Url, document: Document) -> None:
        if self._lessons is not None and not document.needs_script:  # all shells of a site are alike: that says nothing of its pages
            site = site_key(url)
            self._fallen += [(site, retraction.finding) for retraction in self._sense(site).learn(url, document.digests.text)]

    def collect(self) -> tuple[tuple[SiteKey, str], ...]:
        """The findings that fell since last asked, for the store."""
        fallen, self._fallen = tuple(self._fallen), []
        return fallen

    def forget(self) -> None:
        """After a lost lease: lessons from pages that were not stored are unlearned."""
        self._senses.clear()

    def _sense(self, site: SiteKey) -> TwinSense:
        sense = self._senses.pop(site, None)
        if sense is None:
            assert self._lessons is not None
            sense = self._lessons(site)
            if len(self._senses) >= MOST_SITES:
                del self._senses[next(iter(self._senses))]
        self._senses[site] = sense  # last used, last forgotten
        return sense
