#!/usr/bin/env python3
"""Builds the documentation site and looks at it with a browser.   site_test.py DIRECTORY

The site is made in the directory. It is skipped without the site's packages or a browser.
"""

import html.parser
import os
import pathlib
import subprocess
import sys
import unittest
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "support"))
import browser
import missing

TOOL = os.path.join(HERE, os.pardir, os.pardir, "tools", "docs")
NARROW = 360
PAGES = ("index", "install", "recipes", "recipes/http-server", "guide/a-server-in-ten-minutes",
         "guide/stream", "guide/coroutines", "porting-from-asio", "benchmarks", "drop-in",
         "reference/index", "reference/spate/net/stream", "reference/spate/http/websocket_sessions",
         "reference/spate_net")


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names.update(value for key, value in attributes if key in ("id", "name") and value)
        if tag == "a" and values.get("href"):
            self.targets.append(values["href"])


class Site(unittest.TestCase):
    site = None  # The directory of index.html.

    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(browser.Browser(browser.program()))

    def open(self, page, width):
        shown = self.browser.open(f"{self.site.as_uri()}/{page}", width)
        shown.wait_for(f"location.pathname.endsWith('/{page.partition('?')[0]}')"
                       " && document.readyState === 'complete'")
        return shown

    def test_every_link_leads_to_a_page_and_a_place_in_it(self):
        pages = {path: Links(path.read_text()) for path in self.site.rglob("*.html")}
        self.assertGreater(len(pages), 150)
        dead = []
        for path, page in pages.items():
            for target in page.targets:
                parts = urllib.parse.urlsplit(target)
                if parts.scheme or parts.netloc:
                    continue
                to = path if not parts.path else (path.parent / parts.path).resolve()
                names = pages[to].names if to in pages else None
                fragment = urllib.parse.unquote(parts.fragment)
                if not to.exists() or (fragment and names is not None and fragment not in names):
                    dead.append(f"{path.relative_to(self.site)}: {target}")
        self.assertEqual(dead, [])

    def test_pages_fit_a_phone(self):
        for page in PAGES:
            shown = self.open(f"{page}.html", NARROW)
            self.assertEqual(shown.ask("document.documentElement.scrollWidth"), NARROW, page)
            title = shown.ask("(e => e.scrollWidth - e.clientWidth)(document.querySelector('h1'))")
            self.assertLessEqual(title, 0, page)

    def test_colours_follow_the_preference(self):
        page = self.open("index.html", 1200)
        for scheme, brightness in (("dark", "< 100"), ("light", "> 200"), ("dark", "< 100")):
            page.call("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": scheme}])
            page.wait_for("Number(getComputedStyle(document.body).backgroundColor"
                          f".match(/[0-9]+/)[0]) {brightness}")

    def test_search_finds_functions_and_words(self):
        for words, wanted in (("Stream::write", "reference/spate/net/stream.html"),
                              ("set_read_timeout", "reference/spate/net/stream.html"),
                              ("spate_stream_write", "reference/spate_net.html"),
                              ("back-pressure", "guide/stream.html")):
            page = self.open("search.html?q=" + urllib.parse.quote(words), 1200)
            links = "[...document.querySelectorAll('#search-results li > a')].map((a) => a.href)"
            page.wait_for(f"{links}.some((link) => link.includes('{wanted}'))")

    def test_the_guide_links_to_the_reference(self):
        text = (self.site / "guide" / "stream.html").read_text()
        links = [target for target in Links(text).targets
                 if target.startswith("../reference/spate/net/stream.html#")]
        self.assertGreater(len(links), 10)

    def test_the_reference_has_errors_and_threads(self):
        text = (self.site / "reference" / "spate" / "net" / "listener.html").read_text()
        for words in ("Threads:", "EADDRINUSE"):
            self.assertIn(words, text)


def main():
    if browser.program() is None:
        print(missing.not_installed("chromium"))
        return missing.SKIPPED
    directory = pathlib.Path(sys.argv.pop(1)).resolve()
    done = subprocess.run([TOOL, str(directory)], capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="", end="")
    if "needs packages" in done.stderr:
        return missing.SKIPPED
    if done.returncode != 0:
        return done.returncode
    Site.site = directory / "html"
    return unittest.main()


if __name__ == "__main__":
    sys.exit(main())
