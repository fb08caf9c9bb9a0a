"""Splits text into terms, in the same way for the index and for queries.

A *form* is a word as written, in lower case (NFKC, ё as е). A *term* is a form's stem in the text's language, without
diacritics: folded after stemming, since stemmers need them. Scripts without spaces between words (Chinese, Japanese,
Korean, Thai, ...) give overlapping pairs of characters, plus the last character alone, so that each character begins a
term.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise, repeat
from threading import Lock

import Stemmer

from periplus.document import term_table
from periplus.document.digest import BASE_LETTERS
from periplus.document.term_table import TermTable
from periplus.model.page import IS_APART, Blocks

STEMMERS = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "cs": "czech", "da": "danish", "nl": "dutch",
    "en": "english",
    "eo": "esperanto", "et": "estonian", "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "ne": "nepali", "no": "norwegian",
    "nb": "norwegian",
    "nn": "norwegian", "fa": "persian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian",
    "st": "sesotho", "es": "spanish", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
# Script of a word by its first letter: first and last code point, and the main languages with stemmers
_SCRIPT_LANGUAGES = (
    (0x41, 0x24F, ("en",)),
    (0x370, 0x3FF, ("el",)),
    (0x400, 0x52F, ("ru",)),
    (0x531, 0x58F, ("hy",)),
    (0x620, 0x6FF, ("ar", "fa")),
    (0x900, 0x97F, ("hi",)),
    (0xB82, 0xBD7, ("ta",)),
)
WORD_CHARS = 64  # longer ones are cut: identifiers and encoded data, which are not typed in full
# Words per language in the cache of terms: 15 MB; when full it is cleared, relearning takes 3 us per word. Pages with
# numbers in their titles reach this after 100,000 pages; 300,000 took 134 MB and were not faster
KEPT_WORDS = 100_000
FEW_FORMS = 20  # searching one form in the forms of a page takes 2 us, splitting 1,000 forms 50
# Han, kana, Hangul, bopomofo; Thai, Lao, Tibetan, Burmese, Khmer: no spaces between words
_SCRIPTS_WITHOUT_SPACES = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-"
    "\u3029\u3031-\u3035\u3040-\u318f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_FIRST_WITHOUT_SPACES = "\u0e00"
# c++, c#: part of the word; the sign is tested first, since it is rarer than letters
_SIGN_SUFFIX = re.compile(r"\+\+(?<=[a-z0-9]\+\+)|#(?<=[a-z0-9]#)(?![a-z0-9])")
_PLUS, _SHARP = "\x01", "\x02"  # placeholders for these signs while all others become blanks
_BLANKS = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()} | {_PLUS: "+", _SHARP: "#"})
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_TYPESET = "—–’‘“”…•·\u00a0¶©→«»"
_PUNCTUATION = range(0x2010, 0x2060)  # used in most European scripts: quotation marks, dashes
_LOOKALIKES = str.maketrans(
    BASE_LETTERS
    | {"ß": "ss", "ð": "d", "þ": "th", "ŋ": "n", "ĸ": "k"}
    | {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ة": "ه", "ς": "σ"}
)
# й is not folded to и; Indic vowel signs and kana marks are letters
_NOT_FOLDABLE = (("\u0400", "\u052f"), ("\u0900", "\u1cff"), ("\u3040", "\u30ff"), ("\ua640", "\ua69f"))


# A text without any of these has no marks, and spaces between its words: the patterns of other texts take up to 18 ms
# to compile
_BEYOND_ALPHABETS = re.compile("[\u0300-\U0010ffff]")
_UNMARKED_WORD = re.compile(r"\w+(?:\+\+|#(?!\w))?")


def _unit_pattern(text: str) -> re.Pattern[str]:
    """Finds the units of a normalised text."""
    if not _BEYOND_ALPHABETS.search(text):
        return _UNMARKED_WORD
    if _script_without_spaces().search(text):
        return unit_patterns()[1]
    return unit_patterns()[0] if _may_be_marked().search(text) else _UNMARKED_WORD


@lru_cache(maxsize=1)
def _script_without_spaces() -> re.Pattern[str]:
    return re.compile(f"[{_SCRIPTS_WITHOUT_SPACES}]")


@lru_cache(maxsize=1)
def _may_be_marked() -> re.Pattern[str]:
    """Finds all combining marks, and other characters of their scripts."""
    return re.compile(
        "[\u0300-\u036f\u0483-\u0489\u0591-\u1dff\u20d0-\u20ff\u2cef-\u2dff\u302a-\u302f\u3099\u309a\ua66f-\uabff"
        "\ufb1e\ufe00-\ufe2f]"
    )


@lru_cache(maxsize=1)
def unit_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """(a word in any script, a unit within it, a character with its marks)."""
    # Larger sets are slow; scripts in the gaps have no marks
    codes = (*range(0x300, 0x3400), *range(0xA000, 0xAC00), *range(0xD7B0, 0xD800), *range(0xF900, 0x10000))
    marks = "".join(char for char in map(chr, codes) if unicodedata.category(char)[0] == "M")
    word = rf"\w+(?:[{marks}]+\w*)*(?:\+\+|#(?!\w))?"  # the underscore is already a blank here
    spaceless = _SCRIPTS_WITHOUT_SPACES
    parted = rf"[^\W{spaceless}]"
    units = rf"[{spaceless}][{spaceless}{marks}]*|{parted}+(?:[{marks}]+{parted}*)*(?:\+\+|#(?!\w))?"
    return re.compile(word), re.compile(units), re.compile(rf".[{marks}]*", re.DOTALL)


def plain(text: str) -> str:
    """Normalises a text for `forms`."""
    if text.isascii():
        return text.lower()
    text = text.replace("\u00ad", "")
    for sign in _TYPESET:  # without these signs most English texts are ASCII, which is processed four times as fast
        text = text.replace(sign, " ")
    text = text.lower()
    if text.isascii():
        return text
    if not unicodedata.is_normalized("NFKC", text):
        # each may undo the other
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    return text.replace("ё", "е").replace("_", " ")


def forms(text: str) -> list[str]:
    """The forms of a text in order; a run without spaces is a single form."""
    text = plain(text)
    if text.isascii():
        return _ascii_forms(text)
    words: list[str] = []
    done = 0
    # words do not span lines, and most lines are ASCII
    while strange := _NOT_ASCII.search(text, done):
        start = text.rfind("\n", done, strange.start()) + 1 or done
        end = text.find("\n", strange.end())
        words += _ascii_forms(text[done:start])
        done = end if end >= 0 else len(text)
        words += _forms_of_any(text[start:done])
    return words + _ascii_forms(text[done:])


def _forms_of_any(line: str) -> list[str]:
    """As `forms`, for a normalised line in any script."""
    return _unit_pattern(line).findall(line)


def _ascii_forms(text: str) -> list[str]:
    """Equivalent to the word pattern, in less than half the time."""
    text = text.replace(_PLUS, " ").replace(_SHARP, " ")
    if "++" in text or "#" in text:
        text = _SIGN_SUFFIX.sub(lambda sign: _SHARP + " " if sign[0] == "#" else _PLUS * 2 + " ", text)
    return text.translate(_BLANKS).split()


def units(text: str) -> Iterator[tuple[str, int, int]]:
    """(unit, start, end) of the unseparated units of a text, in lower case if that keeps the length.

    `plain` turns a unit into a form: a word, or a run in a script without spaces.
    """
    lower = text.lower().replace("_", " ")
    text = lower if len(lower) == len(text) else text.replace("_", " ")
    for match in _unit_pattern(text).finditer(text):
        yield match[0], *match.span()


def _truncate(form: str) -> str:
    return form[:WORD_CHARS]


def ascii_line(text: str) -> str | None:
    """The text in lower case with typographic signs as blanks, each character at its position, so that its forms are
    the text's. None if it has any other non-ASCII character.
    """
    if not text.isascii():
        for sign in _TYPESET:
            text = text.replace(sign, " ")
    return text.lower() if text.isascii() else None


def is_run(form: str) -> bool:
    """Whether the form is in a script without spaces."""
    return form >= _FIRST_WITHOUT_SPACES and _script_without_spaces().match(form) is not None


def fold_form(form: str) -> str:
    """A form or stem without diacritics. Idempotent."""
    if form.isascii():
        return form
    return "".join(map(_folded_char, unicodedata.normalize("NFC", form)))


@cache
def _folded_char(char: str) -> str:
    if any(first <= char <= last for first, last in _NOT_FOLDABLE):
        return "е" if char == "ё" else char
    parts = unicodedata.normalize("NFKD", char.translate(_LOOKALIKES))
    bare = "".join(part for part in parts if not unicodedata.combining(part))
    return bare.translate(_LOOKALIKES)


class _Terms(dict[str, str]):
    """Cache of the terms of forms in one language. The terms of a run are separated by blanks."""

    def __init__(self, algorithm: str) -> None:
        self._stem = Stemmer.Stemmer(algorithm, 0).stemWord if algorithm else str

    def __missing__(self, form: str) -> str:
        if len(self) >= KEPT_WORDS:
            self.clear()
        self[form] = term = " ".join(pairs(form)) if is_run(form) else self.term(_truncate(form))
        return term

    def learn(self, form: str) -> tuple[str, str]:
        """(spellings of a form, as in `shown_forms`, separated by blanks; its term). Not for runs."""
        plain_form = form if form.isascii() else _folded_form(form)
        return form if plain_form == form else f"{form} ~{plain_form}", self.term(form)

    def term(self, form: str) -> str:
        """The term of a form that is not a run."""
        if not form[:1].isalpha():  # numbers have no endings
            return fold_form(form)
        return fold_form(self._stem(form)) or fold_form(form) or form


@cache
def _table(algorithm: str) -> _Terms:
    return _Terms(algorithm)


@lru_cache(maxsize=1_024)  # pages may declare anything
def algorithm_of(language: str) -> str:
    """The stemmer of a language (BCP 47); '' if it has none: stems are then equal to forms."""
    return STEMMERS.get(language.lower().partition("-")[0].partition("_")[0], "")


def script_languages(form: str) -> tuple[str, ...]:
    """The languages in which a word is stemmed if no page is in a language of its script, since single
    blocks may be.
    """
    return next((languages for first, last, languages in _SCRIPT_LANGUAGES if first <= ord(form[0]) <= last), ())


def table(language: str) -> dict[str, str]:
    """Maps any form to its terms. language: BCP 47."""
    return _table(algorithm_of(language))


class BlockTexts:
    """The texts of a page's blocks as slices of the whole text. Not thread-safe."""

    def __init__(self, blocks: Blocks) -> None:
        self._whole = f"{blocks.text}\n{blocks.apart}"
        self.codes = memoryview(self._whole.encode("utf-32-le", "surrogatepass")).cast("I")
        self.places = memoryview(bytearray(12 * len(blocks))).cast("i")
        lines = memoryview(array("i", blocks.lines or repeat(0, len(blocks))))
        is_apart = memoryview(blocks.kinds.translate(IS_APART))
        apart = len(blocks.text) + 1
        term_table.place_blocks(self.codes, lines, is_apart, apart, _kinds(), self.places)

    def __call__(self, block: int) -> str:
        """The text of a block."""
        return self._whole[self.places[3 * block] : self.places[3 * block + 1]]


