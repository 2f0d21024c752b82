#!/usr/bin/env python3
"""Tests of tools/c_abi.py: its findings on small headers."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

import c_abi

HEADER = """
#define SPATE_API
#define UINT32_C(x) x##u
#define SPATE_READ UINT32_C(0x1)
typedef struct spate_thing {
  int first;
  void (*second)(int a);  // Not a member: third.
} spate_thing;
typedef struct spate_options {
  unsigned long size;
} spate_options;
enum {
  SPATE_E_ONE = -1
};
typedef void spate_thing_fn(spate_thing* thing);
SPATE_API int spate_do(spate_thing* thing,
                       int how);
"""


class CAbi(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        for path in ("include", "tests/c"):
            os.makedirs(os.path.join(self.directory.name, path))
        for header in c_abi.HEADERS[1:]:
            self.write(header, "")
        self.write(c_abi.HEADERS[0], HEADER)
        self.assertEqual(self.run_tool("--record")[0], 0)

    def write(self, header, text):
        path = os.path.join(self.directory.name, "include", header)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_tool(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = c_abi.main(["--root", self.directory.name, *arguments])
        return code, out.getvalue()

    def changed(self, old, new):
        self.assertIn(old, HEADER)
        self.write(c_abi.HEADERS[0], HEADER.replace(old, new))
        return self.run_tool()

    def test_is_content_with_what_was_recorded(self):
        code, said = self.run_tool()
        self.assertEqual((code, said), (0, "c_abi: 9 lines, 0 problems\n"))

    def test_finds_a_member_that_has_moved(self):
        code, said = self.changed("int first;", "long first;")
        self.assertEqual(code, 1)
        self.assertIn("changed or gone: struct spate_thing first at 0 size 4", said)

    def test_finds_a_function_that_has_changed_or_gone(self):
        self.assertEqual(self.changed("int how", "long how")[0], 1)
        self.assertIn("changed or gone: function spate_do", self.changed("spate_do", "spate_go")[1])

    def test_finds_a_constant_that_has_changed(self):
        self.assertEqual(self.changed("0x1)", "0x2)")[0], 1)
        self.assertEqual(self.changed("= -1", "= -2")[0], 1)

    def test_asks_to_record_what_is_new(self):
        code, said = self.changed("= -1", "= -1, SPATE_E_TWO = -2")
        self.assertEqual(code, 1)
        self.assertIn("new, record it by --record: constant SPATE_E_TWO -2", said)
        self.assertEqual(self.run_tool("--record")[0], 0)
        self.assertEqual(self.run_tool()[0], 0)

    def test_recording_does_not_hide_what_has_changed(self):
        self.changed("= -1", "= -2")
        self.run_tool("--record")
        self.assertEqual(self.run_tool()[0], 1)

    def test_a_struct_that_begins_with_its_size_may_grow(self):
        sized = HEADER.replace("unsigned long size;", "size_t size;")
        self.write(c_abi.HEADERS[0], sized)
        os.remove(os.path.join(self.directory.name, c_abi.RECORD))
        self.run_tool("--record")
        self.write(c_abi.HEADERS[0], sized.replace("size_t size;", "size_t size; int more;"))
        self.assertNotIn("changed or gone", self.run_tool()[1])


if __name__ == "__main__":
    sys.exit(unittest.main())
