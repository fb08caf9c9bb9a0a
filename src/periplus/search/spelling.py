"""What may have been meant by a word that hardly a page has? A word of the index that differs by a letter or two, the most frequent one."""

from __future__ import annotations

import tantivy

from periplus.document.words import folded, forms, is_run
from periplus.search.fields import FORMS
from periplus.search.query import Phrase, Query, asked_words

MOST_EDITS = 2
LEAST_CHARS = 4  # of shorter words every other one is near
TWO_EDITS_FROM = 7  # characters: a shorter word with two other letters is another word
SAME_BEGINNING = 2  # characters that a word with two other letters shares with what was typed
KNOWN_PAGES = 3  # with a word: it is meant as it stands
TIMES = 10  # so much more frequent must the word be that was meant
MOST_TERMS = 20_000  # with the same beginning that are looked through


def suggested(searcher: tantivy.Searcher, query: Query, text: str) -> str:
    """The query with the words that may have been meant; empty where every word is as good as any."""
    other = text
    for word in asked_words(query.root):
        if isinstance(word, Phrase) or word.prefix or word.within == "url":
            continue
        for form in forms(word.text):
            better = _better(searcher, form)
            if better:
                other = other.replace(_as_typed(text, form), better)
    return other if other != text else ""


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
    letters = sorted(set(word) | set("abcdefghijklmnopqrstuvwxyz" if word.isascii() else "абвгдежзийклмнопрстуфхцчшщыьэюя"))
    parted = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    swapped = {left + right[1] + right[0] + right[2:] for left, right in parted if len(right) > 1}
    dropped = {left + right[1:] for left, right in parted if right}
    added = {left + letter + right for left, right in parted for letter in letters}
    changed = {left + letter + right[1:] for left, right in parted if right for letter in letters}
    return (swapped | dropped | added | changed) - {word}


def distance(one: str, other: str, most: int) -> int:
    """Letters to add, drop, change or swap with their neighbour until one is the other; most + 1 stands for any more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        older, before, row = before, row, [place]
        for at, wanted in enumerate(other, 1):
            cost = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != wanted))
            if at > 1 and place > 1 and letter == other[at - 2] and one[place - 2] == wanted:
                cost = min(cost, older[at - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
