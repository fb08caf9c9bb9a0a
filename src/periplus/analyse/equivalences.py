"""Finds URL parameters and spellings that never changed the content, and writes them as rules for periplus.toml."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from periplus.model.web import SiteKey, Url
from periplus.urls.aliases import (
    MOST_DIFFERENCES,
    ORDER,
    SCHEME,
    SLASH,
    WWW,
    Difference,
    differences_between,
    differences_of,
    is_well_known,
    place,
    without,
    words,
)
from periplus.urls.scope import site_key
from periplus.urls.url_patterns import mask
from periplus.values import frozen

# Pages are paired by grouping their URLs with one difference removed (see `urls.aliases`). Pairs with equal text
# support a rule; a single pair with different text rules it out. Differences that always occur together (a session and
# a time stamp in every link) are found by comparing pages with equal text, and are judged as a set. The work is
# proportional to pages times differences.

# Pairs with equal text required for a rule: the trap detector requires 8, but accepts pairs of the same page
CONFIRMATIONS = 5
PAGES = 2  # with distinct texts, among the pairs: all login forms are alike, whatever their parameters mean
ROUNDS = 4  # a difference may hide another: sessions are removed first, then the differences that they hid
NEAR = 0.95  # share of common shingles from which two texts are nearly equal (as in C3 of the duplicates)
FEWEST_SHINGLES = 24  # too few shingles to measure similarity
MOST_NAMES = 64  # parameters judged per site: a site with more generates their names
EXAMPLES = 3
PLACES_FOR_SITE = 3  # scripts or folders that must agree before a parameter is ignored on the whole site
_FORMS = ("www", "scheme", "slash")


class SeenPage(NamedTuple):
    """A fetched page, reduced to what is compared.

    shingles: sampled by value, the same sample for all pages; None: unknown.
    """

    url: Url
    text_digest: bytes
    shingles: frozenset[int] | None = None


class DifferenceVerdict(StrEnum):
    """The result of comparing the pairs."""

    SAME = "one page"  # enough equal pairs, no different ones
    NEAR = "nearly one page"  # all different pairs are nearly equal: a person has to decide
    DIFFERENT = "other pages"  # the difference changes the page
    UNKNOWN = "too few pairs"


@frozen
class Proposal:
    """The result for a difference, or for a set that always occurs together, with example pairs."""

    site: SiteKey
    place: str  # path pattern; /** for the whole site
    differences: frozenset[Difference]
    verdict: DifferenceVerdict
    same: int  # pairs with equal text
    near: int  # pairs with nearly equal text, included in `different`
    different: int
    pages: int  # distinct texts among the equal pairs
    examples: tuple[tuple[Url, Url], ...]  # pairs that decided the verdict
    paths: tuple[str, ...]  # paths of the script, as written in rules
    prefer: str = ""  # www, scheme, slash: drop, add, https or http, whichever most pages have

    @property
    def sentence(self) -> str:
        """The proposal as a sentence for users."""
        what = words(self.differences)
        where = self.site if self.place == "/**" else f"{self.site}{self.place}"
        kind = " (a session or campaign)" if is_well_known(self.differences) else ""
        match self.verdict:
            case DifferenceVerdict.SAME:
                return f"{what}{kind} on {where}: never changed the text in {self.same} pairs of {self.pages} pages"
            case DifferenceVerdict.NEAR:
                return f"{what}{kind} on {where}: {self.near} pairs have nearly the same text, {self.same} the same"
            case DifferenceVerdict.DIFFERENT:
                always = "always" if not self.same else f"{self.same} times did not, {self.different} times did"
                return f"{what} on {where}: {always} changed the text" + (
                    f" in {self.different} pairs" if not self.same else ""
                )
            case DifferenceVerdict.UNKNOWN:
                return f"{what}{kind} on {where}: {self.same} equal pairs of {self.pages} pages, too few"


def propose(pages: Iterable[SeenPage], *, confirmations: int = CONFIRMATIONS) -> tuple[Proposal, ...]:
    """The verdict on each difference of the pages, most certain first. Rules are those with DifferenceVerdict.SAME.

    pages: each URL once, in any order; the result does not depend on the order.
    """
    sites: dict[SiteKey, list[SeenPage]] = defaultdict(list)
    for page in pages:
        sites[site_key(page.url)].append(page)
    proposals = [
        proposal
        for site in sorted(sites)
        for proposal in _of_site(site, sorted(sites[site], key=lambda page: page.url), confirmations)
    ]
    order = list(DifferenceVerdict)
    return tuple(
        sorted(
            proposals,
            key=lambda proposal: (
                order.index(proposal.verdict),
                -proposal.same,
                proposal.site,
                proposal.place,
                sorted(proposal.differences),
            ),
        )
    )


_Key = tuple[str, frozenset[Difference]]  # a place, and differences that are judged as a set there


def _of_site(site: SiteKey, pages: list[SeenPage], confirmations: int) -> list[Proposal]:
    """Repeats until nothing new is accepted; accepted differences are ignored in later rounds."""
    accepted: dict[_Key, Proposal] = {}
    others: dict[_Key, Proposal] = {}
    for _ in range(ROUNDS):
        judged = {
            (proposal.place, proposal.differences): proposal
            for hypothesis in _hypotheses(pages, accepted.keys())
            for proposal in _judge(site, pages, hypothesis, accepted.keys(), confirmations)
        }
        same = {key for key, proposal in judged.items() if proposal.verdict is DifferenceVerdict.SAME}
        others = {key: proposal for key, proposal in judged.items() if key not in same}
        fresh = same - accepted.keys()
        # If several sets are accepted for a place, keeps the minimal ones: superfluous differences are judged again on
        # their own
        accepted |= {
            key: judged[key]
            for key in judged
            if key in fresh and not any(other[0] == key[0] and other[1] < key[1] for other in fresh)
        }
        if not fresh:
            break
    proven = {(where, difference) for where, differences in accepted for difference in differences}
    rest = [
        proposal
        for (where, differences), proposal in others.items()
        if len(differences) == 1 and not any((where, difference) in proven for difference in differences)
    ]
    return list(accepted.values()) + rest


def _accepted_differences(url: Url, accepted: Set[_Key]) -> frozenset[Difference]:
    """The accepted differences that apply to this URL."""
    hold = (differences for where, differences in accepted if place(url, differences) == where)
    return frozenset(itertools.chain.from_iterable(hold))


def _hypotheses(pages: Sequence[SeenPage], accepted: Set[_Key]) -> list[frozenset[Difference]]:
    """Each parameter and index file on its own, and the sets of differences between pages with equal text."""
    sets: dict[frozenset[Difference], int] = defaultdict(int)
    for page in pages:
        for difference in differences_of(page.url) - _accepted_differences(page.url, accepted):
            sets[frozenset({difference})] += 1
    alike: dict[bytes, Url] = {}
    for page in sorted(pages, key=lambda page: (page.text_digest, _core(page.url), page.url)):
        before = alike.get(page.text_digest)
        alike[page.text_digest] = page.url
        apart = differences_between(before, page.url) if before else None
        if apart and 0 < len(left := apart - _accepted_differences(page.url, accepted)) <= MOST_DIFFERENCES:
            sets[left] += 1
    often = sorted(sets, key=lambda differences: (-sets[differences], sorted(differences)))
    return often[:MOST_NAMES]


def _core(url: Url) -> str:
    return without(url, differences_of(url) | {WWW, SCHEME, SLASH, ORDER})


def _judge(
    site: SiteKey,
    pages: Sequence[SeenPage],
    differences: frozenset[Difference],
    accepted: Set[_Key],
    confirmations: int,
) -> list[Proposal]:
    """Judges the hypothesis in each place where pages have the differences."""
    groups: dict[tuple[str, str], list[SeenPage]] = defaultdict(list)
    for page in pages:
        through = _accepted_differences(page.url, accepted)
        if not differences <= through:
            groups[place(page.url, differences), without(page.url, through | differences)].append(page)
    places: dict[str, list[list[SeenPage]]] = defaultdict(list)
    for (where, _), group in groups.items():
        if len(group) > 1 or not differences_of(group[0].url).isdisjoint(differences):
            places[where].append(group)
    return [_proposal(site, (where, differences), places[where], accepted, confirmations) for where in sorted(places)]


def _is_near(first: Set[int] | None, other: Set[int] | None) -> bool:
    """Nearly equal, or one contained in the other, as a print version is in its page."""
    if not first or not other or min(len(first), len(other)) < FEWEST_SHINGLES:
        return False
    return len(first & other) >= NEAR * min(len(first), len(other))


def _proposal(
    site: SiteKey, key: _Key, groups: Sequence[Sequence[SeenPage]], accepted: Set[_Key], confirmations: int
) -> Proposal:
    """Compares neighbouring pages within groups, except those that are equal under the accepted differences."""
    where, differences = key
    texts: set[bytes] = set()
    equal: list[tuple[Url, Url]] = []
    unequal: list[tuple[Url, Url]] = []
    near = 0
    for group in groups:
        spelled = {without(page.url, _accepted_differences(page.url, accepted)): page for page in group}
        for first, other in itertools.pairwise(spelled[spelling] for spelling in sorted(spelled)):
            # only such a pair is evidence for each of the differences
            whole = differences <= (differences_between(first.url, other.url) or frozenset())
            if first.text_digest != other.text_digest:
                near += whole and _is_near(first.shingles, other.shingles)
                unequal.append((first.url, other.url))
            elif whole:
                texts.add(first.text_digest)
                equal.append((first.url, other.url))
    enough = len(equal) + near >= confirmations
    if len(unequal) > near:
        verdict = DifferenceVerdict.DIFFERENT
    elif near and enough:
        verdict = DifferenceVerdict.NEAR
    elif not near and enough and len(texts) >= PAGES:
        verdict = DifferenceVerdict.SAME
    else:
        verdict = DifferenceVerdict.UNKNOWN
    urls = {page.url for group in groups for page in group}
    patterns = sorted({"/".join(map(mask, _path(url).split("/"))) for url in urls})
    return Proposal(
        site=site,
        place=where,
        differences=differences,
        verdict=verdict,
        same=len(equal),
        near=near,
        different=len(unequal),
        pages=len(texts),
        examples=tuple((unequal if verdict is DifferenceVerdict.DIFFERENT else equal or unequal)[:EXAMPLES]),
        paths=(where,) if where.endswith("*") else tuple(patterns),
        prefer=_preferred_form(differences, urls),
    )


def _path(url: Url) -> str:
    return url[url.index("/", 8) :].partition("?")[0].partition(";")[0]


def _preferred_form(differences: Set[Difference], urls: Set[Url]) -> str:
    """The form that most pages have."""
    if SCHEME in differences:
        return "https" if 2 * sum(url.startswith("https:") for url in urls) >= len(urls) else "http"
    if WWW in differences:
        return "add" if 2 * sum("://www." in url for url in urls) > len(urls) else "drop"
    if SLASH in differences:
        return "add" if 2 * sum(_path(url).endswith("/") for url in urls) > len(urls) else "drop"
    return ""


# Only differences without counterexamples become rules. Sessions, campaigns and differences found in many places become
# rules of the site; the rest apply to their script or folder, and scripts in which they are not proven are excluded
# from the folder's rule.


def rules_text(proposals: Iterable[Proposal]) -> str:
    """TOML tables [[site]] and [[script]] for all proposals with DifferenceVerdict.SAME, each with its evidence as a
    comment; '' if there are none.
    """
    ordered = sorted(proposals, key=lambda proposal: (proposal.site, proposal.place, sorted(proposal.differences)))
    parts = [
        part
        for _, group in groupby(ordered, key=lambda proposal: proposal.site)
        for part in _rules_of_site(list(group))
    ]
    return "\n".join(parts)


def _rules_of_site(proposals: Sequence[Proposal]) -> list[str]:
    proven = [proposal for proposal in proposals if proposal.verdict is DifferenceVerdict.SAME]
    if not proven:
        return []
    differences = sorted({difference for proposal in proven for difference in proposal.differences})
    wide = {difference for difference in differences if _is_site_wide(difference, proposals)}
    parts = []
    if wide:
        parts.append(_site_table(proven, wide))
    narrow = [proposal for proposal in proven if not proposal.differences <= wide]
    places = {place: list(group) for place, group in groupby(narrow, key=lambda proposal: proposal.place)}
    guards = _guards(proposals, places, wide)
    # The first match applies: scripts before folders
    for where in sorted([*places, *guards], key=lambda place: (place.endswith("/*"), -len(place), place)):
        parts.append(_script_table(places[where], wide) if where in places else _guard(guards[where]))
    return parts


def _is_site_wide(difference: Difference, proposals: Sequence[Proposal]) -> bool:
    if difference.kind in (*_FORMS, "index"):
        return True
    having = [proposal for proposal in proposals if difference in proposal.differences]
    if difference.kind == "path-parameter" or is_well_known({difference}):
        return not any(proposal.different for proposal in having)
    proven = {proposal.place for proposal in having if proposal.verdict is DifferenceVerdict.SAME}
    return len(proven) >= PLACES_FOR_SITE and {proposal.place for proposal in having} <= proven


def _guards(
    proposals: Sequence[Proposal], places: dict[str, list[Proposal]], wide: set[Difference]
) -> dict[str, Proposal]:
    """Scripts in the scope of a folder's rule for which its parameter is not proven."""
    folders = {
        difference: place
        for place, group in places.items()
        if place.endswith("/*")
        for proposal in group
        for difference in proposal.differences - wide
    }
    return {
        proposal.place: proposal
        for proposal in proposals
        if proposal.place not in places
        and any(
            difference in folders and proposal.place.startswith(folders[difference][:-1])
            for difference in proposal.differences
        )
    }


