#!/usr/bin/env python3
"""Drives examples/reverse_proxy.cc.   reverse_proxy.py PROGRAM"""

import hashlib
import http.client
import http.server
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import driver  # Adds tests/support to the path.
import missing
import ports

BODY = os.urandom(3_000_000)

# Some server may read each of these as two requests, or as one of another size.
SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
POST = "POST / HTTP/1.1\r\nHost: a\r\n"
REFUSED = {
    "CL.TE": POST + "Content-Length: 49\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "TE.CL": POST + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n2d\r\n" + SMUGGLED
             + "\r\n0\r\n\r\n",
    "TE.TE": POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n"
             + SMUGGLED,
    "CL.CL": POST + "Content-Length: 0\r\nContent-Length: 45\r\n\r\n" + SMUGGLED,
    "a list of lengths": POST + "Content-Length: 0, 45\r\n\r\n" + SMUGGLED,
    "a signed length": POST + "Content-Length: +0\r\n\r\n" + SMUGGLED,
    "a length in hexadecimal": POST + "Content-Length: 0x2d\r\n\r\n" + SMUGGLED,
    "a blank before the colon": POST + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a tab before the colon": POST + "Content-Length\t: 45\r\n\r\n" + SMUGGLED,
    "a folded line": POST + "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a folded value": POST + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a bare line feed": POST + "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a bare carriage return": POST + "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a NUL in a value": POST + "Transfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "another coding": POST + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a vertical tab": POST + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked, then another": POST + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"
                             + SMUGGLED,
    "chunked in HTTP/1.0": "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                           + SMUGGLED,
    "two hosts": "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + SMUGGLED,
    "two targets": "GET / HTTP/1.1 /x HTTP/1.1\r\nHost: a\r\n\r\n" + SMUGGLED,
    "a tab in the first line": "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n" + SMUGGLED,
}
# Their header sections are valid, so the upstream may see the beginning, but nothing after the
# error.
BROKEN_OFF = {
    "a bare line feed behind a size": "2\nhi\r\n0\r\n\r\n" + SMUGGLED,
    "a line feed in an extension": "2;x=\ny\r\nhi\r\n0\r\n\r\n" + SMUGGLED,
    "a size that overflows": "10000000000000002\r\nhi\r\n0\r\n\r\n" + SMUGGLED,
    "a signed size": "-2\r\nhi\r\n0\r\n\r\n" + SMUGGLED,
    "a prefixed size": "0x2\r\nhi\r\n0\r\n\r\n" + SMUGGLED,
    "too much data": "2\r\nhi!\r\n0\r\n\r\n" + SMUGGLED,
    "a length behind the body": "0\r\nContent-Length: 45\r\n\r\n" + SMUGGLED,
}


class Recorder:
    """An upstream that records the requests, and answers each with its path and its body."""

    def __init__(self):
        self.requests = []  # Heads, as they came.
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.heard = threading.Semaphore(0)
        self.closed = threading.Semaphore(0)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connected = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connected,), daemon=True).start()

    def serve(self, connected):
        with connected, connected.makefile("rb") as file:
            try:
                while head := self.read_head(file):
                    self.requests.append(head)
                    self.heard.release()
                    if self.field(head, "expect"):
                        connected.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    self.answer(connected, head, self.read_body(file, head))
            except (EOFError, ConnectionError):
                pass
        self.closed.release()

    @staticmethod
    def read_head(file):
        lines = []
        while (line := file.readline()) not in (b"", b"\r\n"):
            lines.append(line.decode().removesuffix("\r\n"))
        return lines

    @classmethod
    def read_body(cls, file, head):
        if length := cls.field(head, "content-length"):
            return cls.read_exactly(file, int(length))
        if cls.field(head, "transfer-encoding") != "chunked":
            return b""
        body = b""
        while size := int(file.readline() or b"0", 16):
            body += cls.read_exactly(file, size)
            file.readline()
        cls.read_head(file)
        return body

    @staticmethod
    def read_exactly(file, size):
        data = file.read(size)
        if len(data) < size:
            raise EOFError
        return data

    @staticmethod
    def field(head, name):
        values = [line.split(": ", 1)[1] for line in head[1:]
                  if line.lower().startswith(name + ":")]
        assert len(values) <= 1, head
        return values[0] if values else None

    def answer(self, connected, head, body):
        path = head[0].split(" ")[1]
        if path == "/wait":
            return
        text = BODY if path == "/body" else hashlib.sha256(body).hexdigest().encode()
        connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text))
        if not head[0].startswith("HEAD"):
            connected.sendall(text)

    def close(self):
        self.listener.close()


