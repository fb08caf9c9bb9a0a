"""Structured data of a page: JSON-LD, Microdata, RDFa, Open Graph, Twitter cards and hreflang, in a common form; and
the properties that search engines miss.

Values are as written. Total on hostile input, and bounded: ITEMS_MOST, VALUES_MOST and DEEPEST apply per page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from periplus.document import html
from periplus.document.digest import fold_whitespace
from periplus.errors import InvalidUrl
from periplus.model.web import Url
from periplus.urls.canonical import resolve
from periplus.values import frozen

JSON_CHARS = 2_000_000  # per script
VALUE_CHARS = 10_000
VALUES_MOST = 20_000  # rows per page
ITEMS_MOST = 20_000  # objects per page, including nested ones
DEEPEST = 40  # nesting depth
METAS_MOST = 2_000

_SCHEMA = re.compile(r"(?:https?://(?:www\.)?schema\.org(?:/|#|$)|schema:)", re.IGNORECASE)
_CDATA = r"(?:<!\[CDATA\[|/[/*]\s*<!\[CDATA\[(?:\s*\*/)?|<!--)"
_WRAPPERS = re.compile(rf"^\s*{_CDATA}|(?:-->|\]\]>|/[/*]\s*\]\]>(?:\s*\*/)?)\s*;?\s*$")
_OPEN_GRAPH = ("og", "article", "book", "profile", "music", "video", "product", "fb")  # ogp.me, and Meta's own
_ADDRESSES = dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src")
_TYPE_RULES: dict[str, list[TypeRule]] = {}
# schema.org 29: subtypes in use
_BROADER = {
    narrow: broad
    for broad, row in {
        "Article": "NewsArticle BlogPosting TechArticle ScholarlyArticle Report ReportageNewsArticle "
        "OpinionNewsArticle AnalysisNewsArticle ReviewNewsArticle BackgroundNewsArticle LiveBlogPosting",
        "Product": "IndividualProduct ProductModel SomeProducts Vehicle Car",
        "Event": "BusinessEvent ChildrensEvent ComedyEvent CourseInstance DanceEvent EducationEvent ExhibitionEvent "
        "Festival FoodEvent LiteraryEvent MusicEvent SaleEvent ScreeningEvent SocialEvent SportsEvent TheaterEvent "
        "VisualArtsEvent",
        "Organization": "Corporation EducationalOrganization GovernmentOrganization NGO NewsMediaOrganization "
        "OnlineBusiness OnlineStore SportsOrganization CollegeOrUniversity School",
        "LocalBusiness": "Restaurant FoodEstablishment CafeOrCoffeeShop BarOrPub Bakery Store Hotel LodgingBusiness "
        "Dentist Physician MedicalBusiness MedicalClinic LegalService Attorney RealEstateAgent AutoDealer AutoRepair "
        "BeautySalon HairSalon HealthClub ProfessionalService HomeAndConstructionBusiness Plumber Electrician "
        "FinancialService InsuranceAgency TravelAgency ClothingStore FurnitureStore GroceryStore Library",
        "SoftwareApplication": "MobileApplication WebApplication VideoGame",
        "Review": "CriticReview UserReview EmployerReview",
    }.items()
    for narrow in row.split()
}
# Things that a page is about, alone or in a list; elsewhere they are only mentioned, and need no more than a name
_SUBJECTS = frozenset(
    ("Product", "Event", "LocalBusiness", "JobPosting", "Course", "Dataset", "SoftwareApplication", "Movie")
)
_LISTS = frozenset(("", "?", "WebPage", "ItemPage", "CollectionPage", "ItemList", "ListItem", "ProductGroup"))
_DATES = (
    "datePublished", "dateModified", "dateCreated", "datePosted", "uploadDate", "startDate", "endDate", "validThrough",
    "priceValidUntil",
)  # fmt: skip
_NUMBERS = (
    "price", "lowPrice", "highPrice", "ratingCount", "reviewCount", "position", "answerCount",
)  # fmt: skip
_DURATIONS = ("duration", "prepTime", "cookTime", "totalTime")
_FORMS = (
    (_DATES, re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?)?)?")),
    (_NUMBERS, re.compile(r"[+-]?\d+(?:\.\d+)?")),
    (_DURATIONS, re.compile(r"P(?=.)(?:\d+(?:\.\d+)?[YMWD])*(?:T(?:\d+(?:\.\d+)?[HMS])+)?")),
)
_WORDS_MOST = 5  # most types or values named in a note


@frozen
class Item:
    """One item that a page describes. schema: whether its types are of schema.org; they are stored without its URL."""

    syntax: str
    types: tuple[str, ...]
    id: str
    schema: bool
    properties: tuple[tuple[str, str | Item], ...]  # in page order, repeated for multiple values


class StructuredValue(NamedTuple):
    """One value. item: number of the top-level item on the page, from 1. type: of the item that has the value."""

    syntax: str
    item: int
    type: str
    path: str  # from the top-level item: offers.price, itemListElement[2].name; type and id of an item
    value: str


def values_of(tree: html.Tree, url: Url) -> Iterator[StructuredValue]:
    """The values of a page, item by item; at most VALUES_MOST. url: of the page, the base of translations."""
    count = 0
    for number, item in enumerate(items_of(tree, url), 1):
        for value in _values(item, number, "", ""):
            if count == VALUES_MOST:
                return
            count += 1
            yield value


def items_of(tree: html.Tree, url: Url) -> list[Item]:
    """The top-level items of a page, by syntax. url: as in `values_of`."""
    room = _Budget()
    items = [item for script in json_scripts(tree) for item in _of_json(_load(script)[0], room)]
    base = _base(tree, url)
    items += _of_microdata(tree, base, room)
    items += [_of_rdfa(item, room) for item in html.rdfa(tree)]
    return [*items, *_of_metas(tree), *_of_translations(tree, base)]


def _values(item: Item, number: int, before: str, above: str) -> Iterator[StructuredValue]:
    kind = ", ".join(item.types) or above
    if item.types and item.syntax not in ("opengraph", "twitter"):
        yield StructuredValue(item.syntax, number, kind, f"{before}type", kind)
    if item.id:
        yield StructuredValue(item.syntax, number, kind, f"{before}id", item.id)
    nested: dict[str, int] = {}
    for name, value in item.properties:
        if isinstance(value, Item):
            nested[name] = nested.get(name, 0) + 1
    places = dict.fromkeys(nested, 0)
    for name, value in item.properties:
        if isinstance(value, Item):
            places[name] += 1
            place = f"[{places[name]}]" if nested[name] > 1 else ""
            yield from _values(value, number, f"{before}{name}{place}.", kind)
        else:
            yield StructuredValue(item.syntax, number, kind, before + name, value)


class _Budget:
    """Limits the number of items per page."""

    def __init__(self) -> None:
        self._left = ITEMS_MOST

    def take(self, depth: int) -> bool:
        """Whether one more item at this depth is allowed."""
        self._left -= 1
        return self._left >= 0 and depth < DEEPEST


def _text(value: str) -> str:
    return fold_whitespace(value[: 2 * VALUE_CHARS])[:VALUE_CHARS]


def _short(name: str) -> str:
    """A type or property of schema.org without its URL; others as written."""
    return _SCHEMA.sub("", name, count=1) if _SCHEMA.match(name) else name


# JSON-LD 1.1 as used by pages: contexts are not fetched, and names are not mapped.


def json_scripts(tree: html.Tree) -> list[html.Element]:
    """The JSON-LD scripts."""
    scripts = html.elements(tree, "script")[:METAS_MOST]
    return [
        script for script in scripts if html.attribute(script, "type").strip().lower().startswith("application/ld+json")
    ]


def json_faults(tree: html.Tree) -> list[tuple[html.Element, str]]:
    """(script, fault) of a page's JSON-LD scripts: invalid JSON (RFC 8259), or not readable for search engines."""
    faults = []
    for script in json_scripts(tree):
        data, fault = _load(script)
        objects = data if isinstance(data, list) else [data]
        if not fault and any(isinstance(thing, dict) and _lacks_context(thing) for thing in objects):
            fault = "no @context"
        if fault:
            faults.append((script, fault))
    return faults


