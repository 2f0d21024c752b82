"""Transports, datagrams, subprocesses, files."""

import asyncio
import errno
import gc
import os
import resource
import socket
import struct
import sys
import tempfile
import unittest
import weakref

import spate
from loop_case import LoopCase


class Recorder(asyncio.Protocol):
    """Records the calls of a transport."""

    def __init__(self):
        self.calls = []
        self.data = b""
        self.lost = asyncio.get_running_loop().create_future()
        self.keep_open = False

    def connection_made(self, transport):
        self.transport = transport
        self.calls.append("made")

    def data_received(self, data):
        self.data += data
        self.calls.append("data")

    def eof_received(self):
        self.calls.append("eof")
        return self.keep_open

    def pause_writing(self):
        self.calls.append("pause")

    def resume_writing(self):
        self.calls.append("resume")

    def connection_lost(self, exception):
        self.calls.append("lost")
        self.lost.set_result(exception)


class TransportCase(LoopCase):
    async def connected(self):
        """Returns a transport, its protocol, and the peer's socket."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.addCleanup(theirs.close)
        loop = asyncio.get_running_loop()
        self.assertIsInstance(loop, spate.Loop)
        transport, protocol = await loop.create_connection(Recorder, sock=ours)
        self.addCleanup(transport.abort)
        return transport, protocol, theirs


class Sending(TransportCase):
    async def test_writes_of_a_callback_leave_together_when_it_returns(self):
        transport, _, peer = await self.connected()
        transport.write(b"a")
        transport.write(bytearray(b"b"))
        transport.write(memoryview(b"c"))
        self.assertRaises(BlockingIOError, peer.recv, 10)
        await asyncio.sleep(0)
        self.assertEqual(peer.recv(10), b"abc")

    async def test_long_write_leaves_at_once(self):
        transport, _, peer = await self.connected()
        transport.write(b"x" * 40000)
        self.assertGreater(len(peer.recv(40000)), 0)

    async def test_order_is_kept_whatever_the_sizes(self):
        transport, _, peer = await self.connected()
        sent, received = [], []
        for number in range(400):
            piece = bytes([number % 256]) * (number * 37 % 5000)
            sent.append(piece)
            if number % 3 == 0:
                transport.writelines([piece[:7], piece[7:]])
            else:
                transport.write(piece)
        loop = asyncio.get_running_loop()
        total = sum(map(len, sent))
        while sum(map(len, received)) < total:
            received.append(await loop.sock_recv(peer, 65536))
        self.assertEqual(b"".join(received), b"".join(sent))

    async def test_bytearray_may_change_after_the_write(self):
        transport, _, peer = await self.connected()
        data = bytearray(b"a" * (1 << 21))
        transport.write(data)
        data[:] = b"b" * len(data)
        loop, received = asyncio.get_running_loop(), bytearray()
        while len(received) < len(data):
            received += await loop.sock_recv(peer, 1 << 20)
        self.assertEqual(received.count(b"a"), len(data))

    async def test_full_queue_pauses_the_protocol_until_it_is_read(self):
        transport, protocol, peer = await self.connected()
        transport.set_write_buffer_limits(high=1000)
        self.assertEqual(transport.get_write_buffer_limits(), (250, 1000))
        transport.write(b"x" * (1 << 21))
        self.assertIn("pause", protocol.calls)
        self.assertGreater(transport.get_write_buffer_size(), 1000)
        loop, left = asyncio.get_running_loop(), 1 << 21
        while left > 0:
            left -= len(await loop.sock_recv(peer, 1 << 20))
        await self.until(lambda: "resume" in protocol.calls)
        self.assertEqual(transport.get_write_buffer_size(), 0)

    async def test_wrong_limits_and_wrong_data_are_refused(self):
        transport, _, _ = await self.connected()
        self.assertRaises(ValueError, transport.set_write_buffer_limits, high=1, low=2)
        self.assertRaises(ValueError, transport.set_write_buffer_limits, low=-1)
        for data in ("text", 5, None, [b"x"]):
            self.assertRaises(TypeError, transport.write, data)

    async def test_eof_follows_what_was_written(self):
        transport, _, peer = await self.connected()
        transport.write(b"last")
        transport.write_eof()
        self.assertTrue(transport.can_write_eof())
        self.assertEqual(peer.recv(10), b"last")
        self.assertEqual(peer.recv(10), b"")
        self.assertRaises(RuntimeError, transport.write, b"more")

    async def test_abort_follows_what_was_written(self):
        transport, protocol, peer = await self.connected()
        transport.write(b"last")
        transport.abort()
        self.assertIsNone(await protocol.lost)
        self.assertEqual(peer.recv(10), b"last")
        self.assertEqual(peer.recv(10), b"")

    async def test_close_sends_the_queue_first(self):
        transport, protocol, peer = await self.connected()
        transport.write(b"x" * (1 << 21))
        transport.close()
        self.assertTrue(transport.is_closing())
        self.assertNotIn("lost", protocol.calls)
        loop, received = asyncio.get_running_loop(), 0
        while data := await loop.sock_recv(peer, 1 << 20):
            received += len(data)
        self.assertEqual(received, 1 << 21)
        self.assertIsNone(await protocol.lost)

    async def test_write_to_a_peer_that_is_gone_ends_the_connection(self):
        transport, protocol, peer = await self.connected()
        transport.pause_reading()
        peer.close()
        transport.write(b"x")
        self.assertIsInstance(await protocol.lost, BrokenPipeError)
        for _ in range(4):
            transport.write(b"silent")
        with self.assertLogs("asyncio", "WARNING"):
            transport.write(b"warned of")
            transport.write(b"warned of")


class Receiving(TransportCase):
    async def test_data_and_eof_reach_the_protocol(self):
        _, protocol, peer = await self.connected()
        await asyncio.get_running_loop().sock_sendall(peer, b"y" * 1000000)
        peer.close()
        self.assertIsNone(await protocol.lost)
        self.assertEqual(protocol.data, b"y" * 1000000)
        self.assertEqual(protocol.calls[-2:], ["eof", "lost"])

    async def test_half_closed_connection_may_be_written_to(self):
        transport, protocol, peer = await self.connected()
        protocol.keep_open = True
        peer.shutdown(socket.SHUT_WR)
        await self.until(lambda: "eof" in protocol.calls)
        await asyncio.sleep(0.01)
        self.assertEqual(protocol.calls.count("eof"), 1)
        transport.write(b"answer")
        await asyncio.sleep(0)
        self.assertEqual(peer.recv(10), b"answer")

    async def test_paused_transport_does_not_read(self):
        transport, protocol, peer = await self.connected()
        await asyncio.sleep(0)
        transport.pause_reading()
        self.assertFalse(transport.is_reading())
        peer.send(b"x")
        await asyncio.sleep(0.01)
        self.assertEqual(protocol.data, b"")
        transport.resume_reading()
        await self.until(lambda: protocol.data == b"x")

    async def test_buffered_protocol_reads_into_its_buffer(self):
        class Buffered(asyncio.BufferedProtocol):
            def __init__(self):
                self.buffer, self.data = bytearray(3), b""

            def get_buffer(self, hint):
                return self.buffer

            def buffer_updated(self, size):
                self.data += self.buffer[:size]
        transport, _, peer = await self.connected()
        protocol = Buffered()
        transport.set_protocol(protocol)
        self.assertIs(transport.get_protocol(), protocol)
        peer.send(b"12345678")
        await self.until(lambda: protocol.data == b"12345678")
        errors = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        protocol.buffer = bytearray()
        peer.send(b"9")
        await self.until(lambda: transport.is_closing())
        self.assertIn("get_buffer", errors[0]["message"])

    async def test_exception_of_the_protocol_ends_the_connection(self):
        transport, protocol, peer = await self.connected()
        errors = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        protocol.data_received = lambda data: 1 / 0
        peer.send(b"x")
        self.assertIsInstance(await protocol.lost, ZeroDivisionError)
        self.assertIs(errors[0]["transport"], transport)
        self.assertIs(errors[0]["protocol"], protocol)

    async def test_reset_is_the_reason_of_the_loss(self):
        made = asyncio.get_running_loop().create_future()

        class Accepted(Recorder):
            def connection_made(self, transport):
                super().connection_made(transport)
                made.set_result(self)
        server = await asyncio.get_running_loop().create_server(Accepted, "127.0.0.1", 0)
        client = socket.create_connection(server.sockets[0].getsockname())
        protocol = await made
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        self.assertEqual((await protocol.lost).errno, errno.ECONNRESET)
        server.close()


class Life(TransportCase):
    async def test_transport_is_one_of_asyncio(self):
        transport, _, _ = await self.connected()
        self.assertIsInstance(transport, asyncio.Transport)
        self.assertIsInstance(transport.get_extra_info("socket"), asyncio.trsock.TransportSocket)
        self.assertIn("fd=", repr(transport))
        transport.some_attribute = 5
        self.assertEqual(transport.some_attribute, 5)
        self.assertIs(weakref.ref(transport)(), transport)

    async def test_open_transport_lives_without_an_owner(self):
        transport, protocol, peer = await self.connected()
        self._cleanups.pop()  # That of the transport.
        died = weakref.ref(transport)
        del transport
        del protocol.transport
        gc.collect()
        self.assertIsNotNone(died())
        peer.close()
        await protocol.lost
        await asyncio.sleep(0)
        del protocol
        gc.collect()
        self.assertIsNone(died())

    async def test_descriptor_cannot_be_watched_beside_its_transport(self):
        transport, _, _ = await self.connected()
        loop = asyncio.get_running_loop()
        self.assertRaises(RuntimeError, loop.add_reader, transport.get_extra_info("socket"), str)

    def test_transport_of_a_closed_loop_warns_and_closes_its_socket(self):
        loop = spate.new_event_loop()
        ours, theirs = socket.socketpair()
        transport, protocol = loop.run_until_complete(
            loop.create_connection(asyncio.Protocol, sock=ours))
        del protocol
        loop.close()
        with self.assertWarns(ResourceWarning):
            del transport
            gc.collect()
        self.assertEqual(ours.fileno(), -1)
        self.assertEqual(theirs.recv(1), b"")
        theirs.close()

    async def test_many_connections_leave_nothing(self):
        async def answer(reader, writer):
            writer.write(await reader.read(100))
            writer.close()
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()

        async def round_trips(count):
            for _ in range(count):
                reader, writer = await asyncio.open_connection(*address)
                writer.write(b"hello")
                self.assertEqual(await reader.read(), b"hello")
                writer.close()
                await writer.wait_closed()
            gc.collect()
            return sys.getallocatedblocks(), len(os.listdir("/proc/self/fd"))
        await round_trips(100)
        blocks, descriptors = await round_trips(100)
        blocks_later, descriptors_later = await round_trips(600)
        self.assertLess(blocks_later - blocks, 400)  # A loop keeps up to 256 free handles.
        self.assertEqual(descriptors_later, descriptors)
        server.close()


class Accepting(TransportCase):
    async def test_every_connection_of_a_burst_is_accepted(self):
        accepted = []

        def accept():
            accepted.append(Recorder())
            return accepted[-1]
        server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)
        clients = [socket.create_connection(server.sockets[0].getsockname()) for _ in range(30)]
        await self.until(lambda: sum(len(protocol.calls) for protocol in accepted) == 30)
        peers = {protocol.transport.get_extra_info("peername") for protocol in accepted}
        self.assertEqual(peers, {client.getsockname() for client in clients})
        for client in clients:
            client.close()
        for protocol in accepted:
            await protocol.lost
            self.assertIsNotNone(protocol.transport.get_extra_info("peername"))
        server.close()

    async def test_failing_factory_closes_its_connection(self):
        server = await asyncio.get_running_loop().create_server(lambda: 1 / 0, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        self.assertEqual(await reader.read(), b"")
        writer.close()
        server.close()

    async def test_want_of_descriptors_is_reported_and_ends(self):
        loop, reported = asyncio.get_running_loop(), []
        made = loop.create_future()
        loop.set_exception_handler(lambda _, context: reported.append(context["message"]))

        class Accepted(Recorder):
            def connection_made(self, transport):
                super().connection_made(transport)
                made.set_result(transport)
        server = await loop.create_server(Accepted, "127.0.0.1", 0)
        client = socket.socket()
        self.addCleanup(client.close)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(map(int, os.listdir("/proc/self/fd")))
        holes = [os.dup(0) for _ in range(highest)]  # So that no number below the limit is free.
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(holes) + 1, limits[1]))
        try:
            client.connect(server.sockets[0].getsockname())
            await self.until(lambda: reported)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for descriptor in holes:
                os.close(descriptor)
        self.assertIn("out of system resource", reported[0])
        (await made).abort()
        server.close()


class Others(TransportCase):
    async def test_unix_stream_and_datagrams_answer(self):
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryDirectory() as directory:
            path = directory + "/socket"
            accepted = []

            def accept():
                accepted.append(Recorder())
                return accepted[0]
            server = await loop.create_unix_server(accept, path)
            transport, _ = await loop.create_unix_connection(Recorder, path)
            self.assertEqual(transport.get_extra_info("peername"), path)
            transport.close()
            await self.until(lambda: accepted and accepted[0].lost.done())
            server.close()

        class Datagrams(asyncio.DatagramProtocol):
            def __init__(self):
                self.received = loop.create_future()

            def datagram_received(self, data, address):
                self.received.set_result((data, address))
        one, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol,
                                                     local_addr=("127.0.0.1", 0))
        two, protocol = await loop.create_datagram_endpoint(Datagrams, local_addr=("127.0.0.1", 0))
        one.sendto(b"packet", two.get_extra_info("sockname"))
        self.assertEqual(await protocol.received, (b"packet", one.get_extra_info("sockname")))
        one.close()
        two.close()

    async def test_subprocess_answers_through_pipes(self):
        process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
        self.assertEqual(await process.communicate(b"x" * 300000), (b"x" * 300000, None))
        self.assertEqual(process.returncode, 0)

    async def test_pipe_that_is_a_regular_file_is_refused(self):
        with open(__file__, "rb") as file:
            with self.assertRaises(ValueError):
                await asyncio.get_running_loop().connect_read_pipe(asyncio.Protocol, file)

    async def test_sendfile_sends_the_file_between_two_writes(self):
        transport, _, peer = await self.connected()
        loop = asyncio.get_running_loop()
        with open(__file__, "rb") as file:
            content = file.read()
            transport.write(b"<")
            sending = asyncio.ensure_future(loop.sendfile(transport, file))
            received = b""
            while len(received) < len(content) + 1:
                received += await loop.sock_recv(peer, 65536)
            self.assertEqual(await sending, len(content))
        transport.write(b">")
        await asyncio.sleep(0)
        self.assertEqual(received + peer.recv(5), b"<" + content + b">")

    async def test_addresses_are_resolved_as_the_system_does(self):
        loop = asyncio.get_running_loop()
        for host in ("127.0.0.1", "::1", "1.2.3.4", "fe80::1", "127.1", "localhost"):
            for port in (0, 80, "80", None):
                for options in ({}, {"type": socket.SOCK_STREAM}, {"type": socket.SOCK_DGRAM},
                                {"proto": socket.IPPROTO_TCP, "type": socket.SOCK_STREAM},
                                {"flags": socket.AI_PASSIVE}, {"proto": socket.IPPROTO_UDP}):
                    expected = socket.getaddrinfo(host, port, **options)
                    found = await loop.getaddrinfo(host, port, **options)
                    self.assertEqual(found, expected, (host, port, options))
                    self.assertEqual(repr(found), repr(expected))
        for host, options in (("::1", {"family": socket.AF_INET}), ("1.2.3.4.5", {}),
                              ("1.2.3", {"flags": socket.AI_NUMERICHOST, "type": 77})):
            with self.assertRaises(socket.gaierror):
                await loop.getaddrinfo(host, 80, **options)

    async def test_socket_calls_wait_for_the_kernel(self):
        loop = asyncio.get_running_loop()
        a, b = socket.socketpair()
        for end in (a, b):
            end.setblocking(False)
            self.addCleanup(end.close)
        received = asyncio.ensure_future(loop.sock_recv(a, 10))
        await asyncio.sleep(0)
        await loop.sock_sendall(b, b"hello")
        self.assertEqual(await received, b"hello")
        buffer = bytearray(3)
        received = asyncio.ensure_future(loop.sock_recv_into(a, buffer))
        await asyncio.sleep(0)
        await loop.sock_sendall(b, memoryview(b"abc"))
        self.assertEqual(await received, 3)
        self.assertEqual(buffer, b"abc")
        sent = asyncio.ensure_future(loop.sock_sendall(a, b"z" * 3000000))
        count = 0
        while count < 3000000:
            count += len(await loop.sock_recv(b, 1 << 20))
        await sent

    async def test_cancelled_socket_call_leaves_the_data(self):
        loop = asyncio.get_running_loop()
        a, b = socket.socketpair()
        for end in (a, b):
            end.setblocking(False)
            self.addCleanup(end.close)
        for _ in range(20):
            received = asyncio.ensure_future(loop.sock_recv(a, 10))
            await asyncio.sleep(0)
            received.cancel()
            await asyncio.wait([received])
        self.assertFalse(loop.remove_reader(a))
        b.send(b"kept")
        self.assertEqual(await loop.sock_recv(a, 10), b"kept")
        b.close()
        self.assertEqual(await loop.sock_recv(a, 10), b"")
        a.close()
        with self.assertRaises(OSError):
            await loop.sock_recv(a, 10)


if __name__ == "__main__":
    unittest.main()
