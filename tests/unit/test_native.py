"""Compiled modules: up to date, hardened, typed, and with the same results when interpreted."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from periplus.document import native

ROOT = Path(__file__).parents[2]
TYPES = sorted((ROOT / "src").rglob("*.pxd"))
# tests of reading documents, which also run with interpreted modules
INTERPRETED = (
    "test_language.py",
    "test_block_languages.py",
    "test_digest.py",
    "test_decode.py",
    "test_understand.py",
    "test_content.py",
    "test_tokens.py",
    "test_tree.py",
    "test_words.py",
    "test_traps.py::test_a_larger_window_reads_more_of_a_trap",
)


def is_stale(compiled: Path) -> bool:
    """Whether a source is newer than the compiled module."""
    module = compiled.name.partition(".")[0]
    sources = (compiled.with_name(f"{module}{suffix}") for suffix in (".py", ".pxd"))
    return any(source.stat().st_mtime > compiled.stat().st_mtime for source in sources if source.exists())


@pytest.mark.skipif(not shutil.which("cc"), reason="nothing is compiled without a C compiler")
def test_every_module_with_types_is_compiled_and_up_to_date():
    assert TYPES
    assert native.interpreter_reason() == "", "run `make native`"
    compiled = [path for suffix in EXTENSION_SUFFIXES for path in (ROOT / "src").rglob(f"*{suffix}")]
    assert [path.name for path in compiled if is_stale(path)] == [], "run `make native`"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems link otherwise")
def test_compiled_modules_are_hardened():
    """No lazy binding, which leaves the function table writable, and a stack protector."""
    path = Path(str(import_module("periplus.document.block_counts").__file__))
    if path.suffix == ".py":
        pytest.skip("nothing is compiled here")
    data = path.read_bytes()
    assert b"__stack_chk_fail" in data
    flags = (30).to_bytes(8, "little") + (8).to_bytes(8, "little")  # DT_FLAGS: DF_BIND_NOW
    assert sys.maxsize < 2**32 or sys.byteorder != "little" or flags in data


@pytest.mark.parametrize("types", TYPES, ids=lambda path: path.stem)
def test_constants_that_loops_read_have_a_c_type(types):
    """A constant that is missing in the .pxd is a Python object and makes the loop four times slower."""
    module = import_module(".".join(types.relative_to(ROOT / "src").with_suffix("").parts))
    typed = set(re.findall(r"\w+", types.read_text()))
    source = ast.parse(types.with_suffix(".py").read_text("utf-8"))
    loops = [node for node in ast.walk(source) if isinstance(node, ast.For | ast.While)]
    names = {node.id for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id.isupper()}
    assert [name for name in sorted(names - typed) if isinstance(getattr(module, name, None), int)] == []


def test_a_module_older_than_its_source_is_stale(tmp_path):
    for second, name in enumerate(("a.pxd", "a.cpython-311-x86_64-linux-gnu.so", "a.py")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (second, second))
    assert is_stale(tmp_path / "a.cpython-311-x86_64-linux-gnu.so")
    os.utime(tmp_path / "a.py", (0, 0))
    assert not is_stale(tmp_path / "a.cpython-311-x86_64-linux-gnu.so")


@pytest.mark.parametrize(
    ("added", "reason"),
    [
        ((), "not compiled; install a C compiler, then reinstall Periplus"),
        (("a.cpython-27-x86_64-linux-gnu.so",), "compiled for another Python; reinstall Periplus with this one"),
        ((f"a{EXTENSION_SUFFIXES[0]}",), "not compiled: b; reinstall Periplus"),
        ((f"a{EXTENSION_SUFFIXES[0]}", f"b{EXTENSION_SUFFIXES[-1]}"), ""),
    ],
)
def test_the_reason_for_interpreted_modules_is_named(added, reason, tmp_path, monkeypatch):
    for name in ("a.py", "a.pxd", "b.py", "b.pxd", "c.py", *added):
        (tmp_path / name).touch()
    monkeypatch.setattr(native, "files", lambda package: tmp_path)
    assert native.interpreter_reason() == reason


def test_interpreted_modules_give_the_same_results(tmp_path):
    """Runs tests of documents in a copy of the sources without compiled modules."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    where = "import periplus.document.trigrams as module; print(module.__file__)"
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    for line in (["-c", where], ["-m", "pytest", *(str(ROOT / "tests" / "unit" / name) for name in INTERPRETED)]):
        ran = subprocess.run(
            [sys.executable, *line], check=False, cwd=ROOT, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stdout[-3_000:]
        assert str(tmp_path) in ran.stdout or "passed" in ran.stdout
