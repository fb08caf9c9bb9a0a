"""Builds src/periplus/document/languages.bin: selects n-grams and fits their weights by softmax regression.

    python quality/charset/train_languages.py OUT FOLDER

FOLDER contains SOURCE/LANG.txt: a sentence, a paragraph or a message per line. The shipped table was built from
- the translated messages of Debian 12 (/usr/share/locale, libreoffice-l10n-*, wesnoth, freeciv, gramps; as
  `train.gathered` reads them), its translated manual pages (manpages-*), and the messages of the Android application of
  Wikipedia, of OpenStreetMap's site and of tldr-pages;
- the sentences of Common Voice (CC0), of treebanks of Universal Dependencies (CC BY-SA: one of each of 24 languages)
  and the Universal Declaration of Human Rights.
The class "other languages" consists of declarations in languages without a class (those with an even digest),
ciphers, hexadecimal digits and messages in small languages.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import unicodedata
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from periplus.document.language import ALPHABETS, LONGEST, symbols_of
from periplus.document.ngrams import FACTOR, SPACE

Floats = npt.NDArray[np.float32]

ROWS = {"latin": 55_000, "cyrillic": 14_000, "arabic": 5_000, "devanagari": 3_000, "bengali": 1_500, "hebrew": 1_500}
CHARS, LESS, LITTLE = 500_000, 170_000, 80_000  # read per language and source
SOURCES = {"cv": CHARS, "ud": CHARS, "udhr": CHARS, "games": 250_000, "man": LESS, "aw": LESS, "osm": LESS}
SOURCES |= {"deb": LESS, "lo": LESS, "tldr": LITTLE}
SAME = {"hr": ("hr", "bs", "sr@latin"), "ku": ("ku", "kmr@latin")}  # codes that are merged into one language
SNIPPETS, SNIPPET_CHARS = 4_000, (10, 180)  # per language; their lengths are log-uniform
EPOCHS, BATCH, RATE = 5, 2_048, 0.03
SEEN = 3  # least count of an n-gram in a language
UNSEEN = 2e-6  # probability of an unseen n-gram
STEP, LEAST = (
    0.25,
    0.4,
)  # quantum of a weight, and smallest one kept: dropping small weights helps accuracy and halves the file
CLEANED = 2.0  # margin by which an earlier model assigns a line to another language; such lines are dropped
OTHERS = [
    "fur",
    "ia",
    "rw",
    "zu",
    "xh",
    "lg",
    "nso",
    "hsb",
    "frp",
    "la",
    "se",
    "sc",
    "scn",
    "io",
    "li",
    "ha",
    "kab",
    "dag",
    "dga",
    "diq",
    "jv",
    "kg",
    "su",
    "mg",
    "wa",
    "nds",
    "mi",
    "st",
    "tn",
    "ts",
    "ve",
    "ss",
    "nr",
    "om",
    "lkt",
    "tly",
    "lmo",
    "rm-sursilv",
    "cnh",
    "gn",
    "vot",
    "bas",
    "ba",
    "ce",
    "krc",
    "sah",
    "mhr",
    "tk",
    "cv",
    "ab",
    "inh",
    "sd",
    "skr",
    "pnb",
    "ks",
]
OTHER_LINES = 300  # of each kind


Gram = tuple[int, ...]  # the symbols of an n-gram, the last one first


class Model(NamedTuple):
    """The n-grams of a script and the weights of its classes, [rows, classes]."""

    grams: list[Gram]  # each after its suffix without the first letter
    keys: npt.NDArray[np.uint32]
    weights: Floats


def symbols(text: str, script: str) -> npt.NDArray[np.uint32]:
    """Symbols of a text as in `Ngrams.add`, with a space on either side."""
    units = np.frombuffer(unicodedata.normalize("NFC", f" {text} ").encode("utf-16-le", "replace"), np.uint16)
    each = np.frombuffer(symbols_of(script), np.uint16)[units].astype(np.uint32)
    stays = np.ones(len(each), bool)
    stays[1:] = (each[1:] != SPACE) | (each[:-1] != SPACE)
    return each[stays]


def keys_of(each: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.uint32]:
    """The key of the n-gram that ends at each place from size - 1 on."""
    keys = np.zeros(max(0, len(each) - size + 1), np.uint32)
    for back in range(size if len(keys) else 0):
        keys = (keys ^ each[size - 1 - back : len(each) - back]) * np.uint32(FACTOR)
        keys ^= keys >> np.uint32(15)
    return keys


def lines_of(folder: Path, language: str) -> list[str]:
    """A random sample of lines of a language, with the number of lines per source of SOURCES."""
    rng, lines = random.Random(language), []
    for source, most in SOURCES.items():
        for name in SAME.get(language, (language,)):
            path = folder / source / f"{name}.txt"
            some = path.read_text("utf-8").split("\n") if path.exists() else []
            rng.shuffle(some)
            ends = np.cumsum([len(line) for line in some])
            lines += some[: int(np.searchsorted(ends, most))]
    rng.shuffle(lines)
    return lines


def other_lines(folder: Path, script: str) -> list[str]:
    """Lines in no language of the script's classes."""
    rng, lines = random.Random(1), []
    for path in sorted((folder / "udhr-other").glob("*.txt")):
        if hashlib.md5(path.stem[:3].encode(), usedforsecurity=False).digest()[0] % 2 == 0:
            lines += path.read_text("utf-8").split("\n")
    for language in OTHERS:
        some = [line for line in lines_of(folder, language) if line]
        lines += some[:OTHER_LINES]
    if script == "latin":
        for _ in range(3_000):
            lines.append("".join(rng.choices("abcdefghijklmnopqrstuvwxyz" * 2 + "ABCDEF0123456789   ", k=70)))
        for _ in range(1_500):
            lines.append("".join(rng.choices("0123456789abcdef", k=64)))
        for line in lines_of(folder, "en")[:2_500]:
            shift = rng.randrange(1, 26)
            lines.append("".join(chr((ord(c) - 97 + shift) % 26 + 97) if "a" <= c <= "z" else c for c in line.lower()))
    rng.shuffle(lines)
    return lines


