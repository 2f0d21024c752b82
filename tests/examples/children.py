#!/usr/bin/env python3
"""Drives examples/children.cc.   children.py PROGRAM"""

import sys
import unittest

import driver


class Children(unittest.TestCase):
    program = None

    def lines_of(self, *commands):
        done = driver.run(self.program, *commands)
        return done.returncode, done.stdout.splitlines()

    def test_prints_lines_and_exit_codes(self):
        code, lines = self.lines_of("echo one; echo two", "printf 'no newline'", "echo bad >&2")
        self.assertEqual(code, 0)
        self.assertEqual(set(lines), {
            "echo one; echo two: one", "echo one; echo two: two", "echo one; echo two: exit code 0",
            "printf 'no newline': no newline", "printf 'no newline': exit code 0",
            "echo bad >&2: bad", "echo bad >&2: exit code 0"})

    def test_tells_failures(self):
        code, lines = self.lines_of("exit 3", "kill -9 $$", "true")
        self.assertEqual(code, 1)
        self.assertEqual(set(lines),
                         {"exit 3: exit code 3", "kill -9 $$: signal 9", "true: exit code 0"})


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Children))
