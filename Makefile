# `make` alone lists the targets. Everything is installed into .venv/ and nowhere else.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
BENCH ?= results/bench

BROWSER := chromium chromium-driver

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PIN := $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
# One stamp per constraints file, so that naming another one installs again.
STAMP := $(VENV)/.installed$(subst /,-,$(addprefix -,$(CONSTRAINTS)))

# Slow tests that measure what this machine can tell apart: nothing else may run beside them.
MEASURING := tests/slow/test_ab.py tests/slow/test_check_cpu.py

.DEFAULT_GOAL := help
.PHONY: help setup run browser test test-slow test-gpu check kernels pictures bench bench-startup wheel-check clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r t d; do printf '  %-20s %s\n' "$$t" "$$d"; done
	@echo
	@echo '  PYTHON=python3.12    the interpreter .venv/ is made with'
	@echo '  CONSTRAINTS=FILE     other versions than constraints.txt; empty: whatever pyproject.toml admits'
	@echo '  BENCH=FOLDER         where make bench keeps its figures and goes on from; MAMF=FILE: your mamf-finder.py'

setup: $(STAMP) ## install gpubench and its tools into .venv/

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpubench needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml $(wildcard $(CONSTRAINTS)) | $(BIN)/python
	$(PIP) install --quiet $(PIN) --editable '.[dev]'
	@extra=$$($(BIN)/python scripts/cupy_extra.py); \
	if [ -n "$$extra" ]; then \
	  $(PIP) install --quiet --retries 1 --timeout 20 $(PIN) --editable ".[$$extra]" \
	    || echo "CuPy could not be installed; raw kernels are skipped (later: $(BIN)/pip install -e '.[$$extra]')"; \
	fi
	@rm -f $(VENV)/.installed*
	@touch $@
	@echo 'installed: $(BIN)/gpubench --help'

run: setup ## measure the matmul curve of this machine and draw its roofline
	$(BIN)/gpubench run matmul-sweep
	$(BIN)/gpubench roofline latest

test: setup ## the tests that need no GPU (a few minutes)
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -q -n 2 --dist worksteal tests

browser: ## a headless Chromium for the slow tests, from the distribution, where one is to be had
	@if { command -v chromium || command -v chromium-browser; } >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $(BROWSER); } >/dev/null \
	    || echo 'Chromium could not be installed; the tests that need it are skipped'; \
	else echo 'no Chromium here: the tests that need it are skipped (as root: apt-get install $(BROWSER))'; fi

test-slow: setup browser ## tests that take long: faults, whole runs, reports in a browser
	$(BIN)/python -m pytest -q $(MEASURING)
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/slow $(MEASURING:%=--ignore %)

test-gpu: setup ## tests that need a CUDA device
	$(BIN)/python -m pytest -q tests/gpu

check: setup ## style, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

kernels: setup ## compile the suites' CUDA C for every architecture, on any machine; what it uses, what it spills
	$(BIN)/python scripts/kernels.py
	$(BIN)/python scripts/kernels.py benchmarks/suites

pictures: setup ## draw the pictures and figures of README and docs again, from the reference runs
	$(BIN)/python scripts/pictures.py
	$(BIN)/python scripts/readme.py
	$(BIN)/python scripts/falls.py
	$(BIN)/python scripts/accuracy.py

bench: setup ## how good gpubench is itself: start-up and, on a GPU, its timers and ceilings beside their peers (10 minutes)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/timer_accuracy.py --out $(BENCH)/timer-accuracy.json.gz
	$(BIN)/python benchmarks/ceilings.py --out $(BENCH)/ceilings.json.gz $(if $(MAMF),--mamf $(MAMF))

bench-startup: setup ## time the start of the installed command against its budgets
	$(BIN)/python benchmarks/startup.py

wheel-check: setup ## build the wheel and use it in fresh environments, with and without torch
	$(BIN)/python scripts/wheel_check.py $(PIN)

clean: ## remove build outputs and caches; .venv/ and results/ stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find gpubench suites tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
