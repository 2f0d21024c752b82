"""The base of tests of the server: applications are served on a spate.Loop of this process."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tests"))

from loop_case import LoopCase

try:
    import spate_server
except ImportError:
    raise unittest.SkipTest("the server was not built: it needs OpenSSL") from None


async def hello(scope, receive, send):
    await respond(send, b"hello")


async def respond(send, body=b"", status=200, headers=()):
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def read_all(receive):
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or not message["more_body"]:
            return body


class Response:
    def __init__(self, head, body):
        lines = head.decode("latin1").split("\r\n")
        self.version, status, *_ = lines[0].split(" ", 2)
        self.status = int(status)
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self.body = body


class Client:
    """A connection of HTTP/1 that sends what a test writes."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    def send(self, data):
        self.writer.write(data)

    def request(self, target="/", method="GET", headers="", body=b""):
        self.send(f"{method} {target} HTTP/1.1\r\nHost: test\r\n{headers}\r\n".encode() + body)

    async def response(self, method="GET"):
        head = (await self.reader.readuntil(b"\r\n\r\n"))[:-4]
        response = Response(head, b"")
        if method != "HEAD" and response.status not in (100, 101, 204, 304):
            response.body = await self.body(response)
        return response

    async def body(self, response):
        if "content-length" in response.headers:
            return await self.reader.readexactly(int(response.headers["content-length"]))
        if response.headers.get("transfer-encoding") != "chunked":
            return await self.reader.read()
        body = b""
        while True:
            size = int(await self.reader.readline(), 16)
            if size == 0:
                break
            body += await self.reader.readexactly(size)
            await self.reader.readline()
        while (line := await self.reader.readline()) != b"\r\n":
            name, _, value = line.decode().partition(":")
            response.headers["trailer " + name.lower()] = value.strip()
        return body

    async def get(self, target="/", method="GET", headers="", body=b""):
        self.request(target, method, headers, body)
        return await self.response(method)

    def close(self):
        self.writer.close()

    def reset(self):
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()


class ServerCase(LoopCase):
    """Each test serves with serve(). Errors that the server logs are in `errors`."""

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.errors = []
        handler = logging.Handler()
        handler.emit = lambda record: self.errors.append(record)
        logger = logging.getLogger("spate_server")
        logger.addHandler(handler)
        logger.propagate = False
        self.addCleanup(logger.removeHandler, handler)

    async def serve(self, app, **settings):
        settings.setdefault("timeout_graceful_shutdown", 0.2)
        settings.setdefault("lifespan", "off")  # Most applications of the tests do not have it.
        server = spate_server.Server(spate_server.Config(app=None, port=0, **settings), app)
        await server.start()
        self.addAsyncCleanup(server.stop)
        self.address = server.addresses[0]
        return server

    async def connect(self):
        client = Client(*await asyncio.open_connection(*self.address))
        self.addCleanup(client.close)
        return client

    async def get(self, *arguments, **settings):
        with contextlib.closing(await self.connect()) as client:
            return await client.get(*arguments, **settings)

    def error_text(self):
        return [f"{record.getMessage()}: {record.exc_info[1] if record.exc_info else ''}"
                for record in self.errors]

    async def run_peer(self, *command):
        """Runs a program. Returns its standard output. Skips the test without the program."""
        if shutil.which(command[0]) is None:
            self.skipTest(f"the program {command[0]} is missing")
        process = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = await process.communicate()
        self.assertEqual(process.returncode, 0, err.decode())
        return out
