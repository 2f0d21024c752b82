#!/usr/bin/env python3
"""Drives examples/c_ask.c.   c_ask.py PROGRAM"""

import os
import socket
import sys
import threading
import unittest

import driver

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import ports  # pylint: disable=wrong-import-position,wrong-import-order


def answer(listener):
    connected, _ = listener.accept()
    with connected, connected.makefile("rb") as file:
        connected.sendall(b"you said " + file.readline())


class Ask(unittest.TestCase):
    program = None

    def test_prints_the_answer(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = threading.Thread(target=answer, args=(listener,))
            server.start()
            asked = driver.run(self.program, "127.0.0.1", str(listener.getsockname()[1]), "hello")
            server.join()
        self.assertEqual((asked.returncode, asked.stdout), (0, "you said hello\n"))

    def test_says_why_it_cannot_connect(self):
        asked = driver.run(self.program, "127.0.0.1", str(ports.CLOSED_PORT), "hello")
        self.assertEqual(asked.returncode, 1)
        self.assertIn("Connection refused", asked.stderr)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Ask))
