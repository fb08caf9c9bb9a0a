"""Of pages that say the same or nearly so, which one stands for all, and why?

A page with diacritics goes before one without: its text can be made into the other, but not the other way round. Then what the owner says
(a page names it as its canonical), then of nearly equal texts the one that most pages have, then the nearest to the start, for there readers
find it, then the shorter URL, at last the alphabet.
Links to a page are not counted: menus and calendars decide such counts, and to count them all of a collection's links must be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from periplus.analyse.nearness import Hashes, Sketches, near_groups
from periplus.model.duplicates import Contender, Duplicate, DuplicateGroup, Ground, Likeness, SameText
from periplus.model.web import UrlId

IN_FULL = 0.01  # of a text's characters that are not ASCII, where its language is written with diacritics: see tests/unit/test_duplicate_groups.py

Merit = tuple[int, bool, int, int, int, str]  # in the order of Ground, least first


class Head(NamedTuple):
    """A page that no other with the same text stands for."""

    page: Contender
    is_full: bool  # written with diacritics, or in another script
    copies: int  # other pages with its text


class NearPage(NamedTuple):
    """A head, and how near it is to the one that stands for it."""

    head: Head
    similarity: float
    contained: float


class NearHeads(NamedTuple):
    """Heads whose content is nearly that of the first."""

    first: Head
    others: Sequence[NearPage]  # nearest first


Same = tuple[Sequence[SameText], bool]  # pages of one text, the one that stands for all first; whether the texts were compared


def merit(page: Contender, marks: int, copies: int = 0) -> Merit:
    """By which pages are put in order: the least is the one that stands for all. copies: of pages of one text all have as many."""
    return -marks, not page.is_named, -copies, page.layer, len(page.url), page.url


def best_first(pages: Iterable[SameText]) -> list[SameText]:
    """Pages of one text, the one that stands for all first."""
    return sorted(pages, key=lambda same: merit(same.page, same.marks))


def is_in_full(text: str) -> bool:
    """Whether a text has the diacritics, or the letters, of a language that has any. Of nearly equal texts the longer one has more of them, so
    that they are not counted there."""
    return len(text) - len(text.encode("ascii", "ignore")) >= IN_FULL * len(text) > 0


def near_heads(heads: Sequence[Head], known: Sketches, shingles_of: Callable[[int], Hashes], threshold: float) -> list[NearHeads]:
    """Heads in groups, each within threshold of the best of its group. known, shingles_of: by the head's place."""
    order = sorted(range(len(heads)), key=lambda place: _merit_of(heads[place]))
    sorted_known = Sketches(known.bins[order], known.shingles[order]) if order else known
    counts = sorted_known.shingles.tolist()
    found = []
    for group in near_groups(sorted_known, lambda place: shingles_of(order[place]), threshold=threshold):
        others = [
            NearPage(heads[order[place]], similarity, _contained(similarity, counts[place], counts[group.leader]))
            for place, similarity in zip(group.members, group.similarity, strict=True)
        ]
        found.append(NearHeads(heads[order[group.leader]], sorted(others, key=lambda other: -other.similarity)))
    return found


def _merit_of(head: Head) -> Merit:
    return merit(head.page, int(head.is_full), head.copies)


def _contained(similarity: float, own: int, other: int) -> float:
    """The share of own shingles that are shared; from the Jaccard similarity of the two sets, which tells how many are."""
    return round(similarity * (own + other) / (1 + similarity)) / own


def grouped(same: Iterable[Same], near: Iterable[NearHeads]) -> list[DuplicateGroup]:
    """Each page in one group at most, the largest groups first. same: pages of one text; near: whose heads are near one another."""
    by_head = {pages[0].page.url_id: (pages, is_confirmed) for pages, is_confirmed in same}
    groups = [_near_group(heads, by_head) for heads in near]
    taken = {url_id for heads in near for url_id in (heads.first.page.url_id, *(other.head.page.url_id for other in heads.others))}
    groups += [_group(pages[0].page, _twins(pages), _decided(pages), is_confirmed) for head, (pages, is_confirmed) in by_head.items() if head not in taken]
    return sorted(groups, key=lambda group: (-len(group.pages), group.url))


def _near_group(heads: NearHeads, by_head: Mapping[UrlId, Same]) -> DuplicateGroup:
    own, is_confirmed = by_head.get(heads.first.page.url_id, ((), True))
    pages = _twins(own) if own else []
    grounds = _decided(own) if own else set()
    for number, other in enumerate(heads.others, 1):
        twins, other_confirmed = by_head.get(other.head.page.url_id, ((), True))
        is_confirmed = is_confirmed and other_confirmed
        for page in [same.page for same in twins] or [other.head.page]:
            pages.append(Duplicate(page.url_id, page.url, page.charset, Likeness.NEAR, other.similarity, other.contained, number))
        grounds.add(_ground(_merit_of(heads.first), _merit_of(other.head)))
    return _group(heads.first.page, pages, grounds, is_confirmed)


def _group(first: Contender, pages: Sequence[Duplicate], grounds: set[Ground], is_confirmed: bool) -> DuplicateGroup:
    return DuplicateGroup(first.url_id, first.url, first.charset, tuple(ground for ground in Ground if ground in grounds), tuple(pages), is_confirmed)


def _twins(pages: Sequence[SameText]) -> list[Duplicate]:
    """All but the first, the most alike first."""
    first, *others = pages
    found = [Duplicate(page.page.url_id, page.page.url, page.page.charset, _likeness(first, page), 1.0, 1.0, 0) for page in others]
    return sorted(found, key=lambda page: list(Likeness).index(page.like))


def _likeness(first: SameText, other: SameText) -> Likeness:
    return Likeness.BYTES if first.body == other.body else Likeness.WORDS if first.text == other.text else Likeness.FOLDED


def _decided(pages: Sequence[SameText]) -> set[Ground]:
    first, *others = [merit(same.page, same.marks) for same in pages]
    return {_ground(first, other) for other in others}


def _ground(first: Merit, other: Merit) -> Ground:
    return next(ground for ground, one, two in zip(Ground, first, other, strict=True) if one != two)
