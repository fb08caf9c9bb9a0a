"""Writes a page as Markdown (CommonMark with the tables of GFM), of its elements, else of its blocks."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress

from lxml import etree

from periplus.errors import InvalidUrl
from periplus.model.page import Block, BlockKind
from periplus.model.web import Url
from periplus.present.wording import visible, without_controls
from periplus.urls.canonical import resolve

DEEPEST = 100  # nested elements; deeper content becomes a paragraph: 95 of 100 pages have no more than 30
_BLOCK_NAMES = (
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer "
    "form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p plaintext pre "
    "search section summary table caption colgroup tbody td tfoot th thead tr ul xmp listing"
)
_SKIPPED_NAMES = "head script style template noscript svg iframe object audio video canvas map datalist"
_BLOCK_TAGS, _SKIPPED_TAGS = frozenset(_BLOCK_NAMES.split()), frozenset(_SKIPPED_NAMES.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_STRONG = {"b": "**", "strong": "**", "em": "*", "i": "*", "cite": "*", "var": "*", "dfn": "*", "del": "~~", "s": "~~",
           "strike": "~~"}  # fmt: skip
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_LANGUAGE = re.compile(
    r"(?:^|[\s:])(?:language|lang|highlight-source|highlight|brush|src)[-:]\s*([A-Za-z][\w+#.-]*)|\bsourceCode\s+(\w+)"
)
_NO_LANGUAGE = frozenset(("default", "none", "notranslate", "plain", "plaintext", "text"))
_GUTTER = re.compile(
    r"(?:^|\s)(?:(?:rouge-)?gutter|line-?no|linenos?|linenodiv|line-numbers-rows|blob-num|katex-html)(?:\s|$)"
)
_GUTTER_TAGS = frozenset(("td", "span", "div", "pre", "a"))
_TEX = re.compile(r"\\\((.+?)\\\)|\\\[(.+?)\\\]", re.S)  # between \( and \), or \[ and \]
_PERMALINK = frozenset(("¶", "#", "§", "🔗", "⚓"))
# everywhere a mark: \ ` * [ ] ~ < (the next character may be in another element); _ but within a word; & before what
# makes a character
_MARK = re.compile(r"[\\`*\[\]~]|(?<![^\W_])_|_(?![^\W_])|<|&(?=#?\w+;)")
_LINE_MARK = re.compile(r"^(\s*)(?:(\d{1,9})([.)])(?=\s|$)|(#{1,6}(?=\s|$)|[+-](?=\s|$)|>|=+\s*$|-{3,}\s*$))")
_SPACE = re.compile(r"[ \t\n\r\f]+")
_BREAK = "\\\n"
_CELL_BREAKERS = frozenset({"table", "hr", "form", *_HEADINGS})
_CELL_LISTS = frozenset({"pre", "ul", "ol", "dl", "blockquote"})
_CELL_CHARS = 600  # a longer cell with lists lays out the page, unless the table has heads


def inline_text(text: str) -> str:
    """A text within a line of Markdown."""
    return _escape(visible(text))


def pieces_of_xml(
    xml: bytes, url: Url, title: str = "", blocks: Sequence[Block] = (), is_shown: Sequence[bool] | None = None
) -> list[str] | None:
    """A page's canonical XML (XHTML) as Markdown, a heading, paragraph, list, table or code a piece: code with its
    language, links and pictures with whole addresses. None: it is not XHTML.

    is_shown: of each block; None: all are. title: written above a text without a first-level heading. Layout tables,
    and tables with blocks in cells, are written cell by cell.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, recover=True)
    try:
        root = etree.fromstring(xml, parser)
    except etree.XMLSyntaxError:  # elements deeper than libxml2 reads
        return None
    bodies = (element for element in root.iter("{*}body")) if root is not None else iter(())
    if (body := next(bodies, None)) is None:
        return None
    base = next((element.get("href", "") for element in root.iter() if _tag(element) == "base"), "")
    pieces = _Writer(url, base, _shown_test(blocks, is_shown)).blocks(body)
    if title and not any(piece.startswith("# ") for piece in pieces):
        pieces.insert(0, f"# {_escape(_fold(title))}")
    return [without_controls(piece) for piece in pieces]


