"""Translates parsed queries to the engine's: stemmed words, phrases and filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import tantivy

from periplus.document.language import is_beyond_latin
from periplus.document.words import asked_terms, fold_form, forms, is_run, script_languages, table
from periplus.model.web import UrlId
from periplus.retrieval.index import (
    ADDRESS,
    ANCHOR,
    DEFINED,
    FORMS,
    HEADING,
    HOST,
    ID,
    IS,
    LANGUAGE,
    NAMES,
    NAVIGATION,
    NOINDEX,
    TERM_FIELDS,
    TEXT,
    TITLE,
    TYPE,
    WHEN,
    defined_name,
    primary,
    whole_name,
)
from periplus.retrieval.query import (
    All,
    Among,
    Any,
    During,
    Node,
    Not,
    Only,
    Phrase,
    Word,
    asked_words,
    asks_for,
    only_asks,
    split_conditions,
)
from periplus.settings import Searching
from periplus.values import frozen

NEVER, EVER = -(2**63), 2**63 - 1
PHRASE_WORDS = 16  # longer phrases are cut: this many words are specific enough
# Of 3, 8 and 20 as the greatest distance, and 0.5, 1 and 2 times the gain of adjacent words, these scored best on the
# manuals of quality/search that the weights are tuned on.
NEAR_WORDS = 8
NEAR_SHARE = 0.5
OF_A_WORD = 0.5  # share of the gain if a page defines a single word of the query rather than all of it
CONTENT = "content"
_WITHIN = {field: (field,) for field in TERM_FIELDS} | {
    "": TERM_FIELDS, CONTENT: tuple(field for field in TERM_FIELDS if field != NAVIGATION)
}  # fmt: skip


@frozen
class Matcher:
    """Builds the engine's queries.

    languages: of the pages, most frequent first; each word is stemmed for each of them.
    """

    schema: tantivy.Schema
    weights: Searching
    languages: Sequence[str]
    pages: Callable[[str], int]  # number of pages with a spelling

    def query(self, root: Node, helpful: Sequence[Word], asked: Node) -> tantivy.Query:
        """Pages that match root, scored.

        helpful: optional words that raise the score. asked: the whole query, for exact titles and definitions.
        """
        shown = () if asks_for(asked, IS) else [(tantivy.Occur.MustNot, self._filter(self._only(IS, NOINDEX)))]
        extra = [
            *map(self._word, helpful),
            *self._whole_titles(asked),
            *self._definitions(asked),
            *self._neighbours(asked),
        ]
        return tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Must, self._node(root)),
                *self._outside_menus(root),
                *shown,
                *((tantivy.Occur.Should, query) for query in extra),
            ]
        )

    def _outside_menus(self, root: Node) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        """At least one of several words must occur outside of menus: menus alone are not a match."""
        words, _ = split_conditions(root)
        several = [self._word(replace(word, within=CONTENT)) for word in words] if len(words) > 1 else []
        return [(tantivy.Occur.Must, self._filter(any_of(several)))] if several else []

    def holds(self, word: Word, ids: Sequence[UrlId]) -> tantivy.Query:
        """The pages among ids that have a word."""
        return tantivy.Query.boolean_query(
            [(tantivy.Occur.Must, self._word(word)), (tantivy.Occur.Must, self.among(ids))]
        )

    def among(self, pages: Sequence[UrlId]) -> tantivy.Query:
        """Pages with these ids, all with the same score: 100,000 take 0.1 s."""
        if not pages:
            return tantivy.Query.empty_query()
        return self._filter(tantivy.Query.term_set_query(self.schema, ID, list(pages)))

    def _node(self, node: Node) -> tantivy.Query:
        match node:
            case Word():
                return self._word(node)
            case Phrase(text, within):
                return self._phrase(forms(text), within, 1.0)
            case Only(field, value):
                return self._filter(self._only(field, value))
            case Among(pages):
                return self.among(pages)
            case During(after, before):
                low, high = NEVER if after is None else int(after), EVER if before is None else int(before)
                return self._filter(
                    tantivy.Query.range_query(self.schema, WHEN, tantivy.FieldType.Integer, low, high, True, False)
                )
            case Not():
                return self._all((node,))
            case All(items):
                return self._all(items)
            case Any(items):
                return any_of(map(self._node, items))

    def _all(self, items: Iterable[Node]) -> tantivy.Query:
        clauses = [
            (tantivy.Occur.MustNot, self._node(item.item)) if isinstance(item, Not) else (tantivy.Occur.Must,
                self._node(item))
            for item in items
        ]  # fmt: skip
        if all(isinstance(item, Not) for item in items):  # a query of exclusions only excludes from all pages
            clauses.append((tantivy.Occur.Must, self._filter(tantivy.Query.all_query())))
        return tantivy.Query.boolean_query(clauses)

    def _filter(self, query: tantivy.Query) -> tantivy.Query:
        """A filter: does not affect the score."""
        return tantivy.Query.const_score_query(query, 0.0)

    def _only(self, field: str, value: str) -> tantivy.Query:
        if field == "site":
            host = (value.partition("://")[2] or value).partition("/")[0]
            name, text = HOST, host.removeprefix("*.").removeprefix("www.")
        elif field == "language":
            name, text = LANGUAGE, primary(value)
        else:
            name, text = (IS, value) if field == IS else (TYPE, value.removeprefix("."))
        return tantivy.Query.term_query(self.schema, name, text)

    def _word(self, word: Word) -> tantivy.Query:
        """A word in any of its forms. One that is split into several forms (x-ray, a.b) becomes a phrase."""
        read = forms(word.text)
        if not read:
            return tantivy.Query.empty_query()
        if len(read) > 1 or (is_run(read[0]) and not word.prefix):
            return self._phrase(read, word.within, 1.0, prefix=word.prefix)
        form = read[0]
        if word.prefix:
            return any_of(self._prefix_queries(form, word.within))
        spelled = [] if word.within else self._spelling_queries(form, exact=word.exact)
        exact = word.exact and not word.within
        fields = [field for field in _WITHIN[word.within] if not (exact and field == NAVIGATION)]
        by_place = [self._weigh(self._term(field, term), field) for field in fields for term in self._terms(form)]
        if not exact:
            return any_of([*by_place, *spelled])
        return tantivy.Query.boolean_query(
            [(tantivy.Occur.Must, any_of(spelled)), *((tantivy.Occur.Should, query) for query in by_place)]
        )

    def _terms(self, form: str) -> list[str]:
        """The stem of a form in each language, each once; and the folded form, for addresses and unknown languages."""
        terms = [term for language in self._languages_of(form) for term in asked_terms(form, language)[:1]]
        return list(dict.fromkeys([*terms, fold_form(form)]))

    def _languages_of(self, form: str) -> Sequence[str]:
        """Languages of the pages; plus those of the form's script if no page has one of them: a Russian title on an
        English site.
        """
        others = script_languages(form)
        if "en" in others and not all(map(is_beyond_latin, self.languages)):
            return self.languages
        return [*self.languages, *(language for language in others if language not in self.languages)]

    def _spelling_queries(self, form: str, *, exact: bool) -> list[tantivy.Query]:
        """By spelling: the exact one, the same without diacritics, then others with equal letters but other diacritics.

        If the index has several of these, pages with the exact spelling come first.
        """
        plain = fold_form(form)
        others = ["~" + plain] if form == plain else [plain, "~" + plain]
        spellings = [(form, 1.0), *([] if exact else [(other, 0.5) for other in others])]
        weight, boosted = self.weights.weight_spelling, tantivy.Query.boost_query
        queries = [boosted(self._term(FORMS, spelling), weight * share) for spelling, share in spellings]
        if not exact and self.pages(form) and self._has_other_marks(form, plain):
            queries.append(tantivy.Query.const_score_query(self._term(FORMS, form), self.weights.weight_diacritics))
        return queries

    def _has_other_marks(self, form: str, plain: str) -> bool:
        """Whether pages have the word with other diacritics than typed, or without them."""
        marked = self.pages("~" + plain)
        return marked > 0 if form == plain else self.pages(plain) > 0 or marked > self.pages(form)

    def _prefix_queries(self, form: str, within: str) -> list[tantivy.Query]:
        pattern = re.escape(fold_form(form)) + ".*"
        fields = _WITHIN[within]
        queries = [self._weigh(tantivy.Query.regex_query(self.schema, field, pattern), field) for field in fields]
        if not within:
            queries.append(tantivy.Query.regex_query(self.schema, FORMS, f"{re.escape(form)}.*|~{pattern}"))
        return queries

    def _phrase(self, read: Sequence[str], within: str, share: float, *, prefix: bool = False) -> tantivy.Query:
        """Consecutive forms in one field. With prefix, the last is the beginning of a word."""
        rows = dict.fromkeys(self._phrase_terms(read, language) for language in [*self._languages_of(read[0]), ""])
        return any_of(
            self._weigh(self._adjacent(field, terms, prefix=prefix, is_sign=is_run(read[0])), field, share)
            for terms in rows
            for field in (_WITHIN[within] if terms else ())
        )

    def _adjacent(
        self, field: str, terms: Sequence[str], *, prefix: bool = False, is_sign: bool = False, apart: int = 0
    ) -> tantivy.Query:
        """Consecutive terms.

        is_sign: a single character matches the beginning of any term. apart: other words allowed between them.
        """
        if len(terms) > 1:
            if prefix:
                return tantivy.Query.phrase_prefix_query(self.schema, field, list(terms))
            return tantivy.Query.phrase_query(self.schema, field, list(terms), apart)
        if is_sign and len(terms[0]) == 1:
            return tantivy.Query.regex_query(self.schema, field, re.escape(terms[0]) + ".*")
        return self._term(field, terms[0])

    def _phrase_terms(self, read: Sequence[str], language: str) -> tuple[str, ...]:
        """The index terms for consecutive forms: only the last run may be incomplete."""
        words = table(language)
        before = [term for form in read[:-1] for term in words[form].split(" ")]
        return tuple([*before, *(term for form in read[-1:] for term in asked_terms(form, language))][:PHRASE_WORDS])

    def _whole_titles(self, root: Node) -> list[tantivy.Query]:
        """Titles equal to the query."""
        name = whole_name(" ".join(word.text for word in asked_words(root)))
        if not name or isinstance(root, Any) or not self.weights.weight_whole_title:
            return []
        return [tantivy.Query.const_score_query(self._term(NAMES, name), self.weights.weight_whole_title)]

    def _definitions(self, root: Node) -> list[tantivy.Query]:
        """Pages that define a name: the whole query, or a word in it that is written like a name."""
        words = asked_words(root)
        weight = self.weights.weight_definition
        if not words or not weight or isinstance(root, Any):
            return []
        names = {defined_name(" ".join(word.text for word in words)): 1.0}
        names = {defined_name(word.text): OF_A_WORD for word in words if is_name(word.text)} | names
        return [
            tantivy.Query.const_score_query(self._term(DEFINED, spelling), weight * share * of_whole)
            for name, of_whole in names.items()
            for spelling, share in ((name, 1.0), ("~" + name, 0.5))
        ]

    def _neighbours(self, root: Node) -> list[tantivy.Query]:
        """All words of a plain query as a phrase; and, with less weight, the words except function words near each
        other.
        """
        items = root.items if isinstance(root, All) else ()
        plain = [item for item in items if isinstance(item, Word) and not item.prefix and not item.within]
        if len(plain) < 2 or not self.weights.weight_phrase:
            return []
        read = [form for word in plain for form in forms(word.text)]
        weight = self.weights.weight_phrase
        share = weight * (len(plain) - 1)  # two words may be adjacent by chance, ten are not
        beside = [
            self._weigh(self._adjacent(field, terms), field, share)
            for terms in dict.fromkeys(self._phrase_terms(read, language) for language in self.languages)
            for field in (TITLE, ANCHOR, HEADING, TEXT)
        ]
        asked = [word for word in plain if not only_asks(word, self.languages)]
        read = [form for word in asked for form in forms(word.text)]
        return beside + [
            self._weigh(self._adjacent(field, terms, apart=NEAR_WORDS), field, weight * NEAR_SHARE)
            for terms in dict.fromkeys(self._phrase_terms(read, language) for language in self.languages)
            for field in (TITLE, HEADING, TEXT)
            if len(asked) > 1
        ]

    def _term(self, field: str, term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self.schema, field, term, "freq")

    def _weigh(self, query: tantivy.Query, field: str, share: float = 1.0) -> tantivy.Query:
        weights = self.weights
        weight = {
            TITLE: weights.weight_title, ANCHOR: weights.weight_anchor, HEADING: weights.weight_heading,
            TEXT: weights.weight_text,
            NAVIGATION: weights.weight_navigation, ADDRESS: weights.weight_url,
        }[field]  # fmt: skip
        return tantivy.Query.boost_query(query, weight * share)


def any_of(queries: Iterable[tantivy.Query]) -> tantivy.Query:
    several = list(queries)
    if len(several) == 1:
        return several[0]
    if not several:
        return tantivy.Query.empty_query()
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in several])


def is_name(text: str) -> bool:
    """Whether a word is written like a name in code: `os.path`, `snake_case`, `CamelCase`, `--flag`, `zip()`."""
    return _NAME.search(text) is not None


_NAME = re.compile(r"\w[._:]+\w|[a-z][A-Z]|^-|^_|\(\)$")
