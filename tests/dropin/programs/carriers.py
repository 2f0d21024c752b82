#!/usr/bin/env python3
"""Programs that forward bytes: all must arrive, and no others."""

import os
import random
import socket
import struct
import threading

import harness
from peers import frames
from peers.table import Table
from peers.torrent import Tracker
from peers.web import tls_context

table = Table()


@table.row("fstrm_capture", "fstrm_replay")
def fstrm_capture(run):
    """Several clients send frames at once, over a Unix socket and over TCP."""
    source = random.Random(run.seed)
    files = [[source.randbytes(source.choice((10, 500, 20_000))) for _ in range(300)]
             for _ in range(6)]
    for where, options in (("unix", ["-u", run.path("frames.socket")]),
                           ("tcp", ["-a", "127.0.0.1", "-p", harness.free_port()])):
        output = run.path(f"{where}.frames")
        server = run.start("fstrm_capture", "-t", "test", "-w", output, *options)
        server.assert_uses()
        if where == "unix":
            server.wait_unix(options[1])
        else:
            server.wait_tcp(options[3])
        clients = [run.start("fstrm_replay", "-t", "test", *options, "-r",
                             run.file(f"in{number}", frames.pack(b"test", sent)), dropin=False)
                   for number, sent in enumerate(files)]
        for client in clients:
            client.wait()
        server.stop(0)
        with open(output, "rb") as file:
            got = frames.unpack(file.read())
        sent = [frame for each in files for frame in each]
        harness.check(sorted(got) == sorted(sent), f"{len(got)} of {len(sent)} frames")


REDSOCKS = """
base {{ log = stderr; daemon = off; redirector = generic; }}
redsocks {{
  local_ip = 127.0.0.1; local_port = {port};
  ip = 127.0.0.1; port = {proxy};
  type = {kind};
}}
dnstc {{ local_ip = 127.0.0.1; local_port = {port}; }}
"""


def serve_tunnels(listener, heard):
    """An HTTP proxy that accepts CONNECT and echoes."""
    def serve(stream):
        with stream, stream.makefile("rb") as reader:
            heard.append(reader.readline())
            while reader.readline().strip():
                pass
            stream.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            while data := reader.read1(65536):
                stream.sendall(data)

    while True:
        try:
            stream, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(stream,), daemon=True).start()


@table.row("redsocks")
def redsocks(run):
    """Its input goes through a proxy. At EINTR it hangs up, on the original as well."""
    port = harness.free_port()
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve_tunnels, args=(listener, heard), daemon=True).start()
        server = run.start("redsocks", "-c", run.file("redsocks.conf", REDSOCKS.format(
            port=port, proxy=listener.getsockname()[1], kind="http-connect")),
                           weather=harness.Weather(share=0.3, kinds="again,short"))
        server.wait_tcp(port)
        server.assert_uses()
        data = os.urandom(300_000)
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
            got = b""
            while len(got) < len(data):
                piece = client.recv(65536)
                harness.check(piece, f"ended after {len(got)} bytes; {heard}")
                got += piece
        harness.check(got == data, "other bytes came back")


# [MS-SSTP] 2.2
SSTP = struct.Struct(">BBHH")
CONNECT, ACKNOWLEDGED, ECHO_REQUEST, ECHO_REPLY = 1, 2, 8, 9
ECHOES = 100


def serve_sstp(listener, done):
    """The server's side: a handshake, then requests for an echo."""
    stream, _ = listener.accept()
    with stream, stream.makefile("rb") as reader:
        def hear():
            _, _, size, kind = SSTP.unpack(reader.read(SSTP.size))
            reader.read(size - SSTP.size)
            done.append(kind)

        while reader.readline().strip():
            pass
        stream.sendall(b"HTTP/1.1 200\r\nContent-Length: 18446744073709551615\r\n\r\n")
        hear()
        stream.sendall(SSTP.pack(0x10, 1, 48, ACKNOWLEDGED)
                       + struct.pack(">HHHL32x", 1, 4, 40, 2))
        for _ in range(ECHOES):
            stream.sendall(SSTP.pack(0x10, 1, 8, ECHO_REQUEST) + bytes(2))
            hear()
        reader.read(1)  # Until the client ends.


def run_sstpc(run):
    """Returns the requests that it received, once it has answered all."""
    kinds = []
    near, far = os.openpty()
    try:
        with socket.create_server(("127.0.0.1", 0)) as plain, \
                tls_context(run).wrap_socket(plain, server_side=True) as listener:
            threading.Thread(target=serve_sstp, args=(listener, kinds), daemon=True).start()
            program = run.start("sstpc", "--nolaunchpppd", "--cert-warn", "--log-stderr",
                                "--ipparam", f"spate{os.getpid()}", "--user", "name",
                                "--password", "word", f"127.0.0.1:{listener.getsockname()[1]}",
                                stdin=far)
            program.assert_uses()
            program.wait_for(lambda: len(kinds) > ECHOES, "all echoes")
            program.stop()
    finally:
        os.close(near)
        os.close(far)
    return kinds


@table.row("sstpc", "openssl")
def sstpc(run):
    """A tunnel in TLS; its payload comes from standard input, which is empty.

    On a busy machine it sometimes exits after its first messages, on the original as well (3 of
    40); of two at once one always does.
    """
    with harness.alone("sstpc"):
        for tries_left in reversed(range(4)):
            try:
                kinds = run_sstpc(run)
                break
            except harness.Failure:
                if tries_left == 0 or run.programs[-1].status() != 255:
                    raise
    harness.check(kinds == [CONNECT] + [ECHO_REPLY] * ECHOES, f"{kinds}")


@table.row("unworkable")
def unworkable(run):
    """BitTorrent: one client has the file, and another downloads it from there."""
    data = random.Random(run.seed).randbytes(100_000)
    with Tracker() as tracker:
        torrent = run.file("file.torrent", tracker.torrent("file", data))
        for name in ("has", "gets"):
            os.mkdir(run.path(name))
        run.file("has/file", data)
        port = harness.free_port()
        seeder = run.start("unworkable", "-s", "-p", port, torrent, cwd=run.path("has"))
        seeder.wait_tcp(port)
        tracker.peers.append(port)
        leecher = run.start("unworkable", "-p", harness.free_port(), torrent, cwd=run.path("gets"))
        leecher.wait(seconds=30)
    with open(run.path("gets/file"), "rb") as file:
        harness.check(file.read() == data, "another file")


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