def _lacks_context(node: Mapping[str, object]) -> bool:
    return "@context" not in node and ("@type" in node or "@graph" in node)


def _load(script: html.Element) -> tuple[object, str]:
    """(contents of the script, or None if unreadable; the fault).

    Raw line breaks in strings, which JSON forbids, are reported but accepted.
    """
    text = _WRAPPERS.sub("", script.text[:JSON_CHARS]).strip()
    if not text:
        return None, ""
    try:
        return json.loads(text), ""
    except RecursionError:
        return None, "nested too deep"
    except ValueError as error:
        fault = (
            f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "a number is too long"
        )
    try:
        return json.loads(text, strict=False), fault
    except (ValueError, RecursionError):
        return None, fault


def _is_schema(context: object) -> bool:
    if isinstance(context, str):
        return _SCHEMA.match(context.strip()) is not None
    if isinstance(context, dict):
        return _is_schema(context.get("@vocab"))
    return isinstance(context, list) and any(map(_is_schema, context))


def _of_json(data: object, room: _Budget, schema: bool = False) -> Iterator[Item]:
    """The top-level objects, also of a list or a @graph."""
    for node in data if isinstance(data, list) else [data]:
        if not isinstance(node, dict):
            continue
        inner = schema or _is_schema(node.get("@context"))
        if isinstance(node.get("@graph"), (list, dict)) and "@type" not in node:
            yield from _of_json(node["@graph"], room, inner)
        elif (item := _of_node(node, room, 0, inner)) is not None:
            yield item


