#!/usr/bin/env python3
"""Drives examples/hello_http.cc.   hello_http.py PROGRAM"""

import sys
import unittest

import driver


class HelloHttp(unittest.TestCase):
    program = None

    def test_says_hello(self):
        with driver.Server(self.program, "0") as server:
            self.assertEqual(driver.curl(f"http://127.0.0.1:{server.port}/"), "hello\n")

    def test_says_how_it_is_used(self):
        without = driver.run(self.program)
        self.assertEqual(without.returncode, 2)
        self.assertEqual(without.stderr, "usage: hello_http [HOST:]PORT\n")


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, HelloHttp))
