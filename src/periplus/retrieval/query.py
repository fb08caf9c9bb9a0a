"""Parses queries. Any text is valid: parts that make no sense are ignored, with a note.

words                   in any of their forms; pages with all of them come first
"exact words"           one after another
word*                   words with this beginning
a OR b, a | b           either;  AND is the default between words
-word, NOT word         pages without it;  +word: in exactly this form
( ... )                 a group
name:value              pages with that property: the operators of `model.search`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from periplus.document.words import forms, is_run
from periplus.errors import UsageError
from periplus.model.search import FIELDS
from periplus.model.web import UrlId
from periplus.values import frozen

MOST_TOKENS = 64  # tokens per query: longer ones are slow and not typed by people
DEEPEST = 20  # nesting of parentheses
PIECES_MOST = 40  # parts of a word: pairs of characters of a question without blanks
# Operators that restrict words to a field
WITHIN = frozenset({"title", "url", "heading", "text", "navigation", "anchor"})
INDEX_FIELDS = frozenset({"site", "language", "type", "is"})  # fields that are labels of the index
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
_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?", re.ASCII)
ASKING_WORDS = {  # by language: function words that are typed around the search terms
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


@frozen
class Word:
    """A word, or the beginning of a word. within: one of WITHIN, or '' for any field. exact: this form only."""

    text: str
    prefix: bool = False
    within: str = ""
    exact: bool = False


@frozen
class Phrase:
    """Consecutive words."""

    text: str
    within: str = ""


@frozen
class Only:
    """Pages with this value of a field of INDEX_FIELDS, or whose column matches (see `resolve_conditions`)."""

    field: str
    value: str


@frozen
class Among:
    """Pages with these ids."""

    pages: tuple[UrlId, ...]


@frozen
class During:
    """Pages within a time range: after <= t < before, seconds since the epoch."""

    after: float | None = None
    before: float | None = None


@frozen
class Not:
    """Pages that do not match the item."""

    item: Node


@frozen
class All:
    """Pages that match every item."""

    items: tuple[Node, ...]


@frozen
class Any:
    """Pages that match at least one item."""

    items: tuple[Node, ...]


Node = Word | Phrase | Only | Among | During | Not | All | Any


@frozen
class Query:
    """A parsed query; root is None if nothing could be parsed."""

    root: Node | None
    notes: tuple[str, ...]


def parse(text: str) -> Query:
    """Parses a query. Total: never fails."""
    return _Parser(text).query()


class _Parser:
    """Recursive descent over the tokens; OR binds weaker than juxtaposition."""

    def __init__(self, text: str) -> None:
        tokens = [(match.lastgroup or "", match[match.lastgroup or 0]) for match in _TOKEN.finditer(text)]
        self._notes: list[str] = []
        if len(tokens) > MOST_TOKENS:
            self._notes.append(f"only the first {MOST_TOKENS} words were looked for")
        if sum(map(text.count, QUOTES)) % 2:
            self._notes.append("a quote is not closed: the phrase ends with the query")
        self._tokens = tokens[:MOST_TOKENS]
        self._place = 0

    def query(self) -> Query:
        roots: list[Node] = []
        while self._place < len(self._tokens):
            node = self._any(0)
            if node is not None:
                roots.append(node)
            if self._kind() == "close":
                self._notes.append("a closing parenthesis without an opening one was ignored")
                self._place += 1
        return Query(_group(All, roots), tuple(dict.fromkeys(self._notes)))

    def _kind(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    def _any(self, depth: int) -> Node | None:
        groups: list[Node] = []
        while True:
            group = self._all(depth)
            if group is not None:
                groups.append(group)
            if self._kind() != "either":
                return _group(Any, groups)
            if group is None:
                self._notes.append("an OR with nothing before it was ignored")
            self._place += 1
            if self._kind() in ("", "close"):
                self._notes.append("an OR with nothing after it was ignored")

    def _all(self, depth: int) -> Node | None:
        items: list[Node] = []
        while self._kind() not in ("", "close", "either"):
            if self._kind() == "both":
                self._place += 1
                continue
            item = self._item(depth)
            if item is not None:
                items.append(item)
        return _group(All, items)

    def _item(self, depth: int) -> Node | None:
        kind, text = self._tokens[self._place]
        self._place += 1
        if kind in ("without", "sign"):
            if self._kind() in ("", "close", "either", "both"):
                self._notes.append(f"{text} with nothing after it was ignored")
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
            self._notes.append(f"parentheses deeper than {DEEPEST} were ignored")
            return None
        node = self._any(depth + 1)
        if self._kind() == "close":
            self._place += 1
        else:
            self._notes.append("a parenthesis is not closed: it ends with the query")
        return node

    def _field(self, name: str) -> Node | None:
        kind, value = self._tokens[self._place] if self._place < len(self._tokens) else ("", "")
        if kind not in ("word", "phrase"):
            self._notes.append(f"{name}: with nothing after it was ignored")
            return None
        self._place += 1
        field = FIELDS[name]
        if field in WITHIN:
            return self._phrase(value, field) if kind == "phrase" else self._word(value, field)
        if field in ("after", "before", "date"):
            return self._date(name, field, value)
        return Only(field, value.strip().lower() if field in INDEX_FIELDS else value.strip())

    def _date(self, name: str, field: str, value: str) -> Node | None:
        span = span_of(value)
        if span is None:
            self._notes.append(f"{name}:{value} is not a date (2024, 2024-03 or 2024-03-31) and was ignored")
            return None
        begin, end = span
        return During(begin if field != "before" else None, {"after": None, "before": begin, "date": end}[field])

    def _phrase(self, text: str, within: str) -> Node | None:
        if not any(map(str.isalnum, text)):
            what = f"{text.strip()} has no word and" if text.strip() else "an empty phrase"
            self._notes.append(f"{what} was ignored")
            return None
        return Phrase(text, within)

    def _word(self, text: str, within: str) -> Node | None:
        bare = text.rstrip("*")
        if not any(map(str.isalnum, bare)):
            self._notes.append(f"{text} has no word and was ignored")
            return None
        return Word(bare, prefix=bare != text, within=within)


def _group(kind: type[All] | type[Any], items: list[Node]) -> Node | None:
    """The items as one node; nested groups of the same kind are flattened."""
    flat: list[Node] = []
    for item in items:
        flat.extend(item.items if isinstance(item, kind) else (item,))
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def span_of(text: str) -> tuple[float, float] | None:
    """(begin, end) of a day, month or year in UTC, seconds since the epoch; None if the text is not a date."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(part) if part else 0 for part in match.groups())
    try:
        begin = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if day:
            return begin.timestamp(), (begin + timedelta(days=1)).timestamp()
        following = datetime(year + (not month or month == 12), month % 12 + 1 if month else 1, 1, tzinfo=UTC)
        return begin.timestamp(), following.timestamp()
    except (ValueError, OverflowError):
        return None


