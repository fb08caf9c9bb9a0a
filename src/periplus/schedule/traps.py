"""Which URLs of a host are no longer worth a fetch, because their families kept yielding nothing new?

A calendar, a facet search, a tree that answers any path: each makes new URLs for ever and says nothing new. No rule on
the text of a URL tells them from a manual or a wiki; what their pages bring does. So each page is judged, and the
judgement is booked on the families of its URL (`urls.families`): parameters, path, directories upwards.

A page is *fresh* when it has text that its host had not shown (apart from numbers, words of its own URL and links, and
mere recombinations of known words), a new image, or a new link into a family known to bring something new. The others are
*barren*. A barren page that adds new URLs of its own surroundings *breeds* and costs its family 1: only so can a trap be
endless. One that does not costs the share of its family's URLs that barren pages made up: nothing for the stubs of a manual,
nearly 1 for the days of endless months. A fresh page clears its families' debts, and that of the family which led to it.

A family is capped when its debt reaches `window`; or, while the host's purse is empty, already at PROBES or fewer. Each
fresh page pays ALLOWANCE into the purse, each barren page takes its cost out. So a large honest site is treated with the full
window, and a small site is not drowned in its traps: of n real pages and t traps, the waste stays near the greater of
ALLOWANCE * n and some four pages for each t. A family that brought more than it cost answers for itself; one without
such merit shares the cap of the family above it, but a parameter never tried before gets its probe.

All this judges addresses. A site that spells each page in many ways answers mostly what it said before, and its families are
capped with pages unseen: what several pages link to under several addresses is fetched once all the same (`schedule.vouching`).

What no such rule can see: a tree that writes ever new words on ever new pages. It looks like a site, and only budgets end it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import xxhash

from periplus.model.frontier import FamilyRecord
from periplus.model.web import Url
from periplus.schedule.vouching import Vouching
from periplus.urls.families import ROOT, Plain, families, is_paging, path_family, plain, with_names, with_wider

PROBES = 4  # barren pages before a cap, purse empty. 3 gains two pages of 380 on our mixed web; real archives begin with as many empty ones
PURSE_STEP = 1.0  # each page that the purse is short of takes one probe from families not yet capped, down to 1
PAGING_PROBES = 12  # for a family whose only parameter is a page's number: archives repeat what facets or sitemaps showed before
KINDS = 3  # families below a capped one that began barren, after which no further one gets a probe: shops have five to ten facets
ALLOWANCE = 0.005  # of the fresh pages may be wasted: with 0.01, calendar, tree, facets and sessions beside 374 pages left 94.9 % pages, not 95.2
TWIN_COST = 0.1  # least cost of a barren page whose text another page had: the default window of them weighs as PROBES breeders
PATIENCE = 5  # fresh pages that earn their family one more barren page in a row: a proven family is not closed by a few stubs
STEP_UP = 0.5  # share of a cost that reaches the next directory above: a trap does not close its neighbours
FRESH_LETTERS = 12  # in words that the host had not shown: more than a month's or weekday's name, less than most titles
LONG_FRESH_LETTERS = 100  # in new lines of known words: more than a facet's heading. 200 found 847 of cppreference's 4,252 pages barren, 100: 389
PROVEN = 48  # fresh pages without a barren one, after which a family's pages are looked at one in LOOK_EVERY
LOOK_EVERY = 4  # looking at each page of a manual took 370 us of its 4,400; a trap that begins late costs LOOK_EVERY - 1 pages more
SAMPLE_LETTERS = 1000  # of a page's new lines are looked at, and VOCABULARY_WORDS of a fresh page remembered: they bound the time
VOCABULARY_WORDS = 60
CONFIRMATIONS = 3  # equal texts under two tokens before a well-known session name is believed
GUESS_CONFIRMATIONS = 8  # the same where only the value looks like a token: a few log-in forms in a row are alike by chance
REFUND_AFTER = 2  # fresh pages: one alone may be only the first of a template, as the first day page of a calendar
GENERATIONS_CLEARED = 4  # an archive's years lead to months, these to days, these to stories
GENERATION = 1 << 14  # lines, words, pages remembered, each in two generations: below 2.5 MB of lines on the largest host
MAX_FAMILIES = 4096  # kept per host: about 1 MB
COLD_PAGES = 30  # first pages after a resume, when all text looks new: they clear no debt

_DIGITS = b"0123456789"
_LETTERS = bytes(code if code >= 128 or chr(code).isalpha() or chr(code) in "_\n" else 32 for code in range(256)).lower()
_RESOURCE = re.compile(r"\.(?:jpe?g|png|gif|webp|svg|avif|tiff?|bmp|mp[34]|webm|ogg|pdf|zip|gz|docx?|xlsx?|pptx?|epub)\Z", re.IGNORECASE)


@dataclass(slots=True)
class _Family:
    fetched: int = 0
    fresh: int = 0
    cost: float = 0.0
    debt: float = 0.0
    shown: int = 0
    shown_barren: int = 0
    barren_kinds: int = 0
    made_by: str = ""

    @property
    def has_merit(self) -> bool:
        return self.fresh > self.cost


class _Recent:
    """A set that forgets what it did not meet for one to two generations. Forgetting makes known things look new, never the reverse."""

    def __init__(self) -> None:
        self._young: set[int] = set()
        self._old: set[int] = set()

    def fresh(self, items: Sequence[bytes]) -> list[bytes]:
        """Those not met before, in order, once each. All are remembered."""
        keyed = dict(zip(map(hash, items), items, strict=True))  # 64 bits, never stored: the seed of `hash` cannot matter
        new = keyed.keys() - self._young
        if not new:
            return []
        unseen = new - self._old
        self._young |= new
        if len(self._young) > GENERATION:
            self._old, self._young = self._young, set()
        return [item for key, item in keyed.items() if key in unseen] if unseen else []


class _Sessions:
    """Which tokens in URLs name no other page: learned from equal texts of URLs that differ in the token only."""

    def __init__(self) -> None:
        self.rules: dict[str, _Family] = {}
        self._texts: dict[int, int] = {}  # plain URL -> text, of the latest GENERATION pages
        self._shown = _Recent()  # plain URLs of links with tokens

    def believed(self, bare: Plain) -> bool:
        rule = self.rules.get(bare.names)
        needed = CONFIRMATIONS if bare.well_known else GUESS_CONFIRMATIONS
        return rule is not None and rule.cost >= needed and rule.cost > 4 * rule.fresh

    def fetched(self, bare: Plain) -> bool:
        return xxhash.xxh3_64_intdigest(bare.url.encode()) in self._texts

    def repeats(self, bare: Plain, letters: bytes) -> bool:
        """True when the page was fetched before under another token, with the same text. Books the token's rule."""
        key, text = xxhash.xxh3_64_intdigest(bare.url.encode()), xxhash.xxh3_64_intdigest(letters)
        before = self._texts.pop(key, None)
        self._texts[key] = text
        if len(self._texts) > GENERATION:
            del self._texts[next(iter(self._texts))]
        if not bare.names or before is None:
            return False
        rule = self.rules.setdefault(bare.names, _Family())
        rule.fetched += 1
        rule.cost += before == text
        rule.fresh += before != text
        return before == text

    def is_new(self, link: Url) -> bool:
        """Whether the link, tokens aside, is one that no page had shown. Links without tokens are: the caller says so."""
        bare = plain(link)
        return not bare.names or not (self.fetched(bare) or not self._shown.fresh([bare.url.encode()]))


