#!/usr/bin/env python3
"""The client's retries with a server on Python's http.server.   client_retries.py PROGRAM

The first requests for a path fail, in the way that the path names:

  /status/503/2   two responses 503 with Retry-After: 0
  /reset/2        two connections are reset after the request
  /truncated/1    one response is shorter than its Content-Length

Then the server responds with the method, the Authorization field and the body, as text. PROGRAM
(client_retries_peer.cc) makes the calls.
"""

import collections
import http.server
import socket
import struct
import subprocess
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = collections.Counter()

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind, *rest = self.path.strip("/").split("/")
        self.seen[self.path] += 1
        if rest and self.seen[self.path] <= int(rest[-1]):
            return getattr(self, "fail_by_" + kind)(rest)
        text = f"{self.command} {self.headers.get('Authorization', '-')} ".encode() + body
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def fail_by_status(self, rest):
        self.send_response(int(rest[0]))
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"busy")

    def fail_by_reset(self, _):
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()

    def fail_by_truncated(self, _):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"half")
        self.close_connection = True


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run([sys.argv[1], str(server.server_address[1])], check=False).returncode)
