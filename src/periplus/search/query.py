"""Reads queries. Any text is one: what cannot be meant is left aside, with a note that says so.

words                   in any of their forms; pages with all of them come first
"exact words"           one after another
word*                   what begins so
a OR b, a | b           either;  AND is what stands between words anyway
-word, NOT word         without it;  +word: in this very form
( ... )                 a part of the query
name:value              of pages with that property: the operators of `model.search`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from periplus.document.words import forms
from periplus.errors import UsageError
from periplus.model.search import FIELDS
from periplus.model.web import UrlId
from periplus.values import frozen

MOST_TOKENS = 64  # of a query: more make it slow and nobody writes them
DEEPEST = 20  # parentheses
WITHIN = frozenset({"title", "url", "heading", "text", "navigation", "anchor"})  # operators that ask for words there
INDEXED = frozenset({"site", "language", "type", "is"})  # by labels of the index


@frozen
class Word:
    """A word, or the beginning of one. within: of WITHIN, or anywhere. exact: in this very form."""

    text: str
    prefix: bool = False
    within: str = ""
    exact: bool = False


@frozen
class Phrase:
    """Words that stand one after another."""

    text: str
    within: str = ""


@frozen
class Only:
    """Pages with this value of a field of INDEXED, or on which a column answers so: `narrowed` names them."""

    field: str
    value: str


@frozen
class Among:
    """Pages of these ids."""

    pages: tuple[UrlId, ...]


@frozen
class During:
    """Pages of a time: after <= t < before, seconds since the epoch."""

    after: float | None = None
    before: float | None = None


@frozen
class Not:
    """What the item does not hold of."""

    item: Node


@frozen
class All:
    """What every item holds of."""

    items: tuple[Node, ...]


@frozen
class Any:
    """What one of the items holds of."""

    items: tuple[Node, ...]


Node = Word | Phrase | Only | Among | During | Not | All | Any


@frozen
class Query:
    """What is asked for; root None: nothing, since nothing was said that could be."""

    root: Node | None
    notes: tuple[str, ...]


QUOTES = '"“”„«»'
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<open>\()|(?P<close>\))|(?P<either>\||\bOR\b(?!:))|(?P<both>\bAND\b(?!:)|&&)|(?P<without>\bNOT\b(?!:))
        |(?P<sign>[-+](?=[^\s\-+|)]))
        |(?P<field>(?i:FIELD_NAMES)):(?=[^\s):])
        |[QUOTES](?P<phrase>[^QUOTES]*)(?:[QUOTES]|$)
        |(?P<word>[^\s()|QUOTES]+)
        |(?P<rest>\S)
    )""".replace("FIELD_NAMES", "|".join(FIELDS)).replace("QUOTES", QUOTES),
    re.VERBOSE,
)


def parse(text: str) -> Query:
    """The query that a text asks. Total: any text gives one."""
    return _Parser(text).query()


