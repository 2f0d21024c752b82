#!/usr/bin/env python3
"""unbound: a local zone over UDP and TCP, forwarding to an unreliable name server, reloading
under load."""

import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import harness
from peers.dns import Client
from peers.dns_upstream import NO_SUCH_NAME, Upstream, address_of, text_of
from peers.idle_time import check_idle

NAMES = 2000
THREADS = 4
GENERATIONS = range(1, 8)  # Versions of the local zone.
CLIENTS = 6
ROUNDS = 25
BATCH = 20  # Fits into the receive buffer of any socket.

CONFIGURATION = """
server:
  directory: "{directory}"
  chroot: ""
  username: ""
  pidfile: "{directory}/unbound.pid"
  logfile: ""
  use-syslog: no
  do-daemonize: no
  verbosity: 1
  num-threads: {threads}
  interface: 127.0.0.1
  port: {port}
  access-control: 127.0.0.0/8 allow
  module-config: "iterator"
  do-not-query-localhost: no
  do-ip6: no
  infra-cache-max-rtt: 2000
  local-zone: "local.test." static
  local-zone: "forward.test." transparent
{names}
forward-zone:
  name: "forward.test."
  forward-addr: 127.0.0.1@{upstream}
remote-control:
  control-enable: yes
  control-interface: {directory}/control
  control-use-cert: no
"""


def configure(run, port, upstream, generation):
    names = "\n".join(f'  local-data: "n{number}.local.test. A {local_address(number, generation)}"'
                      for number in range(NAMES))
    return run.file("unbound.conf", CONFIGURATION.format(
        directory=run.directory, threads=THREADS, port=port, names=names, upstream=upstream))


def local_address(number, generation):
    return f"10.{generation}.{number >> 8}.{number & 255}"


def addresses(message):
    return [data for _, _, data in message.answers]


def ask_local(run, port, tcp, seed):
    source = random.Random(f"{run.seed}:{seed}")
    with Client(port, tcp, may_lose=run.weather_library) as client:
        for _ in range(ROUNDS):
            numbers = [source.randrange(NAMES + 50) for _ in range(BATCH)]
            answers = client.ask_all([(f"n{number}.local.test", "A") for number in numbers])
            for number, answer in zip(numbers, answers):
                check_local(number, answer, (1,))


def check_local(number, answer, generations):
    if number >= NAMES:
        harness.check(answer.code == NO_SUCH_NAME, f"n{number} exists: {answer.answers}")
        return
    expected = [[local_address(number, generation)] for generation in generations]
    harness.check(addresses(answer) in expected, f"n{number}: {answer.answers}")


def local_zone(run, port):
    """Several clients of each kind, concurrently."""
    with ThreadPoolExecutor(2 * CLIENTS) as pool:
        jobs = [pool.submit(ask_local, run, port, number % 2 == 1, number)
                for number in range(2 * CLIENTS)]
        for job in jobs:
            job.result()
    print(f"{2 * CLIENTS * ROUNDS * BATCH} local names")


def ask_forward(run, port, tcp, seed):
    source = random.Random(f"{run.seed}:forward:{seed}")
    labels = ["name"] * 14 + ["lost"] * 2 + ["none"] * 2 + ["long"] * 2
    with Client(port, tcp, may_lose=True) as client:
        for _ in range(6):
            source.shuffle(labels)
            questions = [(f"{label}{source.randrange(10**6)}.forward.test",
                          "TXT" if label == "long" and tcp else "A") for label in labels]
            for (name, _), answer in zip(questions, client.ask_all(questions)):
                check_forward(name, answer, tcp)


def shown(name, answer):
    return f"{name}: code {answer.code}, {answer.answers}"


def check_forward(name, answer, tcp):
    if name.startswith("none"):
        harness.check(answer.code == NO_SUCH_NAME, f"{name} exists: {answer.answers}")
    elif not name.startswith("long"):
        harness.check(addresses(answer) == [address_of(name)], shown(name, answer))
    elif tcp:
        harness.check(addresses(answer) == [text_of(name)], shown(name, answer))
    else:
        harness.check(answer.is_truncated() or answer.code != 0, shown(name, answer))


def forwarding(run, port, upstream):
    """Its own queries: retries after a timeout, and TCP after a truncated answer."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [pool.submit(ask_forward, run, port, number % 2 == 1, number)
                for number in range(CLIENTS)]
        for job in jobs:
            job.result()
    print(f"forwarded: {upstream.lost} lost at first, {upstream.streams} connections")
    harness.check(upstream.lost > 0 and upstream.streams > 0, "nothing went wrong upstream")


def ask_while_reloading(port, stop, seed):
    """Answers are of the old or of the new zone; a query lost in a reload is repeated."""
    source = random.Random(seed)
    done = 0
    with Client(port, may_lose=True) as client:
        while not stop.is_set():
            numbers = [source.randrange(NAMES) for _ in range(5)]
            answers = client.ask_all([(f"n{n}.local.test", "A") for n in numbers])
            for number, answer in zip(numbers, answers):
                check_local(number, answer, GENERATIONS)
            done += 1
    return done


def control(run, server, *command):
    """unbound-control, which connects to a Unix socket."""
    output = run.call("unbound-control", "-c", run.path("unbound.conf"), *command, dropin=False)
    harness.check(server.status() is None, "unbound has ended")
    return output


def reloading(run, server, port, upstream):
    """Reloads by unbound-control and by SIGHUP, while clients send queries."""
    stop = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(ask_while_reloading, port, stop, seed) for seed in range(3)]
        try:
            for generation in GENERATIONS[1:]:
                configure(run, port, upstream, generation)
                if generation % 2 == 0:
                    control(run, server, "reload")
                else:
                    server.kill(signal.SIGHUP)
                wait_generation(port, generation)
        finally:
            stop.set()
        harness.check(all(job.result() for job in jobs), "a client was not answered")


def wait_generation(port, generation):
    def has_come():
        with Client(port, may_lose=True) as client:
            return addresses(client.ask_all([("n0.local.test", "A")])[0]) == [
                local_address(0, generation)]
    harness.wait_until(has_come, f"the zone of generation {generation}")


def dig(run, port):
    for options in ((), ("+tcp",)):
        output = run.call("dig", "@127.0.0.1", "-p", port, "+short", *options, "n7.local.test",
                          dropin=False)
        harness.check(output.strip() == local_address(7, 1), f"dig: {output!r}")


def test(run):
    harness.need("unbound", "unbound-control", "dig")
    port, upstream_port = harness.free_port(), harness.free_port()
    configuration = configure(run, port, upstream_port, 1)
    with Upstream(upstream_port) as upstream:
        server = run.start("unbound", "-d", "-c", configuration, user="nobody")
        server.wait_tcp(port)
        server.assert_uses()
        dig(run, port)
        local_zone(run, port)
        forwarding(run, port, upstream)
        status = control(run, server, "status")
        harness.check(f"threads: {THREADS}" in status, status)
        reloading(run, server, port, upstream_port)
        check_idle(server)
        server.stop(0)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
