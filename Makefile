# Everything this project can do. Type `make` for the list.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup book pdf epub page test mutants portable torture labs slides notebooks goldens captures lint bench colab clean

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
STAMP := $(VENV)/.installed

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  \033[1mmake %-10s\033[0m %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## Make the virtual environment .venv (does nothing when it is up to date)

$(STAMP): requirements.txt constraints.txt pyproject.toml evidence/pyproject.toml
	@bash tools/setup.sh $(VENV)
	@touch $@

SOLUTIONS ?= yes
WHATIF ?=

book: setup ## The HTML book, every page run; SOLUTIONS=no leaves them out, WHATIF="H100/memory/HBM/bandwidth=1.4" changes facts
	@$(PYTHON) tools/book.py $(if $(WHATIF),whatif "$(WHATIF)",html --solutions $(SOLUTIONS))

pdf: setup ## Build the PDF book (needs xelatex); without solutions: make pdf SOLUTIONS=no
	@$(PYTHON) tools/book.py pdf --solutions $(SOLUTIONS)

epub: setup ## Build the book for e-readers, as EPUB; without solutions: make epub SOLUTIONS=no
	@$(PYTHON) tools/book.py epub --solutions $(SOLUTIONS)

page: setup ## Build one page quickly: make page P=roofline
	@$(PYTHON) tools/book.py page $(P)

# nbval runs each page in a fresh kernel and compares it with its committed outputs. The book that the browser opens is
# set from those, in _build/test/book; labs run once more, as for the web. `make book` runs all pages itself.
test: setup ## Run all tests: style and types, the library, the notebooks, the book in a browser
	@bash tools/ensure_tools.sh
	@$(PYTHON) tools/run_test_stages.py

mutants: setup ## Run in full what `make test` draws a few of: each fact of each page; goes on where it was stopped
	@$(if $(MLSYS_TIMES),,MLSYS_ALL=1) $(PYTHON) -m pytest -n auto --dist worksteal -m exhaustive --resume -qq -r "" --tb=short

portable: setup ## Run pages and numerical tests with the kernels of other CPUs, and print what differs
	@$(PYTHON) tools/portable.py

torture: setup ## Run the whole corpus of bad inputs, stop 50 sweeps roughly, fuzz, and try the laws at length
	$(PYTHON) tests/torture/torture_run.py
	$(PYTHON) tests/torture/torture_sweeps.py
	MLSYS_TIMES=20 $(PYTHON) -m pytest -q tests/torture tests/laws

labs: setup ## Open the labs in JupyterLab
	@$(BIN)/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/labs $(if $(filter 0,$(shell id -u)),--allow-root)

slides: setup ## Make slides of each chapter from its notebook, as HTML and, where Chromium is, as PDF
	@$(PYTHON) tools/slides.py

notebooks: setup ## Regenerate every .ipynb, with outputs, from its .md
	@$(PYTHON) tools/notebooks.py

goldens: setup ## Write the locked median errors anew, after estimates changed on purpose
	@$(PYTHON) tools/goldens.py

captures: setup ## Store what takes long to compute: captured networks of the catalogue, traffic of LRU caches
	@$(PYTHON) tools/captures.py
	@$(PYTHON) tools/lru_table.py

lint: setup ## Check style, types, import directions and pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTHON) tools/pagelint.py

bench: setup ## Time what should be fast, beside its peers, as ratios
	@$(PYTHON) benchmarks/run.py
	$(PYTHON) -m pytest benchmarks/test_redraw.py --benchmark-only -q

colab: setup ## Run the labs with Google Colab's libraries, on its Python 3.13 where installed; says on which
	@$(PYTHON) tools/colab_check.py

clean: ## Remove what the targets made, the virtual environment included
	rm -rf _build $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache *.egg-info
