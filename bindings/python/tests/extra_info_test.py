"""Transports in each of their states: the extra info and the answers of methods are asyncio's."""

import asyncio
import contextlib
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

import spate
from certificates import make_contexts

KEYS = ("socket", "sockname", "peername", "sslcontext", "ssl_object", "peercert", "cipher",
        "compression", "pipe", "subprocess", "addr", "unknown")
METHODS = ("is_closing", "is_reading", "can_write_eof", "get_protocol", "get_write_buffer_size",
           "get_write_buffer_limits", "get_pid", "get_returncode")
SOCKET_CALLS = ("getsockname", "getpeername", "gettimeout", "fileno", "get_inheritable")
FULL = b"x" * (1 << 23)  # More than the kernel takes.


def result_of(call, *arguments):
    try:
        return kind_of(call(*arguments))
    except Exception as error:  # pylint: disable=broad-except
        return type(error).__name__


def kind_of(value):
    """Describes a value without what differs between two of its kind."""
    if isinstance(value, (asyncio.trsock.TransportSocket, socket.socket)):
        return (type(value).__name__, value.family, value.type, value.proto,
                *(result_of(getattr(value, name)) for name in SOCKET_CALLS))
    if isinstance(value, tuple):
        return tuple(kind_of(part) for part in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return "negative" if value < 0 else "integer"
    if hasattr(value, "closed") and hasattr(value, "fileno"):
        return type(value).__name__, value.closed
    if value is None or isinstance(value, bool):
        return value
    return type(value).__name__, bool(value) if isinstance(value, (str, bytes)) else None


def look_at(transport):
    """Returns the kinds of everything that a program can ask a transport for."""
    found = {key: result_of(transport.get_extra_info, key, "default") for key in KEYS}
    found["without default"] = result_of(transport.get_extra_info, "unknown")
    for name in METHODS:
        method = getattr(transport, name, None)
        found[name] = "missing" if method is None else result_of(method)
    return found


class Recorder(asyncio.Protocol, asyncio.DatagramProtocol, asyncio.SubprocessProtocol):
    """Looks at its transport in each call, or only from the state `first` on."""

    def __init__(self, seen, name, first="connection_made"):
        self.seen, self.name, self.first = seen, name, first
        loop = asyncio.get_running_loop()
        self.made, self.ended, self.lost = (loop.create_future() for _ in range(3))
        self.size = 0

    def look(self, state):
        if state == self.first:
            self.first = None
        if self.first is None:
            self.seen[self.name, state] = look_at(self.transport)

    def connection_made(self, transport):
        self.transport = transport
        self.look("connection_made")
        self.made.set_result(None)

    def data_received(self, data):
        self.size += len(data)

    def datagram_received(self, data, address):
        self.look("datagram_received")
        self.ended.set_result(None)

    def eof_received(self):
        self.look("eof_received")
        self.ended.set_result(None)
        return self.transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exception):
        self.look("connection_lost")
        self.seen[self.name, "exception"] = type(exception).__name__
        self.lost.set_result(None)

    async def gone(self):
        await self.lost
        for _ in range(4):
            await asyncio.sleep(0)
        self.look("gone")


class Opener:
    """Opens pairs of connected transports. `seen` gets the answers of both."""

    def __init__(self, seen, first, directory, contexts):
        self.seen, self.first, self.directory, self.contexts = seen, first, directory, contexts
        self.loop = asyncio.get_running_loop()

    def recorder(self, name):
        return Recorder(self.seen, name, self.first)

    async def pair(self, serve, connect):
        accepted = self.recorder("server")
        server = await serve(lambda: accepted)
        try:
            _, opened = await connect(lambda: self.recorder("client"),
                                      server.sockets[0].getsockname())
            await accepted.made
        finally:
            server.close()
        return opened, accepted

    async def tcp(self):
        return await self.pair(
            lambda factory: self.loop.create_server(factory, "127.0.0.1", 0),
            lambda factory, name: self.loop.create_connection(factory, *name))

    async def tcp_with_socket(self):
        async def connect(factory, name):
            sock = socket.create_connection(name)
            return await self.loop.create_connection(factory, sock=sock)
        return await self.pair(
            lambda factory: self.loop.create_server(factory, "127.0.0.1", 0), connect)

    async def tcp_by_name(self):
        return await self.pair(
            lambda factory: self.loop.create_server(factory, "localhost", 0,
                                                    family=socket.AF_INET),
            lambda factory, name: self.loop.create_connection(factory, "localhost", name[1]))

    async def unix(self):
        path = f"{self.directory}/unix"
        if os.path.exists(path):
            os.unlink(path)
        return await self.pair(
            lambda factory: self.loop.create_unix_server(factory, path),
            lambda factory, name: self.loop.create_unix_connection(factory, name))

    async def socketpair(self):
        protocols = []
        for name, sock in zip(("client", "server"), socket.socketpair()):
            _, protocol = await self.loop.create_connection(
                lambda name=name: self.recorder(name), sock=sock)
            protocols.append(protocol)
        return protocols

    async def tls(self):
        server, client = self.contexts
        return await self.pair(
            lambda factory: self.loop.create_server(factory, "127.0.0.1", 0, ssl=server),
            lambda factory, name: self.loop.create_connection(
                factory, *name, ssl=client, server_hostname="localhost"))

    async def start_tls(self):
        opened, accepted = await self.tcp()
        pairs = zip((opened, accepted), self.contexts[::-1])
        opened.transport, accepted.transport = await asyncio.gather(*(
            self.loop.start_tls(protocol.transport, protocol, context,
                                server_side=protocol is accepted,
                                server_hostname=None if protocol is accepted else "localhost")
            for protocol, context in pairs))
        return opened, accepted


