#!/usr/bin/env python3
"""The test of doc_tests.py: tables that name their tests, and some that do not."""

import os
import tempfile
import unittest

import doc_tests

SOURCE = """TEST(Plain, Works) {}
TEST_P(Kinds,
       HaveNames) {}
// TEST(Comment, IsNone)
"""
TABLE = """| what | test |
|---|---|
| this | `Plain.Works` |
"""


def problems(page):
    with tempfile.TemporaryDirectory() as root:
        for name, text in (("tests/a.cc", SOURCE), ("docs/a.md", page)):
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        return doc_tests.check_tree(root)[0]


class DocTests(unittest.TestCase):
    def test_rows_with_tests_are_right(self):
        self.assertEqual(problems(TABLE + "| that | `Kinds.HaveNames` |\n"), [])

    def test_a_test_that_does_not_exist_is_found(self):
        found = problems(TABLE + "| that | `Comment.IsNone` |\n")
        self.assertEqual(found, ["docs/a.md:4: there is no test Comment.IsNone"])

    def test_a_row_without_a_test_is_found(self):
        self.assertEqual(problems(TABLE + "| that | by hand |\n"),
                         ["docs/a.md:4: a row without a test"])

    def test_a_test_for_two_rows_is_found(self):
        self.assertEqual(problems(TABLE + "| that | `Plain.Works` |\n"),
                         ["docs/a.md:4: Plain.Works stands for two rows"])

    def test_other_tables_are_left_alone(self):
        self.assertEqual(problems("| what | why |\n|---|---|\n| this | that |\n\n" + TABLE), [])


if __name__ == "__main__":
    unittest.main()
