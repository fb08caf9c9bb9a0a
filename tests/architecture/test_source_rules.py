"""Rules on single modules: each holds for all modules, and each finds a small bad sample."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_rules import (
    RULES,
    SHORT_SHARE,
    Rule,
    Source,
    broad_handlers,
    file_is_short,
    functions_are_short,
    read_below,
    short_share,
    source_of,
    sources_below,
)

ROOT = Path(__file__).resolve().parents[2]
OTHERS = ("tests", "examples", "benchmarks", "quality")

BAD = {
    "file_is_short": "x = 1\n" * 701,
    "functions_are_short": '"""Doc."""\ndef f():\n' + "    x = 1\n" * 69,
    "parameters_are_few": "class A:\n    def f(self, a, b, c, *d, e, f, **g): ...\n",
    "no_bare_except": "try:\n    pass\nexcept:\n    pass\n",
    "no_global": "def f():\n    global x\n",
    "print_only_in_cli": "print(1)\n",
    "no_code_from_text": "eval('1')\n",
    "no_banned_module": "from urllib import request\n",
    "no_import_of_the_root": "from periplus import settings\n",
    "no_relative_import": "from .hosts import is_within\n",
    "time_chance_and_surroundings_are_arguments": "import random\n\nx = random.random()\n",
    "urls_are_joined_in_one_place": "from urllib.parse import urljoin\n",
    "module_has_docstring": "x = 1\n",
}
GOOD = (
    '"""A question and its answer."""\n\nimport urllib.parse\n\nfrom periplus.errors import InvalidUrl\n\n\n'
    "def f(self, a, b, c, *, d, e, f):\n    return a\n"
)


@pytest.fixture(scope="module")
def ours() -> list[Source]:
    """The modules of src, except for the example webs."""
    return [source for source in sources_below(ROOT, "src") if source.path.parts[1] != "periplus_demo"]


def bad_sample(rule: Rule) -> Source:
    """A module that breaks the rule; for the rule on names by its path."""
    path = {
        "name_says_something": "src/periplus/urls/utils.py",
        "urls_are_joined_in_one_place": "src/periplus/analyse/sample.py",
    }.get(rule.__name__, "src/periplus/urls/sample.py")
    return source_of(Path(path), BAD.get(rule.__name__, GOOD))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds(rule, ours):
    assert [finding for source in ours for finding in rule(source)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_can_fail(rule):
    assert list(rule(bad_sample(rule)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_accepts_good_code(rule):
    assert list(rule(source_of(Path("src/periplus/urls/sample.py"), GOOD))) == []


def test_sizes_hold_for_tests_and_examples_too():
    sources = (source for folder in OTHERS for source in read_below(ROOT, folder))
    assert [line for source in sources for rule in (file_is_short, functions_are_short) for line in rule(source)] == []


def test_print_is_allowed_in_cli():
    rule = next(rule for rule in RULES if rule.__name__ == "print_only_in_cli")
    assert list(rule(source_of(Path("src/periplus/cli/main.py"), "print(1)\n"))) == []


def test_nine_functions_in_ten_are_short(ours):
    assert short_share(ours) >= SHORT_SHARE


def test_the_share_of_short_functions_is_counted():
    long = "def g():\n" + "    x = 1\n" * 39
    assert short_share([source_of(Path("a.py"), "def f(): ...\n" + long)]) == 0.5


def test_only_the_guards_of_a_worker_and_of_extensions_catch_everything(ours):
    places = [line.partition(":")[0] for line in broad_handlers(ours)]
    assert places == ["src/periplus/acquire/answers.py", "src/periplus/features.py"]


def test_broad_handlers_are_found_alone_and_in_tuples():
    sample = (
        "try:\n    pass\nexcept (ValueError, Exception):\n    pass\nexcept BaseException:\n"
        "    pass\nexcept OSError:\n    pass\n"
    )
    assert len(broad_handlers([source_of(Path("a.py"), sample)])) == 2
