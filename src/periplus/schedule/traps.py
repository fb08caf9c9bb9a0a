"""Tells which URLs of a host belong to an endless series: calendars, facets, trees that answer any path, session ids.

The detector in five sentences. A page is *fresh* when it shows FRESH_LETTERS letters of text, or a picture or file,
that its host had not shown before; words with digits in them, and words of its own address and of its links, do not
count. A URL is *vouched for* when a sitemap, a feed or another host names it, when a fresh page links to it, or when
two pages that are vouched for themselves do, from folders that neither hold it nor lie in it; all others are
*doubtful*, for only pages that said nothing new lead to them. A doubtful page that says what doubtful pages have said
before costs its patterns (`urls.patterns`) one page when it led to new addresses, and those of these addresses too; an
eighth when it did not, up to three times what the former cost, for a list that nothing makes longer is no endless one;
one that is fresh clears the debts of its patterns, and of those that led to it. A doubtful URL is refused while a
pattern of it had `window` pages read and owes as many (four windows for a folder above, ten for the whole host); one
that is vouched for is never refused. Apart from that, a page is not asked for again under another session id, once a
few such pairs had the same text.

So an endless series has to show itself endless: by addresses that keep coming where texts do not. What no such rule can
see is a tree that writes ever new words on ever new pages; it looks like a site, and only budgets end it.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import filterfalse
from typing import NamedTuple
from urllib.parse import unquote

from periplus.document.folding import Folding
from periplus.model.frontier import Candidate, PatternRecord, ShownLines, TrapChanges, TrapMemory
from periplus.model.page import FOLLOWED_KINDS, Document, LinkKind, link_codes
from periplus.model.ports import HostPast
from periplus.model.visit import Reason
from periplus.model.web import Url, UrlId
from periplus.schedule.shown_lines import LineMemory
from periplus.urls.canonical import url_id
from periplus.urls.hosts import root_of
from periplus.urls.url_patterns import ROOT, folder_of, is_paging, plain, url_patterns, with_wider

# in lines that are new: more than a date with its weekday twice, or a facet's heading; about a sentence and a half
FRESH_LETTERS = 100
WIDER = 4  # windows, for a folder above: a tree of random names has a pattern for each folder
WIDEST = 10  # windows, for the whole host
# of a doubtful page that leads nowhere new, and of one of a numbered list: such series may be long, and end
LEAF_COST = 0.125
IDLE_MOST = 3  # times what bred more: so far do pages count that lead nowhere new
GENERATIONS_CLEARED = 4  # an archive's years lead to months, these to days, these to stories
CONFIRMATIONS = 3  # equal texts under two values of a well-known session name before it is believed
# the same where only the value looks like a session's: a few log-in forms in a row are alike by chance
GUESS_CONFIRMATIONS = 8
MAX_PATTERNS = 4096  # kept per host: about 1 MB
MAX_DOUBTFUL = 200_000  # of which a host's detector knows how doubtful they are: some 20 MB
ENOUGH_BYTES = 600  # of new lines: of nearly every fresh page enough to tell that it is
MAX_LINES = 2000  # of one page are looked at
GENERATION = 1 << 16  # texts remembered of a host, in two generations: 1 MB, and half a MB in the store

_RESOURCE = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".avif", ".tif", ".tiff", ".bmp", ".mp3", ".mp4",
    ".webm", ".ogg", ".pdf",
             ".zip", ".gz", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".epub")  # fmt: skip
ALL, RESOURCES, BY_DOUBTFUL = -1, 0, 1  # kinds of lines: of any page, resources' addresses, what doubtful pages show
_FOLLOWED = link_codes(FOLLOWED_KINDS)
_PICTURES = frozenset({LinkKind.IMAGE, LinkKind.MEDIA, LinkKind.OBJECT})
# feeds, translations, next and previous: no sign of endlessness
_COMPANIONS = frozenset({LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED})
_FEEDS = frozenset(
    {"application/rss+xml", "application/atom+xml", "application/feed+json", "application/xml", "text/xml"}
)
_WORD = re.compile(r"[^\W\d_]+")
_SMALL_LETTERS = re.compile("[a-zà-öø-ɏа-џ]{5,}")  # long words or parts of such, met in a sixth of the time

_NO_CHANGES = TrapChanges()

VOUCHED, ONE_VOUCHER, NEAR, DEEP = 0, 1, 2, 3
"""How doubtful a URL is: not at all; one vouched page from another folder links to it;
only its vouched surroundings do; only doubtful pages do.
"""


@dataclass(slots=True)
class _Pattern:
    read: int = 0  # doubtful pages
    fresh: int = 0  # of them
    # doubtful pages since the latest fresh one that said what others had said and led to new addresses of this pattern
    bred: float = 0.0
    idle: float = 0.0  # those of this pattern that led nowhere new, each as LEAF_COST
    # the pattern of the latest doubtful page that was not fresh and showed the first link to one of this
    led_from: str = ""

    @property
    def debt(self) -> float:
        """Pages spent in vain.

        Those that lead nowhere new count as far as others lead to ever more of them: a long list is no endless one.
        """
        return self.bred + min(self.idle, IDLE_MOST * self.bred)


class Lesson(NamedTuple):
    """What a page taught. vouched_for: URLs met before, as doubtful, that may be asked for after all."""

    fresh: bool
    candidates: tuple[Candidate, ...]
    vouched_for: tuple[Url, ...]


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

    def refused(self, url: Url) -> str | None:
        bare = plain(url)
        if not bare.names:
            return None
        self._load()
        alike, needed = self._alike.get(bare.names, 0), CONFIRMATIONS if bare.well_known else GUESS_CONFIRMATIONS
        if alike < needed or alike <= 4 * self._different.get(bare.names, 0) or bare.url not in self._texts:
            return None
        return f"{bare.names}=*: the page was read under another {bare.names}"

    def _load(self) -> None:
        """Only when the host shows the first URL with a session id: most never do."""
        past, self._past = self._past, None
        for url, digest in past.texts() if past is not None else ():
            self.read(url, digest)

    @property
    def is_watching(self) -> bool:
        return self._past is None


class TrapDetector:
    """What one host's patterns have brought, and which of its URLs are refused.

    One object per host, held by its worker.

    Always:  (1) window 0 refuses nothing; (2) a URL that is vouched for is refused by no pattern; (3) a
             pattern that is the reason of
    a refusal had `window` doubtful pages read;  (4) the answers follow from what the store keeps and from
                                                 the pages read since, so a
    crawl that was killed goes on as if it had not been;  (5) memory is bounded, whatever comes.
    Not its business: fetching, the seen set, other hosts, robots.
    """

    def __init__(self, window: int, memory: TrapMemory, past: HostPast) -> None:
        """memory: as the store keeps it; past: what it can be asked beside."""
        self._window = window
        self._past = past
        self._patterns = {
            record.key: _Pattern(record.read, record.fresh, record.bred, record.idle, record.led_from)
            for record in memory.patterns
        }
        self._lines = LineMemory(GENERATION, memory.lines.first, _in_disk_order(memory.lines.keys))
        self._doubts = dict(memory.doubts)
        self._sessions = _Sessions(past)
        self._changed: set[str] = set()
        self._changed_doubts: dict[UrlId, int] = {}

    def admit(self, url: Url, doubt: int) -> str | None:
        """None when the URL may be fetched; else why not, in words for users.

        doubt: as stored. A refusal holds for now: when the host has nothing else left, ask again, and once
        more after a fresh page.
        """
        if not self._window:
            return None
        if ("?" in url or ";" in url or "/(" in url) and (refusal := self._sessions.refused(url)) is not None:
            return refusal
        if not doubt:
            return None
        own = url_patterns(url)
        for key in own:
            pattern = self._patterns.get(key)
            if (
                pattern is not None
                and pattern.read >= self._window
                and pattern.debt >= self._window * _windows_of(key, own[0])
            ):
                return f"{key}: {pattern.read - pattern.fresh} of {pattern.read} pages brought nothing new"
        return None

    def learn(self, url: Url, doubt: int, document: Document, candidates: tuple[Candidate, ...]) -> Lesson:
        """Books one page that was read.

        doubt: the URL's own. candidates: what its links offer; returned with who vouches for them.
        """
        if not self._window:
            return Lesson(True, candidates, ())
        self._doubts.pop(url_id(url), None)
        self._learn_session(url, document)
        fresh, repeats = self._is_fresh(url, document), bool(doubt) and self._repeats(url, document)
        vouches = fresh or (not doubt and document.media_type in _FEEDS)
        vouched_for = self._vouched_by(url, document, vouches=vouches, doubt=doubt)
        home = root_of(url)
        own = (
            [] if vouches else [one for one in candidates if one.reason is Reason.WAITING and one.url.startswith(home)]
        )
        known = self._past.seen([one.url_id for one in own]) if own else frozenset()
        companions = set(document.links.targets_of(_COMPANIONS)) if own else set()
        if doubt:
            bred = [] if fresh else [one.url for one in own if one.url_id not in known and one.url not in companions]
            self._book(url, bred, fresh=fresh, repeats=repeats)
        doubted = set()
        for one in own:
            is_companion = one.url in companions and not is_paging(url_patterns(one.url)[0])
            if level := doubt if is_companion else self._doubt_from(url, doubt, one.url):
                doubted.add(one.url_id)
                if one.url_id not in known:
                    self._note(one.url_id, level)
        marked = (
            tuple(replace(one, vouched=False) if one.url_id in doubted else one for one in candidates)
            if doubted
            else candidates
        )
        return Lesson(fresh, marked, vouched_for)

    def changes(self) -> TrapChanges:
        """What changed since this was last asked; given back as `memory` it goes on where this stopped."""
        if not (self._changed or self._changed_doubts or self._lines.new):
            return _NO_CHANGES  # of most hosts at most commits
        changed, self._changed = sorted(self._changed), set()
        doubts, self._changed_doubts = self._changed_doubts, {}
        records = []
        for key in changed:
            if (pattern := self._patterns.get(key)) is not None:
                records.append(
                    PatternRecord(key, pattern.read, pattern.fresh, pattern.bred, pattern.idle, pattern.led_from)
                )
        return TrapChanges(tuple(records), self._line_changes(), tuple(sorted(doubts.items())))

    def _line_changes(self) -> ShownLines:
        """What was added since last asked. Lines before `needed_from` are needed no longer."""
        new, count = self._lines.take_new(), self._lines.count
        return ShownLines(
            count - len(new),
            _in_disk_order(new.tobytes()).tobytes(),
            max(0, (count // GENERATION - 1) * GENERATION),
        )

    def _learn_session(self, url: Url, document: Document) -> None:
        """Pages without a session id teach too, once a host has shown one: the same page may have both addresses."""
        if self._sessions.is_watching or "?" in url or ";" in url or "/(" in url:
            self._sessions.read(url, document.digests.text)

    def _is_fresh(self, url: Url, document: Document) -> bool:
        """Whether the page shows what its host had not shown. All that it shows is remembered."""
        return self._shows_resource(document) | self._says_more(url, document, ALL)

    def _repeats(self, url: Url, document: Document) -> bool:
        """Whether a doubtful page says what doubtful pages have said before.

        The first copy of a text is no sign of an endless series: there are manuals that say everything twice.
        """
        return not self._says_more(url, document, BY_DOUBTFUL)

    def _says_more(self, url: Url, document: Document, kind: int) -> bool:
        """Whether FRESH_LETTERS of the text are new. kind: of the lines that they are compared with, and remembered
        among.
        """
        # Words with digits are ids, dates and counters: what a server invents for each answer holds them nearly always.
        text = document.text
        written = text.lower().encode() if text.isascii() else _lower().fold(text.encode("utf-8", "replace"))
        new = self._lines.new_lines(written, kind, MAX_LINES, False)
        if len(new) < FRESH_LETTERS:
            return False
        addresses = "\n".join((url, *document.links.targets))
        # most words stand in no address of the page, be it as a part of another word
        if "%" not in addresses and _has_letters_beside(new[:ENOUGH_BYTES], addresses.lower()):
            return True
        return _letters_beside(new.decode("utf-8", "replace"), _spelled(url, document)) >= FRESH_LETTERS

    def _shows_resource(self, document: Document) -> bool:
        """Whether there is a new picture or file among the links; its parameters aside,
        which often only defeat caches.
        """
        targets = {target.partition("?")[0] for target in document.links.targets}
        resources = {target for target in targets if target.lower().endswith(_RESOURCE)}
        resources |= {target.partition("?")[0] for target in document.links.targets_of(_PICTURES)}
        written = "\n".join(sorted(resources)).encode("utf-8", "replace")
        return bool(resources and self._lines.new_lines(written, RESOURCES, len(resources), True))

    def _doubt_from(self, source: Url, doubt: int, target: Url) -> int:
        """How doubtful a link makes its target that stands on a page that is not fresh and has this doubt itself."""
        if doubt:
            return DEEP
        here, there = folder_of(source), folder_of(target)
        return NEAR if here.startswith(there) or there.startswith(here) else ONE_VOUCHER

    def _vouched_by(self, url: Url, document: Document, *, vouches: bool, doubt: int) -> tuple[Url, ...]:
        """Of the URLs that are known as doubtful: those for which this page is the last voucher needed.

        Notes the others' new standing.
        """
        if not self._doubts or (doubt and not vouches):
            return ()
        cleared = []
        links = document.links
        for target, kind, nofollow in zip(links.targets, links.kinds, links.nofollow, strict=True):
            if kind not in _FOLLOWED or nofollow:
                continue
            identity = url_id(target)
            before = self._doubts.get(identity)
            if before is None:
                continue
            now = VOUCHED if vouches else self._doubt_from(url, doubt, target)
            if now == ONE_VOUCHER == before:
                now = VOUCHED
            if now < before:
                self._note(identity, now)
                if now == VOUCHED:
                    cleared.append(target)
        return tuple(dict.fromkeys(cleared))

    def _note(self, identity: UrlId, doubt: int) -> None:
        before = self._doubts.get(identity)
        if before is not None and before <= doubt:
            return
        self._changed_doubts[identity] = doubt
        if doubt == VOUCHED:
            self._doubts.pop(identity, None)
        elif before is not None or len(self._doubts) < MAX_DOUBTFUL:
            self._doubts[identity] = doubt

    def _book(self, url: Url, bred: Sequence[Url], *, fresh: bool, repeats: bool) -> None:
        """Credits or charges the patterns of a doubtful page.

        bred: the addresses on the host that it is the first to link to, its feeds, translations and neighbours aside;
        their patterns are charged with it.
        """
        own = url_patterns(url)
        leaves = {url_patterns(link)[0] for link in bred}
        cost = LEAF_COST if is_paging(own[0]) else 1.0
        for key in dict.fromkeys((*own, *sorted(leaves))):
            pattern = self._patterns.setdefault(key, _Pattern())
            if key in own:
                pattern.read += 1
                pattern.fresh += fresh
            if fresh and key in own:
                pattern.bred = pattern.idle = 0.0
            elif repeats and bred:
                pattern.bred += cost
            elif repeats and not fresh:
                pattern.idle += LEAF_COST
            self._changed.add(key)
        for leaf in sorted(leaves - {own[0]}):
            self._patterns.setdefault(leaf, _Pattern()).led_from = own[0]
            self._changed.add(leaf)
        if fresh:
            self._clear_those_that_led_to(own[0])
        if len(self._patterns) > MAX_PATTERNS:
            self._forget()

    def _clear_those_that_led_to(self, key: str) -> None:
        """A pattern is fresh to which pages led that said nothing new: they were worth their fetch,
        and so were those that led to them.
        """
        for _ in range(GENERATIONS_CLEARED):
            key = self._patterns[key].led_from
            if key not in self._patterns:
                return
            for wider in with_wider(key):
                if (pattern := self._patterns.get(wider)) is not None and (pattern.bred or pattern.idle):
                    pattern.bred = pattern.idle = 0.0
                    self._changed.add(wider)

    def _forget(self) -> None:
        """Drops half of the patterns: those without debt first, among equals the oldest."""
        keys = sorted((key for key in self._patterns if key != ROOT), key=lambda key: self._patterns[key].bred > 0)
        for key in keys[: MAX_PATTERNS // 2]:
            del self._patterns[key]


def _spelled(url: Url, document: Document) -> set[str]:
    """The words of a page's address, and of those that it links to on its host."""
    home = root_of(url)
    addresses = [url, *[target for target in document.links.targets if target.startswith(home)]]
    segments = set("/".join(addresses).split("/"))  # each once: a menu's addresses share most of theirs
    return set(_WORD.findall(unquote("/".join(segments)).lower()))


def _has_letters_beside(part: bytes, addresses: str) -> bool:
    """Whether the words of a part of a text that stand nowhere in the addresses have more than enough letters."""
    letters = 0
    for match in _SMALL_LETTERS.finditer(part.decode("utf-8", "replace")):
        word = match[0]
        if word not in addresses:
            letters += len(word)
            if letters >= FRESH_LETTERS:
                return True
    return False


def _letters_beside(text: str, spelled: set[str]) -> int:
    """How many letters the words of a text have, apart from some words."""
    return sum(map(len, filterfalse(spelled.__contains__, _WORD.findall(text))))


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


def _windows_of(key: str, own: str) -> int:
    """How many windows a pattern may owe."""
    return 1 if key == own else WIDEST if key == ROOT else WIDER