def _of_node(node: Mapping[str, object], room: _Budget, depth: int, schema: bool) -> Item | None:
    if not room.take(depth):
        return None
    schema = schema or _is_schema(node.get("@context"))
    kinds = node.get("@type")
    types = tuple(_text(kind) for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str))
    named = node.get("@id")
    properties: list[tuple[str, str | Item]] = []
    for name, value in node.items():
        if name[:1] != "@" or name == "@graph":
            properties += (
                (_short(name)[:VALUE_CHARS], element) for element in _of_values(value, room, depth + 1, schema)
            )
    return Item(
        "json-ld",
        tuple(map(_short, types)),
        _text(named) if isinstance(named, str) else "",
        (schema and not any("://" in kind for kind in map(_short, types))) or any(map(_SCHEMA.match, types)),
        tuple(properties),
    )


def _of_values(value: object, room: _Budget, depth: int, schema: bool) -> Iterator[str | Item]:
    if isinstance(value, dict):
        if "@value" in value:
            yield from _of_values(value["@value"], room, depth, schema)
        elif isinstance(listed := value.get("@list", value.get("@set")), list):
            yield from _of_values(listed, room, depth, schema)
        elif (item := _of_node(value, room, depth, schema)) is not None:
            yield item
    elif isinstance(value, list):
        if depth < DEEPEST:
            for element in value:
                yield from _of_values(element, room, depth + 1, schema)
    elif value is not None:
        yield _text(value if isinstance(value, str) else json.dumps(value))


# Microdata (W3C Note of 2021: `content` counts on every element), and RDFa from the parser


_ADDRESSES |= dict.fromkeys(("a", "area", "link"), "href") | {"object": "data"}


def _of_microdata(tree: html.Tree, base: Url, room: _Budget) -> Iterator[Item]:
    """The top-level items."""
    scopes = html.select(tree, "[itemscope]")[:ITEMS_MOST]
    if not scopes:
        return
    by_scope: dict[html.Element | None, list[html.Element]] = {}
    for element in html.select(tree, "[itemprop]")[:VALUES_MOST]:
        by_scope.setdefault(html.closest_above(element, "[itemscope]"), []).append(element)
    by_id = (
        {html.attribute(element, "id"): element for element in html.select(tree, "[id]")}
        if any(html.attribute(scope, "itemref") for scope in scopes)
        else {}
    )

    def elements_of(scope: html.Element) -> list[html.Element]:
        own = list(by_scope.get(scope, ()))
        for name in html.attribute(scope, "itemref").split():
            if (root := by_id.get(name)) is not None and root != scope:
                within = [] if html.is_item(root) else html.select(root, "[itemprop]")
                around = html.closest_above(root, "[itemscope]")
                own += [element for element in (root, *within) if element in by_scope.get(around, ())]
        return own

    def item_of(scope: html.Element, depth: int) -> Item:
        types = html.attribute(scope, "itemtype").split()
        properties: list[tuple[str, str | Item]] = []
        for element in elements_of(scope) if room.take(depth) else ():
            value = item_of(element, depth + 1) if html.is_item(element) else _microdata_value(element, base)
            properties += [(_short(name), value) for name in dict.fromkeys(html.attribute(element, "itemprop").split())]
        address = html.attribute(scope, "itemid").strip()
        return Item(
            "microdata",
            tuple(map(_short, types)),
            (_absolute(address, base) or address) if address else "",
            any(map(_SCHEMA.match, types)),
            tuple(properties),
        )

    for scope in scopes:
        # the property of no item is an item of its own, as Google reads it
        if not html.attribute(scope, "itemprop") or (scope in by_scope.get(None, ()) and not by_id):
            yield item_of(scope, 0)


