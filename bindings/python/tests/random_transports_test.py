"""Random programs with datagrams and pipes, on asyncio's loop and on this one.

A seed makes a program. Both loops run it, and each transport must call its protocol with the same
arguments in the same order. Every method must return the same, or raise the same.
Environment: SPATE_SEEDS=FIRST-LAST runs other seeds.
"""

import asyncio
import gc
import os
import random
import socket
import tempfile
import unittest
import warnings
import weakref

import spate

FIRST, LAST = map(int, os.environ.get("SPATE_SEEDS", "1-60").split("-"))
STEPS = 40
INTERNET, SIX, PATH = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
# The first byte of a datagram is an order for the protocol that receives it.
ORDERS = b"....RRXCP"


def describe(exception):
    if exception is None:
        return None
    return type(exception).__name__, getattr(exception, "errno", None)


def call(function, *arguments):
    try:
        return function(*arguments)
    except Exception as exception:  # It is compared.
        return describe(exception)


class Recorder(asyncio.Protocol):
    """Records the calls of a transport. Consecutive data of a stream is one event."""

    def __init__(self, program):
        self.program = program
        self.events = []
        self.closes_after = self.pauses_after = self.raises_after = None
        self.size = 0

    def connection_made(self, transport):
        self.events.append(("made",))

    def connection_lost(self, exception):
        self.events.append(("lost", describe(exception)))

    def pause_writing(self):
        self.events.append(("pause",))

    def resume_writing(self):
        self.events.append(("resume",))

    def eof_received(self):
        self.events.append(("eof",))

    def data_received(self, data):
        self.size += len(data)
        if self.events[-1][0] == "data":
            self.events[-1][1].extend(data)
        else:
            self.events.append(("data", bytearray(data)))
        self.react(len(data))

    def react(self, size):
        if self.closes_after is not None and size > self.closes_after:
            self.transport.close()
        if self.pauses_after is not None and size > self.pauses_after:
            self.pauses_after = None
            self.transport.pause_reading()
        if self.raises_after is not None and size > self.raises_after:
            self.raises_after = None
            raise ValueError("data_received")


class DatagramRecorder(Recorder):
    def datagram_received(self, data, address):
        self.events.append(("datagram", data, self.program.name_of(address)))
        order = data[:1]
        if order == b"R":
            self.transport.sendto(b"." + data, address)
        elif order == b"X":
            raise ValueError("datagram_received")
        elif order == b"C":
            self.transport.close()
        elif order == b"P":
            self.transport.pause_reading()

    def error_received(self, exception):
        self.events.append(("error", describe(exception)))