def _shown_test(blocks: Sequence[Block], is_shown: Sequence[bool] | None) -> Callable[[str], bool]:
    """Whether a piece of text is shown. Pieces come in the order of the blocks; a piece without a block follows the one
    before.
    """
    if is_shown is None:
        return lambda text: True
    of_text: dict[str, deque[bool]] = defaultdict(deque)
    for block, shown in zip(blocks, is_shown, strict=True):
        of_text[_SPACE.sub("", block.text)].append(shown)
    last = next(
        (shown for block, shown in zip(blocks, is_shown, strict=True) if block.kind is not BlockKind.TITLE), True
    )

    def is_piece_shown(text: str) -> bool:
        nonlocal last
        if same := of_text.get(_SPACE.sub("", text)):
            last = same.popleft() if len(same) > 1 else same[0]
        return last

    return is_piece_shown


def _tag(element: etree._Element) -> str:
    """The name of an element that is shown; empty for comments, hidden elements and line numbers beside code."""
    tag = element.tag
    if not isinstance(tag, str) or element.get("hidden", "until-found") != "until-found":
        return ""
    name = tag.rpartition("}")[2].lower()
    return "" if name in _GUTTER_TAGS and _GUTTER.search(element.get("class", "")) else name


def _is_skipped(element: etree._Element, tag: str) -> bool:
    return tag in _SKIPPED_TAGS and not (tag == "script" and element.get("type", "").startswith("math/tex"))


def _fold(text: str) -> str:
    return _SPACE.sub(" ", text).strip(" ")


def _escape(text: str) -> str:
    """A literal text within a line; TeX between its marks as a formula."""
    if "\\" not in text:
        return _MARK.sub(r"\\\g<0>", text)
    pieces = _TEX.split(text)  # text, formula of a line or None, formula of its own or None, text, ...
    for at, piece in enumerate(pieces):
        is_formula = at % 3 > 0
        pieces[at] = _formula(piece, at % 3 == 2) if is_formula and piece else _MARK.sub(r"\\\g<0>", piece or "")
    return "".join(pieces)


def _formula(tex: str, is_block: bool) -> str:
    marks = "$$" if is_block else "$"
    return f"{marks}{_fold(tex)}{marks}" if tex.strip() else ""


def _math(element: etree._Element) -> str:
    """MathML as TeX, if it says so; else its text."""
    notes = [note for note in element.iter("{*}annotation") if "tex" in note.get("encoding", "").lower()]
    tex = next((note.text or "" for note in notes), element.get("alttext", ""))
    is_block = element.get("display") == "block"
    return _formula(tex, is_block) or _escape(_fold("".join(_strings(element))))


def _line_start(line: str) -> str:
    """The same at the beginning of a line, where further signs are marks."""
    return _LINE_MARK.sub(lambda mark: f"{mark[1]}{mark[2]}\\{mark[3]}" if mark[2] else f"{mark[1]}\\{mark[4]}", line)


