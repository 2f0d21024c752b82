"""A client of HTTP/2 on a bare socket. It splits its bytes anywhere, and checks each received
frame against RFC 9113. Needs the module hpack (python3-hpack)."""

import random
import socket
import struct
import time

import hpack

from oracle import LIMIT, PATIENCE, SIZES, STATUS, Wrong

BODIES = ("none", "short", "long", "chunked", "long chunked", "expected", "expected in vain")
HANDLERS = ("before", "during", "after", "limited", "chunks", "drops", "never", "aborts",
            "upgrades")
NEXT = ("none", "beside", "behind")  # The position of the second request.
ENDINGS = ("waits", "half-closes", "closes", "resets")

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
NO_ERROR, CANCEL = 0, 8
INITIAL_WINDOW = 65_535
MOST_PAYLOAD = 16_384
CONNECTION_FIELDS = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"}


def cells():
    """Returns the cells of the table."""
    return [(body, handler, other, ending) for body in BODIES for handler in HANDLERS
            for other in NEXT for ending in ENDINGS]


class Stream:
    """A request, and the frames received for it."""

    def __init__(self, body, window):
        self.unsent, self.has_ended = body, False
        self.window, self.our_window = window, INITIAL_WINDOW
        self.informational, self.fields, self.trailers = [], None, None
        self.body, self.is_ended, self.code = b"", False, None
        self.is_tunnel = self.awaits_continue = self.may_continue = False

    def status(self):
        return int(dict(self.fields)[":status"]) if self.fields else None

    def is_over(self):
        return self.is_ended or self.code is not None