class _Parser:
    """Reads tokens from left to right; OR binds weaker than standing side by side."""

    def __init__(self, text: str) -> None:
        tokens = [(match.lastgroup or "", match[match.lastgroup or 0]) for match in _TOKEN.finditer(text)]
        self._notes: list[str] = []
        if len(tokens) > MOST_TOKENS:
            self._notes.append(f"only the first {MOST_TOKENS} words were looked for")
        if sum(map(text.count, QUOTES)) % 2:
            self._notes.append("a quote is not closed: the phrase was taken to end with the query")
        self._tokens = tokens[:MOST_TOKENS]
        self._place = 0

    def query(self) -> Query:
        roots: list[Node] = []
        while self._place < len(self._tokens):
            node = self._either(0)
            if node is not None:
                roots.append(node)
            if self._kind() == "close":
                self._notes.append("a closing parenthesis without an opening one was left aside")
                self._place += 1
        return Query(_grouped(All, roots), tuple(dict.fromkeys(self._notes)))

    def _kind(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    def _either(self, depth: int) -> Node | None:
        groups: list[Node] = []
        while True:
            group = self._all(depth)
            if group is not None:
                groups.append(group)
            if self._kind() != "either":
                return _grouped(Any, groups)
            if group is None:
                self._notes.append("an OR with nothing before it was left aside")
            self._place += 1
            if self._kind() in ("", "close"):
                self._notes.append("an OR with nothing after it was left aside")

    def _all(self, depth: int) -> Node | None:
        items: list[Node] = []
        while self._kind() not in ("", "close", "either"):
            if self._kind() == "both":
                self._place += 1
                continue
            item = self._item(depth)
            if item is not None:
                items.append(item)
        return _grouped(All, items)

    def _item(self, depth: int) -> Node | None:
        kind, text = self._tokens[self._place]
        self._place += 1
        if kind in ("without", "sign"):
            if self._kind() in ("", "close", "either", "both"):
                self._notes.append(f"{text} with nothing after it was left aside")
                return None
            item = self._item(min(depth + 1, DEEPEST + 1))
            if text == "+":
                if isinstance(item, Word) and not item.prefix:
                    return Word(item.text, within=item.within, exact=True)
                return item
            if isinstance(item, Not):
                return item.item
            return Not(item) if item is not None else None
        if kind == "open":
            return self._group(depth)
        if kind == "field":
            return self._field(text.lower())
        if kind == "phrase":
            return self._phrase(text, "")
        return self._word(text, "")

    def _group(self, depth: int) -> Node | None:
        if depth >= DEEPEST:
            self._notes.append(f"parentheses deeper than {DEEPEST} were left aside")
            return None
        node = self._either(depth + 1)
        if self._kind() == "close":
            self._place += 1
        else:
            self._notes.append("a parenthesis is not closed: it was taken to end with the query")
        return node

    def _field(self, name: str) -> Node | None:
        kind, value = self._tokens[self._place] if self._place < len(self._tokens) else ("", "")
        if kind not in ("word", "phrase"):
            self._notes.append(f"{name}: with nothing after it was left aside")
            return None
        self._place += 1
        field = FIELDS[name]
        if field in WITHIN:
            return self._phrase(value, field) if kind == "phrase" else self._word(value, field)
        if field in ("after", "before", "date"):
            return self._date(name, field, value)
        return Only(field, value.strip().lower() if field in INDEXED else value.strip())

    def _date(self, name: str, field: str, value: str) -> Node | None:
        span = span_of(value)
        if span is None:
            self._notes.append(f"{name}:{value} is no date (2024, 2024-03 or 2024-03-31) and was left aside")
            return None
        begin, end = span
        return During(begin if field != "before" else None, {"after": None, "before": begin, "date": end}[field])

    def _phrase(self, text: str, within: str) -> Node | None:
        if not any(map(str.isalnum, text)):
            what = f"{text.strip()} holds no word and" if text.strip() else "an empty phrase"
            self._notes.append(f"{what} was left aside")
            return None
        return Phrase(text, within)

    def _word(self, text: str, within: str) -> Node | None:
        bare = text.rstrip("*")
        if not any(map(str.isalnum, bare)):
            self._notes.append(f"{text} holds no word and was left aside")
            return None
        return Word(bare, prefix=bare != text, within=within)


def _grouped(kind: type[All] | type[Any], items: list[Node]) -> Node | None:
    """The items as one node; nested groups of the same kind are one."""
    flat: list[Node] = []
    for item in items:
        flat.extend(item.items if isinstance(item, kind) else (item,))
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?", re.ASCII)


def span_of(text: str) -> tuple[float, float] | None:
    """(beginning, end) of a day, month or year, UTC, seconds since the epoch; None where the text is no date."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(one) if one else 0 for one in match.groups())
    try:
        begin = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if day:
            return begin.timestamp(), (begin + timedelta(days=1)).timestamp()
        following = datetime(year + (not month or month == 12), month % 12 + 1 if month else 1, 1, tzinfo=UTC)
        return begin.timestamp(), following.timestamp()
    except (ValueError, OverflowError):
        return None


def narrowed(query: Query, pages_with: Callable[[str, str], Sequence[UrlId]]) -> Query:
    """The query with the pages that each of its columns is answered by. pages_with: called with column and value;
    where it raises UsageError, that part is left aside with a note.
    """
    notes: list[str] = []

    def resolved(node: Node) -> Node | None:
        match node:
            case Only(field, value) if field not in INDEXED:
                try:
                    return Among(tuple(pages_with(field, value)))
                except UsageError as error:
                    notes.append(f"{field}:{value} was left aside: {error}")
                    return None
            case Not(item):
                inner = resolved(item)
                return Not(inner) if inner is not None else None
            case All(items) | Any(items):
                return _grouped(type(node), [inner for inner in map(resolved, items) if inner is not None])
            case _:
                return node

    root = resolved(query.root) if query.root is not None else None
    return Query(root, (*query.notes, *notes))


def asks_for(node: Node | None, field: str) -> bool:
    """Whether a query speaks of a field, be it to leave its pages out."""
    match node:
        case Only(named, _):
            return named == field
        case Not(item):
            return asks_for(item, field)
        case All(items) | Any(items):
            return any(asks_for(item, field) for item in items)
        case _:
            return False


def asked_words(node: Node | None) -> list[Word | Phrase]:
    """The words and phrases that a page may be found by, in order; not those that are excluded."""
    match node:
        case Word() | Phrase():
            return [node]
        case All(items) | Any(items):
            return [word for item in items for word in asked_words(item)]
        case _:
            return []


ASKING_WORDS = {  # by language, what is typed around the words that are looked for
    language: frozenset(words.split())
    for language, words in {
        "en": (
            "a an the how what who whom where when why which can could do does did i me my we our you your "
            "it its is are was be to of in on at for from with by and or if not"
        ),
        "fr": (
            "un une le la les l de du des d à au aux en et ou où comment que quel quelle quels quelles qui "
            "quand pourquoi je mon ma mes son sa ses leur leurs sur dans par pour avec est sont"
        ),
        "de": (
            "ein eine einen einem einer eines der die das den dem des wie was wer wo wann warum welche "
            "welcher welches kann ich mein meine meinen man zu zum zur im in am an auf aus von vom mit für "
            "bei und oder ist sind"
        ),
        "ru": (
            "как что кто где когда почему зачем какой какая какие можно ли я мой моя мои в во на к ко с со "
            "из от до по для о об и или не это"
        ),
        "cs": (
            "jak co kdo kde kdy proč který která které já můj moje v ve na k ke s se z ze od do po pro o a i "
            "nebo je jsou"
        ),
        "es": (
            "un una el la los las de del a al en y o cómo qué quién dónde cuándo cuál mi mis su sus por para con es son"
        ),
        "it": (
            "un una il lo la i gli le di del della a al in e o come che chi dove quando quale mio mia per con è sono"
        ),
    }.items()
}


def only_asks(word: Word | Phrase, languages: Iterable[str]) -> bool:
    """Whether a word only makes a question of others in one of these languages: `the`, `how`."""
    is_plain = isinstance(word, Word) and not (word.exact or word.prefix or word.within)
    return is_plain and any(word.text.lower() in ASKING_WORDS.get(language, ()) for language in languages)


def parted(root: Node) -> tuple[tuple[Word, ...], tuple[Node, ...]]:
    """(words that a page may lack where others have none of it all, what must hold): phrases, words with a sign or of
    a field, and all that narrows must.
    """
    items = root.items if isinstance(root, All) else (root,)
    words = tuple(item for item in items if isinstance(item, Word) and not item.exact and not item.within)
    return words, tuple(item for item in items if item not in words)


def pieces_of(word: Word) -> tuple[Word, ...]:
    """The word, and what a name is made of beside it: `os.path`, `os`, `path`."""
    read = forms(word.text)
    return (word, *(Word(form) for form in dict.fromkeys(read))) if len(read) > 1 and not word.prefix else (word,)