def code_fence(code: str, language: str = "") -> str:
    """Code between fences that it does not hold."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
    return f"{fence}{language}\n{code}\n{fence}"


def _code_span(text: str) -> str:
    text = _SPACE.sub(" ", text)
    if not text.strip():
        return text
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    lead, trail = text[: len(text) - len(text.lstrip(" "))], text[len(text.rstrip(" ")) :]
    return f"{lead}{ticks}{pad}{text.strip(' ')}{pad}{ticks}{trail}"


def _emphasise(text: str, mark: str) -> str:
    """Emphasis around the text, its blanks outside: `**` before a blank is no mark."""
    inner = text.strip(" \n")
    if not inner or inner.endswith("\\"):
        return text
    start = text.index(inner)
    return f"{text[:start]}{mark}{inner}{mark}{text[start + len(inner) :]}"


class _Writer:
    """One page under way. is_shown: of the text of a paragraph, heading, cell or code."""

    def __init__(self, url: Url, base: str, is_shown: Callable[[str], bool]) -> None:
        self._start, self._is_shown = url, is_shown
        target = self._address(base)
        self._start = Url(target) if base and target else url

    def _address(self, written: str) -> str:
        """The whole address; empty: it is none that one could follow."""
        written = written.strip()
        if written.lower().startswith(("mailto:", "tel:")):
            return written.replace(" ", "%20")
        try:
            target, fragment = resolve(written, self._start)
        except InvalidUrl:
            return ""
        return f"{target}#{fragment}" if fragment else target

    # blocks

    def blocks(self, element: etree._Element, depth: int = 0) -> list[str]:
        """Content of an element, one piece a paragraph, heading, list, table or code."""
        if depth > DEEPEST:
            text = _fold("".join(_strings(element)))
            return [_line_start(_escape(text))] if text and self._is_shown(text) else []
        pieces: list[str] = []
        run: list[str] = []
        plain: list[str] = []

        def end_run() -> None:
            pieces.extend(self._paragraph(run, plain))
            run.clear()
            plain.clear()

        def add(text: str | None) -> None:
            if text:
                run.append(_escape(_SPACE.sub(" ", text)))
                plain.append(text)

        add(element.text)
        for child in element:
            tag = _tag(child)
            if tag in _BLOCK_TAGS or (tag and not _is_skipped(child, tag) and _holds_blocks(child)):
                end_run()
                pieces.extend(self._block(child, tag, depth + 1))
            elif tag and not _is_skipped(child, tag):
                run.append(self._inline(child, depth + 1))
                plain.extend(_strings(child))
            add(child.tail)
        end_run()
        return pieces

    def _paragraph(self, run: Sequence[str], plain: Sequence[str]) -> Iterator[str]:
        text = _lines("".join(run))
        if text and self._is_shown("".join(plain)):
            yield "\n".join(map(_line_start, text.split("\n")))

    def _block(self, element: etree._Element, tag: str, depth: int) -> list[str]:
        if tag in _HEADINGS:
            return self._heading(element, _HEADINGS[tag], depth)
        if tag in ("pre", "xmp", "listing", "plaintext"):
            return self._code(element)
        if tag in ("ul", "ol", "menu", "dir"):
            return self._list(element, tag, depth)
        if tag == "table":
            return self._table(element, depth)
        if tag == "hr":
            return ["---"]
        pieces = self.blocks(element, depth)
        if tag == "blockquote":
            return ["\n".join(f"> {line}".rstrip() for line in "\n\n".join(pieces).split("\n"))] if pieces else []
        if tag == "dt":
            return [piece if "**" in piece or "\n" in piece else f"**{piece}**" for piece in pieces]
        return pieces

    def _heading(self, element: etree._Element, level: int, depth: int) -> list[str]:
        if any(_tag(child) in _BLOCK_TAGS for child in element.iterdescendants()):
            text = " ".join(" ".join(self.blocks(element, depth)).split("\n"))
        else:
            text = _lines(self._inner(element, depth)).replace(_BREAK, " ").replace("\n", " ")
            text = text if text and self._is_shown("".join(_strings(element))) else ""
        # a # at its end would be taken for a mark
        ending = re.sub(r"(#+)$", r"\\\1", text)
        return [f"{'#' * level} {ending}"] if text else []

    def _code(self, element: etree._Element) -> list[str]:
        code = "".join(_strings(element, as_written=True)).replace("\r\n", "\n").strip("\n")
        if not code.strip() or not self._is_shown(code):
            return []
        return [code_fence(code, _language(element))]

    def _list(self, element: etree._Element, tag: str, depth: int) -> list[str]:
        items: list[tuple[str, list[str]]] = []
        number = _number(element.get("start"), 1)
        for child in element:
            name = _tag(child)
            if not name or name in _SKIPPED_TAGS:
                continue
            if name == "li":
                number = _number(child.get("value"), number)
            pieces = self.blocks(child, depth) if name == "li" else self._block(child, name, depth)
            if name != "li" and items and pieces:  # a list within a list, without an item of its own
                items[-1][1].extend(pieces)
            elif pieces:
                items.append((f"{number}. " if tag == "ol" else "- ", pieces))
                number += 1
        tight = all(len([piece for piece in pieces if not _is_list(piece)]) <= 1 for _, pieces in items)
        gap = "\n" if tight else "\n\n"
        texts = [mark + _join_pieces(pieces, gap).replace("\n", "\n" + " " * len(mark)) for mark, pieces in items]
        return [re.sub(r"[ \t]+$", "", gap.join(texts), flags=re.M)] if texts else []

    def _table(self, element: etree._Element, depth: int) -> list[str]:
        rows = [row for row in element.iterdescendants() if _tag(row) == "tr" and _table_of(row) is element]
        cells = [[cell for cell in row if _tag(cell) in ("td", "th")] for row in rows]
        title = next((child for child in element if _tag(child) == "caption"), None)
        caption = self.blocks(title, depth) if title is not None else []
        if _lays_out(cells):
            return caption + [piece for row in cells for cell in row for piece in self.blocks(cell, depth + 3)]
        lines = [line for line in self._grid(cells, depth) if any(line)]
        if not lines:
            return caption
        width = max(map(len, lines))
        has_head = all(_tag(cell) == "th" for cell in cells[0]) or _tag(_parent(rows[0])) == "thead"
        table = lines if has_head else [[""] * width, *lines]
        written = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in table]
        return [*caption, "\n".join([written[0], "|" + " --- |" * width, *written[1:]])]

    def _grid(self, cells: Sequence[Sequence[etree._Element]], depth: int) -> Iterator[list[str]]:
        """The texts of a table's cells; places that a cell reaches over further columns or rows are empty."""
        taken: dict[int, int] = {}  # by column: how many rows a cell from above still reaches down
        for row in cells:
            line: list[str] = []
            below: dict[int, int] = {}
            for cell in row:
                while taken.get(len(line), 0):
                    line.append("")
                place, span = len(line), min(_number(cell.get("colspan"), 1), 1_000)
                text = "<br>".join(map(_cell_text, self.blocks(cell, depth + 3)))
                line += [re.sub(r"(?<!\\)\|", r"\\|", text), *[""] * (span - 1)]
                if (down := _number(cell.get("rowspan"), 1)) > 1:
                    below |= dict.fromkeys(range(place, place + span), down)
            taken = {column: rows - 1 for column, rows in ({**taken, **below}).items() if rows > 1}
            yield line

    # within a line

    def _inner(self, element: etree._Element, depth: int) -> str:
        pieces = [_escape(_SPACE.sub(" ", element.text or ""))]
        for child in element:
            tag = _tag(child)
            if tag and not _is_skipped(child, tag):
                pieces.append(self._inline(child, depth + 1))
            pieces.append(_escape(_SPACE.sub(" ", child.tail or "")))
        return "".join(pieces)

    def _inline(self, element: etree._Element, depth: int) -> str:
        tag = _tag(element)
        if tag == "br":
            return _BREAK
        if tag == "img":
            return self._picture(element)
        if tag == "math":
            return _math(element)
        if tag == "script":
            return _formula(element.text or "", "display" in element.get("type", ""))
        if depth > DEEPEST:
            return _escape(_SPACE.sub(" ", "".join(_strings(element))))
        if tag in _CODE and not any(_tag(inner) in ("a", "img", "br") for inner in element.iterdescendants()):
            return _code_span("".join(_strings(element)))
        text = self._inner(element, depth)
        if tag == "a":
            return self._link(element, text)
        if tag == "q":
            return f"“{text}”"
        if tag in ("sub", "sup") and text.strip():
            return f"<{tag}>{text.strip()}</{tag}>"
        return _emphasise(text, _STRONG[tag]) if tag in _STRONG else text

    def _link(self, element: etree._Element, text: str) -> str:
        if text.strip(" \\") in _PERMALINK and element.get("href", "").startswith("#"):
            return " "
        written = element.get("href")
        address = self._address(written) if written is not None else ""
        if not text.strip() and (written or "").startswith("#"):  # what a heading is linked by
            return text
        label = text.strip() or _escape(_fold(element.get("aria-label") or element.get("title") or ""))
        if not address or not label:
            return text
        lead, trail = (" " * text.startswith(" "), " " * text.endswith(" ")) if text.strip() else ("", "")
        return f"{lead}[{label.replace(_BREAK, ' ')}]({_destination(address)}){trail}"

    def _picture(self, element: etree._Element) -> str:
        source = element.get("src", "")
        if not source or source.startswith("data:"):
            source = element.get("data-src", "") or source
        address = "" if source.startswith("data:") else self._address(source) if source else ""
        alt = _escape(_fold(element.get("alt", "")))
        return f"![{alt}]({_destination(address)})" if address else alt


