"""A client of HTTP/1 on a bare socket, which checks everything: each byte that arrives must
belong to the response to a request, and each request must get a response, if only an error."""

import random
import socket
import time

PATIENCE = 20  # In seconds; no correct response takes so long.
VERSIONS = ("1.0", "1.0 keep-alive", "1.1", "1.1 close")
BODIES = ("none", "short", "long", "chunked", "long chunked", "expected", "expected in vain")
HANDLERS = ("before", "during", "after", "limited", "chunks", "drops", "never", "aborts",
            "upgrades")
ENDINGS = ("waits", "half-closes", "closes")
SIZES = {"none": 0, "short": 10, "long": 400_000, "chunked": 5, "long chunked": 300_000,
         "expected": 10, "expected in vain": 10}
STATUS = {"drops": 500}
LIMIT = 1000


class Wrong(Exception):
    """The server broke a rule."""


class Response:
    """One response, parsed from a file of bytes."""

    def __init__(self, file, is_head=False):
        line = file.readline()
        if not line:
            raise EOFError
        parts = line.split(b" ", 2)
        if len(parts) != 3 or not line.endswith(b"\r\n") or not parts[0].startswith(b"HTTP/1."):
            raise Wrong(f"no status line: {line[:60]!r}")
        self.status = int(parts[1])
        self.fields = {}
        while (line := file.readline()) != b"\r\n":
            name, colon, value = line.partition(b":")
            if not colon or not line.endswith(b"\r\n"):
                raise Wrong(f"no field: {line[:60]!r}")
            self.fields[name.decode().lower()] = value.strip().decode()
        self.body = b"" if is_head or self.status < 200 else self.read_body(file)

    def read_body(self, file):
        """Returns the body, by its framing."""
        if self.status in (204, 304):
            return b""
        if "content-length" in self.fields:
            return self.exactly(file, int(self.fields["content-length"]))
        if self.fields.get("transfer-encoding") != "chunked":
            return file.read()
        body = b""
        while True:
            size = int(file.readline(), 16)
            piece = self.exactly(file, size)
            if file.readline() != b"\r\n":
                raise Wrong("a chunk is longer than it says")
            if size == 0:
                return body
            body += piece

    @staticmethod
    def exactly(file, size):
        """Returns exactly `size` bytes."""
        body = file.read(size)
        if len(body) < size:
            raise Wrong(f"cut short: {len(body)} of {size} bytes")
        return body

    def says_close(self, version):
        """Returns whether the connection closes after the response."""
        said = self.fields.get("connection", "").lower()
        return said == "close" if version.startswith("1.1") else said != "keep-alive"


def body_of(kind):
    """Returns the fields and the bytes of a body of that kind."""
    content = b"b" * SIZES[kind]
    if "chunked" in kind:
        return ("Transfer-Encoding: chunked\r\n",
                b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))
    fields = f"Content-Length: {len(content)}\r\n" if content else ""
    if kind.startswith("expected"):
        fields += "Expect: 100-continue\r\n"
    return fields, content


def cells():
    """Returns the valid cells of the table."""
    for version in VERSIONS:
        for body in BODIES:
            if version.startswith("1.0") and ("chunked" in body or "expected" in body):
                continue
            for handler in HANDLERS:
                for is_pipelined in (False, True):
                    for ending in ENDINGS:
                        yield version, body, handler, is_pipelined, ending


