#!/usr/bin/env python3
"""Compiles each public header by itself.   tools/check_headers.py [--compiler NAME] [--root DIR]
                                                                [--together] [--lenient]

Compiles without exceptions and run-time type information; with them all headers in one, since a
missing include fails either way. Warnings are errors unless --lenient is given. Prints the
compiler's errors for each header that does not compile.

With --together all headers are in one without them, too: enough for a second compiler, since a
missing include fails with either.

BASE is precompiled for the headers that include it. They see all of it anyway, so the precompiled
file hides no missing include.

A header whose comment has a line `// Needs FILE` is left out where the compiler has no such file.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

FLAGS = ["-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
         "-Wconversion", "-Wno-sign-conversion", "-Wnon-virtual-dtor", "-Wold-style-cast",
         "-Woverloaded-virtual"]
STRICT = ["-Werror"]
WITHOUT = ["-fno-exceptions", "-fno-rtti"]


BASE = "spate/loop.h"

NEEDS = re.compile(r"^// Needs (\S+\.h(?:pp)?)\b", re.MULTILINE)
INCLUDE = re.compile(r"^#include [<\"]([^>\"]+)", re.MULTILINE)


def is_usable(compiler, path):
    """Returns whether the compiler has the files that a header needs."""
    with open(path, encoding="utf-8") as header:
        needs = NEEDS.findall(header.read())
    text = "".join(f"#if !__has_include(<{name}>)\n#error\n#endif\n" for name in needs)
    return not needs or subprocess.run([compiler, "-E", "-x", "c++", "-"], input=text, text=True,
                                       capture_output=True, check=False).returncode == 0


def public_headers(include):
    for directory, _, names in sorted(os.walk(include)):
        for name in sorted(names):
            if name.endswith(".h"):
                yield os.path.relpath(os.path.join(directory, name), include)


def includers(include, headers, base):
    """Returns the headers that include base, themselves or through other headers."""
    direct = {}
    for header in headers:
        with open(os.path.join(include, header), encoding="utf-8") as text:
            direct[header] = set(INCLUDE.findall(text.read()))
    found = {base}
    while more := {header for header in direct if direct[header] & found} - found:
        found |= more
    return found - {base}


def precompiled(compiler, include, base, flags, directory):
    """Returns the flags that use a precompiled base, which is written to the directory, or none if
    the base does not compile: each header then gives the error."""
    stub = os.path.join(directory, "base.h")
    with open(stub, "w", encoding="utf-8") as text:
        text.write(f"#include <{base}>\n")
    flags = [flag for flag in [*FLAGS, *flags] if flag != "-fsyntax-only"]
    run = subprocess.run([compiler, *flags, "-I", include, "-x", "c++-header", stub, "-o",
                          stub + ".gch"], capture_output=True, check=False)
    return ["-include", stub, "-Winvalid-pch"] if run.returncode == 0 else []


def compiles(compiler, include, headers, flags):
    """Returns the compiler's errors, or an empty text. Includes each header twice, which must
    work too."""
    text = "".join(f"#include <{header}>\n" for header in headers)
    run = subprocess.run(
        [compiler, *FLAGS, *flags, "-I", include, "-x", "c++", "-"],
        input=text + text + "int main() {}\n",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "" if run.returncode == 0 else run.stdout or f"exit code {run.returncode}\n"


def alone(compiler, include, headers, more, directory):
    """Returns the work of compiling each header by itself."""
    based = includers(include, headers, BASE)
    base = precompiled(compiler, include, BASE, [*more, *WITHOUT], directory) if based else []
    return [(f"{header}, without", [header], [*WITHOUT, *(base if header in based else [])])
            for header in headers]


def check(compiler, include, together=False, more=()):
    """(number of headers, problems)"""
    headers = [header for header in public_headers(include)
               if is_usable(compiler, os.path.join(include, header))]
    work = [("all of them, with exceptions and RTTI", headers, [])]
    with (tempfile.TemporaryDirectory() as directory,
          concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool):
        if together:
            work.append(("all of them, without", headers, WITHOUT))
        else:
            work += alone(compiler, include, headers, more, directory)
        results = list(pool.map(
            lambda item: compiles(compiler, include, item[1], [*more, *item[2]]), work))
    return len(headers), [f"{what}:\n{said}" for (what, _, _), said in zip(work, results) if said]


def main(arguments):
    parser = argparse.ArgumentParser(description="Compiles each public header by itself.")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--lenient", dest="more", action="store_const", const=[], default=STRICT)
    options = parser.parse_args(arguments)
    if not shutil.which(options.compiler):
        parser.error(f"there is no compiler {options.compiler}")
    include = os.path.join(os.path.abspath(options.root), "include")
    if not os.path.isdir(include):
        parser.error(f"there is no directory {include}")
    count, problems = check(options.compiler, include, options.together, options.more)
    print("".join(problems), end="")
    print(f"headers: {count} headers, {len(problems)} problem{'s' if len(problems) != 1 else ''}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
