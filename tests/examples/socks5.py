#!/usr/bin/env python3
"""Drives examples/socks5.cc: curl, clients that follow the protocol, and some that do not.

socks5.py PROGRAM
"""

import contextlib
import http.server
import shutil
import socket
import struct
import subprocess
import sys
import threading
import unittest

import driver

PATIENCE = driver.PATIENCE
GREETING = b"\x05\x01\x00"
GREETED = b"\x05\x00"
SUCCEEDED, REFUSED, NO_SUCH_COMMAND, NO_SUCH_ADDRESS = 0, 5, 7, 8
NOT_REACHED = (1, 4, NO_SUCH_ADDRESS)


def read(peer, size):
    data = b""
    while len(data) < size:
        piece = peer.recv(size - len(data))
        if not piece:
            raise EOFError(f"ended after {data!r}")
        data += piece
    return data


def read_all(peer):
    data = b""
    while piece := peer.recv(1 << 20):
        data += piece
    return data


def read_reply(peer):
    """Returns the reply's code, and its address."""
    version, code, _, kind = read(peer, 4)
    assert version == 5
    family, size = {1: (socket.AF_INET, 4), 4: (socket.AF_INET6, 16)}[kind]
    host = socket.inet_ntop(family, read(peer, size))
    return code, (host, struct.unpack("!H", read(peer, 2))[0])


def request(host, port, command=1):
    tail = struct.pack("!H", port)
    for family, kind in (socket.AF_INET, b"\x01"), (socket.AF_INET6, b"\x04"):
        with contextlib.suppress(OSError):
            return bytes([5, command, 0]) + kind + socket.inet_pton(family, host) + tail
    return bytes([5, command, 0, 3, len(host)]) + host.encode() + tail


def listen(family=socket.AF_INET, host="127.0.0.1"):
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.settimeout(PATIENCE)
    listener.bind((host, 0))
    listener.listen()
    return listener


