#!/usr/bin/env python3
"""Holds the docs to their tests.   tools/doc_tests.py [root of the tree]

A table in docs/ whose last column is headed "test" makes promises, one a row. Each row has to name
a test, `Suite.Name`, that exists, and no test may be named twice.
"""

import re
import sys

from source_tree import blank, files, finish, is_test, read, root_from

TEST = re.compile(r"\bTEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
NAME = re.compile(r"`(\w+\.\w+)`")


def tests_of(root, names):
    """Every test of GoogleTest in the tree, as Suite.Name."""
    found = set()
    for name in names:
        if name.endswith(".cc") and is_test(name):
            text = read(root, name)
            if text is not None:
                found.update(".".join(match) for match in TEST.findall(blank(text)))
    return found


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text):
    """(line number, last cell) of each row in each table whose last column is headed "test"."""
    within = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("|"):
            within = None
        elif within is None:
            within = cells(line)[-1] == "test"
        elif within and not re.fullmatch(r"[|\s:-]+", line):
            yield number, cells(line)[-1]


def check_page(text, tests):
    seen = set()
    for number, cell in rows(text):
        named = NAME.findall(cell)
        if not named:
            yield number, "a row without a test"
        for test in named:
            if test not in tests:
                yield number, f"there is no test {test}"
            if test in seen:
                yield number, f"{test} stands for two rows"
            seen.add(test)


def check_tree(root):
    names = files(root)
    tests = tests_of(root, names)
    pages = [name for name in names if name.startswith("docs/") and name.endswith(".md")]
    problems = [f"{name}:{line}: {message}" for name in pages
                for line, message in check_page(read(root, name) or "", tests)]
    return problems, len(pages)


def main(arguments):
    return finish("doc tests", *check_tree(root_from(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
