"""Words for states, sizes, times and pages, fitted to a terminal's line."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from periplus.model.frontier import HostRow, TrapTally
from periplus.model.visit import Cause, Cut, Reason

# C0, C1, soft hyphen, zero width, bidi marks and overrides, line separators, surrogates, byte order mark: a crawled
# title may not move the cursor, turn the line round or break the encoding
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]+"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_SPACE = re.compile(r"\s+")
EIGHTHS = " ▏▎▍▌▋▊▉█"
REASON_WORDS = {
    Reason.OK: "fetched and read",
    Reason.TRUNCATED: "truncated",
    Reason.PARTIAL: "parsed in part",
    Reason.UNREADABLE: "unreadable",
    Reason.NEEDS_SCRIPT: "empty without JavaScript",
    Reason.OTHER_MEDIA: "file type not parsed",
    Reason.WAITING: "waiting",
    Reason.DEPTH: "beyond the depth limit",
    Reason.ROBOTS: "disallowed by robots.txt",
    Reason.ROBOTS_UNREACHABLE: "robots.txt unreachable",
    Reason.NOFOLLOW: "only nofollow links",
    Reason.NOINDEX: "noindex",
    Reason.RESOURCE: "image, style or script",
    Reason.TRAP: "endless series",
    Reason.REFUSED: "access refused",
    Reason.BOT_WALL: "refused by a bot wall",
    Reason.HOST_DOWN: "host given up",
    Reason.ALIVE: "failed before, answers again",
    Reason.NOT_ARCHIVED: "not in the archive",
    Reason.SCOPE: "outside the scope",
    Reason.OTHER_PART: "belongs to another part",
    Reason.RULE: "breaks the parameter rules",
    Reason.REDIRECT: "redirect",
    Reason.ALIAS: "another address of a page",
    Reason.SCHEME: "not a web address",
    Reason.DELETED: "deleted by hand",
    Reason.NOT_FOUND: "not found",
    Reason.CLIENT_ERROR: "request rejected",
    Reason.SERVER_ERROR: "server error",
    Reason.UNREACHABLE: "no answer",
    Reason.TLS: "certificate or TLS failure",
    Reason.BAD_ANSWER: "invalid response",
    Reason.PRIVATE: "private address, not requested",
    Reason.BUG: "internal error",
}
_ENDING = re.compile(r".+(\s(?:[-–—|·»]|::?)\s.+)$")  # the last separator between blanks, and what follows it
_SAMPLE = 2_000  # titles that decide; evenly over all
_UNITS = ("KB", "MB", "GB", "TB")
_TRAPS_IN_SUMMARY = 3  # URL patterns named in the summary of a crawl
_CODES = frozenset([*Cause, *Cut])
_REMEDIES = (  # why a job failed, or what its sentence has in it; what to do: the first that fits
    (Reason.PRIVATE, "If the network is yours, start it again with {private}."),
    ("(name not found", "Check the spelling of the address, and the DNS of this machine."),
    (Reason.ROBOTS_UNREACHABLE, "Check in a browser whether the server answers, then try again."),
    (
        REASON_WORDS[Reason.ROBOTS],
        "The site asks crawlers to stay away. If it is yours, start again with {own}.",
    ),
    (Reason.HOST_DOWN, "Check in a browser whether the server answers, then try again."),
    (Reason.UNREACHABLE, "Check in a browser whether the server answers, then try again."),
    (Reason.SERVER_ERROR, "The server failed: check it, or wait, then try again."),
    (Reason.TLS, "The server's certificate was not accepted: renew it, then try again."),
    (
        REASON_WORDS[Reason.REFUSED],
        "The server refuses crawlers or wants a password: ask its owner, or set auth in periplus.toml.",
    ),
    (
        REASON_WORDS[Reason.BOT_WALL],
        "A bot protection service refuses crawlers: ask the site's owner to allow the user agent, or for the data.",
    ),
    (Reason.NOT_FOUND, "There is no page at this address: start again with another."),
    (Reason.REDIRECT, "Start again with the address that it redirects to."),
    (": the archive", "Check that the archive exists and has the site, then start again."),
    ("killed by SIGKILL", "Another process ended it, often because memory was short: free some, then try again."),
    ("killed by", "Another process ended it: start it again, and it continues."),
    ("net is down", "This machine reached no other site: check its network, then try again."),
    ("no page was read", "Check in a browser what the address returns, then start again."),
)


def visible(text: str) -> str:
    """The text on one line, without characters that are no sign."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _SPACE.sub(" ", _UNSEEN.sub("", _SPACE.sub(" ", text))).strip()


def without_controls(text: str) -> str:
    """The text without control characters, but for its lines and tabs:
    what joins letters or sets their direction stays.
    """
    return _CONTROL.sub("", text)