def _microdata_value(element: html.Element, base: Url) -> str:
    tag, content = html.tag_of(element), html.attribute(element, "content")
    if content or tag == "meta":
        return _text(content)
    if tag in _ADDRESSES:
        address = html.attribute(element, _ADDRESSES[tag]).strip()
        return _text((_absolute(address, base) or address) if address else "")
    machine = html.attribute(element, {"data": "value", "meter": "value", "time": "datetime"}.get(tag, ""))
    return _text(machine or html.text_of(element))


def _of_rdfa(item: html.RdfaItem, room: _Budget, depth: int = 0) -> Item:
    types = item.type or []
    properties: list[tuple[str, str | Item]] = []
    if room.take(depth):
        for name, values in item.properties.items():
            for value in values:
                content = _text(value) if isinstance(value, str) else _of_rdfa(value, room, depth + 1)
                properties.append((_short(name), content))
    schema = any(map(_SCHEMA.match, types))
    return Item("rdfa", tuple(map(_short, types)), item.resource or "", schema, tuple(properties))


def _of_metas(tree: html.Tree) -> Iterator[Item]:
    """Open Graph and Twitter cards, one item each, with the type that they name."""
    graph: list[tuple[str, str | Item]] = []
    card: list[tuple[str, str | Item]] = []
    for meta in html.elements(tree, "meta")[:METAS_MOST]:
        name = (html.attribute(meta, "property") or html.attribute(meta, "name")).strip().lower()
        content = _text(html.attribute(meta, "content"))
        prefix, colon, _ = name.partition(":")
        if colon and content:
            if prefix == "twitter":
                card.append((name, content))
            elif prefix in _OPEN_GRAPH:
                graph.append((name, content))
    for syntax, key, properties in (("opengraph", "og:type", graph), ("twitter", "twitter:card", card)):
        if properties:
            types = tuple(str(value) for name, value in properties if name == key)[:1]
            yield Item(syntax, types, "", False, tuple(properties))


def _base(tree: html.Tree, url: Url) -> Url:
    """The URL that relative ones are resolved against."""
    for element in html.select(tree, "base[href]")[:1]:
        return _absolute(html.attribute(element, "href"), url) or url
    return url


def _of_translations(tree: html.Tree, base: Url) -> Iterator[Item]:
    """The page's hreflang translations as one item: languages and absolute URLs."""
    properties: list[tuple[str, str | Item]] = []
    for link in html.select(tree, "link[hreflang][href]")[:METAS_MOST]:
        if "alternate" in html.attribute(link, "rel").lower().split():
            written = html.attribute(link, "href").strip()
            properties.append((_text(html.attribute(link, "hreflang")), _absolute(written, base) or written))
    if properties:
        yield Item("hreflang", (), "", False, tuple(properties))


def _absolute(text: str, base: Url) -> Url | None:
    try:
        target, fragment = resolve(text, base)
    except InvalidUrl:
        return None
    return Url(f"{target}#{fragment}") if fragment else target


# Requirements of search engines


class TypeRule(NamedTuple):
    """The properties that search engines require of a type. A property is a path; `a|b`: one of both."""

    type: str
    required: str  # separated by blanks
    recommended: str = ""
    alone: str = ""  # also required for top-level items
    within: str = ""  # the rule applies to parts of this type


