#!/usr/bin/env python3
"""tcpbench: its traffic over TCP, with few connections and with many, and over UDP."""

import re
import signal
import time

import harness

SECONDS = 2
INTERVAL = 250  # Milliseconds between the client's reports.
STREAM_LINE = re.compile(r"^\s+(\d+)\s+(\d+)\s+[\d.]+\s+[\d.]+%\s*$", re.M)
TOTAL_LINE = re.compile(r"^Conn:\s+(\d+) Mbps:\s+([\d.]+) ", re.M)
PACKET_LINE = re.compile(r"^Elapsed:\s+(\d+) Mbps:\s+([\d.]+) .*?([TR]x) PPS:\s+(\d+)", re.M)


def start_server(run, port, *options):
    server = run.start("tcpbench", "-s", "-4", *options, "-p", port, user="nobody")
    server.assert_uses()
    return server


def run_client(run, port, *options):
    """Returns its report; it must end by itself, and not early."""
    began = time.monotonic()
    client = run.start("tcpbench", "-4", *options, "-p", port, "-t", SECONDS, "-r", INTERVAL,
                       "127.0.0.1", user="nobody")
    client.assert_uses()
    output = client.wait(0)
    took = time.monotonic() - began
    harness.check(took > SECONDS - 0.1, f"the client took {took:.1f} s")
    return output


def end(server):
    server.kill(signal.SIGINT)
    return server.wait(0)


def check_reports(times, what):
    """A persistent timer must keep running and never be early. A busy machine makes it late."""
    harness.check(len(times) >= 2, f"{what}: {len(times)} reports")
    for before, after in zip(times, times[1:]):
        harness.check(after > before, f"{what}: {after} ms after {before} ms")
    for number, at in enumerate(times, 1):
        harness.check(at > INTERVAL * (number - 1), f"{what}: report {number} at {at} ms")


def streams(run, connections):
    """Every connection carries data in the run; the client sent everything that the server
    received."""
    port = harness.free_port()
    server = start_server(run, port)
    server.wait_tcp(port)
    output = run_client(run, port, "-n", connections)
    totals = TOTAL_LINE.findall(output)
    lines = [(int(at), int(size)) for at, size in STREAM_LINE.findall(output)]
    harness.check(all(int(count) == connections for count, _ in totals), output)
    harness.check(len(lines) == connections * len(totals), f"{len(lines)} lines of connections")
    check_reports([at for at, _ in lines[::connections]], f"{connections} connections")
    for number in range(connections):
        sent = sum(size for _, size in lines[number::connections])
        harness.check(sent > 0, f"connection {number} of {connections} never sent")
    sent = sum(size for _, size in lines)
    harness.wait_until(lambda: received(server) > 0, "the server's report")
    received_bytes = received(server)
    end(server)
    # The report of the client's last interval may be missing.
    harness.check(received_bytes < 2 * sent, f"{sent} bytes sent, {received_bytes} received")
    print(f"{connections} connections: {sent >> 20} MiB sent, {received_bytes >> 20} received")


def received(server):
    return sum(int(size) for _, size in STREAM_LINE.findall(server.output()))


def datagrams(run):
    port = harness.free_port()
    server = start_server(run, port, "-u")
    server.wait_udp(port)
    output = run_client(run, port, "-u", "-B", 1000)
    sent = [(int(at), int(count)) for at, _, way, count in PACKET_LINE.findall(output)
            if way == "Tx"]
    check_reports([at for at, _ in sent], "datagrams")
    harness.check(all(count > 0 for _, count in sent), f"an interval without a datagram: {sent}")
    harness.wait_until(lambda: arrived(server) > 0, "the server's report")
    print(f"datagrams a second: {sent[-1][1]} sent, {arrived(server)} received")
    end(server)


def arrived(server):
    counts = [int(count) for _, _, way, count in PACKET_LINE.findall(server.output())
              if way == "Rx"]
    return max(counts, default=0)


def test(run):
    harness.need("tcpbench")
    streams(run, 1)
    streams(run, 4)
    streams(run, 60)
    datagrams(run)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