def _lines(text: str) -> str:
    """Folded, each line without blanks at its ends, and no empty one."""
    return _BREAK.join(line for written in text.split(_BREAK) if (line := _fold(written)))


def _destination(address: str) -> str:
    return f"<{address}>" if re.search(r"[()\s]", address) else address


def _strings(element: etree._Element, *, as_written: bool = False) -> Iterator[str]:
    """The shown texts in an element, with a line end for a break."""
    if element.text:
        yield element.text
    # an explicit walk: elements may be nested thousands deep
    stack = [iter(element)]
    tails: list[str | None] = []
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
            if tails and (tail := tails.pop()):
                yield tail
            continue
        tag = _tag(child)
        if tag == "br":
            yield "\n" if as_written else " "
        if not tag or tag in _SKIPPED_TAGS:
            if child.tail:
                yield child.tail
            continue
        if child.text:
            yield child.text
        stack.append(iter(child))
        tails.append(child.tail)


def _holds_blocks(element: etree._Element) -> bool:
    return any(_tag(inner) in _BLOCK_TAGS for inner in element.iterdescendants())


def _parent(element: etree._Element) -> etree._Element:
    parent = element.getparent()
    return element if parent is None else parent


def _table_of(row: etree._Element) -> etree._Element | None:
    return next((above for above in row.iterancestors() if _tag(above) == "table"), None)


