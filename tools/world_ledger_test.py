#!/usr/bin/env python3
"""Tests of world_ledger.py: what it reads, sums and writes."""

import unittest

import world_ledger


class Ledger(unittest.TestCase):
    def test_reads_what_it_writes(self):
        swarms = {("abc", "One"): [2000, 31, 4.5], ("abd", "One"): [1, 0, 0.25]}
        bugs = ["a stream had a hole", "and more"]
        text = world_ledger.ledger_text(swarms, bugs)
        self.assertEqual(world_ledger.read(text.splitlines()), (swarms, bugs))

    def test_refuses_other_lines(self):
        for line in ("swarm abc One 1 2", "nothing", "swarm abc One 1 2 3 4"):
            with self.assertRaisesRegex(world_ledger.BadLedger, "line 2"):
                world_ledger.read(["# a comment", line])
        with self.assertRaises(ValueError):
            world_ledger.read(["swarm abc One many 2 3"])

    def test_adds_blocks_that_passed(self):
        swarms = {("abc", "One"): [10, 5, 1.0]}
        world_ledger.add(swarms, ["abc One 11 20 7 0.5 passed", "abc Two 1 5 1 2.0 passed",
                                  "abc One 21 25 0 0 failed:25", "half a line"])
        self.assertEqual(swarms, {("abc", "One"): [20, 12, 1.5], ("abc", "Two"): [5, 1, 2.0]})

    def test_the_page_has_the_sums(self):
        text = world_ledger.section({("abc", "One"): [1000, 5, 24.0],
                                     ("abd", "One"): [500, 5, 24.0],
                                     ("abd", "Two"): [1, 1, 48.0]}, ["a hole"])
        self.assertIn("| `One` | 1,500 | 10 | 2 days |", text)
        self.assertIn("| `all` | 1,501 | 11 | 4 days |", text)
        self.assertIn("* a hole\n", text)
        self.assertIn("| `all` | 0 | 0 | 0 days |", world_ledger.section({}, []))

    def test_replaces_its_section_only(self):
        begin, end = world_ledger.BEGIN, world_ledger.END
        page = f"before\n{begin}\nold\n{end}\nbehind\n"
        self.assertEqual(world_ledger.with_section(page, f"{begin}\nnew\n{end}"),
                         f"before\n{begin}\nnew\n{end}\nbehind\n")
        with self.assertRaisesRegex(world_ledger.BadLedger, "no section"):
            world_ledger.with_section("nothing", "")


if __name__ == "__main__":
    unittest.main()
