# The commands of every day. The build itself is CMake's; see CMakePresets.json.

PRESET ?= dev
SHELL := /bin/bash

help:
	@echo 'make setup   install the packages that tests, benchmarks and tools need (apt)'
	@echo 'make test    install what is missing, build, run all tests (PRESET=asan, tsan ...; ARGS=...)'
	@echo 'make check   what has changed, built, and the quick tests: for the edit loop'
	@echo 'make bench   install what is missing, build, run the benchmarks quickly (ARGS=...)'
	@echo 'make amalgamation  the loop as one source, below C or libev: build/amalgamation'
	@echo 'make perl-package  the module for Perl, as .deb and .tar.gz: build/perl-package'
	@echo 'make compat-package  spate-run and the drop-in libraries, as .deb: build/compat-package'
	@echo 'make tidy    check style and layers'
	@echo 'make clean   remove build/'

setup:
	tools/setup all

test:
	tools/setup test programs
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET)
	@ctest --preset $(PRESET) $(ARGS) | tee build/test.log; status=$${PIPESTATUS[0]}; \
	  grep -E '^[0-9]+% tests passed' build/test.log; exit $$status

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

compat-package:
	tools/compat_package.py build/compat-package

tidy:
	tools/tidy.py
	tools/check_layers.py

clean:
	rm -rf build

.PHONY: help setup test check bench amalgamation perl-package compat-package tidy clean
