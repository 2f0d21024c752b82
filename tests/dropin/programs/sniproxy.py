#!/usr/bin/env python3
"""sniproxy: it forwards connections by the HTTP host or the TLS server name, with all bytes
already read."""

import signal

import harness
from peers.web import WebServer, checksum, random_contents, tls_context

SIZES = {"small": 700, "page": 60_000, "big": 3_000_000}
PARALLEL = 6
CONFIG = """
{user}
pidfile {directory}/sniproxy.pid
error_log {{
    filename {directory}/error.log
    priority debug
}}
listener 127.0.0.1:{http} {{
    protocol http
    table names
    fallback 127.0.0.1:{other}
    access_log {{
        filename {directory}/access.log
        priority notice
    }}
}}
listener 127.0.0.1:{tls} {{
    protocol tls
    table secure_names
}}
table names {{
    ^one\\.test$ 127.0.0.1:{one}
    ^two\\.test$ 127.0.0.1:{two}
}}
table secure_names {{
    ^{secure_name}\\.test$ 127.0.0.1:{secure}
}}
"""


class Proxy:
    """sniproxy in front of the servers of the test."""

    def __init__(self, run, servers, backend):
        self.run = run
        self.ports = {name: server.port for name, server in servers.items()}
        self.ports.update(http=harness.free_port(), tls=harness.free_port())
        self.configure("secure")
        self.program = run.start("sniproxy", "-f", "-c", self.config,
                                 env=harness.libev(backend))
        self.program.wait_tcp(self.ports["http"])
        self.program.assert_uses()

    def configure(self, secure_name):
        user = "user nobody" if harness.is_root() else ""
        text = CONFIG.format(directory=self.run.directory, user=user, secure_name=secure_name,
                             **self.ports)
        self.config = self.run.file("sniproxy.conf", text)

    def curl(self, scheme, name, what, *arguments):
        port = self.ports["tls" if scheme == "https" else "http"]
        return self.run.start(
            "curl", "--silent", "--show-error", "--insecure", "--include", "--max-time", 60,
            "--http1.1", "--resolve", f"{name}:{port}:127.0.0.1", *arguments,
            f"{scheme}://{name}:{port}/{what}", dropin=False)


def check_answer(client, server, content):
    """The response must come from that server, and be complete."""
    client.wait()
    head, _, body = client.output_bytes().partition(b"\r\n\r\n")
    harness.check(b"200" in head.split(b"\r\n")[0], f"the answer is {head!r}")
    harness.check(f"X-Server: {server.name}".encode() in head, f"another server: {head!r}")
    harness.check(checksum(body) == checksum(content), f"other contents ({len(body)} bytes)")


def check_http(proxy, one, two, other):
    routes = [("one.test", one), ("two.test", two), ("unknown.test", other)] * PARALLEL
    names = list(SIZES)
    clients = [(proxy.curl("http", host, names[n // 3 % len(names)]), server,
                server.contents[names[n // 3 % len(names)]])
               for n, (host, server) in enumerate(routes)]
    for client, server, content in clients:
        check_answer(client, server, content)


def check_upload(proxy, one):
    source = proxy.run.file("upload", one.contents["big"])
    client = proxy.curl("http", "one.test", "up", "--data-binary", f"@{source}",
                        "--header", "Expect:")
    check_answer(client, one, checksum(one.contents["big"]).encode())


def check_tls(proxy, name, secure):
    clients = [proxy.curl("https", name, what) for what in list(SIZES) * 2]
    for what, client in zip(list(SIZES) * 2, clients):
        check_answer(client, secure, secure.contents[what])
    proxy.curl("https", "unknown.test", "small").wait(status=35)  # Refused in the handshake.


def is_served(proxy, name):
    client = proxy.curl("https", name, "small")
    client.wait(status=None)
    return client.status() == 0


def check_reload(proxy, secure):
    """After SIGHUP, another name leads to the secure server."""
    proxy.configure("renamed")
    proxy.program.kill(signal.SIGHUP)
    proxy.program.wait_for(lambda: is_served(proxy, "renamed.test"), "the new configuration")
    harness.check(not is_served(proxy, "secure.test"), "the old configuration is in force too")
    check_tls(proxy, "renamed.test", secure)


def test(run):
    harness.need("sniproxy", "curl", "openssl")
    with WebServer(random_contents(SIZES), "one") as one, \
            WebServer(random_contents(SIZES), "two") as two, \
            WebServer(random_contents(SIZES), "other") as other, \
            WebServer(random_contents(SIZES), "secure", tls_context(run)) as secure:
        servers = {"one": one, "two": two, "other": other, "secure": secure}
        proxy = Proxy(run, servers, "epoll")
        check_http(proxy, one, two, other)
        check_upload(proxy, one)
        check_tls(proxy, "secure.test", secure)
        proxy.program.stop(status=0)
        proxy = Proxy(run, servers, "poll")
        check_reload(proxy, secure)
        check_http(proxy, one, two, other)
        # After a reload it crashes at exit, with the original library as well.
        proxy.program.stop(status=None)


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
