#!/usr/bin/env python3
"""nghttpd, nghttp and h2load of nghttp2: HTTP/2 between programs on libev.

nghttpd has a loop in each worker thread, and passes connections with ev_async_send.
"""

import os
import re

import harness

SIZES = {"small": 100, "page": 20_000, "big": 4_000_000}
LOADS = (  # (file, requests, connections, streams of each, threads)
    ("small", 3000, 10, 20, 1),
    ("page", 1000, 25, 4, 2),
    ("big", 30, 6, 3, 2),
)
SERVERS = ((1, "epoll"), (3, "epoll"), (2, "poll"), (2, "select"))  # (threads, backend)
PARALLEL = 5


def start_server(run, workers, backend, files):
    port = harness.free_port()
    server = run.start("nghttpd", "--no-tls", "--address=127.0.0.1", "--echo-upload",
                       f"--workers={workers}", f"--htdocs={files}", port,
                       env=harness.libev(backend))
    server.wait_tcp(port)
    server.assert_uses()
    return server, f"http://127.0.0.1:{port}"


def write_files(run):
    os.mkdir(run.path("files"))
    contents = {name: os.urandom(size) for name, size in SIZES.items()}
    for name, content in contents.items():
        run.file(f"files/{name}", content)
    return contents


def download(run, address, contents):
    """Several clients at once, each with a file on its own connection."""
    names = ["big"] * PARALLEL + ["small", "page"]
    clients = [run.start("nghttp", f"{address}/{name}") for name in names]
    for name, client in zip(names, clients):
        client.wait()
        harness.check(client.output_bytes() == contents[name],
                      f"{name} came with other contents ({len(client.output_bytes())} bytes)")


def upload(run, address, contents):
    """The posted data is returned."""
    client = run.start("nghttp", "-H", ":method: POST", "-d", run.path("files/big"),
                       f"{address}/echo")
    client.wait()
    harness.check(client.output_bytes() == contents["big"], "the echo is not what was sent")


def load(run, address, name, requests, connections, streams, threads):
    output = run.call("h2load", f"--requests={requests}", f"--clients={connections}",
                      f"--max-concurrent-streams={streams}", f"--threads={threads}",
                      f"{address}/{name}")
    for wanted in (f"{requests} succeeded, 0 failed, 0 errored, 0 timeout",
                   f"status codes: {requests} 2xx, 0 3xx, 0 4xx, 0 5xx"):
        harness.check(wanted in output, f"{name}: no {wanted!r} in\n{output}")
    data = re.search(r"\((\d+)\) data$", output, re.MULTILINE)
    harness.check(data and int(data.group(1)) == requests * SIZES[name],
                  f"{name}: {data and data.group(1)} bytes, not {requests * SIZES[name]}")


def test(run):
    harness.need("nghttpd", "nghttp", "h2load")
    contents = write_files(run)
    for workers, backend in SERVERS:
        server, address = start_server(run, workers, backend, run.path("files"))
        download(run, address, contents)
        upload(run, address, contents)
        for case in LOADS:
            load(run, address, *case)
        server.stop(status=None)  # It has no handler: SIGTERM kills it.


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
