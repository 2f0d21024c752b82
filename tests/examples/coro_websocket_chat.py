#!/usr/bin/env python3
"""Drives examples/coro_websocket_chat.cc.   coro_websocket_chat.py PROGRAM"""

import os
import struct
import sys
import unittest

import driver

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "support"))
# pylint: disable=wrong-import-position
from websocket_client import BINARY, CLOSE, WebSocket  # noqa: E402


def close_of(frame):
    opcode, payload = frame
    assert opcode == CLOSE, opcode
    return struct.unpack(">H", payload[:2])[0], payload[2:].decode()


class CoroWebSocketChat(unittest.TestCase):
    program = None

    def come(self, server):
        peer = WebSocket(server.port, "/chat", driver.PATIENCE)
        self.assertEqual(peer.status, 101)
        self.assertEqual(peer.hear(), "who are you?")
        return peer

    def join(self, server, name, count):
        peer = self.come(server)
        peer.say(name)
        self.assertEqual(peer.hear(), f"{name} joined; here: {count}")
        return peer

    def test_asks_for_names_and_tells_all_what_is_said(self):
        with driver.Server(self.program, "0") as server:
            self.assertIn("new WebSocket", driver.curl(f"http://127.0.0.1:{server.port}/"))
            first = self.join(server, "ann", 1)
            second = self.join(server, "bob", 2)
            self.assertEqual(first.hear(), "bob joined; here: 2")
            second.say("h\u00e9llo")
            for peer in (first, second):
                self.assertEqual(peer.hear(), "bob: h\u00e9llo")
            second.hang_up()
            self.assertEqual(first.hear(), "bob left; here: 1")
            stranger = self.come(server)
            server.process.terminate()
            for peer in (first, stranger):
                self.assertEqual(close_of(peer.receive()), (1001, ""))
                peer.send(struct.pack(">H", 1001), CLOSE)
                self.assertIsNone(peer.receive())
                peer.hang_up()
            self.assertEqual(server.process.wait(driver.PATIENCE), 0)

    def test_turns_away_what_it_does_not_want(self):
        with driver.Server(self.program, "0") as server:
            for peer in (self.come(server), self.join(server, "ann", 1)):
                peer.send(b"\x00", BINARY)
                frame = peer.receive()
                self.assertEqual(close_of(frame), (1003, "text only"))
                peer.hang_up()
            peer = self.come(server)
            peer.say("x" * 1001)
            self.assertEqual(close_of(peer.receive())[0], 1009)
            peer.hang_up()
            self.assertIn("426", driver.curl("--include", f"http://127.0.0.1:{server.port}/chat"))
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, CoroWebSocketChat))