def _lays_out(cells: Sequence[Sequence[etree._Element]]) -> bool:
    """Whether a table is no grid of lines: one column or row without heads, or cells with tables, headings, forms; or
    with lists and code in long cells.
    """
    has_heads = any(_tag(cell) == "th" for row in cells for cell in row)
    if not has_heads and (len(cells) < 2 or max(map(len, cells), default=0) < 2):
        return True
    inner = {_tag(inner) for row in cells for cell in row for inner in cell.iterdescendants()}
    if inner & _CELL_BREAKERS or has_heads or not inner & _CELL_LISTS:
        return bool(inner & _CELL_BREAKERS)
    return any(sum(map(len, _strings(cell))) > _CELL_CHARS for row in cells for cell in row)


def _cell_text(piece: str) -> str:
    """A piece within one line: code as a span a line, breaks as `<br>`."""
    if piece.startswith("```"):
        return "<br>".join(_code_span(line) for line in piece.split("\n")[1:-1] if line.strip())
    return re.sub(r"\n+\s*", "<br>", piece.replace(_BREAK, "<br>"))


def _language(element: etree._Element) -> str:
    """Language of code, from its class or its parent's; empty: unknown."""
    inner = [child for child in element if _tag(child) == "code"][:1]
    around = [above for above, _ in zip(element.iterancestors(), range(2), strict=False)]
    for figure in element.iterancestors("{*}figure"):  # Hexo: <figure class="highlight python">
        kind, _, named = figure.get("class", "").partition(" ")
        if kind == "highlight" and re.fullmatch(r"[\w+#.-]+", named) and named not in _NO_LANGUAGE:
            return named
    for node in (*inner, element, *around):
        if given := node.get("data-lang") or node.get("data-language"):
            return given if re.fullmatch(r"[\w+#.-]+", given) else ""
        if match := _LANGUAGE.search(node.get("class", "")):
            name = (match[1] or match[2]).lower()
            return "" if name in _NO_LANGUAGE else name
    return ""


def _join_pieces(pieces: Sequence[str], gap: str) -> str:
    """The pieces of an item. A list that begins with another number than 1 never follows a paragraph at once."""
    text = pieces[0]
    for piece in pieces[1:]:
        text += ("\n\n" if piece[0].isdigit() and not piece.startswith("1. ") else gap) + piece
    return text


def _is_list(piece: str) -> bool:
    return re.match(r"(- |\d+\. )", piece) is not None


def _number(written: str | None, default: int) -> int:
    return int(written) if written and re.fullmatch(r"\d{1,6}", written) else default


def pieces_of_blocks(blocks: Iterable[Block], is_shown: Sequence[bool] | None, title: str = "") -> list[str]:
    """The same of blocks alone, for pages whose bytes were not kept: no links; items and cells of tables are pieces of
    their own, for a block does not know its list or row.
    """
    shown = list(blocks if is_shown is None else compress(blocks, is_shown))
    pieces = []
    if title and not any(block.kind is BlockKind.HEADING and block.level == 1 for block in shown):
        pieces.append(f"# {_escape(_fold(title))}")
    for block in shown:
        text = _line_start(_escape(_fold(block.text)))
        match block.kind:
            case BlockKind.TITLE | BlockKind.ALT:
                continue
            case BlockKind.HEADING:
                pieces.append(f"{'#' * (block.level or 1)} {text}")
            case BlockKind.ITEM:
                pieces.append(f"- {text}")
            case BlockKind.CODE:
                pieces.append(code_fence(block.text))
            case _:
                pieces.append(text)
    return [without_controls(piece) for piece in pieces]


def markdown_of_blocks(blocks: Iterable[Block], is_shown: Sequence[bool] | None, title: str = "") -> str:
    """The pieces of `pieces_of_blocks` as one text, items below one another."""
    text, before = "", ""
    for piece in pieces_of_blocks(blocks, is_shown, title):
        text += ("" if not before else "\n" if before[:2] == piece[:2] == "- " else "\n\n") + piece
        before = piece
    return text + "\n"
