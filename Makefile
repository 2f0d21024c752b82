# The commands of every day. The build itself is CMake's; see CMakePresets.json.

PRESET ?= dev
SHELL := /bin/bash

help:
	@echo 'make setup   install the packages that tests, benchmarks and tools need (apt)'
	@echo 'make test    install the required packages, build, run the tests (PRESET=asan ...; ARGS=...)'
	@echo 'make test-all  also the tests that need servers and programs, in a separate Debian root'
	@echo 'make check   build what changed and run the quick tests: for the edit loop'
	@echo 'make bench   install the required packages, build, run the benchmarks quickly (ARGS=...)'
	@echo 'make amalgamation  the loop as one source, below C or libev: build/amalgamation'
	@echo 'make perl-package  the module for Perl, as .deb and .tar.gz: build/perl-package'
	@echo 'make python-package  the package for Python, as wheels and .tar.gz: build/python-package'
	@echo 'make compat-package  spate-run and the drop-in libraries, as .deb: build/compat-package'
	@echo 'make deb     the Debian packages, built and tested in a separate Debian root: build/deb'
	@echo 'make docs    the guide and the reference as HTML: build/docs/html/index.html'
	@echo 'make tidy    check style, layers and language'
	@echo 'make suites  fetch and run the test suites of other projects (ARGS=NAME ...)'
	@echo 'make clean   remove build/'

setup:
	tools/setup all

test:
	tools/setup test
	@tools/run_tests --preset $(PRESET) $(ARGS)

# In a separate root, because Debian starts many of these packages as services.
test-all:
	tools/fresh sh -c 'make test; tools/setup all && tools/run_tests --rest'

# Whole executables, as a process for each test takes longer than most tests do.
QUICK = unit conformance c stream fault regression
check:
	@mkdir -p build
	cmake --preset $(PRESET) >build/check.log
	cmake --build --preset $(PRESET) --target $(QUICK:%=%_tests)
	@for group in $(QUICK); do \
	  build/$(PRESET)/tests/$${group}_tests --gtest_brief=1 || exit 1; \
	done
	tools/tidy.py
	tools/check_layers.py

bench:
	tools/setup bench
	bench/run --quick $(ARGS)

amalgamation:
	tools/amalgamate.py build/amalgamation
	tools/amalgamate.py --libev build/amalgamation/libev

perl-package:
	tools/perl_package.py build/perl-package

python-package:
	tools/python_package.py build/python-package $(ARGS)

compat-package:
	tools/compat_package.py build/compat-package

deb:
	tools/deb $(ARGS)

docs:
	tools/setup docs
	tools/docs build/docs

tidy:
	tools/tidy.py
	tools/check_layers.py
	tools/prose.py

# The test suites of other projects; fetches what they need into build/suites.
suites:
	tools/suites $(ARGS)

clean:
	rm -rf build

.PHONY: help setup test test-all check bench amalgamation perl-package python-package \
        compat-package deb docs suites tidy clean
