"""A name server for resolvers, with deliberate faults.

It has an address for every name, derived from the name. By the name's first label:

    lost...    the first datagram of that name is not answered
    long...    the answer is a text too long for a datagram: it is truncated, and whole over TCP
    none...    there is no such name
"""

import hashlib
import socket
import struct
import threading

from peers.dns import RESPONSE, TRUNCATED, TYPES, Message, pack_name

NO_SUCH_NAME = 3
TEXT_PIECES = 20  # Of 200 bytes each.


def address_of(name):
    return ".".join(str(byte) for byte in hashlib.sha256(name.encode()).digest()[:4])


def text_of(name):
    """The first part of the long text of a name."""
    return hashlib.sha256(name.encode()).hexdigest() * 3 + "12345678"


def reply(data, tcp):
    message = Message(data)
    name, kind = message.questions[0]
    records = []
    code, flags = 0, 0
    if name.startswith("none"):
        code = NO_SUCH_NAME
    elif name.startswith("long") and not tcp:
        flags = TRUNCATED
    elif name.startswith("long"):
        text = text_of(name).encode()
        records = [(bytes([len(text)]) + text) * TEXT_PIECES]
    elif kind == "A":
        records = [socket.inet_aton(address_of(name))]
    head = struct.pack(">6H", message.identifier, RESPONSE | flags | code | message.flags & 0x0100,
                       1, len(records), 0, 0)
    number = TYPES.get(kind, kind)
    body = data[12:16 + len(pack_name(name))]  # The question, in the case in which it came.
    for record in records:
        body += b"\xc0\x0c" + struct.pack(">2HLH", number, 1, 60, len(record)) + record
    return head + body


class Upstream:
    """Runs until closed. `lost` and `streams` count its faults."""

    def __init__(self, port):
        self.udp_ = socket.socket(type=socket.SOCK_DGRAM)
        self.tcp_ = socket.socket()
        self.tcp_.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for listener in (self.udp_, self.tcp_):
            listener.bind(("127.0.0.1", port))
        self.tcp_.listen(64)
        self.seen_ = set()
        self.lost = 0
        self.streams = 0
        for serve in (self.serve_datagrams_, self.serve_streams_):
            threading.Thread(target=serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.udp_.close()
        self.tcp_.close()

    def serve_datagrams_(self):
        while True:
            try:
                data, sender = self.udp_.recvfrom(65536)
            except OSError:
                return
            name = Message(data).questions[0][0]
            if name.startswith("lost") and name not in self.seen_:
                self.seen_.add(name)
                self.lost += 1
                continue
            self.udp_.sendto(reply(data, tcp=False), sender)

    def serve_streams_(self):
        while True:
            try:
                stream, _ = self.tcp_.accept()
            except OSError:
                return
            self.streams += 1
            threading.Thread(target=serve_stream, args=(stream,), daemon=True).start()


def serve_stream(stream):
    with stream, stream.makefile("rb") as reader:
        try:
            while head := reader.read(2):
                answer = reply(reader.read(struct.unpack(">H", head)[0]), tcp=True)
                stream.sendall(struct.pack(">H", len(answer)) + answer)
        except OSError:
            pass  # The resolver has closed its socket.
