"""The results of a run of ctest, as tools/run_tests collects and prints them."""

import dataclasses
import pathlib
import re
import xml.etree.ElementTree

COLUMNS = 100
LINE = re.compile(r"^ *(\d+)/(\d+) Test +#\d+: (\S+).*?(Passed|\*\*\*.*?) +"
                  r"([\d.]+ sec)")
STARTS = re.compile(r"^(?=\[ RUN      \] )", re.MULTILINE)
FINISHED = re.compile(r"^\[( {7}OK|  SKIPPED) \] ", re.MULTILINE)


@dataclasses.dataclass
class Line:
    """ctest's line about a test that has ended, cut to the width of a page."""

    number: int
    total: int
    name: str
    failed: bool
    line: str


@dataclasses.dataclass
class Case:
    """A test of ctest, with its result and its output."""

    name: str
    status: str  # "run", "fail", "skipped"
    output: str


def cut(text, width=COLUMNS):
    return text if len(text) <= width else text[:width - 3] + "..."


def read_junit(path):
    """Returns the Cases that ctest wrote to `path`; none if it wrote nothing."""
    if not path.exists():
        return []
    cases = []
    for node in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        status = node.get("status")
        if node.find("skipped") is not None and "SKIP_" in node.find("skipped").get("message", ""):
            status = "skipped"
        elif status in ("notrun", "disabled"):
            status = "fail"
        cases.append(Case(node.get("name"), status, node.findtext("system-out") or ""))
    return cases


def failed_parts(output):
    """Returns the output of a GoogleTest program about tests that failed or never ended.

    The output of another program is returned whole.
    """
    first, *tests = STARTS.split(output)
    if not tests:
        return first
    return "".join(part.split("\n[----------]")[0].rstrip() + "\n" for part in tests
                   if not FINISHED.search(part)) or output[-2000:]


class Report:
    """The tests of one run of tools/run_tests, from one or more runs of ctest."""

    def __init__(self, results):
        self.results = results  # A GoogleTest program writes <test of ctest>.xml here.
        self.passed = self.failed = 0
        self.skipped = {}  # Why -> names of tests.
        self.failures = []  # (name, output)
        self.complete = []  # Tests of ctest that passed, and skipped nothing.
        self.tries = {}  # Test of ctest -> whether each of its runs failed.
        self.ctest_failed = False

    def forget_results(self):
        """Removes the results of earlier runs: a program that crashes writes none."""
        for path in self.results.glob("*.xml"):
            path.unlink()

    def note_line(self, text):
        """Returns a Line if ctest printed that a test ended, and None otherwise."""
        match = LINE.match(text)
        if not match:
            return None
        number, total, name, result, seconds = match.groups()
        failed = result.startswith("***") and "Skipped" not in result
        self.tries.setdefault(name, []).append(failed)
        word = result.strip("*") if "***" in result else "passed"
        line = f"{number:>{len(total)}}/{total} {word.lower():7} {seconds:>11}  {name}"
        return Line(int(number), int(total), name, failed, cut(line))

    def add(self, cases, status):
        """Adds the Cases of a run of ctest that exited with `status`."""
        self.ctest_failed |= status != 0
        for case in cases:
            path = self.results / f"{case.name}.xml"
            if case.status != "skipped" and path.exists():
                self.add_program(case, path)
            else:
                self.add_case(case)

    def add_case(self, case):
        if case.status == "skipped":
            lines = [line for line in case.output.splitlines() if line.strip()]
            self.skip(lines[-1] if lines else "without a reason", case.name)
        elif case.status == "fail":
            self.fail(case)
        else:
            self.passed += 1
            self.complete.append(case.name)

    def add_program(self, case, path):
        """Adds each test of a GoogleTest program, which the program listed in `path`."""
        skipped = 0
        for node in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            why = node.find("skipped")
            name = f"{node.get('classname')}.{node.get('name')}"
            if node.get("status") == "notrun":
                continue
            if node.find("failure") is not None:
                self.failed += 1
            elif why is not None:
                skipped += 1
                self.skip(why.get("message", "").strip().split("\n")[-1], name)
            else:
                self.passed += 1
        if case.status == "fail":
            self.failures.append((case.name, case.output))
        elif not skipped:
            self.complete.append(case.name)

    def skip(self, why, name):
        self.skipped.setdefault(why.removeprefix("skipped: "), []).append(name)

    def fail(self, case):
        self.failed += 1
        self.failures.append((case.name, case.output))

    def counts(self):
        skipped = sum(map(len, self.skipped.values()))
        return f"{self.passed} passed, {self.failed} failed, {skipped} skipped"

    def flaky(self):
        """Returns the names of tests that failed, were run again, and passed."""
        return sorted(name for name, runs in self.tries.items() if runs[0] and not runs[-1])

    def passed_before(self):
        """Returns the tests of ctest that passed whole in an earlier run in this build tree."""
        path = self.results / "passed"
        return set(path.read_text(encoding="utf-8").split("\n")) if path.exists() else set()

    def close(self, preset, duration):
        """Prints failures, skipped tests and counts; returns the exit status."""
        path = self.results / "passed"
        path.write_text("\n".join(sorted(self.passed_before() | set(self.complete))),
                        encoding="utf-8")
        for name, output in self.failures:
            print(f"\n--- {name} failed:\n{failed_parts(output)}")
        self.print_skipped()
        for name in self.flaky():
            print(f"test: flaky, to be fixed: {name} failed and then passed")
        failed = bool(self.failures) or self.ctest_failed or self.passed == 0
        if failed and not self.failures:
            print("test: ctest failed without naming a test; see build/"
                  f"{preset}/Testing/Temporary/LastTest.log")
        print(f"\ntest: {'FAILED' if failed else 'passed'} after {duration}.", end=" ")
        if self.failures:
            print(f"Run one again: tools/run_tests --preset {preset} -R '^{self.failures[0][0]}$'")
        else:
            print("Next: docs/guide/a-server-in-ten-minutes.md, or make bench.")
        print(f"test: {self.counts()}", flush=True)
        return 1 if failed else 0

    def print_skipped(self):
        if not self.skipped:
            return
        print("\nSkipped:")
        for why, names in sorted(self.skipped.items()):
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            print(cut(f"  {names[0]}{more}: {why}"))
        print("To run these as well, in a separate Debian root: make test-all")