def _site_table(proven: Sequence[Proposal], wide: set[Difference]) -> str:
    lines = _evidence([proposal for proposal in proven if proposal.differences & wide])
    lines += ["[[site]]", f"site = {_text(proven[0].site)}"]
    for kind, field in (("parameter", "ignored"), ("path-parameter", "path_ignored"), ("index", "index")):
        if names := sorted(difference.name for difference in wide if difference.kind == kind):
            lines.append(f"{field} = {_list(names)}")
    for kind in _FORMS:
        votes = [proposal.prefer for proposal in proven if Difference(kind) in proposal.differences]
        if Difference(kind) in wide and votes and votes[0]:
            lines.append(f"{kind} = {_text(votes[0])}")
    if ORDER in wide:
        lines.append("sort = true")
    return "\n".join(lines) + "\n"


def _script_table(group: Sequence[Proposal], wide: set[Difference]) -> str:
    names = sorted(
        {
            difference.name
            for proposal in group
            for difference in proposal.differences - wide
            if difference.kind == "parameter"
        }
    )
    paths = {path for proposal in group for path in proposal.paths}
    is_sorted = any(ORDER in proposal.differences for proposal in group)
    return _script(_evidence(group), group[0].site, paths, names, is_sorted)


def _guard(proposal: Proposal) -> str:
    return _script(
        [f"# {proposal.sentence}: excluded from the folder's rule below"], proposal.site, proposal.paths, (), False
    )


def _script(head: list[str], site: SiteKey, paths: Iterable[str], ignored: Iterable[str], is_sorted: bool) -> str:
    lines = [*head, "[[script]]", f"path = {_list(sorted(paths))}", f"site = {_text(site)}"]
    return "\n".join([*lines, f"ignored = {_list(ignored)}", f"sort = {'true' if is_sorted else 'false'}"]) + "\n"


def _evidence(proposals: Iterable[Proposal]) -> list[str]:
    lines = []
    for proposal in proposals:
        lines.append(f"# {proposal.sentence}")
        lines += [f"#   {first}\n#   {other}" for first, other in proposal.examples[:1]]
    return lines


def _text(text: str) -> str:
    return json.dumps(text)  # for ASCII text without control characters, strings in TOML and JSON are equal


def _list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(map(_text, texts)) + "]"
