#!/usr/bin/env python3
"""pgqd: it ticks the queues of each database that has queues, and finds new databases by itself."""

import signal

import harness
from peers.postgresql import Server

SETTINGS = """
[pgqd]
base_connstr = host=127.0.0.1 port={port} user=bench
initial_database = postgres
check_period = 1
retry_period = 1
ticker_period = 0.1
syslog = 0
"""
QUEUE = ("create extension pgq", "select pgq.create_queue('q')",
         "select pgq.set_queue_config('q', 'ticker_max_lag', '0.1 s')")


def ticks(server, database):
    return int(server.ask("select count(*) from pgq.tick", database=database)[0])


def test(run):
    harness.need("pgqd")
    server = Server(run)
    server.ask(*QUEUE)
    before = ticks(server, "bench")
    program = run.start("pgqd", run.file("pgqd.ini", SETTINGS.format(port=server.port)))
    program.assert_uses()
    program.wait_for(lambda: ticks(server, "bench") > before + 2, "ticks")
    server.ask("create database late", database="postgres")
    server.ask(*QUEUE, database="late")
    program.wait_for(lambda: ticks(server, "late") > 2, "ticks of the new database")
    for _ in range(20):
        server.ask("select pgq.insert_event('q', 'kind', 'data')")
    program.kill(signal.SIGHUP)
    before = ticks(server, "bench")
    program.wait_for(lambda: ticks(server, "bench") > before, "ticks after a reload")
    program.stop()
    server.stop()


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
