#!/usr/bin/env python3
"""Looks at the page of spate-httpd --inspect with a browser.   inspector_page.py PROGRAM

It is skipped without a browser.
"""

import os
import socket
import sys
import unittest

HERE = os.path.dirname(__file__)
sys.path[:0] = [os.path.join(HERE, os.pardir, "examples"), os.path.join(HERE, os.pardir, "support")]
import browser
import driver
import missing

# Elements beyond the edge of the page, or whose contents are cut off.
FINDINGS = """
[...document.querySelectorAll('body *')].filter((e) => {
  if (e.closest('svg, .scroll > *') || getComputedStyle(e).display === 'inline') return false;
  const box = e.getBoundingClientRect();
  return box.right > innerWidth + 1 || box.left < -1 ||
      (!e.matches('.scroll, input') && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1);
}).map((e) => `${e.tagName} "${e.textContent.trim().slice(0, 40)}"`)
"""

# Labels that break within a word: they have more lines than words.
BROKEN = """
[...document.querySelectorAll('dt')].filter((e) => {
  const text = document.createRange();
  text.selectNodeContents(e);
  const lines = new Set([...text.getClientRects()].map((line) => line.top));
  return lines.size > e.textContent.trim().split(/[ _]+/).length;
}).map((e) => e.textContent)
"""

# Callbacks a second, on the card of the worker.
RATE = """
Number([...document.querySelectorAll('.card')].find(
    (card) => card.querySelector('h3').textContent === 'workers/0'
).querySelector('dd').textContent.replaceAll(',', ''))
"""


class InspectedServer(driver.Server):
    """Starts spate-httpd, whose second line has the inspector's address."""

    def __init__(self, program):
        super().__init__(program, HERE, "--port", "127.0.0.1:0", "--inspect", "0",
                         "--workers", "1")
        self.inspector = self.read_line().rsplit(" ", 1)[1]

    def ask(self, count):
        with socket.create_connection(("127.0.0.1", self.port), driver.PATIENCE) as peer:
            file = peer.makefile("rb")
            for _ in range(count):
                peer.sendall(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
                while file.readline().strip():
                    pass


class InspectorPage(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(browser.Browser(browser.program()))

    def setUp(self):
        self.server = self.enterContext(InspectedServer(self.program))

    def open(self, width):
        page = self.browser.open(self.server.inspector, width)
        page.wait_for("document.querySelector('#live')?.textContent === 'live'")
        page.wait_for("document.querySelectorAll('#loops .card').length === 2")
        return page

    def test_the_numbers_are_live(self):
        page = self.open(1280)
        self.assertEqual(page.ask("document.querySelectorAll('.card .good').length"), 2)
        page.wait_for("document.querySelector('polyline').hasAttribute('points')")
        for _ in range(browser.PATIENCE * 10):
            self.server.ask(200)
            if page.ask(RATE) >= 100:
                break
        self.assertGreaterEqual(page.ask(RATE), 100)
        page.wait_for(f"{RATE} < 100")

    def test_nothing_is_cut_off_or_beyond_the_edge(self):
        idle = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(30)]
        for width in (1280, 390):
            page = self.open(width)
            page.wait_for("document.querySelectorAll('#streams tbody tr').length > 30")
            self.assertEqual(page.ask("document.documentElement.scrollWidth"), width)
            self.assertEqual(page.ask(FINDINGS), [], width)
            self.assertEqual(page.ask(BROKEN), [], width)
        for each in idle:
            each.close()

    def test_streams_are_sorted_and_chosen(self):
        peers = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(3)]
        names = sorted("127.0.0.1:%d" % peer.getsockname()[1] for peer in peers)
        page = self.open(1280)
        page.wait_for("document.querySelectorAll('#streams tbody tr').length > 3")
        page.ask("document.querySelector('#filter').value = 'workers/0';"
                 "document.querySelectorAll('#streams th button')[2].click()")
        shown = ("[...document.querySelectorAll('#streams tbody tr')]"
                 ".map((row) => row.children[2].textContent)")
        page.wait_for(f"{shown}.length === 3")
        self.assertEqual(page.ask(shown), names)
        page.ask("document.querySelectorAll('#streams th button')[2].click()")
        self.assertEqual(page.ask(shown), names[::-1])
        for peer in peers:
            peer.close()

    def test_says_when_no_news_come(self):
        page = self.open(390)
        self.server.process.kill()
        page.wait_for("document.querySelector('#live').className.includes('bad')")


if __name__ == "__main__":
    if browser.program() is None:
        print(missing.not_installed("chromium"))
        sys.exit(missing.SKIPPED)
    sys.exit(driver.main(sys.argv, InspectorPage))