class TextCutter:
    """Splits the texts of pages into terms as `forms` and `table` do, in a third of the time for most European scripts.

    Caches words. Not thread-safe.
    """

    def __init__(self, between: str = "") -> None:
        """between: separator word between blocks."""
        self._between = between
        self._tables: dict[str, TermTable] = {}
        self._page = 0
        self._strange: list[str] = []  # forms in lines with characters that the tables do not know

    def begin_page(self) -> None:
        """Starts a page for `spellings`."""
        self._take_spellings()
        self._page += 1

    def terms(self, text: str, language: str, *, spelled: bool = True) -> str:
        """The terms of a text, separated by blanks. spelled: add its forms to the page's spellings."""
        cutter, page = self._table_of(language), self._page if spelled else 0
        codes = memoryview(text.encode("utf-32-le", "surrogatepass")).cast("I")
        place, terms = cutter.cut(codes, 0, page), []
        while place < len(codes):  # a line with a strange character
            end = text.find("\n", place)
            terms += [cutter.take_terms(), self._strange_terms(text[place : end if end >= 0 else None], language, page)]
            place = cutter.cut(codes, end, page) if end >= 0 else len(codes)
        return " ".join([*terms, cutter.take_terms()])

    def block_terms(self, texts: BlockTexts, groups: bytes, group: int, language: str, *, spelled: bool = True) -> str:
        """As `terms`, for the blocks of a group, with the separator between them. groups: a byte per block."""
        cutter, page = self._table_of(language), self._page if spelled else 0
        columns = texts.codes, texts.places, memoryview(groups), group
        block, terms = cutter.cut_blocks(*columns, 0, page), []
        while block < len(groups):
            terms.append(cutter.take_terms())
            terms += [self._strange_terms(line, language, page) for line in texts(block).split("\n")]
            block = cutter.cut_blocks(*columns, block + 1, page)
        return " ".join([*terms, cutter.take_terms()]).partition(" ")[2]  # without the separator before the first block

    def _table_of(self, language: str) -> TermTable:
        algorithm = algorithm_of(language)
        if algorithm not in self._tables:
            learn = _table(algorithm).learn
            between = " ".join(map(_table(algorithm).__getitem__, forms(self._between))).encode()
            self._tables[algorithm] = TermTable(_kinds(), _small(), learn, between, WORD_CHARS, KEPT_WORDS)
        return self._tables[algorithm]

    def _strange_terms(self, line: str, language: str, page: int) -> str:
        of_line = forms(line)
        self._strange += of_line if page else ()
        return " ".join(map(table(language).__getitem__, of_line))

    def spellings(self, without: str) -> str:
        """The `shown_forms` of all texts of the page, distinct, separated by blanks. without: the
        separator, left out.
        """
        shown, strange = self._take_spellings()
        most = max(shown, key=len, default="")
        shown.remove(most) if most else None
        others = shown_forms(strange).union(*map(str.split, shown)) - {without}
        if len(others) > FEW_FORMS:
            return " ".join(others.union(most.split()) - {without})
        if "~" in most:  # two forms may have the same plain spelling
            most = " ".join(dict.fromkeys(most.split(" ")))
        spaced = f" {most}"
        others_there = [form for form in others if f" {form} " not in spaced]
        return " ".join([spaced.replace(f" {without} ", " ").strip(), *others_there]).strip()

    def _take_spellings(self) -> tuple[list[str], list[str]]:
        """(distinct forms of each language, each followed by a blank; forms in lines with strange characters)."""
        shown = [shown for cutter in self._tables.values() if (shown := cutter.take_forms())]
        strange, self._strange = self._strange, []
        return shown, strange