class Application(http.server.ThreadingHTTPServer):
    """A server of Python whose health check fails unless is_well."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.is_well = True
        self.served = 0
        self.checks = 0
        self.checked = threading.Condition()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            is_check = self.path == "/healthz"
            if not is_check:
                self.server.served += 1
            self.send_response(200 if self.server.is_well or not is_check else 500)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")
            if is_check:
                with self.server.checked:
                    self.server.checks += 1
                    self.server.checked.notify_all()

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    def wait_for_checks(self, more):
        with self.checked:
            until = self.checks + more
            assert self.checked.wait_for(lambda: self.checks >= until, driver.PATIENCE)

    def close(self):
        self.shutdown()
        self.thread.join()
        self.server_close()


NGINX = """
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 256; }}
http {{
  access_log access.log;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ return 200 "hello"; }}
  }}
}}
"""


class Nginx:
    """An nginx of one process, which can be killed and started again at the same port."""

    def __init__(self):
        self.program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if self.program is None:
            raise unittest.SkipTest(missing.not_installed("nginx"))
        # pylint: disable-next=consider-using-with
        self.directory = tempfile.TemporaryDirectory()
        self.port = ports.free_port()
        self.log = os.path.join(self.directory.name, "access.log")
        with open(os.path.join(self.directory.name, "conf"), "w", encoding="ascii") as file:
            file.write(NGINX.format(port=self.port))
        self.start()

    def start(self):
        with open(self.log, "w", encoding="ascii"):
            pass
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(
            [self.program, "-p", self.directory.name, "-c", "conf"], cwd=self.directory.name)
        while self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                time.sleep(0.01)
        raise RuntimeError("nginx does not start")

    def has_served(self):
        return os.path.getsize(self.log) > 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.directory.cleanup()


class Load:
    """Clients that send GET requests without a pause, and keep the statuses."""

    def __init__(self, port):
        self.port = port
        self.count = 0
        self.statuses = set()
        self.changed = threading.Condition(threading.RLock())
        self.is_over = False
        self.clients = [threading.Thread(target=self.run) for _ in range(8)]
        for each in self.clients:
            each.start()

    def run(self):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=driver.PATIENCE)
        while not self.is_over:
            try:
                client.request("GET", "/")
                response = client.getresponse()
                status = response.status if response.read() == b"hello" else response.reason
            except (OSError, http.client.HTTPException) as error:
                status = repr(error)
                client.close()
            with self.changed:
                self.count += 1
                self.statuses.add(status)
                self.changed.notify_all()
        client.close()

    def wait_for(self, more):
        """Waits for responses, and returns all statuses until now."""
        with self.changed:
            until = self.count + more
            self.wait_until(lambda: self.count >= until)
            return set(self.statuses)

    def wait_until(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, driver.PATIENCE)

    def stop(self):
        self.is_over = True
        for each in self.clients:
            each.join()
        return self.statuses


class ReverseProxy(unittest.TestCase):
    program = None

    def setUp(self):
        self.upstream = Recorder()
        self.addCleanup(self.upstream.close)
        self.proxy = driver.Server(self.program, "127.0.0.1:0", self.upstream.url)
        self.addCleanup(self.proxy.__exit__)
        self.base = f"http://127.0.0.1:{self.proxy.port}"

    def exchange(self, text):
        """Returns the response, read until the proxy closes the connection."""
        client = self.proxy.connect()
        client.socket.sendall(text.encode("latin-1"))
        try:
            answer = client.file.read()
        except ConnectionResetError:
            answer = b""
        client.hang_up()
        return answer.decode("latin-1")

    def test_forwards_to_an_upstream_and_says_for_whom(self):
        driver.curl(self.base + "/a/b?c=d")
        head = self.upstream.requests[0]
        self.assertEqual(head[0], "GET /a/b?c=d HTTP/1.1")
        self.assertIn(f"Host: 127.0.0.1:{self.proxy.port}", head)
        self.assertIn("X-Forwarded-For: 127.0.0.1", head)
        self.assertIn("Via: 1.1 spate", head)

    def test_carries_bodies_byte_for_byte(self):
        done = driver.curl("--output", "/dev/null", "--write-out", "%{size_download}",
                           self.base + "/body")
        self.assertEqual(done, str(len(BODY)))
        digest = hashlib.sha256(BODY).hexdigest()
        for body in (BODY, (BODY[i:i + 50_000] for i in range(0, len(BODY), 50_000))):
            client = http.client.HTTPConnection("127.0.0.1", self.proxy.port)
            client.request("POST", "/", body)  # Chunked, if it is sent in pieces.
            self.assertEqual(client.getresponse().read().decode(), digest)
            client.request("GET", "/body")
            self.assertEqual(client.getresponse().read(), BODY)
            client.close()

    def test_uploads_with_an_expectation(self):
        done = driver.curl("--header", "Expect: 100-continue", "--data-binary", "hello",
                           self.base + "/")
        self.assertEqual(done, hashlib.sha256(b"hello").hexdigest())

    def test_passes_nothing_on_that_is_ambiguous(self):
        for name, text in REFUSED.items():
            with self.subTest(name):
                answer = self.exchange(text)
                self.assertRegex(answer, r"^HTTP/1\.1 (400|501) ")
                self.assertEqual(answer.count("HTTP/1.1 "), 1)
        driver.curl(self.base + "/good")
        self.assertEqual([head[0] for head in self.upstream.requests], ["GET /good HTTP/1.1"])

    def test_ends_the_request_whose_body_becomes_nonsense(self):
        for name, text in BROKEN_OFF.items():
            with self.subTest(name):
                answer = self.exchange(POST + "Transfer-Encoding: chunked\r\n\r\n" + text)
                self.assertRegex(answer, r"^HTTP/1\.1 400 ")
        driver.curl(self.base + "/good")
        heads = [head[0] for head in self.upstream.requests]
        self.assertLessEqual(heads.count("POST / HTTP/1.1"), len(BROKEN_OFF))
        self.assertEqual(set(heads) - {"POST / HTTP/1.1"}, {"GET /good HTTP/1.1"})

    def test_frames_anew_what_it_passes_on(self):
        end = "GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        self.exchange(POST + "Transfer-Encoding: CHUNKED\r\n\r\n0005;a=\"\\\"0\\r\\n\"\r\nhello\r\n"
                      "000;x\r\n\r\n" + end)
        self.exchange(POST + "content-length: 0005\r\n\r\nhello" + end)
        self.exchange(POST + f"Content-Length: {len(SMUGGLED)}\r\n\r\n{SMUGGLED}" + end)
        framing = [line for head in self.upstream.requests for line in [head[0]] + [
            line for line in head if re.match("(?i)content-length|transfer-encoding", line)]]
        self.assertEqual(framing, [
            "POST / HTTP/1.1", "Transfer-Encoding: chunked", "GET /end HTTP/1.1",
            "POST / HTTP/1.1", "Content-Length: 5", "GET /end HTTP/1.1",
            "POST / HTTP/1.1", f"Content-Length: {len(SMUGGLED)}", "GET /end HTTP/1.1"])

    def test_leaves_out_an_upstream_that_cannot_be_reached(self):
        gone = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
        gone.close()
        with driver.Server(self.program, "127.0.0.1:0", url, self.upstream.url) as proxy:
            for _ in range(4):
                done = driver.curl("--data-binary", "hello", f"http://127.0.0.1:{proxy.port}/")
                self.assertEqual(done, hashlib.sha256(b"hello").hexdigest())
        with driver.Server(self.program, "127.0.0.1:0", url) as proxy:
            status = driver.curl("--output", "/dev/null", "--write-out", "%{http_code}",
                                 f"http://127.0.0.1:{proxy.port}/")
            self.assertEqual(status, "502")

    def test_fails_no_request_while_an_upstream_is_killed_and_restarted(self):
        upstreams = [Nginx() for _ in range(3)]
        for each in upstreams:
            self.addCleanup(each.close)
        urls = [f"http://127.0.0.1:{each.port}" for each in upstreams]
        with driver.Server(self.program, "127.0.0.1:0", *urls) as proxy:
            load = Load(proxy.port)
            self.addCleanup(load.stop)
            for _ in range(3):
                self.assertEqual(load.wait_for(200), {200})
                upstreams[1].kill()
                self.assertEqual(load.wait_for(400), {200})
                upstreams[1].start()
                load.wait_until(upstreams[1].has_served)
            self.assertEqual(load.stop(), {200})

    def test_leaves_out_an_upstream_whose_health_check_fails(self):
        upstreams = [Application() for _ in range(3)]
        for each in upstreams:
            self.addCleanup(each.close)
        urls = [each.url for each in upstreams]
        sick = upstreams[1]
        with driver.Server(self.program, "--check", "/healthz", "127.0.0.1:0", *urls) as proxy:
            load = Load(proxy.port)
            self.addCleanup(load.stop)
            load.wait_until(lambda: sick.served > 0)
            sick.is_well = False
            # The first may have begun earlier, and the last may not have ended.
            sick.wait_for_checks(5)
            self.assertEqual(load.stop(), {200})
            served = sick.served
            load = Load(proxy.port)
            self.addCleanup(load.stop)
            self.assertEqual(load.wait_for(200), {200})
            self.assertEqual(sick.served, served)
            sick.is_well = True
            load.wait_until(lambda: sick.served > served)
            self.assertEqual(load.stop(), {200})

    def test_cancels_when_the_client_has_gone(self):
        client = self.proxy.connect()
        client.socket.sendall(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertTrue(self.upstream.heard.acquire(timeout=driver.PATIENCE))
        client.hang_up()
        self.assertTrue(self.upstream.closed.acquire(timeout=driver.PATIENCE))

    def test_drains_on_sigterm(self):
        client = self.proxy.connect()
        client.socket.sendall(b"GET /body HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(client.file.readline(), b"HTTP/1.1 200 OK\r\n")
        rest = []

        def read():
            rest.append(client.file.read())
            client.hang_up()

        reader = threading.Thread(target=read)
        reader.start()
        self.assertEqual(self.proxy.stop(), 0)
        reader.join()
        self.assertTrue(rest[0].endswith(BODY))


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, ReverseProxy))
