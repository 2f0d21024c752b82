#!/usr/bin/env python3
"""Tests the statistics computed from the samples, and the page's text about them."""
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import cells, charts, example, report, runner, schedule, stats, subjects  # noqa: E402
from harness import workloads  # noqa: E402
from harness.workload import METRICS, Case, Workload  # noqa: E402


def row(name, value, repeat=0, workload="pingpong", metric="mib_per_s", **case):
    return {"workload": workload, "contestant": name, "version": "1", "metric": metric, "unit": "u",
            "value": value, "repeat": repeat, "params": case, "case": case}


def results_of(**samples):
    return stats.Results([row(name, value, repeat, connections=1)
                          for name, values in samples.items()
                          for repeat, value in enumerate(values)])


class Intervals(unittest.TestCase):
    def test_few_samples_are_all_in_it(self):
        for values in ([3.0], [3.0, 5.0], [5.0, 4.0, 3.0], [1, 2, 3, 4, 5], [7, 1, 2, 3, 4, 5, 6]):
            self.assertEqual(stats.interval(values), stats.Interval(min(values), max(values)))

    def test_of_eight_the_outermost_are_left_out(self):
        self.assertEqual(stats.interval(list(range(8))), stats.Interval(1, 6))

    def test_the_median_is_in_it_nine_times_in_ten(self):
        self.assertEqual(stats.interval(list(range(15))), stats.Interval(3, 11))

    def test_width_is_a_share_of_the_median(self):
        self.assertAlmostEqual(stats.width([90, 100, 110]), 0.2)
        self.assertEqual(stats.width([0, 0]), 0)


class Verdicts(unittest.TestCase):
    def word(self, mine, others, more_is_better=True):
        return stats.compare(mine, others, more_is_better)[2]

    def test_apart(self):
        self.assertEqual(self.word([5, 6, 7], [2, 3, 4]), "ahead")
        self.assertEqual(self.word([2, 3, 4], [5, 6, 7]), "behind")

    def test_less_may_be_better(self):
        self.assertEqual(self.word([5, 6, 7], [2, 3, 4], more_is_better=False), "behind")
        self.assertEqual(self.word([2, 3, 4], [5, 6, 7], more_is_better=False), "ahead")

    def test_overlapping_is_level_whichever_is_better(self):
        self.assertEqual(self.word([2, 9, 10], [1, 3, 4]), "level")
        self.assertEqual(self.word([3, 3, 3], [3, 3, 3]), "level")

    def test_one_sample_far_off_is_noise_where_there_are_many(self):
        self.assertEqual(self.word([5, 5, 5, 5, 5, 5, 5, 1], [4] * 8), "ahead")

    def test_the_factor_is_over_one_where_we_are_better(self):
        factor, spread, _ = stats.compare([8, 10, 12], [4, 5, 6], True)
        self.assertEqual((factor, spread), (2, stats.Interval(8 / 6, 3)))
        factor, spread, _ = stats.compare([8, 10, 12], [4, 5, 6], False)
        self.assertEqual((factor, spread), (0.5, stats.Interval(1 / 3, 6 / 8)))

    def test_nothing_has_no_factor_but_a_verdict(self):
        self.assertEqual(stats.compare([0, 0, 0], [1, 2, 3], False), (None, None, "ahead"))

    def test_beside_the_best_peer_and_no_other(self):
        results = results_of(spate=[5, 5, 5], libev=[3, 3, 3], libuv=[4, 4, 4], floor=[9, 9, 9],
                             floor_ring=[9, 9, 9], spate_epoll=[8, 8, 8], redis=[9, 9, 9])
        [verdict] = results.verdicts("pingpong", ["mib_per_s"])
        self.assertEqual((verdict.other, verdict.factor, verdict.word), ("libuv", 1.25, "ahead"))

    def test_two_samples_tell_nothing(self):
        [verdict] = results_of(spate=[5, 5], libev=[3, 3]).verdicts("pingpong", ["mib_per_s"])
        self.assertEqual(verdict.word, "")

    def test_what_is_counted_needs_one_sample(self):
        results = stats.Results([row("spate", 100, metric="bytes_per_connection", connections=1),
                                 row("libev", 110, metric="bytes_per_connection", connections=1)])
        [verdict] = results.verdicts("pingpong", ["bytes_per_connection"])
        self.assertEqual(verdict.word, "ahead")

    def test_a_twin_is_beside_its_original(self):
        results = results_of(libev=[4, 4, 4], libev_on_spate=[5, 5, 5])
        [verdict] = results.twin_verdicts("pingpong", ["mib_per_s"])
        self.assertEqual((verdict.contestant, verdict.word), ("libev_on_spate", "ahead"))
        self.assertEqual(results.verdicts("pingpong", ["mib_per_s"]), [])

    def test_counts(self):
        self.assertEqual(stats.count_word(100, 100.5), "level")
        self.assertEqual(stats.count_word(90, 100), "ahead")
        self.assertEqual(stats.count_word(100, 90), "behind")
        rows = [row(name, value, metric=metric, op="message")
                for name, value in (("spate", 90), ("libev", 100), ("libuv", 120), ("floor", 10))
                for metric in ("mib_per_s", "instructions_per_op")]
        self.assertEqual(stats.Results(rows).count_words("instructions"),
                         {("pingpong", "message"): "ahead"})

    def test_tally_typical_and_worst(self):
        results = results_of(spate=[5, 5, 5], libev=[4, 4, 4])
        verdicts = results.verdicts("pingpong", ["mib_per_s"])
        self.assertEqual(stats.tally(verdicts), (1, 0, 0))
        self.assertAlmostEqual(stats.typical(verdicts), 1.25)
        self.assertEqual(stats.worst(verdicts), verdicts[0])
        self.assertIsNone(stats.typical([]))


