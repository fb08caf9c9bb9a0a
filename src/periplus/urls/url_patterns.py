"""The patterns of a URL, by its text only.

A URL pattern is a set of URLs that are probably handled by the same program on the server: a path with numbers and
tokens masked and with the names (not the values) of its parameters; then its directory and the directories above.
Patterns are shown to users in this form: `/calendar?month=*&year=*`, `/shop?**` (that path with any parameters),
`/tree/(a/b/)+`, `/wiki/**`. Session tokens are handled here too, since URLs that differ only in one are the same page.
No I/O; every canonical URL has patterns, and no function raises.
"""

from __future__ import annotations

import re
from functools import lru_cache

from periplus.model.web import Url
from periplus.values import frozen

ROOT = "/**"  # the widest pattern: the whole host
MAX_ANCESTORS = 6  # directories per URL: the outermost three and the innermost three; a bound for paths of 4 KB
CYCLE_SEGMENTS = 4  # longest cycle detected in a path; wrong relative links repeat one to three segments

# Default names in application servers: PHP, Java, ASP, ColdFusion, Perl and Python shops, osCommerce, vBulletin.
SESSION_NAMES = frozenset([
    "phpsessid", "jsessionid", "sessionid", "session_id", "sessid", "sess", "session", "sid", "zenid", "oscsid", "cfid",
    "cftoken", "s_id", "usersession", "xtcsid", "aspsessionid", "asp.net_sessionid", "viewstate", "token_session",
    "sessiontoken",
])  # fmt: skip
# Names of page numbers, for patterns without other parameters.
PAGING_NAMES = frozenset([
    "page", "p", "pg", "paged", "pageno", "page_no", "pagenum", "offset", "start", "from", "skip", "seite", "pagina",
    "strana", "strona", "sida", "side", "sivu",
])  # fmt: skip

_NUMBER = re.compile(r"[0-9]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{12,}(?![0-9A-Za-z])")
_TOKEN = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[0-9A-Za-z_.~-]{16,}\Z")  # 16 characters: 64 bits in hexadecimal
_SESSION_TOKEN = re.compile(r"[0-9A-Za-z_.~!-]{6,}\Z")  # value of a session name: story ids such as sid=421 are shorter
# in paths: `;jsessionid=...`, and ASP.NET's `/(S(lit3py55t21z5v55vlm25s55))/page.aspx`
_PATH_SESSION = re.compile(r";(?i:(jsessionid|phpsessid|sid))=([^;/?]*)|/(\([A-Z]\([0-9a-z]{24}\)\))(?=/)")


@frozen
class Plain:
    """A URL without possible session tokens.

    names: the removed parameters, sorted and joined by "&"; empty if none was removed. values: the tokens.
    """

    url: Url
    names: str
    well_known: bool  # all names are in SESSION_NAMES; else some value only looks like a token
    values: tuple[str, ...] = ()


def plain(url: Url) -> Plain:
    """The URL without session tokens. This is a guess: callers must confirm it by equal content."""
    head, mark, query = url.partition("?")
    names, values, pairs, well_known = set[str](), list[str](), list[str](), True
    if ";" in head or "/(" in head:
        for name, value, cookieless in _PATH_SESSION.findall(head):
            names.add(name.lower() or "cookieless")
            values.append(value or cookieless)
        head = _PATH_SESSION.sub("", head)
    for pair in query.split("&") if mark else ():
        name, _, value = pair.partition("=")
        is_named = _is_session_name(name) and _SESSION_TOKEN.match(value) is not None
        if is_named or (len(value) >= 16 and _TOKEN.match(value)):
            names.add(name.lower())
            values.append(value)
            well_known = well_known and is_named
        else:
            pairs.append(pair)
    if not names:
        return Plain(url, "", False)
    return Plain(
        Url(head + ("?" + "&".join(pairs) if pairs else "")), "&".join(sorted(names)), well_known, tuple(values)
    )


@lru_cache(maxsize=16_384)
def session_values(url: Url) -> tuple[str, ...]:
    """The possible session tokens in a URL."""
    return plain(url).values if "?" in url or ";" in url or "/(" in url else ()


