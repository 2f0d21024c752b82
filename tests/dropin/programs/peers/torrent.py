"""A torrent and its tracker: who may be asked for the pieces of a file."""

import hashlib
import http.server
import socket
import struct

from peers.web import WebServer

PIECE = 65536


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
    """Knows the ports of `peers`."""

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
