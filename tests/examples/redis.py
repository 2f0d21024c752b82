#!/usr/bin/env python3
"""Drives examples/redis.cc with redis-server, and with servers that break the connection.

redis.py PROGRAM
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import driver

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import ports  # pylint: disable=wrong-import-position,wrong-import-order


class Redis(unittest.TestCase):
    program = None

    def start_server(self, port):
        """Returns a redis-server that accepts connections."""
        driver.need("redis-server")
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--dir", folder], stdout=subprocess.PIPE, text=True)
        for line in server.stdout:
            if "Ready to accept connections" in line:
                break
        return server

    @staticmethod
    def stop_server(server):
        server.kill()
        server.communicate()

    def ask(self, port, *commands):
        return driver.run(self.program, "127.0.0.1", str(port), *commands)

    def test_prints_responses_of_redis_in_order(self):
        port = ports.free_port()
        server = self.start_server(port)
        self.addCleanup(self.stop_server, server)
        done = self.ask(port, "SET a 1", "INCR a", "GET nothing", "RPUSH list x y z",
                        "LRANGE list 0 -1", "INCR list", "HSET map k v", "HGETALL map",
                        "SET long " + "x" * 100_000, "GET long")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines(), [
            "OK", "2", "(nil)", "3", "x", "y", "z",
            "error: WRONGTYPE Operation against a key holding the wrong kind of value",
            "1", "k", "v", "OK", "x" * 100_000])
        self.assertEqual(done.returncode, 0)

    def test_pipelines_ten_thousand_commands(self):
        port = ports.free_port()
        server = self.start_server(port)
        self.addCleanup(self.stop_server, server)
        done = self.ask(port, *["INCR n"] * 10_000)
        self.assertEqual(done.stdout.splitlines(), [str(n) for n in range(1, 10_001)])

    def test_subscribes_again_when_redis_is_back(self):
        port = ports.free_port()
        server = self.start_server(port)
        with driver.Program(self.program, "127.0.0.1", str(port), "SUBSCRIBE news") as client:
            lines = [client.read_line() for _ in range(3)]
            self.assertEqual(lines, ["subscribe", "news", "1"])
            self.stop_server(server)
            server = self.start_server(port)
            self.addCleanup(self.stop_server, server)
            lines = [client.read_line() for _ in range(3)]
            self.assertEqual(lines, ["subscribe", "news", "1"])
            self.ask(port, "PUBLISH news hello")
            lines = [client.read_line() for _ in range(3)]
            self.assertEqual(lines, ["message", "news", "hello"])

    def test_reports_a_lost_connection(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                peer, _ = listener.accept()
                with peer:
                    peer.recv(1000)
                    peer.sendall(b"+OK\r\n")  # The response to HELLO.
                    peer.recv(1000)
            thread = threading.Thread(target=serve)
            thread.start()
            done = self.ask(listener.getsockname()[1], "GET a")
            thread.join()
        self.assertEqual(done.stdout, "Connection reset by peer\n")
        self.assertEqual(done.returncode, 1)

    def test_reports_a_malformed_response(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                peer, _ = listener.accept()
                with peer:
                    peer.recv(1000)
                    peer.sendall(b"+OK\r\n$9999999999999\r\n")
                    while peer.recv(1000):
                        pass
            def serve_until_reset():
                try:
                    serve()
                except ConnectionResetError:
                    pass
            thread = threading.Thread(target=serve_until_reset)
            thread.start()
            done = self.ask(listener.getsockname()[1], "GET a")
            thread.join()
        self.assertIn(done.stdout, ("Protocol error\n", "Connection reset by peer\n"))
        self.assertEqual(done.returncode, 1)

    def test_gives_up_where_nothing_listens(self):
        done = self.ask(ports.CLOSED_PORT, "GET a")
        self.assertEqual(done.stdout, "Connection refused\n")
        self.assertEqual(done.returncode, 1)

    def test_wants_a_command(self):
        self.assertEqual(driver.run(self.program).returncode, 2)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Redis))
