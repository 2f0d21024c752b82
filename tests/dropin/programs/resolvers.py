#!/usr/bin/env python3
"""Programs that send queries to a name server: names that are lost at first, that do not exist,
and answers that need a connection."""

import harness
from peers.dns import Client
from peers.dns_upstream import Upstream, address_of, text_of
from peers.table import Table

NAMES = 40
NO_SUCH_NAME = 3

DNSPROXY = """
authoritative 127.0.0.1
authoritative-port {upstream}
authoritative-timeout 10
recursive 127.0.0.1
recursive-port {upstream}
recursive-timeout 10
listen 127.0.0.1
port {port}
internal 127.0.0.1
"""

UNBOUND = """
server:
  do-not-query-localhost: no
  module-config: "iterator"
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@{upstream}
"""

GETDNS = """
import ctypes, sys
event = ctypes.CDLL("libevent_core-2.1.so.7")
getdns = ctypes.CDLL("libgetdns.so.10")
glue = ctypes.CDLL("libgetdns_ex_event.so.10")
"""

table = Table()


@table.row("dnsproxy", has_traffic=False)  # Its sockets block.
def dnsproxy(run):
    """Its source port is fixed, and may be in use."""
    port, upstream_port = harness.free_port(), harness.free_port()
    with harness.alone("dnsproxy"), Upstream(upstream_port), Client(port, may_lose=True) as client:
        server = run.start("dnsproxy", "-c", run.file("dnsproxy.conf", DNSPROXY.format(
            port=port, upstream=upstream_port)))
        server.wait_udp(port)
        server.assert_uses()
        names = [f"{kind}{number}.example" for number in range(NAMES) for kind in ("a", "lost")]
        answers = client.ask_all([(name, "A") for name in names])
        for name, answer in zip(names, answers):
            got = [data for _, _, data in answer.answers]
            harness.check(got == [address_of(name)], f"{name}: {got}")
        harness.check(client.ask("none.example").code == NO_SUCH_NAME, "a name that does not exist")
        harness.check(client.ask("long.example", "TXT").is_truncated(), "what is too long")


@table.row("unbound-host")
def unbound_host(run):
    """libunbound, inside the querying program."""
    upstream_port = harness.free_port()
    with Upstream(upstream_port) as upstream:
        conf = run.file("unbound.conf", UNBOUND.format(upstream=upstream_port))
        names = [f"{kind}{number}.example" for number in range(4) for kind in ("a", "lost")]
        asked = [run.start("unbound-host", "-C", conf, "-t", "A", name,
                           weather=harness.Weather(share=0.3)) for name in names]
        for name, program in zip(names, asked):
            output = program.wait()
            harness.check(f"{name} has address {address_of(name)}" in output, output)
        output = run.call("unbound-host", "-C", conf, "-t", "TXT", "long.example")
        harness.check(text_of("long.example") in output and upstream.streams, output)
        output = run.call("unbound-host", "-C", conf, "none.example")
        harness.check("not found" in output, output)


if __name__ == "__main__":
    table.main("libevent-2.1.so.7")
