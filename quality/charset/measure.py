"""Are texts decoded exactly, and their languages identified?

    python quality/charset/measure.py [--json FILE] [--texts DIR] [--no-peers]

Exact: the decoded text equals the original, character by character. Without a declaration, with the top-level domain
as hint, with a true declaration, with a false one. Samples of 200, 1,000, 4,000 and of 30, 60 and 120 characters,
as plain text and inside tables. Without CORPORA only the project's own texts are measured. --peers: other detectors
too, if PEERS_VENV (/tmp/peers-venv) has them.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from figures import Figure, digest_of, write
from samples import LONG, MEASURED, SHORT, TOP_LEVEL, Sample, samples, texts

from periplus.document.decode import decode
from periplus.document.guess import encoding_of
from periplus.document.language import language_of

AIM_LONG, AIM_SHORT, AIM_HINTED, AIM_MB_PER_S = 0.99, 0.95, 0.998, 10.0
OF_AIMS = ("cs", "hu", "pl", "ru", "de", "en")
HINTED = ("cs", "hu", "pl", "ru")
LANGUAGE_SIZES = (20, 60, 200)


def is_exact(sample: Sample, hint: str = "") -> bool:
    """Whether our decoding equals the original."""
    return decode(sample.body, "", "text/plain", hint)[0] == sample.text


def share(right: list[bool]) -> float:
    return sum(right) / max(1, len(right))


def exactness(name: str, found: list[Sample], aim: float, hinted: bool) -> list[Figure]:
    """Shares of exact decodings: all languages of the aims together, then each. Prints a table by encoding."""
    right = {
        sample: is_exact(sample, TOP_LEVEL.get(sample.language, sample.language) if hinted else "") for sample in found
    }
    print(f"\n{name}")
    figures = []
    for language in MEASURED:
        cells: dict[str, list[bool]] = {}
        for sample, good in right.items():
            if sample.language == language:
                cells.setdefault(sample.encoding, []).append(good)
        if cells:
            every = [good for column in cells.values() for good in column]
            print(
                f"  {language} {100 * share(every):6.2f} of {len(every):4}  "
                + "  ".join(f"{encoding} {100 * share(column):.1f}" for encoding, column in cells.items())
            )
            data = digest_of(sample.body for sample in found if sample.language == language)
            figures.append(
                Figure(
                    f"{name}, {language}",
                    share(every),
                    AIM_HINTED if hinted and aim == AIM_LONG and language in HINTED else None,
                    data,
                )
            )
    total = share([good for sample, good in right.items() if sample.language in OF_AIMS])
    return [Figure(name, total, None if hinted else aim, digest_of(sample.body for sample in found)), *figures]


def declarations(name: str, found: list[Sample]) -> list[Figure]:
    """Share of true declarations that are accepted, and of false ones detected if at least twenty bytes outside ASCII
    contradict them."""
    rng = random.Random(9)
    believed, seen_through = [], []
    encodings = sorted({sample.encoding for sample in found if sample.encoding != "utf-8"})
    for sample in found:
        if sample.encoding == "utf-8" or sample.body.isascii():
            continue
        believed.append(decode(sample.body, sample.encoding, "text/plain")[0] == sample.text)
        lie = rng.choice(encodings)
        read = encoding_of(lie)
        if (
            read
            and read.text(sample.body) != sample.text
            and len(sample.body) - len(sample.text.encode("ascii", "ignore")) >= 20
        ):
            seen_through.append(decode(sample.body, lie, "text/plain")[0] == sample.text)
    data = digest_of(sample.body for sample in found)
    return [
        Figure(f"{name}, right declarations kept", share(believed), 1.0, data),
        Figure(f"{name}, false ones found", share(seen_through), 0.99, data),
    ]


def languages(name: str, of_set: dict[str, list[str]], with_peers: bool) -> list[Figure]:
    """Share of short samples with the right language; an unknown language counts as wrong."""
    figures = []
    for size in LANGUAGE_SIZES:
        rng = random.Random(3)
        pieces: list[tuple[str, str]] = []
        for language, parts in of_set.items():
            for _ in range(40):
                text = rng.choice(parts)
                start = rng.randrange(max(1, len(text) - size))
                pieces.append((language.partition("-")[0], text[start : start + size]))
        started = time.process_time()
        answers = [language_of(piece) for _, piece in pieces]
        took_s = time.process_time() - started
        right = _language_table(f"language of {size} characters", pieces, answers, took_s)
        figures.append(
            Figure(f"{name}, language of {size} characters", right, None, digest_of(piece for _, piece in pieces))
        )
        for told in _asked(["--languages"], [json.dumps(piece) for _, piece in pieces]) if with_peers else ():
            right = _language_table(f"  {told['peer']}", pieces, told["labels"], told["took_s"])
            figures.append(Figure(f"{name}, language of {size} characters", right, by=told["peer"]))
    return figures


def _language_table(what: str, pieces: list[tuple[str, str]], answers: list[str], took_s: float) -> float:
    """Prints the share of right answers and the commonest wrong ones, and returns the share."""
    same = {"nb": "no", "nn": "no", "bs": "hr"}
    wrong = Counter(
        f"{language} for {answer or 'none'}"
        for (language, _), answer in zip(pieces, answers, strict=True)
        if same.get(answer, answer) != same.get(language, language)
    )
    right = 1 - wrong.total() / len(pieces)
    print(
        f"  {what}: {100 * right:.1f} % of {len(pieces)}, {len(pieces) / took_s:,.0f}/s  "
        + ", ".join(f"{pair} {count}" for pair, count in wrong.most_common(7))
    )
    return right


def speed(of_set: dict[str, list[str]]) -> Figure:
    """Megabytes per second on pages of about 60 kB in encodings other than UTF-8, without a declaration."""
    pages = []
    for sample in samples(
        {language: ["\n".join(parts * 30)] for language, parts in of_set.items()},
        (4000,),
        ("cs", "hu", "pl", "ru", "de"),
    )[::5]:
        row = b'<tr><td class="cell" id="n"><a href="/path/to/a/page.html?with=query">'
        lines = sample.body.split(b" ")
        pages.append(
            b"<html><body><table>"
            + b"".join(row + b" ".join(lines[at : at + 3]) + b"</a></td></tr>" for at in range(0, len(lines), 3)) * 2
        )
    started = time.process_time()
    for page in pages:
        decode(page, "", "text/html")
    return Figure("megabytes a second", sum(map(len, pages)) / 1e6 / (time.process_time() - started), AIM_MB_PER_S)


def _read(body: bytes, label: str) -> str:
    """Decodes with the encoding that a peer names: by our names, else by Python's."""
    if encoding := encoding_of(label):
        return encoding.text(body)
    try:
        return body.decode(label, "replace")
    except (LookupError, UnicodeError):
        return ""


