"""Which page of a host is next, when its order is learned? One `schedule.within.PageOrder` a host, fed with what its pages showed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from periplus.api.survey_scope import start_of
from periplus.model.page import FOLLOWED_KINDS, Document
from periplus.model.ports import Territory
from periplus.model.survey import Unit
from periplus.model.web import HostKey, SiteKey, Url
from periplus.schedule.within import PageOrder, Sighting
from periplus.store.sqlite.survey_visits import SeenLink
from periplus.urls.hosts import host_key

_FOLLOWED = frozenset(kind.value for kind in FOLLOWED_KINDS)


@dataclass(slots=True)
class _Host:
    """The pages of one host in the order in which they were offered."""

    order: PageOrder = field(default_factory=PageOrder)
    urls: list[Url] = field(default_factory=list)
    numbers: dict[Url, int] = field(default_factory=dict)


class PageOrders:
    """The hosts of a campaign. The same pages in the same order make the same orders, whether they are read or played again."""

    def __init__(self, territory: Territory, max_depth: int) -> None:
        """max_depth: layers below the start; -1: no limit."""
        self._territory, self._max_depth = territory, max_depth
        self._hosts: dict[HostKey, _Host] = {}

    def begin(self, units: Iterable[Unit]) -> None:
        for unit in units:
            self._offer(Sighting(start_of(unit), "", "", -1, 0, 0))

    def _offer(self, sighting: Sighting) -> None:
        host = self._hosts.setdefault(host_key(sighting.url), _Host())
        if sighting.url not in host.numbers:
            host.numbers[sighting.url] = host.order.offer(sighting)
            host.urls.append(sighting.url)

    def next(self, host: HostKey) -> Url | None:
        """The most promising page of a host; it is not named again. None: nothing that was offered waits."""
        held = self._hosts.get(host)
        number = held.order.next() if held else None
        return None if held is None or number is None else held.urls[number]

    def again(self, url: Url) -> None:
        """A page was asked for in an earlier process: the order moves on as it did then."""
        held = self._hosts.get(host_key(url))
        number = held.numbers.get(url) if held else None
        if held is not None and number is not None:
            held.order.asked(number)

    def read(self, url: Url, layer: int | None, links: Sequence[SeenLink], new_links: int, redirect: Url) -> None:
        """What a page brought, and which pages it shows."""
        host = self._hosts.get(host_key(url))
        number = host.numbers.get(url) if host else None
        if host is not None and number is not None:
            host.order.told(number, new_links)
        site, place = self._territory.site_of(url), -1 if number is None else number
        if redirect:
            self._show([SeenLink(redirect, "redirect", "", "", False)], site, Sighting(url, "", "", place, new_links, layer or 0))
        if self._max_depth < 0 or layer is None or layer < self._max_depth:
            self._show(sorted(links), site, Sighting(url, "", "", place, new_links, (layer or 0) + 1))

    def _show(self, links: Iterable[SeenLink], site: SiteKey, told: Sighting) -> None:
        """Offers the targets on the same site. By target, for so they can be had again from what is stored."""
        for link in links:
            follow = link.kind in _FOLLOWED and not link.nofollow
            if follow and self._territory.site_of(link.target) == site and self._territory.decide(link.target) is None:
                self._offer(dataclasses.replace(told, url=link.target, anchor=link.anchor, position=link.position))


def seen(document: Document) -> list[SeenLink]:
    """A document's links."""
    return [SeenLink(link.target, link.kind.value, link.position.value, link.anchor, link.nofollow) for link in document.links]
