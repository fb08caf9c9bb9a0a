"""Fuzzes the readers of untrusted input for a time or a number of inputs; prints the number of inputs and failures.

    make fuzz                                   every reader for a minute
    python quality/fuzz/run.py url robots --seconds 3600
    python quality/fuzz/run.py --runs 10000000 --folder ~/fuzz --record counts.json

A folder keeps the corpus for later runs. --record adds counts to a file, for the
table of docs/security.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
# inputs per process: under atheris each input leaks up to 135 KB of NumPy memory
SOME = 10_000
COMPILED = 0.2  # share of the time for running the corpus on the compiled modules
STARTING_S = 600  # imports under instrumentation, and reading the corpus
_COUNT = re.compile(r"(?:stat::number_of_executed_units:|^#)\s*(\d+)", re.MULTILINE)


class Result(NamedTuple):
    """Result of fuzzing one reader."""

    name: str
    inputs: int
    broke: tuple[str, ...]  # files with failing inputs
    said: str  # last lines of output, if it failed


def fuzzed(name: str, folder: Path, seconds: int, runs: int, seed: int = 0) -> Result:
    """Fuzzes a reader in its own processes: it may hang or crash, and the fuzzer itself grows with each input."""
    inputs, said, end = 0, "", time.monotonic() + seconds * (1 if seed else 1 - COMPILED)
    while not said and (not runs or inputs < runs) and (left := round(end - time.monotonic()) if seconds else 1) > 0:
        result = _some(
            name, folder, left if seconds else 0, min(SOME, runs - inputs) if runs else SOME, seed and seed + inputs
        )
        inputs, said = inputs + result.inputs, result.said
        if not result.inputs:
            break
    if seconds and not said and not seed:  # so far by atheris, from sources
        result = _some(name, folder, max(1, round(seconds * COMPILED)), 0, 1)
        inputs, said = inputs + result.inputs, result.said
    crashes = tuple(sorted(str(path) for path in (folder / name / "crashes").glob("*")))
    return Result(name, inputs, crashes, said)


def _some(name: str, folder: Path, seconds: int, runs: int, seed: int) -> Result:
    """One round: a number of inputs, or a time."""
    words = [sys.executable, str(HERE / "one.py"), name, str(folder / name), str(seconds), str(runs), str(seed)]
    limit = seconds + STARTING_S if seconds else None
    (folder / name).mkdir(parents=True, exist_ok=True)
    try:
        ran = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=limit, check=False, cwd=HERE
        )
        said, status = ran.stderr + ran.stdout, ran.returncode
    except subprocess.TimeoutExpired as error:
        said, status = (error.stderr or b"").decode("utf-8", "replace") + "\nit did not end", 1
    (folder / name / "last.txt").write_text(said, "utf-8", errors="replace")
    counts = [int(count) for count in _COUNT.findall(said)]
    return Result(name, max(counts, default=0), (), said[-3_000:] if status else "")


def record(path: Path, results: Sequence[Result]) -> None:
    """Adds the counts to the counts of earlier runs."""
    counts = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for result in results:
        counts[result.name] = counts.get(result.name, 0) + result.inputs
    path.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="readers; none: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each reader; 0: until --runs are done")
    parser.add_argument("--runs", type=int, default=0, help="inputs for each reader; 0: no limit")
    parser.add_argument(
        "--seed", type=int, default=0, help="by chance from this seed, without a guide: more inputs, each worth less"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where corpora and what broke are kept; by default a new one in the temporary directory",
    )
    parser.add_argument("--jobs", type=int, default=1, help="readers at once")
    parser.add_argument("--record", type=Path, help="a JSON file of counts, to be added to")
    options = parser.parse_args()
    from targets import TARGETS

    os.environ["PYTHONHASHSEED"] = "0"
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="periplus-fuzz-"))).resolve()
    names = options.names or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        sys.exit(f"there is no reader {', '.join(sorted(unknown))}: choose among {', '.join(TARGETS)}")
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda name: fuzzed(name, folder, options.seconds, options.runs, options.seed), names):
            results.append(result)
            print(
                (
                    f"{result.name:12} {result.inputs:12,} inputs  "
                    f"{'BROKE: ' + ', '.join(result.broke) if result.broke or result.said else 'nothing broke'}"
                ),
                flush=True,
            )
            if result.said:
                print(result.said, flush=True)
            if options.record:
                record(options.record, [result])
    print(f"{sum(result.inputs for result in results):,} inputs; what was learned is in {folder}")
    sys.exit(any(result.said for result in results))


if __name__ == "__main__":
    main()
