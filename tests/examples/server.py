"""What the tests of examples that are servers share."""

import socket
import subprocess
import unittest

PATIENCE = 60  # Seconds, for what is to happen soon.


class Server:
    """Runs while it is entered. It says at its start where it listens."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().strip().rsplit(":", 1)[1])

    def connect(self):
        return Peer(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE))

    def stop(self):
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Peer:
    """Somebody who is connected, and reads lines."""

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


def main(arguments, case):
    """Runs the tests of `case`, whose `program` is the first argument."""
    case.program = arguments.pop(1)
    unittest.main(argv=arguments)
