# The commands of every day. The build itself is CMake's; see CMakePresets.json.

PRESET ?= dev

help:
	@echo 'make setup   install the packages that tests, benchmarks and tools need (apt)'
	@echo 'make test    install what is missing, build, run all tests (PRESET=asan, tsan, ...)'
	@echo 'make bench   install what is missing, build, run the benchmarks quickly (ARGS=...)'
	@echo 'make tidy    check style and layers'
	@echo 'make clean   remove build/'

setup:
	tools/setup all

test:
	tools/setup test programs
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET)
	ctest --preset $(PRESET)

bench:
	tools/setup bench
	bench/run --quick $(ARGS)

tidy:
	tools/tidy.py
	tools/check_layers.py

clean:
	rm -rf build

.PHONY: help setup test bench tidy clean
