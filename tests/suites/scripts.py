"""Suites that are run by a test of the project, once their sources are there.

Such a test finds differences itself, and exits with 77 if something is missing.
"""

import re
import sys

import suite

SKIPPED = 77


def run_script(world, script, words, seconds, **variables):
    """Runs tests/<script>; its last lines are the summary."""
    status, output = suite.call([sys.executable, f"{world.project}/tests/{script}", *words],
                                seconds, env=world.environment(**variables))
    lines = [line for line in output.splitlines() if line.strip()]
    last = "; ".join(lines[-2:])
    if status == SKIPPED:
        raise suite.Missing(last)
    return status, last, output


def report(results):
    """Makes the Report of [(name, status, last lines, output)]."""
    summary = "; ".join(f"{name}: {last}" for name, _, last, _ in results)
    return suite.Report(re.sub(r"\s+", " ", summary),
                        [f"{name}: {output[-3000:]}" for name, status, _, output in results
                         if status != 0])


def built(world, target):
    """Builds a program of the project's tests if it is out of date. Returns its path."""
    suite.need("cmake", "ninja")
    suite.must(["cmake", "--build", world.build, "--target", target], 3600)
    return suite.must(["find", world.build, "-name", target, "-type", "f", "-perm",
                       "-u+x"]).splitlines()[0]
