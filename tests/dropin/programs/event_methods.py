#!/usr/bin/env python3
"""The effects of libevent's environment variables: programs on each method of waiting.

Semantics: event2/event.h on EVENT_NOEPOLL and its like; unbound -V prints the names.
"""

import os

import gearmand
import harness
import memcached
import nsd
from peers.idle_time import check_idle

METHODS = {
    "epoll": {},
    "epoll (with changelist)": {"EVENT_EPOLL_USE_CHANGELIST": "1"},
    "poll": {"EVENT_NOEPOLL": "1"},
    "select": {"EVENT_NOEPOLL": "1", "EVENT_NOPOLL": "1"},
}


def named(run, method, env):
    output = run.call("unbound", "-V", env=env)
    harness.check(f"(it uses {method})" in output, f"not {method}: {output}")


def requests(run, env):
    server, address = memcached.start_tcp(run, env=env)
    memcached.random_requests(run, address, sessions=3, batches=30)
    memcached.slow_reader(address)
    check_idle(server)
    server.stop(0)


def jobs(run, env):
    server, port = gearmand.start(run, env=env)
    gearmand.start_workers(port)
    gearmand.submit_many(port, run.seed, rounds=5)
    server.stop(0)


def questions(run, method, env):
    name = "nsd_" + method.split()[-1].strip(")")
    server = nsd.Server(run, name, harness.free_port(), "  provide-xfr: 127.0.0.1 NOKEY\n")
    server.write_zone(1)
    server.start(env)
    for tcp in (False, True):
        nsd.ask_many(run, server.port, tcp, method)
    nsd.check_transfer(server.port, 1)
    server.program.stop(0)


def test(run):
    harness.need("memcached", "gearmand", "nsd", "unbound")
    for name in [name for name in os.environ if name.startswith("EVENT_")]:
        del os.environ[name]
    for method, env in METHODS.items():
        named(run, method, env)
        requests(run, env)
        jobs(run, env)
        questions(run, method, env)
        print(method)


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
