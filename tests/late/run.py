#!/usr/bin/env python3
"""Finds tests that depend on time: their system calls begin late or are interrupted now and then.

    run.py [--build DIRECTORY] [--seed N] [--jobs N]

First each program of ../dropin/differential runs on the original library, with and without delays:
its output must be the same. Then ctest runs the tests with delays. Left out are the tests that
compile something or read much, which would take hours, and those that are compared above. The
tests must be built (tools/run_tests). Exits with 1 if a test depends on time.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CASES = HERE.parent / "dropin" / "differential"
SLOW = ("differential|dropin.program|package|patterns|bindings|python|perl|lint|tools|docs|compile"
        "|ticker")
SECONDS = 200


def compile_library(build):
    library = build / "liblate.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "late.c", "-ldl"],
                   check=True)
    return library


def arguments_of(source):
    """Returns the arguments for a few seeds if the program has seeds."""
    words = re.search(r"^// differential: .*--seeds", source.read_text(encoding="utf-8"),
                      re.MULTILINE)
    return ["--seed", "1", "--count", "10"] if words else []


def output_of(command, environment):
    try:
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=SECONDS, check=False).stdout
    except subprocess.TimeoutExpired:
        return "did not end"


def depends_on_time(source, build, environment):
    program = build / "tests" / "dropin" / "differential" / source.stem
    if "arguments" in source.stem or not program.exists():
        return False
    command = [program, *arguments_of(source)]
    return output_of(command, environment) != output_of(command, os.environ)


def differing_cases(build, environment, jobs):
    sources = sorted([*CASES.glob("*.c"), *CASES.glob("*.cc")])
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda source: depends_on_time(source, build, environment), sources)
    return [source.stem for source, differs in zip(sources, results) if differs]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=3 * os.cpu_count())
    options = parser.parse_args()
    environment = dict(os.environ, LATE_SEED=options.seed,
                       LD_PRELOAD=str(compile_library(options.build)))
    differing = differing_cases(options.build, environment, options.jobs)
    print(f"late: {len(differing)} cases print something else: {', '.join(differing)}", flush=True)
    status = subprocess.run(["ctest", "-j", str(options.jobs), "-E", SLOW, "-LE", "swarms",
                             "--output-on-failure", "--progress"], cwd=options.build,
                            env=environment, check=False).returncode
    return 1 if differing or status else 0


if __name__ == "__main__":
    sys.exit(main())