# After Google Search Central, "Structured data markup that Google Search supports", one page per type; only that of
# Product was compared again when this was written. Types without required properties have recommended ones
RULES = (
    TypeRule("Article", "", "headline author datePublished image"),
    TypeRule("BreadcrumbList", "itemListElement"),
    TypeRule("ListItem", "position name|item.name", within="BreadcrumbList"),
    TypeRule("Product", "name offers|review|aggregateRating", "image"),
    TypeRule("ProductGroup", "name"),
    TypeRule("Offer", "price|priceSpecification", "priceCurrency|priceSpecification availability", within="Product"),
    TypeRule("AggregateOffer", "lowPrice priceCurrency"),
    TypeRule("Review", "author reviewRating reviewRating.ratingValue", alone="itemReviewed"),
    TypeRule("AggregateRating", "ratingValue ratingCount|reviewCount", alone="itemReviewed"),
    TypeRule("EmployerAggregateRating", "itemReviewed ratingValue ratingCount|reviewCount"),
    TypeRule("ClaimReview", "claimReviewed reviewRating url"),
    TypeRule("FAQPage", "mainEntity"),
    TypeRule("Question", "name acceptedAnswer acceptedAnswer.text", within="FAQPage"),
    TypeRule("QAPage", "mainEntity"),
    TypeRule("Question", "name answerCount acceptedAnswer|suggestedAnswer", within="QAPage"),
    TypeRule("Event", "name startDate location location.address|location.url", "image endDate description"),
    TypeRule("Organization", "", "name url logo"),
    TypeRule("LocalBusiness", "name address", "telephone url openingHoursSpecification|openingHours"),
    TypeRule("Recipe", "name image", "recipeIngredient recipeInstructions totalTime|cookTime"),
    TypeRule(
        "JobPosting",
        "title description datePosted hiringOrganization jobLocation|applicantLocationRequirements",
        "baseSalary employmentType validThrough",
    ),
    TypeRule("VideoObject", "name thumbnailUrl uploadDate", "description duration contentUrl|embedUrl"),
    TypeRule("Course", "name description", "provider"),
    TypeRule("Dataset", "name description", "license"),
    TypeRule("SoftwareApplication", "name offers aggregateRating|review"),
    TypeRule("Movie", "name image"),
    TypeRule("DiscussionForumPosting", "author datePublished text|image|video|sharedContent"),
    TypeRule("ProfilePage", "mainEntity"),
)
for _rule in RULES:
    _TYPE_RULES.setdefault(_rule.type, []).append(_rule)


def lacks_of(items: Iterable[Item]) -> dict[str, tuple[str, ...]]:
    """Checks the schema.org items: distinct texts such as `Product without name, offers or review` by the code of the
    finding. A part given by @id is looked up on the page.
    """
    items = list(items)
    by_id: dict[str, Item] = {}
    for item, _ in _walk(items, ""):
        if item.id and item.properties:
            by_id.setdefault(item.id, item)
    required, recommended, values = dict[str, None](), dict[str, None](), dict[str, None]()
    for item, above in _walk(items, ""):
        if not item.schema or (item.id and not item.properties):  # just a reference
            continue
        for kind in item.types:
            broad = _BROADER.get(kind, kind)
            is_mentioned = broad in _SUBJECTS and above not in _LISTS
            for rule in () if is_mentioned else _TYPE_RULES.get(broad, ()):
                if not rule.within or rule.within == above:
                    asked = rule.required if above else f"{rule.required} {rule.alone}"
                    advised = rule.recommended if rule.within or not above else ""  # a publisher has a page of its own
                    for words, paths in ((required, asked), (recommended, advised)):
                        if missing := _missing(item, paths, by_id):
                            words[f"{kind} without {', '.join(missing)}"] = None
        for name, value in item.properties:
            if (
                isinstance(value, str)
                and value
                and any(name in names and not form.fullmatch(value) for names, form in _FORMS)
            ):
                values[f"{name}: {value[:60]}"] = None
    lacks = {"structured-incomplete": required, "structured-sparse": recommended, "structured-value": values}
    return {code: tuple(words)[:_WORDS_MOST] for code, words in lacks.items()}


def _walk(items: Iterable[Item], above: str) -> Iterator[tuple[Item, str]]:
    """(item, the broadest type of the item that contains it), outer ones first."""
    for item in items:
        yield item, above
        kind = next((_BROADER.get(name, name) for name in item.types), "?")
        yield from _walk((value for _, value in item.properties if isinstance(value, Item)), kind)


def _missing(item: Item, paths: str, by_id: Mapping[str, Item]) -> list[str]:
    """The missing properties; if a part is missing, its own properties are not listed."""
    missing: list[str] = []
    for path in paths.split():
        ways = path.split("|")
        heads = {way.partition(".")[0] for way in ways if "." in way}
        if all("." in way for way in ways) and not any(_has(item, head, by_id) for head in heads):
            continue
        if not any(_has(item, way, by_id) for way in ways):
            missing.append(" or ".join(ways))
    return missing


def _has(item: Item, path: str, by_id: Mapping[str, Item]) -> bool:
    """Whether the item has a property. A part that is plain text, or described elsewhere, counts as complete."""
    head, _, rest = path.partition(".")
    for name, value in item.properties:
        if name != head or not value:
            continue
        if not rest:
            return True
        part = by_id.get(value.id, value) if isinstance(value, Item) and not value.properties else value
        if isinstance(part, str) or (part.id and not part.properties) or _has(part, rest, by_id):
            return True
    return False
