#!/usr/bin/env python3
"""Tests of world_ledger.py: reading, summing and writing."""

import unittest

import world_ledger
from world_ledger import Row


class Ledger(unittest.TestCase):
    def test_reads_what_it_writes(self):
        swarms = {("abc", "One"): Row(2000, 31, 4.5, [[1, 1500], [7001, 7500]]),
                  ("abd", "One"): Row(1, 0, 0.25)}
        bugs = ["a stream had a hole", "and more"]
        text = world_ledger.ledger_text(swarms, bugs)
        self.assertEqual(world_ledger.read(text.splitlines()), (swarms, bugs))

    def test_refuses_other_lines(self):
        for line in ("swarm abc One 1 2", "nothing", "swarm abc One 1 2 3 4",
                     "swarm abc One many 2 3", "swarm abc One 1 2 3 1..2..3"):
            with self.assertRaisesRegex(world_ledger.BadLedger, "line 2"):
                world_ledger.read(["# a comment", line])

    def test_adds_blocks_that_passed(self):
        swarms = {("abc", "One"): Row(10, 5, 1.0)}
        world_ledger.add(swarms, ["abc One 11 20 7 0.5 passed", "abc Two 1 5 1 2.0 passed",
                                  "abc One 21 25 0 0 failed:25", "half a line"])
        self.assertEqual(swarms, {("abc", "One"): Row(20, 12, 1.5, [[11, 20]]),
                                  ("abc", "Two"): Row(5, 1, 2.0, [[1, 5]])})

    def test_adds_a_block_once(self):
        blocks = ["abc One 1 5 1 2.0 passed", "abc One 11 15 1 2.0 passed"]
        swarms = {}
        self.assertEqual(world_ledger.add(swarms, blocks), 0)
        again = [*blocks, "abc One 5 6 1 2.0 passed", "abc One 6 10 1 2.0 passed",
                 "abd One 1 5 1 2.0 passed"]
        self.assertEqual(world_ledger.add(swarms, again), 3)
        self.assertEqual(swarms, {("abc", "One"): Row(15, 3, 6.0, [[1, 15]]),
                                  ("abd", "One"): Row(5, 1, 2.0, [[1, 5]])})

    def test_the_page_has_the_sums(self):
        text = world_ledger.section({("abc", "One"): Row(1000, 5, 24.0),
                                     ("abd", "One"): Row(500, 5, 24.0),
                                     ("abd", "Two"): Row(1, 1, 48.0)}, ["a hole"])
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
