"""Datagrams and pipes: what random programs do not cover."""

import asyncio
import errno
import gc
import os
import socket
import sys
import tempfile
import unittest

import spate
from spate import _core, loop as loop_module
from loop_case import LoopCase


# Older Pythons inherit a function that raises NotImplementedError.
PAUSES = asyncio.selector_events._SelectorDatagramTransport.pause_reading \
    is not asyncio.ReadTransport.pause_reading


class Recorder(asyncio.Protocol):
    def __init__(self):
        self.received = []
        self.errors = []
        self.lost = asyncio.get_running_loop().create_future()
        self.react = lambda: None

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.received.append((data, address))
        self.react()

    def data_received(self, data):
        self.received.append(data)
        self.react()

    def error_received(self, exception):
        self.errors.append(exception)

    def connection_lost(self, exception):
        self.lost.set_result(exception)


class Case(LoopCase):
    async def bound(self, address=("127.0.0.1", 0), **options):
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_datagram_endpoint(
            Recorder, local_addr=address, **options)
        self.addCleanup(transport.close)
        return transport, protocol, transport.get_extra_info("sockname")


class Datagrams(Case):
    async def test_burst_arrives_in_order(self):
        sender, _, _ = await self.bound()
        _, protocol, address = await self.bound()
        for round_ in range(5):
            sent = [b"%d" % number for number in range(50)]
            for data in sent:
                sender.sendto(data, address)
            await self.until(lambda: len(protocol.received) >= len(sent))
            self.assertEqual([data for data, _ in protocol.received], sent)
            protocol.received.clear()

    async def burst(self):
        """Returns a transport that expects bursts, its protocol, and a function that sends one."""
        sender, _, _ = await self.bound()
        transport, protocol, address = await self.bound()

        def send():
            for _ in range(20):
                sender.sendto(b"x", address)
        for _ in range(3):
            send()
            await self.until(lambda: len(protocol.received) == 20)
            protocol.received.clear()
        return transport, protocol, send

    @unittest.skipUnless(PAUSES, "asyncio's datagram transports of this Python cannot pause")
    async def test_burst_ends_when_the_protocol_pauses(self):
        transport, protocol, send = await self.burst()
        protocol.react = transport.pause_reading
        send()
        await self.until(lambda: protocol.received)
        await asyncio.sleep(0.01)
        self.assertEqual(len(protocol.received), 1)
        protocol.react = lambda: None
        transport.resume_reading()
        await self.until(lambda: len(protocol.received) == 20)

    async def test_burst_ends_when_the_protocol_closes(self):
        transport, protocol, send = await self.burst()
        protocol.react = transport.close
        send()
        await protocol.lost
        self.assertEqual(len(protocol.received), 1)

    async def test_tuple_of_the_sender_is_canonical(self):
        transport, protocol, address = await self.bound(("::1", 0))
        transport.sendto(b"x", ("0:0::1", address[1]))
        transport.sendto(b"x", ("0:0::1", address[1]))
        await self.until(lambda: len(protocol.received) == 2)
        self.assertEqual(protocol.received, [(b"x", ("::1", address[1], 0, 0))] * 2)

    async def test_port_of_many_peers_is_told_apart(self):
        transport, protocol, address = await self.bound()
        others = [await self.bound() for _ in range(20)]
        for other, _, name in others:
            other.sendto(repr(name).encode(), address)
        await self.until(lambda: len(protocol.received) == len(others))
        for data, name in protocol.received:
            self.assertEqual(data, repr(name).encode())
            transport.sendto(data, name)
        for _, other, name in others:
            await self.until(lambda: other.received)
            self.assertEqual(other.received, [(repr(name).encode(), address)])

    async def test_name_is_resolved_as_asyncio_does(self):
        transport, protocol, address = await self.bound()
        transport.sendto(b"x", ("localhost", address[1]))
        await self.until(lambda: protocol.received)
        self.assertEqual(protocol.received, [(b"x", address)])

    async def test_too_long_datagram_is_an_error_of_the_protocol(self):
        transport, protocol, address = await self.bound()
        transport.sendto(b"x" * 70000, address)
        self.assertEqual([error.errno for error in protocol.errors], [errno.EMSGSIZE])

    async def test_memory_that_is_not_contiguous_ends_the_transport(self):
        reported, loop = [], asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        transport, protocol, address = await self.bound()
        transport.sendto(memoryview(b"a-b-c-")[::2], address)
        self.assertIsInstance(await protocol.lost, BufferError)
        self.assertIs(reported[0]["transport"], transport)

    async def test_sending_raises_the_audit_event_of_the_socket(self):
        transport, _, address = await self.bound()
        events = []
        is_on = True

        def hook(name, arguments):
            if is_on and name == "socket.sendto":
                events.append(arguments[1])
        sys.addaudithook(hook)
        transport.sendto(b"x", address)
        is_on = False
        self.assertEqual(events, [address])

    async def test_abstract_address_of_the_sender_is_bytes(self):
        loop = asyncio.get_running_loop()
        ends = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        names = [b"\0spate-%d-%d" % (os.getpid(), number) for number in range(2)]
        for end, name in zip(ends, names):
            end.bind(name)
            end.setblocking(False)
        ends[0].sendto(b"x", names[1])
        transport, protocol = await loop.create_datagram_endpoint(Recorder, sock=ends[1])
        await self.until(lambda: protocol.received)
        self.assertEqual(protocol.received, [(b"x", names[0])])
        transport.close()
        ends[0].close()

    async def test_sender_without_a_name_is_none(self):
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryDirectory() as directory:
            transport, protocol = await loop.create_datagram_endpoint(
                Recorder, local_addr=directory + "/name", family=socket.AF_UNIX)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"x", directory + "/name")
            await self.until(lambda: protocol.received)
            self.assertEqual(protocol.received, [(b"x", None)])
            transport.close()

    async def test_debug_mode_uses_the_methods_of_asyncio(self):
        asyncio.get_running_loop().set_debug(True)
        transport, protocol, address = await self.bound()
        transport.sendto(b"x", address)
        await self.until(lambda: protocol.received)
        self.assertEqual(protocol.received, [(b"x", address)])
        asyncio.get_running_loop().set_debug(False)

    async def test_hundred_thousand_datagrams_leave_nothing(self):
        sender, _, _ = await self.bound()
        _, protocol, address = await self.bound()

        async def exchange(count):
            for _ in range(count):
                for _ in range(50):
                    sender.sendto(b"datagram", address)
                while len(protocol.received) < 50:
                    await asyncio.sleep(0)
                protocol.received.clear()
            gc.collect()
            return sys.getallocatedblocks()
        before = await exchange(200)
        self.assertLess(await exchange(2000) - before, 400)


