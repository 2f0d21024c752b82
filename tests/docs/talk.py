#!/usr/bin/env python3
"""Tests a server of the docs with a client.   talk.py PROGRAM WORD

Starts it at a free port, sends a line with WORD, waits for a line that contains it, and ends the
server with SIGTERM; it may also exit normally then. If WORD begins with a slash, it requests that
path by HTTP, and waits for 200.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 30  # Seconds, for an event that should come soon.


def free_port():
    """Returns a port that is free, as is the next one. They are below the ephemeral range, so that
    no other socket takes them before the server does."""
    while True:
        port = random.randrange(10_000, 32_000)
        try:
            for each in port, port + 1:
                socket.create_server(("", each), family=socket.AF_INET6,
                                     dualstack_ipv6=True).close()
            return port
        except OSError:
            continue


def connect(port, end):
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def question(word):
    """Returns the request, and a part of the expected reply."""
    if word.startswith(b"/"):
        return b"GET " + word + b" HTTP/1.0\r\n\r\n", b" 200 OK\r\n"
    return word + b"\n", word


def talk(port, said, wanted):
    with connect(port, time.monotonic() + PATIENCE) as peer:
        peer.sendall(said)
        heard = b""
        while wanted not in heard:
            piece = peer.recv(4096)
            if not piece:
                break
            heard += piece
    return heard


def main(program, word):
    port = free_port()
    environment = dict(os.environ, SPATE_SAMPLE_PORT=str(port))
    said, wanted = question(word.encode())
    with subprocess.Popen([program], env=environment) as server:
        try:
            heard = talk(port, said, wanted)
            server.send_signal(signal.SIGTERM)
            code = server.wait(PATIENCE)
        finally:
            server.kill()
    print(f"heard {heard!r}, ended with {code}")
    return 0 if wanted in heard and code in (0, -signal.SIGTERM) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
