#!/usr/bin/env python3
"""Tests of test_report.py."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from test_report import Case, Report, failed_parts, read_junit

JUNIT = """<testsuite>
<testcase name="a.1" status="run"><system-out>fine</system-out></testcase>
<testcase name="b" status="fail"><failure message=""/><system-out>b's words</system-out></testcase>
<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>nginx is missing</system-out></testcase>
<testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>"""
PROGRAM = """<testsuites><testsuite>
<testcase classname="A" name="Passes" status="run"/>
<testcase classname="A" name="Fails" status="run"><failure message="x"/></testcase>
<testcase classname="A" name="Skips" status="run">
<skipped message="f.cc:1&#x0A;no tool"/></testcase>
<testcase classname="A" name="IsOfAnotherShare" status="notrun"/>
</testsuite></testsuites>"""
OUTPUT = """[ RUN      ] A.Passes
[       OK ] A.Passes (0 ms)
[ RUN      ] A.Fails
f.cc:2: Failure
[  FAILED  ] A.Fails (0 ms)
[ RUN      ] A.Crashes
"""


class ReportTest(unittest.TestCase):
    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = pathlib.Path(self.directory.name)
        self.report = Report(self.path)

    def close(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = self.report.close("dev", "1 s")
        return status, printed.getvalue()

    def test_junit_tells_four_ends(self):
        junit = self.path / "junit"
        junit.write_text(JUNIT, encoding="utf-8")
        self.assertEqual([case.status for case in read_junit(junit)],
                         ["run", "fail", "skipped", "fail"])
        self.assertEqual(read_junit(self.path / "missing"), [])

    def test_counts_each_test_of_a_program(self):
        (self.path / "a.1.xml").write_text(PROGRAM, encoding="utf-8")
        self.report.add([Case("a.1", "fail", OUTPUT)], 8)
        self.assertEqual(self.report.counts(), "1 passed, 1 failed, 1 skipped")
        status, printed = self.close()
        self.assertEqual(status, 1)
        self.assertIn("A.Skips: no tool", printed)
        self.assertIn("f.cc:2: Failure", printed)
        self.assertNotIn("A.Passes", printed)

    def test_program_that_crashed_is_one_failure(self):
        self.report.add([Case("a.1", "fail", OUTPUT)], 8)
        self.assertEqual(self.report.counts(), "0 passed, 1 failed, 0 skipped")
        self.assertIn("A.Crashes", self.close()[1])

    def test_failed_parts_keep_what_failed_or_never_ended(self):
        self.assertEqual(failed_parts(OUTPUT), "[ RUN      ] A.Fails\nf.cc:2: Failure\n"
                         "[  FAILED  ] A.Fails (0 ms)\n[ RUN      ] A.Crashes\n")
        self.assertEqual(failed_parts("a script's words"), "a script's words")

    def test_passes_when_all_passed(self):
        self.report.add([Case("a", "run", "")], 0)
        status, printed = self.close()
        self.assertEqual(status, 0)
        self.assertEqual(printed.splitlines()[-1], "test: 1 passed, 0 failed, 0 skipped")

    def test_fails_when_nothing_ran(self):
        self.assertEqual(self.close()[0], 1)

    def test_fails_when_ctest_failed(self):
        self.report.add([Case("a", "run", "")], 8)
        self.assertEqual(self.close()[0], 1)

    def test_remembers_what_passed_whole(self):
        (self.path / "a.1.xml").write_text(PROGRAM.replace('<failure message="x"/>', ""),
                                           encoding="utf-8")
        self.report.add([Case("a.1", "run", ""), Case("b", "run", ""), Case("c", "skipped", "x")],
                        0)
        self.close()
        self.assertEqual(Report(self.path).passed_before(), {"b"})

    def test_line_is_cut_and_flaky_tests_are_listed(self):
        text = " 2/10 Test  #7: {} {}   {}    0.05 sec\n"
        first = self.report.note_line(text.format("a" * 200, "...", "***Failed"))
        self.assertTrue(first.failed)
        self.assertEqual(len(first.line), 100)
        self.report.note_line(text.format("b", "..", "   Passed"))
        again = self.report.note_line(text.format("a" * 200, "...", "   Passed"))
        self.assertEqual((again.failed, again.number, again.total), (False, 2, 10))
        self.assertEqual(self.report.flaky(), ["a" * 200])
        self.assertIsNone(self.report.note_line("      Start  7: a\n"))
        self.assertFalse(self.report.note_line(text.format("c", "..", "***Skipped")).failed)
        crash = self.report.note_line(text.format("d", "..", "***Exception: SegFault"))
        self.assertTrue(crash.failed)


if __name__ == "__main__":
    unittest.main()
