#!/usr/bin/env python3
"""Sends back all that it receives, on a loop of asyncio: a server in the protocol of server.h.

--mode is how the program is written: protocol, buffered (BufferedProtocol), streams or sockets.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import loops  # noqa: E402

OPTIONS = loops.arguments(sys.argv[1:])

import asyncio  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import ssl  # noqa: E402

READ_SIZE = 64 * 1024


class Tally:
    received = accepted = closed = 0

    def report(self):
        print(f"tally {self.received} {self.accepted} {self.closed} 0 0 0", flush=True)


TALLY = Tally()


class Connection(asyncio.BaseProtocol):
    def connection_made(self, transport):
        self.transport = transport
        TALLY.accepted += 1

    def connection_lost(self, exception):
        TALLY.closed += 1


class Echo(Connection, asyncio.Protocol):
    def data_received(self, data):
        TALLY.received += len(data)
        self.transport.write(data)


class BufferedEcho(Connection, asyncio.BufferedProtocol):
    def __init__(self):
        self.buffer = memoryview(bytearray(READ_SIZE))

    def get_buffer(self, hint):
        return self.buffer

    def buffer_updated(self, count):
        TALLY.received += count
        self.transport.write(bytes(self.buffer[:count]))


async def echo_stream(reader, writer):
    TALLY.accepted += 1
    try:
        while data := await reader.read(READ_SIZE):
            TALLY.received += len(data)
            writer.write(data)
    except ConnectionError:
        pass
    TALLY.closed += 1
    writer.close()


async def echo_socket(loop, sock):
    TALLY.accepted += 1
    with sock:
        try:
            while data := await loop.sock_recv(sock, READ_SIZE):
                TALLY.received += len(data)
                await loop.sock_sendall(sock, data)
        except ConnectionError:
            pass
    TALLY.closed += 1


async def accept_all(loop, listener):
    tasks = set()
    while True:
        sock, _ = await loop.sock_accept(listener)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = loop.create_task(echo_socket(loop, sock))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def context_of(options):
    """Returns the context of a server of TLS; None without a certificate."""
    if "chain" not in options:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options["chain"], options["key"])
    return context


async def serve(loop, mode, listener, context):
    if mode == "sockets":
        return loop.create_task(accept_all(loop, listener))
    if mode == "streams":
        return await asyncio.start_server(echo_stream, sock=listener, ssl=context)
    return await loop.create_server(Echo if mode == "protocol" else BufferedEcho, sock=listener,
                                    ssl=context)


def on_end():
    TALLY.report()
    os._exit(0)


async def main(options):
    loop = asyncio.get_running_loop()
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    port = listener.getsockname()[1]  # Some loops take the descriptor over.
    serving = await serve(loop, options.get("mode", "protocol"), listener, context_of(options))
    loop.add_signal_handler(signal.SIGUSR1, TALLY.report)
    loop.add_signal_handler(signal.SIGTERM, on_end)
    print("ready", os.getpid(), port, flush=True)
    await loop.create_future()
    return serving


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loops.factory_of(OPTIONS)) as runner:
        runner.run(main(OPTIONS))
