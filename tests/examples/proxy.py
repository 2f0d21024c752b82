#!/usr/bin/env python3
"""Drives examples/proxy.cc.   proxy.py PROGRAM"""

import os
import socket
import struct
import sys
import unittest

import driver

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import ports  # pylint: disable=wrong-import-position,wrong-import-order


class Proxy(unittest.TestCase):
    program = None

    def setUp(self):
        self.target = socket.create_server(("127.0.0.1", 0))
        self.target.settimeout(driver.PATIENCE)
        self.addCleanup(self.target.close)
        port = self.target.getsockname()[1]
        self.proxy = driver.Server(self.program, "0", "localhost", str(port))
        self.addCleanup(self.proxy.__exit__)

    def connect(self):
        client = self.proxy.connect()
        self.addCleanup(client.hang_up)
        server = driver.Peer(self.target.accept()[0])
        server.socket.settimeout(driver.PATIENCE)
        self.addCleanup(server.hang_up)
        return client, server

    def test_passes_on_bytes_and_the_end_of_each_side(self):
        client, server = self.connect()
        client.say("question")
        client.end()
        self.assertEqual(server.hear(), "question")
        self.assertEqual(server.hear(), "")
        server.say("answer")
        server.end()
        self.assertEqual(client.hear(), "answer")
        self.assertEqual(client.hear(), "")

    def test_passes_on_a_reset(self):
        client, server = self.connect()
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.hang_up()
        with self.assertRaises(ConnectionResetError):
            client.hear()

    def test_resets_the_client_when_the_target_refuses(self):
        with driver.Server(self.program, "0", "localhost", str(ports.CLOSED_PORT)) as proxy:
            with self.assertRaises(ConnectionResetError):  # Possibly by connect() itself.
                proxy.connect().hear()

    def test_ends_on_sigterm(self):
        self.connect()
        self.assertEqual(self.proxy.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Proxy))
