"""Messages about missing optional packages."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from periplus.acquire import transport
from periplus.errors import UsageError
from periplus.extras import EXTRAS, absence, extra_needed, is_installed
from periplus.model.tables import EXPORTS
from periplus.present.writers import write_xlsx
from periplus_formats import markdown, pdf_reader

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


def packages(*extras: str) -> set[tuple[str, str]]:
    """(package, extra) of pyproject.toml."""
    rows = PROJECT["optional-dependencies"]
    return {(row.partition(">")[0].partition("[")[0], extra) for extra in extras for row in rows[extra]}


def test_the_table_names_the_extras_of_the_project():
    listed = {(package, extra) for package, extra, _ in EXTRAS.values()}
    extras = set(PROJECT["optional-dependencies"]) - {"all", "dev", "docs"}
    assert packages(*extras) - {("pyarrow", "cluster")} == listed


def test_no_optional_package_is_required_by_the_core():
    core = {row.partition(">")[0] for row in PROJECT["dependencies"]}
    assert not core & {package for package, _, _ in EXTRAS.values()}
    assert len(core) <= 16  # RE2: a user's pattern must not run forever; tomlkit: replaced an editor of our own


@pytest.mark.parametrize("module", [module for module in EXTRAS if module != "pyspark"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(module, monkeypatch):
    hide(monkeypatch, module)
    assert not is_installed(module)
    with pytest.raises(UsageError, match=rf"pip install 'periplus\[{EXTRAS[module][1]}\]'"), extra_needed():
        importlib.import_module(module)


def test_other_missing_modules_are_bugs():
    with pytest.raises(ModuleNotFoundError), extra_needed():
        importlib.import_module("no_such_module")


def test_a_file_without_its_reader_names_the_package_to_install(monkeypatch):
    hide(monkeypatch, "pypdfium2", "markdown_it")
    assert pdf_reader.html_of(b"%PDF-1.7").fault == absence("pypdfium2")
    converted = markdown.html_of("# Head\n\nwords & more")
    assert converted.fault == absence("markdown_it")
    assert "words &amp; more" in converted.html


def test_a_table_without_its_writer_names_the_package_to_install(monkeypatch, tmp_path):
    hide(monkeypatch, "xlsxwriter")
    with pytest.raises(UsageError, match=r"Excel.*pip install 'periplus\[office\]'"):
        write_xlsx("runs", EXPORTS["runs"].columns, [], tmp_path / "x.xlsx")
    assert not list(tmp_path.iterdir())


def test_without_the_brotli_package_br_is_not_accepted():
    code = "import sys; sys.modules['brotli'] = None; from periplus.acquire import transport; "
    code += "print(transport.ACCEPT_ENCODING)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "br" not in ran.stdout.replace(",", " ").split()
    assert "br" in transport.ACCEPT_ENCODING


@pytest.mark.parametrize(("line", "module"), [("serve --port 1", "starlette"), ("serve --port 1", "uvicorn")])
def test_a_command_without_its_package_fails_with_a_message(line, module, tmp_path):
    code = f"import sys; sys.modules[{module!r}] = None; from periplus.cli.main import main; main({line.split()!r})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (2, f"periplus: {absence(module)}\n")
