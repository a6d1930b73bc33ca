# Everything sets itself up: `make demo` and `make test` need Python 3.11 or newer, and make.
# Paths are relative throughout, so that a checkout below a folder with a space works.

.DELETE_ON_ERROR:
.DEFAULT_GOAL := setup
.PHONY: setup demo test faults chaos bench lint format lock clean

export PYTHON
VENV := .venv
RUN := $(VENV)/bin/python
# Handed out one by one: tests take from a millisecond to minutes.
TESTERS := --numprocesses 2 --maxschedchunk 1

setup: $(VENV)/.installed
	@$(RUN) -m oncelake.local --java-lock requirements-java.lock

demo: setup
	@$(VENV)/bin/oncelake demo

test: setup lint
	$(RUN) -m pytest -m "not faults and not chaos" $(TESTERS)

faults: setup
	$(RUN) -m pytest -m faults $(TESTERS)

chaos: setup
	$(RUN) -m pytest -m chaos

bench: setup
	$(RUN) -m bench $(ONLY)

lint: $(VENV)/.installed
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(VENV)/.installed
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

lock: $(VENV)/.installed
	$(RUN) -m tools.lock

clean:
	rm -rf $(VENV) build .oncelake oncelake.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written only after its step has ended well. An install that was interrupted has left
# $(VENV)/.begun behind: packages may be there in part, so the environment is made afresh.
ifneq ($(wildcard $(VENV)/.begun),)
.PHONY: $(VENV)/.made
endif

$(VENV)/.made:
	@python=$$(sh tools/find-python.sh) && echo "creating $(VENV) with $$python" && \
		"$$python" -m venv --clear $(VENV)
	@touch $@

$(VENV)/.packages: requirements.lock $(VENV)/.made
	@echo "installing the Python packages of requirements.lock"
	@touch $(VENV)/.begun
	@$(RUN) -m pip install --disable-pip-version-check --require-hashes -r requirements.lock
	@rm $(VENV)/.begun
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.packages
	@$(RUN) -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@touch $@
