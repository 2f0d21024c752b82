#!/usr/bin/env python3
"""Drives examples/coro_api.cc.   coro_api.py PROGRAM"""

import sys
import unittest

import driver


class CoroApi(unittest.TestCase):
    program = None

    def test_keeps_notes_and_shows_one_or_two(self):
        with driver.Server(self.program, "0") as server:
            base = f"http://127.0.0.1:{server.port}"

            def status(*arguments):
                return driver.curl("--output", "/dev/null", "--write-out", "%{http_code}",
                                   *arguments)

            for number, text in enumerate(("milk", "bread"), 1):
                said = driver.curl("--include", "--data-binary", text, base + "/notes")
                self.assertIn("HTTP/1.1 201 Created", said)
                self.assertIn(f"Location: /notes/{number}", said)
            self.assertEqual(driver.curl(base + "/notes/2"), "bread\n")
            self.assertEqual(driver.curl(base + "/notes/2/and/1"), "bread and milk\n")
            self.assertEqual(status(base + "/notes/3"), "404")
            self.assertEqual(status(base + "/notes/1/and/3"), "404")
            self.assertEqual(status("--data-binary", "x" * 20_000, base + "/notes"), "413")
            self.assertEqual(server.stop(), 0)

    def test_says_how_it_is_used(self):
        without = driver.run(self.program)
        self.assertEqual(without.returncode, 2)
        self.assertEqual(without.stderr, "usage: coro_api [HOST:]PORT\n")


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, CoroApi))
