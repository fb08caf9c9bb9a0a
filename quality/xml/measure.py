"""Is the canonical XML of every page well-formed and equivalent to the page?

Reparsed by lxml without recovery, and compared with the tree of another HTML parser.

Pages: tag soup of hostile pieces, from a fixed seed; with CORPORA also labelled real pages (60 of each of five sets).
Tree: names of elements and attributes, and text; without the contents of templates.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

sys.path.insert(0, str(Path(__file__).parent.parent))

from figures import Figure, digest_of, write

from periplus.document.canonical_xml import legal_name, legal_text, xml_of_html

SETS = ("wcxb-dev350", "daniel", "cleaneval", "dragnet", "debdocs")
PAGES_EACH = 60
READ_EACH = 400  # pool from which they are drawn
MADE = 2_000
AIM_MB_PER_S = 23.0  # a writer of thirty lines over a tree reached it
# No textarea: lexbor opens formatting elements again in it, against the standard.
PIECES = [
    "<g:plusone @click='x' a\"b=1 <c>", "<svg viewbox=1 xlink:href=a xmlns:xlink=t xmlns=q>", "<foreignobject>",
    "<math>", "<mi>",
    "<title>", "<desc>", "</svg>",
    "<html xmlns='u' xmlns:og='v' og:x=1>", "<body xml:lang=cs lang=cs>", "<!-- a -- b --- ->", "<!--->-->",
    "<!DOCTYPE html SYSTEM 'x'>", "<![CDATA[ ]]> ]]>",
    "<1>",
    "<a =x>", "\x0c", "\x1f", "&#13;", "&#x1;", "&lt;&nbsp;&nosuch;", "<p/>", "</p>", "<table><td><p>", "</table>",
    "<script>", "</script>", "<select><option>",
    "<b><i></b>", "<x-é a-\U0001f600=1 -x=2 .y=3>", "<a href='a&b\"\n\t'>", "<image>", "words", "<ul><li>", "<h1>",
]  # fmt: skip


class Score(NamedTuple):
    """Scores of a set of pages: shares from 0 to 1."""

    well_formed: float
    same_text: float
    same_tree: float
    mb_per_s: float


def made() -> list[str]:
    """Tag soup, from a fixed seed."""
    rng = random.Random(20)
    return ["".join(rng.choices(PIECES, k=rng.randrange(1, 60))) for _ in range(MADE)]


def real() -> list[str]:
    """Pages of the folder CORPORA; empty if it is not set."""
    folder = os.environ.get("CORPORA")
    found: list[str] = []
    for name in SETS if folder else ():
        path = Path(str(folder)) / f"extraction-{name}.jsonl.gz"
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as file:
                rows = [json.loads(line)["html"] for line in islice(file, READ_EACH)]
            random.Random(1).shuffle(rows)
            found += rows[:PAGES_EACH]
    return found


def their_tree(page: str) -> list[tuple[str, frozenset[str]] | str]:
    """Elements with the names of their attributes, and texts, according to another parser."""
    found: list[tuple[str, frozenset[str]] | str] = []
    root = LexborHTMLParser(page).root
    for node in root.traverse(include_text=True) if root else ():
        if node.tag == "-text":
            add_text(found, legal_text(node.text_content or ""))
        elif node.tag and not node.tag.startswith(("_", "!")) and node.tag != "-comment":
            found.append(
                (
                    legal_name(node.tag).lower(),
                    frozenset(shown(name) for name in node.attributes if not name.startswith("xmlns")),
                )
            )
    return found


def our_tree(data: etree._Element) -> list[tuple[str, frozenset[str]] | str]:
    found: list[tuple[str, frozenset[str]] | str] = []
    walk = etree.iterwalk(data, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        if event == "start":
            if etree.QName(element).localname == "template":  # the other parser does not expose its contents
                walk.skip_subtree()
            names = frozenset(
                shown(re.sub(r"\{.*xlink\}", "xlink:", re.sub(r"\{.*namespace\}", "xml:", str(name))))
                for name in element.attrib
            )
            found.append(
                (
                    etree.QName(element).localname.lower(),
                    frozenset(name for name in names if not name.startswith("xmlns")),
                )
            )
            if etree.QName(element).localname != "template":
                add_text(found, element.text)
        elif element.getparent() is not None:
            add_text(found, element.tail)
    return found


def shown(name: str) -> str:
    """Normalised name of an attribute."""
    name = name.removeprefix("data-") if name == "data-shadowrootmode" else name  # so that its contents are kept
    return (
        (name if name.startswith(("xml:", "xlink:")) else legal_name(name))
        .lower()
        .replace("xlinku00003a", "xlink:")
        .replace("xmlu00003a", "xml:")
    )


def add_text(found: list[tuple[str, frozenset[str]] | str], text: str | None) -> None:
    if text and found and isinstance(found[-1], str):
        found[-1] += text
    elif text:
        found.append(text)


def scored(pages: list[str]) -> Score:
    began = time.process_time()
    written = [xml_of_html(page) for page in pages]
    took = time.process_time() - began
    outcomes = [outcome(page, data) for page, data in zip(pages, written, strict=True)]
    well, text, tree = (sum(column) / len(pages) for column in zip(*outcomes, strict=True))
    return Score(well, text, tree, sum(len(page.encode("utf-8", "replace")) for page in pages) / 1e6 / took)


def outcome(page: str, data: bytes) -> tuple[bool, bool, bool]:
    """(well-formed, same text, same tree) of one page."""
    try:
        ours = our_tree(etree.fromstring(data, etree.XMLParser(huge_tree=True)))
    except etree.XMLSyntaxError:
        return False, False, False
    theirs = their_tree(page)
    return True, words(ours) == words(theirs), ours == theirs


def words(tree: list[tuple[str, frozenset[str]] | str]) -> str:
    return "".join(part for part in tree if isinstance(part, str))


def sets() -> Iterator[tuple[str, list[str]]]:
    yield "made", made()
    if pages := real():
        yield "real", pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    figures: list[Figure] = []
    for name, pages in sets():
        score, data = scored(pages), digest_of(pages)
        print(
            (
                f"{name}: {len(pages)} pages, well-formed {score.well_formed:.4f}, same text {score.same_text:.4f}, "
                f"same tree {score.same_tree:.4f}"
            ),
            end="",
        )
        print(f", {score.mb_per_s:.1f} MB/s parsed and written", flush=True)
        figures += [
            Figure(f"{name}, well-formed", score.well_formed, 1.0, data),
            Figure(f"{name}, same text as selectolax", score.same_text, 1.0, data),
        ]
        figures += [
            Figure(f"{name}, same tree as selectolax", score.same_tree, 1.0, data),
            Figure(f"{name}, MB/s", score.mb_per_s, AIM_MB_PER_S),
        ]
    if options.json:
        write(options.json, figures)


if __name__ == "__main__":
    main()
