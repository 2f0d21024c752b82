#!/usr/bin/env python3
"""Drives examples/ticker.cc.   ticker.py PROGRAM"""

import json
import os
import resource
import shutil
import struct
import sys
import unittest

import driver

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "support"))
# pylint: disable=wrong-import-position
import browser  # noqa: E402
import missing  # noqa: E402
from websocket_client import CLOSE, WebSocket  # noqa: E402

LISTENERS = 1000
PRICE = "document.querySelector('h1')?.textContent"

# Opens a hundred streams on each of ten connections of HTTP/2, and prints the first four prices of
# each.
NODE = """
const listeners = 1000, each = 100, ticks = 4;
let left = listeners;
function listen(session) {
  const stream = session.request({':method': 'CONNECT', ':protocol': 'websocket',
                                  ':path': '/prices', 'sec-websocket-version': '13'});
  let kept = Buffer.alloc(0);
  const told = [];
  stream.on('response', (fields) => { if (fields[':status'] !== 200) process.exit(1); });
  stream.on('data', (piece) => {
    kept = Buffer.concat([kept, piece]);
    while (kept.length > 1 && kept.length >= 2 + kept[1] && told.length < ticks) {
      if (kept[0] !== 0x81 || kept[1] > 125) process.exit(2);
      told.push(JSON.parse(kept.subarray(2, 2 + kept[1]).toString()));
      kept = kept.subarray(2 + kept[1]);
      if (told.length === ticks) {
        console.log(JSON.stringify(told));
        if (--left === 0) process.exit(0);
      }
    }
  });
  stream.on('close', () => process.exit(3));
}
for (let at = 0; at < listeners; at += each) {
  const session = require('http2').connect(process.argv[1]);
  session.on('remoteSettings', (settings) => {
    if (!settings.enableConnectProtocol) process.exit(4);
    for (let i = 0; i < each; ++i) listen(session);
  });
}
"""


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
        allow_descriptors(LISTENERS + 100)  # The server inherits the limit.
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

    @unittest.skipUnless(shutil.which("node"), missing.not_installed("node"))
    def test_tells_a_thousand_over_http2(self):
        with driver.Server(self.program, "0") as server:
            done = driver.run("node", "-e", NODE, f"http://127.0.0.1:{server.port}")
            self.assertEqual(done.returncode, 0)
            lists = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(server.stop(), 0)
        self.assertEqual(len(lists), LISTENERS)
        prices = {}
        for told in lists:
            first = told[0]["tick"]
            self.assertEqual([each["tick"] for each in told], list(range(first, first + 4)))
            for each in told:
                self.assertEqual(prices.setdefault(each["tick"], each["price"]), each["price"])

    @unittest.skipUnless(browser.program(), missing.not_installed("chromium"))
    def test_is_a_page_that_moves(self):
        with driver.Server(self.program, "0") as server, \
                browser.Browser(browser.program()) as chromium:
            page = chromium.open(f"http://127.0.0.1:{server.port}/", 600)
            page.wait_for(f"/^[0-9]+[.][0-9][0-9]$/.test({PRICE})")
            page.wait_for(f"{PRICE} !== '{page.ask(PRICE)}'")
            server.process.terminate()
            page.wait_for(f"{PRICE} === 'closed'")
            self.assertEqual(server.process.wait(driver.PATIENCE), 0)

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
