#!/usr/bin/env python3
"""Tests of coro_patterns.py."""

import unittest

import coro_patterns


def results(**wrong):
    """Returns the outcomes of two patterns, of which `odd` fails where `wrong` says so:
    {compiler_level: outcome}."""
    return {(compiler, level): {"fine": "ok", "odd": wrong.get(f"{compiler}_{level}", "ok")}
            for compiler in coro_patterns.COMPILERS for level in coro_patterns.LEVELS}


class Table(unittest.TestCase):
    def test_what_is_right_everywhere_has_no_row(self):
        made = coro_patterns.table(results())
        self.assertIn("| 0 of 2 patterns | g++ 12 | clang 19 |", made)
        self.assertIn("The other 2 are right in each: `fine`, `odd`.", made)

    def test_a_level_is_named_where_they_differ(self):
        made = coro_patterns.table(results(gcc12_O0="broken", gcc12_sanitized="broken"))
        self.assertIn("| `odd` | broken with `-O0`, sanitized | ok |", made)
        everywhere = {f"gcc12_{level}": "leak" for level in coro_patterns.LEVELS}
        self.assertIn("| `odd` | leak | ok |", coro_patterns.table(results(**everywhere)))

    def test_long_lines_are_wrapped_but_for_rows(self):
        text = "| " + "a " * 100 + "|\n" + "b " * 100
        first, *rest = coro_patterns.wrapped(text).split("\n")
        self.assertGreater(len(first), 120)
        self.assertLessEqual(max(map(len, rest)), 120)

    def test_it_replaces_what_stands_between_the_marks(self):
        page = "a\n" + coro_patterns.BEGIN + "old\n" + coro_patterns.END + "b\n"
        once = coro_patterns.with_table(page, "new\n")
        self.assertEqual(once, "a\n" + coro_patterns.BEGIN + "\nnew\n\n" + coro_patterns.END +
                         "b\n")
        self.assertEqual(coro_patterns.with_table(once, "new\n"), once)


if __name__ == "__main__":
    unittest.main()
