"""A small DNS client, over UDP and over TCP (RFC 1035, RFC 5936)."""

import socket
import struct

TYPES = {"A": 1, "NS": 2, "SOA": 6, "TXT": 16, "AAAA": 28, "AXFR": 252}
NAMES = {number: name for name, number in TYPES.items()}
TRUNCATED = 0x0200
RESPONSE = 0x8000
RECURSION_DESIRED = 0x0100
ANSWER_SECONDS = 20


class WrongAnswer(AssertionError):
    """A response that does not match its query, or is malformed."""


def pack_name(name):
    labels = [label.encode() for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def question(name, kind, identifier, flags=RECURSION_DESIRED):
    return (struct.pack(">6H", identifier, flags, 1, 0, 0, 0) + pack_name(name)
            + struct.pack(">2H", TYPES[kind], 1))


class Message:
    """A parsed message. `answers` are (name, type, data as dig shows it)."""

    def __init__(self, data):
        self.data_ = data
        self.position_ = 12
        self.identifier, self.flags, questions, answers, _, _ = struct.unpack(">6H", data[:12])
        self.code = self.flags & 15
        self.questions = [self.question_() for _ in range(questions)]
        self.answers = [self.record_() for _ in range(answers)]

    def is_truncated(self):
        return bool(self.flags & TRUNCATED)

    def numbers_(self, layout):
        values = struct.unpack_from(layout, self.data_, self.position_)
        self.position_ += struct.calcsize(layout)
        return values

    def name_(self):
        name, self.position_ = self.name_at_(self.position_)
        return name

    def name_at_(self, position):
        """Returns (the name, where it ends); a compression pointer ends it."""
        labels = []
        while True:
            size = self.data_[position]
            if size >= 0xc0:
                earlier = struct.unpack_from(">H", self.data_, position)[0] & 0x3fff
                if earlier >= position:
                    raise WrongAnswer("a name that points forward")
                return ".".join(labels + [self.name_at_(earlier)[0]]).rstrip("."), position + 2
            position += 1
            if size == 0:
                return ".".join(labels), position
            labels.append(self.data_[position:position + size].decode().lower())
            position += size

    def question_(self):
        name = self.name_()
        kind, _ = self.numbers_(">2H")
        return name, NAMES.get(kind, kind)

    def record_(self):
        name = self.name_()
        kind, _, _, size = self.numbers_(">2HLH")
        start = self.position_
        self.position_ += size
        return name, NAMES.get(kind, kind), self.shown_(NAMES.get(kind), start, size)

    def shown_(self, kind, start, size):
        data = self.data_[start:start + size]
        if kind == "A":
            return socket.inet_ntop(socket.AF_INET, data)
        if kind == "AAAA":
            return socket.inet_ntop(socket.AF_INET6, data)
        if kind == "TXT":
            return data[1:1 + data[0]].decode()
        if kind == "NS":
            return self.name_at_(start)[0]
        if kind == "SOA":
            return struct.unpack(">L", data[-20:-16])[0]
        return data


class Client:
    """One socket. Checks that each response matches its query; they may come in any order.

    may_lose: the server may lose datagrams, so that a query is sent again after a second.
    """

    def __init__(self, port, tcp=False, may_lose=False):
        self.tcp_ = tcp
        self.tries_ = ANSWER_SECONDS if may_lose and not tcp else 1
        self.last_ = 0
        self.asked_ = {}
        self.buffer_ = b""
        self.socket_ = socket.socket(type=socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
        self.socket_.settimeout(ANSWER_SECONDS / self.tries_)
        self.socket_.connect(("127.0.0.1", int(port)))
        if tcp:
            self.socket_.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket_.close()

    def send(self, data):
        self.socket_.sendall(struct.pack(">H", len(data)) + data if self.tcp_ else data)

    def exactly_(self, count):
        while len(self.buffer_) < count:
            data = self.socket_.recv(65536)
            if not data:
                raise ConnectionResetError("the connection ended within a message")
            self.buffer_ += data
        data, self.buffer_ = self.buffer_[:count], self.buffer_[count:]
        return data

    def receive(self):
        if not self.tcp_:
            return Message(self.socket_.recv(65536))
        return Message(self.exactly_(struct.unpack(">H", self.exactly_(2))[0]))

    def ask(self, name, kind="A"):
        return self.ask_all([(name, kind)])[0]

    def ask_all(self, questions):
        """Sends all queries at once, and returns the responses in the order of the queries."""
        numbers = [self.number_() for _ in questions]
        waiting = dict(zip(numbers, questions))
        self.asked_.update(waiting)
        answers = {}
        for left in range(self.tries_, 0, -1):
            for number, (name, kind) in waiting.items():
                self.send(question(name, kind, number))
            try:
                while waiting:
                    self.take_(waiting, answers)
            except TimeoutError as error:
                if left == 1:
                    lost = sorted(waiting.values())
                    raise TimeoutError(f"no answer to {len(lost)}: {lost[:5]}") from error
        return [answers[number] for number in numbers]

    def number_(self):
        self.last_ = (self.last_ + 1) % 65536
        return self.last_

    def take_(self, waiting, answers):
        message = self.receive()
        expected = self.asked_.get(message.identifier)
        if not message.flags & RESPONSE or message.questions != [expected]:
            raise WrongAnswer(f"an answer to {message.questions}, not to {expected}")
        # Otherwise the query was repeated, and both were answered.
        if message.identifier in waiting:
            del waiting[message.identifier]
            answers[message.identifier] = message

    def transfer(self, zone):
        """Returns all records of a zone (AXFR) except the final SOA."""
        number = self.number_()
        self.send(question(zone, "AXFR", number, flags=0))
        records = []
        while len(records) < 2 or records[-1][1] != "SOA":
            message = self.receive()
            if message.identifier != number or message.code != 0:
                raise WrongAnswer(f"transfer: number {message.identifier}, code {message.code}")
            records += message.answers
        return records[:-1]
