#!/usr/bin/env python3
"""Compares our codec with other servers, on the same bytes.   differential.py HTTP_VECTORS [-v]

Gives each vector of vectors/requests.txt to those of Go, Node, h11, nginx and haproxy that are
installed. A vector that our codec accepts and three of them reject fails, unless the vector gives a
reason (a line "~ ..."). With -v it prints the vectors that we reject and all others accept. Without
three of them: skipped.
"""

import concurrent.futures
import http.server
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import go
import missing
from ports import free_port

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "vectors", "requests.txt")
ORACLES = os.path.join(HERE, "oracles")
QUIET = 0.4  # Seconds without a byte, after which no response is expected.
ENOUGH = 3

REFUSED, TAKEN = "refused", "taken"


class Backend(http.server.BaseHTTPRequestHandler):
    """The server behind the proxies: 200 to everything, and closes the connection."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def log_message(self, *_):
        pass


class Backends(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A proxy that rejects a request closes the connection."""


class Server:
    """A program that listens on a port."""

    def __init__(self, name, command, port, directory):
        self.name = name
        self.port = port
        self.process = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_up(self):
        for _ in range(100):
            if self.process.poll() is not None:
                return False
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                time.sleep(0.1)
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def verdict(self, data):
        """Decides by the responses: an error, or a closed connection without a response, is a
        rejection."""
        answers, is_closed = self.exchange(data)
        codes = re.findall(rb"HTTP/1\.[01] (\d\d\d)", answers)
        if any(code >= b"400" for code in codes):
            return REFUSED
        return REFUSED if not codes and is_closed else TAKEN

    def exchange(self, data):
        answers = b""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.settimeout(QUIET)
            try:
                connection.sendall(data)
                while piece := connection.recv(65536):
                    answers += piece
                return answers, True
            except TimeoutError:
                return answers, False
            except OSError:
                return answers, True


class H11:
    """In this process."""

    name = "h11"

    def __init__(self, module):
        self.module = module

    def stop(self):
        pass

    def verdict(self, data):
        connection = self.module.Connection(self.module.SERVER)
        connection.receive_data(data)
        try:
            while True:
                event = connection.next_event()
                if event in (self.module.NEED_DATA, self.module.PAUSED):
                    if not self.goes_on(connection, event):
                        return TAKEN
        except self.module.RemoteProtocolError:
            return REFUSED

    def goes_on(self, connection, event):
        """Answers the request that was read, if another may follow. Returns whether it did."""
        if event is not self.module.PAUSED or connection.their_state is not self.module.DONE:
            return False
        connection.send(self.module.Response(status_code=200, headers=[("Content-Length", "0")]))
        connection.send(self.module.EndOfMessage())
        if connection.our_state is not self.module.DONE:
            return False
        connection.start_next_cycle()
        return True


def configured(directory, name, **values):
    """Returns a copy of a configuration, with its ports."""
    with open(os.path.join(ORACLES, name + ".in"), encoding="ascii") as file:
        text = file.read()
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    path = os.path.join(directory, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def go_server(directory, _):
    program = go.find("http_oracle")
    port = free_port()
    return program and Server("Go", [program, str(port)], port, directory)


def node_server(directory, _):
    node = shutil.which("node")
    port = free_port()
    script = os.path.join(ORACLES, "server.js")
    return node and Server("Node", [node, script, str(port)], port, directory)


def nginx_server(directory, backend):
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    port = free_port()
    path = configured(directory, "nginx.conf", PORT=port, BACKEND=backend)
    return nginx and Server("nginx", [nginx, "-p", directory, "-c", path], port, directory)


def haproxy_server(directory, backend):
    haproxy = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    port = free_port()
    path = configured(directory, "haproxy.cfg", PORT=port, BACKEND=backend)
    return haproxy and Server("haproxy", [haproxy, "-db", "-f", path], port, directory)


def h11_server(_, __):
    # Debian's python has the package; it may not be the python that runs this.
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        import h11  # pylint: disable=import-outside-toplevel
    except ImportError:
        return None
    return H11(h11)


def start_oracles(directory, backend):
    oracles = []
    for start in (go_server, node_server, nginx_server, haproxy_server, h11_server):
        oracle = start(directory, backend)
        if not oracle:
            continue
        if isinstance(oracle, Server) and not oracle.is_up():
            oracle.stop()
            continue
        oracles.append(oracle)
    return oracles


def our_vectors(program):
    """Returns (name, bytes, our outcome), and the names of the vectors that give a reason for
    differing."""
    run = subprocess.run([program, "--list", "requests", VECTORS], capture_output=True, text=True,
                         check=True)
    vectors = []
    for line in run.stdout.splitlines():
        name, data, outcome = line.split("\t")
        vectors.append((name, bytes.fromhex(data), outcome))
    with open(VECTORS, encoding="utf-8") as file:
        explained = set(re.findall(r"^== (\S+)\n(?:(?!==)(?!=>).*\n)*?~ ", file.read(), re.M))
    return vectors, explained


def refuses(outcome):
    return re.search(r"(?:^| )[45]\d\d$", outcome) is not None


def compare(vector, oracles):
    name, data, outcome = vector
    verdicts = {oracle.name: oracle.verdict(data) for oracle in oracles}
    refused = [each for each, verdict in verdicts.items() if verdict == REFUSED]
    return name, refuses(outcome), refused


def report(results, explained, count, is_verbose):
    failures = 0
    for name, is_refused, refused in results:
        others = ", ".join(refused) or "nobody"
        if not is_refused and len(refused) >= ENOUGH:
            verdict = "explained" if name in explained else "FAILS"
            failures += verdict == "FAILS"
            print(f"{verdict}: we take {name}, which {others} refuse")
        elif is_verbose and is_refused and len(refused) < count:
            print(f"stricter: we refuse {name}, as {others} do")
        elif is_verbose and not is_refused and refused:
            print(f"laxer: we take {name}, which {others} refuse")
    return failures


def main(arguments):
    if not arguments:
        print(__doc__)
        return 2
    backend = Backends(("127.0.0.1", 0), Backend)
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    vectors, explained = our_vectors(arguments[0])
    with tempfile.TemporaryDirectory() as directory:
        oracles = start_oracles(directory, backend.server_address[1])
        names = ", ".join(oracle.name for oracle in oracles) or "none"
        try:
            if len(oracles) < ENOUGH:
                print(f"{ENOUGH} of Go, Node, nginx, haproxy and h11 are needed, and installed is "
                      f"{names} (packages golang-go, nodejs, nginx, haproxy, python3-h11)")
                return missing.SKIPPED
            with concurrent.futures.ThreadPoolExecutor(40) as pool:
                results = list(pool.map(lambda each: compare(each, oracles), vectors))
        finally:
            for oracle in oracles:
                oracle.stop()
    failures = report(results, explained, len(oracles), "-v" in arguments)
    print(f"{len(vectors)} vectors, compared with {names}: {failures} fail")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
