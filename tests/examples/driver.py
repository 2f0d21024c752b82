"""Shared by the tests of the examples."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import missing  # pylint: disable=wrong-import-position

PATIENCE = 60  # Seconds.


class Program:
    """An example that is started on entry and killed on exit."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def read_line(self):
        return self.process.stdout.readline().rstrip("\n")

    def stop(self, signum=signal.SIGTERM):
        """Returns its exit code; -N if signal N ended it."""
        self.process.send_signal(signum)
        return self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Server(Program):
    """An example that prints its address first."""

    def __init__(self, *command):
        super().__init__(*command)
        self.port = int(self.read_line().rsplit(":", 1)[1])

    def connect(self):
        return Peer(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE))

    def memory(self):
        """Resident, in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024


class Peer:
    """A client's connection, for lines."""

    def __init__(self, connected):
        self.socket = connected
        self.file = connected.makefile("rb")

    def say(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def hear(self):
        return self.file.readline().decode().rstrip("\n")

    def end(self):
        self.socket.shutdown(socket.SHUT_WR)

    def hang_up(self):
        self.file.close()
        self.socket.close()


class EchoTest(unittest.TestCase):
    """Every TCP echo server passes these tests."""

    program = None
    arguments = ("0",)

    def start(self):
        return Server(self.program, *self.arguments)

    def test_echoes_each_connection_until_its_end(self):
        with self.start() as echo:
            first, second = echo.connect(), echo.connect()
            first.say("hello")
            second.say("good evening")
            self.assertEqual(first.hear(), "hello")
            self.assertEqual(second.hear(), "good evening")
            for peer in (first, second):
                peer.end()
                self.assertEqual(peer.hear(), "")
                peer.hang_up()

    def test_echoes_megabytes(self):
        lot = b"0123456789abcde\n" * 500_000
        with self.start() as echo:
            peer = echo.connect()
            writer = threading.Thread(target=lambda: (peer.socket.sendall(lot), peer.end()))
            writer.start()
            self.assertEqual(peer.file.read(), lot)
            writer.join()
            peer.hang_up()


def need(program):
    """Skips the test if a program is not installed."""
    if not shutil.which(program):
        raise unittest.SkipTest(missing.not_installed(program))


def curl(*arguments):
    """Returns the output of curl."""
    need("curl")
    done = subprocess.run(["curl", "--silent", "--max-time", str(PATIENCE), *arguments],
                          stdout=subprocess.PIPE, text=True, timeout=2 * PATIENCE, check=False)
    return done.stdout


def run(program, *arguments):
    """Runs it to its end."""
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=PATIENCE, check=False)


def main(arguments, case):
    """Runs the tests of `case`, whose `program` is the first argument. Returns the exit code."""
    case.program = arguments.pop(1)
    names = unittest.defaultTestLoader.getTestCaseNames(case)
    result = unittest.TextTestRunner().run(unittest.TestSuite(map(case, names)))
    if result.skipped and result.testsRun == len(result.skipped):
        print("; ".join(dict.fromkeys(reason for _, reason in result.skipped)), flush=True)
        return missing.SKIPPED
    return 0 if result.wasSuccessful() else 1
