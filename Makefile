# `make run` and `make test` are all a newcomer needs: both set up .venv the first time, and only then.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup run test test-all lint types check check-gpu bench docs dist clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "itc needs Python 3.11 or newer, found " + sys.version)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[torch,train,atari,play,dev]'
	@touch $(READY)

run: $(READY)
	$(BIN)/itc train minatar/breakout/quick --watch
	$(BIN)/itc evaluate runs/minatar-breakout-quick-0
	$(BIN)/itc accuracy runs/minatar-breakout-quick-0 --transitions 2000
	$(BIN)/itc hallucinate runs/minatar-breakout-quick-0 --windows 100
	$(BIN)/itc report runs/minatar-breakout-quick-0 -o runs/report.html

# Workers take tests from each other's end, so that a module, and what it compiles, mostly stays in one.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

test: $(READY)
	$(PYTEST) -m 'not slow'

# Slow tests compute more than they compile, so theirs are the programs users run. The times told last are of both.
test-all: $(READY)
	@rm -f .cache/times.json
	$(PYTEST) -m 'not slow' --add-times=.cache/times.json; quick=$$?; \
	XLA_FLAGS= $(PYTEST) -m slow --add-times=.cache/times.json && exit $$quick

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/ty check --python .venv

check: lint types test

# Compiles the paper's presets for a GPU, which need not be there, in a second environment of 5.6 GB; takes about twenty minutes.
GPU_BIN := .venv-gpu/bin
GPU_READY := .venv-gpu/.ready

$(GPU_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-gpu
	$(GPU_BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[gpu-bench]'
	@touch $(GPU_READY)

check-gpu: $(GPU_READY)
	$(GPU_BIN)/itc bench gpu --json results/bench_gpu.json
	$(GPU_BIN)/itc bench gpu --devices 8 --json results/bench_gpu_devices.json

bench: $(READY)
	$(BIN)/itc bench decode --json results/bench_decode.json

docs: $(READY)
	$(BIN)/python docs/build_site.py

dist: $(READY)
	$(BIN)/python -m hatchling build --directory dist

clean:
	rm -rf .venv .venv-gpu .cache .pytest_cache .ruff_cache .hypothesis build dist
