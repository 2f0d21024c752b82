#!/usr/bin/env python3
"""ss-server and ss-local of shadowsocks-libev: files and datagrams through an encrypted tunnel."""

import os
import socket
import struct
import time

import harness
from peers.streams import receive
from peers.web import WebServer, checksum, random_contents

SIZES = {"empty": 0, "small": 1000, "page": 70_000, "big": 5_000_000}
PARALLEL = 6
DATAGRAMS = 40
UDP_SECONDS = 20
METHODS = (("chacha20-ietf-poly1305", "epoll"), ("aes-256-gcm", "select"))  # (cipher, backend)
# With the original library too, both take EINTR for the end of a connection, and a short write of a
# response of the SOCKS handshake (about 10 bytes) for an error.
WEATHER = harness.Weather(kinds="again,short", least=100)
TIMEOUT = 30  # shadowsocks' own timeout; no connection of the test waits that long.


def start_tunnel(run, method, backend):
    """Returns ss-local's port and the two programs."""
    remote, local = harness.free_port(), harness.free_port()
    both = ["-s", "127.0.0.1", "-p", remote, "-k", "secret", "-m", method, "-t", TIMEOUT, "-u"]
    how = {"weather": WEATHER, "env": harness.libev(backend)}
    # It would query the system's name server for names that are not in its own table.
    server = run.start("ss-server", *both, "-d", "127.0.0.1", **how)
    server.wait_tcp(remote)
    client = run.start("ss-local", *both, "-b", "127.0.0.1", "-l", local, **how)
    client.wait_tcp(local)
    server.assert_uses()
    client.assert_uses()
    return local, (server, client)


def curl(run, local, *arguments):
    return run.start("curl", "--silent", "--show-error", "--fail", "--max-time", 60,
                     "--socks5-hostname", f"127.0.0.1:{local}", *arguments, dropin=False)


def check_downloads(run, local, web):
    names = ["big"] * PARALLEL + list(SIZES)
    clients = []
    for number, name in enumerate(names):
        host = "localhost" if number % 2 else "127.0.0.1"
        path = run.path(f"{number}.got")
        clients.append((name, path, curl(
            run, local, "--output", path, f"http://{host}:{web.port}/{name}")))
    for name, path, client in clients:
        client.wait()
        got = open_bytes(path)
        harness.check(checksum(got) == checksum(web.contents[name]),
                      f"{name} came with other contents ({len(got)} bytes)")


def open_bytes(path):
    if not os.path.exists(path):
        return b""  # curl creates no file for an empty response.
    with open(path, "rb") as file:
        return file.read()


def check_uploads(run, local, web):
    source = run.file("upload", web.contents["big"])
    clients = [curl(run, local, "--data-binary", f"@{source}", "--header", "Expect:",
                    f"http://127.0.0.1:{web.port}/upload") for _ in range(PARALLEL)]
    wanted = checksum(web.contents["big"])
    for client in clients:
        harness.check(client.wait() == wanted, "the server received something else")


def check_refused(run, local):
    """A connection to a port without a listener ends, and affects no other."""
    curl(run, local, f"http://127.0.0.1:{harness.free_port()}/").wait(status=None)


def associate(local):
    """SOCKS5's UDP ASSOCIATE: returns the connection that keeps it open, and where to send
    datagrams."""
    control = socket.create_connection(("127.0.0.1", local), harness.ANSWER_SECONDS)
    control.sendall(b"\5\1\0")
    harness.check(receive(control, 2) == b"\5\0", "the greeting was refused")
    control.sendall(b"\5\3\0\1" + bytes(6))
    answer = receive(control, 10)
    harness.check(answer[:4] == b"\5\0\0\1", f"UDP was refused: {answer!r}")
    return control, (socket.inet_ntoa(answer[4:8]), struct.unpack("!H", answer[8:])[0])


def exchange(client, relay, echo, data):
    """Sends data until the echo returns it; datagrams may be lost on the way."""
    address = echo.getsockname()
    head = b"\0\0\0\1" + socket.inet_aton(address[0]) + struct.pack("!H", address[1])
    deadline = time.monotonic() + UDP_SECONDS
    while time.monotonic() < deadline:
        client.sendto(head + data, relay)
        try:
            got, source = echo.recvfrom(65536)
            harness.check(got == data, f"{len(got)} other bytes, not {len(data)}")
            echo.sendto(got[::-1], source)
            answer = client.recv(65536)
        except socket.timeout:
            continue
        harness.check(answer == head + data[::-1], f"other bytes came back for {len(data)}")
        return
    raise harness.Failure(f"no datagram of {len(data)} bytes came through")


def check_datagrams(local):
    control, relay = associate(local)
    with control, socket.socket(type=socket.SOCK_DGRAM) as client, \
            socket.socket(type=socket.SOCK_DGRAM) as echo:
        client.bind(("127.0.0.1", 0))
        echo.bind(("127.0.0.1", 0))
        for one in (client, echo):
            one.settimeout(0.3)
        for number in range(DATAGRAMS):
            exchange(client, relay, echo, number.to_bytes(4, "big") + os.urandom(30 * number))


def test(run):
    harness.need("ss-server", "ss-local", "curl")
    with WebServer(random_contents(SIZES)) as web:
        for method, backend in METHODS:
            local, programs = start_tunnel(run, method, backend)
            check_downloads(run, local, web)
            check_uploads(run, local, web)
            check_refused(run, local)
            check_downloads(run, local, web)
            check_datagrams(local)
            for program in programs:
                program.stop(status=0)


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
