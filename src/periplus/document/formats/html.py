"""Reads what an HTML or XHTML page holds."""

from __future__ import annotations

from dataclasses import replace

from periplus.document import html
from periplus.document.blocks import blocks_of
from periplus.document.canonical_xml import without_doctype
from periplus.document.formats.content import Content, Source
from periplus.document.links import rows_of, translations_of
from periplus.document.metadata import metadata
from periplus.model.page import BlockKind, Blocks

SHELL_CHARS = 200  # of all text: "Loading", a name, a line of rights
ROOT_CHARS = 50  # of what stands in a root until the script comes
# What the frameworks and their starters call the element that they fill: React, Vue, Next, Nuxt, Gatsby, Svelte,
# Angular, Quasar, Polymer.
_ROOTS = (
    "#root,#app,#__next,#__nuxt,#___gatsby,#svelte,#q-app,#react-root,#app-root,#app-mount,#application,app-root,"
    "my-app,[ng-app],[data-reactroot]"
)


def read(source: Source) -> Content:
    """HTML with all its errors, as a browser takes it."""
    tree = html.parse(source.text)
    facts = metadata(tree, source.headers)
    rows = rows_of(tree, source, facts)
    translations = translations_of(tree, source)
    scripts = bool(html.elements(tree, "script"))
    unscripted_chars = sum(len(html.text_of(element)) for element in html.elements(tree, "noscript")) if scripts else 0
    blocks = blocks_of(tree, facts.language)  # last of all questions: it consumes the tree
    return Content(
        facts,
        blocks,
        rows.links(),
        rows.bad_links(),
        translations,
        rows.bounds(),
        scripts and _is_shell(tree, blocks, unscripted_chars),
    )


def _is_shell(tree: html.Tree, blocks: Blocks, unscripted_chars: int) -> bool:
    """Whether a page with scripts is empty until one fills it.

    unscripted_chars: of what is shown without scripts only.
    """
    most = SHELL_CHARS + unscripted_chars
    if len(blocks.text) > 2 * most:  # each block has a character at least, and one that parts it from the next
        return False
    if sum(len(block.text) for block in blocks if block.kind is not BlockKind.TITLE) > most:
        return False
    roots = html.select(tree, _ROOTS)
    return bool(roots) and all(
        len(html.text_of(root)) <= ROOT_CHARS and html.first(root, "a[href]") is None for root in roots
    )


def read_xhtml(source: Source) -> Content:
    """XHTML by the rules of XML, in which `<title/>` ends at once; when it is not well-formed, by those of HTML."""
    tree = html.parse_xml(without_doctype(source.text))
    text = source.text if tree is None else html.html_from_xml(tree)
    return read(replace(source, text=text))
