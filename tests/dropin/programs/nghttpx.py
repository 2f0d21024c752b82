#!/usr/bin/env python3
"""nghttpx, the proxy of nghttp2: HTTP/1 and HTTP/2 on both sides, threads, reload, graceful
shutdown.

Its main process watches a worker process with ev_child and forwards signals to it; the worker has a
loop in each thread, and passes connections with ev_async.
"""

import os
import signal

import harness
from peers.web import WebServer, checksum, random_contents

SIZES = {"small": 100, "page": 30_000, "big": 3_000_000}
LOADS = (("small", 2000, 10, 10), ("page", 500, 20, 2), ("big", 20, 5, 2))
PARALLEL = 6
THREADS = 3
# With the original library too, it loses a message of one byte to its other process if the write
# would block, and then does not reload.
WEATHER = harness.Weather(least=2)


class Proxy:
    def __init__(self, run, web, files, env=None):
        self.run = run
        self.contents = web.contents
        self.port, behind = harness.free_port(), harness.free_port()
        server = run.start("nghttpd", "--no-tls", "--address=127.0.0.1", f"--htdocs={files}",
                           behind)
        server.wait_tcp(behind)
        self.log = run.file("nghttpx.log", "", 0o666)
        config = run.file("nghttpx.conf", "\n".join((
            f"frontend=127.0.0.1,{self.port};no-tls", f"workers={THREADS}",
            f"backend=127.0.0.1,{behind};/two/;proto=h2", f"backend=127.0.0.1,{web.port};/",
            f"errorlog-file={self.log}", "accesslog-file=/dev/null", "")))
        self.program = run.start("nghttpx", f"--conf={config}", env=env, weather=WEATHER)
        self.program.wait_tcp(self.port)
        for pid in self.processes():
            run.assert_uses(pid)

    def processes(self):
        pid = self.program.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [pid, *map(int, file.read().split())]

    def curl(self, path, *arguments):
        return self.run.start("curl", "--silent", "--show-error", "--fail", "--max-time", 60,
                              *arguments, f"http://127.0.0.1:{self.port}{path}", dropin=False)


def check_downloads(proxy):
    """HTTP/1 and HTTP/2 clients of the proxy, and servers of either kind."""
    clients = []
    for number in range(PARALLEL):
        for name in SIZES:
            version = "--http2-prior-knowledge" if number % 2 else "--http1.1"
            path = f"/two/{name}" if number % 4 < 2 else f"/{name}"
            clients.append((name, proxy.curl(path, version)))
    for name, client in clients:
        client.wait()
        harness.check(checksum(client.output_bytes()) == checksum(proxy.contents[name]),
                      f"{name} came with other contents ({len(client.output_bytes())} bytes)")


def check_upload(proxy):
    source = proxy.run.file("upload", proxy.contents["big"])
    for version in ("--http1.1", "--http2-prior-knowledge"):
        client = proxy.curl("/up", version, "--data-binary", f"@{source}", "--header", "Expect:")
        harness.check(client.wait() == checksum(proxy.contents["big"]), "other bytes arrived")


def load(proxy, path, name, requests, connections, streams):
    output = proxy.run.call(
        "h2load", f"--requests={requests}", f"--clients={connections}",
        f"--max-concurrent-streams={streams}", f"http://127.0.0.1:{proxy.port}{path}{name}")
    wanted = f"status codes: {requests} 2xx, 0 3xx, 0 4xx, 0 5xx"
    harness.check(wanted in output, f"{name}: no {wanted!r} in\n{output}")
    data = f"({requests * SIZES[name]}) data"
    harness.check(data in output, f"{name}: no {data!r} in\n{output}")


def check_reload(proxy):
    """SIGHUP: another process takes over, and the first exits."""
    first = proxy.processes()[1]
    proxy.program.kill(signal.SIGHUP)
    proxy.program.wait_for(lambda: not os.path.exists(f"/proc/{first}")
                           and len(proxy.processes()) == 2, "another process")
    check_downloads(proxy)


def test(run):
    harness.need("nghttpx", "nghttpd", "h2load", "curl")
    os.makedirs(run.path("files/two"))
    contents = random_contents(SIZES)
    for name, content in contents.items():
        run.file(f"files/two/{name}", content)
    with WebServer(contents) as web:
        for backend in ("epoll", "poll"):
            proxy = Proxy(run, web, run.path("files"), harness.libev(backend))
            check_downloads(proxy)
            check_upload(proxy)
            for case in LOADS:
                load(proxy, "/two/", *case)
            load(proxy, "/", "small", 300, 10, 5)
            check_reload(proxy)
            proxy.program.kill(signal.SIGQUIT)
            proxy.program.wait(status=0)


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
