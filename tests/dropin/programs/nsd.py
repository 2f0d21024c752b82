#!/usr/bin/env python3
"""nsd: many queries over UDP and TCP, zone transfers, reloading under load, and a secondary that
fetches the zone when notified."""

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import harness
from peers.dns import Client
from peers.idle_time import check_idle

NAMES = 3000
CLIENTS = 6
ROUNDS = 25
BATCH = 20  # Fits into the receive buffer of any socket.
NO_SUCH_NAME = 3
ZONE = "example.test"

# With more queries pending on a connection, nsd does not continue an answer that was sent in part:
# the next query overwrites it, on the original library as well. So only its reads fail. If a read
# stops in the middle of a message, its processes sometimes lose synchronisation: the secondary then
# never takes the zone.
WEATHER = harness.Weather(calls="in,accept", local=False)

CONFIGURATION = """
server:
  server-count: 2
  ip-address: 127.0.0.1
  port: {port}
  username: ""
  chroot: ""
  database: ""
  zonesdir: "{directory}"
  zonelistfile: "{directory}/zone.list"
  xfrdfile: "{directory}/xfrd.state"
  xfrdir: "{directory}"
  pidfile: "{directory}/nsd.pid"
  tcp-timeout: 30
  tcp-query-count: 0
  xfrd-reload-timeout: 0
  rrl-ratelimit: 0
  verbosity: 1
remote-control:
  control-enable: yes
  control-interface: {directory}/control
zone:
  name: {zone}
  zonefile: {directory}/zone
{transfers}
"""


class Server:
    """An nsd with a private directory."""

    def __init__(self, run, name, port, transfers):
        self.run_ = run
        self.port = port
        self.directory_ = run.path(name)
        os.mkdir(self.directory_)
        os.chmod(self.directory_, 0o777)
        self.configuration_ = run.file(f"{name}/nsd.conf", CONFIGURATION.format(
            directory=self.directory_, port=port, zone=ZONE, transfers=transfers))
        self.name_ = name

    def write_zone(self, serial):
        lines = [f"$ORIGIN {ZONE}.", "$TTL 60", f"@ SOA ns host {serial} 3600 60 86400 60",
                 "@ NS ns", "ns A 127.0.0.1"]
        lines += [f"n{number} A {address(number, serial)}" for number in range(NAMES)]
        self.run_.file(f"{self.name_}/zone", "\n".join(lines) + "\n", 0o666)

    def start(self, env=None):
        self.program = self.run_.start("nsd", "-d", "-c", self.configuration_, user="nobody",
                                       weather=WEATHER, env=env)
        self.program.wait_tcp(self.port)
        self.program.assert_uses()
        for child in children(self.program.pid):
            self.run_.assert_uses(child)

    def control(self, *command):
        return self.run_.call("nsd-control", "-c", self.configuration_, *command, dropin=False)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def address(number, serial):
    return f"10.{serial}.{number >> 8}.{number & 255}"


def check_answer(number, answer, serials):
    if number >= NAMES:
        harness.check(answer.code == NO_SUCH_NAME, f"n{number} exists: {answer.answers}")
        return
    got = [data for _, _, data in answer.answers]
    harness.check(got in [[address(number, serial)] for serial in serials],
                  f"n{number}: code {answer.code}, {answer.answers}, not of {serials}")


def ask_many(run, port, tcp, seed):
    source = random.Random(f"{run.seed}:{seed}")
    with Client(port, tcp, may_lose=run.weather_library) as client:
        for _ in range(ROUNDS):
            numbers = [source.randrange(NAMES + 50) for _ in range(BATCH)]
            answers = client.ask_all([(f"n{number}.{ZONE}", "A") for number in numbers])
            for number, answer in zip(numbers, answers):
                check_answer(number, answer, (1,))


def transfer(port):
    """Transfers the whole zone over TCP, which takes many messages."""
    with Client(port, tcp=True) as client:
        return client.transfer(ZONE)