class Cell:
    """One cell: a connection, a request, and a second request."""

    def __init__(self, port, cell, seed):
        self.version, self.body, self.handler, self.is_pipelined, self.ending = cell
        self.random = random.Random(seed)
        self.port = port
        self.tag = f"q{seed}"
        self.next = f"GET /next?n{seed} HTTP/1.1\r\nHost: a\r\n\r\n".encode()

    def run(self):
        """Raises Wrong if a rule is broken."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as self.socket:
            self.file = self.socket.makefile("rb")
            with self.file:
                try:
                    self.talk()
                except TimeoutError as error:
                    raise Wrong("nothing comes") from error

    def talk(self):
        """Sends the cell's request, and checks the responses."""
        fields, content = body_of(self.body)
        connection = {"1.0 keep-alive": "Connection: keep-alive\r\n",
                      "1.1 close": "Connection: close\r\n"}.get(self.version, "")
        head = (f"{'POST' if content else 'GET'} /{self.handler}?{self.tag} "
                f"HTTP/{self.version[:3]}\r\nHost: a\r\n{connection}{fields}\r\n").encode()
        rest = content + (self.next if self.is_pipelined else b"")
        first = None
        if self.body == "expected":
            self.send(head)
            first = self.final_or_continue()
            if first is None:
                self.send(rest)
        else:
            self.send(head + rest)
        if self.ending == "closes":
            return
        is_whole = first is None  # Whether the whole request was sent.
        if self.ending == "half-closes" and is_whole:
            self.half_close()
        self.check(first)

    def send(self, data):
        """Sends the bytes in pieces. If the server has closed, it must have announced that."""
        cuts = sorted(self.random.randrange(len(data)) for _ in range(self.random.randrange(3)))
        begin = 0
        try:
            for cut in cuts + [len(data)]:
                self.socket.sendall(data[begin:cut])
                begin = cut
                if self.random.random() < 0.3:
                    time.sleep(0.001)
        except (BrokenPipeError, ConnectionResetError):
            if self.handler not in ("aborts", "never"):
                raise Wrong("reset while the request is sent") from None

    def half_close(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:  # It was reset.
            if self.handler not in ("aborts", "never"):
                raise Wrong("reset before the client ends") from None

    def final_or_continue(self):
        """Returns the response that replaces 100, or None."""
        if self.handler == "never":
            return self.read_continue()
        try:
            response = Response(self.file)
        except (EOFError, ConnectionResetError):
            if self.handler == "aborts":
                return None
            raise Wrong("no 100, and no response") from None
        return None if response.status == 100 else response

    def read_continue(self):
        if Response(self.file).status != 100:
            raise Wrong("no 100")

    def check(self, first):
        """Checks the response, and the bytes that follow it."""
        if self.handler in ("aborts", "never"):
            return self.check_none()
        try:
            response = first or self.read_response()
        except (EOFError, ConnectionResetError):
            raise Wrong("closed without a response") from None
        self.check_first(response)
        if response.says_close(self.version):
            return self.expect_end()
        if first is not None:
            raise Wrong("it persists although the client sends no body")
        if not self.is_pipelined and self.ending == "half-closes":
            return self.expect_end()
        if not self.is_pipelined:
            self.send(self.next)
        try:
            answer = self.read_response()
        except (EOFError, ConnectionResetError):
            raise Wrong("the next request is lost without a word") from None
        if answer.status != 200 or answer.body != b"/next " + self.next[10:].split()[0] + b"\n":
            raise Wrong(f"not the next response: {answer.status} {answer.body[:60]!r}")
        if self.ending == "half-closes":
            return self.expect_end()
        return None

    def read_response(self):
        """Skips responses with 100."""
        response = Response(self.file)
        while response.status == 100:
            response = Response(self.file)
        return response

    def check_first(self, response):
        wanted = STATUS.get(self.handler, 200)
        if self.handler == "limited" and SIZES[self.body] > LIMIT:
            wanted = 413
        if response.status != wanted:
            raise Wrong(f"{response.status} in place of {wanted}")
        if wanted == 200 and response.body != f"/{self.handler} {self.tag}\n".encode():
            raise Wrong(f"another response: {response.body[:60]!r}")

    def check_none(self):
        """Checks that nothing arrives."""
        if self.handler == "never" and (self.ending == "waits" or self.is_pipelined):
            return
        self.expect_end()

    def expect_end(self):
        """Checks that the connection closes without further bytes."""
        try:
            left = self.file.read()
        except ConnectionResetError:
            if self.handler not in ("aborts", "never"):
                raise Wrong("reset behind the response") from None
            return
        if left and not left.startswith(b"HTTP/1.1 100 "):
            raise Wrong(f"bytes that belong to nothing: {left[:60]!r}")


def tunnel(port, is_connect, seed):
    """An upgrade, with bytes of the other protocol after the header section."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        head = (b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n" if is_connect else
                b"GET /upgrades?x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n"
                b"Upgrade: echo\r\n\r\n")
        words = b"GET /next?%d HTTP/1.1\r\n\r\n" % seed
        client.sendall(head + words)
        file = client.makefile("rb")
        with file:
            response = Response(file, is_head=True)
            if response.status != (200 if is_connect else 101):
                raise Wrong(f"{response.status} to an upgrade")
            if file.read(len(words)) != words:
                raise Wrong("the tunnel does not carry its bytes")


# The protocol that a request asks for, its version, its fields, and the status of the response. A
# request whose upgrade is ignored is a request like any other (RFC 9110 section 7.8).
UPGRADES = (
    ("echo", "1.1", "Connection: upgrade\r\n", 101),
    ("other, echo", "1.1", "Connection: keep-alive, Upgrade\r\n", 101),
    ("ECHO", "1.1", "Connection: upgrade\r\n", 101),
    ("websocket", "1.1", "Connection: upgrade\r\n", 200),
    ("h2c", "1.1", "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n", 200),
    ("TLS/1.0", "1.1", "Connection: upgrade\r\n", 200),
    ("echo", "1.1", "", 200),
    ("echo", "1.0", "Connection: upgrade\r\n", 200),
    ("echo", "1.1", "Connection: upgrade\r\nContent-Length: 5\r\n", 200),
    ("echo", "1.1", "Connection: upgrade\r\nTransfer-Encoding: chunked\r\n", 200),
)


def upgrade(port, row, seed):
    """Requests an upgrade; the bytes after the header section belong to the other protocol, or
    are a request."""
    protocol, version, fields, status = row
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        body = (b"5\r\nhello\r\n0\r\n\r\n" if "chunked" in fields else
                b"hello" if "Content-Length" in fields else b"")
        words = b"GET /next?u%d HTTP/1.1\r\nHost: a\r\n\r\n" % seed
        client.sendall(f"GET /upgrades?x HTTP/{version}\r\nHost: a\r\nUpgrade: {protocol}\r\n"
                       f"{fields}\r\n".encode() + body + words)
        file = client.makefile("rb")
        with file:
            first = Response(file, is_head=status == 101)
            if first.status != status:
                raise Wrong(f"{first.status} in place of {status}")
            if status == 101:
                if file.read(len(words)) != words:
                    raise Wrong("the tunnel does not carry its bytes")
            elif first.says_close(version):
                if file.read():
                    raise Wrong("bytes behind the last response")
            elif Response(file).body != b"/next u%d\n" % seed:
                raise Wrong("the next request is lost")


def open_exchanges(port):
    """Returns the number of the server's other exchanges."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.sendall(b"GET /open HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        file = client.makefile("rb")
        with file:
            return int(Response(file).body)
