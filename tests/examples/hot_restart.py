#!/usr/bin/env python3
"""Drives examples/hot_restart.cc.   hot_restart.py PROGRAM

Clients open new connections during all restarts. No connection and no request may fail."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import driver

RESTARTS = 20


class Load(threading.Thread):
    """Requests, each on a new connection, until stop()."""

    def __init__(self, port):
        super().__init__()
        self.port = port
        self.done = 0
        self.failures = []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            try:
                ask(self.port)
                self.done += 1
            except (OSError, ValueError) as error:
                self.failures.append(repr(error))

    def stop(self):
        self.stopping.set()
        self.join()


def ask(port):
    """Returns the number of the process that responded."""
    with socket.create_connection(("127.0.0.1", port), timeout=driver.PATIENCE) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while piece := peer.recv(4096):
            text += piece
    found = re.fullmatch(rb"HTTP/1\.1 200 OK\r\n.*\r\n\r\n(\d+)\n", text, re.DOTALL)
    if not found:
        raise ValueError(text)
    return int(found[1])


def wait_until(condition):
    end = time.monotonic() + driver.PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("nothing changed")
        time.sleep(0.01)


def has_ended(pid):
    """A process that was reaped, or waits for that."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class HotRestart(unittest.TestCase):
    program = None

    def start(self, program=None):
        """Returns a server. It and its successors are killed after the test."""
        server = self.enterContext(driver.Server(program or self.program, "0"))
        self.pids = [server.process.pid]
        self.addCleanup(self.kill)
        return server

    def enterContext(self, context):  # As in Python 3.11.
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def kill(self):
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def restart(self, port):
        """Waits until the successor responds, and the predecessor has ended."""
        old = self.pids[-1]
        os.kill(old, signal.SIGHUP)
        wait_until(lambda: ask(port) != old)
        wait_until(lambda: has_ended(old))
        self.pids.append(ask(port))

    def test_loses_no_request_in_twenty_restarts(self):
        server = self.start()
        loads = [Load(server.port) for _ in range(3)]
        for load in loads:
            load.start()
        try:
            for _ in range(RESTARTS):
                done = sum(load.done for load in loads)
                self.restart(server.port)
                wait_until(lambda: sum(load.done for load in loads) > done + 10)
        finally:
            for load in loads:
                load.stop()
        self.assertEqual([load.failures for load in loads], [[], [], []])
        self.assertEqual(len(set(self.pids)), RESTARTS + 1)
        print(f"{sum(load.done for load in loads)} requests, {RESTARTS} restarts")

    def test_loses_no_request_of_ab(self):
        driver.need("ab")
        server = self.start()
        bench = subprocess.Popen(["ab", "-q", "-r", "-c", "8", "-t", "600", "-n", "20000",
                                  f"http://127.0.0.1:{server.port}/"],
                                 stdout=subprocess.PIPE, text=True)
        restarts = 0
        while bench.poll() is None:
            self.restart(server.port)
            restarts += 1
        output = bench.stdout.read()
        bench.stdout.close()
        # The length of a response depends on the number of the process.
        self.assertRegex(output, r"Complete requests: +20000\n")
        failed = re.search(r"Connect: (\d+), Receive: (\d+), Length: \d+, Exceptions: (\d+)",
                           output)
        self.assertEqual(failed.groups() if failed else ("0",) * 3, ("0",) * 3)
        self.assertNotIn("Non-2xx", output)
        self.assertGreater(restarts, 0)

    def test_continues_if_the_successor_fails(self):
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "server")
            shutil.copy(self.program, program)
            server = self.start(program)
            pid = self.pids[0]

            def replace(text, mode):
                os.remove(program)
                with open(program, "w", encoding="ascii") as file:
                    file.write(text)
                os.chmod(program, mode)

            marker = os.path.join(directory, "marker")
            for text, mode in (("", 0o644), (f"#!/bin/sh\ntouch {marker}\nexit 1\n", 0o755)):
                replace(text, mode)
                os.kill(pid, signal.SIGHUP)
                if mode == 0o755:
                    wait_until(lambda: os.path.exists(marker))
                self.assertEqual([ask(server.port) for _ in range(5)], [pid] * 5)
            os.remove(program)
            shutil.copy(self.program, program)

            def restarts():  # It is ignored until the last successor was reaped.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGHUP)
                return ask(server.port) != pid
            wait_until(restarts)
            self.pids.append(ask(server.port))
            wait_until(lambda: has_ended(pid))

    def test_ends_on_sigterm(self):
        server = self.start()
        self.assertEqual(server.stop(), 0)

    def test_says_how_it_is_used(self):
        without = driver.run(self.program)
        self.assertEqual(without.returncode, 2)
        self.assertEqual(without.stderr, "usage: hot_restart PORT\n")


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, HotRestart))
