#!/usr/bin/env python3
"""Compiles each public header by itself.   tools/check_headers.py [--compiler NAME] [--root DIR]

With and without exceptions and run-time type information, with warnings as errors. Prints what the
compiler says about each header that does not compile.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys

FLAGS = ["-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
         "-Wconversion", "-Wno-sign-conversion", "-Wnon-virtual-dtor", "-Wold-style-cast",
         "-Woverloaded-virtual", "-Werror"]
MODES = {"with exceptions and RTTI": [], "without": ["-fno-exceptions", "-fno-rtti"]}


def public_headers(include):
    for directory, _, names in sorted(os.walk(include)):
        for name in sorted(names):
            if name.endswith(".h"):
                yield os.path.relpath(os.path.join(directory, name), include)


def compile_alone(compiler, include, header, flags):
    """The compiler's complaints; empty when there are none. Twice, as it must bear that too."""
    run = subprocess.run(
        [compiler, *FLAGS, *flags, "-I", include, "-x", "c++", "-"],
        input=f"#include <{header}>\n#include <{header}>\nint main() {{}}\n",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "" if run.returncode == 0 else run.stdout or f"exit code {run.returncode}\n"


def check(compiler, include):
    """(number of headers, problems)"""
    headers = list(public_headers(include))
    work = [(header, mode) for header in headers for mode in MODES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(
            lambda item: compile_alone(compiler, include, item[0], MODES[item[1]]), work))
    return len(headers), [f"{header}, {mode}:\n{said}"
                          for (header, mode), said in zip(work, results) if said]


def main(arguments):
    parser = argparse.ArgumentParser(description="Compiles each public header by itself.")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    options = parser.parse_args(arguments)
    if not shutil.which(options.compiler):
        parser.error(f"there is no compiler {options.compiler}")
    include = os.path.join(os.path.abspath(options.root), "include")
    if not os.path.isdir(include):
        parser.error(f"there is no directory {include}")
    count, problems = check(options.compiler, include)
    print("".join(problems), end="")
    print(f"headers: {count} headers, {len(problems)} problem{'s' if len(problems) != 1 else ''}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
