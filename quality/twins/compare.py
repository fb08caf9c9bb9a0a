"""Compares two readers.

Runs both on real pages and on random mutations of them, and shows each difference on a minimal page.

    python quality/twins/compare.py ~/manuals --old ../before/src             understand, before a change and after it
    python quality/twins/compare.py ~/manuals --left tree --right turbohtml   two parsers of one version
    python quality/twins/compare.py ~/manuals --part 3/10 --fuzzed 10000 --seconds 300 --out differences

Exits with 1 if there is a difference. --part 3/10 takes every tenth page, from the third on, so that several short
runs cover all pages; each part also has its own fuzzed pages.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from answers import READERS, Answer, frame, send

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"
PAGE_BYTES = 2_000_000  # larger files are skipped
PIECE_BYTES = 3_000  # size of the pieces of real pages that are mutated
TRIES = 1_500  # for one reduction
SHOWN = 40
_TOKENS = re.compile(rb"<[^<>]*>?|[^<\s]+|\s+")
# markup that parsers disagree on: tags with special rules, attributes, character references, ends of text
_NAMES = """
    a b i p div span table tr td th tbody caption col colgroup select option optgroup li ul ol dl dt dd h1 h2
    form button input br hr img svg math mi mtext annotation-xml foreignObject desc title style script noscript
    template textarea pre listing plaintext xmp iframe noembed noframes frameset frame head body html base link
    meta nobr marquee applet object ruby rt rp rtc main nav header footer section article details summary
    address center font em strong u area embed image isindex keygen param source track wbr menu hgroup search
    dialog fieldset figure figcaption
