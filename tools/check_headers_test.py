#!/usr/bin/env python3
"""The test of check_headers.py: headers that compile alone, and some that do not."""

import os
import shutil
import tempfile
import unittest

import check_headers


def problems(text, together=False, more=check_headers.STRICT):
    with tempfile.TemporaryDirectory() as include:
        with open(os.path.join(include, "a.h"), "w", encoding="utf-8") as file:
            file.write(text)
        count, found = check_headers.check("g++", include, together, more)
        assert count == 1
        return found


@unittest.skipUnless(shutil.which("g++"), "g++ is not installed (package g++)")
class Headers(unittest.TestCase):
    def test_a_header_with_all_it_needs_compiles(self):
        text = "#pragma once\n#include <cstddef>\ninline std::size_t a = 1;\n"
        self.assertEqual(problems(text), [])

    def test_a_missing_include_is_found(self):
        found = problems("#pragma once\ninline std::vector<int> a;\n")
        self.assertEqual(len(found), 2)
        self.assertIn("a.h", found[1])

    def test_a_need_for_their_absence_is_found(self):
        found = problems("#pragma once\n#ifdef __cpp_exceptions\n#error no\n#endif\n")
        self.assertEqual(len(found), 1)
        self.assertIn("with exceptions", found[0])

    def test_a_header_that_needs_what_is_missing_is_left_out(self):
        headers = os.path.join(os.path.dirname(__file__), os.pardir, "include", "spate", "http")
        for name, needs in (("simdjson", "simdjson.h"), ("nlohmann_json", "nlohmann/json.hpp")):
            with open(os.path.join(headers, name + ".h"), encoding="utf-8") as header:
                self.assertEqual(check_headers.NEEDS.findall(header.read()), [needs])
        with tempfile.NamedTemporaryFile("w", suffix=".h") as header:
            header.write("// Needs nothing/of_this.hpp (in no package).\n")
            header.flush()
            self.assertFalse(check_headers.is_usable("g++", header.name))

    def test_a_missing_guard_is_found(self):
        self.assertEqual(len(problems("struct A {};\n")), 2)

    def test_a_need_for_exceptions_is_found(self):
        found = problems("#pragma once\ninline void f() { throw 1; }\n")
        self.assertEqual(len(found), 1)
        self.assertIn("without", found[0])

    def test_a_warning_is_a_problem_unless_it_is_lenient(self):
        text = "#pragma once\ninline int f(long a) { return a; }\n"
        self.assertEqual(len(problems(text)), 2)
        self.assertEqual(problems(text, more=[]), [])

    def test_a_precompiled_base_hides_nothing_from_headers_that_do_not_include_it(self):
        texts = {check_headers.BASE: "#pragma once\n#include <vector>\n",
                 "spate/user.h": f"#pragma once\n#include <{check_headers.BASE}>\n",
                 "spate/far.h": "#pragma once\n#include <spate/user.h>\nstd::vector<int> f();\n",
                 "spate/other.h": "#pragma once\nstd::vector<int> other();\n",
                 "spate/wrong.h": "#pragma once\n#include <spate/far.h>\nstd::map<int, int> m();\n"}
        with tempfile.TemporaryDirectory() as include:
            os.mkdir(os.path.join(include, "spate"))
            for name, text in texts.items():
                with open(os.path.join(include, name), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual(check_headers.includers(include, texts, check_headers.BASE),
                             {"spate/user.h", "spate/far.h", "spate/wrong.h"})
            _, found = check_headers.check("g++", include)
        self.assertEqual([problem.split(",")[0] for problem in found],
                         ["all of them", "spate/other.h", "spate/wrong.h"])

    def test_together_they_are_looked_at_either_way(self):
        found = problems("#pragma once\ninline void f() { throw 1; }\n", together=True)
        self.assertEqual(len(found), 1)
        self.assertIn("all of them, without", found[0])


if __name__ == "__main__":
    unittest.main()
