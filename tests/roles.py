"""Follows the tutorial of each role in an empty environment and prints steps and seconds: make roles

The wheel and its extras are installed into an empty environment from the packages of this one, without network; --here
uses the environment of this Python instead. Each tutorial runs in an empty folder and home, with its own commands only.
Prints a Markdown table.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "whole"))

from test_wheel import built, installed, link_packages, wheel_of

from tutorials import Ended, follow

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
ROLES = ("webmaster", "webometrician", "editor", "archivist", "python", "administrator")
EXTRAS = ("brotli", "office", "parquet", "pdf", "progress", "ui")


def program_of(folder: Path) -> Path:
    """The folder with the programs of a new environment."""
    (folder / "dist").mkdir()
    program = installed(wheel_of(built(folder / "dist")), folder / "venv", *EXTRAS)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    link_packages(["pandas"], packages)
    return program


def row(role: str, steps: list[Ended]) -> str:
    slowest = max(steps, key=lambda step: step.took_s)
    command = slowest.step.text.splitlines()[0]
    seconds = sum(step.took_s for step in steps)
    return f"| {role} | {len(steps)} | {seconds:.1f} | {slowest.took_s:.1f} | `{command[:60]}` |"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="roles-") as temp:
        began, folder = time.monotonic(), Path(temp)
        here = "--here" in sys.argv
        program = Path(sys.executable).parent if here else program_of(folder)
        how = "The environment of this Python" if here else f"Built and installed in {time.monotonic() - began:.1f} s"
        print(f"{how}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
        print("| role | steps | seconds | slowest | its command |\n|---|---|---|---|---|", flush=True)
        for role in ROLES:
            print(row(role, list(follow(TUTORIALS / f"{role}.md", folder / role, program))), flush=True)


if __name__ == "__main__":
    main()
