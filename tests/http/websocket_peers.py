#!/usr/bin/env python3
"""WebSockets with other implementations, both ways: Python's `websockets` and `ws` on Node,
as far as they are installed.   websocket_peers.py PROGRAM"""

import asyncio
import os
import shutil
import subprocess
import sys

# Where Debian puts what its own interpreters find by themselves.
DEBIAN_PYTHON, DEBIAN_NODE = "/usr/lib/python3/dist-packages", "/usr/share/nodejs"
PATIENCE = 60  # Seconds.
SIZES = (0, 1, 125, 126, 65535, 65536, 1 << 20)

NODE_SERVER = """
const {WebSocketServer} = require('ws');
const server = new WebSocketServer({port: 0, host: '127.0.0.1', perMessageDeflate: true,
    handleProtocols: (names) => [...names][0]},
  () => console.log('127.0.0.1:' + server.address().port));
server.on('connection', (socket) => {
  socket.on('message', (bytes, isBinary) => socket.send(bytes, {binary: isBinary}));
});
"""
NODE_CLIENT = """
const WebSocket = require('ws');
const sizes = %s;
const socket = new WebSocket('ws://' + process.argv[1] + '/', 'echo', {perMessageDeflate: true});
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


class Started:
    """A program whose first line ends with its address."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip().split(" ")[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def ask(program, address):
    """Our client, and a server that echoes."""
    done = subprocess.run([program, "ask", f"ws://{address}/"], stdout=subprocess.PIPE, text=True,
                          timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout


def with_node(program):
    node = shutil.which("node")
    os.environ.setdefault("NODE_PATH", DEBIAN_NODE)
    found = node and subprocess.run([node, "-e", "require('ws')"], stderr=subprocess.DEVNULL,
                                    check=False).returncode == 0
    if not found:
        return False
    with Started(node, "-e", NODE_SERVER) as server:
        ask(program, server.address)
    with Started(program, "serve") as server:
        done = subprocess.run([node, "-e", NODE_CLIENT, server.address], timeout=PATIENCE,
                              stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 0, (done.returncode, done.stdout)
    return True


async def python_client(websockets, address, compression):
    async with websockets.connect(f"ws://{address}/", subprotocols=["echo"], max_size=None,
                                  compression=compression) as socket:
        assert socket.subprotocol == "echo"
        for size in SIZES:
            for message in ("x" * size, b"\xff" * size):
                await socket.send(message)
                assert await socket.recv() == message
        await socket.send(["in ", "frag", "ments"])
        assert await socket.recv() == "in fragments"
        await (await socket.ping(b"p"))
        await socket.close(3456, "enough")
        assert socket.close_code == 3456


async def python_both_ways(websockets, program):
    async def echo(socket, *_):
        try:
            async for message in socket:
                await socket.send(message)
        except websockets.ConnectionClosedError:  # As any code but 1000 and 1001 is.
            pass

    for compression in (None, "deflate"):
        async with websockets.serve(echo, "127.0.0.1", 0, subprotocols=["echo"], max_size=None,
                                    compression=compression) as server:
            port = server.sockets[0].getsockname()[1]
            await asyncio.to_thread(ask, program, f"127.0.0.1:{port}")
        with Started(program, "serve") as server:
            await python_client(websockets, server.address, compression)


def with_python(program):
    sys.path.append(DEBIAN_PYTHON)
    try:
        import websockets  # pylint: disable=import-outside-toplevel
    except ImportError:
        return False
    asyncio.run(asyncio.wait_for(python_both_ways(websockets, program), PATIENCE))
    return True


def main(program):
    tried = [peer.__name__ for peer in (with_python, with_node) if peer(program)]
    print(*(tried or ["none is installed"]))
    return 0 if tried else 77


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
