#!/usr/bin/env python3
"""Tests of mutants.py: valid and malformed files, random bugs, the output of runs, and a small
project."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import mutants
import random_mutants

GOOD = """# Edges: one too many.
file: src/a.cc
tests: unit, streams
filter: A*
---
  return count < most;
---
  return count <= most;
"""
HOME = "tests/mutants/src.mutants"
SOURCE = "bool fits() {\n  return count < most;\n}\n"


def problem(text):
    try:
        mutants.Mutant("a", text)
    except ValueError as error:
        return str(error)
    return None


class Files(unittest.TestCase):
    def test_a_good_one_is_read(self):
        mutant = mutants.Mutant("a", GOOD)
        self.assertEqual(mutant.about, "Edges: one too many.")
        self.assertEqual(mutant.file, "src/a.cc")
        self.assertEqual(mutant.labels, ["unit", "streams"])
        self.assertEqual(mutant.filter, "A*")
        self.assertIsNone(mutant.survives)
        self.assertEqual(mutant.applied_to(SOURCE), SOURCE.replace("<", "<="))

    def test_lines_may_be_taken_out(self):
        mutant = mutants.Mutant("a", GOOD.replace("  return count <= most;\n", ""))
        self.assertEqual(mutant.applied_to(SOURCE), "bool fits() {\n\n}\n")

    def test_what_is_missing_or_unknown_is_found(self):
        for old, new in (("# Edges: one too many.\n", ""), ("file: src/a.cc\n", ""),
                         ("src/a.cc", "tests/a.cc"), ("tests: unit, streams\n", ""),
                         ("filter: A*", "filters: A*"), ("filter: A*", "filter:"),
                         ("---\n  return count <= most;\n", ""), ("<=", "<"),
                         ("  return count < most;\n", "")):
            self.assertIsNotNone(problem(GOOD.replace(old, new, 1)), old)
        self.assertIsNone(problem(GOOD))

    def test_the_original_has_to_be_there_once(self):
        mutant = mutants.Mutant("a", GOOD)
        for source in (SOURCE + SOURCE, SOURCE.replace("<", ">")):
            with self.assertRaises(ValueError):
                mutant.applied_to(source)

    def test_a_tree_is_checked(self):
        with tempfile.TemporaryDirectory() as root:
            self.write(root, "src/a.cc", SOURCE)
            bugs = (("bad", "# Nothing\n"), ("gone", GOOD.replace("a.cc", "b.cc")), ("good", GOOD))
            self.write(root, HOME, "\n".join(f"=== {name}\n{text}" for name, text in bugs))
            found, problems = mutants.load(root)
        self.assertEqual(list(found), ["good"])
        self.assertEqual([":".join(line.split(":")[:3]) for line in problems],
                         [f"{HOME}:1: bad", f"{HOME}:4: gone"])

    def test_a_file_has_the_bugs_of_one_folder_by_name(self):
        good = f"=== good\n{GOOD}"
        other = GOOD.replace("count", "size")
        for path, text, expected in (
                ("tests/mutants/src_b.mutants", good, "belongs to tests/mutants/src.mutants"),
                ("tests/mutants/good.mutant", good, "ends with .mutants"),
                (HOME, f"{GOOD}\n{good}", "begins with a line ==="),
                (HOME, f"=== Not good\n{GOOD}", "begins with a line ==="),
                (HOME, f"{good}\n{good}", "two bugs of this name"),
                (HOME, f"{good}\n=== before\n{other}", "before good")):
            with tempfile.TemporaryDirectory() as root:
                self.write(root, "src/a.cc", SOURCE + SOURCE.replace("count", "size"))
                self.write(root, path, text)
                problem, = mutants.load(root)[1]
            self.assertIn(expected, problem)

    def test_a_blank_line_between_bugs_belongs_to_neither(self):
        deletes = GOOD.replace("  return count <= most;\n", "").replace("count", "size")
        with tempfile.TemporaryDirectory() as root:
            self.write(root, "src/a.cc", SOURCE + SOURCE.replace("count", "size"))
            self.write(root, HOME, f"=== deletes\n{deletes}\n=== good\n{GOOD}")
            found, problems = mutants.load(root)
        self.assertEqual(problems, [])
        self.assertEqual([found["deletes"].changed, found["good"].changed],
                         ["", "  return count <= most;"])

    def test_a_sample_is_the_same_for_the_same_seed(self):
        all_of_them = {str(i): i for i in range(100)}
        first = mutants.chosen(all_of_them, [], 10, "s")
        self.assertEqual(first, mutants.chosen(all_of_them, [], 10, "s"))
        self.assertNotEqual(first, mutants.chosen(all_of_them, [], 10, "t"))
        self.assertEqual(len(set(first)), 10)
        self.assertEqual(mutants.chosen(all_of_them, ["7"], 10, "s"), [7])
        with self.assertRaises(SystemExit):
            mutants.chosen(all_of_them, ["no such"], None, "s")

    @staticmethod
    def write(root, name, text):
        os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
        with open(os.path.join(root, name), "w", encoding="utf-8") as file:
            file.write(text)


class RandomBugs(unittest.TestCase):
    def test_each_kind_of_line_has_its_bugs(self):
        for line, expected in (
                ("  return a < b;", {"operator < became <=": "  return a <= b;"}),
                ("  if (a == nullptr) return;", {
                    "operator == became !=": "  if (a != nullptr) return;",
                    "condition negated": "  if (!(a == nullptr)) return;",
                    "guard deleted": "  if (false) return;"}),
                ("  if (a) step();", {"condition negated": "  if (!(a)) step();",
                                      "guard deleted": "  if (true) step();"}),
                ("  list_.clear();", {"call deleted": "  ;"}),
                ("  count_ += 2;", {"operator += became -=": "  count_ -= 2;",
                                    "store deleted": "  ;"}),
                ("  ++count_;", {"store deleted": "  ;"}),
                ("  bool on_ = false;", {"false became true": "  bool on_ = true;"})):
            self.assertEqual(dict(random_mutants.changes_of(line, line)), expected)

    def test_what_is_no_code_that_runs_has_none(self):
        for line in ("template <class T>", "  static_assert(a == b);", "#if A == B",
                     "  SPATE_ASSERT(a == b);", "  std::vector<int> numbers;", "}",
                     "  const int* pointer;", "  call(a,", ""):
            self.assertEqual(random_mutants.changes_of(line, line), [], line)

    def test_comments_and_texts_are_left_alone(self):
        with tempfile.TemporaryDirectory() as root:
            Files.write(root, "src/a.cc", '// a == b\nconst char* text = "a == b";\n')
            Files.write(root, "src/a_test.cc", "bool fits() { return a == b; }\n")
            self.assertEqual(random_mutants.candidates(root, ("src/",)), [])

    def test_a_seed_draws_the_same(self):
        with tempfile.TemporaryDirectory() as root:
            Files.write(root, "src/a.cc", SOURCE * 20)
            Files.write(root, "src/b/c.cc", SOURCE * 20)
            first = self.names(root, "s", None)
            self.assertEqual(len(set(first)), 10)
            self.assertEqual(first, self.names(root, "s", None))
            self.assertNotEqual(first, self.names(root, "t", None))
            self.assertTrue(all(n.startswith("src/b/") for n in self.names(root, "s", "src/b")))

    def test_an_equivalent_one_says_why(self):
        block = ("file: src/a.cc\nchange: operator < became <=\nline: return count < most;\n"
                 "reason: They are never equal.\n")
        with tempfile.TemporaryDirectory() as root:
            Files.write(root, "src/a.cc", SOURCE)
            Files.write(root, random_mutants.EQUIVALENT, "# Why.\n\n" + block)
            mutant, = random_mutants.drawn(root, ("src/",), 5, "s", None, mutants.labels_of)
            self.assertEqual(mutant.survives, "They are never equal.")
            self.assertEqual(mutant.applied_to(SOURCE), SOURCE.replace("<", "<="))
            self.assertEqual(random_mutants.equivalents(root)[1], [])
            Files.write(root, "src/a.cc", SOURCE.replace("<", ">"))
            self.assertEqual(len(random_mutants.equivalents(root)[1]), 1)
            Files.write(root, random_mutants.EQUIVALENT, block.replace("reason: ", "because: "))
            self.assertEqual(len(random_mutants.equivalents(root)[1]), 1)

    @staticmethod
    def names(root, seed, folder):
        return [m.name for m in random_mutants.drawn(root, ("src/",), 10, seed, folder,
                                                     mutants.labels_of)]


class Runs(unittest.TestCase):
    def test_who_found_it(self):
        ran = "[ RUN      ] A.One\n[       OK ] A.One (0 ms)\n[ RUN      ] B/C.Two/0\n"
        failed = ran + "x.cc:1: Failure\n[  FAILED  ] B/C.Two/0, where GetParam() = 7 (0 ms)\n"
        self.assertEqual(mutants.Run(1, failed).finder(), "B/C.Two/0")
        self.assertEqual(mutants.Run(-11, ran).finder(), "B/C.Two/0 (crashes)")
        self.assertEqual(mutants.Run(None, ran).finder(), "B/C.Two/0 (hangs)")
        self.assertEqual(mutants.Run(1, "").finder(), "the tests (fails)")
        by_ctest = "1/2 Test #1: a.b .....   Passed\n2/2 Test #2: c.d ..***Timeout  10 sec\n"
        self.assertEqual(mutants.Run(8, by_ctest).finder(), "c.d")

    def test_tests_may_be_chosen_and_left_out(self):
        for pattern, left_out, expected in ((None, (), "*"), ("A*", (), "A*"),
                                            (None, {"A.B", "A.C"}, "*-A.B:A.C"),
                                            ("A*-A.B", {"A.C"}, "A*-A.B:A.C")):
            (command, _), = mutants.commands_of(self.listed("t"), "unit", pattern, left_out)
            self.assertIn("--gtest_filter=" + expected, command)
        (command, _), = mutants.commands_of(self.listed("o"), "unit", "a.b", {"c.d/e"})
        self.assertEqual(command[-4:], ["-R", "a.b", "-E", "^(c\\.d/e)$"])

    def test_a_run_that_takes_too_long_is_ended(self):
        done = mutants.run(["sh", "-c", "echo begun; sleep 1000"], ".", 0.5)
        self.assertIsNone(done.code)
        self.assertEqual(done.output, "begun\n")

    def test_a_program_that_starts_one_of_googletest_is_run_by_ctest(self):
        tests = self.listed("t") + [{"command": ["setarch", "-R", "t", "--gtest_filter=A.B"],
                                     "properties": [{"name": "LABELS", "value": ["unit"]}]}]
        (command, _), = mutants.commands_of(tests, "unit")
        self.assertEqual(command[0], "ctest")

    def test_programs_of_googletest_are_run_once(self):
        commands = mutants.commands_of(self.listed("t", "t", "s"), "unit")
        self.assertEqual([(command[0], where) for command, where in commands],
                         [("t", "/w"), ("s", "/w")])
        self.assertEqual(mutants.commands_of(self.listed("t"), "none"), [])

    def test_others_are_run_by_ctest(self):
        (command, where), = mutants.commands_of(self.listed("t", "o"), "unit")
        self.assertEqual((command[0], where), ("ctest", "."))
        self.assertIn("--stop-on-failure", command)

    def test_a_filter_is_of_googletest_where_there_are_such_tests(self):
        (command, _), = mutants.commands_of(self.listed("t", "o"), "unit", "A.*:B*")
        self.assertEqual(command[0], "t")
        (command, _), = mutants.commands_of(self.listed("t", "o"), "unit", "unit.A.B")
        self.assertEqual(command[-2:], ["-R", "unit.A.B"])

    @staticmethod
    def listed(*programs):
        """As ctest lists them: all except `o` use GoogleTest."""
        properties = [{"name": "LABELS", "value": ["unit"]},
                      {"name": "WORKING_DIRECTORY", "value": "/w"}]
        options = {"o": []}
        return [{"command": [program] + options.get(program, ["--gtest_filter=A.B"]),
                 "properties": properties} for program in programs]


# A project as this one is to the tool: a program of tests that is built, and has a label.
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
enable_testing()
add_library(fits SHARED src/a.cc)
add_executable(tests test.cc)
target_link_libraries(tests PRIVATE fits)
add_test(NAME small COMMAND tests)
set_tests_properties(small PROPERTIES LABELS unit)
"""
LIBRARY = """bool fits(int count, int most) {
  return count < most;
}
int unused(int x) {
  return x + 1;
}
"""
PROGRAM = "bool fits(int, int);\nint main() { return fits(1, 2) && !fits(2, 2) ? 0 : 1; }\n"


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja") and shutil.which("c++"),
                     "cmake, ninja or c++ is not installed (packages cmake, ninja-build, g++)")