"""
_PARTS = [
    *(f"<{slash}{name}>".encode() for slash in ("", "/") for name in _NAMES.split()),
    b"<a href=x>", b"<a href='/y' rel=nofollow>", b'<a name="n" id=i>', b"<img src=i.png alt='a b'>",
    b"<base href=/b/>", b"<link rel=canonical href=c>", b"<meta name=robots content=noindex>", b"<p lang=cs>",
    b"<div hidden>", b"<div role=navigation>", b"<input type=hidden>", b"<annotation-xml encoding=text/html>",
    b"<svg><a xlink:href=u>", b"<font color=red>", b"<meta http-equiv=refresh content='0;url=r'>",
    b"<iframe srcdoc='<p>x'>", b"&amp;", b"&lt", b"&notit;", b"&#x26;", b"&#0;", b"&#128;", b"&nbsp;", b"&copy",
    b"&ampx=", b"\0", b"\r", b"\r\n", b"\x0c", b"<!--", b"-->", b"--!>", b"<!-->", b"<![CDATA[", b"]]>",
    b"<!doctype html>", b"<!DOCTYPE x>", b"<?", b"</", b"<", b">", b"'", b'"', b"=", b"/>", b" ", b"\n",
    b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xff", b"\xc2\xad",
]  # fmt: skip


class Reader:
    """A reader in its own process."""

    def __init__(self, sources: Path, name: str) -> None:
        self._words = [sys.executable, str(HERE / "answers.py"), str(sources), name]
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE)

    def ask(self, page: bytes) -> None:
        try:
            send(self._process.stdin, page)
        except BrokenPipeError:
            return  # `answer` detects it

    def answer(self) -> Answer:
        answer = frame(self._process.stdout)
        if answer is not None:
            return dict(json.loads(answer))
        code = self._process.wait()
        self.end()
        self._start()
        return {"raised": f"the process ended with {code}"}

    def end(self) -> None:
        with self._process:
            pass


class Difference(NamedTuple):
    """A page with different results of the two readers."""

    name: str
    page: bytes
    fields: tuple[str, ...]  # fields that differ


def fields_of(readers: Sequence[Reader], page: bytes, ignored: frozenset[str]) -> tuple[str, ...]:
    """Fields with different answers."""
    for reader in readers:
        reader.ask(page)
    left, right = (reader.answer() for reader in readers)
    return tuple(
        name for name in sorted(left.keys() | right.keys()) if left.get(name) != right.get(name) and name not in ignored
    )


def reduced(page: bytes, differs: Callable[[bytes], bool], tries: int = TRIES) -> bytes:
    """Minimises a page that differs: removes halves first, single tokens and bytes last."""
    for split in (_TOKENS.findall, lambda data: [data[at : at + 1] for at in range(len(data))]):
        pieces = split(page)
        size = max(1, len(pieces) // 2)
        while pieces and tries > 0:
            start, before = 0, len(pieces)
            while start < len(pieces) and tries > 0:
                tries -= 1
                rest = pieces[:start] + pieces[start + size :]
                if differs(b"".join(rest)):
                    pieces = rest
                else:
                    start += size
            if size == 1 and len(pieces) == before:
                break
            size = max(1, size // 2)
        page = b"".join(pieces)
    return page


def pages(folders: Sequence[Path], part: int, parts: int) -> Iterator[tuple[str, bytes]]:
    """Real pages of one part."""
    paths = sorted(path for folder in folders for path in folder.rglob("*.*htm*") if path.is_file())
    random.Random(1).shuffle(paths)
    for path in paths[part - 1 :: parts]:
        body = path.read_bytes()
        if len(body) <= PAGE_BYTES:
            yield str(path), body


def fuzzed(bodies: Sequence[bytes], rng: random.Random) -> bytes:
    """A piece of a page with tags deleted, repeated, moved or inserted."""
    body = rng.choice(bodies) if bodies else b"<p>a"
    start = rng.randrange(max(1, len(body) - PIECE_BYTES))
    pieces = _TOKENS.findall(body[start : start + rng.randrange(1, PIECE_BYTES)]) or [b"a"]
    for _ in range(rng.choice((1, 2, 4, 8, 16))):
        at, other = rng.randrange(len(pieces) + 1), rng.randrange(len(pieces) + 1)
        match rng.randrange(6):
            case 0:
                del pieces[at : at + rng.randrange(1, 9)]
            case 1:
                pieces[at:at] = pieces[other : other + rng.randrange(1, 9)]
            case 2 if at < len(pieces):
                cut = rng.randrange(len(pieces[at]) + 1)
                pieces[at] = pieces[at][:cut] + rng.choice(_PARTS) + pieces[at][cut:]
            case _:
                pieces[at:at] = rng.choices(_PARTS, k=rng.randrange(1, 6))
        pieces = pieces or [b"a"]
    return b"".join(pieces)


def shape(difference: Difference) -> tuple[Any, ...]:
    """Key that groups similar differences."""
    return difference.fields[:1], re.sub(
        rb"[^<>/!&a-z]+", b"", re.sub(rb"(^|>)[^<]+", rb"\1x", difference.page.lower())
    )[:40]


def compared(options: argparse.Namespace, readers: Sequence[Reader]) -> tuple[Counter[str], list[Difference]]:
    """Numbers of pages read and different, and the minimised differences, one of each shape."""
    ignored, counts, rows = frozenset(options.ignore), Counter[str](), dict[Any, Difference]()
    part, parts = map(int, options.part.split("/"))
    rng, end, bodies = random.Random(f"{options.seed} {part}"), time.monotonic() + options.seconds, list[bytes]()

    def compare(name: str, page: bytes, kind: str) -> None:
        counts[kind] += 1
        fields = fields_of(readers, page, ignored)
        if not fields:
            return
        counts[f"{kind} that differ"] += 1
        counts[f"field {fields[0]}"] += 1
        if counts[f"field {fields[0]}"] > options.most:
            return
        small = reduced(page, lambda data: fields[0] in fields_of(readers, data, ignored))
        row = Difference(name, small, fields_of(readers, small, ignored))
        rows.setdefault(shape(row), row)

    for name, page in pages(options.folders, part, parts):
        if time.monotonic() > end:
            break
        bodies.append(page)
        if options.real:
            compare(name, page, "real pages")
        elif len(bodies) >= 300:
            break
    for number in range(options.fuzzed):
        if time.monotonic() > end:
            break
        compare(f"fuzzed {part}-{number}", fuzzed(bodies, rng), "fuzzed pages")
    return counts, list(rows.values())


def write(folder: Path, rows: Sequence[Difference], readers: Sequence[Reader]) -> None:
    """Writes each minimised page with the two answers."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(rows):
        (folder / f"{number:03}.html").write_bytes(row.page)
        for reader in readers:
            reader.ask(row.page)
        answers = [reader.answer() for reader in readers]
        lines = [row.name, *(f"{name}\n  {answers[0].get(name)}\n  {answers[1].get(name)}" for name in row.fields)]
        (folder / f"{number:03}.txt").write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="of pages: every .html and .htm below")
    parser.add_argument("--left", choices=READERS, default="understand")
    parser.add_argument("--right", choices=READERS, default="understand")
    parser.add_argument("--old", type=Path, default=SOURCES, help="sources of the left reader")
    parser.add_argument("--new", type=Path, default=SOURCES, help="where the right one's does")
    parser.add_argument("--part", default="1/1", help="K/N: every N-th page, from the K-th on")
    parser.add_argument("--fuzzed", type=int, default=0, help="pages made by chance")
    parser.add_argument("--no-real", dest="real", action="store_false", help="compare fuzzed pages alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0, help="begin no page after so long")
    parser.add_argument("--most", type=int, default=12, help="differences per field to minimise")
    parser.add_argument("--ignore", action="append", default=[], help="a field that may differ")
    parser.add_argument("--out", type=Path, help="a folder for the reduced pages and the answers")
    options = parser.parse_args()
    readers = [Reader(options.old, options.left), Reader(options.new, options.right)]
    counts, rows = compared(options, readers)
    for row in rows[:SHOWN]:
        print(f"{', '.join(row.fields)}: {row.page.decode('utf-8', 'replace')!r}  ({row.name})")
    if options.out:
        write(options.out, rows, readers)
    for reader in readers:
        reader.end()
    print("; ".join(f"{count:,} {name}" for name, count in counts.items()))
    sys.exit(bool(rows))


if __name__ == "__main__":
    main()
