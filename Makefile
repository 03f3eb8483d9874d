PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENV := $(VENV)/.installed
MINUTES ?= 10
TESTS ?= test
TRITON ?= 3.9.0
ON_AARCH64 := $(addprefix tests/unit/backends/cpu/test_,loader.py threads.py) \
	$(addprefix tests/ops/test_,native.py convert.py reduce.py matmul.py atomics.py barriers.py sort.py draw.py mx.py)

.DEFAULT_GOAL := help
.PHONY: help demo test test-gpu test-triton test-aarch64 fuzz check format bench docs site wheel try release clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(ENV) ## run a softmax kernel
	$(BIN)/python examples/softmax.py

test: $(ENV) ## run the tests; ARGS="-k softmax" picks some
	$(BIN)/pytest $(ARGS)

test-gpu: $(ENV) ## run the numeric tests on an NVIDIA GPU, where there is one
	@if $(BIN)/python -c "from tilewright.backends.cuda.driver import is_there; raise SystemExit(not is_there())"; then \
	CUDA_LAUNCH_BLOCKING=1 TILEWRIGHT_TEST_TARGETS=cuda $(BIN)/pytest tests/gpu tests/ops -k "cuda or gpu" --ignore tests/gpu/test_ranks.py $(ARGS) && \
	$(BIN)/pytest tests/gpu/test_ranks.py; \
	else echo "test-gpu: skipped, there is no NVIDIA GPU"; fi

test-triton: $(ENV) ## compile kernels for GPUs that are not here, with TRITON=3.9.0
	$(BIN)/python -m pip install --quiet --no-deps triton==$(TRITON)
	$(BIN)/pytest tests/unit/backends/cuda $(ARGS)

test-aarch64: ## run tests of loading, threads, ops and calls on an emulated aarch64 processor, where there is qemu-user
	@if command -v qemu-aarch64-static qemu-aarch64 > /dev/null; then test -x build/aarch64/python || .ci/aarch64 build/aarch64; \
	PYTHONPATH=src TILEWRIGHT_TEST_PYTHON=$(CURDIR)/build/aarch64/python build/aarch64/python -m pytest -q -n 0 -p no:cacheprovider -k "not interpret" $(or $(ARGS),$(ON_AARCH64)); \
	else echo "test-aarch64: skipped, there is no qemu-user"; fi

fuzz: $(ENV) ## try random and broken programs for MINUTES=10; ARGS="op --jobs 4" picks campaigns and processes
	PYTHONPATH=tests $(BIN)/python -m property.fuzz --minutes $(MINUTES) $(ARGS)

check: $(ENV) ## check format, lint, types and layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/pytest -n 0 tests/test_architecture.py

format: $(ENV) ## format the code and fix what lint can fix
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.bench ## measure compile times, calls and kernels; ARGS="softmax --threads 1" picks some kernels
	$(if $(ARGS),,$(BIN)/python bench/compile.py)
	$(if $(ARGS),,$(BIN)/python bench/launch.py)
	$(if $(ARGS),,$(BIN)/python bench/tools.py)
	$(if $(ARGS),,$(BIN)/python bench/pto.py)
	$(if $(ARGS),,$(BIN)/python bench/natural.py)
	$(BIN)/python bench/kernels.py $(ARGS)

$(VENV)/.bench: $(ENV)
	@$(BIN)/python -m pip install --quiet -e '.[bench]'
	touch $@

docs: $(ENV) ## regenerate the generated pages of docs
	$(BIN)/python -m tilewright.tools.docs

site: $(ENV) ## write the documentation as a site, into build/site
	$(BIN)/python docs/site/build.py

wheel: $(ENV) ## build the wheel, into dist
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

try: wheel ## install the wheel in a fresh environment and run the README's kernel there: alone, and with what TESTS=test needs
	$(PYTHON) -m venv --clear build/try
	build/try/bin/python -m pip install --quiet dist/*.whl
	build/try/bin/python -I .ci/try_wheel.py
	build/try/bin/python -m pip install --quiet "$$(ls dist/*.whl)[$(TESTS)]"
	build/try/bin/python -I .ci/try_wheel.py

release: $(ENV) ## gather the changelog, set VERSION=x.y.z, build the wheel and say what to do next
	$(BIN)/python .ci/release.py "$(VERSION)"

clean: ## remove the environment, caches and build outputs
	rm -rf $(VENV) build build_output dist src/*.egg-info .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(ENV): pyproject.toml
	@echo "setting up $(VENV): a minute or two, once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet -e '.[$(TESTS),check]'
	touch $@