def check_transfer(port, serial):
    """Repeats: for a moment after a reload, the old processes still accept connections."""
    records = harness.wait_until(
        lambda: next((found for found in [transfer(port)] if (ZONE, "SOA", serial) in found), None),
        f"a transfer of serial {serial} from port {port}")
    expected = {(f"n{number}.{ZONE}", "A", address(number, serial)) for number in range(NAMES)}
    expected |= {(ZONE, "SOA", serial), (ZONE, "NS", f"ns.{ZONE}"),
                 (f"ns.{ZONE}", "A", "127.0.0.1")}
    harness.check(set(records) == expected and len(records) == len(expected),
                  f"{len(records)} records, {len(set(records) ^ expected)} of them differ")


def questions(run, port):
    """Clients of both kinds and transfers, all concurrent."""
    with ThreadPoolExecutor(2 * CLIENTS + 4) as pool:
        jobs = [pool.submit(ask_many, run, port, number % 2 == 1, number)
                for number in range(2 * CLIENTS)]
        jobs += [pool.submit(check_transfer, port, 1) for _ in range(4)]
        for job in jobs:
            job.result()
    print(f"{2 * CLIENTS * ROUNDS * BATCH} questions, 4 transfers")


def ask_until(port, stop, seed, serials):
    source = random.Random(seed)
    done = 0
    with Client(port, may_lose=True) as client:
        while not stop.is_set():
            numbers = [source.randrange(NAMES) for _ in range(5)]
            answers = client.ask_all([(f"n{n}.{ZONE}", "A") for n in numbers])
            for number, answer in zip(numbers, answers):
                check_answer(number, answer, serials)
            done += 1
    return done


def serial_of(port):
    with Client(port, may_lose=True) as client:
        answers = client.ask_all([(ZONE, "SOA")])[0].answers
    return answers[0][2] if answers else None


def wait_serial(port, serial):
    """Repeats: for a moment after a reload, the old processes still answer."""
    harness.wait_until(lambda: all(serial_of(port) == serial for _ in range(20)),
                       f"serial {serial} on port {port}")


def reloading(primary, secondary):
    """Reloads by SIGHUP and by nsd-control, under load; the secondary follows each time."""
    stop = threading.Event()
    serials = range(1, 6)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(ask_until, server.port, stop, seed, serials)
                for seed in range(2) for server in (primary, secondary)]
        try:
            for serial in serials[1:]:
                primary.write_zone(serial)
                if serial % 2 == 0:
                    primary.program.kill(signal.SIGHUP)
                else:
                    primary.control("reload")
                wait_serial(primary.port, serial)
                wait_serial(secondary.port, serial)
        finally:
            stop.set()
        harness.check(all(job.result() for job in jobs), "a client was not answered")
    check_transfer(primary.port, serials[-1])
    check_transfer(secondary.port, serials[-1])


def dig(run, port):
    for options in ((), ("+tcp",)):
        output = run.call("dig", "@127.0.0.1", "-p", port, "+short", "+tries=5", "+time=2",
                          *options, f"n7.{ZONE}", dropin=False)
        harness.check(output.strip() == address(7, 1), f"dig: {output!r}")


def test(run):
    harness.need("nsd", "nsd-control", "dig")
    ports = harness.free_port(), harness.free_port()
    primary = Server(run, "primary", ports[0], f"  notify: 127.0.0.1@{ports[1]} NOKEY\n"
                     "  provide-xfr: 127.0.0.1 NOKEY\n")
    primary.write_zone(1)
    primary.start()
    dig(run, primary.port)
    questions(run, primary.port)
    secondary = Server(run, "secondary", ports[1], "  allow-notify: 127.0.0.1 NOKEY\n"
                       f"  request-xfr: AXFR 127.0.0.1@{ports[0]} NOKEY\n"
                       "  provide-xfr: 127.0.0.1 NOKEY\n")
    secondary.start()
    wait_serial(secondary.port, 1)
    reloading(primary, secondary)
    harness.check("version: " in primary.control("status"), "nsd-control status")
    check_idle(primary.program)
    check_idle(secondary.program)
    secondary.control("stop")
    secondary.program.wait(0)
    primary.program.stop(0)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