def _asked(options: list[str], lines: list[str]) -> list[dict[str, Any]]:
    """Answers of the peers, one per sample; empty without their Python."""
    venv = Path(os.environ.get("PEERS_VENV", "/tmp/peers-venv"))
    if not (venv / "bin/python").exists():
        return []
    command = [venv / "bin/python", Path(__file__).parent / "peers.py", *options]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def peers(name: str, found: list[Sample]) -> list[Figure]:
    """Results of other detectors on the same samples; times are those of their own process."""
    figures = []
    for told in _asked([], [base64.b64encode(sample.body).decode() for sample in found]):
        right: list[bool] = []
        of_aims: list[bool] = []
        for sample, label in zip(found, told["labels"], strict=True):
            right.append(_read(sample.body, label) == sample.text)
            if sample.language in OF_AIMS:
                of_aims.append(right[-1])
        each = "  ".join(
            f"{language} {100 * share([good for sample, good in zip(found, right, strict=True) if sample.language == language]):.1f}"  # noqa: E501
            for language in MEASURED
        )
        print(
            f"  {name}: {told['peer']}: {100 * share(of_aims):.2f} ({each}), "
            f"{sum(len(sample.body) for sample in found) / 1e6 / told['took_s']:.1f} MB/s"
        )
        figures.append(Figure(name, share(of_aims), by=told["peer"]))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--texts", type=Path, help="a folder of LANGUAGE/*.txt to measure on too")
    parser.add_argument("--no-peers", action="store_true", help="leave other detectors out")
    parser.add_argument("--languages", action="store_true", help="languages alone")
    options = parser.parse_args()
    figures = []
    for name, of_set in texts(options.texts).items():
        figures += languages(name, of_set, not options.no_peers)
        if options.languages:
            continue
        for kind, sizes, aim in (("200 and more", LONG, AIM_LONG), ("120 and fewer", SHORT, AIM_SHORT)):
            found = samples(of_set, sizes)
            figures += exactness(f"{name}, {kind}", found, aim, hinted=False)
            figures += exactness(f"{name}, {kind}, with hint", found, aim, hinted=True)
            if kind.startswith("200"):
                figures += declarations(name, found)
            if not options.no_peers:
                figures += peers(f"{name}, {kind}", found)
    figures.append(speed(texts()["made"]))
    if options.json:
        write(options.json, figures)
    else:
        for figure in figures:
            print(f"{figure.name:52}{figure.score:10.4f}" + (f"  aim {figure.aim}" if figure.aim else ""))


if __name__ == "__main__":
    main()
