#!/usr/bin/env python3
"""WebSockets with other implementations, both ways, plain and over TLS: Python's `websockets`
and `ws` on Node; and over HTTP/2 (RFC 8441) with Node's server, and through nghttpx. Missing
ones are left out.
websocket_peers.py PROGRAM"""

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import missing

# The folders of Debian's own packages.
DEBIAN_PYTHON, DEBIAN_NODE = "/usr/lib/python3/dist-packages", "/usr/share/nodejs"
PATIENCE = 60  # Seconds.
SIZES = (0, 1, 125, 126, 65535, 65536, 1 << 20)

NODE_SERVER = """
const {WebSocketServer} = require('ws');
const pem = require('fs').readFileSync(process.argv[1] + '/server.pem');
const listeners = {ws: require('http').createServer(),
    wss: require('https').createServer({cert: pem, key: pem})};
for (const [scheme, listener] of Object.entries(listeners)) {
  const server = new WebSocketServer({server: listener, perMessageDeflate: true,
      handleProtocols: (names) => [...names][0]});
  server.on('connection', (socket) => {
    socket.on('message', (bytes, isBinary) => socket.send(bytes, {binary: isBinary}));
  });
}
listeners.ws.listen(0, '127.0.0.1', () => {
  console.log(`ws://127.0.0.1:${listeners.ws.address().port}/`);
  listeners.wss.listen(0, '127.0.0.1',
      () => console.log(`wss://127.0.0.1:${listeners.wss.address().port}/`));
});
"""
NODE_CLIENT = """
const WebSocket = require('ws');
const sizes = %s;
const ca = require('fs').readFileSync(process.argv[2] + '/root.pem');
const socket = new WebSocket(process.argv[1], 'echo', {perMessageDeflate: true, ca});
const ask = () => socket.send('x'.repeat(sizes[0]));
socket.on('open', ask);
socket.on('error', (error) => { console.log(error.message); process.exit(1); });
socket.on('message', (bytes, isBinary) => {
  if (isBinary || bytes.length !== sizes.shift()) process.exit(2);
  sizes.length ? ask() : socket.ping('p');
});
socket.on('pong', () => socket.close(3456, 'enough'));
socket.on('close', (code) => process.exit(code === 3456 && sizes.length === 0 ? 0 : 3));
""" % list(SIZES)


# The frames are made by `ws`, which does not support HTTP/2 itself.
NODE_HTTP2 = """
const http2 = require('http2'), WebSocket = require('ws');
const pem = require('fs').readFileSync(process.argv[1] + '/server.pem');
const settings = {enableConnectProtocol: true};
const serve = (stream, headers) => {
  if (headers[':protocol'] !== 'websocket' || headers['sec-websocket-key']) return stream.close();
  stream.respond({':status': 200, 'sec-websocket-protocol': 'echo'});
  stream.setNoDelay = () => {};
  const socket = new WebSocket(null);
  socket.setSocket(stream, Buffer.alloc(0), {maxPayload: 1 << 24, skipUTF8Validation: false});
  socket.on('message', (bytes, isBinary) => socket.send(bytes, {binary: isBinary}));
};
const plain = http2.createServer({settings});
const secure = http2.createSecureServer({settings, cert: pem, key: pem});
for (const server of [plain, secure]) server.on('stream', serve);
plain.listen(0, '127.0.0.1', () => {
  console.log(`ws://127.0.0.1:${plain.address().port}/`);
  secure.listen(0, '127.0.0.1',
      () => console.log(`wss://127.0.0.1:${secure.address().port}/`));
});
"""


