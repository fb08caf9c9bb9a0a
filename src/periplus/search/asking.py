"""Answers a query from the index: matches in order, facets, snippets, and what may have been meant."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tantivy

from periplus.document.words import (
    folded,
    forms,
    is_run,
)
from periplus.model.arrays import Ints
from periplus.model.search import Facet, Match, Matches
from periplus.model.web import UrlId
from periplus.search.index import (
    COMMITTED,
    FOLDER,
    FORMS,
    HOST,
    ID,
    LANGUAGE,
    MEDIA,
    SAID,
    SITE,
    TWIN,
    YEAR,
    joined,
    open_index,
)
from periplus.search.matching import NEVER, Matcher
from periplus.search.query import (
    All,
    Any,
    Node,
    Phrase,
    Query,
    Word,
    asked_words,
    narrowed,
    only_asks,
    parse,
    parted,
    pieces_of,
)
from periplus.search.vectors import fused
from periplus.settings import Searching
from periplus.urls.folders import FOLDER_DOMAIN
from periplus.values import frozen

PAGES_AT_ONCE = 50_000  # whose numbers are read: 10 MB
OPENED_AGAIN = 5  # times, while some of several indexes are written to
MOST_EDITS = 2
LEAST_CHARS = 4  # of shorter words every other one is near
TWO_EDITS_FROM = 7  # characters: a shorter word with two other letters is another word
SAME_BEGINNING = 2  # characters that a word with two other letters shares with what was typed
KNOWN_PAGES = 3  # with a word: it is meant as it stands
TIMES = 10  # so much more frequent must the word be that was meant
MOST_TERMS = 20_000  # with the same beginning that are looked through


def suggested(searcher: tantivy.Searcher, query: Query, text: str) -> str:
    """The query with the words that may have been meant; empty where every word is as good as any."""
    other = _joined(searcher, query, text)
    if other != text:
        return other
    for word in asked_words(query.root):
        if isinstance(word, Phrase) or word.prefix or word.within == "url":
            continue
        for form in forms(word.text):
            better = _better(searcher, form) or _in_two(searcher, form)
            if better:
                other = other.replace(_as_typed(text, form), better)
    return other if other != text else ""


def _joined(searcher: tantivy.Searcher, query: Query, text: str) -> str:
    """The query with two words as one where pages have them so: `data base`, `database`."""
    for one, other in pairwise(asked_words(query.root)):
        joined = "".join([*forms(one.text), *forms(other.text)])
        beside = f"{one.text} {other.text}"
        if beside in text and searcher.doc_freq(FORMS, joined) >= KNOWN_PAGES:
            return text.replace(beside, joined, 1)
    return text


def _in_two(searcher: tantivy.Searcher, form: str) -> str:
    """A word that no page has as two that pages have: `filesystem`, `file system`; empty: none."""
    if max(searcher.doc_freq(FORMS, one) for one in (form, "~" + folded(form))):
        return ""
    return " ".join(halves(form, lambda one: searcher.doc_freq(FORMS, one)))


def halves(form: str, pages: Callable[[str], int], joints: Sequence[str] = ("",)) -> tuple[str, ...]:
    """Two words that pages have and that make up a form; none: there are no such. pages: that have a spelling; joints:
    what may stand between the two.
    """
    if is_run(form) or not form.isalpha():
        return ()
    cuts = [
        (form[: place - len(joint)], form[place:])
        for place in range(LEAST_CHARS, len(form) - LEAST_CHARS + 1)
        for joint in joints
        if form.endswith(joint, 0, place) and place - len(joint) >= LEAST_CHARS
    ]
    rated = [(min(max(pages(one), pages("~" + folded(one))) for one in two), two) for two in cuts]
    least, words = max(rated, default=(0, ()))
    return words if least >= KNOWN_PAGES else ()


def _as_typed(text: str, form: str) -> str:
    place = text.lower().find(form)
    return text[place : place + len(form)] if place >= 0 else form


def _better(searcher: tantivy.Searcher, form: str) -> str:
    """A more frequent word than this one, near it; empty: none."""
    if len(form) < LEAST_CHARS or is_run(form) or not form.isalpha():
        return ""
    plain = folded(form)
    here = max(searcher.doc_freq(FORMS, spelling) for spelling in (form, plain, "~" + plain))
    if here >= KNOWN_PAGES:
        return ""
    best: tuple[int, int, str] = (-9, 0, "")
    for beginning in (plain[:SAME_BEGINNING], "~" + plain[:SAME_BEGINNING]):
        for term, pages in searcher.terms_with_prefix(FORMS, beginning, None, MOST_TERMS):
            best = max(best, _rated(plain, term.removeprefix("~"), pages))
    for term in _one_edit(plain):  # also of the first letters
        pages = max(searcher.doc_freq(FORMS, term), searcher.doc_freq(FORMS, "~" + term))
        if pages:
            best = max(best, (-1, pages, term))
    return best[2] if best[2] and best[1] >= TIMES * here and best[2] != plain else ""


def _rated(plain: str, term: str, pages: int) -> tuple[int, int, str]:
    if abs(len(term) - len(plain)) > MOST_EDITS or len(set(term).symmetric_difference(plain)) > 2 * MOST_EDITS:
        return (-9, 0, "")
    most = MOST_EDITS if len(plain) >= TWO_EDITS_FROM else 1
    edits = distance(plain, folded(term), most)
    return (-edits, pages, folded(term)) if 0 < edits <= most else (-9, 0, "")


def _one_edit(word: str) -> set[str]:
    letters = sorted(
        set(word) | set("abcdefghijklmnopqrstuvwxyz" if word.isascii() else "абвгдежзийклмнопрстуфхцчшщыьэюя")
    )
    parted = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    swapped = {left + right[1] + right[0] + right[2:] for left, right in parted if len(right) > 1}
    dropped = {left + right[1:] for left, right in parted if right}
    added = {left + letter + right for left, right in parted for letter in letters}
    changed = {left + letter + right[1:] for left, right in parted if right for letter in letters}
    return (swapped | dropped | added | changed) - {word}


def distance(one: str, other: str, most: int) -> int:
    """Letters to add, drop, change or swap with their neighbour until one is the other;
    most + 1 stands for any more.
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        older, before, row = before, row, [place]
        for at, other_letter in enumerate(other, 1):
            cost = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != other_letter))
            if at > 1 and place > 1 and letter == other[at - 2] and one[place - 2] == other_letter:
                cost = min(cost, older[at - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def _without(query: tantivy.Query, other: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.MustNot, other)])


