"""What do HTTP header fields, and the small languages that HTML shares with them, say about a document?"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from email.utils import parsedate_tz
from functools import lru_cache

from periplus.model.page import LinkKind
from periplus.model.visit import Headers

_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
_REFRESH = re.compile(r"""\s*[\d.]+[\s;,]*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*\S))?""", re.IGNORECASE | re.DOTALL)
# One entry of a Link header (RFC 8288, 3): <target> and its parameters. Linear: no two repetitions can share a character.
_LINK = re.compile(r"""<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";,]*))?)*)""")
_PARAMETER = re.compile(r""";\s*([\w!#$&+.^`|~*-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";,]*)))?""")
_HEADER_CHARS = 65_536  # of one field; more is nobody's

# link relations that say what a target is to its page. All others lead to a document and are RELATED.
_KINDS = {
    "stylesheet": LinkKind.STYLE,
    "canonical": LinkKind.CANONICAL,
    "alternate": LinkKind.ALTERNATE,
    "icon": LinkKind.ICON,
    "apple-touch-icon": LinkKind.ICON,
    "apple-touch-icon-precomposed": LinkKind.ICON,
    "apple-touch-startup-image": LinkKind.ICON,
    "mask-icon": LinkKind.ICON,
    "fluid-icon": LinkKind.ICON,
    "sitemap": LinkKind.SITEMAP,
    "profile": LinkKind.CITE,
    "image_src": LinkKind.IMAGE,
    "modulepreload": LinkKind.SCRIPT,
}
# Served for programs: asking for them as pages brings errors (xmlrpc.php answers 405) or other formats.
_SERVICES = frozenset(
    {"manifest", "search", "pingback", "webmention", "hub", "edituri", "wlwmanifest", "micropub", "import", "service"}
    | {"authorization_endpoint", "token_endpoint", "https://api.w.org/", "describedby", "preload", "prefetch"}
)
_NO_LINKS = frozenset({"preconnect", "dns-prefetch", "nofollow", "noopener", "noreferrer", "ugc", "sponsored", "expect"})
_LOADED_AS = {
    "style": LinkKind.STYLE,
    "script": LinkKind.SCRIPT,
    "image": LinkKind.IMAGE,
    "audio": LinkKind.MEDIA,
    "video": LinkKind.MEDIA,
    "track": LinkKind.MEDIA,
    "document": LinkKind.RELATED,
}


def media_type(headers: Headers) -> tuple[str, str]:
    """The essence of Content-Type in lower case and its charset, both empty when they are missing."""
    value = headers.get("content-type")
    if not value:
        return "", ""
    said = _CHARSET.search(value) if ";" in value else None
    return value.partition(";")[0].strip().lower(), said[1] if said else ""


def refresh_target(value: str) -> str | None:
    """Where `5; url=x` leads; None when it is no refresh or only reloads the page itself.

    Source: HTML Living Standard, 4.2.4.3, shared declarative refresh steps.
    """
    match = _REFRESH.match(value[:_HEADER_CHARS])
    if match is None:
        return None
    return next((part for part in match.groups() if part), None)


@lru_cache(maxsize=1024)
def kinds_of_rel(rel: str, loaded_as: str = "") -> tuple[LinkKind, ...]:
    """The kinds of a link with these relations; none for a mere hint to the browser. loaded_as: its `as` attribute."""
    words = dict.fromkeys(rel.lower().split())
    if "stylesheet" in words:
        return (LinkKind.STYLE,)  # `alternate stylesheet` is a sheet, not an alternate page
    found: dict[LinkKind, None] = {}
    for word in words:
        if word in ("preload", "prefetch") and loaded_as.lower() in _LOADED_AS:
            found[_LOADED_AS[loaded_as.lower()]] = None
        elif word in _SERVICES:
            found[LinkKind.OBJECT] = None
        elif word.startswith("schema."):
            found[LinkKind.CITE] = None
        elif word not in _NO_LINKS and not (word == "shortcut" and "icon" in words):
            found[_KINDS.get(word, LinkKind.RELATED)] = None
    if len(found) > 1:
        found.pop(LinkKind.RELATED, None)
    return tuple(found)


def links(headers: Headers) -> Iterator[tuple[str, LinkKind]]:
    """What the Link and Refresh fields lead to, as written, with the kind."""
    for value in headers.all("link"):
        for target, parameters in _LINK.findall(value[:_HEADER_CHARS]):
            said: dict[str, str] = {}
            for name, quoted, plain in _PARAMETER.findall(parameters):
                said.setdefault(name.lower(), quoted or plain)
            if "anchor" not in said:  # else it is a link from elsewhere
                for kind in kinds_of_rel(said.get("rel", ""), said.get("as", "")):
                    yield target, kind
    for value in headers.all("refresh"):
        if target := refresh_target(value):
            yield target, LinkKind.REFRESH


@lru_cache(maxsize=1024)
def date_s(value: str) -> float:
    """An HTTP date in seconds since the epoch, UTC; 0.0 for what is none, such as `Expires: 0`."""
    try:
        parts = parsedate_tz(value[:100])
        return float(max(calendar.timegm((*parts[:6], 0, 0, 0)) - (parts[9] or 0), 0)) if parts else 0.0
    except (ValueError, IndexError, TypeError, OverflowError):  # all of them seen from the standard library
        return 0.0
