#!/usr/bin/env python3
"""The test of doc_tests.py: tables that name their tests, links, source trees, public names."""

import os
import tempfile
import unittest

import doc_tests

SOURCE = """TEST(Plain, Works) {}
TEST_P(Kinds,
       HaveNames) {}
// TEST(Comment, IsNone)
"""
TABLE = """| what | test |
|---|---|
| this | `Plain.Works` |
"""


TREE = """```
src/net/    all of it
  tcp/        streams     udp/   packets
tests/      tests
```
"""

HEADERS = {"include/a.h": "struct SPATE_EXPORT Options {\n  int limit;\n};\n// gone()\n",
           "include/b.h": "void run(const char* name);\n"}
PORTING = """| old | spate |
|---|---|
| loop | %s |
"""


def problems_of_porting(cell):
    return problems_of({**HEADERS, "docs/porting-from-old.md": PORTING % cell})


def problems(page):
    return problems_of({"tests/a.cc": SOURCE, "docs/a.md": page})


def problems_of(pages):
    with tempfile.TemporaryDirectory() as root:
        for name, text in pages.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        return doc_tests.check_tree(root)[0]


class DocTests(unittest.TestCase):
    def test_rows_with_tests_are_right(self):
        self.assertEqual(problems(TABLE + "| that | `Kinds.HaveNames` |\n"), [])

    def test_a_test_that_does_not_exist_is_found(self):
        found = problems(TABLE + "| that | `Comment.IsNone` |\n")
        self.assertEqual(found, ["docs/a.md:4: there is no test Comment.IsNone"])

    def test_a_row_without_a_test_is_found(self):
        self.assertEqual(problems(TABLE + "| that | by hand |\n"),
                         ["docs/a.md:4: a row without a test"])

    def test_a_test_for_two_rows_is_found(self):
        self.assertEqual(problems(TABLE + "| that | `Plain.Works` |\n"),
                         ["docs/a.md:4: Plain.Works stands for two rows"])

    def test_a_test_may_stand_in_two_tables(self):
        self.assertEqual(problems(TABLE + "\n" + TABLE), [])

    def test_other_tables_are_left_alone(self):
        self.assertEqual(problems("| what | why |\n|---|---|\n| this | that |\n\n" + TABLE), [])

    def test_links_lead_to_files_and_headings(self):
        other = "# One\n\n## `run()` and *two*\n\n```\n# no heading\n```\n"
        page = ("[a](b.md) [b](b.md#run-and-two) [c](#here) [d](https://example.org/x) `[e](f)`\n"
                "# Here\n")
        self.assertEqual(problems_of({"docs/a.md": page, "docs/b.md": other}), [])

    def test_links_that_lead_nowhere_are_found(self):
        page = "[a](c.md)\n\n[b](b.md#no-heading) [c](#there)\n"
        found = problems_of({"docs/a.md": page, "docs/b.md": "```\n# No heading\n```\n"})
        self.assertEqual(found, ["docs/a.md:1: there is no file docs/c.md",
                                 "docs/a.md:3: docs/b.md has no heading #no-heading",
                                 "docs/a.md:3: docs/a.md has no heading #there"])

    def test_a_tree_as_the_folders_are_is_right(self):
        self.assertEqual(problems_of({"README.md": TREE, "src/net/tcp/a.h": "", "tests/a.cc": "",
                                      "src/net/udp/a.h": "", ".ci/run": ""}), [])

    def test_folders_that_are_missing_on_either_side_are_found(self):
        found = problems_of({"README.md": TREE, "src/net/tcp/a.h": "", "tests/a.cc": "",
                             "src/net/dns/a.h": "", "src/core/a.h": "", "docs/a.txt": ""})
        self.assertEqual(found, ["README.md:3: there is no folder src/net/udp/",
                                 "README.md:2: the tree lacks docs/",
                                 "README.md:2: the tree lacks src/core/",
                                 "README.md:2: the tree lacks src/net/dns/"])

    def test_a_page_without_its_tree_is_found(self):
        self.assertEqual(problems_of({"README.md": "# Name\n"}), ["README.md:1: no source tree"])

    def test_porting_pages_may_name_what_the_public_headers_have(self):
        self.assertEqual(problems_of_porting('`run("gone")`, 5ms, `f(5ms)`, `Options::limit`'), [])

    def test_porting_pages_with_unknown_names_are_found(self):
        self.assertEqual(problems_of_porting("`gone()`, `run()`"),
                         ["docs/porting-from-old.md:3: no public header has gone"])

    def test_members_are_in_the_header_of_their_type(self):
        page = "`spate::Options::limit`, `Unknown::name`, `Options::run`\n"
        self.assertEqual(problems_of({**HEADERS, "docs/a.md": page}),
                         ["docs/a.md:1: the header of Options has no run"])


if __name__ == "__main__":
    unittest.main()
