"""HTTP header fields, the microsyntaxes that HTML shares with them, and media types."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from functools import lru_cache

from periplus.model.page import LinkKind
from periplus.model.visit import Headers

_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
_REFRESH = re.compile(r"""\s*[\d.]+[\s;,]*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*\S))?""", re.IGNORECASE | re.DOTALL)
# One entry of a Link header (RFC 8288, 3): <target> and its parameters. Linear: adjacent repetitions have no character
# in common
_LINK = re.compile(r"""<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";,]*))?)*)""")
_PARAMETER = re.compile(r""";\s*([\w!#$&+.^`|~*-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";,]*)))?""")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# RFC 9110, 5.6.7: the form that servers send; other forms are left to `email.utils`
_FIXED_DATE = re.compile(
    rf"[A-Z][a-z]{{2}}, ([0-9]{{2}}) ({'|'.join(_MONTHS)}) ([12][0-9]{{3}}) ([0-9]{{2}}):([0-9]{{2}}):([0-9]{{2}}) GMT"
)
_HEADER_CHARS = 65_536  # per field; longer ones are not legitimate

# Link relations that describe the target. All others link to a document and are RELATED
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
# Services for programs: fetched as pages they give errors (xmlrpc.php answers 405) or other formats
_SERVICES = frozenset(
    {"manifest", "search", "pingback", "webmention", "hub", "edituri", "wlwmanifest", "micropub", "import", "service"}
    | {"authorization_endpoint", "token_endpoint", "https://api.w.org/", "describedby", "preload", "prefetch"}
)
_NO_LINKS = frozenset(
    {"preconnect", "dns-prefetch", "nofollow", "noopener", "noreferrer", "ugc", "sponsored", "expect"}
)
_LOADED_AS = {
    "style": LinkKind.STYLE,
    "script": LinkKind.SCRIPT,
    "image": LinkKind.IMAGE,
    "audio": LinkKind.MEDIA,
    "video": LinkKind.MEDIA,
    "track": LinkKind.MEDIA,
    "document": LinkKind.RELATED,
}


