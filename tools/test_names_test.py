#!/usr/bin/env python3
"""The test of test_names.py: lists as GoogleTest prints them."""

import unittest

import test_names


class TestNames(unittest.TestCase):
    def found(self, comment):
        return list(test_names.problems(f"All/Suite.\n  Test/0{comment}\n"))

    def test_readable_parameters_are_accepted(self):
        for comment in ("", "  # GetParam() = tcp", '  # GetParam() = "epoll"',
                        "  # GetParam() = (read, at_the_end)", "  # GetParam() = 0x1f bytes"):
            self.assertEqual(self.found(comment), [])

    def test_parameters_without_a_printer_are_refused(self):
        for value in ("4-byte object <01-00 00-00>", "(1-byte object <01>, 4)", "0x5565e192ffaa"):
            self.assertEqual(self.found(f"  # GetParam() = {value}"), [
                "All/Suite.Test/0: its parameter has no printer: add PrintTo() beside the type"])

    def test_long_parameters_are_refused(self):
        room = test_names.COLUMNS_MAX - len("# GetParam() = ")
        self.assertEqual(self.found("  # GetParam() = " + "x" * room), [])
        self.assertEqual(self.found("  # GetParam() = " + "x" * (room + 1)), [
            "All/Suite.Test/0: its parameter is printed in more than 80 columns"])

    def test_a_suite_ends_where_the_next_begins(self):
        listing = "A/One.\n  Good/0  # GetParam() = 1\nB/Two.\n  Bad/0  # GetParam() = 0x7f\n"
        self.assertEqual(len(list(test_names.problems(listing))), 1)
        self.assertTrue(next(test_names.problems(listing)).startswith("B/Two.Bad/0: "))


if __name__ == "__main__":
    unittest.main()
