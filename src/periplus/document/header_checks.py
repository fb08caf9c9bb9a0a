"""Checks of a page's HTTP header: security, compression, caching."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from periplus.document.robots import parse_robots
from periplus.document.static_checks import StaticNote
from periplus.model.visit import Headers
from periplus.values import Pairs

HSTS_S = 15_552_000  # 180 days: Lighthouse and the Mozilla Observatory call less short
LEAST_COMPRESSION_BYTES = 1_400  # bytes of a text: less fits into one packet anyway; also Lighthouse's threshold
PART_LIFE_S = 604_800  # a week, for images, styles, scripts and fonts, which rarely change
_TEXT_TYPES = re.compile(r"text/|application/(?:[\w.+-]*xml|[\w.+-]*json|javascript)|image/svg\+xml")
_PARTS = re.compile(r"image/|font/|text/css|(?:text|application)/(?:x-)?javascript|application/(?:x-)?font")
_LEAKING = frozenset({"unsafe-url", "no-referrer-when-downgrade"})
_VERSION = re.compile(r"[A-Za-z][\w.+-]*/\d[\w.]*")
_MAX_AGE = re.compile(r"(?:^|[\s,;])max-age\s*=\s*\"?(\d{1,12})", re.IGNORECASE)
_LOOPBACK = re.compile(r"http://(?:localhost|127\.[\d.]+|\[::1\])[:/]")  # as good as encrypted: Secure Contexts, 3.1
_POLICY = "content-security-policy"
_SAFETY = (
    _POLICY, "strict-transport-security", "x-frame-options", "x-content-type-options", "referrer-policy",
    "permissions-policy", "server", "x-powered-by",
)  # fmt: skip

HEADER_CODES = frozenset({
    "cookie-insecure", "cookie-open", "csp-missing", "csp-weak", "framing-allowed", "hsts-missing", "not-cacheable",
    "not-compressed", "page-insecure", "part-short-cache", "permissions-missing", "referrer-leak", "sniffing-allowed",
    "version-shown",
})  # fmt: skip
"""Codes of the notes made here, which have no position in the page's source."""
_VALIDATORS = ("etag", "last-modified", "cache-control", "expires")
NOTED_FIELDS = frozenset((*_SAFETY, *_VALIDATORS, "set-cookie", "content-encoding"))
NO_COMPRESSION = "not-compressed"
"""The note whose number is the size of the page; all other notes are equal for pages with equal headers."""


def page_header_notes(
    url: str, fields: Iterable[tuple[str, str]], media_type: str, size_bytes: int
) -> tuple[StaticNote, ...]:
    """Notes on an HTML page's header. fields: those of NOTED_FIELDS. size_bytes: of the decompressed body. Total."""
    # Of validators only the presence matters; this makes the headers of a site's pages equal, and cacheable
    alike = tuple([(name, "yes" if value and name in _VALIDATORS else value) for name, value in fields])
    is_long = size_bytes >= LEAST_COMPRESSION_BYTES and _TEXT_TYPES.match(media_type) is not None
    return _of_header(url.startswith("https:"), _LOOPBACK.match(url) is not None, is_long, alike)


@lru_cache(maxsize=1_024)  # a site's pages have equal headers
def _of_header(is_secure: bool, is_loopback: bool, is_long: bool, fields: Pairs) -> tuple[StaticNote, ...]:
    """is_long: the text is worth compressing."""
    headers = Headers(fields)
    notes = list(_of_safety(is_secure, tuple(", ".join(headers.all(name)) for name in _SAFETY)))
    if is_loopback:
        notes = [note for note in notes if note.code != "page-insecure"]
    notes += _of_cookies(headers.all("set-cookie"), is_secure=is_secure)
    if is_long and headers.get("content-encoding").strip().lower() in ("", "identity"):
        notes.append(StaticNote("not-compressed"))
    if not any(headers.get(name) for name in _VALIDATORS):
        notes.append(StaticNote("not-cacheable"))
    return tuple(notes)


def part_header_notes(headers: Headers) -> list[StaticNote]:
    """Notes on the header of an image, style, script or font. Total."""
    media_type = headers.get("content-type").partition(";")[0].strip().lower()
    control = headers.get("cache-control").lower()
    if not _PARTS.match(media_type) or "immutable" in control:
        return []
    life = _MAX_AGE.search(control)
    if life is None and headers.get("expires") and "no-" not in control:
        return []  # a date, which means a duration only relative to the server's clock
    seconds = 0 if life is None or "no-store" in control or "no-cache" in control else int(life[1])
    return [] if seconds >= PART_LIFE_S else [StaticNote("part-short-cache", seconds)]