class FakeContestant:
    def __init__(self, name):
        self.name = name


class Repeating(unittest.TestCase):
    """Cells run again, with a clock that does not matter and values that are made up."""

    def setUp(self):
        self.values = {}
        self.original, runner.run_case = runner.run_case, self.run_case
        self.addCleanup(setattr, runner, "run_case", self.original)
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.schedule = schedule.Schedule(pathlib.Path(self.directory.name, "durations.json"))
        self.rows = []

    def run_case(self, workload, case, contestant):
        sequence = self.values[case.params["connections"]]
        value = sequence.pop(0) if len(sequence) > 1 else sequence[0]
        return runner.Output("1", "", {"mib_per_s": value}, {"mib_per_s": "u"})

    def cell(self, connections, values, **more):
        self.values[connections] = values
        workload = Workload("pingpong", [], [], [])
        case = Case({"connections": connections}, **more)
        return cells.Cell(workload, case, [FakeContestant("spate")])

    def repeat(self, repeated, seconds=60):
        rest = (self.schedule, self.rows.append, self.fail, lambda text: None)
        cells.run_all(repeated, 3, *rest)
        cells.run_again(repeated, seconds, *rest)

    def test_only_what_varies(self):
        steady, wild = self.cell(1, [100]), self.cell(2, [50, 150, 100])
        self.repeat([steady, wild])
        self.assertEqual(steady.repeats, 3)
        self.assertGreater(wild.repeats, 3)
        self.assertLessEqual(wild.width(), cells.WIDE)

    def test_not_without_time(self):
        wild = self.cell(2, [50, 150, 100])
        self.repeat([wild], seconds=0)
        self.assertEqual(wild.repeats, 3)

    def test_never_beyond_the_most(self):
        for most, more in ((cells.MOST_REPEATS, {}), (3, {"most_repeats": 3})):
            wild = self.cell(2, [50, 150] * 50, **more)
            self.repeat([wild])
            self.assertEqual(wild.repeats, most)

    def test_each_sample_says_what_disturbed_it(self):
        self.repeat([self.cell(1, [100])])
        self.assertEqual([r["repeat"] for r in self.rows], [0, 1, 2])
        for sample in self.rows:
            self.assertGreaterEqual(sample["steal"], 0)
            self.assertGreaterEqual(sample["load"], 0)


