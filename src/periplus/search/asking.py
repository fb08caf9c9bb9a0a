"""What does the index answer to a query? Matches in order, their number, facets, and what else may have been meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tantivy

from periplus.model.search import Facet, Match, Matches
from periplus.model.web import UrlId
from periplus.search.fields import FORMS, ID, IS, LANGUAGE, MEDIA, NOINDEX, SAID, SITE, TWIN, YEAR
from periplus.search.index import open_index
from periplus.search.matching import Matcher
from periplus.search.query import All, Any, Node, Not, Only, Phrase, Word, asks_for, parse
from periplus.search.spelling import suggested
from periplus.settings import Searching

LOOKED_AT = 200  # matches that are weighed by rank, and among which those of equal text are folded
LANGUAGES = 5  # in whose forms a word is looked for; further ones are found by spelling
FACET_VALUES = 10
FEW = 3  # matches: with fewer, another spelling may have been meant
_FACETS = {"site": SITE, "type": MEDIA, "language": LANGUAGE, "year": YEAR}

_Scored = tuple[float, tantivy.DocAddress]
Rank = Callable[[Sequence[UrlId]], Sequence[float]]  # of pages, as 0 to 1


@dataclass(frozen=True, slots=True)
class Wish:
    """Which of the matches are wanted."""

    limit: int = 10
    offset: int = 0
    facets: bool = False


class Searcher:
    """An index as it was last committed when `refresh` was called. Not for several threads at once."""

    def __init__(self, folder: Path, weights: Searching) -> None:
        """Raises LookupError where folder has no index that can be read."""
        index = open_index(folder)
        if index is None:
            raise LookupError(folder)
        index.config_reader("manual")
        self._index, self._weights = index, weights
        self.refresh()

    def refresh(self) -> None:
        """Sees what was committed since."""
        self._index.reload()
        self._searcher = self._index.searcher()
        self._matcher = Matcher(self._index.schema, self._weights, self._languages(), lambda form: self._searcher.doc_freq(FORMS, form) > 0)

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
        return tuple(value for value, _ in self._counted(tantivy.Query.all_query(), {"language": LANGUAGE}, LANGUAGES)[0].values if value)

    def said(self) -> dict[UrlId, int]:
        """Of every page in the index, `fields.said_digest` of the words of links to it that were indexed."""
        if not self.pages:
            return {}
        places = [place for _, place in self._searcher.search(tantivy.Query.all_query(), self.pages, False).hits]
        ids, digests = (self._searcher.fast_field_values(field, places) for field in (ID, SAID))
        return {UrlId(int(url_id or 0)): int(digest or 0) for url_id, digest in zip(ids, digests, strict=True)}

    def search(self, text: str, wish: Wish, rank: Rank) -> Matches:
        """The pages that answer. Where none has all words, those that have some."""
        query = parse(text)
        if query.root is None:
            return Matches(0, (), (), query.notes or ("nothing was asked for",), "")
        notes = list(query.notes)
        most = max(LOOKED_AT, wish.offset + wish.limit)
        asked, (total, hits) = self._found(query.root, most)
        suggestion = suggested(self._searcher, query, text) if total < FEW else ""
        looser = some_of(query.root) if not hits else None
        if looser is not None:
            asked, (total, hits) = self._found(looser, most)
            if hits:
                notes.append("no page has all the words: shown are pages with some of them")
        matches = self._ordered(hits, rank)[wish.offset : wish.offset + wish.limit]
        facets = self._counted(asked, _FACETS, FACET_VALUES) if wish.facets else ()
        return Matches(total, tuple(matches), facets, tuple(notes), suggestion)

    def _found(self, root: Node, most: int) -> tuple[tantivy.Query, tuple[int, Sequence[_Scored]]]:
        asked = self._matcher.query(root if asks_for(root, IS) else All((root, Not(Only(IS, NOINDEX)))))
        found = self._searcher.search(asked, most)
        return asked, (int(found.count), found.hits)  # type: ignore[attr-defined]  # the engine's stubs lack it

    def _ordered(self, hits: Sequence[_Scored], rank: Rank) -> list[Match]:
        """By score and rank, those of equal text folded into the best of them."""
        places = [place for _, place in hits]
        ids = [UrlId(int(value or 0)) for value in self._searcher.fast_field_values(ID, places)]
        twins = self._searcher.fast_field_values(TWIN, places)
        gains = rank(ids)
        scored = [
            (score * (1 + self._weights.weight_rank * gain), url_id, twin) for (score, _), url_id, twin, gain in zip(hits, ids, twins, gains, strict=True)
        ]
        groups: dict[object, list[tuple[float, UrlId]]] = {}
        for score, url_id, twin in sorted(scored, key=lambda item: (-item[0], item[1])):
            groups.setdefault(twin, []).append((score, url_id))
        return [Match(group[0][1], group[0][0], tuple(url_id for _, url_id in group[1:])) for group in groups.values()]

    def _counted(self, query: tantivy.Query, fields: dict[str, str], most: int) -> tuple[Facet, ...]:
        wanted = {name: {"terms": {"field": field, "size": most}} for name, field in fields.items()}
        counted = self._searcher.aggregate(query, wanted)
        return tuple(Facet(name, tuple((str(bucket["key"]), int(bucket["doc_count"])) for bucket in counted[name]["buckets"])) for name in fields)


def some_of(root: Node) -> Node | None:
    """The same with any of its words in place of all; None where it is no list of words."""
    if not isinstance(root, All):
        return None
    words = [item for item in root.items if isinstance(item, Word | Phrase)]
    if len(words) < 2:
        return None
    rest = [item for item in root.items if not isinstance(item, Word | Phrase)]
    return All((Any(tuple(words)), *rest)) if rest else Any(tuple(words))
