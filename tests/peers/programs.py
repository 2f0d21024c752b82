#!/usr/bin/env python3
"""Random programs of a client of HTTP/1, against spate's server and against Go's.

    programs.py SERVER [--count N] [--seed N]

SERVER is peers_server; server_go.go has the same handlers on net/http. A program is a connection
and its requests: methods, versions, bodies, Expect, Connection, pipelined or one after the other.
Both servers must show the client the same: each status and body, interim responses, whether the
connection persists, and whether a response says so. The rows of may_differ() are the exceptions.
Exits with 77 where no peer in Go was built.
"""

import argparse
import os
import random
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for name in ("examples", "http", "support"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, name))
import driver
import go
from oracle import PATIENCE, Response, Wrong

HANDLERS = ("before", "during", "after", "limited", "chunks", "drops", "aborts", "next")
METHODS = ("GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
SIZES = (1, 5, 1000, 1001, 20_000, 200_000, 270_000, 400_000)
UNREAD_LIMIT = 256 * 1024


class Request:
    def __init__(self, chance, number):
        self.version = chance.choice(("1.1",) * 6 + ("1.0", "1.0"))
        self.method = chance.choice(METHODS)
        self.handler = chance.choice(HANDLERS if chance.random() < 0.5 else HANDLERS[:6])
        self.path = f"/{self.handler}?r{number}"
        self.connection = chance.choice(("",) * 6 + ("close", "keep-alive", "Keep-Alive"))
        self.size = 0
        self.kind = "none"
        if self.method in ("POST", "PUT", "PATCH") and chance.random() < 0.8:
            self.size = chance.choice(SIZES)
            self.kind = chance.choice(("sized", "chunked") if self.version == "1.1" else ("sized",))
        self.expects = self.size > 0 and self.version == "1.1" and chance.random() < 0.2
        self.cuts = chance.random() < 0.5
        self.chunk = chance.choice((1, 7, 4096, 65_536)) if self.size < 50_000 else 16_384

    def __str__(self):
        return (f"{self.method} {self.path} {self.version} {self.kind} {self.size} "
                f"[{self.connection}]{' expects' if self.expects else ''}")

    def head(self):
        lines = [f"{self.method} {self.path} HTTP/{self.version}", "Host: a"]
        if self.connection:
            lines.append(f"Connection: {self.connection}")
        if self.kind == "sized":
            lines.append(f"Content-Length: {self.size}")
        if self.kind == "chunked":
            lines.append("Transfer-Encoding: chunked")
        if self.expects:
            lines.append("Expect: 100-continue")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def body(self):
        content = b"b" * self.size
        if self.kind != "chunked":
            return content
        pieces = [content[at:at + self.chunk] for at in range(0, self.size, self.chunk)]
        return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"

    def may_differ(self):
        """Returns whether the connection may persist with one server and close with the other.
        Go reads the rest of a chunked body before it decides, closes after an expected body that
        was not read completely, and counts an unread rest from the bytes that it has read. It
        persists behind a response to HEAD that would end with the connection, and resets one
        that does if more was sent."""
        is_unread = self.handler != "after" and self.size > 0
        is_long = self.size > UNREAD_LIMIT - 70_000
        ends_response = self.version == "1.0" and self.handler == "chunks"
        return ends_response or (is_unread and (self.kind == "chunked" or self.expects or is_long))


class Program:
    def __init__(self, seed):
        chance = random.Random(seed)
        self.requests = [Request(chance, number) for number in range(chance.randrange(1, 6))]
        self.is_pipelined = chance.random() < 0.4
        # A reset drops responses that were not sent yet. Go does not abort before an expected body.
        for request in self.requests:
            if request.handler == "aborts" and (self.is_pipelined or request.expects):
                request.path = request.path.replace("aborts", "next")

    def run(self, port):
        """Returns the client's view, a line per response."""
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with client.makefile("rb") as file:
                return self.talk(client, file)

    def talk(self, client, file):
        if self.is_pipelined:
            self.send(client, b"".join(each.head() + each.body() for each in self.requests))
        seen = []
        for request in self.requests:
            if not self.is_pipelined:
                first = self.ask(client, file, request)
                if first is not None:
                    seen.append(self.line(request, first, ["final instead of 100"]))
                    return seen
            try:
                response, informed = self.read(file, request)
            except (EOFError, ConnectionResetError):
                seen.append("closed without a response")
                return seen
            seen.append(self.line(request, response, informed))
            if response.says_close(request.version):
                self.expect_end(file)
                return seen
        return seen

    def ask(self, client, file, request):
        """Sends a request. Returns a final response received instead of 100, or None."""
        self.send(client, request.head() + (b"" if request.expects else request.body()))
        if not request.expects:
            return None
        try:
            first = Response(file, is_head=request.method == "HEAD")
        except (EOFError, ConnectionResetError):
            return None
        if first.status != 100:
            return first
        self.send(client, request.body())
        return None

    @staticmethod
    def send(client, data):
        try:
            client.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The server closed; the responses show it.

    @staticmethod
    def read(file, request):
        informed = []
        while True:
            response = Response(file, is_head=request.method == "HEAD")
            if response.status >= 200:
                return response, informed
            informed.append(response.status)

    @staticmethod
    def line(request, response, informed):
        body = response.body.decode() if response.status == 200 else ""
        end = "closes" if response.says_close(request.version) else "persists"
        if request.may_differ():
            end = "either"
        return f"{informed} {response.status} {body!r} {end}"

    @staticmethod
    def expect_end(file):
        try:
            if file.read():
                raise Wrong("bytes behind a response that says close")
        except ConnectionResetError:
            pass


def differences(program, ours, reference):
    """Returns the differences, up to the first response after which the connections may differ.
    Go may reset a connection before the client has read a response to a body that was not read."""
    for request, one, other in zip(program.requests, ours, reference):
        is_lost = request.may_differ() and other == "closed without a response"
        if one != other and not is_lost:
            return f"{request}\n    ours: {one}\n    Go's: {other}"
        if one.endswith("either"):
            return ""
    return "" if len(ours) == len(reference) else f"{len(ours)} responses, Go {len(reference)}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("server")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    reference = go.find("http_reference")
    if not reference:
        print("no peer in Go was built (package golang-go)")
        return 77
    wrong = 0
    with driver.Server(options.server) as ours, driver.Server(reference) as theirs:
        for seed in range(options.seed, options.seed + options.count):
            program = Program(seed)
            try:
                found = differences(program, program.run(ours.port), program.run(theirs.port))
            except (Wrong, OSError, ValueError) as error:
                found = repr(error)
            if found:
                wrong += 1
                how = "pipelined" if program.is_pipelined else "one after the other"
                print(f"seed {seed} ({how}): {found}", flush=True)
    print(f"{options.count} programs, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