class Program:
    """The part that programs with datagrams and with pipes share."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.results = []
        self.protocols = []
        self.transports = []
        self.reported = []

    async def run(self):
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(
            lambda loop, context: self.reported.append(describe(context.get("exception"))))
        self.barrier = socket.socketpair()
        self.barrier[1].send(b"readable")
        try:
            await self.open()
            for _ in range(STEPS):
                self.step()
                if self.random.random() < 0.5:
                    await self.settle()
                    self.results.append([self.state_of(one) for one in self.transports])
            for transport in self.transports:
                call(transport.resume_reading)  # A write end has no such method.
                transport.close()
            self.close()
            await self.settle()
        finally:
            for end in self.barrier:
                end.close()
        return self.outcome()

    def record(self, name, *arguments):
        self.results.append((name, *arguments))

    def state_of(self, transport):
        state = [transport.is_closing()]
        for method in ("get_write_buffer_size", "get_write_buffer_limits", "is_reading"):
            if hasattr(transport, method):
                state.append(call(getattr(transport, method)))
        return state

    def snapshot(self):
        return ([(len(protocol.events), protocol.size) for protocol in self.protocols],
                len(self.reported),
                [self.state_of(transport) for transport in self.transports])

    async def look(self):
        """Returns after the loop has polled the kernel and called the ready callbacks."""
        seen = self.loop.create_future()
        self.loop.add_reader(self.barrier[0], lambda: seen.done() or seen.set_result(None))
        await seen
        self.loop.remove_reader(self.barrier[0])
        await asyncio.sleep(0)

    async def settle(self):
        """Returns when the loop has looked at the kernel several times, and nothing happened."""
        quiet, before = 0, None
        while quiet < 4:
            await self.look()
            after = self.snapshot()
            quiet = quiet + 1 if after == before else 0
            before = after

    def outcome(self):
        names = {name for protocol in self.protocols for event in protocol.events
                 for name in (event[0], repr(event[-1]) if event[0] in ("lost", "error") else None)}
        return {"results": self.results, "reported": sorted(map(str, self.reported)),
                "names": names,
                "events": [self.order(protocol.events) for protocol in self.protocols]}

    def order(self, events):
        return events


class Datagrams(Program):
    async def open(self):
        self.names = {}
        self.addresses = []
        self.endpoints = []
        self.directory = tempfile.TemporaryDirectory()
        for index in range(self.random.randint(2, 6)):
            await self.open_one(self.random.choice((INTERNET, INTERNET, PATH, PATH, SIX)))

    async def open_one(self, family):
        sock = socket.socket(family, socket.SOCK_DGRAM)
        path = f"{self.directory.name}/{len(self.endpoints)}"
        sock.bind({INTERNET: ("127.0.0.1", 0), SIX: ("::1", 0), PATH: path}[family])
        targets = [address for address, other in self.addresses if other == family]
        if targets and self.random.random() < 0.5:
            # A connected unix socket accepts datagrams of its peer only.
            self.record("connect", call(sock.connect, self.random.choice(targets)) is None)
        await self.add(sock)

    async def add(self, sock):
        sock.setblocking(False)
        address = sock.getsockname()
        index = len(self.endpoints)
        self.names[address] = index
        self.addresses.append((address, sock.family))
        protocol = DatagramRecorder(self)
        transport, _ = await self.loop.create_datagram_endpoint(lambda: protocol, sock=sock)
        protocol.transport = transport
        self.protocols.append(protocol)
        self.transports.append(transport)
        self.endpoints.append((transport, sock.family))

    def name_of(self, address):
        return self.names.get(address, address)

    def payload(self):
        data = bytes([self.random.choice(ORDERS)]) + self.random.randbytes(
            self.random.choice((0, 3, 100, 4000, 30000)))
        kind = self.random.choice((bytes, bytes, bytes, bytearray, memoryview, str, "empty"))
        if kind == "empty":
            return b""
        return "text" if kind is str else kind(data)

    def target(self, family):
        choice = self.random.random()
        if choice < 0.25:
            return ()
        if choice < 0.3:
            return (None,)
        if choice < 0.35:
            return (("127.0.0.1", 70000),)
        if choice < 0.4:
            return (("127.0.0.1", "1"),)
        if choice < 0.45:
            return (5,)
        address, other = self.random.choice(self.addresses)
        if other != family and self.random.random() < 0.9:
            return self.target(family)
        return (address,)

    def step(self):
        transport, family = self.random.choice(self.endpoints)
        choice = self.random.random()
        if choice < 0.7:
            for _ in range(self.random.choice((1, 1, 1, 5, 25))):
                self.record("send", call(transport.sendto, self.payload(), *self.target(family)))
        elif choice < 0.78:
            self.record("pause", call(transport.pause_reading))
        elif choice < 0.88:
            self.record("resume", call(transport.resume_reading))
        elif choice < 0.94:
            limits = self.random.choice(((0, None), (1000, None), (100000, 5), (1, 2), (None, 7)))
            self.record("limits", call(transport.set_write_buffer_limits, *limits))
        elif choice < 0.97:
            peer = transport.get_extra_info("peername")
            self.record("peer", self.name_of(peer) if peer else peer)
        elif choice < 0.985:
            self.record("close", call(transport.close))
        else:
            self.record("abort", call(transport.abort))

    def close(self):
        self.directory.cleanup()

    def order(self, events):
        # Answers of several peers may arrive in any order, so those of each are compared.
        peers = {}
        for event in events:
            if event[0] == "datagram" and event[1][:2] == b".R":
                peers.setdefault(event[2], []).append(event)
        return [one for one in events if one[0] != "datagram" or one[1][:2] != b".R"], peers


class Pipes(Program):
    async def open(self):
        self.ends = []
        for _ in range(self.random.randint(1, 3)):
            await self.open_one()

    async def open_one(self):
        if self.random.random() < 0.7:
            reader, writer = os.pipe()
        else:
            reader, writer = (end.detach() for end in socket.socketpair())
        way = self.random.choice(("read", "write", "both"))
        raw = None
        if way == "read":
            raw = writer
        elif way == "write":
            raw = reader
        if raw is not None:
            os.set_blocking(raw, False)
        raw = {"fd": raw, "reads": way == "write"}
        if way != "write":
            protocol = await self.connect(self.loop.connect_read_pipe, reader, "rb", raw)
            if way == "read" and self.random.random() < 0.5:
                name = self.random.choice(("closes_after", "pauses_after", "raises_after"))
                setattr(protocol, name, self.random.choice((0, 5000, 100000)))
        if way != "read":
            await self.connect(self.loop.connect_write_pipe, writer, "wb", raw)

    async def connect(self, method, fd, mode, raw):
        protocol = Recorder(self)
        transport, _ = await method(lambda: protocol, os.fdopen(fd, mode, 0))
        protocol.transport = transport
        self.protocols.append(protocol)
        self.transports.append(transport)
        self.ends.append((transport, raw))
        return protocol

    def payload(self):
        data = self.random.randbytes(self.random.choice((0, 1, 100, 4096, 70000, 200000)))
        kind = self.random.choice((bytes, bytes, bytearray, memoryview, str))
        return "text" if kind is str else kind(data)

    def step(self):
        transport, raw = self.random.choice(self.ends)
        if self.random.random() < 0.4:
            self.step_raw(raw)
        elif hasattr(transport, "write"):
            self.step_writer(transport)
        else:
            self.step_reader(transport)

    def step_raw(self, raw):
        fd = raw["fd"]
        if fd is None:
            return
        if self.random.random() < 0.08:
            os.close(fd)
            raw["fd"] = None
        elif raw["reads"]:
            data = call(os.read, fd, self.random.choice((1, 5000, 300000)))
            self.record("raw read", data)
        else:
            self.record("raw write", call(os.write, fd, self.random.randbytes(
                self.random.choice((1, 4000, 60000)))))

    def step_writer(self, transport):
        choice = self.random.random()
        if choice < 0.75:
            for _ in range(self.random.choice((1, 1, 2, 8))):
                self.record("write", call(transport.write, self.payload()))
        elif choice < 0.9:
            limits = self.random.choice(((0, None), (1000, None), (100000, 5), (1, 2), (None, 7)))
            self.record("limits", call(transport.set_write_buffer_limits, *limits))
        elif choice < 0.95:
            pieces = [b"a", b"", b"b" * 5000]
            self.record("lines", call(transport.writelines, pieces))
        else:
            method = self.random.choice(("write_eof", "close", "abort"))
            self.record(method, call(getattr(transport, method)))

    def step_reader(self, transport):
        choice = self.random.random()
        if choice < 0.45:
            self.record("pause", call(transport.pause_reading))
        elif choice < 0.95:
            self.record("resume", call(transport.resume_reading))
        else:
            self.record("close", call(transport.close))

    def close(self):
        for _, raw in self.ends:
            if raw["fd"] is not None:
                os.close(raw["fd"])
                raw["fd"] = None


def run_on(factory, make, seed):
    """Returns the outcome of the seed's program, and how many transports outlive it."""
    with asyncio.Runner(debug=False, loop_factory=factory) as runner:
        program = make(seed)
        outcome = runner.run(program.run())
        weak = [weakref.ref(transport) for transport in program.transports]
        outcome["closed"] = [protocol.events[-1][0] for protocol in program.protocols]
        program.transports = program.protocols = program.ends = program.endpoints = None
        del program
        gc.collect()
        outcome["left"] = sum(one() is not None for one in weak)
    return outcome


class RandomTransports(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        warnings.simplefilter("ignore", ResourceWarning)

    def compare(self, make):
        names = set()
        for seed in range(FIRST, LAST + 1):
            expected = run_on(asyncio.SelectorEventLoop, make, seed)
            found = run_on(spate.new_event_loop, make, seed)
            for part in expected:
                self.assertEqual(found[part], expected[part], f"seed {seed}, {part}")
            names.update(expected["names"])
        return names

    def check_that_all_happened(self, found, expected):
        if LAST - FIRST >= 50:
            self.assertEqual(set(expected) - found, set())

    def test_datagrams_cause_the_same_events(self):
        names = self.compare(Datagrams)
        self.check_that_all_happened(names, ("datagram", "error", "pause", "resume", "lost"))

    def test_pipes_cause_the_same_events(self):
        names = self.compare(Pipes)
        self.check_that_all_happened(names, ("data", "eof", "pause", "resume", "lost",
                                              "('BrokenPipeError', 32)"))


if __name__ == "__main__":
    unittest.main()