class FormMarker:
    """Lists each form of a page's blocks with its plain spelling and its term, to locate the words of a query.

    Forms learnt are shared by all pages of a language, so calls are serialised.
    """

    def __init__(self, language: str) -> None:
        self._terms = table(language)
        self._table = TermTable(_kinds(), _small(), self._learn, b"\n", WORD_CHARS, KEPT_WORDS)
        self._lock = Lock()

    def _learn(self, form: str) -> tuple[str, str]:
        return form, f"{_folded_form(form)}={self._terms[form]}"

    def mark_forms(self, texts: BlockTexts, groups: bytes) -> str:
        """For the blocks of group 1, each after a line feed: ` PLAIN=TERM ` per form, with single blanks between."""
        with self._lock:
            block, forms_of_blocks = 0, list[str]()
            while block < len(groups):
                block = self._table.cut_blocks(texts.codes, texts.places, memoryview(groups), 1, block, 0)
                forms_of_blocks.append(self._table.take_terms())
                if block < len(groups):  # has a character that the table does not know
                    read = [form for form in forms(texts(block)) if not is_run(form)]
                    forms_of_blocks += [f"{self._learn(_truncate(form))[1]} " for form in read]
                    block += 1
        return "".join(forms_of_blocks)


@lru_cache(maxsize=8)  # about 10 MB each after much use
def form_marker(algorithm: str) -> FormMarker:
    """The marker of all languages with this stemmer, as from `algorithm_of`."""
    return FormMarker(next((language for language, name in STEMMERS.items() if name == algorithm), ""))


