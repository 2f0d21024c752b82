#!/usr/bin/env python3
"""Drives examples/file_server.cc.   file_server.py PROGRAM"""

import os
import sys
import tempfile
import unittest

import driver


class FileServer(unittest.TestCase):
    program = None

    def test_serves_files(self):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(f"{root}/sub")
            with open(f"{root}/sub/a.txt", "w", encoding="ascii") as file:
                file.write("hello\n")
            with driver.Server(self.program, "0", root) as server:
                base = f"http://127.0.0.1:{server.port}"
                self.assertIn('href="/files/"', driver.curl(base + "/"))
                self.assertIn('href="sub/"', driver.curl(base + "/files/"))
                self.assertIn('href="a.txt"', driver.curl("--location", base + "/files/sub"))
                self.assertEqual(driver.curl(base + "/files/sub/a.txt"), "hello\n")
                self.assertEqual(driver.curl("--range", "1-3", base + "/files/sub/a.txt"), "ell")
                self.assertEqual(
                    driver.curl("--path-as-is", "--output", "/dev/null", "--write-out",
                                "%{http_code}", base + "/files/../../etc/passwd"), "404")
                self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, FileServer))
