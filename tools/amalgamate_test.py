#!/usr/bin/env python3
"""Tests of tools/amalgamate.py, on a small tree."""

import os
import sys
import tempfile
import unittest

import amalgamate

TREE = {
    "include/spate.h": "#pragma once\n#include \"spate_version.h\"\nint spate_one(void);\n",
    "include/spate_version.h": "#pragma once\n#define SPATE_VERSION 100\n",
    "include/spate/export.h": "#define SPATE_EXPORT visible\n",
    "src/base/a.h": "#pragma once\n#include <vector>\n#include \"spate/export.h\"\nint a();\n",
    "src/base/a.cc": "#include \"base/a.h\"\nint a() { return 1; }\n",
    "src/base/a_test.cc": "int tested;\n",
    "src/sys/b.cc": "#include \"base/a.h\"\n#include \"c.h\"\nint b() { return a(); }\n",
    "src/sys/c.h": "int c;\n",
    "src/sys/linux/f.cc": "#include \"sys/g.h\"\nint f;\n",
    "src/sys/linux/sys/g.h": "int g;\n",
    "src/sys/bsd/sys/g.h": "int foreign;\n",
    "src/backend/d.cc": "int d;\n",
    "src/core/e.cc": "int e;\n",
    "src/net/dns/name_error.cc": "int names;\n",
    "compat/libev/abi.cc": "int sizes;\n",
    "compat/libev/memory.cc": "int allocator;\n",
    "compat/libev/emulation.cc": "int emulated;\n",
    "compat/libev/ev_api.h": "#pragma once\n#pragma GCC visibility push(default)\n"
                            "#include <ev.h>\n",
    "compat/libev/io.cc": "#include \"compat/libev/ev_api.h\"\n"
                          "#include \"spate/layer/node_room.h\"\nint io;\n",
    "compat/libev_source/node_room.h": "#pragma once\n#include \"compat/libev_source/spate_ev.h\"\n"
                                       "int room;\n",
    "compat/libev_source/spate_ev.h": "#include <ev.h>\n",
    "compat/libev_source/signal_loop.cc": "int of_signal;\n",
    "include/spate/layer/node_room.h": "int no_room;\n",
    "src/c/net.cc": "#include \"spate_net.h\"\nint network;\n",
    "src/c/one.cc": "#include \"spate.h\"\nint spate_one() { return 1; }\n",
}


class Amalgamate(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        for name, text in TREE.items():
            self.write(name, text)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def made_libev(self):
        amalgamate.main([self.path("out"), "--libev", "--root", self.directory.name])
        return amalgamate.read(self.path("out"), "spate_ev.cc")

    def made(self):
        amalgamate.main([self.path("out"), "--root", self.directory.name])
        return amalgamate.read(self.path("out"), "spate.cc")

    def test_has_each_header_once_and_each_source(self):
        made = self.made()
        self.assertEqual(made.count("int a();"), 1)
        for name in ("int a() {", "int b() {", "int c;", "int d;", "int e;", "int names;",
                     "int f;", "int g;", "int spate_one() {", "#include <vector>"):
            self.assertIn(name, made)
        self.assertNotIn("foreign", made)

    def test_leaves_out_tests_and_the_network(self):
        made = self.made()
        self.assertNotIn("tested", made)
        self.assertNotIn("network", made)
        self.assertNotIn("#pragma once", made)

    def test_exports_nothing(self):
        self.assertIn("#define SPATE_EXPORT\n", self.made())
        self.assertNotIn("visible", self.made())
        self.assertIn("#define SPATE_API\n", amalgamate.read(self.path("out"), "spate.h"))

    def test_of_libev_has_the_drop_in_but_for_what_a_shared_library_needs(self):
        made = self.made_libev()
        for name in ("int e;", "int io;", "int of_signal;"):
            self.assertIn(name, made)
        for name in ("spate_one", "sizes", "allocator", "emulated", "visibility"):
            self.assertNotIn(name, made)

    def test_of_libev_has_nodes_as_large_as_the_programs_watchers(self):
        made = self.made_libev()
        self.assertNotIn("no_room", made)
        self.assertLess(made.index('#include "spate_ev.h"'), made.index("int room;"))
        self.assertEqual(amalgamate.read(self.path("out"), "spate_ev.h"), "#include <ev.h>\n")

    def test_does_not_leave_out_what_it_cannot_find(self):
        self.write("src/core/e.cc", "#include \"nowhere.h\"\n")
        with self.assertRaises(SystemExit):
            self.made()


if __name__ == "__main__":
    sys.exit(unittest.main())
