#!/usr/bin/env python3
"""Tests the server's HTTP/2 with other clients.   http2_peers.py SERVER

SERVER is http2_peers_server. Programs that are not installed are left out; without any, the test is
skipped.
"""

import os
import shutil
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

PROGRAMS = ("curl", "nghttp", "h2load", "node")
LONG = 10 * 1024 * 1024

# Makes two requests at once, one with a body, and prints their responses.
NODE = """
const client = require('http2').connect(process.argv[1], {rejectUnauthorized: false});
const size = 3000000;
let left = 2;
function ask(head, body) {
  const stream = client.request(head);
  let text = '';
  stream.on('response', (fields) => console.log(head[':path'], fields[':status']));
  stream.on('trailers', (fields) => console.log('checksum', fields['checksum']));
  stream.on('data', (piece) => text += piece);
  stream.on('end', () => { console.log(text.trim()); if (--left === 0) client.close(); });
  stream.end(body);
}
ask({':path': '/trailers'});
ask({':path': '/', ':method': 'POST'}, Buffer.alloc(size));
"""

# A WebSocket by extended CONNECT: a text of two letters, its echo, and the end.
NODE_WEBSOCKET = """
const client = require('http2').connect(process.argv[1], {rejectUnauthorized: false});
client.on('remoteSettings', (settings) => {
  console.log(settings.enableConnectProtocol);
  const stream = client.request({':method': 'CONNECT', ':protocol': 'websocket', ':path': '/talk',
                                 'sec-websocket-version': '13'});
  stream.on('response', (fields) => {
    console.log(fields[':status']);
    stream.write(Buffer.from([0x81, 0x82, 1, 2, 3, 4, 0x68 ^ 1, 0x69 ^ 2]));
  });
  stream.once('data', (frame) => {
    console.log(frame.toString('latin1', 2));
    stream.end(Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]));
    stream.on('data', (frame) => console.log(frame.readUInt16BE(2)));
    stream.on('end', () => client.close());
  });
});
"""


class Peers(unittest.TestCase):
    program = None

    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.server = driver.Server(self.program)
        self.addCleanup(self.server.__exit__)
        secure = int(self.server.read_line().rsplit(":", 1)[1])
        self.urls = [f"http://127.0.0.1:{self.server.port}", f"https://127.0.0.1:{secure}"]

    def needs(self, program):
        if not shutil.which(program):
            self.skipTest(missing.not_installed(program))

    def test_curl_gets_and_posts(self):
        self.needs("curl")
        for url, how in zip(self.urls, ("--http2-prior-knowledge", "--http2")):
            say = ("--insecure", how, "--write-out", "%{http_version} %{http_code}")
            self.assertEqual(driver.curl(*say, url + "/"), "hello\n2 200")
            self.assertEqual(driver.curl(*say, url + "/nowhere")[-5:], "2 404")
            with tempfile.NamedTemporaryFile() as file:
                file.write(bytes(3_000_000))
                file.flush()
                sent = driver.curl(*say, "--data-binary", "@" + file.name, url + "/")
                self.assertEqual(sent, "3000000\n2 200")
            self.assertEqual(len(driver.curl(*say, url + "/long")), LONG + 5)

    def test_curl_may_choose_http1(self):
        self.needs("curl")
        for url in self.urls:
            say = ("--insecure", "--http1.1", "--write-out", "%{http_version}")
            self.assertEqual(driver.curl(*say, url + "/"), "hello\n1.1")

    def test_nghttp_gets_all(self):
        self.needs("nghttp")
        for url in self.urls:
            done = driver.run("nghttp", "--no-verify-peer", "--null-out", "--stat", "-m", "8",
                              url + "/", url + "/long", url + "/trailers")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count(" 200 "), 24, done.stdout)

    def test_h2load_loses_none(self):
        self.needs("h2load")
        for url in self.urls:
            done = driver.run("h2load", "-n", "3000", "-c", "10", "-m", "32", url + "/")
            self.assertIn("3000 succeeded, 0 failed", done.stdout)

    def test_node_is_answered(self):
        self.needs("node")
        for url in self.urls:
            done = driver.run("node", "-e", NODE, url)
            self.assertEqual(sorted(done.stdout.split("\n")[:-1]),
                             ["/ 200", "/trailers 200", "3000000", "checksum 6", "hello"])

    def test_go_is_answered(self):
        program = go.program(self, "http2")
        for url in self.urls:
            done = driver.run(program, "ask", url)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(done.stdout.splitlines()),
                             sorted(["2 200 6 6"] * 40 + ["2 200 8 "]))

    def test_node_has_a_websocket(self):
        self.needs("node")
        for url in self.urls:
            done = driver.run("node", "-e", NODE_WEBSOCKET, url)
            self.assertEqual(done.stdout.split("\n")[:-1], ["true", "200", "hi", "1000"])

    def test_a_drain_loses_none(self):
        self.needs("h2load")
        with subprocess.Popen(["h2load", "-D", "2", "-c", "4", "-m", "8", self.urls[0] + "/"],
                              stdout=subprocess.PIPE, text=True) as load:
            time.sleep(0.5)
            self.assertEqual(self.server.stop(), 0)
            report = load.communicate(timeout=driver.PATIENCE)[0]
        self.assertRegex(report, r"[1-9]\d* succeeded")


if __name__ == "__main__":
    if not any(map(shutil.which, PROGRAMS)) and not go.find("http2"):
        print(missing.none_installed(*PROGRAMS, "go"))
        sys.exit(missing.SKIPPED)
    sys.exit(driver.main(sys.argv, Peers))