class AProject(unittest.TestCase):
    def test_is_hunted_through(self):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (("CMakeLists.txt", PROJECT), ("src/a.cc", LIBRARY),
                               ("test.cc", PROGRAM)):
                Files.write(root, name, text)
            bugs = {"edge": self.mutant("  return count < most;", "  return count <= most;"),
                    "hang": self.mutant("  return count < most;", "  for (;;);"),
                    "lives": self.mutant("  return x + 1;", "  return x + 2;"),
                    "typo": self.mutant("  return x + 1;", "  retrun;")}
            self.write(root, bugs)
            done = self.hunt(root)
            self.assertEqual(done.returncode, 1)
            for line in ("edge: killed by unit small", "lives: SURVIVED: A bug",
                         "hang: killed by unit the tests (hangs)", "typo: does not build",
                         "2 of 4 mutants killed, 1 do not build"):
                self.assertIn(line, done.stdout)
            with open(os.path.join(root, "src/a.cc"), encoding="utf-8") as file:
                self.assertEqual(file.read(), LIBRARY)
            bugs["lives"] = bugs["lives"].replace("---", "survives: unused\n---", 1)
            self.write(root, bugs)
            done = self.hunt(root, "lives", "edge")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("lives: survives, as it says: unused", done.stdout)
            done = self.hunt(root, "--random", "100")
            for line in ("src/a.cc:2: killed by unit small",
                         "src/a.cc:5: SURVIVED: operator + became -: return x + 1;"):
                self.assertIn(line, done.stdout)
            Files.write(root, "test.cc", "int main() { return 1; }\n")
            done = self.hunt(root, "edge")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("this fails without any mutant", done.stderr)

    @staticmethod
    def mutant(original, changed):
        return f"# A bug\nfile: src/a.cc\ntests: unit\n---\n{original}\n---\n{changed}\n"

    @staticmethod
    def write(root, bugs):
        Files.write(root, HOME, "\n".join(f"=== {name}\n{bugs[name]}" for name in sorted(bugs)))

    @staticmethod
    def hunt(root, *names):
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants.py")
        environment = dict(os.environ, SPATE_MUTANTS_PATIENCE="2")
        return subprocess.run([sys.executable, tool, "--root", root, *names], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment)


