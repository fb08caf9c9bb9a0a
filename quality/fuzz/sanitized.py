"""Checks the compiled modules for invalid memory access.

Compiles a copy of the sources with AddressSanitizer and runs on it every unit and property test that imports a reader
of documents, then the readers on random inputs. Exits with an error on a failure or an invalid access. Needs GCC.

    make sanitize                                        a minute for each reader
    python quality/fuzz/sanitized.py --seconds 3600 html xhtml
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READERS = ("tree", "html", "xhtml", "decode", "words", "headers")  # readers that use compiled modules
FLAGS = "-fsanitize=address -fno-omit-frame-pointer -O1 -g"


def sanitized_copy(folder: Path) -> None:
    """Copies the sources and compiles them with AddressSanitizer."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    line = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(line, cwd=folder, check=True, env=os.environ | {"CFLAGS": FLAGS})
    types = {path.stem for path in (folder / "src").rglob("*.pxd")}
    if missing := types - {path.name.partition(".")[0] for path in (folder / "src").rglob("*.so")}:
        sys.exit(f"not compiled: {', '.join(sorted(missing))}")


def environment(sources: Path) -> dict[str, str]:
    """Environment for Python on those sources; each object has its own allocation, so that its bounds are checked."""
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself does not free everything at exit
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(sources),
    }


def tests() -> list[str]:
    """Unit and property tests that import a reader and do not compile or hide modules."""
    paths = [path for folder in ("unit", "properties") for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))]
    return [
        str(path)
        for path in paths
        if "from periplus.document" in path.read_text("utf-8") and path.name != "test_native.py"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=READERS, help="readers, as of run.py")
    parser.add_argument("--seconds", type=int, default=60, help="for each reader")
    parser.add_argument("--no-tests", dest="tests", action="store_false", help="readers alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="periplus-sanitized-") as name:
        sanitized_copy(Path(name))
        lines = [[str(ROOT / "quality/fuzz/run.py"), *options.names, "--seconds", str(options.seconds), "--seed", "1"]]
        if options.tests:
            lines.insert(0, ["-m", "pytest", "-q", "-k", "not pdf", *tests()])  # the PDF reader limits its memory
        for line in lines:
            end = subprocess.run(
                [sys.executable, *line], cwd=ROOT, env=environment(Path(name) / "src"), check=False
            ).returncode
            if end:
                sys.exit(end)


if __name__ == "__main__":
    main()
