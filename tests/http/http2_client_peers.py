#!/usr/bin/env python3
"""Tests the client's HTTP/2 with other servers.   http2_client_peers.py CLIENT

CLIENT is http2_client_peer. Servers that are not installed are left out; without any, the test is
skipped.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, folder)
                for folder in ("examples", "support")]
import driver
import go
import missing
from ports import free_port

PROGRAMS = ("nghttpd", "nginx", "node")
CALLS, LONG, SENT = 40, 300_000, 3_000_000

NODE = """
const long = Buffer.alloc(300000, 'x');
// Of its own accord it resets what makes it keep more than 10 MB.
const server = require('http2').createServer({maxSessionMemory: 100}, (request, response) => {
  if (request.method === 'GET') return response.end(long);
  response.addTrailers({checksum: 'sum'});
  request.pipe(response);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""

NGINX = """
daemon off; master_process off; pid ROOT/pid; error_log stderr crit;
events { }
http {
  access_log off; root ROOT; client_max_body_size 10m; http2_max_concurrent_streams 4;
  client_body_temp_path ROOT; proxy_temp_path ROOT; fastcgi_temp_path ROOT;
  uwsgi_temp_path ROOT; scgi_temp_path ROOT;
  server {
    listen 127.0.0.1:PORT http2;
    location = /echo { return 200 "thanks"; }
  }
}
"""


class Servers(unittest.TestCase):
    program = None

    def setUp(self):
        # pylint: disable-next=consider-using-with
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        with open(self.path("long"), "wb") as file:
            file.write(bytes(LONG))

    def path(self, name):
        return os.path.join(self.root, name)

    def needs(self, program):
        if not shutil.which(program):
            self.skipTest(missing.not_installed(program))

    def start(self, *command, port=None):
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, driver.PATIENCE)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + driver.PATIENCE
        while port is not None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                self.assertIsNone(process.poll(), command)
                self.assertLess(time.monotonic(), deadline, command)
                time.sleep(0.02)
        return process

    def ask(self, *words):
        done = driver.run(self.program, *words)
        self.assertEqual(done.returncode, 0)
        return done.stdout.splitlines()

    def assert_answers(self, answers, last):
        self.assertEqual(sorted(answers), sorted([f"2 200 {LONG}"] * CALLS + [last]))

    def nghttpd(self, *words):
        port = free_port()
        self.start("nghttpd", "-a", "127.0.0.1", "-d", self.root, "--echo-upload", "-m", "16",
                   *words[:1], str(port), *words[1:], port=port)
        return port

    def test_nghttpd(self):
        self.needs("nghttpd")
        port = self.nghttpd("--no-tls")
        self.assert_answers(self.ask(f"http://127.0.0.1:{port}"), f"2 200 {SENT}")

    def test_nghttpd_with_trailers(self):
        self.needs("nghttpd")
        port = free_port()
        self.start("nghttpd", "-a", "127.0.0.1", "-d", self.root, "--echo-upload", "--no-tls",
                   "--trailer", "checksum: sum", str(port), port=port)
        answers = self.ask(f"http://127.0.0.1:{port}")
        self.assertEqual(sorted(answers),
                         sorted([f"2 200 {LONG} sum"] * CALLS + [f"2 200 {SENT} sum"]))

    def test_nghttpd_over_tls(self):
        self.needs("nghttpd")
        self.needs("openssl")
        key, certificate = self.path("key"), self.path("certificate")
        driver.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test",
                   "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", key, "-out",
                   certificate)
        port = free_port()
        self.start("nghttpd", "-a", "127.0.0.1", "-d", self.root, "--echo-upload", str(port), key,
                   certificate, port=port)
        self.assert_answers(self.ask(f"https://127.0.0.1:{port}", certificate), f"2 200 {SENT}")

    def test_nghttpx(self):
        self.needs("nghttpd")
        self.needs("nghttpx")
        behind, port = self.nghttpd("--no-tls"), free_port()
        self.start("nghttpx", "--conf=/dev/null", "--errorlog-file=/dev/null",
                   f"-f127.0.0.1,{port};no-tls",
                   f"-b127.0.0.1,{behind};;proto=h2", port=port)
        self.assert_answers(self.ask(f"http://127.0.0.1:{port}"), f"2 200 {SENT}")

    def test_nginx(self):
        self.needs("nginx")
        port = free_port()
        with open(self.path("nginx"), "w", encoding="ascii") as file:
            file.write(NGINX.replace("ROOT", self.root).replace("PORT", str(port)))
        self.start("nginx", "-c", self.path("nginx"), port=port)
        self.assert_answers(self.ask(f"http://127.0.0.1:{port}"), "2 200 6")

    def test_go(self):
        program = go.program(self, "http2")
        port = self.start(program, "serve").stdout.readline().strip()
        self.assert_answers(self.ask(f"http://127.0.0.1:{port}"), f"2 200 {SENT} sum")

    def test_node(self):
        self.needs("node")
        port = self.start("node", "-e", NODE).stdout.readline().strip()
        self.assert_answers(self.ask(f"http://127.0.0.1:{port}"), f"2 200 {SENT} sum")


if __name__ == "__main__":
    if not any(map(shutil.which, PROGRAMS)) and not go.find("http2"):
        print(missing.none_installed(*PROGRAMS, "go"))
        sys.exit(missing.SKIPPED)
    sys.exit(driver.main(sys.argv, Servers))
