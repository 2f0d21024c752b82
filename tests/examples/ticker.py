#!/usr/bin/env python3
"""Drives examples/ticker.cc.   ticker.py PROGRAM"""

import json
import os
import resource
import struct
import sys
import unittest

import driver

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "support"))
# pylint: disable=wrong-import-position
from websocket_client import CLOSE, WebSocket  # noqa: E402

LISTENERS = 1000


def allow_descriptors(number):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        raise unittest.SkipTest(f"no more than {hard} descriptors are allowed")
    if soft != resource.RLIM_INFINITY and soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))


class Ticker(unittest.TestCase):
    program = None

    def join(self, server):
        peer = WebSocket(server.port, "/prices", driver.PATIENCE)
        self.addCleanup(peer.hang_up)
        self.assertEqual(peer.status, 101)
        return peer

    def test_tells_a_thousand_each_tick_in_turn(self):
        allow_descriptors(LISTENERS + 100)  # The server's as well.
        prices = {}
        with driver.Server(self.program, "0") as server:
            self.assertIn("new WebSocket", driver.curl(f"http://127.0.0.1:{server.port}/"))
            peers = [self.join(server) for _ in range(LISTENERS)]
            for peer in peers:
                said = [json.loads(peer.hear()) for _ in range(4)]
                first = said[0]["tick"]
                self.assertEqual([each["tick"] for each in said], list(range(first, first + 4)))
                for each in said:
                    self.assertEqual(prices.setdefault(each["tick"], each["price"]),
                                     each["price"])
            server.process.terminate()
            for peer in peers:
                while (frame := peer.receive())[0] != CLOSE:
                    pass
                self.assertEqual(frame[1], struct.pack(">H", 1001))
                peer.send(frame[1], CLOSE)
                self.assertIsNone(peer.receive())
            self.assertEqual(server.process.wait(driver.PATIENCE), 0)
        self.assertGreater(len(set(prices.values())), 1)

    def test_listens_to_nobody(self):
        with driver.Server(self.program, "0") as server:
            peer = self.join(server)
            peer.say("sell!")
            while (frame := peer.receive())[0] != CLOSE:
                pass
            self.assertEqual(frame[1], struct.pack(">H", 1008) + b"listen")
            peer.send(frame[1], CLOSE)
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Ticker))