class Client:
    """A connection."""

    def __init__(self, port, chance):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.chance, self.streams, self.last = chance, {}, -1
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.received, self.window, self.our_window = b"", INITIAL_WINDOW, INITIAL_WINDOW
        self.initial, self.is_at_end, self.block = INITIAL_WINDOW, False, None
        self.takes_tunnels = False
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(SETTINGS, 0, 0, b""))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    @staticmethod
    def frame(kind, flags, stream, payload):
        size = struct.pack(">I", len(payload))[1:]
        return size + struct.pack(">BBI", kind, flags, stream) + payload

    def send(self, data):
        """Sends the bytes in pieces. The server may close at any time after the client's end."""
        cuts = sorted(self.chance.randrange(len(data)) for _ in range(self.chance.randrange(3)))
        begin = 0
        for cut in cuts + [len(data)]:
            self.socket.sendall(data[begin:cut])
            begin = cut
            if self.chance.random() < 0.2:
                time.sleep(0.001)

    def ask(self, fields, body=b"", has_body=False, awaits_continue=False):
        """Begins a request; returns its stream."""
        self.last += 2
        stream = self.streams[self.last] = Stream(body, self.initial)
        stream.awaits_continue = awaits_continue
        stream.may_continue = ("expect", "100-continue") in fields
        stream.has_ended = not has_body
        self.send(self.frame(HEADERS, END_HEADERS | (0 if has_body else END_STREAM), self.last,
                             self.encoder.encode(fields)))
        return stream

    def reset(self, stream):
        number = next(key for key, each in self.streams.items() if each is stream)
        self.send(self.frame(RESET, 0, number, struct.pack(">I", CANCEL)))
        stream.code, stream.unsent, stream.has_ended = CANCEL, b"", True

    def send_bodies(self):
        """Sends as much as the windows allow."""
        for number, stream in self.streams.items():
            while not stream.has_ended and not stream.awaits_continue and stream.code is None:
                size = min(len(stream.unsent), stream.window, self.window, MOST_PAYLOAD)
                is_last = size == len(stream.unsent) and not stream.is_tunnel
                if size == 0 and not is_last:
                    break
                self.send(self.frame(DATA, END_STREAM if is_last else 0, number,
                                     stream.unsent[:size]))
                stream.unsent = stream.unsent[size:]
                stream.window -= size
                self.window -= size
                stream.has_ended = is_last

    def wait(self, condition):
        """Reads frames until the condition is true. Raises Wrong at the end of the connection."""
        while not condition():
            self.send_bodies()
            if condition():
                return
            if self.is_at_end:
                raise Wrong("the connection ends")
            self.read_frame()

    def read_frame(self):
        head = self.take(9)
        if head is None:
            self.is_at_end = True
            return
        size = int.from_bytes(head[:3], "big")
        kind, flags, number = struct.unpack(">BBI", head[3:])
        if size > MOST_PAYLOAD or number >> 31:
            raise Wrong(f"a frame of {size} bytes")
        payload = self.take(size)
        if payload is None:
            raise Wrong("the connection ends inside a frame")
        if self.block is not None and kind != CONTINUATION:
            raise Wrong("a frame inside a header block")
        self.handle(kind, flags, number, payload)

    def take(self, size):
        while len(self.received) < size:
            piece = self.socket.recv(65_536)
            if not piece:
                if self.received:
                    raise Wrong("the connection ends inside a frame")
                return None
            self.received += piece
        taken, self.received = self.received[:size], self.received[size:]
        return taken

    def handle(self, kind, flags, number, payload):
        if kind == SETTINGS:
            self.handle_settings(flags, payload)
        elif kind == PING and not flags & ACK:
            self.send(self.frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            if struct.unpack(">I", payload[4:8])[0] != NO_ERROR:
                raise Wrong(f"GOAWAY {payload.hex()}")
        elif kind == UPDATE:
            self.handle_update(number, struct.unpack(">I", payload)[0])
        elif kind in (DATA, HEADERS, RESET, CONTINUATION):
            self.handle_stream(kind, flags, number, payload)

    def handle_settings(self, flags, payload):
        if flags & ACK:
            return
        for at in range(0, len(payload), 6):
            name, value = struct.unpack(">HI", payload[at:at + 6])
            if name == 4:
                for stream in self.streams.values():
                    stream.window += value - self.initial
                self.initial = value
            self.takes_tunnels |= name == 8 and value == 1
        self.send(self.frame(SETTINGS, ACK, 0, b""))

    def handle_update(self, number, size):
        if size == 0:
            raise Wrong("a window update of nothing")
        if number == 0:
            self.window += size
        elif number in self.streams:
            self.streams[number].window += size
        else:
            raise Wrong("a window update of an idle stream")

    def handle_stream(self, kind, flags, number, payload):
        stream = self.streams.get(number)
        if stream is None:
            raise Wrong(f"frame {kind} of idle stream {number}")
        if kind == RESET:
            code = struct.unpack(">I", payload)[0]
            if stream.is_ended and code != NO_ERROR:
                raise Wrong(f"reset with {code} after the response")
            stream.code, stream.unsent = code, b""
            return
        if stream.is_over() and stream.code != CANCEL:
            raise Wrong(f"frame {kind} after the end of the stream")
        if kind == DATA:
            self.handle_data(stream, number, payload)
        else:
            self.handle_block(stream, flags, payload)
        if flags & END_STREAM and kind != CONTINUATION:
            stream.is_ended = True
            self.check_length(stream)

    def handle_data(self, stream, number, payload):
        if stream.fields is None and stream.code is None:
            raise Wrong("DATA before the head")
        stream.our_window -= len(payload)
        self.our_window -= len(payload)
        if stream.our_window < 0 or self.our_window < 0:
            raise Wrong("more than the window")
        stream.body += payload
        if payload:
            size = struct.pack(">I", len(payload))
            self.send(self.frame(UPDATE, 0, 0, size) + self.frame(UPDATE, 0, number, size))
            stream.our_window += len(payload)
            self.our_window += len(payload)

    def handle_block(self, stream, flags, payload):
        self.block = (self.block or b"") + payload
        if not flags & END_HEADERS:
            return
        fields = self.decoder.decode(self.block)
        self.block = None
        for name, _ in fields:
            if name != name.lower() or name in CONNECTION_FIELDS:
                raise Wrong(f"field {name}")
        if stream.fields is not None:
            stream.trailers = fields
        elif dict(fields)[":status"].startswith("1"):
            if not stream.may_continue or stream.informational:
                raise Wrong("an interim response that was not asked for")
            stream.awaits_continue = False
            stream.informational.append(fields)
        else:
            stream.fields = fields

    @staticmethod
    def check_length(stream):
        length = dict(stream.fields or {}).get("content-length")
        if length is not None and int(length) != len(stream.body):
            raise Wrong(f"Content-Length {length}, {len(stream.body)} bytes")


class Cell:
    """One cell: a connection, a request, and perhaps a second one, concurrent or later."""

    def __init__(self, port, cell, seed):
        self.body, self.handler, self.other, self.ending = cell
        self.port, self.tag = port, f"q{seed}"
        self.chance = random.Random(seed)

    def run(self):
        """Raises Wrong if a rule is broken."""
        with Client(self.port, self.chance) as self.client:
            try:
                self.talk()
            except TimeoutError as error:
                raise Wrong("nothing comes") from error
            except (BrokenPipeError, ConnectionResetError) as error:
                if self.ending != "closes":
                    raise Wrong("the connection is reset") from error

    def head(self, path, size=0):
        fields = [(":method", "POST" if size else "GET"), (":scheme", "http"), (":authority", "a"),
                  (":path", path)]
        if size and "chunked" not in self.body:
            fields.append(("content-length", str(size)))
        if self.body.startswith("expected"):
            fields.append(("expect", "100-continue"))
        return fields

    def talk(self):
        size = SIZES[self.body]
        first = self.client.ask(self.head(f"/{self.handler}?{self.tag}", size), b"b" * size,
                                size > 0, awaits_continue=self.body == "expected")
        beside = self.ask_next() if self.other == "beside" else None
        if self.ending == "closes":
            self.client.send_bodies()
            return
        if self.ending == "resets":
            self.client.send_bodies()
            self.client.reset(first)
        else:
            self.check(first)
        if beside is not None:
            self.check_next(beside)
        if self.other == "behind":
            self.check_next(self.ask_next())
        if self.ending == "half-closes":
            self.half_close()

    def ask_next(self):
        fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"),
                  (":path", f"/next?n{self.tag}")]
        return self.client.ask(fields)

    def check_next(self, stream):
        self.client.wait(stream.is_over)
        if stream.status() != 200 or stream.body != f"/next n{self.tag}\n".encode():
            raise Wrong(f"the next request got {stream.status()} {stream.code}")

    def check(self, stream):
        """Checks the response. The upload must end, or the server must reset it without an
        error."""
        self.client.wait(stream.is_over)
        if self.handler in ("aborts", "never"):
            if not stream.code or stream.fields is not None:
                raise Wrong(f"{stream.status()}, reset {stream.code}, in place of a reset")
            return
        if not stream.is_ended:
            raise Wrong(f"reset with {stream.code} in place of a response")
        wanted = STATUS.get(self.handler, 200)
        if self.handler == "limited" and SIZES[self.body] > LIMIT:
            wanted = 413
        if stream.status() != wanted:
            raise Wrong(f"{stream.status()} in place of {wanted}")
        if wanted == 200 and stream.body != f"/{self.handler} {self.tag}\n".encode():
            raise Wrong(f"another response: {stream.body[:60]!r}")
        if not stream.awaits_continue:
            self.client.wait(lambda: stream.has_ended or stream.code is not None)

    def half_close(self):
        """The server must close after the client, without further frames."""
        self.client.socket.shutdown(socket.SHUT_WR)
        self.client.send = lambda data: None
        while not self.client.is_at_end:
            self.client.read_frame()


def tunnel(port, is_plain_connect, seed):
    """A tunnel by CONNECT or extended CONNECT (RFC 8441), with bytes immediately after the
    header section."""
    chance = random.Random(seed)
    with Client(port, chance) as client:
        fields = [(":method", "CONNECT"), (":authority", "a:80")]
        if not is_plain_connect:
            fields += [(":protocol", "echo"), (":scheme", "http"), (":path", "/upgrades?x")]
        words = b"GET /next HTTP/1.1\r\n\r\n" * 10_000  # More than a window.
        client.wait(lambda: client.takes_tunnels)
        stream = client.ask(fields, words, has_body=True)
        stream.is_tunnel = True
        client.wait(lambda: len(stream.body) >= len(words) or stream.is_over())
        if stream.status() != 200 or stream.body != words:
            raise Wrong(f"{stream.status()}, reset {stream.code}, {len(stream.body)} bytes")
        stream.is_tunnel = False  # The echo replies to its end with its own.
        client.wait(stream.is_over)
        if not stream.is_ended or stream.code:
            raise Wrong(f"the tunnel ends with {stream.code}")
