import socket
from asyncio import SelectorEventLoop, sslproto
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from . import _core

OTHER_FLAGS: Final[int]
STREAM: Final[tuple[socket.SocketKind, int]]
DATAGRAM: Final[tuple[socket.SocketKind, int]]
KINDS: Final[dict[tuple[int, int], tuple[tuple[socket.SocketKind, int], ...]]]

CONNECTING: Final[tuple[str, ...]]

def find_literal(host: str, port: Any, family: int, kind: int, protocol: int) -> Any: ...

class TlsProtocol(_core.TlsEngine, sslproto.SSLProtocol):  # type: ignore[misc]
    max_size = 1

class DatagramTransport(_core.DatagramEngine): ...
class ReadPipeTransport(_core.ReadPipeEngine): ...
class WritePipeTransport(_core.WritePipeEngine):
    def __init__(self, *arguments: Any, **options: Any) -> None: ...

class TlsModule:
    def __getattr__(self, name: str) -> Any: ...

def with_globals(function: Callable[..., Any], **others: Any) -> Callable[..., Any]: ...

class Metrics(NamedTuple):
    turns: int
    callbacks: int
    waits: int
    busy: float
    idle: float
    longest_turn: float
    ready: int
    timers: int

class Loop(_core.Core, SelectorEventLoop):  # type: ignore[misc]
    def __init__(self) -> None: ...
    def metrics(self) -> Metrics: ...
