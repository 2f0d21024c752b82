#!/usr/bin/env python3
"""A server of the docs, and somebody who talks to it.   talk.py PROGRAM WORD

Starts it at a free port, sends a line with WORD, waits for one that has it, and ends the server
with SIGTERM, which it may follow in good order. Where WORD begins with a slash, it asks for that
path by HTTP, and waits for 200.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 30  # Seconds, for what is to happen soon.


def free_port():
    """One below those that the kernel hands out, so that nobody has it before the server does."""
    while True:
        port = random.randrange(10_000, 32_000)
        try:
            with socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True):
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
    """What is sent, and what the answer has."""
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