# Answers of bot protection services in place of a page: a challenge for a browser, or a refusal by their rules. They
# come with any status, so neither 403 nor 503 alone is a sign. A header's value must begin as given.
_WALL_FIELDS = {
    "cf-mitigated": ("challenge", "Cloudflare"),
    "x-amzn-waf-action": ("", "AWS WAF"),
    "x-vercel-mitigated": ("", "Vercel"),
    "x-dd-b": ("", "DataDome"),
    "x-kpsdk-ct": ("", "Kasada"),
    "x-sucuri-block": ("", "Sucuri"),
}
_WALL_BODIES = (  # what the whole page is about; none occurs in pages that only load a service's script
    (b'<script id="anubis_challenge"', "Anubis"),
    (b'id="main-iframe" src="/_Incapsula_Resource', "Imperva"),
    (b"<title>Request Rejected</title></head><body>The requested URL was rejected", "F5"),
)
_WALL_ERRORS = (  # of answers that are no success
    (b"window._cf_chl_opt", "Cloudflare"),
    (b"<title>Attention Required! | Cloudflare", "Cloudflare"),
    (b"error code: 1020", "Cloudflare"),  # 1020: by a rule of the site; 1010: by the client's kind
    (b"error code: 1010", "Cloudflare"),
    (b"captcha-delivery.com/", "DataDome"),
    (b"window._pxAppId", "HUMAN"),
    (b"Reference&#32;&#35;18.", "Akamai"),  # other numbers are faults of the server
    (b"Sucuri WebSite Firewall", "Sucuri"),
    (b"/.well-known/ddos-guard/", "DDoS-Guard"),
    (b"Request blocked.\nWe can't connect to the server", "CloudFront"),
)
_WALL_BYTES = 32_768  # challenges are short; the sign is in their head
_HTML_START = re.compile(
    (
        rb"\s*(?:(?><!--.*?-->)\s*)*+<(?:!doctype\s+html|html|head|body|title|script|style|table|"
        rb"div|p|a|h1|br|meta|iframe)[\s>]"
    ),
    re.I | re.S,
)
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SNIFFED_BYTES = 1445  # MIME Sniffing Standard, 5.2
_UNSAID = frozenset(
    {
        "",
        "application/octet-stream",
        "binary/octet-stream",
        "application/x-download",
        "application/force-download",
        "application/download",
    }
)
_NOTHING_IN_PARTICULAR = "application/octet-stream"
_ZIP = b"PK\x03\x04"
_PACKAGE_BYTES = 8_192  # bytes in which the first names of a zip archive are
_BY_ENDING = {
    "text/plain": {"md": "text/markdown", "markdown": "text/markdown", "sgml": "text/sgml", "sgm": "text/sgml"},
}
_SIGNATURES = (  # text never begins with these. Source: MIME Sniffing Standard, 6.1, 6.2 and 6.4
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"), (b"%PDF-", "application/pdf"),
    (b"\0\0\1\0", "image/x-icon"), (b"OggS\0", "application/ogg"), (b"\x1aE\xdf\xa3", "video/webm"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"PK\x03\x04", "application/zip"), (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/msword"),
)  # fmt: skip


def bot_wall(status: int, headers: Headers, body: bytes) -> str:
    """The bot protection service that answers in place of the page, or "". body: decompressed."""
    is_error = status >= 400
    for name, value in headers.fields:
        begin, service = _WALL_FIELDS.get(name, ("", ""))
        # DataDome and Kasada send their fields with good answers too
        if service and value.startswith(begin) and (is_error or name.endswith(("-mitigated", "-action", "-block"))):
            return service
    start = body[:_WALL_BYTES]
    if is_error and (service := next((name for sign, name in _WALL_ERRORS if sign in start), "")):
        return service
    return next((name for sign, name in _WALL_BODIES if sign in start), "") if len(body) <= _WALL_BYTES else ""


def media_type(headers: Headers) -> tuple[str, str]:
    """The essence of Content-Type in lower case, and its charset; '' if missing."""
    value = headers.get("content-type")
    if not value:
        return "", ""
    charset = _CHARSET.search(value) if ";" in value else None
    return value.partition(";")[0].strip().lower(), charset[1] if charset else ""


def refresh_target(value: str) -> str | None:
    """The target of a refresh such as `5; url=x`; None if it is invalid or only reloads the page.

    Source: HTML Living Standard, 4.2.4.3, shared declarative refresh steps.
    """
    match = _REFRESH.match(value[:_HEADER_CHARS])
    if match is None:
        return None
    return next((part for part in match.groups() if part), None)


@lru_cache(maxsize=1024)
def kinds_of_rel(rel: str, loaded_as: str = "") -> tuple[LinkKind, ...]:
    """The kinds of a link with these relations; none for mere browser hints. loaded_as: its `as` attribute."""
    words = dict.fromkeys(rel.lower().split())
    if "stylesheet" in words:
        return (LinkKind.STYLE,)  # `alternate stylesheet` is a style sheet, not an alternate page
    kinds: dict[LinkKind, None] = {}
    for word in words:
        if word in ("preload", "prefetch") and loaded_as.lower() in _LOADED_AS:
            kinds[_LOADED_AS[loaded_as.lower()]] = None
        elif word in _SERVICES:
            kinds[LinkKind.OBJECT] = None
        elif word.startswith("schema."):
            kinds[LinkKind.CITE] = None
        elif word not in _NO_LINKS and not (word == "shortcut" and "icon" in words):
            kinds[_KINDS.get(word, LinkKind.RELATED)] = None
    if len(kinds) > 1:
        kinds.pop(LinkKind.RELATED, None)
    return tuple(kinds)


def links(headers: Headers) -> Iterator[tuple[str, LinkKind]]:
    """The targets of Link and Refresh fields as written, with their kinds."""
    for value in headers.all("link"):
        for target, parameters in _LINK.findall(value[:_HEADER_CHARS]):
            values: dict[str, str] = {}
            for name, quoted, plain in _PARAMETER.findall(parameters):
                values.setdefault(name.lower(), quoted or plain)
            if "anchor" not in values:  # otherwise the link is from another document
                for kind in kinds_of_rel(values.get("rel", ""), values.get("as", "")):
                    yield target, kind
    for value in headers.all("refresh"):
        if target := refresh_target(value):
            yield target, LinkKind.REFRESH


@lru_cache(maxsize=1024)
def date_s(value: str) -> float:
    """An HTTP date in seconds since the epoch, UTC; 0.0 if invalid, such as `Expires: 0`."""
    if (fixed := _FIXED_DATE.fullmatch(value)) is not None:
        day, month, *others = fixed.groups()
        return float(
            max(calendar.timegm((int(others[0]), _MONTHS.index(month) + 1, int(day), *map(int, others[1:]))), 0)
        )
    from email.utils import parsedate_tz  # takes 5 ms at start-up, needed for few servers

    try:
        parts = parsedate_tz(value[:100])
        return float(max(calendar.timegm((*parts[:6], 0, 0, 0)) - (parts[9] or 0), 0)) if parts else 0.0
    except (ValueError, IndexError, TypeError, OverflowError):  # all of these were observed from the standard library
        return 0.0


def binary_type(body: bytes) -> str:
    """The type of a body that is certainly binary, regardless of the declared type; '' if it may be text."""
    if body[:4] == b"RIFF" and body[8:12] in (b"WEBP", b"WAVE", b"AVI "):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wave"}.get(body[8:12], "video/avi")
    if body[4:8] == b"ftyp" and body[:2] == b"\0\0":
        return "video/mp4"
    return next((media_type for start, media_type in _SIGNATURES if body.startswith(start)), "")


def media_type_of(declared: str, body: bytes, path: str = "") -> str:
    """The declared type; if it is missing or generic, the sniffed type.

    path: of the URL, for Markdown and SGML.
    """
    if declared not in _UNSAID:
        return _by_ending(declared, path) if declared == "text/plain" else declared
    if declared and not body:
        return declared
    return _by_ending(sniffed_media_type(body), path)


def _by_ending(media_type: str, path: str) -> str:
    """Refines plain text by file extension: many servers do not know these types."""
    return _BY_ENDING.get(media_type, {}).get(path.rpartition("/")[2].rpartition(".")[2].lower(), media_type)


def says_nothing(declared: str) -> bool:
    """Whether a declared type is missing or generic."""
    return declared in _UNSAID


def sniffed_media_type(body: bytes) -> str:
    """The type of a body without declared type.

    Source: MIME Sniffing Standard, 7.1, for the types that we read; and zip packages.
    """
    head = body[:_SNIFFED_BYTES]
    if head.startswith((b"\xfe\xff", b"\xff\xfe")):
        return "text/plain"
    head = head.removeprefix(b"\xef\xbb\xbf")
    if _HTML_START.match(head):
        return "text/html"
    if head.lstrip().startswith(b"<?xml"):
        return "text/xml"
    if head.startswith(b"%PDF-"):
        return "application/pdf"
    if head.startswith(b"{\\rtf"):
        return "application/rtf"
    if head.startswith(_ZIP):
        return _package_type(body[:_PACKAGE_BYTES])
    return _NOTHING_IN_PARTICULAR if _BINARY.search(head) else "text/plain"


def _package_type(head: bytes) -> str:
    """The type of a zip archive: OpenDocument and EPUB begin with a file that contains it; DOCX has known
    folder names.
    """
    if head[30:38] == b"mimetype":
        name = re.match(rb"[a-z.+/-]{1,80}", head[38:])
        return name[0].decode().removesuffix("PK") if name else "application/zip"
    if b"word/" in head or b"[Content_Types].xml" in head:
        return (
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
            if b"word/" in head
            else "application/zip"
        )
    return "application/zip"
