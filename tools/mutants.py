#!/usr/bin/env python3
"""Measures the tests: makes one-line bugs on purpose, and prints which test finds each.

    tools/mutants.py [--check] [--list] [--quick] [--sample N] [--seed S] [--jobs N] [NAME...]
    tools/mutants.py --random N [--seed S] [--in FOLDER] [--list] [--quick] [--jobs N]

A file of tests/mutants/ has the bugs of one folder in the order of their names; src_net.mutants has
those of src/net. A blank line separates them. Each is named <area>-<short-name>:

    === buffer-emptied-last
    # The wrong behaviour, in one sentence.
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
other tests only. A line `survives: reason` marks a bug that no test should find.

With --random, the seed draws N of the bugs that tools/random_mutants.py can make, in FOLDER if it
is given. The tests that reach the line run first, as noted in a run without a bug, and then the
labels of the folder. The survivors are listed with file and line. Each needs a test that kills it,
or an entry in tests/mutants/equivalent.txt that says why no test can.

The checkout is never touched: each bug is put into a copy in build/mutants, with the tests' library
as a shared one, so that one file is compiled and one library linked. A run that hangs has found the
bug. Exits with 1 if a mutant without that line survived, or did not build.
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

import random_mutants
from source_tree import files, read

DIRECTORY = "tests/mutants"
SUFFIX = ".mutants"
PLACES = ("src/", "include/", "compat/")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
KEYS = {"file", "tests", "filter", "survives"}
# The time limit of a run: so many times the duration without the bug, and so many seconds more.
SLOWER = 5
ATTEMPTS = 4  # At a run without a bug in which all tests pass that are believed.
# The tests that are to find a random bug, by the beginning of the file's name.
LABELS = (
    ("src/sim/", "sim swarms"), ("include/spate/sim/", "sim swarms"),
    ("src/http2/", "unit http"), ("src/http/codec/", "unit http"),
    ("src/http/content/", "unit http"),
    ("src/http/coro/", "http coro"),
    ("src/http/", "http"), ("include/spate/http/", "http"),
    ("src/tls/", "tls unit"), ("src/net/tls/", "tls"), ("src/c/", "c"), ("include/spate_", "c"),
    ("include/spate.h", "c"), ("src/coro/", "coro"), ("include/spate/coro/", "coro"),
    ("src/offload/", "threads"), ("src/net/workers/", "threads"), ("src/base/", "unit streams"),
    ("src/file/", "sim threads faults"), ("include/spate/watch", "sim threads"),
    ("src/sys/", "unit conformance streams regressions faults"),
    ("src/net/", "streams unit regressions faults"), ("include/spate/net/", "streams unit"),
    ("compat/", "dropin"), ("", "unit conformance regressions faults"),
)
PATIENCE = float(os.environ.get("SPATE_MUTANTS_PATIENCE", "30"))


class Mutant:
    """One bug. Raises ValueError with the reason if its text is malformed."""

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
        """Returns the runs to try until one fails: labels, and filters or None."""
        filtered = [(label, self.filter) for label in self.labels if self.filter]
        return filtered if quick and filtered else filtered + [(l, None) for l in self.labels]

    def applied_to(self, source):
        first = source.find(self.original)
        if first < 0:
            raise ValueError(f"{self.file} does not have the original lines")
        if source.find(self.original, first + 1) >= 0:
            raise ValueError(f"{self.file} has the original lines more than once")
        return source.replace(self.original, self.changed)


def home_of(file):
    """Returns the file of tests/mutants/ that has the bugs of this source."""
    return f"{DIRECTORY}/{os.path.dirname(file).replace('/', '_')}{SUFFIX}"


def sections(text):
    """Yields the line, the name and the text of each bug in a file of tests/mutants/."""
    start, *parts = re.split(r"^=== (.*)\n", text, flags=re.M)
    line = start.count("\n") + 1
    if start:
        yield 1, "", start
    for name, body in zip(parts[::2], parts[1::2]):
        yield line, name, body.rstrip("\n") + "\n"
        line += body.count("\n") + 1


def load_one(root, path, name, text):
    """Returns one mutant. Raises ValueError with the reason if it cannot be used."""
    if not NAME.fullmatch(name):
        raise ValueError("a bug begins with a line === and its name, in lower case with hyphens")
    mutant = Mutant(name, text)
    if not os.path.isfile(os.path.join(root, mutant.file)):
        raise ValueError(f"there is no {mutant.file}")
    if path != home_of(mutant.file):
        raise ValueError(f"a bug of {mutant.file} belongs to {home_of(mutant.file)}")
    mutant.applied_to(read(root, mutant.file))
    return mutant


def load(root):
    """Returns the mutants of a tree by name, and the malformed ones' errors."""
    mutants, problems = {}, []
    for path in files(root):
        if os.path.dirname(path) != DIRECTORY or path == random_mutants.EQUIVALENT:
            continue
        if not path.endswith(SUFFIX):
            problems.append(f"{path}:1: the name of a file of bugs ends with {SUFFIX}")
            continue
        last = ""
        for line, name, text in sections(read(root, path) or ""):
            try:
                if name in mutants:
                    raise ValueError("there are two bugs of this name")
                if name < last:
                    raise ValueError(f"it stands before {last}, in the order of the names")
                last = name
                mutants[name] = load_one(root, path, name, text)
            except ValueError as problem:
                problems.append(f"{path}:{line}: {name}: {problem}")
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
    """The output of a program and how it ended; `code` is None if it took too long."""

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
    """Whether it is a program of GoogleTest, and not one that starts another."""
    return len(command) > 1 and command[1].startswith("--gtest_")


