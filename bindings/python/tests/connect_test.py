"""Opening connections, and the sockets of accepted ones."""

import asyncio
import errno
import gc
import os
import socket
import sys
import unittest
import warnings
from unittest import mock

import spate
from loop_case import LoopCase


def count_descriptors():
    return len(os.listdir("/proc/self/fd"))


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
        return True
    except OSError:
        return False


def full_listener():
    """Returns a listening socket that answers no more, and the connections that fill its queue."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    return listener, socket.create_connection(listener.getsockname())


REFUSING_ADDRESS = ("127.0.0.1", 1)  # tcpmux (RFC 1078): no program listens there.


class Recorder(asyncio.Protocol):
    def __init__(self, made=None):
        self.made, self.received = made, b""

    def connection_made(self, transport):
        self.transport = transport
        if self.made is not None:
            self.made.set_result(self)

    def data_received(self, data):
        self.received += data


async def serve(loop, host="127.0.0.1"):
    """Returns a server, its address, and a future of the protocol of its first connection."""
    made = loop.create_future()
    server = await loop.create_server(lambda: Recorder(made), host, 0)
    return server, server.sockets[0].getsockname(), made


class ConnectTest(LoopCase):
    async def check_connection_to(self, host):
        loop = asyncio.get_running_loop()
        server, address, made = await serve(loop, host)
        transport, protocol = await loop.create_connection(Recorder, *address[:2])
        accepted = (await made).transport
        self.assertIs(protocol.transport, transport)
        for name, other in (("sockname", "peername"), ("peername", "sockname")):
            self.assertEqual(transport.get_extra_info(name), accepted.get_extra_info(other))
        self.assertEqual(transport.get_extra_info("peername"), address)
        transport.write(b"there")
        accepted.write(b"back")
        await self.until(lambda: made.result().received == b"there")
        await self.until(lambda: protocol.received == b"back")
        transport.close()
        accepted.close()
        server.close()
        await server.wait_closed()

    async def test_connection_to_address_has_addresses_and_data(self):
        await self.check_connection_to("127.0.0.1")

    @unittest.skipUnless(has_ipv6(), "no IPv6 here")
    async def test_connection_to_ipv6_address_has_addresses_and_data(self):
        await self.check_connection_to("::1")

    async def test_refused_connection_raises_asyncios_error_and_leaves_no_descriptor(self):
        loop = asyncio.get_running_loop()
        address = REFUSING_ADDRESS
        before = count_descriptors()
        for _ in range(3):
            with self.assertRaises(ConnectionRefusedError) as caught:
                await loop.create_connection(Recorder, *address)
            self.assertEqual(caught.exception.errno, errno.ECONNREFUSED)
            self.assertEqual(caught.exception.strerror, f"Connect call failed {address}")
            self.assertEqual(count_descriptors(), before)

    async def test_unreachable_address_raises_the_kernels_error(self):
        loop = asyncio.get_running_loop()
        before = count_descriptors()
        with self.assertRaises(OSError) as caught:  # TCP has no broadcasts.
            await loop.create_connection(Recorder, "255.255.255.255", 9)
        self.assertEqual(caught.exception.strerror, os.strerror(caught.exception.errno))
        self.assertEqual(count_descriptors(), before)

    async def test_descriptor_is_closed_if_the_factory_fails(self):
        loop = asyncio.get_running_loop()
        server, address, _ = await serve(loop)
        before = count_descriptors()

        def fail():
            raise ZeroDivisionError
        with self.assertRaises(ZeroDivisionError):
            await loop.create_connection(fail, *address)
        await self.until(lambda: count_descriptors() == before)  # Nor is the accepted one left.
        server.close()

    async def test_cancelled_connection_closes_its_descriptor_at_once(self):
        loop = asyncio.get_running_loop()
        listener, filling = full_listener()
        before = count_descriptors()
        task = loop.create_task(loop.create_connection(Recorder, *listener.getsockname()))
        await asyncio.sleep(0.01)
        self.assertEqual(count_descriptors(), before + 1)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(count_descriptors(), before)
        listener.close()
        filling.close()

    async def test_connection_is_open_when_a_full_server_accepts_again(self):
        loop = asyncio.get_running_loop()
        listener, filling = full_listener()
        connecting = loop.create_task(loop.create_connection(Recorder, *listener.getsockname()))
        sock = socket.socket()
        sock.setblocking(False)
        later = loop.create_task(loop.sock_connect(sock, listener.getsockname()))
        await asyncio.sleep(0.01)
        self.assertFalse(connecting.done() or later.done())
        listener.listen(5)
        transport, _ = await connecting  # The kernel repeats its request after a second.
        await later
        accepted = [listener.accept() for _ in range(3)]
        peers = {address for _, address in accepted}
        self.assertIn(transport.get_extra_info("sockname"), peers)
        self.assertIn(sock.getsockname(), peers)
        transport.close()
        for each in (sock, filling, listener, *(other for other, _ in accepted)):
            each.close()

    async def test_loop_that_is_closed_drops_pending_connections(self):
        listener, filling = full_listener()
        before = count_descriptors()
        loop = spate.Loop()
        task = loop.create_task(loop.create_connection(Recorder, *listener.getsockname()))
        task._log_destroy_pending = False

        def run():
            loop.run_until_complete(asyncio.sleep(0.01))
            loop.close()
        await asyncio.get_running_loop().run_in_executor(None, run)
        del task, loop, run
        gc.collect()
        self.assertLessEqual(count_descriptors(), before)
        listener.close()
        filling.close()

    async def test_replaced_sock_connect_is_called(self):
        loop = asyncio.get_running_loop()
        server, address, made = await serve(loop)
        with mock.patch.object(loop, "sock_connect", side_effect=loop.sock_connect) as replaced:
            transport, _ = await loop.create_connection(Recorder, *address)
        replaced.assert_called_once()
        (await made).transport.close()
        transport.close()
        server.close()

    async def test_connection_is_audited(self):
        loop = asyncio.get_running_loop()
        server, address, _ = await serve(loop)
        seen = []
        sys.addaudithook(lambda event, arguments: seen.append(arguments[1])
                         if event == "socket.connect" and seen is not None else None)
        transport, _ = await loop.create_connection(Recorder, *address)
        with socket.socket() as sock:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
        self.assertEqual(seen, [address, address])
        transport.close()
        server.close()
        seen = None

    async def test_sock_connect_resolves_names_and_reports_refusal(self):
        loop = asyncio.get_running_loop()
        server, address, _ = await serve(loop)
        with socket.socket() as sock:
            sock.setblocking(False)
            await loop.sock_connect(sock, ("localhost", address[1]))
            self.assertEqual(sock.getpeername(), address)
        server.close()
        address = REFUSING_ADDRESS
        with socket.socket() as sock:
            sock.setblocking(False)
            with self.assertRaisesRegex(ConnectionRefusedError, "Connect call failed"):
                await loop.sock_connect(sock, address)

    async def test_subclass_that_replaces_sock_connect_is_called(self):
        calls = []

        class Other(spate.Loop):
            async def sock_connect(self, sock, address):
                calls.append(address)
                await super().sock_connect(sock, address)

        async def connect():
            with self.assertRaises(ConnectionRefusedError):
                await asyncio.get_running_loop().create_connection(Recorder, *REFUSING_ADDRESS)

        def run():
            with asyncio.Runner(loop_factory=Other) as runner:
                runner.run(connect())
        await asyncio.get_running_loop().run_in_executor(None, run)
        self.assertEqual(len(calls), 1)


class AcceptedSocketTest(LoopCase):
    async def accept(self):
        loop = asyncio.get_running_loop()
        server, address, made = await serve(loop)
        client = socket.create_connection(address)
        return server, client, (await made).transport

    async def test_socket_of_accepted_connection_does_not_block_and_closes_with_it(self):
        server, client, transport = await self.accept()
        view = transport.get_extra_info("socket")
        self.assertEqual((view.family, view.type, view.proto),
                         (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP))
        self.assertEqual(view.gettimeout(), 0)
        self.assertEqual(view.getpeername(), client.getsockname())
        self.assertIs(transport._sock, transport._sock)
        transport.close()
        await asyncio.sleep(0.01)
        self.assertEqual(view.fileno(), -1)
        self.assertIsNone(transport._sock)
        self.assertEqual(client.recv(1), b"")
        client.close()
        server.close()

    async def test_socket_of_accepted_connection_has_the_protocol_of_the_listener(self):
        loop = asyncio.get_running_loop()
        made = loop.create_future()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.assertEqual(listener.proto, 0)
            server = await loop.create_server(lambda: Recorder(made), sock=listener)
            client = socket.create_connection(listener.getsockname())
            view = (await made).transport.get_extra_info("socket")
            self.assertEqual(view.proto, 0)
            server.close()
        client.close()

    async def test_connection_without_a_socket_keeps_its_addresses_after_close(self):
        server, client, transport = await self.accept()
        before = count_descriptors()
        transport.close()
        await asyncio.sleep(0.01)
        self.assertEqual(count_descriptors(), before - 1)
        self.assertEqual(transport.get_extra_info("peername"), client.getsockname())
        self.assertIn(" closed", repr(transport))
        client.close()
        server.close()

    async def test_accepted_transport_of_closed_loop_warns_and_closes_its_descriptor(self):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        client = socket.create_connection(listener.getsockname())

        def run():
            loop = spate.Loop()
            loop._start_serving(asyncio.Protocol, listener)
            loop.run_until_complete(asyncio.sleep(0.01))
            loop.close()
            gc.collect()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            await asyncio.get_running_loop().run_in_executor(None, run)
        self.assertTrue(any("unclosed transport" in str(warning.message) for warning in caught))
        self.assertEqual(client.recv(1), b"")
        client.close()
        listener.close()
