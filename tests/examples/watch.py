#!/usr/bin/env python3
"""Drives examples/watch.cc.   watch.py PROGRAM"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import driver


class Watch(unittest.TestCase):
    program = None

    def test_prints_changes_of_a_tree_until_it_is_removed(self):
        with tempfile.TemporaryDirectory() as outside:
            root = os.path.join(outside, "root")
            os.mkdir(root)
            with driver.Program(self.program, root) as watch:
                self.assertEqual(watch.read_line(), "ready ./")
                with open(os.path.join(root, "a"), "w", encoding="ascii") as file:
                    file.write("text")
                self.assertEqual(watch.read_line(), "created a")
                self.assertEqual(watch.read_line(), "changed a")
                self.assertEqual(watch.read_line(), "written a")
                os.rename(os.path.join(root, "a"), os.path.join(root, "b"))
                self.assertEqual(watch.read_line(), "moved a -> b")
                os.mkdir(os.path.join(root, "d"))
                self.assertEqual(watch.read_line(), "created d/")
                shutil.rmtree(root)
                self.assertEqual({watch.read_line(), watch.read_line()},
                                 {"removed b", "removed d/"})
                self.assertEqual(watch.read_line(),
                                 "the watch has ended: No such file or directory")

    def test_reports_a_missing_directory(self):
        done = subprocess.run([self.program, "/nonexistent"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No such file or directory", done.stderr)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Watch))
