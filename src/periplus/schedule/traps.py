"""Detects URLs of a host that belong to an endless series: calendars, facets, searches, reply forms, session ids.

The rule:  (1) A page *has content* if one of its lines, images or files was on no earlier page of its host. Not
counted: words and numbers of its own URL, calendar names and numbers, lines that consist of links, and parts of longer
texts that were seen before.  (2) A page also has content if it is the first to link to pages of a series with content.
If a page leads to such pages later, also through redirects, it is credited then.  (3) A URL is *listed* if a page with
content, a sitemap, a feed or another host links to it; all other URLs are *doubtful*.  (4) A series is the set of URLs
of a pattern (`urls.url_patterns`); a URL belongs to its narrowest pattern and to wider ones. A series is *in doubt* if
`trap_window` of its pages in a row had no content, and a fifth as many of such pages linked to new URLs of it. Each
wider pattern is allowed one more window, and each series one more page for five with content; a wider pattern does not
count while the narrow one has content.  (5) In a series in doubt, doubtful URLs are postponed. Listed
URLs are postponed only if `trap_window` pages list URLs of their narrowest pattern or of the next wider one (without a
query they are allowed one more window): a list on one page ends. If three windows of pages in a row have the same text
or are redirects, all URLs are postponed.  (6) Postponed URLs are fetched last: a fifth as many as the pages allowed
before, more as long as these have new numbers, and at most `max_doubtful` of a host. A page with content reopens its
series.

So finite lists are read to their end. The rule cannot detect a generator of random text on endless new pages; only
budgets end it. In addition, a page is not fetched again under another session id, after a few such pairs had equal
text.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from periplus.document.blocks import lines_of
from periplus.document.folding import Folding
from periplus.model.frontier import Candidate, PatternRecord, ShownLines, TrapMemory
from periplus.model.page import FOLLOWED_KINDS, Document, LinkKind, link_codes
from periplus.model.ports import HostPast
from periplus.model.visit import Reason
from periplus.model.web import Url, UrlId
from periplus.schedule.shown_lines import COPY, NOTHING, NUMBERS, WORDS, LineMemory
from periplus.urls.canonical import url_id
from periplus.urls.hosts import root_of
from periplus.urls.url_patterns import ROOT, is_paging, plain, url_patterns

FIFTH = 5  # pages with content that allow one page without; and one of so many pages without must link to more
ALIKE = 3  # windows of pages with equal text, or of redirects
SCRIPT = 2  # number of the narrowest patterns, which may be one script: of parameters, of a path, of a folder
CREDIT_GENERATIONS = 4  # an archive's years lead to months, months to days, days to stories
CONFIRMATIONS = 3  # pairs of equal texts under two values of a well-known session name before it is ignored
# the same if only the value looks like a session id: a few log-in forms in a row may be equal by chance
GUESS_CONFIRMATIONS = 8
MAX_PATTERNS = 4096  # kept per host: about 1 MB
MAX_DOUBTFUL = 200_000  # doubtful URLs remembered per host: some 20 MB
MAX_LINES = 2000  # read per page
MAX_NO_RESOURCES = 16_384  # targets remembered per host
GENERATION = 1 << 17  # keys of lines remembered per host, in two generations: 2 MB, and 1 MB in the store

_RESOURCE = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".avif", ".tif", ".tiff", ".bmp", ".mp3", ".mp4",
    ".webm", ".ogg", ".pdf",
             ".zip", ".gz", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".epub")  # fmt: skip
_FOLLOWED_CODES = link_codes(FOLLOWED_KINDS)
_PICTURES = frozenset({LinkKind.IMAGE, LinkKind.MEDIA, LinkKind.OBJECT})
# feeds, translations, next and previous: no evidence of an endless series
_COMPANIONS = frozenset({LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED})
_FEEDS = frozenset(
    {"application/rss+xml", "application/atom+xml", "application/feed+json", "application/xml", "text/xml"}
)
_REDIRECT = "redirect"  # in place of the text digest of a redirect
_NO_CHANGES = TrapMemory()
_NO_LINES = array("i")


@dataclass(slots=True)
class _Series:
    """Counts of the pages of one URL pattern; fields as in `PatternRecord`."""

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
        """Whether a new URL of the series is likely to have content."""
        return self.fresh > self.idle

    def allows(self, window: int) -> int:
        """How many pages in a row may have no content, for the given window."""
        return window + (self.fresh + self.useful) // FIFTH

    def credit(self) -> None:
        self.idle = self.dull = self.bred = self.alike = 0


_NO_SERIES = _Series()
_FIELDS_OF: Callable[[_Series | PatternRecord], tuple[Any, ...]] = attrgetter(
    *(field.name for field in fields(_Series))
)


class Lesson(NamedTuple):
    """The result of a page. confirmed_urls: URLs that were doubtful before and are listed now."""

    fresh: bool
    candidates: tuple[Candidate, ...]
    confirmed_urls: tuple[Url, ...] = ()


class _Answer(NamedTuple):
    """The facts about an answer. text: the start of its digest; empty: not compared with other answers."""

    brings: int
    text: str = ""
    # targets that are as doubtful as the page itself, and no evidence of an endless series
    companions: Collection[Url] = ()
    linked: Sequence[Url] | None = None  # targets that may make the page useful; None: the page has content


class _Sessions:
    """Session parameters of a host, learned from equal texts of URLs that differ only in them.

    Rebuilt from the host's stored pages: (URL, digest of its text) in the order in which they were read.
    """

    def __init__(self, past: HostPast) -> None:
        self.past: HostPast | None = past
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

    def postponement_reason(self, url: Url, refusal: str | None) -> str | None:
        """Why a URL is postponed, or None. refusal: the reason by its series; a session parameter explains more."""
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
        """Reads stored texts at the first URL with a session id, since most hosts have none."""
        past, self.past = self.past, None
        for url, digest in past.texts() if past is not None else ():
            self.read(url, digest)


class TrapDetector:
    """The series of one host, and which of its URLs are postponed. See the rule above. One object per held host.

    Invariants: (1) window 0 refuses nothing; (2) a listed URL is refused only if a window of pages lists its pattern,
    or after a run of equal answers; (3) the state follows from the store and the pages read since, so a resumed crawl
    decides as if it had not been interrupted; (4) memory is bounded.
    """

    def __init__(self, window: int, most: int, memory: TrapMemory, past: HostPast) -> None:
        """most: limit of pages read in doubt. memory: the stored state; past: stored texts and URLs of the host."""
        self._window, self._most = window, most
        self._past = past
        self._series = {record.key: _Series(*_FIELDS_OF(record)) for record in memory.patterns}
        self._lines = LineMemory(GENERATION, memory.lines.first, _in_disk_order(memory.lines.keys))
        self._doubts = dict(memory.doubts)
        self._sessions = _Sessions(past)
        self._is_resumed = bool(self._series)
        self._no_resources: set[Url] = set()  # targets that are pages
        self._changed: set[str] = set()
        self._changed_doubts: dict[UrlId, int] = {}

    def admit(self, url: Url, doubt: int, *, last: bool = False) -> str | None:
        """None if the URL may be fetched; else the reason, as a text for users.

        doubt: as stored. last: the host has no other URLs left. A refusal is temporary: call again when no other URLs
        are left, and after a page with content.
        """
        if not self._window:
            return None
        refusal = self._refusal(url, doubt, last=last)
        return self._sessions.postponement_reason(url, refusal) if "?" in url or ";" in url or "/(" in url else refusal

    def _refusal(self, url: Url, doubt: int, *, last: bool) -> str | None:
        if not self._series:
            return None
        own, brought = url_patterns(url), False
        is_spent = self._series.get(ROOT, _NO_SERIES).spent >= self._most
        for width, key in enumerate(own, 1):
            series = self._series.get(key, _NO_SERIES)
            allowed = series.allows(self._window * (width if doubt or "?" in url else width + 1))
            sample = allowed // FIFTH if last and not is_spent else 0
            vain = series.dull if sample else series.idle
            if width <= SCRIPT and not brought and series.alike >= series.allows(self._window * ALIKE) + sample:
                return f"{key}: {series.alike} pages in a row had the same text"
            if (
                not brought
                and vain >= allowed + sample
                and series.bred * FIFTH >= self._window
                and (doubt or any(self._series.get(near, _NO_SERIES).listed >= self._window for near in own[:SCRIPT]))
            ):
                return f"{key}: {vain} pages in a row had nothing new"
            if width <= SCRIPT:
                brought |= series.fresh + series.useful > series.idle or ("?" in key and is_paging(key))
        return None

    def learn(self, url: Url, doubt: int, document: Document, candidates: tuple[Candidate, ...]) -> Lesson:
        """Records a page that was read.

        doubt: of the URL. candidates: from its links; returned with `vouched` False if the page does not list them.
        """
        if not self._window:
            return Lesson(True, candidates)
        # once the host has had a session id, pages without one are learned too: they may be the same pages
        if self._sessions.past is None or "?" in url or ";" in url or "/(" in url:
            self._sessions.read(url, document.digests.text)
        brings = max(self._new_text(url, document), WORDS * self._shows_resource(document))
        if brings == WORDS or (not doubt and document.media_type in _FEEDS):
            lesson = self._book(url, doubt, candidates, _Answer(brings))
            return lesson._replace(confirmed_urls=self._confirm_urls(url, document))
        links, text = document.links, "" if document.needs_script else document.digests.text.hex()[:8]
        return self._book(
            url, doubt, candidates, _Answer(brings, text, set(links.targets_of(_COMPANIONS)), links.targets)
        )

    def record_redirect(self, url: Url, doubt: int, candidates: tuple[Candidate, ...]) -> Lesson:
        """Records a redirect as a page without lines; it is credited with the content of its target."""
        home = root_of(url)
        if not self._window or not any(candidate.url.startswith(home) for candidate in candidates):
            return Lesson(True, candidates)
        targets = [candidate.url for candidate in candidates]
        return self._book(url, doubt, candidates, _Answer(NOTHING, _REDIRECT, set(targets), targets))

    def _book(self, url: Url, doubt: int, candidates: tuple[Candidate, ...], answer: _Answer) -> Lesson:
        brings, home, own = answer.brings, root_of(url), url_patterns(url)
        in_doubt = bool(doubt) and self._refusal(url, doubt, last=False) is not None
        if self._doubts.pop(url_id(url), None):
            self._changed_doubts[url_id(url)] = 0
        linked = answer.linked
        is_useful = linked is not None and self._is_useful(own, [link for link in linked if link.startswith(home)])
        named = [new for new in candidates if new.reason is Reason.WAITING and new.url.startswith(home)]
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
            self._credit_sources(own[0])
        if len(self._series) > MAX_PATTERNS:
            self._forget()
        if doubted:
            candidates = tuple(new._replace(vouched=False) if new.url_id in doubted else new for new in candidates)
        return Lesson(has_content or brings == NUMBERS, candidates)

    def _name(
        self, url: Url, doubt: int, named: Sequence[Candidate], answer: _Answer, *, is_useful: bool
    ) -> Collection[UrlId]:
        """Records the URLs that a page links to, and returns the ones that it does not list."""
        own, path, lists = url_patterns(url), url.partition("?")[0], answer.linked is None
        # if this worker has held the host since its first page, all candidates are new
        known = self._past.stored_urls([new.url_id for new in named]) if self._is_resumed else frozenset()
        doubted, listed, bred = set[UrlId](), set[str](), set[str]()
        for new in named:
            patterns = url_patterns(new.url)
            leaf, is_list = patterns[0], is_paging(patterns[0])
            if lists and (is_list or new.url.partition("?")[0] != path):  # a page does not list variants of itself
                listed.update(patterns if new.url_id not in known else ())
                continue
            if new.url_id in known:
                doubted.add(new.url_id)
                continue
            is_companion = new.url in answer.companions and (answer.text == _REDIRECT or not is_list)
            if not (is_companion or is_useful or answer.brings == COPY):
                bred.update(patterns if is_list else (*patterns, *own))
            if doubt or not is_companion:
                if leaf != own[0] and not lists:
                    self._of(leaf).led_from = own[0]
                if leaf == own[0] or not self._series.get(leaf, _NO_SERIES).brings:
                    doubted.add(new.url_id)
                    self._note(new.url_id)
        for key in sorted(listed):
            self._of(key).listed += 1
        for key in sorted(bred):
            self._of(key).bred += 1
        return doubted

    def _is_useful(self, own: Sequence[str], links: Sequence[Url]) -> bool:
        """Whether a page is the first of its series to link to some page of another series with content.

        Pages with a query count as one series with all others of their path, since there are many facets.
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
        """Counts pages in a row with the series' most frequent text (Boyer-Moore vote); empty texts never agree."""
        if text and series.text == text:
            series.alike += 1
        elif series.alike:
            series.alike -= 1
        else:
            series.text, series.alike = text, int(bool(text))

    def _of(self, key: str) -> _Series:
        self._changed.add(key)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series()
        return series

    def changes(self) -> TrapMemory:
        """The changes since the last call, for the store; they restore the state when passed back as `memory`."""
        if not (self._changed or self._changed_doubts or self._lines.new):
            return _NO_CHANGES  # the usual case
        changed, self._changed = sorted(self._changed), set()
        doubts, self._changed_doubts = self._changed_doubts, {}
        records = [PatternRecord(key, *_FIELDS_OF(self._series[key])) for key in changed if key in self._series]
        return TrapMemory(tuple(records), self._line_changes(), tuple(sorted(doubts.items())))

    def _line_changes(self) -> ShownLines:
        """The lines added since the last call. Lines before `needed_from` may be deleted."""
        new, count = self._lines.take_new(), self._lines.shown
        return ShownLines(
            count - len(new),
            _in_disk_order(new.tobytes()).tobytes(),
            max(0, (count // GENERATION - 1) * GENERATION),
        )

    def _new_text(self, url: Url, document: Document) -> int:
        """NOTHING, COPY, NUMBERS or WORDS, by what is new in the text. Remembers its lines."""
        text = document.text
        written = document.utf_8_text()
        written = written.lower() if text.isascii() else _lower().fold(written)
        address = unquote_to_bytes(url.partition("//")[2].partition("/")[2])
        shares = document.blocks.shares  # 0: the block consists of links only; empty: all blocks count
        counted = shares if shares.itemsize == 1 else bytes(map(bool, shares))
        blocks = lines_of(document.blocks) if shares else _NO_LINES
        return self._lines.read(written, _lower().fold(address), blocks, counted, MAX_LINES)

    def _shows_resource(self, document: Document) -> bool:
        """Whether the links have a new image or file. Ignores query strings, which often only defeat caches."""
        others = set(document.links.targets).difference(self._no_resources)  # most were on earlier pages too
        if len(self._no_resources) > MAX_NO_RESOURCES:
            self._no_resources.clear()
        self._no_resources.update(target for target in others if not _resource_of(target))
        resources = {*map(_resource_of, others)} - {""}
        resources |= {target.partition("?")[0] for target in document.links.targets_of(_PICTURES)}
        return bool(resources and self._lines.adds("\n".join(sorted(resources)).encode("utf-8", "replace")))

    def _confirm_urls(self, url: Url, document: Document) -> tuple[Url, ...]:
        """The URLs remembered as doubtful that a page lists; they are doubtful no longer."""
        links, path, cleared = document.links, url.partition("?")[0], dict[Url, None]()
        if not self._doubts or self._doubts.keys().isdisjoint(links.ids or map(url_id, links.targets)):
            return ()
        for target, kind, nofollow in zip(links.targets, links.kinds, links.nofollow, strict=True):
            if kind not in _FOLLOWED_CODES or nofollow or target.partition("?")[0] == path:
                continue
            if self._doubts.pop(identity := url_id(target), None):
                self._changed_doubts[identity] = 0
                cleared[target] = None
        return tuple(cleared)

    def _note(self, identity: UrlId) -> None:
        if identity not in self._doubts and len(self._doubts) < MAX_DOUBTFUL:
            self._changed_doubts[identity] = self._doubts[identity] = 1

    def _credit_sources(self, key: str) -> None:
        """Credits the series of pages without content that led to a page with content, over several generations."""
        for _ in range(CREDIT_GENERATIONS):
            former = self._of(key)
            key, former.led_from = former.led_from, ""  # each source is credited once
            if key not in self._series:
                return
            series = self._of(key)
            series.credit()
            series.useful += 1

    def _forget(self) -> None:
        """Drops up to half of the series: first the ones with recent content, then the oldest."""
        keys = sorted((key for key in self._series if key != ROOT), key=lambda key: self._series[key].idle > 0)
        for key in keys[: MAX_PATTERNS // 2]:
            del self._series[key]


@lru_cache(maxsize=16_384)  # links to them are repeated on many pages
def _resource_of(target: Url) -> str:
    """The address of a file that is no page, without its query; empty for others."""
    address = target.partition("?")[0]
    return address if address.lower().endswith(_RESOURCE) else ""


@cache
def _lower() -> Folding:
    """Folds characters to lower case."""
    return Folding(str.lower)


def _in_disk_order(stored: bytes) -> array[int]:
    """uint32 values, little-endian on every machine."""
    keys = array("I")
    keys.frombytes(stored)
    if sys.byteorder == "big":
        keys.byteswap()
    return keys
