"""Answers a query from the index: ranked matches, facets, snippets and spelling suggestions."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import tantivy

from periplus.document.words import (
    fold_form,
    forms,
    is_run,
)
from periplus.model.search import Facet, Match, Matches
from periplus.model.web import UrlId
from periplus.retrieval.index import (
    COMMIT_FILE,
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
    join_indexes,
    open_index,
)
from periplus.retrieval.matching import NEVER, Matcher
from periplus.retrieval.query import (
    All,
    Any,
    Node,
    Phrase,
    Query,
    Word,
    asked_words,
    only_asks,
    parse,
    pieces_of,
    resolve_conditions,
    split_conditions,
)
from periplus.settings import Searching
from periplus.urls.folders import FOLDER_DOMAIN
from periplus.values import frozen

if TYPE_CHECKING:
    from periplus.model.arrays import Ints

PAGES_AT_ONCE = 50_000  # pages whose ids are read per query: 10 MB
OPENED_AGAIN = 5  # attempts to open several indexes while some of them are being written
MOST_EDITS = 2
LEAST_CHARS = 4  # nearly every shorter word has a close neighbour
TWO_EDITS_FROM = 7  # characters: in a shorter word two edits make a different word
SAME_BEGINNING = 2  # leading characters that a suggestion with two edits shares with the typed word
KNOWN_PAGES = 3  # a word on at least this many pages counts as spelled correctly
TIMES = 10  # a suggestion must be this many times as frequent as the typed word
MOST_TERMS = 20_000  # terms with the same beginning that are examined
RERANK_MATCHES = 200  # matches that are re-ranked, and among which duplicates are folded
LANGUAGES = 5  # languages whose stems are looked up; words of other languages are found by spelling
FACET_VALUES = 10
ENOUGH = 10  # with fewer pages that have all words, pages with some of the words are added
FREQUENT = 0.5  # share of pages: a more frequent word does not discriminate
LEAST_PAGES = 20  # in a smaller collection most pages share the words of their subject
COMPOUNDING = frozenset(("de", "nl", "sv", "da", "nb", "no", "nn", "is", "fi", "hu", "et"))  # languages with compounds
JOINTS = ("", "s", "es", "n", "en", "er", "e")  # linking elements of compounds, most of them German or Swedish
FEW = 3  # with fewer matches a spelling correction is suggested
_FACETS = {"site": SITE, "type": MEDIA, "language": LANGUAGE, "year": YEAR}


def suggest_query(searcher: tantivy.Searcher, query: Query, text: str) -> str:
    """The query with corrected spelling; empty if no word has a better spelling."""
    other = _join_words(searcher, query, text)
    if other != text:
        return other
    for word in asked_words(query.root):
        if isinstance(word, Phrase) or word.prefix or word.within == "url":
            continue
        for form in forms(word.text):
            better = _correction(searcher, form) or _split_word(searcher, form)
            if better:
                other = other.replace(_typed_spelling(text, form), better)
    return other if other != text else ""


def _join_words(searcher: tantivy.Searcher, query: Query, text: str) -> str:
    """The query with two adjacent words joined where the pages write them so: `data base` -> `database`."""
    for first, other in pairwise(asked_words(query.root)):
        joined = "".join([*forms(first.text), *forms(other.text)])
        beside = f"{first.text} {other.text}"
        if beside in text and searcher.doc_freq(FORMS, joined) >= KNOWN_PAGES:
            return text.replace(beside, joined, 1)
    return text


def _split_word(searcher: tantivy.Searcher, form: str) -> str:
    """Splits a word that no page has into two that pages have: `filesystem` -> `file system`; empty if impossible."""
    if max(searcher.doc_freq(FORMS, variant) for variant in (form, "~" + fold_form(form))):
        return ""
    return " ".join(halves(form, lambda half: searcher.doc_freq(FORMS, half)))


def halves(form: str, pages: Callable[[str], int], joints: Sequence[str] = ("",)) -> tuple[str, ...]:
    """The two words that pages have and that together make up a form, or an empty tuple.

    pages: the number of pages with a spelling. joints: letters allowed between the two words.
    """
    if is_run(form) or not form.isalpha():
        return ()
    cuts = [
        (form[: place - len(joint)], form[place:])
        for place in range(LEAST_CHARS, len(form) - LEAST_CHARS + 1)
        for joint in joints
        if form.endswith(joint, 0, place) and place - len(joint) >= LEAST_CHARS
    ]
    rated = [(min(max(pages(part), pages("~" + fold_form(part))) for part in two), two) for two in cuts]
    least, words = max(rated, default=(0, ()))
    return words if least >= KNOWN_PAGES else ()


def _typed_spelling(text: str, form: str) -> str:
    place = text.lower().find(form)
    return text[place : place + len(form)] if place >= 0 else form


def _correction(searcher: tantivy.Searcher, form: str) -> str:
    """A more frequent word close to this one; empty if there is none."""
    if len(form) < LEAST_CHARS or is_run(form) or not form.isalpha():
        return ""
    plain = fold_form(form)
    here = max(searcher.doc_freq(FORMS, spelling) for spelling in (form, plain, "~" + plain))
    if here >= KNOWN_PAGES:
        return ""
    best: tuple[int, int, str] = (-9, 0, "")
    for beginning in (plain[:SAME_BEGINNING], "~" + plain[:SAME_BEGINNING]):
        for term, pages in searcher.terms_with_prefix(FORMS, beginning, None, MOST_TERMS):
            best = max(best, _rate_spelling(plain, term.removeprefix("~"), pages))
    for term in _one_edit(plain):  # also catches edits in the first letters
        pages = max(searcher.doc_freq(FORMS, term), searcher.doc_freq(FORMS, "~" + term))
        if pages:
            best = max(best, (-1, pages, term))
    return best[2] if best[2] and best[1] >= TIMES * here and best[2] != plain else ""


def _rate_spelling(plain: str, term: str, pages: int) -> tuple[int, int, str]:
    if abs(len(term) - len(plain)) > MOST_EDITS or len(set(term).symmetric_difference(plain)) > 2 * MOST_EDITS:
        return (-9, 0, "")
    most = MOST_EDITS if len(plain) >= TWO_EDITS_FROM else 1
    edits = distance(plain, fold_form(term), most)
    return (-edits, pages, fold_form(term)) if 0 < edits <= most else (-9, 0, "")


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


def distance(first: str, other: str, most: int) -> int:
    """Edit distance (insert, delete, substitute, transpose), capped at most + 1."""
    if abs(len(first) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(first, 1):
        older, before, row = before, row, [place]
        for at, other_letter in enumerate(other, 1):
            cost = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != other_letter))
            if at > 1 and place > 1 and letter == other[at - 2] and first[place - 2] == other_letter:
                cost = min(cost, older[at - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def _excluding(query: tantivy.Query, other: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.MustNot, other)])


_ScoredAddress = tuple[float, tantivy.DocAddress]
Rank = Callable[[Sequence[UrlId]], Sequence[float]]  # rank of each page, 0 to 1
PagesWith = Callable[[str, str], Sequence[UrlId]]  # (column, condition) -> pages that satisfy it
Holds = Callable[[Sequence[UrlId]], Iterable[UrlId]]  # filters pages by the conditions of the query
Near = Callable[[int, Holds], Sequence[tuple[UrlId, float]]]  # as `Vectors.nearest`


@frozen
class MatchWindow:
    """Which part of the result list is returned."""

    limit: int = 10
    offset: int = 0
    facets: bool = False


def _read(index: tantivy.Index) -> tantivy.Index:
    """The index pinned to its current commit, so that later writes do not affect the search."""
    index.config_reader("manual")
    index.reload()
    return index


def _commit_state(folder: Path) -> tuple[int, int]:
    """Changes with each commit, because the engine replaces the file (inode and modification time)."""
    try:
        state = (folder / FOLDER / COMMIT_FILE).stat()
    except OSError:  # no index, or it is being rebuilt
        return 0, 0
    return state.st_ino, state.st_mtime_ns


class Searcher:
    """Searches the commit that was current at the last `refresh`. Not thread-safe."""

    def __init__(self, folder: Path | Sequence[Path], weights: Searching) -> None:
        """folder: several folders are searched as one index with shared statistics; those without an index are skipped.

        Raises LookupError if no index can be read.
        """
        self._folders = (folder,) if isinstance(folder, Path) else tuple(folder)
        self._weights, self._stamp = weights, tuple[tuple[int, int], ...]()
        self._origins: Sequence[int] = ()  # for each segment of a merged index, the position of its folder
        self.refresh()

    def refresh(self) -> bool:
        """Loads a newer commit. Returns whether there was one."""
        stamp = tuple(map(_commit_state, self._folders))
        if stamp == self._stamp:
            return False
        self._index = self._open_index()
        self._stamp = stamp
        self._searcher = self._index.searcher()
        self._matcher = Matcher(
            self._index.schema, self._weights, self._languages(), lambda form: self._searcher.doc_freq(FORMS, form)
        )
        return True

    def _open_index(self) -> tantivy.Index:
        """The index; for several folders a merged one."""
        if len(self._folders) == 1:
            index = open_index(self._folders[0])
            if index is None:
                raise LookupError(self._folders)
            return _read(index)
        for _ in range(OPENED_AGAIN):
            # a thread of the engine may create its lock file during the removal; an empty folder then stays
            with tempfile.TemporaryDirectory(prefix="periplus-search-", ignore_cleanup_errors=True) as place:
                self._origins = join_indexes(self._folders, Path(place))
                index = open_index(Path(place))
                with contextlib.suppress(ValueError):  # a file is missing because its index was written to
                    if index is not None:
                        return _read(index)
        raise LookupError(self._folders)

    @property
    def pages(self) -> int:
        """Number of pages in the index."""
        return int(self._searcher.num_docs)

    @property
    def languages(self) -> Sequence[str]:
        """Languages of the pages, most frequent first; rare ones are left out."""
        return self._matcher.languages

    def _languages(self) -> tuple[str, ...]:
        if not self._searcher.num_docs:
            return ()
        return tuple(
            value
            for value, _ in self._count_facets(tantivy.Query.all_query(), {"language": LANGUAGE}, LANGUAGES)[0].values
            if value
        )

    def link_words(self) -> tuple[Ints, Ints]:
        """Ids of all indexed pages, ascending, and for each the `index.anchor_digest` of its indexed anchor texts."""
        import numpy as np

        slices = self.pages // PAGES_AT_ONCE + 1  # ids are evenly distributed
        bounds = [NEVER + number * (1 << 64) // slices for number in range(slices + 1)]
        columns = [np.zeros((2, 0), np.int64)]
        for low, high in pairwise(bounds):
            of_slice = tantivy.Query.range_query(
                self._index.schema, ID, tantivy.FieldType.Integer, low, high - 1, True, True
            )
            places = self._places(of_slice, max(self.pages, 1))
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
        """The matching pages: first those with all words, by score.

        If these are few, also pages with some of the words, each with the words that it lacks.

        near: ranks pages by their vectors. Both rankings are fused; filters and signs of the query apply to both.
        pages_with: see `query.resolve_conditions`.
        """
        query = resolve_conditions(parse(text), pages_with)
        return (
            self._search_words(query, text, window, rank)
            if near is None
            else self._search_hybrid(query, text, window, rank, near)
        )

    def _search_words(self, query: Query, text: str, window: MatchWindow, rank: Rank) -> Matches:
        """As `search`, without vectors."""
        if query.root is None:
            return Matches(0, (), (), query.notes or ("the query is empty",), "")
        most = max(RERANK_MATCHES, window.offset + window.limit)
        wanting = self._build_queries(query.root, ())
        total, hits = self._run(wanting.whole, most)
        if total < ENOUGH and (nowhere := self._unknown_words(wanting.words)):
            wanting = self._build_queries(query.root, nowhere)
            total, hits = self._run(wanting.whole, most)
        whole, others = total, list[_ScoredAddress]()
        suggestion = suggest_query(self._searcher, query, text) if whole < FEW or wanting.nowhere else ""
        asked = wanting.whole
        if whole < ENOUGH and wanting.matches is not None:
            asked = wanting.matches
            more, others = self._run(_excluding(wanting.matches, wanting.whole), most)
            total += more
        notes = (*query.notes, *_missing_word_notes(wanting, whole, total))
        ordered = self._rank_and_fold(hits, others, rank)
        total -= len(hits) + len(others) - sum(1 + len(match.twins) for match in ordered)
        matches = ordered[window.offset : window.offset + window.limit]
        facets = self._count_facets(asked, _FACETS, FACET_VALUES) if window.facets else ()
        words = wanting.words if others or wanting.nowhere else ()
        return Matches(total, self._with_missing(matches, words), facets, notes, suggestion)

    def _search_hybrid(self, query: Query, text: str, window: MatchWindow, rank: Rank, near: Near) -> Matches:
        """Fuses the keyword ranking, if there are words, with the vector ranking.

        total counts the pages among the first RERANK_MATCHES if the keyword search finds fewer.
        """
        from periplus.retrieval.vectors import fuse

        most = max(RERANK_MATCHES, window.offset + window.limit)
        _, rest = split_conditions(query.root) if query.root is not None else ((), ())
        holding = self._matcher.query(All(rest), (), All(rest))
        by_vector = near(most, lambda pages: self._filter_pages(holding, pages))
        by_words = Matches(0, (), (), query.notes, "")
        if asked_words(query.root):
            by_words = self._search_words(query, text, MatchWindow(most, 0, window.facets), rank)
        elif window.facets:
            by_words = replace(by_words, facets=self._count_facets(holding, _FACETS, FACET_VALUES))
        by_id = {match.url_id: match for match in by_words.matches}
        # A page that the keyword search folded into a duplicate counts as that duplicate
        shown = {twin: match.url_id for match in by_words.matches for twin in match.twins}
        order = [*dict.fromkeys(shown.get(page, page) for page, _ in by_vector)]
        both = fuse([list(by_id), order])
        matches = [by_id.get(page, Match(page, 0.0, ()))._replace(score=score) for page, score in both]
        chosen = tuple(matches[window.offset : window.offset + window.limit])
        return replace(by_words, total=max(by_words.total, len(matches)), matches=chosen)

    def _filter_pages(self, query: tantivy.Query, pages: Sequence[UrlId]) -> Sequence[UrlId]:
        """The pages that are in the index and match the query."""
        if not pages:
            return ()
        matches = self._matcher.among(pages)
        asked = tantivy.Query.boolean_query([(tantivy.Occur.Must, matches), (tantivy.Occur.Must, query)])
        return self._ids(self._places(asked, len(pages) * len(self._folders)))

    def _places(self, asked: tantivy.Query, most: int) -> list[tantivy.DocAddress]:
        """The matches, in no order."""
        return [place for _, place in self._searcher.search(asked, most, False).hits]

    def _ids(self, places: list[tantivy.DocAddress]) -> list[UrlId]:
        return [UrlId(int(value or 0)) for value in self._searcher.fast_field_values(ID, places)]

    def _build_queries(self, root: Node, nowhere: Sequence[Word]) -> _WordQueries:
        """Builds the queries. nowhere: words that no page has; they are not required."""
        words, rest = split_conditions(root)
        present = tuple(word for word in words if word not in nowhere) or words
        telling = tuple(word for word in present if not self._is_common(word)) or present
        helpful = [word for word in present if word not in telling]
        whole = self._matcher.query(All((*telling, *rest)), helpful, root)
        pieces = [piece for word in (*telling, *nowhere) for piece in self._pieces(word)]
        pieces += self._compounds(telling)
        matches = None
        if pieces and asked_words(All(rest)):
            matches = self._matcher.query(All(rest), [*pieces, *helpful], root)
        elif len(pieces) > 1:
            matches = self._matcher.query(All((Any(tuple(pieces)), *rest)), helpful, root)
        return _WordQueries(whole, matches, tuple(word for word in words if word not in helpful), tuple(nowhere))

    def _pieces(self, word: Word) -> tuple[Word, ...]:
        """As `pieces_of`, plus the parts of a compound: `Paketverwaltung`, `Paket`, `Verwaltung`."""
        pieces, read = pieces_of(word), forms(word.text)
        if len(read) != 1 or word.prefix or COMPOUNDING.isdisjoint(self.languages):
            return pieces
        return (*pieces, *map(Word, halves(read[0], self._matcher.pages, JOINTS)))

    def _compounds(self, words: Sequence[Word]) -> list[Word]:
        """Compounds of adjacent words of the query."""
        if COMPOUNDING.isdisjoint(self.languages):
            return []
        pairs = [(*forms(first.text), *forms(other.text)) for first, other in pairwise(words)]
        compounds = [joint.join(pair) for pair in pairs if len(pair) == 2 for joint in JOINTS]
        return [Word(form) for form in compounds if self._matcher.pages(form)]

    def _unknown_words(self, words: Sequence[Word]) -> list[Word]:
        """The words that no page has."""
        return [word for word in words if not self._run(self._matcher.query(word, (), word), 1)[0]]

    def _is_common(self, word: Word) -> bool:
        """Whether most pages have the word, or it is a question word (`the`, `how`): pages need not have it."""
        read = forms(word.text)
        if only_asks(word, self.languages):
            return True
        most = FREQUENT * max(self._searcher.num_docs, LEAST_PAGES)
        return len(read) == 1 and not word.prefix and self._searcher.doc_freq(FORMS, read[0]) > most

    def _with_missing(self, matches: Sequence[Match], words: Sequence[Word]) -> tuple[Match, ...]:
        """The matches, each with the query words that it lacks."""
        if not matches or not words:
            return tuple(matches)
        ids = [match.url_id for match in matches]
        holders, most = [], len(ids) * len(self._folders)
        for word in words:
            holders.append((word.text, set(self._ids(self._places(self._matcher.holds(word, ids), most)))))
        return tuple(
            match._replace(missing=tuple(text for text, pages in holders if match.url_id not in pages))
            for match in matches
        )

    def _run(self, asked: tantivy.Query, most: int) -> tuple[int, list[_ScoredAddress]]:
        answer = self._searcher.search(asked, most)
        return int(answer.count), list(answer.hits)  # type: ignore[attr-defined]  # the engine's stubs lack it

    def _rank_and_fold(
        self, whole: Sequence[_ScoredAddress], matches: Sequence[_ScoredAddress], rank: Rank
    ) -> list[Match]:
        """Pages with all words first, then the rest; each group by score and rank.

        Pages with equal text are folded into the best. A URL that is in several indexes counts once, with its best
        score.
        """
        hits = [*whole, *matches]
        places = [place for _, place in hits]
        ids = self._ids(places)
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
            best._replace(twins=tuple(dict.fromkeys(hit.url_id for hit in rest if hit.url_id != best.url_id)))
            for best, *rest in groups.values()
        ]

    def _local(self, ids: Sequence[UrlId]) -> set[UrlId]:
        """The duplicated ids that belong to local folders: equal folder names there mean different hosts."""
        doubles = [url_id for url_id, times in Counter(ids).items() if times > 1]
        local = tantivy.Query.regex_query(self._index.schema, HOST, ".*" + re.escape(FOLDER_DOMAIN))
        return set(self._filter_pages(local, doubles))

    def _count_facets(self, query: tantivy.Query, fields: dict[str, str], most: int) -> tuple[Facet, ...]:
        aggregations = {name: {"terms": {"field": field, "size": most}} for name, field in fields.items()}
        counted = self._searcher.aggregate(query, aggregations)
        return tuple(
            Facet(name, tuple((str(bucket["key"]), int(bucket["doc_count"])) for bucket in counted[name]["buckets"]))
            for name in fields
        )


class _WordQueries(NamedTuple):
    """The engine's queries for a user query."""

    whole: tantivy.Query  # pages with all discriminating words
    matches: tantivy.Query | None  # pages with some of them, or with parts of a name; None if there is only one
    words: tuple[Word, ...]  # without those that most pages have
    nowhere: tuple[Word, ...]  # words that no page has


def _missing_word_notes(wanting: _WordQueries, whole: int, total: int) -> Iterator[str]:
    """Notes about missing words. whole: number of pages with all available words; total: of all matches."""
    if wanting.nowhere and total:
        yield f"no page has {', '.join(word.text for word in wanting.nowhere)}"
    if whole < total and whole and not wanting.nowhere:
        yield f"pages with all words come first, {whole} of them; then pages with some of them"
    elif whole < total and len(wanting.words) > 1:
        yield "no page has all the words in its content: these pages have some of them"
