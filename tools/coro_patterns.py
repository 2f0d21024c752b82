#!/usr/bin/env python3
"""Tabulates how compilers treat coroutines.   tools/coro_patterns.py [--write] DIRECTORY

Runs the programs coroutine_patterns_COMPILER_LEVEL in DIRECTORY, of tests/coro/compiler, and
compares the outcome of each pattern with the table in docs/guide/coroutine-compilers.md; --write
writes it there. Exits with 1 if they differ.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "guide",
                    "coroutine-compilers.md")
BEGIN = "<!-- Made by tools/coro_patterns.py -->\n"
END = "<!-- The end of it -->\n"
COMPILERS = {"gcc12": "g++ 12", "clang19": "clang 19"}
LEVELS = {"O0": "`-O0`", "O1": "`-O1`", "O2": "`-O2`", "O3": "`-O3`", "sanitized": "sanitized"}
RIGHT = "ok"


def outcomes_of(directory, build):
    """{pattern: outcome}, in order."""
    compiler, level = build
    program = os.path.join(directory, f"coroutine_patterns_{compiler}_{level}")
    done = subprocess.run([program, compiler], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    found = dict(re.findall(r"^(\w+) +([a-z ]+?)(?:;.*)?$", done.stdout, re.M))
    if not found:
        sys.exit(f"coro_patterns: {program} says nothing")
    return found


def cell(outcomes):
    """Returns the cell of one pattern with one compiler, from {level: outcome}."""
    kinds = dict.fromkeys(outcomes.values())
    if len(kinds) == 1:
        return next(iter(kinds))
    wrong = [kind for kind in kinds if kind != RIGHT]
    return "; ".join(f"{kind} with " + ", ".join(LEVELS[level] for level, outcome in
                                                 outcomes.items() if outcome == kind)
                     for kind in wrong)


def table(results):
    """Returns the table for {(compiler, level): {pattern: outcome}}."""
    names = list(next(iter(results.values())))
    lines, right = [], []
    for name in names:
        cells = [cell({level: results[compiler, level][name] for level in LEVELS})
                 for compiler in COMPILERS]
        if set(cells) == {RIGHT}:
            right.append(f"`{name}`")
        else:
            lines.append(f"| `{name}` | " + " | ".join(cells) + " |\n")
    return (f"| {len(lines)} of {len(names)} patterns | " + " | ".join(COMPILERS.values()) +
            " |\n|---|---|---|\n" + "".join(lines) +
            f"\nThe other {len(right)} are right in each: " + ", ".join(right) + ".\n")


def wrapped(text, columns=120):
    lines = []
    for line in text.split("\n"):
        while len(line) > columns and not line.startswith("|"):
            cut = line.rfind(" ", 0, columns + 1)
            lines.append(line[:cut])
            line = line[cut + 1:]
        lines.append(line)
    return "\n".join(lines)


def with_table(page, made):
    """The page with the table in its place."""
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:begin] + "\n" + made + "\n" + page[end:]


def main():
    parser = argparse.ArgumentParser(description="What compilers make of coroutines, as a table.")
    parser.add_argument("directory", help="where the programs are")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    arguments = parser.parse_args()
    builds = [(compiler, level) for compiler in COMPILERS for level in LEVELS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda build: outcomes_of(arguments.directory, build), builds)
    made = wrapped(table(dict(zip(builds, found))))
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    changed = with_table(page, made)
    if arguments.write:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(changed)
    elif changed != page:
        print(made + "coro_patterns: the page says something else; --write writes this")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
