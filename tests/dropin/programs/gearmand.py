#!/usr/bin/env python3
"""gearmand with four threads: jobs of many clients done by several workers, in the foreground
and in the background, large jobs, failing ones, jobs whose worker exits; its own tools; its
shutdown."""

import collections
import hashlib
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import harness
from peers.idle_time import check_idle
from peers.gearman import (SUBMIT_BACKGROUND, WORK_DATA, WORK_STATUS, Administrator, Client,
                           Worker)

THREADS = 4
WORKERS = 5
CLIENTS = 6
ROUNDS = 25
JOBS = 25  # In one round.
BACKGROUND_JOBS = 300
GREAT_BYTES = 6_000_000
# gearmand's threads wake one another with a byte in a pipe, and take EAGAIN for success (a pipe
# returns it when it is full of such bytes), with the original library as well.
WEATHER = harness.Weather(least=2)
DONE = collections.Counter()  # The background jobs that workers completed, by their data.


def reverse(_, __, data):
    return data[::-1]


def digest(_, __, data):
    return hashlib.sha256(data).digest()


def fail(_, __, data):
    return None


def parts(worker, handle, data):
    """Sends the result in pieces, with progress reports between them."""
    for at in range(0, len(data), 1000):
        worker.send(WORK_DATA, handle, data[at:at + 1000].upper())
        worker.send(WORK_STATUS, handle, b"%d" % at, b"%d" % len(data))
    return b"end"


def remember(_, __, data):
    DONE[data] += 1
    return b""


FUNCTIONS = {b"reverse": reverse, b"digest": digest, b"fail": fail, b"parts": parts,
             b"remember": remember}


def expected(function, data):
    if function == b"parts":
        return data.upper() + b"end"
    return FUNCTIONS[function](None, None, data)


def start(run, env=None):
    port = harness.free_port()
    server = run.start("gearmand", "-L", "127.0.0.1", "-p", port, "--threads", THREADS,
                       "-l", "stderr", "-P", run.path("gearmand.pid"), user="nobody",
                       weather=WEATHER, env=env)
    server.wait_tcp(port)
    server.assert_uses()
    return server, port


def start_workers(port, count=WORKERS, functions=None):
    workers = [Worker(port, functions or FUNCTIONS) for _ in range(count)]
    for worker in workers:
        threading.Thread(target=worker.work, daemon=True).start()
    return workers


def submit_many(port, seed, rounds=ROUNDS):
    source = random.Random(seed)
    names = [b"reverse", b"digest", b"parts", b"reverse", b"fail"]
    with Client(port) as client:
        for _ in range(rounds):
            sizes = [source.choice((0, 10, 1000, 5000, 60_000)) for _ in range(JOBS)]
            jobs = [(source.choice(names), source.randbytes(size)) for size in sizes]
            for job, result in zip(jobs, client.run(jobs)):
                harness.check(result == expected(*job),
                              f"{job[0]} of {len(job[1])} bytes: {result and result[:80]}")


def foreground(run, port):
    with ThreadPoolExecutor(CLIENTS) as pool:
        for job in [pool.submit(submit_many, port, f"{run.seed}:{number}")
                    for number in range(CLIENTS)]:
            job.result()
    print(f"{CLIENTS * ROUNDS * JOBS} jobs in the foreground")


def great(run, port):
    """Larger than any buffer, in both directions, and concurrent with others."""
    def submit(number):
        data = random.Random(f"{run.seed}:{number}").randbytes(GREAT_BYTES)
        with Client(port) as client:
            handle = client.submit(b"reverse", data)
            harness.check(client.result(handle) == data[::-1], "a great job's result differs")
            harness.check(client.echo(data) == data, "a great echo differs")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(submit, range(3)))


def background(port):
    """No client waits for the results; each job is done exactly once."""
    with Client(port) as client:
        handles = [client.submit(b"remember", b"%d" % number, kind=SUBMIT_BACKGROUND)
                   for number in range(BACKGROUND_JOBS)]
        harness.wait_until(lambda: not any(map(client.is_known, handles)), "the background jobs")
    harness.check(sorted(map(int, DONE)) == list(range(BACKGROUND_JOBS)), "jobs are missing")
    harness.check(set(DONE.values()) == {1}, "a job was done twice")


def shared_job(port):
    """Two clients submit a job with the same name before there is a worker: both get its result."""
    with Client(port) as one, Client(port) as other, Administrator(port) as administrator:
        handles = [client.submit(b"late", b"data", unique=b"same") for client in (one, other)]
        harness.check(handles[0] == handles[1], f"two jobs: {handles}")
        harness.check(administrator.status()["late"] == (1, 0, 0), "the queue of `late`")
        worker = start_workers(port, 1, {b"late": reverse})[0]
        for client in (one, other):
            harness.check(client.result(handles[0]) == b"atad", "the shared job's result")
        harness.check(administrator.status()["late"] == (0, 0, 1), "the queue of `late`")
        worker.shut_down()
        harness.wait_until(lambda: administrator.status()["late"] == (0, 0, 0), "no worker")


def lost_worker(port):
    """A worker exits with its job; the next one gets it."""
    with Client(port) as client:
        handle = client.submit(b"unlucky", b"data")
        for _ in range(3):
            with Worker(port, {b"unlucky": reverse}) as worker:
                harness.check(worker.grab() == [handle, b"unlucky", b"data"], "another job")
        start_workers(port, 1, {b"unlucky": reverse})
        harness.check(client.result(handle) == b"atad", "the result after workers were lost")


def tools(run, port):
    """Debian's worker, client and administrator: they count words."""
    worker = run.start("gearman", "-h", "127.0.0.1", "-p", port, "-w", "-f", "wc", "--", "wc", "-c",
                       dropin=False)
    text = b"some words\n" * 20_000
    for size in (0, 1, len(text)):
        run.file("words", text[:size])
        with open(run.path("words"), "rb") as words:
            count = run.call("gearman", "-h", "127.0.0.1", "-p", port, "-f", "wc", dropin=False,
                             stdin=words)
        harness.check(int(count) == size, f"{count!r} of {size} bytes")
    status = run.call("gearadmin", "-h", "127.0.0.1", "-p", port, "--status", dropin=False)
    harness.check("wc\t0\t0\t1" in status, f"gearadmin: {status!r}")
    worker.stop()


def administration(port, workers):
    with Administrator(port) as administrator:
        status = administrator.status()
        for name in FUNCTIONS:
            harness.check(status[name.decode()] == (0, 0, WORKERS), f"{name}: {status}")
        harness.check("1." in administrator.ask(b"version"), "version")
        listed = [line for line in administrator.list(b"workers") if "remember" in line]
        harness.check(len(listed) == len(workers), f"{len(listed)} workers are listed")


def shutdowns(run):
    """Stops it by signals, while clients and workers are connected."""
    for number in (signal.SIGTERM, signal.SIGINT):
        server, port = start(run)
        start_workers(port)
        submit_many(port, 1)
        with Client(port) as idle:
            idle.submit(b"nobody", b"")
            server.kill(number)
            server.wait(0)


def test(run):
    harness.need("gearmand", "gearman", "gearadmin")
    server, port = start(run)
    workers = start_workers(port)
    foreground(run, port)
    administration(port, workers)
    great(run, port)
    background(port)
    shared_job(port)
    lost_worker(port)
    tools(run, port)
    check_idle(server)
    server.stop(0)
    shutdowns(run)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
