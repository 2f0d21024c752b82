"""Functions of all suites: sources, commands, and the comparison of two libraries.

A suite is a module of this directory with

    NAME, TITLE     its name on the command line, and one line about it
    SOURCES         Debian source packages that it is built from
    PIP, GO         packages of Python and Go, if it needs any
    WHEELS          packages of Python whose wheels are only unpacked
    PROGRAMS        commands that it needs
    VARIANTS        the names of further runs, if there are any
    run(world)      runs it; returns a Report, or raises Missing

A test counts as a difference if it passes twice on the original and fails twice on the drop-in.
"""

import concurrent.futures
import dataclasses
import glob
import os
import re
import shutil
import subprocess

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
JOBS = 2


class Missing(Exception):
    """A requirement of the suite is missing: it is skipped."""


@dataclasses.dataclass
class Report:
    summary: str
    differences: list  # Texts; empty if the drop-in passes everything that the original passes.


@dataclasses.dataclass
class World:
    """The suites' directory, and the libraries that they run on."""
    project: str
    build: str  # A build tree of the project, as build/dev.
    place: str  # build/suites
    variants: list = dataclasses.field(default_factory=list)  # The variants of the current suite.

    @property
    def libraries(self):
        return os.path.join(self.build, "compat", "lib")

    def path(self, *names):
        path = os.path.join(self.place, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def source(self, package):
        """Returns the unpacked source package: a directory with its name."""
        if not os.path.isdir(self.path("src")):
            raise Missing(f"the source of {package}")
        for name in sorted(os.listdir(self.path("src"))):
            full = self.path("src", name)
            if os.path.isdir(full) and re.fullmatch(re.escape(package) + r"-\d.*", name):
                return full
        raise Missing(f"the source of {package}")

    def wheel(self, package):
        """The unpacked wheel."""
        found = sorted(glob.glob(self.path("wheels", f"{package}-*", "")))
        if not found:
            raise Missing(f"the wheel of {package}")
        return found[-1]

    def go_environment(self):
        return dict(os.environ, GOBIN=self.path("bin"), GOCACHE=self.path("go-cache"),
                    GOMODCACHE=self.path("go-modules"), GOFLAGS="-modcacherw")

    def environment(self, drop_in=False, **more):
        found = {name: value for name, value in os.environ.items()
                 if not re.match(r"LD_|EVENT_|LIBEV_", name)}
        found["PATH"] = os.pathsep.join([self.path("bin"), self.path("pip", "bin"),
                                         found.get("PATH", "")])
        found["PYTHONPATH"] = self.path("pip")
        if drop_in:
            found["LD_LIBRARY_PATH"] = self.libraries
        return found | more


def call(words, seconds=600, **more):
    """Returns (exit status or None, output)."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, text=True,
                              errors="replace", check=False, **more)
    except subprocess.TimeoutExpired:
        return None, f"did not end in {seconds} s"
    return done.returncode, done.stdout


def must(words, seconds=600, **more):
    status, output = call(words, seconds, **more)
    if status != 0:
        raise Missing(f"{' '.join(words[:3])} ... ended with {status}:\n{output[-1500:]}")
    return output


def path_of(program):
    need(program)
    return shutil.which(program)


def need(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        raise Missing("the commands " + ", ".join(missing))


def edited(path, target, places):
    """Writes a copy with each (pattern, replacement) applied at least once."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    for pattern, replacement in places:
        text, count = re.subn(pattern, lambda _, new=replacement: new, text)
        if count == 0:
            raise Missing(f"{path}: nothing matches {pattern}")
    with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def each(names, run, jobs=JOBS):
    """Returns [run(name)] of all names, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run, names))


def compare(names, run, jobs=JOBS):
    """Runs each test on both; run(name, drop_in) returns PASSED, FAILED or SKIPPED."""
    def run_all(drop_in, wanted):
        return dict(zip(wanted, each(wanted, lambda name: run(name, drop_in), jobs)))
    return compare_runs(names, run_all)


def compare_runs(names, run_all, sides=("original", "drop-in")):
    """Compares {name: outcome} that run_all(drop_in, names) returns; a test without one failed."""
    theirs = run_all(False, names)
    if PASSED not in theirs.values():
        raise Missing(f"an original that passes: none of {len(names)} tests did")
    ours = run_all(True, names)

    def passes(outcomes, name):
        return outcomes.get(name) == PASSED

    doubtful = [name for name in names
                if passes(theirs, name) and ours.get(name, FAILED) == FAILED]
    again = run_all(True, doubtful) if doubtful else {}
    failing = [name for name in doubtful if again.get(name, FAILED) == FAILED]
    confirmed = run_all(False, failing) if failing else {}
    behind = [name for name in failing if passes(confirmed, name)]
    flaky = [name for name in doubtful if name not in behind]
    count = {which: sum(1 for outcome in outcomes.values() if outcome == PASSED)
             for which, outcomes in zip(sides, (theirs, ours))}
    passed = ", ".join(f"the {which} passes {number}" for which, number in count.items())
    summary = f"{len(names)} tests: {passed}, {len(behind)} differ"
    if flaky:
        summary += f"; {len(flaky)} differ once only: " + ", ".join(flaky[:8])
    return Report(summary, behind)