class StoppedLoop(unittest.TestCase):
    def test_rest_of_a_burst_is_left_to_the_next_run(self):
        loop = spate.new_event_loop()
        transport, protocol = loop.run_until_complete(self.open(loop))
        address = transport.get_extra_info("sockname")

        def send(count):
            protocol.received.clear()
            for _ in range(count):
                transport.sendto(b"x", address)

        async def receive(count):
            while len(protocol.received) < count:
                await asyncio.sleep(0)
        for _ in range(20):  # Now the transport expects bursts.
            send(20)
            loop.run_until_complete(receive(20))
        send(5)
        protocol.react = loop.stop
        loop.run_forever()
        self.assertEqual(len(protocol.received), 1)
        loop.run_forever()
        self.assertEqual(len(protocol.received), 2)
        transport.close()
        protocol.react = lambda: None
        loop.run_until_complete(protocol.lost)
        loop.close()

    async def open(self, loop):
        return await loop.create_datagram_endpoint(Recorder, local_addr=("127.0.0.1", 0))


class Pipes(Case):
    async def pair(self):
        loop = asyncio.get_running_loop()
        reader, writer = os.pipe()
        incoming, reading = await loop.connect_read_pipe(Recorder, os.fdopen(reader, "rb", 0))
        outgoing, writing = await loop.connect_write_pipe(Recorder, os.fdopen(writer, "wb", 0))
        return incoming, reading, outgoing, writing

    async def test_terminal_that_is_closed_ends_with_its_error(self):
        master, slave = os.openpty()
        transport, protocol = await asyncio.get_running_loop().connect_read_pipe(
            Recorder, os.fdopen(master, "rb", 0))
        os.write(slave, b"line\n")
        await self.until(lambda: protocol.received)
        os.close(slave)
        self.assertEqual((await protocol.lost).errno, errno.EIO)
        self.assertTrue(transport.is_closing())

    async def test_regular_file_is_refused_at_both_ends(self):
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryFile() as file:
            for method in (loop.connect_read_pipe, loop.connect_write_pipe):
                with self.assertRaises(ValueError):
                    await method(asyncio.Protocol, file)

    async def test_failing_write_is_reported_once(self):
        reader, writer = os.pipe()
        transport, protocol = await asyncio.get_running_loop().connect_write_pipe(
            Recorder, os.fdopen(writer, "wb", 0))
        os.close(reader)
        transport.write(b"x")
        transport.write(b"x")
        self.assertIsInstance(await protocol.lost, BrokenPipeError)

    async def test_large_data_arrives_whole(self):
        _, reading, outgoing, _ = await self.pair()
        data = os.urandom(1 << 21)
        outgoing.write(data[:5])
        outgoing.write(bytearray(data[5:]))
        outgoing.close()
        await reading.lost
        self.assertEqual(b"".join(reading.received), data)

    async def test_queue_of_small_pieces_arrives_in_order(self):
        incoming, reading, outgoing, writing = await self.pair()
        incoming.pause_reading()
        sent = [bytes([number % 256]) * (number % 700) for number in range(1000)]
        for number, piece in enumerate(sent):
            outgoing.write((bytes, bytearray, memoryview)[number % 3](piece))
        left = outgoing.get_write_buffer_size()
        self.assertGreater(left, 0)
        incoming.resume_reading()
        outgoing.close()
        await writing.lost
        await reading.lost
        self.assertEqual(b"".join(reading.received), b"".join(sent))

    async def test_bytearray_may_change_after_the_write(self):
        incoming, reading, outgoing, _ = await self.pair()
        data = bytearray(b"a" * 500000)
        outgoing.write(data)
        data[:] = b"b" * len(data)
        outgoing.close()
        await reading.lost
        self.assertEqual(b"".join(reading.received), b"a" * 500000)

    async def test_queue_works_in_debug_mode(self):
        asyncio.get_running_loop().set_debug(True)
        _, reading, outgoing, _ = await self.pair()
        outgoing.write(b"x" * 300000)
        outgoing.write(bytearray(b"y" * 300000))
        outgoing.close()
        await reading.lost
        self.assertEqual(b"".join(reading.received), b"x" * 300000 + b"y" * 300000)
        asyncio.get_running_loop().set_debug(False)

    async def test_another_buffer_is_left_to_asyncio(self):
        _, reading, outgoing, _ = await self.pair()
        outgoing._buffer = bytearray()
        outgoing.write(b"x" * 300000)
        outgoing.write(b"y")
        outgoing.close()
        await reading.lost
        self.assertEqual(b"".join(reading.received), b"x" * 300000 + b"y")

    async def test_descriptors_have_the_attributes_of_asyncio(self):
        incoming, reading, outgoing, writing = await self.pair()
        self.assertIsInstance(incoming, asyncio.ReadTransport)
        self.assertNotIsInstance(incoming, asyncio.WriteTransport)
        self.assertIsInstance(outgoing, asyncio.WriteTransport)
        self.assertEqual(incoming.get_extra_info("pipe").fileno(), incoming._fileno)
        outgoing.abort()
        self.assertIsNone(await writing.lost)
        self.assertIsNone(await reading.lost)

    async def test_ten_thousand_pipes_leave_nothing(self):
        async def use(count):
            for _ in range(count):
                _, reading, outgoing, writing = await self.pair()
                outgoing.write(b"data")
                outgoing.close()
                await writing.lost
                await reading.lost
                await asyncio.sleep(0)
            reading = writing = outgoing = None
            gc.collect()
            return sys.getallocatedblocks(), len(os.listdir("/proc/self/fd"))
        await use(200)
        blocks, descriptors = await use(200)
        blocks_later, descriptors_later = await use(10000)
        self.assertLess(blocks_later - blocks, 400)
        self.assertEqual(descriptors_later, descriptors)


