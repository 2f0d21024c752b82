#!/usr/bin/env python3
"""The test of version.py: a tree without a fault, and trees in which a copy differs."""

import os
import shutil
import tempfile
import unittest

import version

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Version(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        for name in {version.HEADER, *version.COPIES, *version.SONAMES}:
            path = os.path.join(self.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), path)

    def replace(self, name, old, new):
        path = os.path.join(self.root, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))

    def test_all_copies_are_found_in_the_tree(self):
        self.assertEqual(version.problems(self.root), [])

    def test_a_new_version_is_missed_in_every_copy(self):
        self.replace(version.HEADER, "MINOR 1", "MINOR 77")
        found = version.problems(self.root)
        self.assertEqual(len(found), len(version.COPIES) + len(version.SONAMES))
        self.assertIn("wants 0.77.0", found[0])
        self.assertIn("wants 0.77", found[-1])

    def test_a_patch_leaves_the_soname_alone(self):
        self.replace(version.HEADER, "PATCH 0", "PATCH 5")
        self.assertEqual(len(version.problems(self.root)), len(version.COPIES))

    def test_a_missing_copy_is_found(self):
        os.remove(os.path.join(self.root, "debian/changelog"))
        self.assertEqual(version.problems(self.root), ["debian/changelog: not there"])

    def test_the_soname_has_the_minor_version_before_1_0_only(self):
        self.assertEqual(version.soversion_of("0.3.7"), "0.3")
        self.assertEqual(version.soversion_of("2.3.7"), "2")


if __name__ == "__main__":
    unittest.main()
