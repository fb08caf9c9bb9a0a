"""Fuzzes one reader, coverage-guided, for a time or a number of inputs: `one.py NAME FOLDER SECONDS RUNS SEED`.

A subprocess of run.py.

Uses atheris if it is installed (Linux) and no SEED is given; it runs the Python sources of compiled modules, to trace
their lines. Otherwise mutates the seeds and the corpus of atheris at random, on the compiled modules: less effective
per input, but ten times as fast. Inputs that make the reader raise, hang or exceed its memory are saved in
FOLDER/crashes, and the process exits with an error.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import time
import traceback
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"
INPUT_BYTES = 4_096  # longer inputs are slower and find little more
HANG_S = 20  # generous, because machines are shared; a quadratic reader takes far longer
MEMORY_MIB = 3_072


def guided(name: str, folder: Path, seconds: int, runs: int) -> None:
    """Fuzzes with libFuzzer, which traces the lines that each input reaches."""
    import atheris

    # interpreted, these would take longer to unpack their tables than an input may take
    from periplus.document import ngrams, trigrams  # noqa: F401

    sys.path_hooks.insert(0, interpreted)
    sys.path_importer_cache.clear()
    with atheris.instrument_imports(include=["periplus", "targets"]):
        from targets import TARGETS

    target = TARGETS[name]
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    flags = [
        f"-max_total_time={seconds}",
        f"-max_len={max(INPUT_BYTES, *map(len, target.seeds))}",
        f"-timeout={HANG_S}",
        f"-rss_limit_mb={MEMORY_MIB}",
    ]
    flags += [f"-runs={runs}"] if runs else []
    flags += [f"-artifact_prefix={folder}/crashes/", "-print_final_stats=1", "-verbosity=1", "-reload=0", str(corpus)]
    atheris.Setup([sys.argv[0], *flags], target.run)
    atheris.Fuzz()


def interpreted(folder: str) -> FileFinder:
    """Finds our own modules as Python sources, compiled or not."""
    if not Path(folder).is_relative_to(SOURCES):
        raise ImportError
    return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


def mutated(seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """A seed with bytes changed, deleted, repeated or copied from another seed."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 2, 4, 8))):
        at, other = rng.randrange(len(data) + 1), rng.choice(seeds)
        step = rng.randrange(1, 1 + min(32, len(other)))
        match rng.randrange(4):
            case 0 if at < len(data):
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + step]
            case 2:
                data[at:at] = data[at : at + step] * rng.choice((1, 2, 16))
            case _:
                start = rng.randrange(len(other))
                data[at:at] = other[start : start + step]
    return bytes(data[:INPUT_BYTES])


def plainly(name: str, folder: Path, seconds: int, runs: int, seed: int) -> None:
    """Fuzzes with random mutations only."""
    from targets import TARGETS

    run, seeds = TARGETS[name]
    seeds = [*seeds, *filter(None, (path.read_bytes() for path in sorted((folder / "corpus").glob("*"))))]
    rng, done, end = random.Random(seed), 0, time.monotonic() + seconds
    while (not seconds or time.monotonic() < end) and (not runs or done < runs):
        data = mutated(seeds, rng)
        done += 1
        try:
            run(data)
        except Exception:  # noqa: BLE001 - whatever a reader raises is what is looked for
            (folder / "crashes" / f"crash-{seed}-{done}").write_bytes(data)
            traceback.print_exc()
            sys.exit(77)
    print(f"stat::number_of_executed_units: {done}", file=sys.stderr)


def main() -> None:
    name, folder, seconds, runs, seed = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:])
    (folder / "crashes").mkdir(parents=True, exist_ok=True)
    if seed or importlib.util.find_spec("atheris") is None:
        plainly(name, folder, seconds, runs, seed)
    else:
        guided(name, folder, seconds, runs)


if __name__ == "__main__":
    main()
