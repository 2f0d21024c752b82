#!/usr/bin/env python3
"""Loops inside of one process: callbacks, timers, tasks, descriptors, sockets.

Each row measures the processor time of this process, and returns the amount of work.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import loops  # noqa: E402

OPTIONS = loops.arguments(sys.argv[1:])

import asyncio  # noqa: E402
import gc  # noqa: E402
import socket  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

ROWS = []
# Rows that do not end on a loop.
ENDLESS = {"rloop": ("connection",)}


def row(divisor=1):
    """Makes the function a row of count / divisor operations. It returns the number."""
    def add(function):
        ROWS.append((function.__name__, divisor, function))
        return function
    return add


class Counter:
    """Counts its calls, and fulfils a future at the last one."""

    def __init__(self, loop, most):
        self.calls, self.most, self.done = 0, most, loop.create_future()

    def __call__(self, *_):
        self.calls += 1
        if self.calls == self.most:
            self.done.set_result(None)


class Clock:
    """Takes the time between start() and stop()."""

    def start(self):
        gc.collect()
        self.began = time.process_time_ns()

    def stop(self):
        self.ns = time.process_time_ns() - self.began


@row()
async def call_soon(loop, count, clock):
    counter = Counter(loop, count)
    clock.start()
    for _ in range(count):
        loop.call_soon(counter)
    clock.stop()
    await counter.done
    return counter.calls


@row()
async def callback(loop, count, clock):
    counter = Counter(loop, count)
    for _ in range(count):
        loop.call_soon(counter)
    clock.start()
    await counter.done
    clock.stop()
    return counter.calls


@row()
async def callback_with_arguments(loop, count, clock):
    counter = Counter(loop, count)
    clock.start()
    for _ in range(count):
        loop.call_soon(counter, 1, 2, 3)
    await counter.done
    clock.stop()
    return counter.calls


@row()
async def timer_cancelled(loop, count, clock):
    clock.start()
    for _ in range(count):
        loop.call_later(30, print).cancel()
    clock.stop()
    return count


@row()
async def timer_among_many(loop, count, clock):
    clock.start()
    timers = [loop.call_later(30 + i * 7919 % 1000, print) for i in range(count)]
    for timer in timers:
        timer.cancel()
    clock.stop()
    return len(timers)


@row(2)
async def timer_expired(loop, count, clock):
    counter = Counter(loop, count)
    clock.start()
    for _ in range(count):
        loop.call_later(0.0001, counter)
    await counter.done
    clock.stop()
    return counter.calls


@row(2)
async def call_from_thread(loop, count, clock):
    counter = Counter(loop, count)

    def post():
        for _ in range(count):
            loop.call_soon_threadsafe(counter)
    thread = threading.Thread(target=post)
    clock.start()
    thread.start()
    await counter.done
    clock.stop()
    thread.join()
    return counter.calls


@row(2)
async def sleep_zero(loop, count, clock):
    clock.start()
    for _ in range(count):
        await asyncio.sleep(0)
    clock.stop()
    return count


@row(4)
async def task(loop, count, clock):
    async def one():
        return 1
    done = 0
    clock.start()
    for _ in range(count):
        done += await loop.create_task(one())
    clock.stop()
    return done


@row(2)
async def future(loop, count, clock):
    done = 0
    clock.start()
    for _ in range(count):
        waiting = loop.create_future()
        loop.call_soon(waiting.set_result, 1)
        done += await waiting
    clock.stop()
    return done


@row(4)
async def task_of_gather(loop, count, clock):
    async def one():
        await asyncio.sleep(0)
        return 1
    done = 0
    clock.start()
    for _ in range(count // 50):
        done += sum(await asyncio.gather(*[one() for _ in range(50)]))
    clock.stop()
    return done


def non_blocking_pair():
    pair = socket.socketpair()
    for end in pair:
        end.setblocking(False)
    return pair


@row(4)
async def reader_added_and_removed(loop, count, clock):
    ours, theirs = non_blocking_pair()
    removed = 0
    clock.start()
    for _ in range(count):
        loop.add_reader(ours.fileno(), print)
        loop.remove_reader(ours.fileno())
        removed += 1
    clock.stop()
    ours.close()
    theirs.close()
    return removed


@row(8)
async def reader_hop(loop, count, clock):
    pair = non_blocking_pair()
    counter = Counter(loop, count)

    def hop(end):
        end.recv(10)
        counter()
        if counter.calls < count:
            end.send(b"x")
    for end in pair:
        loop.add_reader(end.fileno(), hop, end)
    clock.start()
    pair[0].send(b"x")
    await counter.done
    clock.stop()
    for end in pair:
        loop.remove_reader(end.fileno())
        end.close()
    return counter.calls


@row(16)
async def socket_hop(loop, count, clock):
    ours, theirs = non_blocking_pair()
    hops = 0

    async def answer():
        for _ in range(count // 2):
            await loop.sock_sendall(theirs, await loop.sock_recv(theirs, 10))
    answering = loop.create_task(answer())
    clock.start()
    for _ in range(count // 2):
        await loop.sock_sendall(ours, b"x")
        hops += 2 * len(await loop.sock_recv(ours, 10))
    await answering
    clock.stop()
    ours.close()
    theirs.close()
    return hops


@row(8)
async def stream_hop(loop, count, clock):
    async def answer(reader, writer):
        while data := await reader.read(10):
            writer.write(data)
        writer.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    hops = 0
    clock.start()
    for _ in range(count // 2):
        writer.write(b"x")
        hops += 2 * len(await reader.readexactly(1))
    clock.stop()
    writer.close()
    await writer.wait_closed()
    server.close()
    return hops


class Bouncing(asyncio.DatagramProtocol):
    def __init__(self, counter):
        self.counter = counter

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.counter()
        if self.counter.calls < self.counter.most:
            self.transport.sendto(data, address)


@row(8)
async def datagram_hop(loop, count, clock):
    counter = Counter(loop, count)
    ends = [await loop.create_datagram_endpoint(lambda: Bouncing(counter),
                                                local_addr=("127.0.0.1", 0)) for _ in range(2)]
    clock.start()
    ends[0][0].sendto(b"x" * 100, ends[1][0].get_extra_info("sockname"))
    await counter.done
    clock.stop()
    for transport, _ in ends:
        transport.close()
    return counter.calls


@row(40)
async def address_looked_up(loop, count, clock):
    found = 0
    clock.start()
    for _ in range(count):
        found += len(await loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM))
    clock.stop()
    return found


@row(100)
async def connection(loop, count, clock):
    def close(reader, writer):
        writer.close()
    server = await asyncio.start_server(close, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    ended = 0
    clock.start()
    for _ in range(count):
        reader, writer = await asyncio.open_connection(*address)
        ended += await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    clock.stop()
    server.close()
    return ended


@row(40)
async def executor_call(loop, count, clock):
    done = 0
    clock.start()
    for _ in range(count):
        done += await loop.run_in_executor(None, int, 1)
    clock.stop()
    return done


def run(factory, name, function, count, is_checked):
    """Runs a row. A loop that lacks what the row needs has no figure."""
    clock = Clock()

    async def main():
        return await function(asyncio.get_running_loop(), count, clock)
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            done = runner.run(main())
        except NotImplementedError:
            return
    if is_checked:
        loops.report(work=name, value=done)
    else:
        loops.report(metric=f"{name}_ns", unit="ns", value=clock.ns / count)


def main():
    factory = loops.factory_of(OPTIONS)
    for name, divisor, function in ROWS:
        if name in ENDLESS.get(OPTIONS["loop"], ()):
            continue
        count = max(100, int(OPTIONS["operations"]) // divisor) // 100 * 100
        run(factory, name, function, count, OPTIONS.get("verify") == "1")


if __name__ == "__main__":
    main()
