#!/usr/bin/env python3
"""Drives spate-httpd.   spate_httpd.py PROGRAM"""

import json
import os
import signal
import socket
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "examples"))
import driver


def await_listener(path, process):
    """Waits until a server listens at the path; raises OSError if the process has ended."""
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                return probe.connect(path)
            except OSError:
                if process.poll() is not None:
                    raise
        time.sleep(0.01)


class SpateHttpd(unittest.TestCase):
    program = None

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = self.directory.name
        self.write("a.txt", "hello\n")
        self.write("big", "x" * 1_000_000)
        self.write(".hidden", "hidden\n")

    def tearDown(self):
        self.directory.cleanup()

    def write(self, name, text):
        with open(f"{self.root}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    def start(self, *options):
        return driver.Server(self.program, self.root, "--port", "127.0.0.1:0", *options)

    def status(self, server, path, *options):
        return driver.curl("--path-as-is", "--output", "/dev/null", "--write-out", "%{http_code}",
                           *options, f"http://127.0.0.1:{server.port}{path}")

    def test_serves_files(self):
        with self.start("--workers", "2") as server:
            base = f"http://127.0.0.1:{server.port}"
            self.assertEqual(driver.curl(base + "/a.txt"), "hello\n")
            self.assertEqual(driver.curl(base + "/big"), "x" * 1_000_000)
            self.assertEqual(driver.curl("--range", "1-3", base + "/a.txt"), "ell")
            self.assertEqual(self.status(server, "/"), "403")
            self.assertEqual(self.status(server, "/.hidden"), "404")
            self.assertEqual(self.status(server, "/../../etc/passwd"), "404")
            self.assertEqual(self.status(server, "/a.txt", "--request", "PUT"), "405")
            self.assertEqual(server.stop(), 0)

    def test_ends_at_ctrl_c(self):
        with self.start() as server:
            self.assertEqual(server.stop(signal.SIGINT), 0)

    def test_ends_although_an_idle_client_keeps_its_socket_open(self):
        with self.start("--workers", "2") as server:
            client = server.connect()
            client.socket.sendall(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            while client.hear() != "hello":
                pass
            silent = server.connect()
            self.assertEqual(server.stop(), 0)
            client.hang_up()
            silent.hang_up()

    def test_lists_directories_and_hidden_files_if_asked(self):
        with self.start("--listing", "--hidden") as server:
            page = driver.curl(f"http://127.0.0.1:{server.port}/")
            self.assertIn('href="a.txt"', page)
            self.assertIn('href=".hidden"', page)
            self.assertEqual(self.status(server, "/.hidden"), "200")

    def test_logs_if_asked(self):
        with self.start("--log", "--workers", "1") as server:
            self.assertEqual(self.status(server, "/a.txt?x=y"), "200")
            line = server.read_line()
            self.assertRegex(line, r'^127\.0\.0\.1 - - \[.* \+0000\] '
                                   r'"GET /a\.txt\?x=y HTTP/1\.1" 200 6 "-" "curl/.*"$')

    def test_shows_what_it_does_if_asked(self):
        with self.start("--inspect", "0", "--workers", "1") as server:
            url = server.read_line().removeprefix("inspector at ")
            self.assertRegex(url, r"^http://127\.0\.0\.1:\d+$")
            state = json.loads(driver.curl(url + "/state.json"))
            self.assertEqual([loop["name"] for loop in state["loops"]], ["workers/0", "main"])
            self.assertIn('spate_loop_up{source="main",loop="main"} 1\n',
                          driver.curl(url + "/metrics"))
            self.assertIn("spate inspector", driver.curl(url))

    def test_serves_without_standard_streams(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed), tempfile.TemporaryDirectory() as directory:
                self.serve_without(closed, f"{directory}/socket")

    def serve_without(self, closed, path):
        """Serves at a path, as nothing can be printed."""
        command = [self.program, self.root, "--port", f"unix:{path}", "--log", "--workers", "1"]
        with driver.Program("sh", "-c", f'exec "$@" {closed}', "sh", *command) as server:
            await_listener(path, server.process)
            for name, text in (("a.txt", "hello\n"), ("big", "x" * 1_000_000)):
                url = f"http://localhost/{name}"
                self.assertEqual(driver.curl("--unix-socket", path, url), text)
            for number, redirection in enumerate(("<&-", ">&-", "2>&-")):
                file = f"/proc/{server.process.pid}/fd/{number}"
                self.assertEqual(os.path.lexists(file), redirection not in closed.split(), file)
            self.assertEqual(server.stop(), 0)

    def test_says_how_it_is_used(self):
        done = driver.run(self.program, "--help")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("usage: spate-httpd DIR [options]\n"))

    def test_says_what_is_wrong(self):
        wrong = [
            ((), "which directory"),
            ((self.root, "/"), "one directory at a time"),
            ((self.root, "--nothing"), "no option --nothing"),
            ((self.root, "--port"), "--port needs a value"),
            ((self.root, "--port", "x:y"), "--port needs [HOST:]PORT"),
            ((self.root, "--inspect", "x"), "--inspect needs [HOST:]PORT"),
            ((self.root, "--workers", "0"), "--workers needs a number"),
            ((self.root, "--workers", "2x"), "--workers needs a number"),
        ]
        for arguments, why in wrong:
            done = driver.run(self.program, *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(why, done.stderr)
            self.assertIn("see spate-httpd --help", done.stderr)

    def test_says_why_it_cannot_start(self):
        done = driver.run(self.program, f"{self.root}/nothing")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot serve", done.stderr)
        self.assertIn("No such file or directory", done.stderr)
        done = driver.run(self.program, self.root, "--port", "127.0.0.1:0", "--inspect",
                          "0.0.0.0:0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("only addresses of this host alone", done.stderr)
        with self.start() as server:
            done = driver.run(self.program, self.root, "--port", f"127.0.0.1:{server.port}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Address already in use; choose another --port", done.stderr)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, SpateHttpd))
