#!/usr/bin/env python3
"""Tests an HTTP server under load and with slow clients.   reliability.py SERVER [--long] [NAME...]

SERVER is http_reliability_server. Prints its measurements, and exits with 1 if a promise did not
hold. A sample of some seconds is a test; --long runs all of it, as docs/reliability.md reports:
    tools/night --only reliability
The names are those of the functions below: readers, upload, drain, slow.
"""

import argparse
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "examples"))
import driver

MIB = 1024 * 1024
# Bytes of a response before the server stops writing: QueueLimits::high and a piece.
QUEUE = 256 * 1024 + 64 * 1024
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what, flush=True)


class Server(driver.Server):
    def __init__(self, program):
        super().__init__(program)
        self.bare_port = int(self.read_line().rsplit(":", 1)[1])

    def cpu(self):
        """Returns the processor seconds used until now."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak(self):
        """Returns the largest resident size, in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024

    def dial(self, port=None):
        return socket.create_connection(("127.0.0.1", port or self.port), driver.PATIENCE)


def settled(measure, quiet=0.5, patience=60):
    """Returns the measured value once it has not changed for `quiet` seconds."""
    last, since, end = measure(), time.monotonic(), time.monotonic() + patience
    while time.monotonic() - since < quiet and time.monotonic() < end:
        time.sleep(0.05)
        now = measure()
        if now != last:
            last, since = now, time.monotonic()
    return last


def readers(program, is_long):
    """Clients that request 100 MiB each, and never read."""
    count = 1000 if is_long else 100
    with Server(program) as server:
        before = server.memory()
        clients = []
        for _ in range(count):
            client = server.dial()
            client.sendall(GET.replace(b"/ ", b"/long ", 1))
            clients.append(client)
        grown = settled(server.peak) - before
        print(f"readers: {count} that never read 100 MiB: {grown / MIB:.0f} MiB, "
              f"{grown / count / 1024:.0f} KiB each; the bar is {QUEUE // 1024}")
        check(grown <= count * QUEUE, "readers: more memory than the queues may have")
        check(answer_of(server.dial(), GET).endswith(b"hello\n"), "readers: nobody else is served")
        for client in clients:
            client.close()
        left = settled(server.memory) - before
        print(f"readers: {left / MIB:.1f} MiB when they have gone")


def upload(program, is_long):
    """A long body: must cost as little as bytes without HTTP, and no memory."""
    size = 1024 * MIB if is_long else 32 * MIB
    with Server(program) as server:
        for port in (server.port, server.bare_port):
            upload_once(server, port, MIB)
        before = server.peak()
        speed, used = upload_once(server, server.port, size)
        grown = server.peak() - before
        bare_speed, bare_used = upload_once(server, server.bare_port, size)
        print(f"upload: {size // MIB} MiB: {grown / 1024:.0f} KiB more resident; "
              f"{speed:.0f} MiB/s, {used:.2f} s of a processor; "
              f"a bare Stream {bare_speed:.0f} MiB/s, {bare_used:.2f} s")
        check(grown <= MIB, "upload: the memory has grown")


def upload_once(server, port, size):
    """Returns the speed in MiB a second, until the server has confirmed the upload, and the
    server's processor seconds."""
    piece = b"x" * (256 * 1024)
    with server.dial(port) as client:
        begin, cpu = time.monotonic(), server.cpu()
        if port == server.port:
            client.sendall(b"POST /upload HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                           b"Content-Length: %d\r\n\r\n" % size)
        for _ in range(size // len(piece)):
            client.sendall(piece)
        if port != server.port:
            client.shutdown(socket.SHUT_WR)
        answer = read_all(client)
        taken = time.monotonic() - begin
    check(answer.endswith(b"%d" % size), f"upload: {answer[-100:]} instead of {size}")
    return size / MIB / taken, server.cpu() - cpu


def read_all(client):
    data = b""
    while piece := client.recv(65536):
        data += piece
    return data


def answer_of(client, request):
    """Returns the response to one request, and closes."""
    with client:
        client.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        return read_all(client)


def drain(program, is_long):
    """SIGTERM under load: requests sent before the client could know of it are still answered."""
    rounds, asked, lost = (100 if is_long else 3), 0, 0
    for _ in range(rounds):
        with Server(program) as server:
            clients = [Asking(server) for _ in range(8)]
            while sum(client.answered for client in clients) < 200:
                time.sleep(0.001)
            code = server.stop()
            check(code == 0, f"drain: the server has ended with {code}")
            for client in clients:
                client.join()
        asked += sum(client.asked for client in clients)
        lost += sum(client.asked - client.answered for client in clients)
    print(f"drain: {rounds} times, {asked} requests, {lost} lost")
    check(lost == 0, "drain: requests were lost")


class Asking(threading.Thread):
    """Sends requests until a response has `Connection: close`."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client = server.dial()
        self.asked = self.answered = 0
        self.start()

    def run(self):
        with self.client, self.client.makefile("rb") as file:
            is_last = False
            while not is_last:
                self.asked += 1
                try:
                    self.client.sendall(GET)
                    lines = []
                    while (line := file.readline()) not in (b"\r\n", b""):
                        lines.append(line.lower())
                    if not lines or file.read(6) != b"hello\n":
                        return
                except OSError:
                    return
                self.answered += 1
                is_last = b"connection: close\r\n" in lines


# slowhttptest's slow modes, in as many connections as it has opened: header sections, bodies,
# ranges, reading.
SLOW = {
    "H": ["-i", "5"],
    "B": ["-i", "5", "-s", "8192"],
    "R": ["-a", "10", "-b", "3000"],
    "X": ["-k", "3", "-n", "5", "-w", "512", "-y", "1024", "-z", "32"],
}


def slow(program, is_long):
    """Many slow clients beside a good one."""
    if shutil.which("slowhttptest") is None:
        return print("slow: no slowhttptest")
    count, seconds = (2000, 30) if is_long else (200, 2)
    with Server(program) as server:
        print(f"slow: alone: {good_client(server, seconds / 2)}")
        for kind in SLOW if is_long else ["H"]:
            path = {"B": "/upload", "X": "/long"}.get(kind, "/")
            attack = subprocess.Popen(
                ["slowhttptest", f"-{kind}", *SLOW[kind], "-c", str(count), "-r", str(count // 2),
                 "-l", str(seconds), "-u", f"http://127.0.0.1:{server.port}{path}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            print(f"slow: -{kind}, {count}: {good_client(server, seconds)}", flush=True)
            attack.terminate()
            attack.wait()


def good_client(server, seconds):
    """A GET every ten milliseconds, each on a new connection."""
    cpu, begin, times = server.cpu(), time.monotonic(), []
    while (now := time.monotonic()) < begin + seconds:
        try:
            answer = answer_of(server.dial(), GET)
        except OSError as error:
            answer = str(error).encode()
        check(answer.endswith(b"hello\n"), f"slow: the good client got {answer[:100]}")
        times.append(time.monotonic() - now)
        time.sleep(0.01)
    times.sort()
    used = (server.cpu() - cpu) / (time.monotonic() - begin)
    return (f"{len(times)} GETs, p50 {times[len(times) // 2] * 1e3:.2f} ms, "
            f"p99 {times[len(times) * 99 // 100] * 1e3:.2f} ms, {used * 100:.1f} % of a processor, "
            f"{server.memory() / MIB:.0f} MiB resident")


PARTS = {part.__name__: part for part in (readers, upload, drain, slow)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--long", action="store_true")
    arguments = parser.parse_intermixed_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for name in arguments.names or PARTS:
        PARTS[name](arguments.server, arguments.long)
        sys.stdout.flush()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
