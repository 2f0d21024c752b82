"""libevent's sample programs: each does the same on both libraries."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time

import suite

NAME = "samples"
TITLE = "libevent's sample programs, driven from outside"
SOURCES = ["libevent"]
PROGRAMS = ["gcc", "openssl"]
SECONDS = 20
BUILT = {
    "hello-world": [],
    "http-server": [],
    "time-test": [],
    "le-proxy": ["openssl_hostname_validation.c", "hostcheck.c"],
    "https-client": ["openssl_hostname_validation.c", "hostcheck.c"],
}
LIBRARIES = "-levent_core -levent_extra -levent_openssl -lssl -lcrypto".split()


def build(world):
    source = world.source("libevent")
    place = world.path("samples")
    os.makedirs(place, exist_ok=True)
    if not os.path.exists(os.path.join(place, "evconfig-private.h")):
        suite.must([os.path.join(source, "configure"), "-q", "--disable-static"], cwd=place)
    for name, more in BUILT.items():
        program = os.path.join(place, name)
        if os.path.isfile(program):
            continue
        files = [os.path.join(source, "sample", file) for file in (f"{name}.c", *more)]
        suite.must(["gcc", "-w", "-O1", f"-I{place}", f"-I{place}/include", f"-I{source}/include",
                    f"-I{source}", *files, "-o", program, *LIBRARIES])
    return place


def certify(place):
    if os.path.exists(os.path.join(place, "cert")):
        return
    suite.must(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650",
                "-subj", "/CN=localhost", "-keyout", "pkey", "-out", "cert"], cwd=place)


class Program:
    """A sample that runs until it is stopped."""

    def __init__(self, words, environment, place):
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(words, env=environment, cwd=place,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def connect(port):
    """A connection to a server that may be starting."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def exchange(port, text):
    """Returns everything that a server sends back."""
    received = b""
    with connect(port) as peer:
        peer.sendall(text)
        while piece := peer.recv(65536):
            received += piece
    return received


def free_port():
    """Returns a free port below the ephemeral range, so that no other socket takes it meanwhile."""
    while True:
        port = random.randrange(10_000, 30_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def hello_world(place, environment):
    with Program([f"{place}/hello-world"], environment, place):
        return exchange(9995, b"") == b"Hello, World!\n"


def http_server(place, environment):
    os.makedirs(os.path.join(place, "served"), exist_ok=True)
    port = free_port()
    with Program([f"{place}/http-server", "-p", str(port), f"{place}/served"], environment, place):
        return exchange(port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200")


def time_test(place, environment):
    words = ["timeout", "-s", "INT", "7", "stdbuf", "-oL", f"{place}/time-test"]
    status, output = suite.call(words, SECONDS, env=environment)
    return status == 124 and output.count("timeout_cb called") >= 2


def le_proxy(place, environment):
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as target, \
            Program([f"{place}/le-proxy", f"127.0.0.1:{port}",
                     f"127.0.0.1:{target.getsockname()[1]}"], environment, place):
        peer = connect(port)
        target.settimeout(SECONDS)
        behind, _ = target.accept()
        with peer, behind:
            peer.sendall(b"there")
            there = behind.recv(100)
            behind.sendall(b"and back")
            behind.close()
            return there == b"there" and peer.recv(100) == b"and back"


def https_client(place, environment):
    port = free_port()
    # pylint: disable-next=consider-using-with
    server = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-key",
                               "pkey", "-cert", "cert", "-www", "-quiet"], cwd=place,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        connect(port).close()  # It listens.
        status, output = suite.call(
            [f"{place}/https-client", "-url", f"https://127.0.0.1:{port}/", "-ignore-cert"],
            SECONDS, env=environment, cwd=place)
        return status == 0 and "Response line: 200" in output
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


SAMPLES = {"hello-world": hello_world, "http-server": http_server, "time-test": time_test,
           "le-proxy": le_proxy, "https-client": https_client}


def run(world):
    suite.need(*PROGRAMS)
    place = build(world)
    certify(place)

    def run_one(name, drop_in):
        try:
            passed = SAMPLES[name](place, world.environment(drop_in))
        except (OSError, TypeError):
            passed = False
        return suite.PASSED if passed else suite.FAILED

    return suite.compare(list(SAMPLES), run_one, jobs=1)
