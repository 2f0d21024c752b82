"""Gearman's protocol: a client, a worker, and the administrator's text commands.

It follows the document PROTOCOL of gearmand.
"""

import socket
import struct

CAN_DO, PRE_SLEEP, NOOP, SUBMIT_JOB, JOB_CREATED, GRAB_JOB, NO_JOB = 1, 4, 6, 7, 8, 9, 10
JOB_ASSIGN, WORK_STATUS, WORK_COMPLETE, WORK_FAIL, GET_STATUS = 11, 12, 13, 14, 15
ECHO_REQUEST, ECHO_REPLY, SUBMIT_BACKGROUND, ERROR, STATUS_REPLY = 16, 17, 18, 19, 20
SUBMIT_HIGH, WORK_DATA, SUBMIT_LOW = 21, 28, 33

# The number of arguments of a packet; the last may contain zero bytes, so it is not split.
ARGUMENTS = {JOB_CREATED: 1, JOB_ASSIGN: 3, WORK_STATUS: 3, WORK_COMPLETE: 2, WORK_FAIL: 1,
             WORK_DATA: 2, ECHO_REPLY: 1, STATUS_REPLY: 5, ERROR: 2}


class WrongReply(AssertionError):
    """The server sent an unexpected packet."""


def packet(kind, *arguments):
    body = b"\0".join(arguments)
    return b"\0REQ" + struct.pack(">2L", kind, len(body)) + body


class Connection:
    """Packets over TCP."""

    def __init__(self, port, timeout=30):
        self.socket_ = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket_.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader_ = self.socket_.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.reader_.close()
        self.socket_.close()

    def shut_down(self):
        """Shuts down the connection while another thread reads from it."""
        self.socket_.shutdown(socket.SHUT_RDWR)

    def send(self, kind, *arguments):
        self.socket_.sendall(packet(kind, *arguments))

    def exactly_(self, count):
        data = self.reader_.read(count)
        if len(data) < count:
            raise ConnectionResetError("the connection ended")
        return data

    def receive(self):
        """(kind, its arguments)"""
        magic, kind, size = struct.unpack(">4s2L", self.exactly_(12))
        if magic != b"\0RES" or (kind not in ARGUMENTS and size):
            raise WrongReply(f"{magic!r}, kind {kind}, {size} bytes")
        body = self.exactly_(size)
        return kind, body.split(b"\0", ARGUMENTS[kind] - 1) if size else []

    def expect(self, *kinds):
        kind, arguments = self.receive()
        if kind not in kinds:
            raise WrongReply(f"kind {kind}, not of {kinds}: {arguments[:2]}")
        return arguments

    def echo(self, data):
        self.send(ECHO_REQUEST, data)
        return self.expect(ECHO_REPLY)[0]


class Client(Connection):
    """Submits jobs and collects their results."""

    def submit(self, function, data, unique=b"", kind=SUBMIT_JOB):
        """Returns the handle of the job. No other packet may be expected."""
        self.send(kind, function, unique, data)
        return self.expect(JOB_CREATED)[0]

    def run(self, jobs):
        """Submits all [(function, data), ...] before it reads a reply, and returns their results.

        A failed job has None. Results include the parts that came before them (WORK_DATA).
        """
        for number, (function, data) in enumerate(jobs):
            self.send((SUBMIT_JOB, SUBMIT_HIGH, SUBMIT_LOW)[number % 3], function, b"", data)
        handles, parts, results = [], {}, {}
        while len(results) < len(jobs):
            kind, arguments = self.receive()
            handle = arguments[0]
            if kind == JOB_CREATED:
                handles.append(handle)
                parts[handle] = b""
            elif handle not in parts or handle in results:
                raise WrongReply(f"kind {kind} for {handle}, which is not to come")
            elif kind == WORK_DATA:
                parts[handle] += arguments[1]
            elif kind == WORK_COMPLETE:
                results[handle] = parts[handle] + arguments[1]
            elif kind == WORK_FAIL:
                results[handle] = None
            elif kind != WORK_STATUS:
                raise WrongReply(f"kind {kind}: {handle}")
        return [results[handle] for handle in handles]

    def result(self, handle):
        """Returns the result of one job, which was submitted alone."""
        arguments = self.expect(WORK_COMPLETE)
        if arguments[0] != handle:
            raise WrongReply(f"{arguments[0]} is complete, not {handle}")
        return arguments[1]

    def is_known(self, handle):
        self.send(GET_STATUS, handle)
        return self.expect(STATUS_REPLY)[1] == b"1"


class Worker(Connection):
    """Runs jobs. `functions` are {name: function(connection, handle, data)}, which return bytes,
    or None for a failure."""

    def __init__(self, port, functions):
        super().__init__(port, timeout=None)
        self.functions_ = functions
        for name in functions:
            self.send(CAN_DO, name)

    def grab(self):
        """Returns the next job: handle, function, data."""
        while True:
            self.send(GRAB_JOB)
            kind, arguments = self.receive_job_()
            if kind == JOB_ASSIGN:
                return arguments
            self.send(PRE_SLEEP)
            self.expect(NOOP)

    def receive_job_(self):
        kind, arguments = NOOP, []
        while kind == NOOP:
            kind, arguments = self.receive()
        if kind not in (JOB_ASSIGN, NO_JOB):
            raise WrongReply(f"kind {kind} to a worker")
        return kind, arguments

    def work(self):
        """Runs jobs until the connection closes."""
        try:
            while True:
                handle, function, data = self.grab()
                result = self.functions_[function](self, handle, data)
                if result is None:
                    self.send(WORK_FAIL, handle)
                else:
                    self.send(WORK_COMPLETE, handle, result)
        except (ConnectionResetError, BrokenPipeError):
            self.close()


class Administrator(Connection):
    """Text commands."""

    def ask(self, command):
        self.socket_.sendall(command + b"\n")
        return self.reader_.readline().decode().rstrip("\n")

    def list(self, command):
        self.socket_.sendall(command + b"\n")
        lines = []
        while (line := self.reader_.readline().decode()) != ".\n":
            if not line:
                raise ConnectionResetError("the connection ended within a list")
            lines.append(line.rstrip("\n"))
        return lines

    def status(self):
        """Returns {function: (jobs, running, workers)}."""
        fields = [line.split("\t") for line in self.list(b"status")]
        return {name: tuple(map(int, numbers)) for name, *numbers in fields}
