#!/usr/bin/env python3
"""The test of prose.py: sentences, the files that have prose, limits, and commit subjects."""

import contextlib
import io
import os
import subprocess
import tempfile
import unittest

import prose


def marks(name, text):
    return [(line, title) for line, title, _ in prose.Prose(name, text).marks]


def quietly(check, *arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        return check(*arguments)


def titles(sentence):
    return [title for _, title in marks("a.md", sentence + "\n")]


class Rules(unittest.TestCase):
    def test_each_rule_marks_its_sentence(self):
        sentences = {
            "opens with a clause": "What was read stays.",
            "opens without its subject": "Of HTTP/2 these two are.",
            "'who' without a noun": "It is for who waits.",
            "nobody, somebody, anybody": "It is read by nobody.",
            "he, him, his": "The loop closes it for him.",
            "'what' as a noun": "It returns what is left.",
            "is told, tells": "The handler is told.",
            "goodbye, farewell": "It sends a goodbye.",
            "anew, afresh": "It begins anew.",
            "behind, for after": "The body comes behind the head.",
            "but for": "It is empty but for one.",
            "is to be": "It is to be closed.",
            "goes on": "The loop goes on.",
            "there is none": "Then there is none.",
            "has come, has gone": "The peer has gone.",
            "of its own": "It has a buffer of its own.",
            "so far, as far as": "It was lost so far.",
        }
        self.assertEqual(sorted(sentences), sorted(title for title, _ in prose.RULES))
        for title, sentence in sentences.items():
            self.assertEqual(titles(sentence), [title], sentence)

    def test_plain_sentences_have_no_mark(self):
        for sentence in ("Returns the number of bytes that were read.",
                         "What is a Stream?",
                         "Of course it is closed.",
                         "Clients who log in get a session.",
                         "The compiler tells you so.",
                         "Call tell() again.",
                         "The peer closed the connection."):
            self.assertEqual(titles(sentence), [], sentence)

    def test_a_clause_begins_after_a_colon_and_in_a_cell(self):
        self.assertEqual(titles("The rest: what arrived later."), [])
        self.assertEqual(titles("The rest: Who waits is closed."), ["opens with a clause"])
        self.assertEqual(titles("| read | What is left. |"),
                         ["opens with a clause"])


class Extraction(unittest.TestCase):
    def test_markdown_leaves_code_out(self):
        text = ("A line.\n\n```\nnobody\n```\n\n    nobody\n\n`nobody` and [a](nobody.md)\n"
                "* an item of nobody\n")
        self.assertEqual(marks("a.md", text), [(10, "nobody, somebody, anybody")])

    def test_c_has_comments_and_no_strings(self):
        text = ('int a;  // For nobody.\nconst char* b = "// nobody";\n/* One line,\n'
                '   and nobody. */\n')
        self.assertEqual([line for line, _ in marks("a.cc", text)], [1, 3])

    def test_comment_lines_are_one_paragraph(self):
        text = "// It returns what\n// is left.\nint a;\n"
        self.assertEqual(marks("a.h", text), [(1, "'what' as a noun")])

    def test_python_has_comments_and_docstrings(self):
        text = '"""For nobody."""\n\nA = "nobody"  # It is for nobody.\n'
        self.assertEqual(sorted(line for line, _ in marks("a.py", text)), [1, 3])

    def test_scripts_are_known_by_their_first_line(self):
        text = "#!/bin/bash\n# For nobody.\necho nobody\n"
        self.assertEqual([line for line, _ in marks("tools/run", text)], [2])

    def test_a_mutant_has_its_description(self):
        text = "=== a\n# It is for nobody.\nfile: a.cc\n---\n# nobody\n---\n"
        found = marks("tests/mutants/src.mutants", f"{text}\n{text}")
        self.assertEqual([line for line, _ in found], [2, 9])

    def test_other_files_have_no_prose(self):
        self.assertIsNone(prose.extractor("a.txt", "nobody\n"))


class Limits(unittest.TestCase):
    LONG = "word " * 199
    MARKED = LONG + "nobody\n"

    def over(self, name, text, limit):
        return list(prose.over_limits({name: prose.Prose(name, text)}, limit))

    def test_a_file_over_its_limit_is_found(self):
        limits = (("docs/", 4.9), ("", 5.0))
        self.assertEqual(len(self.over("docs/a.md", self.MARKED, limits)), 2)  # And its folder.
        self.assertEqual(len(self.over("src/a.md", self.MARKED, limits)), 1)

    def test_a_short_file_counts_with_its_folder(self):
        limits = (("", 2.0),)
        self.assertEqual(self.over("docs/a.md", "nobody\n", limits), [])
        found = {"docs/a.md": prose.Prose("docs/a.md", "nobody\n"),
                 "docs/b.md": prose.Prose("docs/b.md", self.LONG)}
        self.assertEqual(len(list(prose.over_limits(found, limits))), 1)

    def test_a_plain_file_is_right(self):
        self.assertEqual(self.over("docs/a.md", self.LONG, (("", 0.0),)), [])


class Subjects(unittest.TestCase):
    def test_an_area_and_an_imperative_are_right(self):
        for subject in ("udp: deliver to the last-connected socket", "sim/udp: skip it",
                        "docs, examples: embed the samples", "dropin tests: run remctld",
                        "net: feed the node again"):
            self.assertIsNone(prose.subject_problem(subject), subject)

    def test_others_are_wrong(self):
        for subject in ("Deliver to the socket", "udp: " + "x" * 80, "udp: delivered again",
                        "udp: the socket is used", "docs: adds a page", "udp:", "wip"):
            self.assertIsNotNone(prose.subject_problem(subject), subject)

    def test_the_commits_since_a_base_are_checked(self):
        with tempfile.TemporaryDirectory() as root:
            def git(*arguments):
                subprocess.run(("git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b",
                                *arguments), check=True, stdout=subprocess.DEVNULL)
            git("init", "-q")
            for subject in ("Before the base", "docs: add a page", "Wrong"):
                git("commit", "-q", "--allow-empty", "-m", subject)
            self.assertEqual(quietly(prose.check_commits, root, "HEAD~2"), 1)
            git("commit", "-q", "--amend", "--allow-empty", "-m", "docs: add another page")
            self.assertEqual(quietly(prose.check_commits, root, "HEAD~2"), 0)
            self.assertEqual(quietly(prose.check_commits, root, "@{upstream}"), 0)


class Tree(unittest.TestCase):
    def test_a_tree_is_read_from_its_root(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "docs"))
            with open(os.path.join(root, "docs", "a.md"), "w", encoding="utf-8") as file:
                file.write(Limits.MARKED)
            self.assertEqual(quietly(prose.check_tree, root), 1)


if __name__ == "__main__":
    unittest.main()
