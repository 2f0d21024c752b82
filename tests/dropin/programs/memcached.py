#!/usr/bin/env python3
"""memcached: random requests against a model, memccapable, memcaslap, a Unix socket."""

import random
import re
from concurrent.futures import ThreadPoolExecutor

import harness
from peers.memcached import TOO_LARGE, Connection, Session, store

THREADS = 4
SESSIONS = 6
BATCHES = 120
INCREMENTS = 300
MEMORY = ("-m", 512)  # In MB: nothing is evicted, so a miss is an error.

# memcached takes EINTR from a nonblocking socket, which no kernel returns, for the end of the
# connection.
WEATHER = harness.Weather(kinds="again,short")


def start(run, *arguments, env=None):
    return run.start("memcached", *MEMORY, "-t", THREADS, *arguments,
                     user="nobody", weather=WEATHER, env=env)


def start_tcp(run, *arguments, env=None):
    port = harness.free_port()
    server = start(run, "-l", "127.0.0.1", "-p", port, *arguments, env=env)
    server.wait_tcp(port)
    server.assert_uses()
    return server, ("127.0.0.1", port)


def converse(session, batches):
    session.connect()
    session.run(batches)
    session.verify()
    session.close()
    return session.done


def random_requests(run, address, sessions=SESSIONS, batches=BATCHES):
    """Several clients at once, each with its own keys and model."""
    seeds = [f"{run.seed}:{number}" for number in range(sessions)]
    clients = [Session(b"s%d" % number, random.Random(seed), address)
               for number, seed in enumerate(seeds)]
    with ThreadPoolExecutor(sessions) as pool:
        done = list(pool.map(lambda client: converse(client, batches), clients))
    print(f"{sum(done)} random requests by {sessions} clients")


def shared_counter(address):
    """All clients increment one number; no increment may be lost."""
    def count(_):
        with Connection(address) as connection:
            for _ in range(INCREMENTS // 10):
                connection.send(b"incr shared 3\r\n" * 10)
                for _ in range(10):
                    harness.check(int(connection.line()) % 3 == 0, "a number not of this counter")

    with Connection(address) as connection:
        connection.ask(store(b"set", b"shared", b"0"), b"STORED\r\n")
        with ThreadPoolExecutor(SESSIONS) as pool:
            list(pool.map(count, range(SESSIONS)))
        connection.ask(b"incr shared 0\r\n", b"%d\r\n" % (SESSIONS * INCREMENTS * 3))


def refusals(address):
    """Rejected requests do not disturb the requests around them."""
    with Connection(address) as connection:
        connection.ask(store(b"set", b"big", b"small"), b"STORED\r\n")
        connection.ask(
            store(b"set", b"big", b"x" * TOO_LARGE) + b"get big\r\n"
            + b"get " + b"k" * 251 + b"\r\n" + b"nonsense\r\n" + b"get big\r\n",
            b"SERVER_ERROR object too large for cache\r\nEND\r\n"
            b"CLIENT_ERROR bad command line format\r\nERROR\r\nEND\r\n")


def compare_and_swap(address):
    """gets returns a unique number: a cas with it succeeds once."""
    with Connection(address) as connection:
        connection.ask(store(b"set", b"swap", b"one"), b"STORED\r\n")
        connection.send(b"gets swap\r\n")
        unique = connection.line().split()[-1]
        connection.expect(b"one\r\nEND\r\n")
        swap = b"cas swap 0 0 3 " + unique + b"\r\ntwo\r\n"
        connection.ask(swap + swap + b"get swap\r\n",
                       b"STORED\r\nEXISTS\r\nVALUE swap 0 3\r\ntwo\r\nEND\r\n")


def byte_by_byte(address):
    """Sends a request in the smallest pieces."""
    value = bytes(range(256))
    request = store(b"set", b"bytes", value) + b"get bytes\r\n"
    with Connection(address) as connection:
        for byte in request:
            connection.send(bytes([byte]))
        connection.expect(b"STORED\r\nVALUE bytes 0 256\r\n" + value + b"\r\nEND\r\n")


def slow_reader(address):
    """More replies than fit into the socket: the server must wait until it is writable."""
    value = random.Random(7).randbytes(500_000)
    with Connection(address) as connection:
        connection.ask(store(b"set", b"slow", value), b"STORED\r\n")
        connection.send(b"get slow\r\n" * 60)
        for _ in range(60):
            connection.expect(b"VALUE slow 0 500000\r\n" + value + b"\r\nEND\r\n")


def statistics_by(connection):
    connection.send(b"stats\r\n")
    values = {}
    while (line := connection.line()) != b"END":
        _, name, value = line.decode().split(maxsplit=2)
        values[name] = value
    return values


def statistics(address):
    with Connection(address) as connection:
        return statistics_by(connection)


def used_threads(address):
    """Returns the number of threads that the server reports."""
    values = statistics(address)
    harness.check(values["threads"] == str(THREADS), f"{values['threads']} threads")
    harness.check(values["evictions"] == "0", "something was evicted: too little memory")
    harness.check("libevent" in values, "stats does not name libevent")


def capable(run, address):
    """libmemcached's conformance test of the text and the binary protocol."""
    output = run.call("memccapable", "-h", address[0], "-p", address[1], dropin=False)
    wrong = [line for line in output.splitlines() if "[" in line and "[pass]" not in line]
    harness.check(not wrong and "All tests passed" in output, "\n".join(wrong) or output)


def load(run, address):
    """memcaslap, which is itself on libevent, verifies the values it reads."""
    count = 20_000 if run.mode != "faults" else 4_000
    slap = run.start("memcaslap", "-s", f"{address[0]}:{address[1]}", "-T", 2, "-c", 8,
                     "-x", count, "-v", "0.2", weather=WEATHER)
    output = slap.wait()
    numbers = {name: int(value) for name, value in re.findall(r"(\w+): (\d+)$", output, re.M)}
    harness.check(numbers.get("cmd_get", 0) + numbers.get("cmd_set", 0) >= count,
                  f"not all was asked: {numbers}")
    for name in ("get_misses", "verify_misses", "verify_failed"):
        harness.check(numbers.get(name, 0) == 0, f"{name}: {numbers}")


def tools(run, address):
    try:
        harness.need("memccapable", "memcaslap")
    except harness.Skip as skip:
        print(f"left out: {skip}")
        return
    capable(run, address)
    load(run, address)


def unix_socket(run):
    path = run.path("socket")
    server = start(run, "-s", path, "-a", "777")
    server.wait_unix(path)
    random_requests(run, path, sessions=3, batches=40)
    server.stop(0)


def test(run):
    harness.need("memcached")
    server, address = start_tcp(run)
    random_requests(run, address)
    shared_counter(address)
    refusals(address)
    compare_and_swap(address)
    byte_by_byte(address)
    slow_reader(address)
    used_threads(address)
    tools(run, address)
    server.stop(0)
    unix_socket(run)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
