#!/usr/bin/env python3
"""examples/echo.cc, and those who talk to it.   echo.py PROGRAM"""

import subprocess
import sys
import threading
import unittest

import server


class Echo(unittest.TestCase):
    program = None

    def test_gives_back_what_it_gets(self):
        with server.Server(self.program, "0") as echo:
            anna, bert = echo.connect(), echo.connect()
            anna.say("hello")
            bert.say("good evening")
            self.assertEqual(anna.hear(), "hello")
            self.assertEqual(bert.hear(), "good evening")
            for peer in (anna, bert):
                peer.end()
                self.assertEqual(peer.hear(), "")
                peer.hang_up()

    def test_gives_back_a_lot(self):
        lot = b"0123456789abcde\n" * 500_000
        with server.Server(self.program, "0") as echo:
            peer = echo.connect()
            writer = threading.Thread(target=lambda: (peer.socket.sendall(lot), peer.end()))
            writer.start()
            self.assertEqual(peer.file.read(), lot)
            writer.join()
            peer.hang_up()

    def test_stops_in_good_order(self):
        with server.Server(self.program, "0") as echo:
            peer = echo.connect()
            peer.say("hello")
            self.assertEqual(peer.hear(), "hello")
            echo.process.terminate()
            self.assertEqual(peer.hear(), "")
            peer.hang_up()
            self.assertEqual(echo.process.wait(server.PATIENCE), 0)

    def test_says_why_it_cannot_start(self):
        with server.Server(self.program, "0") as echo:
            other = subprocess.run([self.program, str(echo.port)], stderr=subprocess.PIPE,
                                   text=True, timeout=server.PATIENCE, check=False)
        self.assertEqual(other.returncode, 1)
        self.assertIn("Address already in use", other.stderr)


if __name__ == "__main__":
    server.main(sys.argv, Echo)
