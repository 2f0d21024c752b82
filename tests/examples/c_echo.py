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

    def test_stops_reading_from_a_client_that_does_not_read(self):
        lot = b"x" * (1 << 20)
        with self.start() as echo:
            peer = echo.connect()
            peer.socket.settimeout(0.5)
            sent = 0
            with self.assertRaises(TimeoutError):
                while sent < 64 * len(lot):
                    sent += peer.socket.send(lot)
            peer.socket.settimeout(driver.PATIENCE)
            peer.end()
            self.assertEqual(len(peer.file.read()), sent)
            peer.hang_up()

    def test_says_why_it_cannot_start(self):
        with self.start() as echo:
            other = driver.run(self.program, str(echo.port))
        self.assertEqual(other.returncode, 1)
        self.assertIn("Address already in use", other.stderr)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Echo))
