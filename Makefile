# Every routine of the project has one command here; .ci/run uses the same ones. `make` alone lists them.

PYTHON ?= $(shell for name in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.periplus-installed# what a user needs
TOOLS := $(VENV)/.periplus-tools# what developers need
COMPILED := $(VENV)/.periplus-compiled# the modules that have C types
TYPES := $(wildcard src/periplus/*/*.pxd src/periplus/*/*/*.pxd)
SECONDS_EACH ?= 60
WORKERS ?= 3# test processes: tests with servers wait longer than they compute

.DEFAULT_GOAL := help
.PHONY: site roles help setup native check check-style check-types check-rules test test-browser test-spark test-faults test-real fuzz sanitize quality bench bench-peers bench-published demo docs man dist clean

help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) $(COMPILED) ## Make .venv and install Periplus into it, in the exact versions of constraints.txt.

# Packages come as wheels. Periplus itself is compiled in place by the rule of COMPILED, once, and then linked into .venv.
INSTALL := $(PY) -m pip install --disable-pip-version-check --quiet -c constraints.txt

$(STAMP): pyproject.toml constraints.txt
	@test -x $(PY) || test -n "$(PYTHON)" || { echo "Periplus needs Python 3.11 or newer and finds none; name one: make setup PYTHON=/path/to/python3"; exit 1; }
	@test -x $(PY) || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Periplus needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	@command -v $${CC:-cc} >/dev/null || { echo "Periplus needs a C compiler: apt-get install gcc libc6-dev python3-dev (Debian, Ubuntu), dnf install gcc python3-devel (Fedora)"; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV): 40 packages, 460 MB on disk; then compiling. About a minute and a half on two idle cores."
	$(INSTALL) setuptools cython
	$(PY) .ci/requirements all > $(VENV)/requirements.txt
	$(INSTALL) -r $(VENV)/requirements.txt
	$(PY) setup.py --quiet build_ext --inplace --parallel 2
	PERIPLUS_COMPILED=1 $(INSTALL) --no-build-isolation --no-deps -e .
	@touch $(STAMP) $(COMPILED)
	@echo "Done. Now: . $(VENV)/bin/activate && periplus"

$(TOOLS): $(STAMP)
	@echo "Installing tools for developers (tests, types, format): 60 packages, 750 MB on disk."
	$(PY) .ci/requirements all dev > $(VENV)/requirements.txt
	$(INSTALL) -r $(VENV)/requirements.txt
	@touch $@

native: $(COMPILED) ## Compile the changed modules that have C types (a .pxd beside them).

$(COMPILED): setup.py $(TYPES) $(TYPES:.pxd=.py) | $(STAMP)
	$(PY) setup.py --quiet build_ext --inplace --parallel 2 $(if $(filter setup.py,$?),--force)
	@touch $@

check: check-style check-types check-rules ## Format, lint, types, layers, architecture, stale references: about 20 s of CPU; `make -j2 check` is faster.

check-style: $(TOOLS)
	$(PY) -m ruff format --no-cache --check .
	$(PY) -m ruff check --no-cache .

check-types: $(TOOLS)
	$(PY) -m mypy

check-rules: $(TOOLS) $(COMPILED)
	$(VENV)/bin/lint-imports
	$(PY) -m pytest tests/architecture

# A process takes half of the tests in order, and later a part of what the other one has left: tests that share a
# fixture stay together.
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist worksteal -rfEs# what failed, and what was left out and why

test: $(TOOLS) $(COMPILED) ## Every test but those of `check` and of minutes (faults, real sites, Spark); FEATURE=agents for one feature's.
	$(PYTEST) $(if $(FEATURE),tests/$(FEATURE),--ignore=tests/architecture)

test-browser: $(TOOLS) $(COMPILED) ## Install Chromium where there is none (Debian's, as root), and run the tests that need it.
	.ci/chromium
	CI=true $(PYTEST) -m browser

test-spark: $(TOOLS) $(COMPILED) ## Compute and crawl on a local Spark cluster; installs pyspark (450 MB), needs Java 17: minutes.
	@command -v java >/dev/null || { echo "Spark needs Java 17: apt-get install openjdk-17-jre-headless"; exit 1; }
	$(PY) .ci/requirements cluster > $(VENV)/requirements.txt
	$(INSTALL) -r $(VENV)/requirements.txt
	PERIPLUS_TEST_SPARK=1 $(PY) -m pytest -m spark

test-faults: $(TOOLS) $(COMPILED) ## Kill, freeze and crowd workers, fill disks, lie about names, for as long as it takes: many minutes.
	$(PY) -m pytest -n 3 --dist loadfile -rfEs -m faults

test-real: $(TOOLS) $(COMPILED) ## Crawl nineteen real manuals (Debian packages, fetched once: 250 MB) beside another reader, whole and interrupted: an hour.
	$(PY) -m pytest -m real

roles: $(TOOLS) $(COMPILED) ## Do each role's tutorial from an empty environment with the built wheel; note steps and seconds: two minutes.
	$(PY) tests/roles.py

fuzz: $(TOOLS) $(COMPILED) ## Feed each reader of strangers' bytes with what it has never seen, a minute each; SECONDS_EACH=3600 for longer.
	$(PY) quality/fuzz/run.py --seconds $(SECONDS_EACH)

sanitize: $(TOOLS) ## Run tests and fuzzers on modules compiled with AddressSanitizer (GCC), a minute each; SECONDS_EACH=3600 for longer.
	$(PY) quality/fuzz/sanitized.py --seconds $(SECONDS_EACH)

quality: $(TOOLS) $(COMPILED) ## Measure what cannot be proved, beside the aims; fails below the floors of quality/floors.json.
	$(PY) quality/run.py

bench: $(TOOLS) $(COMPILED) ## Measure time and memory, each as a ratio to a baseline of the same run.
	$(PY) benchmarks/run.py

bench-peers: $(TOOLS) $(COMPILED) ## Crawl the same pages beside Scrapy, Crawlee, minet, wget, wget2, HTTrack and LinkChecker; INSTALL=--install-peers fetches those of Python.
	$(PY) benchmarks/beside_peers.py $(INSTALL)

bench-published: $(TOOLS) $(COMPILED) ## Write docs/compared.md: speed, memory, restart and completeness beside the same crawlers; 25 minutes on a quiet machine.
	$(PY) benchmarks/published.py

demo: $(STAMP) $(COMPILED) ## Serve, crawl and map the example webs on this machine, and show the results.
	$(PY) examples/demo.py

docs: $(STAMP) $(COMPILED) ## Write docs/cli.md and docs/settings.md anew from the code.
	$(PY) -m periplus.cli.reference

site: $(STAMP) ## Build the documentation as a site into the folder site; installs its builder (20 MB).
	$(PY) .ci/requirements docs > $(VENV)/requirements.txt
	$(INSTALL) -r $(VENV)/requirements.txt
	$(PY) .ci/site

man: $(STAMP) ## Write a man page for each command into dist/man: man -l dist/man/periplus-crawl.1
	$(PY) -m periplus.cli.reference --man dist/man

DIST ?= dist
dist: $(STAMP) ## Build the sdist and, from it, the wheel for this machine's Python, into dist/; needs no network.
	rm -rf build src/periplus.egg-info
	mkdir -p $(DIST)
	rm -f $(DIST)/periplus-*
	$(PY) -c 'from setuptools import build_meta; build_meta.build_sdist("$(DIST)")' >/dev/null
	rm -rf src/periplus.egg-info
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation -w $(DIST) $(DIST)/periplus-*.tar.gz
	@ls -l $(DIST)/periplus-*

clean: ## Delete .venv, build products and caches; collections stay.
	rm -rf $(VENV) build dist site demo-out src/*.egg-info src/periplus/*/*.so src/periplus/*/*/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
