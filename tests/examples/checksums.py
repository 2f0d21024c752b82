#!/usr/bin/env python3
"""Drives examples/checksums.cc.   checksums.py PROGRAM"""

import os
import sys
import tempfile
import unittest

import driver


def fletcher(data):
    low = high = 0
    for byte in data:
        low = (low + byte) % 65535
        high = (high + low) % 65535
    return high << 16 | low


class Checksums(unittest.TestCase):
    program = None

    def test_sums_each_file(self):
        with tempfile.TemporaryDirectory() as directory:
            expected = set()
            paths = []
            for number in range(20):
                path = os.path.join(directory, str(number))
                data = os.urandom(5000 * number)
                with open(path, "wb") as file:
                    file.write(data)
                paths.append(path)
                expected.add(f"{path}: {fletcher(data)}")
            missing = os.path.join(directory, "missing")
            expected.add(f"{missing}: cannot be opened")
            done = driver.run(self.program, *paths, missing)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(set(done.stdout.splitlines()), expected)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Checksums))
