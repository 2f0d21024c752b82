#!/usr/bin/env python3
"""Drives examples/coro_grpc.cc: by itself, by hand, and with gRPC if it is installed.

coro_grpc.py PROGRAM
"""

import concurrent.futures
import queue
import subprocess
import sys
import tempfile
import threading
import unittest

import driver

try:
    sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, for other interpreters.
    import grpc
except ImportError:
    grpc = None

FOREVER = "60000"  # Milliseconds.


def encode(text):
    """message Text { string text = 1; }"""
    left, size = len(text.encode()), b""
    while left >= 0x80:
        size, left = size + bytes([left & 0x7f | 0x80]), left >> 7
    return b"\x0a" + size + bytes([left]) + text.encode()


def decode(message):
    assert message[0] == 0x0a, message[:20]
    at = 1
    while message[at] >= 0x80:
        at += 1
    return message[at + 1:].decode()


def framed(message, compressed=0):
    return bytes([compressed]) + len(message).to_bytes(4, "big") + message


class Started(driver.Server):
    """The server, which prints how each call ended."""

    def __init__(self, program):
        super().__init__(program, "serve", "127.0.0.1:0")
        self.url = f"http://127.0.0.1:{self.port}"


class CoroGrpc(unittest.TestCase):
    program = None

    def ask(self, url, *words, milliseconds=FOREVER):
        """Returns (the lines of the response, how the call ended)."""
        done = driver.run(self.program, url, milliseconds, *words)
        *lines, code = done.stdout.splitlines()
        self.assertEqual(done.returncode, 0 if code == "OK" else 1)
        return lines, code

    def assert_talks(self, url):
        self.assertEqual(self.ask(url, "Greet", "you"), (["hello you"], "OK"))
        self.assertEqual(self.ask(url, "Greet"), (["hello "], "OK"))
        self.assertEqual(self.ask(url, "Spell", "abc"), (["a", "b", "c"], "OK"))
        self.assertEqual(self.ask(url, "Join", "a", "b", "c"), (["a b c"], "OK"))
        self.assertEqual(self.ask(url, "Shout", "a", "b"), (["A!", "B!"], "OK"))
        self.assertEqual(self.ask(url, "Nothing"), ([], "UNIMPLEMENTED"))
        lines, code = self.ask(url, "Tick", milliseconds="300")
        self.assertEqual(code, "DEADLINE_EXCEEDED")
        self.assertEqual(lines, [str(number + 1) for number in range(len(lines))])

    def test_calls(self):
        with Started(self.program) as server:
            self.assert_talks(server.url)
            self.assertEqual(server.stop(), 0)

    def test_a_call_that_is_given_up_ends(self):
        with Started(self.program) as server, \
                driver.Program(self.program, server.url, FOREVER, "Tick") as client:
            self.assertEqual(client.read_line(), "1")
            client.stop()
            self.assertEqual(server.read_line(), "Tick CANCELLED")
            self.assertEqual(server.stop(), 0)

    def test_nobody_answers(self):
        self.assertEqual(self.ask("http://127.0.0.1:1", "Greet"), ([], "UNAVAILABLE"))

    def by_hand(self, server, message, *more, method="Greet", kind="application/grpc"):
        """Returns the body that curl received, and the fields before and after it."""
        driver.need("curl")
        with tempfile.NamedTemporaryFile() as sent, tempfile.NamedTemporaryFile() as fields:
            sent.write(message)
            sent.flush()
            done = subprocess.run(
                ["curl", "--silent", "--max-time", str(driver.PATIENCE), "--http2-prior-knowledge",
                 "--data-binary", "@" + sent.name, "-H", "content-type: " + kind,
                 "-H", "te: trailers", "--dump-header", fields.name, *more,
                 f"{server.url}/demo.Talk/{method}"], stdout=subprocess.PIPE, check=False)
            return done.stdout, fields.read().decode()

    def test_by_hand(self):
        with Started(self.program) as server:
            got, fields = self.by_hand(server, framed(encode("x" * 1000)))
            self.assertEqual(got, framed(encode("hello " + "x" * 1000)))
            self.assertIn("content-type: application/grpc\r\n", fields)
            self.assertTrue(fields.partition("\r\n\r\n")[2].startswith("grpc-status: 0\r\n"))
            for message, code in ((b"", 3), (framed(b"\x0a\x09x"), 3), (framed(b"")[:3], 3),
                                  (framed(encode("x"), 1), 12), (b"\0\xff\xff\xff\xff", 8)):
                got, fields = self.by_hand(server, message)
                self.assertEqual(got, b"")
                self.assertIn(f"grpc-status: {code}\r\n", fields)
            fields = self.by_hand(server, framed(b""), "-H", "grpc-timeout: 1m", method="Tick")[1]
            self.assertIn("grpc-status: 4\r\n", fields)
            self.assertIn("HTTP/2 415", self.by_hand(server, b"", kind="text/plain")[1])

    @unittest.skipIf(grpc is None, "gRPC is not installed (package python3-grpcio)")
    def test_the_server_with_clients_of_grpc(self):
        with Started(self.program) as server, \
                grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            self.clients_of_grpc(channel, server)

    def clients_of_grpc(self, channel, server):
        def method(kind, name):
            call = getattr(channel, kind)("/demo.Talk/" + name, encode, decode)
            return lambda *words: call(*words, timeout=driver.PATIENCE), call

        greet, timed_greet = method("unary_unary", "Greet")
        self.assertEqual(greet("you"), "hello you")
        self.assertEqual(greet("x" * 1_000_000), "hello " + "x" * 1_000_000)
        self.assertEqual(list(method("unary_stream", "Spell")[0]("abc")), ["a", "b", "c"])
        self.assertEqual(method("stream_unary", "Join")[0](iter("abc")), "a b c")
        many = [timed_greet.future(str(number), timeout=driver.PATIENCE) for number in range(300)]
        self.assertEqual([each.result() for each in many], [f"hello {n}" for n in range(300)])
        for name, text, code in (("Nothing", "", grpc.StatusCode.UNIMPLEMENTED),
                                 ("Greet", "x" * 5_000_000, grpc.StatusCode.RESOURCE_EXHAUSTED)):
            with self.assertRaises(grpc.RpcError) as caught:
                method("unary_unary", name)[0](text)
            self.assertEqual(caught.exception.code(), code)

        said = queue.SimpleQueue()
        answers = method("stream_stream", "Shout")[0](iter(said.get, None))
        for text in ("a", "b", "c" * 100_000):  # One by one.
            said.put(text)
            self.assertEqual(next(answers), text.upper() + "!")
        said.put(None)
        self.assertEqual(list(answers), [])

        tick, timed_tick = method("unary_stream", "Tick")
        with self.assertRaises(grpc.RpcError) as caught:
            list(timed_tick("", timeout=0.3))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        ticks = tick("")
        self.assertEqual([next(ticks), next(ticks)], ["1", "2"])
        ticks.cancel()
        while server.read_line() != "Tick CANCELLED":
            pass

    @unittest.skipIf(grpc is None, "gRPC is not installed (package python3-grpcio)")
    def test_the_client_with_a_server_of_grpc(self):
        def tick(_, context):
            number = 0
            while context.is_active():
                number += 1
                yield str(number)
                gone.wait(0.05)

        def shout(texts, _):
            return (text.upper() + "!" for text in texts)

        gone = threading.Event()
        kinds = {"Greet": (grpc.unary_unary_rpc_method_handler, lambda name, _: "hello " + name),
                 "Spell": (grpc.unary_stream_rpc_method_handler, lambda word, _: iter(word)),
                 "Join": (grpc.stream_unary_rpc_method_handler, lambda texts, _: " ".join(texts)),
                 "Shout": (grpc.stream_stream_rpc_method_handler, shout),
                 "Tick": (grpc.unary_stream_rpc_method_handler, tick)}
        methods = {name: kind(function, decode, encode) for name, (kind, function) in kinds.items()}
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("demo.Talk", methods)])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())
        self.addCleanup(gone.set)
        self.assert_talks(f"http://127.0.0.1:{port}")


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, CoroGrpc))
