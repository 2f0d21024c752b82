#!/usr/bin/env python3
"""Drives examples/coro_echo.cc.   coro_echo.py PROGRAM"""

import sys

import driver


class CoroEcho(driver.EchoTest):
    def test_ends_softly_on_sigterm(self):
        with self.start() as echo:
            peer = echo.connect()
            peer.say("hello")
            self.assertEqual(peer.hear(), "hello")
            echo.process.terminate()
            self.assertEqual(peer.hear(), "")
            peer.hang_up()
            self.assertEqual(echo.process.wait(driver.PATIENCE), 0)

    def test_says_how_it_is_used(self):
        without = driver.run(self.program)
        self.assertEqual(without.returncode, 2)
        self.assertEqual(without.stderr, "usage: coro_echo [HOST:]PORT\n")


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, CoroEcho))
