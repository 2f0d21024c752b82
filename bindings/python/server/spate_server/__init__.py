"""An ASGI server on spate's HTTP server."""

from ._native import ClientDisconnected
from .config import Config
from .server import Server, run

__version__ = "0.1.0"
__all__ = ["ClientDisconnected", "Config", "Server", "run"]
