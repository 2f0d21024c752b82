"""The loop: the native half in _core, and everything else inherited from asyncio's loop."""

import asyncio
import os
import selectors
import socket
import types
import typing
from asyncio import base_events, constants, selector_events, sslproto, unix_events

from . import _core

os.register_at_fork(after_in_child=_core.note_fork)

# All flags of getaddrinfo() except those that change nothing for an address. An int, since
# operations of enum are slow.
OTHER_FLAGS = ~int(socket.AI_PASSIVE | socket.AI_NUMERICHOST | socket.AI_NUMERICSERV)
# Kinds of sockets: (type, protocol) as asked for, and the kinds that getaddrinfo() answers.
STREAM = (socket.SOCK_STREAM, socket.IPPROTO_TCP)
DATAGRAM = (socket.SOCK_DGRAM, socket.IPPROTO_UDP)
KINDS = {
    (0, 0): (STREAM, DATAGRAM, (socket.SOCK_RAW, 0)),
    (socket.SOCK_STREAM, 0): (STREAM,),
    STREAM: (STREAM,),
    (socket.SOCK_DGRAM, 0): (DATAGRAM,),
    DATAGRAM: (DATAGRAM,),
}


# Methods that asyncio's create_connection() calls. If a program replaces one, they are called here
# too.
CONNECTING = ("_connect_sock", "_create_connection_transport", "_ensure_resolved",
              "_make_socket_transport", "sock_connect")


def find_literal(host, port, family, kind, protocol):
    """Returns getaddrinfo()'s answer for an address; None if the host is no address."""
    if port is None:
        port = 0
    if type(port) is not int or not 0 <= port <= 65535 or "\0" in host:
        return None
    kinds = KINDS.get((kind, protocol))
    address = _core.parse_literal(host, port)
    if kinds is None or address is None:
        return None
    found = socket.AF_INET if len(address) == 2 else socket.AF_INET6
    if family not in (0, found):
        return None
    return [(found, kind, protocol, "", address) for kind, protocol in kinds]


class TlsProtocol(_core.TlsEngine, sslproto.SSLProtocol):
    """asyncio's protocol of TLS, whose native half serves established connections."""

    max_size = 1  # The base allocates a buffer of this size, and this class replaces it.

    def __init__(self, loop, *arguments, **options):
        super().__init__(loop, *arguments, **options)
        self.max_size = sslproto.SSLProtocol.max_size
        self._ssl_buffer_view = loop._tls_buffer_view()

    def _get_app_transport(self):
        if self._app_transport is None:
            super()._get_app_transport().write = self._write
        return self._app_transport


class DatagramTransport(_core.DatagramEngine, selector_events._SelectorDatagramTransport):
    """asyncio's transport of datagrams, whose native half serves internet sockets."""


class ReadPipeTransport(_core.ReadPipeEngine, unix_events._UnixReadPipeTransport):
    """asyncio's transport of a pipe's read end, with a native half."""