def named(names):
    """Quotes names for ctest, which supports fewer escapes than Python."""
    return "^(" + "|".join(re.sub(r"([^\w/-])", r"\\\1", name) for name in sorted(names)) + ")$"


def commands_of(tests, label, pattern=None, left_out=(), fail_fast=True):
    """Returns the commands for a label, and their directories, from ctest's list of tests:
    GoogleTest's programs once each, or ctest if other tests are selected, too."""
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

    def __init__(self, root, place, compat, notes_reach=False):
        self.root = root
        self.reach = random_mutants.Reach() if notes_reach else None
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
        """Brings the copy up to date. Unchanged files keep their time, so that they are built
        once."""
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
            "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -D_GLIBCXX_ASSERTIONS",
            "-DSPATE_TESTS_SHARED=ON", "-DSPATE_LIBRARY_GROUPED=OFF", "-DSPATE_WERROR=OFF",
            "-DSPATE_EXAMPLES=OFF",
            "-DSPATE_BENCH=OFF", f"-DSPATE_INSTALL={self.compat}", f"-DSPATE_COMPAT={self.compat}",
            "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON",
            "-DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST",
            f"-DSPATE_TESTS_REACH={'ON' if self.reach else 'OFF'}"]
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
        """Removes the test programs, so that the needed ones are linked again. Programs of other
        labels may be too old to start with the new library, and ctest runs each that it finds to
        list its tests."""
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
        """Builds the targets of these labels, or all if a label has no target."""
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

    def test(self, label, limit, pattern=None, fail_fast=True, environment=None):
        """All runs, up to the first that fails."""
        commands = commands_of(self.tests, label, pattern, self.unreliable, fail_fast)
        if not commands:
            sys.exit(f"mutants: no test has the label {label}")
        output = ""
        for command, directory in commands:
            done = run(command, os.path.join(self.build, directory), limit,
                       environment or self.environment)
            output += done.output
            if not done.passed:
                break
        return Run(done.code, output)

    def measure(self, label, pattern):
        """Without a bug the tests have to pass; the time that they take is recorded. A test that
        fails, and passes when run alone, is left out: it would report a bug in every mutant."""
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            done = self.test(label, None, pattern, False, self.noting(label))
            self.seconds[label, pattern] = time.monotonic() - began
            self.matched[label, pattern] = done.has_run()
            if done.passed:
                return self.take_reach(label)
            failed = done.failed()
            by_name = named(failed) if "Test #" in done.output else ":".join(failed)
            self.must(self.passing(label, by_name) if failed else done)
            print("mutants: left out, as they fail now and then: " + ", ".join(failed), flush=True)
            self.unreliable.update(failed)
        self.must(done)

    def passing(self, label, by_name):
        """Runs these tests by themselves until they pass, at most ATTEMPTS times. On a busy machine
        some fail again."""
        for _ in range(ATTEMPTS):
            done = self.test(label, None, by_name)
            if done.passed:
                break
        return done

    def noting(self, label):
        """Returns the environment of a run in which the tests note the code that they reach."""
        if self.reach is None:
            return None
        return dict(self.environment, SPATE_REACH=os.path.join(self.build, f"reach_of_{label}"))

    def take_reach(self, label):
        for name in os.listdir(self.build) if self.reach is not None else []:
            if name.startswith(f"reach_of_{label}."):
                path = os.path.join(self.build, name)
                self.reach.add(label, path, self.source)
                os.remove(path)

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
                seconds = self.seconds.get((label, pattern), self.seconds.get((label, None), 0))
                limit = SLOWER * seconds + PATIENCE
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


