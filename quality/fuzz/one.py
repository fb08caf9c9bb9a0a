"""Fuzzes one reader, coverage-guided, until a time or a count is over: `one.py NAME FOLDER SECONDS RUNS SEED`.

A child of run.py.

With atheris where it is installed (Linux), unless a SEED is named; it runs compiled modules from their Python sources,
whose lines it sees. Else by plain mutation of the seeds and of what atheris learned, on the modules as compiled: it
finds less in one input and tries ten in the same time. What makes the reader raise, hang or outgrow its memory is left
in FOLDER/crashes, and the process ends with an error.
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
INPUT_BYTES = 4_096  # a longer one is slower and shows little more
HANG_S = 20  # machines are shared; a reader that is quadratic takes longer by far
MEMORY_MIB = 3_072


def guided(name: str, folder: Path, seconds: int, runs: int) -> None:
    """By libFuzzer, which knows which of our lines each input reached."""
    import atheris

    # interpreted, these would unpack their tables for longer than an input may take
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
    """One of the seeds with bytes changed, cut out, repeated or taken from another."""
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
    """By chance alone."""
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
