"""What did a page bring? New external links, counted by target page, host or registered domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from periplus.model.page import Document, LinkKind
from periplus.model.web import SiteKey, Url
from periplus.schedule.bandit.yields import SINGLES_MEMORY
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_name, registered_domain

Unit = Literal["page", "host", "domain"]
CLICKED = frozenset({LinkKind.ANCHOR, LinkKind.AREA})


class Reward(NamedTuple):
    """new: targets that no page of the site linked to before. met_again: see `Yields.book`."""

    new: int
    met_again: float


@dataclass(slots=True)
class Novelty:
    """Which external targets each site has shown so far. New means new on that site: what two sites cite counts for both."""

    unit: Unit
    site_of: Callable[[Url], SiteKey]
    _met: dict[SiteKey, dict[int | str, int]] = field(default_factory=dict, repr=False)  # target: the page that showed it first; -1: several did
    _pages: dict[SiteKey, int] = field(default_factory=dict, repr=False)

    def of(self, site: SiteKey, document: Document | None) -> Reward:
        """Of the site's next page. Every call counts as a page, one without a document too."""
        clicked = () if document is None else (link.target for link in document.links if link.kind in CLICKED)
        return self.count(site, self.targets(site, clicked))

    def targets(self, site: SiteKey, ends: Iterable[Url]) -> set[int | str]:
        """What these ends of links on a page of the site count as: those on the site itself are left out."""
        return {self._target(end) for end in ends if self.site_of(end) != site}

    def count(self, site: SiteKey, targets: Set[int | str]) -> Reward:
        """Books the site's next page with what it links to."""
        page = self._pages.get(site, 0)
        self._pages[site] = page + 1
        met = self._met.setdefault(site, {})
        new, again = 0, 0.0
        for target in targets:
            first = met.setdefault(target, page)
            if first == page:
                new += 1
            elif first >= 0:
                again += (1 - 1 / SINGLES_MEMORY) ** (page - first)
                met[target] = -1
        return Reward(new, again)

    def _target(self, url: Url) -> int | str:
        match self.unit:
            case "page":
                return int(url_id(url))
            case "host":
                return host_name(url)
            case "domain":
                return registered_domain(host_name(url))
