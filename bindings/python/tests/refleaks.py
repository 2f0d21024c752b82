#!/usr/bin/env python3
"""Finds tests that leave references or memory behind.   python3-dbg refleaks.py [MODULE]...

Builds both packages with this Python, which must be a debug build, in build/refleaks. Each test of
the modules, or of all, then runs several times. A test is reported if each run but the first ones
adds references, or blocks of memory. Exits with 1 if there is one, or if a test fails.
"""

import gc
import importlib
import importlib.util
import linecache
import pathlib
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FOLDERS = (HERE, HERE.parent / "server/tests")
FIRST_RUNS = 4  # They fill caches.
RUNS = 5
# Modules that test other processes or packages, and tests that grow with asyncio's own loop, too.
LEFT_OUT = ("package_test", "server_package_test", "server_applications_test",
            "server_command_test", "random_transports_test",
            "test_subinterpreter_has_a_loop_of_its_own",  # CPython 3.11 keeps some objects.
            "test_connection_is_audited",  # Its audit hook stays.
            "test_sending_raises_the_audit_event_of_the_socket")


def load_builder(path):
    """Returns the build_backend.py at the path: there are two."""
    spec = importlib.util.spec_from_file_location(path.parent.name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_packages():
    """Returns the directories of the packages."""
    work = ROOT / "build/refleaks"
    load_builder(HERE.parent / "build_backend.py").build_package(work / "loop")
    server = load_builder(HERE.parent / "server/build_backend.py").build_package(work / "server")
    return [str(work / "loop"), str(server)]


def cases_of(suite):
    """Yields the test cases of a suite."""
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from cases_of(part)
        else:
            yield part


def totals():
    """Returns the numbers of references and of blocks, without those of caches."""
    re.purge()
    linecache.clearcache()
    sys._clear_type_cache()  # pylint: disable=protected-access
    for _ in range(3):
        gc.collect()
    return sys.gettotalrefcount(), sys.getallocatedblocks()


def growths(kind, name):
    """Returns the growth of each total in each of the last runs, or None if the test was skipped.
    Raises AssertionError if it failed."""
    references, blocks = [0] * RUNS, [0] * RUNS  # As long as they will be: they count, too.
    for number in range(-FIRST_RUNS, RUNS):
        before = totals()
        result = unittest.TestResult()
        unittest.TestSuite([kind(name)]).run(result)
        if result.skipped:
            return None
        if not result.wasSuccessful():
            raise AssertionError((result.errors + result.failures)[0][1])
        del result
        after = totals()
        if number >= 0:
            references[number] = after[0] - before[0]
            blocks[number] = after[1] - before[1]
    return references, blocks


def problem_of(case):
    """Returns the description of a failure or of a leak, or an empty text."""
    try:
        grown = growths(type(case), case.id().rpartition(".")[2])
    except AssertionError as error:
        return f"failed\n{error}"
    if grown is None or all(min(each) <= 0 for each in grown):
        return ""
    return f"references {grown[0]}, blocks {grown[1]}"


def modules():
    """Returns the names of all modules with tests."""
    names = [path.stem for folder in FOLDERS for path in sorted(folder.glob("*_test.py"))]
    return [name for name in names if name not in LEFT_OUT]


def main():
    if not hasattr(sys, "gettotalrefcount"):
        sys.exit("refleaks: this Python counts no references. Run a debug build: python3-dbg")
    sys.path[:0] = build_packages() + [str(folder) for folder in FOLDERS]
    run = problems = 0
    for name in sys.argv[1:] or modules():
        try:
            module = importlib.import_module(name)
        except unittest.SkipTest as reason:
            print(f"{name}: skipped: {reason}")
            continue
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        for case in list(cases_of(suite)):
            if case.id().rpartition(".")[2] in LEFT_OUT:
                continue
            run += 1
            if problem := problem_of(case):
                problems += 1
                print(f"{case.id()}: {problem}", flush=True)
    print(f"refleaks: {run} tests, {problems} problems")
    return 1 if problems or run == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