class HowLong(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.memory = pathlib.Path(self.directory.name, "build", "durations.json")

    def test_what_has_run_tells_about_the_rest(self):
        plan = schedule.Schedule(self.memory)
        plan.plan(("fd", "pairs=1", "spate"), 3)
        plan.plan(("fd", "pairs=2", "spate"), 1)
        program_s = schedule.GUESSES_S["full"][schedule.PROGRAM]
        self.assertEqual(plan.seconds_left(), 4 * program_s)
        plan.ran(("fd", "pairs=1", "spate"), 5)
        self.assertEqual(plan.seconds_left(), 2 * 5 + 5)

    def test_the_next_run_knows(self):
        plan = schedule.Schedule(self.memory)
        plan.ran(("fd", "pairs=1", "spate"), 5)
        plan.save()
        self.assertEqual(schedule.Schedule(self.memory).seconds_of(("fd", "pairs=1", "spate")), 5)

    def test_dropped_parts_take_no_time(self):
        plan = schedule.Schedule(self.memory)
        for name in ("fd", "fdx"):
            plan.plan((name, "pairs=1", "spate"))
            plan.plan((name, schedule.COUNTS, ""))
        guesses = schedule.GUESSES_S["full"]
        program_s = guesses[schedule.PROGRAM]
        self.assertEqual(plan.seconds_left(without=schedule.COUNTS), 2 * program_s)
        plan.drop("fd")
        self.assertEqual(plan.seconds_left(), program_s + guesses[schedule.COUNTS])

    def test_in_words(self):
        self.assertEqual([schedule.in_words(s) for s in (0.4, 89, 100, 5400, 7900)],
                         ["0 s", "89 s", "2 min", "1 h 30 min", "2 h 12 min"])


class Protocol(unittest.TestCase):
    def test_a_contestant_that_cannot_run_says_so(self):
        with self.assertRaisesRegex(runner.LeftOut, "no such backend"):
            runner.parse('{"version": "1", "library": ""}\n{"left_out": "no such backend"}\n')

    def test_words_for_the_cases(self):
        key = (("connections", 10000), ("block", 64))
        self.assertEqual(subjects.case_words(key, {"connections"}), "connections 10,000")
        self.assertEqual(subjects.telling([key, (("connections", 1), ("block", 64))]),
                         {"connections"})


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rows = list(example.rows())
        cls.results = stats.Results(rows[1:])
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "index.html")
            report.write_html(cls.results, rows[0]["run"], path)
            cls.text = path.read_text()

    def test_one_file_without_network(self):
        self.assertEqual(re.findall(r"<(?:script|link|img|iframe)|@import|url\(", self.text), [])

    def test_every_workload_has_its_place(self):
        shown = {s.workload for s in subjects.SUBJECTS}
        self.assertEqual(shown, workloads.ALL.keys())
        self.assertEqual(shown, METRICS.keys())
        for name in workloads.ALL:
            self.assertIn(f"{name}: every sample", self.text)

    def test_missing_results_have_their_reasons(self):
        for a in example.ABSENCES:
            self.assertIn(a.reason, self.text)
        self.assertEqual(self.text.count("Missing results"), 1)

    def test_values_that_noise_made_zero_or_negative_are_shown_without_a_chart(self):
        rows = list(example.rows())
        for value in (0, -0.04, -1e9):
            noisy = [{**row, "value": value} for row in rows[1:] if "value" in row]
            with tempfile.TemporaryDirectory() as directory:
                path = pathlib.Path(directory, "index.html")
                report.write_html(stats.Results(noisy), rows[0]["run"], path)
                self.assertNotIn("<svg viewBox", path.read_text())

    def test_one_value_that_noise_made_negative_costs_no_other_its_chart(self):
        rows = list(example.rows())
        first = {}
        for i, row in enumerate(rows):
            if row.get("metric", "").endswith("_per_op"):
                first.setdefault((row["workload"], row["metric"], *row["params"].items()), i)
        noisy = [{**row, "value": -0.04} if i in first.values() else row
                 for i, row in enumerate(rows[1:], 1)]
        self.assertTrue(first)
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "index.html")
            report.write_html(stats.Results(noisy), rows[0]["run"], path)
            self.assertIn("<svg viewBox", path.read_text())

    def test_every_value_of_an_attribute_is_quoted(self):
        tags = (re.sub(r'"[^"]*"', "", tag) for tag in re.findall(r"<[a-z][^<>]*>", self.text))
        self.assertEqual([tag for tag in tags if re.search(r"=\w", tag)], [])

    def test_colours_can_be_read_on_both_backgrounds(self):
        blocks = re.findall(r":root \{(.*?)\}", report.TEMPLATE.read_text(), re.DOTALL)
        self.assertEqual(len(blocks), 2)
        for block in blocks:
            colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
            grounds = [colours[name] for name in ("page", "card")]
            for name in colours.keys() - {"page", "card", "rule"}:
                if not name.endswith("-tint"):
                    for ground in grounds:
                        self.assertGreaterEqual(contrast(colours[name], ground), 4.5, name)
            for word in ("ahead", "level", "behind"):
                self.assertGreaterEqual(contrast(colours[word], colours[f"{word}-tint"]), 4.5)


class Charts(unittest.TestCase):
    def test_labels_are_spread_within_the_limits(self):
        places = charts.spread_out([10, 11, 12, 99], 12, 5, 100)
        self.assertTrue(all(b - a >= 12 for a, b in zip(places, places[1:])), places)
        self.assertTrue(5 <= places[0] and places[-1] <= 100, places)

    def test_ticks_are_round_and_apart(self):
        scale = charts.Scale(90, 30000, 0, 200)
        ticks = scale.ticks(14)
        self.assertTrue(all(scale(b) - scale(a) >= 14 for a, b in zip(ticks, ticks[1:])))
        self.assertIn(1000, ticks)


def contrast(one, other):
    """As WCAG defines it."""
    def light(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055)**2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


if __name__ == "__main__":
    unittest.main()
