"""TLS, on the native half and on asyncio's own protocol."""

import asyncio
import shutil
import socket
import ssl
import unittest

from spate import _core, loop as loop_module
from certificates import make_contexts
from loop_case import LoopCase

if shutil.which("openssl") is None:
    raise unittest.SkipTest("there is no openssl, which makes the certificates")

SERVER, CLIENT = make_contexts()


class TlsCase(LoopCase):
    async def serve(self, answer, context=SERVER):
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        self.addCleanup(server.close)
        return server.sockets[0].getsockname()[1]

    async def connect(self, port, context=CLIENT):
        return await asyncio.open_connection("127.0.0.1", port, ssl=context,
                                             server_hostname="localhost")

    @staticmethod
    async def echo(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()


class Connections(TlsCase):
    async def test_messages_of_all_sizes_come_back(self):
        reader, writer = await self.connect(await self.serve(self.echo))
        for size in (1, 100, 16384, 16385, 70000, 1000000):
            message = bytes(range(256)) * (size // 256 + 1)
            writer.write(message)
            self.assertEqual(await reader.readexactly(len(message)), message)
        writer.writelines([b"a", b"b"])
        writer.write(memoryview(b"c"))
        writer.write(bytearray(b"d"))
        self.assertEqual(await reader.readexactly(4), b"abcd")
        self.assertEqual(writer.get_extra_info("ssl_object").version(), "TLSv1.3")
        self.assertEqual(writer.get_extra_info("peername")[0], "127.0.0.1")
        writer.close()
        await writer.wait_closed()

    @unittest.skipUnless(hasattr(ssl, "OP_ENABLE_KTLS"), "this Python has no kernel TLS")
    async def test_request_for_kernel_tls_changes_nothing(self):
        server, client = make_contexts()
        server.options |= ssl.OP_ENABLE_KTLS
        client.options |= ssl.OP_ENABLE_KTLS
        reader, writer = await self.connect(await self.serve(self.echo, server), client)
        writer.write(b"x" * 100000)
        self.assertEqual(await reader.readexactly(100000), b"x" * 100000)
        with self.assertRaises(RuntimeError):  # As asyncio's transport, it cannot use sendfile().
            with open(__file__, "rb") as file:
                await asyncio.get_running_loop().sendfile(writer.transport, file, fallback=False)
        writer.close()
        await writer.wait_closed()

    async def test_bytes_that_are_not_bytes_are_refused(self):
        _, writer = await self.connect(await self.serve(self.echo))
        for data in ("text", 5, None):
            self.assertRaises(TypeError, writer.transport.write, data)
        writer.write(b"")
        writer.close()
        await writer.wait_closed()

    async def test_slow_reader_pauses_the_writer(self):
        paused = asyncio.get_running_loop().create_future()

        class Sender(asyncio.Protocol):
            def connection_made(self, transport):
                self.transport = transport
                self.left = 40
                self.fill()

            def fill(self):
                while self.left > 0 and not paused.done():
                    self.left -= 1
                    self.transport.write(b"x" * 262144)

            def pause_writing(self):
                if not paused.done():
                    paused.set_result(self.left)

            def resume_writing(self):
                while self.left > 0:
                    self.left -= 1
                    self.transport.write(b"x" * 262144)
                self.transport.close()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Sender, "127.0.0.1", 0, ssl=SERVER)
        self.addCleanup(server.close)
        reader, writer = await self.connect(server.sockets[0].getsockname()[1])
        self.assertGreater(await paused, 0)
        count = 0
        while data := await reader.read(1 << 20):
            self.assertEqual(data.count(b"x"), len(data))
            count += len(data)
        self.assertEqual(count, 40 * 262144)
        writer.close()

    async def test_paused_reader_keeps_the_data_for_later(self):
        received = []

        class Receiver(asyncio.Protocol):
            def connection_made(self, transport):
                self.transport = transport

            def data_received(self, data):
                received.append(data)
                self.transport.pause_reading()
                asyncio.get_running_loop().call_later(0.001, self.transport.resume_reading)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Receiver, "127.0.0.1", 0, ssl=SERVER)
        self.addCleanup(server.close)
        _, writer = await self.connect(server.sockets[0].getsockname()[1])
        sent = bytes(range(256)) * 4096
        writer.write(sent)
        while sum(map(len, received)) < len(sent):
            await asyncio.sleep(0.001)
        self.assertEqual(b"".join(received), sent)
        writer.transport.abort()

    async def test_end_of_the_peer_reaches_the_protocol(self):
        async def say_goodbye(_, writer):
            writer.write(b"last words")
            writer.close()
        reader, writer = await self.connect(await self.serve(say_goodbye))
        self.assertEqual(await reader.read(), b"last words")
        writer.close()
        await writer.wait_closed()

    async def test_garbage_ends_the_connection_with_an_error(self):
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.addCleanup(theirs.close)
        loop = asyncio.get_running_loop()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        peer = SERVER.wrap_bio(incoming, outgoing, server_side=True)

        async def exchange():
            while True:
                try:
                    peer.do_handshake()
                    return
                except ssl.SSLWantReadError:
                    await loop.sock_sendall(theirs, outgoing.read())
                    incoming.write(await loop.sock_recv(theirs, 65536))

        lost = loop.create_future()

        class Client(asyncio.Protocol):
            def connection_lost(self, exception):
                lost.set_result(exception)
        connecting = loop.create_connection(Client, sock=ours, ssl=CLIENT,
                                            server_hostname="localhost")
        await asyncio.gather(connecting, exchange())
        await loop.sock_sendall(theirs, outgoing.read() + b"\x17\x03\x03\x00\x20" + b"g" * 32)
        self.assertIsInstance(await lost, ssl.SSLError)

    async def test_failed_verification_is_reported(self):
        port = await self.serve(self.echo)
        with self.assertRaises(ssl.SSLCertVerificationError):
            await self.connect(port, ssl.create_default_context())

    async def test_exception_of_the_protocol_ends_the_connection(self):
        lost, reported = asyncio.get_running_loop().create_future(), []

        class Failing(asyncio.Protocol):
            def data_received(self, data):
                raise ValueError("of the protocol")

            def connection_lost(self, exception):
                lost.set_result(exception)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        server = await loop.create_server(Failing, "127.0.0.1", 0, ssl=SERVER)
        self.addCleanup(server.close)
        _, writer = await self.connect(server.sockets[0].getsockname()[1])
        writer.write(b"x")
        self.assertIsInstance(await lost, ValueError)
        self.assertIsInstance(reported[0]["exception"], ValueError)
        writer.transport.abort()

    async def test_start_tls_upgrades_a_connection(self):
        async def upgrade(reader, writer):
            self.assertEqual(await reader.readline(), b"STARTTLS\n")
            writer.write(b"go\n")
            await writer.drain()
            await writer.start_tls(SERVER)
            await self.echo(reader, writer)
        port = await self.serve(upgrade, None)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"STARTTLS\n")
        self.assertEqual(await reader.readline(), b"go\n")
        await writer.start_tls(CLIENT, server_hostname="localhost")
        self.assertIs(type(writer.transport._ssl_protocol), loop_module.TlsProtocol)
        writer.write(b"secret")
        self.assertEqual(await reader.readexactly(6), b"secret")
        writer.close()

    async def test_start_tls_runs_inside_of_tls(self):
        async def upgrade(reader, writer):
            await writer.start_tls(SERVER)
            await self.echo(reader, writer)
        reader, writer = await self.connect(await self.serve(upgrade))
        await writer.start_tls(CLIENT, server_hostname="localhost")
        for size in (1, 70000, 300000):
            writer.write(b"s" * size)
            self.assertEqual(await reader.readexactly(size), b"s" * size)
        writer.close()

    async def test_start_tls_reports_a_failed_verification(self):
        async def upgrade(reader, writer):
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                await writer.start_tls(SERVER)
        port = await self.serve(upgrade, None)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        with self.assertRaises(ssl.SSLCertVerificationError):
            await writer.start_tls(ssl.create_default_context(), server_hostname="localhost")
        self.assertTrue(writer.transport.is_closing())


class Fallback(TlsCase):
    async def test_connection_works_without_the_native_half(self):
        class Plain(loop_module.TlsProtocol):
            get_buffer = loop_module.sslproto.SSLProtocol.get_buffer
            buffer_updated = loop_module.sslproto.SSLProtocol.buffer_updated

            def _write(self, data):
                self._write_appdata((data,))
        before = loop_module.TlsProtocol
        loop_module.TlsProtocol = Plain
        try:
            reader, writer = await self.connect(await self.serve(self.echo))
            writer.write(b"x" * 100000)
            self.assertEqual(len(await reader.readexactly(100000)), 100000)
            writer.close()
            await writer.wait_closed()
        finally:
            loop_module.TlsProtocol = before

    def test_attributes_of_the_native_half_are_those_of_asyncio(self):
        source = loop_module.sslproto.SSLProtocol.__init__.__code__.co_names
        for name in ("_loop", "_state", "_sslobj", "_transport", "_write_backlog",
                     "_ssl_buffer_view", "_ssl_writing_paused", "_app_reading_paused",
                     "_app_writing_paused", "_ssl_reading_paused"):
            self.assertIn(name, source)
            self.assertTrue(hasattr(_core.TlsEngine, name))


if __name__ == "__main__":
    unittest.main()
