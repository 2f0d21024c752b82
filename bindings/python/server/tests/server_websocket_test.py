"""WebSockets between a client of frames and applications."""

import asyncio
import base64
import os
import shutil
import struct
import subprocess
import unittest

from server_case import ServerCase

PEER = r"""
import asyncio, sys, websockets
async def main():
    async with websockets.connect(sys.argv[1], subprotocols=["b", "a"]) as socket:
        await socket.send("text \u00e9")
        await socket.send(b"bytes")
        print(socket.subprotocol, repr(await socket.recv()), repr(await socket.recv()))
asyncio.run(main())
"""


async def echo(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        message["type"] = "websocket.send"
        await send(message)


class Frames:
    """The client's side, after the handshake."""

    def __init__(self, client):
        self.client = client

    def send(self, code, data):
        mask = os.urandom(4)
        size = len(data)
        head = bytes([0x80 | code])
        if size < 126:
            head += bytes([0x80 | size])
        else:
            head += bytes([0x80 | 127]) + struct.pack("!Q", size)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.client.send(head + mask + masked)

    async def receive(self):
        reader = self.client.reader
        code, size = await reader.readexactly(2)
        if size == 126:
            size, = struct.unpack("!H", await reader.readexactly(2))
        elif size == 127:
            size, = struct.unpack("!Q", await reader.readexactly(8))
        return code & 15, await reader.readexactly(size)

    async def close_code(self):
        code, data = await self.receive()
        assert code == 8, code
        return struct.unpack("!H", data[:2])[0], data[2:].decode()


class WebSockets(ServerCase):
    async def open(self, headers="", target="/"):
        """Returns the response to the handshake, and the connection."""
        client = await self.connect()
        key = base64.b64encode(os.urandom(16)).decode()
        response = await client.get(target, headers=(
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n{headers}"))
        return response, Frames(client)

    async def accept_then(self, *messages, received=None, **settings):
        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            for message in messages:
                await send(message)
            while received is not None:
                received.append(await receive())
                if received[-1]["type"] == "websocket.disconnect":
                    return

        await self.serve(app, **settings)
        return (await self.open())[1]

    async def test_messages_are_echoed(self):
        await self.serve(echo)
        response, frames = await self.open()
        self.assertEqual(response.status, 101)
        for code, data in (1, b"text"), (2, b"\0\xff"), (1, b""), (2, bytes(200_000)):
            frames.send(code, data)
            self.assertEqual(await frames.receive(), (code, data))

    async def test_scope_has_the_request(self):
        scopes = []

        async def app(scope, receive, send):
            scopes.append(scope)
            scopes.append(await receive())
            await send({"type": "websocket.close"})

        await self.serve(app)
        response, _ = await self.open("Sec-WebSocket-Protocol: one, two\r\n", "/p?q")
        scope, message = scopes
        self.assertEqual(response.status, 403)
        self.assertEqual(message, {"type": "websocket.connect"})
        self.assertEqual((scope["type"], scope["scheme"], scope["path"], scope["query_string"]),
                         ("websocket", "ws", "/p", b"q"))
        self.assertEqual(scope["subprotocols"], ["one", "two"])
        self.assertNotIn("method", scope)

    async def test_accept_has_subprotocol_and_headers(self):
        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept", "subprotocol": "two",
                        "headers": [(b"x-one", b"1")]})

        await self.serve(app)
        response, _ = await self.open("Sec-WebSocket-Protocol: one, two\r\n")
        self.assertEqual(response.status, 101)
        self.assertEqual(response.headers["sec-websocket-protocol"], "two")
        self.assertEqual(response.headers["x-one"], "1")

    async def test_no_subprotocol_is_sent_unless_the_application_selects_one(self):
        await self.serve(echo)
        response, _ = await self.open("Sec-WebSocket-Protocol: one\r\n")
        self.assertNotIn("sec-websocket-protocol", response.headers)

    async def test_close_code_and_reason_of_the_client_are_received(self):
        received = []
        frames = await self.accept_then(received=received)
        frames.send(8, struct.pack("!H", 4001) + "gr\u00fcn".encode())
        await self.until(lambda: received)
        self.assertEqual(received, [{"type": "websocket.disconnect", "code": 4001,
                                     "reason": "gr\u00fcn"}])
        self.assertEqual((await frames.close_code())[0], 4001)

    async def test_close_without_code_is_1005(self):
        received = []
        frames = await self.accept_then(received=received)
        frames.send(8, b"")
        await self.until(lambda: received)
        self.assertEqual(received[0]["code"], 1005)

    async def test_lost_connection_is_1006(self):
        received = []
        frames = await self.accept_then(received=received)
        frames.client.writer.transport.abort()
        await self.until(lambda: received)
        self.assertEqual(received[0]["code"], 1006)

    async def test_application_closes_with_code_and_reason(self):
        frames = await self.accept_then({"type": "websocket.close", "code": 3001, "reason": "why"})
        self.assertEqual(await frames.close_code(), (3001, "why"))

    async def test_disconnect_follows_the_close_of_the_application(self):
        received = []
        frames = await self.accept_then({"type": "websocket.close", "code": 3001},
                                        received=received)
        code, data = await frames.receive()
        frames.send(code, data)
        await self.until(lambda: received)
        self.assertEqual(received[0]["type"], "websocket.disconnect")

    async def test_return_of_the_application_closes_normally(self):
        frames = await self.accept_then()
        self.assertEqual((await frames.close_code())[0], 1000)

    async def test_exception_closes_with_1011(self):
        frames = await self.accept_then({"type": "unknown"})
        self.assertEqual((await frames.close_code())[0], 1011)
        self.assertIn("expected the message 'websocket.send'", self.error_text()[0])

    async def test_exception_before_accept_gives_500(self):
        async def app(scope, receive, send):
            raise KeyError("broken")

        await self.serve(app)
        self.assertEqual((await self.open())[0].status, 500)
        self.assertIn("broken", self.error_text()[0])

    async def test_return_before_accept_gives_500(self):
        async def app(scope, receive, send):
            await receive()

        await self.serve(app)
        self.assertEqual((await self.open())[0].status, 500)
        self.assertIn("without accepting", self.error_text()[0])

    async def test_response_rejects(self):
        messages = []

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.http.response.start", "status": 401,
                        "headers": [(b"x-one", b"1")]})
            for body, more in (b"no", True), (b"pe", False):
                await send({"type": "websocket.http.response.body", "body": body,
                            "more_body": more})
            messages.append(await receive())

        await self.serve(app)
        response, _ = await self.open()
        self.assertEqual((response.status, response.body), (401, b"nope"))
        self.assertEqual(response.headers["x-one"], "1")
        await self.until(lambda: messages)
        self.assertEqual(messages[0]["type"], "websocket.disconnect")

    async def test_handshake_without_key_gives_400(self):
        async def app(scope, receive, send):
            await receive()
            with self.assertRaises(OSError):
                await send({"type": "websocket.accept"})

        await self.serve(app)
        response = await self.get(headers="Upgrade: websocket\r\nConnection: Upgrade\r\n")
        self.assertIn(response.status, (400, 426))

    async def test_too_long_message_closes_with_1009(self):
        received = []
        frames = await self.accept_then(received=received, ws_max_size=100)
        frames.send(2, bytes(101))
        self.assertEqual((await frames.close_code())[0], 1009)
        await self.until(lambda: received)

    async def test_invalid_text_closes_with_1007(self):
        received = []
        frames = await self.accept_then(received=received)
        frames.send(1, b"\xff")
        self.assertEqual((await frames.close_code())[0], 1007)

    async def test_wrong_close_codes_are_errors(self):
        for code in (0, 1005, 1006, 2000, 99999):
            with self.subTest(code=code):
                self.errors.clear()
                frames = await self.accept_then({"type": "websocket.close", "code": code})
                self.assertEqual((await frames.close_code())[0], 1011)
                self.assertIn("cannot be sent", self.error_text()[0])

    async def test_send_after_disconnect_raises_oserror(self):
        raised = []

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            await receive()
            try:
                await send({"type": "websocket.send", "text": "late"})
            except OSError as error:
                raised.append(error)
                raise

        await self.serve(app)
        _, frames = await self.open()
        frames.send(8, b"")
        await self.until(lambda: raised)
        self.assertEqual(self.error_text(), [])

    async def test_unreceived_messages_pause_the_client(self):
        proceed = asyncio.Event()
        total = []

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            await proceed.wait()
            while (message := await receive())["type"] == "websocket.receive":
                total.append(len(message["bytes"]))

        await self.serve(app)
        _, frames = await self.open()
        piece = bytes([0x82, 0xff]) + struct.pack("!Q", 1 << 20) + bytes(4) + bytes(1 << 20)

        async def flood():
            for _ in range(64):
                frames.client.send(piece)
                await frames.client.writer.drain()

        sent = asyncio.ensure_future(flood())
        done, _ = await asyncio.wait([sent], timeout=0.3)
        self.assertFalse(done, "the server has read what the application did not want")
        proceed.set()
        await sent
        await self.until(lambda: sum(total) == 64 << 20)

    async def test_shutdown_closes_with_1001(self):
        received = []

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            received.append(await receive())

        server = await self.serve(app, timeout_graceful_shutdown=5)
        _, frames = await self.open()
        stopping = asyncio.ensure_future(server.stop())
        code, data = await frames.receive()
        self.assertEqual((code, struct.unpack("!H", data[:2])[0]), (8, 1001))
        frames.send(code, data)
        frames.client.close()
        await stopping
        self.assertEqual(received[0]["type"], "websocket.disconnect")

    async def test_client_of_the_package_websockets_is_served(self):
        python = shutil.which("python3", path="/usr/bin")
        if python is None or subprocess.run([python, "-c", "import websockets"],
                                            stderr=subprocess.DEVNULL).returncode:
            raise unittest.SkipTest("the package python3-websockets is missing")

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept", "subprotocol": "a"})
            for _ in range(2):
                message = await receive()
                await send({**message, "type": "websocket.send"})

        await self.serve(app)
        out = await self.run_peer(python, "-c", PEER, f"ws://127.0.0.1:{self.address[1]}/")
        self.assertEqual(out.decode().strip(), "a 'text \u00e9' b'bytes'")