class Names(unittest.TestCase):
    def test_attributes_of_the_native_halves_are_those_of_asyncio(self):
        datagram = loop_module.selector_events._SelectorDatagramTransport
        read, write = (getattr(loop_module.unix_events, f"_Unix{way}PipeTransport")
                       for way in ("Read", "Write"))
        socket_transport = loop_module.selector_events._SelectorTransport
        for engine, classes in ((_core.DatagramEngine, (datagram, socket_transport)),
                                (_core.ReadPipeEngine, (read,)), (_core.WritePipeEngine, (write,))):
            used = {name for one in classes for function in vars(one).values()
                    for name in getattr(getattr(function, "__code__", None), "co_names", ())}
            fields = {name for name, value in vars(engine).items()
                      if type(value).__name__ == "member_descriptor"}
            self.assertTrue(fields)
            if not PAUSES:
                used.add("_paused")
            self.assertEqual(fields - used, set())
        for name in ("sendto", "_read_ready"):
            self.assertTrue(hasattr(datagram, name), name)
        self.assertTrue(hasattr(read, "_read_ready"))
        for name in ("write", "_write_ready", "_maybe_pause_protocol", "_maybe_resume_protocol",
                     "_call_connection_lost", "_fatal_error"):
            self.assertTrue(hasattr(write, name), name)


if __name__ == "__main__":
    unittest.main()
