"""Cost of the same analyses of 1 M pages and 10 M links with links on disk and on Spark: CPU, time, memory."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from corpora import CACHE
from graph import kept_graph
from measure import MIB, descendants, load, process_cpu_s, resident_bytes, table

from periplus_spark.api import ROWS
from periplus_spark.dataset import TABLES, Manifest
from periplus_spark.files import TableWriter, manifest_in, table_note, write_manifest

SITES = 100
GRAPH = ("ranks", "web-ranks", "map", "links", "interlinking")
TEXTS = ("duplicates", "near", "cascades")


def write_tables(folder: Path, columns_of: dict[str, dict[str, object]]) -> None:
    """Writes tables in files of 2 M rows; missing columns are null."""
    notes = []
    for name, given in columns_of.items():
        columns = TABLES[name].columns
        rows = len(next(iter(given.values())))  # type: ignore[arg-type]
        with TableWriter(folder, name, columns, 2_000_000) as writer:
            writer.add({column.name: given.get(column.name, pa.nulls(rows)) for column in columns})
        notes.append(table_note(folder, name, columns))
    write_manifest(folder, Manifest("collection", "benchmark", 0.0, {}, {}, tuple(notes)))


def url_columns(count: int, sites: int) -> dict[str, dict[str, object]]:
    site = np.arange(count) * sites // count
    texts = [f"https://s{one:06}.example/{number:09}" for number, one in enumerate(site.tolist())]
    home = np.diff(site, prepend=-1) > 0
    urls = {
        "url": np.arange(count),
        "id": np.arange(count),
        "text": texts,
        "host": site,
        "site": site,
        "state": ["fetched"] * count,
    }
    urls |= {"reason": ["ok"] * count, "is_start": home, "depth": np.where(home, 0, 1), "first_seen": np.arange(count)}
    names = [f"s{one:06}.example" for one in range(sites)]
    hosts = {
        "host": np.arange(sites),
        "name": [f"{name}:443" for name in names],
        "site": np.arange(sites),
        "site_name": names,
    }
    none = np.zeros(0, np.int64)
    return {"hosts": hosts, "urls": urls, "redirects": {"source": none, "target": none}}


def graph_dataset(folder: Path, pages: int, links: int) -> None:
    graph = kept_graph(pages, links, 1)
    source = np.repeat(np.arange(pages), np.diff(graph.offsets))
    count = len(source)
    rows = {
        "source": source,
        "target": graph.targets,
        "kind": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), ["a"]).cast(pa.string()),
    }
    rows |= {
        "position": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), ["main"]).cast(pa.string()),
        "times": np.ones(count, np.int64),
    }
    write_tables(folder, url_columns(pages, SITES) | {"pages": {"url": np.zeros(0, np.int64)}, "links": rows})


def text_dataset(folder: Path, pages: int) -> None:
    """Pages of 600 words; one page in five is a near duplicate, one in twenty an exact duplicate; ten templates."""
    rng = np.random.default_rng(1)
    words = np.array([f"word{number}" for number in range(20_000)])
    shown: list[str] = []
    for number in range(pages):
        kind = rng.random()
        own = (
            shown[int(rng.integers(number))].split(" ")
            if number and kind < 0.25
            else words[rng.integers(0, len(words), 600)].tolist()
        )
        if 0.05 <= kind < 0.25:
            own[int(rng.integers(len(own) - 10)) :][:3] = ["new", "words", str(number)]
        shown.append(" ".join(own))
    menus = ["\n".join(f"menu {menu} item {item}" for item in range(30)) for menu in range(10)]
    digests = [hashlib.md5(text.encode()).hexdigest() for text in shown]
    columns = {"url": np.arange(pages), "body_digest": digests, "text_digest": digests, "folded_digest": digests}
    texts = {
        "url": np.arange(pages),
        "text": [f"{menus[number % 10]}\n{text}" for number, text in enumerate(shown)],
        "content": shown,
    }
    none = np.zeros(0, np.int64)
    write_tables(
        folder, url_columns(pages, 20) | {"pages": columns, "links": {"source": none, "target": none}, "texts": texts}
    )


def family_cost(command: Sequence[str]) -> tuple[float, float, int, str]:
    """(wall s, CPU s, peak resident bytes, output) of a command with all descendants,
    including orphans.
    """
    with tempfile.TemporaryFile("w+") as out:
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        cpu: dict[int, float] = {}
        peak = 0
        while child.poll() is None:
            family = descendants(child.pid)
            peak = max(peak, sum(map(resident_bytes, family)))
            for pid in family:
                try:
                    cpu[pid] = process_cpu_s(pid)
                except OSError:  # the process ended in the meantime
                    continue
            threading.Event().wait(0.1)
        out.seek(0)
        return time.monotonic() - began, sum(cpu.values()), peak, out.read()


def dataset(kind: str, *size: int) -> Path:
    """`graph` of a number of pages and links, or `texts` of a number of pages; created if missing."""
    folder = CACHE / f"dataset-{kind}-{'-'.join(map(str, size))}"
    if not (folder / "manifest.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (graph_dataset if kind == "graph" else text_dataset)(folder, *size)
    return folder


def analysed(
    data: Path, name: str, engine: str, options: argparse.Namespace, results: str
) -> tuple[float, float, int, str]:
    """Cost of the analysis, as in family_cost."""
    command = [options.python, "-m", "periplus", "analyse", str(data), name, "--engine", engine, "-r", results]
    flags = ["--on", options.on, "--tolerance", options.tolerance, "--memory", options.memory, "--json"]
    return family_cost([*command, *flags])


def row_costs(data: Path, took_s: dict[str, float], cpu_s: float) -> list[tuple[str, float]]:
    """(stage, CPU us per row of the table that it reads); CPU seconds are split by the time of the stages."""
    counts = {note.name: note.rows for note in manifest_in(data).tables}
    each_s = cpu_s / max(sum(took_s.values()), 1e-9)
    return [(stage, each_s * own_s / max(counts[ROWS[stage]], 1) * 1e6) for stage, own_s in took_s.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=10_000_000)
    parser.add_argument("--texts", type=int, default=20_000, help="pages with a text, for what compares texts")
    parser.add_argument("--engines", nargs="*", default=["stream"], choices=("stream", "spark"))
    parser.add_argument("--python", default=sys.executable, help="that has pyspark")
    parser.add_argument("--on", default="local[2]")
    parser.add_argument("--tolerance", default="1e-10")
    parser.add_argument("--memory", default="8")
    options = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    costs: list[tuple[object, ...]] = []
    tiny = dataset("texts", 10)
    for kind, size, analyses in (
        ("graph", (options.pages, options.links), GRAPH),
        ("texts", (options.texts,), TEXTS),
    ):
        data = dataset(kind, *size)
        for engine in options.engines:
            with tempfile.TemporaryDirectory(dir=CACHE) as results:
                start_s = analysed(tiny, "duplicates", engine, options, f"{results}/tiny")[1]
                for name in analyses:
                    wall, cpu, peak, answer = analysed(data, name, engine, options, results)
                    stages = json.loads(answer)["stages"] if answer else []
                    took = {stage["stage"]: stage["took_s"] for stage in stages if not stage["was_there"]}
                    stages_s = ", ".join(f"{stage} {took_s:.1f}" for stage, took_s in took.items()) or "failed"
                    rows.append((kind, engine, name, stages_s, wall, cpu, peak / MIB))
                    print(rows[-1], file=sys.stderr, flush=True)
                    costs += [(engine, start_s, *each) for each in row_costs(data, took, cpu - start_s)]
    print(
        f"{options.pages:,} pages, {options.links:,} links; {options.texts:,} texts; ranks to "
        f"{options.tolerance}; {load()}\n"
    )
    print(table(("data", "engine", "analysis", "stages, s", "s", "CPU s", "peak MiB"), rows))
    print(table(("engine", "start, s", "stage", "us a row"), costs))


if __name__ == "__main__":
    main()
