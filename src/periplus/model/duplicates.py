"""Values for duplicate pages and for page templates."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from periplus.model.page import BlockKind, Part
from periplus.model.web import SiteKey, Url, UrlId
from periplus.values import frozen


class Likeness(StrEnum):
    """Similarity of a page to the representative of its group, highest first."""

    BYTES = "bytes"  # identical
    WORDS = "words"  # same text in another encoding or markup
    FOLDED = "folded"  # same text except for diacritics, case and typographic characters
    NEAR = "near"  # nearly the same content


class Ground(StrEnum):
    """Criterion by which the representative of a group is preferred to another page: the first of these, in this
    order, in which the two differ.
    """

    MARKS = "diacritics"  # it has diacritics: they can be removed automatically, but not restored
    NAMED = "canonical"  # another page declares it as canonical
    COPIES = "copies"  # for near duplicates: more pages have exactly its text
    CLICKS = "clicks"  # it is nearer to the start
    LENGTH = "length"  # shorter URL
    ORDER = "order"  # its URL sorts first: the last resort


class Contender(NamedTuple):
    """A page with the properties that decide which page represents a group."""

    url_id: UrlId
    url: Url
    charset: str
    depth: int  # clicks from the start; 2^30 if no link leads there
    is_named: bool  # another page declares it as canonical


class SameText(NamedTuple):
    """One of several pages whose texts differ at most in diacritics and case."""

    page: Contender
    marks: int  # non-ASCII characters of its text
    text: int  # pages of a group with equal numbers have the same text, except for white space
    body: int  # pages of a group with equal numbers have the same bytes


@frozen
class Duplicate:
    """A duplicate page, compared with the representative of its group."""

    url_id: UrlId
    url: Url
    charset: str
    like: Likeness
    similarity: float  # Jaccard similarity of five-word shingles; 1.0: the same text
    contained: float  # share of this page's shingles that the representative also has
    text: int  # pages of a group with equal numbers have the same text; 0: the representative's text


@frozen
class DuplicateGroup:
    """A group of duplicate or nearly duplicate pages."""

    url_id: UrlId
    url: Url  # of the representative
    charset: str
    grounds: tuple[Ground, ...]  # criteria that decided against another page, strongest first
    pages: tuple[Duplicate, ...]  # the other pages, most similar first
    is_confirmed: bool  # the texts were compared, not only their digests


@frozen
class Duplicates:
    """Duplicates in a collection or one of its sites. site: empty if all sites were compared."""

    site: str
    near: float  # minimum similarity of near duplicates; 1.0: only equal texts
    pages: int  # compared pages
    groups: tuple[DuplicateGroup, ...]  # largest first
    notes: tuple[str, ...]


# Templates of a site: which pages share a template, and which of their content is navigation.


@frozen
class TemplateRules:
    """Parameters of Shorkin's method, with his names and published values.

    Lengths and shares in per cent.
    """

    min_fragmenters_chain: int = 6  # minimum fragmenters in a chain
    duplicates: int = 70  # a pair of pages with more common content does not start a cluster
    min_nav_length: int = 80  # share of the first pair's common part that another page must have to join
    least_nav_length: int = 40  # the lowest value that min_nav_length is reduced to
    nav_length_step: int = 20
    cluster_pages: int = 4  # minimum pages of a cluster


PUBLISHED_RULES = TemplateRules()


@frozen
class TemplatePage:
    """Size of a page and of its navigation."""

    url: Url
    title: str
    size_bytes: int  # of its source as UTF-8, without white space around tags
    navigation_bytes: int  # bytes in navigation fragmenters


@frozen
class Template:
    """Pages that share their navigation."""

    pages: tuple[TemplatePage, ...]  # in the order of joining, the initial pair first
    chain_bytes: int  # length of the navigation part as defined by the method: total of its chains, which overlap
    share: float  # share of bytes that are navigation, mean over pages, 0 to 1


@frozen
class SiteTemplates:
    """A site's templates, largest first, and the pages without a template."""

    site: SiteKey
    method: str
    rules: TemplateRules
    templates: tuple[Template, ...]
    others: tuple[TemplatePage, ...]


class TextRun(NamedTuple):
    """A run of text within a block that belongs to one part."""

    text: str
    part: Part


class MarkedBlock(NamedTuple):
    """A text block with its parts. A method that classifies whole blocks returns one run."""

    kind: BlockKind
    level: int  # heading level, 1 to 6
    runs: tuple[TextRun, ...]


@frozen
class MarkedPage:
    """A page with its classified blocks, for visual inspection."""

    page: TemplatePage
    template: int  # index among the site's templates; -1: no template
    blocks: tuple[MarkedBlock, ...]
