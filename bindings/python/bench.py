#!/usr/bin/env python3
"""Compares loops with datagrams, pipes and names.   bench.py PACKAGE [ROW]...

PACKAGE is the directory where the package was built. The loops are asyncio's, uvloop if it is
installed, and this one. They take turns, and the least processor time of ROUNDS rounds counts, in
nanoseconds: user and system, of the whole process, for one operation.
"""

import asyncio
import os
import sys
import time

ROUNDS = 7


class Bouncing(asyncio.Protocol):
    """Sends back everything that it receives, until `left` is 0."""

    def __init__(self, left):
        self.left = left
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport

    def is_last(self):
        self.left -= 1
        if self.left == 0:
            self.done.set_result(None)
        return self.left <= 0

    def datagram_received(self, data, address):
        if not self.is_last():
            self.transport.sendto(data, address)

    def data_received(self, data):
        if not self.is_last():
            self.out.write(data)


class Answering(Bouncing):
    def is_last(self):
        return False


class Counting(Bouncing):
    def datagram_received(self, data, address):
        self.is_last()

    def data_received(self, data):
        self.left -= len(data)
        if self.left == 0:
            self.done.set_result(None)


async def datagrams(loop, protocol):
    transport, protocol = await loop.create_datagram_endpoint(
        lambda: protocol, local_addr=("127.0.0.1", 0))
    return transport, protocol, transport.get_extra_info("sockname")


async def pipe(loop, reading, writing):
    """Connects the two protocols by a pipe."""
    reader, writer = os.pipe()
    incoming, _ = await loop.connect_read_pipe(lambda: reading, os.fdopen(reader, "rb", 0))
    outgoing, _ = await loop.connect_write_pipe(lambda: writing, os.fdopen(writer, "wb", 0))
    return incoming, outgoing


async def udp_hop(loop):
    """One datagram between two endpoints."""
    count = 10000
    one, _, _ = await datagrams(loop, Answering(0))
    two, protocol, address = await datagrams(loop, Bouncing(count // 2))
    one.sendto(b"x" * 100, address)
    await protocol.done
    one.close()
    two.close()
    return count


async def udp_burst(loop):
    """One datagram of 50 that one endpoint sends and another answers."""
    count = 10000
    one, _, address = await datagrams(loop, Answering(0))
    two, protocol, _ = await datagrams(loop, Counting(count))
    left = count
    while left > 0:
        for _ in range(50):
            two.sendto(b"x" * 100, address)
        left -= 50
        while protocol.left > left:
            await asyncio.sleep(0)
    one.close()
    two.close()
    return count * 2


async def pipe_hop(loop):
    """100 bytes between two ends of pipes."""
    count = 10000
    one, two = Answering(0), Bouncing(count // 2)
    first = await pipe(loop, one, Answering(0))
    second = await pipe(loop, two, Answering(0))
    one.out, two.out = second[1], first[1]
    one.out.write(b"x" * 100)
    await two.done
    for transport in first + second:
        transport.close()
    return count


async def pipe_mib(loop):
    """1 MiB through a pipe."""
    count = 64
    protocol = Counting(count << 20)
    incoming, outgoing = await pipe(loop, protocol, Answering(0))
    for _ in range(count):
        outgoing.write(b"x" * (1 << 20))
    await protocol.done
    incoming.close()
    outgoing.close()
    return count


async def name(loop):
    """getaddrinfo() of an address."""
    count = 2000
    for _ in range(count):
        await loop.getaddrinfo("127.0.0.1", 80, type=1)
    return count


async def gather(loop):
    """One of 100 tasks that gather() awaits."""
    async def nothing():
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.gather(*[nothing() for _ in range(100)])
    return 5000


async def connect(loop):
    """A connection to a server of the same loop, opened and closed."""
    def close(reader, writer):
        writer.close()
    server = await asyncio.start_server(close, "127.0.0.1", 0)
    for _ in range(300):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await reader.read()
        writer.close()
        await writer.wait_closed()
    server.close()
    return 300


ROWS = (udp_hop, udp_burst, pipe_hop, pipe_mib, name, gather, connect)


def measure(factory, row):
    async def main():
        loop = asyncio.get_running_loop()
        begin = time.process_time()
        count = await row(loop)
        seconds = time.process_time() - begin
        await asyncio.sleep(0)
        return seconds / count * 1e9
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())


def main():
    sys.path.insert(0, sys.argv[1])
    import spate
    loops = {"asyncio": asyncio.SelectorEventLoop, "spate": spate.new_event_loop}
    try:
        import uvloop
        loops["uvloop"] = uvloop.new_event_loop
    except ImportError:
        pass
    print(f"{'':10}", *(f"{name:>10}" for name in loops), "  spate / uvloop")
    for row in ROWS:
        if sys.argv[2:] and row.__name__ not in sys.argv[2:]:
            continue
        least = dict.fromkeys(loops, float("inf"))
        for _ in range(ROUNDS):
            for name, factory in loops.items():
                least[name] = min(least[name], measure(factory, row))
        ratio = f"{least['spate'] / least['uvloop']:12.2f}" if "uvloop" in least else ""
        print(f"{row.__name__:10}", *(f"{value:10.0f}" for value in least.values()), ratio,
              flush=True)


if __name__ == "__main__":
    main()