def cells(text: str) -> int:
    """Columns that a terminal gives the text: two for wide East Asian signs, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_cell(sign) for sign in text)


def _cell(sign: str) -> int:
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def fit(text: str, width: int, *, more: str = "…") -> str:
    """The text in exactly width columns: filled with spaces, or cut and ended with `more`."""
    free = width - cells(text)
    if free >= 0:
        return text + " " * free
    begin, free = "", max(width - len(more), 0)
    for sign in text:
        free -= _cell(sign)
        if free < 0:
            free += _cell(sign)
            break
        begin += sign
    return begin + more[:width] + " " * free


def text_bar(share: float, width: int, parts: str = EIGHTHS) -> str:
    """share of width columns as a bar. parts: what is drawn of its last column, from nothing to all."""
    whole, part = divmod(round(max(0.0, min(share, 1.0)) * width * (len(parts) - 1)), len(parts) - 1)
    return parts[-1] * whole + (parts[part] if part else "")


def number(value: int) -> str:
    return f"{value:,}"


def count_of(value: int, one: str, many: str = "") -> str:
    """`1 page`, `1,204 pages`; many: the plural, where it is not one + s."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def size(size_bytes: int) -> str:
    """In the unit that leaves at most three digits before the point: `812 B`, `4.1 KB` (1 KB = 1000 B), `2.3 MB`."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    value, unit = size_bytes / 1000, 0
    while value >= 999.5 and unit < 3:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if value < 99.95 else f"{value:.0f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """In its two largest units: `4.2 s`, `42 s`, `3 min 7 s`, `2 h 14 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    for length_s, unit, smaller_s, smaller in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= length_s:
            rest = int(seconds % length_s // smaller_s)
            return f"{int(seconds // length_s)} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{int(seconds)} s"


def utc(moment: float, form: str = "%d %B %Y, %H:%M UTC") -> str:
    """A time in seconds since the epoch, written in UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime(form).lstrip("0")


def iso(moment: float) -> str:
    """The same for programs: ISO 8601 with whole seconds."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def why_waits(host: HostRow, state: str) -> str:
    """Why a host with waiting URLs is not fetched now. state: of the run, as in `Status`."""
    if state not in ("running", "paused"):
        return "no crawl is running"
    if host.leased:
        return "being asked"
    if state == "paused":
        return "the crawl is paused"
    if host.wait_s > 0:
        return f"may be asked again in {host.wait_s:.0f} s ({host.waits_for or 'its delay'})"
    return "ready, waits for a worker"


def short(url: str) -> str:
    """The last part of a URL's path, with its query; the host for a site's root.

    Decoded: for eyes, never for fetching.
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    name = f"/{path.rpartition('/')[2]}" if path else parts.netloc
    return unquote(f"{name}?{parts.query}" if parts.query else name)


def labels(urls: Sequence[str], titles: Sequence[str], parent_title: str = "") -> list[str]:
    """Names of siblings: their titles, with the end of the URL if a sibling or the parent has the same title. On one
    line, without invisible characters.
    """
    clean = [visible(title) for title in titles]
    seen = Counter([*clean, visible(parent_title)])
    names = []
    for url, title in zip(urls, clean, strict=True):
        if seen[title] == 1 and title:
            names.append(title)
        else:
            names.append(f"{title} · {visible(short(url))}".removeprefix(" · "))
    return names


def without_site_name(titles: Sequence[str]) -> Sequence[str]:
    """The titles without the ending that more than half of them share, such as ` — Example Docs`.

    Nothing is cut from fewer than four titles, nor from a title that is nothing else.
    """
    sample = [title for title in titles[:: len(titles) // _SAMPLE + 1] if title]
    endings = Counter(match[1] for title in sample if (match := _ENDING.match(title)))
    if len(sample) < 4 or not endings:
        return titles
    ending, times = endings.most_common(1)[0]
    return [title.removesuffix(ending) or title for title in titles] if 2 * times > len(sample) else titles


def why_not(url: str, reason: str, rule: str) -> str:
    """Why a page was not read: `https://e.org/: host given up (name not found)`. reason, rule: as they are stored."""
    code, colon, detail = rule.partition(": ")
    if code in _CODES:
        code = code.replace("-", " ").replace("http", "HTTP").replace("tls", "TLS")
    return f"{url}: {REASON_WORDS[Reason(reason)]}" + (f" ({code}{colon}{detail})" if rule not in ("", reason) else "")


def job_remedy(
    note: str, private: str = "the consent for private addresses", own: str = "the consent for your own site"
) -> str:
    """Advice for a failed job, by the text of its error; empty if the error has its own.

    private, own: the consents in the reader's words.
    """
    signs = ((f": {REASON_WORDS[why]}" if isinstance(why, Reason) else why, remedy) for why, remedy in _REMEDIES)
    return next((remedy for sign, remedy in signs if sign in note), "").format(private=private, own=own)


def traps_left(traps: Sequence[TrapTally]) -> Iterator[str]:
    """URLs left out as endless series, and the options to fetch them."""
    if traps:
        named = ", ".join(f"{visible(tally.pattern)} ({tally.urls:,})" for tally in traps[:_TRAPS_IN_SUMMARY])
        others = f" and {len(traps) - _TRAPS_IN_SUMMARY:,} more" if len(traps) > _TRAPS_IN_SUMMARY else ""
        left = count_of(sum(tally.urls for tally in traps), "address was", "addresses were")
        yield (
            f"{left} left out as endless series: {named}{others}. More of them with a larger "
            "--trap-window or --max-doubtful, all with --trap-window 0."
        )
