"""A torrent and its tracker, which returns the peers for the pieces of a file. Also a
go-between, for peers that accept no loopback address from a tracker."""

import hashlib
import http.server
import socket
import struct
import threading

import harness
from peers.streams import receive
from peers.web import WebServer

PIECE = 65536
HANDSHAKE_BYTES = 68
ID_BYTES = 20


def encode(value):
    """BEP 3: "bencoding"."""
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    return b"d" + b"".join(encode(key) + encode(value[key]) for key in sorted(value)) + b"e"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        peers = b"".join(socket.inet_aton("127.0.0.1") + struct.pack(">H", port)
                         for port in self.server.peers)
        content = encode({b"interval": 60, b"peers": peers})
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Tracker(WebServer):
    """A tracker that knows the ports of `peers`."""

    def __init__(self):
        super().__init__({})
        self.RequestHandlerClass = Handler
        self.peers = []
        self.asked = []

    def torrent(self, name, data):
        pieces = b"".join(hashlib.sha1(data[at:at + PIECE]).digest()
                          for at in range(0, len(data), PIECE))
        return encode({b"announce": b"http://127.0.0.1:%d/announce" % self.port,
                       b"info": {b"name": name.encode(), b"length": len(data),
                                 b"piece length": PIECE, b"pieces": pieces}})


def introduce(port, other, info_hash):
    """Connects to both, each in the name of the other, and then forwards their data. A client that
    has not yet read its torrent closes the connection."""
    harness.wait_until(lambda: shake_hands(port, other, info_hash), "both handshakes")


def shake_hands(port, other, info_hash):
    streams = [socket.create_connection(("127.0.0.1", each), harness.ANSWER_SECONDS)
               for each in (port, other)]
    for number, stream in enumerate(streams):
        stream.sendall(b"\x13BitTorrent protocol" + bytes(8) + info_hash
                       + (b"-XX0000-%d" % number).ljust(ID_BYTES, b"0"))
    if not all([has_greeted(stream, info_hash) for stream in streams]):
        for stream in streams:
            stream.close()
        return False
    for stream in streams:
        stream.settimeout(None)
    for source, target in (streams, streams[::-1]):
        threading.Thread(target=carry, args=(source, target), daemon=True).start()
    return True


def has_greeted(stream, info_hash):
    try:
        return info_hash in receive(stream, HANDSHAKE_BYTES)
    except ConnectionResetError:
        return False


def carry(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # One side has closed.