def resolve_conditions(query: Query, pages_with: Callable[[str, str], Sequence[UrlId]]) -> Query:
    """The query with each column condition resolved to the pages that satisfy it.

    pages_with: called with column and value; a condition for which it raises UsageError is ignored with a note.
    """
    notes: list[str] = []

    def resolve(node: Node) -> Node | None:
        match node:
            case Only(field, value) if field not in INDEX_FIELDS:
                try:
                    return Among(tuple(pages_with(field, value)))
                except UsageError as error:
                    notes.append(f"{field}:{value} was ignored: {error}")
                    return None
            case Not(item):
                inner = resolve(item)
                return Not(inner) if inner is not None else None
            case All(items) | Any(items):
                return _group(type(node), [inner for inner in map(resolve, items) if inner is not None])
            case _:
                return node

    root = resolve(query.root) if query.root is not None else None
    return Query(root, (*query.notes, *notes))


def asks_for(node: Node | None, field: str) -> bool:
    """Whether a query mentions a field, even under NOT."""
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
    """The words and phrases that can match, in order; without excluded ones."""
    match node:
        case Word() | Phrase():
            return [node]
        case All(items) | Any(items):
            return [word for item in items for word in asked_words(item)]
        case _:
            return []


def only_asks(word: Word | Phrase, languages: Iterable[str]) -> bool:
    """Whether a word is a function word of a question in one of these languages: `the`, `how`."""
    is_plain = isinstance(word, Word) and not (word.exact or word.prefix or word.within)
    return is_plain and any(word.text.lower() in ASKING_WORDS.get(language, ()) for language in languages)


def split_conditions(root: Node) -> tuple[tuple[Word, ...], tuple[Node, ...]]:
    """(optional words, mandatory conditions).

    Mandatory are phrases, words with a sign or a field, and all filters; a page may lack plain words if no page has all
    of them.
    """
    items = root.items if isinstance(root, All) else (root,)
    words = tuple(item for item in items if isinstance(item, Word) and not item.exact and not item.within)
    return words, tuple(item for item in items if item not in words)


def pieces_of(word: Word) -> tuple[Word, ...]:
    """The word; the parts of a dotted name: `os.path`, `os`, `path`; and the pairs of characters of a text without
    blanks: `備份數據`, `備份`, `份數`, `數據`.
    """
    read = () if word.prefix else forms(word.text)
    parts = [part for form in read for part in _parts_of(form)][:PIECES_MOST]
    return (word, *dict.fromkeys(parts)) if len(parts) > 1 else (word,)


def _parts_of(form: str) -> list[Word]:
    """The pairs of characters of a form in a script without blanks; else the form."""
    return [Word(form[place : place + 2]) for place in range(max(len(form) - 1, 1))] if is_run(form) else [Word(form)]
