#!/usr/bin/env python3
"""The parts of the harness that `scale` added: sizes within limits, counts in series, pictures."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import bars, descriptors, example, report, scale, smoke, stats, workloads  # noqa: E402
from harness.contestants import PAIRS_ONLY  # noqa: E402

SIZES = [1000, 10000, 97500]


def counted(sizes, contestant="spate"):
    """Rows of a run in which a request took so many instructions at these sizes."""
    count = scale.series("connections", "request", sizes, lambda n: {}, lambda n: {})
    rows = [example.row("scale_plain", contestant, "instructions_per_op", sizes[spec.size],
                        params=spec.params) for spec in count]
    return rows + [example.row("scale_plain", contestant, "all_processor_us", 1.0, params={},
                               case={"connections": 1})]


class Limits(unittest.TestCase):
    def possible(self, most):
        descriptors.say_left_out.cache_clear()
        told = io.StringIO()
        with mock.patch.object(descriptors, "most_descriptors", lambda: most), \
                contextlib.redirect_stderr(told):
            return (descriptors.possible("scale_plain", SIZES, scale.processes),
                    told.getvalue())

    def test_every_size_runs_with_twenty_thousand_descriptors(self):
        self.assertEqual(self.possible(20000), (SIZES, ""))

    def test_sizes_beyond_the_limit_are_left_out_with_a_line(self):
        allowed, told = self.possible(4096)
        self.assertEqual(allowed, [1000])
        self.assertIn("scale_plain: 97,500 connections left out: they need 19,600 file descriptors "
                      "in a process, and the hard limit is 4,096", told)
        self.assertIn("10,000 connections left out: they need 10,100", told)


class Series(unittest.TestCase):
    def test_group_consists_of_workloads(self):
        self.assertEqual(set(workloads.GROUPS["scale"]),
                         {name for name in workloads.ALL if name.startswith("scale_")})

    def test_smoke_counts_system_calls_at_the_smallest_size(self):
        for name in workloads.GROUPS["scale"]:
            whole = workloads.ALL[name](True)
            small = smoke.fewer(whole.counts)
            self.assertEqual({count.kinds for count in small}, {("syscalls",)}, name)
            self.assertEqual(len({count.series for count in small}), len(small), name)
            least = min(count.size for count in whole.counts)
            self.assertEqual({count.size for count in small}, {least}, name)

    def test_counts_at_several_sizes_are_a_curve(self):
        results = stats.Results(counted({100: 500, 1000: 510}))
        [figure] = report.series_figures(results, "scale_plain")
        self.assertEqual(figure.title, "Instructions: request")
        self.assertEqual(figure.drawing.count("<circle"), 2)
        self.assertEqual(list(report.count_figures(results, "scale_plain")), [])

    def test_growth_of_instructions_misses_the_target(self):
        for last, is_met in ((505, True), (600, False)):
            results = stats.Results(counted({100: 500, 1000: last}))
            [bar] = bars.scale_bars("scale_plain")(results)
            self.assertEqual(bar.met, is_met, bar.measured)

    def test_one_size_is_no_curve(self):
        results = stats.Results(counted({100: 500}))
        self.assertEqual(list(report.series_figures(results, "scale_plain")), [])
        [bar] = bars.scale_bars("scale_plain")(results)
        self.assertIsNone(bar.met)


class Pictures(unittest.TestCase):
    def test_every_part_has_a_picture_that_is_linked(self):
        first, *rows = example.rows()
        results = stats.Results(rows)
        with tempfile.TemporaryDirectory() as directory:
            page = pathlib.Path(directory, "index.html")
            report.write_html(results, first["run"], page)
            files = sorted(pathlib.Path(directory, report.PICTURES).iterdir())
            for file in files:
                root = xml.etree.ElementTree.parse(file).getroot()
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                self.assertIn(f"{report.PICTURES}/{file.name}", page.read_text())
        parts = [s for _, s in report.present(results)
                 if s.workload not in PAIRS_ONLY]
        self.assertEqual(len(files), len(parts))


if __name__ == "__main__":
    unittest.main()
