#!/usr/bin/env python3
"""Drives examples/echo.cc.   echo.py PROGRAM"""

import sys

import driver


class Echo(driver.EchoTest):
    def test_drains_on_sigterm(self):
        with self.start() as echo:
            peer = echo.connect()
            peer.say("hello")
            self.assertEqual(peer.hear(), "hello")
            echo.process.terminate()
            self.assertEqual(peer.hear(), "")
            peer.hang_up()
            self.assertEqual(echo.process.wait(driver.PATIENCE), 0)

    def test_says_why_it_cannot_start(self):
        with self.start() as echo:
            other = driver.run(self.program, str(echo.port))
        self.assertEqual(other.returncode, 1)
        self.assertIn("Address already in use", other.stderr)

    def test_says_how_it_is_used(self):
        without = driver.run(self.program)
        self.assertEqual(without.returncode, 2)
        self.assertEqual(without.stderr, "usage: echo [HOST:]PORT\n")


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Echo))
