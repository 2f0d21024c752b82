#!/usr/bin/env python3
"""The test of tidy.py: for each rule, a small file that breaks it and one that does not."""

import os
import tempfile
import unittest

import tidy

HEADER = "// What it is.\n#pragma once\n"


def problems(name, text):
    """Returns tidy's problems with a tree of one file, in which $ROOT stands for the tree's own
    path."""
    with tempfile.TemporaryDirectory() as root:
        text = text.replace("$ROOT", root)
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return tidy.check_tree(root)[0]


def body(count, head="int f() {"):
    return head + "\n" + "  work();\n" * count + "}\n"


class Tidy(unittest.TestCase):
    def good(self, name, text):
        self.assertEqual(problems(name, text), [])

    def bad(self, name, text, message, line=None):
        found = problems(name, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(message, found[0])
        if line is not None:
            self.assertTrue(found[0].startswith(f"{name}:{line}: "), found[0])

    def test_columns(self):
        self.good("src/a.cc", "int a;  // " + "é" * 89 + "\n")
        self.bad("src/a.cc", "int a;  // " + "x" * 90 + "\n", "101 columns", 1)
        self.bad("docs/a.md", "a " + "x" * 119 + "\n", "121 columns", 1)
        self.good("docs/a.md", "| a | " + "x" * 119 + " |\n")

    def test_tabs_blanks_and_ends(self):
        self.bad("src/a.cc", "int a;\n\tint b;\n", "a tab", 2)
        self.good("Makefile", "all:\n\ttrue\n")
        self.bad("docs/a.md", "word \n", "blanks")
        self.bad("src/a.cc", "int a;\r\n", "blanks")
        self.bad("src/a.cc", "int a;", "does not end")
        self.bad("src/a.cc", "int a;\n\n", "empty lines")

    def test_conflict_markers(self):
        marks = ["<" * 7 + " HEAD", "=" * 7, ">" * 7 + " main"]
        conflict = "\n".join([marks[0], "ours", marks[1], "theirs", marks[2], ""])
        for name in ("README.md", "src/a.cc", "tests/mutants/a.mutants", "docs/page.html"):
            found = problems(name, conflict)
            self.assertEqual([line.split(": ")[:2] for line in found],
                             [[f"{name}:{number}", "a conflict marker"] for number in (1, 3, 5)])
        for mark in (marks[0], marks[2], "|" * 7 + " base"):
            self.bad("README.md", mark + "\n", "a conflict marker", 1)
        self.good("README.md", "A heading\n=======\n\n<<<<<<<<\n>>>>>>>\n")

    def test_modes(self):
        self.bad("tools/a.py", "#!/usr/bin/env python3\n", "not executable", 1)
        self.good("tools/a.sh.in", "#!/bin/sh\n")
        self.good("tools/a.py", "print()\n")

    def test_function_length(self):
        self.good("src/a.cc", body(48))
        self.bad("src/a.cc", body(49), "f has 51 lines", 1)
        self.bad("src/a.cc", "namespace a {\nclass B {\n public:\n" + body(49) + "};\n}\n",
                 "f has 51 lines", 4)
        self.good("src/a.cc", "namespace a {\n" + "int f() { return 1; }\n" * 90 + "}\n")
        self.good("src/a.cc", "const int table[] = {\n" + "  1,\n" * 90 + "};\n")
        self.good("src/a.cc", "auto x = std::array<int, 9>{\n" + "  f(1),\n" * 90 + "};\n")

    def test_function_length_of_constructors_lambdas_and_operators(self):
        self.bad("src/a.cc", body(49, "A::A(int x) : a_{x}, b_(x) {"), "A::A has 51 lines")
        self.bad("src/a.cc", body(49, "A::A(int x) noexcept\n    : a_{x} {"), "has 52 lines", 1)
        self.bad("src/a.cc", body(49, "bool A::operator()(int x) const {"), "has 51 lines")
        self.bad("src/a.cc", "int f() {\n" + body(45, "  auto g = [] {") + "}\n" + "int g() {}\n"
                 + "int h() {\n  if (x) {\n" + "    y();\n" * 50 + "  }\n}\n", "h has 54 lines")
        self.bad("src/a.cc", body(49, "template <class T>\nrequires C<T>\nint f(T) {"), "53 lines")

    def test_braces_in_strings_and_comments_do_not_count(self):
        self.good("src/a.cc", 'int f() {\n  return g("{", \'{\', R"({)", 1\'000);  // {x\n}\n' +
                  "int a;\n" * 80)

    def test_file_length(self):
        self.good("src/a.cc", "int a;\n" * 600)
        self.bad("src/a.cc", "int a;\n" * 601, "601 lines")
        self.good("tests/a.cc", "int a;\n" * 601)
        self.good("include/spate/a.h", HEADER + "int a;\n" * 299 + "// Words.\n" * 400)
        self.bad("include/spate/a.h", HEADER + "int a;\n" * 300, "301 lines of code")

    def test_exceptions_are_by_name(self):
        tidy.LENGTH_EXCEPTIONS = {("src/a.cc", "f"): "a reason"}
        try:
            self.good("src/a.cc", body(100))
        finally:
            tidy.LENGTH_EXCEPTIONS = {}

    def test_no_exception_is_in_force(self):
        self.assertEqual(tidy.LENGTH_EXCEPTIONS, {})

    def test_warnings_are_errors_only_on_request(self):
        self.good("CMakeLists.txt", "add($<$<BOOL:${SPATE_WERROR}>:-Werror>)\n")
        self.bad("a/CMakeLists.txt", "x()\nadd(-Wall -Werror)\n", "SPATE_WERROR", 2)
        self.bad("cmake/a.cmake", "add(-Werror=shadow)\n", "SPATE_WERROR")

    def test_names(self):
        self.good("src/core/timer_queue.cc", "int a;\n")
        self.bad("src/core/TimerQueue.cc", "int a;\n", "snake_case")
        self.bad("src/core/timer-queue.cc", "int a;\n", "snake_case")
        self.bad("src/util/a.cc", "int a;\n", "named util")
        self.bad("src/core/misc.cc", "int a;\n", "named misc")

    def test_names_of_tests(self):
        self.good("src/a_test.cc", "TEST(Timer, ExpiresOnce) {\n}\nTEST_F(A, AnswersTwice) {\n}\n")
        self.good("src/a_test.cc", "TEST(A, WhenAllEndsBeforeDeadlineOfTask) {\n}\n")
        for name in ("expires_once", "TheTimerExpires", "WhatExpires", "AStart", "A" * 61,
                     "IfItExpires", "LengthIsReadWhateverTheHeader", "EndsForWhomItWaits",
                     "KeepsOrderOfTasksOfAThread", "TasksKeepTheOrder"):
            self.bad("src/a_test.cc", f"TEST_P(Timer, {name}) {{\n}}\n", name, 1)
            self.bad("tests/sim/a_test.cc", f"TEST_P(Timer, {name}) {{\n}}\n", name, 1)

    def test_todo(self):
        self.good("src/a.cc", "// TODO(perf): faster.\n")
        self.bad("src/a.cc", "// TODO" "(now): faster.\n", "do it")

    def test_platform_conditions(self):
        self.bad("src/core/a.cc", "#ifdef __linux__\n#endif\n", "__linux__", 1)
        self.bad("src/core/a.cc", "#if defined(SPATE_A) && EPOLLIN\n#endif\n", "EPOLLIN", 1)
        self.bad("include/spate/a.h", HEADER + "#if _GNU_SOURCE\n#endif\n", "_GNU_SOURCE", 3)
        self.good("src/sys/a.cc", "#ifdef __linux__\n#endif\n")
        self.good("src/backend/a.cc", "#if __has_include(<x.h>)\n#endif\n")
        self.good("include/spate/a.h", HEADER + "#if !defined(NDEBUG) || SPATE_HARDENED\n#endif\n")

    def test_printing_and_aborting(self):
        self.bad("src/a.cc", "void f() { std::cout << 1; }\n", "prints")
        self.bad("src/a.cc", "void f() { printf(x); }\n", "prints")
        self.bad("src/a.cc", "void f() { std::fprintf(x, y); }\n", "prints")
        self.bad("src/a.cc", "void f() { abort(); }\n", "ends the program")
        self.bad("src/a.cc", "void f() { std::abort(); }\n", "ends the program")
        self.good("src/a.cc", "void f() { std::snprintf(x, y); }\n")
        self.good("src/a.cc", "void Stream::abort() { stream_->abort(); }\n")
        self.good("src/a_test.cc", "void f() { printf(x); }\n")

    def test_code_in_comments(self):
        for code in ("return;", "return x;", "f(x);", "x = 3;", "if (x) {", "int x = f();", "x;"):
            self.bad("src/a.cc", f"int a;\n// {code}\n", "code in a comment", 2)
        self.good("src/a.cc", "// Both are set here;\n// the second (see below) is kept;\n")
        self.good("src/a.cc", "// Counted by the C library's fork();\n// a clone() is not seen.\n")
        self.good("include/spate/a.h", "// An example:\n//\n//   f(x);\n#pragma once\n")

    def test_headers(self):
        self.bad("src/a.h", "int a;\n", "#pragma once")
        self.bad("include/spate/a.h", "#pragma once\n", "opens with a comment")

    def test_paths_of_machines(self):
        self.bad("docs/a.md", "See /ho" "me/me/x.\n", "absolute path")
        self.bad("docs/a.md", "See $ROOT/x.\n", "absolute path")
        self.good("docs/a.md", "See /usr/include and src/home/x and $HOME/x.\n")

    def test_files_that_are_no_text_are_left_alone(self):
        self.good("docs/a.png", "\0 \t\n")


if __name__ == "__main__":
    unittest.main()