STREAMS = ("tcp", "tcp_with_socket", "tcp_by_name", "unix", "socketpair")
SECURE = ("tls", "start_tls")


async def end_by_eof(opened, accepted):
    """One side sends its end, then the other."""
    opened.look("open")
    for ending, other in ((opened, accepted), (accepted, opened)):
        ending.transport.write_eof()
        ending.look("write_eof")
        await other.ended
        other.look("after the end")
    for protocol in (opened, accepted):
        protocol.transport.close()
        protocol.look("close")
        await protocol.gone()


async def end_by_close(opened, accepted):
    opened.look("open")
    opened.transport.close()
    opened.look("close")
    await opened.gone()
    await accepted.ended
    accepted.transport.close()
    await accepted.gone()
    opened.transport.close()
    opened.look("second close")


async def end_by_close_with_data(opened, accepted):
    accepted.transport.pause_reading()
    opened.transport.write(FULL)
    opened.look("full")
    opened.transport.close()
    opened.look("close")
    accepted.transport.resume_reading()
    await opened.gone()
    await accepted.ended
    accepted.transport.close()
    await accepted.gone()


async def end_by_abort(opened, accepted):
    opened.transport.abort()
    opened.look("abort")
    await opened.gone()
    accepted.transport.close()
    await accepted.gone()


