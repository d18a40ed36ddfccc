# `make demo` and `make test` set up everything they need; see scripts/setup.sh.
BIN := .venv/bin
export HARBOR_TELEMETRY := 0
export LITELLM_LOCAL_MODEL_COST_MAP := True

.PHONY: help demo test bench lint setup setup-dev clean

help:
	@echo "make demo   two arms as real trials, their evidence, one offline report (no key, no Docker)"
	@echo "make test   the test suite"
	@echo "make lint   ruff, mypy strict, import contracts"
	@echo "make bench  the speed and calibration figures, measured here"
	@echo "make clean  remove what the above made"

setup:
	@sh scripts/setup.sh run

setup-dev:
	@sh scripts/setup.sh dev

demo: setup
	@$(BIN)/akm-harbor demo

test: setup-dev
	@$(BIN)/akm-harbor toolchain build --control-only
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

bench: setup-dev
	@for script in tests/bench/bench_*.py; do $(BIN)/python $$script || exit 1; done

lint: setup-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

clean:
	rm -rf .venv build dist out jobs .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