class Socks5(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        cls.proxy = driver.Server(cls.program, "0")
        cls.silent = cls.connect()
        cls.slow = cls.connect()
        cls.slow.sendall(GREETING[:1])

    @classmethod
    def tearDownClass(cls):
        cls.silent.close()
        cls.slow.close()
        with cls.proxy:
            status = cls.proxy.stop()
        assert status == 0, f"the proxy ended with {status}"

    @classmethod
    def connect(cls):
        return socket.create_connection(("127.0.0.1", cls.proxy.port), timeout=PATIENCE)

    def go_through(self, listener):
        """Returns both ends of a connection through the proxy."""
        client = self.connect()
        client.sendall(GREETING)
        self.assertEqual(read(client, 2), GREETED)
        client.sendall(request(*listener.getsockname()[:2]))
        server, peer = listener.accept()
        server.settimeout(PATIENCE)
        code, bound = read_reply(client)
        self.assertEqual(code, SUCCEEDED)
        self.assertEqual(bound, peer[:2])
        return client, server

    def assert_hung_up(self, client):
        with contextlib.suppress(ConnectionResetError):
            self.assertEqual(client.recv(1), b"")

    def reply_to(self, message):
        with self.connect() as client:
            client.sendall(GREETING)
            self.assertEqual(read(client, 2), GREETED)
            client.sendall(message)
            code, _ = read_reply(client)
            self.assertEqual(client.recv(1), b"")
            return code

    def test_carries_both_ways_and_ends_one_side_at_a_time(self):
        for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
            try:
                listener = listen(family, host)
            except OSError:
                continue  # No IPv6 here.
            with listener, self.subTest(host=host):
                client, server = self.go_through(listener)
                with client, server:
                    client.sendall(b"question")
                    client.shutdown(socket.SHUT_WR)
                    self.assertEqual(read_all(server), b"question")
                    server.sendall(b"answer")
                    server.close()
                    self.assertEqual(read_all(client), b"answer")

    def test_takes_a_handshake_byte_by_byte(self):
        with listen() as listener, self.connect() as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in GREETING + request(*listener.getsockname()):
                client.sendall(bytes([byte]))
            self.assertEqual(read(client, 2), GREETED)
            listener.accept()[0].close()
            self.assertEqual(read_reply(client)[0], SUCCEEDED)

    def test_takes_a_handshake_and_data_at_once(self):
        with listen() as listener, self.connect() as client:
            client.sendall(GREETING + request(*listener.getsockname()) + b"early")
            with listener.accept()[0] as server:
                server.settimeout(PATIENCE)
                self.assertEqual(read(server, 5), b"early")

    def test_takes_an_address_written_as_a_name(self):
        with listen() as listener, self.connect() as client:
            host, port = listener.getsockname()
            name = bytes([5, 1, 0, 3, len(host)]) + host.encode() + struct.pack("!H", port)
            client.sendall(GREETING + name)
            listener.accept()[0].close()
            self.assertEqual(read(client, 2), GREETED)
            self.assertEqual(read_reply(client)[0], SUCCEEDED)

    def test_says_why_it_cannot_connect(self):
        with listen() as listener:
            nobody = listener.getsockname()
        self.assertEqual(self.reply_to(request(*nobody)), REFUSED)
        self.assertIn(self.reply_to(request("no host has blanks", 80)), NOT_REACHED)
        self.assertIn(self.reply_to(request("", 80)), NOT_REACHED)

    def test_says_what_it_does_not_do(self):
        for command in 2, 3, 9:
            self.assertEqual(self.reply_to(request("127.0.0.1", 1, command)), NO_SUCH_COMMAND)
        self.assertEqual(self.reply_to(b"\x05\x01\x00\x02" + bytes(6)), NO_SUCH_ADDRESS)

    def test_refuses_authentication(self):
        for greeting in b"\x05\x00", b"\x05\x01\x02", b"\x05\xff" + bytes([2]) * 255:
            with self.connect() as client:
                client.sendall(greeting)
                self.assertEqual(read(client, 2), b"\x05\xff")
                self.assert_hung_up(client)

    def test_hangs_up_on_what_is_not_socks5(self):
        for message in b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", b"GET / HTTP/1.1\r\n\r\n", b"\x00":
            with self.connect() as client:
                client.sendall(message)
                self.assert_hung_up(client)
        with self.connect() as client:
            client.sendall(GREETING + b"\x04")
            self.assertEqual(read(client, 2), GREETED)
            self.assert_hung_up(client)

    def test_survives_clients_that_leave_at_any_point(self):
        with listen() as listener:
            whole = GREETING + request(*listener.getsockname())
            for size in range(len(whole) + 1):
                with self.connect() as client:
                    client.sendall(whole[:size])
            listener.accept()[0].close()
        self.test_takes_a_handshake_and_data_at_once()

    def test_passes_a_reset_on(self):
        with listen() as listener:
            client, server = self.go_through(listener)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            server.close()
            with client, self.assertRaises(ConnectionResetError):
                client.recv(1)

    def test_slows_down_a_sender_to_its_reader(self):
        with listen() as listener:
            client, server = self.go_through(listener)
        with client, server:
            before = self.proxy.memory()
            sent = self.send_until_it_stalls(server, most=200_000_000)
            self.assertLess(sent, 200_000_000)
            self.assertLess(self.proxy.memory() - before, 20_000_000)
            server.shutdown(socket.SHUT_WR)
            self.assertEqual(len(read_all(client)), sent)

    def send_until_it_stalls(self, peer, most):
        piece = bytes(1_000_000)
        sent = 0
        peer.settimeout(2)
        while sent < most:
            try:
                sent += peer.send(piece)
            except TimeoutError:
                break
        return sent

    def test_closes_unfinished_handshakes_in_time(self):
        self.assert_hung_up(self.silent)
        self.assert_hung_up(self.slow)

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed (package curl)")
    def test_serves_curl(self):
        page = bytes(range(256)) * 20_000

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                self.assertEqual(self.curl(server.server_port).stdout, page)
            finally:
                server.shutdown()
                thread.join()
        with listen() as listener:
            nobody = listener.getsockname()[1]
        self.assertEqual(self.curl(nobody).returncode, 97)  # CURLE_PROXY

    def curl(self, port):
        return subprocess.run(
            ["curl", "--silent", "--max-time", str(PATIENCE), "--noproxy", "",
             "--socks5", f"127.0.0.1:{self.proxy.port}", f"http://127.0.0.1:{port}/"],
            stdout=subprocess.PIPE, check=False)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Socks5))
