"""Tells which URLs of a host belong to an endless series: calendars, facets, searches, reply forms, session ids.

The rule. (1) A page *brings content* when one of its lines, or a picture or file, was on no page of its host before.
Words and numbers of its own URL, names and numbers of a calendar, lines that are nothing but links, and pieces of
longer texts do not count. (2) A page brings content too when it is the first to link to pages of a series that does.
A page that leads to such pages later, by whatever redirects, gets the credit then. (3) A URL is *listed* when a page
that brings content, a sitemap, a feed or another host names it; all others are *doubtful*. (4) A series is all URLs of
one pattern (`urls.patterns`), or of a wider one. It is *in doubt* when `trap_window` of its pages in a row brought
nothing, and a quarter as many of such pages led on to more of it. Each wider pattern may have a window more, and each
series a page more for four that brought content. (5) Of a series in doubt, doubtful URLs are put off; listed ones only
where they have a query, and are named by a window of pages. Where three windows of pages in a row have one text, or
are redirects, all are put off. (6) What is put off is asked for last: a quarter as many pages as were asked for in
vain, and more as long as these bring numbers, at most `max_doubtful`. A page that brings content reopens its series.

So a list that ends is read to its end. What no such rule can see is a tree that writes ever new words on ever new
pages; it looks like a site, and only budgets end it. Apart from that, a page is not asked for again under another
session id, once a few such pairs had the same text.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from itertools import compress
from operator import mul
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from periplus.document.folding import Folding
from periplus.model.frontier import Candidate, PatternRecord, ShownLines, TrapChanges, TrapMemory
from periplus.model.page import FOLLOWED_KINDS, IS_TEXT, Blocks, Document, LinkKind, link_codes
from periplus.model.ports import HostPast
from periplus.model.visit import Reason
from periplus.model.web import Url, UrlId
from periplus.schedule.shown_lines import COPY, NOTHING, NUMBERS, WORDS, LineMemory
from periplus.urls.canonical import url_id
from periplus.urls.hosts import root_of
from periplus.urls.url_patterns import ROOT, is_paging, plain, url_patterns

FIFTH = 5  # pages with content that allow for one without, and pages without of which one must lead on
ALIKE = 3  # windows, of pages that say the same, or redirect
SCRIPT = 2  # the narrowest patterns, which may stand for one script: of parameters, of a path, of a folder
GENERATIONS_CREDITED = 4  # an archive's years lead to months, these to days, these to stories
CONFIRMATIONS = 3  # equal texts under two values of a well-known session name before it is believed
# the same where only the value looks like a session's: a few log-in forms in a row are alike by chance
GUESS_CONFIRMATIONS = 8
MAX_PATTERNS = 4096  # kept per host: about 1 MB
MAX_DOUBTFUL = 200_000  # of which a host's detector knows that they are: some 20 MB
MAX_LINES = 2000  # of one page are looked at
GENERATION = 1 << 17  # keys of lines remembered of a host, in two generations: 2 MB, and 1 MB in the store

_RESOURCE = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".avif", ".tif", ".tiff", ".bmp", ".mp3", ".mp4",
    ".webm", ".ogg", ".pdf",
             ".zip", ".gz", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".epub")  # fmt: skip
_FOLLOWED = link_codes(FOLLOWED_KINDS)
_PICTURES = frozenset({LinkKind.IMAGE, LinkKind.MEDIA, LinkKind.OBJECT})
# feeds, translations, next and previous: no sign of endlessness
_COMPANIONS = frozenset({LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED})
_FEEDS = frozenset(
    {"application/rss+xml", "application/atom+xml", "application/feed+json", "application/xml", "text/xml"}
)
_REDIRECT = "redirect"  # stands for the text of an answer that has none
_NO_CHANGES = TrapChanges()


@dataclass(slots=True)
class _Series:
    """What the pages of one URL pattern brought; fields as in `PatternRecord`."""

    fresh: int = 0
    useful: int = 0
    idle: int = 0
    dull: int = 0
    bred: int = 0
    listed: int = 0
    alike: int = 0
    text: str = ""
    led_from: str = ""
    spent: int = 0

    @property
    def brings(self) -> bool:
        """Whether a new URL of it is likely to have content."""
        return self.fresh > self.idle

    def allows(self, window: int) -> int:
        """How many pages in a row may bring nothing, where one window is granted."""
        return window + (self.fresh + self.useful) // FIFTH

    def credit(self) -> None:
        self.idle = self.dull = self.bred = self.alike = 0


_NO_SERIES = _Series()


class Lesson(NamedTuple):
    """What a page taught. vouched_for: URLs met before, as doubtful, that are listed now."""

    fresh: bool
    candidates: tuple[Candidate, ...]
    vouched_for: tuple[Url, ...] = ()


class _Answer(NamedTuple):
    """What an answer means. text: the start of its digest; empty: it is compared with no other."""

    brings: int
    text: str = ""
    # targets that are as doubtful as the page itself, and no sign of endlessness
    companions: Collection[Url] = ()
    linked: Sequence[Url] | None = None  # targets, of which one may make the page useful; None: it lists all


class _Sessions:
    """Which names and values in URLs name no other page: learned from equal texts of URLs that differ in them only.

    Made anew from the host's stored pages: (URL, digest of its text) in the order in which they were read.
    """

    def __init__(self, past: HostPast) -> None:
        self._past: HostPast | None = past
        self._texts: dict[str, bytes] = {}  # URL without session ids -> text
        self._alike: dict[str, int] = {}  # names -> pairs of equal texts
        self._different: dict[str, int] = {}

    def read(self, url: Url, digest: bytes) -> None:
        bare = plain(url)
        self._load()
        before = self._texts.get(bare.url)
        self._texts[bare.url] = digest
        if bare.names and before is not None:
            counts = self._alike if before == digest else self._different
            counts[bare.names] = counts.get(bare.names, 0) + 1

    def refused(self, url: Url, refusal: str | None) -> str | None:
        """refusal: why its series puts the URL off; a well-known name of a session then says more."""
        bare = plain(url)
        if not bare.names:
            return refusal
        self._load()
        alike, needed = self._alike.get(bare.names, 0), CONFIRMATIONS if bare.well_known else GUESS_CONFIRMATIONS
        is_proven = alike >= needed and alike > 4 * self._different.get(bare.names, 0)
        if bare.url in self._texts and (is_proven or (refusal and bare.well_known)):
            return f"{bare.names}=*: the page was read under another {bare.names}"
        return refusal

    def _load(self) -> None:
        """Only when the host shows the first URL with a session id: most never do."""
        past, self._past = self._past, None
        for url, digest in past.texts() if past is not None else ():
            self.read(url, digest)

    @property
    def is_watching(self) -> bool:
        return self._past is None


class TrapDetector:
    """What one host's series have brought, and which of its URLs are put off. See the rule above.

    One object per host, held by its worker.

    Always: (1) window 0 refuses nothing; (2) a listed URL without a query is refused only where a run of answers was
    alike; (3) the answers follow from what the store keeps and from the pages read since, so a crawl that was killed
    goes on as if it had not been; (4) memory is bounded, whatever comes.
    Not its business: fetching, the seen set, other hosts, robots.
    """

    def __init__(self, window: int, most: int, memory: TrapMemory, past: HostPast) -> None:
        """most: URLs in doubt that are read. memory: as the store keeps it; past: what it can be asked beside."""
        self._window, self._most = window, most
        self._past = past
        self._series = {record.key: _Series(*astuple(record)[1:]) for record in memory.patterns}
        self._lines = LineMemory(GENERATION, memory.lines.first, _in_disk_order(memory.lines.keys))
        self._doubts = dict(memory.doubts)
        self._sessions = _Sessions(past)
        self._is_resumed = bool(self._series)
        self._changed: set[str] = set()
        self._changed_doubts: dict[UrlId, int] = {}

    def admit(self, url: Url, doubt: int, *, last: bool = False) -> str | None:
        """None when the URL may be fetched; else why not, in words for users.

        doubt: as stored. last: the host has nothing else left. A refusal holds for now: ask again when nothing else
        is left, and once more after a page that brought content.
        """
        if not self._window:
            return None
        refusal = self._refusal(url, doubt, last=last)
        return self._sessions.refused(url, refusal) if "?" in url or ";" in url or "/(" in url else refusal

    def _refusal(self, url: Url, doubt: int, *, last: bool) -> str | None:
        if not self._series:
            return None
        own, is_spent, brought = url_patterns(url), self._root.spent >= self._most, False
        is_open = doubt or any(self._series.get(key, _NO_SERIES).listed >= self._window for key in own[:SCRIPT])
        for width, key in enumerate(own, 1):
            series = self._series.get(key, _NO_SERIES)
            allowed = series.allows(self._window * (width if doubt or "?" in url else width + 1))
            sample = allowed // FIFTH if last and not is_spent else 0
            vain = series.dull if sample else series.idle
            if width <= SCRIPT and not brought and series.alike >= series.allows(self._window * ALIKE) + sample:
                return f"{key}: {series.alike} pages in a row said the same"
            if (
                not brought
                and vain >= allowed + sample
                and series.bred * FIFTH >= self._window
                and is_open
            ):
                return f"{key}: {vain} pages in a row brought nothing new"
            if width <= SCRIPT:
                brought |= series.fresh + series.useful > series.idle or ("?" in key and is_paging(key))
        return None

    @property
    def _root(self) -> _Series:
        return self._series.setdefault(ROOT, _Series())

    def learn(self, url: Url, doubt: int, document: Document, candidates: tuple[Candidate, ...]) -> Lesson:
        """Books one page that was read.

        doubt: the URL's own. candidates: what its links offer; returned with whether the page lists them.
        """
        if not self._window:
            return Lesson(True, candidates)
        self._learn_session(url, document)
        brings = max(self._says(url, document), WORDS * self._shows_resource(document))
        if brings == WORDS or (not doubt and document.media_type in _FEEDS):
            lesson = self._book(url, doubt, candidates, _Answer(brings))
            return lesson._replace(vouched_for=self._vouched_by(url, document))
        links, text = document.links, "" if document.needs_script else document.digests.text.hex()[:8]
        return self._book(
            url, doubt, candidates, _Answer(brings, text, set(links.targets_of(_COMPANIONS)), links.targets)
        )

    def redirected(self, url: Url, doubt: int, candidates: tuple[Candidate, ...]) -> Lesson:
        """Books a redirect as a page without lines: what its target brings is its credit."""
        home = root_of(url)
        if not self._window or not any(one.url.startswith(home) for one in candidates):
            return Lesson(True, candidates)
        targets = [one.url for one in candidates]
        return self._book(url, doubt, candidates, _Answer(NOTHING, _REDIRECT, set(targets), targets))

    def _book(self, url: Url, doubt: int, candidates: tuple[Candidate, ...], answer: _Answer) -> Lesson:
        brings, home, own = answer.brings, root_of(url), url_patterns(url)
        in_doubt = bool(doubt) and self._refusal(url, doubt, last=False) is not None
        if self._doubts.pop(url_id(url), None):
            self._changed_doubts[url_id(url)] = 0
        linked = answer.linked
        is_useful = linked is not None and self._is_useful(own, [one for one in linked if one.startswith(home)])
        named = [one for one in candidates if one.reason is Reason.WAITING and one.url.startswith(home)]
        doubted = self._name(url, doubt, named, answer, is_useful=is_useful) if named else frozenset[UrlId]()
        has_content = brings == WORDS or is_useful
        for key in own:
            series = self._of(key)
            if has_content:
                series.credit()
                series.fresh += brings == WORDS
                series.useful += brings != WORDS
            elif brings != COPY:
                series.idle += 1
                series.dull = 0 if brings == NUMBERS else series.dull + 1
        for key in own[: min(SCRIPT, len(own) - 1)]:
            self._compare(self._of(key), answer.text)
        self._of(ROOT).spent += in_doubt
        if has_content:
            self._credit_those_that_led_to(own[0])
        if len(self._series) > MAX_PATTERNS:
            self._forget()
        if doubted:
            candidates = tuple(replace(one, vouched=False) if one.url_id in doubted else one for one in candidates)
        return Lesson(has_content or brings == NUMBERS, candidates)

    def _name(
        self, url: Url, doubt: int, named: Sequence[Candidate], answer: _Answer, *, is_useful: bool
    ) -> Collection[UrlId]:
        """Books the URLs that a page names, and returns those that it does not list."""
        own, path, lists = url_patterns(url), url.partition("?")[0], answer.linked is None
        # what is new to a worker that had the host from its first page on, is new
        known = self._past.seen([one.url_id for one in named]) if self._is_resumed else frozenset()
        doubted, listed, bred = set[UrlId](), set[str](), set[str]()
        for one in named:
            patterns = url_patterns(one.url)
            leaf, is_list = patterns[0], is_paging(patterns[0])
            if lists and (is_list or one.url.partition("?")[0] != path):  # a page does not list variants of itself
                listed.update(patterns if one.url_id not in known else ())
                continue
            if one.url_id in known:
                doubted.add(one.url_id)
                continue
            is_companion = one.url in answer.companions and (answer.text == _REDIRECT or not is_list)
            if not (is_companion or is_useful or answer.brings == COPY):
                bred.update(patterns if is_list else (*patterns, *own))
            if doubt or not is_companion:
                if leaf != own[0] and not lists:
                    self._of(leaf).led_from = own[0]
                if leaf == own[0] or not self._series.get(leaf, _NO_SERIES).brings:
                    doubted.add(one.url_id)
                    self._note(one.url_id)
        for key in sorted(listed):
            self._of(key).listed += 1
        for key in sorted(bred):
            self._of(key).bred += 1
        return doubted

    def _is_useful(self, own: Sequence[str], links: Sequence[Url]) -> bool:
        """Whether a page is the first of its series to link to a page of another that brings content.

        Pages with a query are of one series with all others of their path, for facets are many.
        """
        is_useful, is_list = False, is_paging(own[0]) or "?" not in own[0]
        home, former = own[not is_list], self._series.get(own[0], _NO_SERIES)
        is_first = not (former.fresh or former.useful or former.idle)
        for link in links:
            if self._lines.adds(f"{home} {plain(link).url}".encode()) and not (is_useful or is_first):
                key = url_patterns(link)[0]
                target = self._series.get(key)
                is_useful = key != own[0] and target is not None and target.brings
        return is_useful

    def _compare(self, series: _Series, text: str) -> None:
        """Counts the pages whose text is the one that most of the series have; empty: it is another each time."""
        if text and series.text == text:
            series.alike += 1
        elif series.alike:
            series.alike -= 1
        else:
            series.text, series.alike = text, int(bool(text))

    def _of(self, key: str) -> _Series:
        self._changed.add(key)
        return self._series.setdefault(key, _Series())

    def changes(self) -> TrapChanges:
        """What changed since this was last asked; given back as `memory` it goes on where this stopped."""
        if not (self._changed or self._changed_doubts or self._lines.new):
            return _NO_CHANGES  # of most hosts at most commits
        changed, self._changed = sorted(self._changed), set()
        doubts, self._changed_doubts = self._changed_doubts, {}
        records = [PatternRecord(key, *astuple(self._series[key])) for key in changed if key in self._series]
        return TrapChanges(tuple(records), self._line_changes(), tuple(sorted(doubts.items())))

    def _line_changes(self) -> ShownLines:
        """What was added since last asked. Lines before `needed_from` are needed no longer."""
        new, count = self._lines.take_new(), self._lines.shown
        return ShownLines(
            count - len(new),
            _in_disk_order(new.tobytes()).tobytes(),
            max(0, (count // GENERATION - 1) * GENERATION),
        )

    def _learn_session(self, url: Url, document: Document) -> None:
        """Pages without a session id teach too, once a host has shown one: the same page may have both addresses."""
        if self._sessions.is_watching or "?" in url or ";" in url or "/(" in url:
            self._sessions.read(url, document.digests.text)

    def _says(self, url: Url, document: Document) -> int:
        """What the text says that the host had not shown. All of it is remembered."""
        text = document.text
        written = text.lower().encode() if text.isascii() else _lower().fold(text.encode("utf-8", "replace"))
        address = unquote_to_bytes(url.partition("//")[2].partition("/")[2])
        return self._lines.read(written, _lower().fold(address), _counted(document.blocks), MAX_LINES)

    def _shows_resource(self, document: Document) -> bool:
        """Whether there is a new picture or file among the links; its parameters aside,
        which often only defeat caches.
        """
        targets = {target.partition("?")[0] for target in document.links.targets}
        resources = {target for target in targets if target.lower().endswith(_RESOURCE)}
        resources |= {target.partition("?")[0] for target in document.links.targets_of(_PICTURES)}
        return bool(resources and self._lines.adds("\n".join(sorted(resources)).encode("utf-8", "replace")))

    def _vouched_by(self, url: Url, document: Document) -> tuple[Url, ...]:
        """The URLs known as doubtful that a page lists."""
        if not self._doubts:
            return ()
        links, path, cleared = document.links, url.partition("?")[0], dict[Url, None]()
        for target, kind, nofollow in zip(links.targets, links.kinds, links.nofollow, strict=True):
            if kind not in _FOLLOWED or nofollow or target.partition("?")[0] == path:
                continue
            if self._doubts.pop(identity := url_id(target), None):
                self._changed_doubts[identity] = 0
                cleared[target] = None
        return tuple(cleared)

    def _note(self, identity: UrlId) -> None:
        if identity not in self._doubts and len(self._doubts) < MAX_DOUBTFUL:
            self._changed_doubts[identity] = self._doubts[identity] = 1

    def _credit_those_that_led_to(self, key: str) -> None:
        """Pages that said nothing new led to a page that does: they were worth their fetch,
        and so were those that led to them.
        """
        for _ in range(GENERATIONS_CREDITED):
            former = self._of(key)
            key, former.led_from = former.led_from, ""  # once for each page that led to more
            if key not in self._series:
                return
            series = self._of(key)
            series.credit()
            series.useful += 1

    def _forget(self) -> None:
        """Drops half of the series: those that bring content first, among equals the oldest."""
        keys = sorted((key for key in self._series if key != ROOT), key=lambda key: self._series[key].idle > 0)
        for key in keys[: MAX_PATTERNS // 2]:
            del self._series[key]


def _counted(blocks: Blocks) -> bytes:
    """For each line of a text 0 where its block is nothing but links; empty: all count."""
    if not blocks.shares:
        return b""
    flags: Iterable[bytes] = map((b"\0", b"\1").__getitem__, map(bool, blocks.shares))
    if blocks.lines:
        flags = map(mul, flags, map((1).__add__, blocks.lines))
    return b"".join(compress(flags, blocks.kinds.translate(IS_TEXT)))


@cache
def _lower() -> Folding:
    """Each character in lower case."""
    return Folding(str.lower)


def _in_disk_order(stored: bytes) -> array[int]:
    """uint32, little-endian on every machine."""
    keys = array("I")
    keys.frombytes(stored)
    if sys.byteorder == "big":
        keys.byteswap()
    return keys