class WritePipeTransport(_core.WritePipeEngine, unix_events._UnixWritePipeTransport):
    """asyncio's transport of a pipe's write end, with a native half."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._buffer = _core.PieceQueue()


class TlsModule:
    """asyncio.sslproto, except that SSLProtocol is TlsProtocol."""

    def __getattr__(self, name):
        return TlsProtocol if name == "SSLProtocol" else getattr(sslproto, name)


def with_globals(function, **others):
    """Returns a copy of the function that finds the others among its globals."""
    copied = types.FunctionType(function.__code__, {**function.__globals__, **others},
                                function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__doc__ = function.__doc__
    return copied


class Metrics(typing.NamedTuple):
    """Figures of a loop since it was made. Times are in seconds."""

    turns: int
    callbacks: int
    waits: int  # Turns that waited for the kernel.
    busy: float  # The time in callbacks, and in the loop itself.
    idle: float  # The time of the waits.
    longest_turn: float  # The longest time in which the kernel was not asked.
    ready: int  # Callbacks that the next turn calls.
    timers: int


class Loop(_core.Core, asyncio.SelectorEventLoop):
    """An asyncio event loop. Times are those of time.monotonic()."""

    _tls_view = None

    def __init__(self):
        # The base class needs a selector; this one has no descriptor, and nothing is registered
        # with it.
        super().__init__(selectors.SelectSelector())
        self._connects_natively = all(getattr(type(self), name) is getattr(Loop, name)
                                      for name in CONNECTING)

    def _add_callback(self, handle):
        if not handle._cancelled:
            self.call_soon(handle._run)

    def _add_callback_signalsafe(self, handle):
        self._add_callback(handle)

    def _tls_buffer_view(self):
        """Returns the buffer that all connections receive into, one after another."""
        if self._tls_view is None:
            self._tls_view = memoryview(bytearray(sslproto.SSLProtocol.max_size))
        return self._tls_view

    # The asyncio of the running Python, but with a protocol that has a native half.
    start_tls = with_globals(base_events.BaseEventLoop.start_tls, sslproto=TlsModule())

    def metrics(self):
        """Returns the loop's Metrics."""
        return Metrics(*self._metrics())

    def _ensure_fd_no_transport(self, fd):
        self._check_no_transport(fd)
        if self._transports:  # The transports of asyncio itself.
            super()._ensure_fd_no_transport(fd)

    def _make_socket_transport(self, sock, protocol, waiter=None, *, extra=None, server=None,
                               context=None):
        self._ensure_fd_no_transport(sock)
        return _core.SocketTransport(self, sock, protocol, waiter, extra, server, context)

    def _make_datagram_transport(self, sock, protocol, *arguments, **options):
        self._ensure_fd_no_transport(sock)
        return DatagramTransport(self, sock, protocol, *arguments, **options)

    def _make_read_pipe_transport(self, pipe, protocol, *arguments, **options):
        return ReadPipeTransport(self, pipe, protocol, *arguments, **options)

    def _make_write_pipe_transport(self, pipe, protocol, *arguments, **options):
        return WritePipeTransport(self, pipe, protocol, *arguments, **options)

    def _accept_connection(self, protocol_factory, sock, sslcontext=None, server=None, backlog=100,
                           *timeouts, **others):
        is_usual = sslcontext is None and not others and not self._debug
        if is_usual and self._accept(protocol_factory, sock, server, backlog):
            return
        super()._accept_connection(protocol_factory, sock, sslcontext, server, backlog, *timeouts,
                                   **others)

    def _check_socket(self, sock):
        base_events._check_ssl_socket(sock)
        if self._debug and sock.gettimeout() != 0:
            raise ValueError("the socket must be non-blocking")

    async def sock_recv(self, sock, n):
        self._check_socket(sock)
        is_later, result = self._socket_receive(sock, n)
        return await result if is_later else result

    async def sock_recv_into(self, sock, buf):
        self._check_socket(sock)
        is_later, result = self._socket_receive_into(sock, buf)
        return await result if is_later else result

    async def sock_sendall(self, sock, data):
        self._check_socket(sock)
        is_later, result = self._socket_send(sock, data)
        return await result if is_later else result

    async def sock_connect(self, sock, address):
        self._check_socket(sock)
        connecting = self._socket_connect(sock, address)
        if connecting is None:
            return await super().sock_connect(sock, address)
        is_later, result = connecting
        return await result if is_later else result

    async def create_connection(self, protocol_factory, host=None, port=None, **options):
        """Opens a connection, as asyncio's method does. See its parameters there."""
        is_usual = not options and self._connects_natively and not self._debug
        call = None
        if is_usual and self.__dict__.keys().isdisjoint(CONNECTING):
            call = self._connect(host, port)
        if call is None:
            return await super().create_connection(protocol_factory, host, port, **options)
        try:
            if call.future is not None:
                await call.future
            protocol = protocol_factory()
            waiter = self.create_future()
            transport = self._make_connected_transport(call, protocol, waiter)
        except BaseException:
            call.close()
            raise
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def getaddrinfo(self, host, port, *, family=0, type=0, proto=0, flags=0):
        if not self._debug and isinstance(host, str) and not flags & OTHER_FLAGS:
            found = find_literal(host, port, family, type, proto)
            if found is not None:
                return found
        return await super().getaddrinfo(host, port, family=family, type=type, proto=proto,
                                         flags=flags)

    async def _sendfile_native(self, transport, file, offset, count):
        was_reading = transport.is_reading()
        transport.pause_reading()
        await transport._make_empty_waiter()
        try:
            return await self.sock_sendfile(transport._sock, file, offset, count, fallback=False)
        finally:
            transport._reset_empty_waiter()
            if was_reading:
                transport.resume_reading()

    def _make_ssl_transport(self, rawsock, protocol, sslcontext, waiter=None, *, server_side=False,
                            server_hostname=None, extra=None, server=None,
                            ssl_handshake_timeout=constants.SSL_HANDSHAKE_TIMEOUT,
                            ssl_shutdown_timeout=constants.SSL_SHUTDOWN_TIMEOUT, context=None):
        tls = TlsProtocol(self, protocol, sslcontext, waiter, server_side,
                                   server_hostname, ssl_handshake_timeout=ssl_handshake_timeout,
                                   ssl_shutdown_timeout=ssl_shutdown_timeout)
        self._make_socket_transport(rawsock, tls, extra=extra, server=server, context=context)
        return tls._app_transport
