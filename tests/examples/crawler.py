#!/usr/bin/env python3
"""Drives examples/crawler.cc.   crawler.py PROGRAM"""

import http.server
import sys
import threading
import unittest

import driver

PAGES = {
    "/": '<a href="/a">a</a> <a href="b?c=d">b</a> <a href="http://other.example/">far</a>',
    "/a": '<a href="/">back</a> <a href="/missing">gone</a> <a href="/a#part">here</a>',
    "/b?c=d": '<a href="/moved">moved</a>',
    "/end": "nothing",
}


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        if self.path == "/never":
            self.server.is_over.wait(driver.PATIENCE)
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/end")
            body = b""
        else:
            self.send_response(200 if self.path in PAGES else 404)
            body = PAGES.get(self.path, "no").encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Crawler(unittest.TestCase):
    program = None

    def setUp(self):
        self.site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
        self.site.is_over = threading.Event()
        self.site.handle_error = lambda *_: None  # A crawler that times out resets its connections.
        self.url = f"http://127.0.0.1:{self.site.server_address[1]}"
        thread = threading.Thread(target=self.site.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.site.server_close)
        self.addCleanup(self.site.shutdown)
        self.addCleanup(self.site.is_over.set)

    def test_reports_every_page_of_the_site_once(self):
        done = driver.run(self.program, self.url, "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), [
            "200 /", "200 /a", "200 /b?c=d", "404 /missing", "200 /moved",
            "5 pages, 1 connections"])

    def test_says_why_a_page_did_not_come(self):
        done = driver.run(self.program, "http://127.0.0.1:1/")
        self.assertEqual(done.stdout.splitlines(), [
            "Connection refused /", "1 pages, 0 connections"])

    def test_ends_at_its_deadline(self):
        done = driver.run(self.program, f"{self.url}/never", "1", "1")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.endswith("not finished\n"), done.stdout)

    def test_wants_a_url(self):
        self.assertEqual(driver.run(self.program).returncode, 2)
        self.assertEqual(driver.run(self.program, "nowhere").returncode, 2)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Crawler))