def in_script(lines: Sequence[str], script: str) -> list[str]:
    """Lines of which six in ten characters are letters of the script."""
    table = np.frombuffer(symbols_of(script), np.uint16)
    shares = (
        (line, table[np.frombuffer(line.encode("utf-16-le", "replace"), np.uint16)] != SPACE) for line in lines if line
    )
    return [line for line, letters in shares if letters.mean() > 0.6]


def chosen(texts: Sequence[Sequence[str]], script: str, rows: int) -> Model:
    """The most informative n-grams and their suffixes, with the weights of naive Bayes."""
    every = [symbols("\n".join(lines)[:CHARS], script) for lines in texts]
    all_keys, chances, sizes = [], [], []
    for size in range(1, LONGEST + 1):
        counts = [np.unique(keys_of(each, size), return_counts=True) for each in every]
        some = np.unique(np.concatenate([distinct[numbers >= SEEN] for distinct, numbers in counts]))
        table = np.full((len(some), len(every)), UNSEEN, np.float32)
        for column, ((distinct, numbers), each) in enumerate(zip(counts, every, strict=True)):
            often = numbers >= SEEN
            table[np.searchsorted(some, distinct[often]), column] += (numbers[often] / len(each)).astype(np.float32)
        all_keys.append(some)
        chances.append(table)
        sizes.append(np.full(len(some), size))
    keys, chance, size_of = np.concatenate(all_keys), np.concatenate(chances), np.concatenate(sizes)
    gain = chance * np.abs(np.log(chance / chance.mean(1, keepdims=True)))
    taken = np.zeros(len(keys), bool)
    taken[np.argsort(-np.sort(gain, 1)[:, -3:].sum(1))[: rows * 3 // 4]] = True
    for column in range(len(texts)):  # n-grams of small languages too
        rest = np.where(taken, 0.0, gain[:, column])
        taken[np.argsort(-rest)[: rows // 4 // len(texts)]] = True
    weights = dict(zip(keys.tolist(), chance, strict=True))
    grams = closed({size: keys[taken & (size_of == size)] for size in range(1, LONGEST + 1)}, every)
    bare = np.full(len(texts), UNSEEN, np.float32)
    table = np.array([weights.get(key, bare) for key in grams.values()])
    return Model(list(grams), np.array(list(grams.values()), np.uint32), np.log(table / table.mean(1, keepdims=True)))


def closed(taken: dict[int, npt.NDArray[np.uint32]], every: list[npt.NDArray[np.uint32]]) -> dict[Gram, int]:
    """The n-grams with these keys, by size, and all their suffixes, with their keys; suffixes come first."""
    grams: dict[Gram, int] = {}
    for size, keys in taken.items():
        for each in every:
            own, first = np.unique(keys_of(each, size), return_index=True)
            for place in first[np.isin(own, keys)].tolist():
                gram = tuple(each[place : place + size][::-1].tolist())
                for part in range(size, 0, -1):
                    if gram[:part] in grams:
                        break
                    grams[gram[:part]] = int(keys_of(np.array(gram[:part][::-1], np.uint32), part)[0])
    by_key: dict[int, Gram] = {}
    for gram in sorted(grams):
        by_key.setdefault(grams[gram], gram)
    standing = set(by_key.values())
    return {
        gram: grams[gram]
        for gram in sorted(standing)
        if all(
            gram[:part] in standing for part in range(1, len(gram))
        )  # two n-grams with one key: the second is dropped
    }


def matrix(snippets: Sequence[str], model: Model, script: str) -> sparse.csr_matrix:
    """Counts of each n-gram in each snippet over the square root of its length: [snippets, rows]."""
    every = [symbols(snippet, script) for snippet in snippets]
    owner, each = np.repeat(np.arange(len(every)), list(map(len, every))), np.concatenate(every)
    order = np.argsort(model.keys)
    rows, columns = [], []
    for size in range(1, LONGEST + 1):
        keys = keys_of(each, size)
        at = order[np.minimum(np.searchsorted(model.keys, keys, sorter=order), len(order) - 1)]
        valid = (model.keys[at] == keys) & (owner[size - 1 :] == owner[: len(owner) - size + 1])
        rows.append(owner[size - 1 :][valid])
        columns.append(at[valid])
    row = np.concatenate(rows)
    scale = (1 / np.sqrt([len(one) for one in every])).astype(np.float32)
    return sparse.csr_matrix((scale[row], (row, np.concatenate(columns))), shape=(len(every), len(model.keys)))


def fitted(texts: Sequence[Sequence[str]], script: str, rows: int, snippets: int, epochs: int) -> Model:
    """Weights of a softmax regression by Adam, initialised at half of those of naive Bayes."""
    rng, chance = random.Random(2), np.random.default_rng(2)
    begun = chosen(texts, script, rows)
    some, classes = [], []
    for number, lines in enumerate(texts):
        text = "\n".join(lines)
        for _ in range(min(snippets, 40 + len(text) // 12)):
            size = int(np.exp(rng.uniform(*np.log(SNIPPET_CHARS))))
            start = rng.randrange(max(1, len(text) - size))
            some.append(text[start : start + size])
            classes.append(number)
    table, right = matrix(some, begun, script), np.array(classes)
    numbers = np.bincount(right, minlength=len(texts))
    share = (snippets / np.maximum(numbers, snippets // 4)).astype(np.float32)
    share[-1] *= 0.6  # text in a language is seldom mistaken for noise
    weights, mean, square = begun.weights * 0.5, np.zeros_like(begun.weights), np.zeros_like(begun.weights)
    step, steps = 0, epochs * -(-len(some) // BATCH)
    for _ in range(epochs):
        order = chance.permutation(len(some))
        for start in range(0, len(some), BATCH):
            batch = order[start : start + BATCH]
            part, wanted = table[batch], right[batch]
            odds = np.exp((scores := np.asarray(part @ weights)) - scores.max(1, keepdims=True))
            error = odds / odds.sum(1, keepdims=True)
            error[np.arange(len(batch)), wanted] -= 1
            slope = np.asarray(part.T @ (error * share[wanted][:, None] / len(batch)).astype(np.float32))
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps)) + 0.001
            step += 1
            mean = 0.9 * mean + 0.1 * slope
            square = 0.99 * square + 0.01 * slope * slope
            weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-4)
    print(script, len(begun.keys), "n-grams;", len(some), "snippets", file=sys.stderr, flush=True)
    return Model(begun.grams, begun.keys, weights)


def cleaned(texts: Sequence[Sequence[str]], script: str, model: Model) -> list[list[str]]:
    """The texts without lines in another language: untranslated messages, citations."""
    result = []
    for number, lines in enumerate(texts):
        long = [line for line in lines if len(line) > 15]
        scores = np.asarray(matrix(long, model, script) @ model.weights) if long else np.zeros((0, len(texts)))
        wrong = {line for line, score in zip(long, scores, strict=True) if score.max() > score[number] + CLEANED}
        result.append([line for line in lines if line not in wrong] if number < len(texts) - 1 else list(lines))
    return result


def packed(model: Model) -> bytes:
    """The model in the format of `Ngrams`. The common part of each row is subtracted, so that most weights are zero."""
    weights = model.weights - np.median(model.weights, 1, keepdims=True)
    weights[np.abs(weights) < LEAST] = 0
    whole = np.clip(np.round(weights / STEP), -127, 127).astype("i1")
    sizes = bytes(map(len, model.grams))
    last = np.array([gram[-1] for gram in model.grams], "<u2")
    return sizes + last.tobytes() + whole.T.tobytes()


def main(out: str, folder: str, *scripts: str) -> None:
    head, body = {}, b""
    for script in scripts or ALPHABETS:
        *languages, _ = ALPHABETS[script].languages  # the last class is "other languages"
        texts = [in_script(lines_of(Path(folder), language), script) for language in languages]
        texts.append(in_script(other_lines(Path(folder), script), script))
        draft = fitted(texts, script, ROWS[script] // 4, SNIPPETS // 4, 2)
        model = fitted(cleaned(texts, script, draft), script, ROWS[script], SNIPPETS, EPOCHS)
        head[script] = len(model.keys)
        body += packed(model)
    data = zlib.compress(json.dumps(head).encode() + b"\n" + body, 9)
    Path(out).write_bytes(data)
    print(f"{len(data):,} bytes", head)


if __name__ == "__main__":
    main(*sys.argv[1:])
