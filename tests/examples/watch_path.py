#!/usr/bin/env python3
"""Drives examples/watch_path.cc.   watch_path.py PROGRAM"""

import os
import sys
import tempfile
import unittest

import driver


class WatchPath(unittest.TestCase):
    program = None

    def test_sees_a_file_come_change_and_go(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "file")
            other = os.path.join(directory, "other")
            with driver.Program(self.program, path, other) as watch:
                self.assertEqual(watch.read_line(), "watching")
                with open(path, "w", encoding="ascii"):
                    pass
                self.assertEqual(watch.read_line(), f"{path}: created, 0 bytes")
                with open(path, "a", encoding="ascii") as file:
                    file.write("hello")
                self.assertEqual(watch.read_line(), f"{path}: changed, 5 bytes")
                os.mkdir(other)
                self.assertIn(f"{other}: created", watch.read_line())
                os.remove(path)
                self.assertEqual(watch.read_line(), f"{path}: gone")


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, WatchPath))