class Started:
    """Runs a program whose first two lines are its URLs: the plain one, and the one over TLS."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.urls = [self.process.stdout.readline().strip() for _ in range(2)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def succeed(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 0, (command[:3], done.returncode, done.stdout)


def ask(program, url, directory):
    """Our client, with a server that echoes."""
    succeed(program, "ask", url, directory)


def find_node():
    node = shutil.which("node")
    os.environ.setdefault("NODE_PATH", DEBIAN_NODE)
    found = node and subprocess.run([node, "-e", "require('ws')"], stderr=subprocess.DEVNULL,
                                    check=False).returncode == 0
    return node if found else None


def with_node(program, directory):
    node = find_node()
    if not node:
        return False
    with Started(node, "-e", NODE_SERVER, directory) as server:
        for url in server.urls:
            ask(program, url, directory)
    with Started(program, "serve", directory) as server:
        for url in server.urls:
            succeed(node, "-e", NODE_CLIENT, url, directory)
    return True


def with_node_http2(program, directory):
    node = find_node()
    if not node:
        return False
    with Started(node, "-e", NODE_HTTP2, directory) as server:
        for url in server.urls:
            succeed(program, "ask-http2", url, directory)
    with Started(program, "serve", directory) as server:
        for url in server.urls:
            succeed(program, "ask-http2", url, directory)
    return True


def wait_for(port):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, port
            time.sleep(0.02)


# nghttpx uses HTTP/2 with the test, and HTTP/1.1 with its upstream server.
def with_nghttpx(program, directory):
    if not shutil.which("nghttpx"):
        return False
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with Started(program, "serve", directory) as server:
        behind = server.urls[0].rsplit(":", 1)[1].strip("/")
        with subprocess.Popen(["nghttpx", "--conf=/dev/null", "--errorlog-file=/dev/null",
                               f"-f127.0.0.1,{port};no-tls", f"-b127.0.0.1,{behind}"],
                              stderr=subprocess.DEVNULL) as proxy:
            try:
                wait_for(port)
                succeed(program, "ask-http2", f"ws://127.0.0.1:{port}/", directory)
            finally:
                proxy.kill()
    return True


async def python_client(websockets, url, compression, context):
    async with websockets.connect(url, subprotocols=["echo"], max_size=None, ssl=context,
                                  compression=compression) as talk:
        assert talk.subprotocol == "echo"
        for size in SIZES:
            for message in ("x" * size, b"\xff" * size):
                await talk.send(message)
                assert await talk.recv() == message
        await talk.send(["in ", "frag", "ments"])
        assert await talk.recv() == "in fragments"
        await (await talk.ping(b"p"))
        await talk.close(3456, "enough")
        assert talk.close_code == 3456


async def python_both_ways(websockets, program, directory):
    async def echo(talk, *_):
        try:
            async for message in talk:
                await talk.send(message)
        except websockets.ConnectionClosedError:  # For any code except 1000 and 1001.
            pass

    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(os.path.join(directory, "server.pem"))
    trusting = ssl.create_default_context(cafile=os.path.join(directory, "root.pem"))
    for compression in (None, "deflate"):
        for scheme, context in (("ws", None), ("wss", serving)):
            async with websockets.serve(echo, "127.0.0.1", 0, subprotocols=["echo"],
                                        max_size=None, compression=compression,
                                        ssl=context) as server:
                port = server.sockets[0].getsockname()[1]
                await asyncio.to_thread(ask, program, f"{scheme}://127.0.0.1:{port}/", directory)
        with Started(program, "serve", directory) as server:
            for url, context in zip(server.urls, (None, trusting)):
                await python_client(websockets, url, compression, context)


def with_python(program, directory):
    sys.path.append(DEBIAN_PYTHON)
    try:
        import websockets  # pylint: disable=import-outside-toplevel
    except ImportError:
        return False
    asyncio.run(asyncio.wait_for(python_both_ways(websockets, program, directory), PATIENCE))
    return True


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        succeed(program, "certify", directory)
        peers = (with_python, with_node, with_node_http2, with_nghttpx)
        tried = [peer.__name__ for peer in peers if peer(program, directory)]
    print(*(tried or ["websockets, ws and nghttpx are not installed (packages python3-websockets, "
                      "node-ws, nghttp2-proxy)"]))
    return 0 if tried else missing.SKIPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
