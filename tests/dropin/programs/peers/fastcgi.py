"""A client of FastCGI."""

import socket
import struct

HEAD = struct.Struct(">BBHHBx")
BEGIN, END, PARAMETERS, INPUT, OUTPUT = 1, 3, 4, 5, 6


def record(kind, content):
    return HEAD.pack(1, kind, 1, len(content), 0) + content


def ask(path, name, query):
    """Sends a request to the server at a Unix socket; returns the response, or None if it ends
    early."""
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    stream.settimeout(30)
    values = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": name, "QUERY_STRING": query,
              "SERVER_NAME": "test", "SERVER_PROTOCOL": "HTTP/1.1"}
    pairs = b"".join(bytes((len(key), len(value))) + (key + value).encode()
                     for key, value in values.items())
    stream.sendall(record(BEGIN, struct.pack(">HB5x", 1, 0)) + record(PARAMETERS, pairs)
                   + record(PARAMETERS, b"") + record(INPUT, b""))
    return answer(stream)


def answer(stream):
    output = b""
    with stream, stream.makefile("rb") as reader:
        while True:
            try:
                head = reader.read(HEAD.size)
            except ConnectionResetError:
                head = b""
            if not head:
                return None
            _, kind, _, size, padding = HEAD.unpack(head)
            content = reader.read(size + padding)[:size]
            if kind == END:
                return output
            if kind == OUTPUT:
                output += content