def _of_safety(is_secure: bool, values: tuple[str, ...]) -> tuple[StaticNote, ...]:
    """values: in the order of _SAFETY."""
    policy, transport, framing, sniffing, referrer, permissions, server, engine = values
    notes = []
    if not policy:
        notes.append(StaticNote("csp-missing", words="Content-Security-Policy"))
    elif weakness := _weakness(policy):
        notes.append(StaticNote("csp-weak", words=weakness))
    if is_secure:
        life = _MAX_AGE.search(transport)
        if (int(life[1]) if life else 0) < HSTS_S:
            words = f"max-age {int(life[1]):,} s" if life else "Strict-Transport-Security"
            notes.append(StaticNote("hsts-missing", words=words))
    else:
        notes.append(StaticNote("page-insecure"))
    if not framing and "frame-ancestors" not in policy.lower():
        notes.append(StaticNote("framing-allowed", words="frame-ancestors"))
    if sniffing.strip().lower() != "nosniff":
        notes.append(StaticNote("sniffing-allowed", words="X-Content-Type-Options"))
    if _LEAKING & {token.strip() for token in referrer.lower().split(",")[-1:]}:
        notes.append(StaticNote("referrer-leak", words=referrer[:60]))
    if not permissions:
        notes.append(StaticNote("permissions-missing", words="Permissions-Policy"))
    named = [match for text in (server, engine) for match in _VERSION.findall(text)]
    if named:
        notes.append(StaticNote("version-shown", words=", ".join(named)[:100]))
    return tuple(notes)


def _weakness(policy: str) -> str:
    """The directive that allows any script; '' if there is none.

    With nonces or hashes browsers ignore 'unsafe-inline' (CSP 3, 6.7.3).

    A header may have several policies, separated by commas, which all apply: one strict policy is enough.
    """
    weaknesses = []
    for directive in policy.lower().split(","):
        directives = {
            name: rest.split() for name, _, rest in (part.strip().partition(" ") for part in directive.split(";"))
        }
        sources = directives.get("script-src", directives.get("default-src"))
        if sources is None:
            weaknesses.append("script-src")
        elif "'unsafe-inline'" in sources and not any(
            source.startswith(("'nonce-", "'sha256-", "'sha384-", "'sha512-")) for source in sources
        ):
            weaknesses.append("script-src 'unsafe-inline'")
        elif "*" in sources and "'strict-dynamic'" not in sources:
            weaknesses.append("script-src *")
        else:
            return ""
    return weaknesses[0]


def _of_cookies(fields: list[str], *, is_secure: bool) -> Iterator[StaticNote]:
    """Cookies without protective attributes. Source: RFC 6265bis, 4.1.2 and 8."""
    open_, shared = [], []
    for field in fields:
        name, *attributes = field.split(";")
        named = {attribute.partition("=")[0].strip().lower() for attribute in attributes}
        cookie = name.partition("=")[0].strip()[:60]
        if is_secure and "secure" not in named:
            open_.append(cookie)
        if "samesite" not in named or "httponly" not in named:
            shared.append(cookie)
    if open_:
        yield StaticNote("cookie-insecure", len(open_), ", ".join(dict.fromkeys(open_))[:200])
    if shared:
        yield StaticNote("cookie-open", len(shared), ", ".join(dict.fromkeys(shared))[:200])


# Crawlers that collect texts for language models, by the robots.txt tokens that their operators document: OpenAI,
# Anthropic, Google, Apple, Meta, Common Crawl, Perplexity, Amazon, ByteDance, Cohere, Mistral, as of 2026-06. Agents
# that fetch on behalf of a user (ChatGPT-User) are not included.
MODEL_CRAWLERS = (
    "GPTBot", "OAI-SearchBot", "ClaudeBot", "Claude-SearchBot", "Google-Extended", "Applebot-Extended",
    "Meta-ExternalAgent", "CCBot", "PerplexityBot", "Amazonbot", "Bytespider", "cohere-training-data-crawler",
)  # fmt: skip


def undecided_crawlers(robots: bytes) -> list[str]:
    """The MODEL_CRAWLERS that a robots.txt allows without naming them, perhaps by oversight."""
    rules = parse_robots(robots)
    named = {agent for group in rules.groups for agent in group.agents}
    return [name for name in MODEL_CRAWLERS if name.lower() not in named and rules.group_for(name).decide("/").allowed]
