"""Parses rules for robots: robots.txt, X-Robots-Tag, meta elements.

Source: RFC 9309 (Robots Exclusion Protocol, 2022); where it is silent, the behaviour of the large crawlers, in tests
named `test_ours_...`. Everything here is total: any bytes and any text give a result.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeAlias

from periplus.settings import PRODUCT_TOKEN
from periplus.values import frozen

PARSED_BYTES = 512_000  # RFC 9309, 2.5: at least 500 KiB are parsed; what follows is ignored
SHOWN_CHARACTERS = 300  # of a line, in reports
DAY_S = 86_400.0  # RFC 9309, 2.4: no copy is used for longer
SHORTEST_LIFE_S = 300.0  # minimum lifetime if Cache-Control asks for less: one request in 600 at our shortest delay
ERROR_LIFE_S = 3_600.0  # until a server without an answer is asked again; StormCrawler's choice

# Misspellings accepted by google/robotstxt, and similar ones for fields that it lacks
_FIELDS = {
    **dict.fromkeys((b"user-agent", b"useragent", b"user agent"), "agent"),
    **dict.fromkeys((b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"), "disallow"),
    b"allow": "allow",
    **dict.fromkeys((b"crawl-delay", b"crawldelay", b"crawl delay"), "delay"),
    **dict.fromkeys((b"sitemap", b"sitemaps", b"site-map"), "sitemap"),
}
_TOKEN = re.compile(rb"\*(?=\s|\Z)|[A-Za-z0-9_-]+")  # includes digits, unlike the RFC, so that `bot2` is not `bot`
# UTF-16 and UTF-32, by byte order mark or zero bytes
_WIDE = re.compile(rb"\xff\xfe|\xfe\xff|[^\0]\0(?:\0\0|[^\0]\0)|\0(?:\0\0[^\0]|[^\0]\0[^\0])")
_PART_OF_BOM = re.compile(rb"\xef(?:\xbb)?(?![\x80-\xbf])")  # not followed by a continuation byte
_SECONDS = re.compile(rb"\d{1,9}(?:\.\d*)?|\.\d+")
_SAFE = re.compile(r"[A-Za-z0-9._~!&'()+,;=:@/?\[\]-]*")  # already in the form in which rules are compared
_TO_CHANGE = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~!&'()+,;=:@/?\[\]%-]")
_UNRESERVED_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Directives with a colon
_VALUE_DIRECTIVES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_NAME = re.compile(r"[\w-]+")


@frozen
class RobotsVerdict:
    """Whether a path may be fetched, and the line that decided; no line: nothing disallows it."""

    allowed: bool
    rule: str = ""  # the line as written, without its comment
    line: int = 0  # from 1


FREE = RobotsVerdict(True)
RuleMatch: TypeAlias = tuple[int, RobotsVerdict]
"""(rank of a rule, its verdict)."""


@frozen
class RobotsRule:
    """One Allow or Disallow line. parts: the pattern split at `*`, in the form in which paths are compared."""

    verdict: RobotsVerdict
    parts: tuple[str, ...]
    anchored: bool  # the pattern ends with `$`

    @property
    def rank(self) -> int:
        """Precedence: by octets of the pattern, then Allow before Disallow (2.2.2)."""
        octets = sum(map(len, self.parts)) + len(self.parts) - 1 + self.anchored
        return 2 * octets + self.verdict.allowed


@frozen
class Group:
    """The rules after one or several user-agent lines."""

    agents: tuple[str, ...]  # product tokens, lower case; "*" for all others
    rules: tuple[RobotsRule, ...]
    crawl_delay: float | None  # s


@frozen
class Wildcard:
    """A rule that a prefix test does not decide."""

    verdict: RobotsVerdict
    inner: tuple[str, ...]  # parts after the first `*` and before the last
    last: str
    anchored: bool

    def matches(self, path: str, start: int) -> bool:
        """path: known to begin with the first part, which ends at start.

        The leftmost match of each part is as good as any, so there is no backtracking: linear in path and pattern, even
        for hostile patterns.
        """
        for part in self.inner:
            start = path.find(part, start)
            if start < 0:
                return False
            start += len(part)
        if self.anchored:
            return len(path) - len(self.last) >= start and path.endswith(self.last)
        return path.find(self.last, start) >= 0


@frozen
class RobotsGroup:
    """The rules for one crawler on one origin. Created by `Robots.group_for`.

    Rules are found by the text before their first `*`: these prefixes are sorted; the prefixes of a path form a chain,
    starting at the last one that sorts before the path, because all texts between two texts with a common start have
    that start. The last one alone is not enough: with `/a` and `/ab`, `/ac` sorts after `/ab` but begins with `/a`.
    """

    crawl_delay: float | None
    prefixes: tuple[str, ...]  # ascending
    parents: tuple[int, ...]  # the longest other prefix of this prefix; -1: none
    # the best rule without `*` and `$` for each prefix or its parents, with its rank
    plain: tuple[RuleMatch, ...]
    wild: tuple[tuple[tuple[int, str, Wildcard], ...], ...]  # by prefix: (rank, a part that must occur, rule)
    wild_parents: tuple[int, ...]  # as parents, but only prefixes with wildcards
    whole: dict[str, RuleMatch]  # rules that end with `$` and have no `*`

    def decide(self, path_and_query: str) -> RobotsVerdict:
        """Whether a path may be fetched.

        Path and query as in the URL; `/robots.txt` is always allowed (2.2.2). 0.3 us with 2 rules, 0.9 to 1.7 with 90
        of which 15 have wildcards; 27 ms with 28,000 hostile ones, the most that fit.
        """
        if _SAFE.fullmatch(path_and_query):
            return FREE if path_and_query == "/robots.txt" else self._best(path_and_query)[1]
        path = _comparable(path_and_query)
        bare = _with_bare_query(path)
        best = self._best(path)
        return best[1] if bare == path else max(best, self._best(bare), key=lambda match: match[0])[1]

    def _best(self, path: str) -> RuleMatch:
        best = self.whole.get(path, (0, FREE))
        place = bisect_right(self.prefixes, path) - 1
        while place >= 0 and not path.startswith(self.prefixes[place]):
            place = self.parents[place]
        if place < 0:
            return best
        if self.plain[place][0] > best[0]:
            best = self.plain[place]
        if not self.wild[place]:
            place = self.wild_parents[place]
        while place >= 0:
            start = len(self.prefixes[place])
            for rank, needle, rule in self.wild[place]:
                if rank <= best[0]:
                    break  # sorted by descending rank
                if needle in path and rule.matches(path, start):
                    best = rank, rule.verdict
                    break
            place = self.wild_parents[place]
        return best


@frozen
class Robots:
    """A parsed robots.txt."""

    groups: tuple[Group, ...]
    sitemaps: tuple[str, ...]  # as written, distinct

    def group_for(self, token: str = PRODUCT_TOKEN) -> RobotsGroup:
        """The rules for a product token (`periplus` or `Periplus/1.0`): all groups that name it; if there are none, all
        that name `*`; otherwise no rules (2.2.1).
        """
        match = _TOKEN.match(token.encode("utf-8", "replace"))
        name = match.group().lower().decode() if match else "*"
        groups = [group for group in self.groups if name in group.agents] or [
            group for group in self.groups if "*" in group.agents
        ]
        delays = [group.crawl_delay for group in groups if group.crawl_delay is not None]
        return _build_index((rule for group in groups for rule in group.rules), max(delays, default=None))


def parse_robots(body: bytes) -> Robots:
    """Parses a robots.txt. Total; unknown lines are ignored.

    A Crawl-delay applies to the agents named since the previous one, as a group of its own: it does not end the list of
    agents, so the following rules apply to all of them, and it does not apply to agents named later.
    """
    if why := _unreadable(body):
        return _disallow_all(f"the file {why}: what it forbids cannot be read", 1)
    groups: list[Group] = []
    sitemaps: dict[str, None] = {}
    agents: list[str] = []
    unpaced: list[str] = []  # agents named since the last Crawl-delay
    paced: list[str] = []  # agents to which it applies
    rules: list[RobotsRule] = []

    def close_group() -> None:
        groups.append(Group(tuple(dict.fromkeys(agents)), tuple(rules), None))
        for part in (agents, unpaced, paced, rules):
            part.clear()

    for number, line in enumerate(_parsed_part(body).splitlines(), 1):
        written = line.partition(b"#")[0].strip()
        match _field(written):
            case ("agent", value):
                if rules:  # only Allow and Disallow end the list of agents: other records must not interfere (2.2.4)
                    close_group()
                token = _TOKEN.match(value)
                agents.append(token.group().lower().decode() if token else "")
                unpaced.append(agents[-1])
            case (("allow" | "disallow") as kind, value) if agents:
                shown = written.decode("utf-8", "replace")[:SHOWN_CHARACTERS]
                rules.append(_rule(RobotsVerdict(kind == "allow", shown, number), value))
            case ("delay", value) if agents and _SECONDS.fullmatch(value):
                if unpaced:
                    paced[:], unpaced[:] = unpaced, []
                groups.append(Group(tuple(dict.fromkeys(paced)), (), float(value)))
            case ("sitemap", value) if value:
                sitemaps[value.decode("utf-8", "replace")] = None
    if agents:
        close_group()
    return Robots(tuple(groups), tuple(sitemaps))


def _unreadable(body: bytes) -> str:
    """Why a file is certainly not UTF-8 (RFC 9309, 2.3), as text for users; '' if it may be.

    Such a file has rules, and ignoring them would allow everything.
    """
    if _WIDE.match(body):
        return "is in UTF-16 or UTF-32, not in UTF-8"
    if _PART_OF_BOM.match(body):
        return "begins with a part of a byte order mark"
    return ""


def _disallow_all(why: str, line: int) -> Robots:
    """A file that disallows everything for all agents; line 0: there is no such line."""
    return Robots((Group(("*",), (RobotsRule(RobotsVerdict(False, why, line), ("/",), False),), None),), ())


def _parsed_part(body: bytes) -> bytes:
    """At most PARSED_BYTES, cut at a line end, since half a line would be another rule. Without byte order mark."""
    if len(body) > PARSED_BYTES:
        end = max(body.rfind(b"\n", 0, PARSED_BYTES), body.rfind(b"\r", 0, PARSED_BYTES))
        body = body[: end + 1]
    return body.removeprefix(b"\xef\xbb\xbf")


def _field(written: bytes) -> tuple[str, bytes]:
    """(kind of the line, value); kind is '' if unknown. `Disallow /x` without a colon is accepted."""
    name, colon, value = written.partition(b":")
    if not colon:
        words = written.split()
        name, value = words if len(words) == 2 else (b"", b"")
    return _FIELDS.get(b" ".join(name.lower().split()), ""), value.strip()


def _rule(verdict: RobotsVerdict, value: bytes) -> RobotsRule:
    """Parses a pattern. An empty value matches nothing: it has no parts, but still ends the list of agents."""
    if not value:
        return RobotsRule(verdict, (), False)
    pattern = value.decode("latin-1")  # octets as characters
    anchored = pattern.endswith("$")
    if not pattern.startswith(("/", "*")):
        pattern = "/" + pattern  # accepted: `Disallow: private/` is unambiguous
    parts = "*".join(_percent_encode(part) for part in pattern.removesuffix("$").split("*"))
    first, *rest = _with_bare_query(parts).split("*")
    inner, last = [part for part in rest[:-1] if part], rest[-1:]
    return RobotsRule(verdict, (first, *inner, *last), anchored)


def _comparable(path: str) -> str:
    """A path in the form in which rules are compared (2.2.2)."""
    return _percent_encode(path.encode("utf-8", "surrogatepass").decode("latin-1"))


def _percent_encode(octets: str) -> str:
    """Percent-encodes everything except unreserved and reserved characters, including `*` and `$`, which are literal
    here (2.2.3). Unreserved characters are decoded, escapes are in upper case.
    """
    return _TO_CHANGE.sub(_normalise_escape, octets)


def _normalise_escape(match: re.Match[str]) -> str:
    text = match.group()
    if len(text) == 1:
        return f"%{ord(text):02X}"
    character = chr(int(text[1:], 16))
    return character if character in _UNRESERVED_CHARACTERS else text.upper()


def _with_bare_query(text: str) -> str:
    """Decodes `:` and `/` in the query: the RFC's table treats `?baz=https://foo.bar` and `?baz=https%3A%2F%2Ffoo.bar`
    as equal.

    Paths are tried in both forms, because a pattern such as `/*%2F` may mean either.
    """
    head, mark, query = text.partition("?")
    return head + mark + query.replace("%3A", ":").replace("%2F", "/")


def _build_index(rules: Iterable[RobotsRule], crawl_delay: float | None) -> RobotsGroup:
    """Builds the index of the rules."""
    plain: dict[str, RuleMatch] = {}
    whole: dict[str, RuleMatch] = {}
    wild: dict[str, list[tuple[int, str, Wildcard]]] = {}
    for rule in rules:
        if not rule.parts:
            continue
        first, *rest = rule.parts
        if rest:
            matcher = Wildcard(rule.verdict, tuple(rest[:-1]), rest[-1], rule.anchored)
            wild.setdefault(first, []).append((rule.rank, max(rest, key=len), matcher))
        else:
            exact = whole if rule.anchored else plain
            if rule.rank > exact.get(first, (0, FREE))[0]:
                exact[first] = rule.rank, rule.verdict
    prefixes = tuple(sorted({*plain, *wild}))
    parents: list[int] = []
    best_plain: list[RuleMatch] = []
    wild_parents: list[int] = []
    chain: list[int] = []  # the prefixes of the current one
    for place, prefix in enumerate(prefixes):
        while chain and not prefix.startswith(prefixes[chain[-1]]):
            chain.pop()
        parent = chain[-1] if chain else -1
        parents.append(parent)
        best_plain.append(plain.get(prefix) or (best_plain[parent] if chain else (0, FREE)))
        wild_parents.append(-1 if not chain else parent if prefixes[parent] in wild else wild_parents[parent])
        chain.append(place)
    by_rank = tuple(tuple(sorted(wild.get(prefix, ()), key=lambda entry: -entry[0])) for prefix in prefixes)
    return RobotsGroup(crawl_delay, prefixes, tuple(parents), tuple(best_plain), by_rank, tuple(wild_parents), whole)


class Access(StrEnum):
    """What the response for robots.txt allows (RFC 9309, 2.3.1)."""

    RULES = "rules"
    ALL = "all"  # no robots.txt: everything may be fetched
    NONE = "none"  # the rules are unknown: nothing may be fetched


@frozen
class RobotsAnswer:
    """The result of a request for robots.txt, in a form that can be stored.

    Created by `robots_from_answer`, from the response or from stored data.
    """

    status: int  # of the last hop; 0: no response
    cause: str  # a Cause if there was no usable response, else empty
    body: bytes  # of a 2xx response, as far as it is parsed

    @property
    def access(self) -> Access:
        if self.cause or not 200 <= self.status < 500 or self.status == 429:
            return Access.NONE
        return Access.RULES if self.status < 300 else Access.ALL

    def robots(self) -> Robots:
        """The parsed file; for ALL and NONE one with the same effect, with the reason in line 0."""
        if self.access is Access.NONE:
            return _disallow_all(f"robots.txt is unreachable: {self.cause or f'status {self.status}'}", 0)
        return parse_robots(self.body)

    def life_s(self, cache_control: str = "") -> float:
        """How long the result may be used: at most a day (2.4); a shorter max-age applies down to SHORTEST_LIFE_S."""
        if self.access is Access.NONE:
            return ERROR_LIFE_S
        control = cache_control.lower()
        age = re.search(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,12})", control)
        asked = float(age.group(1)) if age else 0.0 if "no-cache" in control or "no-store" in control else DAY_S
        return min(max(asked, SHORTEST_LIFE_S), DAY_S)


def robots_from_answer(status: int, cause: str = "", body: bytes = b"") -> RobotsAnswer:
    """Interprets a final response.

    status: after following at least five redirects, across hosts; a remaining 3xx (too many hops, no usable Location)
    counts as no file, as 2.3.1.2 permits. 4xx: no file (2.3.1.3), except 429: nothing may be fetched. 5xx, unknown
    codes and network errors: complete disallow (2.3.1.4).
    """
    part = _parsed_part(body) if 200 <= status < 300 and not cause else b""
    return RobotsAnswer(status, str(cause), part)


def page_directives(header_values: Sequence[str], meta_contents: Sequence[tuple[str, str]]) -> tuple[bool, bool]:
    """(noindex, nofollow) of a page: combines X-Robots-Tag values and meta elements (name, content) for all robots or
    for us; the stricter applies.

    Source: Google's and Bing's documentation of robots meta tags; no standard covers them.
    """
    ours = {"robots", "*", PRODUCT_TOKEN.lower()}
    words: set[str] = set()
    for value in header_values:
        words |= _words_of_header(value.lower(), ours)
    for name, content in meta_contents:
        if name.strip().lower() in ours:
            words.update(re.split(r"[\s,;]+", content.lower()))
    return not words.isdisjoint({"noindex", "none"}), not words.isdisjoint({"nofollow", "none"})


def _words_of_header(value: str, ours: set[str]) -> set[str]:
    """Parses `noindex, otherbot: nofollow`: an agent's name applies to the following directives.

    The time in a date is not an agent.
    """
    words: set[str] = set()
    for_us = True
    for part in value.split(","):
        name, colon, rest = (piece.strip() for piece in part.partition(":"))
        if colon and name not in _VALUE_DIRECTIVES and _NAME.fullmatch(name.replace("*", "_")):
            for_us = name in ours
            name = rest.partition(":")[0].strip()
        if for_us:
            words.update(name.split())
    return words
