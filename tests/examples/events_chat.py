#!/usr/bin/env python3
"""Drives examples/events_chat.cc.   events_chat.py PROGRAM"""

import sys
import unittest

import driver


class EventsChat(unittest.TestCase):
    program = None

    def join(self, server):
        """Subscribes, and reads the response's header section."""
        peer = server.connect()
        peer.socket.sendall(b"GET /events HTTP/1.0\r\n\r\n")
        self.assertEqual(peer.hear(), "HTTP/1.1 200 OK\r")
        while peer.hear() != "\r":
            pass
        return peer

    def hear_event(self, peer):
        lines = []
        while line := peer.hear():
            lines.append(line)
        return lines

    def test_tells_everybody(self):
        with driver.Server(self.program, "0") as server:
            base = f"http://127.0.0.1:{server.port}"
            self.assertIn("EventSource", driver.curl(base + "/"))
            first = self.join(server)
            self.assertEqual(self.hear_event(first), ["event: count", "data: 1"])
            second = self.join(server)
            for peer in (first, second):
                self.assertEqual(self.hear_event(peer), ["event: count", "data: 2"])
            driver.curl("--data-binary", "hello\nall", base + "/say")
            for peer in (first, second):
                self.assertEqual(self.hear_event(peer), ["data: hello", "data: all"])
            second.hang_up()
            self.assertEqual(self.hear_event(first), ["event: count", "data: 1"])
            first.hang_up()
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, EventsChat))
