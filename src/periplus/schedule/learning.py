"""Learns which addresses of one site are only other addresses of a page that was fetched, while crawling.

States of a finding (differences in a place, see `urls.aliases`):
suspected (two pages of equal text differ so) -> confirmed (enough pairs of equal text, of different pages, none
against) -> refuted (one pair of different texts); suspected -> refuted. No way back.
Always:
(1) a URL is called another's only when that other was fetched, so no address is made up;
(2) nothing unconfirmed is applied;
(3) what was skipped because of a finding that falls is given back;
(4) of what a finding would skip, one URL in PROBED is fetched all the same, so that a wrong finding falls; which ones
    follows from the URL, so that a crawl that was killed probes the same;
(5) memory is bounded; what is forgotten costs fetches, never pages.
Not its business: fetching, the seen set, rules that a person wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import xxhash

from periplus.model.web import AliasTarget, Retraction, Url
from periplus.urls.aliases import (
    MOST_DIFFERENCES,
    Difference,
    differences_between,
    is_well_known,
    place,
    without,
    words,
)
from periplus.urls.hosts import path_and_query

CONFIRMATIONS = 5  # as in `analyse.equivalences`
KNOWN_CONFIRMATIONS = 3  # for sessions and campaigns, as the trap detector has it
TEXTS = 2  # different ones among the confirming pairs: log-in forms are all alike
PLACES_FOR_SITE = 3  # places that agree, before one pair is enough elsewhere on the site
PROBED = 24  # of so many URLs that would be skipped one is fetched all the same
PAGES = 32_768  # remembered per site: about 10 MB of URLs
COMPARED = 4  # latest pages of one text that a new one is compared with: more only matter where all pages are alike
MOST_FINDINGS = 256  # suspected per site; more means that parameters are invented
SKIPPED = 100_000  # given back from memory per finding; the store knows them all by the finding's name


@dataclass(slots=True)
class _Finding:
    place: str
    differences: frozenset[Difference]
    same: int = 0
    texts: set[bytes] = field(default_factory=set)  # of confirming pairs, TEXTS at most
    groups: dict[str, tuple[bytes, Url]] = field(default_factory=dict)  # URL without the differences -> the latest page
    confirmed: bool = False
    refuted: bool = False
    skipped: dict[Url, None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"learned: {words(self.differences)} on {self.place}"


class AliasLearner:
    """What one site's fetched pages say about its addresses."""

    def __init__(self, confirmations: int = CONFIRMATIONS) -> None:
        self._needed = confirmations
        self._pages: dict[Url, bytes] = {}  # URL -> text, oldest first
        self._alike: dict[bytes, list[Url]] = {}
        self._findings: dict[tuple[str, frozenset[Difference]], _Finding] = {}
        self._by_differences: dict[frozenset[Difference], list[_Finding]] = {}
        self._confirmed: set[frozenset[Difference]] = set()  # differences with a confirmed finding anywhere
        self._fetched: dict[str, Url] = {}  # URL as it is without what is confirmed -> the page

    @property
    def findings(self) -> tuple[str, ...]:
        """The confirmed ones, by name."""
        return tuple(sorted(finding.name for finding in self._findings.values() if finding.confirmed))

    def target_of(self, url: Url) -> AliasTarget:
        """The fetched page that this URL is another address of, with the reason; else the URL itself.

        May be asked any number of times: when a link is found, and when its turn comes.
        """
        if not self._confirmed or url in self._pages or _is_probe(url):
            return AliasTarget(url)
        held = list(self._holding(url))
        if not held:
            return AliasTarget(url)
        page = self._fetched.get(self._key(url, held))
        if page is None or page == url:
            return AliasTarget(url)
        apart = differences_between(page, url) or frozenset[Difference]()
        reasons = [finding for finding in held if not finding.differences.isdisjoint(apart)]
        if not reasons:
            return AliasTarget(url)
        for finding in reasons:
            if len(finding.skipped) < SKIPPED:
                finding.skipped[url] = None
        return AliasTarget(page, tuple(finding.name for finding in reasons))

    def learn(self, url: Url, text_digest: bytes) -> tuple[Retraction, ...]:
        """Books a fetched page. Returns the findings that fell by it."""
        if not text_digest or url in self._pages:
            self._pages[url] = text_digest or self._pages.get(url, b"")
            return ()
        alike = self._alike.setdefault(text_digest, [])
        suspects = [apart for page in alike[-COMPARED:] if (apart := differences_between(page, url))]
        self._remember(url, text_digest, alike)
        fallen = self._book(url, text_digest)
        for apart in suspects:
            self._suspect(url, apart)
        self._judge(url)
        if self._confirmed:
            self._fetched.setdefault(self._key(url, list(self._holding(url))), url)
        return fallen

    def _remember(self, url: Url, digest: bytes, alike: list[Url]) -> None:
        self._pages[url] = digest
        alike.append(url)
        del alike[:-COMPARED]
        if len(self._pages) > PAGES:
            oldest = next(iter(self._pages))
            self._alike.pop(self._pages.pop(oldest), None)

    def _holding(self, url: Url) -> Iterator[_Finding]:
        """The confirmed findings that hold at a URL: of its place; or of the site,
        when enough places agree and this one does not differ.
        """
        for differences in self._confirmed:
            where = place(url, differences)
            own = self._findings.get((where, differences))
            if own is not None:
                if own.confirmed:
                    yield own
            elif is_well_known(differences):
                wide = [finding for finding in self._by_differences[differences] if finding.confirmed]
                if wide and not any(finding.refuted for finding in self._by_differences[differences]):
                    yield wide[0]

    def _key(self, url: Url, held: list[_Finding]) -> str:
        return without(url, frozenset(difference for finding in held for difference in finding.differences))

    def _suspect(self, url: Url, apart: frozenset[Difference]) -> None:
        """A new finding, weighed at once by all pages that are remembered."""
        seen_through = {difference for finding in self._holding(url) for difference in finding.differences}
        differences = apart - seen_through
        key = (place(url, differences), differences)
        if (
            not 0 < len(differences) <= MOST_DIFFERENCES
            or key in self._findings
            or len(self._findings) >= MOST_FINDINGS
            or self._is_refuted_in_part(key)
        ):
            return
        finding = self._findings[key] = _Finding(*key)
        self._by_differences.setdefault(differences, []).append(finding)
        for page, digest in self._pages.items():
            if place(page, differences) == finding.place and not self._weigh(finding, page, digest):
                break

    def _is_refuted_in_part(self, key: tuple[str, frozenset[Difference]]) -> bool:
        return any(
            finding.refuted and finding.place == key[0] and finding.differences < key[1]
            for finding in self._findings.values()
        )

    def _weigh(self, finding: _Finding, url: Url, digest: bytes) -> bool:
        """One page's word on a finding; False when it refutes it."""
        key = self._key(url, [finding, *(other for other in self._holding(url) if other is not finding)])
        before = finding.groups.get(key)
        finding.groups[key] = (digest, url)
        if before is None or before[1] == url:
            return True
        apart = differences_between(before[1], url)
        if apart is None or apart.isdisjoint(finding.differences):
            return True
        if before[0] != digest:
            self._refute(finding)
            return False
        if finding.differences <= apart:  # only then does the pair speak for each of the differences
            finding.same += 1
            if len(finding.texts) < TEXTS:
                finding.texts.add(digest)
        return True

    def _refute(self, finding: _Finding) -> None:
        finding.refuted, finding.confirmed = True, False
        finding.groups.clear()

    def _book(self, url: Url, digest: bytes) -> tuple[Retraction, ...]:
        """The page's word on all findings of its places. Returns those that were confirmed and fell."""
        fallen = []
        for differences in list(self._by_differences):
            finding = self._findings.get((place(url, differences), differences))
            if finding is None or finding.refuted:
                continue
            was = finding.confirmed
            if not self._weigh(finding, url, digest) and was:
                fallen.append(finding)
        fallen += self._fallen_elsewhere(url, digest)
        if not fallen:
            return ()
        self._reindex()
        given_back = tuple(Retraction(finding.name, tuple(finding.skipped)) for finding in fallen)
        for finding in fallen:
            finding.skipped.clear()
        return given_back

    def _fallen_elsewhere(self, url: Url, digest: bytes) -> list[_Finding]:
        """Findings of other places that were applied here, to a page that they do not fit."""
        held = list(self._holding(url))
        page = self._fetched.get(self._key(url, held)) if held else None
        if page is None or page == url or self._pages.get(page, digest) == digest:
            return []
        apart = differences_between(page, url) or frozenset[Difference]()
        guilty = [finding for finding in held if not finding.differences.isdisjoint(apart)]
        for finding in guilty:
            self._refute(finding)
        return guilty

    def _judge(self, url: Url) -> None:
        """Confirms what has enough pairs by now."""
        changed = False
        for differences, findings in self._by_differences.items():
            finding = self._findings.get((place(url, differences), differences))
            if finding is None or finding.confirmed or finding.refuted:
                continue
            agreeing = sum(other.confirmed for other in findings)
            against = any(other.refuted for other in findings)
            needed = min(self._needed, KNOWN_CONFIRMATIONS) if is_well_known(differences) else self._needed
            enough = finding.same >= needed and len(finding.texts) >= TEXTS
            if enough or (finding.same and agreeing >= PLACES_FOR_SITE and not against):
                finding.confirmed = changed = True
        if changed:
            self._reindex()

    def _reindex(self) -> None:
        """After what is confirmed has changed: pages by their addresses without it."""
        self._confirmed = {finding.differences for finding in self._findings.values() if finding.confirmed}
        self._fetched = {}
        for page in self._pages:
            held = list(self._holding(page))
            if held:
                self._fetched.setdefault(self._key(page, held), page)


def _is_probe(url: Url) -> bool:
    """Whether a URL is fetched whatever was learned."""
    return xxhash.xxh32_intdigest(path_and_query(url).encode()) % PROBED == 0