def _is_session_name(name: str) -> bool:
    name = name.lower()
    return name in SESSION_NAMES or name.startswith("aspsessionid")


@lru_cache(maxsize=1024)  # asked three times for a page
def url_patterns(url: Url) -> tuple[str, ...]:
    """The patterns of a URL, narrowest first, ROOT last: parameters, path, then the directories upwards.

    If the last segment of a path is a plain word, the path has no pattern (it would have a single page): all plain
    words of a directory share the pattern `*`.
    """
    head, _, query = url.partition("?")
    (directory, directories), leaf = _split_path(head)
    masked = mask(leaf)
    names = _names(query)
    if names:
        own: tuple[str, ...] = (f"{directory}{masked}?{names}", f"{directory}{masked}?**")
    else:
        own = (directory + (masked if masked != leaf else "*"),)
    return own + directories


def _split_path(head: str) -> tuple[tuple[str, tuple[str, ...]], str]:
    """((masked directory, patterns of the directories upwards), last segment) of a URL without its query."""
    start = head.find("/", head.find("://") + 3)
    if start < 0:
        return ("/", (ROOT,)), ""
    if ";" in head or "/(" in head:
        head = _PATH_SESSION.sub("", head)
    head = head.rstrip("/") if head.endswith("/") and len(head) > start + 1 else head
    cut = max(head.rfind("/"), start) + 1
    return _directories(head[start:cut]), head[cut:]


def _names(query: str) -> str:
    """The parameter names in the form of patterns, without session names; `?bare` counts as a name."""
    if not query:
        return ""
    names = {mask(pair.partition("=")[0]) for pair in query.split("&") if pair}
    return "&".join(f"{name}=*" for name in sorted(names) if not _is_session_name(name))


def is_paging(pattern: str) -> bool:
    """Whether the pattern is of a paged list: its only parameter is a page number, or the number follows a folder with
    such a name.
    """
    if pattern.endswith("=*"):
        return pattern.partition("?")[2][:-2].lower() in PAGING_NAMES
    return pattern.endswith("/*") and pattern[:-2].rpartition("/")[2].lower() in PAGING_NAMES


def mask(segment: str) -> str:
    """The segment with numbers and tokens as `*`. Percent-encoded words are unchanged: their digits encode letters."""
    if segment.isalpha() or "%" in segment:
        return segment
    if len(segment) >= 16 and _TOKEN.match(segment) and len(_NUMBER.findall(segment)) > 2 and "." not in segment:
        return "*"
    if len(segment) >= 12:
        segment = _HEX.sub("*", _UUID.sub("*", segment))
    return _NUMBER.sub("*", segment)


@lru_cache(maxsize=4096)
def _directories(path: str) -> tuple[str, tuple[str, ...]]:
    """(path of a directory, masked and with cycles folded; its pattern and those of the directories above)."""
    segments = fold_cycles([mask(segment) for segment in path.split("/")[1:-1]])
    prefixes = ["/"]
    for segment in segments:
        prefixes.append(f"{prefixes[-1]}{segment}" if segment.endswith(")+") else f"{prefixes[-1]}{segment}/")
    above = [f"{prefix}**" for prefix in reversed(prefixes)]
    if len(above) > MAX_ANCESTORS + 1:
        half = MAX_ANCESTORS // 2
        above = above[:half] + above[-half - 1 :]
    return prefixes[-1], tuple(above)


def fold_cycles(segments: list[str]) -> list[str]:
    """Folds groups of segments that repeat: a b a b -> (a/b/)+.

    The shortest cycle is folded first, from the left. An incomplete repetition at the end is dropped, so that all
    depths of an endless path fold to the same text.
    """
    folded: list[str] = []
    at = 0
    while at < len(segments):
        for size in range(1, CYCLE_SEGMENTS + 1):
            group = segments[at : at + size]
            end = at + size
            while segments[end : end + size] == group:
                end += size
            if end > at + size:
                break
        else:
            folded.append(segments[at])
            at += 1
            continue
        folded.append("(" + "/".join(group) + "/)+")
        rest = segments[end : end + size]
        at = len(segments) if rest == group[: len(rest)] and end + size > len(segments) else end
    return folded
