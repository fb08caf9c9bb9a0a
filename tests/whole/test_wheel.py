"""The result of `make dist` installs into an empty environment, and works there with its own dependencies only.

No network is used: dependencies of the wheel, direct and transitive, are linked from the environment of the tests,
one distribution at a time. Other packages of that environment are not visible.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from sysconfig import get_config_var, get_platform
from zipfile import ZipFile

import pytest
from voyage import PATIENCE_S, flags_for

from testweb import GraphRecipe, graph_site, serve

ROOT = Path(__file__).parents[2]
BUILD_S = 1_200.0  # compiles: a minute or two on an idle machine
SUFFIX = get_config_var("EXT_SUFFIX")  # suffix of compiled modules


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder written by `make dist`, shared by all processes of a run, since it compiles."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "dist"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            built(tmp_path_factory.mktemp("building")).rename(folder)
    return folder


def built(folder: Path) -> Path:
    """Runs `make dist` with a folder."""
    line = ["make", "-s", "dist", f"DIST={folder}", f"PY={sys.executable}", "-o", ".venv/.periplus-installed"]
    quick = os.environ | {"CFLAGS": "-O0"}  # a quarter of the CPU: what the modules do is tested elsewhere
    ran = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_S, check=False, env=quick)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def wheel_of(dist: Path) -> Path:
    (wheel,) = dist.glob("*.whl")
    return wheel


def requirements(package: Distribution, extra: str = "") -> list[str]:
    """Requirements of a distribution on this machine, without extras or with one."""
    from packaging.requirements import Requirement

    rows = [Requirement(text) for text in package.requires or ()]
    return [row.name for row in rows if row.marker is None or row.marker.evaluate({"extra": extra})]


def link_packages(names: list[str], folder: Path) -> None:
    """Links the named distributions, and what they need, into a site-packages folder."""
    seen: set[str] = set()
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        package = distribution(name)
        names += requirements(package)
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            link = folder / top
            if not link.exists():
                link.symlink_to(Path(str(package.locate_file(top))))


def installed(wheel: Path, folder: Path, *extras: str) -> Path:
    """Creates an environment with the wheel, its requirements and extras; returns its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=PATIENCE_S)
    line = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet"]
    options = ["--disable-pip-version-check", "--no-index", "--no-deps", wheel]
    subprocess.run([*line, *options], check=True, timeout=BUILD_S)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (metadata,) = packages.glob("periplus-*.dist-info")
    own = Distribution.at(metadata)
    link_packages([name for extra in ("", *extras) for name in requirements(own, extra)], packages)
    return folder / "bin"


@pytest.fixture(scope="module")
def program(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`periplus`, installed from the wheel into an empty environment."""
    return installed(wheel_of(dist), tmp_path_factory.mktemp("empty") / "venv") / "periplus"


def test_the_wheel_is_built_from_the_sdist_and_has_every_file_of_the_packages(dist: Path) -> None:
    assert len(list(dist.glob("periplus-*.tar.gz"))) == 1
    with ZipFile(wheel_of(dist)) as wheel:
        files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    sources = {
        str(path.relative_to(ROOT / "src"))
        for package in (ROOT / "src").glob("periplus*")
        if package.suffix != ".egg-info"
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".so")
    }
    compiled = {name.removesuffix(".pxd") + SUFFIX for name in sources if name.endswith(".pxd")}
    compiled.add(f"periplus/document/_shared{SUFFIX}")
    assert files == sources | compiled
    assert wheel_of(dist).stem.endswith(get_platform().replace("-", "_").replace(".", "_"))


def test_without_a_compiler_it_installs_and_reports_that_it_is_slow(dist: Path, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    (source,) = dist.glob("*.tar.gz")
    environment = os.environ | {"CC": "/nowhere/cc"}
    options = ["--no-build-isolation", "--target", tmp_path / "packages", source]
    subprocess.run([*line, *options], check=True, timeout=BUILD_S, env=environment)
    assert not list(tmp_path.rglob("*.so"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "packages")}
    line = [sys.executable, "-m", "periplus", "--version"]
    ran = subprocess.run(line, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert "reader: interpreted (slow): not compiled; install a C compiler" in ran.stdout


def test_the_core_has_at_most_sixteen_dependencies(program: Path) -> None:
    (metadata,) = program.parents[1].glob("lib/python*/site-packages/periplus-*.dist-info")
    assert len(requirements(Distribution.at(metadata))) <= 16


def test_it_crawls_maps_checks_reports_and_searches_from_an_empty_environment(program: Path, tmp_path: Path) -> None:
    def ran(line: str, *codes: int) -> str:
        words = [str(program), *shlex.split(line)]
        end = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env={"HOME": "/"}
        )
        assert end.returncode in (codes or (0,)), (line, end.stdout, end.stderr)
        return end.stdout

    with serve(graph_site(GraphRecipe(seed=7, pages=12, page_bytes=1500, host="example.org"))) as server:
        flags = shlex.join(flags_for(server.resolve, ["example.org"]))
        start = server.url("example.org", "/")
        assert re.fullmatch(r"periplus, version [\d.]+\nreader: compiled\n", ran("--version"))
        ran(f"crawl {start} -o site.periplus -q {flags}")
        ran(f"check {start} -o check.periplus -q --no-external {flags}")
    assert "12 pages" in ran("map -c site.periplus")
    ran("report -c site.periplus")
    assert (tmp_path / "site.periplus" / "report.html").exists()
    words = ran("pages -c site.periplus -f jsonl --columns title").split('"title": "')[1].split('"')[0]
    assert words.split()[0] in ran(f"search -c site.periplus {shlex.quote(words.split()[0])}")
