"""Pages that say the same as another, and pages that one template made: values."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from periplus.model.page import BlockKind, Part
from periplus.model.web import SiteKey, Url, UrlId
from periplus.values import frozen


class Likeness(StrEnum):
    """What a page has in common with the one that stands for it, from most to least."""

    BYTES = "bytes"  # everything
    WORDS = "words"  # the text, in another encoding or markup
    FOLDED = "folded"  # the text but for diacritics, case and typographic signs
    NEAR = "near"  # nearly all of its content


class Ground(StrEnum):
    """By what a page is ahead of another that it stands for: the first of these, in this order,
    in which the two differ.
    """

    MARKS = "diacritics"  # it has them: the others were made from such a text, never such a text from them
    NAMED = "canonical"  # another page names it as its canonical address
    COPIES = "copies"  # among nearly equal texts: more pages have its own
    CLICKS = "clicks"  # it is nearer to the start
    LENGTH = "length"  # its URL is shorter
    ORDER = "order"  # its URL comes first by the alphabet: nothing else tells them apart


class Contender(NamedTuple):
    """A page, and what may make it the one that stands for others."""

    url_id: UrlId
    url: Url
    charset: str
    depth: int  # clicks from the start; 2^30: no link leads there
    is_named: bool  # another page names it as its canonical


class SameText(NamedTuple):
    """One of several pages that say the same, diacritics and case apart."""

    page: Contender
    marks: int  # characters of its text that are no plain ASCII
    text: int  # pages of a group with the same number have the very same text, white space apart
    body: int  # and these the same bytes


@frozen
class Duplicate:
    """A page beside the one that stands for it."""

    url_id: UrlId
    url: Url
    charset: str
    like: Likeness
    similarity: float  # runs of five words that both have, of all that either has; 1.0: the same text
    contained: float  # of this page's runs of five words, how many the other has too
    text: int  # pages of a group with the same number say the same; 0: what the representative says


@frozen
class DuplicateGroup:
    """Pages that say the same or nearly so."""

    url_id: UrlId
    url: Url  # of the page that stands for all
    charset: str
    grounds: tuple[Ground, ...]  # that decided between it and another page, weightiest first
    pages: tuple[Duplicate, ...]  # the others, the most alike first
    is_confirmed: bool  # texts were compared, not their digests alone


@frozen
class Duplicates:
    """What was found in a collection or one site of it. site: empty: all of them."""

    site: str
    near: float  # similarity from which texts count as nearly the same; 1.0: only the same ones
    pages: int  # that were compared
    groups: tuple[DuplicateGroup, ...]  # largest first
    notes: tuple[str, ...]


# What is said of a site's templates: which pages were made by one, and what of them is navigation.


@frozen
class TemplateRules:
    """The parameters of Shorkin's method, by the names and with the values that he published;
    lengths and shares in per cent.
    """

    min_fragmenters_chain: int = 6  # fragmenters of a chain
    duplicates: int = 70  # pages that agree in more of what they hold together begin no cluster
    min_nav_length: int = 80  # of the first pair's common part: what another page must share to join
    least_nav_length: int = 40  # the last value that it is lowered to
    nav_length_step: int = 20
    cluster_pages: int = 4  # a smaller cluster is none


PUBLISHED = TemplateRules()


@frozen
class TemplatePage:
    """One page, and how much of it is navigation."""

    url: Url
    title: str
    size_bytes: int  # of its source as UTF-8, without white space around tags
    navigation_bytes: int  # of these, in fragmenters that are navigation


@frozen
class Template:
    """Pages that share their navigation."""

    pages: tuple[TemplatePage, ...]  # in the order in which they joined: the pair that it began with first
    chain_bytes: int  # length of the navigation part as the method measures it: of its chains, which overlap
    share: float  # of the pages' bytes that are navigation: the mean over pages, 0 to 1


@frozen
class SiteTemplates:
    """A site's templates, largest first, and the pages that none took."""

    site: SiteKey
    method: str
    rules: TemplateRules
    templates: tuple[Template, ...]
    others: tuple[TemplatePage, ...]


class TextRun(NamedTuple):
    """Text of one part within a block."""

    text: str
    part: Part


class MarkedBlock(NamedTuple):
    """A block of a page's text with its parts; a method that judges whole blocks gives it one run."""

    kind: BlockKind
    level: int  # of a heading: 1 to 6
    runs: tuple[TextRun, ...]


@frozen
class MarkedPage:
    """A page as it is shown for judging by eye."""

    page: TemplatePage
    template: int  # its place among the site's templates; -1: none took it
    blocks: tuple[MarkedBlock, ...]
