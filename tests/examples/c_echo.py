#!/usr/bin/env python3
"""Drives examples/c_echo.c.   c_echo.py PROGRAM"""

import sys

import driver


class Echo(driver.EchoTest):
    def test_stops_on_sigterm(self):
        with self.start() as echo:
            peer = echo.connect()
            peer.say("hello")
            self.assertEqual(peer.hear(), "hello")
            echo.process.terminate()
            self.assertEqual(echo.process.wait(driver.PATIENCE), 0)
            peer.hang_up()

    def test_says_why_it_cannot_start(self):
        with self.start() as echo:
            other = driver.run(self.program, str(echo.port))
        self.assertEqual(other.returncode, 1)
        self.assertIn("Address already in use", other.stderr)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Echo))
