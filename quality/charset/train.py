"""Builds src/periplus/document/letters.bin from letter counts of translated messages and manual pages.

    python quality/charset/train.py OUT INPUT...

An input is a folder, searched for `LANG/LC_MESSAGES/*.mo` (message catalogues) and `man/LANG/man*/*` (manual
pages). The shipped table was built from Debian 12: /usr/share/locale, manpages-* (the packages of
manpages-l10n, manpages-ja, -zh, -tr), wesnoth-1.16-data, freeciv-data, gramps. The measurements of
quality/charset use none of them.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import random
import re
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from periplus.document.letters import BOX, CONTROL, FOREIGN, KINDS, LATIN, OTHER, RARE, SCRIPTS, STEP, Letters

CHARS = 1_500_000  # counted per language
ROWS = {"latin": 24_000, "cyrillic": 12_000, "thai": 5_000}
OTHERS_ROWS = 4_000
MIXED = 0.03
IDEOGRAPHS = 2_500
_NAMES = {
    "no": "nb",
    "zh_CN": "zh",
    "zh_TW": "zh-hant",
    "zh_HK": "zh-hant",
    "pt_BR": "pt",
    "pt_PT": "pt",
    "de_DE": "de",
    "en_GB": "en",
    "in": "id",
}
_NOISE = re.compile(
    r"%[-+#0-9.*]*(?:\(\w+\)|\$)?[a-zA-Z]+|<[^>]*>"
    r"|&\w+;|\$\{?\w+\}?|https?:\S+|\S+@\S+|\\f.|\\\(..|\\.|--?\w+[=-]?\w*"
)
# prior probabilities of symbols that are rare in messages
_FLOOR = {
    **dict.fromkeys("áàäçèëíñóöøüß", 7e-4),  # in foreign names
    "é": 2e-3,
    "’": 1e-3,
    "„": 2e-3,
    "–": 2e-3,
    "\xa0": 1e-3,
    "…": 1e-3,
}


def messages(path: Path) -> Iterator[tuple[str, str]]:
    """(original, translation) of each message of a catalogue. Source: GNU gettext manual, 10.3."""
    data = path.read_bytes()
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, originals, translations = struct.unpack_from(order + "3I", data, 8)
    for number in range(count):
        pair = [struct.unpack_from(order + "2I", data, table + 8 * number) for table in (originals, translations)]
        source, text = (data[start : start + length].split(b"\0")[0] for length, start in pair)
        with contextlib.suppress(UnicodeDecodeError):  # some catalogues are not in UTF-8
            yield source.decode(), text.decode()


def catalogue(path: Path) -> Iterator[str]:
    """The translations of a catalogue, without placeholders."""
    for source, text in messages(path):
        if source and text and text != source:
            yield _NOISE.sub(" ", re.sub(r"[_&](?=\w)", "", text))


def manual(path: Path) -> Iterator[str]:
    """The prose of a manual page."""
    try:
        text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    except (OSError, UnicodeDecodeError, gzip.BadGzipFile):
        return
    for part in text.split("\n\n"):
        lines = [line for line in part.split("\n") if line[:1] not in ".'"]
        yield _NOISE.sub(" ", "\n".join(lines))


def gathered(roots: list[Path]) -> dict[str, list[str]]:
    """Texts by language, without duplicates."""
    found: dict[str, dict[str, None]] = {}
    for root in roots:
        for path in sorted(root.rglob("*")):
            parts = path.parts
            if path.suffix == ".mo" and not path.name.startswith("iso_"):
                language, texts = parts[-3], catalogue(path)
            elif "man" in parts and len(parts) > parts.index("man") + 3 and path.is_file():
                language, texts = parts[parts.index("man") + 1], manual(path)
            else:
                continue
            language = language.partition(".")[0]
            language = _NAMES.get(language, language)
            found.setdefault(language, {}).update(dict.fromkeys(text.strip() for text in texts))
    return {language: [text for text in texts if text] for language, texts in found.items()}


def english(roots: list[Path]) -> list[str]:
    """The English originals of the catalogues."""
    found: dict[str, None] = {}
    for root in roots:
        for path in sorted(root.rglob("de/LC_MESSAGES/*.mo")):
            found.update((_NOISE.sub(" ", source), None) for source, _ in messages(path))
    return [text for text in found if text]


def counted(text: str, letters: Letters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts of each symbol, pair and trigram of a text."""
    chars = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    distinct, places = np.unique(chars, return_inverse=True)
    symbols = np.array([letters.symbol_of(chr(code))[0] for code in distinct], np.int64)[places]
    keep = ~((symbols[1:] == 0) & (symbols[:-1] == 0))
    symbols = symbols[1:][keep]
    width = letters.width
    pairs = symbols[:-1] * width + symbols[1:]
    threes = pairs[:-1] * width + symbols[2:]
    return (
        np.bincount(symbols, minlength=width),
        np.bincount(pairs, minlength=width**2),
        np.bincount(threes, minlength=width**3),
    )


