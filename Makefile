# Each target makes .venv first, from the lock, so that a fresh clone needs Python, git,
# gcc and make and nothing else. PYTHON=python3.12 picks another Python, DIR=... the demo's folder.
PYTHON ?= python3
DIR ?= thermite-demo
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/made-from-lock

.PHONY: demo test check bench lock clean
.DELETE_ON_ERROR:

demo: $(READY)
	@$(VENV)/bin/thermite demo $(DIR)

test: $(READY)
	@$(RUN) -m pytest -m measures
	@$(RUN) -m pytest -m "not measures" -n 3 --dist loadfile --no-loadscope-reorder

check: $(READY)
	$(VENV)/bin/ruff check --quiet
	$(VENV)/bin/ruff format --check --quiet
	$(VENV)/bin/codespell
	$(VENV)/bin/mypy --no-error-summary
	$(VENV)/bin/lint-imports --no-logo
	@echo "check: all kept"

bench: $(READY)
	@$(RUN) benchmarks/all.py

# The lock is for every Python and machine that we support, not only for this one.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links --extra dev pyproject.toml -o requirements/dev.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is missing or older than 3.11: install one, or name it with PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) can't make a virtual environment: install ensurepip (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@for tool in git gcc; do command -v $$tool >/dev/null || { \
	  echo "$$tool is missing: install it (Debian: apt-get install $$tool)" >&2; exit 1; }; done
	@echo "making $(VENV) from requirements/dev.lock (a minute, once)" >&2
	@$(RUN) -c '' 2>/dev/null || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	@$(RUN) -m pip install -qq --disable-pip-version-check --retries 10 --require-hashes -r requirements/dev.lock
	@$(RUN) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
