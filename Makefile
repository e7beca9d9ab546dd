# Everything here works on a machine that has only Python and make. `make help` lists the targets.
BIN := .venv/bin
SHELL := /bin/bash
.DEFAULT_GOAL := help

.PHONY: help setup demo screenshots test test-fast test-faults test-all test-console eval-agent conformance-record timings test-rck matrix lint fmt lock bench bench-all bench-peers clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 14

.venv/ready: requirements/lock.txt requirements/bootstrap.txt pyproject.toml tools/bootstrap.sh
	@rm -f $@
	@echo "==> Python 3.11 and uv in .venv (20 to 50 MB to fetch)"
	@tools/bootstrap.sh
	@echo "==> Dependencies in .venv (about 500 MB to fetch, 1.9 GB on disk; 2 to 10 minutes, longest at pyspark)"
	$(BIN)/uv pip sync --compile-bytecode --python $(BIN)/python --require-hashes requirements/bootstrap.txt requirements/lock.txt
	@echo "==> lakehouse in .venv"
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src  # our own modules too: where Python may not write bytecode, every command would compile them anew
	@touch $@

setup: .venv/ready ## make .venv, install the locked dependencies, fetch the jars, prepare Spark's fast start
	$(BIN)/lake setup

# Not in .lake, the default home: that one stays free for the reader's own tables.
demo: setup ## a narrated tour of a small lake in .lake-demo (LAKE_HOME chooses another folder)
	LAKE_HOME=$${LAKE_HOME:-.lake-demo} $(BIN)/lake demo

screenshots: setup ## pictures of the console over a demo lake, in docs/images (needs Chromium: apt-get install chromium)
	$(BIN)/uv pip install --quiet --python $(BIN)/python "playwright==1.65.0"
	$(BIN)/python tools/screenshots.py $(LAKE_HOME)

test: setup lint ## lint, then every test, on real Spark and real servers, in lanes balanced by tests/timings.json
	@$(BIN)/python -m tools.suite.lanes $(PYTEST_ARGS)

test-fast: .venv/ready ## the tests that start no JVM and no server: two minutes
	@$(BIN)/python -m tools.suite.lanes --fast $(PYTEST_ARGS)

test-faults: setup ## the tests of kills, races and random input (marked faults) with their full counts of repetitions
	@TEST_REPEAT=full $(BIN)/python -m tools.suite.lanes -m faults $(PYTEST_ARGS)

test-all: setup lint ## make test, and what it leaves out where it is not installed: Superset (1 GB) in a browser
	@axe=$$(tools/browser_tests.sh) && LAKE_TEST_AXE=$$axe TEST_SUPERSET=1 $(BIN)/python -m tools.suite.lanes $(PYTEST_ARGS)

test-console: .venv/ready ## every page of the console in a headless Chromium (apt-get install chromium); with npm, its accessibility too
	@axe=$$(tools/browser_tests.sh) && mkdir -p console-pictures && \
	LAKE_TEST_AXE=$$axe LAKE_TEST_PICTURES=$$PWD/console-pictures $(BIN)/python -m pytest -q tests/console/test_browser.py $(PYTEST_ARGS)

eval-agent: setup ## score `lake ask` on the questions of tests/agent/questions, on the lake of `lake demo`
	home=$$(mktemp -d) && LAKE_HOME=$$home $(BIN)/lake demo > /dev/null && $(BIN)/python -m tests.support.agent_eval $$home; \
	code=$$?; LAKE_HOME=$$home $(BIN)/lake down > /dev/null; rm -rf $$home; exit $$code

conformance-record: setup ## ask Spark anew for the answers that tests/query/test_conformance.py compares with (about ten minutes)
	$(BIN)/python -m tests.support.conformance.record $(RECORD_ARGS)

timings: ## copy what the last make test measured to tests/timings.json
	cp .pytest_timings.json tests/timings.json

matrix: setup ## every engine on every catalog, for Iceberg and Hudi, on the real servers; writes docs/matrix.md
	TEST_REPEAT=full WRITE_MATRIX=1 $(BIN)/python -m pytest -q tests/contract/test_engines.py tests/contract/test_hudi*.py $(PYTEST_ARGS)

test-rck: .venv/ready ## Apache Iceberg's REST Compatibility Kit against our REST catalog (needs a JDK and, once, Maven)
	$(BIN)/python tools/rck/own_catalog.py $(RCK_ARGS)

lint: .venv/ready ## ruff, ruff format, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache | tail -n 8

fmt: .venv/ready ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## write requirements/*.txt and those of Superset anew (hashes, no addresses)
	echo uv | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate - -o requirements/bootstrap.txt
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra all --extra dev pyproject.toml -o requirements/lock.txt
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate src/lakehouse/stack/superset/requirements.in -o src/lakehouse/stack/superset/requirements.txt
	$(BIN)/lake stack render

bench: setup ## measure start-up and query times as ratios; writes bench/results/
	$(BIN)/python -m bench.start

bench-all: setup ## measure everything (hours; goes on where it was interrupted) and write docs/benchmarks.md; BENCH_ARGS="--quick" tries it
	$(BIN)/python -m bench.all $(BENCH_ARGS)

bench-peers: .venv/ready ## install the peers of the ingest benchmark that need an environment of their own, in .venv-peers
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-peers
	$(BIN)/uv pip install --quiet --python .venv-peers/bin/python --group peers

clean: ## remove .venv and what tools left behind (never a lake)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .pytest_timings.json .hypothesis
