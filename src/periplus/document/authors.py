"""Names of authors, in fields that machines write and in bylines. Pure and total."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape

from periplus.values import JsonObject

NAMES_MOST, NAME_CHARS = 20, 60  # authors per page, characters per name
TEXT_CHARS = 2_000  # read of a field
ARTICLES = ("article", "posting", "report", "webpage", "creativework", "book", "recipe", "thesis", "review")
PARTS = ("comment", "answer", "imageobject", "person", "organization", "review", "rating", "question", "offer")
_META_NAMES = (
    "author article:author parsely-author sailthru.author byl citation_author dc.creator dcterms.creator "
    "dc:creator dcterms:creator og:author article:author_name article.author cxenseparse:author book:author "
    "og:article:author vr:author creator shareaholic:article_author_name dc.author citation_authors "
    "content_author rbauthors authors"
)
AUTHOR_METAS = tuple(_META_NAMES.split())
# Words before and after the names of a byline. `von` is also part of names: it needs a sentence before it, or two names
# after it. Words for `by` that begin surnames too need two names after them
_PREFIX = (
    r"^\W*(?:(?i:[^\W\d]+(?: [^\W\d]+)?:\s*)|(?i:.{0,40}\b(?:by|par|por|door|от)\b[:\s]+)|"
    r"(?:.{0,40}\s)?(?:(?i:text|bericht|artikel|beitr[aä]ge?|kommentar|interview)|[a-zäöüß]+) von\s+|"
    r"\S+(?: \S+)? von\s+(?=[^\W\d_a-z]\S*\s[^\W\d_a-z])|"
    r"(?i:von)\s+(?=[^\W\d_a-z])|(?i:di|da|av|af|de)\s+(?=[^\W\d_a-z]\S*\s(?:[a-z]{2,4}\s)?[^\W\d_a-z])|"
    r"(?i:written|autor(?:in)?|author|auteur|autore|redaktion|text|foto)\b[:\s]+(?=[^\W\d_a-z]))"
)
_SUFFIX = (
    r"\s*(?:[|•·⋅–—(\[<@]|\s-\s|,?\s(?:on|am|um|le|el|at|vor|hace|den)\s(?=\S+\s\S*\d)|\s(?:on|am)\s\w+(?:day|tag)\b|"
    r"(?:\s|^)(?i:publi[csz]\w+|publié\w*|posted|updated|veröffentlicht|(?:chef)?redakteur(?:in)?|im gespräch)(?:\s|$)|"
    r"\s(?i:illustration\w*|fotos?|photos?|bilde?r?|video)\b|(?:,?\s(?:[a-zäöüéà]{1,5}|[Ss]tand:?))?\s\d|:).*$"
)
_BETWEEN = r"\s*[;/]\s*|\s+&\s+|\s*,\s*(?i:and|und|et|y|e|i|og|och|en)\s+"
_AND = r"\s+(?:and|und|et|y|e|i|og|och|en|и|та|a|ja|és|ve|AND|UND)\s+"
# Around the names of a field that has names only
_AROUND = (
    r"^(?i:(?:written |posted )?by|por|par|door)[:\s]+|^(?i:von)\s+(?=[^\W\d_a-z][^\s,]*\s[^\W\d_a-z])|"
    r"\s+[|–—-]\s.*$|\s*[(\[][^)\]]*[)\]]?$"
)
_ROLES = (
    r"(?i)\b(?:editors?|writers?|reporters?|correspondent|analyst|contribut\w+|redakt\w+|journalist\w*|photograph\w*|"
    r"director|manager|professor|staff|specialist|expert|author|autor\w*|columnist|producer|ceo|founder)\b"
)
_DEGREES = r"(?i)m\.?d|ph\.? ?d|mba|rn|msc?|m\.a|b\.a|esq|dds|cfp|cpa|rd|dr|dipl\.?-?\w+|m\.? ?sc|b\.? ?sc|ll\.?m"
_GENERATION = r"(?i)jr|sr|ii|iii|iv|inc|llc|ltd|gmbh|jnr"
_NO_NAME = r"https?:|www\.|[@{}<>=_|!?]|\s\d|^[\W\d]*$|\.(?:com|de|net|org|at|ch)$"
_SLUG = r"[a-z]+(?:[._][a-z]+)+"
_NO_NAMES = (
    "admin administrator author autor autorin by von unknown anonymous anonimo editor staff none null webmaster follow "
    "share home more mehr kommentare comments datum date name publisher phd md ph.d m.d dr user guest gast presse about"
)
_NOT_NAMES = frozenset(_NO_NAMES.split())
# Parts of names that are written small. A surname before a comma has one other word
_PARTICLE_WORDS = (
    "van von vom der den de la le las los di da do dos das del della dello dei du des al el ibn bin ben abu af av zu "
    "zur zum ter ten te und and et y e i san in"
)
_PARTICLES = frozenset(_PARTICLE_WORDS.split())
ALONE_MOST = 5  # authors in elements of one kind, before it is a list of other pages
CLOSE_NODES = 6  # between elements of one byline


_BY_WORDS = (
    "by By BY von Von par Par por Por door Door Di Da Av Af Autor Autorin Autoren Author Text Автор Autor: Autorin: "
    "Autoren: Author: Text: Автор:"
)
_BY_PARTS = ("y ", "on ", "ar ", "or ", "Di ", "Da ", "Av ", "Af ", "uto", "uth", "Text:", "Text ", "втор")
_BY = frozenset(_BY_WORDS.split())  # one of the first three words of a byline
_BYLINE = (
    r"^(?:(?:\w+ ){0,2}(?:by|By|BY|von|Von|par|Par|por|Por|door|Door)|Di|Da|Av|Af|Autor(?:in|en)?:?|Author:?|Text:?|"
    r"Автор:?)\s+(?:Dr\. |Prof\. )*([^\W\d_][\w'’.\-]*(?:\s[^\W\d_][\w'’.\-]*|\s&){0,9}?)"
    r"(?=\s*(?:$|[,|•·⋅–—(/\-]|\d|(?:am|on|le|el)\s(?:\S+\s)?\S*\d))"
)


def names_of_metas(metas: Sequence[tuple[str, str]]) -> list[str]:
    """The names in the elements of the first name that has any. Those of libraries repeat an element per author."""
    for name in AUTHOR_METAS:
        texts = [content for other, content in metas if other == name]
        if people := _names(texts, one_each=name.startswith(("citation_", "dc"))):
            return people
    return []


def _names(texts: Iterable[str], one_each: bool = False) -> list[str]:
    """All names in texts that name authors and nothing else. one_each: `Surname, Given Names` is one name."""
    names: dict[str, str] = {}
    for text in texts:
        people = _people(re.sub(_AROUND, "", _plain(text)), one_each)
        names |= {name.casefold(): name for piece in people if (name := _strip_name(piece))}
    return list(names.values())[:NAMES_MOST]


def names_of_byline(elements: Sequence[tuple[int, str]]) -> list[str]:
    """The names of the first element that has any, and of those close to it. elements: (node, text)."""
    names: dict[str, str] = {}
    last = 0
    for node, text in elements:
        if names and abs(node - last) > CLOSE_NODES:
            break
        for piece in _people(_clean(text)):
            name = _strip_name(piece)
            if not name or not (_is_name(name) or (not names and name == text)):
                continue
            if within := next((key for key in names if name.casefold() in key), ""):  # without the role
                name = name if _is_whole(name) else names[within]
                del names[within]
            names[name.casefold()] = name
            last = node
    return list(names.values())[: NAMES_MOST if len(names) <= ALONE_MOST else 1]


def _people(text: str, one_each: bool = False) -> Iterator[str]:
    """The parts of a text that name one author each."""
    for listed in re.split(_BETWEEN, text):
        commas = [piece.strip() for piece in listed.split(",") if piece.strip()]
        is_one = len(commas) == 2 and len(commas[1].split()) <= 3 and _is_surname(commas[0])
        is_one = (one_each and len(commas) <= 3) or (is_one and not re.search(_ROLES, commas[1]))
        names = [listed] if is_one else []
        for place, piece in enumerate([] if names else commas):
            if place and re.fullmatch(_GENERATION, piece.strip(" .")):
                names[-1:] = [f"{names[-1]}, {piece}"] if names else []
            elif not place or not (re.search(_ROLES, piece) or re.fullmatch(_DEGREES, piece.strip(" ."))):
                names.append(piece)
        for name in names:
            parts = re.split(_AND, name)
            is_list = all(_is_whole(part) for part in parts) or (len(parts) > 1 and " " not in "".join(parts))
            yield from parts if is_list else [name]


def _is_surname(text: str) -> bool:
    """Whether a text can be the surname before a comma: one word, besides particles, in a script with capitals."""
    words = [word for word in text.split() if word.lower() not in _PARTICLES]
    return text != text.swapcase() and (len(words) <= 1 or " y " in text or " i " in text)


def _is_whole(text: str) -> bool:
    """Whether a text has a given name and a surname."""
    return sum(word.lower() not in _PARTICLES for word in text.split()) > 1


def _is_name(text: str) -> bool:
    """Whether each word of a text is spelt like a part of a name."""
    words = text.split()
    return len(words) < 8 and all(
        not word[0].islower() or word != word.lower() or word.strip(",") in _PARTICLES for word in words
    )


def _strip_name(text: str) -> str:
    """A name without marks around it; empty if it is none."""
    name = text.strip(" :,-–").removesuffix(" .")
    name = name if re.search(r"\b(?:\w|[JS]r)\.$", name) else name.strip(".")
    if re.fullmatch(_SLUG, name) and not re.search(_NO_NAME, name):
        name = name.replace(".", " ").replace("_", " ").title()
    is_name = 1 < len(name) <= NAME_CHARS and name.lower() not in _NOT_NAMES and not re.search(_NO_NAME, name)
    return name if is_name else ""


def _clean(text: str) -> str:
    """A byline without the words around its names."""
    return re.sub(_SUFFIX, "", re.sub(_PREFIX, "", _plain(text)))


def _plain(text: str) -> str:
    """A text with its references and white space resolved; empty if it has an address."""
    text = " ".join(unescape(text[:TEXT_CHARS]).replace("\xad", "").split())
    return "" if "http" in text or "www." in text else text


def names_of_things(things: Sequence[JsonObject]) -> list[str]:
    by_id = {str(thing["@id"]): thing for thing in reversed(things) if "@id" in thing and "name" in thing}
    for is_article in (True, False):
        for thing in things:
            kinds = str(thing.get("@type", "")).lower()
            if any(kind in kinds for kind in PARTS) or is_article != any(kind in kinds for kind in ARTICLES):
                continue
            for key in ("author", "creator"):
                if names := _names(_values_of(thing.get(key), by_id)):
                    return names
    return []


def _values_of(value: object, by_id: dict[str, JsonObject]) -> Iterator[str]:
    """The names of one or several authors, possibly described elsewhere by id."""
    for element in value if isinstance(value, list) else [value]:
        thing = (
            by_id.get(str(element.get("@id")), element)
            if isinstance(element, dict) and "name" not in element
            else element
        )
        name = thing.get("name") if isinstance(thing, dict) else thing
        yield from (text for text in (name if isinstance(name, list) else [name]) if isinstance(text, str))


def names_near(lines: Sequence[str]) -> list[str]:
    together = "\n".join(lines)
    if any(part in together for part in _BY_PARTS):
        for line in lines:
            if not _BY.isdisjoint(line.split(" ", 3)[:3]) and (match := re.match(_BYLINE, line)):
                is_sure = line[: match.start(1)].lower() in ("by ", "von ")
                names = [name for name in _names([_clean(match[1])]) if _is_name(name) and (is_sure or _is_whole(name))]
                if names:
                    return names
    return []
