#!/usr/bin/env python3
"""sslsplit: TLS terminated at the proxy and started again to the server, on sockets and,
upgraded in the middle of a connection, as filters of them."""

import signal
import ssl

import harness
from peers.web import WebServer, checksum, random_contents

SIZES = {"small": 700, "page": 60_000, "big": 3_000_000}
WAYS = ("https", "ssl", "autossl")  # Parsed as HTTP, as plain bytes, and with TLS started later.
OPENSSL = "libevent_openssl-2.1.so.7"
# Weather in the program stops most runs on the original: only the library's calls fail.
NONE = harness.Weather(share=0)


def certificate(run, name):
    run.call("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
             "-days", 2, "-keyout", run.path(f"{name}.key"), "-out", run.path(f"{name}.crt"),
             dropin=False)
    return run.path(f"{name}.crt"), run.path(f"{name}.key")


def server_context(files, version):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    context.maximum_version = version
    return context


def start_proxy(run, files, ports, target):
    specifications = []
    for way, port in ports.items():
        specifications += [way, "127.0.0.1", port, "127.0.0.1", target]
    user = ("-u", "root") if harness.is_root() else ()
    proxy = run.start("sslsplit", "-D", *user, "-c", files[0], "-k", files[1], *specifications,
                      weather=NONE)
    # A probe of the other ports would make the server wait for a handshake that never begins.
    proxy.wait_tcp(ports["https"])
    proxy.assert_uses(OPENSSL)
    return proxy


def fetch(run, port, what, *arguments):
    return run.start("curl", "--silent", "--show-error", "--insecure", "--max-time", 60,
                     *arguments, f"https://127.0.0.1:{port}/{what}", dropin=False)


def check_downloads(run, server, ports, version):
    clients = [(fetch(run, port, what, "--tls-max", version), what)
               for port in ports.values() for what in list(SIZES) * 2]
    for client, what in clients:
        client.wait()
        got = client.output_bytes()
        harness.check(checksum(got) == checksum(server.contents[what]), f"{len(got)} of {what}")


def check_upload(run, server, port):
    source = run.file("upload", server.contents["big"])
    client = fetch(run, port, "up", "--data-binary", f"@{source}", "--header", "Expect:")
    client.wait()
    harness.check(client.output_bytes() == checksum(server.contents["big"]).encode(), "the upload")


def test(run):
    harness.need("sslsplit", "curl", "openssl")
    authority = certificate(run, "authority")
    files = certificate(run, "server")
    for name, version in (("1.2", ssl.TLSVersion.TLSv1_2), ("1.3", ssl.TLSVersion.TLSv1_3)):
        contents = random_contents(SIZES)
        with WebServer(contents, "secure", server_context(files, version)) as server:
            ports = {way: harness.free_port() for way in WAYS}
            proxy = start_proxy(run, authority, ports, server.port)
            check_downloads(run, server, ports, name)
            check_upload(run, server, ports["ssl"])
            proxy.kill(signal.SIGTERM)
            proxy.wait(status=0)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7", has_traffic=False)
