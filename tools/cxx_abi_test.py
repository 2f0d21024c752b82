#!/usr/bin/env python3
"""Tests of tools/cxx_abi.py: its findings on small libraries. Skipped without abidiff."""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import cxx_abi

VERSION = "".join(f"#define SPATE_VERSION_{part} {number}\n"
                  for part, number in (("MAJOR", 0), ("MINOR", 7), ("PATCH", 0)))
HEADER = """
struct Widget {
  virtual ~Widget();
  virtual int size() const;
  int first = 0;
};
int count(const Widget& widget);
"""
SOURCE = """
#include "widget.h"
struct Hidden { int one = 1; };
Widget::~Widget() {}
int Widget::size() const { return first; }
int count(const Widget& widget) { return widget.size() + Hidden().one; }
"""
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class CxxAbi(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        for name in ("include", cxx_abi.RECORDS, "build"):
            os.makedirs(os.path.join(self.root, name))
        shutil.copy(os.path.join(ROOT, cxx_abi.SUPPRESSED),
                    os.path.join(self.root, cxx_abi.SUPPRESSED))
        self.write("include/spate_version.h", VERSION)
        self.write("CHANGELOG.md", "# Changes\n\n## 0.7.0, 2026-01-01\n")
        self.build(HEADER, SOURCE)
        self.assertEqual(self.run_tool("--record")[0], 0)

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
            file.write(text)

    def build(self, header, source):
        self.write("include/widget.h", header)
        self.write("widget.cc", source)
        for name in cxx_abi.LIBRARIES:
            subprocess.run(["c++", "-g", "-shared", "-fPIC", "-Iinclude", "widget.cc", "-o",
                            f"build/lib{name}.so.0.7"], cwd=self.root, check=True)

    def run_tool(self, *arguments):
        out = io.StringIO()
        sys.argv = ["cxx_abi.py", "--root", self.root, *arguments, os.path.join(self.root, "build")]
        with contextlib.redirect_stdout(out):
            status = cxx_abi.main()
        return status, out.getvalue()

    def test_equal_libraries_pass(self):
        self.assertEqual(self.run_tool()[0], 0)

    def test_a_new_function_passes(self):
        self.build(HEADER + "int more();", SOURCE + "int more() { return 1; }")
        self.assertEqual(self.run_tool()[0], 0)

    def test_a_type_that_no_header_shows_may_change(self):
        self.build(HEADER, SOURCE.replace("int one = 1", "int one = 1, two = 2"))
        self.assertEqual(self.run_tool()[0], 0)

    def test_a_new_member_fails(self):
        self.build(HEADER.replace("first = 0", "first = 0, second = 0"), SOURCE)
        status, out = self.run_tool()
        self.assertEqual(status, 1)
        self.assertIn("second", out)

    def test_a_new_virtual_function_fails(self):
        self.build(HEADER.replace("  virtual int", "  virtual int other() { return 1; }\n"
                                  "  virtual int"), SOURCE)
        self.assertEqual(self.run_tool()[0], 1)

    def test_a_removed_function_fails(self):
        self.build(HEADER, SOURCE.replace("int count(", "static int counted("))
        status, out = self.run_tool()
        self.assertEqual(status, 1)
        self.assertIn("count(", out)

    def test_a_change_before_the_release_is_no_error_and_is_printed(self):
        self.write("CHANGELOG.md", "# Changes\n\n## 0.7.0, unreleased\n\n## 0.6.0, 2026-01-01\n")
        self.build(HEADER, SOURCE.replace("int count(", "static int counted("))
        status, out = self.run_tool()
        self.assertEqual(status, 0)
        self.assertIn("count(", out)

    def test_a_change_in_an_unreleased_patch_version_fails(self):
        self.write("include/spate_version.h", VERSION.replace("PATCH 0", "PATCH 1"))
        self.write("CHANGELOG.md", "# Changes\n\n## 0.7.1, unreleased\n\n## 0.7.0, 2026-01-01\n")
        self.build(HEADER, SOURCE.replace("int count(", "static int counted("))
        self.assertEqual(self.run_tool()[0], 1)


if __name__ == "__main__":
    if not shutil.which("abidiff"):
        print("abidiff is missing: apt-get install abigail-tools")
        sys.exit(77)
    unittest.main()
