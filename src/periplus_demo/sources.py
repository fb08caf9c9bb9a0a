"""Reads the pages of the pilot book, which are UTF-8 files in a small markup language.

`=== /path.html` begins a page; then lines `key: value` (title, charset, description, slow, orphan, also, also-plain);
then blocks, separated by empty lines: `# ` and `## ` headings, `| a | b |` rows of a table (the first is its header),
`- ` list items, `![alt](src)` an image (`![words](src) no alt`: the words are only its caption), anything else a
paragraph. In text, `[words](href)` is a link and `*words*` is emphasis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from periplus.values import frozen


@frozen
class Answer:
    """A response. media_type empty: no Content-Type is sent; wait_s: delay before it is sent, seconds."""

    status: int
    media_type: str
    body: bytes
    location: str = ""
    wait_s: float = 0.0


@frozen
class Source:
    """The source of a page."""

    path: str
    title: str
    description: str
    charset: str
    declared: str  # where the charset is declared: header, meta, both or none
    slow_s: float
    orphan: bool  # only in the sitemap
    also: str  # a second path with the same bytes
    also_plain: str  # a second path with the text without diacritics
    blocks: tuple[str, ...]

    @property
    def language(self) -> str:
        """The first segment of the path; English for the home page."""
        first = self.path.split("/")[1]
        return first if len(first) == 2 else "en"


def read_sources(folder: Path) -> list[Source]:
    """Every page of every file, in the order of file names."""
    return [source for file in sorted(folder.glob("*.txt")) for source in _pages(file.read_text("utf-8"))]


def _pages(text: str) -> Iterator[Source]:
    for part in text.split("=== ")[1:]:
        path, _, rest = part.partition("\n")
        head, _, body = rest.partition("\n#")
        keys = dict(line.split(":", 1) for line in head.splitlines() if ":" in line)
        values = {key: value.strip() for key, value in keys.items()}
        charset, _, declared = values.get("charset", "utf-8 header").partition(" ")
        yield Source(
            path.strip(),
            values.get("title", ""),
            values.get("description", ""),
            charset,
            declared,
            float(values.get("slow", "0")),
            "orphan" in values,
            values.get("also", ""),
            values.get("also-plain", ""),
            tuple(block.strip() for block in re.split(r"\n\s*\n", "#" + body) if block.strip()),
        )


def slug(heading: str) -> str:
    """The id of a heading: `The winter on the skerry` -> `the-winter-on-the-skerry`."""
    return re.sub(r"\W+", "-", heading.lower()).strip("-")


def inline(text: str) -> str:
    """A line of text as HTML, with its links and emphasis."""
    text = re.sub(r"\[([^]]*)\]\(([^)]*\(\)|[^)]*)\)", r'<a href="\2">\1</a>', escape(text, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def block_html(block: str) -> str:
    """One block as HTML."""
    if block.startswith("# "):
        return f"<h1>{inline(block[2:])}</h1>"
    if block.startswith("## "):
        return f'<h2 id="{slug(block[3:])}">{inline(block[3:])}</h2>'
    if block.startswith("!["):
        picture = re.fullmatch(r"!\[([^]]*)\]\(([^)]*)\)( no alt)?", block)
        assert picture, block
        words, src, bare = picture.groups()
        alt = "" if bare else f' alt="{escape(words)}"'
        return (
            f'<figure><img src="{src}"{alt} width="160" height="100"><figcaption>{escape(words)}</figcaption></figure>'
        )
    if block.startswith("- "):
        return "<ul>" + "".join(f"<li>{inline(line[2:])}</li>" for line in block.splitlines()) + "</ul>"
    if block.startswith("|"):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        cells = [("th" if number == 0 else "td", row) for number, row in enumerate(rows)]
        return (
            "<table>"
            + "".join(
                "<tr>" + "".join(f"<{tag}>{inline(cell)}</{tag}>" for cell in row) + "</tr>\n" for tag, row in cells
            )
            + "</table>"
        )
    return f"<p>{inline(' '.join(block.splitlines()))}</p>"
