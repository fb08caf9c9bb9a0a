"""Learns during a crawl which URLs of a site are aliases of pages that were fetched.

States of a finding (a set of URL differences at a place, see `urls.aliases`):
suspected (two pages of equal text differ so) -> confirmed (enough pairs of equal text, with different texts, and no
counterexample) -> refuted (one pair of different texts); suspected -> refuted. A refuted finding stays refuted.
Invariants:
(1) a URL is an alias only of a page that was fetched, so no URL is invented;
(2) unconfirmed findings are not applied;
(3) URLs that were skipped because of a finding are returned when it is refuted;
(4) one in PROBE_INTERVAL of the URLs that a finding would skip is fetched, so that wrong findings are refuted; the
    choice is a hash of the URL, so a resumed crawl probes the same URLs;
(5) memory is bounded; forgotten data costs additional fetches, but no pages.
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
KNOWN_CONFIRMATIONS = 3  # for session and campaign parameters, as in the trap detector
TEXTS = 2  # different texts among the confirming pairs, since log-in forms are all equal
PLACES_FOR_SITE = 3  # confirmed places, after which one pair is enough elsewhere on the site
PROBE_INTERVAL = 24  # one of so many URLs that would be skipped is fetched
PAGES = 32_768  # remembered per site: about 10 MB of URLs
COMPARISON_PAGES = 4  # latest pages of equal text that a new page is compared with
MOST_FINDINGS = 256  # suspected per site; with more, parameters are arbitrary
MOST_SKIPPED_URLS = 100_000  # URLs kept in memory per finding; the store has all of them by the finding's name


@dataclass(slots=True)
class _Finding:
    place: str
    differences: frozenset[Difference]
    same: int = 0
    texts: set[bytes] = field(default_factory=set)  # of confirming pairs, at most TEXTS
    groups: dict[str, tuple[bytes, Url]] = field(default_factory=dict)  # URL without the differences -> the latest page
    confirmed: bool = False
    refuted: bool = False
    skipped: dict[Url, None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"learned: {words(self.differences)} on {self.place}"


class AliasLearner:
    """`model.web.AliasDetection` of one site."""

    def __init__(self, confirmations: int = CONFIRMATIONS) -> None:
        self._needed = confirmations
        self._pages: dict[Url, bytes] = {}  # URL -> text, oldest first
        self._alike: dict[bytes, list[Url]] = {}
        self._findings: dict[tuple[str, frozenset[Difference]], _Finding] = {}
        self._by_differences: dict[frozenset[Difference], list[_Finding]] = {}
        self._confirmed: set[frozenset[Difference]] = set()  # differences with a confirmed finding anywhere
        self._fetched: dict[str, Url] = {}  # URL without the confirmed differences -> the page

    @property
    def findings(self) -> tuple[str, ...]:
        """Names of the confirmed findings, sorted."""
        return tuple(sorted(finding.name for finding in self._findings.values() if finding.confirmed))

    def target_of(self, url: Url) -> AliasTarget:
        """The fetched page of which this URL is an alias, with the reasons; else the URL itself.

        Called when a link is found, and again before it is fetched.
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
            if len(finding.skipped) < MOST_SKIPPED_URLS:
                finding.skipped[url] = None
        return AliasTarget(page, tuple(finding.name for finding in reasons))

    def learn(self, url: Url, text_digest: bytes) -> tuple[Retraction, ...]:
        """Records a fetched page. Returns the confirmed findings that it refutes."""
        if not text_digest or url in self._pages:
            self._pages[url] = text_digest or self._pages.get(url, b"")
            return ()
        alike = self._alike.setdefault(text_digest, [])
        suspects = [apart for page in alike[-COMPARISON_PAGES:] if (apart := differences_between(page, url))]
        self._remember(url, text_digest, alike)
        retracted = self._book(url, text_digest)
        for apart in suspects:
            self._suspect(url, apart)
        self._judge(url)
        if self._confirmed:
            self._fetched.setdefault(self._key(url, list(self._holding(url))), url)
        return retracted

    def _remember(self, url: Url, digest: bytes, alike: list[Url]) -> None:
        self._pages[url] = digest
        alike.append(url)
        del alike[:-COMPARISON_PAGES]
        if len(self._pages) > PAGES:
            oldest = next(iter(self._pages))
            self._alike.pop(self._pages.pop(oldest), None)

    def _holding(self, url: Url) -> Iterator[_Finding]:
        """The confirmed findings that apply to a URL: of its place, or of the site for well-known parameters if its
        place has no finding and no place refutes it.
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
        """Adds a finding, and tests it on all remembered pages."""
        seen_through = {difference for finding in self._holding(url) for difference in finding.differences}
        differences = apart - seen_through
        key = (place(url, differences), differences)
        if (
            not 0 < len(differences) <= MOST_DIFFERENCES
            or key in self._findings
            or len(self._findings) >= MOST_FINDINGS
            or any(
                finding.refuted and finding.place == key[0] and finding.differences < key[1]
                for finding in self._findings.values()
            )
        ):
            return
        finding = self._findings[key] = _Finding(*key)
        self._by_differences.setdefault(differences, []).append(finding)
        for page, digest in self._pages.items():
            if place(page, differences) == finding.place and not self._weigh(finding, page, digest):
                break

    def _weigh(self, finding: _Finding, url: Url, digest: bytes) -> bool:
        """Tests a finding on one page; False if the page refutes it."""
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
        if finding.differences <= apart:  # only then is the pair evidence for each of the differences
            finding.same += 1
            if len(finding.texts) < TEXTS:
                finding.texts.add(digest)
        return True

    def _refute(self, finding: _Finding) -> None:
        finding.refuted, finding.confirmed = True, False
        finding.groups.clear()

    def _book(self, url: Url, digest: bytes) -> tuple[Retraction, ...]:
        """Tests all findings of the page's places. Returns the confirmed ones that it refutes."""
        refuted = []
        for differences in list(self._by_differences):
            finding = self._findings.get((place(url, differences), differences))
            if finding is None or finding.refuted:
                continue
            was = finding.confirmed
            if not self._weigh(finding, url, digest) and was:
                refuted.append(finding)
        refuted += self._refute_findings(url, digest)
        if not refuted:
            return ()
        self._reindex()
        retractions = tuple(Retraction(finding.name, tuple(finding.skipped)) for finding in refuted)
        for finding in refuted:
            finding.skipped.clear()
        return retractions

    def _refute_findings(self, url: Url, digest: bytes) -> list[_Finding]:
        """Refutes findings of other places that would map this page to a page of different text."""
        held = list(self._holding(url))
        page = self._fetched.get(self._key(url, held)) if held else None
        if page is None or page == url or self._pages.get(page, digest) == digest:
            return []
        apart = differences_between(page, url) or frozenset[Difference]()
        wrong = [finding for finding in held if not finding.differences.isdisjoint(apart)]
        for finding in wrong:
            self._refute(finding)
        return wrong

    def _judge(self, url: Url) -> None:
        """Confirms the findings of the URL's places that have enough pairs."""
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
        """Rebuilds the index of pages by URL without confirmed differences."""
        self._confirmed = {finding.differences for finding in self._findings.values() if finding.confirmed}
        self._fetched = {}
        for page in self._pages:
            held = list(self._holding(page))
            if held:
                self._fetched.setdefault(self._key(page, held), page)


def _is_probe(url: Url) -> bool:
    """Whether a URL is always fetched, to test the findings."""
    return xxhash.xxh32_intdigest(path_and_query(url).encode()) % PROBE_INTERVAL == 0
