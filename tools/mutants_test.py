#!/usr/bin/env python3
"""The test of mutants.py: files right and wrong, what a run has said, and a small project."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import mutants

GOOD = """# Edges: one too many.
file: src/a.cc
tests: unit, streams
filter: A*
---
  return count < most;
---
  return count <= most;
"""
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
            self.write(root, "tests/mutants/good.mutant", GOOD)
            self.write(root, "tests/mutants/gone.mutant", GOOD.replace("a.cc", "b.cc"))
            self.write(root, "tests/mutants/bad.mutant", "# Nothing\n")
            found, problems = mutants.load(root)
        self.assertEqual(list(found), ["good"])
        self.assertEqual([line.split(":")[0] for line in problems],
                         ["tests/mutants/bad.mutant", "tests/mutants/gone.mutant"])

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
        """As ctest lists them: all but `o` are of GoogleTest."""
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
                     "needs cmake, ninja and a compiler")
class AProject(unittest.TestCase):
    def test_is_hunted_through(self):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (("CMakeLists.txt", PROJECT), ("src/a.cc", LIBRARY),
                               ("test.cc", PROGRAM)):
                Files.write(root, name, text)
            self.mutant(root, "edge", "  return count < most;", "  return count <= most;")
            self.mutant(root, "hang", "  return count < most;", "  for (;;);")
            self.mutant(root, "lives", "  return x + 1;", "  return x + 2;")
            self.mutant(root, "typo", "  return x + 1;", "  retrun;")
            done = self.hunt(root)
            self.assertEqual(done.returncode, 1)
            for line in ("edge: killed by unit small", "lives: SURVIVED: A bug",
                         "hang: killed by unit the tests (hangs)", "typo: does not build",
                         "2 of 4 mutants killed, 1 do not build"):
                self.assertIn(line, done.stdout)
            with open(os.path.join(root, "src/a.cc"), encoding="utf-8") as file:
                self.assertEqual(file.read(), LIBRARY)
            self.mutant(root, "lives", "  return x + 1;", "  return x + 2;", "survives: unused\n")
            done = self.hunt(root, "lives", "edge")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("lives: survives, as it says: unused", done.stdout)
            Files.write(root, "test.cc", "int main() { return 1; }\n")
            done = self.hunt(root, "edge")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("this fails without any mutant", done.stderr)

    @staticmethod
    def mutant(root, name, original, changed, more=""):
        Files.write(root, f"tests/mutants/{name}.mutant", f"# A bug\nfile: src/a.cc\ntests: unit\n"
                    f"{more}---\n{original}\n---\n{changed}\n")

    @staticmethod
    def hunt(root, *names):
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants.py")
        environment = dict(os.environ, SPATE_MUTANTS_PATIENCE="2")
        return subprocess.run([sys.executable, tool, "--root", root, *names], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment)


if __name__ == "__main__":
    unittest.main()
