# Targets call scripts; what they do is written there.

PYTHON ?= python3
BIN := .venv/bin

# Packages are installed without bytecode; each process would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help sbom release demo demo-polyglot test faults hostile lint format protos skew statements release-protos conformance report-page golden bench docs sdk-docs clean base dev stubs-tools adapters demo-model docs-site

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: base ## evaluate example systems (Python, and Node where it is) and controls, and show the tables
	@$(BIN)/python scripts/demo.py

demo-model: base ## real compressors and cuts of their length, read by a small real model (127 MB, once); N=40 for more rows
	@$(BIN)/python scripts/demo_model.py $(if $(N),-n $(N)) $(if $(PAGE),--page)

demo-polyglot: base ## the same with Go and Rust, built first: four languages on one Pareto front
	@$(BIN)/python scripts/demo.py --polyglot

test: dev stubs-tools ## run every test but the long ones of `make faults`, and name what was skipped
	@echo "left out: the tests marked faults, which make faults runs"
	@$(BIN)/python -m pytest -rs --costs -n auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder

faults: dev ## kill, stop, cut off, fill, damage and confuse everything, then make skew; SEED=123 repeats a run
	@$(BIN)/python scripts/faults.py
	@$(MAKE) --no-print-directory skew

hostile: dev ## the whole hostile corpus through every step of the event loop; PART=1/20 for a fair sample
	@$(BIN)/python scripts/hostile.py --jobs 2 $(if $(PART),--part $(PART))

skew: dev ## frozen SDKs with this daemon, and the SDKs of this tree with frozen daemons
	@$(BIN)/python -m pytest -m "" -rs --costs tests/skew

lint: dev stubs-tools ## check format, types, contract, stubs and docs
	@$(BIN)/python scripts/lint.py

format: dev ## format the Python code and web/, and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(BIN)/python scripts/web_format.py

protos: stubs-tools ## regenerate the Python stubs from protos/
	@.venv-protos/bin/python scripts/gen_protos.py

statements: dev ## regenerate the SQL of storage/ from its tables and statements
	@$(BIN)/python scripts/gen_statements.py

sbom: base ## write dist/sbom.cdx.json, the bill of materials that goes with a release
	@$(BIN)/python scripts/sbom.py dist/sbom.cdx.json

release-protos: ## record protos/ as the released contract that `make lint` compares with
	@$(PYTHON) scripts/buf.py build protos --exclude-source-info -o protos/released.binpb

conformance: base ## check every SDK whose toolchain is here against the contract
	@$(BIN)/python scripts/conformance.py

report-page: dev ## rebuild the page of the HTML report from web/report
	@$(BIN)/python scripts/report_page.py

golden: dev ## rewrite the golden files and the output shown in the README; review the diff
	@CBENCH_GOLDEN=1 $(BIN)/python -m pytest tests/reports tests/cli tests/test_readme.py

bench: dev ## measure the daemon; writes numbers, asserts nothing
	@$(BIN)/python scripts/bench.py

docs: dev ## rewrite the parts of docs/ that are generated from the code
	@$(BIN)/python scripts/gen_docs.py
	@$(BIN)/python scripts/gen_cli_docs.py

docs-site: ## build the docs as a site, in site/
	@$(PYTHON) scripts/setup_venv.py docs
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet
	@echo "site/index.html: open it in any browser; it needs no network"

sdk-docs: base ## rewrite API.md of every SDK with its language's own tool; wants them built
	@$(BIN)/python scripts/sdk_surface.py

clean: ## remove everything the targets above have made
	@rm -rf .venv .venv-protos .venv-release .venv-docs .venv-inspect .demo site node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .venv-adapters .venv-ray .venv-deploy
	@find . -name __pycache__ -prune -exec rm -rf {} + -o -name '*.egg-info' -prune -exec rm -rf {} +

release: base ## build every package, check it, and use each from an empty environment
	@$(PYTHON) scripts/setup_venv.py release
	@$(BIN)/python scripts/release.py $(ONLY)

base:
	@$(PYTHON) scripts/setup_venv.py base

dev:
	@$(PYTHON) scripts/setup_venv.py dev

stubs-tools:
	@$(PYTHON) scripts/setup_venv.py protos

adapters: ## the environment with the libraries that docs/adapters.md is tried against
	@$(PYTHON) scripts/setup_venv.py adapters
