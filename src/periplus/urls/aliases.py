"""Differences between URLs of the same page, and keys of URLs without them. No I/O.

A *difference* is a way in which URLs of the same page may differ: a parameter, the order of parameters, `www.`, the
scheme, a final slash, an index file, a `;name=value` in the path. Whether a difference matters on a site is decided by
comparing the content of pages, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from periplus.model.web import Url, UrlId
from periplus.urls import hosts
from periplus.urls.canonical import INDEX_FILE, TRACKING
from periplus.urls.scope import site_key
from periplus.urls.url_patterns import SESSION_NAMES, mask
from periplus.values import Pairs, Row

COPY = "same bytes and links as"  # reason of an alias with another path than its page
MOST_DIFFERENCES = 4  # in one finding: URLs with more differences have little in common


class Difference(NamedTuple):
    """A way in which URLs of the same page differ.

    kind: parameter, path-parameter, order, www, scheme, slash or index.
    """

    kind: str
    name: str = ""  # of the parameter or the index file


class Shape(NamedTuple):
    """A URL split into its possible differences."""

    scheme: str
    www: bool
    host: str  # with its port, without `www.`
    path: str  # without `;name=value`, index file and last slash: empty for the root
    path_parameters: Pairs
    index_file: str
    slash: bool
    pairs: Pairs  # of the query: (name, rest)


ORDER, WWW, SCHEME, SLASH = Difference("order"), Difference("www"), Difference("scheme"), Difference("slash")


@lru_cache(maxsize=32_768)  # some 30 MB when full; each page is read once for each finding
def shape(url: Url) -> Shape:
    """Splits a URL. Only equal URLs have equal shapes, except for empty pairs in the query (`?a&&b`)."""
    address, _, query = url.partition("?")
    start = address.index("//") + 2
    cut = address.index("/", start)
    host = address[start:cut]
    path = address[cut:]
    extras: Pairs = ()
    if ";" in path:
        path, extras = _without_extras(path)
    index = INDEX_FILE.search(path)
    name = index[0][1:] if index else ""
    path = path[: len(path) - len(name)] if name else path
    slash = path.endswith("/")
    splits = (pair.partition("=") for pair in query.split("&") if pair)
    pairs = tuple((name, equals + value) for name, equals, value in splits)
    return Shape(
        address[: start - 3],
        hosts.without_www(host) != host,
        hosts.without_www(host),
        path.rstrip("/") if slash else path,
        extras,
        name,
        slash,
        pairs,
    )


def _without_extras(path: str) -> tuple[str, Pairs]:
    segments, extras = [], []
    for segment in path.split("/"):
        plain, *more = segment.split(";")
        segments.append(plain)
        extras += [(name, value) for name, _, value in (extra.partition("=") for extra in more)]
    return "/".join(segments), tuple(extras)


def differences_of(url: Url) -> frozenset[Difference]:
    """The differences that a URL contains: its parameters by name and its index file."""
    parts = shape(url)
    named = {Difference("parameter", name) for name, _ in parts.pairs} | {
        Difference("path-parameter", name) for name, _ in parts.path_parameters
    }
    return frozenset(named | ({Difference("index", parts.index_file)} if parts.index_file else set()))


def differences_between(url: Url, other: Url) -> frozenset[Difference] | None:
    """The differences between two URLs; None: their host or path differs too, or they are equal."""
    a, b = shape(url), shape(other)
    if a.host != b.host or a.path != b.path:
        return None
    differences = {Difference("parameter", name) for name in _changed_names(a.pairs, b.pairs)}
    differences |= {Difference("path-parameter", name) for name in _changed_names(a.path_parameters, b.path_parameters)}
    if not differences and a.pairs != b.pairs:
        differences.add(ORDER)
    elif differences and a.pairs != b.pairs:
        changed = {difference.name for difference in differences if difference.kind == "parameter"}
        if [pair for pair in a.pairs if pair[0] not in changed] != [pair for pair in b.pairs if pair[0] not in changed]:
            differences.add(ORDER)
    if a.index_file != b.index_file:
        differences.add(Difference("index", a.index_file or b.index_file))
    signs = {SLASH: a.slash != b.slash, WWW: a.www != b.www, SCHEME: a.scheme != b.scheme}
    return frozenset(differences | {sign for sign, differs in signs.items() if differs}) or None


def _changed_names(a: Pairs, b: Pairs) -> set[str]:
    """Names with different values in a and b."""
    if a == b:
        return set()
    names = {name for name, _ in (*a, *b)}
    return {
        name for name in names if [rest for key, rest in a if key == name] != [rest for key, rest in b if key == name]
    }


def without(url: Url, differences: Set[Difference]) -> str:
    """A key of the URL that ignores the given differences; not a URL to fetch."""
    parts = shape(url)
    pairs = [pair for pair in parts.pairs if Difference("parameter", pair[0]) not in differences]
    if ORDER in differences:
        pairs.sort(key=lambda pair: pair[0])
    extras = [extra for extra in parts.path_parameters if Difference("path-parameter", extra[0]) not in differences]
    index = "" if Difference("index", parts.index_file) in differences else parts.index_file
    return "\t".join(
        (
            "" if SCHEME in differences else parts.scheme,
            "" if WWW in differences else "www" if parts.www else "",
            parts.host + parts.path + ("/" if parts.slash and SLASH not in differences else ""),
            ";".join(map("=".join, extras)),
            index,
            "&".join(map("".join, pairs)),
        )
    )


def place(url: Url, differences: Set[Difference]) -> str:
    """The path pattern for which a finding about these differences holds: the whole site for `www.`, scheme, slash and
    index files; the script (with masked numbers) if the URL has other parameters; else its folder, since there each
    page has its own path.
    """
    for difference in differences:
        if difference.kind in _OF_PARAMETERS:
            parameters, script, folder = _places(url)
            return folder if parameters <= differences else script
    return "/**"


_OF_PARAMETERS = frozenset({"parameter", "path-parameter", "order"})


@lru_cache(maxsize=32_768)
def _places(url: Url) -> tuple[frozenset[Difference], str, str]:
    """(parameters of a URL as differences, pattern of its script, pattern of its folder)."""
    parts = shape(url)
    head, _, last = parts.path.rpartition("/")
    folder = "/".join(mask(segment) for segment in head.split("/"))
    masked = mask(last)
    script = f"{folder}/{masked}"
    return (
        frozenset(Difference("parameter", name) for name, _ in parts.pairs),
        script,
        script if masked != last else f"{folder}/*",
    )


def is_well_known(differences: Set[Difference]) -> bool:
    """Whether all differences are session or campaign parameters."""
    return all(
        difference.kind in ("parameter", "path-parameter")
        and (difference.name.lower() in SESSION_NAMES or TRACKING.fullmatch(difference.name) is not None)
        for difference in differences
    )


def words(differences: Set[Difference]) -> str:
    """A text for users: `sid, the order of parameters, a last slash`."""
    named = {"order": "the order of parameters", "www": "www.", "scheme": "http or https", "slash": "a last slash"}
    return ", ".join(
        sorted(
            named.get(difference.kind) or (";" if difference.kind == "path-parameter" else "") + difference.name
            for difference in differences
        )
    )


class AliasPage(NamedTuple):
    """The facts about a fetched page that are needed to compare it with others."""

    url_id: UrlId
    url: Url
    depth: int | None
    body: bytes  # digest
    text: bytes  # digest
    canonical: str  # its rel=canonical target; empty: none
    has_text: bool = True  # without a script; else equal bytes do not mean equal pages


LinksOf = Callable[[Sequence[UrlId]], Iterable[tuple[int, Iterable[int]]]]
"""(page, link targets by id) of the given pages, in any order; a page may occur several times, with a part each."""


class Merger(NamedTuple):
    """A fetched page that is an alias of another page. why: the evidence."""

    alias: AliasPage
    page: AliasPage
    why: str


def find_aliases(pages: Iterable[AliasPage], starts: Set[Url], links_of: LinksOf) -> list[Merger]:
    """Finds aliases among fetched pages; sorted by URL. starts: of the crawl.

    Pages are the same (1) if their bytes are equal and their URLs differ only in scheme, `www.` or index file; (2) if
    they are on the same site, their bytes are equal and their links lead to the same pages (SPEC C6); (3) if one has
    the other as its canonical on the same site, which has equal text and no other canonical. The main page of a group
    is a canonical target, else a start URL, else by a start's scheme and `www.`, https, no index file, smallest depth;
    it does not depend on the order of fetching. O(pages log pages).
    """
    by_url = {page.url: page for page in pages}
    groups: dict[Row, list[Url]] = {}
    for url, page in by_url.items():
        groups.setdefault((without(url, _plain_differences(url)), page.body), []).append(url)
    leader = {url: min(group) for group in groups.values() for url in group}
    for copies in _copies(by_url.values(), links_of):
        for copy in copies[1:]:
            _join(leader, copies[0], copy)
    named: set[Url] = set()
    for url, page in by_url.items():
        target = by_url.get(Url(page.canonical))
        if target is not None and target.url != url and target.text == page.text and _is_valid_canonical(page, target):
            named.add(target.url)
            _join(leader, url, target.url)
    sets: dict[Url, list[Url]] = {}
    for url in by_url:
        sets.setdefault(_leader_of(leader, url), []).append(url)
    doors = {(shape(start).scheme, shape(start).www) for start in starts}
    mergers = []
    for urls in sets.values():
        main = min(urls, key=lambda url: (url not in named, url not in starts, *_oddity(by_url[url], doors)))
        same = by_url[main]
        aliases = (by_url[url] for url in urls if url != main)
        mergers += [Merger(alias, same, f"{_why(alias, same)} {main}") for alias in aliases]
    return sorted(mergers, key=lambda merger: merger.alias.url)


def _why(alias: AliasPage, page: AliasPage) -> str:
    if alias.body != page.body:
        return "names as canonical, with the same text,"
    is_plain = without(alias.url, _plain_differences(alias.url)) == without(page.url, _plain_differences(page.url))
    return "same bytes as" if is_plain else COPY


def _copies(pages: Iterable[AliasPage], links_of: LinksOf) -> list[list[Url]]:
    """Groups of pages of a site with equal bytes whose links lead to the same pages; copies count as the same page.

    Partition refinement: pages with equal bytes and text form the first groups. Groups are split by the groups and
    single URLs that their pages link to, until nothing changes. So all pages of a copied folder match their originals.
    """
    members: dict[object, list[AliasPage]] = {}
    for page in pages:
        if page.has_text:
            members.setdefault((site_key(page.url), page.body, page.text), []).append(page)
    alike = [group for group in members.values() if len(group) > 1]
    links: dict[int, set[int]] = {page.url_id: set() for group in alike for page in group}
    for source, targets in links_of([page.url_id for group in alike for page in group]) if links else ():
        links[source].update(targets)
    while True:
        group_of: dict[int, object] = {page.url_id: (number,) for number, group in enumerate(alike) for page in group}
        members = {}
        for group in alike:
            for page in group:
                leads_to = frozenset(group_of.get(target, target) for target in links[page.url_id])
                members.setdefault((group_of[page.url_id], leads_to), []).append(page)
        finer = [group for group in members.values() if len(group) > 1]
        if sum(map(len, finer)) == len(group_of) and len(finer) == len(alike):
            return [[page.url for page in group] for group in finer]
        alike = finer


def _plain_differences(url: Url) -> frozenset[Difference]:
    return frozenset((SCHEME, WWW, Difference("index", shape(url).index_file)))


def _is_valid_canonical(page: AliasPage, target: AliasPage) -> bool:
    return target.canonical in ("", target.url) and site_key(page.url) == site_key(target.url)


def _join(leader: dict[Url, Url], url: Url, other: Url) -> None:
    first, second = sorted((_leader_of(leader, url), _leader_of(leader, other)))
    leader[second] = first


def _leader_of(leader: dict[Url, Url], url: Url) -> Url:
    while leader[url] != url:
        url = leader[url]
    return url


def _oddity(page: AliasPage, doors: Set[tuple[str, bool]]) -> Row:
    parts = shape(page.url)
    far = page.depth is None
    return (
        (parts.scheme, parts.www) not in doors,
        parts.scheme != "https",
        bool(parts.index_file),
        far,
        page.depth or 0,
        len(page.url),
        page.url,
    )


def urls_with_twin(urls: Iterable[Url]) -> set[Url]:
    """The URLs that share host and path with another one, without regard to differences: only these can be aliases."""
    first: dict[tuple[str, str], Url] = {}
    shared: set[Url] = set()
    for url in urls:
        parts = shape(url)
        before = first.setdefault((parts.host, parts.path), url)
        if before != url:
            shared.update((before, url))
    return shared
