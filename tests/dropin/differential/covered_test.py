#!/usr/bin/env python3
"""Tests covered.py: its errors, and how it reads headers and tables."""

import os
import subprocess
import sys
import tempfile
import unittest

import covered

HEADER = """
/** EVENT2_EXPORT_SYMBOL void in_a_comment(void); */
#define documented_macro(a, \\
    b) ((a) + (b))
#define a_number 7
EVENT2_EXPORT_SYMBOL
struct thing *
made_by(int a, void (*callback)(int));
EVENT2_EXPORT_SYMBOL extern int a_variable;
#define generates(name) \\
EVENT2_EXPORT_SYMBOL \\
int made_by_macro_##name(int);
#if 0
EVENT2_EXPORT_SYMBOL void not_compiled(void);
#endif
EV_INLINE int
inlined (void) { return called (1); }
EV_API_DECL void after_it (int, void (*)(void)) EV_NOEXCEPT; // to_be_ignored();
"""
DECLARED = {"documented_macro", "made_by", "generates", "inlined", "after_it"}

TABLE = """
static void before(void) { in_the_preamble(); }
// ---- domains
static int domain(void) { return in_a_domain(); }
// ---- the world
static void open_world(void) { in_the_world(); }
// ---- calls
static void call_it(const long* at) {
  called_here(at[0], "in_a_text()");  // in_a_comment()
  static int (*const table[])(void) = {in_an_array};
}
"""


class Headers(unittest.TestCase):
    def test_functions_and_macros_are_read(self):
        self.assertEqual(covered.functions_of(HEADER), DECLARED)


class Tables(unittest.TestCase):
    def test_only_calls_are_read(self):
        names = covered.named_in(TABLE)
        self.assertLessEqual({"called_here", "in_an_array"}, names)
        for name in ("preamble", "a_domain", "the_world", "a_text", "a_comment"):
            self.assertNotIn(f"in_{name}", names)


class Checks(unittest.TestCase):
    def check(self, named, exempt, least=1):
        return list(covered.check(DECLARED, named, exempt, least))

    def test_nothing_is_missing(self):
        self.assertEqual(self.check(DECLARED - {"inlined"}, {"inlined": "for a reason"}), [])

    def test_missing_row_is_reported(self):
        self.assertEqual(self.check(DECLARED - {"made_by"}, {}),
                         ["made_by: no argument table has a row for it"])

    def test_exemption_without_a_function_is_reported(self):
        self.assertEqual(self.check(DECLARED, {"gone": "for a reason"}),
                         ["gone: is exempt, but the headers do not have it"])

    def test_exemption_with_a_row_is_reported(self):
        self.assertEqual(self.check(DECLARED, {"inlined": "for a reason"}),
                         ["inlined: is exempt, but has a row"])

    def test_too_few_functions_are_reported(self):
        self.assertEqual(len(self.check(DECLARED, {}, len(DECLARED) + 1)), 1)


class Program(unittest.TestCase):
    def test_fails_for_a_header_without_rows(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "ev.h"), "w", encoding="utf-8") as file:
                file.write(HEADER)
            found = subprocess.run([sys.executable, covered.__file__, "libev", directory],
                                   check=False, capture_output=True, text=True)
        self.assertEqual(found.returncode, 1)
        self.assertIn("after_it: no argument table has a row for it", found.stdout)


if __name__ == "__main__":
    unittest.main()