LOOKED_AT = 200  # matches that are weighed by rank, and among which those of equal text are folded
LANGUAGES = 5  # in whose forms a word is looked for; further ones are found by spelling
FACET_VALUES = 10
ENOUGH = 10  # pages with all words: with fewer, those with some are looked for
FREQUENT = 0.5  # of the pages have it: a word tells nothing
LEAST_PAGES = 20  # of fewer pages most have each word of their subject
COMPOUNDING = frozenset(("de", "nl", "sv", "da", "nb", "no", "nn", "is", "fi", "hu", "et"))  # languages with compounds
JOINTS = ("", "s", "es", "n", "en", "er", "e")  # between the words of a compound, most of them German or Swedish
FEW = 3  # matches: with fewer, another spelling may have been meant
_FACETS = {"site": SITE, "type": MEDIA, "language": LANGUAGE, "year": YEAR}

_Scored = tuple[float, tantivy.DocAddress]
Rank = Callable[[Sequence[UrlId]], Sequence[float]]  # of pages, as 0 to 1
PagesWith = Callable[[str, str], Sequence[UrlId]]  # on which a column answers a condition
Holds = Callable[[Sequence[UrlId]], Iterable[UrlId]]  # which of some pages answer what must hold
Near = Callable[[int, Holds], Sequence[tuple[UrlId, float]]]  # as `Vectors.nearest`


@frozen
class MatchWindow:
    """Which of the matches are wanted."""

    limit: int = 10
    offset: int = 0
    facets: bool = False


def _read(index: tantivy.Index) -> tantivy.Index:
    """The index as it stands: whatever becomes of its files, it is read to the end."""
    index.config_reader("manual")
    index.reload()
    return index


def _committed(folder: Path) -> tuple[int, int]:
    """Of an index, what differs after each commit: the engine puts a new file in place of the old one."""
    try:
        state = (folder / FOLDER / COMMITTED).stat()
    except OSError:  # there is none, or it is being made anew
        return 0, 0
    return state.st_ino, state.st_mtime_ns