class TrapWatch:
    """What one host's families have brought, and which of them are capped. One object per host, held by its worker.

    States of a family:  unjudged -> open (its last page was fresh) <-> in debt <-> capped (debt at its limit). A cap ends when a
    fresh page of the family, or of one that it led to, clears the debt, or when the purse fills before the window is used up.
    A page that others vouch for (`schedule.vouching`) is admitted once, whatever its families' debts.
    Always:  (1) window 0 caps nothing;  (2) a family whose debt is 0 is never the reason of a refusal;  (3) a debt never
    exceeds window + fresh / PATIENCE + 1;  (4) the same calls give the same answers;  (5) memory is bounded, whatever comes.
    Not its business: fetching, the seen set, other hosts, robots.
    """

    def __init__(self, window: int, known: Iterable[FamilyRecord] = ()) -> None:
        self._window = window
        self._families: dict[str, _Family] = {}
        self._parameters: dict[str, set[str]] = {}  # of a family `path?**`: those that fetched pages had
        self._sessions = _Sessions()
        self._vouching = Vouching()
        self._changed: set[str] = set()
        for record in known:
            place = self._sessions.rules if record.key.startswith("&") else self._families
            place[record.key.removeprefix("&")] = _Family(
                record.fetched, record.fresh, record.cost, record.debt, record.shown, record.shown_barren, record.barren_kinds, record.made_by
            )
            if record.fetched:
                self._note_parameters(record.key)
        self._cold = COLD_PAGES if self._families else 0
        self._host = self._families.setdefault(ROOT, _Family())
        self._lines, self._words, self._texts, self._resources = _Recent(), _Recent(), _Recent(), _Recent()

    def admit(self, url: Url) -> str | None:
        """None when the URL may be fetched; else why not, in words for users.

        To be asked when the URL's turn comes: what was known when its link was found is older. A refusal holds for now: when
        the host has nothing else left, ask again for those refused, and once more after a page that `learn` calls fresh.
        """
        if not self._window:
            return None
        bare = plain(url)
        if bare.names and self._sessions.believed(bare) and self._sessions.fetched(bare):
            return f"{bare.names}=*: the page was fetched under another {bare.names}"
        if not self._host.cost:
            return None
        own = families(url)
        for key in own:
            family = self._families.get(key)
            if family is None:
                continue
            if family.debt and family.debt >= self._limit(key, family):
                if self._deserves_probe(family, own[0]):
                    continue
                if self._vouching.is_due(url, self._host.fresh):
                    return None
                return f"{key}: {family.fetched - family.fresh} of {family.fetched} pages brought nothing new"
            if family.has_merit or is_paging(key):
                return None
        return None

    def page_of(self, url: Url) -> Url:
        """The URL without tokens that proved idle: a key for the seen set. Fetch the URL itself, servers may insist on a token."""
        bare = plain(url)
        return bare.url if bare.names and self._sessions.believed(bare) else url

    def learn(self, url: Url, text: str, new_links: Sequence[Url]) -> bool:
        """Book one fetched page; True when it was fresh.

        text: blocks parted by newlines, as `Document.text`. new_links: pages and images of this host that no page had linked to before.
        """
        if not self._window:
            return True
        bare = plain(url)
        own = families(url)
        was_due = self._vouching.fetched(url)
        if not bare.names and self._is_proven(own[0]):
            self._book_links(own[0], [families(link)[0] for link in new_links if not _RESOURCE.search(link.partition("?")[0])], True)
            self._book(own, True, 0.0)
            return True
        letters = _letters(text)
        new_lines = self._lines.fresh(letters.split(b"\n"))
        if self._sessions.repeats(bare, letters):  # its rule answers for it, not its families, which may be the whole site
            self._changed.add("&" + bare.names)
            self._host.cost += 1
            return False
        named = {link: families(link) for link in new_links if not _RESOURCE.search(link.partition("?")[0])}
        may_cap = self._host.cost > 0 or self._host.fetched < PROVEN  # beyond, a host without barren pages need not be watched so
        unknown = may_cap and self._vouching.linked(url, named)
        links = [link for link in new_links if self._sessions.is_new(link)]
        pages = [(link, named[link]) for link in links if link in named]
        near = [link for link, theirs in pages if theirs[0] == own[0] or not set(theirs[:-1]).isdisjoint(own)]
        leaves = [theirs[0] for _, theirs in pages]
        fresh = self._says_something(new_lines, [url, *near]) | self._shows_resource(links) | self._leads_on(own[0], leaves)
        cost = self._cost(own[0], letters, 1.0 if near else 0.0 if self._promises(leaves) else None)
        if was_due and unknown and not fresh:
            self._vouching.bred()
        self._book_links(own[0], leaves, fresh)
        self._cold = max(0, self._cold - 1)
        self._book(own, fresh, cost)
        if len(self._families) > MAX_FAMILIES:
            self._forget()
        return fresh

    def records(self) -> list[FamilyRecord]:
        """What changed since this was last asked, in the order of keys; given back as `known` they go on where this stopped."""
        changed, self._changed = sorted(self._changed), set()
        found = []
        for key in changed:
            family = self._sessions.rules.get(key[1:]) if key.startswith("&") else self._families.get(key)
            if family is not None:
                found.append(
                    FamilyRecord(
                        key, family.fetched, family.fresh, family.cost, family.debt, family.shown, family.shown_barren, family.barren_kinds, family.made_by
                    )
                )
        return found

    def _limit(self, key: str, family: _Family) -> float:
        """The debt at which a family is capped, in pages."""
        limit = float(self._window)
        purse = ALLOWANCE * self._host.fresh - self._host.cost
        if purse < 0 and key != ROOT:
            limit = min(limit, PAGING_PROBES if is_paging(key) else max(1.0, PROBES - int(-purse / PURSE_STEP)))
        return limit + family.fresh // PATIENCE

    def _is_proven(self, own: str) -> bool:
        """Whether a page may be taken for fresh unseen: all pages of its family were, and this is not one of those looked at."""
        family = self._families.get(own)
        return family is not None and not family.cost and family.fresh >= PROVEN and family.fetched % LOOK_EVERY != 0

    def _deserves_probe(self, capped: _Family, own: str) -> bool:
        """Whether a family below a capped one has nothing against it, and not too many of its siblings began barren."""
        if capped.barren_kinds >= KINDS:
            return False
        family = self._families.get(own)
        if family is not None and family.fetched:
            return not family.cost
        return not with_names(own) or not self._parameters.get(path_family(own), set()).issuperset(with_names(own))

    def _says_something(self, new_lines: list[bytes], urls: list[Url]) -> bool:
        """Whether new lines say more than these URLs and known words do."""
        if not new_lines:
            return False
        spelled = set(_letters(" ".join(urls)).split())
        words = [word for word in b" ".join(new_lines)[:SAMPLE_LETTERS].split() if word not in spelled]
        unknown = self._words.fresh(words[:VOCABULARY_WORDS])
        return sum(map(len, words)) >= LONG_FRESH_LETTERS or sum(map(len, unknown)) >= FRESH_LETTERS

    def _shows_resource(self, links: list[Url]) -> bool:
        """Whether there is a new image or file among the links; its parameters aside, which often only defeat caches."""
        paths = [path for path in (link.partition("?")[0] for link in links) if _RESOURCE.search(path)]
        return bool(self._resources.fresh([path.encode() for path in paths]))

    def _leads_on(self, own: str, leaves: list[str]) -> bool:
        """Whether a link leads into another family that proved its worth."""
        others = (self._families.get(leaf) for leaf in set(leaves) - {own, ROOT})
        return any(family is not None and not family.debt and family.has_merit for family in others)

    def _promises(self, leaves: list[str]) -> bool:
        """Whether a link leads into a family of which nothing is known yet."""
        return any(leaf not in self._families or not self._families[leaf].fetched for leaf in leaves)

    def _cost(self, own: str, letters: bytes, decided: float | None) -> float:
        """What the page costs its family if it is barren, 0 to 1; decided: by its links, if they do."""
        twin = not self._texts.fresh([letters])
        if decided is not None:
            return decided
        family = self._families.get(own)
        heritage = family.shown_barren / family.shown if family is not None and family.shown else 0.0
        return max(heritage, TWIN_COST if twin else 0.0)

    def _book_links(self, own: str, leaves: list[str], fresh: bool) -> None:
        for leaf in leaves:
            family = self._families.setdefault(leaf, _Family())
            if not fresh and leaf != own:
                family.made_by = own
            family.shown += 1
            family.shown_barren += not fresh and leaf != own
            self._changed.add(leaf)

    def _book(self, own: tuple[str, ...], fresh: bool, cost: float) -> None:
        """Credit or charge the families, the narrowest first."""
        self._note_parameters(own[0])
        share = cost
        begins = False
        for key in own:
            family = self._families.setdefault(key, _Family())
            family.barren_kinds += begins and not fresh
            begins = begins or (key == own[0] and not family.fetched)
            family.fetched += 1
            if fresh:
                family.fresh += 1
            else:
                family.debt += share
                family.cost += cost if key == ROOT else share
                share *= 1.0 if path_family(key) else STEP_UP
            self._changed.add(key)
        if fresh and not self._cold:
            self._clear(own)
            if self._families[own[0]].fresh >= REFUND_AFTER:
                self._refund(own[0])

    def _clear(self, own: tuple[str, ...]) -> None:
        """End the debts of a fresh page's families."""
        for key in own:
            family = self._families.get(key)
            if family is not None and family.debt:
                family.debt = 0.0
                self._changed.add(key)

    def _refund(self, key: str) -> None:
        """A family is fresh to which barren pages led: those pages were worth their fetch, and so were those that led to them."""
        for _ in range(GENERATIONS_CLEARED):
            maker, self._families[key].made_by = self._families[key].made_by, ""
            family = self._families.get(maker)
            if family is None:
                return
            self._clear(with_wider(maker))
            self._host.cost -= family.cost
            family.cost = 0.0
            family.fresh = family.fetched
            self._changed.update((key, maker, ROOT))
            key = maker

    def _note_parameters(self, key: str) -> None:
        if path_family(key):
            self._parameters.setdefault(path_family(key), set()).update(with_names(key))

    def _forget(self) -> None:
        """Drop half of the families: those without debt first, among equals the oldest."""
        keys = sorted((key for key in self._families if key != ROOT), key=lambda key: self._families[key].debt > 0)
        for key in keys[: MAX_FAMILIES // 2]:
            del self._families[key]
            self._parameters.pop(key, None)


def _letters(text: str) -> bytes:
    """The text in lower-case words and lines: digits gone, punctuation as spaces. Letters beyond ASCII stay as they are."""
    return text.encode("utf-8", "replace").translate(_LETTERS, _DIGITS)
