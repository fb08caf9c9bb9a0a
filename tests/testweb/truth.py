"""Ground truth of a synthetic web: pages, links, states and depths."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from periplus.model.page import CLICK_KINDS, FOLLOWED_KINDS, Link, LinkKind
from periplus.model.visit import Reason
from testweb.wire import PORT, TLS_PORT

NOT_PAGES = frozenset(LinkKind) - FOLLOWED_KINDS


@dataclass(frozen=True, slots=True)
class PageTruth:
    """Expected contents of a page."""

    url: str
    title: str
    h1: str
    text: str  # the paragraphs of <main>, separated by "\n"
    language: str
    charset: str


@dataclass(frozen=True, slots=True)
class Truth:
    """URLs are canonical, with the server's port (or PORT before they are served)."""

    pages: dict[str, PageTruth] = field(default_factory=dict)
    # by source; as expected from `document.understand`
    links: dict[str, tuple[Link, ...]] = field(default_factory=dict)
    # expected reason in a crawl of the URL's site; default: OK
    reasons: dict[str, Reason] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)  # one hop
    # groups with the same content; the first is the representative
    duplicates: list[tuple[str, ...]] = field(default_factory=list)
    canonicals: dict[str, str] = field(default_factory=dict)
    orphans: set[str] = field(default_factory=set)  # in the sitemap only
    traps: set[str] = field(default_factory=set)  # URL prefixes without new content
    either: set[str] = field(default_factory=set)  # URLs that the standard leaves to the crawler

    def graph(self) -> set[tuple[str, str]]:
        """Distinct (source, target) of links to pages, without self-links."""
        return {
            (source, link.target)
            for source, links in self.links.items()
            for link in links
            if link.kind in FOLLOWED_KINDS and link.target != source
        }

    @property
    def depths(self) -> dict[str, int]:
        """Clicks from the home page of its site, for every URL reachable by links or redirects within the site."""
        homes = [url for url in self.pages if urlsplit(url).path == "/"]
        return {url: depth for home in homes for url, depth in self.depths_from(home).items()}

    def depths_from(self, start: str, kinds: frozenset[LinkKind] = CLICK_KINDS) -> dict[str, int]:
        """Clicks from start within start's host. A redirect is not a click: its target has the depth of its source.

        kinds: kinds of links to follow.
        """
        home = urlsplit(start).netloc
        depths = {start: 0}
        queue = deque([start])
        while queue:
            url = queue.popleft()
            if url in self.redirects:
                onward, step = [self.redirects[url]], 0
            else:
                onward, step = (
                    [link.target for link in self.links.get(url, ()) if link.kind in kinds and not link.nofollow],
                    1,
                )
            for target in onward:
                if urlsplit(target).netloc == home and target not in depths:
                    depths[target] = depths[url] + step
                    queue.append(target) if step else queue.appendleft(target)
        return depths

    def expected(self, start: str) -> dict[str, Reason]:
        """Expected reason of every URL in a crawl from start with scope `site` and without limits, except URLs in
        `either`.
        """
        found = {
            url: self.reasons.get(url, Reason.OK)
            for url in [
                *self.depths_from(start, FOLLOWED_KINDS),
                *(o for o in self.orphans if _host(o) == _host(start)),
            ]
        }
        for source in list(found):
            for link in self.links.get(source, ()):
                found.setdefault(link.target, self._not_followed(link, start))
            if source in self.redirects:
                found.setdefault(self.redirects[source], Reason.SCOPE)
        return {url: reason for url, reason in found.items() if url not in self.either}

    def _not_followed(self, link: Link, start: str) -> Reason:
        if link.kind in NOT_PAGES:
            return Reason.RESOURCE
        return Reason.SCOPE if _host(link.target) != _host(start) else Reason.NOFOLLOW

    def at(self, port: int, tls_port: int = 0) -> Truth:
        """The ground truth with real ports."""
        return _filled(self, port, tls_port)

    def as_json(self) -> str:
        """The ground truth as JSON with sorted keys: equal for equal webs."""
        return json.dumps(_plain(self), ensure_ascii=False, indent=1, sort_keys=True)


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _plain(value: object) -> object:
    """Dataclasses, named tuples and sets as JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _filled(value, port: int, tls_port: int):  # any value of a Truth; keeps its type
    if isinstance(value, str) and type(value) is str:
        return value.replace(PORT, str(port)).replace(TLS_PORT, str(tls_port)) if "@" in value else value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value,
            **{item.name: _filled(getattr(value, item.name), port, tls_port) for item in dataclasses.fields(value)},
        )
    if isinstance(value, dict):
        return {_filled(key, port, tls_port): _filled(item, port, tls_port) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        parts = [_filled(item, port, tls_port) for item in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return value


def merged(truths: Iterable[Truth]) -> Truth:
    """Merged ground truth of several sites."""
    whole = Truth()
    for truth in truths:
        for item in dataclasses.fields(Truth):
            mine, other = getattr(whole, item.name), getattr(truth, item.name)
            mine.extend(other) if isinstance(mine, list) else mine.update(other)
    return whole