def reset(transport):
    """Ends the connection so that the peer gets an error, also on a unix socket."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def end_by_reset(opened, accepted):
    accepted.transport.pause_reading()
    opened.transport.write(b"unread")
    await asyncio.sleep(0)
    reset(accepted.transport)
    await accepted.gone()
    await opened.gone()
    opened.transport.close()
    opened.look("close")
    with contextlib.suppress(AttributeError):  # asyncio's TLS raises it in Python 3.11.2.
        opened.transport.abort()
    opened.look("abort")


async def end_by_failed_write(opened, accepted):
    opened.transport.pause_reading()
    accepted.transport.abort()
    await accepted.gone()
    while not opened.lost.done():
        opened.transport.write(b"x")
        await asyncio.sleep(0)
    await opened.gone()
    opened.transport.write(b"x")
    opened.look("write")


async def datagrams(seen, directory, kind):
    loop = asyncio.get_running_loop()
    options = {"udp": {"local_addr": ("127.0.0.1", 0)},
               "unix": {"local_addr": f"{directory}/{os.urandom(8).hex()}",
                        "family": socket.AF_UNIX}}[kind]
    _, one = await loop.create_datagram_endpoint(lambda: Recorder(seen, "one"), **options)
    name = one.transport.get_extra_info("sockname")
    others = {"udp": {"remote_addr": name},
              "unix": {"remote_addr": name, "family": socket.AF_UNIX}}[kind]
    _, two = await loop.create_datagram_endpoint(lambda: Recorder(seen, "two"), **others)
    two.transport.sendto(b"packet")
    await one.ended
    one.look("open")
    one.transport.close()
    two.transport.abort()
    for protocol in (one, two):
        protocol.look("ending")
        await protocol.gone()


async def pipes(seen, ends):
    loop = asyncio.get_running_loop()
    if ends == "pipe":
        files = [os.fdopen(end, mode, 0) for end, mode in zip(os.pipe(), ("rb", "wb"))]
    else:
        files = socket.socketpair()
    _, reader = await loop.connect_read_pipe(lambda: Recorder(seen, "reader"), files[0])
    _, writer = await loop.connect_write_pipe(lambda: Recorder(seen, "writer"), files[1])
    for protocol in (reader, writer):
        protocol.look("open")
    writer.transport.write(FULL)
    writer.transport.close()
    writer.look("close")
    await writer.gone()
    await reader.ended
    reader.look("after the end")
    await reader.gone()


async def aborted_pipes(seen, closes_reader):
    loop = asyncio.get_running_loop()
    files = [os.fdopen(end, mode, 0) for end, mode in zip(os.pipe(), ("rb", "wb"))]
    _, reader = await loop.connect_read_pipe(lambda: Recorder(seen, "reader"), files[0])
    _, writer = await loop.connect_write_pipe(lambda: Recorder(seen, "writer"), files[1])
    first, second = (reader, writer) if closes_reader else (writer, reader)
    if closes_reader:
        first.transport.close()
    else:
        first.transport.abort()
    first.look("ending")
    await first.gone()
    await second.gone()


async def process(seen, is_killed):
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: Recorder(seen, "process"), sys.executable, "-c", "input()",
        stderr=subprocess.DEVNULL)
    ends = [transport.get_pipe_transport(fd) for fd in (0, 1)]

    def look(state):
        protocol.look(state)
        for number, end in enumerate(ends):
            seen[number, state] = look_at(end)
    look("open")
    if is_killed:
        transport.close()
        look("close")
    else:
        ends[0].write(b"\n")
    await protocol.lost
    await protocol.gone()
    look("gone")
    transport.close()
    look("second close")


async def server_sockets(seen):
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    sockets = server.sockets
    seen["open"] = kind_of(sockets)
    server.close()
    seen["closed"] = kind_of(server.sockets), kind_of(sockets)


SECURE_ENDINGS = (end_by_close, end_by_close_with_data, end_by_abort, end_by_reset)
ENDINGS = (*SECURE_ENDINGS, end_by_eof, end_by_failed_write)


class ExtraInfo(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = directory.name
        cls.contexts = None if shutil.which("openssl") is None else make_contexts()

    def answers(self, factory, scenario):
        seen = {}
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.get_loop().set_exception_handler(lambda loop, context: None)
            runner.run(scenario(seen))
        return {f"{where} {key}": value for where, answer in seen.items()
                for key, value in (answer.items() if isinstance(answer, dict)
                                   else [("", answer)])}

    def compare(self, scenario):
        stock = self.answers(asyncio.SelectorEventLoop, scenario)
        self.assertTrue(stock)
        ours = self.answers(spate.new_event_loop, scenario)
        different = {key: f"asyncio {stock.get(key)}, spate {ours.get(key)}"
                     for key in {**stock, **ours} if stock.get(key) != ours.get(key)}
        self.assertEqual(different, {})

    def compare_stream(self, kind, ending):
        # A transport that is asked late has nothing from earlier questions.
        for first in ("connection_made", "connection_lost", "gone"):
            async def scenario(seen, first=first):
                opener = Opener(seen, first, self.directory, self.contexts)
                await ending(*await getattr(opener, kind)())
            with self.subTest(kind=kind, ending=ending.__name__, first=first):
                self.compare(scenario)

    def test_streams_answer_as_asyncio_does_in_each_state(self):
        for kind in STREAMS:
            for ending in ENDINGS:
                self.compare_stream(kind, ending)

    @unittest.skipIf(shutil.which("openssl") is None, "there is no openssl")
    def test_tls_answers_as_asyncio_does_in_each_state(self):
        for kind in SECURE:
            for ending in SECURE_ENDINGS:
                self.compare_stream(kind, ending)

    def test_datagrams_answer_as_asyncio_does_in_each_state(self):
        for kind in ("udp", "unix"):
            with self.subTest(kind=kind):
                self.compare(lambda seen, kind=kind: datagrams(seen, self.directory, kind))

    def test_pipes_answer_as_asyncio_does_in_each_state(self):
        for ends in ("pipe", "socket"):
            with self.subTest(ends=ends):
                self.compare(lambda seen, ends=ends: pipes(seen, ends))
        for is_reader in (False, True):
            with self.subTest(is_reader=is_reader):
                self.compare(lambda seen, is_reader=is_reader: aborted_pipes(seen, is_reader))

    def test_processes_answer_as_asyncio_does_in_each_state(self):
        for is_killed in (False, True):
            with self.subTest(is_killed=is_killed):
                self.compare(lambda seen, is_killed=is_killed: process(seen, is_killed))

    def test_sockets_of_servers_are_those_of_asyncio(self):
        self.compare(server_sockets)


if __name__ == "__main__":
    unittest.main()
