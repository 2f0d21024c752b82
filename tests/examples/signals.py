#!/usr/bin/env python3
"""Drives examples/signals.cc.   signals.py PROGRAM"""

import signal
import sys
import unittest

import driver


class Signals(unittest.TestCase):
    program = None

    def test_counts_hangups_until_interrupted(self):
        with driver.Program(self.program) as signals:
            self.assertEqual(signals.read_line(), f"process {signals.process.pid}")
            for number in 1, 2, 3:
                signals.process.send_signal(signal.SIGHUP)
                self.assertEqual(signals.read_line(), f"SIGHUP {number}")
            self.assertEqual(signals.stop(signal.SIGINT), 0)
            self.assertEqual(signals.read_line(), "stopped after 3")


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Signals))
