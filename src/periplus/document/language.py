"""Which language is a text in?"""

from __future__ import annotations

import re

_LEAST_LETTERS = 12  # of fewer nobody can tell
_WORDS_OF = {
    "cs": "je se na že to jsou byl pro jako která nebo není",
    "sk": "je sa na že to sú bol pre ako ktorá alebo nie je",
    "pl": "jest się na że to są był dla jako która lub nie",
    "hu": "a az és hogy nem is egy volt vagy meg ez csak",
    "de": "der die das und ist nicht ein eine zu von mit den",
    "en": "the of and to in is that it for was with are",
    "fr": "le la les et est des une dans pour que qui pas",
    "es": "el la los y es de que una en por para con",
    "it": "il la di che è e un per non una sono con",
    "pt": "o a os que é e um para não uma com do",
    "nl": "de het een en van is dat niet op te zijn met",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _WORDS_OF.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_language)
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("uk", re.compile("[іїєґІЇЄҐ]")),
    ("ru", re.compile("[а-яА-Я]")),
    ("el", re.compile("[α-ωά-ώ]")),
    ("he", re.compile("[א-ת]")),
    ("ar", re.compile("[\u0620-\u064a]")),
    ("th", re.compile("[\u0e01-\u0e2e]")),
)
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str:
    """Its BCP 47 primary tag; empty when it is too short to tell, or in none of the languages that we know."""
    sample = text[:4000]
    words = _WORD.findall(sample.lower())
    if sum(map(len, words)) < _LEAST_LETTERS:
        return ""
    for language, letters in _SCRIPTS:
        if len(letters.findall(sample)) * 10 > len(sample):
            return language
    counts: dict[str, int] = {}
    for word in words:
        for language in _LANGUAGES_OF.get(word, ()):
            counts[language] = counts.get(language, 0) + 1
    return max(counts, key=lambda language: counts[language]) if counts else ""


def page_language(declared: str, text: str) -> str:
    """The BCP 47 primary tag of a page that declares a language (empty: it does not) over this text."""
    return language_of(text) or declared.strip().lower().replace("_", "-").partition("-")[0]
