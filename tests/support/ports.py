"""Ports for servers that tests start."""

import random
import socket

CLOSED_PORT = 1  # tcpmux (RFC 1078): no program listens there.


def free_port():
    """Returns a port that was free for TCP and for UDP a moment ago, on every address.

    It is below the ephemeral range, which sockets of other tests use.
    """
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("", port))
                udp.bind(("", port))
            except OSError:
                continue
            return port
