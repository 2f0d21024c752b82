#!/usr/bin/env python3
"""turnserver (coturn): a relay whose clients connect by TLS, with Debian's own clients, on the
same library, which verify the returned data."""

import re

import harness

MESSAGES = 20
SENT = re.compile(r"tot_send_msgs=(\d+), tot_recv_msgs=(\d+)")
LOST = re.compile(r"Total lost packets (\d+)")
OPENSSL = "libevent_openssl-2.1.so.7"
# coturn detects TLS with a single peek, ends a session whose read was interrupted, and loses a
# datagram that cannot be sent at once: on the original library, too. Its client counts data that it
# cannot send or read at once as lost. Only the weather inside the library remains.
NONE = harness.Weather(share=0)


def start_server(run, plain, secure):
    run.call("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test",
             "-days", 2, "-keyout", run.path("key"), "-out", run.path("certificate"), dropin=False)
    server = run.start("turnserver", "-n", "--no-auth", "--listening-ip", "127.0.0.1",
                       "--listening-port", plain, "--tls-listening-port", secure,
                       "--cert", run.path("certificate"), "--pkey", run.path("key"),
                       "--realm", "test", "--no-cli", "--allow-loopback-peers",
                       "--log-file", "stdout", "--relay-threads", 2,
                       "--pidfile", run.path("pid"), "--userdb", run.path("database"),
                       weather=NONE)
    server.wait_tcp(secure)
    server.assert_uses(OPENSSL)
    return server


def exchange(run, peer, port, *arguments):
    return run.start("turnutils_uclient", "-e", "127.0.0.1", "-r", peer, "-p", port, "-n", MESSAGES,
                     "-m", 2, "-l", 900, *arguments, "127.0.0.1", weather=NONE)


def is_complete(client):
    output = client.wait()
    sent, received = (int(count) for count in SENT.findall(output)[-1])
    harness.check(sent >= received > 0, output[-500:])
    return received == sent and LOST.findall(output)[-1] == "0"


def test(run):
    harness.need("turnserver", "turnutils_uclient", "turnutils_peer", "openssl")
    plain, secure, peer = (harness.free_port() for _ in range(3))
    echo = run.start("turnutils_peer", "-L", "127.0.0.1", "-p", peer)
    echo.wait_udp(peer)
    server = start_server(run, plain, secure)

    def exchange_all():
        clients = [exchange(run, peer, secure, "-t", "-S") for _ in range(2)]
        clients.append(exchange(run, peer, plain, "-t"))
        return all([is_complete(client) for client in clients])

    # Between the relay and the peer is UDP, and the client waits for a limited time.
    harness.wait_until(exchange_all, "exchanges in which nothing was lost")
    server.stop()


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7", has_traffic=False)
