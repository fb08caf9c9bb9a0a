"""Do the compiled modules keep to their memory, whatever they are given?

Compiles them in a copy of the sources with AddressSanitizer, and runs on that copy every unit and property test that
imports a reader of documents, then readers on inputs made by chance. Ends with an error where one fails or memory is
touched that is not a module's own. Needs GCC.

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
READERS = ("tree", "html", "xhtml", "decode", "words", "headers")  # whatever comes to a compiled module
FLAGS = "-fsanitize=address -fno-omit-frame-pointer -O1 -g"


def sanitized_copy(folder: Path) -> None:
    """The sources, compiled so that each access to memory is watched."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    line = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(line, cwd=folder, check=True, env=os.environ | {"CFLAGS": FLAGS})
    types = {path.stem for path in (folder / "src").rglob("*.pxd")}
    if missing := types - {path.name.partition(".")[0] for path in (folder / "src").rglob("*.so")}:
        sys.exit(f"not compiled: {', '.join(sorted(missing))}")


def environment(sources: Path) -> dict[str, str]:
    """With which Python runs those sources; each object lies in memory of its own, so that its ends are watched."""
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps what it needs to the end
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(sources),
    }


def tests() -> list[str]:
    """Of units and properties, those that import a reader; compiling anew and hiding are not for here."""
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
            lines.insert(0, ["-m", "pytest", "-q", "-k", "not pdf", *tests()])  # PDF is read in little memory
        for line in lines:
            end = subprocess.run(
                [sys.executable, *line], cwd=ROOT, env=environment(Path(name) / "src"), check=False
            ).returncode
            if end:
                sys.exit(end)


if __name__ == "__main__":
    main()
