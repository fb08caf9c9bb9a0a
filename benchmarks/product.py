"""Command lines of our own crawler; the only module with its flags."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from serving import Host

COMMAND = Path(sys.executable).with_name("periplus")


@dataclass(frozen=True, slots=True)
class Crawl:
    """Options of a crawl. The crawled hosts are declared our own, because only then delay 0 is accepted."""

    starts: tuple[str, ...]
    folder: Path | str  # str: the address of a database
    hosts: tuple[str, ...]  # host:port of each, declared our own
    resolve: tuple[str, ...] = ()
    delay_s: float = 0.0
    per_host: int = 16
    workers: int = 1
    max_depth: int | None = None
    max_pages: int | None = None
    index: bool = True
    ca_file: Path | None = None
    scope: str = "site"


def by_address(hosts: Sequence[Host], folder: Path, workers: int = 1) -> Crawl:
    """The sites by their addresses, as the peers reach them."""
    return Crawl(
        tuple(one.by_address for one in hosts),
        folder,
        tuple(f"{one.address}:{one.port}" for one in hosts),
        workers=workers,
    )


def by_name(hosts: Sequence[Host], folder: Path | str, workers: int = 1) -> Crawl:
    """The sites by their names."""
    names = tuple(f"{one.site.name}:{one.port}" for one in hosts)
    return Crawl(
        tuple(one.by_name for one in hosts), folder, names, tuple(one.resolve for one in hosts), workers=workers
    )


def arguments(crawl: Crawl) -> list[str]:
    """Arguments after the name of the command."""
    said = ["crawl", *crawl.starts, "-o", str(crawl.folder), "--allow-private", "--no-progress", "-q"]
    said += ["--delay", f"{crawl.delay_s:g}", "--per-host", str(crawl.per_host), "--workers", str(crawl.workers)]
    for host in crawl.hosts:
        said += ["--mine", host]
    for line in crawl.resolve:
        said += ["--resolve", line]
    if crawl.max_depth is not None:
        said += ["--max-depth", str(crawl.max_depth)]
    if crawl.max_pages is not None:
        said += ["--max-pages", str(crawl.max_pages)]
    said += ["--scope", crawl.scope]
    said += [] if crawl.index else ["--no-index"]
    said += ["--ca-file", str(crawl.ca_file)] if crawl.ca_file else []
    return said


def command(crawl: Crawl) -> list[str]:
    return [str(COMMAND), *arguments(crawl)]


def check_command(crawl: Crawl, folder: Path) -> list[str]:
    """One command that crawls and checks links."""
    words = arguments(crawl)
    said = words[1 : words.index("-o")] + words[words.index("-o") + 2 :]
    return [str(COMMAND), "check", "-c", str(folder), *said]


def map_command(folder: Path) -> list[str]:
    return [str(COMMAND), "map", "-c", str(folder)]


def status(folder: Path | str) -> dict[str, object]:
    """Status of the collection, or the error."""
    done = subprocess.run(
        [COMMAND, "status", "-c", folder, "--format", "json"], capture_output=True, text=True, check=False
    )
    try:
        said = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"error": (done.stderr or done.stdout).strip()[-300:]}
    return said if isinstance(said, dict) else {"status": said}


def is_there() -> bool:
    """Whether the command exists and can crawl."""
    if not COMMAND.exists():
        return False
    return subprocess.run([COMMAND, "crawl", "--help"], capture_output=True, check=False).returncode == 0


def leaves(mapping: dict[str, object], before: str = "") -> list[tuple[str, object]]:
    """A JSON object as (dotted name, value), for printing."""
    found: list[tuple[str, object]] = []
    for name, value in mapping.items():
        found += leaves(value, f"{before}{name}.") if isinstance(value, dict) else [(before + name, value)]
    return found
