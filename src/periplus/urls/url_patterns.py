"""The patterns to which a URL belongs, judged by its text alone.

A URL pattern stands for URLs that one program on the server very likely answers alike: a path whose numbers and tokens
are masked, with the names (not the values) of its parameters; then its directory, and the directories above. Patterns
are written as users read them: `/calendar?month=*&year=*`, `/shop?**` (that path, any parameters), `/tree/(a/b/)+`,
`/wiki/**`. Session tokens have their own rule here, since a URL that differs only in one names no other page.
Pure: text in, text out; any canonical URL has patterns, nothing raises.
"""

from __future__ import annotations

import re
from functools import lru_cache

from periplus.model.web import Url
from periplus.values import frozen

ROOT = "/**"  # the widest pattern: all of a host
MAX_ANCESTORS = 6  # directories judged per URL: the outermost three and the innermost three; bounds work on 4 KB paths
CYCLE_SEGMENTS = 4  # longest cycle looked for in a path; relative links gone wrong repeat one to three segments

# The names that application servers give by default: PHP, Java, ASP, ColdFusion, Perl and Python
# shops, osCommerce, vBulletin.
SESSION_NAMES = frozenset([
    "phpsessid", "jsessionid", "sessionid", "session_id", "sessid", "sess", "session", "sid", "zenid", "oscsid", "cfid",
    "cftoken", "s_id", "usersession", "xtcsid", "aspsessionid", "asp.net_sessionid", "viewstate", "token_session",
    "sessiontoken",
])  # fmt: skip
# Names of a page's number, for patterns that have no other parameter.
PAGING_NAMES = frozenset([
    "page", "p", "pg", "paged", "pageno", "page_no", "pagenum", "offset", "start", "from", "skip", "seite", "pagina",
    "strana", "strona", "sida", "side", "sivu",
])  # fmt: skip

_NUMBER = re.compile(r"[0-9]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{12,}(?![0-9A-Za-z])")
_TOKEN = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[0-9A-Za-z_.~-]{16,}\Z")  # 16 characters: 64 bits in hexadecimal
_SESSION_TOKEN = re.compile(r"[0-9A-Za-z_.~!-]{6,}\Z")  # behind a session's name: story ids such as sid=421 are shorter
# within a path: `;jsessionid=...`, and ASP.NET's `/(S(lit3py55t21z5v55vlm25s55))/page.aspx`
_PATH_SESSION = re.compile(r";(?i:(jsessionid|phpsessid|sid))=([^;/?]*)|/(\([A-Z]\([0-9a-z]{24}\)\))(?=/)")


@frozen
class Plain:
    """A URL without what may be a session's token.

    names: what was taken out, sorted, joined by "&"; empty when nothing was. values: the tokens.
    """

    url: Url
    names: str
    well_known: bool  # each name is one of SESSION_NAMES; else a parameter whose value merely looks like a token
    values: tuple[str, ...] = ()


def plain(url: Url) -> Plain:
    """The URL without session tokens: a guess, to be confirmed by equal contents before anything is built on it."""
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


def _is_session_name(name: str) -> bool:
    name = name.lower()
    return name in SESSION_NAMES or name.startswith("aspsessionid")


def url_patterns(url: Url) -> tuple[str, ...]:
    """The patterns of a URL, the narrowest first, ROOT last: parameters, path, then the directories upwards.

    A path whose last segment is a plain word is no pattern of its own (it would hold one page): all such
    of its directory are one.
    """
    head, _, query = url.partition("?")
    (directory, directories), leaf = _placed(head)
    masked = mask(leaf)
    names = _names(query)
    if names:
        own: tuple[str, ...] = (f"{directory}{masked}?{names}", f"{directory}{masked}?**")
    else:
        own = (directory + (masked if masked != leaf else "*"),)
    return own + directories


def folder_of(url: Url) -> str:
    """The directory that the URL's patterns lie in, numbers and tokens masked, cycles folded: `/events/(*/)+`."""
    return _placed(url.partition("?")[0])[0][0]


def _placed(head: str) -> tuple[tuple[str, tuple[str, ...]], str]:
    """Of a URL without its query: the directory, masked, with the patterns above; and the last segment."""
    start = head.find("/", head.find("://") + 3)
    if start < 0:
        return ("/", (ROOT,)), ""
    if ";" in head or "/(" in head:
        head = _PATH_SESSION.sub("", head)
    head = head.rstrip("/") if head.endswith("/") and len(head) > start + 1 else head
    cut = max(head.rfind("/"), start) + 1
    return _directories(head[start:cut]), head[cut:]


def _names(query: str) -> str:
    """The names of the parameters as a pattern shows them; `?bare` counts as a name, session names do not."""
    if not query:
        return ""
    names = {mask(pair.partition("=")[0]) for pair in query.split("&") if pair}
    return "&".join(f"{name}=*" for name in sorted(names) if not _is_session_name(name))


def is_paging(pattern: str) -> bool:
    """Whether the pattern is a numbered list: its only parameter is a page's number,
    or that follows a folder of such a name.
    """
    if pattern.endswith("=*"):
        return pattern.partition("?")[2][:-2].lower() in PAGING_NAMES
    return pattern.endswith("/*") and pattern[:-2].rpartition("/")[2].lower() in PAGING_NAMES


def mask(segment: str) -> str:
    """The segment with numbers and tokens as `*`. Percent-encoded text is a word and stays: its digits mean letters."""
    if segment.isalpha() or "%" in segment:
        return segment
    if len(segment) >= 16 and _TOKEN.match(segment) and len(_NUMBER.findall(segment)) > 2 and "." not in segment:
        return "*"
    if len(segment) >= 12:
        segment = _HEX.sub("*", _UUID.sub("*", segment))
    return _NUMBER.sub("*", segment)


@lru_cache(maxsize=4096)
def _directories(path: str) -> tuple[str, tuple[str, ...]]:
    """A directory's path masked and with its cycles folded; and the patterns of it and of those above, ROOT last."""
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
    """Segments with each group that stands twice or more in a row folded: a b a b a -> (a/b/)+ a;
    then a broken last turn.

    The shortest cycle is taken first, from the left; what is left of a last turn is dropped, so that all depths of one
    endless path fold to one text.
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
