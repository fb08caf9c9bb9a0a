"""The scope of a crawl: whether a URL belongs to it, and by which rule."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import lru_cache

from periplus.errors import InvalidUrl, UsageError
from periplus.model.visit import Reason
from periplus.model.web import HostKey, SiteKey, Url
from periplus.settings import Scope
from periplus.urls import hosts
from periplus.urls.canonical import canonical
from periplus.urls.folders import FOLDER_DOMAIN
from periplus.urls.user_patterns import UserPattern, user_pattern
from periplus.values import frozen


def site_key(url: Url) -> SiteKey:
    """The host without `www.`; with `:port` unless it is 80 or 443. http and https are the same site."""
    return _site_of_host(hosts.host_key(url))


def site_name(url: Url) -> str:
    """The site's key as a file name: without colons and brackets; for local folders the folder's name."""
    return site_key(url).removesuffix(FOLDER_DOMAIN).replace(":", "-").strip("[]")


@lru_cache(maxsize=65_536)  # as in `hosts`; a URL is decided in 0.8 us instead of 1.9
def _site_of_host(host: HostKey) -> SiteKey:
    name, _, port = host.rpartition(":")
    name = hosts.without_www(name)
    return SiteKey(name if port in ("443", "80") else f"{name}:{port}")


@frozen
class SiteScope:
    """`model.ports.CrawlScope` by start URLs and settings. Made by `site_scope`.

    The first match decides: start URLs are always in scope; then the length, `exclude`, `include`, and last the host
    and path.
    """

    rules: Scope
    starts: frozenset[Url]
    sites: frozenset[SiteKey]  # of the starts
    domains: frozenset[str]  # their registered domains
    folders: tuple[tuple[SiteKey, str], ...]  # (site, path) that scope "prefix" stays below
    include: tuple[UserPattern, ...]
    exclude: tuple[UserPattern, ...]

    def decide(self, url: Url) -> Reason | None:
        """None: in scope. Runs once for each new link: 1 to 2 us, plus the user's expressions."""
        return None if self.ruling(url)[0] else Reason.SCOPE

    def site_of(self, url: Url) -> SiteKey:
        return site_key(url)

    def exclusion_reason(self, url: Url) -> str:
        """Which of the user's limits excludes a URL, as a text for users; empty: none."""
        if url in self.starts:
            return ""
        if len(url) > self.rules.url_bytes:  # canonical URLs are ASCII
            return f"longer than {self.rules.url_bytes} bytes (url_bytes)"
        for pattern in self.exclude:
            if pattern.is_in(url):
                return f"excluded by {pattern.text}"
        if self.include and not any(pattern.is_in(url) for pattern in self.include):
            return "matches no include expression"
        return ""

    def ruling(self, url: Url) -> tuple[bool, str]:
        """(whether the URL is in scope, the rule that decided as a text for users)."""
        if url in self.starts:
            return True, "a start"
        refused = self.exclusion_reason(url)
        return (False, refused) if refused else self._place(url)

    def _place(self, url: Url) -> tuple[bool, str]:
        match self.rules.scope:
            case "any":
                return True, "anywhere"
            case "domain":
                domain = hosts.registered_domain(hosts.host_name(url))
                return (True, "the start's domain") if domain in self.domains else (False, "outside the start's domain")
            case "prefix":
                site, path = site_key(url), hosts.path_and_query(url)
                below = any(site == start and _is_below(path, folder) for start, folder in self.folders)
                return (True, "below the start") if below else (False, "not below the start")
            case _:
                return (
                    (True, "the start's site") if site_key(url) in self.sites else (False, "outside the start's site")
                )


def site_scope(starts: Iterable[Url], rules: Scope) -> SiteScope:
    """The scope of a crawl. Raises UsageError for an invalid expression."""
    urls = frozenset(starts)
    sites = frozenset(map(site_key, urls))
    domains = frozenset(hosts.registered_domain(hosts.host_name(url)) for url in urls)
    folders = tuple(sorted({(site_key(url), _folder(url)) for url in urls}))
    include = tuple(user_pattern(text, "include") for text in rules.include)
    exclude = tuple(user_pattern(text, "exclude") for text in rules.exclude)
    return SiteScope(rules, urls, sites, domains, folders, include, exclude)


def _folder(start: Url) -> str:
    """`/docs/` for `/docs/intro.html`; `/docs` for `/docs`, since a last segment without a dot is more often a folder
    than a page, and the whole host is rarely meant."""
    path = hosts.path_and_query(start).partition("?")[0]
    head, _, last = path.rpartition("/")
    return f"{head}/" if "." in last else path


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder) and (folder.endswith("/") or path[len(folder) : len(folder) + 1] in ("", "/", "?"))


def own_hosts(names: Iterable[str]) -> tuple[str, ...]:
    """The user's own hosts in canonical form: `example.org`, `example.org:8080`, `*.example.org` (all subdomains).

    Raises UsageError for other texts, and for the subdomains of a public suffix, which have many owners.
    """
    return tuple(_own_host(text) for text in names)


def _own_host(text: str) -> str:
    star, rest = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    url: Url | None = None
    with contextlib.suppress(InvalidUrl):
        url = canonical(f"http://{rest}/")
    if url is None or any(mark in rest for mark in "*/@?# ") or (star and ":" in rest):
        raise UsageError(
            f"{text!r} is not a host: write example.org, example.org:8080, or *.example.org for all subdomains"
        )
    if star and hosts.is_listed_suffix(hosts.host_name(url)):
        raise UsageError(f"{text!r} cannot be your own: the subdomains of {rest} have many owners")
    has_port = not rest.endswith("]") and ":" in rest
    return star + (hosts.host_key(url) if has_port else hosts.host_name(url))
