#!/usr/bin/env python3
"""HTTP with other programs: the table of all courses of an exchange.

    table.py SERVER [--long] [--requests N] [--seed N] [--only PEER,...]

SERVER is peers_server. The table is {HTTP/1.0, 1.1, 2} x {the request's body} x {when the handler
answers} x {the next request pipelined or not} x {the client closes, half-closes, waits}. A bare
socket runs all of it (oracle.py, oracle_http2.py), and rows of upgrades and tunnels. curl,
http.client, aiohttp, Node and Go run the cells that they support, each followed by further
requests. nginx stands between the socket and the server. No byte may be misframed, and no request
lost without an error. A sample is a test; --long runs every cell, and --requests sends so many more
with each program, of any cells that have a response. A program that is not installed is left out.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for name in ("examples", "http", "support"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, name))
import driver
import go
import oracle

SAMPLE = 150       # Cells of the bare socket.
PEER_SAMPLE = 20   # Cells of each program.
GRACE = 9          # Seconds: less than the server's.
BATCH = 50         # Requests of one client.
LATE = 0.5         # Seconds that a program waits for a response that never comes.
PEER_BODIES = ("none", "short", "long", "chunked", "expected")
PEER_HANDLERS = ("before", "during", "after", "limited", "chunks", "drops", "never", "aborts")


class Peer:
    """A program that reads jobs and writes their results."""

    def __init__(self, name, command, versions=("1.1",), bodies=PEER_BODIES):
        self.name, self.command, self.versions, self.bodies = name, command, versions, bodies
        self.process = None

    def run(self, job):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def can_run(self, cell):
        """Returns whether the program supports the cell."""
        return not (cell[0] == "1.0" and cell[1] in ("chunked", "expected"))

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait(driver.PATIENCE)
            self.process.stdout.close()
            self.process = None


class Curl(Peer):
    """Started for each job: all its requests, on one connection if that persists. Over HTTP/2 by
    prior knowledge curl 7.88 never reuses a connection, whatever the server is (nghttpd too): it
    is started for each request."""

    OPTIONS = {"1.0": ["--http1.0"], "1.1": ["--http1.1"], "2": ["--http2-prior-knowledge"]}

    def __init__(self, directory):
        super().__init__("curl", ["curl"], ("1.0", "1.1", "2"))
        self.directory = directory

    def arguments(self, job, request, number):
        url = f"http://127.0.0.1:{job['port']}{request['path']}"
        arguments = [*self.OPTIONS[job["version"]], "--silent", "--max-time", str(job["timeout"]),
                     "--output", os.path.join(self.directory, f"out{number}"),
                     "--write-out", "%{http_code} %{exitcode}\n", url]
        if request["size"]:
            body = os.path.join(self.directory, f"body{request['size']}")
            with open(body, "wb") as file:
                file.write(b"b" * request["size"])
            arguments += ["--request", "POST", "--data-binary", "@" + body]
            arguments += ["--header", "Expect: 100-continue" if request["body"] == "expected"
                          else "Expect:"]
        if request["body"] == "chunked":
            arguments += ["--header", "Transfer-Encoding: chunked"]
        return arguments

    def run(self, job):
        if job["version"] != "2":
            return self.run_all(job)
        return [self.run_all({**job, "requests": [request]})[0] for request in job["requests"]]

    def run_all(self, job):
        command = ["curl"]
        for number, request in enumerate(job["requests"]):
            command += (["--next"] if number else []) + self.arguments(job, request, number)
            path = os.path.join(self.directory, f"out{number}")
            if os.path.exists(path):
                os.remove(path)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False,
                              timeout=driver.PATIENCE)
        return [self.result(number, line) for number, line in enumerate(done.stdout.splitlines())]

    def result(self, number, line):
        status, code = line.split()
        path = os.path.join(self.directory, f"out{number}")
        body = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                body = file.read()
        return {"error": f"curl {code}"} if code != "0" else {"status": int(status), "body": body}


def has_module(name):
    return subprocess.run([sys.executable, "-c", "import " + name], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def find_peers(directory):
    """Returns the installed ones."""
    peers = []
    if shutil.which("curl"):
        peers.append(Curl(directory))
    without_expect = tuple(body for body in PEER_BODIES if body != "expected")
    peers.append(Peer("http.client", [sys.executable, os.path.join(HERE, "client_python.py")],
                      bodies=without_expect))
    if has_module("aiohttp"):
        peers.append(Peer("aiohttp", [sys.executable, os.path.join(HERE, "client_aiohttp.py")]))
    if shutil.which("node"):
        peers.append(Peer("Node", ["node", os.path.join(HERE, "client_node.js")], ("1.1", "2")))
    if client := go.find("http_client"):
        peers.append(Peer("Go", [client], ("1.1", "2")))
    return peers


class Nginx:
    """nginx between the bare socket and the server."""

    def __init__(self, directory, upstream):
        with driver_socket() as free:
            self.port = free.getsockname()[1]
        self.directory = directory
        path = os.path.join(directory, "nginx.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(self.configuration(upstream))
        self.process = subprocess.Popen(["nginx", "-p", directory, "-c", path, "-e", "stderr"],
                                        stderr=subprocess.DEVNULL)
        end = time.monotonic() + driver.PATIENCE
        while time.monotonic() < end:
            try:
                oracle.socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)

    def configuration(self, upstream):
        places = "".join(f"    {kind}_temp_path {self.directory}/{kind};\n" for kind in
                         ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return (f"daemon off;\nmaster_process off;\npid {self.directory}/pid;\n"
                "events {}\nhttp {\n    access_log off;\n" + places +
                f"    upstream spate {{ server 127.0.0.1:{upstream}; keepalive 4; }}\n"
                f"    server {{\n        listen 127.0.0.1:{self.port};\n"
                "        client_max_body_size 0;\n        lingering_close always;\n"
                "        location / {\n            proxy_pass http://spate;\n"
                "            proxy_http_version 1.1;\n"
                "            proxy_set_header Connection \"\";\n"
                "            proxy_next_upstream off;\n"
                "        }\n    }\n}\n")

    def end(self):
        self.process.terminate()
        self.process.wait(driver.PATIENCE)


def driver_socket():
    return oracle.socket.create_server(("127.0.0.1", 0))


class Table:
    def __init__(self, server, is_long, seed):
        self.server, self.is_long, self.seed = server, is_long, seed
        self.failures, self.count = [], 0

    def fail(self, what):
        self.failures.append(what)
        print("WRONG:", what, flush=True)

    def sample(self, cells, size):
        cells = list(cells)
        if self.is_long or len(cells) <= size:
            return cells
        return random.Random(self.seed).sample(cells, size)

    def run_socket(self):
        cells = self.sample(oracle.cells(), SAMPLE)
        for number, cell in enumerate(cells):
            self.run_cell(self.server.port, cell, self.seed * 100_000 + number)
        for is_connect in (False, True):
            try:
                oracle.tunnel(self.server.port, is_connect, self.seed)
            except (oracle.Wrong, OSError) as error:
                self.fail(f"tunnel, CONNECT {is_connect}: {error}")
        print(f"socket: {len(cells)} cells")

    def run_http2(self):
        """Runs the cells of HTTP/2, and checks each frame."""
        if not has_module("hpack"):
            print("http2: the module hpack is missing (package python3-hpack)")
            return
        import oracle_http2  # pylint: disable=import-outside-toplevel
        cells = self.sample(oracle_http2.cells(), SAMPLE)
        for number, cell in enumerate(cells):
            seed = self.seed * 100_000 + number
            self.count += 1
            try:
                oracle_http2.Cell(self.server.port, cell, seed).run()
            except (oracle.Wrong, OSError, ValueError) as error:
                self.fail(f"http2 {cell} seed {seed}: {error!r}")
        for is_plain_connect in (False, True):
            self.count += 1
            try:
                oracle_http2.tunnel(self.server.port, is_plain_connect, self.seed)
            except (oracle.Wrong, OSError) as error:
                self.fail(f"http2 tunnel, CONNECT {is_plain_connect}: {error!r}")
        print(f"http2: {len(cells)} cells")

    def run_upgrades(self):
        for row in oracle.UPGRADES:
            self.count += 1
            try:
                oracle.upgrade(self.server.port, row, self.seed)
            except (oracle.Wrong, OSError) as error:
                self.fail(f"upgrade {row}: {error!r}")
        print(f"upgrades: {len(oracle.UPGRADES)} cells")

    def run_cell(self, port, cell, seed, name="socket"):
        self.count += 1
        try:
            oracle.Cell(port, cell, seed).run()
        except (oracle.Wrong, OSError, ValueError) as error:
            self.fail(f"{name} {cell} seed {seed}: {error!r}")

    def run_nginx(self, nginx):
        """Runs the cells that nginx passes on; it turns aborts into 502."""
        cells = [cell for cell in oracle.cells()
                 if cell[0] == "1.1" and cell[2] not in ("aborts", "never", "upgrades") and
                 cell[4] == "waits" and not cell[1].startswith("expected")]
        cells = self.sample(cells, PEER_SAMPLE)
        for number, cell in enumerate(cells):
            self.run_cell(nginx.port, cell, self.seed * 100_000 + number, "nginx")
        print(f"nginx: {len(cells)} cells")

    def run_peer(self, peer):
        cells = [(version, body, handler) for version in peer.versions for body in peer.bodies
                 for handler in PEER_HANDLERS]
        cells = self.sample(filter(peer.can_run, cells), PEER_SAMPLE)
        for number, cell in enumerate(cells):
            self.count += 1
            self.run_job(peer, cell, f"{peer.name}{number}")
        peer.end()
        print(f"{peer.name}: {len(cells)} cells")

    def run_job(self, peer, cell, tag):
        version, body, handler = cell
        size = oracle.SIZES[body]
        requests = [{"path": f"/{handler}?{tag}", "body": body, "size": size}]
        requests += [{"path": f"/next?{tag}x{i}", "body": "none", "size": 0} for i in range(2)]
        timeout = LATE if handler == "never" else driver.PATIENCE
        results = peer.run({"port": self.server.port, "version": version, "timeout": timeout,
                            "requests": requests})
        name = f"{peer.name} {cell}"
        if len(results) != len(requests):
            return self.fail(f"{name}: {len(results)} results")
        self.check_first(name, handler, size, requests[0], results[0])
        for request, result in zip(requests[1:], results[1:]):
            wanted = request["path"].replace("?", " ") + "\n"
            if result.get("status") != 200 or result["body"] != wanted:
                self.fail(f"{name}: the next request got {result}")
        return None

    def run_many(self, peer, count):
        """Sends so many requests, BATCH of them by one client after another."""
        chance = random.Random(self.seed)
        cells = [(version, body, handler) for version in peer.versions for body in peer.bodies
                 for handler in PEER_HANDLERS if handler not in ("aborts", "never")]
        cells = list(filter(peer.can_run, cells))
        for number in range(count // BATCH):
            version = chance.choice(peer.versions)
            chosen = chance.choices([cell for cell in cells if cell[0] == version], k=BATCH)
            requests = [{"path": f"/{handler}?{number}x{i}", "body": body,
                         "size": oracle.SIZES[body]}
                        for i, (_, body, handler) in enumerate(chosen)]
            results = peer.run({"port": self.server.port, "version": version,
                                "timeout": driver.PATIENCE, "requests": requests})
            for cell, request, result in zip(chosen, requests, results):
                self.count += 1
                name = f"{peer.name} {cell} of batch {number}"
                self.check_first(name, cell[2], request["size"], request, result)
        peer.end()
        print(f"{peer.name}: {count} requests", flush=True)

    def check_first(self, name, handler, size, request, result):
        if handler in ("aborts", "never"):
            if "error" not in result:
                self.fail(f"{name}: {result}")
            return
        status = oracle.STATUS.get(handler, 200)
        if handler == "limited" and size > oracle.LIMIT:
            status = 413
        wanted = request["path"].replace("?", " ") + "\n" if status == 200 else result.get("body")
        if result.get("status") != status or result["body"] != wanted:
            self.fail(f"{name}: {result} in place of {status}")

    def check_tidy(self):
        """Afterwards no exchange is left."""
        end = time.monotonic() + driver.PATIENCE
        while oracle.open_exchanges(self.server.port) != 0:
            if time.monotonic() > end:
                return self.fail("exchanges are left")
            time.sleep(0.05)
        return None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("server")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    only = {name for name in options.only.split(",") if name}
    with tempfile.TemporaryDirectory() as directory, driver.Server(options.server) as server:
        table = Table(server, options.long, options.seed)
        if not only or "socket" in only:
            table.run_socket()
            table.run_upgrades()
        if not only or "http2" in only:
            table.run_http2()
        for peer in find_peers(directory):
            if only and peer.name not in only:
                continue
            table.run_peer(peer)
            if options.requests:
                table.run_many(peer, options.requests)
        if shutil.which("nginx") and (not only or "nginx" in only):
            nginx = Nginx(directory, server.port)
            table.run_nginx(nginx)
            nginx.end()
        table.check_tidy()
        begun = time.monotonic()
        if server.stop() != 0 or time.monotonic() - begun > GRACE:
            table.fail("the server does not drain")
    print(f"{table.count} cells, {len(table.failures)} wrong")
    return 1 if table.failures else 0


if __name__ == "__main__":
    sys.exit(main())