@cache
def _kinds() -> memoryview[int]:
    """The kind of each character, up to the last typographic sign, for a `TermTable`."""
    kinds = bytearray([term_table.STRANGE]) * (max(map(ord, _TYPESET)) + 1)
    for code in range(term_table.MOST_CODE + 1):
        kinds[code] = _kind(chr(code))
    for code in _PUNCTUATION:
        if _kind(chr(code)) == term_table.BLANK:
            kinds[code] = term_table.BLANK
    for sign in _TYPESET:
        kinds[ord(sign)] = term_table.BLANK
    return memoryview(bytes(kinds))


def _kind(char: str) -> int:
    """PART or BLANK if `plain` and the patterns only lower-case the character; else STRANGE."""
    category = unicodedata.category(char)
    if char.isascii():
        return term_table.PART if char.isalnum() else term_table.BLANK
    if (
        category[0] == "M"
        or category in ("Cf", "Cn")
        or char == "Σ"  # its lower-case form depends on the position in the word
        or not all(unicodedata.is_normalized("NFKC", form) for form in (char, char.lower()))
    ):
        return term_table.STRANGE
    if not char.isalnum():
        return term_table.BLANK
    small = plain(char)
    return term_table.PART if len(small) == 1 and ord(small) <= term_table.MOST_CODE else term_table.STRANGE


