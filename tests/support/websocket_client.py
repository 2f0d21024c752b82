"""A minimal WebSocket client, with frames only, for tests."""

import os
import socket
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


class WebSocket:
    def __init__(self, port, path, patience=60, fields=""):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.file = self.socket.makefile("rb")
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                             "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                             "Sec-WebSocket-Version: 13\r\n"
                             f"Sec-WebSocket-Key: {KEY}\r\n{fields}\r\n").encode())
        self.status = int(self.file.readline().split()[1])
        self.fields = {}
        while line := self.file.readline().decode().strip():
            name, value = line.split(": ", 1)
            self.fields[name.lower()] = value

    def send(self, payload, opcode=TEXT):
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.socket.sendall(head + mask + masked)

    def say(self, text):
        self.send(text.encode())

    def receive(self):
        """Returns the next frame: its opcode and payload; None at the end of the connection."""
        head = self.file.read(2)
        if len(head) < 2:
            return None
        size = head[1] & 0x7f
        if size == 126:
            size = struct.unpack(">H", self.file.read(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.file.read(8))[0]
        return head[0] & 0x0f, self.file.read(size)

    def hear(self):
        """Returns the next message's text."""
        opcode, payload = self.receive()
        assert opcode == TEXT, opcode
        return payload.decode()

    def hang_up(self):
        self.file.close()
        self.socket.close()
