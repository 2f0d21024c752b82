#!/usr/bin/env python3
"""Drives examples/websocket_chat.cc.   websocket_chat.py PROGRAM"""

import os
import struct
import sys
import unittest

import driver

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "support"))
# pylint: disable=wrong-import-position
import browser  # noqa: E402
import missing  # noqa: E402
from websocket_client import ACCEPT, BINARY, CLOSE, WebSocket  # noqa: E402

SAID = "[...document.querySelectorAll('li')].map((line) => line.textContent)"


def close_of(frame):
    opcode, payload = frame
    assert opcode == CLOSE, opcode
    return struct.unpack(">H", payload[:2])[0], payload[2:].decode()


class WebSocketChat(unittest.TestCase):
    program = None

    def join(self, server, room):
        peer = WebSocket(server.port, f"/rooms/{room}", driver.PATIENCE)
        self.assertEqual(peer.status, 101)
        self.assertEqual(peer.fields["sec-websocket-accept"], ACCEPT)
        return peer

    def test_tells_all_in_the_same_room(self):
        with driver.Server(self.program, "0") as server:
            self.assertIn("new WebSocket", driver.curl(f"http://127.0.0.1:{server.port}/"))
            first = self.join(server, "a")
            self.assertEqual(first.hear(), "a guest joined; here: 1")
            second = self.join(server, "a")
            other = self.join(server, "b")
            self.assertEqual(other.hear(), "a guest joined; here: 1")
            for peer in (first, second):
                self.assertEqual(peer.hear(), "a guest joined; here: 2")
            second.say("h\u00e9llo")
            for peer in (first, second):
                self.assertEqual(peer.hear(), "h\u00e9llo")
            second.hang_up()
            self.assertEqual(first.hear(), "a guest left; here: 1")
            server.process.terminate()
            for peer in (first, other):
                self.assertEqual(close_of(peer.receive()), (1001, ""))
                peer.send(struct.pack(">H", 1001), CLOSE)
                self.assertIsNone(peer.receive())
                peer.hang_up()
            self.assertEqual(server.process.wait(driver.PATIENCE), 0)

    @unittest.skipUnless(browser.program(), missing.not_installed("chromium"))
    def test_is_a_page_that_talks(self):
        with driver.Server(self.program, "0") as server, \
                browser.Browser(browser.program()) as chromium:
            peer = self.join(server, "a")
            self.assertEqual(peer.hear(), "a guest joined; here: 1")
            page = chromium.open(f"http://127.0.0.1:{server.port}/#a", 800)
            page.wait_for("document.title === 'a' && document.querySelector('li') !== null")
            self.assertEqual(page.ask(SAID), ["a guest joined; here: 2"])
            peer.say("<b>h\u00e9llo</b>")
            page.wait_for("document.querySelectorAll('li').length === 2")
            page.ask("document.querySelector('input').value = 'and you?'")
            page.ask("document.querySelector('button').click()")
            page.wait_for("document.querySelectorAll('li').length === 3")
            for text in ("a guest joined; here: 2", "<b>h\u00e9llo</b>", "and you?"):
                self.assertEqual(peer.hear(), text)
            peer.hang_up()
            page.wait_for("document.querySelectorAll('li').length === 4")
            server.process.terminate()
            page.wait_for("document.querySelectorAll('li').length === 5")
            self.assertEqual(page.ask(SAID)[1:], ["<b>h\u00e9llo</b>", "and you?",
                                                  "a guest left; here: 1",
                                                  "(closed: 1001 )"])
            self.assertEqual(server.process.wait(driver.PATIENCE), 0)

    def test_turns_away_what_it_does_not_want(self):
        with driver.Server(self.program, "0") as server:
            peer = self.join(server, "a")
            self.assertEqual(peer.hear(), "a guest joined; here: 1")
            peer.send(b"\x00", BINARY)
            self.assertEqual(close_of(peer.receive()), (1003, "text only"))
            peer.hang_up()
            peer = self.join(server, "b")
            self.assertEqual(peer.hear(), "a guest joined; here: 1")
            peer.say("x" * 1001)
            self.assertEqual(close_of(peer.receive())[0], 1009)
            peer.hang_up()
            evil = WebSocket(server.port, "/rooms/a", driver.PATIENCE, "Origin: http://evil\r\n")
            self.assertEqual(evil.status, 403)
            evil.hang_up()
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, WebSocketChat))