REACHING = """#include <gtest/gtest.h>
bool fits(int, int);
int unused(int);
TEST(A, One) { EXPECT_TRUE(fits(1, 2)); }
TEST(A, Two) { EXPECT_FALSE(fits(2, 2)); }
TEST(B, Other) { EXPECT_EQ(unused(1), 2); }
"""


@unittest.skipUnless(shutil.which("g++") and shutil.which("addr2line"),
                     "g++ or addr2line is not installed (packages g++, binutils)")
class Reaching(unittest.TestCase):
    def test_the_tests_that_reach_a_line_are_known(self):
        support = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "support")
        with tempfile.TemporaryDirectory() as root:
            Files.write(root, "src/a.cc", LIBRARY)
            Files.write(root, "test.cc", REACHING)
            self.run_in(root, "g++", "-g1", "-fPIC", "-c", "-fsanitize-coverage=trace-pc",
                        os.path.join(root, "src/a.cc"))
            self.run_in(root, "g++", "-fPIC", "-c", os.path.join(support, "reach_nothing.cc"))
            self.run_in(root, "g++", "-shared", "a.o", "reach_nothing.o", "-o", "liba.so")
            self.run_in(root, "g++", "-std=c++23", "test.cc", os.path.join(support, "reach.cc"),
                        os.path.join(root, "liba.so"), "-lgtest", "-lgtest_main", "-o", "tests")
            self.run_in(root, "./tests", SPATE_REACH=os.path.join(root, "reach"))
            reach = random_mutants.Reach()
            for name in os.listdir(root):
                if name.startswith("reach."):
                    reach.add("unit", os.path.join(root, name), root)
        self.assertEqual(reach.tests_of("src/a.cc", 2), [("unit", "A.One:A.Two")])
        self.assertEqual(reach.tests_of("src/a.cc", 5), [("unit", "B.Other")])
        self.assertEqual(reach.tests_of("src/b.cc", 1), [])
        self.assertEqual(reach.labels_of("src/a.cc"), {"unit"})

    def run_in(self, root, *command, **variables):
        done = subprocess.run(command, cwd=root, check=False, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, env=dict(os.environ, **variables))
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
