#!/usr/bin/env python3
"""Shows what the tests are worth: makes one-line bugs on purpose, and says which test finds each.

    tools/mutants.py [--check] [--list] [--quick] [--sample N] [--seed S] [--jobs N] [NAME...]

Each file tests/mutants/<area>-<short-name>.mutant is a bug:

    # One line: of what class it is.
    file: src/net/buffer.cc
    tests: unit streams
    filter: Buffer*
    ---
    the original lines, which the file has exactly once
    ---
    the changed lines

`tests` are the labels of ctest whose tests should find it, the likeliest first. With `filter`,
those tests of theirs are tried first, and all of the labels only if it survived them: a filter of
GoogleTest, or an expression for ctest -R where it begins with a label and a point, or the label has
other tests only. A line `survives: reason` says that no test is meant to find it.

The checkout is never touched: each bug is put into a copy in build/mutants, with the tests' library
as a shared one, so that one file is compiled and one library linked. A run that hangs has found it.
Exits with 1 if a mutant survived that does not say so, or did not build.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from source_tree import files, read

DIRECTORY = "tests/mutants"
SUFFIX = ".mutant"
PLACES = ("src/", "include/", "compat/")
KEYS = {"file", "tests", "filter", "survives"}
# What a run may take: so many times what it takes without the bug, and so many seconds more.
SLOWER = 5
ATTEMPTS = 4  # At a run without a bug in which all tests pass that are believed.
PATIENCE = float(os.environ.get("SPATE_MUTANTS_PATIENCE", "30"))


class Mutant:
    """One bug. Raises ValueError, saying what is wrong with its text."""

    def __init__(self, name, text):
        self.name = name
        parts = re.split(r"^---\n", text, flags=re.M)
        if len(parts) != 3:
            raise ValueError("it needs two lines ---, and has %d" % (len(parts) - 1))
        head = [line for line in parts[0].split("\n") if line.strip()]
        if not head or not re.match(r"#\s*\w", head[0]):
            raise ValueError("the first line does not say of what class it is")
        fields = dict(self.field(line) for line in head if not line.startswith("#"))
        self.about = head[0].lstrip("# ")
        self.file = fields.get("file", "")
        self.labels = re.split(r"[,\s]+", fields.get("tests", "").strip())
        self.filter = fields.get("filter")
        self.survives = fields.get("survives")
        self.original, self.changed = (part.removesuffix("\n") for part in parts[1:])
        if not self.file.startswith(PLACES):
            raise ValueError("its file is not in " + ", ".join(PLACES))
        if self.labels == [""]:
            raise ValueError("it names no tests")
        if not self.original.strip() or self.original == self.changed:
            raise ValueError("it changes nothing")

    @staticmethod
    def field(line):
        key, colon, value = line.partition(":")
        if key not in KEYS or not colon or not value.strip():
            raise ValueError("what is this: " + line)
        return key, value.strip()

    def tries(self, quick):
        """What to run, until something fails: labels, and filters or None."""
        filtered = [(label, self.filter) for label in self.labels if self.filter]
        return filtered if quick and filtered else filtered + [(l, None) for l in self.labels]

    def applied_to(self, source):
        first = source.find(self.original)
        if first < 0:
            raise ValueError(f"{self.file} does not have the original lines")
        if source.find(self.original, first + 1) >= 0:
            raise ValueError(f"{self.file} has the original lines more than once")
        return source.replace(self.original, self.changed)


def load(root):
    """The mutants of a tree by name, and what is wrong with them."""
    mutants, problems = {}, []
    for path in files(root):
        if os.path.dirname(path) != DIRECTORY or not path.endswith(SUFFIX):
            continue
        name = os.path.basename(path)[:-len(SUFFIX)]
        try:
            mutant = Mutant(name, read(root, path) or "")
            if not os.path.isfile(os.path.join(root, mutant.file)):
                raise ValueError(f"there is no {mutant.file}")
            mutant.applied_to(read(root, mutant.file))
            mutants[name] = mutant
        except ValueError as problem:
            problems.append(f"{path}: {problem}")
    return mutants, problems


def chosen(mutants, names, sample, seed):
    unknown = [name for name in names if name not in mutants]
    if unknown:
        sys.exit("mutants: there is no " + ", ".join(unknown))
    picked = sorted(names or mutants)
    if sample is not None and sample < len(picked):
        picked = sorted(random.Random(seed).sample(picked, sample))
    return [mutants[name] for name in picked]


# ---- running tests


class Run:
    """What a program has said and how it ended; `code` is None if it took too long."""

    def __init__(self, code, output):
        self.code = code
        self.output = output

    @property
    def passed(self):
        return self.code == 0

    def has_run(self):
        return re.search(r"^\[ RUN      \] |Test +#\d+: ", self.output, re.M) is not None

    def failed(self):
        """The tests that have failed, as GoogleTest or ctest names them."""
        names = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", self.output, re.M)
        names = re.findall(r"Test +#\d+: (\S+) \.*\*\*\*", self.output) or names
        return sorted(set(names))

    def finder(self):
        """The test that failed, or was running when the program came to its end."""
        if self.failed():
            return self.failed()[0]
        began = re.findall(r"^\[ RUN      \] (\S+)", self.output, flags=re.M)
        how = "hangs" if self.code is None else "crashes" if self.code < 0 else "fails"
        return f"{began[-1] if began else 'the tests'} ({how})"


def run(command, directory, limit=None, environment=None):
    """Ends the whole group of processes if it takes longer than `limit` seconds."""
    process = subprocess.Popen(
        command, cwd=directory, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        code = None
    return Run(code, output.decode("utf-8", "replace"))


def is_googletest(command):
    return any(argument.startswith("--gtest_") for argument in command)


def named(names):
    """For ctest, which knows fewer escapes than Python."""
    return "^(" + "|".join(re.sub(r"([^\w/-])", r"\\\1", name) for name in sorted(names)) + ")$"


def commands_of(tests, label, pattern=None, left_out=(), fail_fast=True):
    """From ctest's list of tests, what to run for a label, and where: GoogleTest's programs once
    each, or ctest if others are wanted, too."""
    programs, others = {}, False
    for test in tests:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        command = test.get("command")
        if not command or label not in properties.get("LABELS", []):
            continue
        if is_googletest(command):
            programs[command[0]] = properties.get("WORKING_DIRECTORY", ".")
        else:
            others = True
    is_googletests = programs and pattern and not pattern.startswith(label + ".")
    if others and not is_googletests:
        ctest = ["ctest", "-j", str(os.cpu_count()), "--output-on-failure", "-L", f"^{label}$"]
        ctest += ["--stop-on-failure"] if fail_fast else []
        ctest += ["-R", pattern] if pattern else []
        return [(ctest + (["-E", named(left_out)] if left_out else []), ".")]
    wanted = pattern or "*"
    if left_out:
        wanted += (":" if "-" in wanted else "-") + ":".join(sorted(left_out))
    options = ["--gtest_color=no", "--gtest_filter=" + wanted]
    options += ["--gtest_fail_fast"] if fail_fast else []
    return [([program] + options, directory) for program, directory in programs.items()]


class Tree:
    """A copy of the sources and its build directory, for one mutant at a time."""

    def __init__(self, root, place, compat):
        self.root = root
        self.source = os.path.join(place, "source")
        self.build = os.path.join(place, "build")
        self.compat = "ON" if compat else "OFF"
        self.seconds = {}  # That the tests of a label and filter take without a bug.
        self.matched = {}  # Whether there are any.
        self.unreliable = set()  # Tests that fail now and then without one: they find nothing.
        self.environment = dict(os.environ, CCACHE_BASEDIR=place, CCACHE_NOHASHDIR="1")
        self.tests = []
        self.known = ""  # The targets that there are.

    def prepare(self, labels):
        """Brings the copy up to date. What has not changed keeps its time: it is built once."""
        names = set(files(self.root))
        for name in sorted(names):
            self.write(name, open(os.path.join(self.root, name), "rb").read())
        for directory, subdirectories, found in os.walk(self.source):
            for name in found:
                path = os.path.join(directory, name)
                if os.path.relpath(path, self.source) not in names:
                    os.remove(path)
        configure = [
            "cmake", "-G", "Ninja", "-S", self.source, "-B", self.build,
            "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
            "-DSPATE_TESTS_SHARED=ON", "-DSPATE_WERROR=OFF", "-DSPATE_EXAMPLES=OFF",
            "-DSPATE_BENCH=OFF", f"-DSPATE_INSTALL={self.compat}", f"-DSPATE_COMPAT={self.compat}",
            "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON",
            "-DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST"]
        if shutil.which("ccache"):
            configure += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
                          "-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
        self.must(run(configure, self.root, environment=self.environment))
        self.remove_programs()
        self.known = run(["cmake", "--build", self.build, "--target", "help"], self.root).output
        self.must(self.make(labels))
        listed = run(["ctest", "--show-only=json-v1"], self.build, environment=self.environment)
        self.must(listed)
        self.tests = json.loads(listed.output[listed.output.index("{"):])["tests"]

    def remove_programs(self):
        """What is wanted is linked anew. The programs of other labels may be too old to start with
        the library that there will be, and ctest asks each that it finds for its tests."""
        for directory, _, names in os.walk(os.path.join(self.build, "tests")):
            for name in names:
                path = os.path.join(directory, name)
                if os.access(path, os.X_OK) and ".so" not in name:
                    os.remove(path)

    @staticmethod
    def must(done):
        if not done.passed:
            told = re.sub(r"^\[( RUN|  SKIP|  *OK|-----).*\n", "", done.output, flags=re.M)
            sys.exit(told + "\nmutants: this fails without any mutant")

    def make(self, labels):
        """Builds what these labels need: a target of their own, or all if one has none."""
        targets = [f"tests_of_{label}" for label in labels]
        if not all(re.search(rf"^{target}:", self.known, re.M) for target in targets):
            targets = ["all"]
        return run(["cmake", "--build", self.build, "--target", *targets], self.root,
                   environment=self.environment)

    def write(self, name, data):
        path = os.path.join(self.source, name)
        if os.path.islink(path) or not os.path.exists(path) or open(path, "rb").read() != data:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            shutil.copymode(os.path.join(self.root, name), path)

    def test(self, label, limit, pattern=None, fail_fast=True):
        """All runs, up to the first that fails."""
        commands = commands_of(self.tests, label, pattern, self.unreliable, fail_fast)
        if not commands:
            sys.exit(f"mutants: no test has the label {label}")
        output = ""
        for command, directory in commands:
            done = run(command, os.path.join(self.build, directory), limit, self.environment)
            output += done.output
            if not done.passed:
                break
        return Run(done.code, output)

    def measure(self, label, pattern):
        """Without a bug the tests have to pass, and how long they take is noted. One that fails,
        and passes by itself, is left out: it would find bugs where there are none."""
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            done = self.test(label, None, pattern, fail_fast=False)
            self.seconds[label, pattern] = time.monotonic() - began
            self.matched[label, pattern] = done.has_run()
            if done.passed:
                return
            failed = done.failed()
            by_name = named(failed) if "Test #" in done.output else ":".join(failed)
            self.must(self.test(label, None, by_name) if failed else done)
            print("mutants: left out, as they fail now and then: " + ", ".join(failed), flush=True)
            self.unreliable.update(failed)
        self.must(done)

    def find(self, mutant, quick):
        """Which test finds it: None if none does. Raises ValueError if it does not build."""
        source = read(self.source, mutant.file)
        try:
            self.write(mutant.file, mutant.applied_to(source).encode())
            built = self.make(mutant.labels)
            if not built.passed:
                errors = [line for line in built.output.split("\n") if "error:" in line]
                raise ValueError("\n".join(errors[:5]) or built.output)
            for label, pattern in mutant.tries(quick):
                limit = SLOWER * self.seconds[label, pattern] + PATIENCE
                done = self.test(label, limit, pattern)
                if not done.passed:
                    return f"{label} {done.finder()}"
            return None
        finally:
            self.write(mutant.file, source.encode())


# ---- all of them


class Report:
    """A line a mutant, as it is judged, and the sum."""

    def __init__(self):
        self.lock = threading.Lock()
        self.killed = self.survived = self.broken = self.expected = 0

    def say(self, mutant, began, text):
        print(f"{mutant.name}: {text}  ({time.monotonic() - began:.0f} s)", flush=True)

    def judge(self, mutant, tree, quick):
        began = time.monotonic()
        try:
            finder = tree.find(mutant, quick)
        except ValueError as problem:
            with self.lock:
                self.broken += 1
                self.say(mutant, began, "does not build")
                print(problem)
            return
        with self.lock:
            if finder:
                self.killed += 1
                surprise = ", though it says that it survives" if mutant.survives else ""
                self.say(mutant, began, f"killed by {finder}{surprise}")
            elif mutant.survives:
                self.expected += 1
                self.say(mutant, began, f"survives, as it says: {mutant.survives}")
            else:
                self.survived += 1
                self.say(mutant, began, f"SURVIVED: {mutant.about}")

    def close(self):
        total = self.killed + self.survived + self.broken + self.expected
        print(f"{self.killed} of {total} mutants killed", end="")
        print(f", {self.expected} survive as they say" if self.expected else "", end="")
        print(f", {self.broken} do not build" if self.broken else "")
        return 1 if self.survived or self.broken else 0


def hunt(root, mutants, jobs, quick):
    compat = any(m.file.startswith("compat/") or "dropin" in m.labels for m in mutants)
    trees = [Tree(root, os.path.join(root, "build", "mutants", str(i)), compat)
             for i in range(max(1, min(jobs, len(mutants))))]
    for tree in trees:
        tree.prepare(sorted({label for mutant in mutants for label in mutant.labels}))
    first = trees[0]
    for label, pattern in dict.fromkeys(t for mutant in mutants for t in mutant.tries(quick)):
        first.measure(label, pattern)
    for mutant in mutants:
        if mutant.filter and not any(first.matched[l, mutant.filter] for l in mutant.labels):
            sys.exit(f"mutants: no test is found by {mutant.name}'s filter: {mutant.filter}")
    for tree in trees:
        tree.seconds, tree.unreliable = first.seconds, first.unreliable
    print("without a mutant, the tests pass", flush=True)
    report = Report()
    free = list(trees)

    def judge(mutant):
        tree = free.pop()
        try:
            report.judge(mutant, tree, quick)
        finally:
            free.append(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        list(pool.map(judge, mutants))
    return report.close()


def main():
    parser = argparse.ArgumentParser(description="Which test finds which bug made on purpose.")
    parser.add_argument("names", nargs="*", help="the mutants to run: all of them if none is named")
    parser.add_argument("--check", action="store_true", help="only whether they can be applied")
    parser.add_argument("--list", action="store_true", help="only their names and classes")
    parser.add_argument("--quick", action="store_true",
                        help="only the filters' tests: whoever survives them has survived")
    parser.add_argument("--sample", type=int, metavar="N", help="N of them, drawn by the seed")
    parser.add_argument("--seed", default="1", metavar="S")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    arguments = parser.parse_args()
    root = os.path.abspath(arguments.root)
    mutants, problems = load(root)
    for problem in problems:
        print(problem)
    if problems or arguments.check:
        print(f"mutants: {len(mutants) + len(problems)} files, {len(problems)} problems")
        return 1 if problems else 0
    picked = chosen(mutants, arguments.names, arguments.sample, arguments.seed)
    if arguments.list:
        for mutant in picked:
            print(f"{mutant.name}: {mutant.about}")
        return 0
    return hunt(root, picked, arguments.jobs, arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