def labels_of(file):
    return next(labels for start, labels in LABELS if file.startswith(start)).split()


def choose_tests(mutants, reach):
    """Puts the tests that reach the line of each mutant first, and leaves out the labels that do
    not reach its file."""
    for mutant in mutants:
        near = reach.tests_of(mutant.file, mutant.number)
        mutant.first = [(label, tests) for label, tests in near if label in mutant.labels]
        known = reach.labels_of(mutant.file)
        mutant.labels = [label for label in mutant.labels if label in known] or mutant.labels


def hunt(root, mutants, jobs, quick, is_random=False):
    compat = any(m.file.startswith("compat/") or "dropin" in m.labels for m in mutants)
    kind = "random" if is_random else ""
    trees = [Tree(root, os.path.join(root, "build", "mutants", f"{kind}{i}"), compat, is_random)
             for i in range(max(1, min(jobs, len(mutants))))]
    for tree in trees:
        tree.prepare(sorted({label for mutant in mutants for label in mutant.labels}))
    first = trees[0]
    if is_random:
        for mutant in mutants:
            mutant.labels = [l for l in mutant.labels if commands_of(first.tests, l)]
    for label, pattern in dict.fromkeys(t for mutant in mutants for t in mutant.tries(quick)):
        first.measure(label, pattern)
    for mutant in mutants:
        if mutant.filter and not any(first.matched[l, mutant.filter] for l in mutant.labels):
            sys.exit(f"mutants: no test is found by {mutant.name}'s filter: {mutant.filter}")
    for tree in trees:
        tree.seconds, tree.unreliable = first.seconds, first.unreliable
    if is_random:
        choose_tests(mutants, first.reach)
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
    parser.add_argument("--random", type=int, metavar="N", help="N bugs that are not in the tree")
    parser.add_argument("--in", dest="folder", metavar="FOLDER", help="where to draw these")
    parser.add_argument("--seed", default="1", metavar="S")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    arguments = parser.parse_args()
    root = os.path.abspath(arguments.root)
    mutants, problems = load(root)
    problems += random_mutants.equivalents(root)[1]
    for problem in problems:
        print(problem)
    if problems or arguments.check:
        print(f"mutants: {len(mutants)} bugs, {len(problems)} problems")
        return 1 if problems else 0
    is_random = arguments.random is not None
    picked = (random_mutants.drawn(root, PLACES, arguments.random, arguments.seed,
                                   arguments.folder, labels_of) if is_random
              else chosen(mutants, arguments.names, arguments.sample, arguments.seed))
    if arguments.list:
        for mutant in picked:
            print(f"{mutant.name}: {mutant.about}")
        return 0
    return hunt(root, picked, arguments.jobs, arguments.quick, is_random)


if __name__ == "__main__":
    sys.exit(main())
