"""Each feature can be uninstalled: the core is imported, explains itself and works without it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest

from periplus.features import PLACES, Feature, features, parts, stored_tables
from periplus_studies import api as survey
from periplus_studies.model import Campaign, SiteMark, SiteStatus
from periplus_studies.results import mark_sites
from periplus_studies.units import unit_of

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DECLARED: dict[str, str] = PROJECT["entry-points"]["periplus.features"]
IMPORT_ALL = """
import importlib, pathlib, sys, periplus
for path in sorted(pathlib.Path(periplus.__file__).parent.rglob("*.py")):
    name = ".".join(path.relative_to(pathlib.Path(periplus.__file__).parents[1]).with_suffix("").parts)
    if not name.endswith("__main__"):
        importlib.import_module(name.removesuffix(".__init__"))
for name in periplus.__all__:
    try:
        getattr(periplus, name)
    except periplus.errors.PeriplusError as error:
        print(name, error)
print("features:", *sorted(name for name in sys.modules if name.startswith("periplus_")))
"""


def site_without(folder: Path, *hidden: str) -> Path:
    """A site-packages folder with links to all packages of this environment, and Periplus without some features."""
    for place in Path(sysconfig.get_path("purelib")).iterdir():
        if place.suffix != ".pth" and not place.name.startswith("periplus-"):
            (folder / place.name).symlink_to(place)
    for place in (ROOT / "src").iterdir():
        if place.name not in {f"periplus_{name}" for name in hidden}:
            (folder / place.name).symlink_to(place)
    metadata = folder / "periplus-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: periplus\nVersion: 0\n")
    rows = [f"{name} = {place}\n" for name, place in DECLARED.items() if name not in hidden]
    (metadata / "entry_points.txt").write_text("[periplus.features]\n" + "".join(rows))
    return folder


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter (-S: without this environment's own packages) with the packages of a folder."""
    env = os.environ | {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-S", *arguments], env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site_without(tmp_path_factory.mktemp("core"), *DECLARED)


def test_every_folder_of_a_feature_is_declared_and_installed():
    folders = {path.parent.name.removeprefix("periplus_") for path in (ROOT / "src").glob("periplus_*/feature.py")}
    assert folders == set(DECLARED)
    installed = {
        point.name: point.value for point in distribution("periplus").entry_points if point.group == "periplus.features"
    }
    assert installed == DECLARED, "the installed package is older than pyproject.toml: make setup"
    assert len(features()) >= len(DECLARED)
    assert all(isinstance(feature, Feature) for feature in features().values())


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_imports_the_contract_alone(name):
    tree = ast.parse((ROOT / "src" / f"periplus_{name}" / "feature.py").read_text("utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [node.module for node in nodes if isinstance(node, ast.ImportFrom)] == ["periplus.features"]
    assert len(nodes) == 1
    package = ast.parse((ROOT / "src" / f"periplus_{name}" / "__init__.py").read_text("utf-8"))
    assert [type(node) for node in package.body] == [ast.Expr]  # its docstring


def test_each_part_of_a_feature_is_found_by_its_field():
    """`settings --extensions` lists them by field; the other fields hold no places."""
    places = {part.place for field in PLACES for part in parts(field).values()}
    assert places == set(re.findall(r"periplus_[\w.]+:\w*", repr(features())))
    assert list(PROJECT["entry-points"]) == ["periplus.features"]


@pytest.mark.parametrize("name", DECLARED)
def test_the_places_that_a_feature_declares_exist(name):
    code = (
        "import re, sys; from periplus.features import features, value_at\n"
        "places = re.findall(r'periplus_[\\w.]+:\\w+', repr(features()[sys.argv[1]]._replace(engines={})))\n"
        "assert places\n"
        "print(*map(value_at, places))"
    )
    ran = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_core_is_imported_without_any_feature(core):
    ran = run(core, "-c", IMPORT_ALL)
    assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, ["features:"]), ran.stderr


def test_a_table_of_settings_that_no_installed_package_reads_is_refused(core, tmp_path):
    (tmp_path / "periplus.toml").write_text('[extract]\nprice = "css: b"\n')
    ran = run(core, "-m", "periplus", "crawl", "http://127.0.0.1:9/", "-c", str(tmp_path))
    assert ran.returncode == 2 and "unknown table 'extract': the installed packages read the tables" in ran.stderr


# quick ones of several packages: 4 s of CPU together
CORE_TESTS = ("canonical", "comparison", "discovery", "pagerank", "politeness", "robots")


def test_unit_tests_of_the_core_pass_without_any_feature(core):
    ran = run(core, "-m", "pytest", "-q", *(f"tests/unit/test_{name}.py" for name in CORE_TESTS))
    assert ran.returncode == 0 and ".." in ran.stdout, ran.stdout


INTERFACE = """
import pathlib, re, sys
sys.path.insert(0, "tests")
from interface import client
from stored import page, stored
base = pathlib.Path(sys.argv[1])
stored(base / "c.periplus", {"https://e.org/": page("Home")}, ["https://e.org/"])
asking = client(base)
links = {"/", "/new", "/c/c/live"}
for seen in range(60):
    left = sorted(links - set(sys.argv[2:]))
    if not left:
        break
    sys.argv.append(left[0])
    answer = asking.get(left[0])
    assert answer.status_code in (200, 303), (left[0], answer.status_code)
    links |= set(re.findall('href="(/[a-z/]*)"', answer.text))
    links |= {f"/c/c/{link}" for link in re.findall('href="([a-z][a-z/]*)"', answer.text) if left[0] == "/c/c/live"}
print(len(links))
"""


def test_each_link_of_the_interface_leads_to_a_screen_without_any_feature(core, tmp_path):
    ran = run(core, "-c", INTERFACE, str(tmp_path))
    assert ran.returncode == 0 and int(ran.stdout) > 8, ran.stderr


def test_a_name_or_a_method_of_an_absent_feature_is_refused_in_a_sentence(core):
    code = (
        "import pathlib, periplus\nfrom periplus.api.functions import open_collection\n"
        "try:\n    periplus.topic\nexcept AttributeError as error:\n    print(error)\n"
        "from periplus.jobs.runner import make_order\n"
        "try:\n    make_order(('topic', 'train'))\nexcept periplus.errors.UsageError as error:\n    print(error)\n"
        "from periplus.features import service\n"
        "try:\n    service('keywords')\nexcept periplus.errors.UsageError as error:\n    print(error)\n"
    )
    lines = run(core, "-c", code).stdout.splitlines()
    assert lines[0] == "module 'periplus' has no attribute 'topic': no installed feature provides it"
    assert lines[1].startswith("'topic' cannot be a job") and "portal" not in lines[1]
    assert lines[2] == "keywords: no installed package provides it"


def test_help_lists_the_commands_of_features_without_importing_more_than_their_declarations(core):
    ran = run(core, "-m", "periplus", "--help-all")
    assert ran.returncode == 0 and ran.stderr == ""
    code = (
        "import sys\nfrom periplus.cli.main import main\nmain(['--help'], standalone_mode=False)\n"
        "print('MODULES', *sorted(name for name in sys.modules if name.startswith('periplus_')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ran.stdout.splitlines()[-1].split()[1:]
    assert loaded == sorted(part for name in DECLARED for part in (f"periplus_{name}", f"periplus_{name}.feature"))


@pytest.mark.parametrize("name", DECLARED)
def test_the_command_line_works_without_a_feature(name, tmp_path):
    site = site_without(tmp_path, name)
    listed = run(site, "-m", "periplus", "--help-all")
    assert listed.returncode == 0 and listed.stderr == ""
    for command in features()[name].commands:
        assert f"\n  {command.name} " not in listed.stdout
        ran = run(site, "-m", "periplus", command.name)
        assert ran.returncode == 2 and f"No such command '{command.name}'" in ran.stderr


def test_a_feature_that_cannot_be_imported_is_left_out_with_a_warning(tmp_path):
    site = site_without(tmp_path)
    (site / "broken-1.dist-info").mkdir()
    (site / "broken-1.dist-info" / "entry_points.txt").write_text("[periplus.features]\nbroken = broken:FEATURE\n")
    ran = run(site, "-m", "periplus", "--help")
    assert ran.returncode == 0 and "broken 1" in ran.stderr and "crawl" in ran.stdout


def test_an_address_needs_the_feature_that_stores_collections_there(core):
    ran = run(core, "-m", "periplus", "status", "-c", "postgresql://me@localhost/crawls")
    assert (ran.returncode, ran.stderr) == (2, "periplus: postgresql: no installed package stores collections there\n")


STORED = """
import sys
from pathlib import Path
from periplus.features import stored_tables
from periplus.store.sqlite import schema
folder = Path(sys.argv[1])
schema.create(folder)
with schema.writing(folder) as connection:
    print(*(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")))
"""


def test_a_table_of_a_feature_is_made_only_where_it_is_installed_and_also_later(core, tmp_path):
    folder, tables = tmp_path / "c.periplus", {table.name for table in stored_tables()}
    assert tables == {"survey_mark", "portal", "portal_verdict", "portal_page", "portal_words"}
    ran = run(core, "-c", STORED, str(folder))
    assert ran.returncode == 0 and "page" in ran.stdout.split() and tables.isdisjoint(ran.stdout.split()), ran.stderr
    assert survey.marks_in(folder) == {}  # a reader finds an empty table
    mark_sites(folder, [SiteMark("e.org", SiteStatus.OUT)], 1.0)
    assert survey.marks_in(folder) == {"e.org": SiteMark("e.org", SiteStatus.OUT)}


WITHOUT_STUDIES = """
import sys
sys.path.append("{tests}")
from pathlib import Path
from interface import client
from periplus.api.searching import pages_with
from periplus.errors import UsageError
from periplus.api.homes import open_reader
folder = Path(sys.argv[1])
asking = client(folder.parent)
print(*(asking.get(path).status_code for path in ("/", "/c/c/t/pages", "/surveys", "/c/c/survey")))
print("/surveys" in asking.get("/").text, 'value="survey"' in asking.get("/").text)
try:
    with open_reader(folder) as reader:
        pages_with(folder, reader, "set", "target")
except UsageError as error:
    print(error)
"""


def test_without_studies_a_collection_with_a_survey_is_served_and_searched(tmp_path):
    folder, site = tmp_path / "c.periplus", tmp_path / "site"
    site.mkdir()
    survey.create(folder, Campaign("Two", (unit_of("https://e.org/"),)))
    mark_sites(folder, [SiteMark("e.org", SiteStatus.OUT)], 1.0)
    site_without(site, "studies")
    ran = run(site, "-c", WITHOUT_STUDIES.format(tests=ROOT / "tests"), str(folder))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "200 200 404 404",
        "False False",
        "set of pages: no installed package provides it",
    ]
    assert survey.marks_in(folder) == {"e.org": SiteMark("e.org", SiteStatus.OUT)}
