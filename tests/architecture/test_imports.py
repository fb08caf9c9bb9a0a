"""Importing Periplus is fast and has no side effects; import-linter detects violations of layers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = frozenset(
    {
        "numpy",
        "scipy",
        "pycurl",
        "turbohtml",
        "lxml",
        "selectolax",
        "networkx",
        "tantivy",
        "sklearn",
        "pyarrow",
        "pyspark",
        "starlette",
    }
)
PROBE = """
import json, os, sys
effects = []
def watch(event, args):
    if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        effects.append(f"writes {args[0]}")
    elif event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.mkdir", "sqlite3.connect"):
        effects.append(event)
sys.addaudithook(watch)
__import__(sys.argv[1])
json.dump({"effects": effects, "modules": sorted(sys.modules)}, sys.stdout)
"""  # noqa: E501
CONTRACT_BREAKERS = {  # a module to add to a copy of the sources, and the contract that must break
    "stray.py": ("", "Layers"),
    "urls/upward.py": ("import periplus.store.sqlite", "Layers"),
    "present/sideways.py": ("import periplus.analyse", "Layers"),
    "schedule/wire.py": ("import pycurl", "One file opens sockets"),
    "present/rows.py": ("import sqlite3", "One package speaks SQL"),
    "analyse/words.py": ("import tantivy", "One package knows the full-text engine"),
    "present/pages.py": ("import starlette", "One package serves pages"),
    "store/progress.py": ("import rich.progress", "One package speaks to the terminal"),
    "analyse/many.py": ("import pyspark", "One package knows the cluster"),
    "document/tree.py": ("import turbohtml", "One module knows the HTML parser"),
}


def probe(module: str, folder: Path = ROOT / "src") -> dict[str, list[str]]:
    """Side effects and loaded modules of an import, in a new interpreter that writes no byte code."""
    run = subprocess.run(
        [sys.executable, "-B", "-c", PROBE, module],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(folder)},
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("module", ["periplus", "periplus.cli.main"])
def test_import_has_no_effect_and_loads_nothing_heavy(module):
    seen = probe(module)
    assert seen["effects"] == []
    assert HEAVY.intersection(seen["modules"]) == set()


def test_an_import_with_effects_is_detected(tmp_path):
    (tmp_path / "bad.py").write_text(
        "import socket\nimport numpy\nopen(__file__ + '.txt', 'w').close()\nsocket.socket(socket.AF_INET, "
        "socket.SOCK_DGRAM).bind(('127.0.0.1', 0))\n"
    )
    seen = probe("bad", tmp_path)
    assert [effect.split()[0] for effect in seen["effects"]] == ["writes", "socket.bind"]
    assert "numpy" in seen["modules"]


def broken_contracts(tmp_path: Path, breakers: dict[str, str]) -> str:
    """Output of import-linter for a copy of the sources with additional modules."""
    for package in ("periplus", "periplus_spark"):
        shutil.copytree(
            ROOT / "src" / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    for name, text in breakers.items():
        (tmp_path / "periplus" / name).write_text(text)
    command = [
        str(Path(sys.executable).parent / "lint-imports"),
        "--no-cache",
        "--config",
        str(ROOT / "pyproject.toml"),
    ]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "COLUMNS": "300"},
    )
    return run.stdout.decode()


def test_each_contract_can_fail(tmp_path):
    said = broken_contracts(tmp_path, {name: text for name, (text, _) in CONTRACT_BREAKERS.items()})
    for name, (_, contract) in CONTRACT_BREAKERS.items():
        assert any(line.startswith(contract) and "BROKEN" in line for line in said.splitlines()), said
        assert name.removesuffix(".py").split("/")[-1] in said, said


def test_contracts_hold_in_an_unchanged_copy(tmp_path):
    said = broken_contracts(tmp_path, {})
    assert " 0 broken" in said, said
