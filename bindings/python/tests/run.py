#!/usr/bin/env python3
"""Runs one file of tests.   run.py FILE PACKAGE [ARGUMENT OF UNITTEST]...

PACKAGE is the directory where the package was built. Exits with 77 if it was not built, or if the
file raises unittest.SkipTest at import.
"""

import importlib
import pathlib
import sys
import unittest


def main():
    file, package = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    if not list(package.glob("spate/_core.*")):
        print("the package for Python was not built: its headers are missing")
        return 77
    sys.path[:0] = [str(package), str(file.parent)]
    try:
        importlib.import_module(file.stem)
    except unittest.SkipTest as reason:
        print(reason)
        return 77
    program = unittest.main(module=file.stem, argv=[file.name] + sys.argv[3:], exit=False,
                            verbosity=1, warnings="default")
    result = program.result
    if result.wasSuccessful() and result.testsRun == len(result.skipped):
        return 77
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
