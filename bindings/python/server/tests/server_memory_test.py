"""Memory of the server after connections, errors, cancelled requests and WebSockets.

SPATE_ROUNDS is the number of rounds, each of ten connections.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import sys

from server_case import ServerCase, read_all, respond

ROUNDS = int(os.environ.get("SPATE_ROUNDS", "60"))
UPGRADE = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")


class Allocations(ctypes.Structure):
    """struct mallinfo2 of the C library, which has the bytes of the native half."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


def native_bytes():
    try:
        function = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    function.restype = Allocations
    figures = function()
    return figures.uordblks + figures.hblkhd


async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        message = await receive()
        await send({"type": "websocket.send", "bytes": message["bytes"]})
        return
    path = scope["path"]
    if path == "/error":
        raise KeyError("broken")
    if path == "/cancel":
        asyncio.current_task().cancel()
        await asyncio.sleep(1)
    if path == "/start":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        raise KeyError("broken")
    body = await read_all(receive)
    if path == "/wait":
        while (await receive())["type"] != "http.disconnect":
            pass
    else:
        await respond(send, body + b"y" * 100, headers=[(b"x-other", b"z" * 50)])


def wsgi(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/error":
        raise KeyError("broken")
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("X-Other", "z")])
    return [body] if path == "/" else (piece for piece in (b"a", b"b", body))


class Memory(ServerCase):
    async def reset(self, path, body=b""):
        client = await self.connect()
        client.request(path, "POST", f"Content-Length: {len(body) + 1}\r\n" if body else "", body)
        await asyncio.sleep(0)
        client.reset()

    async def be_reset(self, path):
        client = await self.connect()
        client.request(path)
        with contextlib.suppress(ConnectionResetError):
            await client.reader.read()
        client.close()

    async def websocket(self, is_reset):
        client = await self.connect()
        client.request("/", "GET", UPGRADE)
        await client.reader.readuntil(b"\r\n\r\n")
        if is_reset:
            client.reset()
            return
        client.send(b"\x82\x81\0\0\0\0x" + b"\x88\x80\0\0\0\0")  # A message and a close frame.
        await client.reader.read()
        client.close()

    async def asgi_round(self):
        await self.get("/", "POST", "Content-Length: 9\r\n", b"x" * 9)
        await self.get("/other")
        await self.get("/error")
        await self.get("/cancel")
        await self.be_reset("/start")
        await self.reset("/wait")
        await self.reset("/", b"part")
        await self.websocket(False)
        await self.websocket(True)
        client = await self.connect()
        client.close()

    async def wsgi_round(self):
        await self.get("/", "POST", "Content-Length: 9\r\n", b"x" * 9)
        for path in "/", "/pieces", "/error", "/":
            await self.get(path)
        await self.reset("/", b"part")
        await self.reset("/pieces", b"part")

    async def check(self, server, make_round):
        cleanups = len(self._cleanups)

        async def figures(rounds):
            for _ in range(rounds):
                await make_round()
                self.errors.clear()
                del self._cleanups[cleanups:]  # Those of closed connections.
            await self.until(lambda: not server.tasks)
            gc.collect()
            await asyncio.sleep(0.05)
            gc.collect()
            return sys.getallocatedblocks(), native_bytes(), len(os.listdir("/proc/self/fd"))

        await figures(20)
        before = await figures(20)
        after = await figures(ROUNDS)
        self.assertLess(after[0] - before[0], 500)  # A loop keeps up to 256 free handles.
        self.assertLess(after[1] - before[1], 150_000)
        self.assertEqual(after[2], before[2])
        await server.stop()

    async def test_asgi_leaves_nothing(self):
        await self.check(await self.serve(app), self.asgi_round)

    async def test_wsgi_leaves_nothing(self):
        await self.check(await self.serve(wsgi, interface="wsgi"), self.wsgi_round)
