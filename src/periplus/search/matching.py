"""How does a query become what the engine looks for?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import tantivy

from periplus.document.words import asked_terms, folded, forms, is_run, table
from periplus.search.fields import (
    ADDRESS,
    ANCHOR,
    FORMS,
    HEADING,
    HOST,
    IS,
    LANGUAGE,
    NAMES,
    NAVIGATION,
    TERM_FIELDS,
    TEXT,
    TITLE,
    TYPE,
    WHEN,
    primary,
    whole_name,
)
from periplus.search.query import All, Any, During, Node, Not, Only, Phrase, Word, asked_words
from periplus.settings import Searching

NEVER, EVER = -(2**63), 2**63 - 1
PHRASE_WORDS = 16  # of a longer one the first: they say enough
_WITHIN = {"title": (TITLE,), "url": (ADDRESS,), "": TERM_FIELDS}


@dataclass(frozen=True, slots=True)
class Matcher:
    """Makes the engine's queries. languages: of the pages, the most frequent first; a word is looked for in its form in each."""

    schema: tantivy.Schema
    weights: Searching
    languages: Sequence[str]
    known: Callable[[str], bool]  # whether a spelling occurs

    def query(self, root: Node) -> tantivy.Query:
        """Pages that answer, scored."""
        must = self._node(root)
        extra = [*self._whole_titles(root), *self._neighbours(root)]
        if not extra:
            return must
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, must), *((tantivy.Occur.Should, query) for query in extra)])

    def _node(self, node: Node) -> tantivy.Query:
        match node:
            case Word():
                return self._word(node)
            case Phrase(text, within):
                return self._phrase(forms(text), within, 1.0)
            case Only(field, value):
                return self._silent(self._only(field, value))
            case During(after, before):
                low, high = NEVER if after is None else int(after), EVER if before is None else int(before)
                return self._silent(tantivy.Query.range_query(self.schema, WHEN, tantivy.FieldType.Integer, low, high, True, False))
            case Not():
                return self._all((node,))
            case All(items):
                return self._all(items)
            case Any(items):
                return _either(map(self._node, items))

    def _all(self, items: Iterable[Node]) -> tantivy.Query:
        clauses = [
            (tantivy.Occur.MustNot, self._node(item.item)) if isinstance(item, Not) else (tantivy.Occur.Must, self._node(item))
            for item in items
        ]  # fmt: skip
        if all(isinstance(item, Not) for item in items):  # what is left out must be left out of something
            clauses.append((tantivy.Occur.Must, self._silent(tantivy.Query.all_query())))
        return tantivy.Query.boolean_query(clauses)

    def _silent(self, query: tantivy.Query) -> tantivy.Query:
        """Narrows, and does not count."""
        return tantivy.Query.const_score_query(query, 0.0)

    def _only(self, field: str, value: str) -> tantivy.Query:
        if field == "site":
            host = value.partition("://")[2] or value
            return tantivy.Query.term_query(self.schema, HOST, host.partition("/")[0].removeprefix("*.").removeprefix("www."))
        if field == "language":
            return tantivy.Query.term_query(self.schema, LANGUAGE, primary(value))
        if field == IS:
            return tantivy.Query.term_query(self.schema, IS, value)
        return tantivy.Query.term_query(self.schema, TYPE, value.removeprefix("."))

    def _word(self, word: Word) -> tantivy.Query:
        """A word in any of its forms; what is written as one word and read as several (x-ray, a.b) is a phrase."""
        read = forms(word.text)
        if not read:
            return tantivy.Query.empty_query()
        if len(read) > 1 or (is_run(read[0]) and not word.prefix):
            return self._phrase(read, word.within, 1.0, prefix=word.prefix)
        form = read[0]
        if word.prefix:
            return _either(self._beginnings(form, word.within))
        spelled = [] if word.within else self._spelled(form, exact=word.exact)
        if word.exact and not word.within:
            by_place = [self._weighed(self._term(field, term), field) for field in TERM_FIELDS if field != NAVIGATION for term in self._terms(form)]
            return tantivy.Query.boolean_query(
                [(tantivy.Occur.Must, _either(spelled)), *((tantivy.Occur.Should, query) for query in by_place)]
            )  # fmt: skip
        return _either([*(self._weighed(self._term(field, term), field) for field in _WITHIN[word.within] for term in self._terms(form)), *spelled])

    def _terms(self, form: str) -> list[str]:
        """The form's terms in each of the languages, each once; and the bare form, as addresses and pages of unknown language have it."""
        return list(dict.fromkeys([term for language in self.languages for term in asked_terms(form, language)[:1]] + [folded(form)]))

    def _spelled(self, form: str, *, exact: bool) -> list[tantivy.Query]:
        """By spelling: this very one, then the same without diacritics, then others that are alike without them.

        Where the index has the word in more than one of these, pages that have it as asked for come first.
        """
        plain = folded(form)
        others = ["~" + plain] if form == plain else [plain, "~" + plain]
        wanted = [(form, 1.0), *([] if exact else [(other, 0.5) for other in others])]
        found = [_boosted(self._term(FORMS, spelling), self.weights.weight_spelling * share) for spelling, share in wanted]
        if not exact and self.known(form) and self.known("~" + plain):  # "~": some page has it with diacritics
            found.append(tantivy.Query.const_score_query(self._term(FORMS, form), self.weights.weight_diacritics))
        return found

    def _beginnings(self, form: str, within: str) -> list[tantivy.Query]:
        pattern = re.escape(folded(form)) + ".*"
        fields = _WITHIN[within]
        found = [self._weighed(tantivy.Query.regex_query(self.schema, field, pattern), field) for field in fields]
        if not within:
            found.append(tantivy.Query.regex_query(self.schema, FORMS, f"{re.escape(form)}.*|~{pattern}"))
        return found

    def _phrase(self, read: Sequence[str], within: str, share: float, *, prefix: bool = False) -> tantivy.Query:
        """The forms one after another, in one field. With prefix, the last is the beginning of a word."""
        found = []
        for terms in dict.fromkeys(self._phrase_terms(read, language) for language in [*self.languages, ""]):
            for field in _WITHIN[within]:
                if prefix and len(terms) > 1:
                    found.append(self._weighed(tantivy.Query.phrase_prefix_query(self.schema, field, list(terms)), field, share))
                elif len(terms) > 1:
                    found.append(self._weighed(tantivy.Query.phrase_query(self.schema, field, list(terms)), field, share))
                elif terms and is_run(read[0]) and len(terms[0]) == 1:  # one character: any term that it begins
                    found.append(self._weighed(tantivy.Query.regex_query(self.schema, field, re.escape(terms[0]) + ".*"), field, share))
                elif terms:
                    found.append(self._weighed(self._term(field, terms[0]), field, share))
        return _either(found)

    def _phrase_terms(self, read: Sequence[str], language: str) -> tuple[str, ...]:
        """What stands in the index where the forms stand: only the last run may go on there."""
        known = table(language)
        before = [term for form in read[:-1] for term in known[form].split(" ")]
        return tuple([*before, *(term for form in read[-1:] for term in asked_terms(form, language))][:PHRASE_WORDS])

    def _whole_titles(self, root: Node) -> list[tantivy.Query]:
        """Titles that are just what was asked for."""
        name = whole_name(" ".join(word.text for word in asked_words(root)))
        if not name or isinstance(root, Any) or not self.weights.weight_whole_title:
            return []
        return [tantivy.Query.const_score_query(self._term(NAMES, name), self.weights.weight_whole_title)]

    def _neighbours(self, root: Node) -> list[tantivy.Query]:
        """All words of a plain query, one after another."""
        items = root.items if isinstance(root, All) else ()
        plain = [item for item in items if isinstance(item, Word) and not item.prefix and not item.within]
        if len(plain) < 2 or not self.weights.weight_phrase:
            return []
        read = [form for word in plain for form in forms(word.text)]
        share = self.weights.weight_phrase * (len(plain) - 1)  # two words stand side by side by chance, ten do not
        found = []
        for terms in dict.fromkeys(self._phrase_terms(read, language) for language in self.languages):
            found += [self._weighed(_phrase_query(self.schema, field, terms), field, share) for field in (TITLE, ANCHOR, HEADING, TEXT)]
        return found

    def _term(self, field: str, term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self.schema, field, term, "freq")

    def _weighed(self, query: tantivy.Query, field: str, share: float = 1.0) -> tantivy.Query:
        weights = self.weights
        weight = {
            TITLE: weights.weight_title, ANCHOR: weights.weight_anchor, HEADING: weights.weight_heading, TEXT: weights.weight_text,
            NAVIGATION: weights.weight_navigation, ADDRESS: weights.weight_url,
        }[field]  # fmt: skip
        return _boosted(query, weight * share)


def _phrase_query(schema: tantivy.Schema, field: str, terms: Sequence[str]) -> tantivy.Query:
    return tantivy.Query.phrase_query(schema, field, list(terms))


def _boosted(query: tantivy.Query, weight: float) -> tantivy.Query:
    return tantivy.Query.boost_query(query, weight)


def _either(queries: Iterable[tantivy.Query]) -> tantivy.Query:
    several = list(queries)
    if not several:
        return tantivy.Query.empty_query()
    return several[0] if len(several) == 1 else tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in several])