class Searcher:
    """An index as it was last committed when `refresh` was called. Not for several threads at once."""

    def __init__(self, folder: Path | Sequence[Path], weights: Searching) -> None:
        """folder: several are searched as one index, with the statistics of all; those without an index are left out.

        Raises LookupError where there is no index that can be read.
        """
        self._folders = (folder,) if isinstance(folder, Path) else tuple(folder)
        self._weights, self._stamp = weights, tuple[tuple[int, int], ...]()
        self._origins: Sequence[int] = ()  # of each segment of several indexes, which of the folders it is of
        self.refresh()

    def refresh(self) -> bool:
        """Sees what was committed since; whether there was anything."""
        stamp = tuple(map(_committed, self._folders))
        if stamp == self._stamp:
            return False
        self._index = self._opened()
        self._stamp = stamp
        self._searcher = self._index.searcher()
        self._matcher = Matcher(
            self._index.schema, self._weights, self._languages(), lambda form: self._searcher.doc_freq(FORMS, form)
        )
        return True

    def _opened(self) -> tantivy.Index:
        """The index; of several folders one that is made of theirs."""
        if len(self._folders) == 1:
            index = open_index(self._folders[0])
            if index is None:
                raise LookupError(self._folders)
            return _read(index)
        for _ in range(OPENED_AGAIN):
            with tempfile.TemporaryDirectory(prefix="periplus-search-") as place:
                self._origins = joined(self._folders, Path(place))
                index = open_index(Path(place))
                with contextlib.suppress(ValueError):  # a file of one is gone: it was written to meanwhile
                    if index is not None:
                        return _read(index)
        raise LookupError(self._folders)

    @property
    def pages(self) -> int:
        """In the index."""
        return int(self._searcher.num_docs)

    @property
    def languages(self) -> Sequence[str]:
        """Of the pages, the most frequent first; the rare ones are left out."""
        return self._matcher.languages

    def _languages(self) -> tuple[str, ...]:
        if not self._searcher.num_docs:
            return ()
        return tuple(
            value
            for value, _ in self._counted(tantivy.Query.all_query(), {"language": LANGUAGE}, LANGUAGES)[0].values
            if value
        )

    def link_words(self) -> tuple[Ints, Ints]:
        """(the ids of all pages in the index, ascending, of each `index.said_digest` of the words of links to it that
        were indexed).
        """
        slices = self.pages // PAGES_AT_ONCE + 1  # ids are spread evenly
        bounds = [NEVER + number * (1 << 64) // slices for number in range(slices + 1)]
        columns = [np.zeros((2, 0), np.int64)]
        for low, high in pairwise(bounds):
            of_slice = tantivy.Query.range_query(
                self._index.schema, ID, tantivy.FieldType.Integer, low, high - 1, True, True
            )
            places = [place for _, place in self._searcher.search(of_slice, max(self.pages, 1), False).hits]
            columns.append(
                np.array([self._searcher.fast_field_values(field, places) for field in (ID, SAID)], np.int64)
            )
        ids, digests = np.concatenate(columns, axis=1)
        order = np.argsort(ids)
        return ids[order], digests[order]

    def search(
        self,
        text: str,
        window: MatchWindow,
        rank: Rank,
        near: Near | None = None,
        pages_with: PagesWith = lambda column, value: (),
    ) -> Matches:
        """The pages that answer: first those that have all words, by how well they answer; where these are few, also
        those that have some, each with the words that it lacks.

        near: names pages by their vectors: these orders are fused, and filters and signs of the query hold for both.
        pages_with: as of `query.narrowed`.
        """
        query = narrowed(parse(text), pages_with)
        return (
            self._by_words(query, text, window, rank) if near is None else self._fused(query, text, window, rank, near)
        )

    def _by_words(self, query: Query, text: str, window: MatchWindow, rank: Rank) -> Matches:
        """As `search`, without vectors."""
        if query.root is None:
            return Matches(0, (), (), query.notes or ("nothing was asked for",), "")
        most = max(LOOKED_AT, window.offset + window.limit)
        wanting = self._wanting(query.root, ())
        total, hits = self._answers(wanting.whole, most)
        if total < ENOUGH and (nowhere := self._nowhere(wanting.words)):
            wanting = self._wanting(query.root, nowhere)
            total, hits = self._answers(wanting.whole, most)
        whole, others = total, list[_Scored]()
        suggestion = suggested(self._searcher, query, text) if whole < FEW or wanting.nowhere else ""
        asked = wanting.whole
        if whole < ENOUGH and wanting.some is not None:
            asked = wanting.some
            more, others = self._answers(_without(wanting.some, wanting.whole), most)
            total += more
        notes = (*query.notes, *_lacking(wanting, whole, total))
        ordered = self._ordered(hits, others, rank)
        total -= len(hits) + len(others) - sum(1 + len(match.twins) for match in ordered)
        matches = ordered[window.offset : window.offset + window.limit]
        facets = self._counted(asked, _FACETS, FACET_VALUES) if window.facets else ()
        words = wanting.words if others or wanting.nowhere else ()
        return Matches(total, self._with_missing(matches, words), facets, notes, suggestion)

    def _fused(self, query: Query, text: str, window: MatchWindow, rank: Rank, near: Near) -> Matches:
        """The order by words, where there are any, and that by vectors as one. total: of the pages among their first
        LOOKED_AT where the words find fewer.
        """
        most = max(LOOKED_AT, window.offset + window.limit)
        _, rest = parted(query.root) if query.root is not None else ((), ())
        holding = self._matcher.query(All(rest), (), All(rest))
        by_vector = near(most, lambda pages: self._among(holding, pages))
        by_words = Matches(0, (), (), query.notes, "")
        if asked_words(query.root):
            by_words = self._by_words(query, text, MatchWindow(most, 0, window.facets), rank)
        elif window.facets:
            by_words = replace(by_words, facets=self._counted(holding, _FACETS, FACET_VALUES))
        by_id = {match.url_id: match for match in by_words.matches}
        # a page that the words show under another address with the same text is that one
        shown = {twin: match.url_id for match in by_words.matches for twin in match.twins}
        order = [*dict.fromkeys(shown.get(page, page) for page, _ in by_vector)]
        both = fused([list(by_id), order])
        matches = [by_id.get(page, Match(page, 0.0, ()))._replace(score=score) for page, score in both]
        chosen = tuple(matches[window.offset : window.offset + window.limit])
        return replace(by_words, total=max(by_words.total, len(matches)), matches=chosen)

    def _among(self, query: tantivy.Query, pages: Sequence[UrlId]) -> Sequence[UrlId]:
        """Those of the pages that are in the index and answer."""
        if not pages:
            return ()
        some = self._matcher.among(pages)
        asked = tantivy.Query.boolean_query([(tantivy.Occur.Must, some), (tantivy.Occur.Must, query)])
        most = len(pages) * len(self._folders)
        places = [place for _, place in self._searcher.search(asked, most, False).hits]
        return [UrlId(int(value or 0)) for value in self._searcher.fast_field_values(ID, places)]

    def _wanting(self, root: Node, nowhere: Sequence[Word]) -> _Wanting:
        """The queries for what was asked for. nowhere: words that no page has, which are asked of none."""
        words, rest = parted(root)
        present = tuple(word for word in words if word not in nowhere) or words
        telling = tuple(word for word in present if not self._says_little(word)) or present
        helpful = [word for word in present if word not in telling]
        whole = self._matcher.query(All((*telling, *rest)), helpful, root)
        pieces = [piece for word in (*telling, *nowhere) for piece in self._pieces(word)]
        pieces += self._joined(telling)
        some = None
        if pieces and asked_words(All(rest)):
            some = self._matcher.query(All(rest), [*pieces, *helpful], root)
        elif len(pieces) > 1:
            some = self._matcher.query(All((Any(tuple(pieces)), *rest)), helpful, root)
        return _Wanting(whole, some, tuple(word for word in words if word not in helpful), tuple(nowhere))

    def _pieces(self, word: Word) -> tuple[Word, ...]:
        """As `pieces_of`, and what a compound is made of: `Paketverwaltung`, `Paket`, `Verwaltung`."""
        pieces, read = pieces_of(word), forms(word.text)
        if len(read) != 1 or word.prefix or COMPOUNDING.isdisjoint(self.languages):
            return pieces
        return (*pieces, *map(Word, halves(read[0], self._matcher.pages, JOINTS)))

    def _joined(self, words: Sequence[Word]) -> list[Word]:
        """Compounds of two words that stand side by side in a query."""
        if COMPOUNDING.isdisjoint(self.languages):
            return []
        pairs = [(*forms(one.text), *forms(other.text)) for one, other in pairwise(words)]
        compounds = [joint.join(pair) for pair in pairs if len(pair) == 2 for joint in JOINTS]
        return [Word(form) for form in compounds if self._matcher.pages(form)]

    def _nowhere(self, words: Sequence[Word]) -> list[Word]:
        """Those of the words that no page has."""
        return [word for word in words if not self._answers(self._matcher.query(word, (), word), 1)[0]]

    def _says_little(self, word: Word) -> bool:
        """Whether most pages have the word, or it only makes a question of others: `the`, `how`. A page without it
        answers no worse.
        """
        read = forms(word.text)
        if only_asks(word, self.languages):
            return True
        most = FREQUENT * max(self._searcher.num_docs, LEAST_PAGES)
        return len(read) == 1 and not word.prefix and self._searcher.doc_freq(FORMS, read[0]) > most

    def _with_missing(self, matches: Sequence[Match], words: Sequence[Word]) -> tuple[Match, ...]:
        """The matches, each with those of the words that it lacks."""
        if not matches or not words:
            return tuple(matches)
        ids = [match.url_id for match in matches]
        holders, most = [], len(ids) * len(self._folders)
        for word in words:
            places = [place for _, place in self._searcher.search(self._matcher.holds(word, ids), most, False).hits]
            holders.append((word.text, set(self._searcher.fast_field_values(ID, places))))
        return tuple(
            match._replace(missing=tuple(text for text, pages in holders if match.url_id not in pages))
            for match in matches
        )

    def _answers(self, asked: tantivy.Query, most: int) -> tuple[int, list[_Scored]]:
        answer = self._searcher.search(asked, most)
        return int(answer.count), list(answer.hits)  # type: ignore[attr-defined]  # the engine's stubs lack it

    def _ordered(self, whole: Sequence[_Scored], some: Sequence[_Scored], rank: Rank) -> list[Match]:
        """Those with all words before those with some, each by score and rank; those of equal text folded into the
        best of them. A URL that several indexes have is the page that answers best.
        """
        hits = [*whole, *some]
        places = [place for _, place in hits]
        ids = [UrlId(int(value or 0)) for value in self._searcher.fast_field_values(ID, places)]
        twins = self._searcher.fast_field_values(TWIN, places)
        local = self._local(ids)
        gains = rank(ids)
        scored = [
            (number >= len(whole), -score * (1 + self._weights.weight_rank * gain), url_id, twin, place.segment_ord)
            for number, ((score, place), url_id, twin, gain) in enumerate(zip(hits, ids, twins, gains, strict=True))
        ]
        groups: dict[object, list[Match]] = {}
        pages = set[tuple[UrlId, int]]()
        for _, less, url_id, twin, segment in sorted(scored):
            origin = self._origins[segment] if self._origins else 0
            page = (url_id, origin if url_id in local else 0)
            if page not in pages:
                pages.add(page)
                groups.setdefault(twin, []).append(Match(url_id, -less, (), origin=origin))
        return [
            best._replace(twins=tuple(dict.fromkeys(one.url_id for one in rest if one.url_id != best.url_id)))
            for best, *rest in groups.values()
        ]

    def _local(self, ids: Sequence[UrlId]) -> set[UrlId]:
        """Of pages that several indexes have, those of local folders: two folders of one name are two hosts of one."""
        doubles = [url_id for url_id, times in Counter(ids).items() if times > 1]
        local = tantivy.Query.regex_query(self._index.schema, HOST, ".*" + re.escape(FOLDER_DOMAIN))
        return set(self._among(local, doubles))

    def _counted(self, query: tantivy.Query, fields: dict[str, str], most: int) -> tuple[Facet, ...]:
        aggregations = {name: {"terms": {"field": field, "size": most}} for name, field in fields.items()}
        counted = self._searcher.aggregate(query, aggregations)
        return tuple(
            Facet(name, tuple((str(bucket["key"]), int(bucket["doc_count"])) for bucket in counted[name]["buckets"]))
            for name in fields
        )


class _Wanting(NamedTuple):
    """The engine's queries for what was asked for."""

    whole: tantivy.Query  # pages with all telling words
    some: tantivy.Query | None  # pages with some of them, or with parts of a name; None: there is but one
    words: tuple[Word, ...]  # without those that most pages have
    nowhere: tuple[Word, ...]  # those that no page has


def _lacking(wanting: _Wanting, whole: int, total: int) -> Iterator[str]:
    """What is said of words that pages lack. whole: pages with all words that there are; total: of all pages."""
    if wanting.nowhere and total:
        yield f"no page has {', '.join(word.text for word in wanting.nowhere)}"
    if whole < total and whole and not wanting.nowhere:
        yield f"pages with all words come first, {whole} of them; then pages with some of them"
    elif whole < total and len(wanting.words) > 1:
        yield "no page has all the words in its content: shown are pages with some of them"
