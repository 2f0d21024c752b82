#!/usr/bin/env python3
"""memcached's connections: idle ones, timeouts, a maximum number, restarts under load."""

import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import harness
import memcached
from peers.idle_time import check_idle
from peers.memcached import Connection, Session, store

VERSION = b"version\r\n"
IDLE_CLIENTS = 200
LIMIT = 60  # Also the limit of descriptors that memcached sets for itself.
RESTARTS = 8
WRITERS = 6
BEGINNINGS = (b"set a 0 0 1000\r\npart", b"get big\r\n" * 20, b"ge", b"")


def version(connection):
    connection.send(VERSION)
    line = connection.line()
    harness.check(line.startswith(b"VERSION "), f"{line!r} to version")


def idle_clients(run):
    """Many connections are idle while others work; then each of them gets a response."""
    server, address = memcached.start_tcp(run)
    idle = [Connection(address) for _ in range(IDLE_CLIENTS)]
    for connection in idle[::2]:
        version(connection)
    memcached.random_requests(run, address, sessions=3, batches=30)
    for connection in idle:
        version(connection)
    check_idle(server)
    for connection in idle:
        connection.close()
    server.stop(0)


def idle_timeout(run):
    """The server closes connections that are idle for a second or more, and no others."""
    server, address = memcached.start_tcp(run, "-o", "idle_timeout=1")
    with Connection(address, timeout=15) as idle, Connection(address) as busy:
        version(idle)
        ended = threading.Event()
        watch = threading.Thread(target=lambda: idle.closed_by_peer() and ended.set())
        watch.start()
        began = time.monotonic()
        while watch.is_alive():
            version(busy)
            watch.join(0.2)
        harness.check(ended.is_set(), "an idle connection was not ended within 15 s")
        harness.check(time.monotonic() - began > 0.9, "an idle connection was ended too early")
        version(busy)
    server.stop(0)


def visit(address, may_leave):
    """Connects, sends a request, and stays until it may leave. While accepting is off, the
    kernel retransmits the SYN-ACK."""
    with Connection(address, timeout=45) as connection:
        version(connection)
        may_leave.wait(60)
        version(connection)


def limit_with_queue(run):
    """At the limit accepting stops; it resumes as connections close, and each client is served."""
    server, address = memcached.start_tcp(run, "-c", LIMIT, "-o", "no_maxconns_fast")
    is_full = threading.Event()
    with Connection(address) as watch, ThreadPoolExecutor(2 * LIMIT) as pool:
        visitors = [pool.submit(visit, address, is_full) for _ in range(2 * LIMIT)]
        try:
            harness.wait_until(
                lambda: memcached.statistics_by(watch)["listen_disabled_num"] != "0",
                "accepting to be stopped")
        finally:
            is_full.set()
        for visitor in visitors:
            visitor.result()
        harness.wait_until(lambda: memcached.statistics_by(watch)["accepting_conns"] == "1",
                           "accepting to be resumed")
    server.stop(0)


def limit_with_refusal(run):
    """With maxconns_fast excess connections get an error and are closed; later ones are
    accepted."""
    server, address = memcached.start_tcp(run, "-c", LIMIT)
    clients = [Connection(address, timeout=20) for _ in range(3 * LIMIT)]
    served, refused = 0, 0
    for client in clients:
        try:
            client.send(VERSION)
            line = client.line()
        except (ConnectionResetError, BrokenPipeError):
            refused += 1  # The reset overtook the reply.
            continue
        harness.check(line.startswith(b"VERSION ") or line == b"ERROR Too many open connections",
                      f"{line!r} to version")
        served += line.startswith(b"VERSION ")
        refused += not line.startswith(b"VERSION ")
    print(f"{served} served, {refused} refused")
    harness.check(0 < served <= LIMIT and served + refused == len(clients),
                  f"{served} served, {refused} refused")
    for client in clients:
        client.close()
    harness.wait_until(lambda: welcome(address), "a connection below the limit")
    server.stop(0)


def welcome(address):
    with Connection(address) as connection:
        try:
            version(connection)
        except (ConnectionResetError, BrokenPipeError, harness.Failure):
            return False
        return True


def write_until_end(session):
    """Sends random requests until the server exits; every reply before that must be right."""
    session.connect()
    try:
        while True:
            session.batch(10)
    except (ConnectionResetError, BrokenPipeError):
        session.close()
        session.forget()


def restart_under_load(run):
    """Sends SIGTERM while clients write, and starts a new server on the same port, to which the
    same clients connect again."""
    port = harness.free_port()
    source = random.Random(run.seed)
    sessions = [Session(b"r%d" % number, random.Random(f"{run.seed}:{number}"),
                        ("127.0.0.1", port)) for number in range(WRITERS)]
    for _ in range(RESTARTS):
        server = memcached.start(run, "-l", "127.0.0.1", "-p", port)
        server.wait_tcp(port)
        goals = [session.done + 100 + source.randrange(50) for session in sessions]
        with ThreadPoolExecutor(WRITERS) as pool:
            ends = [pool.submit(write_until_end, session) for session in sessions]
            try:
                harness.wait_until(
                    lambda: all(session.done >= goal for session, goal in zip(sessions, goals))
                    or any(end.done() for end in ends), "replies to each client")
            finally:
                server.kill(signal.SIGTERM)
            for end in ends:
                end.result()
        server.wait(0)
    harness.check(all(session.done >= 100 * RESTARTS for session in sessions), "too few replies")
    print(f"{RESTARTS} restarts")


def shutdowns(run):
    """Each way to stop it, with open connections and an incomplete request."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        server, address = memcached.start_tcp(run)
        with Connection(address) as whole, Connection(address) as begun:
            whole.ask(store(b"set", b"key", b"value"), b"STORED\r\n")
            begun.send(b"set key 0 0 100\r\nhalf")
            server.kill(number)
            server.wait(0)
            harness.check(whole.closed_by_peer() and begun.closed_by_peer(),
                          f"a connection outlived {signal.Signals(number).name}")
    server, address = memcached.start_tcp(run, "-A")
    with Connection(address) as connection:
        connection.send(b"shutdown\r\n")
        server.wait(0)


def drop_out(run):
    """Clients that close in the middle of a request or of a reply."""
    server, address = memcached.start_tcp(run)
    value = bytes(300_000)
    with Connection(address) as connection:
        connection.ask(store(b"set", b"big", value), b"STORED\r\n")
    for number in range(100):
        with Connection(address) as connection:
            connection.send(BEGINNINGS[number % len(BEGINNINGS)])
    memcached.random_requests(run, address, sessions=3, batches=20)
    server.stop(0)


def test(run):
    harness.need("memcached")
    idle_clients(run)
    idle_timeout(run)
    limit_with_queue(run)
    limit_with_refusal(run)
    drop_out(run)
    restart_under_load(run)
    shutdowns(run)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