@cache
def _small() -> memoryview[int]:
    """The lower-case letter of each of these characters."""
    small = array("H", bytes(2 * len(_kinds())))
    for code, kind in enumerate(_kinds()):
        if kind == term_table.PART:
            small[code] = ord(plain(chr(code)))
    return memoryview(small)


def pairs(run: str) -> list[str]:
    """The terms of a run: each character with the next one, then the last alone. Marks belong to their character."""
    chars = unit_patterns()[2].findall(fold_form(run))
    return [*map("".join, pairwise(chars)), *chars[-1:]]


def asked_terms(form: str, language: str) -> list[str]:
    """The consecutive terms for a form in a query; for a single character of a script without spaces, the beginning of
    terms.
    """
    terms = table(language)[form].split(" ")
    return terms[:-1] if len(terms) > 1 else terms


def shown_forms(forms_of_text: Iterable[str]) -> set[str]:
    """Spellings to be indexed: each form, and "~" plus its plain spelling if different."""
    shown = set(forms_of_text)
    if "".join(shown).isascii() and max(map(len, shown), default=0) <= WORD_CHARS:
        return shown
    strange = {form for form in shown if len(form) > WORD_CHARS or not form.isascii()}
    shown -= strange
    cut = [_truncate(form) for form in strange if not is_run(form)]
    shown.update(cut)
    shown.update(["~" + plain_form for form in cut if (plain_form := _folded_form(form)) != form])
    return shown


@lru_cache(KEPT_WORDS)
def _folded_form(form: str) -> str:
    return fold_form(form)
