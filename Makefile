# make demo: set everything up, train the digits example.   make test: the same set-up, then lint and tests.
# make examples: all examples.   make docs: the documentation as a site.   make wheel: a wheel that needs no compiler.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON := .venv/bin/python
EXAMPLES := $(wildcard examples/*.py)
ROOMS := tracer ir passes backends shaders_glsl
# One process a core: drivers compile shaders on one core at a time.
IN_PARALLEL := --numprocesses auto --maxprocesses 8 --dist worksteal
# Tests and tools start some hundred processes: without bytecode on disk each compiles all modules anew, for 0.7 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo examples test test-newer-mesa test-long fuzz bench accuracy docs lint wheel test-wheel clean

demo: .venv/package.stamp
	@$(PYTHON) examples/digits.py

# Minutes. Each prints its figures and leaves pictures in out/; with QUICK=--quick all are small.
examples: .venv/package.stamp
	@for path in $(EXAMPLES); do echo "== $$path"; $(PYTHON) $$path $(QUICK); done

# The Khronos validation layer reports every wrong use of Vulkan as a failed test. With GALLIVM_PERF=nopt Mesa's CPU
# drivers leave out LLVM's optimisations, and compile a shader in half the time, which is most of what the tests take.
# Some run without both, as users do: the examples and those of README.md in this way alone. Those of single functions
# run once, with LLVM's optimisations, by which a NaN or a sign might be lost.
OF_FUNCTIONS := tests/shaders_glsl tests/lavax/numpy/test_special_values.py
AS_USERS_DO := tests/test_readme.py tests/examples
test: .venv/package.stamp lint
	@$(PYTHON) -m pytest $(IN_PARALLEL) $(AS_USERS_DO) tests/backends/vulkan/run/test_program.py
	@LAVAX_VALIDATE=1 $(PYTHON) -m pytest $(IN_PARALLEL) $(OF_FUNCTIONS)
	@LAVAX_VALIDATE=1 GALLIVM_PERF=nopt $(PYTHON) -m pytest $(IN_PARALLEL) \
		$(addprefix --ignore ,$(AS_USERS_DO) $(OF_FUNCTIONS))

# The tests on the Mesa of Debian's backports, which is unpacked beside the installed one.
test-newer-mesa: .venv/package.stamp
	@settings=$$(tools/newer_mesa build/mesa); \
	env $$settings LAVAX_VALIDATE=1 GALLIVM_PERF=nopt $(PYTHON) -m pytest $(IN_PARALLEL)

test-long: .venv/package.stamp
	@$(PYTHON) -m pytest $(IN_PARALLEL) -m long

# Random programs, for SECONDS; goes on where it stopped. Differences are made small and written to out/fuzz.
SECONDS := 600
fuzz: .venv/package.stamp
	@GALLIVM_PERF=nopt $(PYTHON) -m tests.fuzz --seconds $(SECONDS)

bench: .venv/package.stamp
	@$(PYTHON) -m benchmarks

# The largest errors of the elementwise functions on this device, as they stand in docs/accuracy.md.
accuracy: .venv/package.stamp
	@$(PYTHON) -m benchmarks.accuracy
	@$(PYTHON) -m benchmarks.double_accuracy

# The documentation as a site: open out/site/index.html.
docs: .venv/package.stamp
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --quiet --strict
	@echo "Open out/site/index.html."

# setup.cfg maps the top-level folders into lavax.*, which a type checker cannot follow, so mypy sees the
# package as a tree of links. Its messages are turned back into the names of the real files.
lint: .venv/package.stamp
	@$(PYTHON) -m ruff check .
	@rm -rf build/typing && mkdir -p build/typing/lavax
	@ln -s $(CURDIR)/lavax/* $(addprefix $(CURDIR)/,$(ROOMS)) build/typing/lavax/
	@cd build/typing && $(CURDIR)/$(PYTHON) -m mypy --config-file $(CURDIR)/setup.cfg \
		--num-workers auto --cache-dir $(CURDIR)/.mypy_cache --package lavax | sed -E 's#^lavax/($(subst $() ,|,$(ROOMS)))/#\1/#'

# A wheel that installs without a compiler: glslang is inside. It is left in dist/.
wheel: .venv/package.stamp
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[wheel]'
	@$(PYTHON) -m tools.build_wheel --out dist

# The wheel is installed where there is no compiler, and trains a network there. With root and debootstrap also in a
# Debian that holds nothing but Python, the Vulkan loader and a driver.
test-wheel: wheel
	@$(PYTHON) -m pytest -m long tests/tools/test_wheel.py -rs

clean:
	rm -rf .venv build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
	find backends -name '*.so' -delete

.venv/system.stamp: tools/install_system_packages tools/find_python
	@tools/install_system_packages
	@mkdir -p .venv
	@touch $@

.venv/package.stamp: .venv/system.stamp setup.cfg setup.py pyproject.toml \
		$(wildcard backends/vulkan/glslang/*.py backends/vulkan/glslang/*.cpp)
	@python=$$(tools/find_python) || { echo "lavax needs Python 3.11 or newer, with venv and headers." >&2; exit 1; }; \
	$(PYTHON) -c 'import pip' 2>/dev/null || "$$python" -m venv .venv
	@echo "Installing lavax and what it needs into .venv"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable '.[test,examples,docs]'
	@$(PYTHON) -c 'from lavax.backends.vulkan import glslang; glslang.available() or print("The glslang binding was" \
		" not built (see setup.py build_ext); shaders are compiled by a program, which takes longer.")'
	@touch $@