def floor_of(letters: Letters) -> np.ndarray:
    """Prior probabilities of the symbols."""
    chances = np.full(letters.width, 1.5e-4)
    for char, chance in _FLOOR.items():
        symbol = letters.symbol_of(char)[0]
        if symbol != FOREIGN:
            chances[symbol] = max(chance, chances[symbol])
    chances[[RARE, BOX, OTHER, FOREIGN, CONTROL]] = (5e-5, 5e-5, 2e-5, 2e-5, 1e-7)
    return chances / chances.sum()


def learned(texts: str, letters: Letters) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """log P(second | first), the correction by the preceding letter, the same for unseen trigrams, and the
    counts.
    """
    ones, twos, threes = counted(texts, letters)
    width = letters.width
    for kind in (CONTROL, FOREIGN, OTHER):
        ones[kind] = twos.reshape(width, width)[kind] = 0  # errors and names
        twos.reshape(width, width)[:, kind] = 0
    first = 0.98 * ones / ones.sum() + 0.02 * floor_of(letters)
    twos = twos.reshape(width, width)
    second = (twos + 10.0 * first) / (twos.sum(1, keepdims=True) + 10.0)
    if letters.script != "latin":  # inflected program names are rarer in other texts
        second[LATIN, KINDS:] *= MIXED
        second[KINDS:, LATIN] *= MIXED
    second[BOX] = 0.5 * second[BOX] + 0.5 * (np.arange(width) == BOX)  # box-drawing lines are long
    threes = threes.reshape(width * width, width)
    total = threes.sum(1, keepdims=True)
    below = np.tile(second, (width, 1))
    third = (threes + 10.0 * below) / (total + 10.0)
    change = np.log(third / below)
    unseen = np.log(10.0 / (total[:, 0] + 10.0))
    return (
        np.log(second).reshape(-1),
        change.reshape(-1).astype(np.float32),
        unseen,
        threes.reshape(-1).astype(np.int32),
    )


def table_of(script: str, texts: dict[str, list[str]]) -> tuple[int, bytes]:
    """The number of trigrams kept, and the bytes of a script's tables."""
    alphabet, spoken = SCRIPTS[script]
    symbols = {letter: number for number, letter in enumerate(alphabet, KINDS)}
    letters = Letters(script, tuple(spoken.split()), symbols)
    pairs, unseen, changes, gains = [], [], [], np.zeros(letters.width**3, np.float32)
    for language in letters.languages:
        parts = texts[language][:]
        random.Random(1).shuffle(parts)
        text = "\n".join(parts)[:CHARS]
        print(script, language, len(text), file=sys.stderr)
        second, change, rest, seen = learned(text, letters)
        gains += np.abs(change - np.repeat(np.maximum(rest, -3.0), letters.width)) * seen / max(1, len(text))
        pairs.append(second)
        unseen.append(np.maximum(rest, -3.0))
        changes.append(change)
    kept = np.sort(np.argsort(-gains)[: ROWS.get(script, OTHERS_ROWS)])
    kept = kept[gains[kept] > 0]
    body = _bytes(pairs, -STEP) + _bytes(unseen, -STEP)
    body += np.diff(kept, prepend=0).astype("<u4").tobytes()
    body += np.clip(np.round(np.array([change[kept] for change in changes]) * STEP), -127, 127).astype("i1").tobytes()
    return len(kept), body


def _bytes(arrays: list[np.ndarray], step: int) -> bytes:
    return np.clip(np.round(np.array(arrays) * step), 0, 255).astype("u1").tobytes()


def frequent(texts: list[str]) -> tuple[str, str]:
    """The most frequent characters outside ASCII, most frequent first, and the rarity of each in steps, as
    characters from "0" on.
    """
    random.Random(1).shuffle(texts)
    counts = Counter(char for char in "".join(texts)[:CHARS] if char >= "\u2e80" and not "\uff61" <= char <= "\uff9f")
    total = counts.total()
    best = [(char, count) for char, count in counts.most_common(IDEOGRAPHS) if char <= "\uffff"]
    return "".join(char for char, _ in best), "".join(
        chr(48 + round(-math.log(count / total) * 4)) for _, count in best
    )


def main(out: str, *inputs: str) -> None:
    roots = [Path(one) for one in inputs]
    texts = gathered(roots)
    texts["en"] = texts.get("en", []) + english(roots)
    made = {script: table_of(script, texts) for script in SCRIPTS}
    head = {script: count for script, (count, _) in made.items()} | {
        name: frequent(texts[name]) for name in ("zh", "zh-hant", "ja", "ko")
    }
    data = json.dumps(head).encode() + b"\n" + b"".join(body for _, body in made.values())
    packed = zlib.compress(data, 9)
    Path(out).write_bytes(packed)
    print(f"{len(packed):,} bytes ({len(data):,} unpacked)")


if __name__ == "__main__":
    main(*sys.argv[1:])
